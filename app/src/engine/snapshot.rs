//! Snapshots: encoded worlds. A start reads the newest snapshot and the events after it, so its cost depends on the size of the world and
//! not on the length of the log.
//!
//! A snapshot is a cache. A snapshot that is damaged, in another format, or newer than the log is skipped with a warning, and more of the
//! log is read instead.
//!
//! The body is MessagePack with field names. So types of the log may leave out fields (`skip_serializing_if`) and get new ones (`default`).
//! A snapshot of another shape either decodes to the right world or does not decode at all, because the maps of `World` itself have no
//! defaults.

use crate::engine::EngineError;
use crate::store::{Snapshot, Store, StoreError};
use hatchery_core::{EventId, Record, World};
use std::ops::ControlFlow;

/// The version of the encoding. Raise it if the same bytes would mean another world: if a field of `World` is removed or changes its
/// meaning, or if `apply` turns the same events into a different world. A test compares the bytes of a known world.
pub const FORMAT: u32 = 30;

/// How many rows are read from the store at once.
const FOLD_ROWS: usize = 4_096;

pub fn encode(world: &World) -> Result<Snapshot, EncodeError> {
    let body = rmp_serde::to_vec_named(world)?;
    Ok(Snapshot { at: world.head(), format: FORMAT, checksum: crc32fast::hash(&body), body })
}

