//! One transcript, read from end to end for its path, and then along it.

use super::Summary;
use crate::spool::Tail;
use hatchery_core::MessageKind;
use hatchery_core::transcript::{LinePart, TranscriptLine, Tree, parse};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// What a list shows of a prompt.
const PROMPT_CHARS: usize = 200;

/// One conversation, and where its history stands in the file.
#[derive(Debug)]
pub struct Transcript {
    pub summary: Summary,
    pub(crate) files: Vec<PathBuf>,
    pub(crate) path: Vec<LineSpan>,
    /// What a line says, under its own name.
    pub(crate) said: SaidInLine,
}

/// Reads what a line says, with the line's own name. Nothing for a line in which nothing is said.
pub(crate) type SaidInLine = fn(&str) -> Option<(String, Vec<(MessageKind, String)>)>;

/// A message of the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptMessage {
    pub kind: MessageKind,
    pub content: String,
    /// The line's own name.
    pub uuid: String,
}

/// What is known of a file after it was read once.
#[derive(Debug, Default)]
pub(super) struct TranscriptScan {
    /// The first folder that is named.
    pub folder: Option<String>,
    pub messages: u64,
    pub first_prompt: Option<String>,
    pub unread: u64,
    pub path: Vec<LineSpan>,
}

/// Where a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineSpan {
    /// The number of its file.
    pub file: usize,
    pub at: u64,
    pub bytes: usize,
}

/// What is kept of a line until the path is known.
struct SeenKnot {
    place: LineSpan,
    messages: u64,
    prompt: Option<String>,
}

/// Reads a file from end to end.
pub(super) fn scan(file: &Path) -> io::Result<TranscriptScan> {
    let mut scanned = TranscriptScan::default();
    let (mut tree, mut seen) = (Tree::default(), Vec::new());
    let mut tail = Tail::open(file, 0)?;
    loop {
        let mut at = tail.position();
        let mut lines = tail.read()?;
        let is_end = lines.is_empty();
        if is_end {
            // A process may be writing it right now, or was killed while it wrote.
            lines.extend(tail.rest());
        }
        for line in lines {
            let place = LineSpan { file: 0, at, bytes: line.bytes.len() };
            at += line.too_long.unwrap_or(line.bytes.len() as u64) + 1;
            match parse(&String::from_utf8_lossy(&line.bytes)) {
                Ok(read) if line.too_long.is_none() => {
                    scanned.folder = scanned.folder.or(read.folder);
                    if let LinePart::Knot(knot) = read.part {
                        tree.add(&knot);
                        let prompt = knot.said.iter().find(|(kind, _)| *kind == MessageKind::User);
                        let prompt = prompt.map(|(_, content)| first_line(content));
                        seen.push(SeenKnot { place, messages: knot.said.len() as u64, prompt });
                    }
                }
                Ok(_) | Err(_) => scanned.unread += 1,
            }
        }
        if is_end {
            break;
        }
    }
    let path = tree.path();
    scanned.messages = path.iter().map(|at| seen[*at].messages).sum();
    scanned.first_prompt = path.iter().find_map(|at| seen[*at].prompt.clone());
    scanned.path = path.iter().map(|at| seen[*at].place).collect();
    Ok(scanned)
}

impl Transcript {
    /// How many lines its history has.
    pub fn lines(&self) -> usize {
        self.path.len()
    }

    /// What is said in the lines of the history from one on, until it is as much as one likes to have at once. Gives the next
    /// line, too.
    pub fn read(
        &self,
        from: usize,
        enough: impl Fn(&[TranscriptMessage]) -> bool,
    ) -> io::Result<(Vec<TranscriptMessage>, usize)> {
        let files = self.files.iter().map(File::open).collect::<io::Result<Vec<File>>>()?;
        let (mut said, mut next) = (Vec::new(), from);
        while let Some(place) = self.path.get(next).filter(|_| !enough(&said)) {
            next += 1;
            let mut bytes = vec![0; place.bytes];
            let file = files.get(place.file).ok_or(io::ErrorKind::NotFound)?;
            file.read_exact_at(&mut bytes, place.at)?;
            let Some((uuid, in_line)) = (self.said)(&String::from_utf8_lossy(&bytes)) else { continue };
            said.extend(in_line.into_iter().map(|(kind, content)| TranscriptMessage {
                kind,
                content,
                uuid: uuid.clone(),
            }));
        }
        Ok((said, next))
    }
}

/// What a line of the Claude CLI says.
pub(super) fn said(line: &str) -> Option<(String, Vec<(MessageKind, String)>)> {
    match parse(line) {
        Ok(TranscriptLine { part: LinePart::Knot(knot), .. }) => Some((knot.uuid, knot.said)),
        Ok(_) | Err(_) => None,
    }
}

pub(crate) fn first_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.chars().take(PROMPT_CHARS).collect()
}
