//! Projections: files that show a part of the world to people and other programs. One loop keeps the files of every projection
//! up to date; a [`Projection`] says which files there are, which events change them, and what they contain.
//!
//! ```text
//! log ──► which file does this event change? ──► wait for the pace ──► lock, read, render, replace
//!                        ▲                                                        │
//! Projector::recheck ────┘ another program changed the file              failed: once more, later
//! ```
//!
//! A file is written at most once in each [`Projection::pace`], and the last state is always written. At a start every file is compared with
//! the world and corrected, so no position has to be stored for a file.
//!
//! Two-way use: `render` is given what the file contains, so a projection can keep the fields of other programs and put its own
//! back. A watcher that sees an edit of another program first turns it into commands, and then calls [`Projector::recheck`].

use crate::engine::{FollowError, Handle, RecordFollower};
use crate::shared_file::{self, Durability, FileAsRead, FolderLock, Update};
use hatchery_core::{EventId, Record, World};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// The usual least time between two writes of a projection: a large quest may change hundreds of times a second.
pub const PACE: Duration = Duration::from_millis(50);
/// How long after a failure a file, or the log, is tried again.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// Files that may wait to be rechecked. Beyond it `recheck` waits, which slows the watcher down.
const RECHECKS: usize = 64;
/// How long the last write may take when the daemon stops.
const LAST_WRITE: Duration = Duration::from_secs(5);

/// One kind of file.
pub trait Projection: Send + Sync + 'static {
    /// Identifies one file.
    type Key: Clone + Ord + fmt::Display + fmt::Debug + Send + Sync + 'static;

    /// What the file is called in the daemon's log.
    const NAME: &'static str;
    const DURABILITY: Durability;
    /// The least time between two writes.
    const PACE: Duration = PACE;

    /// All files that there should be.
    fn keys(&self, world: &World) -> Vec<Self::Key>;

    /// The file that an event changes, if any. The world has the event.
    fn changed_by(&self, world: &World, record: &Record) -> Option<Self::Key>;

    fn path(&self, key: &Self::Key) -> PathBuf;

    /// Makes the folder of a file, if it is missing. Fails if nothing may be written there.
    fn make_folder(&self, folder: &Path) -> io::Result<()> {
        std::fs::create_dir_all(folder)
    }

    /// What a file should contain, given what it contains now. Called under the lock of its folder.
    fn render(&self, world: &World, key: &Self::Key, found: Option<&[u8]>) -> io::Result<Rendered>;

    /// The time between the last write and the next.
    fn pace(&self) -> Duration {
        Self::PACE
    }

    /// The file has this content now. Called under the lock of its folder.
    fn written(&self, _key: &Self::Key, _content: &[u8]) {}
}

/// What is to be done with a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Rendered {
    /// It is true already.
    Unchanged,
    Write(Vec<u8>),
    /// Its content cannot be understood. It is renamed and not overwritten, because it may be the only copy of something.
    SetAside {
        why: String,
        content: Vec<u8>,
    },
}

/// How much of the log the files show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress<K> {
    /// The last event that is known.
    upto: EventId,
    /// The files that do not show all of that, each with the last event that it shows for certain.
    behind: BTreeMap<K, EventId>,
}

/// A running projection.
#[derive(Debug)]
pub struct Projector<K> {
    rechecks: mpsc::Sender<K>,
    progress: watch::Receiver<Progress<K>>,
    task: JoinHandle<()>,
}

impl<K: Ord> Progress<K> {
    fn start() -> Self {
        Self { upto: EventId::START, behind: BTreeMap::new() }
    }

    /// Whether one file shows an event. A file that cannot be written does not keep the others back.
    pub fn shows(&self, key: &K, event: EventId) -> bool {
        self.behind.get(key).is_none_or(|shown| *shown >= event) && self.upto >= event
    }

