//! What every store does. Each test runs over both back ends, through the trait alone.

use crate::support::place::Place;
use crate::support::rows::{append, read, row, rows};
use crate::support::runtime;
use hatchery::store::migration::MIGRATIONS;
use hatchery::store::{
    self, Batch, IdRange, MessageRanges, Row, SNAPSHOTS_KEPT, Snapshot, Store, StoreError, StoreStatus,
};
use hatchery_core::history::HistoryRange;
use hatchery_core::{AgentId, EventId};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::thread;

macro_rules! conformance {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[test] fn $name() { super::$name(&super::Place::sqlite()); })+
        }
        mod postgres {
            $(#[test] fn $name() { super::$name(&super::Place::postgres()); })+
        }
    };
}

conformance![
    migrating_again_changes_nothing,
    a_newer_schema_is_refused_and_left_alone,
    inspecting_changes_nothing,
    ids_begin_at_one_and_have_no_gaps,
    what_was_appended_is_there_for_the_next_handle,
    a_batch_is_added_whole_or_not_at_all,
    a_foreign_event_in_a_stream_that_was_read_is_a_conflict,
    a_foreign_event_elsewhere_only_moves_the_batch,
    a_batch_that_speaks_of_itself_is_never_moved,
    an_event_that_was_seen_is_no_conflict,
    an_empty_batch_writes_nothing_but_is_judged,
    reading_goes_by_cursor_and_limit,
    the_visitor_may_use_the_store,
    a_history_is_passed_on_row_by_row,
    text_comes_back_as_it_was,
    a_large_body_and_a_large_batch_are_kept,
    snapshots_are_kept_replaced_and_dropped,
    parts_of_a_history_are_found_by_the_index_and_by_what_the_caller_knows,
    only_ranges_that_continue_the_index_are_added_to_it,
    an_index_beyond_the_log_is_not_used,
    a_sound_store_has_nothing_to_report,
    concurrent_writers_make_one_log,
];

/// Writers in the concurrent test, and how many batches each of them adds.
const WRITERS: usize = 8;
const BATCHES: usize = 50;
/// Each takes seconds: no writer is starved for so long.
const TRIES: usize = 20;

fn migrating_again_changes_nothing(place: &Place) {
    let store = place.open();
    append(&*store, 0, &[], &rows("a", 2)).unwrap();
    store.migrate().unwrap();
    place.open().migrate().unwrap();
    assert_eq!(read(&*store, 0), [(1, "a 0".to_owned()), (2, "a 1".to_owned())]);
}

fn a_newer_schema_is_refused_and_left_alone(place: &Place) {
    let store = place.open();
    append(&*store, 0, &[], &rows("a", 3)).unwrap();
    place.run_sql("INSERT INTO migrations (name) VALUES ('9999_future')");
    let refused = place.try_open().unwrap_err();
    assert!(matches!(&refused, StoreError::NewerSchema { found, .. } if found == "9999_future"), "{refused}");
    assert!(refused.to_string().contains("written by a newer Hatchery (schema `9999_future`)"), "{refused}");
    assert!(matches!(store.migrate(), Err(StoreError::NewerSchema { .. })));
    assert_eq!(store.head().unwrap(), EventId(3));
    assert_eq!(read(&*store, 0).len(), 3);
}

fn inspecting_changes_nothing(place: &Place) {
    let inspect = || store::inspect(&place.url(), runtime());
    if let Place::Sqlite(folder) = place {
        std::fs::write(folder.path().join("log.db"), "").unwrap();
    }
    for _ in 0..2 {
        assert_eq!(inspect().unwrap(), StoreStatus { head: EventId::START, pending: MIGRATIONS.len() });
    }
    let store = place.open();
    append(&*store, 0, &[], &rows("a", 3)).unwrap();
    assert_eq!(inspect().unwrap(), StoreStatus { head: EventId(3), pending: 0 });
    place.run_sql(&format!("DELETE FROM migrations WHERE name = '{}'", MIGRATIONS.last().unwrap().name));
    // With what the open store has not folded into its file yet, and without.
    for store in [Some(store), None] {
        assert_eq!(inspect().unwrap(), StoreStatus { head: EventId(3), pending: 1 }, "{store:?}");
    }
    place.run_sql("INSERT INTO migrations (name) VALUES ('9999_future')");
    assert!(matches!(inspect(), Err(StoreError::NewerSchema { .. })));
}

