//! One queue for all that a person has to say: questions, consents, ends, silence and money, the oldest first.

use super::words::*;
use hatchery_core::ask::About;
use hatchery_core::quest::{StepStatus, Verdict};
use hatchery_core::{Command, EventId, Exit};

#[test]
fn the_queue_is_first_come_first_served_and_each_says_who_waits() {
    let mut it = smithy(warded(), &[("a", &[]), ("b", &[]), ("c", &[])]);
    it.plays("b", asks("first?"));
    it.plays("a", complete());
    it.ward("a", Verdict::Broken { why: "second.".into() });
    let agent = it.start("c");
    it.must(Command::StopRun { agent });
    it.exits(agent, Exit::Signal(15));
    it.restarted();
    let texts: Vec<String> = it.world.questions().map(|(_, question)| question.text.clone()).collect();
    for (text, part) in texts.iter().zip(["first?", "second.", "ended before it was done"]) {
        assert!(text.contains(part), "{text}");
    }
    let waits: Vec<_> = it.world.questions().map(|(_, question)| question.agent).collect();
    assert_eq!(waits.last(), Some(&agent));
    // In any order.
    for question in it.questions().into_iter().rev() {
        it.must(Command::AnswerQuestion { question, answer: "retry".into() });
    }
    assert!(it.questions().is_empty());
}

#[test]
fn an_answer_is_given_once_and_to_what_is_open() {
    let mut it = smithy(quest_spec(), &[("a", &[])]);
    it.plays("a", asks("which?"));
    let question = it.question();
    let answer = |question, answer: &str| Command::AnswerQuestion { question, answer: answer.into() };
    assert_eq!(it.when(answer(question, " ")).unwrap_err().code(), "bad_answer");
    it.must(answer(question, "this"));
    assert_eq!(it.when(answer(question, "that")).unwrap_err().code(), "no_question");
    assert_eq!(it.when(answer(EventId(9_999), "that")).unwrap_err().code(), "no_question");
}

#[test]
fn the_silence_of_a_quests_agent_is_asked_about_too() {
    let mut it = smithy(quest_spec(), &[("a", &[])]);
    it.start("a");
    it.later(600_000);
    let asked = it.world.question(it.question()).expect("it is open").about;
    assert!(matches!(asked, About::Silence(_)));
    assert_eq!(it.status("a"), StepStatus::Running);
    let agent = it.agent("a");
    it.answers("stop");
    it.exits(agent, Exit::Signal(9));
    assert_eq!((it.status("a"), it.questions().len()), (StepStatus::WaitingForHuman, 1));
}

/// Silent before it began, and then out of money: one question is open, and it can be answered.
#[test]
fn a_run_waits_for_one_answer_at_a_time() {
    let mut it = smithy(quest_spec(), &[("a", &[])]);
    it.later(600_000);
    it.must(Command::SetQuestBudget { quest: Q, limit: Some(dollars(0)) });
    let asked = it.world.question(it.question()).expect("it is open").about;
    assert_eq!(asked, About::QuestBudget { quest: Q });
    it.answers("5");
    assert_eq!((it.status("a"), it.questions().len()), (StepStatus::Running, 0));
}