/// A world that cannot be encoded. The daemon continues without a snapshot.
#[derive(Debug, thiserror::Error)]
#[error("the snapshot cannot be encoded: {0}")]
pub struct EncodeError(#[from] rmp_serde::encode::Error);

/// The world in a snapshot, or why the snapshot cannot be used.
pub fn decode(snapshot: &Snapshot) -> Result<World, String> {
    if snapshot.format != FORMAT {
        return Err(format!("it is in format {}, and this program reads format {FORMAT}", snapshot.format));
    }
    if crc32fast::hash(&snapshot.body) != snapshot.checksum {
        return Err("its checksum does not match".into());
    }
    let world: World = rmp_serde::from_slice(&snapshot.body).map_err(|error| error.to_string())?;
    match world.head() == snapshot.at {
        true => Ok(world),
        false => Err(format!("its row names event {}, but its world ends at event {}", snapshot.at, world.head())),
    }
}

/// The newest usable snapshot, or an empty world.
pub fn restore(store: &dyn Store) -> Result<World, EngineError> {
    let head = store.head()?;
    let snapshots = match store.snapshots() {
        Err(StoreError::Damaged(why)) => {
            tracing::warn!(why, "the snapshots cannot be read; the whole log is read instead");
            Vec::new()
        }
        read => read?,
    };
    for snapshot in snapshots {
        let usable = match snapshot.at <= head {
            true => decode(&snapshot),
            false => Err(format!("the log ends at event {head}")),
        };
        match usable {
            Ok(world) => return Ok(world),
            Err(why) => {
                tracing::warn!(at = snapshot.at.0, why, "a snapshot is skipped; more of the log is read instead")
            }
        }
    }
    Ok(World::default())
}

/// The world as it was at an event.
pub fn world_at(store: &dyn Store, at: EventId) -> Result<World, EngineError> {
    let snapshots = store.snapshots().unwrap_or_default();
    let usable = snapshots.iter().filter(|snapshot| snapshot.at <= at).find_map(|snapshot| decode(snapshot).ok());
    let mut world = usable.unwrap_or_default();
    let mut problem = None;
    read_between(store, world.head(), at, |record| {
        if problem.is_none() {
            problem = world.apply(record).err();
        }
    })?;
    problem.map_or(Ok(world), |problem| Err(problem.into()))
}

/// Applies the rest of the log to a world, and passes each record with its JSON to `seen`.
pub fn fold(store: &dyn Store, world: &mut World, mut seen: impl FnMut(Record, &str)) -> Result<(), EngineError> {
    loop {
        let before = world.head();
        let mut problem = None;
        store.read_after(before, FOLD_ROWS, &mut |id: EventId, body: &str| {
            let applied = Record::read(id, body)
                .map_err(EngineError::from)
                .and_then(|record| world.apply(&record).map(|()| record).map_err(EngineError::from));
            match applied {
                Ok(record) => {
                    seen(record, body);
                    ControlFlow::Continue(())
                }
                Err(error) => {
                    problem = Some(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        match problem {
            Some(error) => return Err(error),
            None if world.head() == before => return Ok(()),
            None => {}
        }
    }
}

/// Passes the records with ids in `after + 1 ..= upto` to `seen`.
pub fn read_between(
    store: &dyn Store,
    after: EventId,
    upto: EventId,
    mut seen: impl FnMut(&Record),
) -> Result<(), EngineError> {
    let mut cursor = after;
    while cursor < upto {
        let before = cursor;
        let mut problem = None;
        store.read_after(cursor, FOLD_ROWS, &mut |id, body| match Record::read(id, body) {
            Ok(record) if id <= upto => {
                cursor = id;
                seen(&record);
                ControlFlow::Continue(())
            }
            Ok(_) => ControlFlow::Break(()),
            Err(error) => {
                problem = Some(error);
                ControlFlow::Break(())
            }
        })?;
        if let Some(error) = problem {
            return Err(error.into());
        }
        if cursor == before {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A world in which every event has happened at least once.
    fn eventful() -> World {
        let log = include_str!("../../../core/tests/golden/events-v1.jsonl");
        let mut world = World::default();
        for (id, line) in (1..).map(EventId).zip(log.lines()) {
            world.apply(&Record::read(id, line).unwrap()).unwrap();
        }
        world
    }

    #[test]
    fn a_changed_shape_of_the_world_needs_a_new_format() {
        let snapshot = encode(&eventful()).unwrap();
        let known = (30, 0xbaa7_ab1e);
        assert_eq!(
            (snapshot.format, snapshot.checksum),
            known,
            "if an old snapshot would now be read as a wrong world, raise FORMAT; note the new checksum here"
        );
    }

    #[test]
    fn a_snapshot_comes_back_unless_it_was_touched() {
        let world = eventful();
        let snapshot = encode(&world).unwrap();
        assert_eq!(decode(&snapshot).unwrap(), world);
        let mut flipped = snapshot.clone();
        flipped.body[7] ^= 1;
        assert!(decode(&flipped).is_err());
        assert!(decode(&Snapshot { format: FORMAT + 1, ..snapshot.clone() }).is_err());
        assert!(decode(&Snapshot { at: snapshot.at.next(), ..snapshot }).is_err());
    }

    /// What a log type may do now: get a field that older snapshots lack, and lose one that they have.
    #[test]
    fn a_log_type_may_get_and_lose_fields() {
        #[derive(serde::Serialize)]
        struct Before<'a> {
            harness: &'a str,
            host: &'a str,
            stall_ms: u64,
            retries: u32,
            parks: bool,
            lost: &'a str,
        }
        let before = Before { harness: "scripted", host: "mill", stall_ms: 1, retries: 2, parks: true, lost: "x" };
        let bytes = rmp_serde::to_vec_named(&before).unwrap();
        let spec: hatchery_core::run::RunSpec = rmp_serde::from_slice(&bytes).unwrap();
        assert_eq!((spec.harness.as_str(), spec.retries, spec.parks, spec.signals), ("scripted", 2, true, false));
    }

    /// A map of the world that an older snapshot lacks is derived from the log: the snapshot must not be used.
    #[test]
    fn a_snapshot_without_a_map_of_the_world_is_not_used() {
        #[derive(serde::Serialize)]
        struct Older {
            head: EventId,
        }
        let body = rmp_serde::to_vec_named(&Older { head: EventId(3) }).unwrap();
        let older = Snapshot { at: EventId(3), format: FORMAT, checksum: crc32fast::hash(&body), body };
        assert!(decode(&older).unwrap_err().contains("missing field"));
    }
}
