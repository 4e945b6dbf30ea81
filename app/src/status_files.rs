//! `.fctry/state.json` and `.fctry/inbox.json` while a daemon runs. Both are projections of the log, and both are taken in: what
//! another program writes into them becomes events, field by field.
//!
//! ```text
//! another program writes ──► StatusWatch ──► recheck ──► render, under the lock of the folder:
//!                                                         1. compare with what was written last
//! a request, a quest ──► event ──► changed_by ──────────► 2. other content: submit the differences as edits
//!                                                         3. what the log keeps, with the quest above it
//! ```
//!
//! A project takes part if it has the folder `.fctry`. Without it nothing is written, because a file that nobody reads is litter.

use crate::clock;
use crate::engine::Handle;
use crate::project::Project;
use crate::projection::{Projection, Projector, Rendered};
use crate::shared_file::Durability;
use crate::state_file::{self, StatusFolder};
use hatchery_core::idea_inbox::IdeaInbox;
use hatchery_core::status::kept::{FileEdits, InboxEdits, LAST_UPDATED};
use hatchery_core::status::quest_view::{self, QuestView};
use hatchery_core::status::{Document, Edit, Object, merge};
use hatchery_core::{Command, Event, EventId, Record, World};
use notify::{EventKind, RecursiveMode, Watcher as _};
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// How often the files are looked at, in case the system did not tell of a change.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Notices of changes that may wait. One that finds no room adds nothing: the files are looked at anyway.
const NOTICES: usize = 16;
/// A program may write back what a quest showed a moment ago. So many versions of it are recognised.
const RECENT_VIEWS: usize = 32;
/// How long a request waits for its change to be in the file. It is in the log by then.
const FILE_PATIENCE: Duration = Duration::from_secs(5);

/// One of the two files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StatusFile {
    State,
    Inbox,
}

impl fmt::Display for StatusFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::State => "state.json",
            Self::Inbox => "inbox.json",
        })
    }
}

/// Keeps both files true, and takes in what others write.
#[derive(Debug)]
pub struct StatusFiles {
    projector: Arc<Projector<StatusFile>>,
    watch: JoinHandle<()>,
    upto: watch::Receiver<EventId>,
}

/// For those who change the status and wait until the files show it.
#[derive(Clone, Debug)]
pub struct FilesShown {
    folder: StatusFolder,
    upto: Arc<Mutex<Option<watch::Receiver<EventId>>>>,
}

impl FilesShown {
    pub fn new(project: &Project) -> Self {
        Self { folder: StatusFolder::of(project.root()), upto: Arc::default() }
    }

    pub fn folder(&self) -> &StatusFolder {
        &self.folder
    }

    /// Whether the project takes part in the protocol.
    pub fn is_wanted(&self) -> bool {
        self.folder.path().is_dir()
    }

    /// Waits until the files show an event. False if they do not in time.
    pub async fn wait_for(&self, event: EventId) -> bool {
        let upto = self.upto.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(mut upto) = upto else { return false };
        let shown = upto.wait_for(|upto| *upto >= event);
        matches!(tokio::time::timeout(FILE_PATIENCE, shown).await, Ok(Ok(_)))
    }
}

impl StatusFiles {
    /// Takes in what the files hold, and keeps them true from then on. Call it before requests are served: a request must not be
    /// decided before what was written while no daemon ran.
    pub async fn keep(project: &Project, handle: Handle, shown: &FilesShown) -> Self {
        let files = Files::new(project, handle.clone());
        let stamps = Arc::clone(&files.stamps);
        let folder = files.folder.clone();
        if folder.path().is_dir() {
            let (first, handle) = (files.clone(), handle.clone());
            let taken = tokio::task::spawn_blocking(move || first.take_both(&handle.view())).await;
            if let Ok(Err(error)) = taken {
                tracing::warn!(%error, "{} cannot be taken in; it is tried again", folder.path().display());
            }
        }
        let projector = Arc::new(Projector::start(files, handle));
        let upto = projector.upto();
        *shown.upto.lock().unwrap_or_else(PoisonError::into_inner) = Some(upto.clone());
        let watch = tokio::spawn(watch_folder(folder, stamps, Arc::clone(&projector)));
        Self { projector, watch, upto }
    }

    pub fn upto(&self) -> watch::Receiver<EventId> {
        self.upto.clone()
    }

