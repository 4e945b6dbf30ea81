//! Making an agent, whatever the length of the history that it inherits.

use crate::table::{Goal, Table, Unit, in_turns, median};
use crate::{Effort, millis, raw, tree};
use hatchery::engine::Handle;
use hatchery::store::StoreUrl;
use hatchery_core::{AgentId, Command, MessageKind};

/// Appends or forks in one turn.
const TURN: usize = 100;

pub fn run(effort: Effort, table: &mut Table) {
    let folder = raw::folder();
    let engine = tree::start(&StoreUrl::Sqlite(folder.path().join("ours.db")));
    let handle = &engine.handle;
    let root = tree::found(handle);
    let short = tree::fork(handle, root);
    tree::say(handle, short, 1_000);
    let long = tree::fork(handle, root);
    tree::say(handle, long, effort.pick(50_000, 1_000_000));
    let speaker = tree::fork(handle, root);

    let pairs = in_turns(effort.rounds(), || forking(handle, short), || speaking(handle, speaker));
    table.add("fork, against one durable append", Unit::Micros, pairs, Goal::AtMost(1.5));
    let pairs = in_turns(effort.rounds(), || forking(handle, long), || forking(handle, short));
    table.add("fork with a long history, against one with 1,000 messages", Unit::Micros, pairs, Goal::AtMost(1.1));
    tree::stop(engine);
}

fn forking(handle: &Handle, parent: AgentId) -> f64 {
    each(|| {
        tree::fork(handle, parent);
    })
}

/// The median of one durable append, in microseconds.
pub fn speaking(handle: &Handle, agent: AgentId) -> f64 {
    each(|| {
        tree::submit(handle, Command::AddMessage { agent, kind: MessageKind::Assistant, content: raw::body() });
    })
}

fn each(mut work: impl FnMut()) -> f64 {
    median((0..TURN).map(|_| millis(&mut work) * 1_000.0).collect())
}
