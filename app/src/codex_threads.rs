//! The threads that codex keeps of this project: which there are, and what stands in them. They belong to codex; here they are only ever
//! read. What a line means is in [`hatchery_core::codex::rollout`].

use crate::no_links;
use crate::spool::Tail;
use crate::transcripts::{
    LineSpan, MAX_LISTED, MAX_TRANSCRIPT_BYTES, Summary, Transcript, TranscriptError, TranscriptList, first_line,
};
use hatchery_core::codex::rollout::{RolloutLine, RolloutThread, parse};
use hatchery_core::{MessageKind, Timestamp};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Folders are by year, month and day.
const DEPTH: usize = 4;
/// How many forks of forks are followed.
const MAX_BASES: usize = 32;
/// How much of a rollout is read to learn whose it is. The first line has the thread with its instructions.
const MAX_FIRST_LINE_BYTES: u64 = 4 << 20;
/// How many rollouts are looked at, the latest first, until enough of this project are found. Codex keeps those of all projects together.
const MAX_LOOKED_AT: usize = 20_000;

/// Where to look.
#[derive(Clone, Debug)]
pub struct CodexThreads {
    /// The project.
    root: PathBuf,
    /// Where the rollouts are, when it can be known.
    sessions: Option<PathBuf>,
}

/// A file that may be a rollout.
#[derive(Clone, Debug)]
struct Rollout {
    file: PathBuf,
    written: Timestamp,
}

impl CodexThreads {
    /// For a codex that is started with this environment in this project.
    pub fn new(root: &Path, environment: &BTreeMap<String, String>) -> Self {
        let set = |name: &str| environment.get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = set("CODEX_HOME").or_else(|| set("HOME").map(|home| home.join(".codex")));
        Self { root: root.to_owned(), sessions: home.map(|home| home.join("sessions")) }
    }

    pub fn folder(&self) -> Option<&Path> {
        self.sessions.as_deref()
    }

    /// The threads that worked in this project or in a folder of it.
    pub fn list(&self) -> TranscriptList {
        let rollouts = self.rollouts();
        let mut latest: Vec<(&String, &Rollout)> = rollouts.iter().collect();
        latest.sort_by_key(|(_, rollout)| Reverse(rollout.written));
        let not_looked_at = latest.len().saturating_sub(MAX_LOOKED_AT) as u64;
        latest.truncate(MAX_LOOKED_AT);
        // What cannot be read is told below.
        let mut own: Vec<(&String, &Rollout)> = latest
            .into_iter()
            .filter(|(_, rollout)| match first_thread(&rollout.file) {
                Ok(thread) => thread.is_some_and(|thread| self.folder_of(&thread).is_some()),
                Err(_) => true,
            })
            .collect();
        let left_out = not_looked_at + own.len().saturating_sub(MAX_LISTED) as u64;
        own.truncate(MAX_LISTED);
        let mut listed = TranscriptList { sessions: Vec::new(), passed_over: 0, left_out };
        for (thread, rollout) in own {
            match self.read(thread, rollout, &rollouts) {
                Ok(transcript) => listed.sessions.extend(transcript.map(|transcript| transcript.summary)),
                Err(error) => {
                    tracing::warn!(%error, "a rollout is passed over");
                    listed.passed_over += 1;
                }
            }
        }
        listed
    }

    /// The one thread whose id begins so.
    pub fn find(&self, reference: &str) -> Result<Transcript, TranscriptError> {
        let missing = || TranscriptError::NoSuch(reference.chars().take(40).collect());
        let rollouts = self.rollouts();
        let mut fitting = rollouts.iter().filter(|(id, _)| !reference.is_empty() && id.starts_with(reference));
        match (fitting.next(), fitting.next()) {
            (Some((id, rollout)), None) => self.read(id, rollout, &rollouts)?.ok_or_else(missing),
            (None, _) => Err(missing()),
            (Some(_), Some(_)) => {
                let candidates = rollouts.keys().filter(|id| id.starts_with(reference)).cloned().collect();
                Err(TranscriptError::Ambiguous { reference: reference.to_owned(), candidates })
            }
        }
    }

