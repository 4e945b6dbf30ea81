//! The folder of a selftest, in `.hatchery`. The selftest holds a lock in it as long as it runs, so a folder whose selftest was killed can
//! be told from one that is in use.

use crate::project::{Project, flock};
use crate::run_folder;
use rustix::fs::FlockOperation;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// What the names of the folders begin with.
pub const PREFIX: &str = "selftest-";
/// The folder itself is locked by the daemon of the selftest, as the root of its project.
const LOCK: &str = "selftest.lock";

/// Holds the lock until it is dropped.
pub fn hold(folder: &Path) -> io::Result<File> {
    let file = File::options().write(true).create(true).truncate(false).open(folder.join(LOCK))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive)? {
        true => Ok(file),
        false => Err(io::Error::other("another process has locked it")),
    }
}

/// The folders whose selftest is gone, and in which no daemon and no process of an agent is left.
pub fn abandoned(project: &Project) -> io::Result<Vec<PathBuf>> {
    let mut abandoned = Vec::new();
    for folder in run_folder::subfolders(&project.data())? {
        let is_ours = folder.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(PREFIX));
        if is_ours && !is_in_use(&folder)? {
            abandoned.push(folder);
        }
    }
    Ok(abandoned)
}

fn is_in_use(folder: &Path) -> io::Result<bool> {
    let Ok(_lock) = hold(folder) else { return Ok(true) };
    let Ok(project) = Project::find(folder) else { return Ok(false) };
    if project.root() != folder {
        return Ok(false);
    }
    let mut runs = run_folder::all(&project)?.into_iter();
    Ok(project.is_served() || runs.any(|(_, run)| run.may_be_held()))
}
