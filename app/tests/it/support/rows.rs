//! Shorthand for filling a log and reading it.

use hatchery::store::{Batch, Row, Store, StoreError};
use hatchery_core::EventId;
use std::ops::ControlFlow;

pub fn row(stream: &str, body: &str) -> Row {
    // Stores number the rows themselves when others came in between, so what stands here is only a proposal.
    Row { id: EventId::START, stream: stream.to_owned(), body: body.to_owned() }
}

pub fn rows(stream: &str, count: usize) -> Vec<Row> {
    (0..count).map(|number| row(stream, &format!("{stream} {number}"))).collect()
}

pub fn append(store: &dyn Store, seen: u64, reads: &[&str], rows: &[Row]) -> Result<EventId, StoreError> {
    let reads: Vec<String> = reads.iter().map(ToString::to_string).collect();
    store.append(Batch { seen: EventId(seen), reads: &reads, rows })
}

pub fn read(store: &dyn Store, after: u64) -> Vec<(u64, String)> {
    let mut rows = Vec::new();
    store
        .read_after(EventId(after), usize::MAX, &mut |id, body| {
            rows.push((id.0, body.to_owned()));
            ControlFlow::Continue(())
        })
        .unwrap();
    rows
}
