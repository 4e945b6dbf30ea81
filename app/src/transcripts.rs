//! The transcripts that the Claude CLI keeps of the conversations of this project: which there are, what stands in them, and
//! which of them a process is at. They belong to the CLI; here they are only ever read. What a line means is in
//! [`hatchery_core::transcript`], and what the CLI does with its folders is in `docs/claude-cli.md`.
//!
//! A transcript may be large. It is read twice: once to find the path through it, of which only places are kept, and once
//! along that path, a chunk at a time.

mod scan;

pub(crate) use scan::{LineSpan, first_line};
pub use scan::{Transcript, TranscriptMessage};

use crate::processes;
use hatchery_core::Timestamp;
use serde::Deserialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// The largest transcript that is read. What is kept of it while it is read grows with its lines.
pub const MAX_TRANSCRIPT_BYTES: u64 = 1 << 30;
/// How many conversations are listed, the latest first: each is read from end to end to be told about.
pub const MAX_LISTED: usize = 500;
/// The name of a folder is cut here by the CLI, which then adds a sum over the rest that only it knows.
const CUT_CHARS: usize = 200;
/// A note about a process is a few hundred bytes.
const MAX_NOTE_BYTES: u64 = 64 << 10;

/// Where to look.
#[derive(Clone, Debug)]
pub struct Transcripts {
    /// The project.
    root: PathBuf,
    /// What the CLI calls its configuration folder, when it can be known.
    config: Option<PathBuf>,
}

/// What a transcript is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The CLI's name for the conversation.
    pub session: String,
    /// The folder that it was held in, relative to the project's root; the root itself without.
    pub folder: Option<String>,
    /// When something was last written.
    pub written: Timestamp,
    /// How many messages its history has.
    pub messages: u64,
    /// The beginning of the first line that a person said.
    pub first_prompt: Option<String>,
    /// Lines that are cut off, too long, or not JSON.
    pub unread: u64,
}

#[derive(Debug, Default)]
pub struct TranscriptList {
    /// The latest first.
    pub sessions: Vec<Summary>,
    /// Files that are too large or cannot be read.
    pub passed_over: u64,
    /// Older ones that were not even looked at.
    pub left_out: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum TranscriptError {
    #[error("neither CLAUDE_CONFIG_DIR nor HOME is set where the daemon runs")]
    NoHome,
    #[error("there is no conversation `{0}` of this project")]
    NoSuch(String),
    #[error("`{reference}` may mean any of {}", candidates.join(", "))]
    Ambiguous { reference: String, candidates: Vec<String> },
    #[error("{} is {bytes} bytes long", file.display())]
    TooLarge { file: PathBuf, bytes: u64 },
    #[error("{} cannot be read: {source}", file.display())]
    Unreadable { file: PathBuf, source: io::Error },
}

/// A file that may be a transcript of this project.
#[derive(Debug)]
struct Candidate {
    session: String,
    file: PathBuf,
    written: Timestamp,
}

impl Transcripts {
    /// For a CLI that is started with this environment in this project.
    pub fn new(root: &Path, environment: &BTreeMap<String, String>) -> Self {
        let set = |name: &str| environment.get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let config = set("CLAUDE_CONFIG_DIR").or_else(|| set("HOME").map(|home| home.join(".claude")));
        Self { root: root.to_owned(), config }
    }

    /// Where the transcripts of all projects are.
    pub fn folder(&self) -> Result<PathBuf, TranscriptError> {
        self.config.as_ref().map(|config| config.join("projects")).ok_or(TranscriptError::NoHome)
    }

    /// The conversations that were held in this project or in a folder of it.
    pub fn list(&self) -> Result<TranscriptList, TranscriptError> {
        let mut candidates = self.candidates()?;
        candidates.sort_by_key(|candidate| Reverse(candidate.written));
        let left_out = candidates.len().saturating_sub(MAX_LISTED) as u64;
        candidates.truncate(MAX_LISTED);
        let mut listed = TranscriptList { sessions: Vec::new(), passed_over: 0, left_out };
        for candidate in candidates {
            match self.read(candidate) {
                Ok(transcript) => listed.sessions.extend(transcript.map(|transcript| transcript.summary)),
                Err(error) => {
                    tracing::warn!(%error, "a transcript is passed over");
                    listed.passed_over += 1;
                }
            }
        }
        Ok(listed)
    }

    /// The one conversation whose name begins so.
    pub fn find(&self, reference: &str) -> Result<Transcript, TranscriptError> {
        let missing = || TranscriptError::NoSuch(reference.chars().take(40).collect());
        let mut candidates = self.candidates()?;
        candidates.retain(|candidate| !reference.is_empty() && candidate.session.starts_with(reference));
        match candidates.len() {
            0 => Err(missing()),
            1 => candidates.pop().map_or(Ok(None), |only| self.read(only))?.ok_or_else(missing),
            _ => {
                let candidates = candidates.into_iter().map(|candidate| candidate.session).collect();
                Err(TranscriptError::Ambiguous { reference: reference.to_owned(), candidates })
            }
        }
    }

