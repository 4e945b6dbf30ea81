//! The checksum of a row, over its id, stream and body. It finds accidents: a flipped bit, a stale page, a row that was edited by
//! hand. It does not stop a person who changes a row and computes the checksum again; see docs/decisions/0030-the-log-knows-that-it-is-whole.md.

use super::{FINDINGS_SHOWN, StoreError};
use hatchery_core::EventId;

/// The part of the checksum that does not depend on the id. PostgreSQL gives out ids while it inserts, so the id is added there.
pub fn content_sum(stream: &str, body: &str) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(stream.as_bytes());
    // No stream contains it, so the border between stream and body cannot move unnoticed.
    hasher.update(&[0]);
    hasher.update(body.as_bytes());
    hasher.finalize()
}

pub fn row_sum(id: EventId, stream: &str, body: &str) -> u32 {
    content_sum(stream, body) ^ low_bits(id)
}

/// Fails when a row differs from its checksum. Rows of an older Hatchery have none.
pub fn verify(id: EventId, stream: &str, body: &str, kept: Option<i64>) -> Result<(), StoreError> {
    match kept {
        Some(kept) if kept != i64::from(row_sum(id, stream, body)) => {
            Err(StoreError::Damaged(format!("event {id} differs from its checksum: its row was changed or is damaged")))
        }
        _ => Ok(()),
    }
}

/// Compares all rows of a log, in order.
#[derive(Debug, Default)]
pub struct Checker {
    /// A row with a checksum was seen. From there on every row has one.
    begun: bool,
    bad: Vec<String>,
    more: u64,
}

impl Checker {
    pub fn take(&mut self, id: EventId, stream: &str, body: &str, kept: Option<i64>) {
        let what = match verify(id, stream, body, kept) {
            Err(StoreError::Damaged(what)) => what,
            _ if kept.is_none() && self.begun => format!("event {id} has no checksum, but an earlier one has"),
            _ => {
                self.begun |= kept.is_some();
                return;
            }
        };
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
        assert!(verify(EventId(7), "agent:a", "{\"x\":1}", kept).is_ok());
        for (id, stream, body) in [
            (6, "agent:a", "{\"x\":1}"),
            (7, "agent:b", "{\"x\":1}"),
            (7, "agent:a", "{\"x\":2}"),
            (7, "agent:a{", "\"x\":1}"),
        ] {
            assert!(verify(EventId(id), stream, body, kept).is_err(), "{id} {stream} {body}");
        }
        assert!(verify(EventId(7), "agent:a", "{}", None).is_ok());
    }
}
