//! How much of its context window the user's session has used, as the status line was told last: `.hatchery/context.json`. The status line
//! writes it, because only the status line is told; the daemon shows it in `contextState.usage` of the status document.
//!
//! It has a file of its own: the status line runs at every prompt, and must neither wait for the lock of the status document nor write into
//! the log. A number that is lost with the power is told again.

use crate::project::{Project, write_for_now};
use crate::state_file::read_bounded;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

const FILE: &str = "context.json";
const MAX_BYTES: usize = 1_024;

#[derive(Debug, Serialize, Deserialize)]
struct ContextFile {
    /// Percent, rounded.
    usage: u8,
}

pub fn file(project: &Project) -> PathBuf {
    project.data().join(FILE)
}

/// Percent of the context window. None if a status line was never told.
pub fn read(project: &Project) -> Option<u8> {
    let text = read_bounded(&file(project), MAX_BYTES).ok().flatten()?;
    serde_json::from_slice::<ContextFile>(&text).ok().map(|told| told.usage).filter(|usage| *usage <= 100)
}

/// Notes what a status line was told, if that is new and Hatchery is used in the project. Fails silently: a status line has to print.
pub fn note(project: &Project, percent: f64) {
    let usage = percent.clamp(0.0, 100.0).round() as u8;
    if project.exists()
        && read(project) != Some(usage)
        && let Ok(text) = serde_json::to_vec(&ContextFile { usage })
    {
        write_for_now(&file(project), &text, 0o600).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_number_counts() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::find(folder.path()).unwrap();
        note(&project, 40.0);
        assert_eq!(read(&project), None, "Hatchery is not used here");
        project.prepare().unwrap();
        for (told, shown) in [(71.6, 72), (-3.0, 0), (1e9, 100)] {
            note(&project, told);
            assert_eq!(read(&project), Some(shown));
        }
        std::fs::write(file(&project), r#"{"usage":900}"#).unwrap();
        assert_eq!(read(&project), None);
    }
}
