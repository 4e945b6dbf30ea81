//! The files of the status protocol on disk: `.fctry/state.json` and `.fctry/inbox.json`. Whoever changes one holds the lock, reads it,
//! writes a temporary file with a name of its own, syncs it and renames it. So a reader sees the old content or the new, and never
//! half of it, and no change is lost, whichever process is killed at what moment.
//!
//! Other programs write these files without our lock. A file that does not parse may be one that such a program is writing just now:
//! it is read again for a moment. If it still does not parse it is set aside, never treated as empty and never overwritten.

use crate::clock;
use crate::project::{self, Project};
use crate::report::Report;
use crate::shared_file::{self, Durability};
use hatchery_core::idea_inbox::{IdeaInbox, InboxError};
use hatchery_core::status::{Document, EditError, MAX_DOCUMENT_BYTES};
use rustix::fs::{FlockOperation, Mode, OFlags};
use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a file that does not parse is read again before it is set aside. Writing one takes milliseconds.
pub(crate) const WRITER_PATIENCE: Duration = Duration::from_millis(250);
pub(crate) const WRITER_PAUSE: Duration = Duration::from_millis(5);
/// How long somebody else may hold the lock. A change takes milliseconds; a stopped process could hold it for ever.
const LOCK_PATIENCE: Duration = Duration::from_secs(60);

/// What our temporary files begin with. All of them are written under the lock, so one that is found there is an orphan.
const TEMPORARY: &str = ".hatchery-new-";

/// The folder `.fctry` of a project.
#[derive(Clone, Debug)]
pub struct StatusFolder {
    path: PathBuf,
    /// Copies of what a daemon wrote last. A later daemon recognises its files by them, and a file that is missing or damaged is
    /// begun from its copy.
    copies: Option<PathBuf>,
}

/// A change that is on disk.
#[derive(Debug)]
pub struct Changed<T> {
    pub value: T,
    /// Where a file that did not parse is kept now.
    pub set_aside: Option<PathBuf>,
}

/// What one of the files holds.
pub(crate) trait Content: Sized + Default {
    const FILE: &'static str;
    /// Whether a change waits until the rename has reached the disk, too. Without that a loss of power can bring back the file of some
    /// seconds ago, whole.
    const SYNCS_RENAME: bool;
    fn parse(text: &str) -> Result<Self, String>;
    fn text(&self) -> String;
}

impl Content for Document {
    const FILE: &'static str = "state.json";
    // It says what happens now, and hooks change it all the time. The wait would be longer than the rest of the change.
    const SYNCS_RENAME: bool = false;

    fn parse(text: &str) -> Result<Self, String> {
        Self::parse(text).map_err(|error: EditError| error.to_string())
    }

    fn text(&self) -> String {
        Self::text(self)
    }
}

impl Content for IdeaInbox {
    const FILE: &'static str = "inbox.json";
    const SYNCS_RENAME: bool = true;

    fn parse(text: &str) -> Result<Self, String> {
        Self::parse(text).map_err(|error: InboxError| error.to_string())
    }

    fn text(&self) -> String {
        Self::text(self)
    }
}

impl StatusFolder {
    pub fn of(project: &Path) -> Self {
        Self { path: project.join(".fctry"), copies: None }
    }

