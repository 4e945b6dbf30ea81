//! Money inside a turn: it counts while it is spent, and a budget interrupts the turn.

use crate::support::workshop::Workshop;
use serde_json::{Value, json};

/// Four dollars by the list prices, for a model that has one.
fn request() -> Value {
    json!({ "cost": { "usd": 4.0, "input_tokens": 1_000_000 } })
}

fn start(shop: &Workshop, steps: &[Value], budget: Option<&str>) -> String {
    let with = json!({ "script": shop.script(steps), "model": "claude-opus-5-5" });
    let answer = shop.door().post("/api/runs", &json!({ "prompt": "play", "budget": budget, "with": with }));
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.id()
}

fn spent(shop: &Workshop, agent: &str) -> u64 {
    shop.door().get(&format!("/api/agents/{agent}")).json()["spent"]["cost"]["nanodollars"].as_u64().unwrap()
}

#[test]
fn a_turn_that_is_not_over_shows_its_cost_also_when_it_is_killed() {
    let shop = Workshop::open();
    let hangs = [request(), request(), json!({ "text": "there" }), json!({ "sleep_ms": 600_000 })];
    let agent = start(&shop, &hangs, None);
    shop.wait("there", |event| event["content"] == "there");
    assert_eq!(spent(&shop, &agent), 8_000_000_000);
    let listed = shop.grounds.run(&["ps"]).good();
    assert!(listed.contains("$8.00"), "{listed}");
    shop.stop(&agent);
    shop.end(&agent);
    assert_eq!(spent(&shop, &agent), 8_000_000_000, "what the killed turn used stays counted");
    let today = shop.door().get("/api/usage").json();
    assert_eq!(today["total"]["cost"]["nanodollars"], 8_000_000_000_u64, "{today}");
}

#[test]
fn a_budget_interrupts_the_turn_and_more_money_lets_it_go_on() {
    let shop = Workshop::open();
    let runaway = [
        json!({ "text": "one" }),
        request(),
        json!({ "sleep_ms": 600_000 }),
        json!({ "text": "never" }),
        json!("turn"),
        json!({ "text": "two" }),
    ];
    let agent = start(&shop, &runaway, Some("1"));
    let parked = shop.wait_for(&agent, "run_parked");
    assert_eq!(parked["cause"], "over_budget", "{parked}");
    shop.expect_nothing_left();
    let question = shop.wait_for(&agent, "question_asked");
    let answer = format!("/api/questions/{}/answer", question["id"]);
    assert_eq!(shop.door().post(&answer, &json!({ "answer": "10" })).status, 200);
    shop.wait("two", |event| event["content"] == "two");
    assert_eq!(shop.end(&agent), "completed");
    let kinds = shop.kinds(&agent);
    let count = |kind: &str| kinds.iter().filter(|it| *it == kind).count();
    assert_eq!((count("run_interrupted"), count("run_crashed"), count("run_requested")), (1, 0, 1), "{kinds:?}");
    assert!(!kinds.iter().any(|kind| kind == "run_stopping"), "it was not killed: {kinds:?}");
    assert_eq!(spent(&shop, &agent), 4_000_000_000);
}

#[test]
fn the_command_line_sets_a_budget_and_shows_what_is_spent() {
    let shop = Workshop::open();
    let script = shop.script(&[json!({ "text": "one" }), request()]);
    let (script, model) = (script.to_str().unwrap(), "claude-opus-5-5");
    let run = shop.grounds.run(&["run", "play", "--budget", "20", "--script", script, "--model", model]);
    assert!(run.stderr.contains("$4.00"), "{run:?}");
    let budgets = shop.grounds.run(&["budget"]).good();
    assert!(budgets.contains("$4.00 of $20.00"), "{budgets}");
}
