//! The inbox files of a team of the Claude CLI: `TEAMS/TEAM/inboxes/NAME.json`, a JSON list of entries. The daemon writes messages of
//! people into the inboxes of agents. `human_inbox.rs` reads the answers.
//!
//! A writer takes the CLI's own lock, `NAME.json.lock`, and replaces the file by a rename. Entries of others are kept as they are.

use crate::blocking::blocking;
use crate::config::{self, is_file_name};
use crate::shared_file::{self, Durability};
use crate::team_outbox::Posted;
use hatchery_core::seat::inbox_name;
use serde_json::{Value, json};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// How long another process may hold the lock. A change takes milliseconds.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);
const LOCK_PAUSE: Duration = Duration::from_millis(10);
/// A lock that was not touched for so long was left behind by a process that is gone. The CLI's own limit.
const LOCK_STALE: Duration = Duration::from_secs(10);
/// The inbox of the lead, as the CLI calls it.
const LEAD_INBOX: &str = "team-lead";
/// How much of a message is its summary, in characters.
const SUMMARY_CHARS: usize = 80;

/// Writes a message into the inbox of an agent of the team, unless it is there.
pub async fn send_once(settings: &config::SeatDefaults, posted: &Posted) -> io::Result<()> {
    let path = agent_inbox(settings, &posted.name)?.of_cli;
    let entry = entry_of(posted);
    blocking(move || append(&path, entry)).await
}

/// Whether an agent has an inbox: there is a team, and the agent's name can be that of a file.
pub async fn can_reach(settings: &config::SeatDefaults, name: &str) -> bool {
    let Ok(path) = agent_inbox(settings, name).map(|it| it.of_cli) else { return false };
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
pub async fn find(settings: &config::SeatDefaults, posted: &Posted) -> io::Result<InboxState> {
    let (inbox, entry) = (agent_inbox(settings, &posted.name)?, entry_of(posted));
    let look = move || {
        for path in inbox.paths() {
            let state = found(&read(path)?, &entry);
            if state != InboxState::Nowhere {
                return Ok(state);
            }
        }
        Ok(InboxState::Nowhere)
    };
    blocking(look).await
}

/// Takes a message out of the inbox of its agent if it is unread, and says what it was.
pub async fn withdraw(settings: &config::SeatDefaults, posted: &Posted) -> io::Result<InboxState> {
    let (inbox, entry) = (agent_inbox(settings, &posted.name)?, entry_of(posted));
    let take_out = move || {
        for path in inbox.paths() {
            let state = take_out_of(path, &entry)?;
            if state != InboxState::Nowhere {
                return Ok(state);
            }
        }
        Ok(InboxState::Nowhere)
    };
    blocking(take_out).await
}

fn take_out_of(path: &Path, entry: &Value) -> io::Result<InboxState> {
    if !path.try_exists()? {
        return Ok(InboxState::Nowhere);
    }
    let _lock = InboxLock::acquire(path)?;
    let mut entries = read(path)?;
    let found = found(&entries, entry);
    if found == InboxState::Unread {
        entries.retain(|other| !is_same(other, entry));
        shared_file::replace(path, &serde_json::to_vec_pretty(&entries)?, Durability::Synced)?;
    }
    Ok(found)
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

/// The files that can be the inbox of one name.
#[derive(Clone, Debug)]
pub(crate) struct InboxFiles {
    /// As the CLI calls the file: it keeps capital letters.
    pub of_cli: PathBuf,
    /// As the original program of the seats and earlier versions of Hatchery called the file: in small letters.
    pub in_small: PathBuf,
}

impl InboxFiles {
    /// Each file once, that of the CLI first.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let other = Some(&self.in_small).filter(|other| **other != self.of_cli);
        [&self.of_cli].into_iter().chain(other).map(PathBuf::as_path)
    }
}

/// The inbox of an agent. One that is called like the human or like the inbox of the lead has none of its own.
fn agent_inbox(settings: &config::SeatDefaults, name: &str) -> io::Result<InboxFiles> {
    let taken = |other: &str| inbox_name(name).to_lowercase() == inbox_name(other).to_lowercase();
    match taken(&settings.human) || taken(LEAD_INBOX) {
        true => Err(io::Error::new(ErrorKind::InvalidInput, format!("the inbox `{name}` is not that of an agent"))),
        false => inbox_of(settings, name),
    }
}

pub(crate) fn inbox_of(settings: &config::SeatDefaults, name: &str) -> io::Result<InboxFiles> {
    let invalid = |what: String| io::Error::new(ErrorKind::InvalidInput, what);
    let teams = settings.teams.as_ref().ok_or_else(|| invalid("there is no home folder with teams".into()))?;
    if !is_file_name(name) {
        return Err(invalid(format!("`{name}` cannot be the name of a file")));
    }
    let folder = teams.join(inbox_name(&settings.team)).join("inboxes");
    Ok(InboxFiles {
        of_cli: folder.join(format!("{}.json", inbox_name(name))),
        in_small: folder.join(format!("{}.json", name.to_lowercase())),
    })
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
pub(crate) fn read(path: &Path) -> io::Result<Vec<Value>> {
    match shared_file::read(path)? {
        None => Ok(Vec::new()),
        Some(bytes) if bytes.trim_ascii().is_empty() => Ok(Vec::new()),
        Some(bytes) => serde_json::from_slice(&bytes).map_err(Into::into),
    }
}

/// The lock that the CLI takes: a folder beside the file, which only one process can create.
pub(crate) struct InboxLock(PathBuf);

impl InboxLock {
    pub fn acquire(path: &Path) -> io::Result<Self> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use crate::team_outbox::PostStage;

    fn settings(teams: &Path) -> config::SeatDefaults {
        let toml = format!("[seats]\nteam = 'crew'\nteams = '{}'", teams.display());
        config::seats_of(&toml)
    }

    async fn send(settings: &config::SeatDefaults, name: &str, from: &str, text: &str) -> io::Result<()> {
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
        let path = folder.path().join("crew/inboxes/Lyra.json");
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
        assert!(!folder.path().join("crew/inboxes/Lyra.json.lock").exists());
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
        let path = folder.path().join("crew/inboxes/Lyra.json");
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

    /// Another daemon wrote the message into the file in small letters, and this one knows where to look for it.
    #[tokio::test]
    async fn a_message_in_small_letters_is_found_and_withdrawn() {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(folder.path());
        let posted = Posted {
            agent: clock::new_agent_id(),
            name: "Lyra".into(),
            from: "Ada".into(),
            text: "hello".into(),
            timestamp: "2026-01-01T00:00:00.000Z".into(),
            after: hatchery_core::EventId::START,
            message: None,
            stage: PostStage::Written,
        };
        let inbox = agent_inbox(&settings, "Lyra").unwrap();
        append(&inbox.in_small, entry_of(&posted)).unwrap();
        assert_eq!(find(&settings, &posted).await.unwrap(), InboxState::Unread);
        assert_eq!(withdraw(&settings, &posted).await.unwrap(), InboxState::Unread);
        assert_eq!(find(&settings, &posted).await.unwrap(), InboxState::Nowhere);
        assert!(!inbox.of_cli.exists(), "no other file was made");
    }
}
