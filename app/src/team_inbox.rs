//! The inbox files of a team of the Claude CLI: `TEAMS/TEAM/inboxes/NAME.json`, a JSON list of entries. The daemon writes messages of
//! people into the inboxes of agents, and reads the human's inbox, in which agents answer.
//!
//! A writer takes the CLI's own lock, `NAME.json.lock`, and replaces the file by a rename. Entries of others are kept as they are.
//! The reader changes nothing: the log remembers which entries were taken in, so an entry counts once, however the file changes.

use crate::blocking::blocking;
use crate::config::{self, is_file_name};
use crate::engine::{Handle, SubmitError};
use crate::shared_file::{self, Durability};
use crate::team_outbox::Posted;
use hatchery_core::seat::{MAX_REPLIES, Mode, SeatRefusal};
use hatchery_core::{Command, Refusal};
use notify::{RecursiveMode, Watcher as _};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::{Notify, watch};

/// How long another process may hold the lock. A change takes milliseconds.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);
const LOCK_PAUSE: Duration = Duration::from_millis(10);
/// A lock that was not touched for so long was left behind by a process that is gone. The CLI's own limit.
const LOCK_STALE: Duration = Duration::from_secs(10);
/// A file that was changed so recently may change again without another time of change: it is looked at once more.
const SETTLED_AFTER: Duration = Duration::from_secs(1);
/// How many of the newest entries of an inbox are looked at. The log remembers twice as many, so none of them is taken in twice.
const MAX_ENTRIES: usize = MAX_REPLIES / 2;
/// The longest name of a sender, in characters.
const MAX_FROM_CHARS: usize = 200;
/// The inbox of the lead, as the CLI calls it.
const LEAD_INBOX: &str = "team-lead";
/// How much of a message is its summary, in characters.
const SUMMARY_CHARS: usize = 80;

/// Writes a message into the inbox of an agent of the team, unless it is there.
pub async fn send_once(settings: &config::Seats, posted: &Posted) -> io::Result<()> {
    let path = agent_inbox(settings, &posted.name)?;
    let entry = entry_of(posted);
    blocking(move || append(&path, entry)).await
}

/// Whether an agent has an inbox: there is a team, and the agent's name can be that of a file.
pub async fn can_reach(settings: &config::Seats, name: &str) -> bool {
    let Ok(path) = agent_inbox(settings, name) else { return false };
    blocking(move || Ok(path.parent().is_some_and(Path::is_dir) && read(&path).is_ok())).await.unwrap_or(false)
}

/// What has become of a message in an inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InboxState {
    Unread,
    Read,
    /// Some versions of the CLI take out what they have read.
    Nowhere,
}

/// Looks for a message in the inbox of its agent.
pub async fn find(settings: &config::Seats, posted: &Posted) -> io::Result<InboxState> {
    let (path, entry) = (agent_inbox(settings, &posted.name)?, entry_of(posted));
    blocking(move || Ok(found(&read(&path)?, &entry))).await
}

/// Takes a message out of the inbox of its agent if it is unread, and says what it was.
pub async fn withdraw(settings: &config::Seats, posted: &Posted) -> io::Result<InboxState> {
    let (path, entry) = (agent_inbox(settings, &posted.name)?, entry_of(posted));
    let take_out = move || {
        if !path.try_exists()? {
            return Ok(InboxState::Nowhere);
        }
        let _lock = InboxLock::acquire(&path)?;
        let mut entries = read(&path)?;
        let found = found(&entries, &entry);
        if found == InboxState::Unread {
            entries.retain(|other| !is_same(other, &entry));
            shared_file::replace(&path, &serde_json::to_vec_pretty(&entries)?, Durability::Synced)?;
        }
        Ok(found)
    };
    blocking(take_out).await
}

fn found(entries: &[Value], entry: &Value) -> InboxState {
    match entries.iter().find(|other| is_same(other, entry)) {
        None => InboxState::Nowhere,
        Some(entry) if entry["read"] == true => InboxState::Read,
        Some(_) => InboxState::Unread,
    }
}

fn entry_of(posted: &Posted) -> Value {
    let Posted { from, text, timestamp, .. } = posted;
    let summary: String = text.chars().take(SUMMARY_CHARS).collect();
    json!({ "from": from, "text": text, "summary": summary, "timestamp": timestamp, "read": false })
}

