//! How fast agents are as processes: replay, fork and mail, each beside its raw limit, measured in turns in the same run.
//! Never a test: a figure depends on the machine.
//!
//! `cargo bench --bench processes [-- FILTER…] [--quick]` prints one table. A filter is the beginning of a group's name.

#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on has nothing better to do than stop")]

#[path = "../foundation/effort.rs"]
#[allow(dead_code, reason = "the foundation's benchmarks use the rest")]
mod effort;
mod forks;
mod mail;
mod memory;
#[path = "../../tests/it/support/postgres.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod postgres;
#[path = "../foundation/raw.rs"]
#[allow(dead_code, reason = "the foundation's benchmarks use the rest")]
mod raw;
mod replay;
#[path = "../foundation/table.rs"]
#[allow(dead_code, reason = "the foundation's benchmarks use the rest")]
mod table;
mod tree;

use effort::{Effort, Group};
use std::time::Instant;
use tokio::runtime::Runtime;

const GROUPS: [(&str, Group); 4] =
    [("replay", replay::run), ("fork", forks::run), ("mail", mail::run), ("memory", memory::run)];

fn main() {
    effort::measure(&GROUPS);
}

/// The private server's module asks for one.
fn runtime() -> &'static Runtime {
    static RUNTIME: std::sync::LazyLock<Runtime> = std::sync::LazyLock::new(raw::runtime);
    &RUNTIME
}

/// How long it takes, in milliseconds.
fn millis<T>(work: impl FnOnce() -> T) -> f64 {
    let start = Instant::now();
    let done = std::hint::black_box(work());
    let took = start.elapsed().as_secs_f64() * 1_000.0;
    drop(done);
    took
}
