//! Records that cannot have happened: a damaged log is noticed when it is folded, not later. And what a decision rested on.

use crate::given::*;
use hatchery_core::session::EndReason::{Failed, User};
use hatchery_core::world::Impossible;
use hatchery_core::{Command, Event, EventId, Record, Stream, Timestamp, World, step};

#[track_caller]
fn impossible<const N: usize>(history: [Event; N], event: Event, why_expected: &str) {
    let mut world = given(history).world;
    let record = enveloped(&world, event, Timestamp(0));
    match world.apply(&record).expect_err("it cannot have happened") {
        Impossible::Session { at, why, .. } | Impossible::Agent { at, why, .. } => {
            assert_eq!((at, why), (record.id, why_expected));
        }
        Impossible::OutOfOrder { .. } => panic!("the id is right"),
    }
}

#[test]
fn a_gap_or_a_repetition_in_the_log_is_noticed() {
    for found in [0, 1, 3, u64::MAX] {
        let mut world = given([started(S)]).world;
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
    for event in [said(A, "boo"), renamed(A, "Cael"), dead(A)] {
        impossible([created(A, None), dead(A)], event, "was dead");
    }
    impossible([created(A, None), dead(A)], slept(A), "was not awake");
    impossible([created(A, None), dead(A)], woken(A, None), "was not asleep");
    let orphan = Event::AgentCreated { agent: A, parent: Some(B), name: None, session: None };
    impossible([], orphan, "was never created");
}

/// Which streams another writer must not have touched for an answer to stand.
#[track_caller]
fn rests_on<const N: usize>(it: Given, command: Command, expected: [Stream; N]) {
    let mut world: World = it.world;
    let records = step(&mut world, &command, Timestamp(5_000)).expect("it is possible");
    let expected = expected.into_iter().collect();
    assert_eq!(hatchery_core::step::rests_on(&command, &records), expected);
}

#[test]
fn a_decision_rests_on_what_it_read_and_on_what_it_changes() {
    let (s, t, a, b) = (Stream::Session(S), Stream::Session(T), Stream::Agent(A), Stream::Agent(B));
    rests_on(given([]), start(S), [s]);
    rests_on(given([started(S)]), end(S, User), [s]);
    rests_on(given([started(S)]), create(A, Some(S)), [s, a]);
    let child = Command::CreateAgent { agent: B, parent: Some(A), name: None, session: None };
    rests_on(given([created(A, None)]), child, [a, b]);
    rests_on(given([started(S), created(A, None), slept(A)]), wake(A, Some(S)), [s, a]);
    rests_on(given([started(S), created(A, Some(S))]), say(A, "hello"), [a]);
    rests_on(given([created(A, None)]), rename(A, "Cael"), [a]);
    rests_on(given([created(A, None)]), end_agent(A), [a]);
    rests_on(given([]), Command::Tick, []);
    // An agent that another writer ends meanwhile must not be put to sleep.
    rests_on(given([started(S), created(A, Some(S)), ending(S, User)]), close(S), [s, a]);
    // A session that another writer ends meanwhile must not end as inactive.
    rests_on(given([started_idle(S, 1_000), started_idle(T, 9_000)]), Command::Tick, [s]);
    rests_on(given([started_idle(S, 1_000)]), start(T), [s, t]);
}