fn ids_begin_at_one_and_have_no_gaps(place: &Place) {
    let store = place.open();
    assert_eq!(store.head().unwrap(), EventId::START);
    assert_eq!(append(&*store, 0, &[], &rows("a", 2)).unwrap(), EventId(1));
    assert_eq!(append(&*store, 2, &["a"], &rows("a", 1)).unwrap(), EventId(3));
    assert_eq!(append(&*store, 3, &["a", "b"], &rows("b", 4)).unwrap(), EventId(4));
    assert_eq!(store.head().unwrap(), EventId(7));
    assert_eq!(ids(&*store), [1, 2, 3, 4, 5, 6, 7]);
}

fn what_was_appended_is_there_for_the_next_handle(place: &Place) {
    append(&*place.open(), 0, &[], &rows("a", 2)).unwrap();
    let store = place.open();
    assert_eq!(store.head().unwrap(), EventId(2));
    assert_eq!(append(&*store, 2, &["a"], &rows("a", 1)).unwrap(), EventId(3));
}

fn a_batch_is_added_whole_or_not_at_all(place: &Place) {
    let store = place.open();
    append(&*store, 0, &[], &rows("a", 1)).unwrap();
    // The last of three rows is one that the database refuses.
    let (forbid, allow) = match place {
        Place::Sqlite(_) => (
            "CREATE TRIGGER fault BEFORE INSERT ON events WHEN new.body = 'b 2' BEGIN SELECT raise(ABORT, 'no'); END",
            "DROP TRIGGER fault",
        ),
        Place::Postgres(_) => (
            "ALTER TABLE events ADD CONSTRAINT fault CHECK (body <> 'b 2')",
            "ALTER TABLE events DROP CONSTRAINT fault",
        ),
    };
    place.run_sql(forbid);
    let failed = append(&*store, 1, &[], &rows("b", 3)).unwrap_err();
    assert!(matches!(failed, StoreError::Broken(_)), "{failed}");
    assert_eq!(store.head().unwrap(), EventId(1));
    place.run_sql(allow);
    assert_eq!(ids(&*store), [1]);
    assert_eq!(append(&*store, 1, &[], &rows("b", 3)).unwrap(), EventId(2));
}

fn a_foreign_event_in_a_stream_that_was_read_is_a_conflict(place: &Place) {
    let (ours, theirs) = (place.open(), place.open());
    append(&*ours, 0, &[], &rows("a", 1)).unwrap();
    append(&*theirs, 1, &["b"], &rows("b", 1)).unwrap();
    let refused = append(&*ours, 1, &["a", "b"], &rows("a", 2)).unwrap_err();
    assert!(matches!(refused, StoreError::Conflict), "{refused}");
    assert_eq!(ids(&*ours), [1, 2]);
    assert_eq!(ours.head().unwrap(), EventId(2));
    assert_eq!(append(&*ours, 2, &["a", "b"], &rows("a", 2)).unwrap(), EventId(3));
}

fn a_foreign_event_elsewhere_only_moves_the_batch(place: &Place) {
    let (ours, theirs) = (place.open(), place.open());
    append(&*ours, 0, &[], &rows("a", 1)).unwrap();
    append(&*theirs, 1, &["b"], &rows("b", 3)).unwrap();
    assert_eq!(append(&*ours, 1, &["a"], &rows("a", 2)).unwrap(), EventId(5));
    let bodies: Vec<String> = read(&*theirs, 0).into_iter().map(|(_, body)| body).collect();
    assert_eq!(bodies, ["a 0", "b 0", "b 1", "b 2", "a 0", "a 1"]);
    assert_eq!(ids(&*theirs), [1, 2, 3, 4, 5, 6]);
}

