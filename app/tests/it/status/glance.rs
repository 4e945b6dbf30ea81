//! What the status line shows of Hatchery's own work, in a project that has nothing to do with fctry.

use crate::support::daemon::{Ran, wait_until};
use crate::support::quest::{SHORT, done, signal, step};
use crate::support::workshop::Workshop;
use serde_json::json;

#[test]
fn the_status_line_shows_agents_at_work_questions_and_cost() {
    let mut shop = Workshop::with(SHORT, Vec::new());
    let second = |shop: &Workshop| {
        let ran = shop.grounds.command(&["statusline"]).env("NO_COLOR", "1").output().unwrap();
        let line = Ran::from(ran).good();
        line.lines().nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!(second(&shop), "", "nothing has happened");
    // The daemon writes the file a few times a second.
    let until = |shop: &Workshop, shown: &str| {
        wait_until(&format!("the status line shows `{shown}`"), || second(shop) == shown);
    };
    let paid = [json!({ "cost": { "usd": 1.234 } }), json!({ "text": "paid" })];
    let agent = shop.run_with(&paid, json!({ "stays": true }));
    until(&shop, "● 1 │ $1.23");
    let other = shop.run(&[json!({ "text": "here" }), json!({ "hang": {} })]);
    until(&shop, "● 2 │ $1.23");
    let ask = signal("needs-user-input", json!({ "question": "How wide?" }));
    let book = shop.playbook().play("a.codeweaver", &[ask, json!("turn"), done("wide")]);
    let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[])] }));
    until(&shop, "? 1 │ ● 2 │ $1.23");
    shop.grounds.run(&["quest", "answer", &quest, "three lanes"]).good();
    shop.wait("the end", |event| event["type"] == "quest_completed");
    until(&shop, "● 2 │ $1.23");
    for agent in [&agent, &other] {
        shop.stop(agent);
        shop.end(agent);
    }
    until(&shop, "$1.23");
    assert!(!shop.grounds.path().join(".fctry").exists(), "the project takes no part in the protocol");
    // Nobody knows what agents do while no daemon runs.
    shop.stop_daemon();
    assert_eq!(second(&shop), "");
}
