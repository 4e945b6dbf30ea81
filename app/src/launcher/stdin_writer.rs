//! Writes the first lines of an attempt, and then those of its inbox, to the standard input of the process, on a thread of its own. A process that does not read
//! blocks only this thread, and the lines that it has not read stay in the inbox file: nothing is queued in memory.

use super::note;
use crate::run_folder::{Launch, LauncherRequest, RunFolder};
use crate::spool::{RawLine, Tail};
use serde::Deserialize;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

/// How often the output is looked at for an answer that is waited for. Only while a process starts.
const LOOK_PAUSE: Duration = Duration::from_millis(10);

/// What is written before the lines of the inbox.
#[derive(Debug, Default)]
pub struct FirstLines {
    lines: Vec<String>,
    /// The answers to the first of the lines. Each is waited for before the next line is written.
    answers: Vec<AwaitedAnswer>,
}

/// An answer that the process will write.
#[derive(Debug)]
struct AwaitedAnswer {
    id: String,
    output: Tail,
}

impl FirstLines {
    pub fn of(folder: &RunFolder, launch: &Launch) -> io::Result<Self> {
        let answer = |id: &String| Ok(AwaitedAnswer { id: id.clone(), output: Tail::open(&folder.stdout(), 0)? });
        let answers = launch.answers_awaited.iter().map(answer).collect::<io::Result<_>>()?;
        Ok(Self { lines: launch.first_lines.clone(), answers })
    }
}

impl AwaitedAnswer {
    /// Whether the answer is there. Other lines of the output are passed over.
    fn is_there(&mut self) -> io::Result<bool> {
        loop {
            let lines = self.output.read()?;
            if lines.is_empty() {
                return Ok(false);
            }
            if lines.iter().any(|line| self.is_it(line)) {
                return Ok(true);
            }
        }
    }

    /// A request of the process may have the same id: it has a method, and an answer has none.
    fn is_it(&self, line: &RawLine) -> bool {
        #[derive(Deserialize)]
        struct Message {
            id: serde_json::Value,
            #[serde(default)]
            method: serde_json::Value,
        }
        let message: Result<Message, _> = serde_json::from_slice(&line.bytes);
        message.is_ok_and(|message| message.id == *self.id && message.method.is_null())
    }
}

/// Dropping it closes the standard input, after the line that is being written.
#[derive(Debug)]
pub struct StdinWriter {
    /// Room for one wake-up: the thread reads all that is there each time.
    waker: SyncSender<()>,
    closing: Arc<AtomicBool>,
}

impl StdinWriter {
    pub fn start(stdin: impl Write + Send + 'static, first: FirstLines, inbox: &Path) -> io::Result<Self> {
        let inbox = Tail::open(inbox, 0)?;
        let (waker, wakes) = sync_channel(1);
        let closing = Arc::new(AtomicBool::new(false));
        std::thread::Builder::new().name("stdin".into()).spawn({
            let closing = Arc::clone(&closing);
            move || {
                if let Err(error) = write_lines(stdin, first, inbox, &wakes, &closing) {
                    // The next process gets what this one did not read.
                    note(format_args!("nothing more can be written to the process: {error}"));
                }
            }
        })?;
        Ok(Self { waker, closing })
    }

    /// Makes the thread look at the inbox.
    pub fn wake(&self) {
        match self.waker.try_send(()) {
            // Full: a wake-up waits already. Disconnected: the process takes no more input.
            Ok(()) | Err(TrySendError::Full(()) | TrySendError::Disconnected(())) => {}
        }
    }
}

impl Drop for StdinWriter {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Relaxed);
        self.wake();
    }
}

