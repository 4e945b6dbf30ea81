//! Thirteen ways in which others have failed at this, each as a test.

use super::words::*;
use hatchery_core::event::{QuestEvent, RunEvent, StepEvent};
use hatchery_core::output::{FailureKind, Output};
use hatchery_core::quest::{QuestStart, StepStatus, Verdict};
use hatchery_core::{Command, Event, Exit, QuestId, Stream};

/// One result was handled three times, two were lost.
#[test]
fn peers_01_three_that_finish_in_the_order_2_1_0_are_each_handled_once() {
    let mut it = smithy(quest_spec(), &[("s0", &[]), ("s1", &[]), ("s2", &[])]);
    for step in ["s2", "s1", "s0"] {
        assert!(
            it.plays(step, complete())
                .iter()
                .any(|event| matches!(event, Event::Step { what: StepEvent::Completed { .. }, .. }))
        );
        assert_eq!(it.status(step), StepStatus::Complete);
    }
    assert_eq!(it.count(|event| matches!(event, Event::Step { what: StepEvent::Completed { .. }, .. })), 3);
    assert_eq!(it.state(), "complete");
}

/// Three slots, one agent at a time.
#[test]
fn peers_02_three_slots_are_three_agents_at_once_and_a_freed_one_is_filled_at_once() {
    let mut it = smithy(quest_spec(), &[("a", &[]), ("b", &[]), ("c", &[]), ("d", &[]), ("e", &[])]);
    assert_eq!(it.running(), ["a", "b", "c"]);
    let agents = ["a", "b", "c"].map(|step| it.agent(step));
    assert!(agents.iter().all(|agent| it.world.desired_runs().contains_key(agent)));
    it.plays("b", complete());
    assert_eq!(it.running(), ["a", "c", "d"]);
}

/// Exit 0 without a signal counted as complete; pending work behind a failed step counted as a finished quest.
#[test]
fn peers_03_exit_0_without_a_signal_is_a_crash_and_what_is_behind_a_failed_step_is_not_done() {
    let mut it = smithy(quest_spec(), &[("a", &[]), ("b", &["a"]), ("c", &["b"])]);
    for crashes in 1..=3 {
        let events = it.forgets("a");
        assert!(
            matches!(&events[0], Event::Run { what: RunEvent::Crashed { detail, .. }, .. } if detail.contains("without `signal-back`"))
        );
        let goes_on = if crashes == 1 { StepStatus::Running } else { StepStatus::Parked };
        assert_eq!((it.status("a"), it.run(it.agent("a")).crashes), (goes_on, crashes));
    }
    it.forgets("a");
    assert_eq!(
        [it.status("a"), it.status("b"), it.status("c")],
        [StepStatus::Failed, StepStatus::Blocked, StepStatus::Blocked]
    );
    assert_eq!(it.state(), "open");
    it.restarted();
    it.must(Command::RetryStep { quest: Q, step: id("a"), fresh: false });
    assert_eq!([it.status("b"), it.status("c")], [StepStatus::Pending, StepStatus::Pending]);
    ["a", "b", "c"].iter().for_each(|step| drop(it.plays(step, complete())));
    assert_eq!(it.state(), "complete");
}

#[test]
fn peers_04_resume_true_resumes_the_caller_with_the_outcome_and_false_does_not() {
    let mut it = smithy(quest_spec(), &[("a", &[])]);
    let caller = it.agent("a");
    it.plays("a", calls("tinker", true));
    assert_eq!((it.role("a").as_str(), it.status("a")), ("tinker", StepStatus::WaitingForRole));
    it.plays("a", complete());
    assert_eq!((it.agent("a"), it.status("a")), (caller, StepStatus::Running));
    assert!(it.told(caller).contains("<outcome>\ndone\n</outcome>"));
    let mut it = smithy(quest_spec(), &[("a", &[])]);
    it.plays("a", calls("tinker", false));
    it.plays("a", complete());
    assert_eq!(it.status("a"), StepStatus::Complete);
}

