//! Writes the first lines of an attempt, and then those of its inbox, to the standard input of the process, on a thread of its own. A process that does not read
//! blocks only this thread, and the lines that it has not read stay in the inbox file: nothing is queued in memory.

use crate::run_folder::LauncherRequest;
use crate::spool::Tail;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

/// Dropping it closes the standard input, after the line that is being written.
#[derive(Debug)]
pub struct StdinWriter {
    /// Room for one wake-up: the thread reads all that is there each time.
    waker: SyncSender<()>,
    closing: Arc<AtomicBool>,
}

impl StdinWriter {
    pub fn start(stdin: impl Write + Send + 'static, first_lines: Vec<String>, inbox: &Path) -> io::Result<Self> {
        let inbox = Tail::open(inbox, 0)?;
        let (waker, wakes) = sync_channel(1);
        let closing = Arc::new(AtomicBool::new(false));
        std::thread::Builder::new().name("stdin".into()).spawn({
            let closing = Arc::clone(&closing);
            move || {
                if let Err(error) = write_lines(stdin, &first_lines, inbox, &wakes, &closing) {
                    // The next process gets what this one did not read.
                    eprintln!("nothing more can be written to the process: {error}");
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
    first_lines: &[String],
    mut inbox: Tail,
    wakes: &Receiver<()>,
    closing: &AtomicBool,
) -> io::Result<()> {
    for line in first_lines {
        stdin.write_all(format!("{line}\n").as_bytes())?;
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
        let writer = StdinWriter::start(stdin, vec!["hello".into()], &folder.inbox()).unwrap();
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

    #[test]
    fn dropping_the_writer_closes_the_input() {
        let folder = tempfile::tempdir().unwrap();
        let folder = RunFolder::at(folder.path().join("1-1"));
        folder.create_for_agent().unwrap();
        let (mut reader, stdin) = io::pipe().unwrap();
        drop(StdinWriter::start(stdin, Vec::new(), &folder.inbox()).unwrap());
        let mut rest = Vec::new();
        io::Read::read_to_end(&mut reader, &mut rest).unwrap();
        assert_eq!(rest, b"");
    }
}
