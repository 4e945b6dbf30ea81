//! Reading a whole history, inherited over many ancestors.

use crate::postgres::{Durability, Server};
use crate::table::{Goal, Table, Unit, in_turns};
use crate::tree::{self, MESSAGE_BYTES};
use crate::{Effort, millis, raw, runtime};
use hatchery::store::StoreUrl;
use rusqlite::Connection;

/// Ancestors, messages of each, and how many bare scans the replay may cost.
const SHAPES: [(u64, u64, f64); 2] = [(100, 100, 2.0), (1_000, 10, 4.0)];
const ROWS: usize = 10_000;
/// Agents that speak in turn: no two messages of one of them stand together.
const SPEAKERS: usize = 10;

pub fn run(effort: Effort, table: &mut Table) {
    let rounds = effort.pick(5, 51);
    for (depth, each, goal) in SHAPES {
        let folder = raw::folder();
        let file = folder.path().join("ours.db");
        let url = StoreUrl::Sqlite(file.clone());
        let engine = tree::start(&url);
        let leaf = tree::chain(&engine.handle, depth, each);
        // A restart: the messages are in the index now, as they are for all but the newest.
        tree::stop(engine);
        let engine = tree::start(&url);
        let bare = Connection::open(&file).unwrap();
        let ours = || millis(|| assert_eq!(runtime().block_on(engine.handle.replay(leaf)).unwrap().len(), ROWS));
        let pairs = in_turns(rounds, ours, || millis(|| assert_eq!(scan(&bare), ROWS)));
        table.add(
            format!("replay of {depth} × {each} on SQLite, against a bare scan"),
            Unit::Millis,
            pairs,
            Goal::AtMost(goal),
        );
        tree::stop(engine);
    }
    interleaved(rounds, table);
    let server = Server::own(Durability::None);
    for (depth, each, _) in SHAPES {
        let database = server.database();
        let url: StoreUrl = database.url().parse().unwrap();
        let engine = tree::start(&url);
        let leaf = tree::chain(&engine.handle, depth, each);
        tree::stop(engine);
        let engine = tree::start(&url);
        let original = runtime().block_on(Original::build(&database.url(), depth, each));
        let ours = || millis(|| assert_eq!(runtime().block_on(engine.handle.replay(leaf)).unwrap().len(), ROWS));
        let theirs = || millis(|| assert_eq!(runtime().block_on(original.replay(depth)), ROWS));
        let pairs = in_turns(effort.pick(3, 15), ours, theirs);
        let what = format!("replay of {depth} × {each} on PostgreSQL, against two queries for each ancestor");
        table.add(what, Unit::Millis, pairs, Goal::AtMost(1.0));
        tree::stop(engine);
    }
}

/// One history of many that were written at the same time: each of its messages stands alone in the log.
fn interleaved(rounds: usize, table: &mut Table) {
    let folder = raw::folder();
    let file = folder.path().join("ours.db");
    let url = StoreUrl::Sqlite(file.clone());
    let engine = tree::start(&url);
    let root = tree::found(&engine.handle);
    let agents: Vec<_> = (0..SPEAKERS).map(|_| tree::fork(&engine.handle, root)).collect();
    tree::say_in_turn(&engine.handle, &agents, ROWS as u64);
    tree::stop(engine);
    let engine = tree::start(&url);
    let bare = Connection::open(&file).unwrap();
    let ours = || millis(|| assert_eq!(runtime().block_on(engine.handle.replay(agents[0])).unwrap().len(), ROWS));
    let pairs = in_turns(rounds, ours, || millis(|| assert_eq!(scan(&bare), ROWS)));
    let what = format!("replay of one of {SPEAKERS} interleaved histories on SQLite, against a bare scan");
    table.add(what, Unit::Millis, pairs, Goal::Open);
    tree::stop(engine);
}

/// As many rows of the same log, one after the other.
fn scan(connection: &Connection) -> usize {
    let mut select =
        connection.prepare_cached("SELECT id, body FROM events WHERE id > 0 ORDER BY id LIMIT ?1").unwrap();
    let mut rows = select.query([ROWS]).unwrap();
    let mut found: Vec<(i64, String)> = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        found.push((row.get(0).unwrap(), row.get(1).unwrap()));
    }
    found.len()
}

/// The pattern of the system that this one learns from: for each ancestor it asks for the last clear, then for the range.
struct Original {
    client: tokio_postgres::Client,
}

impl Original {
    async fn build(url: &str, depth: u64, each: u64) -> Self {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        let text = "x".repeat(MESSAGE_BYTES);
        client
            .batch_execute(&format!(
                "CREATE TABLE messages (id BIGSERIAL PRIMARY KEY, agent_uuid TEXT, kind TEXT, content TEXT, created_at TIMESTAMPTZ DEFAULT now());
                 INSERT INTO messages (agent_uuid, kind, content)
                 SELECT 'agent' || agent, 'assistant', '{text}' FROM generate_series(1, {depth}) agent, generate_series(1, {each}) ORDER BY agent;
                 CREATE INDEX ON messages (agent_uuid, id);
                 ANALYZE messages;"
            ))
            .await
            .unwrap();
        Self { client }
    }

    async fn replay(&self, depth: u64) -> usize {
        let clear = "SELECT max(id) FROM messages WHERE agent_uuid = $1 AND kind = 'clear'";
        let range = "SELECT id, kind, content FROM messages WHERE agent_uuid = $1 AND id > $2 ORDER BY id";
        let clear = self.client.prepare(clear).await.unwrap();
        let range = self.client.prepare(range).await.unwrap();
        let mut found: Vec<(i64, String, String)> = Vec::new();
        for agent in 1..=depth {
            let name = format!("agent{agent}");
            let last: Option<i64> = self.client.query_one(&clear, &[&name]).await.unwrap().get(0);
            let rows = self.client.query(&range, &[&name, &last.unwrap_or(0)]).await.unwrap();
            found.extend(rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))));
        }
        found.len()
    }
}
