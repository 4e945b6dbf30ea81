//! Parking: a run waits out a limit or an overload, for nothing, and goes on by itself.

use super::words::*;
use crate::given::*;
use hatchery_core::output::{FailureKind, Output};
use hatchery_core::run::RunSpec;
use hatchery_core::session::EndReason::User;
use hatchery_core::{Cause, Command, Exit, Timestamp, plan};

const LIMITED: &str = "It failed: no. Resume it when the limit is lifted.";
const OVERLOADED: &str = "It failed: no. The service has too much to do; resume it in a while.";

fn limited(resets_at: Option<i64>) -> Given {
    let limit = Output::Limit { rejected: true, resets_at: resets_at.map(Timestamp), window: None };
    let it = working(spec()).and(noted(first(), limit)).and(turn_ended(
        first(),
        refused(FailureKind::RateLimited),
        usage(0),
    ));
    it.and(taken(first(), 20))
}

/// Parked at time 0 until 15 seconds later.
fn waiting() -> Given {
    failed(spec(), refused(FailureKind::Overloaded)).and(parked(first(), Cause::Overloaded, 15_000, OVERLOADED))
}

#[test]
fn a_limit_is_waited_out_until_it_is_lifted() {
    let it = limited(Some(60_000)).at(1_000).when(exit(first(), Exit::Code(1)));
    let it = it.then([parked(first(), Cause::RateLimited, 60_000, LIMITED)]);
    let plan = plan(&it.world);
    assert_eq!((plan.runs.len(), plan.wake_at), (0, Some(Timestamp(60_000))));
    let it = it.at(59_999).when(Command::Tick).then([]);
    let it = it.at(60_000).when(Command::Tick).then([resumed(attempt(2))]);
    assert_eq!(last_run(&it).crashes, 0, "it spends no retry");
}

#[test]
fn a_limit_that_names_no_time_or_one_that_is_over_is_waited_out_blindly() {
    for resets_at in [None, Some(500), Some(1_000)] {
        let it = limited(resets_at).at(1_000).when(exit(first(), Exit::Code(1)));
        it.then([parked(first(), Cause::RateLimited, 16_000, LIMITED)]);
    }
}

#[test]
fn the_waits_grow_up_to_half_an_hour_and_begin_anew_after_a_good_turn() {
    let overloaded = |it: Given, of: hatchery_core::run::AttemptId| {
        let it = it.and(spawned(of)).and(begun(of)).and(turn_ended(of, refused(FailureKind::Overloaded), usage(0)));
        it.when(exit(of, Exit::Code(1)))
    };
    let mut it = wanted(spec());
    let mut of = first();
    for wait in [15, 30, 60, 120, 240, 480, 960, 1_800, 1_800] {
        it = overloaded(it, of).then([parked(of, Cause::Overloaded, wait * 1_000, OVERLOADED)]);
        of = of.next();
        it = it.and(resumed(of));
    }
    let good = it.and(spawned(of)).and(begun(of)).and(turn_ended(of, well(), usage(0)));
    let it = good.and(turn_started(of)).and(turn_ended(of, refused(FailureKind::Overloaded), usage(0)));
    it.when(exit(of, Exit::Code(1))).then([parked(of, Cause::Overloaded, 15_000, OVERLOADED)]);
}

#[test]
fn parking_can_be_turned_off() {
    let spec = RunSpec { parks: false, ..spec() };
    let it = failed(spec, refused(FailureKind::Overloaded)).when(exit(first(), Exit::Code(1)));
    it.then([over(first(), Cause::Overloaded, Exit::Code(1), OVERLOADED)]);
}

#[test]
fn a_wait_outlives_a_restart() {
    let it = waiting().restarted().at(15_000).when(Command::Tick).then([resumed(attempt(2))]);
    assert_eq!(undelivered(&it), [12], "it is told to go on");
}

#[test]
fn what_is_said_meanwhile_is_heard_afterwards() {
    let it = waiting().when(tell(A, "take your time", Some(spec()))).then([said(A, "take your time")]);
    assert_eq!(plan(&it.world).wake_at, Some(Timestamp(15_000)));
    let it = it.at(15_000).when(Command::Tick).then([resumed(attempt(2))]);
    assert_eq!(undelivered(&it), [12]);
}

#[test]
fn a_parked_run_has_no_process_to_wait_for_when_it_is_not_wanted_any_more() {
    let ended = |cause, detail| over(first(), cause, Exit::Unknown, detail);
    waiting().when(stop(A)).then([ended(Cause::UserEnded, "stopped by the user")]);
    waiting().when(kill(A)).then([dead(A), ended(Cause::Killed, "its agent was killed")]);
    let it = given([started(S), created(A, Some(S)), requested(A, spec()), parked(first(), Cause::Overloaded, 9, "")]);
    let it = it.when(end(S, User)).then([ending(S, User), ended(Cause::UserEnded, "its session ended")]);
    assert_eq!(plan(&it.world).close, [S]);
    assert_eq!(plan(&it.world).wake_at, None);
}
