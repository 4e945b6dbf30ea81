//! The real codex while daemons, launchers and codex itself are killed at random: no message is lost and none is heard twice, counted
//! in codex's own records.

use crate::support::codex_cli::codex_or_skip;
use crate::support::model::{Model, Step};
use crate::support::random::Random;
use crate::support::vendors;
use crate::support::victim::{Victim, rounds, seed};
use hatchery_core::EventId;
use hatchery_core::run::wire_name;
use serde_json::{Value, json};
use std::time::Instant;

const ROUNDS: usize = 4;
const SOAK_ROUNDS: usize = 30;

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
    let (mut random, began) = (Random::new(seed()), Instant::now());
    let model = Model::playing([Step::text("ok").for_ever()]);
    let (mut shop, home) = vendors::of_codex(cli, &model);
    let agent = shop.prompt("hello", json!({ "stays": true, "retries": 100 }));
    shop.wait_for(&agent, "turn_ended");
    let (mut messages, mut victims) = (Vec::new(), Vec::new());
    for round in 0..rounds(ROUNDS, SOAK_ROUNDS) {
        let victim = Victim::any(&mut random);
        let moment = *random.one_of(&[Moment::Said, Moment::Heard, Moment::Asked]);
        println!("round {round}: {victim:?} at {moment:?}");
        victims.push(victim);
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
        victim.kill(&mut shop, &agent);
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
    let killed = |victim| victims.iter().filter(|it| **it == victim).count();
    let (daemons, launchers, agents) = (killed(Victim::Daemon), killed(Victim::Launcher), killed(Victim::Agent));
    println!(
        "{} messages, each recorded once; {daemons} daemons, {launchers} launchers and {agents} processes of codex killed; \
         {} processes of codex in all; {} messages in its records; {} questions to the model; {:?}",
        messages.len(),
        shop.count_of(&agent, "run_spawned"),
        recorded.len(),
        model.count(),
        began.elapsed()
    );
}
