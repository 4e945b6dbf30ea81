//! Random commands, a random clock, two writers on one log, and crashes at every boundary, over the pure core; and the three
//! things that are hardest to get right, histories, mail and processes, against models that are too plain to be wrong.
//!
//! A failure prints its seed; `HATCHERY_SEED=<seed> cargo test -p hatchery-core --test simulation` repeats it alone.

mod chance;
mod child;
#[path = "../support/dice.rs"]
mod dice;
mod follower;
mod log;
mod post;
mod shell;
mod trees;
mod witness;
mod work;

use chance::Chance;
use post::Post;
use shell::Shell;
use std::collections::BTreeSet;
use trees::Family;
use work::Work;

const SEEDS: u64 = 1_000;
const FAMILIES: u64 = 2_000;
const POSTS: u64 = 1_000;
const WORKS: u64 = 1_000;
/// Enough for sessions to start, idle, end and be asked for again, and short enough to read when it fails.
const TURNS: usize = 80;

/// What all seeds together must have met: a simulation that meets no crash or conflict proves nothing about them.
const MARKS: [&str; 66] = [
    "agent_awake",
    "agent_dead",
    "agent_exists",
    "agent_expired",
    "bad_name",
    "call taken",
    "call_taken",
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
    "hatch_out_of_range",
    "hatched",
    "heard",
    "idle_out_of_range",
    "inactive",
    "label_too_long",
    "mail read",
    "moved up",
    "no_mail",
    "no_run",
    "no_such_mark",
    "no_turn",
    "not_in_history",
    "not_unread",
    "output_taken",
    "parked",
    "recovered from a snapshot",
    "remark_too_long",
    "renumbered",
    "request_id_used",
    "request_taken",
    "resumed",
    "root_exists",
    "root_is_immortal",
    "run asked for",
    "run over",
    "run started",
    "run_open",
    "run_stopping",
    "session_ending",
    "session_exists",
    "session_not_ending",
    "session_over",
    "settled beside another event",
    "silent",
    "slept",
    "stale_attempt",
    "stall_out_of_range",
    "stopped by the user",
    "stopped with its agent",
    "stopped with its session",
    "too_many_retries",
    "unknown_agent",
    "unknown_session",
    "waiting",
    "woken",
];

#[test]
fn whatever_crashes_when_nothing_recorded_is_lost_and_everything_asked_for_comes_about() {
    for_all_seeds(SEEDS, &MARKS, |seed| {
        let mut shell = Shell::new(seed);
        for _ in 0..TURNS {
            shell.turn();
        }
        shell.run_to_quiet();
        shell.met
    });
}

#[test]
fn histories_are_what_they_would_be_if_every_child_had_a_copy() {
    for_all_seeds(FAMILIES, &trees::MARKS, |seed| {
        let mut chance = Chance::new(seed);
        let mut family = Family::new();
        for _ in 0..TURNS {
            family.turn(&mut chance);
        }
        family.compare();
        family.met
    });
}

#[test]
fn each_mail_is_taken_once_and_in_order_whoever_races_for_it() {
    for_all_seeds(POSTS, &post::MARKS, |seed| {
        let mut chance = Chance::new(seed);
        let mut post = Post::new();
        for _ in 0..TURNS {
            post.turn(&mut chance);
        }
        post.met
    });
}

#[test]
fn whoever_dies_when_each_process_is_alone_and_each_word_is_heard_and_kept_once() {
    for_all_seeds(WORKS, &work::MARKS, |seed| {
        let mut work = Work::new(seed);
        for _ in 0..3 * TURNS {
            work.turn();
        }
        work.run_to_quiet();
        work.met
    });
}

/// Lives through many histories, or through the one that was asked for; together they must have met all marks.
fn for_all_seeds(seeds: u64, marks: &[&'static str], live_through: impl Fn(u64) -> BTreeSet<&'static str>) {
    if let Some(seed) = asked_seed() {
        live_through(seed);
        return;
    }
    let mut met = BTreeSet::new();
    for seed in 0..seeds {
        let _told = Told(seed);
        met.extend(live_through(seed));
    }
    assert_eq!(met, marks.iter().copied().collect());
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
