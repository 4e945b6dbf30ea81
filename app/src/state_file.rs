//! The files of the status protocol on disk: `.fctry/state.json` and `.fctry/inbox.json`. A process that changes a file takes the lock, reads
//! the file, writes a temporary file with a unique name, syncs it and renames it. So a reader sees the whole old content or the whole new
//! content, and a killed process loses no change of another process.
//!
//! Other programs write these files without our lock. If a file does not parse, such a program may be writing it, so the file is read again
//! for a moment. A file that still does not parse is renamed. It is never treated as empty, and never overwritten.

mod content;

use crate::clock;
use crate::project::{self, Project};
use crate::report::Report;
use crate::sealed_file;
pub use crate::shared_file::read_bounded;
use crate::shared_file::{self, Durability, FileAsRead, Update};
pub(crate) use content::{
    FileContent, FileFound, WRITER_PATIENCE, WRITER_PAUSE, known, read_settled, refuse_link, set_aside,
};
use hatchery_core::EventId;
use hatchery_core::idea_inbox::IdeaInbox;
use hatchery_core::status::foreign;
use hatchery_core::status::{MAX_DOCUMENT_BYTES, StatusDocument};
use rustix::fs::{FlockOperation, RawDir};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

/// How long another process may hold the lock. A change takes milliseconds; a stopped process could hold it without an end.
const LOCK_PATIENCE: Duration = Duration::from_secs(60);
/// What is noted beside the copy of a file, all of it as signatures: the content that a daemon is about to write, the content whose edits
/// it is about to take in, and the content that comes from Hatchery alone.
const ANNOUNCED: &str = "announced";
const TAKING: &str = "taking";
const SIGNATURE: &str = "signature";
/// The build run, as commands without a daemon left it.
const RUN_COPY: &str = "build-run.json";
/// How much of the folder's list is read at once: some hundred names.
const SWEEP_BUFFER_BYTES: usize = 16 * 1024;
/// The address of a store is a line.
const MAX_NOTE_BYTES: usize = 64 * 1024;

/// The folder `.fctry` of a project.
#[derive(Clone, Debug)]
pub struct StatusFolder {
    path: PathBuf,
    /// Copies of what a daemon wrote last. A later daemon recognises its files by them, and a file that is missing or damaged is
    /// begun from its copy.
    copies: Option<PathBuf>,
    project: Option<Project>,
}

/// The build run as it was known last. A program that begins a session with an empty file leaves it out.
#[derive(Debug, Default)]
struct KnownRun {
    /// The fields that outlive such a program.
    fields: StatusDocument,
    /// A command has noted it. Otherwise it is what a daemon wrote last.
    is_noted: bool,
}

/// What commands note about the build run while no daemon runs. Sealed, because a checkout must not bring a build run along.
#[derive(Debug, Serialize, Deserialize)]
struct RunCopy {
    /// A document with the fields, as JSON text.
    document: String,
}

/// Why a file was not changed. A refused change may be due to a damaged file, so that is told with it.
pub trait ChangeError: From<Report> {
    #[must_use]
    fn beside(self, trouble: &str) -> Self;
}

impl ChangeError for Report {
    fn beside(mut self, trouble: &str) -> Self {
        self.message = format!("{}; {trouble}", self.message);
        self
    }
}

/// A change that is on disk.
#[derive(Debug)]
pub struct FileChange<T> {
    pub value: T,
    /// Where a file that did not parse is kept now.
    pub set_aside: Option<PathBuf>,
}

impl StatusFolder {
    pub fn of(project: &Path) -> Self {
        Self { path: project.join(".fctry"), copies: None, project: None }
    }

