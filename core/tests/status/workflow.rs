//! The order of steps, and what a person may decide about it.

use super::{NOW, at, document};
use hatchery_core::status::StatusDocument;
use hatchery_core::workflow::{
    MissingStepChoice, StepStart, end_command, finish_step, missing, misspelt, start_command, start_step,
};

/// What a step lacks, as `a|b, c`.
fn lacks(step: &str, command: &str, completed: &[&str]) -> String {
    let completed: Vec<String> = completed.iter().map(|&step| step.to_owned()).collect();
    let missing = missing(step, Some(command), &completed);
    missing.map_or_else(String::new, |it| it.needs.iter().map(|group| group.join("|")).collect::<Vec<_>>().join(", "))
}

#[test]
fn a_misspelt_step_is_told_from_one_of_your_own() {
    assert_eq!(misspelt("interviewr").map(|(meant, _)| meant), Some("interviewer"));
    assert_eq!(misspelt("executor-bulid").map(|(meant, _)| meant), Some("executor-build"));
    assert!(misspelt("spec-writter").is_some_and(|(_, known)| known.contains(&"state-owner-scan")));
    for (variant, step) in [
        ("Spec Writer", "spec-writer"),
        ("spec_writer", "spec-writer"),
        ("SPECWRITER", "spec-writer"),
        ("State Owner", "state-owner-scan"),
        ("state-owner", "state-owner-scan"),
        ("executor", "executor-plan"),
    ] {
        assert_eq!(misspelt(variant).map(|(meant, _)| meant), Some(step), "{variant}");
    }
    for step in ["interviewer", "observer", "a step of your own", "deploy", ""] {
        assert_eq!(misspelt(step), None, "{step}");
    }
}

#[test]
fn the_table_says_what_each_step_needs() {
    let scan = "state-owner-scan";
    for command in ["init", "evolve", "ref", "review", "execute"] {
        assert_eq!(lacks(scan, command, &[]), "");
        assert_eq!(lacks("observer", command, &[]), "");
        assert_eq!(lacks("interviewer", command, &[]), scan);
        assert_eq!(lacks("interviewer", command, &[scan]), "");
        assert_eq!(lacks("scenario-crafter", command, &[scan]), "interviewer");
        assert_eq!(lacks("executor-plan", command, &[]), scan);
        assert_eq!(lacks("executor-build", command, &[]), scan);
        let parallel = command == "ref";
        for step in ["researcher", "visual-translator"] {
            assert_eq!(lacks(step, command, &[]), if parallel { "" } else { scan });
        }
    }
    for command in ["init", "evolve"] {
        assert_eq!(lacks("spec-writer", command, &[scan]), "interviewer, scenario-crafter");
        assert_eq!(lacks("spec-writer", command, &["interviewer", "scenario-crafter"]), "");
    }
    assert_eq!(lacks("spec-writer", "ref", &[]), "state-owner-scan, researcher|visual-translator");
    assert_eq!(lacks("spec-writer", "ref", &[scan, "visual-translator"]), "");
    assert_eq!(lacks("spec-writer", "review", &[]), scan);
    assert_eq!(lacks("a step of your own", "evolve", &[]), "");
}

#[test]
fn a_missing_step_is_a_numbered_choice() {
    let mut document = StatusDocument::default();
    start_command(&mut document, "evolve");
    let missing = start_step(&mut document, "interviewer", None, NOW).unwrap_err();
    assert_eq!(
        missing.to_string(),
        "Workflow error: State Owner must run before Interviewer can proceed.\n\
         (1) Run State Owner scan now (recommended)\n\
         (2) Skip (not recommended — may produce inaccurate results)\n\
         (3) Abort this command"
    );
    assert_eq!(at(&document, "workflowStep"), "null");
    let missing = start_step(&mut document, "spec-writer", None, NOW).unwrap_err().to_string();
    assert!(
        missing.starts_with("Workflow error: Interviewer and Scenario Crafter must run before Spec Writer"),
        "{missing}"
    );
    assert_eq!(
        ["1", " RUN ", "2", "skip", "3", "abort", "4"].map(MissingStepChoice::parse).map(|it| it.is_some()),
        [true, true, true, true, true, true, false]
    );
}

#[test]
fn the_person_decides() {
    let mut document = document(r#"{"currentCommand":"evolve","buildRun":{"runId":"r"}}"#);
    // Run: what comes first begins, and if that lacks something itself, then that.
    assert_eq!(
        start_step(&mut document, "spec-writer", Some(MissingStepChoice::Run), NOW),
        Ok(StepStart::Instead("state-owner-scan".into()))
    );
    assert_eq!(at(&document, "workflowStep"), "\"state-owner-scan\"");
    // Skip: it begins, and the skip is recorded.
    assert_eq!(start_step(&mut document, "interviewer", Some(MissingStepChoice::Skip), NOW), Ok(StepStart::Begun));
    assert_eq!(at(&document, "workflowStep"), "\"interviewer\"");
    assert_eq!(at(&document, "skippedSteps[0].step"), "\"interviewer\"");
    assert_eq!(at(&document, "skippedSteps[0].missing"), r#"[["state-owner-scan"]]"#);
    // Abort: the command ends.
    assert_eq!(start_step(&mut document, "executor-plan", Some(MissingStepChoice::Abort), NOW), Ok(StepStart::Aborted));
    assert_eq!(at(&document, "currentCommand"), "null");
    assert_eq!(at(&document, "buildRun.runId"), "\"r\"");
}

#[test]
fn steps_are_completed_once_and_cleared_by_the_next_command() {
    let mut document = document(r#"{"buildRun":{"runId":"r"},"mine":1}"#);
    start_command(&mut document, "evolve");
    start_step(&mut document, "state-owner-scan", None, NOW).unwrap();
    finish_step(&mut document, "state-owner-scan", Some("all is well"), None, NOW).unwrap();
    finish_step(&mut document, "state-owner-scan", None, None, NOW).unwrap();
    assert_eq!(document.names("completedSteps"), ["state-owner-scan"]);
    assert_eq!(at(&document, "workflowStep"), "null");
    assert_eq!(at(&document, "agentOutputs.state-owner-scan.summary"), "\"all is well\"");
    start_step(&mut document, "interviewer", None, NOW).unwrap();
    // Another step ends while this one runs.
    finish_step(&mut document, "researcher", None, None, NOW).unwrap();
    assert_eq!(at(&document, "workflowStep"), "\"interviewer\"");
    start_command(&mut document, "execute");
    assert_eq!(document.names("completedSteps"), [""; 0]);
    assert_eq!(at(&document, "agentOutputs"), "null");
    assert_eq!(
        (at(&document, "buildRun.runId"), at(&document, "mine")),
        ("\"r\"".into(), "1".into()),
        "nothing else is touched"
    );
    end_command(&mut document);
    assert_eq!(document.words("currentCommand"), None);
}