    /// Whether all files show an event.
    pub fn all_show(&self, event: EventId) -> bool {
        self.behind.values().all(|shown| *shown >= event) && self.upto >= event
    }
}

impl<K: Clone + Ord + Send + Sync + 'static> Projector<K> {
    /// Starts to keep the files of a projection true.
    pub fn start<P: Projection<Key = K>>(projection: P, handle: Handle) -> Self {
        let (rechecks, requests) = mpsc::channel(RECHECKS);
        let (shown, progress) = watch::channel(Progress::start());
        let task = tokio::spawn(ProjectionLoop::new(projection, handle, shown).run(requests));
        Self { rechecks, progress, task }
    }

    /// Compares a file with the world again, because another program may have changed it.
    pub async fn recheck(&self, key: K) {
        // Fails only when the loop has ended, and then nothing is kept true any more.
        drop(self.rechecks.send(key).await);
    }

    /// Changes as the files are written.
    pub fn progress(&self) -> watch::Receiver<Progress<K>> {
        self.progress.clone()
    }

    /// Writes what is still to be written, and ends. Call it when the engine has stopped.
    pub async fn finish(mut self) {
        drop(self.rechecks);
        if tokio::time::timeout(LAST_WRITE, &mut self.task).await.is_err() {
            tracing::warn!("the last state of some files was not written; the next start writes it");
            self.task.abort();
        }
    }
}

struct ProjectionLoop<P: Projection> {
    projection: Arc<P>,
    handle: Handle,
    follower: RecordFollower,
    /// Files that may not show the world.
    dirty: BTreeSet<P::Key>,
    /// Files that could not be written.
    failed: BTreeSet<P::Key>,
    /// Why each of them could not be written the last time. The same reason is logged once.
    reasons: BTreeMap<P::Key, String>,
    /// The files in `dirty` and `failed`, each with the last event that it shows.
    behind: BTreeMap<P::Key, EventId>,
    shown: watch::Sender<Progress<P::Key>>,
}

impl<P: Projection> ProjectionLoop<P> {
    fn new(projection: P, handle: Handle, shown: watch::Sender<Progress<P::Key>>) -> Self {
        let world = handle.view();
        let follower = handle.follow_records(world.head());
        let dirty: BTreeSet<P::Key> = projection.keys(&world).into_iter().collect();
        let behind = dirty.iter().map(|key| (key.clone(), EventId::START)).collect();
        let (failed, reasons) = (BTreeSet::new(), BTreeMap::new());
        Self { projection: Arc::new(projection), handle, follower, dirty, failed, reasons, behind, shown }
    }

    /// Ends when the sender of the requests is dropped.
    async fn run(mut self, mut requests: mpsc::Receiver<P::Key>) {
        let mut next_write = Instant::now();
        let mut next_retry = next_write;
        self.note_shown();
        loop {
            // Not in a fixed order: neither a log nor a program that never rests may put off the others.
            tokio::select! {
                () = until(next_write), if !self.dirty.is_empty() => {
                    self.write_dirty().await;
                    next_write = Instant::now() + self.projection.pace();
                }
                () = until(next_retry), if !self.failed.is_empty() => {
                    self.dirty.append(&mut self.failed);
                    next_retry = Instant::now() + RETRY_PAUSE;
                }
                request = requests.recv() => match request {
                    Some(key) => self.note_dirty(key, self.follower.cursor()),
                    None => break,
                },
                records = self.follower.next_records() => match records {
                    Ok(records) => self.note_changes(&records),
                    Err(FollowError::Stopped) => break,
                    Err(error) => {
                        tracing::warn!(%error, "the log cannot be followed; {} files are behind", P::NAME);
                        tokio::time::sleep(RETRY_PAUSE).await;
                    }
                },
            }
        }
        while self.follower.cursor() < self.handle.head() {
            match self.follower.next_records().await {
                Ok(records) => self.note_changes(&records),
                Err(_) => break,
            }
        }
        self.dirty.append(&mut self.failed);
        self.write_dirty().await;
    }

