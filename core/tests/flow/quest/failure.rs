//! What goes wrong with agents: crashes, ends, limits, money, and people who stop or kill them.

use super::words::*;
use hatchery_core::ask::{About, StepTrouble};
use hatchery_core::event::{RunEvent, StepEvent};
use hatchery_core::output::{FailureKind, Output};
use hatchery_core::quest::StepStatus;
use hatchery_core::{Cause, Command, Event, Exit, Timestamp};

#[test]
fn a_crash_resumes_the_conversation_in_the_same_slot() {
    let mut it = smithy(slots(1), &[("a", &[]), ("b", &[])]);
    let agent = it.start("a");
    let events = it.exits(agent, Exit::Code(1));
    assert!(matches!(
        events[..],
        [Event::Run { what: RunEvent::Crashed { .. }, .. }, Event::Run { what: RunEvent::Resumed, .. }]
    ));
    assert_eq!((it.running(), it.agent("a")), (vec!["a".to_owned()], agent));
    assert!(it.world.conversation(agent).is_some_and(|conversation| conversation.harness_session.is_some()));
    it.plays("a", complete());
    assert_eq!(it.status("a"), StepStatus::Complete);
}

/// Otherwise a second without a network fails every step.
#[test]
fn one_that_crashes_again_waits_before_it_is_resumed() {
    let mut it = smithy(slots(1), &[("a", &[])]);
    let agent = it.start("a");
    it.exits(agent, Exit::Code(1));
    it.start("a");
    let events = it.exits(agent, Exit::Code(1));
    assert!(
        matches!(
            events[..],
            [
                Event::Run { what: RunEvent::Crashed { .. }, .. },
                Event::Run { what: RunEvent::Parked { until: Some(_), .. }, .. },
                ..
            ]
        ),
        "{events:?}"
    );
    assert_eq!((it.status("a"), it.questions().len()), (StepStatus::Parked, 0));
    it.later(2_000);
    it.plays("a", complete());
    assert_eq!(it.status("a"), StepStatus::Complete);
}

/// An agent that ends at once, again and again, would burn its retries in a second, and each start costs money.
#[test]
fn one_that_leaves_again_without_a_signal_waits_as_after_a_crash() {
    let mut it = smithy(slots(1), &[("a", &[])]);
    let events = it.forgets("a");
    assert!(matches!(events.last(), Some(Event::Run { what: RunEvent::Resumed, .. })), "told at once: {events:?}");
    it.forgets("a");
    assert_eq!((it.status("a"), it.questions().len()), (StepStatus::Parked, 0));
    it.later(2_000);
    it.plays("a", complete());
    assert_eq!(it.status("a"), StepStatus::Complete);
}

#[test]
fn turns_that_end_well_give_no_retries_back_as_long_as_nothing_is_signalled() {
    let mut it = smithy(quest_spec(), &[("a", &[])]);
    for crashes in 1..=3 {
        it.forgets("a");
        assert_eq!(it.run(it.agent("a")).crashes, crashes);
    }
    it.forgets("a");
    assert_eq!(it.status("a"), StepStatus::Failed);
}

#[test]
fn a_failed_step_goes_on_where_it_was_when_it_is_tried_again() {
    let mut it = smithy(quest_spec(), &[("a", &[]), ("b", &["a"])]);
    let agent = it.agent("a");
    (0..4).for_each(|_| drop(it.forgets("a")));
    it.must(Command::RetryStep { quest: Q, step: id("a"), fresh: false });
    assert_eq!((it.agent("a"), it.run(agent).crashes, it.status("b")), (agent, 0, StepStatus::Pending));
}

#[test]
fn a_limit_that_says_when_it_ends_is_waited_out_until_then() {
    let mut it = smithy(quest_spec(), &[("a", &[])]);
    let agent = it.start("a");
    let resets_at = it.now.plus_ms(3_600_000);
    it.says(
        agent,
        vec![
            Output::Limit { rejected: true, resets_at: Some(resets_at), window: None },
            refused(FailureKind::RateLimited),
        ],
    );
    it.exits(agent, Exit::Code(1));
    assert_eq!((it.status("a"), it.world.next_deadline().map(|(at, _)| at)), (StepStatus::Parked, Some(resets_at)));
    it.restarted();
    it.later(3_600_000);
    assert_eq!((it.agent("a"), it.status("a"), it.run(agent).crashes), (agent, StepStatus::Running, 0));
}

#[test]
fn a_parked_agent_waits_for_a_slot_when_its_time_has_come() {
    let mut it = smithy(slots(1), &[("a", &[]), ("b", &[])]);
    let agent = it.agent("a");
    it.leaves("a", refused(FailureKind::Overloaded));
    it.later(15_000);
    assert_eq!((it.status("a"), it.run(agent).is_parked()), (StepStatus::Queued, true));
    it.plays("b", complete());
    assert_eq!((it.status("a"), it.run(agent).is_parked()), (StepStatus::Running, false));
}

