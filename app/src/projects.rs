//! The projects of this user on this machine: one small file for each, in the user's state folder. A daemon writes the file of its
//! project when it starts. Nothing depends on these files; they only let commands find the other projects.

use crate::project::Project;
use crate::report::{Context as _, Report};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

/// What is written about a project.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    root: PathBuf,
}

/// The folder with the files: below `XDG_STATE_HOME` or `~/.local/state`. None for a user without a home.
fn folder() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
    state.map(|state| state.join("hatchery/projects"))
}

/// Records that a project exists. It may happen as often as one likes.
pub fn record(project: &Project) -> std::io::Result<()> {
    let Some(folder) = folder() else { return Ok(()) };
    std::fs::create_dir_all(&folder)?;
    let entry = serde_json::to_vec(&Entry { root: project.root().to_owned() })?;
    let new = folder.join(format!("{}.{}", name_of(project.root()), std::process::id()));
    std::fs::write(&new, entry)?;
    std::fs::rename(&new, folder.join(name_of(project.root())).with_extension("json"))
}

/// All recorded projects that still exist, by their folder.
pub fn all() -> Result<Vec<Project>, Report> {
    let Some(folder) = folder() else { return Ok(Vec::new()) };
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).context(format_args!("{} cannot be read", folder.display())),
    };
    let mut found = BTreeMap::new();
    for path in
        entries.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|it| it == "json"))
    {
        // A file that cannot be read is a project that is not listed; its daemon writes the file anew.
        let read = std::fs::read(&path).ok().and_then(|bytes| serde_json::from_slice::<Entry>(&bytes).ok());
        let Some(Entry { root }) = read else { continue };
        match Project::find(&root) {
            Ok(project) if project.root() == root && project.exists() => found.insert(root, project),
            // The folder was moved or removed.
            _ => {
                std::fs::remove_file(&path).ok();
                None
            }
        };
    }
    Ok(found.into_values().collect())
}

/// A file name for a folder, the same in every process.
fn name_of(root: &Path) -> String {
    let mut hasher = DefaultHasher::new();
    root.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