    /// The folder of a project that may have a daemon.
    pub fn of_project(project: &Project) -> Self {
        let copies = Some(project.data().join("shown"));
        Self { copies, project: Some(project.clone()), ..Self::of(project.root()) }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn state_file(&self) -> PathBuf {
        self.path.join(StatusDocument::FILE)
    }

    pub fn inbox_file(&self) -> PathBuf {
        self.path.join(IdeaInbox::FILE)
    }

    /// The document, without the lock and without changing anything. An absent file is an empty document.
    pub fn state(&self) -> Result<StatusDocument, Report> {
        let mut document = self.read()?;
        if foreign::lacks_run(&document) {
            foreign::restore(&mut document, &self.known_run().fields);
        }
        Ok(document)
    }

    pub fn inbox(&self) -> Result<IdeaInbox, Report> {
        self.read()
    }

    /// Does something under the lock of the folder, which is made if it is missing.
    pub fn hold<T: Send + 'static>(&self, work: impl FnOnce(HeldFolder) -> T + Send + 'static) -> Result<T, Report> {
        // The same lock as that of the daemon, which writes these files as projections (`shared_file`).
        let failed = |error: io::Error| {
            Report::failed(format_args!("{} cannot be locked: {error}", self.path.display())).hint(WRITABLE)
        };
        let (file, folder) = (self.open()?, self.clone());
        if project::flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(failed)? {
            return Ok(work(HeldFolder { folder, was_awaited: false, lock: file }));
        }
        // The kernel serves waiters in turn; with polling, some of many writers would starve. A blocking lock has no time limit, so a thread
        // waits for it. The thread may still wait after this call has given up. The thread also does the work, so that other processes need not
        // wait until the caller's thread is awake.
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        let decided = Arc::new(AtomicBool::new(false));
        let is_late = Arc::clone(&decided);
        let waiting = std::thread::Builder::new().name("status-lock".into()).spawn(move || {
            let locked = project::flock(&file, FlockOperation::LockExclusive);
            // If the caller was first, nothing is done, and the lock is free again at once.
            if !is_late.swap(true, Ordering::AcqRel) {
                let done = locked.map(|_| work(HeldFolder { folder, was_awaited: true, lock: file }));
                // If the caller has panicked, no one receives the result.
                sender.send(done).unwrap_or_default();
            }
        });
        let waiting = waiting.map_err(failed)?;
        let done = match receiver.recv_timeout(LOCK_PATIENCE) {
            Err(RecvTimeoutError::Timeout) if !decided.swap(true, Ordering::AcqRel) => {
                return Err(Report::failed(format_args!("{} is held by another process", self.path.display())).hint(
                    "a process that changes the state was stopped in the middle; find it with `fuser` and end it",
                ));
            }
            // The lock is here, and the work takes longer.
            Err(RecvTimeoutError::Timeout) => receiver.recv().ok(),
            done => done.ok(),
        };
        match done {
            Some(done) => done.map_err(failed),
            None => {
                let ended = waiting.join().expect_err("a thread that says nothing has panicked");
                std::panic::resume_unwind(ended)
            }
        }
    }