#[test]
fn whoever_waits_for_a_slot_after_a_limit_ends_with_its_quest() {
    let mut it = smithy(slots(1), &[("a", &[]), ("b", &[])]);
    let agent = it.agent("a");
    it.leaves("a", refused(FailureKind::Overloaded));
    it.later(15_000);
    assert_eq!((it.status("a"), it.run(agent).is_parked()), (StepStatus::Queued, true));
    it.must(Command::AbandonQuest { quest: Q });
    assert!(!it.run(agent).is_open(), "nobody would ever end it");
}

#[test]
fn one_that_has_run_out_of_room_is_followed_by_a_fresh_one() {
    let mut it = smithy(quest_spec(), &[("a", &[])]);
    let agent = it.agent("a");
    it.leaves("a", refused(FailureKind::PromptTooLong));
    assert!(it.agent("a") != agent && it.role("a") == "smith");
    assert!(it.told(it.agent("a")).contains("read the files in the folder"));
}

#[test]
fn whoever_is_stopped_or_killed_has_not_failed_and_a_person_says_how_to_go_on() {
    for kill in [false, true] {
        let mut it = smithy(quest_spec(), &[("a", &[])]);
        let agent = it.start("a");
        match kill {
            true => it.must(Command::Kill { agent, cascade: false, by: None, remark: None }),
            false => it.must(Command::StopRun { agent }),
        };
        it.exits(agent, Exit::Signal(15));
        assert_eq!(it.status("a"), StepStatus::WaitingForHuman);
        let asked = it.world.question(it.question()).expect("it is open").about;
        assert_eq!(asked, About::Step { quest: Q, trouble: StepTrouble::Ended });
        it.answers("take the other road");
        assert_eq!(it.agent("a") == agent, !kill);
        assert!(it.told(it.agent("a")).contains("take the other road"));
        it.plays("a", complete());
        assert_eq!(it.state(), "complete");
    }
}

#[test]
fn a_person_who_ends_what_is_parked_is_asked_how_to_go_on() {
    let mut it = smithy(quest_spec(), &[("a", &[])]);
    let agent = it.agent("a");
    it.leaves("a", refused(FailureKind::Overloaded));
    it.must(Command::StopRun { agent });
    assert_eq!(it.status("a"), StepStatus::WaitingForHuman);
    it.answers("retry");
    assert_eq!((it.agent("a"), it.world.next_deadline().is_some()), (agent, true));
}

#[test]
fn a_word_with_an_agent_is_not_about_its_step() {
    let mut it = smithy(quest_spec(), &[("a", &[])]);
    let agent = it.agent("a");
    it.plays("a", asks("which?"));
    it.must(Command::Say { agent, text: "how is it?".into(), spec: Some(spec()) });
    it.answers("the left one");
    assert_eq!((it.status("a"), it.run(agent).number), (StepStatus::Running, 2), "it goes along with that run");
    it.forgets("a");
    assert_eq!((it.status("a"), it.run(agent).number, it.run(agent).crashes), (StepStatus::Running, 3, 0));
    it.plays("a", complete());
    assert_eq!(it.state(), "complete");
}

/// A quest of five dollars, of which the first turn has used all.
fn broke() -> Play {
    let mut it = begun(alone(slots(1)), &[planned("a", &[]), planned("b", &[])]);
    it.must(Command::SetQuestBudget { quest: Q, limit: Some(dollars(5)) });
    let agent = it.start("a");
    it.says(agent, vec![well(6)]);
    it.exits(agent, Exit::Code(0));
    it
}

#[test]
fn money_is_asked_for_and_nothing_is_spent_on_waiting_for_it() {
    let mut it = broke();
    assert_eq!([it.status("a"), it.status("b")], [StepStatus::Parked, StepStatus::Queued], "nobody may begin");
    assert_eq!(
        (it.questions().len(), it.count(|event| matches!(event, Event::Run { what: RunEvent::Crashed { .. }, .. }))),
        (1, 0)
    );
    let question = it.questions()[0];
    let answer = |answer: &str| Command::AnswerQuestion { question, answer: answer.into() };
    assert_eq!(it.when(answer("5.50")).unwrap_err().code(), "bad_answer", "that is spent already");
    it.restarted();
    it.must(answer("20"));
    assert_eq!([it.status("a"), it.status("b")], [StepStatus::Running, StepStatus::Queued]);
    it.plays("a", complete());
    it.plays("b", complete());
    assert_eq!((it.state(), it.questions().len()), ("complete", 0));
}

