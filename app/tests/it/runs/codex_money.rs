//! Money inside a turn of the real codex: each request counts when it is over, and a budget interrupts the turn.

use crate::support::codex_cli::codex_or_skip;
use crate::support::model::{Gate, Model, Step};
use crate::support::vendors;
use crate::support::workshop::Workshop;
use serde_json::json;

/// What one request of the scripted model costs: 10 tokens of input and 5 of output, at 5 and 30 dollars a million.
const REQUEST: u64 = 10 * 5_000 + 5 * 30_000;

fn spent(shop: &Workshop, agent: &str) -> u64 {
    shop.door().get(&format!("/api/agents/{agent}")).json()["spent"]["cost"]["nanodollars"].as_u64().unwrap()
}

/// A request with a command. Codex tells what it used when the command has ended.
fn works() -> Step {
    Step::tool_use("exec_command", json!({ "cmd": "true" }))
}

#[test]
fn a_turn_that_is_not_over_shows_its_cost_and_a_kill_does_not_lose_it() {
    let cli = codex_or_skip!();
    let gate = Gate::default();
    let model = Model::playing([works(), works(), Step::text("never said").behind(&gate), Step::text("the answer")]);
    let (shop, _home) = vendors::of_codex(cli, &model);
    let agent = shop.prompt("hello", json!({ "permissions": "edits" }));
    let mut requests = 0;
    shop.wait("the second request", |event| {
        requests += usize::from(event["type"] == "usage_metered");
        requests == 2
    });
    model.asked(3);
    assert_eq!(spent(&shop, &agent), 2 * REQUEST, "{:#?}", shop.of(&agent));
    shop.kill_process(&agent);
    assert_eq!(shop.end(&agent), "completed");
    assert_eq!(spent(&shop, &agent), 3 * REQUEST, "each request is counted once: {:#?}", shop.of(&agent));
    let usage = shop.door().get("/api/usage").json();
    assert_eq!((&usage["total"]["inputTokens"], &usage["total"]["outputTokens"]), (&json!(30), &json!(15)));
}

#[test]
fn a_budget_interrupts_the_turn_and_more_money_lets_it_go_on() {
    let cli = codex_or_skip!();
    let gate = Gate::default();
    // The interrupt may come before the model is asked again, or after that. The answer to an interrupted question is never said.
    let model = Model::playing([works(), Step::text("two").behind(&gate), Step::text("two")]);
    let (shop, _home) = vendors::of_codex(cli, &model);
    let body = json!({ "prompt": "hello", "budget": "0.0001", "with": { "permissions": "edits" } });
    let started = shop.door().post("/api/runs", &body);
    assert_eq!(started.status, 201, "{started:?}");
    let agent = started.id();
    let parked = shop.wait_for(&agent, "run_parked");
    assert_eq!(parked["cause"], "over_budget", "{parked}");
    shop.expect_nothing_left();
    gate.open();
    let question = shop.wait_for(&agent, "question_asked");
    let answer = format!("/api/questions/{}/answer", question["id"]);
    assert_eq!(shop.door().post(&answer, &json!({ "answer": "10" })).status, 200);
    assert_eq!(shop.end(&agent), "completed");
    assert_eq!(shop.said(&agent), ["two"]);
    assert_eq!((shop.count_of(&agent, "run_interrupted"), shop.count_of(&agent, "run_crashed")), (1, 0));
    assert_eq!(shop.count_of(&agent, "run_stopping"), 0, "it was not killed");
    assert_eq!(spent(&shop, &agent), 2 * REQUEST);
}
