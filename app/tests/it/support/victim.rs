//! Which process of a run is killed, and how.

use super::random::Random;
use super::workshop::Workshop;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    Daemon,
    Launcher,
    /// The program that plays the agent.
    Agent,
}

impl Victim {
    pub fn any(random: &mut Random) -> Self {
        *random.one_of(&[Self::Daemon, Self::Launcher, Self::Agent])
    }

    /// `kill -9`. A daemon comes back at once.
    pub fn kill(self, shop: &mut Workshop, agent: &str) {
        let who = match self {
            Self::Daemon => {
                shop.kill_daemon();
                shop.restart();
                return;
            }
            Self::Launcher => "launcher",
            Self::Agent => "process",
        };
        let spawned = shop.of(agent).into_iter().rfind(|event| event["type"] == "run_spawned").unwrap();
        let number = |name: &str| u32::try_from(spawned[name].as_u64().unwrap()).unwrap();
        let file = shop.folder(agent, number("run"), number("attempt")).join("process.json");
        let started: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        let pid = i32::try_from(started[who]["pid"].as_i64().unwrap()).unwrap();
        // It may have ended by itself, when the daemon let it go.
        kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap_or_default();
    }
}

/// How many rounds: a few in every run of the tests, the number that the requirement asks for with `HATCHERY_SOAK=1`.
pub fn rounds(few: usize, many: usize) -> usize {
    if std::env::var_os("HATCHERY_SOAK").is_some() { many } else { few }
}

/// The seed of a test, given again by `HATCHERY_SEED`. A failing test prints it.
pub fn seed() -> u64 {
    let seed = std::env::var("HATCHERY_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("seed {seed}");
    seed
}