    /// The folder, which is made if it is missing.
    fn open(&self) -> Result<File, Report> {
        let opened = File::open(&self.path).or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => std::fs::create_dir_all(&self.path).and_then(|()| File::open(&self.path)),
            _ => Err(error),
        });
        opened.map_err(|error| {
            Report::failed(format_args!("{} cannot be used: {error}", self.path.display())).hint(WRITABLE)
        })
    }

    /// Changes the document under the lock. If `change` refuses, nothing is written.
    pub fn change_state<T: Send + 'static, E: ChangeError + Send + 'static>(
        &self,
        change: impl FnMut(&mut StatusDocument) -> Result<T, E> + Send + 'static,
    ) -> Result<FileChange<T>, E> {
        self.hold(|held| held.change_state(change))?
    }

    /// Notes that a daemon with this log runs, until it has written the last change into the files. A note that is found while no
    /// daemon runs means that the daemon was killed, and that its log may be ahead of the files. Survives a loss of power.
    pub(crate) fn note_log(&self, store: &str) -> io::Result<()> {
        let (Some(copies), Some(note)) = (&self.copies, self.log_note()) else { return Ok(()) };
        std::fs::create_dir_all(copies)?;
        shared_file::replace(&note, store.as_bytes(), Durability::Synced)
    }

    /// The log that may be ahead of the files.
    pub(crate) fn log_ahead(&self) -> Option<String> {
        let note = read_bounded(&self.log_note()?, MAX_NOTE_BYTES).ok().flatten()?;
        String::from_utf8(note).ok()
    }

    /// Notes that the files show all of the log.
    pub(crate) fn forget_log(&self) {
        if let Some(note) = self.log_note() {
            // If the note stays, the next command reads the log once more.
            std::fs::remove_file(note).unwrap_or_default();
        }
    }

    fn log_note(&self) -> Option<PathBuf> {
        self.copies.as_ref().map(|copies| copies.join("log"))
    }

    /// What a daemon wrote last into a file. Nothing if none has, or if the copy is damaged.
    pub(crate) fn last_shown<C: FileContent>(&self) -> Option<(Vec<u8>, C)> {
        let copy = read_bounded(&self.copies.as_ref()?.join(C::FILE), MAX_DOCUMENT_BYTES).ok().flatten()?;
        let content = C::parse(std::str::from_utf8(&copy).ok()?).ok()?;
        Some((copy, content))
    }

    /// The content of a file that the log has, and that is no news to a daemon: what a daemon wrote last, also if it was killed before it
    /// could copy the file, or what it found there last, if it `took` the edits in it. The log may be newer.
    pub(crate) fn last_known<C: FileContent>(&self, took: bool) -> Option<(Vec<u8>, C)> {
        let announced = self.note_of(C::FILE, ANNOUNCED).and_then(|path| std::fs::read_to_string(path).ok());
        let known = self.found::<C>().filter(|content| took || announced.as_ref() == Some(&signature(content)));
        let parsed = |content: Vec<u8>| {
            let parsed = C::parse(std::str::from_utf8(&content).ok()?).ok()?;
            Some((content, parsed))
        };
        known.and_then(parsed).or_else(|| self.last_shown())
    }

    /// Notes that a daemon is about to take in the edits in a file. `head` is the last event before that. If the daemon is killed, the log
    /// says whether it took them.
    pub(crate) fn note_taking(&self, file: &str, content: &[u8], head: EventId) -> io::Result<()> {
        let (Some(copies), Some(path)) = (&self.copies, self.note_of(file, TAKING)) else { return Ok(()) };
        std::fs::create_dir_all(copies)?;
        std::fs::write(path, format!("{}{head}\n", signature(content)))
    }

    /// If a daemon has begun to take in the edits that are in a file now: the last event before that.
    pub(crate) fn taking<C: FileContent>(&self) -> Option<EventId> {
        let note = std::fs::read_to_string(self.note_of(C::FILE, TAKING)?).ok()?;
        let head = note.strip_prefix(&signature(&self.found::<C>()?))?;
        head.trim().parse().ok().map(EventId)
    }

    fn found<C: FileContent>(&self) -> Option<Vec<u8>> {
        read_bounded(&self.path.join(C::FILE), MAX_DOCUMENT_BYTES).ok().flatten()
    }

    /// Notes the content that a daemon is about to write into a file.
    pub(crate) fn announce(&self, file: &str, content: &[u8]) -> io::Result<()> {
        let (Some(copies), Some(path)) = (&self.copies, self.note_of(file, ANNOUNCED)) else { return Ok(()) };
        std::fs::create_dir_all(copies)?;
        std::fs::write(path, signature(content))
    }

    fn note_of(&self, file: &str, kind: &str) -> Option<PathBuf> {
        self.copies.as_ref().map(|copies| copies.join(format!("{file}.{kind}")))
    }

    /// Copies what a daemon has written into a file.
    pub(crate) fn keep_shown(&self, file: &str, content: &[u8]) -> io::Result<()> {
        self.copy_shown(file, content)?;
        self.sign(file, content)
    }

    /// Notes what the changes of others are compared with from now on.
    pub(crate) fn copy_shown(&self, file: &str, content: &[u8]) -> io::Result<()> {
        let Some(copies) = &self.copies else { return Ok(()) };
        std::fs::create_dir_all(copies)?;
        shared_file::replace(&copies.join(file), content, Durability::Rebuilt)
    }

    /// Whether a file has the content that a daemon wrote last, or that commands made of it, and no other program has touched it since.
    pub(crate) fn is_from_us(&self, file: &str, content: &[u8]) -> bool {
        let signed = self.note_of(file, SIGNATURE).and_then(|path| std::fs::read_to_string(path).ok());
        signed.is_some_and(|signed| signed == signature(content))
    }

    /// Notes that the content of a file comes from Hatchery alone.
    pub(crate) fn sign(&self, file: &str, content: &[u8]) -> io::Result<()> {
        self.note_of(file, SIGNATURE).map_or(Ok(()), |path| std::fs::write(path, signature(content)))
    }

    /// What commands have noted about the build run, if they have.
    pub(crate) fn noted_run(&self) -> Option<StatusDocument> {
        let copy: RunCopy = sealed_file::read(&self.copies.as_ref()?.join(RUN_COPY)).ok().flatten()?;
        StatusDocument::parse(&copy.document).ok()
    }

    fn known_run(&self) -> KnownRun {
        match self.noted_run() {
            Some(fields) => KnownRun { fields, is_noted: true },
            None => {
                let shown = self.last_shown::<StatusDocument>().map(|(_, shown)| foreign::outliving(&shown));
                KnownRun { fields: shown.unwrap_or_default(), is_noted: false }
            }
        }
    }

    /// Notes the build run of a document that is about to be written. A failure costs the copy only.
    fn note_run(&self, known: &KnownRun, document: &StatusDocument) {
        let (Some(copies), Some(project)) = (&self.copies, &self.project) else { return };
        let fields = foreign::outliving(document);
        let is_known = known.is_noted || (fields.fields().is_empty() && !copies.is_dir());
        if is_known && known.fields == fields {
            return;
        }
        let noted = project.prepare().map_err(Report::into_io).and_then(|()| {
            std::fs::create_dir_all(copies)?;
            sealed_file::write(&copies.join(RUN_COPY), &RunCopy { document: fields.text() })
        });
        if let Err(error) = noted {
            tracing::debug!(%error, "the build run was not copied");
        }
    }

    /// Gives the file back the build run that commands have noted, for a daemon that is about to take the file in. Call it under the lock.
    pub(crate) fn give_back_run(&self) -> io::Result<()> {
        let Some(kept) = self.noted_run() else { return Ok(()) };
        let path = self.state_file();
        let mut update = Update::default();
        loop {
            let replaced = known(&path);
            refuse_link(&path, replaced.as_ref()).map_err(Report::into_io)?;
            let mut found = None;
            let mut document = match read_settled::<StatusDocument>(&path).map_err(Report::into_io)? {
                FileFound::Content { content, bytes } => {
                    found = Some(bytes);
                    content
                }
                FileFound::Missing => self.begun_anew(),
                FileFound::Unparseable(why) => {
                    let aside = set_aside(&path)?;
                    tracing::warn!(why, "{} cannot be read; it is kept as {}", path.display(), aside.display());
                    self.begun_anew()
                }
            };
            let found = FileAsRead::of(replaced.as_ref(), found.as_deref());
            let is_done = !foreign::restore(&mut document, &kept)
                || update.put(&path, document.text().as_bytes(), Durability::Synced, found)?;
            if is_done {
                return shared_file::sync_rename(&path, Durability::Synced);
            }
        }
    }

    /// Removes the note of the build run: from now on the log has it.
    pub(crate) fn forget_run(&self) {
        if let Some(copies) = &self.copies {
            std::fs::remove_file(copies.join(RUN_COPY)).unwrap_or_default();
        }
    }

    fn read<C: FileContent>(&self) -> Result<C, Report> {
        let path = self.path.join(C::FILE);
        match read_settled::<C>(&path)? {
            FileFound::Content { content, .. } => Ok(content),
            FileFound::Missing => Ok(C::default()),
            FileFound::Unparseable(why) => {
                Err(Report::failed(format_args!("{} cannot be read: {why}", path.display()))
                    .hint("the next change sets the file aside and begins a new one; repair it before that if you can"))
            }
        }
    }

    fn begun_anew<C: FileContent>(&self) -> C {
        self.last_shown().map(|(_, content)| content).unwrap_or_default()
    }

    /// Removes what writers of both folders left behind that were killed. Call it under the lock. One that cannot be removed does no harm.
    pub(crate) fn sweep(&self) {
        for folder in [Some(&self.path), self.copies.as_ref()].into_iter().flatten() {
            shared_file::sweep(folder);
        }
    }
}

