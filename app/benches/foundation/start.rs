//! From nothing to ready, with ten thousand agents and a long history behind them.

use crate::Effort;
use crate::append;
use crate::daemon::Daemon;
use crate::over_http::Poster;
use crate::raw::{self, Producer as _};
use crate::rival;
use crate::table::{Goal, Table, Unit, in_turns};
use hatchery::store::{self, Batch, Row, Store, StoreUrl};
use hatchery_core::MessageKind;
use hatchery_core::agent::Origin;
use hatchery_core::event::{AgentEvent, MessageEvent};
use hatchery_core::{AgentId, Event, EventId, Record, Timestamp};
use rusqlite::Connection;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;
use tempfile::TempDir;

/// Rows in one append when a log is made.
const BULK: usize = 10_000;

pub fn run(effort: Effort, table: &mut Table) {
    let agents = effort.pick(1_000, 10_000);
    let long = Project::make(agents, effort.pick(20_000, 1_000_000));
    let short = Project::make(agents, effort.pick(2_000, 100_000));
    let rounds = effort.pick(3, 15);
    let size = format!("{agents} agents, {} messages", long.messages);

    let pairs = in_turns(rounds, || long.open_ms(), || millis(|| open_bare(&long.file)));
    table.add(format!("start, in process, {size}, against the file bare"), Unit::Millis, pairs, Goal::AtMost(5.0));
    let pairs = in_turns(rounds, || long.open_ms(), || short.open_ms());
    table.add(format!("start, in process, {size}, against {}", short.messages), Unit::Millis, pairs, Goal::AtMost(1.2));

    let pairs = in_turns(rounds, || long.ready_ms(), || long.bare_process_ms());
    table.add(format!("process start to ready, {size}, against the file bare"), Unit::Millis, pairs, Goal::AtMost(5.0));
    let pairs = in_turns(rounds, || long.ready_ms(), || short.ready_ms());
    table.add(
        format!("process start to ready, {size}, against {}", short.messages),
        Unit::Millis,
        pairs,
        Goal::AtMost(1.2),
    );

    let tail = effort.pick(900, 9_900);
    long.add_tail(tail);
    let pairs = in_turns(rounds, || long.ready_ms(), || long.bare_process_ms());
    let what = format!("process start to ready after kill -9 with a tail of {tail}, against the file bare");
    table.add(what, Unit::Millis, pairs, Goal::Open);
}

struct Project {
    folder: TempDir,
    file: PathBuf,
    messages: u64,
}

impl Project {
    /// A log, the snapshot of a daemon that ended in order, and beside them the agents as plain rows.
    fn make(agents: u64, messages: u64) -> Self {
        let folder = raw::folder();
        std::fs::create_dir(folder.path().join(".hatchery")).unwrap();
        let file = folder.path().join(".hatchery/hatchery.db");
        fill(&file, agents, messages);
        let project = Self { folder, file, messages };
        project.open_ms();
        add_bare_rows(&project.file, agents);
        // Makes the token, which is made once and not at every start.
        project.ready_ms();
        project
    }

    /// Store and engine. Stopping them is not counted.
    fn open_ms(&self) -> f64 {
        let runtime = raw::runtime();
        let start = Instant::now();
        let engine = append::start(&runtime, &StoreUrl::Sqlite(self.file.clone()));
        let took = start.elapsed();
        engine.handle.stop();
        engine.join().unwrap();
        took.as_secs_f64() * 1e3
    }

    /// The whole daemon, to its readiness line. It is killed, so it leaves everything as it was.
    fn ready_ms(&self) -> f64 {
        millis(|| Daemon::start(self.folder.path()))
    }

    fn bare_process_ms(&self) -> f64 {
        millis(|| {
            let output = rival::again("open", &[self.file.to_str().unwrap()]).stdin(Stdio::null()).output().unwrap();
            assert!(output.status.success());
        })
    }

    /// Events after the last snapshot, by a daemon that is then killed.
    fn add_tail(&self, events: usize) {
        const CLIENTS: usize = 50;
        let daemon = Daemon::start(self.folder.path());
        raw::runtime().block_on(async {
            let mut posters = Vec::new();
            for _ in 0..CLIENTS {
                posters.push(Poster::connect(&daemon).await);
            }
            let load = posters.into_iter().map(|mut poster| {
                tokio::spawn(async move {
                    for _ in 1..events / CLIENTS {
                        poster.append().await;
                    }
                })
            });
            for task in load.collect::<Vec<_>>() {
                task.await.unwrap();
            }
        });
        daemon.kill();
    }
}

