//! Daemons that are killed while their log is ahead of the files, and commands that come before the next daemon: whatever was answered
//! stays.

use crate::support::daemon::{Daemon, Grounds, wait_until};
use crate::support::postgres::{Durability, Server};
use hatchery::shared_file::FolderLock;
use hatchery::state_file::StatusFolder;
use serde_json::{Value, json};
use std::fs;

fn state(folder: &StatusFolder) -> Value {
    serde_json::from_str(&fs::read_to_string(folder.state_file()).unwrap()).unwrap()
}

fn count_in_log(daemon: &Daemon) -> u64 {
    let answer = daemon.door.post("/api/state?wait=log", &json!({ "increment": { "path": "n" } }));
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["value"].as_u64().unwrap()
}

fn known(daemon: &Daemon, path: &str) -> Value {
    daemon.door.get(&format!("/api/state?path={path}")).json()["value"].clone()
}

/// Kills the daemon after this many increments that only the log has: the files cannot be written meanwhile.
fn kill_ahead(grounds: &Grounds, daemon: Daemon, increments: u64) {
    // The first answer comes when the files are taken in.
    known(&daemon, "n");
    let lock = FolderLock::acquire(StatusFolder::of(grounds.path()).path()).unwrap();
    for _ in 0..increments {
        count_in_log(&daemon);
    }
    daemon.kill();
    drop(lock);
}

#[test]
fn what_only_the_log_has_survives_commands_without_a_daemon() {
    let grounds = Grounds::new();
    let folder = StatusFolder::of(grounds.path());
    let count = || grounds.run(&["state", "incr", "n"]).good().trim().to_owned();
    let daemon = grounds.up();
    assert_eq!(count(), "1");
    kill_ahead(&grounds, daemon, 5);
    assert_eq!(state(&folder)["n"], 1, "the file is behind the log");
    // Reading shows what was answered, and changes nothing.
    assert_eq!(grounds.run(&["state", "get", "n"]).good().trim(), "6");
    assert_eq!(state(&folder)["n"], 1);
    assert_eq!((count().as_str(), count().as_str()), ("7", "8"));
    let daemon = grounds.up();
    assert_eq!(known(&daemon, "n"), 8);
    // Killed, and killed again before and after a command.
    kill_ahead(&grounds, daemon, 3);
    let daemon = grounds.up();
    kill_ahead(&grounds, daemon, 1);
    assert_eq!(count(), "13");
    grounds.up().kill();
    assert_eq!(count(), "14");
    let daemon = grounds.up();
    assert_eq!((known(&daemon, "n"), &state(&folder)["n"]), (json!(14), &json!(14)));
    // After an end in order the log need not be read.
    assert!(grounds.data().join("shown/log").exists());
    grounds.run(&["down"]).good();
    assert!(!grounds.data().join("shown/log").exists());
    assert_eq!(count(), "15");
}

