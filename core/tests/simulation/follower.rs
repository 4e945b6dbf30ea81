//! A client with a cursor. It hears what is published, late or never, and reads the log where it missed something.

use crate::log::Log;
use hatchery_core::{EventId, Record};

#[derive(Default)]
pub struct Follower {
    seen: Vec<Record>,
}

impl Follower {
    /// Takes in what was published; true if there was a gap to fill from the log.
    pub fn hear(&mut self, published: &[Record], log: &Log) -> bool {
        match published.first() {
            Some(first) if first.id > self.cursor().next() => {
                self.read(log);
                true
            }
            _ => {
                let cursor = self.cursor();
                self.seen.extend(published.iter().filter(|record| record.id > cursor).cloned());
                false
            }
        }
    }

    pub fn read(&mut self, log: &Log) {
        self.seen.extend(log.read_after(self.cursor()));
    }

    pub fn seen(&self) -> &[Record] {
        &self.seen
    }

    fn cursor(&self) -> EventId {
        self.seen.last().map_or(EventId::START, |record| record.id)
    }
}
