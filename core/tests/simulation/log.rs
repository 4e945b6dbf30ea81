//! The durable log, as a store keeps it: ids and bodies. An append is all or nothing, and is refused when another writer
//! touched what it rests on, or when it would have to be renumbered and cannot be.

use hatchery_core::{EventId, Record, Stream};
use std::collections::BTreeSet;

#[derive(Default)]
pub struct Log {
    rows: Vec<(EventId, Stream, String)>,
}

/// Another writer was faster.
pub enum Conflict {
    /// It changed what this batch rests on.
    Touched,
    /// It took the ids to which this batch refers.
    Renumbered,
}

impl Log {
    /// Gives the records under the ids that they got.
    pub fn append(
        &mut self,
        seen: EventId,
        rests_on: &BTreeSet<Stream>,
        mut records: Vec<Record>,
    ) -> Result<Vec<Record>, Conflict> {
        if self.rows_after(seen).iter().any(|(_, stream, _)| rests_on.contains(stream)) {
            return Err(Conflict::Touched);
        }
        // What refers to an event of its own batch cannot be given other ids.
        let refers_to_itself = |record: &Record| record.event.refers_to().is_some_and(|to| to > seen);
        if seen != self.head() && records.iter().any(refers_to_itself) {
            return Err(Conflict::Renumbered);
        }
        for record in &mut records {
            record.id = self.head().next();
            self.rows.push((record.id, record.event.stream(), record.body()));
        }
        Ok(records)
    }

    pub fn head(&self) -> EventId {
        self.rows.last().map_or(EventId::START, |(id, ..)| *id)
    }

    pub fn read_after(&self, after: EventId) -> impl Iterator<Item = Record> {
        let rows = self.rows_after(after).iter();
        rows.map(|(id, _, body)| Record::read(*id, body).expect("what was written can be read"))
    }

    fn rows_after(&self, after: EventId) -> &[(EventId, Stream, String)] {
        let seen = self.rows.partition_point(|(id, ..)| *id <= after);
        &self.rows[seen..]
    }
}
