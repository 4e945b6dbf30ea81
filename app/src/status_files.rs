//! `.fctry/state.json` and `.fctry/inbox.json` while a daemon runs. Both are projections of the log, and both are taken in: what
//! another program writes into them becomes events, field by field.
//!
//! ```text
//! another program writes ──► StatusWatch ──► recheck ──► render, under the lock of the folder:
//!                                                         1. compare with the versions that were written lately
//! a request, a quest ──► event ──► changed_by ──────────► 2. other content: submit what is an edit
//!                                                         3. what the log keeps, with the quest above it
//! ```
//!
//! A project takes part if it has the folder `.fctry`. Without it nothing is written, because a file without a reader is litter.

mod watch_folder;

use crate::clock;
use crate::engine::Handle;
use crate::file_identity::FileVersion;
use crate::project::Project;
use crate::projection::{Progress, Projection, Projector, Rendered};
use crate::report::Report;
use crate::shared_file::{Durability, FolderLock};
use crate::state_file::{self, FileContent, StatusFolder};
use crate::status_log;
use crate::status_view::StatusView;
use hatchery_core::idea_inbox::IdeaInbox;
use hatchery_core::status::StatusDocument;
use hatchery_core::status::foreign::{InboxEdits, Writer, WrittenVersions};
use hatchery_core::status::kept::LAST_UPDATED;
use hatchery_core::{Command, Event, EventId, Record, World};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinHandle;

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
    folder: StatusFolder,
    handle: Handle,
}

/// For those who change the status and wait until the files show it.
#[derive(Clone, Debug)]
pub struct FilesShown {
    folder: StatusFolder,
    view: StatusView,
    progress: Arc<Mutex<Option<watch::Receiver<Progress<StatusFile>>>>>,
    /// True if a request has waited for the files since they were last written.
    is_awaited: Arc<AtomicBool>,
    /// True when what was written without a daemon is in the log.
    is_taken: Arc<watch::Sender<bool>>,
    /// When the document was written last.
    last_updated: LastUpdated,
}

type LastUpdated = Arc<Mutex<Option<String>>>;

impl FilesShown {
    pub fn new(project: &Project) -> Self {
        Self {
            folder: StatusFolder::of_project(project),
            view: StatusView::new(project),
            progress: Arc::default(),
            is_awaited: Arc::default(),
            is_taken: Arc::new(watch::channel(false).0),
            last_updated: Arc::default(),
        }
    }

    /// What the files show, or would show if the project took part.
    pub fn view(&self) -> &StatusView {
        &self.view
    }

