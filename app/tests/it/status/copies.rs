//! Files that are missing, damaged or old copies: nothing that the log has is lost by them.

use crate::support::daemon::{Grounds, wait_until};
use hatchery::shared_file::FolderLock;
use hatchery::state_file::StatusFolder;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

fn state(folder: &StatusFolder) -> Value {
    serde_json::from_str(&fs::read_to_string(folder.state_file()).unwrap()).unwrap()
}

fn contents(grounds: &Grounds) -> Vec<String> {
    let list: Value = serde_json::from_str(&grounds.run(&["--json", "inbox", "list"]).good()).unwrap();
    list["items"].as_array().unwrap().iter().map(|idea| idea["content"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_file_that_is_lost_while_no_daemon_runs_takes_nothing_with_it() {
    type Lose = fn(&StatusFolder);
    let damage: Lose = |folder| {
        fs::write(folder.state_file(), r#"{"c"#).unwrap();
        fs::write(folder.inbox_file(), r#"[{"id"#).unwrap();
    };
    let remove: Lose = |folder| {
        fs::remove_file(folder.state_file()).unwrap();
        fs::remove_file(folder.inbox_file()).unwrap();
    };
    let replace: Lose = |folder| {
        fs::write(folder.state_file(), r#"{"theirs":1}"#).unwrap();
        fs::write(folder.inbox_file(), "[]").unwrap();
    };
    for (what, lose) in [("damaged", damage), ("removed", remove), ("replaced", replace)] {
        let grounds = Grounds::new();
        let folder = StatusFolder::of(grounds.path());
        let daemon = grounds.up();
        grounds.run(&["inbox", "add", "keep me"]).good();
        grounds.run(&["state", "merge", r#"{"currentCommand":"evolve","readinessSummary":{"aligned":3}}"#]).good();
        daemon.kill();
        lose(&folder);
        grounds.run(&["state", "incr", "n"]).good();
        grounds.run(&["inbox", "add", "new"]).good();
        let daemon = grounds.up();
        let known = daemon.door.get("/api/state").json()["value"].clone();
        assert_eq!((&known["currentCommand"], &known["n"]), (&json!("evolve"), &json!(1)), "{what}: {known}");
        assert_eq!(known["readinessSummary"], json!({ "aligned": 3 }), "{what}");
        assert!(known["lastUpdated"].is_string(), "{what}: {known}");
        wait_until("both ideas are there", || contents(&grounds) == ["new", "keep me"]);
    }
}

#[test]
fn what_commands_remove_while_no_daemon_runs_stays_removed() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let idea = grounds.run(&["inbox", "add", "not this"]).good();
    grounds.run(&["state", "merge", r#"{"x":{"a":1},"y":1}"#]).good();
    daemon.kill();
    grounds.run(&["inbox", "dismiss", idea.trim()]).good();
    grounds.run(&["state", "set", "x", r#"{"b":1}"#]).good();
    grounds.run(&["state", "clear", "y"]).good();
    let daemon = grounds.up();
    assert_eq!(daemon.door.get("/api/inbox").json()["items"], json!([]));
    let known = daemon.door.get("/api/state").json()["value"].clone();
    assert_eq!((&known["x"]["a"], &known["x"]["b"], &known["y"]), (&Value::Null, &json!(1), &Value::Null), "{known}");
}

#[test]
fn an_old_copy_that_is_written_back_undoes_nothing() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let folder = StatusFolder::of(grounds.path());
    let plan = || grounds.run(&["build", "plan", r#"{"chunks":[{"name":"one"}]}"#]).good();
    plan();
    grounds.run(&["build", "clear"]).good();
    grounds.run(&["inbox", "add", "taken once"]).good();
    let (old, old_inbox) = (fs::read(folder.state_file()).unwrap(), fs::read(folder.inbox_file()).unwrap());
    let run = plan();
    grounds.run(&["build", "chunk", "1", "start"]).good();
    grounds.run(&["inbox", "process"]).good();
    grounds.run(&["inbox", "add", "later"]).good();
    fs::write(folder.state_file(), &old).unwrap();
    fs::write(folder.inbox_file(), &old_inbox).unwrap();
    wait_until("the run is back", || state(&folder)["buildRun"]["runId"] == run.trim());
    assert_eq!(state(&folder)["buildRun"]["chunks"][0]["status"], "active");
    wait_until("the later idea is back", || contents(&grounds) == ["later", "taken once"]);
    let ideas = daemon.door.get("/api/inbox").json();
    let statuses: Vec<&Value> = ideas["items"].as_array().unwrap().iter().map(|idea| &idea["status"]).collect();
    assert_eq!(statuses, [&json!("pending"), &json!("processing")]);
    // An empty list is a file that was begun anew.
    fs::write(folder.inbox_file(), "[]").unwrap();
    wait_until("the ideas are back", || contents(&grounds) == ["later", "taken once"]);
}

#[test]
fn a_program_that_writes_the_whole_file_loses_no_count() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let folder = StatusFolder::of(grounds.path());
    grounds.run(&["state", "set", "foreign", "0"]).good();
    let mut writer = grounds.command(&["state", "incr", "mine"]);
    writer.stdout(std::process::Stdio::null());
    for round in 1..=10 {
        // It reads, Hatchery counts, and it writes what it read.
        let mut read = state(&folder);
        assert!(writer.status().unwrap().success());
        read["foreign"] = json!(round);
        fs::write(folder.state_file(), read.to_string()).unwrap();
        let value = |path: &str| daemon.door.get(&format!("/api/state?path={path}")).json()["value"].clone();
        wait_until("its edit is taken", || value("foreign") == round);
        assert_eq!(value("mine"), round);
        wait_until("the file is true", || state(&folder)["mine"] == round);
    }
}

#[test]
fn a_value_that_the_log_cannot_take_stays_in_the_file() {
    let grounds = Grounds::new();
    let _daemon = grounds.up();
    let folder = StatusFolder::of(grounds.path());
    grounds.run(&["state", "set", "grown", "1"]).good();
    fs::set_permissions(folder.state_file(), fs::Permissions::from_mode(0o600)).unwrap();
    let long = "x".repeat(2 * 1024 * 1024);
    let mut changed = state(&folder);
    (changed["grown"], changed["new"], changed[""]) = (json!(long), json!(long), json!(1));
    changed["small"] = json!(1);
    fs::write(folder.state_file(), changed.to_string()).unwrap();
    wait_until("the rest is taken", || grounds.run(&["state", "get", "small"]).good().trim() == "1");
    for number in 0..3 {
        grounds.run(&["state", "set", "n", &number.to_string()]).good();
    }
    let after = state(&folder);
    assert!(after["grown"] == json!(long) && after["new"] == json!(long), "they are still there");
    assert_eq!((&after[""], &after["n"]), (&json!(1), &json!(2)));
    let mode = fs::metadata(folder.state_file()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "closed to others, as it was");
}

/// The file follows the log, and the copy follows the file. A daemon can be killed between any two of them.
#[test]
fn a_file_that_is_older_than_the_log_is_no_edit() {
    let grounds = Grounds::new();
    let folder = StatusFolder::of(grounds.path());
    let copies = grounds.data().join("shown");
    let daemon = grounds.up();
    let set = |value: u64| {
        let answer = daemon.door.post("/api/state", &json!({ "set": { "path": "n", "value": value } }));
        assert_eq!(answer.json()["inFile"], true);
    };
    set(1);
    let copy = fs::read(copies.join("state.json")).unwrap();
    let signature = fs::read(copies.join("state.json.signature")).unwrap();
    set(2);
    let file = fs::read(folder.state_file()).unwrap();
    let announced = fs::read(copies.join("state.json.announced")).unwrap();
    set(3);
    daemon.kill();
    fs::write(folder.state_file(), file).unwrap();
    fs::write(copies.join("state.json.announced"), announced).unwrap();
    fs::write(copies.join("state.json"), copy).unwrap();
    fs::write(copies.join("state.json.signature"), signature).unwrap();
    let daemon = grounds.up();
    assert_eq!(daemon.door.get("/api/state?path=n").json()["value"], 3, "what was answered stays");
    wait_until("the file follows", || state(&folder)["n"] == 3);
}

/// The first daemon is killed after the file and before the copy, the second after the announcement and before the file.
#[test]
fn two_daemons_that_are_killed_at_bad_moments_lose_nothing() {
    let grounds = Grounds::new();
    let folder = StatusFolder::of(grounds.path());
    let copies = grounds.data().join("shown");
    let daemon = grounds.up();
    let set = |value: u64| daemon.door.post("/api/state", &json!({ "set": { "path": "n", "value": value } })).json();
    set(1);
    let copy = fs::read(copies.join("state.json")).unwrap();
    set(2);
    daemon.kill();
    fs::write(copies.join("state.json"), copy).unwrap();
    let daemon = grounds.up();
    assert_eq!(daemon.door.get("/api/state?path=n").json()["value"], 2);
    // The file cannot be written, so the log is ahead of it.
    let lock = FolderLock::acquire(folder.path()).unwrap();
    let answer = daemon.door.post("/api/state?wait=log", &json!({ "set": { "path": "n", "value": 3 } }));
    assert_eq!(answer.json()["value"], 3);
    daemon.kill();
    drop(lock);
    fs::write(copies.join("state.json.announced"), "another content").unwrap();
    let daemon = grounds.up();
    assert_eq!(daemon.door.get("/api/state?path=n").json()["value"], 3);
}

/// An edit is in the log, and the daemon is killed before it can note that.
#[test]
fn an_edit_is_taken_once_whatever_was_answered_after_it() {
    let grounds = Grounds::new();
    let folder = StatusFolder::of(grounds.path());
    let copies = grounds.data().join("shown");
    let daemon = grounds.up();
    grounds.run(&["state", "set", "n", "1"]).good();
    let read = |name: &str| fs::read(copies.join(name)).unwrap();
    let kept = ["state.json", "state.json.signature"].map(|name| (name, read(name)));
    let mut edited = state(&folder);
    edited["n"] = json!(5);
    fs::write(folder.state_file(), edited.to_string()).unwrap();
    wait_until("the edit is taken", || daemon.door.get("/api/state?path=n").json()["value"] == 5);
    let lock = FolderLock::acquire(folder.path()).unwrap();
    daemon.door.post("/api/state?wait=log", &json!({ "increment": { "path": "n" } }));
    daemon.kill();
    drop(lock);
    for (name, content) in kept {
        fs::write(copies.join(name), content).unwrap();
    }
    let daemon = grounds.up();
    assert_eq!(daemon.door.get("/api/state?path=n").json()["value"], 6);
}

/// A command is stopped between its look for a daemon and its change. A daemon that starts meanwhile must not count before that change.
#[test]
fn a_change_waits_for_a_command_that_began_before_the_daemon() {
    let grounds = Grounds::new();
    let folder = StatusFolder::of(grounds.path());
    grounds.run(&["state", "set", "n", "1"]).good();
    let lock = FolderLock::acquire(folder.path()).unwrap();
    let daemon = grounds.up();
    let count = || daemon.door.post("/api/state?wait=log", &json!({ "increment": { "path": "n" } }));
    let refused = count();
    assert_eq!((refused.status, refused.error().0.as_str()), (503, "status_files_held"));
    let mut changed = state(&folder);
    changed["n"] = json!(2);
    fs::write(folder.state_file(), changed.to_string()).unwrap();
    drop(lock);
    wait_until("changes are taken again", || count().status == 200);
    assert_eq!(daemon.door.get("/api/state?path=n").json()["value"], 3);
}