/// Returns, and so closes the input, when a request says so, when the writer is dropped, or when the process is gone.
fn write_lines(
    mut stdin: impl Write,
    first: FirstLines,
    mut inbox: Tail,
    wakes: &Receiver<()>,
    closing: &AtomicBool,
) -> io::Result<()> {
    let mut answers = first.answers.into_iter();
    for line in first.lines {
        stdin.write_all(format!("{line}\n").as_bytes())?;
        // A process that never answers is silent, and the supervisor notices that.
        if let Some(mut answer) = answers.next() {
            while !answer.is_there()? {
                if closing.load(Ordering::Relaxed) {
                    return Ok(());
                }
                std::thread::sleep(LOOK_PAUSE);
            }
        }
    }
    loop {
        let lines = inbox.read()?;
        if lines.is_empty() && wakes.recv().is_err() {
            return Ok(());
        }
        for line in lines {
            if closing.load(Ordering::Relaxed) {
                return Ok(());
            }
            match serde_json::from_slice(&line.bytes) {
                Ok(LauncherRequest::Write { mut line, .. }) => {
                    line.push('\n');
                    stdin.write_all(line.as_bytes())?;
                }
                Ok(LauncherRequest::CloseInput) => return Ok(()),
                // The `requests` thread obeys the first and complains about the second.
                Ok(LauncherRequest::Stop { .. }) | Err(_) => {}
            }
        }
        if closing.load(Ordering::Relaxed) {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_folder::RunFolder;
    use std::io::{BufRead as _, BufReader};

    fn line(number: usize) -> LauncherRequest {
        LauncherRequest::Write { id: number.to_string(), line: format!("{number} {}", "x".repeat(1_000)) }
    }

    #[test]
    fn what_a_slow_reader_has_not_read_waits_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let folder = RunFolder::at(folder.path().join("1-1"));
        folder.create_for_agent().unwrap();
        let (reader, stdin) = io::pipe().unwrap();
        let writer = StdinWriter::start(stdin, first(&["hello"]), &folder.inbox()).unwrap();
        // More than fits into a pipe, while nothing is read.
        let requests: Vec<LauncherRequest> = (0..500).map(line).collect();
        for some in requests.chunks(100) {
            folder.append_requests(some).unwrap();
            writer.wake();
        }
        folder.append_requests(&[LauncherRequest::CloseInput]).unwrap();
        writer.wake();
        let read: Vec<String> = BufReader::new(reader).lines().map(Result::unwrap).collect();
        assert_eq!((read.len(), read[0].as_str()), (501, "hello"));
        assert!(read[1..].iter().enumerate().all(|(number, line)| line.starts_with(&format!("{number} "))));
    }

    fn first(lines: &[&str]) -> FirstLines {
        FirstLines { lines: lines.iter().map(|line| (*line).to_owned()).collect(), answers: Vec::new() }
    }

    /// The process sees the second line only when it has answered the first, and so on.
    #[test]
    fn the_answer_to_the_first_line_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let folder = RunFolder::at(folder.path().join("1-1"));
        folder.create_for_agent().unwrap();
        let mut output = std::fs::File::options().append(true).open(folder.stdout()).unwrap();
        let (reader, stdin) = io::pipe().unwrap();
        let answer = |id: &str| AwaitedAnswer { id: id.into(), output: Tail::open(&folder.stdout(), 0).unwrap() };
        let lines = FirstLines { answers: vec![answer("hello"), answer("open")], ..first(&["one", "two", "three"]) };
        folder.append_requests(&[LauncherRequest::CloseInput]).unwrap();
        let _writer = StdinWriter::start(stdin, lines, &folder.inbox()).unwrap();
        let mut reader = BufReader::new(reader);
        let mut read = |expected: &str| {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            assert_eq!(line, expected);
        };
        read("one\n");
        // Noise, another answer, a request with the same id, and a line without its end are none.
        let noise = "hello\n{\"id\":7,\"result\":{}}\n{\"id\":\"hello\",\"method\":\"x\"}\n{\"id\":\"hello\",";
        output.write_all(noise.as_bytes()).unwrap();
        let mut seen = AwaitedAnswer { id: "hello".into(), output: Tail::open(&folder.stdout(), 0).unwrap() };
        assert!(!seen.is_there().unwrap());
        output.write_all(b"\"error\":{}}\n").unwrap();
        assert!(seen.is_there().unwrap());
        read("two\n");
        output.write_all(b"{\"id\":\"open\",\"result\":{}}\n").unwrap();
        read("three\n");
        read("");
    }

    #[test]
    fn a_stop_does_not_wait_for_an_answer() {
        let folder = tempfile::tempdir().unwrap();
        let folder = RunFolder::at(folder.path().join("1-1"));
        folder.create_for_agent().unwrap();
        let (mut reader, stdin) = io::pipe().unwrap();
        let answers = vec![AwaitedAnswer { id: "hello".into(), output: Tail::open(&folder.stdout(), 0).unwrap() }];
        drop(StdinWriter::start(stdin, FirstLines { answers, ..first(&["one", "two"]) }, &folder.inbox()).unwrap());
        let mut rest = String::new();
        io::Read::read_to_string(&mut reader, &mut rest).unwrap();
        assert_eq!(rest, "one\n");
    }

    #[test]
    fn dropping_the_writer_closes_the_input() {
        let folder = tempfile::tempdir().unwrap();
        let folder = RunFolder::at(folder.path().join("1-1"));
        folder.create_for_agent().unwrap();
        let (mut reader, stdin) = io::pipe().unwrap();
        drop(StdinWriter::start(stdin, FirstLines::default(), &folder.inbox()).unwrap());
        let mut rest = Vec::new();
        io::Read::read_to_end(&mut reader, &mut rest).unwrap();
        assert_eq!(rest, b"");
    }
}
