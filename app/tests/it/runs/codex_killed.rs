//! The real codex while daemons, launchers and codex itself are killed at random: no message is lost and none is heard twice, counted
//! in codex's own records.

use crate::support::codex_cli::{CodexHome, codex_or_skip};
use crate::support::model::{Model, Step};
use crate::support::random::Random;
use crate::support::workshop::Workshop;
use hatchery_core::EventId;
use hatchery_core::run::wire_name;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// In every run of the tests; with `HATCHERY_SOAK=1` the number that the requirement asks for.
const ROUNDS: usize = 4;
const SOAK_ROUNDS: usize = 30;

#[derive(Clone, Copy, Debug)]
enum Victim {
    Daemon,
    Launcher,
    Codex,
}

#[derive(Clone, Copy, Debug)]
enum Moment {
    /// The message is in the log, and nothing more is known.
    Said,
    /// Codex has the message in its records.
    Heard,
    /// The model was asked about it.
    Asked,
}

#[test]
fn no_message_is_lost_or_heard_twice_whoever_is_killed() {
    let cli = codex_or_skip!();
    let rounds = if std::env::var_os("HATCHERY_SOAK").is_some() { SOAK_ROUNDS } else { ROUNDS };
    // Printed by a failing test, and given again by HATCHERY_SEED.
    let seed = std::env::var("HATCHERY_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let model = Model::playing([Step::text("ok").for_ever()]);
    let home = CodexHome::new(&model);
    let settings = format!("harness = 'codex'\ncodex_path = '{}'\nstop_grace_ms = 3000\n", cli.program().display());
    let mut shop = Workshop::with(&settings, home.environment());
    let with = json!({ "stays": true, "retries": 100 });
    let started = shop.door().post("/api/runs", &json!({ "prompt": "hello", "with": with }));
    assert_eq!(started.status, 201, "{started:?}");
    let agent = started.id();
    shop.wait_for(&agent, "turn_ended");
    let mut messages = Vec::new();
    for round in 0..rounds {
        let victim = *random.one_of(&[Victim::Daemon, Victim::Launcher, Victim::Codex]);
        let moment = *random.one_of(&[Moment::Said, Moment::Heard, Moment::Asked]);
        println!("round {round}: {victim:?} at {moment:?}");
        let asked = model.count();
        let said = shop.say(&agent, &format!("word {round}")).json();
        let events = said["events"].as_array().unwrap();
        let id = events.iter().find(|event| event["type"] == "message_added").unwrap()["id"].as_u64().unwrap();
        messages.push(wire_name(EventId(id)));
        let is_heard = |event: &Value| event["type"] == "message_heard" && event["message"] == id;
        match moment {
            Moment::Said => {}
            Moment::Heard => drop(shop.wait("the echo", is_heard)),
            Moment::Asked => drop(model.asked(asked + 1)),
        }
        kill(&mut shop, &agent, victim);
        shop.wait("the message", is_heard);
    }
    let last = shop.say(&agent, "the end").json();
    let id = last["events"][0]["id"].as_u64().unwrap();
    shop.wait("the last message", |event| event["type"] == "message_heard" && event["message"] == id);
    let recorded = home.recorded_messages();
    for message in &messages {
        let times = recorded.iter().filter(|id| *id == message).count();
        assert_eq!(times, 1, "{message} is {times} times in {recorded:#?}");
    }
    shop.stop(&agent);
    shop.wait("the end of the last run", |event| event["type"] == "run_ended" && event["cause"] == "user_ended");
    shop.expect_nothing_left();
}

fn kill(shop: &mut Workshop, agent: &str, victim: Victim) {
    let who = match victim {
        Victim::Daemon => {
            shop.kill_daemon();
            shop.restart();
            return;
        }
        Victim::Launcher => "launcher",
        Victim::Codex => "process",
    };
    let spawned = shop.of(agent).into_iter().rfind(|event| event["type"] == "run_spawned").unwrap();
    let number = |name: &str| u32::try_from(spawned[name].as_u64().unwrap()).unwrap();
    let file = shop.folder(agent, number("run"), number("attempt")).join("process.json");
    let started: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let pid = i32::try_from(started[who]["pid"].as_i64().unwrap()).unwrap();
    // It may have ended by itself, when the daemon let it go.
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap_or_default();
}
