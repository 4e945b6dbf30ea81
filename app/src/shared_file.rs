//! Files that several processes read and write. A writer holds a lock on the file's folder while it reads, changes and replaces the
//! file; a reader needs no lock, because a file is replaced by a rename and is never half written.
//!
//! The lock is on the folder and not on the file, because the file is another one after each rename, and a lock file beside it
//! would be left behind.

use crate::file_identity::FileVersion;
use crate::project::flock;
use rustix::fs::{FlockOperation, Mode, OFlags};
use std::fs::{File, Metadata, Permissions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::NamedTempFile;

/// How long a writer waits for another one. Writers hold the lock for milliseconds.
const LOCK_WAIT: Duration = Duration::from_secs(5);
/// The shortest and the longest pause between two attempts to take the lock. The pauses grow, because most writers finish within
/// microseconds.
const LOCK_PAUSES: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(2));
/// A longer file is not one of ours, and is not read into memory.
pub const MAX_FILE_BYTES: usize = 64 << 20;
/// What the names of temporary files begin with.
const TEMPORARY: &str = ".hatchery-new-";
/// How often an update gives way to another program.
const MAX_OVERTAKEN: u32 = 8;
/// How many files that could not be read are kept beside the good one.
const MAX_SET_ASIDE: u32 = 100;

/// Whether a file must survive a loss of power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// File and folder are synced before and after the rename.
    Synced,
    /// Not synced, because the content is made again from the log at the next start, and a sync competes with the log's.
    Rebuilt,
}

/// Holds the lock of a folder until it is dropped. The system releases it when the process ends, however that happens.
#[derive(Debug)]
pub struct FolderLock {
    _folder: File,
}

impl FolderLock {
    /// Waits for other writers, for at most `LOCK_WAIT`. Creates the folder if it is missing.
    pub fn acquire(folder: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let file = File::open(folder)?;
        let deadline = Instant::now() + LOCK_WAIT;
        let (mut pause, longest) = LOCK_PAUSES;
        while !flock(&file, FlockOperation::NonBlockingLockExclusive)? {
            if Instant::now() >= deadline {
                let what = format!("another process has held the lock of {} for {LOCK_WAIT:?}", folder.display());
                return Err(io::Error::new(ErrorKind::TimedOut, what));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(longest);
        }
        Ok(Self { _folder: file })
    }
}

/// The content of a plain file, or none if there is nothing.
pub fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    read_bounded(path, MAX_FILE_BYTES)
}

/// The same with a bound of the caller. Never waits: a FIFO in the place of the file may have no writer, and a device no end.
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
    let too_large = |bytes: u64| {
        let what = format!("it has {bytes} bytes, and {max_bytes} is the most");
        Err(io::Error::new(ErrorKind::FileTooLarge, what))
    };
    let max = u64::try_from(max_bytes).unwrap_or(u64::MAX);
    if known.len() > max {
        return too_large(known.len());
    }
    let mut content = Vec::with_capacity(usize::try_from(known.len()).unwrap_or(0) + 1);
    // Another program may be writing it.
    let read = file.take(max.saturating_add(1)).read_to_end(&mut content)?;
    if read > max_bytes { too_large(read as u64) } else { Ok(Some(content)) }
}

/// Replaces a file by a rename, from a temporary file with a unique name in the same folder.
pub fn replace(path: &Path, content: &[u8], durability: Durability) -> io::Result<()> {
    put(path, content, durability)?;
    sync_rename(path, durability)
}

/// The first half of [`replace`]: after this, all readers see the new content.
pub fn put(path: &Path, content: &[u8], durability: Durability) -> io::Result<()> {
    let file = written_beside(path, content, durability, std::fs::metadata(path).ok().as_ref())?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

/// A plain file as it was read. The metadata is from before the read.
#[derive(Clone, Copy, Debug)]
pub struct FileAsRead<'a> {
    pub meta: &'a Metadata,
    pub content: &'a [u8],
}

impl<'a> FileAsRead<'a> {
    /// None if there was no file.
    pub fn of(meta: Option<&'a Metadata>, content: Option<&'a [u8]>) -> Option<Self> {
        meta.zip(content).map(|(meta, content)| Self { meta, content })
    }

