//! How fast agents that run are: taking in what they say, starting them, and holding many that wait. Each figure stands beside its
//! limit, measured in the same run. Never a test: a figure depends on the machine.
//!
//! `cargo bench --bench runs [-- FILTER…] [--quick]` prints one table. A filter is the beginning of a group's name.

#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on has nothing better to do than stop")]

#[path = "../foundation/effort.rs"]
#[allow(dead_code, reason = "the foundation's benchmarks use the rest")]
mod effort;
mod idle;
mod intake;
#[path = "../foundation/raw.rs"]
#[allow(dead_code, reason = "the foundation's benchmarks use the rest")]
mod raw;
mod shop;
mod spawn;
#[path = "../foundation/table.rs"]
#[allow(dead_code, reason = "the foundation's benchmarks use the rest")]
mod table;

use effort::{Effort, Group};

const GROUPS: [(&str, Group); 3] = [("intake", intake::run), ("spawn", spawn::run), ("idle", idle::run)];

fn main() {
    effort::measure(&GROUPS);
}
