//! Wards and merges: green, red and broken are three things, and nothing is complete that is not green and merged.

use super::words::*;
use hatchery_core::ask::{About, StepTrouble};
use hatchery_core::event::{QuestEvent, QuestionEvent, StepEvent};
use hatchery_core::output::Output;
use hatchery_core::quest::{ChoreKind, Merge, NoteKind, StepStatus, Verdict};
use hatchery_core::{Command, Event, Exit};

fn conflict() -> Merge {
    Merge::Conflict { files: vec!["lib.rs".into()] }
}

#[test]
fn a_ward_holds_a_slot_and_is_wanted_until_it_is_reported_once() {
    let mut it = smithy(hatchery_core::quest::QuestSpec { slots: 1, ..warded() }, &[("a", &[]), ("b", &[])]);
    it.plays("a", complete());
    assert_eq!((it.running(), it.status("b")), (vec!["a".to_owned()], StepStatus::Queued));
    let wanted = |it: &Play| it.world.chores().get(&(Q, id("a"))).map(|chore| (chore.number, chore.what));
    assert_eq!(wanted(&it), Some((1, ChoreKind::Ward)));
    it.restarted();
    assert_eq!(wanted(&it), Some((1, ChoreKind::Ward)));
    it.ward("a", Verdict::Green);
    assert_eq!((it.status("a"), it.running(), wanted(&it)), (StepStatus::Complete, vec!["b".to_owned()], None));
    let verdict = Verdict::Red { findings: vec![] };
    let (artifact, restored) = ("x".into(), Vec::new());
    let late = Command::ReportWard { quest: Q, step: id("a"), number: 1, verdict, artifact, restored };
    assert_eq!(it.when(late).unwrap_err().code(), "stale_chore");
}

#[test]
fn red_goes_to_the_mender_with_what_was_found_and_then_the_ward_looks_again() {
    let mut it = smithy(warded(), &[("a", &[])]);
    it.plays("a", complete());
    it.ward("a", red(&["error: crooked", "error: short"]));
    let told = it.told(it.agent("a"));
    assert_eq!(it.role("a"), "tinker");
    assert!(told.contains("<findings>\nerror: crooked\nerror: short") && told.contains("`ward.log`"), "{told}");
    it.plays("a", complete());
    it.ward("a", Verdict::Green);
    assert_eq!(it.state(), "complete");
}

#[test]
fn after_three_mendings_red_is_a_failure_and_another_try_has_three_again() {
    let mut it = smithy(warded(), &[("a", &[]), ("b", &["a"])]);
    it.plays("a", complete());
    for round in 0..2 {
        for _ in 0..3 {
            if round == 0 || it.step("a").chores > 4 {
                it.ward("a", red(&["error: crooked"]));
            }
            it.plays("a", complete());
        }
        let events = it.ward("a", red(&["error: crooked"]));
        assert!(
            matches!(&events[1], Event::Step { what: StepEvent::Failed { why, .. }, .. } if why.ends_with("3 mendings: error: crooked"))
        );
        assert_eq!([it.status("a"), it.status("b")], [StepStatus::Failed, StepStatus::Blocked]);
        it.must(Command::RetryStep { quest: Q, step: id("a"), fresh: false });
        assert_eq!(it.role("a"), "tinker");
    }
}

#[test]
fn a_green_ward_gives_the_mendings_back() {
    let mut it = begun(warded(), &[planned("a", &[])]);
    it.plays("a", complete());
    for station in ["codeweaver", "siegemaster"] {
        for _ in 0..3 {
            it.ward("a", red(&["error"]));
            assert_eq!(it.role("a"), "spiritmender", "after the {station}");
            it.plays("a", complete());
        }
        it.ward("a", Verdict::Green);
        if station == "codeweaver" {
            it.plays("a", complete());
        }
    }
    assert_eq!(it.status("a"), StepStatus::Complete);
}

#[test]
fn a_broken_ward_says_nothing_and_a_person_mends_it() {
    let mut it = smithy(warded(), &[("a", &[])]);
    it.plays("a", complete());
    it.ward("a", Verdict::Broken { why: "make: not found.".into() });
    let asked = it.world.question(it.question()).expect("it is open").clone();
    assert_eq!(asked.about, About::Step { quest: Q, trouble: StepTrouble::Ward });
    assert!(asked.text.contains("make: not found."));
    let question = it.question();
    let nonsense = Command::AnswerQuestion { question, answer: "well".into() };
    assert_eq!(it.when(nonsense).unwrap_err().code(), "bad_answer");
    let events = it.answers("ward: cargo test");
    assert!(events.contains(&Event::Quest {
        quest: Q,
        what: QuestEvent::WardChanged { command: "cargo test".into(), limit_ms: None }
    }));
    assert_eq!(it.world.ward(Q).map(|ward| ward.command.as_str()), Some("cargo test"));
    it.ward("a", Verdict::Broken { why: "again.".into() });
    it.answers("retry");
    it.ward("a", Verdict::Green);
    assert_eq!((it.state(), it.step("a").progress.mendings), ("complete", 0));
}

