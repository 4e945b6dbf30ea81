//! Agents of a quest that fork: their forks have the slots, the money and the end of the step.

use crate::support::quest::{SHORT, WARDED, done, mcp, step, text};
use crate::support::workshop::Workshop;
use serde_json::{Value, json};

fn fork(name: &str) -> Value {
    mcp("fork", json!({ "prompt": format!("Help as {name}."), "name": name }))
}

fn wait_for(names: &[&str]) -> Value {
    mcp("wait", json!({ "from": names, "timeout": 60 }))
}

fn send(to: &str) -> Value {
    mcp("send", json!({ "to": to, "body": "done" }))
}

/// Four dollars by the list prices.
fn request() -> Value {
    json!({ "cost": { "usd": 4.0, "input_tokens": 1_000_000 } })
}

/// The agent that was born with a name.
fn named(shop: &Workshop, name: &str) -> String {
    let born = shop.wait(name, |event| event["type"] == "agent_created" && event["name"] == name);
    born["agent"].as_str().unwrap().to_owned()
}

#[test]
fn two_forks_share_the_only_slot_with_the_parent_that_waits_and_count_for_the_budget() {
    let shop = Workshop::with(SHORT, Vec::new());
    let weaver = [fork("one"), fork("two"), text("forked"), wait_for(&["one", "two"]), done("all of it")];
    let book = shop
        .playbook()
        .play("s0.codeweaver", &weaver)
        .play("s0.fork.1", &[text("one works"), request(), send("codeweaver-s0")])
        // It is interrupted at its request, and does the rest when there is money.
        .play(
            "s0.fork.2",
            &[text("two works"), request(), json!({ "sleep_ms": 600_000 }), json!("turn"), send("codeweaver-s0")],
        );
    let options = json!({
        "steps": [step("s0", &[])], "slots": 1, "budget": "6",
        "with": { "script": book.folder, "model": "claude-opus-5-5" },
    });
    let quest = shop.new_quest(&book, options);
    let (one, two) = (named(&shop, "one"), named(&shop, "two"));
    assert_eq!(shop.end(&one), "completed");
    let parked = shop.wait_for(&two, "run_parked");
    assert_eq!(parked["cause"], "over_budget", "{parked}");
    let (question, asked) = shop.asked(&quest, 1);
    assert!(asked.contains("The budget of its quest of $6.00 is used up"), "{asked}");
    assert_eq!(shop.quest(&quest)["spent"]["cost"]["nanodollars"], 8_000_000_000_u64);
    let answer = shop.door().post(&format!("/api/questions/{question}/answer"), &json!({ "answer": "20" }));
    assert_eq!(answer.status, 200, "{answer:?}");
    shop.complete(&quest);
    assert_eq!(shop.step(&quest, "s0")["summary"], "all of it");
    // One after the other, because the parent that waits leaves one slot.
    let events = shop.events();
    let place = |agent: &str, kind: &str| events.iter().position(|it| it["agent"] == agent && it["type"] == kind);
    assert!(place(&one, "run_ended").unwrap() < place(&two, "run_requested").unwrap());
    for agent in [&one, &two] {
        assert!(!shop.kinds(agent).iter().any(|kind| kind == "signal_given"));
    }
    shop.expect_nothing_left();
}

/// A fork that has ended without a mail sends none. Its parent is told so, instead of waiting for as long as it may.
#[test]
fn a_wait_for_forks_that_end_without_a_mail_ends_with_them() {
    let shop = Workshop::with(SHORT, Vec::new());
    let wait = mcp("wait", json!({ "from": ["mute", "broke"], "timeout": 600 }));
    let book = shop
        .playbook()
        .play("s0.codeweaver", &[fork("mute"), fork("broke"), wait, done("alone")])
        .play("s0.fork.1", &[text("nothing to say")])
        .play("s0.fork.2", &[json!({ "error": { "api": "credit" } })]);
    let quest = shop.new_quest(&book, json!({ "steps": [step("s0", &[])], "slots": 1 }));
    assert_eq!(shop.end(&named(&shop, "mute")), "completed");
    assert_eq!(shop.end(&named(&shop, "broke")), "out_of_credit");
    shop.complete(&quest);
    let results = shop.results(&shop.hired(&quest, "s0", "codeweaver"));
    assert!(
        results.iter().any(|result| result.contains("mute: finished") && result.contains("broke: finished")),
        "{results:?}"
    );
}

#[test]
fn nested_forks_with_one_slot_come_to_an_end() {
    let shop = Workshop::with(SHORT, Vec::new());
    let book = shop
        .playbook()
        .play("s0.codeweaver", &[fork("outer"), wait_for(&["outer"]), done("nested")])
        .play("s0.fork.1", &[fork("inner"), wait_for(&["inner"]), send("codeweaver-s0")])
        .play("s0.fork.2", &[text("I am the inner one"), send("outer")]);
    let quest = shop.new_quest(&book, json!({ "steps": [step("s0", &[]), step("s1", &["s0"])], "slots": 1 }));
    let (outer, inner) = (named(&shop, "outer"), named(&shop, "inner"));
    // A fork whose mail lets the agent of the step go on may be stopped with the step before its process has left by itself.
    for fork in [&inner, &outer] {
        assert!(["completed", "user_ended"].contains(&shop.end(fork).as_str()));
    }
    shop.wait_step(&quest, "s0", "step_completed");
    let agents = shop.door().get(&format!("/api/agents?quest={quest}")).json();
    let names: Vec<&str> = agents["agents"].as_array().unwrap().iter().filter_map(|it| it["name"].as_str()).collect();
    assert!(names.contains(&"outer") && names.contains(&"inner"), "{names:?}");
    shop.complete(&quest);
}

#[test]
fn a_fork_ends_with_its_step_before_the_ward_begins() {
    let mut shop = Workshop::with(WARDED, Vec::new());
    let gate = shop.gate();
    let book = shop
        .playbook()
        .play("s0.codeweaver", &[fork("hanger"), text("forked"), gate.pass(), done("without it")])
        .play("s0.fork", &[text("hanging"), json!({ "hang": { "ignore_sigterm": true } })]);
    let options = json!({ "steps": [step("s0", &[])], "slots": 2, "ward": "true" });
    let quest = shop.new_quest(&book, options);
    let hanger = named(&shop, "hanger");
    shop.wait_said(&hanger, "hanging");
    shop.kill_daemon();
    gate.open();
    shop.restart();
    shop.complete(&quest);
    let events = shop.events();
    let place = |is_it: &dyn Fn(&Value) -> bool| events.iter().position(is_it).unwrap();
    let ended = place(&|it| it["agent"] == hanger.as_str() && it["type"] == "run_ended");
    let stopping = place(&|it| it["agent"] == hanger.as_str() && it["type"] == "run_stopping");
    assert_eq!(events[stopping]["why"], "step_over");
    assert!(ended < place(&|it| it["type"] == "ward_begun"), "the ward waits for the end of the fork");
    shop.expect_nothing_left();
}
