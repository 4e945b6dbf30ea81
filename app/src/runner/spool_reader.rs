//! Turns the lines that an agent's process writes into outputs and partials.

use crate::spool::{self, MAX_LINE_BYTES, RawLine, Tail};
use hatchery_core::harness::Reader;
use hatchery_core::output::Output;
use hatchery_core::partial::Partial;
use std::io;
use std::path::Path;
use std::time::Instant;

/// How many bytes of output are read again to rebuild the state of a reader. Few harnesses need more than the last lines, and all of it is
/// parsed whenever the spool is opened.
const REREAD_BYTES: u64 = 8 << 20;

/// The output of a process, and how far it was read.
pub struct SpoolReader {
    pub tail: Tail,
    reader: Box<dyn Reader>,
    /// The position up to which the output is in the log.
    pub taken: u64,
    /// When an output was last recorded.
    pub recorded: Instant,
    /// Whether the last lines were partials.
    pub is_writing: bool,
    /// How many bytes of the file were freed.
    released: u64,
}

/// The content of some lines.
#[derive(Debug, PartialEq, Eq)]
pub struct LinesRead {
    pub outputs: Vec<Output>,
    /// The partials after the last complete text. Earlier ones no longer matter.
    pub partials: Vec<Partial>,
    /// The text that was being written before is complete, or will never be.
    pub ended: bool,
}

impl SpoolReader {
    /// Opens the spool at a position. The outputs before the position are in the log, so they only rebuild the state of the reader.
    pub fn open(path: &Path, position: u64, mut reader: Box<dyn Reader>) -> io::Result<Self> {
        for line in spool::lines_before(path, position, REREAD_BYTES)? {
            // A line that cannot be read was recorded when it was taken in.
            reader.read(&line).ok();
        }
        Ok(Self {
            tail: Tail::open(path, position)?,
            reader,
            taken: position,
            recorded: Instant::now(),
            is_writing: false,
            released: 0,
        })
    }

    /// The content of the next lines. None if there are no lines at the moment.
    pub fn read(&mut self, path: &Path, to_the_end: bool) -> io::Result<Option<LinesRead>> {
        let mut lines = self.tail.read()?;
        if lines.is_empty() && to_the_end {
            lines.extend(self.tail.rest());
        }
        if lines.is_empty() {
            self.released = spool::release(path, self.taken, self.released)?;
            return Ok(None);
        }
        let mut read = LinesRead { outputs: Vec::new(), partials: Vec::new(), ended: to_the_end };
        for line in &lines {
            match self.reader.partial(&String::from_utf8_lossy(&line.bytes)) {
                Some(partial) => read.partials.push(partial),
                None => {
                    let outputs = parse(self.reader.as_mut(), line);
                    if outputs.iter().any(ends_writing) {
                        (read.ended, read.partials) = (true, Vec::new());
                    }
                    for output in outputs {
                        add(&mut read.outputs, output);
                    }
                }
            }
        }
        Ok(Some(read))
    }
}

/// Joins lines in a row that cannot be read into one output, because a program with an unknown format may write any number of them.
fn add(outputs: &mut Vec<Output>, output: Output) {
    match (outputs.last_mut(), output) {
        (Some(Output::Unread { bytes, .. }), Output::Unread { bytes: more, .. }) => *bytes += more,
        (_, output) => outputs.push(output),
    }
}

/// Whether a text that is being written is complete with this output, or will never be.
fn ends_writing(output: &Output) -> bool {
    matches!(
        output,
        Output::Text { .. }
            | Output::Thinking { .. }
            | Output::ToolUse { .. }
            | Output::TurnEnded(_)
            | Output::ApiError(_)
    )
}

/// The outputs of a line. A line that cannot be read is recorded, not dropped.
fn parse(reader: &mut dyn Reader, line: &RawLine) -> Vec<Output> {
    let unread = |bytes: u64, reason: String| vec![Output::Unread { bytes, reason }];
    if let Some(bytes) = line.too_long {
        return unread(bytes, format!("the line is longer than {MAX_LINE_BYTES} bytes"));
    }
    reader.read(&String::from_utf8_lossy(&line.bytes)).unwrap_or_else(|reason| unread(line.bytes.len() as u64, reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    /// Says a text when its last part is there, as a harness does that writes its texts in parts.
    #[derive(Default)]
    struct Joining(String);

    impl Reader for Joining {
        fn read(&mut self, line: &str) -> Result<Vec<Output>, String> {
            self.0.push_str(line.trim_end_matches('.'));
            Ok(line.ends_with('.').then(|| Output::Text { text: std::mem::take(&mut self.0) }).into_iter().collect())
        }
    }

    #[test]
    fn a_reader_knows_after_a_restart_what_it_knew_before() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"an old text.\nhel\n").unwrap();
        let mut before = SpoolReader::open(file.path(), 0, Box::new(Joining::default())).unwrap();
        let outputs = before.read(file.path(), false).unwrap().unwrap().outputs;
        assert_eq!(outputs, [Output::Text { text: "an old text".into() }]);
        file.write_all(b"lo.\n").unwrap();
        let mut after = SpoolReader::open(file.path(), before.tail.position(), Box::new(Joining::default())).unwrap();
        let outputs = after.read(file.path(), false).unwrap().unwrap().outputs;
        assert_eq!(outputs, [Output::Text { text: "hello".into() }]);
        assert_eq!(after.read(file.path(), false).unwrap(), None);
    }

    #[test]
    fn lines_in_a_row_that_cannot_be_read_are_one_note() {
        use hatchery_core::stream_json::StreamJsonReader;
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"noise\n{\nmore noise\n{\"type\":\"assistant\",\"message\":{\"content\":[]}}\nnoise\n")
            .unwrap();
        let mut spool = SpoolReader::open(file.path(), 0, Box::new(StreamJsonReader::default())).unwrap();
        let outputs = spool.read(file.path(), false).unwrap().unwrap().outputs;
        let notes: Vec<u64> = outputs
            .iter()
            .filter_map(|output| if let Output::Unread { bytes, .. } = output { Some(*bytes) } else { None })
            .collect();
        assert_eq!(notes.iter().sum::<u64>(), 21, "{outputs:?}");
        assert!(notes.len() <= 2, "{outputs:?}");
    }

    /// Pieces of a text are no outputs, and the pieces of a text that is whole are over.
    #[test]
    fn pieces_are_apart_from_what_is_said() {
        use hatchery_core::stream_json::StreamJsonReader;
        let piece = |text: &str| {
            let delta = serde_json::json!({ "type": "text_delta", "text": text });
            let event = serde_json::json!({ "type": "content_block_delta", "index": 0, "delta": delta });
            serde_json::json!({ "type": "stream_event", "event": event, "parent_tool_use_id": null }).to_string()
        };
        let whole = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"one"}]}}"#;
        let mut file = tempfile::NamedTempFile::new().unwrap();
        writeln!(file, "{}", piece("on")).unwrap();
        let mut spool = SpoolReader::open(file.path(), 0, Box::new(StreamJsonReader::default())).unwrap();
        let read = spool.read(file.path(), false).unwrap().unwrap();
        assert_eq!((read.outputs.len(), read.partials.len(), read.ended), (0, 1, false));
        writeln!(file, "{}\n{whole}\n{}", piece("e"), piece("two")).unwrap();
        let read = spool.read(file.path(), false).unwrap().unwrap();
        assert_eq!(read.outputs, [Output::Text { text: "one".into() }]);
        assert_eq!(read.partials.iter().map(|it| it.text.as_str()).collect::<Vec<_>>(), ["two"]);
    }
}
