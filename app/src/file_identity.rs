//! A file by its identity on disk. A path can be deleted or replaced while a process still has the old file open; then everything
//! that the process writes is lost with it.

use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl FileIdentity {
    /// The file that has this path now.
    pub fn at(path: &Path) -> std::io::Result<Self> {
        let found = std::fs::symlink_metadata(path)?;
        Ok(Self { path: path.to_owned(), device: found.dev(), inode: found.ino() })
    }

    /// An open file that should have this path.
    pub fn of(file: &File, path: &Path) -> std::io::Result<Self> {
        let open = file.metadata()?;
        Ok(Self { path: path.to_owned(), device: open.dev(), inode: open.ino() })
    }

    /// What has happened to the path, if it no longer leads to the file. A path that cannot be looked at counts as unchanged:
    /// that is another problem.
    pub fn lost(&self) -> Option<String> {
        let what = match std::fs::symlink_metadata(&self.path) {
            Ok(found) if (found.dev(), found.ino()) == (self.device, self.inode) => return None,
            Ok(_) => "replaced",
            Err(error) if [std::io::ErrorKind::NotFound, std::io::ErrorKind::NotADirectory].contains(&error.kind()) => {
                "deleted"
            }
            Err(_) => return None,
        };
        Some(format!("{} was {what} while the daemon was running", self.path.display()))
    }
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