    fn note_changes(&mut self, records: &[Record]) {
        let world = self.handle.view();
        for record in records {
            if let Some(key) = self.projection.changed_by(&world, record) {
                self.note_dirty(key, EventId(record.id.0.saturating_sub(1)));
            }
        }
        self.note_shown();
    }

    /// Notes that a file has to be written, and the last event that it shows for certain.
    fn note_dirty(&mut self, key: P::Key, shown: EventId) {
        self.behind.entry(key.clone()).or_insert(shown);
        self.dirty.insert(key);
    }

    /// All files show everything up to the cursor, except those that are behind.
    fn note_shown(&self) {
        let now = Progress { upto: self.follower.cursor(), behind: self.behind.clone() };
        self.shown.send_if_modified(|known| {
            let is_new = *known != now;
            *known = now;
            is_new
        });
    }

    async fn write_dirty(&mut self) {
        // An event of another writer can be read from the log before the view shows it.
        let cursor = self.follower.cursor();
        let mut heads = self.handle.heads();
        let shows_all = heads.wait_for(|head| *head >= cursor);
        if !matches!(tokio::time::timeout(RETRY_PAUSE, shows_all).await, Ok(Ok(_))) {
            return;
        }
        let (projection, world) = (Arc::clone(&self.projection), self.handle.view());
        let keys = std::mem::take(&mut self.dirty);
        let all = keys.clone();
        let write = move || -> BTreeMap<P::Key, String> {
            let fails = |key: P::Key| {
                let failed = write(projection.as_ref(), &world, &key, &projection.path(&key)).err()?;
                Some((key, failed.to_string()))
            };
            keys.into_iter().filter_map(fails).collect()
        };
        // A panic in `render` is a bug of the projection; the other files go on.
        let failed = tokio::task::spawn_blocking(write).await.unwrap_or_else(|error| {
            let why = format!("it could not be rendered, which is a bug in Hatchery: {error}");
            all.iter().map(|key| (key.clone(), why.clone())).collect()
        });
        for key in &all {
            match failed.get(key) {
                None => {
                    self.behind.remove(key);
                    self.reasons.remove(key);
                }
                Some(why) => {
                    if self.reasons.insert(key.clone(), why.clone()).as_ref() != Some(why) {
                        let path = self.projection.path(key);
                        tracing::warn!(%key, error = why, "{} could not be written; it is tried again", path.display());
                    }
                }
            }
        }
        self.failed.extend(failed.into_keys());
        self.note_shown();
    }
}

/// Waits for a time. A timer that has run out already still takes up to a millisecond, so none is set then.
async fn until(time: Instant) {
    if time > Instant::now() {
        tokio::time::sleep_until(time).await;
    }
}

/// Makes one file true.
pub fn write<P: Projection>(projection: &P, world: &World, key: &P::Key, path: &Path) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    projection.make_folder(folder)?;
    let _lock = FolderLock::acquire(folder)?;
    let mut update = Update::default();
    let content = loop {
        let mut replaced = std::fs::metadata(path).ok();
        let found = shared_file::read(path)?;
        let content = match projection.render(world, key, found.as_deref())? {
            Rendered::Unchanged => return Ok(()),
            Rendered::Write(content) => content,
            Rendered::SetAside { why, content } => {
                let aside = shared_file::set_aside(path)?;
                tracing::warn!(why, "{} cannot be read; it is kept as {}", path.display(), aside.display());
                replaced = None;
                content
            }
        };
        if update.put(path, &content, P::DURABILITY, FileAsRead::of(replaced.as_ref(), found.as_deref()))? {
            break content;
        }
    };
    // Before the rename is synced: a watcher of the folder is told of it at once, and must find it known.
    projection.written(key, &content);
    shared_file::sync_rename(path, P::DURABILITY)
}
