//! Mail: sending it, claiming it, and how long it takes to reach one who waits.

use crate::forks::speaking;
use crate::raw::{self, Overwrite};
use crate::table::{Goal, Table, Unit, in_turns, median};
use crate::{Effort, runtime, tree};
use hatchery::engine::Handle;
use hatchery::mail_reader;
use hatchery::store::StoreUrl;
use hatchery_core::{Address, AgentId, Command};
use std::time::{Duration, Instant};

/// Mails in one turn.
const TURN: usize = 200;
/// Deliveries to one who waits in one turn.
const WAITS: usize = 50;
/// Those who take mail out of one mailbox at the same time.
const CLAIMANTS: usize = 8;
const PATIENCE: Duration = Duration::from_secs(10);

pub fn run(effort: Effort, table: &mut Table) {
    let folder = raw::folder();
    let engine = tree::start(&StoreUrl::Sqlite(folder.path().join("ours.db")));
    let handle = &engine.handle;
    let root = tree::found(handle);
    let [writer, reader] = [tree::fork(handle, root), tree::fork(handle, root)];
    let overwrite = Overwrite::new(folder.path());
    let turn = Duration::from_millis(effort.pick(100, 400));

    let pairs = in_turns(effort.rounds(), || sending(handle, writer, reader), || overwrite.rate(turn));
    table.add("mail sent, against F", Unit::PerSecond, pairs, Goal::AtLeast(0.75));
    // What was sent above is there to be claimed, and more.
    let pairs = in_turns(effort.rounds(), || claiming(handle, writer, reader), || overwrite.rate(turn));
    table.add("mail claimed by one of many, against F", Unit::PerSecond, pairs, Goal::AtLeast(0.45));
    let pairs = in_turns(effort.rounds(), || racing(handle, writer, reader), || overwrite.rate(turn));
    table.add(format!("mail claimed by {CLAIMANTS} who race, against F"), Unit::PerSecond, pairs, Goal::Open);
    let idle = tree::fork(handle, root);
    let pairs = in_turns(effort.rounds(), || reaching(handle, writer, idle), || speaking(handle, writer));
    table.add("send to a blocked wait, against one durable append", Unit::Micros, pairs, Goal::AtMost(2.0));
    tree::stop(engine);
}

fn send(from: AgentId, to: AgentId) -> Command {
    Command::SendMail { from: Address::Agent(from), to: Address::Agent(to), body: raw::body() }
}

fn sending(handle: &Handle, from: AgentId, to: AgentId) -> f64 {
    let start = Instant::now();
    for _ in 0..TURN {
        tree::submit(handle, send(from, to));
    }
    TURN as f64 / start.elapsed().as_secs_f64()
}

/// Claims one after the other; each finds many waiting.
fn claiming(handle: &Handle, from: AgentId, to: AgentId) -> f64 {
    fill(handle, from, to);
    let start = Instant::now();
    for _ in 0..TURN {
        let mail = runtime().block_on(mail_reader::next(handle, Address::Agent(to), Duration::ZERO)).unwrap();
        assert!(mail.is_some());
    }
    TURN as f64 / start.elapsed().as_secs_f64()
}

/// Claims at the same time; each mail has one taker.
fn racing(handle: &Handle, from: AgentId, to: AgentId) -> f64 {
    fill(handle, from, to);
    let start = Instant::now();
    let racers: Vec<_> = (0..CLAIMANTS)
        .map(|_| {
            let handle = handle.clone();
            runtime().spawn(async move {
                for _ in 0..TURN / CLAIMANTS {
                    assert!(mail_reader::next(&handle, Address::Agent(to), Duration::ZERO).await.unwrap().is_some());
                }
            })
        })
        .collect();
    for racer in racers {
        runtime().block_on(racer).unwrap();
    }
    TURN as f64 / start.elapsed().as_secs_f64()
}

fn fill(handle: &Handle, from: AgentId, to: AgentId) {
    for _ in 0..TURN {
        tree::submit(handle, send(from, to));
    }
}

/// From the start of sending to the end of waiting.
fn reaching(handle: &Handle, from: AgentId, to: AgentId) -> f64 {
    let times = (0..WAITS).map(|_| {
        let waiter = handle.clone();
        let waiting = runtime().spawn(async move {
            let mail = mail_reader::next(&waiter, Address::Agent(to), PATIENCE).await.unwrap();
            (mail.is_some(), Instant::now())
        });
        // Until it waits: a second wait for mail of nobody is answered after the first was taken in.
        drop(runtime().block_on(mail_reader::next(handle, Address::Agent(from), Duration::ZERO)).unwrap());
        let start = Instant::now();
        tree::submit(handle, send(from, to));
        let (came, at) = runtime().block_on(waiting).unwrap();
        assert!(came);
        at.duration_since(start).as_secs_f64() * 1_000_000.0
    });
    median(times.collect())
}