    /// Writes what is still to be written, and ends. Call it when the engine has stopped.
    pub async fn finish(self) {
        self.watch.abort();
        // Ends the task, and with it the second owner of the projector.
        drop(self.watch.await);
        match Arc::try_unwrap(self.projector) {
            Ok(projector) => projector.finish().await,
            Err(_) => tracing::debug!("the status files are still watched"),
        }
    }
}

#[derive(Clone)]
struct Files {
    folder: StatusFolder,
    /// Copies of what was written last, so that a later daemon recognises its files.
    copies: PathBuf,
    handle: Handle,
    runtime: tokio::runtime::Handle,
    memory: Arc<Mutex<Memory>>,
    stamps: Stamps,
}

/// What is known about the files from the last time that they were written or found true.
#[derive(Debug, Default)]
struct Memory {
    state: Remembered<Document>,
    inbox: Remembered<IdeaInbox>,
    /// What quests showed in the last versions of the document.
    views: VecDeque<Object>,
}

#[derive(Debug, Default)]
struct Remembered<T> {
    content: Option<Vec<u8>>,
    /// What others' changes are compared with.
    base: T,
    /// What is about to be written.
    next: Option<T>,
}

/// The versions of both files that are known.
type Stamps = Arc<Mutex<[Option<Stamp>; 2]>>;

/// Tells one version of a file from another without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

impl<T> Remembered<T> {
    fn written(&mut self, content: &[u8]) {
        self.content = Some(content.to_vec());
        if let Some(next) = self.next.take() {
            self.base = next;
        }
    }
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let meta = std::fs::metadata(path).ok()?;
        Some(Self { inode: meta.ino(), bytes: meta.len(), modified: (meta.mtime(), meta.mtime_nsec()) })
    }
}

impl Files {
    fn new(project: &Project, handle: Handle) -> Self {
        let copies = project.data().join("shown");
        let read = |file: StatusFile| std::fs::read(copies.join(file.to_string())).ok();
        let world = handle.view();
        let mut memory = Memory::default();
        // Without a copy the log is what others' changes are compared with.
        memory.state.base = quest_view::shown(&world);
        memory.inbox.base = world.status().inbox();
        if let Some(content) = read(StatusFile::State)
            && let Some(base) = std::str::from_utf8(&content).ok().and_then(|text| Document::parse(text).ok())
        {
            (memory.state.base, memory.state.content) = (base, Some(content));
        }
        if let Some(content) = read(StatusFile::Inbox)
            && let Some(base) = std::str::from_utf8(&content).ok().and_then(|text| IdeaInbox::parse(text).ok())
        {
            (memory.inbox.base, memory.inbox.content) = (base, Some(content));
        }
        Self {
            folder: StatusFolder::of(project.root()),
            copies,
            handle,
            runtime: tokio::runtime::Handle::current(),
            memory: Arc::new(Mutex::new(memory)),
            stamps: Arc::default(),
        }
    }