    /// The rollouts by their threads. The file of a thread ends with its id.
    fn rollouts(&self) -> BTreeMap<String, Rollout> {
        let mut folders: Vec<(PathBuf, usize)> = self.sessions.iter().map(|folder| (folder.clone(), 0)).collect();
        let mut rollouts = BTreeMap::new();
        while let Some((folder, depth)) = folders.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let path = entry.path();
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() && depth < DEPTH => folders.push((path, depth + 1)),
                    Ok(kind) if kind.is_file() => rollouts.extend(rollout(path)),
                    Ok(_) | Err(_) => {}
                }
            }
        }
        rollouts
    }

    /// The folder of a thread below the project. Nothing for a thread of another project, or of a sub-agent.
    fn folder_of<'a>(&self, thread: &'a RolloutThread) -> Option<&'a Path> {
        let folder = thread.folder.as_deref().filter(|_| !thread.is_subagent)?;
        Path::new(folder).strip_prefix(&self.root).ok()
    }

    /// The thread, if it is one of this project and anything was said in it.
    fn read(
        &self,
        id: &str,
        rollout: &Rollout,
        all: &BTreeMap<String, Rollout>,
    ) -> Result<Option<Transcript>, TranscriptError> {
        let unreadable = |source| TranscriptError::Unreadable { file: rollout.file.clone(), source };
        // A thread of another project is not read any further.
        let Some(thread) = first_thread(&rollout.file).map_err(unreadable)? else { return Ok(None) };
        let Some(folder) = self.folder_of(&thread).filter(|_| thread.id == id) else { return Ok(None) };
        let folder = folder.to_str().filter(|folder| !folder.is_empty()).map(str::to_owned);
        let mut read = ThreadFiles::default();
        read.take(&rollout.file, u64::MAX)?;
        // What a fork has inherited is in the files of others, and comes before its own.
        let mut base = thread.base;
        for _ in 0..MAX_BASES {
            let Some((parent, end)) = base.take() else { break };
            let Some(of_parent) = all.get(&parent) else { break };
            let mut before = ThreadFiles { files: std::mem::take(&mut read.files), ..ThreadFiles::default() };
            base = before.take(&of_parent.file, end)?.and_then(|thread| thread.base);
            before.messages += read.messages;
            before.unread += read.unread;
            before.first_prompt = before.first_prompt.or(read.first_prompt);
            before.path.append(&mut read.path);
            read = before;
        }
        if read.messages == 0 {
            return Ok(None);
        }
        let ThreadFiles { files, path, messages, first_prompt, unread } = read;
        let summary =
            Summary { session: id.to_owned(), folder, written: rollout.written, messages, first_prompt, unread };
        Ok(Some(Transcript { summary, files, path, said }))
    }
}

/// The thread that a rollout is of, by its first line.
fn first_thread(file: &Path) -> io::Result<Option<RolloutThread>> {
    let mut line = Vec::new();
    BufReader::new(no_links::open(file)?.take(MAX_FIRST_LINE_BYTES)).read_until(b'\n', &mut line)?;
    Ok(match parse(&String::from_utf8_lossy(&line)) {
        Ok(RolloutLine::Thread(thread)) => Some(thread),
        Ok(RolloutLine::Said { .. } | RolloutLine::Other) | Err(_) => None,
    })
}

/// What is known of a thread's files after they were read once.
#[derive(Default)]
struct ThreadFiles {
    files: Vec<PathBuf>,
    path: Vec<LineSpan>,
    messages: u64,
    first_prompt: Option<String>,
    unread: u64,
}

impl ThreadFiles {
    /// Reads a file up to an ordinal, and gives the thread that it is of.
    fn take(&mut self, file: &Path, end: u64) -> Result<Option<RolloutThread>, TranscriptError> {
        let unreadable = |source: io::Error| TranscriptError::Unreadable { file: file.to_owned(), source };
        let bytes = fs::metadata(file).map_err(unreadable)?.len();
        if bytes > MAX_TRANSCRIPT_BYTES {
            return Err(TranscriptError::TooLarge { file: file.to_owned(), bytes });
        }
        let number = self.files.len();
        self.files.push(file.to_owned());
        let mut thread = None;
        let mut tail = Tail::open(file, 0).map_err(unreadable)?;
        loop {
            let mut at = tail.position();
            let mut lines = tail.read().map_err(unreadable)?;
            let is_end = lines.is_empty();
            if is_end {
                lines.extend(tail.rest());
            }
            for line in lines {
                let place = LineSpan { file: number, at, bytes: line.bytes.len() };
                at += line.too_long.unwrap_or(line.bytes.len() as u64) + 1;
                match parse(&String::from_utf8_lossy(&line.bytes)) {
                    Ok(RolloutLine::Thread(found)) => thread = thread.or(Some(found)),
                    Ok(RolloutLine::Said { ordinal, said, .. }) if ordinal < end => {
                        let prompt = said.iter().find(|(kind, _)| *kind == MessageKind::User);
                        let prompt = prompt.map(|(_, content)| first_line(content));
                        self.first_prompt = self.first_prompt.take().or(prompt);
                        self.messages += said.len() as u64;
                        self.path.push(place);
                    }
                    Ok(RolloutLine::Said { .. } | RolloutLine::Other) => {}
                    Err(_) => self.unread += 1,
                }
            }
            if is_end {
                return Ok(thread);
            }
        }
    }
}

