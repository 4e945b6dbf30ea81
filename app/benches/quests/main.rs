//! How fast quests are: steps that agents do, a quest that grows, and steps as the engine alone sees them. Each figure stands beside its
//! limit, measured in the same run where it can be. Never a test: a figure depends on the machine.
//!
//! `cargo bench --bench quests [-- FILTER…] [--quick]` prints one table. A filter is the beginning of a group's name.

#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on has nothing better to do than stop")]

#[path = "../foundation/daemon.rs"]
#[allow(dead_code, reason = "the foundation's benchmarks use the rest")]
mod daemon;
mod durable;
#[path = "../foundation/effort.rs"]
#[allow(dead_code, reason = "the foundation's benchmarks use the rest")]
mod effort;
mod growth;
mod hands;
#[path = "../foundation/raw.rs"]
#[allow(dead_code, reason = "the foundation's benchmarks use the rest")]
mod raw;
mod schedule;
#[path = "../runs/shop.rs"]
#[allow(dead_code, reason = "the benchmarks of runs use the rest")]
mod shop;
#[path = "../foundation/table.rs"]
#[allow(dead_code, reason = "the foundation's benchmarks use the rest")]
mod table;

#[path = "../foundation/wire.rs"]
#[allow(dead_code, reason = "the foundation's benchmarks use the rest")]
mod wire;

use effort::{Effort, Group};

const GROUPS: [(&str, Group); 4] =
    [("schedule", schedule::run), ("growth", growth::run), ("durable", durable::one), ("crowd", durable::many)];

fn main() {
    effort::measure(&GROUPS);
}
