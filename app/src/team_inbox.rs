//! The inbox files of a team of the Claude CLI: `TEAMS/TEAM/inboxes/NAME.json`, a JSON list of entries. The daemon writes messages of
//! people into the inboxes of agents, and reads the human's inbox, in which agents answer.
//!
//! A writer takes the CLI's own lock, `NAME.json.lock`, and replaces the file by a rename. Entries of others are kept as they are.
//! The reader changes nothing: the log remembers which entries were taken in, so an entry counts once, however the file changes.

use crate::blocking::blocking;
use crate::clock;
use crate::config::{self, is_file_name};
use crate::engine::{Handle, SubmitError};
use crate::shared_file::{self, Durability};
use hatchery_core::seat::SeatRefusal;
use hatchery_core::{Command, Refusal};
use notify::{RecursiveMode, Watcher as _};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::{Notify, watch};

/// How long the lock may be held by somebody else. A change takes milliseconds.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);
const LOCK_PAUSE: Duration = Duration::from_millis(10);
/// A lock that was not touched for so long was left behind by a process that is gone. The CLI's own limit.
const LOCK_STALE: Duration = Duration::from_secs(10);
/// How often the human's inbox is looked at, because notices of changes may be lost.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// How much of a message is its summary, in characters.
const SUMMARY_CHARS: usize = 80;

/// Writes a message into the inbox of an agent of the team.
pub async fn send(settings: &config::Seats, name: &str, from: &str, text: &str) -> io::Result<()> {
    let path = inbox(settings, name)?;
    let summary: String = text.chars().take(SUMMARY_CHARS).collect();
    let entry = json!({
        "from": from, "text": text, "summary": summary, "timestamp": clock::written(clock::now()), "read": false,
    });
    blocking(move || append(&path, entry)).await
}

/// Whether an agent can be reached by its inbox: there is a team, and the agent's name can be a file's.
pub fn can_reach(settings: &config::Seats, name: &str) -> bool {
    inbox(settings, name).is_ok_and(|path| path.parent().is_some_and(Path::is_dir))
}

fn inbox(settings: &config::Seats, name: &str) -> io::Result<PathBuf> {
    let invalid = |what: String| io::Error::new(ErrorKind::InvalidInput, what);
    let teams = settings.teams.as_ref().ok_or_else(|| invalid("there is no home folder with teams".into()))?;
    let name = name.to_lowercase();
    match is_file_name(&name) {
        true => Ok(teams.join(&settings.team).join("inboxes").join(format!("{name}.json"))),
        false => Err(invalid(format!("`{name}` cannot be the name of a file"))),
    }
}

/// Adds an entry under the CLI's lock.
fn append(path: &Path, entry: Value) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let _lock = InboxLock::acquire(path)?;
    let mut entries = read(path)?;
    entries.push(entry);
    let text = serde_json::to_vec_pretty(&entries)?;
    shared_file::replace(path, &text, Durability::Synced)
}

/// The entries of an inbox. A file that cannot be read is an error, never an empty inbox.
fn read(path: &Path) -> io::Result<Vec<Value>> {
    match shared_file::read(path)? {
        None => Ok(Vec::new()),
        Some(bytes) if bytes.trim_ascii().is_empty() => Ok(Vec::new()),
        Some(bytes) => serde_json::from_slice(&bytes).map_err(Into::into),
    }
}

/// The lock that the CLI takes: a folder beside the file, which only one process can create.
struct InboxLock(PathBuf);