/// However many are ready, a person is asked once for the same thing; if not by the one, then by the next.
#[test]
fn one_asks_for_money_and_the_others_wait() {
    let names: Vec<String> = (0..20).map(|number| format!("s{number:02}")).collect();
    let steps: Vec<_> = names.iter().map(|name| planned(name, &[])).collect();
    let mut it = begun(alone(quest_spec()), &steps);
    it.must(Command::SetQuestBudget { quest: Q, limit: Some(dollars(5)) });
    for agent in ["s00", "s01", "s02"].map(|step| it.start(step)) {
        it.says(agent, vec![well(6)]);
        it.exits(agent, Exit::Code(0));
    }
    assert_eq!((it.questions().len(), it.running().len()), (1, 0), "for all who were at work");
    assert!(names[3..].iter().all(|step| it.step(step).attempts == 0), "nobody is made who may not begin");
    let asks = |it: &Play| it.world.questions().filter(|(_, it)| matches!(it.about, About::QuestBudget { .. })).count();
    for ended in ["s00", "s01", "s02"].map(|step| it.agent(step)) {
        it.must(Command::StopRun { agent: ended });
        assert_eq!(asks(&it), 1, "there is always somebody who asks");
    }
    it.must(Command::SetQuestBudget { quest: Q, limit: None });
    assert_eq!((asks(&it), it.running().len()), (0, 3));
}

#[test]
fn whoever_gives_no_more_money_is_asked_nothing_and_the_quest_rests() {
    let mut it = broke();
    it.answers("stop");
    assert_eq!((it.state(), it.questions()), ("paused", vec![]));
    assert_eq!([it.status("a"), it.status("b")], [StepStatus::Parked, StepStatus::Queued], "nothing has failed");
    it.restarted();
    it.later(48 * 3_600 * 1_000);
    assert_eq!((it.state(), it.questions()), ("paused", vec![]));
    // Gone on with, it has the same question again, and one.
    it.must(Command::ResumeQuest { quest: Q });
    it.answers("20");
    it.plays("a", complete());
    it.plays("b", complete());
    assert_eq!((it.state(), it.questions()), ("complete", vec![]));
}

#[test]
fn more_money_that_comes_in_the_pause_is_not_asked_for() {
    let mut it = broke();
    it.answers("stop");
    it.must(Command::SetQuestBudget { quest: Q, limit: Some(dollars(20)) });
    it.must(Command::ResumeQuest { quest: Q });
    assert_eq!((it.status("a"), it.questions()), (StepStatus::Running, vec![]));
}

#[test]
fn a_step_whose_agent_gets_no_more_money_has_failed_and_can_be_tried_again() {
    let mut it = smithy(quest_spec(), &[("a", &[]), ("b", &[])]);
    let agent = it.start("a");
    it.must(Command::SetBudget { agent: Some(agent), limit: Some(dollars(5)) });
    it.says(agent, vec![well(6)]);
    it.exits(agent, Exit::Code(0));
    it.answers("stop");
    assert_eq!((it.status("a"), it.status("b"), it.questions()), (StepStatus::Failed, StepStatus::Running, vec![]));
    it.restarted();
    it.must(Command::RetryStep { quest: Q, step: id("a"), fresh: false });
    it.answers("20");
    it.plays("a", complete());
    assert_eq!((it.status("a"), it.agent_of("a")), (StepStatus::Complete, agent));
}

#[test]
fn a_day_without_money_is_asked_about_once_for_all_steps_of_a_quest() {
    let mut it = smithy(quest_spec(), &[("a", &[]), ("b", &[]), ("c", &[]), ("d", &[]), ("e", &[])]);
    it.must(Command::SetBudget { agent: None, limit: Some(dollars(5)) });
    for agent in ["a", "b", "c"].map(|step| it.start(step)) {
        it.says(agent, vec![well(6)]);
        it.exits(agent, Exit::Code(0));
    }
    assert_eq!((it.questions().len(), it.status("a")), (1, StepStatus::Parked));
    let mut stopped = it.clone();
    stopped.answers("stop");
    assert_eq!((stopped.state(), stopped.questions()), ("paused", vec![]));
    let asks = |it: &Play| it.world.questions().filter(|(_, it)| it.about == About::Budget { of: None }).count();
    let mut killed = it.clone();
    killed.must(Command::StopRun { agent: killed.agent("a") });
    assert_eq!(asks(&killed), 1, "the next one asks");
    it.answers("50");
    assert_eq!((it.running().len(), it.questions()), (3, vec![]));
}

#[test]
fn why_an_agent_ended_is_a_sentence_of_its_own() {
    let mut it = smithy(quest_spec(), &[("a", &[])]);
    let agent = it.start("a");
    it.must(Command::StopRun { agent });
    it.exits(agent, Exit::Signal(15));
    let text = it.world.question(it.question()).expect("it is open").text.clone();
    assert!(text.contains("stopped by the user. Answer `retry`"), "{text}");
}

