//! `hatchery state`, `inbox` and `build`, without a daemon.

use crate::support::daemon::{Grounds, Scene, own_mounts_or_say_skipped};
use crate::support::tmux::Terminal;
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::process::Stdio;

fn state(grounds: &Grounds) -> Value {
    serde_json::from_slice(&fs::read(grounds.path().join(".fctry/state.json")).unwrap()).unwrap()
}

fn write_state(grounds: &Grounds, text: &str) {
    fs::create_dir_all(grounds.path().join(".fctry")).unwrap();
    fs::write(grounds.path().join(".fctry/state.json"), text).unwrap();
}

fn fed(grounds: &Grounds, arguments: &[&str], input: &str) -> Option<i32> {
    let mut child = grounds.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait().unwrap().code()
}

/// Files beside the state whose names begin like this.
fn beside(grounds: &Grounds, start: &str) -> Vec<String> {
    let entries = fs::read_dir(grounds.path().join(".fctry")).unwrap().flatten();
    entries.map(|entry| entry.file_name().into_string().unwrap()).filter(|name| name.starts_with(start)).collect()
}

#[test]
fn each_edit_changes_its_field_and_keeps_the_rest() {
    let grounds = Grounds::new();
    write_state(&grounds, r#"{"theirs":{"deep":[1e400,{"x":null}]},"n":1}"#);
    grounds.run(&["state", "set", "currentCommand", "\"evolve\""]).good();
    grounds.run(&["state", "merge", r#"{"scenarioScore":{"satisfied":5}}"#]).good();
    grounds.run(&["state", "merge", r#"{"scenarioScore":{"total":8}}"#]).good();
    assert_eq!(grounds.run(&["state", "incr", "n", "41"]).good(), "42\n");
    assert_eq!(grounds.run(&["state", "incr", "n", "-2"]).good(), "40\n");
    grounds.run(&["state", "append", "completedSteps", "\"a\""]).good();
    grounds.run(&["state", "clear", "currentCommand"]).good();
    let text = fs::read_to_string(grounds.path().join(".fctry/state.json")).unwrap();
    assert!(text.contains("1e400"), "a number that nobody understands stays as it is: {text}");
    assert_eq!(grounds.run(&["state", "get", "scenarioScore"]).good(), "{\n  \"satisfied\": 5,\n  \"total\": 8\n}\n");
    assert_eq!(grounds.run(&["state", "get", "currentCommand"]).good(), "null\n");
    assert_eq!(grounds.run(&["state", "get", "completedSteps[0]"]).good(), "\"a\"\n");
    assert_eq!(beside(&grounds, "state.json"), ["state.json"]);
    assert!(!grounds.project().is_served(), "no daemon was started");
}

#[test]
fn refusals_say_what_to_do_and_change_nothing() {
    let grounds = Grounds::new();
    write_state(&grounds, r#"{"a":"x","lastUpdated":"then"}"#);
    for (arguments, code, words) in [
        (&["state", "set", "a.b", "1"][..], 1, "`a` is a text"),
        (&["state", "set", "a", "evolve"], 2, "not JSON"),
        (&["state", "set", "a..b", "1"], 2, "the path"),
        (&["state", "set", "b[99999999]", "1"], 1, "`b` has 0 items, and there is no item 99999999"),
        (&["state", "incr", "a"], 1, "cannot be counted up"),
        (&["state", "append", "a", "1"], 1, "nothing can be appended"),
        (&["state", "merge", "[]"], 2, "only an object"),
        (&["state", "event", "chunk-verified", r#"{"mode":"x"}"#], 2, "`mode`"),
        (&["inbox", "add", "x", "--type", "idea"], 2, "no type of idea"),
        (&["inbox", "dismiss", "nothing"], 1, "no item `nothing`"),
        (&["build", "chunk", "1", "start"], 1, "no build run"),
    ] {
        let ran = grounds.run(arguments);
        assert_eq!(ran.code, Some(code), "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains(words) && ran.stderr.contains("hint:"), "{arguments:?}: {}", ran.stderr);
    }
    assert_eq!(state(&grounds), json!({ "a": "x", "lastUpdated": "then" }));
}

#[test]
fn a_file_that_does_not_parse_is_set_aside_and_never_overwritten() {
    let grounds = Grounds::new();
    write_state(&grounds, "{\"buildRun\": {\"runId\": \"precio");
    let read = grounds.run(&["state", "get"]);
    assert_eq!(read.code, Some(1), "reading changes nothing: {read:?}");
    assert_eq!(beside(&grounds, "state.json.corrupt-"), [""; 0]);
    let ran = grounds.run(&["state", "set", "a", "1"]);
    assert!(ran.stderr.contains("is kept as"), "{ran:?}");
    let aside = beside(&grounds, "state.json.corrupt-");
    assert_eq!(aside.len(), 1);
    let kept = fs::read_to_string(grounds.path().join(".fctry").join(&aside[0])).unwrap();
    assert_eq!(kept, "{\"buildRun\": {\"runId\": \"precio");
    assert_eq!(state(&grounds)["a"], 1);
}

#[test]
fn a_damaged_file_is_told_when_the_change_itself_is_refused() {
    let grounds = Grounds::new();
    write_state(&grounds, "{\"buildRun\": {\"runId\": \"precio");
    let ran = grounds.run(&["build", "chunk", "1", "start"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("no build run") && ran.stderr.contains("state.json cannot be read"), "{ran:?}");
    assert_eq!(beside(&grounds, "state.json"), ["state.json"], "a refused change changes nothing");
}

#[test]
fn a_link_in_the_place_of_the_file_is_left_alone() {
    let grounds = Grounds::new();
    fs::create_dir_all(grounds.path().join(".fctry")).unwrap();
    let (link, target) = (grounds.path().join(".fctry/state.json"), grounds.path().join("elsewhere.json"));
    fs::write(&target, r#"{"a":1}"#).unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let ran = grounds.run(&["state", "set", "a", "2"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("symbolic link"), "{ran:?}");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&target).unwrap(), r#"{"a":1}"#);
    assert_eq!(grounds.run(&["state", "get", "a"]).good(), "1\n", "a link is read");
}

#[test]
fn an_event_that_is_appended_again_counts_once() {
    let grounds = Grounds::new();
    for _ in 0..2 {
        grounds.run(&["state", "append", "buildEvents", r#"{"kind":"chunk-started","id":"e1"}"#]).good();
    }
    let timed = r#"{"timestamp":"2026-02-17T14:30:00Z","summary":"x"}"#;
    for _ in 0..2 {
        grounds.run(&["state", "event", "context-compacted", timed]).good();
    }
    assert_eq!(state(&grounds)["buildEvents"].as_array().unwrap().len(), 2, "{}", state(&grounds));
}

#[test]
fn an_event_that_is_known_is_named_by_its_id() {
    let grounds = Grounds::new();
    let timed = |at: u32| format!(r#"{{"timestamp":"2026-02-17T14:30:0{at}Z","summary":"x"}}"#);
    let tell = |options: &[&str], at: u32| {
        grounds.run(&[&["state", "event", "context-compacted", &timed(at)], options].concat()).good()
    };
    for with_daemon in [false, true] {
        let daemon = with_daemon.then(|| grounds.up());
        let at = u32::from(with_daemon);
        let (first, again) = (tell(&[], at), tell(&[], at));
        assert_eq!(first, again, "daemon: {with_daemon}");
        let json: Value = serde_json::from_str(&tell(&["--json"], at)).unwrap();
        assert_eq!(json["id"], first.trim());
        let events = state(&grounds)["buildEvents"].clone();
        assert!(events.as_array().unwrap().iter().any(|event| event["id"] == first.trim()), "{events}");
        if let Some(daemon) = daemon {
            let told = json!({ "kind": "context-compacted", "timestamp": "2026-02-17T14:30:01Z", "summary": "x" });
            let answer = daemon.door.post("/api/build-events", &told).json();
            assert_eq!((&answer["id"], &answer["changed"]), (&json!(first.trim()), &json!(false)));
        }
    }
}

#[test]
fn a_person_at_a_terminal_chooses_what_to_do_about_a_missing_step() {
    let test = "a_person_at_a_terminal_chooses_what_to_do_about_a_missing_step";
    for (key, last, step, skipped, command) in [
        ("1", "state-owner-scan comes first", json!("state-owner-scan"), json!(null), json!("evolve")),
        ("2", "interviewer", json!("interviewer"), json!("interviewer"), json!("evolve")),
        ("3", "the command is aborted", json!(null), json!(null), json!(null)),
    ] {
        let grounds = Grounds::new();
        grounds.run(&["state", "command", "start", "evolve"]).good();
        let Some(terminal) = Terminal::of_command(&grounds, "state step start interviewer", test) else { return };
        terminal.see("(3) Abort this command");
        terminal.keys(&["7", "Enter"]);
        terminal.see("1, 2 or 3?");
        terminal.keys(&[key, "Enter"]);
        terminal.see("LEFT");
        terminal.see(last);
        let state = state(&grounds);
        assert_eq!(
            (&state["workflowStep"], &state["skippedSteps"][0]["step"], &state["currentCommand"]),
            (&step, &skipped, &command),
            "({key}): {state}"
        );
    }
}

#[test]
fn a_step_cannot_be_completed_around_its_prerequisites() {
    let grounds = Grounds::new();
    grounds.run(&["state", "command", "start", "evolve"]).good();
    for name in ["Spec Writer", "spec_writer", "SPEC-WRITER", "specwriter", "executor", "State Owner"] {
        for action in ["start", "done"] {
            let ran = grounds.run(&["state", "step", action, name]);
            assert_eq!(ran.code, Some(2), "{name}: {ran:?}");
            assert!(ran.stderr.contains("did you mean"), "{name}: {ran:?}");
        }
    }
    let asked = grounds.run(&["state", "step", "done", "spec-writer"]);
    assert_eq!(asked.code, Some(5), "{asked:?}");
    assert!(asked.stderr.starts_with("Workflow error: Interviewer and Scenario Crafter must run"), "{asked:?}");
    assert_eq!(state(&grounds)["completedSteps"], json!([]));
    grounds.run(&["state", "step", "start", "spec-writer", "--choose", "skip"]).good();
    grounds.run(&["state", "step", "done", "spec-writer"]).good();
    assert_eq!(state(&grounds)["completedSteps"], json!(["spec-writer"]));
    grounds.run(&["state", "step", "done", "scenario-crafter", "--choose", "skip"]).good();
    assert_eq!(state(&grounds)["skippedSteps"][1]["step"], "scenario-crafter");
    let aborted = grounds.run(&["state", "step", "start", "interviewer", "--choose", "abort"]);
    assert_eq!(aborted.code, Some(1), "what was asked for is not done: {aborted:?}");
    assert_eq!(state(&grounds)["currentCommand"], Value::Null);
}

#[test]
fn a_completed_run_is_cleared_and_a_paused_one_starts_no_chunk() {
    let grounds = Grounds::new();
    let plan = r#"{"chunks":[{"name":"one","attempt":3,"startedAt":"x","completedAt":"y","specVersionAtBuild":"0","kept":1}]}"#;
    grounds.run(&["build", "plan", plan]).good();
    let chunk = &state(&grounds)["buildRun"]["chunks"][0];
    let expected = json!({ "id": 1, "name": "one", "status": "planned", "kept": 1, "sections": [], "scenarios": [], "dependsOn": [] });
    assert_eq!(chunk, &expected, "a plan has no past");
    grounds.run(&["build", "pause"]).good();
    let paused = grounds.run(&["build", "chunk", "1", "start"]);
    assert!(paused.code == Some(1) && paused.stderr.contains("is paused"), "{paused:?}");
    grounds.run(&["build", "resume", "--choose", "resume"]).good();
    grounds.run(&["build", "chunk", "1", "start"]).good();
    let last = grounds.run(&["build", "chunk", "1", "done"]);
    assert!(last.stderr.contains("is completed"), "{last:?}");
    assert_eq!(last.good(), "completed\n");
    assert_eq!((&state(&grounds)["buildRun"], &state(&grounds)["chunkProgress"]), (&Value::Null, &Value::Null));
}

#[test]
fn what_is_no_plain_file_is_refused() {
    let grounds = Grounds::new();
    fs::create_dir_all(grounds.path().join(".fctry/state.json")).unwrap();
    let ran = grounds.run(&["state", "set", "a", "1"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("not a plain file"), "{ran:?}");
    assert!(grounds.path().join(".fctry/state.json").is_dir());
}

#[test]
fn where_nothing_can_be_written_the_old_state_stays() {
    if !own_mounts_or_say_skipped("where_nothing_can_be_written_the_old_state_stays") {
        return;
    }
    let grounds = Grounds::new();
    write_state(&grounds, r#"{"a":1}"#);
    let folder = grounds.path().join(".fctry");
    let ran = grounds.command_in(Scene::ReadOnly(&folder), &["state", "set", "a", "2"]).output().unwrap();
    assert_eq!(ran.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&ran.stderr).contains("hint: make the folder writable"), "{ran:?}");
    assert_eq!(state(&grounds)["a"], 1);
}

#[test]
fn a_step_without_its_prerequisites_is_a_choice() {
    let grounds = Grounds::new();
    grounds.run(&["state", "command", "start", "evolve"]).good();
    let asked = grounds.run(&["state", "step", "start", "interviewer"]);
    assert_eq!(asked.code, Some(5), "{asked:?}");
    assert!(asked.stderr.starts_with(
        "Workflow error: State Owner must run before Interviewer can proceed.\n(1) Run State Owner scan now"
    ));
    assert_eq!(state(&grounds).get("workflowStep"), None);
    assert_eq!(grounds.run(&["state", "step", "start", "interviewer", "--choose", "1"]).good(), "state-owner-scan\n");
    grounds.run(&["state", "step", "done", "state-owner-scan", "--summary", "fine"]).good();
    assert_eq!(grounds.run(&["state", "step", "start", "interviewer"]).good(), "interviewer\n");
    assert_eq!(state(&grounds)["agentOutputs"]["state-owner-scan"]["summary"], "fine");
    grounds.run(&["state", "step", "start", "scenario-crafter", "--choose", "skip"]).good();
    assert_eq!(state(&grounds)["skippedSteps"][0]["step"], "scenario-crafter");
    grounds.run(&["state", "command", "start", "review"]).good();
    assert_eq!(state(&grounds)["completedSteps"], json!([]));
    assert_eq!(state(&grounds)["agentOutputs"], Value::Null);
}

#[test]
fn a_build_survives_its_session_and_is_resumed() {
    let grounds = Grounds::new();
    write_state(&grounds, r#"{"specVersion":"2.4"}"#);
    let plan = r##"{"chunks":[{"name":"one","sections":["#a"]},{"name":"two","dependsOn":[1]}]}"##;
    grounds.run(&["build", "plan", plan]).good();
    grounds.run(&["build", "chunk", "1", "start"]).good();
    grounds.run(&["build", "chunk", "1", "done"]).good();
    grounds.run(&["build", "chunk", "2", "start"]).good();
    // A new session begins a command; the run is still there.
    grounds.run(&["state", "command", "start", "execute"]).good();
    fs::write(grounds.path().join(".fctry/config.json"), r#"{"versions":{"spec":{"current":"2.5"}}}"#).unwrap();
    let shown = grounds.run(&["build", "resume"]);
    assert_eq!(shown.code, Some(5));
    for words in [
        "completed:\n    1  one",
        "remaining:\n    2  two",
        "since (version 2.5):\n    1  one",
        "(1) Resume",
        "(2) Start fresh",
        "(3) Cancel",
    ] {
        assert!(shown.stdout.contains(words), "{words}: {}", shown.stdout);
    }
    let json: Value =
        serde_json::from_str(&grounds.run(&["build", "resume", "--choose", "cancel", "--json"]).good()).unwrap();
    assert_eq!((&json["outdated"], &json["remaining"]), (&json!([1]), &json!([2])));
    grounds.run(&["build", "resume", "--choose", "resume", "--rebuild", "1"]).good();
    let run = &state(&grounds)["buildRun"];
    assert_eq!((&run["chunks"][0]["status"], &run["chunks"][1]["status"]), (&json!("planned"), &json!("planned")));
    let waits = grounds.run(&["build", "chunk", "2", "start"]);
    assert!(waits.stderr.contains("depends on chunks that are not completed: 1"), "{waits:?}");
    assert!(grounds.run(&["build", "plan", plan]).stderr.contains("is not finished"));
    grounds.run(&["build", "resume", "--choose", "fresh"]).good();
    assert_eq!(state(&grounds)["buildRun"], Value::Null);
}

/// A run with two completed chunks whose sections have changed since, and one that is left.
fn outdated_build(grounds: &Grounds) {
    let spec = |text: &str| fs::write(grounds.path().join(".fctry/spec.md"), text).unwrap();
    write_state(grounds, "{}");
    spec("## 1 A {#a}\nas it was\n## 2 B {#b}\nas it was\n");
    let plan = r##"{"chunks":[{"name":"one","sections":["#a"]},{"name":"two","sections":["#b"]},{"name":"three"}]}"##;
    grounds.run(&["build", "plan", plan]).good();
    for chunk in ["1", "2"] {
        grounds.run(&["build", "chunk", chunk, "start"]).good();
        grounds.run(&["build", "chunk", chunk, "done"]).good();
    }
    spec("## 1 A {#a}\nas it is\n## 2 B {#b}\nas it is\n");
}

fn chunk_statuses(grounds: &Grounds) -> Vec<String> {
    let chunks = state(grounds)["buildRun"]["chunks"].as_array().cloned().unwrap();
    chunks.iter().map(|chunk| chunk["status"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_script_says_what_becomes_of_chunks_whose_sections_have_changed() {
    let resume = ["build", "resume", "--choose", "resume"];
    let outcomes: [(&[&str], &[&str; 3]); 3] = [
        (&["--changed", "keep"], &["completed", "completed", "planned"]),
        (&["--changed", "rebuild"], &["planned", "planned", "planned"]),
        (&["--changed", "keep", "--rebuild", "2"], &["completed", "planned", "planned"]),
    ];
    for (options, statuses) in outcomes {
        let grounds = Grounds::new();
        outdated_build(&grounds);
        let undecided = grounds.run(&[&resume[..], &["--rebuild", "1"]].concat());
        assert_eq!(undecided.code, Some(5), "nobody has chosen for chunk 2: {undecided:?}");
        assert!(undecided.stderr.contains("--changed keep"), "{undecided:?}");
        assert_eq!(chunk_statuses(&grounds), ["completed", "completed", "planned"]);
        grounds.run(&[&resume[..], options].concat()).good();
        assert_eq!(chunk_statuses(&grounds), *statuses, "{options:?}");
    }
}

#[test]
fn a_person_is_asked_about_each_chunk_whose_section_has_changed() {
    let grounds = Grounds::new();
    outdated_build(&grounds);
    let test = "a_person_is_asked_about_each_chunk_whose_section_has_changed";
    let Some(terminal) = Terminal::of_command(&grounds, "build resume", test) else { return };
    terminal.see("(3) Cancel");
    terminal.keys(&["1", "Enter"]);
    terminal.see("chunk 1, one: the spec has changed since it was built");
    terminal.keys(&["7", "Enter"]);
    terminal.see("a number from 1 to 2?");
    terminal.keys(&["1", "Enter"]);
    terminal.see("chunk 2, two: the spec has changed since it was built");
    terminal.keys(&["2", "Enter"]);
    terminal.see("resumed; the next chunk is 1");
    assert_eq!(chunk_statuses(&grounds), ["planned", "completed", "planned"]);
}

#[test]
fn a_build_is_of_the_version_that_is_registered() {
    let grounds = Grounds::new();
    write_state(&grounds, r#"{"specVersion":"3.0"}"#);
    fs::write(grounds.path().join(".fctry/config.json"), r#"{"versions":{"spec":{"current":"3.1"}}}"#).unwrap();
    grounds.run(&["build", "plan", r#"{"chunks":[{"name":"one"},{"name":"two"},{"name":"three"}]}"#]).good();
    grounds.run(&["build", "chunk", "1", "start"]).good();
    grounds.run(&["build", "chunk", "1", "done"]).good();
    let run = &state(&grounds)["buildRun"];
    assert_eq!((&run["plan"]["specVersion"], &run["chunks"][0]["specVersionAtBuild"]), (&json!("3.1"), &json!("3.1")));
    // Without a registry the cached version counts.
    fs::remove_file(grounds.path().join(".fctry/config.json")).unwrap();
    grounds.run(&["build", "chunk", "2", "start"]).good();
    grounds.run(&["build", "chunk", "2", "done"]).good();
    assert_eq!(state(&grounds)["buildRun"]["chunks"][1]["specVersionAtBuild"], "3.1", "{}", state(&grounds));
}

#[test]
fn an_empty_inbox_says_so() {
    let grounds = Grounds::new();
    let listed = grounds.run(&["inbox", "list"]);
    assert!(listed.code == Some(0) && listed.stderr.contains("the inbox is empty"), "{listed:?}");
    grounds.run(&["inbox", "add", "one"]).good();
    let listed = grounds.run(&["inbox", "list", "--status", "error"]);
    assert!(listed.code == Some(0) && listed.stderr.contains("no idea that is error"), "{listed:?}");
}

#[test]
fn ideas_are_kept_until_one_taker_has_done_them() {
    let grounds = Grounds::new();
    let id = grounds.run(&["inbox", "add", "Make onboarding faster"]).good().trim().to_owned();
    assert!(id.starts_with("inbox-"), "{id}");
    grounds.run(&["inbox", "add", "https://example.org", "--type", "reference"]).good();
    let taken = grounds.run(&["inbox", "process", "--taker", "me", "--json"]).good();
    let taken: Value = serde_json::from_str(&taken).unwrap();
    assert_eq!((taken["id"].as_str(), &taken["status"]), (Some(id.as_str()), &json!("processing")));
    assert!(grounds.run(&["inbox", "process", &id]).stderr.contains("is processing already"));
    // The hint of each command names what that command accepts.
    let (listed, ended) = (["inbox", "list", "--status", "x"], ["inbox", "process", &id, "--done", "processing"]);
    let hint = |arguments: &[&str]| grounds.run(arguments).stderr;
    assert!(hint(&listed).contains("pending, processing, processed, incorporated, error"), "{}", hint(&listed));
    assert!(hint(&ended).contains("choose one of: processed, incorporated, error, pending"), "{}", hint(&ended));
    grounds.run(&["inbox", "process", &id, "--done", "incorporated", "--note", "in 2.1"]).good();
    let list: Value = serde_json::from_str(&grounds.run(&["inbox", "list", "--json"]).good()).unwrap();
    assert_eq!(
        (&list["items"][0]["type"], &list["items"][1]["note"]),
        (&json!("reference"), &json!("in 2.1")),
        "the newest first"
    );
    grounds.run(&["inbox", "dismiss", &id]).good();
    let list: Value = serde_json::from_str(&grounds.run(&["inbox", "list", "--json"]).good()).unwrap();
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
}

#[test]
fn a_hook_records_what_is_written_outside_of_commands() {
    let grounds = Grounds::new();
    write_state(&grounds, "{}");
    let spec = "### 2.12 Line {#status-line}\nsee `src/line.js`\n### Other\nsee `src/other.js`\n";
    fs::write(grounds.path().join(".fctry/spec.md"), spec).unwrap();
    let root = grounds.path().canonicalize().unwrap();
    let wrote =
        |file: &str| json!({ "tool_name": "Write", "tool_input": { "file_path": root.join(file) } }).to_string();
    assert_eq!(fed(&grounds, &["state", "untracked"], &wrote("src/line.js")), Some(0));
    assert_eq!(fed(&grounds, &["state", "untracked"], "no JSON"), Some(0), "a hook never gets in the way");
    assert_eq!(fed(&grounds, &["state", "untracked"], &wrote("Cargo.lock")), Some(0));
    let noted = &state(&grounds)["untrackedChanges"];
    assert_eq!(noted.as_array().unwrap().len(), 1, "a file that no section names is not the spec's: {noted}");
    assert_eq!(
        (&noted[0]["file"], &noted[0]["section"], &noted[0]["sectionNumber"]),
        (&json!("src/line.js"), &json!("status-line"), &json!("2.12"))
    );
    grounds.run(&["state", "command", "start", "evolve"]).good();
    assert_eq!(fed(&grounds, &["state", "untracked"], &wrote("src/other.js")), Some(0));
    assert_eq!(state(&grounds)["untrackedChanges"].as_array().unwrap().len(), 1, "a command sees to the spec itself");
    grounds.run(&["state", "command", "done"]).good();
    assert_eq!(fed(&grounds, &["state", "untracked"], &wrote("src/other.js")), Some(0));
    assert_eq!(state(&grounds)["untrackedChanges"][1]["section"], "Other", "a section without an alias has a title");
}

#[test]
fn a_refused_change_makes_no_folder() {
    let grounds = Grounds::new();
    for arguments in [
        &["state", "step", "start", "interviewer"][..],
        &["state", "set", "buildRun", "1"],
        &["build", "chunk", "1", "start"],
        &["inbox", "dismiss", "nothing"],
        &["inbox", "process"],
    ] {
        let refused = grounds.run(arguments);
        assert_ne!(refused.code, Some(0), "{arguments:?}: {refused:?}");
        assert!(!grounds.path().join(".fctry").exists(), "{arguments:?}");
    }
    grounds.run(&["inbox", "add", "an idea"]).good();
    assert!(grounds.path().join(".fctry").exists());
}

#[test]
fn what_is_wrong_is_said_in_json_too() {
    let grounds = Grounds::new();
    for (arguments, code, name, words) in [
        (&["--json", "state", "step", "start", "interviewer"][..], 5, "steps_missing", "State Owner must run before"),
        (&["--json", "state", "set", "a"], 2, "usage", "required arguments were not provided: <VALUE>"),
        (&["--json", "state", "set", "nextStep", "1"], 2, "wrong_shape", "`nextStep` cannot be 1"),
    ] {
        let refused = grounds.run(arguments);
        assert_eq!(refused.code, Some(code), "{arguments:?}: {refused:?}");
        let error = &serde_json::from_str::<Value>(&refused.stderr).unwrap()["error"];
        assert_eq!((&error["code"], &error["exitCode"]), (&json!(name), &json!(code)), "{error}");
        assert!(error["message"].as_str().unwrap().contains(words), "{error}");
        assert!(error["hint"].is_string(), "{error}");
    }
}