/// The same words at the same time are the same entry.
fn is_same(one: &Value, other: &Value) -> bool {
    one["timestamp"].is_string() && ["from", "text", "timestamp"].iter().all(|field| one[field] == other[field])
}

/// The inbox of an agent. One that is called like the human or like the inbox of the lead has none of its own.
fn agent_inbox(settings: &config::Seats, name: &str) -> io::Result<PathBuf> {
    let taken = |other: &str| name.to_lowercase() == other.to_lowercase();
    match taken(&settings.human) || taken(LEAD_INBOX) {
        true => Err(io::Error::new(ErrorKind::InvalidInput, format!("the inbox `{name}` is not that of an agent"))),
        false => inbox(settings, name),
    }
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

/// Adds an entry under the CLI's lock. One with the same words and the same time is the same entry.
fn append(path: &Path, entry: Value) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let _lock = InboxLock::acquire(path)?;
    let mut entries = read(path)?;
    if entries.iter().any(|other| is_same(other, &entry)) {
        return Ok(());
    }
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
                        // Another process may remove it at the same time. Only one of them can create it again.
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

/// Reads the human's inbox from the daemon's start to its end. Only a lead has a team: without one there is nothing to read.
pub async fn keep_reading(settings: config::Seats, handle: Handle, mut closing: watch::Receiver<bool>) {
    if settings.mode == Mode::Direct {
        return;
    }
    let Ok(path) = inbox(&settings, &settings.human) else { return };
    let folder = path.parent().unwrap_or(Path::new(".")).to_owned();
    let changed = Arc::new(Notify::new());
    let mut watcher = watcher(&changed);
    let mut watched = Vec::new();
    let mut seen = None;
    let mut complaint = None;
    loop {
        // The folder appears with the team, and goes with it. Another team of this name has another folder.
        let there = concerned(&folder);
        if there != watched {
            if there.first().is_some_and(|(first, _)| *first == folder) {
                let file = path.clone();
                if let Err(error) = blocking(move || prepare(&file)).await {
                    tracing::warn!(%error, folder = %folder.display(), "the human's inbox cannot be created");
                }
            }
            if let Some(watcher) = &mut watcher {
                // A folder that is gone has taken its watch along, which is no trouble.
                watched.iter().for_each(|(folder, _): &(PathBuf, FolderId)| drop(watcher.unwatch(folder)));
                for (folder, _) in &there {
                    if let Err(error) = watcher.watch(folder, RecursiveMode::NonRecursive) {
                        tracing::warn!(%error, folder = %folder.display(), "the team's inboxes cannot be watched; they are looked at");
                    }
                }
            }
            watched = there;
            // What has happened before the watch began is not noticed by it.
            changed.notify_one();
        }
        let look = path.clone();
        let seen_before = seen.clone();
        match blocking(move || Ok(look_at(&look, seen_before.as_ref()))).await {
            Ok(Look::Unchanged) => {}
            Ok(Look::Read { entries, state }) => {
                complaint = None;
                if take(&handle, entries).await {
                    seen = state;
                }
            }
            // The file may be half written: it is read again. Said once for each problem, and not with every look.
            Ok(Look::Unreadable(error)) | Err(error) => {
                let words = error.to_string();
                if complaint.as_ref() != Some(&words) {
                    tracing::warn!(%error, inbox = %path.display(), "the human's inbox cannot be read; it is tried again");
                }
                complaint = Some(words);
            }
        }
        tokio::select! {
            () = changed.notified() => {}
            () = tokio::time::sleep(settings.look_every) => {}
            _ = closing.wait_for(|closing| *closing) => return,
        }
    }
}

/// The folders in which something may happen to the inboxes: their own, if it is there, and the nearest one above it, in which it appears
/// or is created again.
fn concerned(folder: &Path) -> Vec<(PathBuf, FolderId)> {
    let known = |folder: &Path| Some((folder.to_owned(), FolderId::of(folder)?));
    known(folder).into_iter().chain(folder.ancestors().skip(1).find_map(known)).collect()
}

/// What distinguishes a folder from a new folder in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FolderId {
    inode: u64,
    /// Not known on every file system.
    created: Option<SystemTime>,
}

