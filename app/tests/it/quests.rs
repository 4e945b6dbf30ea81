//! Quests from the request to the end, with agents, wards and git as real processes, and a daemon that may be killed.

mod claude;
mod cli;
mod denied;
mod forks;
#[path = "../../benches/quests/hands.rs"]
#[allow(dead_code, reason = "the benchmarks of quests use the rest")]
mod hands;
mod kept;
mod killed;
mod pausing;
mod roles;
mod signals;
mod slots;
mod trial;
mod trouble;
mod two_daemons;
mod two_vendors;
mod wards;
mod watching;
mod worktrees;

use crate::support::daemon::{LOOK_AGAIN, PATIENCE};
use std::time::Instant;

/// Waits for something that no event tells of.
#[track_caller]
pub fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "it did not come so far: {what}");
        std::thread::sleep(LOOK_AGAIN);
    }
}
