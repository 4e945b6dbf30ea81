//! The same random work for both back ends: whatever one answers, the other answers, too. `HATCHERY_SEED` repeats a run.

use crate::support::place::Place;
use crate::support::postgres::Server;
use crate::support::random::Random;
use hatchery::store::{Batch, IdRange, MessageRanges, Row, Snapshot, Store, StoreError};
use hatchery_core::history::HistoryRange;
use hatchery_core::{AgentId, EventId};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::{env, panic};

/// Seeds that always run, and how many new ones run beside them each time.
const KNOWN_SEEDS: [u64; 3] = [1, 2, 3];
const NEW_SEEDS: usize = 3;
const STEPS: usize = 150;
/// Few, so that writers meet.
const STREAMS: [&str; 4] = ["a", "b", "grüße 🥚", ""];
const AGENTS: [AgentId; 2] = [AgentId::from_bytes([1; 16]), AgentId::from_bytes([2; 16])];
/// Two writers on each store: each is a stranger to the other.
const HANDLES: usize = 2;

#[derive(Debug)]
enum Step {
    Append {
        seen: EventId,
        reads: Vec<String>,
        rows: Vec<Row>,
        fixed: bool,
    },
    Read {
        after: EventId,
        limit: usize,
    },
    Head,
    /// The ranges go on from where the index ends, or from somewhere else, as a writer's do that comes too late.
    Checkpoint(Snapshot, Vec<(AgentId, Vec<IdRange>)>, bool),
    Snapshots,
    ReadParts(Vec<HistoryRange>, Vec<IdRange>),
    Rebuild(Snapshot, Vec<(AgentId, Vec<IdRange>)>, EventId),
    Check,
    Migrate,
    Reopen,
}

#[test]
fn both_back_ends_answer_alike() {
    let seeds = match env::var("HATCHERY_SEED") {
        Ok(seed) => vec![seed.parse().expect("HATCHERY_SEED is a number")],
        Err(_) => KNOWN_SEEDS.into_iter().chain((0..NEW_SEEDS).map(|_| getrandom::u64().unwrap())).collect(),
    };
    // One for all seeds: it would stop with its last user.
    let _server = Server::shared();
    for seed in seeds {
        if let Err(failure) = panic::catch_unwind(|| compare(seed)) {
            eprintln!("repeat it with HATCHERY_SEED={seed}");
            panic::resume_unwind(failure);
        }
    }
}

fn compare(seed: u64) {
    let mut random = Random::new(seed);
    let places = [Place::sqlite(), Place::postgres()];
    let mut handles = places.each_ref().map(|place| [(); HANDLES].map(|()| place.open()));
    for number in 0..STEPS {
        let head = handles[0][0].head().unwrap();
        let who = random.below(HANDLES);
        let step = invent(&mut random, head);
        let [embedded, shared] = [0, 1].map(|at| take(&step, &places[at], &mut handles[at][who]));
        assert_eq!(embedded, shared, "step {number} by {who}: {step:?}");
    }
    let [embedded, shared] = handles.map(|[store, _]| log_of(&*store));
    assert!(!embedded.is_empty());
    assert_eq!(embedded, shared);
}

fn invent(random: &mut Random, head: EventId) -> Step {
    match random.below(22) {
        0..=9 => Step::Append {
            seen: if random.below(2) == 0 { head } else { near(random, head) },
            reads: (0..random.below(3)).map(|_| (*random.one_of(&STREAMS)).to_owned()).collect(),
            rows: (0..random.below(5)).map(|_| invent_row(random)).collect(),
            fixed: random.below(4) == 0,
        },
        10..=12 => Step::Read { after: near(random, head), limit: random.below(12) },
        13 => Step::Head,
        14 | 15 => {
            let body = (0..random.below(40)).map(|_| random.next().to_le_bytes()[0]).collect();
            let at = near(random, head);
            let [format, checksum] = [random.next(), random.next()].map(|number| number as u32);
            let ranges = AGENTS.map(|agent| (agent, ranges_up_to(random, head))).to_vec();
            Step::Checkpoint(Snapshot { at, format, checksum, body }, ranges, random.below(4) == 0)
        }
        16 => Step::Snapshots,
        17 => match random.below(3) {
            0 => {
                let ranges = AGENTS.map(|agent| (agent, ranges_up_to(random, head))).to_vec();
                let snapshot = Snapshot { at: head, format: 1, checksum: 2, body: vec![3] };
                Step::Rebuild(snapshot, ranges, near(random, head))
            }
            1 => Step::Check,
            _ => Step::Migrate,
        },
        18 => Step::Reopen,
        19 | 20 => {
            let part = |random: &mut Random| {
                let (one, other) = (near(random, head), near(random, head));
                HistoryRange { agent: *random.one_of(&AGENTS), after: one.min(other), upto: one.max(other) }
            };
            Step::ReadParts((0..random.below(4)).map(|_| part(random)).collect(), ranges_up_to(random, head))
        }
        _ => Step::Read { after: EventId::START, limit: usize::MAX },
    }
}

