//! Money inside a turn: it counts while it is spent, and a budget interrupts the turn.

use crate::support::workshop::Workshop;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

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

/// The agent asks for permission in the middle of its turn, so the turn is open for as long as the test wants.
#[test]
fn what_a_turn_costs_is_shown_while_it_lasts() {
    let shop = Workshop::open();
    let ask = json!({ "ask": { "name": "Bash", "input": { "command": "make" }, "result": "made" } });
    let steps = [request(), ask.clone(), request(), request(), ask, json!({ "text": "done" })];
    let with =
        json!({ "script": shop.script(&steps), "model": "claude-opus-5-5", "permissions": "ask", "stays": true });
    let agent = shop.prompt("play", with);
    shop.wait_for(&agent, "question_asked");
    let mut command = shop.grounds.command(&["attach", &agent, "--input"]);
    let mut view = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(view.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(told.any(|line| line.contains("$4.00 so far")), "what it has cost before the view began");
    assert!(told.any(|line| line.contains("hatchery ask answer")));
    shop.answer_nth(&agent, 1, "allow");
    assert!(told.any(|line| line.contains("$8.00 · 2000k tokens")), "what it has cost since then");
    shop.wait_nth_of(&agent, "question_asked", 2);
    let (door, nanodollars) = (shop.door(), 12_000_000_000_u64);
    assert_eq!(spent(&shop, &agent), nanodollars);
    let listed = shop.grounds.run(&["ps"]).good();
    assert!(listed.contains("$12.00"), "{listed}");
    let runs = door.get("/api/runs").json();
    assert_eq!(runs["runs"][0]["spent"]["cost"]["nanodollars"], nanodollars, "{runs}");
    let usage = door.get("/api/usage").json();
    assert_eq!(usage["total"]["cost"]["nanodollars"], nanodollars, "{usage}");
    assert_eq!(shop.count_of(&agent, "turn_ended"), 0, "all this was in one turn");
    shop.answer_nth(&agent, 2, "allow");
    shop.wait_for(&agent, "turn_ended");
    assert_eq!(spent(&shop, &agent), nanodollars, "the total of the turn changes nothing");
    view.kill().unwrap();
    view.wait().unwrap();
    shop.stop(&agent);
    shop.end(&agent);
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