    /// When the document was written last, as the file says.
    pub fn last_updated(&self) -> Option<String> {
        self.last_updated.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn folder(&self) -> &StatusFolder {
        &self.folder
    }

    /// Whether the project takes part in the protocol.
    pub fn is_wanted(&self) -> bool {
        self.folder.path().is_dir()
    }

    /// Waits until what was written without a daemon is in the log: a change must not be decided before that. False if it is not in time.
    pub async fn are_taken(&self) -> bool {
        if self.progress().is_none() {
            // No task keeps the files up to date.
            return true;
        }
        let mut taken = self.is_taken.subscribe();
        let taken = taken.wait_for(|taken| *taken);
        matches!(tokio::time::timeout(FILE_PATIENCE, taken).await, Ok(Ok(_)))
    }

    /// Whether a file shows an event.
    pub fn show(&self, file: StatusFile, event: EventId) -> bool {
        self.progress().is_some_and(|progress| progress.borrow().shows(&file, event))
    }

    /// Waits until a file shows an event. False if it does not in time.
    pub async fn wait_for(&self, file: StatusFile, event: EventId) -> bool {
        let Some(mut progress) = self.progress() else { return false };
        self.is_awaited.store(true, Ordering::Relaxed);
        let shown = progress.wait_for(|progress| progress.shows(&file, event));
        matches!(tokio::time::timeout(FILE_PATIENCE, shown).await, Ok(Ok(_)))
    }

    fn progress(&self) -> Option<watch::Receiver<Progress<StatusFile>>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl StatusFiles {
    /// Takes in what the files hold, and keeps them true from then on. Call it before requests are served: a request must not be
    /// decided before what was written while no daemon ran. `store` names the log for commands that find no daemon.
    pub async fn keep(project: &Project, store: &str, handle: Handle, shown: &FilesShown) -> Self {
        let files = Files::new(project, handle.clone(), shown);
        let stamps = Arc::clone(&files.stamps);
        let folder = files.folder.clone();
        let (first, view, store) = (files.clone(), handle.view(), store.to_owned());
        let begun = tokio::task::spawn_blocking(move || first.begin(&view, &store)).await;
        if let Ok(Err(error)) = begun {
            tracing::warn!(%error, "{} cannot be taken in; it is tried again", folder.path().display());
        }
        let projector = Arc::new(Projector::start(files.clone(), handle.clone()));
        *shown.progress.lock().unwrap_or_else(PoisonError::into_inner) = Some(projector.progress());
        let watching = watch_folder::watch_folder(files, shown.view.clone(), stamps, Arc::clone(&projector));
        Self { projector, watch: tokio::spawn(watching), folder, handle }
    }

    /// Writes what is still to be written, and ends. Call it when the engine has stopped, and before the lock of the project is free.
    pub async fn finish(self) {
        self.watch.abort();
        // Ends the task, and with it the second owner of the projector.
        drop(self.watch.await);
        match Arc::try_unwrap(self.projector) {
            Ok(projector) => {
                let progress = projector.progress();
                projector.finish().await;
                if progress.borrow().all_show(self.handle.head()) {
                    self.folder.forget_log();
                }
            }
            Err(_) => tracing::debug!("the status files are still watched"),
        }
    }
}

#[derive(Clone)]
struct Files {
    folder: StatusFolder,
    handle: Handle,
    runtime: tokio::runtime::Handle,
    memory: Arc<Mutex<KnownFiles>>,
    stamps: Stamps,
    view: StatusView,
    is_awaited: Arc<AtomicBool>,
    is_taken: Arc<watch::Sender<bool>>,
    last_updated: LastUpdated,
}

/// What is known about the files from the last time that they were written or found true.
#[derive(Debug, Default)]
struct KnownFiles {
    state: Remembered<StatusDocument>,
    inbox: Remembered<IdeaInbox>,
}

#[derive(Debug)]
struct Remembered<T> {
    /// What the file holds, if Hatchery wrote it or found it true.
    content: Option<Vec<u8>>,
    /// What others' changes are compared with.
    written: WrittenVersions<T>,
    /// What is about to be written: what the log says, and the whole file.
    next: Option<(T, T)>,
}

impl<T> Default for Remembered<T> {
    fn default() -> Self {
        Self { content: None, written: WrittenVersions::default(), next: None }
    }
}

/// The versions of both files that are known.
type Stamps = Arc<Mutex<[Option<FileVersion>; 2]>>;

impl Remembered<StatusDocument> {
    fn shows(&mut self, content: &[u8]) {
        self.content = Some(content.to_vec());
        if let Some((shown, file)) = self.next.take() {
            self.written.wrote(&shown, &file, clock::now());
        }
    }
}

impl Remembered<IdeaInbox> {
    fn shows(&mut self, content: &[u8]) {
        self.content = Some(content.to_vec());
        if let Some((shown, _)) = self.next.take() {
            self.written.wrote(&shown, clock::now());
        }
    }
}

impl Files {
    fn new(project: &Project, handle: Handle, shown: &FilesShown) -> Self {
        Self {
            folder: StatusFolder::of_project(project),
            handle,
            runtime: tokio::runtime::Handle::current(),
            memory: Arc::default(),
            stamps: Arc::default(),
            view: shown.view.clone(),
            is_awaited: Arc::clone(&shown.is_awaited),
            is_taken: Arc::clone(&shown.is_taken),
            last_updated: Arc::clone(&shown.last_updated),
        }
    }

    /// Recalls what an earlier daemon wrote. If nothing is known of one, nothing that the file lacks was removed.
    fn remember(&self, world: &World) {
        let mut memory = self.memory();
        if let Some((content, file)) = self.recall::<StatusDocument>(StatusFile::State) {
            memory.state.written = WrittenVersions::<StatusDocument>::begun(world, &file, clock::now());
            memory.state.content = Some(content);
        }
        if let Some((content, file)) = self.recall::<IdeaInbox>(StatusFile::Inbox) {
            memory.inbox.written.wrote(&file, clock::now());
            memory.inbox.content = Some(content);
        }
    }

    fn recall<C: FileContent>(&self, file: StatusFile) -> Option<(Vec<u8>, C)> {
        let known = self.folder.last_known::<C>(self.took::<C>())?;
        if self.folder.last_shown::<C>().is_none_or(|(copy, _)| copy != known.0) {
            // The notes that tell it are about to be replaced.
            self.keep_shown(file, &known.0);
        }
        Some(known)
    }

    /// Whether the log has the edits that are in a file.
    fn took<C: FileContent>(&self) -> bool {
        let Some(head) = self.folder.taking::<C>() else { return false };
        let is_taken = |record: &Record| matches!(&record.event, Event::Status(event) if C::is_taken(event));
        self.runtime.block_on(async {
            let mut records = self.handle.follow_records(head);
            while records.cursor() < self.handle.head() {
                match records.next_records().await {
                    Ok(records) if records.iter().any(is_taken) => return true,
                    Ok(_) => {}
                    Err(error) => {
                        tracing::warn!(%error, "whether edits of {} were taken cannot be read", C::FILE);
                        return false;
                    }
                }
            }
            false
        })
    }

    /// Notes the version of a file that is true.
    fn note(&self, file: StatusFile) {
        let stamp = FileVersion::at(&self.path(&file));
        self.stamps.lock().unwrap_or_else(PoisonError::into_inner)[file as usize] = stamp;
    }

    fn note_time(&self, file: &StatusDocument) {
        *self.last_updated.lock().unwrap_or_else(PoisonError::into_inner) = file.words(LAST_UPDATED);
    }

    /// Who wrote a content that is not that of this daemon.
    fn writer(&self, file: StatusFile, content: Option<&[u8]>) -> Writer {
        match content.is_some_and(|content| self.folder.is_from_us(&file.to_string(), content)) {
            true => Writer::Command,
            false => Writer::Another,
        }
    }

    /// Notes what is about to be written.
    fn announce(&self, file: StatusFile, content: &[u8]) {
        if let Err(error) = self.folder.announce(&file.to_string(), content) {
            tracing::debug!(%error, "{file} was not announced");
        }
    }

    /// Notes whose edits are about to be taken.
    fn note_taking(&self, file: StatusFile, content: Option<&[u8]>) {
        let noted = self.folder.note_taking(&file.to_string(), content.unwrap_or_default(), self.handle.head());
        if let Err(error) = noted {
            tracing::debug!(%error, "that edits of {file} are taken was not noted");
        }
    }

    /// Copies a file that shows the log. A file that differs from its copy is taken for an edit by the next daemon.
    fn keep_shown(&self, file: StatusFile, content: &[u8]) {
        if let Err(error) = self.folder.keep_shown(&file.to_string(), content) {
            tracing::debug!(%error, "{file} was not copied");
        }
    }

    fn memory(&self) -> MutexGuard<'_, KnownFiles> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first look at the files, under the lock. From here on the log may be ahead of them.
    fn begin(&self, world: &World, store: &str) -> io::Result<()> {
        if !self.folder.path().is_dir() {
            self.remember(world);
            self.is_taken.send_replace(true);
            return self.folder.note_log(store);
        }
        let lock = FolderLock::acquire(self.folder.path());
        self.remember(world);
        self.folder.note_log(store)?;
        if let Ok(_lock) = lock {
            self.folder.sweep();
        }
        self.take_both(world)
    }

    /// Takes in what is in the files. What cannot be read was not written by a command. But while another process holds the lock, it may
    /// still write a change that was decided before this daemon.
    fn take_both(&self, world: &World) -> io::Result<()> {
        let given_back = self.give_back_run();
        let take = |file| crate::projection::write(self, world, &file, &self.path(&file));
        let both = [StatusFile::State, StatusFile::Inbox].map(take);
        let is_held = |taken: &io::Result<()>| taken.as_ref().is_err_and(|it| it.kind() == io::ErrorKind::TimedOut);
        if !both.iter().any(is_held) {
            self.is_taken.send_replace(true);
        }
        let taken: io::Result<()> = both.into_iter().collect();
        given_back.and(taken).inspect(|()| self.folder.forget_run())
    }

    /// Gives the file back the build run that another program has left out since a command wrote it.
    fn give_back_run(&self) -> io::Result<()> {
        match self.folder.path().is_dir() {
            true => {
                let _lock = FolderLock::acquire(self.folder.path())?;
                self.folder.give_back_run()
            }
            false => Ok(()),
        }
    }

    fn submit(&self, command: Command) -> io::Result<()> {
        let submitted = self.runtime.block_on(self.handle.submit(command));
        submitted.map(drop).map_err(|error| io::Error::other(format!("what others wrote cannot be taken in: {error}")))
    }

    fn render_state(&self, found: Option<&[u8]>) -> io::Result<Rendered> {
        let mut memory = self.memory();
        let path = self.path(&StatusFile::State);
        let (content, found) =
            match self.settled(&path, found, |text| StatusDocument::parse(text).map_err(|it| it.to_string()))? {
                Some((content, document)) => (Some(content), Some(document)),
                None => (None, None),
            };
        let is_ours = content.is_some() && content == memory.state.content;
        let edits = match &found {
            Some(found) if !is_ours => {
                let writer = self.writer(StatusFile::State, content.as_deref());
                memory.state.written.edits(&self.handle.view(), found, writer)
            }
            Some(_) | None => memory.state.written.unchanged(),
        };
        if !edits.is_empty() {
            self.note_taking(StatusFile::State, content.as_deref());
            self.submit(status_log::take_status(&edits))?;
        }
        let shown = self.view.shown(&self.handle.view());
        memory.state.written.took(&edits, &shown);
        let settled = edits.settled(found.as_ref().unwrap_or(&StatusDocument::default()), &shown);
        let mut file = settled.map_err(|error| io::Error::other(error.to_string()))?;
        match (found, content) {
            (Some(found), Some(content)) if found == file => {
                self.note_time(&file);
                memory.state.next = Some((shown, file));
                if !is_ours {
                    self.keep_shown(StatusFile::State, &content);
                }
                memory.state.shows(&content);
                self.note(StatusFile::State);
                Ok(Rendered::Unchanged)
            }
            // Nothing was ever said.
            (None, _) if file.fields().is_empty() => Ok(Rendered::Unchanged),
            _ => {
                file.set(LAST_UPDATED, clock::written(clock::now()).as_str());
                self.note_time(&file);
                let text = file.text().into_bytes();
                memory.state.next = Some((shown, file));
                self.announce(StatusFile::State, &text);
                Ok(Rendered::Write(text))
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
            let writer = self.writer(StatusFile::Inbox, content.as_deref());
            let edits = memory.inbox.written.edits(&self.handle.view().status().inbox(), found, writer);
            if !edits.is_empty() {
                self.note_taking(StatusFile::Inbox, content.as_deref());
                self.submit(Command::TakeInboxEdits { edits: edits.clone() })?;
            }
            memory.inbox.written.took(&edits, &self.handle.view().status().inbox());
        }
        let shown = self.handle.view().status().inbox();
        let file = InboxEdits::settled(found.as_ref().unwrap_or(&IdeaInbox::default()), &shown);
        match (found, content) {
            (Some(found), Some(content)) if found == file => {
                memory.inbox.next = Some((shown, file));
                if !is_ours {
                    self.keep_shown(StatusFile::Inbox, &content);
                }
                memory.inbox.shows(&content);
                self.note(StatusFile::Inbox);
                Ok(Rendered::Unchanged)
            }
            (None, _) if shown.items().is_empty() => Ok(Rendered::Unchanged),
            _ => {
                let text = file.text().into_bytes();
                memory.inbox.next = Some((shown, file));
                self.announce(StatusFile::Inbox, &text);
                Ok(Rendered::Write(text))
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
    // The syncs compete with those of the log.
    const PACE: Duration = Duration::from_millis(10);

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
        let path = self.path(file);
        state_file::refuse_link(&path, state_file::known(&path).as_ref()).map_err(Report::into_io)?;
        match file {
            StatusFile::State => self.render_state(found),
            StatusFile::Inbox => self.render_inbox(found),
        }
    }

    /// Requests that wait for the file are not kept waiting. Changes that come while it is written share the next write.
    fn pace(&self) -> Duration {
        match self.is_awaited.swap(false, Ordering::Relaxed) {
            true => Duration::ZERO,
            false => Self::PACE,
        }
    }

    fn written(&self, file: &StatusFile, content: &[u8]) {
        self.note(*file);
        let mut memory = self.memory();
        match file {
            StatusFile::State => memory.state.shows(content),
            StatusFile::Inbox => memory.inbox.shows(content),
        }
        drop(memory);
        self.keep_shown(*file, content);
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
        | Event::Request(_)
        | Event::Run { .. } => None,
    }
}