fn a_batch_that_speaks_of_itself_is_never_moved(place: &Place) {
    let store = place.open();
    append(&*store, 0, &[], &rows("a", 2)).unwrap();
    let batch = |seen, rows| Batch { seen: EventId(seen), reads: &[], rows, fixed: true };
    let more = rows("b", 1);
    assert!(matches!(store.append(batch(1, &more)), Err(StoreError::Conflict)));
    assert!(matches!(store.append(batch(1, &[])), Err(StoreError::Conflict)));
    // Nor where the log ends before what was seen.
    assert!(matches!(store.append(batch(3, &more)), Err(StoreError::Conflict)));
    assert!(matches!(store.append(batch(3, &[])), Err(StoreError::Conflict)));
    assert_eq!(ids(&*store), [1, 2]);
    assert_eq!(store.append(batch(2, &more)).unwrap(), EventId(3));
}

fn an_event_that_was_seen_is_no_conflict(place: &Place) {
    let store = place.open();
    append(&*store, 0, &[], &rows("a", 2)).unwrap();
    append(&*store, 2, &[], &rows("b", 2)).unwrap();
    assert!(append(&*store, 2, &["a"], &rows("a", 1)).is_ok());
    assert!(append(&*store, 4, &["b"], &rows("b", 1)).is_ok());
    assert!(matches!(append(&*store, 4, &["a"], &rows("a", 1)), Err(StoreError::Conflict)));
}

fn an_empty_batch_writes_nothing_but_is_judged(place: &Place) {
    let store = place.open();
    assert_eq!(append(&*store, 0, &["a"], &[]).unwrap(), EventId(1));
    append(&*store, 0, &[], &rows("a", 2)).unwrap();
    assert_eq!(append(&*store, 2, &["a"], &[]).unwrap(), EventId(3));
    assert_eq!(append(&*store, 0, &["b"], &[]).unwrap(), EventId(3));
    assert!(matches!(append(&*store, 0, &["a"], &[]), Err(StoreError::Conflict)));
    assert_eq!(store.head().unwrap(), EventId(2));
}

fn reading_goes_by_cursor_and_limit(place: &Place) {
    let store = place.open();
    append(&*store, 0, &[], &rows("a", 1000)).unwrap();
    let page = |after, limit| {
        let mut ids = Vec::new();
        store
            .read_after(EventId(after), limit, &mut |id, _| {
                ids.push(id.0);
                ControlFlow::Continue(())
            })
            .unwrap();
        ids
    };
    assert_eq!(page(0, usize::MAX), (1..=1000).collect::<Vec<_>>());
    assert_eq!(page(0, 3), [1, 2, 3]);
    assert_eq!(page(3, 700), (4..=703).collect::<Vec<_>>());
    assert_eq!(page(998, 10), [999, 1000]);
    for (after, limit) in [(0, 0), (1000, 10), (1001, 10), (u64::MAX, 10)] {
        assert!(page(after, limit).is_empty(), "after {after}, limit {limit}");
    }
}

