//! What a turn used is added to its run, its agent and its day, once, whatever the process counts.

use super::words::*;
use crate::given::*;
use hatchery_core::event::{AgentEvent, RunEvent};
use hatchery_core::harness::Capabilities;
use hatchery_core::output::{Output, TurnEnd};
use hatchery_core::run::AttemptId;
use hatchery_core::usage::{Meter, Money, Usage};
use hatchery_core::{Cause, Event, Exit};

const DAY_MS: i64 = 24 * 3_600 * 1_000;

/// A result of an old version: a total of the process.
fn total(amount: u64) -> TurnEnd {
    TurnEnd { total: usage(amount), ..well() }
}

/// A result of a new version: a total of the conversation, and what was used since the last one.
fn since(amount: u64, last: u64) -> TurnEnd {
    TurnEnd { since_last: Some(usage(last)), ..total(amount) }
}

fn spent(it: &Given) -> [Usage; 3] {
    let days = it.world.days().fold(Usage::default(), |sum, (_, day)| sum + *day);
    [last_run(it).spent, conversation(it).spent, days]
}

/// The next process of the same run, resumed after a crash.
fn next_process(it: Given) -> Given {
    let of = last_run(&it).attempt_id(A);
    it.and(crashed(of, Exit::Signal(9), "")).and(resumed(of.next())).and(spawned(of.next()))
}

#[test]
fn a_turn_counts_for_its_run_its_agent_and_its_day() {
    let it = hears(working(staying()).at(DAY_MS - 1), [result(total(3))]);
    let it = it.then([turn_ended(first(), total(3), usage(3)), taken(first(), 11)]);
    assert_eq!(spent(&it), [usage(3); 3]);
    let it = hears(it.at(DAY_MS), [result(total(5))]);
    let it = it.then([turn_ended(first(), total(5), usage(2)), taken(first(), 12)]);
    assert_eq!(spent(&it), [usage(5); 3]);
    assert_eq!(it.world.days().map(|(day, spent)| (day, *spent)).collect::<Vec<_>>(), [(0, usage(3)), (1, usage(2))]);
}

#[test]
fn a_day_before_1970_is_a_day() {
    let it = hears(working(spec()).at(-1), [result(total(3))]);
    let it = it.then([turn_ended(first(), total(3), usage(3)), taken(first(), 11)]);
    assert_eq!(it.world.days().map(|(day, _)| day).collect::<Vec<_>>(), [-1]);
}

#[test]
fn the_next_run_counts_anew_and_its_agent_goes_on() {
    let it = hears(working(spec()), [result(since(3, 3))]);
    let it = it.then([turn_ended(first(), since(3, 3), usage(3)), taken(first(), 11)]);
    let it = it.and(over(first(), Cause::Completed, Exit::Code(0), ""));
    let of = AttemptId { run: 2, ..first() };
    let it =
        it.and(Event::Agent { agent: A, what: AgentEvent::RunRequested { run: 2, spec: spec() } }).and(spawned(of));
    let it = hears(it, [ready(), result(since(7, 4))]);
    let started = Event::Run { of, what: RunEvent::Started { session: TALK.into(), model: None, tools: Vec::new() } };
    let it = it.then([started, turn_ended(of, since(7, 4), usage(4)), taken(of, 2)]);
    assert_eq!(spent(&it), [usage(4), usage(7), usage(7)]);
    assert_eq!(it.world.past_runs(A).next().unwrap().1.spent, usage(3));
}

/// However its words are cut into batches.
#[test]
fn a_process_that_counts_from_nothing_is_known_as_such() {
    let it = hears(working(spec()), [result(total(5))]);
    let it = it.then([turn_ended(first(), total(5), usage(5)), taken(first(), 11)]);
    let it = next_process(it);
    let of = attempt(2);
    let at_once = hears(it.clone(), [ready(), result(total(2))]);
    let at_once = at_once.then([begun(of), turn_ended(of, total(2), usage(2)), taken(of, 2)]);
    let by_and_by = hears(it, [ready()]).then([begun(of), taken(of, 1)]);
    let by_and_by = hears(by_and_by, [result(total(2))]).then([turn_ended(of, total(2), usage(2)), taken(of, 2)]);
    assert_eq!((spent(&at_once), spent(&by_and_by)), ([usage(7); 3], [usage(7); 3]));
}

#[test]
fn a_conversation_that_goes_on_counting_is_known_as_such() {
    let it = hears(working(spec()), [result(since(5, 5))]);
    let it = it.then([turn_ended(first(), since(5, 5), usage(5)), taken(first(), 11)]);
    let of = attempt(2);
    // Three of it were used by the turn that was killed.
    let it = hears(next_process(it), [ready(), result(since(10, 2))]);
    let it = it.then([begun(of), turn_ended(of, since(10, 2), usage(5)), taken(of, 2)]);
    assert_eq!(spent(&it), [usage(10); 3]);
}