#[test]
fn without_a_ward_its_stations_are_passed_by() {
    let mut table = alone(quest_spec());
    table.table.paths.work = ["smith", "ward", "tinker", "ward"].map(str::to_owned).to_vec();
    let mut it = begun(table, &[planned("a", &[])]);
    it.plays("a", complete());
    assert_eq!(it.role("a"), "tinker");
    it.plays("a", complete());
    assert_eq!(it.state(), "complete");
}

#[test]
fn what_a_ward_found_is_kept_in_bounds() {
    let mut it = smithy(warded(), &[("a", &[])]);
    it.plays("a", complete());
    let findings: Vec<String> = (0..10_000).map(|line| format!("{line} {}", "x".repeat(5_000))).collect();
    it.ward("a", Verdict::Red { findings });
    assert!(it.told(it.agent("a")).len() < 200_000);
    assert!(rmp_serde::to_vec_named(&it.world).expect("plain data").len() < 200_000);
}

#[test]
fn an_isolated_step_is_complete_when_it_is_merged() {
    let mut it = smithy(isolated(), &[("a", &[]), ("b", &["a"])]);
    assert_eq!(it.run(it.agent("a")).spec.folder.as_deref(), Some("trees/steps/a"));
    it.plays("a", complete());
    it.ward("a", Verdict::Green);
    assert_eq!((it.status("a"), it.status("b")), (StepStatus::Running, StepStatus::Pending));
    it.merge("a", Merge::Merged);
    assert_eq!((it.status("a"), it.status("b")), (StepStatus::Complete, StepStatus::Running));
}

#[test]
fn a_conflict_goes_to_the_mender_and_what_it_made_of_it_passes_the_ward() {
    let mut it = smithy(isolated(), &[("a", &[])]);
    it.plays("a", complete());
    it.ward("a", Verdict::Green);
    for _ in 0..3 {
        it.merge("a", conflict());
        assert_eq!(it.role("a"), "tinker");
        assert!(it.told(it.agent("a")).contains("<conflicts>\nlib.rs"));
        it.plays("a", complete());
        it.ward("a", Verdict::Green);
    }
    it.merge("a", conflict());
    assert_eq!(it.status("a"), StepStatus::Failed);
    // Another try begins with a mending, and that is looked at, too.
    it.must(Command::RetryStep { quest: Q, step: id("a"), fresh: false });
    it.plays("a", complete());
    it.ward("a", Verdict::Green);
    it.merge("a", Merge::Merged);
    assert_eq!(it.state(), "complete");
}

#[test]
fn a_conflict_before_the_ward_is_called_a_conflict_and_goes_to_the_mender() {
    let mut it = smithy(isolated(), &[("a", &[])]);
    it.plays("a", complete());
    for _ in 0..3 {
        it.ward("a", Verdict::Conflict { files: vec!["lib.rs".into()] });
        assert_eq!(it.role("a"), "tinker");
        let told = it.told(it.agent("a"));
        assert!(told.contains("<conflicts>\nlib.rs") && !told.contains("The ward failed"), "{told}");
        it.plays("a", complete());
    }
    let events = it.ward("a", Verdict::Conflict { files: vec!["lib.rs".into()] });
    assert!(matches!(&events[1], Event::Step { what: StepEvent::Failed { why, .. }, .. } if why.contains("conflicts")));
    it.must(Command::RetryStep { quest: Q, step: id("a"), fresh: false });
    it.plays("a", complete());
    it.ward("a", Verdict::Green);
    it.merge("a", Merge::Merged);
    assert_eq!(it.state(), "complete");
}

#[test]
fn a_merge_that_cannot_be_made_is_a_question() {
    let mut it = smithy(isolated(), &[("a", &[])]);
    it.plays("a", complete());
    it.ward("a", Verdict::Green);
    it.merge("a", Merge::Broken { why: "the trunk is locked.".into() });
    assert_eq!(it.status("a"), StepStatus::WaitingForHuman);
    it.answers("retry");
    it.merge("a", Merge::Merged);
    assert_eq!(it.state(), "complete");
}

#[test]
fn files_that_a_ward_had_changed_are_noted_beside_its_verdict() {
    let mut it = smithy(warded(), &[("a", &[])]);
    it.plays("a", complete());
    let (artifact, restored) = ("ward.log".into(), vec!["Cargo.lock".to_owned()]);
    let verdict = Verdict::Green;
    it.must(Command::ReportWard { quest: Q, step: id("a"), number: 1, verdict, artifact, restored });
    assert_eq!(it.status("a"), StepStatus::Complete);
    let notes: Vec<NoteKind> = it.step("a").notes.iter().map(|note| note.what.clone()).collect();
    let told = NoteKind::WardRestored { files: vec!["Cargo.lock".into()] };
    assert!(notes.contains(&NoteKind::WardGreen) && notes.contains(&told), "{notes:?}");
}