impl FolderId {
    fn of(folder: &Path) -> Option<Self> {
        let found = std::fs::metadata(folder).ok().filter(std::fs::Metadata::is_dir)?;
        Some(Self { inode: found.ino(), created: found.created().ok() })
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

/// Creates the human's inbox, so that the CLI knows the recipient of its agents' messages. An inbox that is there is left as it is.
fn prepare(path: &Path) -> io::Result<()> {
    let _lock = InboxLock::acquire(path)?;
    match path.try_exists()? {
        true => Ok(()),
        false => shared_file::replace(path, b"[]", Durability::Synced),
    }
}

/// What is found in the human's inbox.
enum Look {
    Unchanged,
    /// The state is there if the next change of the file will certainly change it.
    Read {
        entries: Vec<Value>,
        state: Option<FileState>,
    },
    Unreadable(io::Error),
}

/// What tells one content of the file from another: a rename gives it another inode, and a write or a cut another size or time of
/// change. Unlike the time of modification, the time of change cannot be set by a program.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FileState {
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl FileState {
    fn of(path: &Path) -> Option<Self> {
        let found = std::fs::metadata(path).ok()?;
        Some(Self { inode: found.ino(), bytes: found.len(), changed: (found.ctime(), found.ctime_nsec()) })
    }

    /// Whether a change from now on gets another time: the clock of the file system moves in steps of several milliseconds.
    fn is_settled(&self) -> bool {
        let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(self.changed.0.unsigned_abs());
        SystemTime::now().duration_since(changed).is_ok_and(|age| age > SETTLED_AFTER)
    }
}

/// The state is taken before the file is read, so that a change in between is seen at the next look.
fn look_at(path: &Path, seen: Option<&FileState>) -> Look {
    let state = FileState::of(path);
    if state.is_some() && state.as_ref() == seen {
        return Look::Unchanged;
    }
    match read(path) {
        Ok(entries) => Look::Read { entries, state: state.filter(FileState::is_settled) },
        Err(error) => Look::Unreadable(error),
    }
}

/// Takes in the entries that the log does not know. Says whether all of them are taken in.
async fn take(handle: &Handle, entries: Vec<Value>) -> bool {
    let mut all = true;
    if entries.len() > MAX_ENTRIES {
        tracing::debug!(entries = entries.len(), "only the newest entries of the human's inbox are looked at");
    }
    for (key, from, text) in replies(&entries[entries.len().saturating_sub(MAX_ENTRIES)..]) {
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
        let from: String = field("from").chars().take(MAX_FROM_CHARS).collect();
        let (timestamp, text) = (field("timestamp"), field("text"));
        if from.is_empty() || text.is_empty() || is_notice(text) {
            continue;
        }
        let sum = crc32fast::hash(text.as_bytes());
        let short = |text: &str| text.chars().take(MAX_FROM_CHARS).collect::<String>();
        let name = format!("{}|{from}|{}|{}|{sum:08x}", short(timestamp), short(field("msg_id")), text.len());
        // The same words twice in one inbox are two replies.
        let count = counts.entry(name.clone()).and_modify(|count| *count += 1).or_insert(1);
        replies.push((format!("{name}|{count}"), from, text.to_owned()));
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
    use crate::clock;
    use crate::team_outbox::PostStage;

    fn settings(teams: &Path) -> config::Seats {
        let toml = format!("[seats]\nteam = 'crew'\nteams = '{}'", teams.display());
        config::seats_of(&toml)
    }

    async fn send(settings: &config::Seats, name: &str, from: &str, text: &str) -> io::Result<()> {
        let posted = Posted {
            agent: clock::new_agent_id(),
            name: name.into(),
            from: from.into(),
            text: text.into(),
            timestamp: clock::written(clock::now()),
            after: hatchery_core::EventId::START,
            message: None,
            stage: PostStage::Said,
        };
        send_once(settings, &posted).await?;
        // Brought once more, it is the same message.
        send_once(settings, &posted).await
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
        assert_eq!((&entries[0], entries.len()), (&foreign, 2));
        assert_eq!(
            (&entries[1]["from"], &entries[1]["text"], &entries[1]["read"]),
            (&json!("Ada"), &json!("hello"), &json!(false))
        );
        assert!(!folder.path().join("crew/inboxes/lyra.json.lock").exists());
    }

    #[tokio::test]
    async fn a_name_that_leads_elsewhere_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(folder.path());
        for name in ["../lyra", "a/b", "", ".hidden", "Human", "human", "team-lead"] {
            assert!(send(&settings, name, "Ada", "x").await.is_err(), "{name}");
            assert!(!can_reach(&settings, name).await, "{name}");
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

    fn texts(look: Look) -> Vec<String> {
        let Look::Read { entries, .. } = look else { panic!("the file was not read") };
        entries.iter().map(|entry| entry["text"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn the_humans_inbox_is_created_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ada.json");
        prepare(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "[]");
        append(&path, json!({ "from": "lyra", "text": "hi" })).unwrap();
        prepare(&path).unwrap();
        assert_eq!(read(&path).unwrap().len(), 1, "what is there stays");
    }

    #[tokio::test]
    async fn only_what_is_unread_is_withdrawn() {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(folder.path());
        let posted = |text: &str| Posted {
            agent: clock::new_agent_id(),
            name: "Lyra".into(),
            from: "Ada".into(),
            text: text.into(),
            timestamp: "2026-01-01T00:00:00.000Z".into(),
            after: hatchery_core::EventId::START,
            message: None,
            stage: PostStage::Written,
        };
        assert!(!can_reach(&settings, "Lyra").await, "there is no team");
        let path = folder.path().join("crew/inboxes/lyra.json");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        assert!(can_reach(&settings, "Lyra").await);
        assert_eq!(withdraw(&settings, &posted("one")).await.unwrap(), InboxState::Nowhere);
        for text in ["one", "two", "three"] {
            send_once(&settings, &posted(text)).await.unwrap();
        }
        let mut entries = read(&path).unwrap();
        entries[1]["read"] = json!(true);
        entries.push(json!({ "from": "kael", "text": "one" }));
        std::fs::write(&path, json!(entries).to_string()).unwrap();
        assert_eq!(find(&settings, &posted("one")).await.unwrap(), InboxState::Unread);
        assert_eq!(withdraw(&settings, &posted("one")).await.unwrap(), InboxState::Unread);
        assert_eq!(withdraw(&settings, &posted("one")).await.unwrap(), InboxState::Nowhere, "it was taken out");
        assert_eq!(withdraw(&settings, &posted("two")).await.unwrap(), InboxState::Read);
        let left: Vec<Value> = read(&path).unwrap().iter().map(|entry| entry["text"].clone()).collect();
        assert_eq!(left, ["two", "three", "one"], "what is not ours stays");
    }

    /// The state that a file has when nothing was written for a while.
    fn settled(path: &Path) -> Option<FileState> {
        FileState::of(path)
    }

    #[test]
    fn every_kind_of_change_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ada.json");
        let write = |path: &Path, text: &str| {
            std::fs::write(path, json!([{ "from": "lyra", "text": text }]).to_string()).unwrap();
        };
        write(&path, "one");
        let seen = settled(&path);
        assert!(matches!(look_at(&path, seen.as_ref()), Look::Unchanged));
        // By a rename, with the same size and the same time of modification.
        let other = folder.path().join("other.json");
        write(&other, "two");
        let modified = std::fs::metadata(&path).unwrap().modified().unwrap();
        std::fs::File::open(&other).unwrap().set_modified(modified).unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert_eq!(texts(look_at(&path, seen.as_ref())), ["two"]);
        // Cut.
        let seen = settled(&path);
        std::fs::write(&path, "").unwrap();
        assert_eq!(texts(look_at(&path, seen.as_ref())), [""; 0]);
        // Half written: not an empty inbox, and read again.
        std::fs::write(&path, "[{").unwrap();
        assert!(matches!(look_at(&path, None), Look::Unreadable(_)));
    }

    /// Two writes within one step of the clock look alike from outside, so a file that has just changed is never taken as known.
    #[test]
    fn a_file_that_has_just_changed_is_looked_at_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ada.json");
        std::fs::write(&path, "[]").unwrap();
        let Look::Read { state, .. } = look_at(&path, None) else { panic!("it was not read") };
        assert_eq!(state, None);
        let long_ago = FileState { inode: 1, bytes: 2, changed: (1_000, 0) };
        assert!(long_ago.is_settled());
    }

    #[test]
    fn names_and_keys_are_bounded() {
        let entry = json!({ "from": "x".repeat(1 << 20), "text": "hi", "timestamp": "t".repeat(1 << 20) });
        let found = replies(&[entry]);
        assert!(found[0].0.len() < 1_000 && found[0].1.len() <= MAX_FROM_CHARS);
    }
}
