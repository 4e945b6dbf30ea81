//! Checking: folds the log again from its first event and compares the result with everything that was derived from it.
//! The log itself is never touched; derived things can be made anew.

use crate::engine::{EngineError, snapshot};
use crate::store::{Store, StoreError};
use hatchery_core::{Record, World};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Findings {
    /// Events read.
    pub events: u64,
    /// Snapshots compared.
    pub snapshots: u64,
    /// What is wrong, in words. Empty is good.
    pub problems: Vec<Problem>,
    /// What was made anew.
    pub repaired: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Problem {
    /// What it is about.
    pub about: About,
    pub what: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum About {
    /// The file or the database below the log.
    Store,
    /// The events themselves. Restore a backup or an export.
    Log,
    /// Derived from the log. `--repair` makes it anew.
    Snapshot,
}

/// How many rows are read at a time.
const READ_ROWS: usize = 4_096;

/// Reads everything. `repair` makes what is derived anew if it is wrong.
pub fn check(store: &dyn Store, repair: bool, progress: &mut dyn FnMut(u64)) -> Result<Findings, EngineError> {
    let mut findings = Findings { events: 0, snapshots: 0, problems: Vec::new(), repaired: Vec::new() };
    findings.note(About::Store, store.check()?);
    let mut snapshots = match store.snapshots() {
        Err(StoreError::Damaged(why)) => {
            findings.note(About::Store, [format!("the snapshots cannot be read: {why}")]);
            Vec::new()
        }
        read => read?,
    };
    findings.snapshots = snapshots.len() as u64;
    let mut world = World::default();
    let mut bad_snapshots = Vec::new();
    loop {
        let before = world.head();
        let mut broken = None;
        let read = store.read_after(before, READ_ROWS, &mut |id, body| {
            let applied = Record::read(id, body)
                .map_err(|error| error.to_string())
                .and_then(|record| world.apply(&record).map_err(|error| error.to_string()));
            match applied {
                Ok(()) => {
                    snapshots.retain(|snapshot| {
                        if snapshot.at == id {
                            bad_snapshots.extend(differs(snapshot, &world));
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
            findings.note(About::Log, [why]);
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
    bad_snapshots.extend(beyond);
    let log_is_whole = findings.problems.is_empty();
    let repair_snapshots = repair && log_is_whole && !bad_snapshots.is_empty();
    findings.note(About::Snapshot, bad_snapshots);
    if repair_snapshots {
        store.drop_snapshots()?;
        store.save_snapshot(&snapshot::encode(&world))?;
        findings.repaired.push(format!("the snapshot of event {} was made anew", world.head()));
    }
    Ok(findings)
}

impl Findings {
    fn note(&mut self, about: About, what: impl IntoIterator<Item = String>) {
        self.problems.extend(what.into_iter().map(|what| Problem { about, what }));
    }

    /// True when nothing is wrong, or all that was wrong has been made anew.
    pub fn is_clean(&self) -> bool {
        let derived = self.problems.iter().all(|problem| problem.about == About::Snapshot);
        self.problems.is_empty() || (derived && !self.repaired.is_empty())
    }
}

fn differs(kept: &crate::store::Snapshot, world: &World) -> Option<String> {
    match snapshot::decode(kept) {
        Ok(decoded) if decoded == *world => None,
        Ok(_) => Some(format!("the snapshot of event {} differs from what the log gives", kept.at)),
        Err(why) => Some(format!("the snapshot of event {} cannot be used: {why}", kept.at)),
    }
}
