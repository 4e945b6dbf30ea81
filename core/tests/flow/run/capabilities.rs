//! What the core decides by what a harness can do.

use super::words::*;
use crate::given::*;
use hatchery_core::event::{AgentEvent, RunEvent};
use hatchery_core::harness::{Capabilities, Opening};
use hatchery_core::output::{Output, TurnEnd};
use hatchery_core::run::{DeliveryKind, DesiredState, opening, wire_name};
use hatchery_core::{Event, EventId, Refusal, plan};

/// A process of a harness that lacks something, which has started (6).
fn ready_with(capabilities: Capabilities) -> Given {
    wanted(staying()).and(spawned_with(first(), capabilities)).and(begun(first()))
}

#[test]
fn without_echoes_the_beginning_of_a_turn_confirms_the_oldest_delivery() {
    let silent = Capabilities { echoes_messages: false, ..Capabilities::ALL };
    let it = ready_with(silent).and(said(A, "one"));
    let it = hears(it, [Output::TurnStarted]).then([heard(first(), BRIEFING), taken(first(), 1)]);
    assert_eq!(unheard(&it), [7], "the next message is for the next turn");
    let it = hears(it, [result(well())]).then([turn_ended(first(), well(), nothing_spent()), taken(first(), 2)]);
    let it = hears(it, [Output::TurnStarted]).then([turn_started(first()), heard(first(), 7), taken(first(), 3)]);
    assert!(unheard(&it).is_empty());
}

#[test]
fn with_echoes_the_beginning_of_a_turn_confirms_nothing() {
    let it = ready_with(Capabilities::ALL);
    let it = hears(it, [Output::TurnStarted]).then([taken(first(), 1)]);
    assert_eq!(unheard(&it), [BRIEFING]);
}

#[test]
fn without_answers_an_interrupt_is_over_with_its_turn() {
    let silent = Capabilities { echoes_messages: false, ..Capabilities::ALL };
    let it = hears(ready_with(silent), [Output::TurnStarted]).then([heard(first(), BRIEFING), taken(first(), 1)]);
    let it = it.when(interrupt(A)).then([interrupted(first())]);
    assert!(conversation(&it).is_interrupted());
    let it = hears(it, [result(broken_off())]);
    let mark = added(A, hatchery_core::MessageKind::System, hatchery_core::history::TURN_INTERRUPTED);
    let it = it.then([mark, turn_ended(first(), broken_off(), nothing_spent()), taken(first(), 2)]);
    assert!(!conversation(&it).is_interrupted());
}

#[test]
fn a_process_that_cannot_wait_is_let_go_after_its_turn() {
    let last = |it: &Given| plan(&it.world).runs[&A].state == DesiredState::Running { upto: None, last: true };
    let done = |capabilities| {
        let it = ready_with(capabilities).and(heard(first(), BRIEFING));
        it.and(turn_ended(first(), well(), nothing_spent()))
    };
    assert!(!last(&done(Capabilities::ALL)));
    assert!(last(&done(Capabilities { stays_open: false, ..Capabilities::ALL })));
}

#[test]
fn a_session_that_the_harness_names_is_known_when_it_is_ready() {
    let capabilities = Capabilities { chooses_session_id: false, ..Capabilities::ALL };
    let what = RunEvent::Spawned { process: process(), session: None, copy_of: None, capabilities };
    let spawned = Event::Run { of: first(), what };
    let it = wanted(spec()).and(spawned);
    assert_eq!(it.world.harness_session_owner(TALK), None);
    let it = hears(it, [ready()]).then([begun(first()), taken(first(), 1)]);
    assert_eq!(it.world.harness_session_owner(TALK), Some(A));
    let it = it.and(resumed(attempt(2)));
    let resumes = Opening::Resume { session: TALK.into() };
    assert_eq!(opening(&it.world, A, Capabilities::default()), resumes);
}