/// A place in the log, mostly near its end, now and then beyond it.
fn near(random: &mut Random, head: EventId) -> EventId {
    let back = u64::try_from(random.below(8)).unwrap();
    EventId((head.0 + 2).saturating_sub(back))
}

/// A few ranges near the end of the log, in order.
fn ranges_up_to(random: &mut Random, head: EventId) -> Vec<IdRange> {
    let mut places: Vec<EventId> = (0..2 * random.below(3)).map(|_| near(random, head)).collect();
    places.sort();
    places.dedup();
    places.chunks_exact(2).map(|pair| IdRange { first: pair[0], last: pair[1] }).collect()
}

fn since(after: EventId, ranges: &[IdRange]) -> Vec<IdRange> {
    let later = ranges.iter().filter(|range| range.last > after);
    later.map(|range| IdRange { first: range.first.max(after.next()), ..*range }).collect()
}

fn invent_row(random: &mut Random) -> Row {
    let body = format!("{{\"text\":\"{}\"}}", "é".repeat(random.below(100)));
    Row { id: EventId(random.next()), stream: (*random.one_of(&STREAMS)).to_owned(), body }
}

fn take(step: &Step, place: &Place, store: &mut Arc<dyn Store>) -> String {
    match step {
        Step::Append { seen, reads, rows, fixed } => {
            answer(store.append(Batch { seen: *seen, reads, rows, fixed: *fixed }))
        }
        Step::Read { after, limit } => {
            let mut rows = Vec::new();
            let result = store.read_after(*after, *limit, &mut |id, body| {
                rows.push((id, body.to_owned()));
                ControlFlow::Continue(())
            });
            answer(result.map(|()| rows))
        }
        Step::Head => answer(store.head()),
        Step::Checkpoint(snapshot, of, late) => answer(store.indexed().and_then(|indexed| {
            let indexed = indexed.unwrap_or(EventId::START);
            let after = if *late { EventId(indexed.0 + 1) } else { indexed };
            let of = of.iter().map(|(agent, ranges)| (*agent, since(after, ranges))).collect();
            let ranges = MessageRanges { after, upto: snapshot.at.max(after), of };
            Ok((store.checkpoint(snapshot, &ranges)?, store.indexed()?))
        })),
        Step::Snapshots => answer(store.snapshots()),
        Step::ReadParts(parts, recent) => {
            let mut rows = BTreeSet::new();
            let result = store.read_parts(parts, recent, &mut |id, body| {
                rows.insert((id, body.to_owned()));
                ControlFlow::Continue(())
            });
            answer(result.map(|()| rows))
        }
        Step::Rebuild(snapshot, of, upto) => {
            let of = of.clone();
            answer(store.rebuild(snapshot, &MessageRanges { after: EventId::START, upto: *upto, of }))
        }
        Step::Check => answer(store.check()),
        Step::Migrate => answer(store.migrate()),
        Step::Reopen => {
            *store = place.open();
            String::new()
        }
    }
}

/// What matters of an answer: its value, or the kind of its error. The words are each back end's own.
fn answer<T: Debug>(result: Result<T, StoreError>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(error) => {
            let shown = format!("{error:?}");
            shown.split(['(', ' ']).next().unwrap_or_default().to_owned()
        }
    }
}

fn log_of(store: &dyn Store) -> Vec<(EventId, String)> {
    let mut rows = Vec::new();
    store
        .read_after(EventId::START, usize::MAX, &mut |id, body| {
            rows.push((id, body.to_owned()));
            ControlFlow::Continue(())
        })
        .unwrap();
    rows
}
