//! What a step costs at the end of a large quest, against the start of it.

use crate::Effort;
use crate::hands;
use crate::shop::Shop;
use crate::table::{Goal, Pairs, Table, Unit, median};
use hatchery_core::QuestId;
use std::time::Instant;

pub fn run(effort: Effort, table: &mut Table) {
    for (count, goal) in [(1_000, Goal::AtMost(1.2)), (10_000, Goal::Open)] {
        let count = effort.pick(count / 10, count);
        let rounds = effort.pick(1, 3);
        let pairs = (0..rounds).map(|_| ends(count)).collect();
        let what = format!("a step of {count} in a random graph, the last tenth against the first, engine only");
        table.add(what, Unit::Micros, Pairs::new(pairs), goal);
    }
}

/// The median cost of a step among the last tenth and among the first.
fn ends(count: usize) -> (f64, f64) {
    let shop = Shop::open();
    let quest_spec = hands::quest_spec(8);
    let quest = shop.runtime.block_on(hands::begin(&shop.handle, quest_spec, hands::random(count)));
    let costs: Vec<f64> = shop.runtime.block_on(async {
        let mut costs = Vec::with_capacity(count);
        while costs.len() < count {
            let start = Instant::now();
            one(&shop, quest).await;
            costs.push(start.elapsed().as_secs_f64() * 1e6);
        }
        costs
    });
    let tenth = count / 10;
    (median(costs[count - tenth..].to_vec()), median(costs[..tenth].to_vec()))
}

/// Does one step from its start to its end.
async fn one(shop: &Shop, quest: QuestId) {
    let (step, agent) = hands::at_work(&shop.handle, quest).into_iter().next().unwrap();
    hands::spawn(&shop.handle, agent).await;
    hands::signal(&shop.handle, agent, step).await;
    hands::leave(&shop.handle, agent).await;
}
