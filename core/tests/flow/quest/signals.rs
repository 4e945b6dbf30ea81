//! Signals: who may give which, once, from where, and what each leads to.

use super::words::*;
use hatchery_core::ask::{About, StepTrouble};
use hatchery_core::event::{RunEvent, StepEvent};
use hatchery_core::output::Output;
use hatchery_core::quest::{MAX_CONTINUATIONS, Signal, SlotWork, StepState, StepStatus};
use hatchery_core::run::StopWhy;
use hatchery_core::{Command, Event, Exit, QuestId};

#[test]
fn a_signal_is_heeded_when_its_process_is_gone_and_not_before() {
    let mut it = smithy(slots(1), &[("a", &[]), ("b", &[])]);
    let agent = it.start("a");
    it.signals(agent, "a", complete()).expect("it may");
    assert_eq!(it.running(), ["a"], "its slot is held as long as there is a process");
    it.exits(agent, Exit::Code(0));
    assert_eq!((it.status("a"), it.running()), (StepStatus::Complete, vec!["b".to_owned()]));
}

#[test]
fn whoever_does_not_leave_after_its_signal_is_stopped() {
    let mut it = smithy(quest_spec(), &[("a", &[])]);
    let agent = it.start("a");
    it.signals(agent, "a", complete()).expect("it may");
    assert_eq!(it.later(59_999), []);
    assert_eq!(
        it.later(1),
        [Event::Run { of: it.attempt_id(agent), what: RunEvent::Stopping { why: StopWhy::Signalled } }]
    );
    it.exits(agent, Exit::Signal(15));
    assert_eq!(it.state(), "complete");
}

#[test]
fn the_same_signal_twice_is_one_and_another_is_refused() {
    let mut it = smithy(quest_spec(), &[("a", &[])]);
    let agent = it.start("a");
    assert_eq!(it.signals(agent, "a", complete()).map(|events| events.len()), Ok(1));
    assert_eq!(it.signals(agent, "a", complete()), Ok(vec![]));
    assert_eq!(it.signals(agent, "a", partial()), Err("signalled".into()));
    it.says(agent, vec![spoken("a"), well(0)]);
    it.exits(agent, Exit::Code(0));
    assert_eq!(it.count(|event| matches!(event, Event::Step { what: StepEvent::SignalGiven { .. }, .. })), 1);
}

#[test]
fn a_signal_of_an_older_attempt_or_agent_writes_nothing() {
    let mut it = smithy(quest_spec(), &[("a", &[])]);
    let agent = it.start("a");
    let give = |agent| Command::GiveSignal { agent, step: id("a"), signal: complete() };
    let late = Command::TakeCall { of: it.attempt_id(agent), number: 1, ask: Ok(Box::new(give(agent))) };
    it.exits(agent, Exit::Signal(9));
    assert_eq!(it.when(late).unwrap_err().code(), "stale_attempt");
    it.plays("a", partial());
    assert!(it.agent("a") != agent);
    assert_eq!(it.when(give(agent)).unwrap_err().code(), "not_at_work");
    assert_eq!(it.when(give(ROOT)).unwrap_err().code(), "no_assignment");
}

#[test]
fn each_role_signals_what_it_may_and_calls_whom_it_may() {
    let mut it = begun(quest_spec(), &[]);
    let agent = it.start("requirements");
    assert_eq!(it.signals(agent, "requirements", partial()), Err("may_not_signal".into()));
    assert_eq!(it.signals(agent, "requirements", calls("pathseeker", true)), Err("may_not_signal".into()));
    let mut it = smithy(quest_spec(), &[("a", &[])]);
    let smith = it.start("a");
    assert_eq!(it.signals(smith, "a", calls("king", true)), Err("may_not_call".into()));
    assert_eq!(it.signals(smith, "a", calls("smith", true)), Err("may_not_call".into()));
}

