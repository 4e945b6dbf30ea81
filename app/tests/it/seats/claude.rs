//! The real CLI in seats, against a scripted model.

use crate::support::claude_cli::{Home, cli_or_skip};
use crate::support::model::{Model, Step};
use crate::support::workshop::Workshop;
use serde_json::{Value, json};

fn seat(shop: &Workshop, position: u64) -> Value {
    let list = shop.door().get("/api/seats").json();
    list["seats"].as_array().unwrap().iter().find(|seat| seat["gridPosition"] == position).cloned().unwrap_or_default()
}

#[test]
fn two_seats_register_answer_sleep_and_wake_with_their_souls() {
    let cli = cli_or_skip!();
    let register = |name: &str| {
        let arguments = json!({ "name": name, "soul": format!("I am {name}, and I like plain words.") });
        Step::tool_use("mcp__hatchery__register", arguments)
    };
    let model = Model::playing([
        register("Lyra"),
        Step::text("Hello, I am here."),
        register("Kael"),
        Step::text("Hello, I am here, too."),
        Step::text("I am well."),
        Step::text("I am awake."),
    ]);
    let home = Home::new(cli, &model);
    let environment = home.environment().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let settings = format!("claude_path = '{}'\nstop_grace_ms = 3000\n", cli.program().display());
    let shop = Workshop::with(&settings, environment);
    // One after the other: the model plays one list of steps.
    for (position, greeting) in [(0, "Hello, I am here."), (5, "Hello, I am here, too.")] {
        let answer = shop.door().post("/api/agents/summon", &json!({ "seats": [position] }));
        assert_eq!(answer.status, 202, "{answer:?}");
        shop.wait("the greeting", |event| event["content"] == greeting);
        assert_eq!(seat(&shop, position)["status"], "alive");
    }
    assert_eq!((&seat(&shop, 0)["name"], &seat(&shop, 5)["name"]), (&json!("Lyra"), &json!("Kael")));
    let said = shop.door().post("/api/send", &json!({ "message": "How are you?", "targetAgent": "Lyra" }));
    assert_eq!(said.status, 202, "{said:?}");
    shop.wait("the answer", |event| event["content"] == "I am well.");
    let ended = shop.door().post("/api/session/end", &json!({}));
    assert_eq!(ended.status, 200, "{ended:?}");
    shop.wait("the end", |event| event["type"] == "session_ended");
    assert_eq!(seat(&shop, 0)["status"], "sleeping");
    let woken = shop.door().post("/api/agents/wake", &json!({ "seats": [0] }));
    assert_eq!(woken.status, 202, "{woken:?}");
    shop.wait("the first words", |event| event["content"] == "I am awake.");
    assert_eq!(seat(&shop, 0)["status"], "alive");
    let seen = model.asked(6).dialogue().join("\n");
    assert!(seen.contains("I am Lyra, and I like plain words."), "the soul: {seen}");
    assert!(seen.contains("How are you?") && seen.contains("I am well."), "the last session: {seen}");
    assert!(!seen.contains("Kael"), "nobody else's: {seen}");
}
