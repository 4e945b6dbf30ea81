//! What the core decides by what a harness can do.

use super::words::*;
use crate::given::*;
use hatchery_core::event::{AgentEvent, RunEvent};
use hatchery_core::harness::{Capabilities, Declared, ModelChoice, Opening, RepeatsHistory};
use hatchery_core::output::{FailureKind, Output, TurnEnd, TurnResult};
use hatchery_core::run::{DeliveryKind, DesiredState, Readiness, RunSpec, opening, wire_name};
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
    assert_eq!(undelivered(&it), [7], "the next message is for the next turn");
    let it = hears(it, [result(well())]).then([turn_ended(first(), well(), nothing_spent()), taken(first(), 2)]);
    let it = hears(it, [Output::TurnStarted]).then([turn_started(first()), heard(first(), 7), taken(first(), 3)]);
    assert!(undelivered(&it).is_empty());
}

#[test]
fn with_echoes_the_beginning_of_a_turn_confirms_nothing() {
    let it = ready_with(Capabilities::ALL);
    let it = hears(it, [Output::TurnStarted]).then([taken(first(), 1)]);
    assert_eq!(undelivered(&it), [BRIEFING]);
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
    let resumes = Opening::Resume { session: TALK.into(), repeats_history: true };
    assert_eq!(opening(&it.world, A, Capabilities::default()), resumes);
}

