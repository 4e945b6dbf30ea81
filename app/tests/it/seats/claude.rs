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

/// The CLI as a lead that manages the seats: what it says are the markers, and what it is told are the messages of the program.
#[test]
fn a_lead_reports_passes_on_and_wakes_its_team() {
    let cli = cli_or_skip!();
    let registered =
        json!({ "name": "Lyra", "gridPosition": 0, "individuationArtifact": "I am Lyra, and I like plain words." });
    let alive = "[AGENT_STATUS] {\"agents\":[{\"name\":\"Lyra\",\"status\":\"alive\",\"gridPosition\":0}]}";
    let model = Model::playing([
        Step::text("Good morning.\n[AGENT_STATUS] {\"agents\":[]}"),
        Step::text(&format!("As you wish.\n[AGENT_REGISTERED] {registered}\n{alive}")),
        Step::text("Lyra says that she is well."),
        Step::text("I have lost my team.\n[AGENT_STATUS] {\"agents\":[]}"),
        Step::text(&format!("She is back.\n{alive}")),
    ]);
    let home = Home::new(cli, &model);
    let environment = home.environment().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let settings = format!(
        "claude_path = '{}'\nstop_grace_ms = 3000\n[seats]\nmode = 'lead'\nteam = 'crew'\nteams = 'no-teams'\n",
        cli.program().display()
    );
    let shop = Workshop::with(&settings, environment);
    let post = |path: &str, body: &Value, status: u16| {
        let answer = shop.door().post(path, body);
        assert_eq!(answer.status, status, "{answer:?}");
    };
    post("/api/session/start", &json!({}), 200);
    shop.wait("the first report", |event| event["type"] == "seats_reported");
    post("/api/agents/summon", &json!({ "seats": [0] }), 202);
    shop.wait("the registration", |event| event["type"] == "seat_registered");
    post("/api/send", &json!({ "message": "How is she?", "targetAgent": "Lyra" }), 202);
    shop.wait("the answer", |event| event["content"] == "Lyra says that she is well.");
    post("/api/send", &json!({ "message": "Who is there?" }), 202);
    shop.wait("the empty report", |event| {
        event["type"] == "seats_reported" && event["agents"] == json!([]) && event["id"].as_u64() > Some(30)
    });
    post("/api/agents/wake", &json!({}), 202);
    shop.wait("the last words", |event| event["content"].as_str().is_some_and(|it| it.starts_with("She is back.")));
    assert_eq!(seat(&shop, 0)["status"], "alive");
    let seen = model.asked(5).dialogue().join("\n");
    for words in [
        "Create your team with the name `crew`",
        "[SUMMON AGENTS]",
        "[ROUTE TO AGENT: Lyra]\n\nHow is she?",
        "[WAKE AGENTS]",
        "I am Lyra, and I like plain words.",
        "Lyra says that she is well.",
    ] {
        assert!(seen.contains(words), "{words}: {seen}");
    }
}

/// In print mode the CLI has no team, although it is allowed to have one: it writes no inbox files and knows no recipient outside of its
/// own agents. So the lead passes on what agents and people say.
#[test]
fn the_cli_has_no_team_in_print_mode() {
    let cli = cli_or_skip!();
    let greeting = json!({ "to": "Ada", "summary": "a greeting", "message": "hello" });
    let model = Model::playing([Step::tool_use("SendMessage", greeting), Step::text("I have tried it.")]);
    let home = Home::new(cli, &model);
    let environment = home.environment().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let settings = format!(
        "claude_path = '{}'\nstop_grace_ms = 3000\n[seats]\nmode = 'lead'\nteam = 'crew'\nhuman = 'Ada'\n",
        cli.program().display()
    );
    let shop = Workshop::with(&settings, environment);
    let started = shop.door().post("/api/session/start", &json!({}));
    assert_eq!(started.status, 200, "{started:?}");
    shop.wait("the try", |event| event["content"] == "I have tried it.");
    let seen = model.asked(2).dialogue().join("\n");
    assert!(seen.contains("No agent named 'Ada' is reachable."), "{seen}");
    assert!(seen.contains("If you cannot create a team with this name"), "{seen}");
    let teams = home.path().join("home/.claude/teams");
    assert!(!teams.exists(), "{:?}", std::fs::read_dir(teams).map(|it| it.flatten().collect::<Vec<_>>()));
}