/// The folder while its lock is held. The kernel frees the lock with the process, however that ends.
#[derive(Debug)]
pub struct HeldFolder {
    folder: StatusFolder,
    /// Another process held the lock. Then others wait, too, and tidying up can wait for a quiet moment.
    was_awaited: bool,
    lock: File,
}

impl HeldFolder {
    /// Changes the document. If `change` refuses, nothing is written. It is called again if another program writes the file meanwhile.
    pub fn change_state<T, E: ChangeError>(
        self,
        mut change: impl FnMut(&mut StatusDocument) -> Result<T, E>,
    ) -> Result<FileChange<T>, E> {
        let folder = self.folder.clone();
        self.change(|document: &mut StatusDocument| {
            let known = folder.known_run();
            foreign::restore(document, &known.fields);
            let value = change(document)?;
            document.set("lastUpdated", clock::written(clock::now()).as_str());
            folder.note_run(&known, document);
            Ok(value)
        })
    }

    /// The same for the inbox.
    pub fn change_inbox<T, E: ChangeError>(
        self,
        change: impl FnMut(&mut IdeaInbox) -> Result<T, E>,
    ) -> Result<FileChange<T>, E> {
        self.change(change)
    }

    fn change<C: FileContent, T, E: ChangeError>(
        self,
        mut change: impl FnMut(&mut C) -> Result<T, E>,
    ) -> Result<FileChange<T>, E> {
        let folder = &self.folder;
        let path = folder.path.join(C::FILE);
        if !self.was_awaited {
            self.sweep();
        }
        let (mut update, mut set_aside) = (Update::default(), None);
        let value = loop {
            let (replaced, found) = (known(&path), read_settled::<C>(&path)?);
            refuse_link(&path, replaced.as_ref())?;
            let (mut is_ours, mut read) = (true, None);
            let (mut content, damage) = match found {
                FileFound::Content { content, bytes } => {
                    is_ours = folder.is_from_us(C::FILE, &bytes);
                    read = Some(bytes);
                    (content, None)
                }
                // An empty file would say that everything was removed.
                FileFound::Missing => (folder.begun_anew(), None),
                FileFound::Unparseable(why) => (folder.begun_anew(), Some(why)),
            };
            let damaged = |why: &String| format!("{} cannot be read ({why}), and was left as it is", path.display());
            let value = change(&mut content).map_err(|error| match &damage {
                Some(why) => error.beside(&damaged(why)),
                None => error,
            })?;
            if damage.is_some() {
                set_aside = Some(self.set_aside::<C>()?);
            }
            let found = FileAsRead::of(replaced.as_ref(), read.as_deref());
            if self.put::<C>(content.text().as_bytes(), is_ours, found, &mut update)? {
                break value;
            }
        };
        drop(self);
        if C::SYNCS_RENAME {
            // The next writer need not wait for it.
            shared_file::sync_rename(&path, Durability::Synced).map_err(|error| unwritable(&path, &error))?;
        }
        Ok(FileChange { value, set_aside })
    }