/// Its counts begin at its parent's total.
#[test]
fn a_copy_does_not_pay_for_its_parent() {
    for cut in [1, 2] {
        let it = wanted(spec()).when(copy(first())).then([copied(first())]);
        let end = since(105, 5);
        let it = match cut {
            1 => hears(it, [ready(), result(end.clone())]).then([
                begun(first()),
                turn_ended(first(), end, usage(5)),
                taken(first(), 2),
            ]),
            _ => hears(hears(it, [ready()]).then([begun(first()), taken(first(), 1)]), [result(end.clone())])
                .then([turn_ended(first(), end, usage(5)), taken(first(), 2)]),
        };
        assert_eq!(spent(&it), [usage(5); 3]);
    }
    // Nor when it is stopped before it has started.
    let it = wanted(spec()).and(copied(first()));
    let end = since(105, 5);
    let it = hears(it, [result(end.clone())]);
    it.then([turn_ended(first(), end, usage(5)), taken(first(), 1)]);
}

/// Its tools do not answer, and it is stopped; but it has worked.
#[test]
fn one_that_never_started_is_metered_by_its_process() {
    let it =
        hears(present(spec()), [result(total(3))]).then([turn_ended(first(), total(3), usage(3)), taken(first(), 1)]);
    let it = hears(it, [result(total(5))]).then([turn_ended(first(), total(5), usage(2)), taken(first(), 2)]);
    assert_eq!(spent(&it), [usage(5); 3]);
}

#[test]
fn a_copy_that_is_resumed_is_still_its_own_conversation() {
    let it = wanted(spec()).and(copied(first())).and(begun(first()));
    assert_eq!(conversation(&it).harness_session.as_ref().unwrap().meter, Meter::Inherited);
    let of = attempt(2);
    let it = hears(next_process(it), [ready(), result(since(105, 5))]);
    it.then([begun(of), turn_ended(of, since(105, 5), usage(5)), taken(of, 2)]);
}

/// Some versions resume a conversation under another name, with its counts.
#[test]
fn a_conversation_that_goes_on_under_another_name_keeps_its_past() {
    let it = hears(working(spec()), [result(since(5, 5))]);
    let it = next_process(it.then([turn_ended(first(), since(5, 5), usage(5)), taken(first(), 11)]));
    let of = attempt(2);
    let mut renamed = ready();
    if let hatchery_core::Output::Ready { session, .. } = &mut renamed {
        *session = "c-2".into();
    }
    let it = hears(it, [renamed, result(since(7, 2))]);
    let started = Event::Run { of, what: RunEvent::Started { session: "c-2".into(), model: None, tools: Vec::new() } };
    let it = it.then([started, turn_ended(of, since(7, 2), usage(2)), taken(of, 2)]);
    assert_eq!(spent(&it), [usage(7); 3]);
}

/// What a copy of a session costs in its first turn: the harness reports totals of money for the session, and tokens for the turn.
#[test]
fn the_first_turn_of_a_copy_costs_what_it_adds_to_the_total_of_its_parent() {
    let end = |total: u64| TurnEnd {
        total: Usage { cost: usage(total).cost, ..Usage::default() },
        since_last: Some(Usage { cost: Money::default(), ..usage(2) }),
        ..well()
    };
    let costs = |total: u64| {
        let it = working(spec()).and(turn_ended(first(), end(5), usage(5))).and(spoke(A, "done"));
        let upto = it.world.agent(A).and_then(|agent| agent.last_message).map(|id| id.0);
        let of = AttemptId { agent: B, ..first() };
        let it = it.and(forked(A, B, upto)).and(requested(B, spec()));
        let (session, copy_of) = (Some("c-1".into()), Some(TALK.into()));
        let what = RunEvent::Spawned { process: process(), session, copy_of, capabilities: Capabilities::ALL };
        let it = it.and(Event::Run { of, what });
        let ready = Output::Ready { session: "c-1".into(), model: None, version: None, tools: Vec::new() };
        let it = it.when(output(of, 0, 1, [ready, result(end(total))])).done();
        it.world.run(B).unwrap().spent
    };
    assert_eq!(costs(8), Usage { cost: usage(3).cost, ..usage(2) }, "its total goes on from that of the parent");
    assert_eq!(costs(3), Usage { cost: usage(3).cost, ..usage(2) }, "its total begins at nothing");
}