#[test]
fn a_session_that_holds_what_was_inherited_is_copied() {
    let parent = done(spec()).and(over(first(), hatchery_core::Cause::Completed, hatchery_core::Exit::Code(0), ""));
    let parent = parent.and(spoke(A, "done"));
    let upto = parent.world.agent(A).and_then(|agent| agent.last_message).map(|id| id.0);
    let it = parent
        .and(forked(A, B, upto))
        .and(Event::Agent { agent: B, what: AgentEvent::RunRequested { run: 1, spec: spec() } });
    assert_eq!(opening(&it.world, B, Capabilities::ALL), Opening::Fork { from: TALK.into(), upto: None });
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
    let waiting: Vec<_> = conversation(&it).waiting.iter().map(|delivery| delivery.what).collect();
    assert_eq!(waiting, [DeliveryKind::Nudge]);
    assert!(!last_run(&it).attempt.has_confirmed, "an earlier process has heard it");
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

/// What is known of a harness that serves many programs, before one of them says more.
const UNKNOWN: Capabilities =
    Capabilities { chooses_session_id: false, forks: false, model_choice: ModelChoice::Never, ..Capabilities::ALL };

/// Another process can go on with the session, and repeats its history then.
const LOADS: Declared =
    Declared { resumes: true, forks: false, model_choice: ModelChoice::Never, repeats_history: RepeatsHistory::Always };

/// A process (6) has declared (7) what it can do, and is ready (8).
fn declaring(spec: RunSpec, declared: Declared) -> Given {
    let it = wanted(spec).and(spawned_with(first(), UNKNOWN));
    hears(it, [Output::Declares(declared), ready()]).done()
}

#[test]
fn a_session_is_copied_if_its_own_process_has_declared_that_it_can() {
    let opened = |forks: bool| {
        let parent = declaring(spec(), Declared { forks, ..LOADS });
        let parent = parent.and(heard(first(), BRIEFING)).and(spoke(A, "done"));
        let parent = parent.and(turn_ended(first(), well(), nothing_spent()));
        let upto = parent.world.agent(A).and_then(|agent| agent.last_message).map(|id| id.0);
        let it = parent.and(forked(A, B, upto));
        let it = it.and(Event::Agent { agent: B, what: AgentEvent::RunRequested { run: 1, spec: spec() } });
        opening(&it.world, B, UNKNOWN)
    };
    assert_eq!(opened(true), Opening::Fork { from: TALK.into(), upto: None });
    assert_eq!(opened(false), Opening::New);
}

#[test]
fn a_session_that_no_other_process_can_load_is_over_with_its_process() {
    let next = |resumes: bool| {
        let it = declaring(staying(), Declared { resumes, ..LOADS });
        let it = it.and(heard(first(), BRIEFING)).and(spoke(A, "one")).and(said(A, "two"));
        let it = it.and(crashed(first(), hatchery_core::Exit::Signal(9), "")).and(resumed(attempt(2)));
        let waits: Vec<_> = conversation(&it).waiting.iter().map(|delivery| delivery.what).collect();
        (opening(&it.world, A, UNKNOWN), waits)
    };
    let resumes = Opening::Resume { session: TALK.into(), repeats_history: true };
    assert_eq!(next(true), (resumes, vec![DeliveryKind::Message]));
    assert_eq!(next(false), (Opening::New, vec![DeliveryKind::Briefing]), "the next process is told the history");
}

/// Only a process that was there could have heard what waits.
#[test]
fn a_history_is_repeated_if_it_shows_what_was_heard() {
    let next = |repeats_history, is_said_before: bool| {
        let it = declaring(staying(), Declared { repeats_history, ..LOADS });
        let it = it.and(heard(first(), BRIEFING)).and(spoke(A, "one"));
        let it = it.and(turn_ended(first(), well(), nothing_spent()));
        let end = over(first(), hatchery_core::Cause::Crashed, hatchery_core::Exit::Signal(9), "");
        let it = match is_said_before {
            true => it.and(said(A, "two")).and(end),
            false => it.and(end).and(said(A, "two")),
        };
        let what = AgentEvent::RunRequested { run: 2, spec: staying() };
        let it = it.and(Event::Agent { agent: A, what }).restarted();
        match opening(&it.world, A, UNKNOWN) {
            Opening::Resume { repeats_history, .. } => repeats_history,
            other => panic!("{other:?}"),
        }
    };
    assert!(next(RepeatsHistory::OnRequest, true));
    assert!(!next(RepeatsHistory::OnRequest, false), "nobody has heard it");
    assert!(next(RepeatsHistory::Always, false));
    assert!(!next(RepeatsHistory::Never, true));
}

fn with_model() -> RunSpec {
    RunSpec { model: Some("m".into()), ..staying() }
}

#[test]
fn an_open_session_is_told_the_model_before_anything_else() {
    let due = |spec, model_choice| {
        last_run(&declaring(spec, Declared { model_choice, ..LOADS })).attempt.readiness == Readiness::ConfirmsModel
    };
    assert!(due(with_model(), ModelChoice::SessionOption) && due(with_model(), ModelChoice::SessionModel));
    assert!(!due(staying(), ModelChoice::SessionOption) && !due(with_model(), ModelChoice::AtStart));
    let declared = Declared { model_choice: ModelChoice::SessionOption, ..LOADS };
    let it = declaring(with_model(), declared);
    let chosen = Output::ModelChosen { model: "m".into() };
    let it = hears(it, [chosen.clone()]).then([noted(first(), chosen), taken(first(), 3)]);
    assert!(last_run(&it).attempt.readiness == Readiness::Ready);
}

#[test]
fn a_process_that_does_not_take_the_model_is_let_go_and_the_run_says_why() {
    let declared = Declared { model_choice: ModelChoice::SessionOption, ..LOADS };
    let refused = TurnResult::Failed { kind: FailureKind::WrongModel, detail: "no model `m`".into() };
    let end = TurnEnd { result: refused, ..TurnEnd::default() };
    let it = declaring(with_model(), declared).and(turn_ended(first(), end, nothing_spent()));
    assert!(matches!(plan(&it.world).runs[&A].state, DesiredState::Running { upto: Some(_), last: true }));
    let detail = "It failed: no model `m`. Choose another model with --model.";
    let ended = over(first(), hatchery_core::Cause::WrongModel, hatchery_core::Exit::Code(0), detail);
    let it = it.when(exit(first(), hatchery_core::Exit::Code(0))).then([ended]);
    assert_eq!(undelivered(&it), [BRIEFING], "what was said waits for the next run");
}

#[test]
fn a_program_that_cannot_be_told_the_model_says_so() {
    let it = wanted(with_model()).and(spawned_with(first(), UNKNOWN));
    let text =
        "This agent program cannot be told which model to use. It uses the model of its own settings.".to_owned();
    hears(it, [ready()]).then([begun(first()), noted(first(), Output::Note { text }), taken(first(), 1)]);
}

#[test]
fn a_session_that_another_process_has_open_is_tried_again() {
    let it = wanted(RunSpec { retries: 3, ..spec() }).and(spawned_with(first(), UNKNOWN));
    let taken = TurnResult::Failed { kind: FailureKind::Other, detail: "it is open elsewhere".into() };
    let it = it.and(turn_ended(first(), TurnEnd { result: taken, ..TurnEnd::default() }, nothing_spent()));
    assert!(matches!(plan(&it.world).runs[&A].state, DesiredState::Running { last: true, .. }), "it is let go");
    let it = it.when(exit(first(), hatchery_core::Exit::Code(0))).done();
    assert!(last_run(&it).is_parked(), "{:?}", last_run(&it).state);
}