/// What a line of a rollout says, under its own name.
fn said(line: &str) -> Option<(String, Vec<(MessageKind, String)>)> {
    match parse(line) {
        Ok(RolloutLine::Said { id, said, .. }) => Some((id, said)),
        Ok(RolloutLine::Thread(_) | RolloutLine::Other) | Err(_) => None,
    }
}

fn rollout(file: PathBuf) -> Option<(String, Rollout)> {
    const UUID_CHARS: usize = 36;
    let name = file.file_name()?.to_str()?.strip_prefix("rollout-")?.strip_suffix(".jsonl")?;
    let id = name.get(name.len().checked_sub(UUID_CHARS)?..)?;
    let id = uuid::Uuid::try_parse(id).ok().map(|_| id.to_owned())?;
    let since = fs::metadata(&file).ok()?.modified().ok()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    let written = Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
    Some((id, Rollout { file, written }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    /// The rollout of a thread that worked in `folder`, with one message.
    fn written(sessions: &Path, number: usize, folder: &str) -> PathBuf {
        let id = format!("01a1ef21-0fd7-7473-ab0a-{number:012}");
        let file = sessions.join(format!("rollout-2026-11-18T12-00-00-{id}.jsonl"));
        let meta =
            serde_json::json!({ "type": "session_meta", "payload": { "id": id, "cwd": folder, "source": "cli" } });
        let item =
            serde_json::json!({ "type": "UserMessage", "id": "i", "content": [{ "type": "text", "text": "hello" }] });
        let payload = serde_json::json!({ "type": "item_completed", "item": item });
        let said = serde_json::json!({ "type": "event_msg", "ordinal": 1, "payload": payload });
        fs::write(&file, format!("{meta}\n{said}\n")).unwrap();
        file
    }

    #[test]
    fn threads_of_other_projects_do_not_hide_those_of_this_one() {
        let home = tempfile::tempdir().unwrap();
        let sessions = home.path().join("sessions");
        fs::create_dir(&sessions).unwrap();
        let old = written(&sessions, 0, "/project/inner");
        let past = std::time::SystemTime::now() - std::time::Duration::from_secs(3_600);
        fs::File::options().write(true).open(old).unwrap().set_modified(past).unwrap();
        for number in 1..=MAX_LISTED {
            written(&sessions, number, "/elsewhere");
        }
        let environment = BTreeMap::from([("CODEX_HOME".to_owned(), home.path().display().to_string())]);
        let listed = CodexThreads::new(Path::new("/project"), &environment).list();
        let folders: Vec<_> = listed.sessions.iter().map(|session| session.folder.as_deref()).collect();
        assert_eq!((folders, listed.left_out, listed.passed_over), (vec![Some("inner")], 0, 0));
    }

    #[test]
    fn of_a_thread_of_another_project_only_the_first_line_is_read() {
        let home = tempfile::tempdir().unwrap();
        let sessions = home.path().join("sessions");
        fs::create_dir(&sessions).unwrap();
        let file = written(&sessions, 1, "/elsewhere");
        // A file that is too large to be read would be passed over.
        let mut file = fs::File::options().append(true).open(file).unwrap();
        file.write_all(b"{}\n").unwrap();
        file.set_len(MAX_TRANSCRIPT_BYTES + 1).unwrap();
        let environment = BTreeMap::from([("CODEX_HOME".to_owned(), home.path().display().to_string())]);
        let listed = CodexThreads::new(Path::new("/project"), &environment).list();
        assert_eq!((listed.sessions.len(), listed.passed_over), (0, 0));
    }
}
