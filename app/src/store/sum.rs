//! The checksum of a row, over its id, stream and body. It finds accidents: a flipped bit, a stale page, a row that was edited by hand. It
//! does not stop a person who changes a row and computes the checksum again; see docs/decisions/0030-the-log-knows-that-it-is-whole.md.

use super::{FINDINGS_SHOWN, StoreError};
use hatchery_core::EventId;

/// The part of the checksum that does not depend on the id. PostgreSQL assigns ids while it inserts, so its statements add the id.
pub fn content_sum(stream: &str, body: &str) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(stream.as_bytes());
    // No stream contains this byte, so the border between stream and body cannot move unnoticed.
    hasher.update(&[0]);
    hasher.update(body.as_bytes());
    hasher.finalize()
}

pub fn row_sum(id: EventId, stream: &str, body: &str) -> u32 {
    content_sum(stream, body) ^ low_bits(id)
}

/// The first row with a checksum. Rows of older versions have none, and all of them are before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FirstSum {
    At(EventId),
    /// No row has a checksum yet.
    #[default]
    Nowhere,
}

/// Fails if a row differs from its checksum, or has lost it.
pub fn verify(id: EventId, stream: &str, body: &str, kept: Option<i64>, first: FirstSum) -> Result<(), StoreError> {
    let what = match (kept, first) {
        (Some(kept), _) if kept == i64::from(row_sum(id, stream, body)) => return Ok(()),
        (Some(_), _) => format!("event {id} differs from its checksum: its row was changed or is damaged"),
        (None, FirstSum::At(first)) if first < id => {
            format!("event {id} has no checksum, but an earlier one has: its row was changed or is damaged")
        }
        (None, _) => return Ok(()),
    };
    Err(StoreError::Damaged(what))
}

/// Compares all rows of a log, in order.
#[derive(Debug, Default)]
pub struct Checker {
    first: FirstSum,
    bad: Vec<String>,
    more: u64,
}

impl Checker {
    pub fn take(&mut self, id: EventId, stream: &str, body: &str, kept: Option<i64>) {
        if kept.is_some() && self.first == FirstSum::Nowhere {
            self.first = FirstSum::At(id);
        }
        let Err(StoreError::Damaged(what)) = verify(id, stream, body, kept, self.first) else { return };
        match self.bad.len() < FINDINGS_SHOWN {
            true => self.bad.push(what),
            false => self.more += 1,
        }
    }

    pub fn findings(mut self) -> Vec<String> {
        if self.more > 0 {
            self.bad.push(format!("{} more events differ from their checksums", self.more));
        }
        self.bad
    }
}

fn low_bits(id: EventId) -> u32 {
    u32::try_from(id.0 & u64::from(u32::MAX)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_row_counts() {
        let kept = Some(i64::from(row_sum(EventId(7), "agent:a", "{\"x\":1}")));
        let first = FirstSum::At(EventId(3));
        assert!(verify(EventId(7), "agent:a", "{\"x\":1}", kept, first).is_ok());
        for (id, stream, body) in [
            (6, "agent:a", "{\"x\":1}"),
            (7, "agent:b", "{\"x\":1}"),
            (7, "agent:a", "{\"x\":2}"),
            (7, "agent:a{", "\"x\":1}"),
        ] {
            assert!(verify(EventId(id), stream, body, kept, first).is_err(), "{id} {stream} {body}");
        }
    }

    #[test]
    fn only_rows_before_the_first_checksum_have_none() {
        let without = |id, first| verify(EventId(id), "agent:a", "{}", None, first);
        assert!(without(7, FirstSum::Nowhere).is_ok() && without(2, FirstSum::At(EventId(3))).is_ok());
        assert!(without(7, FirstSum::At(EventId(3))).is_err());
    }
}
