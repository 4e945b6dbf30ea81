//! Kill: one step for any number of victims; whoever is left behind moves up.

use crate::given::*;
use hatchery_core::agent::{Lifecycle, MAX_REMARK_BYTES, ancestors, below};
use hatchery_core::event::AgentEvent;
use hatchery_core::mail::Address;
use hatchery_core::{AgentId, Command, Event, MessageKind, Refusal, Timestamp};

/// Agent 0, below it A, below A both B and C, below B D; each has said its name before the fork.
fn family() -> Given {
    let it = given([said(R, "r"), forked(R, A, Some(2)), said(A, "a"), forked(A, B, Some(4)), said(B, "b")]);
    it.and(forked(A, C, Some(4))).and(forked(B, D, Some(6))).and(said(D, "d"))
}

#[test]
fn the_dead_stay_dead() {
    let it = given([started(S), created(A, Some(S))]).at(5).when(kill(A)).then([dead(A)]);
    assert_eq!(it.world.agent(A).unwrap().lifecycle, Lifecycle::Dead { at: Timestamp(5) });
    assert_eq!(it.world.session(S).unwrap().awake.len(), 0);
    assert!(it.world.agent(R).unwrap().children.is_empty());
    let (human, late) = (Address::Human, Address::Agent(A));
    let commands = [
        kill(A),
        cascade(A),
        wake(A, None),
        rename(A, "Cael"),
        say(A, "boo"),
        fork(A, B),
        fork_at(A, B, 1),
        rewind(A, hatchery_core::history::RewindTo::LastMark),
        send(human, late, "are you there?"),
        send(late, human, "boo"),
    ];
    for command in commands {
        it.clone().when(command).refused(Refusal::AgentDead(A));
    }
    it.and(created(B, None)).when(kill_by(A, B, false)).refused(Refusal::AgentDead(A));
}

#[test]
fn those_below_move_up_to_the_nearest_living_ancestor_and_keep_their_histories() {
    let before = family();
    let it = before
        .clone()
        .when(kill(A))
        .then([moved(B, R), orphaned(B, A, R), moved(C, R), orphaned(C, A, R), dead(A)])
        .restarted();
    assert_eq!(below(&it.world, R), [R, B, C, D]);
    assert_eq!(ancestors(&it.world, D).collect::<Vec<_>>(), [B, R]);
    for agent in [A, B, C, D] {
        assert_eq!(it.heard(agent), before.heard(agent));
    }
    let it = it.when(kill(B)).then([moved(D, R), orphaned(D, B, R), dead(B)]);
    assert_eq!(it.heard(D), ["r", "a", "b", "d"]);
    assert_eq!(it.world.agent(D).unwrap().parent, Some(R));
    it.when(kill(D)).then([dead(D)]);
}

#[test]
fn with_cascade_all_below_die_leaves_first_and_nobody_else() {
    let it = family().when(cascade(A)).then([dead(D), dead(C), dead(B), dead(A)]).restarted();
    assert_eq!(below(&it.world, R), [R]);
    family().when(cascade(B)).then([dead(D), dead(B)]);
    // Those who had moved up out of the way are not below any more.
    let it = family().when(kill(B)).then([moved(D, A), orphaned(D, B, A), dead(B)]);
    it.when(cascade(A)).then([dead(D), dead(C), dead(A)]);
}

#[test]
fn agent_0_cannot_be_killed() {
    for command in [kill(R), cascade(R), kill_by(R, R, true), kill_by(D, R, false)] {
        family().when(command).refused(Refusal::RootIsImmortal(R));
    }
}

#[test]
fn nobody_kills_an_ancestor() {
    for cascade in [false, true] {
        for (by, ancestor) in [(D, A), (D, B), (B, A), (C, A)] {
            family().when(kill_by(by, ancestor, cascade)).refused(Refusal::KillsAncestor { by, ancestor });
        }
    }
    // Not even when the parent between them is dead.
    let it = family().when(kill(B)).then([moved(D, A), orphaned(D, B, A), dead(B)]);
    it.when(kill_by(D, A, true)).refused(Refusal::KillsAncestor { by: D, ancestor: A });
}

#[test]
fn others_and_oneself_may_be_killed() {
    let killed = |agent, by| Event::Agent { agent, what: AgentEvent::Killed { by: Some(by), remark: None } };
    family().when(kill_by(A, D, false)).then([killed(D, A)]);
    family().when(kill_by(C, B, true)).then([killed(D, C), killed(B, C)]);
    family().when(kill_by(B, B, false)).then([moved(D, A), orphaned(D, B, A), killed(B, B)]);
    family().when(kill_by(B, B, true)).then([killed(D, B), killed(B, B)]);
}

#[test]
fn who_kills_must_be_alive_and_known() {
    family().when(kill_by(NOBODY, C, false)).refused(Refusal::UnknownAgent(NOBODY));
    family().and(dead(D)).when(kill_by(D, C, false)).refused(Refusal::AgentDead(D));
}

#[test]
fn forks_that_wait_below_are_cancelled_too() {
    let it = family().and(called(D)).and(fork_requested(D, NOBODY));
    it.clone().when(cascade(B)).then([fork_cancelled(D, NOBODY), dead(D), dead(B)]);
    // Without cascade the fork goes on waiting, one level up.
    let it = it.when(kill(B)).then([moved(D, A), orphaned(D, B, A), dead(B)]);
    it.when(add(D, hatchery_core::MessageKind::ToolResult, "ok")).then([answered(D), forked(D, NOBODY, Some(15))]);
}

#[test]
fn a_remark_may_be_as_long_as_the_limit_and_no_longer() {
    let remark = |bytes| Some("x".repeat(bytes));
    let kill = |bytes| Command::Kill { agent: A, cascade: false, by: None, remark: remark(bytes) };
    given([created(A, None)])
        .when(kill(MAX_REMARK_BYTES))
        .then([Event::Agent { agent: A, what: AgentEvent::Killed { by: None, remark: remark(MAX_REMARK_BYTES) } }]);
    let bytes = MAX_REMARK_BYTES + 1;
    given([created(A, None)]).when(kill(bytes)).refused(Refusal::RemarkTooLong { bytes });
}

/// What tells an agent that it has another parent.
fn orphaned(agent: AgentId, before: AgentId, parent: AgentId) -> Event {
    let line = format!("Your parent {before} was killed. Your parent is {parent} now.");
    added(agent, MessageKind::AgentKilled, &line)
}