/// Success at the retry limit, success when nothing could be parsed, and a crashed ward that looked green.
#[test]
fn peers_05_a_ward_that_is_red_or_broken_is_never_a_success() {
    let mut it = smithy(warded(), &[("a", &[])]);
    it.plays("a", complete());
    for _ in 0..3 {
        it.ward("a", red(&[]));
        assert_eq!((it.role("a").as_str(), it.status("a")), ("tinker", StepStatus::Running), "red is red");
        it.plays("a", complete());
    }
    it.ward("a", red(&["error: still"]));
    assert_eq!((it.status("a"), it.state()), (StepStatus::Failed, "open"));
    let mut it = smithy(warded(), &[("a", &[])]);
    it.plays("a", complete());
    it.ward("a", Verdict::Broken { why: "killed by SIGSEGV.".into() });
    assert_eq!((it.status("a"), it.questions().len()), (StepStatus::WaitingForHuman, 1));
}

/// Endless respawn after a crash; a crash with no free slot lost the step.
#[test]
fn peers_06_crashes_are_resumed_three_times_and_no_step_is_lost_for_want_of_a_slot() {
    let mut it = smithy(quest_spec(), &[("a", &[]), ("b", &[]), ("c", &[]), ("d", &[])]);
    let agent = it.agent("a");
    it.start("a");
    it.exits(agent, Exit::Signal(9));
    assert_eq!(it.running(), ["a", "b", "c"], "at first nobody takes its place");
    it.start("a");
    it.exits(agent, Exit::Signal(9));
    assert_eq!((it.status("a"), it.running()), (StepStatus::Parked, ["b", "c", "d"].map(str::to_owned).to_vec()));
    it.later(2_000);
    assert_eq!(it.status("a"), StepStatus::Queued, "it waits for a slot");
    it.plays("b", complete());
    it.start("a");
    it.exits(agent, Exit::Signal(9));
    it.later(4_000);
    it.start("a");
    it.exits(agent, Exit::Signal(9));
    assert_eq!((it.status("a"), it.running()), (StepStatus::Failed, ["c", "d"].map(str::to_owned).to_vec()));
    assert_eq!(
        it.count(|event| matches!(event, Event::Run { of, what: RunEvent::Spawned { .. } } if of.agent == agent)),
        4
    );
}

/// The recovery sweep overwrote a step that had just completed.
#[test]
fn peers_07_a_restart_changes_nothing_and_what_is_complete_stays_so() {
    let mut it = smithy(quest_spec(), &[("a", &[]), ("b", &[])]);
    it.plays("a", complete());
    it.restarted();
    assert_eq!(it.must(Command::Tick), []);
    assert_eq!((it.status("a"), it.status("b")), (StepStatus::Complete, StepStatus::Running));
    let late = Command::ReportExit { of: it.attempt_id(it.agent("b")), exit: Exit::Code(0), evidence: None };
    it.plays("b", complete());
    assert_eq!(it.when(late).unwrap_err().code(), "stale_attempt");
}

/// Two mutexes for one file: here every change of a step has one place, the stream of its quest.
#[test]
fn peers_08_every_change_of_a_step_is_an_event_of_its_quest() {
    let mut it = smithy(warded(), &[("a", &[])]);
    it.plays("a", complete());
    it.ward("a", Verdict::Green);
    let of_quest = it.log.iter().filter(|record| record.event.stream() == Stream::Quest(Q));
    let kinds: Vec<&str> = of_quest.map(|record| word(&record.event)).collect();
    let expected = ["created", "planned", "begun", "signal", "queued", "ward", "ward", "complete", "quest complete"];
    assert_eq!(kinds, expected);
}

fn word(event: &Event) -> &'static str {
    match event {
        Event::Quest { what: QuestEvent::Created { .. }, .. } => "created",
        Event::Quest { what: QuestEvent::StepsPlanned { .. }, .. } => "planned",
        Event::Step { what: StepEvent::Begun { .. }, .. } => "begun",
        Event::Step { what: StepEvent::SignalGiven { .. }, .. } => "signal",
        Event::Step { what: StepEvent::Queued { .. }, .. } => "queued",
        Event::Step { what: StepEvent::WardBegun { .. }, .. }
        | Event::Step { what: StepEvent::WardEnded { .. }, .. } => "ward",
        Event::Step { what: StepEvent::Completed { .. }, .. } => "complete",
        Event::Quest { what: QuestEvent::Completed, .. } => "quest complete",
        other => panic!("{other:?}"),
    }
}

