//! Random commands, a random clock, two writers on one log, and crashes at every boundary, over the pure core.
//!
//! A failure prints its seed; `HATCHERY_SEED=<seed> cargo test -p hatchery-core --test simulation` repeats it alone.

mod chance;
mod follower;
mod log;
mod shell;
mod witness;

use shell::Shell;
use std::collections::BTreeSet;

const SEEDS: u64 = 1_500;
/// Enough for sessions to start, idle, end and be asked for again, and short enough to read when it fails.
const TURNS: usize = 80;

/// What all seeds together must have met: a simulation that meets no crash or conflict proves nothing about them.
const MARKS: [&str; 43] = [
    "agent_awake",
    "agent_dead",
    "agent_exists",
    "agent_expired",
    "bad_name",
    "clock ran backwards",
    "conflict",
    "conflict over ids alone",
    "crash after Acted",
    "crash after Appended",
    "crash after Decided",
    "crash after Planned",
    "crash after Published",
    "expired",
    "follower read the log",
    "fork cancelled",
    "fork had waited",
    "fork waits",
    "fork_pending",
    "hatch_out_of_range",
    "hatched",
    "idle_out_of_range",
    "inactive",
    "kills_ancestor",
    "label_too_long",
    "mail read",
    "moved up",
    "no_mail",
    "no_such_mark",
    "not_in_history",
    "not_unread",
    "recovered from a snapshot",
    "remark_too_long",
    "renumbered",
    "root_exists",
    "root_is_immortal",
    "session_ending",
    "session_exists",
    "session_not_ending",
    "session_over",
    "settled beside another event",
    "unknown_agent",
    "unknown_session",
];

#[test]
fn whatever_crashes_when_nothing_recorded_is_lost_and_everything_asked_for_comes_about() {
    if let Some(seed) = asked_seed() {
        live_through(seed);
        return;
    }
    let mut met = BTreeSet::new();
    for seed in 0..SEEDS {
        met.extend(live_through(seed));
    }
    assert_eq!(met, BTreeSet::from(MARKS));
}

fn live_through(seed: u64) -> BTreeSet<&'static str> {
    let _told = Told(seed);
    let mut shell = Shell::new(seed);
    for _ in 0..TURNS {
        shell.turn();
    }
    shell.run_to_quiet();
    shell.met
}

#[expect(clippy::disallowed_methods, reason = "which history to repeat is the tester's choice; the core never sees it")]
fn asked_seed() -> Option<u64> {
    let text = std::env::var("HATCHERY_SEED").ok()?;
    Some(text.parse().expect("HATCHERY_SEED is a number"))
}

/// Names the seed when its history ends in a panic.
struct Told(u64);

impl Drop for Told {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failed; repeat it with HATCHERY_SEED={}", self.0);
        }
    }
}
