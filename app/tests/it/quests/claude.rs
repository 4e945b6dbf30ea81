//! A quest with the real CLI as its agents, against a scripted model.

use crate::support::claude_cli::{Home, cli_or_skip};
use crate::support::model::{Model, Step};
use crate::support::quest::{SHORT, step};
use crate::support::workshop::Workshop;
use serde_json::{Value, json};

fn signal(fields: Value) -> Step {
    Step::tool_use("mcp__hatchery__signal-back", fields)
}

#[test]
fn the_real_cli_asks_goes_on_and_completes() {
    let cli = cli_or_skip!();
    let asks = json!({ "signal": "needs-user-input", "stepId": "arch", "question": "How wide?" });
    let done = |step: &str| json!({ "signal": "complete", "stepId": step, "summary": format!("{step} is done") });
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
    let environment = home.environment().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let settings = SHORT.replace("harness = 'scripted'", &format!("claude_path = '{}'", cli.program().display()));
    let shop = Workshop::with(&settings.replace("= 300", "= 3000"), environment);
    let wishes = json!({ "steps": [step("arch", &[]), step("deck", &["arch"])], "with": {} });
    let quest = shop.new_quest(&shop.playbook(), wishes);
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
