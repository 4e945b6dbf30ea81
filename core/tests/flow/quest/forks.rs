//! Forks of agents of a quest belong to the step: slots, money, signals, and the end.

use super::words::*;
use hatchery_core::agent::{Birth, Lifecycle};
use hatchery_core::event::{AgentEvent, RunEvent, StepEvent};
use hatchery_core::harness::Capabilities;
use hatchery_core::outcome::Cause;
use hatchery_core::output::{Output, TurnEnd, TurnResult};
use hatchery_core::quest::{MAX_STEP_FORKS, QuestSpec, StepStatus};
use hatchery_core::run::{Process, RunSpec, RunState, StopWhy, wire_name};
use hatchery_core::usage::Usage;
use hatchery_core::{AgentId, Command, Event, Exit, Refusal};

const ONE: AgentId = AgentId::from_bytes([101; 16]);
const TWO: AgentId = AgentId::from_bytes([102; 16]);
const THREE: AgentId = AgentId::from_bytes([103; 16]);

/// What the tool of an agent asks for.
fn fork(parent: AgentId, child: AgentId) -> Command {
    let run = Some(Box::new(RunSpec { signals: false, ..spec() }));
    let birth = Birth { prompt: Some("help".into()), run, for_step: true, ..Birth::of(child) };
    Command::Fork { parent, at: None, birth }
}

fn waits() -> Output {
    Output::ToolUse { id: "w".into(), name: "wait".into(), input: "{}".into() }
}

fn answered() -> Output {
    Output::ToolResult { id: "w".into(), content: "mail".into(), is_error: false }
}

/// A process plays the agent, and it has heard what there was to hear.
fn starts(it: &mut Play, agent: AgentId) {
    let process = Process { pid: 43, began: 8 };
    let session = Some(format!("talk-{agent}"));
    let (of, capabilities) = (it.attempt_id(agent), Capabilities::ALL);
    it.must(Command::ReportSpawn { of, process, session, copy_of: None, capabilities });
    let waiting = it.world.conversation(agent).into_iter().flat_map(|conversation| conversation.waiting.iter());
    let heard = waiting.map(|delivery| Output::Heard { id: wire_name(delivery.id) }).collect::<Vec<_>>();
    it.says(agent, [connected()].into_iter().chain(heard).collect());
}

fn ends(it: &mut Play, agent: AgentId, cost: u64) -> Vec<Event> {
    it.says(agent, vec![well(cost)]);
    it.exits(agent, Exit::Code(0))
}

fn is_run(it: &Play, agent: AgentId) -> bool {
    it.world.run(agent).is_some_and(|run| run.is_open())
}

#[test]
fn a_fork_takes_a_slot_that_is_free_and_owes_no_signal() {
    let mut it = smithy(slots(3), &[("a", &[]), ("b", &[]), ("c", &[]), ("d", &[])]);
    it.plays("b", complete());
    assert_eq!(it.running(), ["a", "c", "d"]);
    it.plays("c", complete());
    let smith = it.start("a");
    it.calls(smith, fork(smith, ONE)).expect("a fork");
    assert!(is_run(&it, ONE), "a slot is free");
    assert!(!it.run(ONE).spec.signals);
    assert_eq!(it.world.assignment(ONE), it.world.assignment(smith));
    starts(&mut it, ONE);
    assert_eq!(it.signals(ONE, "a", complete()), Err("not_at_work".into()));
    let events = ends(&mut it, ONE, 0);
    assert!(
        events
            .iter()
            .any(|event| matches!(event, Event::Run { what: RunEvent::Ended { cause: Cause::Completed, .. }, .. }))
    );
    assert_eq!(it.status("a"), StepStatus::Running, "the end of a fork is not the end of its step");
    it.restarted();
}

