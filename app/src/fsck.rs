//! `hatchery fsck`: folds the log from its first event and compares the result with everything that is derived from it. The log is
//! never changed; what is derived can be rebuilt.

use crate::engine::recent::RecentMessages;
use crate::engine::{EngineError, snapshot};
use crate::log_head::LogHead;
use crate::store::{Store, StoreError};
use hatchery_core::history::HistoryRange;
use hatchery_core::{EventId, Record, World};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FsckReport {
    /// Events read.
    pub events: u64,
    /// Snapshots compared.
    pub snapshots: u64,
    /// What is wrong, a sentence each. Empty when everything is right.
    pub problems: Vec<FsckProblem>,
    /// What was rebuilt.
    pub repaired: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FsckProblem {
    /// What is wrong.
    pub about: FsckSubject,
    pub what: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum FsckSubject {
    /// The file or the database below the log.
    Store,
    /// The events themselves. Restore a backup or an export.
    Log,
    /// A folded world. `--repair` rebuilds it.
    Snapshot,
    /// The positions of each agent's messages. `--repair` rebuilds them.
    Index,
}

/// How many rows are read at a time.
const READ_ROWS: usize = 4_096;

/// Reads everything. With `repair`, what is derived is rebuilt if it is wrong.
pub fn check(store: &dyn Store, repair: bool, progress: &mut dyn FnMut(u64)) -> Result<FsckReport, EngineError> {
    check_against(store, None, repair, progress)
}

/// The same, with what is remembered of the log's head outside of it.
pub fn check_against(
    store: &dyn Store,
    head: Option<&LogHead>,
    repair: bool,
    progress: &mut dyn FnMut(u64),
) -> Result<FsckReport, EngineError> {
    let mut findings = FsckReport { events: 0, snapshots: 0, problems: Vec::new(), repaired: Vec::new() };
    findings.note(FsckSubject::Store, store.check()?);
    if let Some(head) = head {
        findings.note(FsckSubject::Log, head.compare(store)?.map(|loss| loss.to_string()));
    }
    let mut snapshots = match store.snapshots() {
        Err(StoreError::Damaged(why)) => {
            findings.note(FsckSubject::Store, [format!("the snapshots cannot be read: {why}")]);
            Vec::new()
        }
        read => read?,
    };
    // A snapshot of an older version is a cache that is not used: the daemon reads the log instead, and writes a new one.
    snapshots.retain(|snapshot| snapshot.format >= snapshot::FORMAT);
    findings.snapshots = snapshots.len() as u64;
    let mut world = World::default();
    let mut ranges = RecentMessages::since(EventId::START);
    let mut bad = Vec::new();
    loop {
        let before = world.head();
        let mut broken = None;
        let read = store.read_after(before, READ_ROWS, &mut |id, body| {
            let applied = Record::read(id, body)
                .map_err(|error| error.to_string())
                .and_then(|record| world.apply(&record).map(|()| record).map_err(|error| error.to_string()));
            match applied {
                Ok(record) => {
                    ranges.note(&record);
                    snapshots.retain(|snapshot| {
                        if snapshot.at == id {
                            bad.extend(differs(snapshot, &world));
                        }
                        snapshot.at != id
                    });
                    ControlFlow::Continue(())
                }
                Err(why) => {
                    broken = Some(why);
                    ControlFlow::Break(())
                }
            }
        });
        match read {
            Err(StoreError::Damaged(why)) => broken = Some(format!("after event {}: {why}", world.head())),
            read => read?,
        }
        if let Some(why) = broken {
            findings.note(FsckSubject::Log, [why]);
            break;
        }
        if world.head() == before {
            break;
        }
        progress(world.head().0);
    }
    findings.events = world.head().0;
    let beyond =
        snapshots.iter().map(|left| format!("the snapshot of event {} is beyond what can be read of the log", left.at));
    bad.extend(beyond);
    let log_is_whole = findings.problems.is_empty();
    let bad_index = match log_is_whole {
        true => match bad_index(store, &ranges, world.head()) {
            // The log could be read, so the database works. The index itself is damaged, or its table is missing.
            Err(EngineError::Store(StoreError::Damaged(why) | StoreError::Broken(why))) => {
                vec![format!("the index of messages cannot be read: {why}")]
            }
            read => read?,
        },
        false => Vec::new(),
    };
    let rebuild = repair && log_is_whole && !(bad.is_empty() && bad_index.is_empty());
    findings.note(FsckSubject::Snapshot, bad);
    findings.note(FsckSubject::Index, bad_index);
    if rebuild {
        let words = match store.rebuild(&snapshot::encode(&world)?, &ranges.ranges())? {
            true => format!("snapshot and index were rebuilt, as of event {}", world.head()),
            false => {
                return Err(StoreError::Unavailable(
                    "the daemon has written a newer index meanwhile; run `hatchery fsck --repair` again".into(),
                )
                .into());
            }
        };
        findings.repaired.push(words);
    }
    Ok(findings)
}

impl FsckReport {
    fn note(&mut self, about: FsckSubject, what: impl IntoIterator<Item = String>) {
        self.problems.extend(what.into_iter().map(|what| FsckProblem { about, what }));
    }

    /// True when nothing is wrong, or everything that was wrong has been rebuilt.
    pub fn is_clean(&self) -> bool {
        let derived =
            self.problems.iter().all(|problem| matches!(problem.about, FsckSubject::Snapshot | FsckSubject::Index));
        self.problems.is_empty() || (derived && !self.repaired.is_empty())
    }
}

fn differs(kept: &crate::store::Snapshot, world: &World) -> Option<String> {
    match snapshot::decode(kept) {
        Ok(decoded) if decoded == *world => None,
        Ok(_) => Some(format!("the snapshot of event {} differs from the fold of the log", kept.at)),
        Err(why) => Some(format!("the snapshot of event {} cannot be used: {why}", kept.at)),
    }
}

/// Reads every agent's messages through the index and compares their ids with those in the log.
fn bad_index(store: &dyn Store, ranges: &RecentMessages, head: EventId) -> Result<Vec<String>, EngineError> {
    let Some(indexed) = store.indexed()? else {
        return Ok(vec![
            "it is not known how far the index goes: the number is damaged, or is beyond the end of the log".into(),
        ]);
    };
    // A running daemon may have indexed more since the log was read.
    let indexed = indexed.min(head);
    let mut bad = Vec::new();
    for (agent, of) in ranges.ranges().of {
        let expected = of.iter().flat_map(|range| range.first.0..=range.last.0.min(indexed.0));
        let mut found = Vec::new();
        store.read_parts(&[HistoryRange { agent, after: EventId::START, upto: indexed }], &[], &mut |id, _| {
            found.push(id.0);
            ControlFlow::Continue(())
        })?;
        found.sort_unstable();
        if !expected.eq(found.iter().copied()) {
            bad.push(format!("the index of agent {agent} differs from the log"));
        }
    }
    Ok(bad)
}
