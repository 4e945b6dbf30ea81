//! Opens files in `.hatchery` without following symbolic links, at whatever level: a link would lead our reading or writing elsewhere.
//! The path of a project has no links, because it was resolved when the project was found.
//!
//! An agent can write into its own folder. So a FIFO in the place of a file is refused, too: opening it might never return.

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

/// Why something is not opened that is in the place of a file.
#[derive(Debug, thiserror::Error)]
enum NotOrdinary {
    #[error("{} leads through a symbolic link, which is not followed", .0.display())]
    Link(PathBuf),
    #[error("{} is not an ordinary file", .0.display())]
    Special(PathBuf),
}

/// Whether a file was not opened because it is a link, a FIFO or the like. Trying again would not help.
pub fn is_not_ordinary(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<NotOrdinary>())
}

/// For reading.
pub fn open(path: &Path) -> io::Result<File> {
    open_file(path, OFlags::RDONLY)
}

/// The whole content.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    io::Read::read_to_end(&mut open(path)?, &mut content)?;
    Ok(content)
}

/// For reading and appending. Creates the file, for the user alone, if it is missing.
pub fn append(path: &Path) -> io::Result<File> {
    open_file(path, OFlags::RDWR | OFlags::APPEND | OFlags::CREATE)
}

/// Opens an ordinary file, and never waits.
pub fn open_file(path: &Path, flags: OFlags) -> io::Result<File> {
    let (file, _) = open_known(path, flags)?;
    // The flag was for the opening. A process may inherit a file that it writes.
    if flags.intersects(OFlags::WRONLY | OFlags::RDWR) {
        rustix::fs::fcntl_setfl(&file, flags & OFlags::APPEND)?;
    }
    Ok(file)
}

/// The same for a file that no other process inherits, with what is known of the file.
pub fn open_known(path: &Path, flags: OFlags) -> io::Result<(File, Metadata)> {
    let refused = || io::Error::other(NotOrdinary::Special(path.to_owned()));
    let file = match open_with(path, flags | OFlags::NONBLOCK) {
        // A FIFO without a reader, or a socket.
        Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => return Err(refused()),
        opened => opened?,
    };
    let known = file.metadata()?;
    if known.is_file() { Ok((file, known)) } else { Err(refused()) }
}

/// Refuses a folder that is a symbolic link or is reached through one.
pub fn check_folder(path: &Path) -> io::Result<()> {
    match open_with(path, OFlags::RDONLY | OFlags::DIRECTORY) {
        // The system looks first at what it is, and a link is no folder.
        Err(error) if error.kind() == io::ErrorKind::NotADirectory && path.is_symlink() => {
            Err(io::Error::other(NotOrdinary::Link(path.to_owned())))
        }
        opened => opened.map(drop),
    }
}

pub fn open_with(path: &Path, flags: OFlags) -> io::Result<File> {
    let mode = if flags.contains(OFlags::CREATE) { Mode::RUSR | Mode::WUSR } else { Mode::empty() };
    match resolve(path, flags | OFlags::CLOEXEC | OFlags::NOFOLLOW, mode) {
        Ok(file) => Ok(file),
        Err(Errno::LOOP) => Err(io::Error::other(NotOrdinary::Link(path.to_owned()))),
        Err(error) => Err(error.into()),
    }
}

#[cfg(target_os = "linux")]
fn resolve(path: &Path, flags: OFlags, mode: Mode) -> Result<File, Errno> {
    use rustix::fs::{ResolveFlags, openat2};
    match openat2(CWD, path, flags, mode, ResolveFlags::NO_SYMLINKS) {
        Ok(file) => Ok(file.into()),
        // A kernel or a sandbox that does not know the call.
        Err(Errno::NOSYS | Errno::PERM) => at_the_end(path, flags, mode),
        Err(error) => Err(error),
    }
}

#[cfg(not(target_os = "linux"))]
fn resolve(path: &Path, flags: OFlags, mode: Mode) -> Result<File, Errno> {
    at_the_end(path, flags, mode)
}

/// Only the last part of the path is looked at.
fn at_the_end(path: &Path, flags: OFlags, mode: Mode) -> Result<File, Errno> {
    rustix::fs::openat(CWD, path, flags, mode).map(File::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn no_link_is_followed_at_any_level() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("real/deep")).unwrap();
        std::fs::write(root.join("real/deep/file"), "precious").unwrap();
        symlink(root.join("real"), root.join("link")).unwrap();
        symlink(root.join("real/deep/file"), root.join("real/deep/other")).unwrap();
        assert_eq!(read(&root.join("real/deep/file")).unwrap(), b"precious");
        check_folder(&root.join("real/deep")).unwrap();
        let followed = [
            append(&root.join("real/deep/other")).err(),
            append(&root.join("link/deep/file")).err(),
            append(&root.join("link/deep/new")).err(),
            check_folder(&root.join("link/deep")).err(),
            check_folder(&root.join("link")).err(),
        ];
        for error in followed {
            let error = error.expect("a link was followed").to_string();
            assert!(error.contains("symbolic link") || error.contains("Not a directory"), "{error}");
        }
        assert!(!root.join("real/deep/new").exists());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_is_no_ordinary_file_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let fifo = root.join("fifo");
        rustix::fs::mkfifoat(CWD, &fifo, Mode::RUSR | Mode::WUSR).unwrap();
        symlink("/etc/hostname", root.join("link")).unwrap();
        let refused = [
            open(&fifo).err(),
            append(&fifo).err(),
            open_file(&fifo, OFlags::WRONLY).err(),
            open(&root.join("link")).err(),
            open(&root).err(),
        ];
        assert!(refused.iter().all(|error| error.as_ref().is_some_and(is_not_ordinary)), "{refused:?}");
        assert!(!is_not_ordinary(&open(&root.join("missing")).unwrap_err()));
        let mut file = append(&root.join("file")).unwrap();
        io::Write::write_all(&mut file, b"a line").unwrap();
        assert_eq!(read(&root.join("file")).unwrap(), b"a line");
    }
}