#[test]
fn a_signal_that_only_the_stream_has_is_taken_from_there_at_the_end() {
    for exit in [Exit::Code(0), Exit::Code(1), Exit::Signal(9), Exit::LostWithMachine] {
        let mut it = smithy(quest_spec(), &[("a", &[])]);
        let agent = it.start("a");
        it.says(agent, vec![spoken("a")]);
        assert_eq!(
            it.count(|event| matches!(event, Event::Step { what: StepEvent::SignalGiven { .. }, .. })),
            0,
            "its tool may yet pass it on"
        );
        it.restarted();
        it.exits(agent, exit);
        assert_eq!(it.state(), "complete");
    }
}

#[test]
fn one_in_the_stream_that_would_have_been_refused_is_none_and_its_end_a_crash() {
    let mut it = smithy(quest_spec(), &[("a", &[])]);
    let agent = it.start("a");
    it.says(agent, vec![spoken("elsewhere"), well(0)]);
    it.exits(agent, Exit::Code(0));
    assert_eq!((it.run(agent).crashes, it.status("a")), (1, StepStatus::Running));
    // And what an older attempt has said is not said by this one.
    it.start("a");
    it.says(agent, vec![well(0)]);
    it.exits(agent, Exit::Code(0));
    assert_eq!(it.run(agent).crashes, 2);
    // Nor is the tool of somebody else ours.
    it.later(60_000);
    it.start("a");
    let input = r#"{"signal":"complete","stepId":"a","summary":"done"}"#.to_owned();
    it.says(agent, vec![Output::ToolUse { id: "t".into(), name: "mcp__other__signal-back".into(), input }]);
    it.exits(agent, Exit::Code(0));
    assert_eq!(it.run(agent).crashes, 3);
}

#[test]
fn partially_complete_goes_on_with_a_fresh_agent_that_knows_where() {
    let mut it = smithy(quest_spec(), &[("a", &[])]);
    let first = it.agent("a");
    it.plays("a", partial());
    let second = it.agent("a");
    assert!(first != second && it.role("a") == "smith");
    let told = it.told(second);
    assert!(told.contains("<progress>\nhalf") && told.contains("<continuation-point>\nthe middle"), "{told}");
    for _ in 1..MAX_CONTINUATIONS {
        it.plays("a", partial());
    }
    it.plays("a", partial());
    assert_eq!(it.status("a"), StepStatus::WaitingForHuman, "not without an end");
    it.answers("one more");
    it.plays("a", complete());
    assert_eq!(it.state(), "complete");
}

#[test]
fn a_question_gives_the_slot_back_and_its_answer_resumes_that_conversation() {
    let mut it = smithy(slots(1), &[("a", &[]), ("b", &[])]);
    let agent = it.agent("a");
    it.plays("a", asks("which river?"));
    assert_eq!((it.status("a"), it.running()), (StepStatus::WaitingForHuman, vec!["b".to_owned()]));
    let asked = it.world.question(it.question()).expect("it is open").clone();
    assert_eq!(asked.about, About::Step { quest: Q, trouble: StepTrouble::Input });
    assert_eq!((asked.agent, asked.text.as_str()), (agent, "which river?\n\nthe plan"));
    it.restarted();
    let question = it.question();
    it.answers("the Rhine");
    let again = Command::AnswerQuestion { question, answer: "the Rhine".into() };
    assert_eq!(it.when(again).unwrap_err().code(), "no_question");
    assert_eq!(it.status("a"), StepStatus::Queued, "there is one slot");
    it.plays("b", complete());
    assert_eq!((it.agent("a"), it.run(agent).number), (agent, 2));
    assert!(
        it.world.conversation(agent).is_some_and(|conversation| conversation.harness_session.is_some()),
        "its conversation goes on"
    );
    assert!(it.told(agent).contains("<answer>\nthe Rhine"));
}