#[test]
fn a_quest_that_may_spend_again_goes_on() {
    let mut it = broke();
    it.must(Command::SetQuestBudget { quest: Q, limit: Some(dollars(6)) });
    assert_eq!(it.status("a"), StepStatus::Parked, "not enough");
    it.must(Command::SetQuestBudget { quest: Q, limit: None });
    assert_eq!([it.status("a"), it.status("b")], [StepStatus::Running, StepStatus::Queued]);
}

/// It was over two ceilings, and one of them is raised: it asks about the other.
#[test]
fn whoever_is_over_two_ceilings_asks_about_each() {
    let mut it = broke();
    it.must(Command::SetBudget { agent: None, limit: Some(dollars(6)) });
    let question = it.questions()[0];
    it.must(Command::AnswerQuestion { question, answer: "20".into() });
    let abouts: Vec<About> = it.world.questions().map(|(_, question)| question.about).collect();
    assert!(abouts.contains(&About::Budget { of: None }), "{abouts:?}");
    it.must(Command::SetBudget { agent: None, limit: None });
    assert_eq!(it.running().len(), 1, "and never more than there are slots");
}

#[test]
fn a_day_that_is_over_frees_what_waited_for_it() {
    let mut it = smithy(quest_spec(), &[("a", &[])]);
    it.must(Command::SetBudget { agent: None, limit: Some(dollars(5)) });
    let agent = it.start("a");
    it.says(agent, vec![well(6)]);
    it.exits(agent, Exit::Code(0));
    assert_eq!(it.status("a"), StepStatus::Parked);
    it.now = Timestamp(24 * 3_600 * 1_000);
    it.must(Command::Tick);
    assert_eq!((it.status("a"), it.questions().len()), (StepStatus::Running, 0));
}

#[test]
fn what_could_not_be_started_fails_at_once_and_says_why() {
    let mut it = smithy(quest_spec(), &[("a", &[])]);
    let of = it.attempt_id(it.agent("a"));
    let events = it.must(Command::ReportExit { of, exit: Exit::NotStarted, evidence: Some("no harness".into()) });
    assert!(matches!(&events[0], Event::Run { what: RunEvent::Ended { cause: Cause::Crashed, .. }, .. }));
    assert!(
        matches!(&events[1], Event::Step { what: StepEvent::Failed { why, .. }, .. } if why.contains("no harness")),
        "{events:?}"
    );
}

#[test]
fn an_outage_is_waited_out_and_fails_no_step() {
    let mut it = smithy(quest_spec(), &[("a", &[])]);
    for wait in [15_000, 30_000, 60_000] {
        it.leaves("a", refused(FailureKind::Unavailable));
        assert_eq!((it.status("a"), it.questions().len()), (StepStatus::Parked, 0));
        it.later(wait);
        assert_eq!(it.status("a"), StepStatus::Running, "after {wait}");
    }
    assert_eq!(it.run(it.agent("a")).crashes, 0);
    it.plays("a", complete());
    assert_eq!(it.status("a"), StepStatus::Complete);
}

/// The same conversation would be refused again.
#[test]
fn after_a_hopeless_end_another_try_begins_with_a_fresh_agent() {
    for kind in [FailureKind::Refused, FailureKind::OutputTooLong] {
        let mut it = smithy(quest_spec(), &[("a", &[])]);
        let agent = it.agent("a");
        it.leaves("a", refused(kind));
        assert_eq!(
            (it.status("a"), it.run(agent).crashes),
            (StepStatus::Failed, 0),
            "{kind:?}: it is not tried in vain"
        );
        it.must(Command::RetryStep { quest: Q, step: id("a"), fresh: false });
        assert_ne!(it.agent("a"), agent, "{kind:?}");
        it.plays("a", complete());
        assert_eq!(it.status("a"), StepStatus::Complete);
    }
}

#[test]
fn a_wrong_model_is_a_question() {
    let mut it = smithy(quest_spec(), &[("a", &[])]);
    it.leaves("a", refused(FailureKind::WrongModel));
    let text = it.world.question(it.question()).expect("it is open").text.clone();
    assert!(text.contains("Choose another model"), "{text}");
}

#[test]
fn a_retry_can_ask_for_a_fresh_agent() {
    let mut it = smithy(quest_spec(), &[("a", &[])]);
    let agent = it.agent("a");
    (0..4).for_each(|_| drop(it.forgets("a")));
    it.must(Command::RetryStep { quest: Q, step: id("a"), fresh: true });
    assert_ne!(it.agent("a"), agent);
}