#[test]
fn forks_wait_for_a_slot_and_a_parent_that_waits_leaves_its_own() {
    let mut it = smithy(slots(1), &[("a", &[]), ("b", &[])]);
    let smith = it.start("a");
    it.calls(smith, fork(smith, ONE)).expect("a fork");
    it.calls(smith, fork(smith, TWO)).expect("another fork");
    assert!(!is_run(&it, ONE) && !is_run(&it, TWO), "the only slot is taken");
    it.restarted();
    it.says(smith, vec![waits()]);
    assert!(is_run(&it, ONE) && !is_run(&it, TWO), "the first one has the slot of its parent");
    starts(&mut it, ONE);
    // It forks and waits, too.
    it.calls(ONE, fork(ONE, THREE)).expect("a nested fork");
    it.says(ONE, vec![waits()]);
    assert!(is_run(&it, TWO) && !is_run(&it, THREE), "in the order in which they were asked for");
    starts(&mut it, TWO);
    ends(&mut it, TWO, 0);
    assert!(is_run(&it, THREE));
    starts(&mut it, THREE);
    ends(&mut it, THREE, 0);
    it.says(ONE, vec![answered()]);
    ends(&mut it, ONE, 0);
    it.says(smith, vec![answered()]);
    assert_eq!(it.running(), ["a"], "no other step has begun meanwhile");
    it.signals(smith, "a", complete()).expect("it may");
    ends(&mut it, smith, 0);
    assert_eq!((it.status("a"), it.running()), (StepStatus::Complete, vec!["b".to_owned()]));
    it.restarted();
}

#[test]
fn a_fork_that_works_takes_a_slot_from_the_steps() {
    let mut it = smithy(slots(2), &[("a", &[])]);
    let smith = it.start("a");
    it.calls(smith, fork(smith, ONE)).expect("a fork");
    assert!(is_run(&it, ONE));
    it.calls(smith, fork(smith, TWO)).expect("another fork");
    assert!(!is_run(&it, TWO), "one agent and one fork are two");
    starts(&mut it, ONE);
    ends(&mut it, ONE, 0);
    assert!(is_run(&it, TWO), "a slot that becomes free is used");
}

#[test]
fn the_money_of_forks_is_that_of_the_quest_and_they_stop_at_its_budget() {
    let mut it = before();
    it.create(alone(slots(3)), Some(dollars(5)), &[planned("a", &[])]);
    let smith = it.start("a");
    it.calls(smith, fork(smith, ONE)).expect("a fork");
    it.calls(smith, fork(smith, TWO)).expect("a fork");
    starts(&mut it, ONE);
    starts(&mut it, TWO);
    it.says(ONE, vec![Output::Used { usage: Usage { cost: dollars(4), ..Default::default() }, context: None }]);
    assert_eq!(it.world.quest(Q).unwrap().spent.cost, dollars(4));
    let events =
        it.says(TWO, vec![Output::Used { usage: Usage { cost: dollars(2), ..Default::default() }, context: None }]);
    assert!(events.iter().any(|event| matches!(event, Event::Run { what: RunEvent::BudgetReached, .. })), "{events:?}");
    assert_eq!(it.world.quest(Q).unwrap().spent.cost, dollars(6));
    // Its turn is interrupted, and it waits for money. A person is asked once, however many wait.
    let interrupted = TurnEnd {
        result: TurnResult::Interrupted,
        total: Usage { cost: dollars(2), ..Default::default() },
        ..Default::default()
    };
    it.says(TWO, vec![Output::TurnEnded(interrupted)]);
    it.exits(TWO, Exit::Code(0));
    assert!(matches!(it.run(TWO).state, RunState::Parked { cause: Cause::OverBudget, .. }), "{:?}", it.run(TWO).state);
    it.restarted();
    it.answers("20");
    assert!(matches!(it.run(TWO).state, RunState::Starting), "{:?}", it.run(TWO).state);
}

#[test]
fn forks_end_with_the_agent_of_their_step_before_anything_else_happens_to_it() {
    let mut it = smithy(QuestSpec { slots: 4, ..warded() }, &[("a", &[])]);
    let smith = it.start("a");
    for child in [ONE, TWO, THREE] {
        it.calls(smith, fork(smith, child)).expect("a fork");
    }
    starts(&mut it, ONE);
    starts(&mut it, TWO);
    it.signals(smith, "a", complete()).expect("it may");
    let events = ends(&mut it, smith, 0);
    let stopped = |event: &Event| match event {
        Event::Run { of, what: RunEvent::Stopping { why: StopWhy::StepOver } } => Some(of.agent),
        _ => None,
    };
    assert_eq!(events.iter().filter_map(stopped).collect::<Vec<_>>(), [ONE, TWO, THREE]);
    assert_eq!(it.running(), ["a"]);
    assert!(it.world.chores().is_empty(), "the ward does not begin under them");
    it.restarted();
    it.exits(ONE, Exit::Signal(15));
    it.exits(TWO, Exit::Signal(15));
    assert!(it.world.chores().is_empty());
    it.exits(THREE, Exit::NotStarted);
    assert!(!it.world.chores().is_empty(), "now the ward begins");
}

