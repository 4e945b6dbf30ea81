//! Who may have a process, when there are fewer places than agents.

use super::words::*;
use crate::given::*;
use hatchery_core::harness::Capabilities;
use hatchery_core::output::Output;
use hatchery_core::run::{AttemptId, MAX_LENDERS, Places, Run, wire_name};
use hatchery_core::{AgentId, Command, EventId, Exit};

fn waits(call: &str) -> Output {
    Output::ToolUse { id: call.into(), name: "wait".into(), input: "{}".into() }
}

fn answered(call: &str) -> Output {
    Output::ToolResult { id: call.into(), content: "mail".into(), is_error: false }
}

fn agent(number: u8) -> AgentId {
    AgentId::from_bytes([100 + number; 16])
}

/// A chain of agents, each forked by the one before, all with a process and in their tool `wait`. The first one is A.
fn chain(length: u8) -> (Given, Vec<AgentId>) {
    let agents: Vec<AgentId> = [A].into_iter().chain((1..length).map(agent)).collect();
    let mut it = hears(working(staying()), [waits("w")]).done();
    for pair in agents.windows(2) {
        it = it.and(forked(pair[0], pair[1], None)).when(run(pair[1], staying())).done();
        let of = it.world.run(pair[1]).expect("it was asked for").attempt_id(pair[1]);
        let session = format!("talk-{}", pair[1]);
        it = it.when(spawn_as(of, &session)).done();
        let heard = it.world.conversation(pair[1]).expect("it is run").unheard.get_min().copied();
        let heard = Output::Heard { id: wire_name(heard.map_or(EventId::START, |it| it.id)) };
        it = it.when(output(of, 0, 3, [ready_as(&session), heard, waits("w")])).done();
    }
    (it, agents)
}

fn ready_as(session: &str) -> Output {
    Output::Ready { session: session.into(), model: None, version: None, tools: Vec::new() }
}

fn spawn_as(of: AttemptId, session: &str) -> Command {
    let (session, capabilities) = (Some(session.to_owned()), Capabilities::ALL);
    Command::ReportSpawn { of, process: process(), session, copy_of: None, capabilities }
}

#[test]
fn a_run_in_its_tool_wait_lends_its_place_to_one_agent_below_it() {
    let it = working(staying()).and(forked(A, B, None)).and(forked(A, C, None));
    let places = |it: &Given, held: &[AgentId], wants: AgentId| Places::new(&it.world, 1, held.to_vec()).take(wants);
    assert!(!places(&it, &[A], B), "A works");
    let it = hears(it, [waits("w")]).done();
    assert!(it.world.desired_runs()[&A].lends_place);
    assert!(places(&it, &[A], B));
    assert!(!places(&it, &[A], D), "it is nothing to A");
    assert!(!places(&it, &[A, B], C), "the place is lent once");
    // The result of another tool that ran beside it ends nothing.
    let it = hears(it, [answered("other")]).done();
    assert!(places(&it, &[A], B));
    let it = hears(it, [answered("w")]).done();
    assert!(!it.world.desired_runs()[&A].lends_place && !places(&it, &[A], B));
}

#[test]
fn a_wait_is_over_with_its_turn_and_with_its_process() {
    let waiting = || hears(working(staying()), [waits("w")]).done();
    let lends = |it: &Given| it.world.run(A).is_some_and(Run::awaits_others);
    assert!(lends(&waiting()));
    assert!(!lends(&hears(waiting(), [result(well())]).done()));
    assert!(!lends(&waiting().when(exit(first(), Exit::Signal(9))).done()));
}

/// Agents that fork and wait without end.
#[test]
fn a_place_is_lent_on_only_so_often() {
    for length in 1..=MAX_LENDERS + 2 {
        let (it, agents) = chain(u8::try_from(length).expect("few"));
        let it = it.and(forked(*agents.last().expect("A"), B, None));
        let begins = Places::new(&it.world, 1, agents.clone()).take(B);
        assert_eq!(begins, length <= MAX_LENDERS, "below {length} that wait");
        // With a place of its own it begins anyway.
        assert!(Places::new(&it.world, 3, agents).take(B));
    }
}
