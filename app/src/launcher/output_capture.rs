//! Copies the output of a ward into a file, within bounds: the first part as it comes, and at the end the last part. A line
//! between the two says how many bytes were left out.

use super::note;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, PipeReader, Read, Write};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How much of the beginning is kept, because the first error is usually the one that counts.
const FIRST_BYTES: usize = 4 << 20;
/// How much of the end is kept, because test programs print a summary there. It is in memory until the output ends.
const LAST_BYTES: usize = 4 << 20;
/// How long the rest of the output may take once all processes are gone. A process outside may have got hold of the pipe.
const END_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct OutputCapture {
    kept: Arc<Mutex<BoundedOutput<File>>>,
    ended: Receiver<()>,
}

impl OutputCapture {
    pub fn start(from: PipeReader, to: File) -> io::Result<Self> {
        let kept = Arc::new(Mutex::new(BoundedOutput::new(to)));
        let (end, ended) = sync_channel(1);
        std::thread::Builder::new().name("output".into()).spawn({
            let kept = Arc::clone(&kept);
            move || {
                copy(from, &kept);
                // An error means that `finish` has stopped waiting.
                end.send(()).ok();
            }
        })?;
        Ok(Self { kept, ended })
    }

    /// Waits for the rest, and writes the last part.
    pub fn finish(self) {
        self.ended.recv_timeout(END_TIMEOUT).ok();
        let finished = self.kept.lock().unwrap_or_else(PoisonError::into_inner).finish();
        if let Err(error) = finished {
            note(format_args!("the end of the output cannot be written: {error}"));
        }
    }
}

fn copy(mut from: impl Read, kept: &Mutex<BoundedOutput<impl Write>>) {
    let mut bytes = vec![0; 64 << 10];
    loop {
        match from.read(&mut bytes) {
            Ok(0) => return,
            Ok(count) => kept.lock().unwrap_or_else(PoisonError::into_inner).add(&bytes[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                note(format_args!("the output cannot be read: {error}"));
                return;
            }
        }
    }
}

#[derive(Debug)]
struct BoundedOutput<W> {
    to: W,
    /// How many bytes there were.
    total: u64,
    /// How much room is left for the first part.
    room: usize,
    last: VecDeque<u8>,
}

impl<W: Write> BoundedOutput<W> {
    fn new(to: W) -> Self {
        Self { to, total: 0, room: FIRST_BYTES, last: VecDeque::new() }
    }

    /// Never fails: a full disk must not block the ward.
    fn add(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (first, rest) = bytes.split_at(bytes.len().min(self.room));
        self.room -= first.len();
        if let Err(error) = self.to.write_all(first) {
            note(format_args!("the output cannot be written: {error}"));
        }
        self.last.extend(rest);
        let surplus = self.last.len().saturating_sub(LAST_BYTES);
        self.last.drain(..surplus);
    }

    fn finish(&mut self) -> io::Result<()> {
        let missing = self.total - (FIRST_BYTES - self.room) as u64 - self.last.len() as u64;
        if missing > 0 {
            write!(self.to, "\n[... {missing} bytes left out ...]\n")?;
        }
        let (one, two) = self.last.as_slices();
        self.to.write_all(one)?;
        self.to.write_all(two)?;
        self.last.clear();
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(output: &[u8]) -> Vec<u8> {
        let kept = Mutex::new(BoundedOutput::new(Vec::new()));
        copy(output, &kept);
        let mut kept = kept.into_inner().unwrap();
        kept.finish().unwrap();
        kept.to
    }

    #[test]
    fn a_short_output_is_kept_whole() {
        assert_eq!(kept(b"one\ntwo\n"), b"one\ntwo\n");
        let full: Vec<u8> = (0..FIRST_BYTES + LAST_BYTES).map(|at| (at % 251) as u8).collect();
        assert!(kept(&full) == full);
    }

    #[test]
    fn of_a_long_output_the_beginning_and_the_end_are_kept() {
        let mut output = b"first".to_vec();
        output.resize(FIRST_BYTES + LAST_BYTES + 1_000, b'.');
        output.extend(b"last");
        let kept = kept(&output);
        assert!(kept.starts_with(b"first") && kept.ends_with(b"last"));
        let gap = String::from_utf8_lossy(&kept[FIRST_BYTES..FIRST_BYTES + 40]).into_owned();
        assert!(gap.starts_with("\n[... 1004 bytes left out ...]\n"), "{gap}");
        assert!(kept.len() < FIRST_BYTES + LAST_BYTES + 100);
    }
}
