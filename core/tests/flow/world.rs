//! Records that cannot have happened: a damaged log is noticed when it is folded, not later. And what a decision rested on.

use crate::given::*;
use crate::run::words::*;
use hatchery_core::agent::Birth;
use hatchery_core::event::AgentEvent;
use hatchery_core::history::{ImportedItem, RewindTo, SourceId};
use hatchery_core::session::EndReason::{Failed, User};
use hatchery_core::world::Impossible;
use hatchery_core::{Address, Command, Event, EventId, Exit, MessageKind, Record, Stream, Timestamp, World, step};

#[track_caller]
fn impossible<const N: usize>(history: [Event; N], event: Event, why_expected: &str) {
    let mut world = given(history).world;
    let record = enveloped(&world, event, Timestamp(0));
    match world.apply(&record).expect_err("it cannot have happened") {
        Impossible::Session { at, why, .. }
        | Impossible::Agent { at, why, .. }
        | Impossible::Quest { at, why, .. }
        | Impossible::Status { at, why }
        | Impossible::Mail { at, why, .. } => assert_eq!((at, why), (record.id, why_expected)),
        Impossible::Question { at, .. } => assert_eq!((at, "is not open"), (record.id, why_expected)),
        Impossible::Forward { at, .. } => assert_eq!((at, "refers forward"), (record.id, why_expected)),
        Impossible::OutOfOrder { .. } => panic!("the id is right"),
    }
}

#[test]
fn a_gap_or_a_repetition_in_the_log_is_noticed() {
    for found in [0, 1, 3, u64::MAX] {
        let mut world = nothing().and(started(S)).world;
        let record = Record { id: EventId(found), ts: Timestamp(0), session: Some(T), event: started(T) };
        let expected = Impossible::OutOfOrder { expected: EventId(2), found: EventId(found) };
        assert_eq!(world.apply(&record), Err(expected));
    }
}

#[test]
fn a_session_starts_once_ends_once_and_for_one_reason() {
    impossible([started(S)], started(S), "had started before");
    impossible([], ending(S, User), "never started");
    impossible([started(S), ending(S, User)], ending(S, Failed), "was asked to end before");
    impossible([started(S), ending(S, User), ended(S, User)], ending(S, User), "was asked to end before");
    impossible([], ended(S, User), "never started");
    impossible([started(S)], ended(S, User), "was not asked to end for this reason");
    impossible([started(S), ending(S, User)], ended(S, Failed), "was not asked to end for this reason");
    impossible([started(S), ending(S, User), ended(S, User)], ended(S, User), "was not asked to end for this reason");
}

#[test]
fn an_agent_enters_open_sessions_only() {
    impossible([], created(A, Some(S)), "never started");
    impossible([started(S), ending(S, User)], created(A, Some(S)), "is not open");
    let asleep = [started(S), created(A, Some(S)), slept(A), ending(S, User), ended(S, User)];
    impossible(asleep, woken(A, Some(S)), "is not open");
}

#[test]
fn a_session_does_not_end_around_an_agent_that_is_awake() {
    impossible([started(S), created(A, Some(S)), ending(S, User)], ended(S, User), "has agents that are awake");
}

#[test]
fn an_agent_lives_one_life() {
    impossible([], said(A, "hello"), "was never created");
    impossible([created(A, None)], created(A, None), "had been created before");
    impossible([created(A, None)], woken(A, None), "was not asleep");
    impossible([created(A, None), slept(A)], slept(A), "was not awake");
    for event in [said(A, "boo"), renamed(A, "Cael"), dead(A), forked(A, B, None), fork_requested(A, B)] {
        impossible([created(A, None), dead(A)], event.clone(), "was dead");
        impossible([laid(A, 9), expired(A)], event, "was dead");
    }
    impossible([created(A, None), dead(A)], slept(A), "was not awake");
    impossible([created(A, None), dead(A)], woken(A, None), "was not asleep");
    for event in [hatched(A), expired(A)] {
        impossible([created(A, None)], event.clone(), "was no egg");
        impossible([laid(A, 9), hatched(A)], event.clone(), "was no egg");
        impossible([laid(A, 9), expired(A)], event.clone(), "was no egg");
        impossible([laid(A, 9), dead(A)], event, "was no egg");
    }
}

#[test]
fn the_tree_has_one_root_and_no_loose_ends() {
    impossible([], founded(A), "has no parent");
    impossible([], dead(R), "is agent 0");
    impossible([], forked(B, A, None), "was never created");
    impossible([], born(R, B, None, Birth::of(A)), "was never created");
    let family = || [created(A, None), forked(A, B, None)];
    impossible(family(), dead(A), "leaves children behind");
    impossible([laid(A, 9), forked(A, B, None)], expired(A), "leaves children behind");
    impossible(family(), moved(A, B), "was not above");
    impossible(family(), moved(A, A), "was not above");
    impossible(family(), moved(B, NOBODY), "was not above");
}

#[test]
fn a_fork_waits_once_and_ends_once() {
    impossible([], fork_cancelled(R, A), "had no such fork waiting");
    impossible([called(R), fork_requested(R, A)], fork_cancelled(R, B), "had no such fork waiting");
    impossible([called(R), fork_requested(R, A)], fork_requested(R, A), "had been created before");
    impossible([created(A, None), called(A), fork_requested(A, B)], dead(A), "had a fork waiting");
}

#[test]
fn a_mail_is_delivered_once_and_read_once() {
    let (human, to) = (Address::Human, Address::Agent(R));
    impossible([], delivered(to, 1), "was not queued");
    impossible([sent(human, to, "one"), delivered(to, 2)], delivered(to, 2), "was not queued");
    impossible([sent(human, to, "one")], delivered(human, 2), "was not queued");
    impossible([sent(human, to, "one"), opened(to, 2)], opened(to, 2), "was not unread");
    impossible([sent(human, to, "one"), opened(to, 2)], delivered(to, 2), "was not queued");
}