#[test]
fn a_session_is_copied_only_by_a_harness_that_can() {
    let parent = done(spec()).and(over(first(), hatchery_core::Cause::Completed, hatchery_core::Exit::Code(0), ""));
    let parent = parent.and(spoke(A, "done"));
    let upto = parent.world.agent(A).and_then(|agent| agent.last_message).map(|id| id.0);
    let it = parent
        .and(forked(A, B, upto))
        .and(Event::Agent { agent: B, what: AgentEvent::RunRequested { run: 1, spec: spec() } });
    assert_eq!(opening(&it.world, B, Capabilities::ALL), Opening::Fork { from: TALK.into(), upto: None });
    assert_eq!(opening(&it.world, B, Capabilities { forks: false, ..Capabilities::ALL }), Opening::New);
}

#[test]
fn the_log_says_which_model_plays_the_agent() {
    let it = wanted(spec()).and(spawned(first()));
    let named = Output::Ready { session: TALK.into(), model: Some("gpt-5.5".into()), version: None, tools: Vec::new() };
    let started = RunEvent::Started { session: TALK.into(), model: Some("gpt-5.5".into()), tools: Vec::new() };
    hears(it, [named]).then([Event::Run { of: first(), what: started }, taken(first(), 1)]);
}

#[test]
fn a_session_that_holds_everything_that_was_to_be_said_gets_a_nudge_when_it_is_ready() {
    let capabilities = Capabilities { chooses_session_id: false, ..Capabilities::ALL };
    let it = wanted(spec()).and(spawned_with(first(), capabilities));
    let held = Output::Heard { id: wire_name(EventId(BRIEFING)) };
    let it = hears(it, [held, ready()]).then([heard(first(), BRIEFING), begun(first()), taken(first(), 2)]);
    let waiting: Vec<_> = conversation(&it).unheard.iter().map(|delivery| delivery.what).collect();
    assert_eq!(waiting, [DeliveryKind::Nudge]);
    assert!(!last_run(&it).heard, "an earlier process has heard it");
}

#[test]
fn a_process_that_does_not_have_its_session_is_let_go_with_what_waits() {
    let capabilities = Capabilities { chooses_session_id: false, ..Capabilities::ALL };
    let it = wanted(spec()).and(spawned_with(first(), capabilities));
    let it = it.and(turn_ended(first(), forgotten(), nothing_spent()));
    assert!(matches!(plan(&it.world).runs[&A].state, DesiredState::Running { upto: Some(_), last: true }));
}

#[test]
fn without_echoes_a_turn_can_be_interrupted_before_it_says_anything() {
    let idle = |capabilities| {
        let it = ready_with(capabilities).and(heard(first(), BRIEFING));
        it.and(turn_ended(first(), well(), nothing_spent())).and(said(A, "two"))
    };
    let silent = Capabilities { echoes_messages: false, ..Capabilities::ALL };
    idle(silent).when(interrupt(A)).then([interrupted(first())]);
    idle(Capabilities::ALL).when(interrupt(A)).refused(Refusal::NoTurn(A));
}

#[test]
fn a_fork_at_the_end_of_an_earlier_turn_copies_the_session_up_to_that_turn() {
    let turn = |name: &str| turn_ended(first(), TurnEnd { turn: Some(name.into()), ..well() }, nothing_spent());
    let last = |it: &Given| it.world.agent(A).unwrap().last_message.unwrap().0;
    let opened = |at_the_question: bool| {
        let it = ready_with(Capabilities::ALL).and(heard(first(), BRIEFING)).and(spoke(A, "one"));
        let one = last(&it);
        let it = it.and(turn("t1")).and(said(A, "two"));
        let two = last(&it);
        let it = it.and(heard(first(), two)).and(spoke(A, "three")).and(turn("t2"));
        let it = it.and(forked(A, B, Some(if at_the_question { two } else { one })));
        let it = it.and(Event::Agent { agent: B, what: AgentEvent::RunRequested { run: 1, spec: spec() } });
        opening(&it.world, B, Capabilities::ALL)
    };
    assert_eq!(opened(false), Opening::Fork { from: TALK.into(), upto: Some("t1".into()) });
    assert_eq!(opened(true), Opening::New, "no turn has ended there");
}
