//! How far a session has come, in two files named after its id: its script, and the place in it. The place is written before the
//! step is played, so that a session goes on after the step at which it died, and a crash is not repeated.
//!
//! It outlives the process, not the machine: nothing is synced.

use super::script::{Script, ScriptStep};
use hatchery_core::Usage;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    #[error("No conversation found with session ID: {0}")]
    Unknown(String),
    #[error("Session ID {0} is already in use.")]
    InUse(String),
    #[error("invalid script: {0}")]
    BadScript(String),
    #[error("the state of session {id} cannot be used: {error}")]
    Unusable { id: String, error: io::Error },
}

#[derive(Debug)]
pub struct Memory {
    folder: PathBuf,
    id: String,
    script: Script,
    place: SessionProgress,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct SessionProgress {
    /// The step that comes next.
    next: usize,
    /// What the session has used, its past before a fork included, as the real CLI counts.
    total: Usage,
}

/// Refuses an id that a session has already.
pub fn free(folder: &Path, id: &str) -> Result<(), MemoryError> {
    match place_file(folder, id).exists() {
        true => Err(MemoryError::InUse(id.to_owned())),
        false => Ok(()),
    }
}

impl Memory {
    pub fn begin(folder: &Path, id: &str, script: Option<String>) -> Result<Self, MemoryError> {
        let text = script.unwrap_or_default();
        let script = Script::read(&text).map_err(MemoryError::BadScript)?;
        let memory = Self { folder: folder.to_owned(), id: id.to_owned(), script, place: SessionProgress::default() };
        let written = fs::create_dir_all(folder)
            .and_then(|()| fs::write(script_file(folder, id), text))
            .and_then(|()| memory.write());
        written.map_err(|error| memory.unusable(error))?;
        Ok(memory)
    }

    pub fn resume(folder: &Path, id: &str) -> Result<Self, MemoryError> {
        let unusable = |error: io::Error| match error.kind() {
            ErrorKind::NotFound => MemoryError::Unknown(id.to_owned()),
            _ => MemoryError::Unusable { id: id.to_owned(), error },
        };
        let place = fs::read(place_file(folder, id)).map_err(unusable)?;
        let place = serde_json::from_slice(&place).map_err(|error| unusable(error.into()))?;
        let script = fs::read_to_string(script_file(folder, id)).map_err(unusable)?;
        let script = Script::read(&script).map_err(MemoryError::BadScript)?;
        Ok(Self { folder: folder.to_owned(), id: id.to_owned(), script, place })
    }

    /// Another session that goes on from where this one is.
    pub fn fork(folder: &Path, from: &str, to: &str) -> Result<Self, MemoryError> {
        let mut memory = Self::resume(folder, from)?;
        free(folder, to)?;
        memory.id = to.to_owned();
        let written = fs::copy(script_file(folder, from), script_file(folder, to)).and_then(|_| memory.write());
        written.map_err(|error| memory.unusable(error))?;
        Ok(memory)
    }

    /// Whether the script has come to its end.
    pub fn done(&self) -> bool {
        self.place.next >= self.script.steps.len()
    }

    /// The next step, which will not come again, unless the process dies while it asks for permission.
    pub fn step(&mut self) -> Result<Option<ScriptStep>, MemoryError> {
        let Some(step) = self.script.steps.get(self.place.next).cloned() else { return Ok(None) };
        self.place.next += 1;
        match &step {
            ScriptStep::Cost(price) => self.place.total += price.usage(),
            ScriptStep::Again => self.place.next = 0,
            // It is over when the next step begins.
            ScriptStep::Ask { .. } => return Ok(Some(step)),
            _ => {}
        }
        self.write().map_err(|error| self.unusable(error))?;
        Ok(Some(step))
    }

    /// Passes over what is left of the turn.
    pub fn skip_turn(&mut self) -> Result<(), MemoryError> {
        let mut left = self.script.steps.iter().enumerate().skip(self.place.next);
        self.place.next = match left.find(|(_, step)| matches!(step, ScriptStep::Turn | ScriptStep::Again)) {
            Some((_, ScriptStep::Again)) => 0,
            Some((at, _)) => at + 1,
            None => self.script.steps.len(),
        };
        self.write().map_err(|error| self.unusable(error))
    }

    /// Ends the turn at the place that it has come to.
    pub fn leave_turn(&mut self) -> Result<(), MemoryError> {
        match self.script.steps.get(self.place.next) {
            Some(ScriptStep::Turn | ScriptStep::Again) => self.skip_turn(),
            Some(_) | None => Ok(()),
        }
    }

    /// What the session has used in all. As with the real CLI, a turn that is killed has cost what it had cost by then.
    pub fn total(&self) -> Usage {
        self.place.total
    }

    /// Whole or not at all.
    fn write(&self) -> io::Result<()> {
        let fresh = self.folder.join(format!("{}.new", self.id));
        fs::write(&fresh, serde_json::to_vec(&self.place)?)?;
        fs::rename(&fresh, place_file(&self.folder, &self.id))
    }

    fn unusable(&self, error: io::Error) -> MemoryError {
        MemoryError::Unusable { id: self.id.clone(), error }
    }
}

fn place_file(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.json"))
}

fn script_file(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.script"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn again_begins_anew_also_after_what_was_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let script = "{\"text\": \"one\"}\n\"again\"\n{\"text\": \"never\"}\n".to_owned();
        let mut memory = Memory::begin(folder.path(), "s", Some(script)).unwrap();
        let is_one = |step: Option<ScriptStep>| matches!(step, Some(ScriptStep::Text(text)) if text == "one");
        for _ in 0..2 {
            assert!(is_one(memory.step().unwrap()));
            assert!(matches!(memory.step().unwrap(), Some(ScriptStep::Again)));
            assert!(!memory.done());
        }
        assert!(is_one(memory.step().unwrap()));
        memory.skip_turn().unwrap();
        assert!(is_one(Memory::resume(folder.path(), "s").unwrap().step().unwrap()), "it is remembered");
    }
}