/// One bad quest file silenced all dispatch.
#[test]
fn peers_09_a_quest_that_fails_or_plans_nonsense_does_not_stop_another() {
    let mut it = begun(quest_spec(), &[]);
    for _ in 0..4 {
        it.forgets("requirements");
    }
    assert_eq!(it.status("requirements"), StepStatus::Failed);
    it.quest = QuestId::from_bytes([8; 16]);
    it.create(alone(quest_spec()), None, &[planned("a", &[])]);
    it.plays("a", complete());
    assert_eq!(it.state(), "complete");
    it.quest = Q;
    assert_eq!(it.state(), "open");
}

/// A signal for an unknown step was answered with success.
#[test]
fn peers_10_a_signal_for_an_unknown_step_is_refused_and_writes_nothing() {
    let mut it = smithy(quest_spec(), &[("a", &[]), ("b", &[])]);
    let agent = it.start("a");
    assert_eq!(it.signals(agent, "nowhere", complete()), Err("unknown_step".into()));
    assert_eq!(it.signals(agent, "b", complete()), Err("other_step".into()));
    assert_eq!(it.count(|event| matches!(event, Event::Step { what: StepEvent::SignalGiven { .. }, .. })), 0);
}

/// A provider outage spent the whole retry budget in eleven minutes.
#[test]
fn peers_11_an_overload_is_waited_out_for_hours_and_spends_nothing() {
    let mut it = smithy(slots(1), &[("a", &[]), ("b", &[])]);
    let agent = it.agent("a");
    it.leaves("a", refused(FailureKind::Overloaded));
    assert_eq!((it.status("a"), it.running()), (StepStatus::Parked, vec!["b".to_owned()]), "it gives its slot back");
    it.plays("b", complete());
    for _ in 0..20 {
        it.later(31 * 60 * 1_000);
        assert_eq!((it.agent("a"), it.run(agent).crashes), (agent, 0));
        it.leaves("a", refused(FailureKind::Overloaded));
        assert_eq!(it.status("a"), StepStatus::Parked);
    }
    it.later(31 * 60 * 1_000);
    it.plays("a", complete());
    assert_eq!(
        (it.state(), it.count(|event| matches!(event, Event::Run { what: RunEvent::Crashed { .. }, .. }))),
        ("complete", 0)
    );
}

/// Output written just before the exit was lost.
#[test]
fn peers_12_what_is_said_just_before_the_exit_counts() {
    let mut it = smithy(quest_spec(), &[("a", &[])]);
    let agent = it.start("a");
    it.says(agent, vec![spoken("a")]);
    it.exits(agent, Exit::Signal(9));
    assert_eq!(it.status("a"), StepStatus::Complete);
}

/// A sub-agent's line ended the parent. Cycles inverted the order.
#[test]
fn peers_13_a_subagents_line_ends_nobody_and_no_plan_has_a_cycle_or_a_hole() {
    let mut it = smithy(quest_spec(), &[("a", &[])]);
    let agent = it.start("a");
    it.says(agent, vec![Output::Subagent { tool_use: "t".into(), output: Box::new(well(0)) }]);
    it.says(agent, vec![Output::Subagent { tool_use: "t".into(), output: Box::new(spoken("a")) }]);
    assert!(it.run(agent).attempt.in_turn && it.run(agent).attempt.signal_in_output.is_none());
    let why = |steps: &[hatchery_core::quest::StepPlan]| {
        let quest = QuestId::from_bytes([8; 16]);
        let quest_spec = Box::new(alone(quest_spec()));
        it.clone()
            .when(Command::CreateQuest {
                quest,
                quest_spec,
                budget: None,
                start: QuestStart { steps: steps.to_vec(), ..QuestStart::default() },
            })
            .unwrap_err()
    };
    let cycle = [planned("a", &["c"]), planned("b", &["a"]), planned("c", &["b"])];
    assert_eq!(why(&cycle).to_string(), "the plan is refused: these depend on each other: a → c → b → a");
    assert!(why(&[planned("a", &["x"])]).to_string().contains("`a` depends on `x`, which does not exist"));
    assert!(why(&[planned("a", &[]), planned("a", &[])]).to_string().contains("`a` is there twice"));
}
