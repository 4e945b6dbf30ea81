//! A quest in the status document, as the status line and a viewer of builds see it.

use crate::support::daemon::wait_until;
use crate::support::quest::{SHORT, WARDED, done, signal, step};
use crate::support::workshop::Workshop;
use hatchery::state_file::StatusFolder;
use serde_json::{Value, json};
use std::fs;

fn take_part(shop: &Workshop) -> StatusFolder {
    let folder = StatusFolder::of(shop.grounds.path());
    fs::create_dir_all(folder.path()).unwrap();
    folder
}

fn state(folder: &StatusFolder) -> Value {
    let text = fs::read_to_string(folder.state_file()).unwrap_or_else(|_| "{}".into());
    serde_json::from_str(&text).unwrap()
}

fn statuses(state: &Value) -> Vec<&str> {
    let chunks = state["buildRun"]["chunks"].as_array().map(Vec::as_slice).unwrap_or_default();
    chunks.iter().map(|chunk| chunk["status"].as_str().unwrap()).collect()
}

#[test]
fn a_running_quest_is_a_build_run() {
    let shop = Workshop::with(SHORT, Vec::new());
    let folder = take_part(&shop);
    let gate = shop.gate();
    let book = shop
        .playbook()
        .play("a.codeweaver", &[done("laid the stones")])
        .play("b.codeweaver", &[gate.pass(), done("b")]);
    let mut second = step("b", &["a"]);
    second["description"] = json!("Builds what #core-flow says.");
    (second["files_to_create"], second["files_to_modify"]) = (json!(["src/b.rs"]), json!(["a.rs"]));
    shop.grounds.run(&["state", "set", "activeSectionNumber", "\"9.9\""]).good();
    fs::write(folder.path().join("spec.md"), "# Shop\n### 2.2 Core flow {#core-flow}\nIt flows.\n").unwrap();
    let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[]), second] }));
    wait_until("the second chunk is active", || statuses(&state(&folder)) == ["completed", "active"]);
    let shown = state(&folder);
    let run = &shown["buildRun"];
    assert_eq!(
        (&run["status"], &run["questId"], &run["convergencePhase"]),
        (&json!("running"), &json!(quest), &json!("work"))
    );
    assert!(run["runId"].as_str().unwrap().starts_with("run-"));
    assert_eq!(run["plan"]["totalChunks"], 2);
    assert_eq!((&run["chunks"][1]["id"], &run["chunks"][1]["dependsOn"]), (&json!(2), &json!([1])));
    assert_eq!(run["chunks"][1]["sections"], json!(["#core-flow"]));
    assert_eq!(run["lastCheckpoint"], run["chunks"][0]["completedAt"]);
    assert_eq!((&shown["chunkProgress"]["current"], &shown["chunkProgress"]["total"]), (&json!(2), &json!(2)));
    assert_eq!((&shown["workflowStep"], &shown["activeSection"]), (&json!("executor-build"), &json!("#core-flow")));
    let next = format!(
        "Nothing waits for you: 1 of 2 steps are complete, then all of it is reviewed. Follow it: hatchery quest watch {quest}"
    );
    assert_eq!(shown["nextStep"], next);
    assert!(shop.grounds.run(&["statusline"]).good().contains("Nothing waits for you: 1 of 2 steps"));
    assert_eq!(shown["agentOutputs"]["codeweaver"]["summary"], "laid the stones");
    assert!(shown["lastUpdated"].is_string());
    let status = shop.door().get("/api/build-status").json();
    assert_eq!((&status["buildRun"], &status["chunkProgress"]), (run, &shown["chunkProgress"]));
    // It is the quest's to change, not a command's.
    let refused = shop.grounds.run(&["state", "set", "buildRun.status", "\"completed\""]);
    assert!(refused.code == Some(1) && refused.stderr.contains("shows quest"), "{refused:?}");
    for command in [["build", "chunk", "1", "done"].as_slice(), &["build", "clear"], &["build", "pause"]] {
        let refused = shop.grounds.run(command);
        assert!(refused.code == Some(1) && refused.stderr.contains("shows quest"), "{command:?}: {refused:?}");
    }
    assert_eq!(shown["activeSectionNumber"], "2.2", "as the spec says, and not that of another section");
    assert_eq!(status["activeSectionNumber"], "2.2");
    let chunk = &shown["chunkProgress"]["chunks"][0];
    assert_eq!((&chunk["name"], &chunk["completedAt"]), (&json!("Do a"), &run["chunks"][0]["completedAt"]));
    assert_eq!((&run["chunks"][1]["creates"], &run["chunks"][1]["modifies"]), (&json!(["src/b.rs"]), &json!(["a.rs"])));
    gate.open();
    wait_until("the run is over", || state(&folder)["buildRun"].is_null());
    let shown = state(&folder);
    assert!(["chunkProgress", "workflowStep", "activeSection"].iter().all(|field| shown[field].is_null()), "{shown}");
}