    /// Whether the file is still the same. Two writes within one tick of the file system's clock have the same time, so the content is
    /// compared, too.
    fn is_current(&self, path: &Path) -> io::Result<bool> {
        let is_same_version = FileVersion::at(path) == Some(FileVersion::of(self.meta));
        Ok(is_same_version && read(path)?.as_deref() == Some(self.content))
    }
}

/// Replaces a file that it has read. Another program, which knows no lock, may write the file during the sync. Then the file must be read
/// again, so that nothing of that program is lost.
#[derive(Debug, Default)]
pub struct Update {
    overtaken: u32,
}

impl Update {
    /// The same as [`put`], unless the file has changed since it was `found`. False if it has. If another program never stops writing,
    /// its changes are overwritten in the end.
    pub fn put(
        &mut self,
        path: &Path,
        content: &[u8],
        durability: Durability,
        found: Option<FileAsRead<'_>>,
    ) -> io::Result<bool> {
        let file = written_beside(path, content, durability, found.map(|found| found.meta))?;
        if self.overtaken < MAX_OVERTAKEN {
            let is_current = match found {
                Some(found) => found.is_current(path)?,
                None => FileVersion::at(path).is_none(),
            };
            if !is_current {
                self.overtaken += 1;
                return Ok(false);
            }
        }
        file.persist(path).map(|_| true).map_err(|error| error.error)
    }
}

fn written_beside(
    path: &Path,
    content: &[u8],
    durability: Durability,
    replaced: Option<&Metadata>,
) -> io::Result<NamedTempFile> {
    let folder = folder_of(path);
    // What can be rebuilt is Hatchery's own. The other files are shared with other programs.
    let mode = match durability {
        Durability::Rebuilt => 0o600,
        Durability::Synced => 0o644,
    };
    let mut new = tempfile::Builder::new();
    let mut file = new.prefix(TEMPORARY).permissions(Permissions::from_mode(mode)).tempfile_in(folder)?;
    if let Some(replaced) = replaced {
        // The owner of the file may have closed it to others.
        file.as_file().set_permissions(replaced.permissions())?;
    }
    file.write_all(content)?;
    if durability == Durability::Synced {
        file.as_file().sync_all()?;
    }
    Ok(file)
}

/// The second half of [`replace`]: the new content is still there after a loss of power.
pub fn sync_rename(path: &Path, durability: Durability) -> io::Result<()> {
    match durability {
        Durability::Synced => File::open(folder_of(path))?.sync_all(),
        Durability::Rebuilt => Ok(()),
    }
}

/// Removes temporary files whose writers were killed. Call it only where all writers hold the same lock as the caller: then no
/// temporary file in the folder has a living writer. A file that cannot be removed does no harm.
pub fn sweep(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    entries.flatten().for_each(|entry| sweep_one(&entry.path()));
}

/// The same for one file of the folder.
pub fn sweep_one(path: &Path) {
    if path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(TEMPORARY.as_bytes())) {
        std::fs::remove_file(path).unwrap_or_default();
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

/// Renames a file that cannot be understood, so that nothing is lost. Returns its new name.
pub fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let name = |number| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".bad-{number}"));
        PathBuf::from(name)
    };
    let free = (1..=MAX_SET_ASIDE).map(name).find(|aside| !aside.exists());
    let aside = free.unwrap_or_else(|| name(MAX_SET_ASIDE));
    std::fs::rename(path, &aside)?;
    Ok(aside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_take_turns() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/count");
        let count = || -> u64 {
            let found = read(&path).unwrap().map(|text| String::from_utf8(text).unwrap());
            found.map_or(0, |text| text.parse().unwrap())
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let _lock = FolderLock::acquire(path.parent().unwrap()).unwrap();
                        replace(&path, (count() + 1).to_string().as_bytes(), Durability::Rebuilt).unwrap();
                    }
                });
            }
        });
        assert_eq!(count(), 200);
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left beside the file");
    }

    #[test]
    fn a_file_that_is_set_aside_replaces_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("quest.json");
        for content in ["one", "two"] {
            replace(&path, content.as_bytes(), Durability::Synced).unwrap();
            set_aside(&path).unwrap();
        }
        for (number, content) in [(1, "one"), (2, "two")] {
            let aside = folder.path().join(format!("quest.json.bad-{number}"));
            assert_eq!(read(&aside).unwrap().unwrap(), content.as_bytes());
        }
        assert!(read(&path).unwrap().is_none());
    }
}