#[test]
fn an_event_refers_to_earlier_ones_only() {
    impossible([], forked(R, A, Some(2)), "refers forward");
    impossible([said(R, "one")], rewound(R, 3), "refers forward");
    impossible([], opened(Address::Human, u64::MAX), "refers forward");
    impossible([], delivered(Address::Human, 2), "refers forward");
}

#[test]
fn what_an_event_refers_to_is_known() {
    let to = Address::Human;
    let referring = [forked(R, A, Some(7)), rewound(R, 7), delivered(to, 7), opened(to, 7)];
    assert!(referring.iter().all(|event| event.refers_to() == Some(EventId(7))));
    let plain = [forked(R, A, None), said(R, "one"), sent(to, to, "one"), dead(A), moved(A, R), fork_requested(R, A)];
    assert!(plain.iter().all(|event| event.refers_to().is_none()));
}

/// Which streams another writer must not have touched for an answer to stand.
#[track_caller]
fn rests_on<const N: usize>(it: Given, command: Command, expected: [Stream; N]) {
    let mut world: World = it.world;
    let records = step(&mut world, &command, Timestamp(5_000)).expect("it is possible");
    let expected = expected.into_iter().collect();
    assert_eq!(hatchery_core::rests_on(&command, &records), expected);
}

#[test]
fn a_decision_rests_on_what_it_read_and_on_what_it_changes() {
    let (s, t) = (Stream::Session(S), Stream::Session(T));
    let [r, a, b, c] = [R, A, B, C].map(Stream::Agent);
    let mail = Stream::Mail;
    let (human, to_a, to_b) = (Address::Human, Address::Agent(A), Address::Agent(B));
    rests_on(nothing(), found(R), [Stream::Registry]);
    rests_on(given([]), start(S), [s]);
    rests_on(given([started(S)]), end(S, User), [s]);
    rests_on(given([started(S)]), create(A, Some(S)), [s, r, a]);
    rests_on(given([created(A, None)]), fork(A, B), [a, b]);
    rests_on(given([created(A, None), called(A)]), fork(A, B), [a, b]);
    rests_on(given([started(S), created(A, None), slept(A)]), wake(A, Some(S)), [s, a]);
    rests_on(given([started(S), created(A, Some(S))]), say(A, "hello"), [a]);
    rests_on(given([said(R, "one")]), rewind(R, RewindTo::Message(EventId(2))), [r]);
    rests_on(given([created(A, None)]), rename(A, "Cael"), [a]);
    rests_on(given([]), Command::Tick, []);
    // An agent that another writer kills meanwhile must not be put to sleep.
    rests_on(given([started(S), created(A, Some(S)), ending(S, User)]), close(S), [s, a]);
    // A session that another writer ends meanwhile must not end as inactive.
    rests_on(given([started_idle(S, 1_000), started_idle(T, 9_000)]), Command::Tick, [s]);
    rests_on(given([started_idle(S, 1_000)]), start(T), [s, t]);
    // Nobody may fork from those who die, or kill those who move up.
    let family = || given([created(A, None), forked(A, B, None), forked(B, C, None)]);
    rests_on(family(), kill(A), [a, b]);
    rests_on(family(), cascade(A), [a, b, c]);
    rests_on(family(), kill_by(A, C, false), [a, c]);
    rests_on(given([laid(A, 1_000), forked(A, B, None)]), Command::Tick, [a, b]);
    // Nor may those who write to each other be killed meanwhile.
    let two = || given([created(A, None), created(B, None)]);
    rests_on(two(), send(to_a, to_b, "one"), [a, b, mail(to_a), mail(to_b)]);
    rests_on(two().and(sent(human, to_a, "one")), take(to_a), [a, mail(to_a)]);
    rests_on(two().and(sent(human, to_a, "one")), read(to_a), [a, mail(to_a)]);
    let line = ImportedItem::Message {
        agent: A,
        kind: MessageKind::User,
        content: "one".into(),
        to: None,
        source_id: SourceId::Number(1),
    };
    let items = vec![ImportedItem::Agent { agent: A, parent: R, upto: None }, line];
    rests_on(given([]), Command::ImportHistory { items }, [r, a]);
    // A child that waited must not be born into a session that another writer ends meanwhile.
    let birth = Birth { session: Some(S), ..Birth::of(B) };
    let waiting = given([
        started(S),
        created(A, None),
        called(A),
        Event::Agent { agent: A, what: AgentEvent::ForkRequested { birth } },
    ]);
    rests_on(waiting, add(A, MessageKind::ToolResult, "ok"), [a, s]);
    // Nor may a run begin in one.
    let awake = || given([started(S), created(A, Some(S))]);
    rests_on(awake(), run(A, spec()), [a, s]);
    rests_on(awake(), tell(A, "hello", Some(spec())), [a, s]);
    rests_on(awake().and(requested(A, spec())), tell(A, "hello", None), [a]);
    rests_on(awake().and(requested(A, spec())), spawn(first()), [a]);
    rests_on(working(spec()), interrupt(A), [a]);
    rests_on(working(spec()), stop(A), [a]);
    rests_on(working(spec()), output(first(), 10, 11, []), [a]);
    rests_on(working(spec()), exit(first(), Exit::Unknown), [a]);
    rests_on(working(spec()), call(first(), 1, send(to_a, human, "help")), [a, mail(to_a), mail(human)]);
}
