//! Files that only this program can have put where they are. Such a file names its own inode and the time of its creation, which
//! are unknown before the file exists. So a file that came with a checkout, an archive or a copy is told from one that was written
//! here. This does not stop programs that run as the user.

use crate::no_links;
use rustix::fs::OFlags;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::Metadata;
use std::io::{self, Error, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::UNIX_EPOCH;

/// A longer file is not one of ours, and is not read into memory.
const MAX_BYTES: u64 = 64 << 20;

/// What tells a file or folder from every other one, also from one with the same path and content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileMark {
    inode: u64,
    /// Nanoseconds since 1970; missing where the file system does not keep it.
    born: Option<u64>,
}

impl FileMark {
    pub fn of(found: &Metadata) -> Self {
        let born = found.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        Self { inode: found.ino(), born: born.and_then(|at| u64::try_from(at.as_nanos()).ok()) }
    }

    /// Of the file that has this path. A symbolic link is not followed.
    pub fn at(path: &Path) -> io::Result<Self> {
        std::fs::symlink_metadata(path).map(|found| Self::of(&found))
    }
}

#[derive(Serialize, Deserialize)]
struct Sealed<T> {
    /// This file.
    file: FileMark,
    #[serde(flatten)]
    content: T,
}

/// Writes a file so that readers see the old content or the new. Durable when it returns.
pub fn write(path: &Path, content: &impl Serialize) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let closed = std::fs::Permissions::from_mode(0o600);
    let mut file = tempfile::Builder::new().permissions(closed).tempfile_in(folder)?;
    let sealed = Sealed { file: FileMark::of(&file.as_file().metadata()?), content };
    file.write_all(&serde_json::to_vec_pretty(&sealed)?)?;
    file.as_file().sync_all()?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

/// The content of a file that was written here. None if there is no file; a file that was written elsewhere is an error.
pub fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    let Some((mark, bytes)) = open(path)? else { return Ok(None) };
    let sealed: Sealed<T> = serde_json::from_slice(&bytes)?;
    match sealed.file == mark {
        true => Ok(Some(sealed.content)),
        false => Err(Error::new(ErrorKind::InvalidData, "it was not written in this place")),
    }
}

/// Takes a file that was written elsewhere as written here, because the user says so. A file that cannot be read stays as it is.
pub fn adopt(path: &Path) -> io::Result<()> {
    let Some((_, bytes)) = open(path)? else { return Ok(()) };
    let Ok(mut content) = serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(&bytes) else {
        return Ok(());
    };
    // The first versions did not seal files.
    content.remove("file");
    write(path, &content)
}

fn open(path: &Path) -> io::Result<Option<(FileMark, Vec<u8>)>> {
    let (file, known) = match no_links::open_known(path, OFlags::RDONLY) {
        Ok(opened) => opened,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    // One more byte, so that the end of the file is seen at once.
    let mut bytes = Vec::with_capacity(usize::try_from(known.len().min(MAX_BYTES)).unwrap_or(0) + 1);
    file.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(Some((FileMark::of(&known), bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    type Content = BTreeMap<String, u64>;

    #[test]
    fn only_a_file_that_was_written_in_its_place_is_believed() {
        let folder = tempfile::tempdir().unwrap();
        let [here, copy] = ["here", "copy"].map(|name| folder.path().join(name));
        assert_eq!(read::<Content>(&here).unwrap(), None);
        let content: Content = [("a".to_owned(), 1)].into();
        write(&here, &content).unwrap();
        assert_eq!(read::<Content>(&here).unwrap().as_ref(), Some(&content));
        // As git and archives put files into their places: the old one goes, and a new one comes.
        let bytes = std::fs::read(&here).unwrap();
        std::fs::write(&copy, &bytes).unwrap();
        std::fs::rename(&copy, &here).unwrap();
        assert!(read::<Content>(&here).unwrap_err().to_string().contains("not written in this place"));
        adopt(&here).unwrap();
        assert_eq!(read::<Content>(&here).unwrap().as_ref(), Some(&content));
        std::fs::write(&here, serde_json::to_vec(&content).unwrap()).unwrap();
        assert!(read::<Content>(&here).is_err(), "a file of the first version is not sealed");
        adopt(&here).unwrap();
        assert_eq!(read::<Content>(&here).unwrap().as_ref(), Some(&content));
        std::os::unix::fs::symlink(&here, &copy).unwrap();
        assert!(read::<Content>(&copy).is_err());
    }
}