fn the_visitor_may_use_the_store(place: &Place) {
    let store = place.open();
    append(&*store, 0, &[], &rows("a", 2)).unwrap();
    let mut heads = Vec::new();
    store
        .read_after(EventId::START, 10, &mut |_, _| {
            heads.push(store.head().unwrap());
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(heads, [EventId(2), EventId(2)]);
}

fn text_comes_back_as_it_was(place: &Place) {
    let store = place.open();
    let texts =
        ["", " ", "grüße 🥚", "'; DROP TABLE events; --", "\u{1}\t\r\n\\N\\", "{\"a\":\"\\u0000\"}", "\u{10ffff}"];
    let rows: Vec<Row> = texts.iter().map(|text| row(&format!("stream {text}"), text)).collect();
    append(&*store, 0, &[], &rows).unwrap();
    let bodies: Vec<String> = read(&*store, 0).into_iter().map(|(_, body)| body).collect();
    assert_eq!(bodies, texts);
    for text in texts {
        let stream = format!("stream {text}");
        assert!(matches!(append(&*store, 0, &[&stream], &[]), Err(StoreError::Conflict)), "{text:?}");
    }
}

fn a_large_body_and_a_large_batch_are_kept(place: &Place) {
    let store = place.open();
    // Not of one letter: that would be stored compressed, in a page.
    let large: String = (0..).map(|number: u32| number.wrapping_mul(2_654_435_761).to_string()).take(120_000).collect();
    let large = large[..1 << 20].to_owned();
    append(&*store, 0, &[], &[row("a", &large), row("a", "small")]).unwrap();
    append(&*store, 2, &["a"], &rows("b", 5000)).unwrap();
    let read = read(&*store, 0);
    assert_eq!(read.len(), 5002);
    assert!(read[0].1 == large, "the large body came back changed");
    assert_eq!(read[5001], (5002, "b 4999".to_owned()));
}

fn snapshots_are_kept_replaced_and_dropped(place: &Place) {
    let store = place.open();
    let snapshot =
        |at, format, body: &[u8]| Snapshot { at: EventId(at), format, checksum: u32::MAX, body: body.into() };
    let save = |snapshot: &Snapshot| store.checkpoint(snapshot, &MessageRanges::default()).unwrap();
    assert!(store.snapshots().unwrap().is_empty());
    let bodies: [&[u8]; 4] = [b"", b"\0\xff", b"third", b"fourth"];
    for (at, body) in (10..).zip(bodies) {
        save(&snapshot(at, u32::MAX, body));
    }
    assert_eq!(store.snapshots().unwrap(), [snapshot(13, u32::MAX, b"fourth"), snapshot(12, u32::MAX, b"third")]);
    assert_eq!(store.snapshots().unwrap().len(), SNAPSHOTS_KEPT);
    save(&snapshot(12, 7, b"again"));
    // Older than what is kept: it goes at once.
    save(&snapshot(3, 7, b"old"));
    assert_eq!(store.snapshots().unwrap(), [snapshot(13, u32::MAX, b"fourth"), snapshot(12, 7, b"again")]);
    assert_eq!(place.open().snapshots().unwrap().len(), 2);
    for _ in 0..2 {
        assert!(store.rebuild(&snapshot(5, 1, b"anew"), &MessageRanges::default()).unwrap());
        assert_eq!(store.snapshots().unwrap(), [snapshot(5, 1, b"anew")]);
    }
}

const ANN: AgentId = AgentId::from_bytes([1; 16]);
const BEN: AgentId = AgentId::from_bytes([2; 16]);

fn parts_of_a_history_are_found_by_the_index_and_by_what_the_caller_knows(place: &Place) {
    let store = place.open();
    append(&*store, 0, &[], &rows("a", 20)).unwrap();
    let of = vec![(ANN, vec![range(1, 3), range(5, 5), range(8, 10)]), (BEN, vec![range(4, 4), range(6, 7)])];
    let checkpoint = store.checkpoint(&at(10), &MessageRanges { after: EventId(0), upto: EventId(10), of });
    assert_eq!(checkpoint.unwrap(), EventId(10));
    let of = vec![(ANN, vec![range(12, 13)])];
    store.checkpoint(&at(14), &MessageRanges { after: EventId(10), upto: EventId(14), of }).unwrap();
    // Opened again: the index is kept, what the caller knows is not.
    let store = place.open();
    let whole = [part(ANN, 0, 20)];
    assert_eq!(ids_of_parts(&*store, &whole, &[]), [1, 2, 3, 5, 8, 9, 10, 12, 13]);
    assert_eq!(ids_of_parts(&*store, &whole, &[range(16, 17)]), [1, 2, 3, 5, 8, 9, 10, 12, 13, 16, 17]);
    assert_eq!(ids_of_parts(&*store, &[part(ANN, 2, 9), part(BEN, 4, 6)], &[]), [3, 5, 6, 8, 9]);
    assert_eq!(ids_of_parts(&*store, &[part(ANN, 3, 4), part(BEN, 20, 30)], &[]), [0; 0]);
    assert_eq!(ids_of_parts(&*store, &[], &[]), [0; 0]);
    // Not by one who knows less than the index does.
    let anew = |upto| MessageRanges {
        after: EventId(0),
        upto: EventId(upto),
        of: vec![(BEN, vec![range(2, 2), range(15, 15)])],
    };
    assert!(!store.rebuild(&at(13), &anew(13)).unwrap());
    assert_eq!(store.indexed().unwrap(), Some(EventId(14)));
    assert!(store.rebuild(&at(16), &anew(16)).unwrap());
    assert_eq!(store.indexed().unwrap(), Some(EventId(16)));
    assert_eq!(ids_of_parts(&*store, &whole, &[range(17, 17)]), [17]);
    assert_eq!(ids_of_parts(&*store, &[part(BEN, 0, 20)], &[]), [2, 15]);
}

/// The visitor sees a row before the last one was read: it may use the store, and may stop without reading the rest.
fn a_history_is_passed_on_row_by_row(place: &Place) {
    let store = place.open();
    append(&*store, 0, &[], &rows("a", 3_000)).unwrap();
    let of = vec![(ANN, vec![range(1, 3_000)])];
    store.checkpoint(&at(3_000), &MessageRanges { after: EventId(0), upto: EventId(3_000), of }).unwrap();
    for _ in 0..3 {
        let mut seen = Vec::new();
        store
            .read_parts(&[part(ANN, 0, 3_000)], &[], &mut |id, _| {
                seen.push((id, store.head().unwrap()));
                if seen.len() == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
            .unwrap();
        assert_eq!(seen, [(EventId(1), EventId(3_000)), (EventId(2), EventId(3_000))]);
    }
    assert_eq!(ids_of_parts(&*store, &[part(ANN, 0, 3_000)], &[]), (1..=3_000).collect::<Vec<_>>());
}

fn only_ranges_that_continue_the_index_are_added_to_it(place: &Place) {
    let store = place.open();
    append(&*store, 0, &[], &rows("a", 9)).unwrap();
    let ranges = |after, upto, first, last| MessageRanges {
        after: EventId(after),
        upto: EventId(upto),
        of: vec![(ANN, vec![range(first, last)])],
    };
    assert_eq!(store.checkpoint(&at(4), &ranges(0, 4, 1, 2)).unwrap(), EventId(4));
    // Somebody else has kept these already, or has not yet kept what comes before.
    for late in [ranges(0, 6, 5, 6), ranges(6, 8, 7, 8)] {
        assert_eq!(store.checkpoint(&at(6), &late).unwrap(), EventId(4));
    }
    assert_eq!(ids_of_parts(&*store, &[part(ANN, 0, 9)], &[]), [1, 2]);
    assert_eq!(store.checkpoint(&at(8), &ranges(4, 8, 7, 8)).unwrap(), EventId(8));
    assert_eq!(ids_of_parts(&*store, &[part(ANN, 0, 9)], &[]), [1, 2, 7, 8]);
    assert_eq!(store.indexed().unwrap(), Some(EventId(8)));
}

/// As when the end of the log was lost: the index names rows that may become other messages.
fn an_index_beyond_the_log_is_not_used(place: &Place) {
    let store = place.open();
    append(&*store, 0, &[], &rows("a", 4)).unwrap();
    let ranges = |after, upto| MessageRanges {
        after: EventId(after),
        upto: EventId(upto),
        of: vec![(ANN, vec![range(after + 1, upto)])],
    };
    let beyond = || {
        store.rebuild(&at(4), &ranges(0, 6)).unwrap();
        assert_eq!(store.indexed().unwrap(), None);
    };
    beyond();
    assert!(store.rebuild(&at(4), &ranges(0, 3)).unwrap(), "although it goes less far");
    assert_eq!(store.indexed().unwrap(), Some(EventId(3)));
    beyond();
    assert_eq!(store.checkpoint(&at(4), &ranges(2, 4)).unwrap(), EventId::START);
    assert_eq!(ids_of_parts(&*store, &[part(ANN, 0, 4)], &[]), [0; 0]);
    beyond();
    assert_eq!(store.checkpoint(&at(4), &ranges(0, 4)).unwrap(), EventId(4));
    assert_eq!(ids_of_parts(&*store, &[part(ANN, 0, 4)], &[]), [1, 2, 3, 4]);
}

fn at(id: u64) -> Snapshot {
    Snapshot { at: EventId(id), format: 1, checksum: 0, body: Vec::new() }
}

fn range(first: u64, last: u64) -> IdRange {
    IdRange { first: EventId(first), last: EventId(last) }
}

fn part(agent: AgentId, after: u64, upto: u64) -> HistoryRange {
    HistoryRange { agent, after: EventId(after), upto: EventId(upto) }
}

/// In order, and once: the store promises neither.
fn ids_of_parts(store: &dyn Store, parts: &[HistoryRange], recent: &[IdRange]) -> Vec<u64> {
    let mut ids = Vec::new();
    store
        .read_parts(parts, recent, &mut |id, body| {
            assert_eq!(body, format!("a {}", id.0 - 1));
            ids.push(id.0);
            ControlFlow::Continue(())
        })
        .unwrap();
    ids.sort_unstable();
    ids.dedup();
    ids
}

fn a_sound_store_has_nothing_to_report(place: &Place) {
    let store = place.open();
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    append(&*store, 0, &[], &rows("a", 100)).unwrap();
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

/// Each writer has its own handle and its own stream, and none has seen what the others do. A follower reads by cursor
/// all the while and must meet every id once, in order: a gap would be an event that committed late and was skipped.
fn concurrent_writers_make_one_log(place: &Place) {
    let stores: Vec<Arc<dyn Store>> = (0..WRITERS).map(|_| place.open()).collect();
    let size = |batch: usize| batch % 3 + 1;
    let total = WRITERS * (0..BATCHES).map(size).sum::<usize>();
    let follower = place.open();
    let followed = thread::scope(|scope| {
        for (writer, store) in stores.iter().enumerate() {
            scope.spawn(move || {
                let stream = format!("writer {writer}");
                let mut seen = 0;
                for batch in 0..BATCHES {
                    let rows: Vec<Row> =
                        (0..size(batch)).map(|part| row(&stream, &format!("{writer} {batch} {part}"))).collect();
                    let first = append_patiently(&**store, seen, &stream, &rows);
                    assert!(first.0 > seen, "{first} was given out twice");
                    seen = first.0 + u64::try_from(rows.len()).unwrap() - 1;
                }
            });
        }
        let following = scope.spawn(|| {
            let mut followed = Vec::new();
            while followed.len() < total {
                let cursor = EventId(u64::try_from(followed.len()).unwrap());
                follower
                    .read_after(cursor, 100, &mut |id, body| {
                        followed.push((id.0, body.to_owned()));
                        ControlFlow::Continue(())
                    })
                    .unwrap();
            }
            followed
        });
        following.join().unwrap()
    });
    assert_eq!(followed.iter().map(|(id, _)| *id).collect::<Vec<_>>(), (1..=total as u64).collect::<Vec<_>>());
    assert_eq!(read(&*follower, 0), followed);
    let mut next = [(0, 0); WRITERS];
    let mut open: Option<usize> = None;
    for (_, body) in &followed {
        let [writer, batch, part] = body.split(' ').map(|number| number.parse().unwrap()).collect::<Vec<usize>>()[..]
        else {
            panic!("a strange body: {body}");
        };
        assert!(open.is_none_or(|open| open == writer), "{body} stands inside another batch");
        assert_eq!((batch, part), next[writer], "writer {writer} is out of order");
        let last = part + 1 == size(batch);
        next[writer] = if last { (batch + 1, 0) } else { (batch, part + 1) };
        open = (!last).then_some(writer);
    }
    assert_eq!(next, [(BATCHES, 0); WRITERS]);
    assert_eq!(follower.check().unwrap(), Vec::<String>::new());
}

/// Many writers on one SQLite file starve each other at times, and then the store says "later": nothing was written.
fn append_patiently(store: &dyn Store, seen: u64, stream: &str, rows: &[Row]) -> EventId {
    let mut tries = (0..TRIES).map(|_| append(store, seen, &[stream], rows));
    let settled = tries.find(|result| !matches!(result, Err(StoreError::Unavailable(_))));
    settled.expect("a turn within so many tries").unwrap()
}

fn ids(store: &dyn Store) -> Vec<u64> {
    read(store, 0).into_iter().map(|(id, _)| id).collect()
}