#[test]
fn a_signal_is_one_flat_object_and_says_what_is_missing() {
    let read = |json: serde_json::Value| Signal::read(&json).map(|(step, signal)| (step.to_string(), signal));
    let complete = serde_json::json!({ "signal": "complete", "stepId": "a", "summary": "done" });
    assert_eq!(read(complete), Ok(("a".into(), super::words::complete())));
    let typed = serde_json::json!({
        "type": "needs-role-followup", "stepId": "a", "targetRole": "tinker", "reason": "why", "context": "where", "resume": true
    });
    assert_eq!(read(typed), Ok(("a".into(), calls("tinker", true))));
    for (json, why) in [
        (serde_json::json!({ "signal": "complete", "stepId": "a" }), "`complete` needs `summary`"),
        (serde_json::json!({ "signal": "complete", "stepId": "a", "summary": " " }), "something in it"),
        (serde_json::json!({ "signal": "partially-complete", "stepId": "a", "progress": "x" }), "continuationPoint"),
        (serde_json::json!({ "signal": "needs-user-input", "stepId": "a" }), "`question`"),
        (
            serde_json::json!({ "signal": "needs-role-followup", "stepId": "a", "targetRole": "x", "reason": "y" }),
            "`resume`",
        ),
        (serde_json::json!({ "signal": "complete", "summary": "done" }), "stepId"),
        (serde_json::json!({ "signal": "done", "stepId": "a" }), "done"),
        (serde_json::json!([]), "signal"),
    ] {
        let refusal = read(json.clone()).unwrap_err();
        assert!(refusal.to_string().contains(why), "{json}: {refusal}");
    }
}

/// Choices become buttons, so they are few and short.
#[test]
fn an_agent_offers_a_few_short_answers_to_its_question() {
    let mut it = smithy(quest_spec(), &[("a", &[])]);
    let agent = it.start("a");
    let given = |choices: serde_json::Value| {
        let json = serde_json::json!({
            "signal": "needs-user-input", "stepId": "a", "question": "Stone or wood?", "choices": choices
        });
        Signal::read(&json).expect("it can be read").1
    };
    let long = "x".repeat(81);
    for (choices, why) in [
        (serde_json::json!(["1", "2", "3", "4", "5", "6", "7"]), "7 choices are too many"),
        (serde_json::json!(["Stone", " "]), "choice 2 is no line of text"),
        (serde_json::json!(["Stone\nand wood"]), "choice 1 is no line of text"),
        (serde_json::json!([long]), "choice 1 has 81 characters"),
        (serde_json::json!(["Stone", "Stone"]), "choice 2 is there twice"),
    ] {
        let command = Command::GiveSignal { agent, step: id("a"), signal: given(choices) };
        let refusal = it.clone().when(command).expect_err("it is refused");
        assert!(refusal.to_string().contains(why), "{refusal}");
    }
    let signal = given(serde_json::json!(["Stone", "Wood"]));
    let written = serde_json::to_value(&signal).expect("it can be written");
    assert_eq!(written["needs-user-input"]["choices"], serde_json::json!(["Stone", "Wood"]));
    it.signals(agent, "a", signal).expect("they are few and short");
    // Without choices the signal is written as it always was.
    let plain = serde_json::to_value(given(serde_json::json!([]))).expect("it can be written");
    assert_eq!(plain, serde_json::json!({ "needs-user-input": { "question": "Stone or wood?", "context": "" } }));
}

#[test]
fn signals_of_different_quests_do_not_meet() {
    let mut it = smithy(quest_spec(), &[("a", &[])]);
    let mine = it.start("a");
    it.quest = QuestId::from_bytes([8; 16]);
    it.create(alone(quest_spec()), None, &[planned("a", &[])]);
    let other = it.start("a");
    it.signals(mine, "a", complete()).expect("it is its step");
    assert!(
        matches!(&it.step("a").state, StepState::Running(SlotWork::Agent { agent, signal: None, .. }) if *agent == other)
    );
}
