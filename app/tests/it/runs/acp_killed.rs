//! Real agents behind ACP while daemons, launchers and the agents themselves are killed at random, before they have said anything about
//! a message: no message is lost and none is heard twice, counted in what the model is shown.

use crate::support::codex_acp::codex_acp_or_skip;
use crate::support::codex_cli::codex_or_skip;
use crate::support::model::{Gate, Model, Step};
use crate::support::opencode_cli::opencode_or_skip;
use crate::support::random::Random;
use crate::support::vendors;
use crate::support::victim::{Victim, rounds, seed};
use crate::support::workshop::Workshop;
use serde_json::{Value, json};

const ROUNDS: usize = 3;
const SOAK_ROUNDS: usize = 30;

#[test]
fn no_message_is_lost_or_heard_twice_whoever_is_killed() {
    let cli = opencode_or_skip!();
    let model = Model::playing([]);
    let (shop, _home) = vendors::of_opencode(cli, &model);
    kills(shop, &model);
}

#[test]
fn no_message_to_the_adapter_of_codex_is_lost_or_heard_twice_whoever_is_killed() {
    let programs = (codex_acp_or_skip!(), codex_or_skip!());
    let model = Model::playing([]);
    let (shop, _home) = vendors::of_codex_acp(programs, &model);
    kills(shop, &model);
}

fn kills(mut shop: Workshop, model: &Model) {
    let mut random = Random::new(seed());
    let agent = shop.prompt("hello", json!({ "stays": true, "retries": 100 }));
    shop.wait_for(&agent, "turn_ended");
    let rounds = rounds(ROUNDS, SOAK_ROUNDS);
    for round in 0..rounds {
        let (victim, was_asked) = (Victim::any(&mut random), *random.one_of(&[true, false]));
        println!("round {round}: {victim:?}, after the model was asked: {was_asked}");
        // The model answers when the deed is done.
        let gate = Gate::default();
        model.add([Step::text("ok").behind(&gate)]);
        let asked = model.count();
        let said = shop.say(&agent, &format!("word {round}.")).json();
        let events = said["events"].as_array().unwrap();
        let id = events.iter().find(|event| event["type"] == "message_added").unwrap()["id"].as_u64().unwrap();
        if was_asked {
            model.asked(asked + 1);
        }
        victim.kill(&mut shop, &agent);
        if victim != Victim::Daemon {
            // Until then a process without its launcher could hear the answer.
            shop.wait("the crash", |event| event["type"] == "run_crashed" && event["id"].as_u64() > Some(id));
        }
        gate.open();
        let heard = shop.wait("the message", |event| event["type"] == "message_heard" && event["message"] == id);
        let after = |event: &Value| event["type"] == "turn_ended" && event["id"].as_u64() > heard["id"].as_u64();
        shop.wait("the end of the turn", after);
    }
    let asked = model.count();
    shop.say(&agent, "the end");
    let seen = model.asked(asked + 1).dialogue();
    for round in 0..rounds {
        let word = format!("word {round}.");
        let times = seen.iter().filter(|line| line.contains(&word)).count();
        assert_eq!(times, 1, "{word} is {times} times in {seen:#?}");
    }
    println!("{rounds} messages, each heard once; {} processes in all", shop.count_of(&agent, "run_spawned"));
    shop.stop(&agent);
    shop.wait("the end of the last run", |event| event["type"] == "run_ended" && event["cause"] == "user_ended");
    shop.expect_nothing_left();
}
