//! Data of other versions: what a newer one has written is refused and left as it is, and what an older one has written is taken over.

use crate::support::daemon::{Grounds, Scene, wait_until};
use crate::support::rows::{append, row};
use crate::support::runtime;
use crate::support::workshop::Workshop;
use hatchery::store::migration::MIGRATIONS;
use hatchery::store::{self, StoreUrl};
use hatchery_core::{EventId, Record};
use serde_json::{Value, json};
use std::fs;

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
    let refused = grounds.refused(Scene::Plain);
    assert!(refused.stderr.contains("newer Hatchery (schema `9999_future`)"), "{refused:?}");
}

#[test]
fn a_log_of_the_first_version_is_taken_over() {
    let grounds = Grounds::new();
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
