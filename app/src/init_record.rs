//! What `hatchery init` has changed in a project, in the user's state folder, so that `hatchery init --undo` gives back the very bytes that
//! were there. Not in the project: settings may hold secrets, and a copy of them could be committed.

use crate::project::{Project, write_whole};
use crate::projects::{name_of, state_folder};
use crate::state_file::read_bounded;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

/// Two settings files, before and after.
const MAX_BYTES: usize = 64 * 1024 * 1024;

#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InitRecord {
    /// By their path below the project.
    pub files: BTreeMap<String, FileRecord>,
    /// Folders that were made, below the project.
    pub folders: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    /// None if there was no file.
    pub before: Option<String>,
    pub after: String,
}

impl InitRecord {
    /// What is known about a project. A record that cannot be read is none: then only what Hatchery put in is taken out.
    pub fn of(project: &Project) -> Self {
        let bytes = file(project).and_then(|file| read_bounded(&file, MAX_BYTES).ok().flatten());
        bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    pub fn keep(&self, project: &Project) -> io::Result<()> {
        let Some(file) = file(project) else { return Ok(()) };
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder)?;
        }
        write_whole(&file, &serde_json::to_vec(self)?, 0o600)
    }

    pub fn forget(project: &Project) {
        // A record that stays describes files that have changed since, so it does nothing.
        file(project).map(std::fs::remove_file).transpose().map(drop).unwrap_or_default();
    }
}

fn file(project: &Project) -> Option<PathBuf> {
    state_folder().map(|state| state.join("init").join(name_of(project.root())).with_extension("json"))
}