fn names(command: Option<&str>) -> Command {
    Command::SetWard { quest: Q, command: command.map(str::to_owned), limit_ms: 5_000 }
}

#[test]
fn what_a_ward_says_that_was_replaced_while_it_ran_does_not_count() {
    let mut it = smithy(hatchery_core::quest::QuestSpec { slots: 1, ..warded() }, &[("a", &[]), ("b", &[])]);
    it.plays("a", complete());
    let old = Command::ReportWard {
        quest: Q,
        step: id("a"),
        number: 1,
        verdict: Verdict::Green,
        artifact: "ward.log".into(),
        restored: Vec::new(),
    };
    it.must(names(Some("make test")));
    let ward = it.world.ward(Q).expect("it has one").clone();
    assert_eq!((ward.command.as_str(), ward.limit_ms), ("make test", 60_000), "the limit stays");
    assert_eq!(it.when(old).unwrap_err().code(), "stale_chore");
    let wanted = it.world.chores().get(&(Q, id("a"))).map(|chore| (chore.number, chore.what));
    assert_eq!(wanted, Some((2, ChoreKind::Ward)), "what was begun goes first");
    it.ward("a", Verdict::Green);
    assert_eq!((it.status("a"), it.running()), (StepStatus::Complete, vec!["b".to_owned()]));
    it.restarted();
}

#[test]
fn what_failed_by_a_ward_is_tried_again_with_the_one_that_took_its_place() {
    let mut it = smithy(warded(), &[("a", &[]), ("b", &["a"])]);
    it.plays("a", complete());
    for _ in 0..3 {
        it.ward("a", red(&["error: crooked"]));
        it.plays("a", complete());
    }
    it.ward("a", red(&["error: crooked"]));
    let events = it.must(names(Some("make test")));
    assert_eq!(
        events,
        [Event::Quest { quest: Q, what: QuestEvent::WardChanged { command: "make test".into(), limit_ms: None } }]
    );
    assert_eq!(it.status("a"), StepStatus::Failed, "a person has to try it again");
    it.restarted();
    it.must(Command::RetryStep { quest: Q, step: id("a"), fresh: false });
    for _ in 0..3 {
        it.ward("a", red(&["error: short"]));
        assert_eq!(it.role("a"), "tinker", "it has all its mendings again");
        it.plays("a", complete());
    }
    it.ward("a", Verdict::Green);
    assert_eq!((it.status("a"), it.status("b")), (StepStatus::Complete, StepStatus::Running));
}

#[test]
fn who_waits_to_be_mended_or_for_an_answer_about_the_ward_goes_on_with_another() {
    let mut it =
        smithy(hatchery_core::quest::QuestSpec { slots: 2, ..warded() }, &[("a", &[]), ("b", &[]), ("c", &[])]);
    it.plays("a", complete());
    it.plays("b", complete());
    it.ward("b", Verdict::Broken { why: "no make.".into() });
    // Nothing is begun in a pause, so the mending has to wait.
    it.must(Command::PauseQuest { quest: Q });
    it.ward("a", red(&["error: crooked"]));
    assert_eq!([it.status("a"), it.status("b")], [StepStatus::Queued, StepStatus::WaitingForHuman]);
    let (asked, question) = (it.question(), it.step("b").question);
    let events = it.must(names(Some("make test")));
    assert!(
        events.iter().any(|event| matches!(event, Event::Question { what: QuestionEvent::Withdrawn { question }, .. } if *question == asked))
    );
    assert_eq!((question, it.questions(), it.step("b").question), (Some(asked), vec![], None));
    it.must(Command::ResumeQuest { quest: Q });
    // Both are at the new ward, and nobody mends what the old one found.
    it.ward("a", Verdict::Green);
    it.ward("b", Verdict::Green);
    assert_eq!([it.status("a"), it.status("b")], [StepStatus::Complete, StepStatus::Complete]);
}

#[test]
fn an_answer_that_names_another_ward_is_one_for_all_who_asked() {
    let mut it = smithy(warded(), &[("a", &[]), ("b", &[])]);
    for step in ["a", "b"] {
        it.plays(step, complete());
        it.ward(step, Verdict::Broken { why: "no make.".into() });
    }
    let question = it.questions()[0];
    it.must(Command::AnswerQuestion { question, answer: "ward: true".into() });
    assert_eq!(it.questions(), []);
    it.ward("a", Verdict::Green);
    it.ward("b", Verdict::Green);
    assert_eq!(it.state(), "complete");
}

