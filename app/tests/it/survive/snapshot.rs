//! Snapshots are a cache: one that is damaged costs a slower start and a line in the log, and nothing else.

use crate::support::daemon::{Daemon, Grounds};
use crate::support::place::Place;
use crate::support::runtime;
use hatchery::clock::{SystemClock, new_agent_id};
use hatchery::engine::{Engine, EngineOptions};
use hatchery_core::Command;
use hatchery_core::agent::Birth;
use rusqlite::Connection;
use std::sync::Arc;

/// What a damaged snapshot may look like. Each in SQL, over all that are kept.
const DAMAGES: [&str; 7] = [
    "UPDATE snapshots SET body = CAST(substr(body, 1, length(body) / 2) || x'ff' || substr(body, length(body) / 2 + 2) AS BLOB)",
    "UPDATE snapshots SET body = x''",
    "UPDATE snapshots SET checksum = checksum + 1",
    "UPDATE snapshots SET checksum = -1",
    "UPDATE snapshots SET format = 99",
    "UPDATE snapshots SET format = 1 << 40",
    "UPDATE snapshots SET at = at + 1000000",
];

#[test]
fn a_damaged_snapshot_is_skipped_and_rebuilt() {
    let whole = Grounds::with("snapshot_every = 100");
    let daemon = whole.up();
    fill(&daemon);
    let state = state(&daemon);
    daemon.kill();
    for damage in DAMAGES {
        let grounds = Grounds::with("snapshot_every = 100");
        grounds.begin_database();
        for name in ["hatchery.db", "hatchery.db-wal"] {
            std::fs::copy(whole.data().join(name), grounds.data().join(name)).unwrap();
        }
        Connection::open(grounds.database()).unwrap().execute_batch(damage).unwrap();
        let found = grounds.run(&["fsck"]);
        assert_eq!(found.code, Some(4), "{damage}: {found:?}");
        assert!(found.stdout.contains("Snapshot"), "{damage}: {found:?}");
        let daemon = grounds.up();
        assert_eq!(self::state(&daemon), state, "{damage}");
        assert!(grounds.said().contains("a snapshot is skipped"), "{damage}: {}", grounds.said());
        daemon.kill();
        assert_eq!(grounds.run(&["fsck"]).code, Some(4), "{damage}: a start mends nothing by itself");
        let mended = grounds.run(&["fsck", "--repair"]);
        assert_eq!(mended.code, Some(0), "{damage}: {mended:?}");
        let clean = grounds.run(&["fsck"]);
        assert!(clean.code == Some(0) && clean.stdout.starts_with("clean"), "{damage}: {clean:?}");
        assert_eq!(self::state(&grounds.up()), state, "{damage}");
    }
}

/// Here the table itself cannot be read. The log can.
#[test]
fn a_broken_table_of_snapshots_stops_nobody() {
    let grounds = Grounds::with("snapshot_every = 100");
    let daemon = grounds.up();
    fill(&daemon);
    let state = state(&daemon);
    daemon.kill();
    let connection = Connection::open(grounds.database()).unwrap();
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, u64>(0)).unwrap();
    let root = number("SELECT rootpage FROM sqlite_schema WHERE name = 'snapshots'");
    let size = number("PRAGMA page_size");
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(connection);
    let mut file = std::fs::read(grounds.database()).unwrap();
    let start = usize::try_from((root - 1) * size).unwrap();
    file[start..start + 100].fill(0x5a);
    std::fs::write(grounds.database(), file).unwrap();
    let found = grounds.run(&["fsck"]);
    assert_eq!(found.code, Some(4), "{found:?}");
    let daemon = grounds.up();
    assert_eq!(self::state(&daemon), state);
    assert!(grounds.said().contains("snapshots cannot be read"), "{}", grounds.said());
    let agent = daemon.door.agent(None);
    for number in 0..150 {
        assert_eq!(daemon.door.say(&agent, &number.to_string()).status, 201);
    }
}

/// Otherwise a large world would be busy with nothing but writing itself down.
#[test]
fn a_large_world_is_written_down_less_often() {
    let place = Place::sqlite();
    let store = place.open();
    let options = EngineOptions { snapshot_every: 1, ..EngineOptions::default() };
    let engine = Engine::start(Arc::clone(&store), Arc::new(SystemClock), options, runtime().clone()).unwrap();
    let submit = |command| runtime().block_on(engine.handle.submit(command)).unwrap();
    let root = new_agent_id();
    submit(Command::FoundRegistry { agent: root, name: None });
    for _ in 0..1_000 {
        submit(Command::Fork { parent: root, at: None, birth: Birth::of(new_agent_id()) });
    }
    let kept = store.snapshots().unwrap();
    let [newer, older] = kept.as_slice() else { panic!("{} snapshots are kept", kept.len()) };
    let apart = usize::try_from(newer.at.0 - older.at.0).unwrap();
    assert!(apart > 10 && apart >= older.body.len() / 256, "{apart} events, {} bytes", older.body.len());
    engine.handle.stop();
    engine.join().unwrap();
}

#[test]
fn a_newer_schema_is_refused() {
    let grounds = Grounds::new();
    grounds.up().kill();
    let newer = "INSERT INTO migrations (name) VALUES ('9999_future')";
    Connection::open(grounds.database()).unwrap().execute_batch(newer).unwrap();
    let ran = grounds.refused(crate::support::daemon::Scene::Plain);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("newer Hatchery") && ran.stderr.contains("9999_future"), "{ran:?}");
    assert!(ran.stderr.contains("hint: install the newer Hatchery"), "{ran:?}");
}

/// More events than lie between two snapshots, and waits until one is kept.
fn fill(daemon: &Daemon) {
    let session = daemon.door.post("/api/sessions", &serde_json::json!({})).id();
    let agents: Vec<String> = (0..4).map(|_| daemon.door.agent(Some(&session))).collect();
    for number in 0..55 {
        for agent in &agents {
            assert_eq!(daemon.door.say(agent, &number.to_string()).status, 201);
        }
    }
    let kept = |daemon: &Daemon| daemon.door.post("/api/fsck", &serde_json::json!({})).json()["snapshots"].as_u64();
    let deadline = std::time::Instant::now() + crate::support::daemon::PATIENCE;
    while kept(daemon) != Some(2) {
        assert!(std::time::Instant::now() < deadline, "no snapshot was kept");
    }
}

fn state(daemon: &Daemon) -> (String, String, Vec<String>) {
    (daemon.door.get("/api/agents").body, daemon.door.get("/api/sessions").body, daemon.door.log())
}
