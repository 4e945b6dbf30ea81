//! Durable steps as the engine alone sees them: no process, every report on disk before it is answered.

use crate::Effort;
use crate::hands;
use crate::raw::{self, Overwrite};
use crate::shop::Shop;
use crate::table::{Goal, Pairs, Table, Unit, median};
use hatchery::engine::Handle;
use hatchery_core::AgentId;
use hatchery_core::quest::StepId;
use std::time::Instant;

/// What others reach on two cores, where F is 86 µs: Restate's Rust SDK with two partitions, and DBOS.
const RESTATE_PER_SECOND: f64 = 7_100.0;
const DBOS_PER_SECOND: f64 = 490.0;
const CLIENTS: usize = 32;
/// Each client has a quest with so many agents at work at once.
const SLOTS: u32 = 64;

/// One at a time: the signal of a step, and the whole life of a step, against F.
pub fn one(effort: Effort, table: &mut Table) {
    let rounds = effort.pick(3, 15);
    let (mut signals, mut lives) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let (signal, life, f) = round(effort.pick(50, 200));
        signals.push((signal, f));
        lives.push((life, f));
    }
    table.add(
        "a step's signal recorded, p50, one at a time, against F's",
        Unit::Micros,
        Pairs::new(signals),
        Goal::AtMost(1.4),
    );
    table.add("a step from start to end (four reports), p50, against F's", Unit::Micros, Pairs::new(lives), Goal::Open);
}

fn round(count: usize) -> (f64, f64, f64) {
    let shop = Shop::open();
    let folder = raw::folder();
    let overwrite = Overwrite::new(folder.path());
    let quest_spec = hands::quest_spec(1);
    let chain = hands::plan(count, |number| number.checked_sub(1).into_iter().collect());
    let quest = shop.runtime.block_on(hands::begin(&shop.handle, quest_spec, chain));
    let (mut signals, mut lives, mut fs) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..count {
        let (step, agent) = hands::at_work(&shop.handle, quest).into_iter().next().unwrap();
        shop.runtime.block_on(async {
            let start = Instant::now();
            hands::spawn(&shop.handle, agent).await;
            let signalling = Instant::now();
            hands::signal(&shop.handle, agent, step).await;
            signals.push(signalling.elapsed().as_secs_f64() * 1e6);
            hands::leave(&shop.handle, agent).await;
            lives.push(start.elapsed().as_secs_f64() * 1e6);
        });
        let start = Instant::now();
        overwrite.once();
        fs.push(start.elapsed().as_secs_f64() * 1e6);
    }
    (median(signals), median(lives), median(fs))
}

/// Thirty-two at once, each with a quest of its own: signals per second, and whole steps per second.
pub fn many(effort: Effort, table: &mut Table) {
    let count = effort.pick(20, 100);
    let (mut signals, mut lives) = (Vec::new(), Vec::new());
    for _ in 0..effort.pick(2, 15) {
        let (signal, life) = crowd(count);
        signals.push(signal);
        lives.push(life);
    }
    let against = |limit: f64, rates: &[f64]| Pairs::against(limit, rates.iter().copied());
    table.add(
        "steps' signals recorded, 32 at once, against Restate",
        Unit::PerSecond,
        against(RESTATE_PER_SECOND, &signals),
        Goal::AtLeast(8.0),
    );
    table.add(
        "steps' signals recorded, 32 at once, against DBOS",
        Unit::PerSecond,
        against(DBOS_PER_SECOND, &signals),
        Goal::AtLeast(50.0),
    );
    table.add(
        "steps from start to end (four reports), 32 at once, against Restate",
        Unit::PerSecond,
        against(RESTATE_PER_SECOND, &lives),
        Goal::Open,
    );
}

/// Signals are given by agents that are there already; then each client takes steps through their whole lives.
fn crowd(count: usize) -> (f64, f64) {
    let shop = Shop::open();
    let quest_spec = hands::quest_spec(SLOTS);
    let begin = |_| hands::begin(&shop.handle, quest_spec.clone(), hands::plan(SLOTS as usize + count, |_| Vec::new()));
    let quests = Vec::from_iter((0..CLIENTS).map(|client| shop.runtime.block_on(begin(client))));
    let at_work = || quests.iter().map(|quest| hands::at_work(&shop.handle, *quest)).collect::<Vec<_>>();
    let ready = at_work();
    together(&shop, ready.clone(), |handle, _, agent| async move { hands::spawn(&handle, agent).await });
    let signals = together(&shop, ready.clone(), |handle, step, agent| async move {
        hands::signal(&handle, agent, step).await;
    });
    together(&shop, ready, |handle, _, agent| async move { hands::leave(&handle, agent).await });
    let lives = together(&shop, at_work(), |handle, step, agent| async move {
        hands::spawn(&handle, agent).await;
        hands::signal(&handle, agent, step).await;
        hands::leave(&handle, agent).await;
    });
    (signals, lives)
}

/// All clients at once, each doing something for one of its agents after the other. Gives how many a second were done.
fn together<W: Future<Output = ()> + Send>(
    shop: &Shop,
    clients: Vec<Vec<(StepId, AgentId)>>,
    work: impl Fn(Handle, StepId, AgentId) -> W + Copy + Send + 'static,
) -> f64 {
    let total = clients.iter().map(Vec::len).sum::<usize>() as f64;
    let start = Instant::now();
    let client = |agents: Vec<(StepId, AgentId)>| {
        let handle = shop.handle.clone();
        shop.runtime.spawn(async move {
            for (step, agent) in agents {
                work(handle.clone(), step, agent).await;
            }
        })
    };
    let clients: Vec<_> = clients.into_iter().map(client).collect();
    shop.runtime.block_on(async {
        for client in clients {
            client.await.unwrap();
        }
    });
    total / start.elapsed().as_secs_f64()
}
