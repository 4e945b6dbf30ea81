//! Reads a file that another process appends to, line by line, from a position that the caller keeps. Only complete lines are
//! read: half a line is left for the next time.

use crate::no_links;
use rustix::fs::OFlags;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// The longest line that is taken in whole. A longer one is reported with its length.
pub const MAX_LINE_BYTES: usize = 16 << 20;
/// How much is taken in at once: enough that a flood costs few appends, little enough to be decided in a moment.
const CHUNK_BYTES: usize = 256 << 10;

/// How much of a spool stays on the disk after it was taken in: enough to look at when something is wrong.
pub const KEPT_BYTES: u64 = 64 << 20;
/// How much must have gathered before space is given back.
const RELEASED_BYTES: u64 = 16 << 20;

/// Frees the disk space of the part that was taken in, except for the last [`KEPT_BYTES`]. Positions in the file stay the same, because
/// the beginning becomes a hole. If the file system has no holes, nothing is freed.
pub fn release(path: &Path, taken: u64, released: u64) -> io::Result<u64> {
    let upto = taken.saturating_sub(KEPT_BYTES);
    if upto < released + RELEASED_BYTES {
        return Ok(released);
    }
    punch(&no_links::open_file(path, OFlags::WRONLY)?, upto)?;
    Ok(upto)
}

#[cfg(target_os = "linux")]
fn punch(file: &File, upto: u64) -> io::Result<()> {
    use rustix::fs::FallocateFlags;
    match rustix::fs::fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 0, upto) {
        Ok(()) | Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn punch(_file: &File, _upto: u64) -> io::Result<()> {
    Ok(())
}

/// The whole lines before a position that is the end of a line, as far back as this many bytes.
pub fn lines_before(path: &Path, position: u64, bytes: u64) -> io::Result<Vec<String>> {
    let start = position.saturating_sub(bytes);
    let mut read = vec![0; usize::try_from(position - start).unwrap_or_default()];
    no_links::open(path)?.read_exact_at(&mut read, start)?;
    let lines = read.split_inclusive(|byte| *byte == b'\n');
    // The first piece is the rest of a line, unless the file begins there.
    let whole = lines.skip(usize::from(start > 0));
    Ok(whole.map(|line| String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(line)).into_owned()).collect())
}

#[derive(Debug)]
pub struct Tail {
    file: File,
    /// The end of the last line that was given out.
    position: u64,
    /// What follows it, as far as it was read.
    pending: Vec<u8>,
    /// How much of a line that is too long was passed over.
    skipped: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawLine {
    /// Without its end. Empty when it was too long.
    pub bytes: Vec<u8>,
    /// How long it was, when it was too long.
    pub too_long: Option<u64>,
}

impl Tail {
    pub fn open(path: &Path, position: u64) -> io::Result<Self> {
        Ok(Self { file: no_links::open(path)?, position, pending: Vec::new(), skipped: 0 })
    }

    /// Up to where lines were given out.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The lines that are complete now: as many as fit in one chunk, or one line that is larger. Empty when there are none yet.
    pub fn read(&mut self) -> io::Result<Vec<RawLine>> {
        loop {
            if !self.fill()? {
                return Ok(Vec::new());
            }
            let lines = self.split();
            if !lines.is_empty() {
                return Ok(lines);
            }
        }
    }

    /// What is left when the writer has ended: a last line without a line end.
    pub fn rest(&mut self) -> Option<RawLine> {
        let bytes = std::mem::take(&mut self.pending);
        let skipped = std::mem::take(&mut self.skipped);
        let length = skipped + bytes.len() as u64;
        self.position += length;
        match (length, skipped) {
            (0, _) => None,
            (_, 0) => Some(RawLine { bytes, too_long: None }),
            _ => Some(RawLine { bytes: Vec::new(), too_long: Some(length) }),
        }
    }

    /// Reads on. False when there is nothing more at the moment.
    fn fill(&mut self) -> io::Result<bool> {
        let before = self.pending.len();
        let at = self.position + self.skipped + before as u64;
        let there = self.file.metadata()?.len().saturating_sub(at);
        if there == 0 {
            // There may be hundreds of us that wait.
            self.pending.shrink_to_fit();
            return Ok(false);
        }
        let chunk = usize::try_from(there).unwrap_or(usize::MAX).min(CHUNK_BYTES);
        self.pending.resize(before + chunk, 0);
        let count = match self.file.read_at(&mut self.pending[before..], at) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            other => other.inspect_err(|_| self.pending.truncate(before))?,
        };
        self.pending.truncate(before + count);
        Ok(count > 0)
    }

