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
mod effort;
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

use effort::{Effort, Group};

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
    effort::measure(&GROUPS);
}

/// A thousand connections have two ends; children inherit the limit.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
}
