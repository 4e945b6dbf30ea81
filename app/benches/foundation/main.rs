//! How fast the foundation is: every figure stands beside its raw limit, and both are measured in turns in the same run,
//! so that a busy machine disturbs both sides alike. Never a test: a figure depends on the machine.
//!
//! `cargo bench --bench foundation [-- FILTER…] [--quick]` prints one table. A filter is the beginning of a group's name.
//! `--quick` is a smoke run of the whole: its figures say little.
//!
//! The servers that we are compared with run as children of this program, as the daemon does: see [`rival`].

#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on has nothing better to do than stop")]

mod append;
mod crowd;
mod daemon;
mod delivery;
mod fanout;
mod memory;
mod over_http;
mod postgres;
mod raw;
mod replay;
mod rival;
mod start;
#[allow(dead_code, reason = "other benchmarks use the rest")]
mod table;
mod wire;

use std::time::Duration;
use table::Table;

/// How much is measured.
#[derive(Clone, Copy)]
struct Effort {
    quick: bool,
}

impl Effort {
    fn pick<T>(self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }

    /// Many short rounds: what disturbs one of them leaves the median alone.
    fn rounds(self) -> usize {
        self.pick(3, 15)
    }

    /// How long one side has its turn.
    fn turn(self) -> Duration {
        Duration::from_millis(self.pick(100, 400))
    }
}

type Group = fn(Effort, &mut Table);

const GROUPS: [(&str, Group); 8] = [
    ("append", append::run),
    ("http", over_http::run),
    ("delivery", delivery::run),
    ("fanout", fanout::run),
    ("replay", replay::run),
    ("postgres", postgres::run),
    ("start", start::run),
    ("memory", memory::run),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some((rival::FLAG, rest)) = arguments.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        return rival::serve(rest);
    }
    raise_descriptor_limit();
    let effort = Effort { quick: arguments.iter().any(|argument| argument == "--quick") };
    let filters: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let mut table = Table::default();
    for (name, measure) in GROUPS {
        if filters.is_empty() || filters.iter().any(|filter| name.starts_with(filter.as_str())) {
            eprintln!("measuring {name} …");
            measure(effort, &mut table);
        }
    }
    println!("{table}");
}

/// A thousand connections have two ends; children inherit the limit.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
}
