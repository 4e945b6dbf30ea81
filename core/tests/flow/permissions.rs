//! A process asks for permission, and what becomes of its request.

use crate::given::*;
use crate::run::words::*;
use hatchery_core::ask::About;
use hatchery_core::event::{PermissionEvent, QuestionEvent, RunEvent};
use hatchery_core::harness::Capabilities;
use hatchery_core::outcome::Exit;
use hatchery_core::output::Output;
use hatchery_core::permission::{
    Access, DecidedBy, MAX_RULES, PendingState, PermissionDecision, PermissionPolicy, PermissionRequest, PermissionRule,
};
use hatchery_core::run::{DesiredState, RunSpec};
use hatchery_core::{Command, Event, EventId, Refusal, plan};

/// The question about the request `r` of a working process: after the note (9).
const QUESTION: u64 = 10;

fn with(policy: PermissionPolicy) -> RunSpec {
    RunSpec { permissions: Some(policy), ..spec() }
}

fn request(id: &str, command: &str) -> PermissionRequest {
    PermissionRequest {
        request: id.into(),
        tool: "Bash".into(),
        tool_use: None,
        input: format!("{{\"command\":\"{command}\"}}"),
        access: Access::Execute { command: command.into() },
        folder: Some("/mill".into()),
    }
}

fn asks(id: &str, command: &str) -> Output {
    Output::Asked(request(id, command))
}

fn answer(question: u64, answer: &str) -> Command {
    Command::AnswerQuestion { question: EventId(question), answer: answer.into() }
}

fn answered(question: u64, answer: &str) -> Event {
    Event::Question { agent: A, what: QuestionEvent::Answered { question: EventId(question), answer: answer.into() } }
}

fn withdrawn(question: u64) -> Event {
    Event::Question { agent: A, what: QuestionEvent::Withdrawn { question: EventId(question) } }
}

fn decided(id: &str, decision: PermissionDecision, by: DecidedBy) -> Event {
    Event::Run { of: first(), what: RunEvent::PermissionDecided { request: id.into(), decision, by } }
}

fn denied(reason: &str) -> PermissionDecision {
    PermissionDecision::Deny { reason: reason.into() }
}

/// The process is in a turn and has asked for `make` (9); the user is asked (10), and the output is taken (11).
fn asking() -> Given {
    let it = hears(working(with(PermissionPolicy::Ask)), [asks("r", "make")]).done();
    let question = it.world.question(EventId(QUESTION)).expect("the user is asked");
    assert_eq!(question.about, About::Permission(first()));
    for words in ["Bash", "`make`", "/mill", "always-project"] {
        assert!(question.text.contains(words), "{}", question.text);
    }
    it
}

