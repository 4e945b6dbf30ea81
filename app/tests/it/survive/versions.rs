//! Data of other versions: what a newer one has written is refused and left as it is, and what an older one has written is taken over.

use crate::support::builds::{build_of_version, run_by};
use crate::support::daemon::{Grounds, Scene, wait_until};
use crate::support::rows::{append, row};
use crate::support::runtime;
use crate::support::workshop::Workshop;
use hatchery::store::migration::MIGRATIONS;
use hatchery::store::{self, StoreUrl};
use hatchery_core::{EventId, Record};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

/// The log of the first version: each line with its id, as clients see it.
const FIRST: &str = include_str!("../../../../core/tests/golden/events-v1.jsonl");

#[test]
fn a_log_that_a_newer_version_has_written_is_refused() {
    let grounds = Grounds::new();
    let daemon = grounds.up();
    let head = daemon.door.head();
    daemon.kill();
    let store = store::open(&StoreUrl::Sqlite(grounds.database()), runtime()).unwrap();
    let body = r#"{"ts":1767225600000,"sessionId":null,"type":"dream_dreamt","dream":"of a later version"}"#;
    append(&*store, head, &[], &[row("status", body)]).unwrap();
    drop(store);
    let refused = grounds.refused(Scene::Plain);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.stderr.contains(&format!("event {} cannot be read", head + 1)), "{refused:?}");
    assert!(refused.stderr.contains("a newer Hatchery has probably written it"), "{refused:?}");
    let connection = rusqlite::Connection::open(grounds.database()).unwrap();
    let last: (u64, String) = connection
        .query_row("SELECT id, body FROM events ORDER BY id DESC LIMIT 1", [], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    assert_eq!(last, (head + 1, body.to_owned()), "nothing was changed");
    // The same for tables that this version does not know.
    connection.execute_batch("DELETE FROM events WHERE id > 1; INSERT INTO migrations VALUES ('9999_future')").unwrap();
    drop(connection);
    let refused = grounds.refused(Scene::Plain);
    assert!(refused.stderr.contains("newer Hatchery (schema `9999_future`)"), "{refused:?}");
}

#[test]
fn a_log_of_the_first_version_is_taken_over() {
    let grounds = Grounds::new();
    grounds.begin_database();
    let connection = rusqlite::Connection::open(grounds.database()).unwrap();
    connection.execute_batch("CREATE TABLE migrations (name TEXT PRIMARY KEY) STRICT").unwrap();
    connection.execute_batch(MIGRATIONS[0].sqlite).unwrap();
    connection.execute("INSERT INTO migrations VALUES (?1)", [MIGRATIONS[0].name]).unwrap();
    let lines: Vec<&str> = FIRST.lines().collect();
    for (line, id) in lines.iter().zip(1_u64..) {
        let record = Record::read(EventId(id), line).unwrap();
        let stream = record.event.stream().to_string();
        let insert = "INSERT INTO events (id, stream, body) VALUES (?1, ?2, ?3)";
        connection.execute(insert, (id, stream, record.body())).unwrap();
    }
    drop(connection);
    let daemon = grounds.up();
    let log = daemon.door.log();
    assert_eq!(log[..lines.len()], lines, "it begins with what the first version wrote");
    // And it goes on.
    let head = daemon.door.head();
    daemon.door.agent(None);
    assert!(daemon.door.head() > head);
}

#[test]
fn a_run_that_a_newer_version_has_started_is_left_to_it() {
    let mut shop = Workshop::open();
    let agent = shop.run(&[json!({ "text": "here" }), json!({ "sleep_ms": 600_000 })]);
    shop.wait_said(&agent, "here");
    let processes = shop.processes();
    assert!(!processes.is_empty());
    shop.kill_daemon();
    let file = shop.folder(&agent, 1, 1).join("launch.json");
    let written: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!(written["format"], 1);
    let with = |format: Option<u32>| {
        let mut changed = written.clone();
        match format {
            Some(format) => changed["format"] = json!(format),
            None => drop(changed.as_object_mut().unwrap().remove("format")),
        }
        fs::write(&file, changed.to_string()).unwrap();
    };
    with(Some(2));
    let refused = shop.grounds.refused(Scene::Plain);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.stderr.contains(&format!("run 1 of agent {agent} was started by a newer Hatchery")), "{refused:?}");
    assert_eq!(shop.processes(), processes, "it works on");
    // The first version said no format. Its run is taken over.
    with(None);
    shop.restart();
    shop.stop(&agent);
    wait_until("it has ended", || shop.kinds(&agent).contains(&"run_ended".to_owned()));
    assert_eq!(shop.kinds(&agent).iter().filter(|kind| *kind == "run_spawned").count(), 1, "there was one process");
}

/// A project as an older program has left it: see `older/README.md`.
mod older {
    pub const LOG: &str = include_str!("older/log.sql");
    pub const HOST: &str = include_str!("older/host");
    pub const WORKER: &str = include_str!("older/worker");
    pub const RUN: [(&str, &str); 5] = [
        ("launch.json", include_str!("older/run/launch.json")),
        ("inbox.jsonl", include_str!("older/run/inbox.jsonl")),
        ("process.json", include_str!("older/run/process.json")),
        ("stdout.jsonl", include_str!("older/run/stdout.jsonl")),
        ("exit.json", include_str!("older/run/exit.json")),
    ];
}

