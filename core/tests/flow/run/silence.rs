//! Silence that means something: it is reported once, to a person, and again after the next sign of life.

use super::words::*;
use crate::given::*;
use hatchery_core::ask::About;
use hatchery_core::event::QuestionEvent;
use hatchery_core::run::{AttemptId, DesiredState, RunSpec, StopWhy};
use hatchery_core::why::{Activity, why};
use hatchery_core::{Cause, Command, Event, EventId, Exit, Timestamp, plan};

const STALL: i64 = STALL_MS as i64;
/// Between the report of a silence and the stop for it.
const LAST_LOOK: i64 = 10_000;

fn wake_at(it: &Given) -> Option<i64> {
    plan(&it.world).wake_at.map(|at| at.0)
}

fn asked(of: AttemptId) -> Event {
    Event::Question { agent: A, what: QuestionEvent::Asked { about: About::Silence(of), text: SILENCE.into() } }
}

fn withdrawn(question: EventId) -> Event {
    Event::Question { agent: A, what: QuestionEvent::Withdrawn { question } }
}

fn last_question(it: &Given) -> EventId {
    it.world.questions().last().expect("something is asked").0
}

#[test]
fn a_process_that_says_nothing_for_too_long_is_reported_once() {
    for it in [wanted(spec()), present(spec()), working(spec())] {
        assert_eq!(wake_at(&it), Some(STALL));
        let it = it.at(STALL - 1).when(Command::Tick).then([]);
        let it = it.at(STALL).when(Command::Tick).then([silent(first(), 0), asked(first())]);
        assert_eq!((wake_at(&it), why(&it.world, A).unwrap().state), (None, Activity::Silent));
        it.restarted().at(10 * STALL).when(Command::Tick).then([]);
    }
}

#[test]
fn a_sign_of_life_puts_the_report_off_and_makes_another_one_possible() {
    let it = hears(working(spec()).at(7_000), [text("hm")]).then([spoke(A, "hm"), taken(first(), 11)]);
    assert_eq!(wake_at(&it), Some(7_000 + STALL));
    let it = it.at(7_000 + STALL).when(Command::Tick).then([silent(first(), 7_000), asked(first())]);
    let question = last_question(&it);
    let it = hears(it.at(30_000), [text("oh")]).then([spoke(A, "oh"), taken(first(), 12), withdrawn(question)]);
    it.at(30_000 + STALL).when(Command::Tick).then([silent(first(), 30_000), asked(first())]);
}

#[test]
fn a_call_of_a_tool_is_a_sign_of_life() {
    let it = working(spec()).at(7_000).when(call(first(), 1, Command::Tick)).then([call_taken(first(), 1, 0)]);
    assert_eq!(wake_at(&it), Some(7_000 + STALL));
}

#[test]
fn the_silence_of_one_that_waits_for_a_message_means_nothing() {
    let it = done(staying());
    assert_eq!((wake_at(&it), why(&it.world, A).unwrap().state), (None, Activity::Listening));
}

/// It would hang unseen, with a message that nobody ever hears.
#[test]
fn one_that_does_not_hear_what_is_said_to_it_is_reported() {
    let it = done(staying()).at(50_000).when(tell(A, "hello?", None)).then([said(A, "hello?")]);
    assert_eq!(wake_at(&it), Some(50_000 + STALL));
    // To say more does not put it off.
    let it = it.at(55_000).when(tell(A, "hello??", None)).then([said(A, "hello??")]);
    let it = it.at(50_000 + STALL).when(Command::Tick).then([silent(first(), 50_000), asked(first())]);
    let it = hears(it.at(70_000), [echo(11), echo(12)]);
    let it = it.then([heard(first(), 11), heard(first(), 12), taken(first(), 22), withdrawn(EventId(14))]);
    assert_eq!(wake_at(&it), Some(70_000 + STALL));
}

#[test]
fn one_that_does_not_leave_when_it_may_is_reported() {
    let it = done(spec());
    assert_eq!(wake_at(&it), Some(STALL));
    it.at(STALL).when(Command::Tick).then([silent(first(), 0), asked(first())]);
}

#[test]
fn to_stop_what_is_stuck_is_a_policy() {
    let it = working(RunSpec { kill_stuck: true, ..spec() }).at(STALL).when(Command::Tick).then([silent(first(), 0)]);
    assert_eq!(wake_at(&it), Some(STALL + LAST_LOOK));
    let it = it.at(STALL + LAST_LOOK - 1).when(Command::Tick).then([]);
    let it = it.at(STALL + LAST_LOOK).when(Command::Tick).then([stopping(first(), StopWhy::Stuck)]);
    assert_eq!(plan(&it.world).runs[&A].state, DesiredState::Stopped);
    let ended = over(first(), Cause::Stuck, Exit::Signal(9), "silent for too long");
    it.when(exit(first(), Exit::Signal(9))).then([ended]);
}

/// Nobody listened for a long time. That it was silent is then ours to say, not to act upon.
#[test]
fn what_was_said_while_the_daemon_was_away_is_heard_before_anything_is_stopped() {
    let it = working(RunSpec { kill_stuck: true, ..spec() }).restarted().at(100 * STALL);
    let it = it.when(Command::Tick).then([silent(first(), 0)]);
    let it = hears(it, [text("here")]).then([spoke(A, "here"), taken(first(), 11)]);
    assert_eq!(wake_at(&it), Some(101 * STALL));
    it.at(101 * STALL - 1).when(Command::Tick).then([]);
}

#[test]
fn nothing_is_expected_of_a_run_that_is_stopped_parked_or_over() {
    let stopped = working(spec()).and(stopping(first(), StopWhy::User));
    let parked = working(spec()).and(parked(first(), Cause::Overloaded, 99_000, ""));
    let over = done(spec()).and(over(first(), Cause::Completed, Exit::Code(0), ""));
    assert_eq!([&stopped, &parked, &over].map(wake_at), [None, Some(99_000), None]);
    assert_eq!(wake_at(&over.and(said(A, "more"))), None);
}

#[test]
fn the_next_attempt_begins_with_a_new_patience() {
    let it = working(spec()).at(STALL).when(Command::Tick).then([silent(first(), 0), asked(first())]).at(20_000);
    let it = it.when(exit(first(), Exit::Signal(9)));
    let it = it.then([crashed(first(), Exit::Signal(9), MID_TURN), resumed(attempt(2)), withdrawn(EventId(10))]);
    assert_eq!(wake_at(&it), Some(20_000 + STALL));
    assert_eq!(last_run(&it).attempt.last_output, Timestamp(20_000));
}