type Bare = (Vec<u8>, Option<Vec<u8>>, Option<String>, i64, i64, Option<i64>);

/// The rival: opens a file and reads its agents as plain rows. Gives them, and the open file.
pub fn open_bare(file: &Path) -> (Vec<Bare>, Connection) {
    let connection = Connection::open(file).unwrap();
    let mut select =
        connection.prepare("SELECT id, parent, name, state, created, last_message FROM agents_bare").unwrap();
    let agents = select
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    drop(select);
    (agents, connection)
}

/// Makes a log of so many agents and so many messages, in turn to each agent. Gives the number of events.
pub fn fill(file: &Path, agents: u64, messages: u64) -> u64 {
    let runtime = raw::runtime();
    let store = store::open(&StoreUrl::Sqlite(file.to_owned()), runtime.handle()).unwrap();
    // No daemon has made the folder, so somebody has to say that it is ours.
    hatchery::project::Project::find(file.parent().unwrap()).unwrap().adopt_data(false).unwrap();
    let created = (0..agents).map(|at| Event::Agent {
        agent: agent(at),
        what: AgentEvent::Created {
            parent: at.checked_sub(1).map(|parent| agent(parent / 2)),
            origin: at.checked_sub(1).map(|parent| Origin { agent: agent(parent / 2), upto: None }),
            name: Some(format!("agent {at}")),
            provider: None,
            model: None,
            session: None,
            hatch_by: None,
        },
    });
    let said = (0..messages).map(|at| {
        Event::Message(MessageEvent::Added {
            agent: agent(at % agents),
            kind: MessageKind::Assistant,
            content: raw::body(),
            to: None,
            source_id: None,
        })
    });
    let mut rows = Vec::with_capacity(BULK);
    for (id, event) in (1..).map(EventId).zip(created.chain(said)) {
        let stream = event.stream().to_string();
        let record = Record { id, ts: Timestamp(1_700_000_000_000), session: None, event };
        rows.push(Row { id, stream, body: record.body() });
        if rows.len() == BULK {
            append_all(store.as_ref(), &mut rows);
        }
    }
    append_all(store.as_ref(), &mut rows);
    agents + messages
}

fn append_all(store: &dyn Store, rows: &mut Vec<Row>) {
    if let Some(first) = rows.first() {
        let seen = EventId(first.id.0 - 1);
        store.append(Batch { seen, reads: &[], rows, fixed: false }).unwrap();
        rows.clear();
    }
}

fn add_bare_rows(file: &Path, agents: u64) {
    let mut connection = Connection::open(file).unwrap();
    let transaction = connection.transaction().unwrap();
    transaction
        .execute_batch(
            "CREATE TABLE agents_bare (id BLOB PRIMARY KEY, parent BLOB, name TEXT, state INTEGER, created INTEGER, last_message INTEGER)",
        )
        .unwrap();
    for at in 0..agents {
        let parent = at.checked_sub(1).map(|parent| agent(parent / 2).as_bytes().to_vec());
        let id = agent(at).as_bytes().to_vec();
        let row = (id, parent, format!("agent {at}"), 0, 1_700_000_000_000_i64, agents + at);
        transaction.execute("INSERT INTO agents_bare VALUES (?1, ?2, ?3, ?4, ?5, ?6)", row).unwrap();
    }
    transaction.commit().unwrap();
}

/// Ids look random, as real ones do, and are the same in every run.
fn agent(at: u64) -> AgentId {
    let mixed = (at + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&mixed.to_be_bytes());
    bytes[8..].copy_from_slice(&(mixed ^ (mixed >> 29)).to_be_bytes());
    AgentId::from_bytes(bytes)
}

fn millis<T>(work: impl FnOnce() -> T) -> f64 {
    let start = Instant::now();
    let done = black_box(work());
    let took = start.elapsed();
    // Closing is not counted, on either side.
    drop(done);
    took.as_secs_f64() * 1e3
}
