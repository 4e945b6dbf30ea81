//! What follows by itself, and when the shell is told to look again.

use crate::given::*;
use hatchery_core::session::EndReason::{Completed, Inactive, User};
use hatchery_core::session::MAX_IDLE_MS;
use hatchery_core::{Command, Plan, Refusal, Timestamp, plan, settle};

/// A session with an idle limit of a second, and an agent in it.
fn idle_after_a_second() -> Given {
    given([started_idle(S, 1_000), created(A, Some(S))])
}

fn wake_at(it: &Given) -> Option<i64> {
    plan(&it.world).wake_at.map(|at| at.0)
}

#[test]
fn a_tick_in_a_quiet_world_is_nothing() {
    given([]).at(i64::MAX).when(Command::Tick).then([]);
    given([started(S), created(A, Some(S))]).at(i64::MAX).when(Command::Tick).then([]);
}

#[test]
fn an_idle_session_ends_as_inactive_at_its_deadline_and_not_before() {
    let it = idle_after_a_second();
    assert_eq!(plan(&it.world), Plan { wake_at: Some(Timestamp(1_000)), ..Plan::default() });
    let it = it.at(999).when(Command::Tick).then([]);
    let it = it.at(1_000).when(Command::Tick).then([ending(S, Inactive)]);
    assert_eq!(plan(&it.world), Plan { close: vec![S], ..Plan::default() });
    it.when(close(S)).then([slept(A), ended(S, Inactive)]);
}

#[test]
fn a_users_end_stays_the_users_however_late_it_is_brought_about() {
    let it = idle_after_a_second().at(500).when(end(S, User)).then([ending(S, User)]);
    assert_eq!(wake_at(&it), None);
    let it = it.at(5_000).when(Command::Tick).then([]);
    it.when(close(S)).then([slept(A), ended(S, User)]);
}

#[test]
fn a_users_end_wins_over_a_deadline_that_nobody_has_noticed_yet() {
    idle_after_a_second().at(5_000).when(end(S, User)).then([ending(S, User)]);
}

#[test]
fn a_deadline_that_was_noticed_first_wins_over_the_user() {
    let it = idle_after_a_second().at(1_000).when(Command::Tick).then([ending(S, Inactive)]);
    it.when(end(S, User)).refused(Refusal::SessionEnding { session: S, reason: Inactive });
}

#[test]
fn whatever_happens_in_a_session_puts_its_deadline_off() {
    let activity = [
        (say(A, "still here"), said(A, "still here")),
        (rename(A, "Cael"), renamed(A, "Cael")),
        (kill(A), dead(A)),
        (create(B, Some(S)), created(B, Some(S))),
    ];
    for (command, event) in activity {
        let it = idle_after_a_second().at(700).when(command).then([event]);
        assert_eq!(wake_at(&it), Some(1_700));
        it.at(1_000).when(Command::Tick).then([]).at(1_700).when(Command::Tick).then([ending(S, Inactive)]);
    }
    let asleep = given([started_idle(S, 1_000), started(T), created(A, Some(T)), slept(A)]);
    assert_eq!(wake_at(&asleep.at(700).when(wake(A, Some(S))).then([woken(A, Some(S))])), Some(1_700));
}

#[test]
fn what_happens_elsewhere_does_not_put_a_deadline_off() {
    let it = idle_after_a_second().and(started(T)).and(created(B, Some(T)));
    assert_eq!(wake_at(&it.at(700).when(say(B, "over there")).then([said(B, "over there")])), Some(1_000));
}

#[test]
fn a_refused_command_does_not_put_a_deadline_off() {
    let it = idle_after_a_second().at(700).when(wake(A, Some(S))).refused(Refusal::AgentAwake(A));
    assert_eq!(wake_at(&it), Some(1_000));
}

#[test]
fn a_refused_command_settles_nothing() {
    idle_after_a_second().at(1_000).when(create(A, Some(S))).refused(Refusal::AgentExists(A));
}

#[test]
fn any_command_makes_an_overdue_session_end() {
    let it = idle_after_a_second().at(1_000);
    it.when(start(T)).then([started(T), ending(S, Inactive)]);
}

#[test]
fn all_that_is_overdue_ends_in_one_step_the_oldest_deadline_first() {
    let it = given([started_idle(T, 1_000), started_idle(S, 2_000)]);
    assert_eq!(wake_at(&it), Some(1_000));
    it.at(9_000).when(Command::Tick).then([ending(T, Inactive), ending(S, Inactive)]);

    let it = given([started_idle(S, 2_000), laid(A, 1_000), laid(B, 3_000)]).at(9_000);
    it.when(Command::Tick).then([expired(A), ending(S, Inactive), expired(B)]);
}

#[test]
fn the_plan_wakes_for_the_nearest_deadline() {
    let it = given([started_idle(S, 2_000), started_idle(T, 1_000)]);
    assert_eq!(wake_at(&it), Some(1_000));
    let it = it.when(end(T, Completed)).then([ending(T, Completed)]);
    assert_eq!(wake_at(&it), Some(2_000));
}

#[test]
fn sessions_with_one_deadline_are_told_apart() {
    let it = given([started_idle(S, 1_000), started_idle(T, 1_000)]);
    let it = it.at(500).when(end(S, User)).then([ending(S, User)]);
    assert_eq!(wake_at(&it), Some(1_000));
    it.at(1_000).when(Command::Tick).then([ending(T, Inactive)]);
}

#[test]
fn a_clock_that_runs_backwards_neither_ends_a_session_nor_brings_its_end_nearer() {
    let it = idle_after_a_second().at(700).when(say(A, "now")).then([said(A, "now")]);
    let it = it.at(-100_000).when(say(A, "before")).then([said(A, "before")]);
    assert_eq!(wake_at(&it), Some(1_700));
    assert_eq!(it.world.session(S).unwrap().last_active, Timestamp(700));
    assert_eq!(it.world.agent(A).unwrap().last_active, Timestamp(700));
    assert_eq!(it.world.agent(A).unwrap().messages, 2, "order and number come from the log, not from the clock");
    it.at(1_699).when(Command::Tick).then([]).at(1_700).when(Command::Tick).then([ending(S, Inactive)]);
}

#[test]
fn everything_may_happen_at_one_instant() {
    given([])
        .when(Command::StartSession { session: S, label: None, idle_ms: Some(1_000) })
        .then([started_idle(S, 1_000)])
        .when(create(A, Some(S)))
        .then([created(A, Some(S))])
        .when(say(A, "quick"))
        .then([said(A, "quick")])
        .when(end(S, Completed))
        .then([ending(S, Completed)])
        .when(close(S))
        .then([slept(A), ended(S, Completed)]);
}

#[test]
fn a_deadline_beyond_the_end_of_time_is_the_end_of_time() {
    let it = given([]).at(i64::MAX - 1).and(started_idle(S, MAX_IDLE_MS));
    assert_eq!(wake_at(&it), Some(i64::MAX));
}

#[test]
fn settling_says_nothing_more_once_it_was_heard() {
    let it = idle_after_a_second();
    let follows = settle(&it.world, Timestamp(1_000));
    assert_eq!(follows, [ending(S, Inactive)]);
    let it = it.at(1_000).and(ending(S, Inactive));
    assert_eq!(settle(&it.world, Timestamp(1_000)), []);
}
