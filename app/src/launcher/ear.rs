//! Writes down what a ward says, within bounds: the beginning as it comes, and of a long story the end as well. In between is said how
//! much was left out.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, PipeReader, Read, Write};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How much of the beginning is kept: the first error is the one that counts.
const FIRST_BYTES: usize = 4 << 20;
/// How much of the end is kept: a summary stands there. Held in memory until it is known to be the end.
const LAST_BYTES: usize = 4 << 20;
/// How long it may take to be told the rest, when all who could speak are gone. Somebody outside may have got hold of the pipe.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct Ear {
    kept: Arc<Mutex<Kept<File>>>,
    silence: Receiver<()>,
}

impl Ear {
    pub fn open(from: PipeReader, to: File) -> io::Result<Self> {
        let kept = Arc::new(Mutex::new(Kept::new(to)));
        let (over, silence) = channel();
        std::thread::Builder::new().name("ear".into()).spawn({
            let kept = Arc::clone(&kept);
            move || {
                listen(from, &kept);
                // Whoever has stopped waiting has closed it already.
                over.send(()).ok();
            }
        })?;
        Ok(Self { kept, silence })
    }

    /// Waits for the rest, and writes down the end.
    pub fn close(self) {
        self.silence.recv_timeout(PATIENCE).ok();
        let ended = self.kept.lock().unwrap_or_else(PoisonError::into_inner).end();
        if let Err(error) = ended {
            eprintln!("the end of the output cannot be written: {error}");
        }
    }
}

fn listen(mut from: impl Read, kept: &Mutex<Kept<impl Write>>) {
    let mut bytes = vec![0; 64 << 10];
    loop {
        match from.read(&mut bytes) {
            Ok(0) => return,
            Ok(count) => kept.lock().unwrap_or_else(PoisonError::into_inner).take(&bytes[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                eprintln!("the output cannot be read: {error}");
                return;
            }
        }
    }
}

#[derive(Debug)]
struct Kept<W> {
    to: W,
    /// How much was said.
    said: u64,
    room: usize,
    end: VecDeque<u8>,
}

impl<W: Write> Kept<W> {
    fn new(to: W) -> Self {
        Self { to, said: 0, room: FIRST_BYTES, end: VecDeque::new() }
    }

    /// Never fails: whoever speaks must not have to stop because a disk is full.
    fn take(&mut self, bytes: &[u8]) {
        self.said += bytes.len() as u64;
        let (first, rest) = bytes.split_at(bytes.len().min(self.room));
        self.room -= first.len();
        if let Err(error) = self.to.write_all(first) {
            eprintln!("the output cannot be written: {error}");
        }
        self.end.extend(rest);
        let surplus = self.end.len().saturating_sub(LAST_BYTES);
        self.end.drain(..surplus);
    }

    fn end(&mut self) -> io::Result<()> {
        let missing = self.said - (FIRST_BYTES - self.room) as u64 - self.end.len() as u64;
        if missing > 0 {
            write!(self.to, "\n[... {missing} bytes left out ...]\n")?;
        }
        let (one, two) = self.end.as_slices();
        self.to.write_all(one)?;
        self.to.write_all(two)?;
        self.end.clear();
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(said: &[u8]) -> Vec<u8> {
        let kept = Mutex::new(Kept::new(Vec::new()));
        listen(said, &kept);
        let mut kept = kept.into_inner().unwrap();
        kept.end().unwrap();
        kept.to
    }

    #[test]
    fn all_of_a_short_story() {
        assert_eq!(kept(b"one\ntwo\n"), b"one\ntwo\n");
        let full: Vec<u8> = (0..FIRST_BYTES + LAST_BYTES).map(|at| (at % 251) as u8).collect();
        assert!(kept(&full) == full);
    }

    #[test]
    fn the_beginning_and_the_end_of_a_long_one() {
        let mut said = b"first".to_vec();
        said.resize(FIRST_BYTES + LAST_BYTES + 1_000, b'.');
        said.extend(b"last");
        let kept = kept(&said);
        assert!(kept.starts_with(b"first") && kept.ends_with(b"last"));
        let gap = String::from_utf8_lossy(&kept[FIRST_BYTES..FIRST_BYTES + 40]).into_owned();
        assert!(gap.starts_with("\n[... 1004 bytes left out ...]\n"), "{gap}");
        assert!(kept.len() < FIRST_BYTES + LAST_BYTES + 100);
    }
}
