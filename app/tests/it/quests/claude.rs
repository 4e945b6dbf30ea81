//! A quest with the real CLI as its agents, against a scripted model.

use crate::support::claude_cli::{Home, cli_or_skip};
use crate::support::model::{Model, Step};
use crate::support::quest::{SHORT, step};
use crate::support::workshop::Workshop;
use serde_json::{Value, json};
use std::ffi::OsString;

fn signal(fields: Value) -> Step {
    Step::tool_use("mcp__hatchery__signal-back", fields)
}

fn done(step: &str) -> Value {
    json!({ "signal": "complete", "stepId": step, "summary": format!("{step} is done") })
}

fn environment(home: &Home) -> Vec<(String, OsString)> {
    home.environment().into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Every phase and every role: what is wanted, the plan, a step whose ward is red and mended, the siege, the review.
#[test]
fn the_real_cli_plays_every_role_of_a_quest() {
    let cli = cli_or_skip!();
    let wanted = json!({
        "contexts": [{ "id": "a-walker", "description": "Somebody at the river." }],
        "observables": [{ "id": "dry-feet", "context": "a-walker", "description": "They get across." }],
    });
    let steps = json!({ "steps": [{ "id": "arch", "name": "Build the arch", "observables": ["dry-feet"] }] });
    let end = || Step::text("That is all.");
    let model = Model::playing([
        Step::tool_use("mcp__hatchery__set-requirements", wanted),
        signal(done("requirements")),
        end(),
        Step::tool_use("mcp__hatchery__plan-steps", steps),
        signal(done("plan")),
        end(),
        signal(done("arch")),
        end(),
        signal(done("arch")),
        end(),
        signal(done("arch")),
        end(),
        signal(done("review")),
        end(),
    ]);
    let home = Home::new(cli, &model);
    let settings = format!("claude_path = '{}'\nstop_grace_ms = 3000", cli.program().display());
    let shop = Workshop::with(&settings, environment(&home));
    let ward = "test -e looked || { touch looked; echo 'error: it leaks'; exit 1; }";
    let quest = shop.new_quest(&shop.playbook(), json!({ "ward": ward, "slots": 1, "with": {} }));
    shop.complete(&quest);
    assert_eq!(shop.story(&quest, "requirements"), ["chaoswhisperer", "complete", "completed"]);
    assert_eq!(shop.story(&quest, "plan"), ["pathseeker", "complete", "completed"]);
    let arch = shop.story(&quest, "arch");
    let roles = ["codeweaver", "complete", "ward red", "spiritmender", "complete", "ward green", "siegemaster"];
    assert!(arch.starts_with(&roles.map(String::from)) && arch.ends_with(&["completed".into()]), "{arch:?}");
    assert_eq!(shop.story(&quest, "review"), ["lawbringer", "complete", "ward green", "completed"]);
    assert_eq!(shop.quest(&quest)["requirements"]["observables"][0]["id"], "dry-feet");
    let mender = model.asked(8).dialogue();
    assert!(mender.iter().any(|line| line.contains("error: it leaks")), "{mender:#?}");
    shop.expect_nothing_left();
}

#[test]
fn the_real_cli_asks_goes_on_and_completes() {
    let cli = cli_or_skip!();
    let asks = json!({ "signal": "needs-user-input", "stepId": "arch", "question": "How wide?" });
    let model = Model::playing([
        signal(asks),
        Step::text("I wait."),
        signal(done("arch")),
        Step::text("The arch stands."),
        Step::tool_use("mcp__hatchery__get-quest", json!({})),
        signal(done("deck")),
        Step::text("The deck lies."),
    ]);
    let home = Home::new(cli, &model);
    let settings = SHORT.replace("harness = 'scripted'", &format!("claude_path = '{}'", cli.program().display()));
    let shop = Workshop::with(&settings.replace("= 300", "= 3000"), environment(&home));
    let options = json!({ "steps": [step("arch", &[]), step("deck", &["arch"])], "with": {} });
    let quest = shop.new_quest(&shop.playbook(), options);
    let (question, words) = shop.asked(&quest, 1);
    assert_eq!(words, "How wide?");
    shop.expect_nothing_left();
    shop.answer(question, "Two carts wide.");
    shop.complete(&quest);
    assert_eq!(
        shop.story(&quest, "arch"),
        ["codeweaver", "needs-user-input", "waits", "codeweaver again", "complete", "completed"]
    );
    assert_eq!(shop.story(&quest, "deck"), ["codeweaver", "complete", "completed"]);
    let agent = shop.hired(&quest, "arch", "codeweaver");
    let sessions = shop.conversation(&agent);
    assert!(sessions.len() == 2 && sessions[0] == sessions[1], "{sessions:?}");
    let seen = model.asked(3).dialogue();
    assert!(seen.iter().any(|line| line.contains("step `arch`")), "it remembers what it was told: {seen:#?}");
    assert!(seen.last().unwrap().contains("Two carts wide."), "{seen:#?}");
    let other = shop.hired(&quest, "deck", "codeweaver");
    assert!(shop.results(&other)[0].contains("arch"), "{:?}", shop.results(&other));
    assert_eq!(shop.step(&quest, "deck")["summary"], "deck is done");
}
