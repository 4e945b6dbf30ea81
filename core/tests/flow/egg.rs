//! Eggs: agents that have not spoken yet. They hatch with their first word, or they expire.

use crate::given::*;
use hatchery_core::agent::{Birth, Lifecycle, MAX_HATCH_MS};
use hatchery_core::session::EndReason::User;
use hatchery_core::{AgentId, Command, Event, MessageKind, Refusal, Timestamp, plan};

fn lay(hatch_ms: u64) -> Command {
    bear(R, Birth { hatch_ms: Some(hatch_ms), ..Birth::of(A) })
}

#[test]
fn an_egg_hatches_with_its_first_word() {
    for kind in [MessageKind::Assistant, MessageKind::ToolCall] {
        let it = given([]).when(lay(1_000)).then([laid(A, 1_000)]);
        assert_eq!(
            it.world.agent(A).unwrap().lifecycle,
            Lifecycle::Hatching { until: Timestamp(1_000), session: None }
        );
        let it = it.at(999).when(add(A, kind, "peep")).then([hatched(A), added(A, kind, "peep")]);
        assert_eq!(it.world.agent(A).unwrap().lifecycle, Lifecycle::Alive { session: None });
        assert_eq!(plan(&it.world).wake_at, None, "what has hatched does not expire");
        let it = it.when(add(A, kind, "peep")).then([added(A, kind, "peep")]);
        it.at(1_000).when(Command::Tick).then([]);
    }
}

/// Otherwise a word to it would keep an egg that never speaks from ever expiring.
#[test]
fn what_is_said_to_an_egg_does_not_hatch_it() {
    use MessageKind::*;
    let prompted = Birth { hatch_ms: Some(1_000), prompt: Some("hatch!".into()), ..Birth::of(A) };
    let mut it = given([]).when(bear(R, prompted)).then([laid(A, 1_000), said(A, "hatch!")]);
    for kind in [User, System, Clear, Mark, Command, Usage, Interrupted, ToolResult, Fork, AgentKilled] {
        it = it.when(add(A, kind, "hello?")).then([added(A, kind, "hello?")]);
    }
    it.at(1_000).when(hatchery_core::Command::Tick).then([expired(A)]);
}

#[test]
fn an_egg_expires_at_its_time_and_not_before() {
    let it = given([laid(A, 1_000)]);
    assert_eq!(plan(&it.world).wake_at, Some(Timestamp(1_000)));
    let it = it.at(999).when(Command::Tick).then([]);
    let it = it.at(1_000).when(Command::Tick).then([expired(A)]);
    assert_eq!(it.world.agent(A).unwrap().lifecycle, Lifecycle::Expired { at: Timestamp(1_000) });
    assert!(it.world.agent(R).unwrap().children.is_empty());
    assert_eq!(plan(&it.world).wake_at, None);
    it.restarted().when(Command::Tick).then([]);
}

#[test]
fn a_word_wins_over_a_deadline_that_nobody_has_noticed_yet() {
    let peep = add(A, MessageKind::Assistant, "peep");
    given([laid(A, 1_000)]).at(5_000).when(peep).then([hatched(A), added(A, MessageKind::Assistant, "peep")]);
}

#[test]
fn an_egg_is_awake_already_and_stays_an_egg_when_its_session_ends() {
    let birth = Birth { session: Some(S), hatch_ms: Some(1_000), ..Birth::of(A) };
    let it = given([started(S), born(R, R, None, birth), ending(S, User)]);
    let it = it.when(wake(A, None)).refused(Refusal::AgentAwake(A));
    let it = it.when(close(S)).then([slept(A), ended(S, User)]);
    assert_eq!(it.world.agent(A).unwrap().lifecycle, Lifecycle::Hatching { until: Timestamp(1_000), session: None });
    it.at(1_000).when(Command::Tick).then([expired(A)]);
}

#[test]
fn an_egg_may_be_killed_and_then_does_not_expire() {
    let it = given([laid(A, 1_000)]).when(kill(A)).then([dead(A)]);
    assert_eq!(plan(&it.world).wake_at, None);
    it.at(1_000).when(Command::Tick).then([]);
}

#[test]
fn those_below_an_egg_that_expires_move_up() {
    let it = given([laid(A, 1_000), forked(A, B, None), forked(A, C, None)]);
    let it = it.at(1_000).when(Command::Tick).then([
        moved(B, R),
        orphaned(B, A, R),
        moved(C, R),
        orphaned(C, A, R),
        expired(A),
    ]);
    assert_eq!(it.world.agent(B).unwrap().parent, Some(R));
    it.when(say(B, "still here")).then([said(B, "still here")]);
}

/// A parent that is an egg too, and overdue, is no home.
#[test]
fn an_egg_below_an_egg_outlives_it_or_not_each_by_its_own_time() {
    let below = |ms| born(A, A, None, Birth { hatch_ms: Some(ms), ..Birth::of(B) });
    let it = given([laid(A, 1_000), below(2_000)]);
    it.at(1_500)
        .when(Command::Tick)
        .then([moved(B, R), orphaned(B, A, R), expired(A)])
        .at(2_000)
        .when(Command::Tick)
        .then([expired(B)]);
    given([laid(A, 2_000), below(1_000)]).at(9_000).when(Command::Tick).then([expired(B), expired(A)]);
}

#[test]
fn the_expired_are_told_apart_from_the_dead_and_the_unknown() {
    let it = given([laid(A, 9), expired(A), created(B, None), dead(B)]);
    for (agent, refusal) in
        [(A, Refusal::AgentExpired(A)), (B, Refusal::AgentDead(B)), (NOBODY, Refusal::UnknownAgent(NOBODY))]
    {
        for command in [say(agent, "boo"), kill(agent), wake(agent, None), rename(agent, "Cael"), fork(agent, C)] {
            it.clone().when(command).refused(refusal.clone());
        }
    }
}

#[test]
fn the_time_to_hatch_lies_within_its_range() {
    for ms in [1, MAX_HATCH_MS] {
        given([]).when(lay(ms)).then([laid(A, ms)]);
    }
    for ms in [0, MAX_HATCH_MS + 1, u64::MAX] {
        given([]).when(lay(ms)).refused(Refusal::HatchOutOfRange { ms });
    }
}

/// What tells an agent that it has another parent.
fn orphaned(agent: AgentId, before: AgentId, parent: AgentId) -> Event {
    let line = format!("Your parent {before} has expired. Your parent is {parent} now.");
    added(agent, MessageKind::AgentKilled, &line)
}
