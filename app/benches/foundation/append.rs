//! Durable appends in this process: the engine over SQLite, without a network.

use crate::Effort;
use crate::raw::{self, GroupCommit, Overwrite, Producer};
use crate::table::{Goal, Table, Unit, in_turns};
use hatchery::clock::{SystemClock, new_agent_id};
use hatchery::engine::{Engine, EngineOptions, Handle};
use hatchery::store::{self, StoreUrl};
use hatchery_core::agent::Birth;
use hatchery_core::{AgentId, Command, MessageKind};
use std::sync::Arc;
use tokio::runtime::Runtime;

const MANY: usize = 64;

pub fn run(effort: Effort, table: &mut Table) {
    let folder = raw::folder();
    let runtime = raw::runtime();
    let engine = start(&runtime, &StoreUrl::Sqlite(folder.path().join("ours.db")));
    let producers = producers(&runtime, &engine.handle, MANY);
    let overwrite = Overwrite::new(folder.path());
    let bare = GroupCommit::new(folder.path());

    let (mut one, mut many) = (producers[..1].to_vec(), producers);
    let turn = effort.turn();
    let pairs = in_turns(effort.rounds(), || raw::rate(&runtime, &mut one, turn), || overwrite.rate(turn));
    table.add("durable append, in process, 1 producer, against F", Unit::PerSecond, pairs, Goal::AtLeast(0.75));

    let mut rival = bare.producers(MANY);
    let pairs =
        in_turns(effort.rounds(), || raw::rate(&runtime, &mut many, turn), || raw::rate(&runtime, &mut rival, turn));
    table.add("durable append, in process, 64 producers, against S", Unit::PerSecond, pairs, Goal::AtLeast(0.7));

    engine.handle.stop();
    engine.join().unwrap();
}

pub fn start(runtime: &Runtime, url: &StoreUrl) -> Engine {
    let store = store::open(url, runtime.handle()).unwrap();
    Engine::start(store, Arc::new(SystemClock), EngineOptions::default(), runtime.handle().clone()).unwrap()
}

/// Each speaks for an agent of its own.
pub fn producers(runtime: &Runtime, handle: &Handle, count: usize) -> Vec<Submitter> {
    let root = new_agent_id();
    runtime.block_on(handle.submit(Command::FoundRegistry { agent: root, name: None })).unwrap();
    (0..count)
        .map(|_| {
            let agent = new_agent_id();
            let fork = Command::Fork { parent: root, at: None, birth: Birth::of(agent) };
            runtime.block_on(handle.submit(fork)).unwrap();
            Submitter { handle: handle.clone(), agent }
        })
        .collect()
}

#[derive(Clone)]
pub struct Submitter {
    handle: Handle,
    agent: AgentId,
}

impl Producer for Submitter {
    async fn append(&mut self) {
        let message = Command::AddMessage { agent: self.agent, kind: MessageKind::Assistant, content: raw::body() };
        self.handle.submit(message).await.unwrap();
    }
}