#[test]
fn a_project_that_an_older_build_left_in_the_middle_of_a_run_is_taken_over() {
    let grounds = Grounds::with("harness = 'scripted'\n");
    grounds.begin_database();
    let connection = rusqlite::Connection::open(grounds.database()).unwrap();
    connection.execute_batch(older::LOG).unwrap();
    let snapshots: Vec<u32> = connection
        .prepare("SELECT format FROM snapshots")
        .and_then(|mut query| query.query_map([], |row| row.get(0))?.collect())
        .unwrap();
    assert!(snapshots.iter().all(|format| *format < hatchery::engine::snapshot::FORMAT), "{snapshots:?}");
    assert!(!snapshots.is_empty(), "there is a snapshot that this version cannot read");
    drop(connection);
    let worker = older::WORKER.trim();
    let run = grounds.data().join("runs").join(worker).join("1-1");
    fs::create_dir_all(&run).unwrap();
    for (name, content) in older::RUN {
        fs::write(run.join(name), content).unwrap();
    }
    fs::write(grounds.data().join("host"), older::HOST).unwrap();
    // As `hatchery trust` does it.
    grounds.project().adopt_data(false).unwrap();
    let daemon = grounds.up();
    // The agent has worked on without its daemon. What it said and how it ended is taken in once.
    wait_until("the run has ended", || {
        daemon.door.log().iter().any(|event| event.contains("\"run_ended\"") && event.contains(worker))
    });
    let history = grounds.run(&["history", "worker"]).good();
    for said in ["before the daemon was killed", "after the daemon was killed"] {
        assert_eq!(history.matches(said).count(), 1, "{history}");
    }
    let ended: Vec<Value> = daemon.door.log().iter().map(|event| serde_json::from_str(event).unwrap()).collect();
    let ended = ended.iter().find(|event| event["type"] == "run_ended" && event["agent"] == worker).unwrap();
    assert_eq!(ended["cause"], "completed", "{ended}");
    assert!(grounds.run(&["history", "second"]).good().contains("hello there"), "a fork inherits");
    assert!(grounds.run(&["quest", "list", "--all"]).good().contains("a small quest"));
    let checked = grounds.run(&["fsck"]);
    assert!(checked.code == Some(0) && checked.stdout.starts_with("clean"), "{checked:?}");
    // The script of the older run is not part of what it left.
    let script = grounds.path().join("work.jsonl");
    fs::write(&script, "{\"text\":\"going on\"}\n").unwrap();
    grounds.run(&["say", "worker", "--follow", "--script", script.to_str().unwrap(), "go on"]).good();
}

/// The older program is a copy of this one with an older version in it: its daemon, launchers and tools are processes of that other program. With
/// `HATCHERY_OLDER` it is one that was really built from older sources, which takes minutes; CONTRIBUTING.md says how.
#[test]
fn an_older_build_is_replaced_while_its_agent_works() {
    let grounds = Grounds::with("harness = 'scripted'\nstop_grace_ms = 300\n");
    let (named, own) = (std::env::var_os("HATCHERY_OLDER").map(PathBuf::from), hatchery::version::version());
    let program = named.unwrap_or_else(|| build_of_version(&grounds, "0.0.9"));
    let older = |arguments: &[&str]| run_by(&program, &grounds, arguments);
    // Made by the older program: a folder of a newer one is not for it.
    fs::remove_dir_all(grounds.data()).unwrap();
    let script = grounds.path().join("work.jsonl");
    fs::write(&script, "{\"text\": \"here\"}\n{\"hang\": {}}\n").unwrap();
    let agent = older(&["run", "--detach", "--name", "worker", "--script", script.to_str().unwrap(), "work"]).good();
    wait_until("the agent has said something", || older(&["history", "worker"]).good().contains("here"));
    let process = |said: &str| serde_json::from_str::<Value>(said).unwrap()["runs"][0]["pid"].clone();
    let before = process(&older(&["runs", "--json"]).good());
    // A command that needs no new daemon works with the older one. Sources of another day may have the same version.
    let version = grounds.project().daemon().unwrap().version;
    let told = grounds.run(&["ps"]);
    let is_told = told.stderr.contains(&format!("the daemon is version {version}, this command is"));
    assert!(told.stdout.contains("worker") && is_told == (version != own), "{told:?}");
    // The first versions did not remember enough of the folder. That is told while the older daemon runs, and asked once.
    if grounds.project().foreign().is_some() {
        let refused = grounds.run(&["up", "--replace"]);
        assert!(refused.stderr.contains("made by an older Hatchery"), "{refused:?}");
        assert!(grounds.project().is_served(), "the older daemon runs on");
        let refused = grounds.run(&["trust", "--yes"]);
        assert!(refused.stderr.contains("`hatchery down`"), "{refused:?}");
        grounds.run(&["down"]).good();
        grounds.run(&["trust", "--yes"]).good();
    }
    let mut command = grounds.command(&["up", "--replace", "--json"]);
    let child = command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn().unwrap();
    let daemon = crate::support::daemon::Daemon::ready(child).unwrap();
    assert_eq!(grounds.project().daemon().unwrap().version, own);
    assert_eq!(process(&grounds.run(&["runs", "--json"]).good()), before, "the agent has worked on");
    grounds.run(&["stop", "worker"]).good();
    wait_until("the run has ended", || daemon.door.log().iter().any(|event| event.contains("\"run_ended\"")));
    let checked = grounds.run(&["fsck"]);
    assert!(checked.code == Some(0), "{checked:?}, {agent}");
    let spawned = daemon.door.log().iter().filter(|event| event.contains("\"run_spawned\"")).count();
    assert_eq!(spawned, 1, "there was one process");
}
