//! Other programs that write the status files in their own way, while a daemon runs.

use crate::support::daemon::{Grounds, PATIENCE, wait_until};
use crate::support::quest::{SHORT, done, step};
use crate::support::workshop::Workshop;
use hatchery::state_file::StatusFolder;
use serde_json::{Value, json};
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

fn state(folder: &StatusFolder) -> Value {
    serde_json::from_str(&fs::read_to_string(folder.state_file()).unwrap()).unwrap()
}

fn write(folder: &StatusFolder, state: &Value) {
    fs::create_dir_all(folder.path()).unwrap();
    fs::write(folder.state_file(), serde_json::to_string_pretty(state).unwrap()).unwrap();
}

#[test]
fn what_another_program_writes_becomes_events_field_by_field() {
    let grounds = Grounds::new();
    let folder = StatusFolder::of(grounds.path());
    write(&folder, &json!({ "currentCommand": "evolve", "deep": { "theirs": [1], "n": 1 } }));
    let daemon = grounds.up();
    assert_eq!(daemon.door.get("/api/state?path=deep.theirs").json()["value"], json!([1]), "taken in at the start");
    let log = |kind: &str| daemon.door.log().into_iter().filter(|line| line.contains(kind)).collect::<Vec<_>>();
    let before = log("status_edited").len();
    let mut changed = state(&folder);
    changed["deep"]["n"] = json!(2);
    write(&folder, &changed);
    wait_until("the change is in the log", || log("status_edited").len() > before);
    let events = log("status_edited");
    assert_eq!(events.len(), before + 1);
    let event: Value = serde_json::from_str(events.last().unwrap()).unwrap();
    assert_eq!((&event["from"], &event["edits"]), (&json!("file"), &json!([{ "path": "deep.n", "value": "2" }])));
    // What Hatchery writes itself is not taken in.
    grounds.run(&["state", "set", "nextStep", "\"rest\""]).good();
    grounds.run(&["state", "set", "nextStep", "\"go on\""]).good();
    let from_file = |line: &&String| line.contains(r#""from":"file""#);
    assert_eq!(log("status_edited").iter().filter(from_file).count(), before + 1);
}

#[test]
fn a_session_start_that_writes_an_empty_file_destroys_no_run() {
    let grounds = Grounds::new();
    let _daemon = grounds.up();
    let folder = StatusFolder::of(grounds.path());
    grounds.run(&["state", "command", "start", "execute"]).good();
    grounds.run(&["build", "plan", r#"{"chunks":[{"name":"one"}]}"#]).good();
    let run = state(&folder)["buildRun"]["runId"].clone();
    write(&folder, &json!({}));
    wait_until("the run is back", || state(&folder)["buildRun"]["runId"] == run);
    assert_eq!(state(&folder)["currentCommand"], Value::Null, "the rest is theirs to clear");
    // An explicit null is the protocol's way to clear a run.
    let mut cleared = state(&folder);
    cleared["buildRun"] = Value::Null;
    write(&folder, &cleared);
    wait_until("the run is cleared", || grounds.run(&["build", "show"]).code == Some(1));
    assert_eq!(state(&folder)["buildRun"], Value::Null);
}

#[test]
fn hatcherys_fields_survive_a_program_that_writes_the_whole_file_in_a_loop() {
    let shop = Workshop::with(SHORT, Vec::new());
    let folder = StatusFolder::of(shop.grounds.path());
    fs::create_dir_all(folder.path()).unwrap();
    let gate = shop.gate();
    let book =
        shop.playbook().play("a.codeweaver", &[gate.pass(), done("a is done")]).play("b.codeweaver", &[done("b")]);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let foreign = scope.spawn(|| {
            let mut rounds = 0_u64;
            let mut old = json!({});
            while !over.load(Ordering::Relaxed) {
                // Half of the time it works on what it read one round ago, and so erases what came in between.
                let text = fs::read_to_string(folder.state_file()).unwrap_or_default();
                let read: Value = serde_json::from_str(&text).unwrap_or_else(|_| json!({}));
                let mut mine = if rounds.is_multiple_of(2) { read.clone() } else { old.clone() };
                old = read;
                mine["theirs"] = json!(rounds);
                if rounds.is_multiple_of(5) {
                    mine.as_object_mut().unwrap().retain(|name, _| name == "theirs");
                }
                write(&folder, &mine);
                rounds += 1;
                std::thread::yield_now();
            }
            rounds
        });
        let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[]), step("b", &["a"])] }));
        shop.wait("the first step begins", |event| event["type"] == "step_begun" && event["step"] == "a");
        let deadline = Instant::now() + PATIENCE;
        let mut seen = 0;
        while seen < 20 {
            assert!(Instant::now() < deadline, "the run is not shown: {}", shop.grounds.said());
            let read = fs::read_to_string(folder.state_file()).unwrap_or_default();
            seen += u32::from(read.contains(&format!("\"questId\": \"{quest}\"")));
            std::thread::yield_now();
        }
        gate.open();
        shop.wait("the end", |event| event["type"] == "quest_completed");
        over.store(true, Ordering::Relaxed);
        assert!(foreign.join().unwrap() > 20);
    });
    // When the other program is quiet, the file is true: the quest is over and their field is theirs.
    let settled = || {
        let state = state(&folder);
        let events = state["buildEvents"].as_array().cloned().unwrap_or_default();
        let completed = events.iter().filter(|event| event["kind"] == "chunk-completed").count();
        let is_over =
            ["buildRun", "chunkProgress", "workflowStep", "agentOutputs"].iter().all(|field| state[field].is_null());
        is_over && state["theirs"].is_u64() && completed == 2
    };
    wait_until("the file is true", settled);
}