#[test]
fn forks_that_never_got_a_slot_sleep_when_the_step_goes_on() {
    let mut it = smithy(slots(1), &[("a", &[])]);
    let smith = it.start("a");
    it.calls(smith, fork(smith, ONE)).expect("a fork");
    it.signals(smith, "a", complete()).expect("it may");
    ends(&mut it, smith, 0);
    assert_eq!(it.world.agent(ONE).unwrap().lifecycle, Lifecycle::Sleeping);
    assert!(it.world.run(ONE).is_none() && it.world.quest(Q).unwrap().forks.is_empty());
    // One that comes too late has nothing to do, either.
    let mut it = smithy(slots(1), &[("a", &[])]);
    let smith = it.start("a");
    it.says(smith, vec![waits()]);
    it.calls(smith, fork(smith, ONE)).expect("it is promised");
    it.signals(smith, "a", complete()).expect("it may");
    ends(&mut it, smith, 0);
    assert_eq!(it.world.agent(ONE).unwrap().lifecycle, Lifecycle::Sleeping);
    assert_eq!(it.state(), "complete");
}

#[test]
fn a_pause_and_an_end_of_the_quest_stop_forks_and_killed_ones_are_forgotten() {
    for (command, why) in
        [(Command::PauseQuest { quest: Q }, StopWhy::Paused), (Command::AbandonQuest { quest: Q }, StopWhy::Abandoned)]
    {
        let mut it = smithy(slots(3), &[("a", &[])]);
        let smith = it.start("a");
        it.calls(smith, fork(smith, ONE)).expect("a fork");
        starts(&mut it, ONE);
        let events = it.must(command);
        let stopped = Event::Run { of: it.attempt_id(ONE), what: RunEvent::Stopping { why } };
        assert!(events.contains(&stopped), "{events:?}");
        it.exits(ONE, Exit::Signal(15));
        it.exits(smith, Exit::Signal(15));
        assert!(it.world.quest(Q).unwrap().forks.is_empty());
        it.restarted();
    }
    let mut it = smithy(slots(1), &[("a", &[])]);
    let smith = it.start("a");
    it.calls(smith, fork(smith, ONE)).expect("a fork");
    it.must(Command::Kill { agent: ONE, cascade: false, by: None, remark: None });
    assert!(it.world.quest(Q).unwrap().forks.is_empty());
    it.says(smith, vec![waits()]);
    it.restarted();
}

#[test]
fn no_more_forks_of_a_quest_wait_than_may() {
    let mut it = smithy(slots(1), &[("a", &[])]);
    let smith = it.start("a");
    for number in 0..MAX_STEP_FORKS {
        let child = AgentId::from_bytes(((1_u128 << 64) + number as u128).to_be_bytes());
        it.calls(smith, fork(smith, child)).expect("a fork");
    }
    assert_eq!(it.calls(smith, fork(smith, ONE)), Err("too_many_step_forks".into()));
    let forked = |event: &Event| matches!(event, Event::Step { what: StepEvent::Forked { .. }, .. });
    assert_eq!(it.count(forked), MAX_STEP_FORKS);
    let asleep = |event: &Event| matches!(event, Event::Agent { what: AgentEvent::Slept, .. });
    assert_eq!(it.count(asleep), 0);
}

/// For the list of all refusals.
pub fn too_many() -> Refusal {
    let mut it = smithy(slots(1), &[("a", &[])]);
    let smith = it.start("a");
    for number in 0..MAX_STEP_FORKS {
        let child = AgentId::from_bytes(((1_u128 << 64) + number as u128).to_be_bytes());
        it.must(fork(smith, child));
    }
    it.when(fork(smith, ONE)).expect_err("it is refused")
}