    /// Removes what writers of the folder left behind that were killed. The lock is on the folder itself, so it is open already. What a
    /// killed daemon left among the copies is removed by the next daemon, or by the command that follows its log.
    fn sweep(&self) {
        let mut buffer = [MaybeUninit::uninit(); SWEEP_BUFFER_BYTES];
        let mut entries = RawDir::new(&self.lock, &mut buffer);
        while let Some(Ok(entry)) = entries.next() {
            if let Ok(name) = entry.file_name().to_str() {
                shared_file::sweep_one(&self.folder.path.join(name));
            }
        }
    }

    /// Keeps a damaged file under another name.
    pub(crate) fn set_aside<C: FileContent>(&self) -> Result<PathBuf, Report> {
        let path = self.folder.path.join(C::FILE);
        set_aside(&path).map_err(|error| unwritable(&path, &error))
    }

    /// Replaces a file, unless another program has written it since it was found. False if one has. `is_ours` says that no other program
    /// has changed it since a daemon wrote it.
    pub(crate) fn put<C: FileContent>(
        &self,
        content: &[u8],
        is_ours: bool,
        found: Option<FileAsRead<'_>>,
        update: &mut Update,
    ) -> Result<bool, Report> {
        let path = self.folder.path.join(C::FILE);
        let put = update.put(&path, content, Durability::Synced, found);
        let is_put = put.map_err(|error| unwritable(&path, &error))?;
        if is_put && is_ours {
            // Fails where no daemon has ever been. Without it the change is compared as that of any other program.
            self.folder.sign(C::FILE, content).unwrap_or_default();
        }
        Ok(is_put)
    }
}

/// Tells one content from another.
fn signature(content: &[u8]) -> String {
    format!("{} {:08x}\n", content.len(), crc32fast::hash(content))
}

const WRITABLE: &str = "make the folder writable, or free some space";

fn unwritable(path: &Path, error: &io::Error) -> Report {
    Report::failed(format_args!("{} cannot be written: {error}", path.display())).hint(WRITABLE)
}