    /// Notes the version of a file that is true.
    fn note(&self, file: StatusFile) {
        let stamp = Stamp::of(&self.path(&file));
        self.stamps.lock().unwrap_or_else(PoisonError::into_inner)[file as usize] = stamp;
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first look at the files, under the lock.
    fn take_both(&self, world: &World) -> io::Result<()> {
        for file in [StatusFile::State, StatusFile::Inbox] {
            crate::projection::write(self, world, &file, &self.path(&file))?;
        }
        Ok(())
    }

    fn submit(&self, command: Command) -> io::Result<()> {
        let submitted = self.runtime.block_on(self.handle.submit(command));
        submitted.map(drop).map_err(|error| io::Error::other(format!("what others wrote cannot be taken in: {error}")))
    }

    fn render_state(&self, found: Option<&[u8]>) -> io::Result<Rendered> {
        let mut memory = self.memory();
        let path = self.path(&StatusFile::State);
        let (content, found) =
            match self.settled(&path, found, |text| Document::parse(text).map_err(|it| it.to_string()))? {
                Some((content, document)) => (Some(content), Some(document)),
                None => (None, None),
            };
        let is_ours = content.is_some() && content == memory.state.content;
        if let Some(found) = found.as_ref().filter(|_| !is_ours) {
            let mut edits = FileEdits::between(&self.handle.view(), &memory.state.base, found);
            // Not an edit, but a version of ours that another program read a while ago and writes back.
            edits.edits.retain(|edit| {
                let value = edit.value.as_deref().and_then(|value| value.parse().ok());
                let shown = |view: &Object| Document::of(view.clone()).get(&edit.path);
                value.is_none() || !memory.views.iter().any(|view| shown(view) == value)
            });
            if !edits.is_empty() {
                let ids = edits.build_events.into_iter().map(|event| (clock::new_named_id("event"), event));
                self.submit(Command::TakeStatusEdits { edits: edits.edits, build_events: ids.collect() })?;
            }
        }
        let world = self.handle.view();
        let shown = quest_view::shown(&world);
        let mut written = found.clone().unwrap_or_default();
        for edit in merge::difference(&written, &shown) {
            let is_kept = match &edit {
                // A field that the log did not take stays in the file.
                Edit::Clear { path } => found.is_none() || memory.state.base.get(path).is_some(),
                _ => true,
            };
            let is_time = matches!(&edit, Edit::Clear { path } if path.segments() == [LAST_UPDATED]);
            if is_kept && !is_time {
                written.apply(&edit).map_err(|error| io::Error::other(error.to_string()))?;
            }
        }
        if let Some(view) = QuestView::of(&world) {
            let view = view.fields().clone();
            if memory.views.back().is_none_or(|last| last.to_json() != view.to_json()) {
                memory.views.push_back(view);
            }
            if memory.views.len() > RECENT_VIEWS {
                memory.views.pop_front();
            }
        }
        match found {
            Some(found) if found == written => {
                (memory.state.content, memory.state.base) = (content, written);
                self.note(StatusFile::State);
                Ok(Rendered::Unchanged)
            }
            // Nothing was ever said.
            None if written.fields().is_empty() => Ok(Rendered::Unchanged),
            Some(_) | None => {
                written.set(LAST_UPDATED, clock::written(clock::now()).as_str());
                let text = written.text();
                memory.state.next = Some(written);
                Ok(Rendered::Write(text.into_bytes()))
            }
        }
    }

    fn render_inbox(&self, found: Option<&[u8]>) -> io::Result<Rendered> {
        let mut memory = self.memory();
        let path = self.path(&StatusFile::Inbox);
        let (content, found) =
            match self.settled(&path, found, |text| IdeaInbox::parse(text).map_err(|it| it.to_string()))? {
                Some((content, inbox)) => (Some(content), Some(inbox)),
                None => (None, None),
            };
        let is_ours = content.is_some() && content == memory.inbox.content;
        if let Some(found) = found.as_ref().filter(|_| !is_ours) {
            let edits = InboxEdits::between(&memory.inbox.base, found);
            if !edits.is_empty() {
                self.submit(Command::TakeInboxEdits { edits })?;
            }
        }
        let kept = self.handle.view().status().inbox();
        match found {
            Some(found) if found == kept => {
                (memory.inbox.content, memory.inbox.base) = (content, kept);
                self.note(StatusFile::Inbox);
                Ok(Rendered::Unchanged)
            }
            None if kept.items().is_empty() => Ok(Rendered::Unchanged),
            // Items without an id cannot be spoken of; they stay where they are.
            found => {
                let next = found.unwrap_or_default().updated(&kept);
                let text = next.text();
                memory.inbox.next = Some(next);
                Ok(Rendered::Write(text.into_bytes()))
            }
        }
    }

    /// The content of a file that parses. One that does not is read again for a moment, because another program may be writing it;
    /// then it is set aside, and the file is made again from the log.
    fn settled<T>(
        &self,
        path: &Path,
        found: Option<&[u8]>,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> io::Result<Option<(Vec<u8>, T)>> {
        let Some(found) = found else { return Ok(None) };
        let parse = |content: &[u8]| std::str::from_utf8(content).map_err(|error| error.to_string()).and_then(&parse);
        let deadline = Instant::now() + state_file::WRITER_PATIENCE;
        let mut content = found.to_vec();
        loop {
            match parse(&content) {
                Ok(parsed) => return Ok(Some((content, parsed))),
                Err(why) if Instant::now() > deadline => {
                    let aside = state_file::set_aside(path)?;
                    tracing::warn!(
                        why,
                        "{} cannot be read; it is kept as {} and made again from the log",
                        path.display(),
                        aside.display()
                    );
                    return Ok(None);
                }
                Err(_) => std::thread::sleep(state_file::WRITER_PAUSE),
            }
            match crate::shared_file::read(path)? {
                Some(again) => content = again,
                None => return Ok(None),
            }
        }
    }
}

impl Projection for Files {
    type Key = StatusFile;

    const NAME: &'static str = "status";
    const DURABILITY: Durability = Durability::Synced;
    // A request waits for the file. Changes that come while it is written share the next write.
    const PACE: Duration = Duration::ZERO;

    fn keys(&self, _: &World) -> Vec<StatusFile> {
        match self.folder.path().is_dir() {
            true => vec![StatusFile::State, StatusFile::Inbox],
            false => Vec::new(),
        }
    }

    fn changed_by(&self, world: &World, record: &Record) -> Option<StatusFile> {
        changed_file(world, record).filter(|_| self.folder.path().is_dir())
    }

    fn path(&self, file: &StatusFile) -> PathBuf {
        match file {
            StatusFile::State => self.folder.state_file(),
            StatusFile::Inbox => self.folder.inbox_file(),
        }
    }

    fn render(&self, _: &World, file: &StatusFile, found: Option<&[u8]>) -> io::Result<Rendered> {
        match file {
            StatusFile::State => self.render_state(found),
            StatusFile::Inbox => self.render_inbox(found),
        }
    }

    fn written(&self, file: &StatusFile, content: &[u8]) {
        self.note(*file);
        let mut memory = self.memory();
        match file {
            StatusFile::State => memory.state.written(content),
            StatusFile::Inbox => memory.inbox.written(content),
        }
        drop(memory);
        // Without the copy, the next daemon compares with the log instead.
        let copied = std::fs::create_dir_all(&self.copies).and_then(|()| {
            crate::shared_file::replace(&self.copies.join(file.to_string()), content, Durability::Rebuilt)
        });
        if let Err(error) = copied {
            tracing::debug!(%error, "{file} was not copied");
        }
    }
}

/// The file that an event changes, if the project takes part.
pub fn changed_file(world: &World, record: &Record) -> Option<StatusFile> {
    use hatchery_core::event::StatusEvent;
    match &record.event {
        Event::Status(StatusEvent::IdeaKept { .. } | StatusEvent::IdeaDismissed { .. }) => Some(StatusFile::Inbox),
        Event::Status(StatusEvent::Edited { .. } | StatusEvent::BuildEventRecorded { .. })
        | Event::Quest { .. }
        | Event::Step { .. } => Some(StatusFile::State),
        Event::Question { agent, .. } => world.assignment(*agent).map(|_| StatusFile::State),
        Event::Session { .. }
        | Event::Agent { .. }
        | Event::Message(_)
        | Event::Mail(_)
        | Event::Permission(_)
        | Event::Budget(_)
        | Event::Seat(_)
        | Event::Run { .. } => None,
    }
}

/// Notices what other programs do to the files. A notice is a hint to look.
async fn watch_folder(folder: StatusFolder, stamps: Stamps, projector: Arc<Projector<StatusFile>>) {
    let (sender, mut notices) = mpsc::channel(NOTICES);
    let mut watcher: Option<notify::RecommendedWatcher> = None;
    let mut look_again = tokio::time::interval(LOOK_AGAIN);
    loop {
        tokio::select! {
            _ = notices.recv() => {}
            _ = look_again.tick() => {}
        }
        while notices.try_recv().is_ok() {}
        if !folder.path().is_dir() {
            watcher = None;
            continue;
        }
        if watcher.is_none() {
            watcher = watched(folder.path(), sender.clone())
                .inspect_err(|error| tracing::debug!(%error, "the status files are looked at every second instead"))
                .ok();
        }
        let known = *stamps.lock().unwrap_or_else(PoisonError::into_inner);
        for file in [StatusFile::State, StatusFile::Inbox] {
            let path = match file {
                StatusFile::State => folder.state_file(),
                StatusFile::Inbox => folder.inbox_file(),
            };
            if Stamp::of(&path) != known[file as usize] {
                projector.recheck(file).await;
            }
        }
    }
}

fn watched(folder: &Path, sender: mpsc::Sender<()>) -> notify::Result<notify::RecommendedWatcher> {
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let names = [StatusFile::State.to_string(), StatusFile::Inbox.to_string()];
        let is_ours =
            |path: &PathBuf| path.file_name().is_some_and(|name| names.iter().any(|known| name == known.as_str()));
        if let Ok(event) = event
            && !matches!(event.kind, EventKind::Access(_))
            && event.paths.iter().any(is_ours)
        {
            // A full queue holds a notice already.
            sender.try_send(()).unwrap_or_default();
        }
    })?;
    watcher.watch(folder, RecursiveMode::NonRecursive)?;
    Ok(watcher)
}
