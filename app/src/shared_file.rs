//! Files that several processes read and write. A writer holds a lock on the file's folder while it reads, changes and replaces the
//! file; a reader needs no lock, because a file is replaced by a rename and is never half written.
//!
//! The lock is on the folder and not on the file, because the file is another one after each rename, and a lock file beside it
//! would be left behind.

use crate::project::flock;
use rustix::fs::FlockOperation;
use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a writer waits for another one. Writers hold the lock for milliseconds.
const LOCK_WAIT: Duration = Duration::from_secs(5);
/// The pauses between two attempts to take the lock, growing from the first to the second: a writer that is nearly done is not
/// waited for longer than it takes.
const LOCK_PAUSES: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(2));
/// A longer file is not one of ours, and is not read into memory.
pub const MAX_FILE_BYTES: u64 = 64 << 20;
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
    /// Waits for other writers, but not for ever. Creates the folder if it is missing.
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

/// The content of a file, or none if it does not exist.
pub fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut content = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut content)?;
    match content.len() as u64 > MAX_FILE_BYTES {
        true => Err(io::Error::new(ErrorKind::FileTooLarge, format!("it is longer than {MAX_FILE_BYTES} bytes"))),
        false => Ok(Some(content)),
    }
}

/// Replaces a file by a rename, from a temporary file with a unique name in the same folder.
pub fn replace(path: &Path, content: &[u8], durability: Durability) -> io::Result<()> {
    put(path, content, durability)?;
    sync_rename(path, durability)
}

/// The first half of [`replace`]: everybody sees the new content.
pub fn put(path: &Path, content: &[u8], durability: Durability) -> io::Result<()> {
    let folder = folder_of(path);
    // What can be rebuilt is Hatchery's own. The other files are shared with other programs.
    let mode = match durability {
        Durability::Rebuilt => 0o600,
        Durability::Synced => 0o644,
    };
    let permissions = std::fs::Permissions::from_mode(mode);
    let mut file = tempfile::Builder::new().permissions(permissions).tempfile_in(folder)?;
    keep_mode(path, file.as_file())?;
    file.write_all(content)?;
    if durability == Durability::Synced {
        file.as_file().sync_all()?;
    }
    file.persist(path).map(drop).map_err(|error| error.error)
}

/// The second half of [`replace`]: the new content is still there after a loss of power.
pub fn sync_rename(path: &Path, durability: Durability) -> io::Result<()> {
    match durability {
        Durability::Synced => File::open(folder_of(path))?.sync_all(),
        Durability::Rebuilt => Ok(()),
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

/// Gives a new file the permissions of the one that it replaces, if there is one: somebody may have closed it to others.
pub fn keep_mode(replaced: &Path, new: &File) -> io::Result<()> {
    match std::fs::metadata(replaced) {
        Ok(known) => new.set_permissions(known.permissions()),
        Err(_) => Ok(()),
    }
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
