//! Snapshots: a folded world, so that starting depends on what lives and not on how long the history is. They are a cache.
//! One that is damaged, from another format or from a future that the log does not know is passed over, and said so.

use crate::engine::EngineError;
use crate::store::{Snapshot, Store, StoreError};
use hatchery_core::{EventId, Record, World};
use std::ops::ControlFlow;

/// How a world is encoded. Raise it whenever the shape of `World` changes: a test holds the bytes of this format.
pub const FORMAT: u32 = 4;

/// How many rows are folded between two looks at the store.
const FOLD_ROWS: usize = 4_096;

pub fn encode(world: &World) -> Snapshot {
    let body = postcard::to_stdvec(world).expect("a world is plain data");
    Snapshot { at: world.head(), format: FORMAT, checksum: crc32fast::hash(&body), body }
}

/// The world in a snapshot, or why it cannot be used.
pub fn decode(snapshot: &Snapshot) -> Result<World, String> {
    if snapshot.format != FORMAT {
        return Err(format!("it is in format {}, this program writes {FORMAT}", snapshot.format));
    }
    if crc32fast::hash(&snapshot.body) != snapshot.checksum {
        return Err("its checksum does not match".into());
    }
    let world: World = postcard::from_bytes(&snapshot.body).map_err(|error| error.to_string())?;
    match world.head() == snapshot.at {
        true => Ok(world),
        false => Err(format!("it says that it is of event {}, but holds event {}", snapshot.at, world.head())),
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
                tracing::warn!(at = snapshot.at.0, why, "a snapshot is passed over; more of the log is read instead")
            }
        }
    }
    Ok(World::default())
}

/// Folds the rest of the log into a world. Gives each record to `seen` on the way.
pub fn fold(store: &dyn Store, world: &mut World, mut seen: impl FnMut(&Record, &str)) -> Result<(), EngineError> {
    loop {
        let before = world.head();
        let mut problem = None;
        store.read_after(before, FOLD_ROWS, &mut |id: EventId, body: &str| {
            let applied = Record::read(id, body)
                .map_err(EngineError::from)
                .and_then(|record| world.apply(&record).map(|()| record).map_err(EngineError::from));
            match applied {
                Ok(record) => {
                    seen(&record, body);
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

/// Shows the records after one place up to another.
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

    /// A world in which everything has happened once.
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
        let snapshot = encode(&eventful());
        let known = (4, 0xb28d_08db);
        assert_eq!(
            (snapshot.format, snapshot.checksum),
            known,
            "raise FORMAT, and write down the checksum of the new one"
        );
    }

    #[test]
    fn a_snapshot_comes_back_unless_it_was_touched() {
        let world = eventful();
        let snapshot = encode(&world);
        assert_eq!(decode(&snapshot).unwrap(), world);
        let mut flipped = snapshot.clone();
        flipped.body[7] ^= 1;
        assert!(decode(&flipped).is_err());
        assert!(decode(&Snapshot { format: FORMAT + 1, ..snapshot.clone() }).is_err());
        assert!(decode(&Snapshot { at: snapshot.at.next(), ..snapshot }).is_err());
    }
}
