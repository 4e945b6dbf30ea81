//! A program that begins a session with an empty state file, while no daemon runs. The build run survives it.

use crate::support::daemon::{Grounds, wait_until};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

fn file(grounds: &Grounds) -> PathBuf {
    grounds.path().join(".fctry/state.json")
}

fn state(grounds: &Grounds) -> Value {
    serde_json::from_slice(&fs::read(file(grounds)).unwrap()).unwrap()
}

/// Begins a run of two chunks, of which the first is built. Gives its id.
fn begun(grounds: &Grounds) -> String {
    let run = grounds.run(&["build", "plan", r#"{"chunks":[{"name":"one"},{"name":"two"}]}"#]).good();
    grounds.run(&["build", "chunk", "1", "start"]).good();
    grounds.run(&["build", "chunk", "1", "done"]).good();
    run.trim().to_owned()
}

fn has_run(grounds: &Grounds, run: &str) {
    let shown = state(grounds);
    assert_eq!((&shown["buildRun"]["runId"], &shown["chunkProgress"]["current"]), (&json!(run), &json!(1)), "{shown}");
}

#[test]
fn no_session_start_destroys_a_run_without_a_daemon() {
    let grounds = Grounds::new();
    let run = begun(&grounds);
    for session in ["{}", r#"{"currentCommand":"evolve"}"#] {
        fs::write(file(&grounds), session).unwrap();
        assert_eq!(grounds.run(&["state", "get", "buildRun.runId"]).good(), format!("\"{run}\"\n"), "{session}");
        assert!(grounds.run(&["statusline"]).good().contains("1/2"), "the status line shows it");
        assert_eq!(fs::read_to_string(file(&grounds)).unwrap(), session, "reading changes nothing");
        let resume = grounds.run(&["build", "resume", "--json", "--choose", "cancel"]).good();
        assert_eq!(serde_json::from_str::<Value>(&resume).unwrap()["completed"], json!([1]));
        grounds.run(&["state", "set", "note", "1"]).good();
        has_run(&grounds, &run);
    }
    fs::remove_file(file(&grounds)).unwrap();
    grounds.run(&["state", "set", "note", "2"]).good();
    has_run(&grounds, &run);
    fs::write(file(&grounds), "{}").unwrap();
    let refused = grounds.run(&["build", "plan", r#"{"chunks":[{"name":"other"}]}"#]);
    assert!(refused.stderr.contains(&run), "{refused:?}");
    // The next daemon has it, too.
    let daemon = grounds.up();
    wait_until("the run is in the log", || daemon.door.get("/api/build-status").json()["buildRun"]["runId"] == run);
    wait_until("the run is in the file", || state(&grounds)["buildRun"]["runId"] == run);
    grounds.run(&["down"]).good();
    fs::write(file(&grounds), "{}").unwrap();
    grounds.run(&["state", "set", "note", "3"]).good();
    has_run(&grounds, &run);
}

#[test]
fn a_run_that_another_program_began_survives_it_as_well() {
    let grounds = Grounds::new();
    fs::create_dir_all(file(&grounds).parent().unwrap()).unwrap();
    let theirs = json!({ "buildRun": { "runId": "run-7", "status": "running", "theirs": [1], "chunks": [{ "id": 1, "status": "completed" }] } });
    fs::write(file(&grounds), theirs.to_string()).unwrap();
    grounds.run(&["state", "set", "note", "1"]).good();
    fs::write(file(&grounds), "{}").unwrap();
    grounds.run(&["state", "set", "note", "2"]).good();
    assert_eq!(state(&grounds)["buildRun"], theirs["buildRun"]);
}

#[test]
fn a_run_that_was_cleared_does_not_come_back() {
    let grounds = Grounds::new();
    begun(&grounds);
    let daemon = grounds.up();
    wait_until("the run is in the log", || !daemon.door.get("/api/build-status").json()["buildRun"].is_null());
    grounds.run(&["down"]).good();
    type Clear = fn(&Grounds);
    let ways: [Clear; 3] = [
        |grounds| fs::write(file(grounds), r#"{"buildRun":null,"chunkProgress":null}"#).unwrap(),
        |grounds| drop(grounds.run(&["build", "clear"]).good()),
        |grounds| drop(grounds.run(&["state", "clear", "buildRun"]).good()),
    ];
    for clear in ways {
        clear(&grounds);
        grounds.run(&["state", "set", "note", "1"]).good();
        fs::write(file(&grounds), "{}").unwrap();
        grounds.run(&["state", "set", "note", "2"]).good();
        assert_eq!(grounds.run(&["state", "get", "buildRun"]).good(), "null\n");
        begun(&grounds);
    }
}