impl InboxLock {
    fn acquire(path: &Path) -> io::Result<Self> {
        let mut lock = path.as_os_str().to_owned();
        lock.push(".lock");
        let lock = PathBuf::from(lock);
        let deadline = Instant::now() + LOCK_PATIENCE;
        loop {
            match std::fs::create_dir(&lock) {
                Ok(()) => return Ok(Self(lock)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    if is_stale(&lock) {
                        // Somebody else may remove it at the same time; only one of us can create it anew.
                        let removed = std::fs::remove_dir(&lock).or_else(|_| std::fs::remove_file(&lock));
                        tracing::warn!(lock = %lock.display(), removed = removed.is_ok(), "a lock was left behind");
                    } else if Instant::now() >= deadline {
                        let what = format!("another process holds {}", lock.display());
                        return Err(io::Error::new(ErrorKind::TimedOut, what));
                    }
                }
                Err(error) => return Err(error),
            }
            std::thread::sleep(LOCK_PAUSE);
        }
    }
}

impl Drop for InboxLock {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir(&self.0) {
            tracing::warn!(%error, lock = %self.0.display(), "the lock cannot be removed; it counts as left behind soon");
        }
    }
}

fn is_stale(lock: &Path) -> bool {
    let touched = std::fs::metadata(lock).and_then(|it| it.modified());
    touched.is_ok_and(|touched| SystemTime::now().duration_since(touched).is_ok_and(|age| age > LOCK_STALE))
}

/// Reads the human's inbox from the daemon's start to its end.
pub async fn keep_reading(settings: config::Seats, handle: Handle, mut closing: watch::Receiver<bool>) {
    let Ok(path) = inbox(&settings, &settings.human) else { return };
    let folder = path.parent().unwrap_or(Path::new(".")).to_owned();
    let changed = Arc::new(Notify::new());
    let mut watcher = watcher(&changed);
    let mut watched = false;
    let mut seen = None;
    loop {
        // The folder appears with the team.
        if !watched && folder.is_dir() {
            watched = watcher.as_mut().is_some_and(|it| it.watch(&folder, RecursiveMode::NonRecursive).is_ok());
        }
        let look = path.clone();
        match blocking(move || Ok((state(&look), read(&look)))).await {
            Ok((state, _)) if state.is_some() && state == seen => {}
            Ok((state, Ok(entries))) => {
                if take(&handle, entries).await {
                    seen = state;
                }
            }
            // The file may be half written: it is read again.
            Ok((_, Err(error))) | Err(error) => {
                tracing::debug!(%error, inbox = %path.display(), "the human's inbox cannot be read now");
            }
        }
        tokio::select! {
            () = changed.notified() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
            _ = closing.wait_for(|closing| *closing) => return,
        }
    }
}

fn watcher(changed: &Arc<Notify>) -> Option<notify::RecommendedWatcher> {
    let changed = Arc::clone(changed);
    let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        if event.is_ok_and(|event| !event.kind.is_access()) {
            changed.notify_one();
        }
    });
    watcher.inspect_err(|error| tracing::warn!(%error, "team inboxes cannot be watched; they are looked at")).ok()
}

/// What changes when the file does.
fn state(path: &Path) -> Option<(SystemTime, u64)> {
    let found = std::fs::metadata(path).ok()?;
    Some((found.modified().ok()?, found.len()))
}

/// Takes in the entries that the log does not know. Says whether all of them are taken in.
async fn take(handle: &Handle, entries: Vec<Value>) -> bool {
    let mut all = true;
    for (key, from, text) in replies(&entries) {
        if handle.view().seats().knows_reply(&key) {
            continue;
        }
        match handle.submit(Command::TakeReply { key, from, text }).await {
            Ok(_) | Err(SubmitError::Refused(Refusal::Seat(SeatRefusal::ReplyTaken))) => {}
            Err(error) => {
                tracing::warn!(%error, "an entry of the human's inbox cannot be recorded; it is tried again");
                all = false;
            }
        }
    }
    all
}