#[test]
fn the_status_line_shows_a_quest_and_what_it_needs() {
    let shop = Workshop::with(SHORT, Vec::new());
    let folder = take_part(&shop);
    let ask = signal("needs-user-input", json!({ "question": "How wide?" }));
    let book = shop.playbook().play("a.codeweaver", &[ask, json!("turn"), done("wide")]);
    let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[])] }));
    wait_until("the question is shown", || state(&folder)["buildRun"]["pendingQuestion"]["text"] == "How wide?");
    assert_eq!(state(&folder)["nextStep"], "Answer a question: hatchery ask list");
    assert_eq!(state(&folder)["experienceQuestion"], "How wide?");
    let line = shop.grounds.run(&["statusline"]).good();
    assert!(line.contains("0+1/1") && line.contains("Answer a question"), "{line}");
    shop.grounds.run(&["quest", "answer", &quest, "three lanes"]).good();
    wait_until("the run is over", || state(&folder)["buildRun"].is_null());
    let shown = state(&folder);
    assert_eq!((&shown["nextStep"], &shown["experienceQuestion"]), (&Value::Null, &Value::Null));
}

fn events(folder: &StatusFolder) -> Vec<Value> {
    state(folder)["buildEvents"].as_array().cloned().unwrap_or_default()
}

