//! Appends to the shared store, beside inserts of 100 rows by eight bare writers into a table of one index.
//!
//! A private server is started for it, with full durability. Without the server's programs there is nothing to measure.

/// The tests' own private server.
#[path = "../../tests/it/support/postgres.rs"]
#[expect(dead_code, reason = "the tests also stop and kill it")]
mod server;

use crate::Effort;
use crate::append;
use crate::raw::{self, Producer};
use crate::table::{Goal, Table, Unit, in_turns};
use hatchery::store::{self, Batch, Row, Store, StoreUrl};
use hatchery_core::EventId;
use server::{Durability, Server};
use std::process::Command;
use std::sync::{Arc, LazyLock};
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls, Statement};

const WRITERS: usize = 8;
const ROWS: usize = 100;

pub fn run(effort: Effort, table: &mut Table) {
    if !is_installed() {
        eprintln!("  PostgreSQL is not installed: left out");
        return;
    }
    let runtime = runtime();
    let server = Server::own(Durability::Full);
    let (ours, plain, bare) = (server.database(), server.database(), server.database());
    bare.run_sql("CREATE TABLE log (id BIGSERIAL PRIMARY KEY, body TEXT NOT NULL)");
    let mut rival: Vec<Inserter> = (0..WRITERS).map(|_| runtime.block_on(Inserter::connect(&bare.url()))).collect();
    let turn = effort.turn();
    let rounds = effort.rounds();

    let engine = append::start(runtime, &ours.url().parse().unwrap());
    let mut producers = append::producers(runtime, &engine.handle, WRITERS * ROWS);
    let pairs = in_turns(
        rounds,
        || raw::rate(runtime, &mut producers, turn),
        || ROWS as f64 * raw::rate(runtime, &mut rival, turn),
    );
    let against = format!("against {ROWS}-row inserts by {WRITERS} bare writers");
    let what = format!("PostgreSQL, engine under {} producers, {against}", WRITERS * ROWS);
    table.add(what, Unit::PerSecond, pairs, Goal::AtLeast(0.6));
    engine.handle.stop();
    engine.join().unwrap();

    let store = open(&plain.url().parse().unwrap());
    for rows in [ROWS, 512] {
        let mut appender = vec![Appender::new(Arc::clone(&store), rows)];
        let pairs = in_turns(
            rounds,
            || rows as f64 * raw::rate(runtime, &mut appender, turn),
            || ROWS as f64 * raw::rate(runtime, &mut rival, turn),
        );
        let what = format!("PostgreSQL, one appender of {rows}-row batches, {against}");
        table.add(what, Unit::PerSecond, pairs, Goal::Open);
    }
}

/// Whether the programs are where the private server looks for them.
fn is_installed() -> bool {
    let found = Command::new("initdb").arg("--version").output().is_ok_and(|output| output.status.success());
    found || std::fs::exists("/usr/lib/postgresql").unwrap_or(false)
}

/// Carries the connections of both sides, and the server's.
fn runtime() -> &'static Runtime {
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(raw::runtime);
    &RUNTIME
}

fn open(url: &StoreUrl) -> Arc<dyn Store> {
    store::open(url, runtime().handle()).unwrap()
}

/// The store without an engine: one batch after the other.
struct Appender {
    store: Arc<dyn Store>,
    rows: Arc<[Row]>,
}

impl Appender {
    fn new(store: Arc<dyn Store>, count: usize) -> Self {
        let row = Row { id: EventId(1), stream: "agent:bare".into(), body: format!(r#"{{"body":"{}"}}"#, raw::body()) };
        Self { store, rows: vec![row; count].into() }
    }
}

impl Producer for Appender {
    async fn append(&mut self) {
        let (store, rows) = (Arc::clone(&self.store), Arc::clone(&self.rows));
        let append = move || {
            let seen = store.head().unwrap();
            store.append(Batch { seen, reads: &[], rows: &rows, fixed: false }).unwrap()
        };
        tokio::task::spawn_blocking(append).await.unwrap();
    }
}

/// A connection that inserts 100 rows at a time.
struct Inserter {
    client: Client,
    insert: Statement,
    bodies: Vec<String>,
}

impl Inserter {
    async fn connect(url: &str) -> Self {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
        // Ends with its client.
        tokio::spawn(connection);
        let insert = client.prepare("INSERT INTO log (body) SELECT unnest($1::text[])").await.unwrap();
        Self { client, insert, bodies: vec![raw::body(); ROWS] }
    }
}

impl Producer for Inserter {
    async fn append(&mut self) {
        self.client.execute(&self.insert, &[&self.bodies]).await.unwrap();
    }
}