/// The replies among the entries: what tells each from all others, who wrote it, and the text.
fn replies(entries: &[Value]) -> Vec<(String, String, String)> {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    let mut replies = Vec::new();
    for entry in entries {
        let field = |name: &str| entry[name].as_str().unwrap_or_default();
        let (from, text) = (field("from"), field("text"));
        if from.is_empty() || text.is_empty() || is_notice(text) {
            continue;
        }
        let sum = crc32fast::hash(text.as_bytes());
        let name = format!("{}|{from}|{}|{}|{sum:08x}", field("timestamp"), field("msg_id"), text.len());
        // The same words twice in one inbox are two replies.
        let count = counts.entry(name.clone()).and_modify(|count| *count += 1).or_insert(1);
        replies.push((format!("{name}|{count}"), from.to_owned(), text.to_owned()));
    }
    replies
}

/// The CLI also tells by an entry that an agent is idle, as JSON.
fn is_notice(text: &str) -> bool {
    let notice = text.trim_start().starts_with('{').then(|| serde_json::from_str::<Value>(text).ok()).flatten();
    notice.is_some_and(|notice| notice["type"].as_str().is_some_and(|kind| kind.ends_with("_notification")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(teams: &Path) -> config::Seats {
        let toml = format!("[seats]\nteam = 'crew'\nteams = '{}'", teams.display());
        config::seats_of(&toml)
    }

    #[tokio::test]
    async fn a_message_is_added_and_what_others_wrote_stays() {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(folder.path());
        let path = folder.path().join("crew/inboxes/lyra.json");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let foreign = json!({ "from": "team-lead", "text": "go", "timestamp": "t", "color": "blue", "odd": [1] });
        std::fs::write(&path, json!([foreign]).to_string()).unwrap();
        send(&settings, "Lyra", "Ada", "hello").await.unwrap();
        let entries = read(&path).unwrap();
        assert_eq!(entries[0], foreign);
        assert_eq!(
            (&entries[1]["from"], &entries[1]["text"], &entries[1]["read"]),
            (&json!("Ada"), &json!("hello"), &json!(false))
        );
        assert!(!folder.path().join("crew/inboxes/lyra.json.lock").exists());
    }

    #[tokio::test]
    async fn a_name_that_leads_elsewhere_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["../lyra", "a/b", "", ".hidden"] {
            assert!(send(&settings(folder.path()), name, "Ada", "x").await.is_err(), "{name}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_read_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("crew/inboxes/lyra.json");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "[{").unwrap();
        assert!(send(&settings(folder.path()), "lyra", "Ada", "x").await.is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "[{");
    }

    #[test]
    fn eight_writers_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lyra.json");
        std::thread::scope(|scope| {
            for writer in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    for number in 0..20 {
                        append(path, json!({ "from": "x", "text": format!("{writer} {number}") })).unwrap();
                    }
                });
            }
        });
        assert_eq!(read(&path).unwrap().len(), 160);
    }

    #[test]
    fn a_lock_that_was_left_behind_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lyra.json");
        let lock = folder.path().join("lyra.json.lock");
        std::fs::create_dir(&lock).unwrap();
        let long_ago = SystemTime::now() - Duration::from_secs(60);
        std::fs::File::open(&lock).unwrap().set_modified(long_ago).unwrap();
        append(&path, json!({ "from": "x", "text": "y" })).unwrap();
        assert_eq!(read(&path).unwrap().len(), 1);
    }

    #[test]
    fn each_entry_has_a_key_of_its_own_and_keeps_it() {
        let entry = |text: &str| json!({ "from": "lyra", "text": text, "timestamp": "t" });
        let keys = |entries: &[Value]| replies(entries).into_iter().map(|(key, ..)| key).collect::<Vec<_>>();
        let both = keys(&[entry("hi"), entry("hi")]);
        assert_ne!(both[0], both[1]);
        assert_eq!(keys(&[entry("new"), entry("hi")])[1], both[0], "its place in the file does not matter");
        let read = json!({ "from": "lyra", "text": "hi", "timestamp": "t", "read": true });
        assert_eq!(keys(&[read])[0], both[0], "whether it was read does not matter");
        assert_eq!(keys(&[json!({ "from": "lyra", "text": "{\"type\":\"idle_notification\"}" })]), [""; 0]);
    }
}