    fn split(&mut self) -> Vec<RawLine> {
        let Some(end) = self.pending.iter().rposition(|byte| *byte == b'\n') else {
            if self.pending.len() > MAX_LINE_BYTES || self.skipped > 0 {
                self.skipped += self.pending.len() as u64;
                self.pending.clear();
            }
            return Vec::new();
        };
        let after = self.pending.split_off(end + 1);
        let whole = std::mem::replace(&mut self.pending, after);
        let mut lines: Vec<RawLine> = whole[..end]
            .split(|byte| *byte == b'\n')
            .map(|line| match line.len() > MAX_LINE_BYTES {
                true => RawLine { bytes: Vec::new(), too_long: Some(line.len() as u64) },
                false => RawLine { bytes: line.to_vec(), too_long: None },
            })
            .collect();
        if self.skipped > 0
            && let Some(first) = lines.first_mut()
        {
            let rest = first.too_long.unwrap_or(first.bytes.len() as u64);
            *first = RawLine { bytes: Vec::new(), too_long: Some(self.skipped + rest) };
        }
        self.position += self.skipped + whole.len() as u64;
        self.skipped = 0;
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn lines_of(tail: &mut Tail) -> Vec<String> {
        tail.read().unwrap().into_iter().map(|line| String::from_utf8(line.bytes).unwrap()).collect()
    }

    #[test]
    fn a_line_counts_when_its_end_is_there() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut tail = Tail::open(file.path(), 0).unwrap();
        file.write_all(b"one\ntw").unwrap();
        assert_eq!(lines_of(&mut tail), ["one"]);
        assert_eq!(tail.position(), 4);
        assert!(lines_of(&mut tail).is_empty());
        file.write_all(b"o\n\nlast").unwrap();
        assert_eq!(lines_of(&mut tail), ["two", ""]);
        assert_eq!(tail.position(), 9);
        assert!(lines_of(&mut tail).is_empty());
        assert_eq!(tail.rest(), Some(RawLine { bytes: b"last".to_vec(), too_long: None }));
        assert_eq!(tail.position(), 13);
        assert_eq!(tail.rest(), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_was_taken_in_gives_its_space_back_and_the_rest_stays_where_it_is() {
        use std::os::unix::fs::MetadataExt as _;
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let line = [&[b'x'; 1_023][..], b"\n"].concat();
        let lines = usize::try_from((KEPT_BYTES + 2 * RELEASED_BYTES) / 1_024).unwrap();
        file.write_all(&line.repeat(lines)).unwrap();
        let taken = (lines * 1_024) as u64;
        assert_eq!(release(file.path(), KEPT_BYTES, 0).unwrap(), 0, "nothing is given back before much has gathered");
        assert_eq!(release(file.path(), taken, 0).unwrap(), 2 * RELEASED_BYTES);
        let meta = file.as_file().metadata().unwrap();
        assert_eq!(meta.len(), taken);
        assert!(meta.blocks() * 512 <= KEPT_BYTES + (1 << 20), "{} blocks are held", meta.blocks());
        file.write_all(b"after\n").unwrap();
        assert_eq!(lines_of(&mut Tail::open(file.path(), taken).unwrap()), ["after"]);
    }

    #[test]
    fn the_lines_before_a_position_are_whole() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"one\ntwo\nthree\nfour\n").unwrap();
        assert_eq!(lines_before(file.path(), 14, 100).unwrap(), ["one", "two", "three"]);
        assert_eq!(lines_before(file.path(), 14, 9).unwrap(), ["three"], "half of a line is left out");
        assert_eq!(lines_before(file.path(), 0, 100).unwrap(), [""; 0]);
    }

    #[test]
    fn it_goes_on_from_any_place() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"one\ntwo\nthree\n").unwrap();
        let mut tail = Tail::open(file.path(), 4).unwrap();
        assert_eq!(lines_of(&mut tail), ["two", "three"]);
    }

    #[test]
    fn a_line_that_is_too_long_is_told_by_its_length() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let long = vec![b'x'; MAX_LINE_BYTES + CHUNK_BYTES];
        file.write_all(b"before\n").unwrap();
        file.write_all(&long).unwrap();
        file.write_all(b"\nafter\n").unwrap();
        let mut tail = Tail::open(file.path(), 0).unwrap();
        let mut all = Vec::new();
        loop {
            match tail.read().unwrap() {
                lines if lines.is_empty() => break,
                lines => all.extend(lines),
            }
        }
        assert_eq!(all.iter().map(|line| line.too_long).collect::<Vec<_>>(), [None, Some(long.len() as u64), None]);
        assert_eq!(all[2].bytes, b"after");
        assert_eq!(tail.position(), long.len() as u64 + 14);
    }
}
