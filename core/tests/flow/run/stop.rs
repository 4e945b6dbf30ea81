//! Stopping: the intent is on the log first, the shell brings it about, and the run ends for the reason that was recorded.

use super::words::*;
use crate::given::*;
use hatchery_core::output::FailureKind;
use hatchery_core::run::{DesiredState, StopWhy};
use hatchery_core::session::EndReason::User;
use hatchery_core::{Cause, Exit, Refusal, plan};

#[test]
fn a_run_is_stopped_in_every_state_that_may_have_a_process() {
    for it in [wanted(spec()), present(spec()), working(spec()), done(staying())] {
        let it = it.when(stop(A)).then([stopping(first(), StopWhy::User)]);
        assert_eq!(plan(&it.world).runs[&A].state, DesiredState::Stopped);
        assert_eq!(plan(&it.world).wake_at, None, "nothing is expected of it any more");
        let it = it.when(stop(A)).refused(Refusal::RunStopping { agent: A, run: 1 });
        let ended = over(first(), Cause::UserEnded, Exit::Signal(9), "stopped by the user");
        let it = it.restarted().when(exit(first(), Exit::Signal(9))).then([ended]);
        assert_eq!(plan(&it.world).runs.len(), 0);
        it.when(stop(A)).refused(Refusal::NoRun(A));
    }
    given([]).when(stop(NOBODY)).refused(Refusal::UnknownAgent(NOBODY));
}

/// The launcher was on its way when the stop was asked for: its process has to be known, so that it can be stopped.
#[test]
fn a_process_that_comes_after_the_stop_is_stopped_too() {
    let it = wanted(spec()).and(stopping(first(), StopWhy::User)).when(spawn(first())).then([spawned(first())]);
    let it = it.when(spawn(first())).refused(Refusal::StaleAttempt(first()));
    assert_eq!(plan(&it.world).runs[&A].state, DesiredState::Stopped);
    hears(it, [ready(), text("hm")]).then([begun(first()), spoke(A, "hm"), taken(first(), 2)]);
}

#[test]
fn its_last_words_count() {
    let it = working(spec()).and(stopping(first(), StopWhy::User)).and(said(A, "wait"));
    let it = hears(it, [text("I was at it"), echo(10), result(well())]);
    it.then([spoke(A, "I was at it"), heard(first(), 10), turn_ended(first(), well(), usage(0)), taken(first(), 13)]);
}

/// It could be resumed, were it only started again.
#[test]
fn a_stopped_run_ends_for_the_reason_recorded_first_and_is_not_resumed() {
    for exited in [Exit::Code(0), Exit::Code(143), Exit::Signal(9), Exit::Unknown, Exit::NotStarted] {
        let it =
            failed(spec(), refused(FailureKind::Overloaded)).and(stopping(first(), StopWhy::User)).and(said(A, "more"));
        let ended = over(first(), Cause::UserEnded, exited, "stopped by the user");
        let it = it.when(exit(first(), exited)).then([ended]);
        assert_eq!(undelivered(&it), [12], "it waits for the next run");
    }
}

#[test]
fn killing_an_agent_stops_its_run() {
    for it in [wanted(spec()), present(spec()), working(spec()), done(staying())] {
        let it = it.when(kill(A)).then([dead(A), stopping(first(), StopWhy::Killed)]);
        let ended = over(first(), Cause::Killed, Exit::Signal(9), "its agent was killed");
        it.when(exit(first(), Exit::Signal(9))).then([ended]);
    }
    // The first reason stays.
    let it = working(spec()).and(stopping(first(), StopWhy::User)).when(kill(A)).then([dead(A)]);
    it.when(exit(first(), Exit::Signal(9))).then([over(
        first(),
        Cause::UserEnded,
        Exit::Signal(9),
        "stopped by the user",
    )]);
}

#[test]
fn a_cascade_stops_the_runs_of_all_that_die() {
    let of = |agent| hatchery_core::run::AttemptId { agent, run: 1, attempt: 1 };
    let it = given([created(A, None), forked(A, B, None), requested(A, spec()), requested(B, spec())]);
    let killed = |agent| stopping(of(agent), StopWhy::Killed);
    it.when(cascade(A)).then([dead(B), dead(A), killed(A), killed(B)]);
}

#[test]
fn the_dead_are_not_run_again() {
    let it = working(spec()).and(dead(A)).and(stopping(first(), StopWhy::Killed));
    it.when(run(A, spec())).refused(Refusal::AgentDead(A));
}

#[test]
fn a_session_waits_for_the_runs_in_it_before_it_has_ended() {
    let it = given([started(S), created(A, Some(S)), requested(A, spec()), spawned(first())]);
    let it = it.when(end(S, User)).then([ending(S, User), stopping(first(), StopWhy::Session)]);
    assert_eq!(plan(&it.world).close, []);
    let it = it.when(close(S)).refused(Refusal::RunOpen { agent: A, run: 1 });
    let ended_run = over(first(), Cause::UserEnded, Exit::Signal(15), "its session ended");
    let it = it.when(exit(first(), Exit::Signal(15))).then([ended_run]);
    assert_eq!(plan(&it.world).close, [S]);
    it.when(close(S)).then([slept(A), ended(S, User)]);
}

#[test]
fn runs_outside_the_session_go_on() {
    let it = given([started(S), created(A, None), requested(A, spec())]);
    it.when(end(S, User)).then([ending(S, User)]).when(close(S)).then([ended(S, User)]);
}
