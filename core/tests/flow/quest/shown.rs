//! A quest in the status document: how its build run stands, and what it asks.

use super::phases::planned_bridge;
use super::words::*;
use hatchery_core::Command;
use hatchery_core::quest::{QuestSpec, StepPlan, StepStatus, Verdict};
use hatchery_core::status::quest_view;
use serde_json::{Value, json};

fn run(it: &Play) -> Value {
    let shown = quest_view::shown(&it.world);
    let run = shown.field("buildRun").expect("the quest is shown");
    serde_json::from_str(run.text()).expect("JSON")
}

fn status(it: &Play) -> String {
    run(it)["status"].as_str().expect("a status").to_owned()
}

/// All mendings of a step are used up.
fn fail(it: &mut Play, step: &str) {
    it.plays(step, complete());
    for _ in 0..3 {
        it.ward(step, red(&["error: crooked"]));
        it.plays(step, complete());
    }
    it.ward(step, red(&["error: crooked"]));
    assert_eq!(it.status(step), StepStatus::Failed);
}

#[test]
fn a_run_is_partial_when_nothing_is_left_but_failed_steps_and_what_waits_for_them() {
    let mut it = smithy(warded(), &[("a", &[]), ("b", &["a"]), ("c", &[])]);
    assert_eq!(status(&it), "running");
    fail(&mut it, "a");
    assert_eq!(status(&it), "running", "another step is worked on");
    it.plays("c", complete());
    assert_eq!(status(&it), "running", "its ward runs");
    it.ward("c", Verdict::Green);
    assert_eq!(status(&it), "partial");
    let chunks = run(&it)["chunks"].clone();
    let statuses: Vec<&Value> = chunks.as_array().expect("chunks").iter().map(|chunk| &chunk["status"]).collect();
    assert_eq!(statuses, ["failed", "planned", "completed"]);
    it.must(Command::PauseQuest { quest: Q });
    assert_eq!(status(&it), "paused");
    it.must(Command::ResumeQuest { quest: Q });
    assert_eq!(status(&it), "partial");
    it.must(Command::RetryStep { quest: Q, step: id("a"), fresh: false });
    assert_eq!(status(&it), "running");
}

#[test]
fn a_question_pauses_the_run_and_says_what_it_blocks() {
    let about = StepPlan { description: "What #core-flow and #rules say.".into(), ..planned("b", &["a"]) };
    let steps = [planned("a", &[]), about, planned("c", &["b"]), planned("d", &["a"]), planned("e", &["c"])];
    let mut it = begun(alone(quest_spec()), &steps);
    it.plays("a", complete());
    it.plays("b", asks("How wide?\nIn metres."));
    let asked = run(&it);
    assert_eq!(asked["status"], "paused");
    let question = &asked["pendingQuestion"];
    assert_eq!(
        (&question["blockedChunks"], &question["sectionContext"]),
        (&json!([2, 3, 5]), &json!("#core-flow")),
        "the chunk that asks and those that come after it, and not the other one"
    );
    assert!(question["text"].as_str().is_some_and(|text| text.contains("How wide?") && !text.contains('\n')));
    assert!(question["timestamp"].as_str().is_some_and(|at| at.ends_with('Z')), "{question}");
    assert_eq!(asked["chunks"][3]["status"], "active", "what needs no answer goes on");
    it.answers("three metres");
    assert_eq!((status(&it).as_str(), &run(&it)["pendingQuestion"]), ("running", &Value::Null));
}

#[test]
fn a_question_about_the_plan_blocks_everything() {
    let it = planned_bridge(QuestSpec { approve_plan: true, ..quest_spec() });
    let question = run(&it)["pendingQuestion"].clone();
    assert_eq!((&question["blockedChunks"], question.get("sectionContext")), (&json!([1, 2]), None), "{question}");
}

/// Viewers take two events of one kind and one time for the same event.
#[test]
fn steps_that_begin_together_are_told_at_different_times() {
    let mut it = smithy(quest_spec(), &[("a", &[]), ("b", &[]), ("c", &[])]);
    ["a", "b", "c"].iter().for_each(|step| drop(it.plays(step, complete())));
    let shown = quest_view::shown(&it.world);
    let events: Vec<Value> = serde_json::from_str(shown.field("buildEvents").expect("events").text()).expect("JSON");
    let told: Vec<String> = events.iter().map(|it| format!("{} {}", it["timestamp"], it["kind"])).collect();
    let times: Vec<&Value> = events.iter().map(|it| &it["timestamp"]).collect();
    assert!(times.is_sorted_by_key(|at| at.as_str()), "{told:#?}");
    assert_eq!(told.iter().filter(|it| it.contains("chunk-started")).count(), 3);
    let unique: std::collections::BTreeSet<&String> = told.iter().collect();
    assert_eq!(unique.len(), told.len(), "{told:#?}");
}
