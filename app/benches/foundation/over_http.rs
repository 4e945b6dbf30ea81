//! Durable appends over HTTP: keep-alive clients of a real daemon.

use crate::Effort;
use crate::daemon::Daemon;
use crate::raw::{self, GroupCommit, Producer};
use crate::table::{Goal, Table, Unit, in_turns};
use crate::wire::Client;

pub fn run(effort: Effort, table: &mut Table) {
    let folder = raw::folder();
    let runtime = raw::runtime();
    let daemon = Daemon::start(folder.path());
    let bare = GroupCommit::new(folder.path());
    for (clients, goal) in [(1, 0.5), (8, 0.55), (64, 0.25)] {
        let mut ours: Vec<Poster> = (0..clients).map(|_| runtime.block_on(Poster::connect(&daemon))).collect();
        let mut rival = bare.producers(clients);
        let turn = effort.turn();
        let pairs = in_turns(
            effort.rounds(),
            || raw::rate(&runtime, &mut ours, turn),
            || raw::rate(&runtime, &mut rival, turn),
        );
        let what = format!("durable append over HTTP, {clients} clients, against S");
        table.add(what, Unit::PerSecond, pairs, Goal::AtLeast(goal));
    }
}

/// A client that speaks for an agent of its own.
pub struct Poster {
    client: Client,
    request: Vec<u8>,
}

impl Poster {
    pub async fn connect(daemon: &Daemon) -> Self {
        Self { client: Client::connect(daemon.address).await, request: daemon.message_request().await }
    }
}

impl Producer for Poster {
    async fn append(&mut self) {
        self.client.ask(&self.request).await;
    }
}
