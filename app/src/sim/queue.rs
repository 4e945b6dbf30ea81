//! A folder of scripts. Each script is played by one agent: the agent that renames the file has it.

use std::io::{ErrorKind, Result};
use std::path::{Path, PathBuf};

/// The folder of scripts that were taken.
const TAKEN: &str = "taken";

/// Takes the next script in the order of names, if there is one left.
pub fn claim(folder: &Path) -> Result<Option<PathBuf>> {
    let taken = folder.join(TAKEN);
    std::fs::create_dir_all(&taken)?;
    loop {
        let waiting = waiting(folder)?;
        if waiting.is_empty() {
            return Ok(None);
        }
        for name in waiting {
            let ours = taken.join(&name);
            match std::fs::rename(folder.join(&name), &ours) {
                Ok(()) => return Ok(Some(ours)),
                // Another agent was faster.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// The names of the scripts that no agent has taken yet. A name that begins with a dot is still being written.
fn waiting(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_file() && !name.starts_with('.') {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}
