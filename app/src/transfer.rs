//! Imports a log that was exported as JSON lines. The imported log has the same ids, times and world. An import that was cut short
//! continues where it stopped.

use crate::report::{Context as _, Report};
use crate::store::{Batch, Row, Store, StoreError};
use hatchery_core::event::wire_id;
use hatchery_core::{EventId, Record, World};
use std::io::BufRead;
use std::ops::ControlFlow;

/// Events written in one transaction.
const IMPORT_ROWS: usize = 2_000;
/// The most bytes in one transaction, unless a single event is longer: they are in memory until they are written.
const IMPORT_BYTES: usize = 32 << 20;
/// No exported line is longer. The output of an agent's process has at most 16 MiB in one event: up to three times that when none
/// of it is UTF-8, and a little more as JSON within JSON.
const MAX_LINE_BYTES: u64 = 64 << 20;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct ImportCount {
    /// Events that the store had already, unchanged.
    pub known: u64,
    pub added: u64,
}

/// Imports an export. The store must be empty, or have the beginning of the same log.
pub fn import(
    store: &dyn Store,
    input: &mut dyn BufRead,
    progress: &mut dyn FnMut(u64),
) -> Result<ImportCount, Report> {
    let mut imported = ImportCount::default();
    let head = store.head().context("the log cannot be read")?;
    let mut world = World::default();
    let mut rows = Vec::with_capacity(IMPORT_ROWS);
    let mut bytes = 0;
    let mut line = String::new();
    for number in 1.. {
        let more = read_line(input, &mut line).context(format_args!("line {number} cannot be read"))?;
        if !more {
            break;
        }
        if line.trim().is_empty() {
            continue;
        }
        let row = take_line(&line, &mut world).map_err(|why| {
            let kept = match imported.added + imported.known {
                0 => "nothing is imported".to_owned(),
                kept => format!("the first {kept} events are imported"),
            };
            let hint = format!("{kept}; correct the line and import the file again");
            Report::failed(format_args!("line {number}: {why}")).hint(hint)
        })?;
        if row.id <= head {
            same_as_kept(store, &row)?;
            imported.known += 1;
            continue;
        }
        bytes += row.body.len();
        rows.push(row);
        if rows.len() == IMPORT_ROWS || bytes >= IMPORT_BYTES {
            bytes = 0;
            imported.added += append(store, &mut rows)?;
            progress(imported.added + imported.known);
        }
    }
    if imported.known < head.0 {
        return Err(Report::failed(format_args!("the store has {head} events, the file only {}", imported.known))
            .hint("an import goes into an empty project, or continues an import of the same file"));
    }
    imported.added += append(store, &mut rows)?;
    Ok(imported)
}

fn read_line(input: &mut dyn BufRead, line: &mut String) -> std::io::Result<bool> {
    use std::io::Read as _;
    line.clear();
    let count = input.take(MAX_LINE_BYTES).read_line(line)?;
    if count as u64 == MAX_LINE_BYTES {
        return Err(std::io::Error::other("the line is longer than any event can be"));
    }
    Ok(count > 0)
}

/// Reads one exported event and applies it to the world, which fails if it contradicts the events before it.
fn take_line(line: &str, world: &mut World) -> Result<Row, String> {
    let id = wire_id(line).map_err(|error| format!("it is not an event: {error}"))?;
    let record = Record::read(id, line).map_err(|error| error.to_string())?;
    world.apply(&record).map_err(|error| error.to_string())?;
    // The text of the file, so that a field that this version does not know is kept.
    let body = match line.trim_end().strip_prefix(&format!("{{\"id\":{id},")) {
        Some(rest) => format!("{{{rest}"),
        None => record.body(),
    };
    Ok(Row { id, stream: record.event.stream().to_string(), body })
}

fn same_as_kept(store: &dyn Store, row: &Row) -> Result<(), Report> {
    let mut same = false;
    store
        .read_after(EventId(row.id.0 - 1), 1, &mut |id, body| {
            same = id == row.id && body == row.body;
            ControlFlow::Break(())
        })
        .context("the log cannot be read")?;
    match same {
        true => Ok(()),
        false => Err(Report::failed(format_args!("event {} of this store differs from the one in the file", row.id))
            .hint("an import goes into an empty project, or continues an import of the same file")),
    }
}

fn append(store: &dyn Store, rows: &mut Vec<Row>) -> Result<u64, Report> {
    let Some(first) = rows.first() else { return Ok(0) };
    let seen = EventId(first.id.0 - 1);
    let reads: Vec<String> = rows.iter().map(|row| row.stream.clone()).collect();
    match store.append(Batch { seen, reads: &reads, rows, fixed: true }) {
        Ok(at) if at == seen.next() => {
            let count = rows.len() as u64;
            rows.clear();
            Ok(count)
        }
        Ok(_) | Err(StoreError::Conflict) => {
            Err(Report::failed("another process writes to this store").hint("stop it and import again"))
        }
        Err(error) => Err(Report::failed(error)),
    }
}
