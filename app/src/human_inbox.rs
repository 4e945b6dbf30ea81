//! The human's inbox in a team of the Claude CLI, in which agents answer. The daemon watches the file from its start to its end.
//!
//! The reader changes nothing: the log remembers which entries were taken in, so an entry counts once, however the file changes.

use crate::blocking::blocking;
use crate::config;
use crate::engine::{Handle, SubmitError};
use crate::shared_file::{self, Durability};
use crate::team_inbox::{InboxLock, inbox_of, read};
use hatchery_core::seat::{MAX_REPLIES, Mode, SeatRefusal};
use hatchery_core::{Command, Refusal};
use notify::{RecursiveMode, Watcher as _};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::{Notify, watch};

/// A file that was changed so recently may change again without another time of change: it is looked at once more.
const SETTLED_AFTER: Duration = Duration::from_secs(1);
/// How many of the newest entries of a file are looked at. There are two files, and the log remembers twice as many entries as that, so
/// none of them is taken in twice.
const MAX_ENTRIES: usize = MAX_REPLIES / 4;
/// The longest name of a sender, in characters.
const MAX_FROM_CHARS: usize = 200;

/// Reads the human's inbox from the daemon's start to its end. Only a lead has a team: without one there is nothing to read.
pub async fn keep_reading(settings: config::SeatDefaults, handle: Handle, mut closing: watch::Receiver<bool>) {
    if settings.mode == Mode::Direct {
        return;
    }
    let Ok(inbox) = inbox_of(&settings, &settings.human) else { return };
    let folder = inbox.of_cli.parent().unwrap_or(Path::new(".")).to_owned();
    // Both spellings: who follows the original program writes into the one in small letters.
    let mut files: Vec<ReadFile> = inbox.paths().map(ReadFile::new).collect();
    let changed = Arc::new(Notify::new());
    let mut watcher = watcher(&changed);
    let mut watched = Vec::new();
    loop {
        // The folder appears with the team, and goes with it. Another team of this name has another folder.
        let there = concerned(&folder);
        if there != watched {
            if there.first().is_some_and(|(first, _)| *first == folder) {
                let file = inbox.of_cli.clone();
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
        for file in &mut files {
            file.look(&handle).await;
        }
        tokio::select! {
            () = changed.notified() => {}
            () = tokio::time::sleep(settings.look_every) => {}
            _ = closing.wait_for(|closing| *closing) => return,
        }
    }
}

/// One file that is read, and what is known of it.
struct ReadFile {
    path: PathBuf,
    /// The content that was taken in.
    seen: Option<FileState>,
    /// Why the file could not be read at the last look.
    complaint: Option<String>,
}

impl ReadFile {
    fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), seen: None, complaint: None }
    }

    async fn look(&mut self, handle: &Handle) {
        let (path, seen) = (self.path.clone(), self.seen.clone());
        match blocking(move || Ok(look_at(&path, seen.as_ref()))).await {
            Ok(InboxLook::Unchanged) => {}
            Ok(InboxLook::Read { entries, state }) => {
                self.complaint = None;
                if take(handle, entries).await {
                    self.seen = state;
                }
            }
            // The file may be half written: it is read again. Said once for each problem, and not with every look.
            Ok(InboxLook::Unreadable(error)) | Err(error) => {
                let words = error.to_string();
                if self.complaint.as_ref() != Some(&words) {
                    tracing::warn!(%error, inbox = %self.path.display(), "the human's inbox cannot be read; it is tried again");
                }
                self.complaint = Some(words);
            }
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
enum InboxLook {
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
fn look_at(path: &Path, seen: Option<&FileState>) -> InboxLook {
    let state = FileState::of(path);
    if state.is_some() && state.as_ref() == seen {
        return InboxLook::Unchanged;
    }
    match read(path) {
        Ok(entries) => InboxLook::Read { entries, state: state.filter(FileState::is_settled) },
        Err(error) => InboxLook::Unreadable(error),
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
    use serde_json::json;

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

    fn texts(look: InboxLook) -> Vec<String> {
        let InboxLook::Read { entries, .. } = look else { panic!("the file was not read") };
        entries.iter().map(|entry| entry["text"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn the_humans_inbox_is_created_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ada.json");
        prepare(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "[]");
        std::fs::write(&path, json!([{ "from": "lyra", "text": "hi" }]).to_string()).unwrap();
        prepare(&path).unwrap();
        assert_eq!(read(&path).unwrap().len(), 1, "what is there stays");
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
        assert!(matches!(look_at(&path, seen.as_ref()), InboxLook::Unchanged));
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
        assert!(matches!(look_at(&path, None), InboxLook::Unreadable(_)));
    }

    /// Two writes within one step of the clock look alike from outside, so a file that has just changed is never taken as known.
    #[test]
    fn a_file_that_has_just_changed_is_looked_at_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ada.json");
        std::fs::write(&path, "[]").unwrap();
        let InboxLook::Read { state, .. } = look_at(&path, None) else { panic!("it was not read") };
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