    /// The folder of a project that may have a daemon.
    pub fn of_project(project: &Project) -> Self {
        Self { copies: Some(project.data().join("shown")), ..Self::of(project.root()) }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn state_file(&self) -> PathBuf {
        self.path.join(Document::FILE)
    }

    pub fn inbox_file(&self) -> PathBuf {
        self.path.join(IdeaInbox::FILE)
    }

    /// The document, without the lock and without changing anything. An absent file is an empty document.
    pub fn state(&self) -> Result<Document, Report> {
        self.read()
    }

    pub fn inbox(&self) -> Result<IdeaInbox, Report> {
        self.read()
    }

    /// Changes the document under the lock. If `change` refuses, nothing is written.
    pub fn change_state<T, E: From<Report>>(
        &self,
        change: impl FnOnce(&mut Document) -> Result<T, E>,
    ) -> Result<Changed<T>, E> {
        self.change(|document: &mut Document| {
            let value = change(document)?;
            document.set("lastUpdated", clock::written(clock::now()).as_str());
            Ok(value)
        })
    }

    pub fn change_inbox<T, E: From<Report>>(
        &self,
        change: impl FnOnce(&mut IdeaInbox) -> Result<T, E>,
    ) -> Result<Changed<T>, E> {
        self.change(change)
    }

    /// What a daemon wrote last into a file. Nothing if none has, or if the copy is damaged.
    pub(crate) fn last_shown<C: Content>(&self) -> Option<(Vec<u8>, C)> {
        let copy = read_bounded(&self.copies.as_ref()?.join(C::FILE), MAX_DOCUMENT_BYTES).ok().flatten()?;
        let content = C::parse(std::str::from_utf8(&copy).ok()?).ok()?;
        Some((copy, content))
    }

    /// What a daemon wrote last into a file, also if it was killed before it could copy the file. The log may be newer than both.
    pub(crate) fn last_written<C: Content>(&self) -> Option<(Vec<u8>, C)> {
        let announced = self.announcement(C::FILE).and_then(|path| std::fs::read_to_string(path).ok());
        let file = || read_bounded(&self.path.join(C::FILE), MAX_DOCUMENT_BYTES).ok().flatten();
        let written = announced.zip(file()).filter(|(announced, content)| *announced == signature(content));
        let parsed = |(_, content): (String, Vec<u8>)| {
            let parsed = C::parse(std::str::from_utf8(&content).ok()?).ok()?;
            Some((content, parsed))
        };
        written.and_then(parsed).or_else(|| self.last_shown())
    }

    /// Notes the content that a daemon is about to write into a file.
    pub(crate) fn announce(&self, file: &str, content: &[u8]) -> io::Result<()> {
        let (Some(copies), Some(path)) = (&self.copies, self.announcement(file)) else { return Ok(()) };
        std::fs::create_dir_all(copies)?;
        std::fs::write(path, signature(content))
    }

    fn announcement(&self, file: &str) -> Option<PathBuf> {
        self.copies.as_ref().map(|copies| copies.join(format!("{file}.announced")))
    }

    /// Copies what a daemon has written into a file.
    pub(crate) fn keep_shown(&self, file: &str, content: &[u8]) -> io::Result<()> {
        let Some(copies) = &self.copies else { return Ok(()) };
        std::fs::create_dir_all(copies)?;
        shared_file::replace(&copies.join(file), content, Durability::Rebuilt)?;
        self.sign(file, content)
    }

    /// Whether a file has the content that a daemon wrote last, or that commands made of it, and no other program has touched it since.
    pub(crate) fn is_from_us(&self, file: &str, content: &[u8]) -> bool {
        let signed = self.signature(file).and_then(|path| std::fs::read_to_string(path).ok());
        signed.is_some_and(|signed| signed == signature(content))
    }

    /// Notes that the content of a file comes from Hatchery alone.
    fn sign(&self, file: &str, content: &[u8]) -> io::Result<()> {
        self.signature(file).map_or(Ok(()), |path| std::fs::write(path, signature(content)))
    }

    fn signature(&self, file: &str) -> Option<PathBuf> {
        self.copies.as_ref().map(|copies| copies.join(format!("{file}.signature")))
    }

    fn read<C: Content>(&self) -> Result<C, Report> {
        let path = self.path.join(C::FILE);
        match read_settled::<C>(&path)? {
            Read::Content { content, .. } => Ok(content),
            Read::Missing => Ok(C::default()),
            Read::Unparseable(why) => Err(Report::failed(format_args!("{} cannot be read: {why}", path.display()))
                .hint("the next change sets the file aside and begins a new one; repair it before that if you can")),
        }
    }

    fn change<C: Content, T, E: From<Report>>(
        &self,
        change: impl FnOnce(&mut C) -> Result<T, E>,
    ) -> Result<Changed<T>, E> {
        let path = self.path.join(C::FILE);
        let unwritable = |error: &io::Error| {
            Report::failed(format_args!("{} cannot be written: {error}", path.display())).hint(WRITABLE)
        };
        let made = std::fs::create_dir_all(&self.path);
        made.map_err(|error| {
            Report::failed(format_args!("{} cannot be made: {error}", self.path.display())).hint(WRITABLE)
        })?;
        let lock = self.lock()?;
        let mut is_ours = true;
        let (mut content, set_aside) = match read_settled::<C>(&path)? {
            Read::Content { content, bytes } => {
                is_ours = self.is_from_us(C::FILE, &bytes);
                (content, None)
            }
            // An empty file would say that everything was removed.
            Read::Missing => (self.begun_anew(), None),
            Read::Unparseable(_) => (self.begun_anew(), Some(set_aside(&path).map_err(|error| unwritable(&error))?)),
        };
        let value = change(&mut content)?;
        if !lock.was_awaited {
            self.sweep();
        }
        let text = content.text();
        self.replace(&path, text.as_bytes()).map_err(|error| unwritable(&error))?;
        if is_ours {
            // Fails where no daemon has ever been. Without it the change is compared as that of any other program.
            self.sign(C::FILE, text.as_bytes()).unwrap_or_default();
        }
        drop(lock);
        if C::SYNCS_RENAME {
            // The next writer need not wait for it.
            self.sync().map_err(|error| unwritable(&error))?;
        }
        Ok(Changed { value, set_aside })
    }

    fn begun_anew<C: Content>(&self) -> C {
        self.last_shown().map(|(_, content)| content).unwrap_or_default()
    }

    fn lock(&self) -> Result<Lock, Report> {
        // The same lock as that of the daemon, which writes these files as projections (`shared_file`).
        let path = self.path.as_path();
        let failed = |error: io::Error| {
            Report::failed(format_args!("{} cannot be locked: {error}", path.display())).hint(WRITABLE)
        };
        let file = File::open(path).map_err(failed)?;
        if project::flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(failed)? {
            return Ok(Lock { _folder: file, was_awaited: false });
        }
        // The kernel serves waiters in turn; polling would let some of many writers starve. But it knows no time limit, so a
        // thread waits, and it may go on waiting after this call has given up: then it frees the lock at once.
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        let waiting = std::thread::Builder::new().name("status-lock".into()).spawn(move || {
            let locked = project::flock(&file, FlockOperation::LockExclusive).map(|_| file);
            // Nobody hears it after the time limit.
            sender.send(locked).unwrap_or_default();
        });
        drop(waiting.map_err(failed)?);
        match receiver.recv_timeout(LOCK_PATIENCE) {
            Ok(locked) => locked.map(|_folder| Lock { _folder, was_awaited: true }).map_err(failed),
            Err(_) => Err(Report::failed(format_args!("{} is held by another process", path.display()))
                .hint("a process that changes the state was stopped in the middle; find it with `fuser` and end it")),
        }
    }

    fn replace(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
        let mut file = tempfile::Builder::new().prefix(TEMPORARY).permissions(mode).tempfile_in(&self.path)?;
        shared_file::keep_mode(path, file.as_file())?;
        file.write_all(content)?;
        file.as_file().sync_all()?;
        file.persist(path).map(drop).map_err(|error| error.error)
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    /// Removes what writers left behind that were killed. One that cannot be removed does no harm.
    fn sweep(&self) {
        let Ok(entries) = std::fs::read_dir(&self.path) else { return };
        for entry in entries.flatten() {
            if entry.file_name().as_encoded_bytes().starts_with(TEMPORARY.as_bytes()) {
                std::fs::remove_file(entry.path()).unwrap_or_default();
            }
        }
    }
}

/// The lock of the folder, held until it is dropped. The kernel frees it with the process, however that ends.
struct Lock {
    _folder: File,
    /// Somebody else held it. Then others wait, too, and tidying up can wait for a quiet moment.
    was_awaited: bool,
}

/// Tells one content from another.
fn signature(content: &[u8]) -> String {
    format!("{} {:08x}\n", content.len(), crc32fast::hash(content))
}

const WRITABLE: &str = "make the folder writable, or free some space";

enum Read<C> {
    Content { content: C, bytes: Vec<u8> },
    Missing,
    Unparseable(String),
}

/// Reads a file, and again for a moment if it does not parse.
fn read_settled<C: Content>(path: &Path) -> Result<Read<C>, Report> {
    let deadline = Instant::now() + WRITER_PATIENCE;
    loop {
        let failed = |error: io::Error| {
            Report::failed(format_args!("{} cannot be read: {error}", path.display())).hint(READABLE)
        };
        let Some(bytes) = read_bounded(path, MAX_DOCUMENT_BYTES).map_err(failed)? else {
            return Ok(Read::Missing);
        };
        let parsed = std::str::from_utf8(&bytes).map_err(|error| error.to_string()).and_then(C::parse);
        match parsed {
            Ok(content) => return Ok(Read::Content { content, bytes }),
            Err(why) if Instant::now() > deadline => return Ok(Read::Unparseable(why)),
            Err(_) => std::thread::sleep(WRITER_PAUSE),
        }
    }
}

const READABLE: &str = "there must be a plain file that can be read, or none; move away what is there";

/// A plain file within bounds, or nothing if there is none. Never waits: a FIFO in its place has no writer.
pub fn read_bounded(path: &Path, max_bytes: usize) -> io::Result<Option<Vec<u8>>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file: File = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => file.into(),
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let known = file.metadata()?;
    if !known.is_file() {
        return Err(io::Error::other("it is not a plain file"));
    }
    let max = u64::try_from(max_bytes).unwrap_or(u64::MAX);
    if known.len() > max {
        return Err(io::Error::new(
            ErrorKind::FileTooLarge,
            format!("it has {} bytes, and {max} is the most", known.len()),
        ));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(known.len()).unwrap_or(0) + 1);
    file.take(max).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Keeps a file under another name that says when.
pub(crate) fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let time: String = clock::written(clock::now()).chars().map(|char| if char == ':' { '-' } else { char }).collect();
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let named = (0..100_u32).map(|number| match number {
        0 => path.with_file_name(format!("{name}.corrupt-{time}")),
        number => path.with_file_name(format!("{name}.corrupt-{time}-{number}")),
    });
    let aside =
        named.into_iter().find(|aside| !aside.exists()).ok_or_else(|| io::Error::other("too many were set aside"))?;
    std::fs::rename(path, &aside)?;
    Ok(aside)
}