#[test]
fn what_other_programs_wrote_meanwhile_stays_too() {
    let grounds = Grounds::new();
    let folder = StatusFolder::of(grounds.path());
    let daemon = grounds.up();
    grounds.run(&["state", "merge", r#"{"n":0,"theirs":1,"gone":1}"#]).good();
    kill_ahead(&grounds, daemon, 4);
    let mut edited = state(&folder);
    edited["theirs"] = json!(2);
    edited.as_object_mut().unwrap().remove("gone");
    fs::write(folder.state_file(), edited.to_string()).unwrap();
    assert_eq!(grounds.run(&["state", "incr", "n"]).good().trim(), "5");
    let shown = state(&folder);
    assert_eq!((&shown["n"], &shown["theirs"], &shown["gone"]), (&json!(5), &json!(2), &Value::Null), "{shown}");
    let daemon = grounds.up();
    assert_eq!(
        (known(&daemon, "n"), known(&daemon, "theirs"), known(&daemon, "gone")),
        (json!(5), json!(2), Value::Null)
    );
}

/// The file shows an edit of another program and the log has it. The daemon is killed before it writes the file again.
#[test]
fn an_edit_that_was_taken_is_not_taken_again() {
    let grounds = Grounds::new();
    let folder = StatusFolder::of(grounds.path());
    let daemon = grounds.up();
    grounds.run(&["state", "set", "n", "0"]).good();
    let mut edited = state(&folder);
    edited["n"] = json!(5);
    fs::write(folder.state_file(), edited.to_string()).unwrap();
    wait_until("the edit is taken", || known(&daemon, "n") == 5);
    kill_ahead(&grounds, daemon, 2);
    let daemon = grounds.up();
    assert_eq!(known(&daemon, "n"), 7);
}

#[test]
fn an_idea_that_was_taken_before_the_kill_is_not_taken_again() {
    let grounds = Grounds::new();
    let folder = StatusFolder::of(grounds.path());
    let daemon = grounds.up();
    grounds.run(&["inbox", "add", "only once"]).good();
    let lock = FolderLock::acquire(folder.path()).unwrap();
    std::thread::scope(|scope| {
        // The answer waits for the file, so it never comes.
        let taker = scope.spawn(|| grounds.run(&["inbox", "process"]));
        wait_until("the log has it", || daemon.door.log().iter().any(|line| line.contains("processing")));
        daemon.kill();
        drop(lock);
        drop(taker.join().unwrap());
    });
    assert!(fs::read_to_string(folder.inbox_file()).unwrap().contains("pending"), "the file is behind the log");
    let list = grounds.run(&["--json", "inbox", "list"]).good();
    assert!(list.contains("processing"), "{list}");
    let second = grounds.run(&["inbox", "process"]);
    assert!(second.code == Some(1) && second.stderr.contains("no pending item"), "{second:?}");
}

#[test]
fn a_damaged_file_is_made_again_from_the_log_without_a_daemon() {
    let grounds = Grounds::new();
    let folder = StatusFolder::of(grounds.path());
    let daemon = grounds.up();
    grounds.run(&["state", "set", "n", "0"]).good();
    kill_ahead(&grounds, daemon, 3);
    fs::write(folder.state_file(), "{\"n\":").unwrap();
    let ran = grounds.run(&["state", "incr", "n"]);
    assert_eq!((ran.stdout.trim(), ran.stderr.contains("state.json.corrupt-")), ("4", true), "{ran:?}");
    let aside =
        fs::read_dir(folder.path()).unwrap().flatten().find(|it| it.file_name().to_string_lossy().contains("corrupt"));
    assert_eq!(fs::read(aside.unwrap().path()).unwrap(), b"{\"n\":", "it is kept");
}

#[test]
fn a_log_that_cannot_be_read_is_told_and_nothing_is_changed() {
    let grounds = Grounds::new();
    let folder = StatusFolder::of(grounds.path());
    let daemon = grounds.up();
    grounds.run(&["state", "set", "n", "0"]).good();
    kill_ahead(&grounds, daemon, 1);
    let note = grounds.data().join("shown/log");
    let known = fs::read(&note).unwrap();
    fs::write(&note, "postgres://nobody@127.0.0.1:1/none").unwrap();
    let ran = grounds.run(&["state", "incr", "n"]);
    assert!(ran.code != Some(0) && ran.stderr.contains("the last daemon was killed"), "{ran:?}");
    assert!(ran.stderr.contains("hatchery up"), "{ran:?}");
    assert_eq!(state(&folder)["n"], 0);
    fs::write(&note, known).unwrap();
    assert_eq!(grounds.run(&["state", "incr", "n"]).good().trim(), "2");
}

#[test]
fn a_log_on_a_server_is_read_as_well_and_its_absence_is_told() {
    let server = Server::own(Durability::None);
    let database = server.database();
    let grounds = Grounds::with(&format!("store = '{}'", database.url()));
    let daemon = grounds.up();
    grounds.run(&["state", "set", "n", "0"]).good();
    kill_ahead(&grounds, daemon, 3);
    server.stop();
    let ran = grounds.run(&["state", "incr", "n"]);
    assert!(ran.code != Some(0) && ran.stderr.contains("the last daemon was killed"), "{ran:?}");
    server.start();
    assert_eq!(grounds.run(&["state", "incr", "n"]).good().trim(), "4");
    assert_eq!(known(&grounds.up(), "n"), 4);
}
