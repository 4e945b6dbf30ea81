//! A file by its identity on disk. A path can be deleted or replaced while a process still has the old file open; then everything
//! that the process writes is lost with it.

use rustix::fs::{AtFlags, CWD, StatxFlags};
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    path: PathBuf,
    inode: Inode,
}

/// An inode of a file system: the numbers of its device, and its own.
type Inode = (u32, u32, u64);

impl FileIdentity {
    /// The file that has this path now.
    pub fn at(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), inode: inode(CWD, path, AtFlags::SYMLINK_NOFOLLOW)? })
    }

    /// An open file that should have this path.
    pub fn of(file: &File, path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), inode: inode(file.as_fd(), Path::new(""), AtFlags::EMPTY_PATH)? })
    }

    /// What has happened to the path, if it no longer leads to the file. A path that cannot be looked at counts as unchanged:
    /// that is another problem.
    pub fn lost(&self) -> Option<String> {
        let what = match inode(CWD, &self.path, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) if found == self.inode => return None,
            Ok(_) => "replaced",
            Err(error) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()) => "deleted",
            Err(_) => return None,
        };
        Some(format!("{} was {what} while the daemon was running", self.path.display()))
    }
}

/// Does not ask for times. After a question for the time of a change, Linux gives the next write a time of its own, and the next sync of
/// the file has to write its inode, too.
fn inode(folder: BorrowedFd<'_>, path: &Path, flags: AtFlags) -> io::Result<Inode> {
    let found = rustix::fs::statx(folder, path, flags, StatxFlags::INO)?;
    Ok((found.stx_dev_major, found.stx_dev_minor, found.stx_ino))
}

/// Tells one version of a file from another without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileVersion {
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

impl FileVersion {
    pub fn of(meta: &Metadata) -> Self {
        Self { inode: meta.ino(), bytes: meta.len(), modified: (meta.mtime(), meta.mtime_nsec()) }
    }

    /// None if there is no file that can be looked at.
    pub fn at(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().as_ref().map(Self::of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deleted_or_replaced_file_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let file = File::create(&path).unwrap();
        let identity = FileIdentity::of(&file, &path).unwrap();
        assert_eq!(identity.lost(), None);
        std::fs::remove_file(&path).unwrap();
        assert!(identity.lost().unwrap().contains("deleted"));
        // The old file is still open, so its inode is not free for the new one.
        std::fs::write(&path, "another").unwrap();
        assert!(identity.lost().unwrap().contains("replaced"));
    }
}