    /// The conversations that a process is at, as the CLI notes it. Older versions note nothing.
    pub fn running(&self) -> BTreeMap<String, u32> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct SessionNote {
            pid: u32,
            session_id: String,
            proc_start: Option<String>,
        }
        let read = |file: PathBuf| -> Option<SessionNote> {
            // There are keys beside the notes, and keys must not be read.
            let is_note = file.extension().is_some_and(|extension| extension == "json");
            let small = is_note && fs::metadata(&file).is_ok_and(|meta| meta.is_file() && meta.len() <= MAX_NOTE_BYTES);
            small.then(|| serde_json::from_slice(&fs::read(&file).ok()?).ok()).flatten()
        };
        // A CLI that was killed leaves its note behind, and its process id may belong to another process by now.
        let lives = |note: &SessionNote| {
            let noted = note.proc_start.as_ref().and_then(|start| start.parse::<u64>().ok());
            processes::began(note.pid).is_some_and(|began| noted.is_none_or(|noted| noted == began))
        };
        let notes = self.config.iter().flat_map(|config| files(&config.join("sessions")));
        notes.filter_map(read).filter(lives).map(|note| (note.session_id, note.pid)).collect()
    }

    fn candidates(&self) -> Result<Vec<Candidate>, TranscriptError> {
        let name = slug(&self.root);
        let stem = &name[..name.len().min(CUT_CHARS)];
        // Different folders may have the same name, and those below have longer ones: the lines tell which it was.
        let folders = files(&self.folder()?).filter(|folder| {
            folder.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(stem))
        });
        Ok(folders.flat_map(|folder| files(&folder)).filter_map(candidate).collect())
    }

    /// The transcript, if it is one of this project and anything was said in it.
    fn read(&self, candidate: Candidate) -> Result<Option<Transcript>, TranscriptError> {
        let Candidate { session, file, written } = candidate;
        let unreadable = |source| TranscriptError::Unreadable { file: file.clone(), source };
        let bytes = fs::metadata(&file).map_err(unreadable)?.len();
        if bytes > MAX_TRANSCRIPT_BYTES {
            return Err(TranscriptError::TooLarge { file, bytes });
        }
        let scanned = scan::scan(&file).map_err(unreadable)?;
        let folder = scanned.folder.as_deref().and_then(|folder| Path::new(folder).strip_prefix(&self.root).ok());
        let Some(folder) = folder.filter(|_| scanned.messages > 0) else { return Ok(None) };
        let folder = folder.to_str().filter(|folder| !folder.is_empty()).map(str::to_owned);
        let scan::TranscriptScan { messages, first_prompt, unread, path, .. } = scanned;
        let summary = Summary { session, folder, written, messages, first_prompt, unread };
        Ok(Some(Transcript { summary, files: vec![file], path, said: scan::said }))
    }
}

/// What the CLI calls the folder for the conversations of a folder: whatever is neither a letter nor a digit of ASCII becomes
/// a dash, counted in units of UTF-16.
fn slug(folder: &Path) -> String {
    let text = folder.to_string_lossy();
    let units = text.encode_utf16().map(|unit| u8::try_from(unit).ok().filter(u8::is_ascii_alphanumeric));
    units.map(|unit| unit.map_or('-', char::from)).collect()
}

/// A transcript is called as its conversation, by a UUID; what else is there belongs to sub-agents.
fn candidate(file: PathBuf) -> Option<Candidate> {
    let session = file.file_name()?.to_str()?.strip_suffix(".jsonl")?;
    let session = uuid::Uuid::try_parse(session).ok().map(|_| session.to_owned())?;
    // Not a pipe, which would never end.
    let meta = fs::metadata(&file).ok().filter(fs::Metadata::is_file)?;
    let since = meta.modified().ok()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    let written = Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
    Some(Candidate { session, file, written })
}

/// What a folder holds. One that is not there holds nothing.
fn files(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_called_as_the_cli_calls_it() {
        // Each was tried with the CLI.
        for (folder, name) in [
            ("/tmp/w/my proj.d/ünter_x", "-tmp-w-my-proj-d--nter-x"),
            ("/tmp/w/a😀b", "-tmp-w-a--b"),
            ("/tmp/w/p2", "-tmp-w-p2"),
        ] {
            assert_eq!(slug(Path::new(folder)), name);
        }
    }

    #[test]
    fn only_a_uuid_is_a_conversation() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["agent-1.jsonl", "b2087215-db90-41b2-a325-a5fbf04c2087.jsonl", "notes.md"] {
            fs::write(folder.path().join(name), "{}").unwrap();
        }
        let found: Vec<Candidate> = files(folder.path()).filter_map(candidate).collect();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].session, "b2087215-db90-41b2-a325-a5fbf04c2087");
    }
}