fn upto(it: &Given) -> Option<EventId> {
    match plan(&it.world).runs.get(&A).map(|desired| desired.state.clone()) {
        Some(DesiredState::Running { upto, .. }) => upto,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_request_that_the_policy_decides_is_answered_at_once() {
    let it = working(with(PermissionPolicy::All));
    let it = hears(it, [asks("r", "make")]).then([
        noted(first(), asks("r", "make")),
        decided("r", PermissionDecision::Allow, DecidedBy::Policy),
        taken(first(), 11),
    ]);
    assert_eq!(upto(&it), Some(EventId(10)), "the answer is to be written");
    let confirmed = Output::Answered { request: "r".into(), problem: None };
    let it = hears(it, [confirmed.clone()]).then([noted(first(), confirmed), taken(first(), 12)]);
    assert_eq!(upto(&it), None, "the process has it");
}

#[test]
fn an_answer_is_a_decision_that_waits_for_the_process() {
    for (text, decision) in [
        ("allow", PermissionDecision::Allow),
        ("deny", denied("The user did not allow it.")),
        ("deny: use just", denied("The user did not allow it: use just")),
    ] {
        let it = asking().when(answer(QUESTION, text));
        let it = it.then([answered(QUESTION, text), decided("r", decision.clone(), DecidedBy::Human)]);
        assert_eq!(upto(&it), Some(EventId(13)));
        let world = it.restarted().world;
        let pending = &world.run(A).unwrap().attempt.permissions[0];
        assert_eq!(pending.state, PendingState::Decided { at: EventId(13), decision }, "a restart loses nothing");
    }
}

#[test]
fn an_answer_that_is_none_of_the_four_is_refused() {
    for text in ["maybe", "always", "", "allow it"] {
        let it = asking();
        let expected = it.world.question(EventId(QUESTION)).unwrap().text.clone();
        it.when(answer(QUESTION, text)).refused(Refusal::BadAnswer { question: EventId(QUESTION), expected });
    }
}

#[test]
fn always_is_a_rule_for_the_agent_or_for_the_project() {
    for (text, agent) in [("always-agent", Some(A)), ("always-project", None)] {
        let rule = PermissionRule::Execute { command: "make".into() };
        let added = Event::Permission(PermissionEvent::RuleAdded { agent, allows: rule });
        let it = asking().when(answer(QUESTION, text)).then([
            answered(QUESTION, text),
            added,
            decided("r", PermissionDecision::Allow, DecidedBy::Human),
        ]);
        let it = hears(it, [asks("s", "make"), asks("t", "make all")]).done();
        let world = it.world.clone();
        let pending = &world.run(A).unwrap().attempt.permissions;
        assert!(matches!(pending[1].state, PendingState::Decided { .. }), "{text}");
        assert!(matches!(pending[2].state, PendingState::Asked { .. }), "the rule is for this command only");
        assert_eq!(world.permission_rules_of(A).count(), 1);
        assert_eq!(world.permission_rules_of(B).count(), usize::from(agent.is_none()), "{text}");
    }
}

#[test]
fn a_rule_answers_the_other_open_requests_that_it_covers() {
    let it = hears(asking(), [asks("s", "make")]).done();
    let it = it.when(answer(QUESTION, "always-agent")).done();
    let world = it.world.clone();
    assert_eq!(world.questions().count(), 0, "the second question is withdrawn");
    assert!(
        world.run(A).unwrap().attempt.permissions.iter().all(|it| matches!(it.state, PendingState::Decided { .. }))
    );
}

/// One rule more than a project can have.
pub fn too_many_rules() -> (Refusal, When) {
    let rule = |number: usize| {
        let allows = PermissionRule::Tool { name: number.to_string() };
        Event::Permission(PermissionEvent::RuleAdded { agent: None, allows })
    };
    let it = (0..MAX_RULES).map(rule).fold(asking(), Given::and);
    (Refusal::TooManyRules, it.when(answer(QUESTION, "always-agent")))
}

#[test]
fn a_removed_rule_counts_no_more() {
    let it = asking().when(answer(QUESTION, "always-project")).done();
    let rule = EventId(13);
    let removed = Event::Permission(PermissionEvent::RuleRemoved { agent: None, rule });
    let it = it.when(Command::RemovePermissionRule { rule }).then([removed]);
    assert_eq!(it.world.permission_rules().len(), 0);
    it.when(Command::RemovePermissionRule { rule }).refused(Refusal::NoRule(rule));
}

#[test]
fn who_waits_for_a_permission_is_not_stuck() {
    let stall = i64::try_from(STALL_MS).expect("a short time");
    let it = asking().at(100 * stall).when(Command::Tick).then([]);
    let it = it.when(answer(QUESTION, "allow")).done();
    // Its time begins anew with the answer.
    let it = it.at(100 * stall + stall - 1).when(Command::Tick).then([]);
    assert!(it.at(101 * stall).when(Command::Tick).done().world.run(A).unwrap().attempt.silent.is_some());
}

#[test]
fn a_request_ends_with_its_turn_and_with_its_process() {
    let cancelled = Output::AskCancelled { request: "r".into() };
    let it =
        hears(asking(), [cancelled.clone()]).then([noted(first(), cancelled), taken(first(), 12), withdrawn(QUESTION)]);
    it.when(answer(QUESTION, "allow")).refused(Refusal::NoQuestion(EventId(QUESTION)));
    let it = asking().when(exit(first(), Exit::Signal(9))).done();
    let world = it.world.clone();
    assert_eq!(world.questions().count(), 0);
    assert!(world.run(A).unwrap().attempt.permissions.is_empty(), "the next process asks again");
    it.when(answer(QUESTION, "allow")).refused(Refusal::NoQuestion(EventId(QUESTION)));
}

/// The process cannot be told the reason in the answer to its request, so a message tells it.
#[test]
fn the_reason_of_a_denial_reaches_every_agent() {
    let mute = Capabilities { explains_denials: false, ..Capabilities::ALL };
    let asking = |policy| {
        let it =
            wanted(with(policy)).and(spawned_with(first(), mute)).and(begun(first())).and(heard(first(), BRIEFING));
        hears(it, [asks("r", "make")])
    };
    let it = asking(PermissionPolicy::Ask).done();
    let question = it.world.questions().next().map(|(id, _)| id.0).expect("the user is asked");
    let reason = "The user did not allow it: use just";
    let told = format!("Your request to use Bash (run `make`) was denied. {reason}");
    let it = it.when(answer(question, "deny: use just")).then([
        answered(question, "deny: use just"),
        decided("r", denied(reason), DecidedBy::Human),
        said(A, &told),
    ]);
    assert_eq!(undelivered(&it).len(), 1, "it is delivered like any message");
    let it = asking(PermissionPolicy::None).done();
    assert_eq!(undelivered(&it).len(), 1, "the reason of a policy, too");
    let it = hears(it, [asks("s", "make again")]).done();
    assert_eq!(undelivered(&it).len(), 1, "and a policy only once: each message is a turn that costs money");
}

/// A program that is killed in a question may still say that its turn was cancelled. Some also end a turn like that after a denial.
#[test]
fn a_turn_that_nobody_interrupted_has_failed() {
    let silent = Capabilities { echoes_messages: false, ..Capabilities::ALL };
    let asking = |capabilities| {
        let it = wanted(with(PermissionPolicy::Ask)).and(spawned_with(first(), capabilities)).and(begun(first()));
        hears(it.and(heard(first(), BRIEFING)), [asks("r", "make")]).done()
    };
    let question = |it: &Given| it.world.questions().next().map(|(id, _)| id.0).expect("the user is asked");
    let cancelled = |it: Given| hears(it, [result(broken_off())]).done();
    let goes_on = |it: Given| {
        let it = cancelled(it).when(exit(first(), Exit::Signal(9))).done();
        last_run(&it).attempt.number == 2
    };
    assert!(goes_on(asking(silent)), "it was killed");
    assert!(!goes_on(asking(silent).when(interrupt(A)).done()), "the user interrupted it");
    assert!(!goes_on(asking(Capabilities::ALL)), "an interrupt that was answered is no longer known");
    let denied = |it: Given| {
        let question = question(&it);
        it.when(answer(question, "deny")).done()
    };
    assert!(!goes_on(denied(asking(silent))), "it gave up");
    let asks_again = hears(denied(asking(silent)), [asks("s", "make again")]).done();
    assert!(goes_on(asks_again), "it went on after the denial, and was killed");
    let stopped = asking(silent).when(stop(A)).done();
    let stopped = cancelled(stopped).when(exit(first(), Exit::Signal(15))).done();
    assert_eq!(last_run(&stopped).attempt.number, 1, "it was told to end");
}
