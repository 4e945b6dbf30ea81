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
    let first = hears(working(staying()), [waits("w")]).done();
    let it = agents.windows(2).fold(first, |it, pair| with_waiting(it, pair[0], pair[1]));
    (it, agents)
}

/// With an agent below a parent that has a process and is in its tool `wait`.
fn with_waiting(it: Given, parent: AgentId, agent: AgentId) -> Given {
    let it = it.and(forked(parent, agent, None)).when(run(agent, staying())).done();
    let of = it.world.run(agent).expect("it was asked for").attempt_id(agent);
    let session = format!("talk-{agent}");
    let it = it.when(spawn_as(of, &session)).done();
    let heard = it.world.conversation(agent).expect("it is run").waiting.get_min().copied();
    let heard = Output::Heard { id: wire_name(heard.map_or(EventId::START, |it| it.id)) };
    it.when(output(of, 0, 3, [ready_as(&session), heard, waits("w")])).done()
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

/// A wait can end by its time limit, while the agents below still wait for each other. Each of them keeps its process, so the chain
/// must not grow at its other end.
#[test]
fn nobody_begins_while_more_work_than_there_are_places() {
    let (it, agents) = chain(u8::try_from(MAX_LENDERS + 1).expect("few"));
    let last = *agents.last().expect("A");
    let it = hears(it, [answered("w")]).done().and(forked(last, B, None));
    assert!(!it.world.run(A).is_some_and(Run::awaits_others), "A works again");
    assert!(Places::new(&it.world, 1, agents.clone()).are_taken());
    assert!(!Places::new(&it.world, 1, agents.clone()).take(B));
    // One works, and a second one may.
    let mut places = Places::new(&it.world, 2, agents.clone());
    assert!(places.take(B) && places.are_taken());
    // When A is gone, all others wait, and the last of them lends its place.
    assert!(Places::new(&it.world, 1, agents[1..].to_vec()).take(B));
}

/// However they have come about, for example because `max_runs` was lowered.
#[test]
fn there_are_never_more_processes_than_a_multiple_of_the_places() {
    let (it, mut agents) = chain(1);
    let others: Vec<AgentId> = (1..=u8::try_from(MAX_LENDERS).expect("few")).map(agent).collect();
    let it = others.iter().fold(it, |it, other| with_waiting(it, R, *other)).and(forked(A, B, None));
    agents.extend(others);
    assert!(!Places::new(&it.world, 1, agents.clone()).take(B), "A would lend its place, but there are five");
    assert!(Places::new(&it.world, 1, agents[..MAX_LENDERS].to_vec()).take(B));
}