fn kinds(folder: &StatusFolder) -> Vec<String> {
    events(folder).iter().map(|event| event["kind"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn wards_are_verifications() {
    let shop = Workshop::with(WARDED, Vec::new());
    let folder = take_part(&shop);
    let book = shop.playbook().play("a.codeweaver", &[done("a")]);
    shop.new_quest(&book, json!({ "steps": [step("a", &[])], "ward": "true" }));
    let told = ["context-boundary", "chunk-started", "chunk-verified", "chunk-completed"];
    wait_until("all events are there", || kinds(&folder) == told);
    let verified = &events(&folder)[2];
    // Readers find the chunk of an event by its name.
    assert_eq!((&verified["chunk"], &verified["mode"]), (&json!("Do a"), &json!("full")));
    assert_eq!(verified["checks"], json!([{ "name": "ward", "result": "pass" }]));
}

#[test]
fn what_was_told_of_a_quest_stays_when_it_goes_on_and_when_the_next_begins() {
    let shop = Workshop::with(WARDED, Vec::new());
    let folder = take_part(&shop);
    let mark = shop.grounds.path().join("mended");
    let ward = format!("test -e '{0}' || {{ touch '{0}'; exit 1; }}", mark.display());
    let book = shop.playbook().play("a.codeweaver", &[done("a")]).play("a.spiritmender", &[done("mended")]);
    let first = shop.new_quest(&book, json!({ "steps": [step("a", &[])], "ward": ward }));
    shop.complete(&first);
    let told = [
        ["context-boundary", "chunk-started", "verification-failed"].as_slice(),
        &["context-boundary", "chunk-retrying", "chunk-verified", "chunk-completed"],
    ]
    .concat();
    wait_until("all events are there", || kinds(&folder) == told);
    assert_eq!((&events(&folder)[4]["attempt"], &events(&folder)[4]["chunk"]), (&json!(2), &json!("Do a")));
    let before = events(&folder);
    let gate = shop.gate();
    let book = shop.playbook().play("b.codeweaver", &[gate.pass(), done("b")]);
    let second = shop.new_quest(&book, json!({ "steps": [step("b", &[])], "ward": "true" }));
    wait_until("the second quest is shown", || kinds(&folder).len() == told.len() + 2);
    assert_eq!(events(&folder)[..told.len()], before, "those of the first are still there");
    assert_eq!(shop.door().get("/api/build-status").json()["contextHealth"]["isolationMode"], "fresh session");
    gate.open();
    shop.complete(&second);
    wait_until("the end is told", || kinds(&folder).last().is_some_and(|kind| kind == "chunk-completed"));
    let ids: std::collections::BTreeSet<String> =
        events(&folder).iter().map(|event| event["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids.len(), events(&folder).len(), "each is there once");
}

#[test]
fn a_chunk_of_a_quest_keeps_the_version_of_the_spec_that_it_was_built_from() {
    let mut shop = Workshop::with(SHORT, Vec::new());
    let folder = take_part(&shop);
    let register = |version: &str| {
        let config = json!({ "versions": { "spec": { "current": version } } });
        fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
    };
    register("1.2");
    wait_until("the version is known", || state(&folder)["specVersion"] == "1.2");
    let (first, second) = (shop.gate(), shop.gate());
    let book = shop
        .playbook()
        .play("a.codeweaver", &[done("a")])
        .play("b.codeweaver", &[first.pass(), done("b")])
        .play("c.codeweaver", &[second.pass(), done("c")]);
    shop.new_quest(&book, json!({ "steps": [step("a", &[]), step("b", &["a"]), step("c", &["b"])] }));
    wait_until("the first chunk is built", || statuses(&state(&folder)) == ["completed", "active", "planned"]);
    register("1.3");
    wait_until("the new version is known", || state(&folder)["specVersion"] == "1.3");
    first.open();
    wait_until("the second chunk is built", || statuses(&state(&folder)) == ["completed", "completed", "active"]);
    let versions = |shown: &Value| {
        let run = &shown["buildRun"];
        let built = |chunk: usize| run["chunks"][chunk]["specVersionAtBuild"].clone();
        [run["plan"]["specVersion"].clone(), built(0), built(1)]
    };
    assert_eq!(versions(&state(&folder)), [json!("1.2"), json!("1.2"), json!("1.3")]);
    let resume = shop.grounds.run(&["build", "resume", "--json", "--choose", "cancel"]).good();
    assert_eq!(serde_json::from_str::<Value>(&resume).unwrap()["outdated"], json!([1]), "{resume}");
    shop.kill_daemon();
    shop.restart();
    let status = shop.door().get("/api/build-status").json();
    assert_eq!(versions(&status), [json!("1.2"), json!("1.2"), json!("1.3")], "the log keeps them");
    second.open();
    wait_until("the quest is over", || state(&folder)["buildRun"].is_null());
}

#[test]
fn a_project_that_takes_no_part_gets_no_files() {
    let shop = Workshop::with(SHORT, Vec::new());
    let book = shop.playbook().play("a.codeweaver", &[done("a")]);
    shop.new_quest(&book, json!({ "steps": [step("a", &[])] }));
    shop.wait("the end", |event| event["type"] == "quest_completed");
    assert!(!StatusFolder::of(shop.grounds.path()).path().exists());
    // What the quest did can be asked for all the same.
    let events = shop.door().get("/api/build-status").json()["buildEvents"].clone();
    assert_eq!(events.as_array().unwrap().last().unwrap()["kind"], "chunk-completed");
}