#[test]
fn a_ward_that_is_given_later_is_for_what_is_still_open() {
    let mut table = alone(quest_spec());
    table.table.paths.work = ["smith", "ward"].map(str::to_owned).to_vec();
    let mut it = begun(table, &[planned("a", &[]), planned("b", &[])]);
    it.plays("a", complete());
    assert_eq!(it.status("a"), StepStatus::Complete);
    it.must(names(Some("make test")));
    assert_eq!(it.world.ward(Q).map(|ward| ward.limit_ms), Some(5_000));
    it.plays("b", complete());
    it.ward("b", red(&["error: crooked"]));
    assert_eq!(it.role("b"), "tinker");
    assert!(it.told(it.agent("b")).contains("make test"));
    it.restarted();
}

#[test]
fn without_its_ward_a_quest_goes_on_as_if_there_had_been_none() {
    let mut it = smithy(warded(), &[("a", &[]), ("b", &[]), ("c", &[])]);
    for step in ["a", "b", "c"] {
        it.plays(step, complete());
    }
    it.ward("b", red(&["error: crooked"]));
    for _ in 0..2 {
        it.plays("b", complete());
        it.ward("b", red(&["error: crooked"]));
    }
    it.plays("b", complete());
    it.ward("b", red(&["error: crooked"]));
    it.ward("c", red(&["error: crooked"]));
    assert_eq!([it.status("a"), it.status("b")], [StepStatus::Running, StepStatus::Failed]);
    it.must(names(None));
    assert_eq!((it.world.ward(Q), it.status("a"), it.role("c")), (None, StepStatus::Complete, "tinker".to_owned()));
    it.must(Command::RetryStep { quest: Q, step: id("b"), fresh: false });
    assert_eq!(it.status("b"), StepStatus::Complete);
    it.plays("c", complete());
    assert_eq!(it.state(), "complete");
    it.restarted();
}

/// The agent of a step is denied a tool, and says that it is done all the same. The ward finds nothing wrong.
fn works_without_tools(it: &mut Play, step: &str) {
    let agent = it.start(step);
    it.says(agent, vec![Output::Denied { tool: "Write".into(), tool_use: None, reason: "no".into() }]);
    it.signals(agent, step, complete()).expect("it may signal so");
    it.exits(agent, Exit::Code(0));
    it.ward(step, Verdict::Green);
}

#[test]
fn a_step_that_was_denied_tools_and_changed_nothing_is_a_question() {
    let mut it = smithy(isolated(), &[("a", &[])]);
    works_without_tools(&mut it, "a");
    it.merge("a", Merge::Empty);
    assert_eq!((it.status("a"), it.step("a").denied), (StepStatus::WaitingForHuman, 1));
    let text = it.world.question(it.question()).expect("it is open").text.clone();
    assert!(text.contains("were denied 1 uses of tools, and the step changed nothing"), "{text}");
    // Nothing was denied since: that there is nothing to do is believed now.
    it.answers("retry");
    it.plays("a", complete());
    it.ward("a", Verdict::Green);
    it.merge("a", Merge::Empty);
    assert_eq!((it.status("a"), it.step("a").denied, it.step("a").has_work), (StepStatus::Complete, 1, false));
}

#[test]
fn a_step_that_was_denied_tools_and_worked_all_the_same_is_complete() {
    let mut it = smithy(isolated(), &[("a", &[])]);
    works_without_tools(&mut it, "a");
    it.merge("a", Merge::Merged);
    assert_eq!((it.status("a"), it.step("a").has_work), (StepStatus::Complete, true));
}

/// Without a worktree there is no branch to compare.
#[test]
fn a_step_without_a_worktree_that_was_denied_tools_is_a_question() {
    let mut it = smithy(warded(), &[("a", &[])]);
    works_without_tools(&mut it, "a");
    assert_eq!((it.status("a"), it.step("a").denied), (StepStatus::WaitingForHuman, 1));
    let text = it.world.question(it.question()).expect("it is open").text.clone();
    assert!(text.contains("were denied 1 uses of tools, and without a worktree it cannot be seen whether"), "{text}");
    // Nothing was denied since, so what its agent says is believed now.
    it.answers("retry");
    it.plays("a", complete());
    it.ward("a", Verdict::Green);
    assert_eq!(it.status("a"), StepStatus::Complete);
}

#[test]
fn a_step_that_changed_nothing_and_was_denied_nothing_is_complete() {
    let mut it = smithy(isolated(), &[("a", &[])]);
    it.plays("a", complete());
    it.ward("a", Verdict::Green);
    it.merge("a", Merge::Empty);
    assert_eq!((it.status("a"), it.step("a").has_work), (StepStatus::Complete, false));
}
