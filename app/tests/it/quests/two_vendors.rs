//! A quest in which codex codes and Claude reviews, both real, against scripted models.

use crate::support::claude_cli::cli_or_skip;
use crate::support::codex_cli::codex_or_skip;
use crate::support::model::{Model, Step};
use crate::support::quest::step;
use crate::support::vendors;
use serde_json::{Value, json};

fn signal(fields: Value) -> Step {
    Step::tool_use("mcp__hatchery__signal-back", fields)
}

fn done(summary: &str) -> Value {
    json!({ "signal": "complete", "stepId": "arch", "summary": summary })
}

#[test]
fn codex_codes_and_claude_reviews() {
    let (claude, codex) = (cli_or_skip!(), codex_or_skip!());
    let coder = Model::playing([
        Step::tool_use("exec_command", json!({ "cmd": "echo stones > arch.txt" })),
        // Codex shows the model our names with another dash.
        Step::tool_use("mcp__hatchery__signal_back", done("the arch stands")),
        Step::text("Built."),
    ]);
    let reviewer = Model::playing([signal(done("it holds")), Step::text("Looked at.")]);
    let settings = "harness = 'codex'\npermissions = 'edits'\n\
                    [quests.paths]\nrequirements = []\nwork = ['codeweaver', 'siegemaster']\nreview = []\n\
                    [quests.roles.siegemaster]\nharness = 'claude'\nmodel = 'claude-sonnet-5'\n";
    let (shop, _home, _codex_home) = vendors::of_both((claude, &reviewer), (codex, &coder), settings);
    let quest = shop.new_quest(&shop.playbook(), json!({ "steps": [step("arch", &[])], "slots": 1, "with": {} }));
    shop.complete(&quest);
    assert_eq!(
        shop.story(&quest, "arch"),
        ["codeweaver", "complete", "siegemaster", "complete", "completed"],
        "{:#?}",
        shop.events()
    );
    assert!(shop.grounds.path().join("arch.txt").exists());
    for (role, harness) in [("codeweaver", "codex"), ("siegemaster", "claude")] {
        let agent = shop.hired(&quest, "arch", role);
        let requested = shop.wait_for(&agent, "run_requested");
        assert_eq!(requested["spec"]["harness"], harness, "{requested}");
    }
    assert_eq!(reviewer.asked(1).body["model"], "claude-sonnet-5");
    shop.expect_nothing_left();
}

#[test]
fn a_conversation_goes_on_with_the_other_vendor_and_a_fork_is_told_the_history() {
    let (claude, codex) = (cli_or_skip!(), codex_or_skip!());
    let of_claude = Model::playing([Step::text("I am the first."), Step::text("I am back.")]);
    let of_codex = Model::playing([Step::text("I am the fork."), Step::text("I am the second.")]);
    let (shop, _home, _codex_home) = vendors::of_both((claude, &of_claude), (codex, &of_codex), "");
    let agent = shop.prompt("hello", json!({ "model": "claude-sonnet-5" }));
    assert_eq!(shop.end(&agent), "completed");
    let fork = shop.grounds.run(&["fork", &agent, "your turn", "--harness", "codex"]).good();
    let fork = fork.trim();
    assert_eq!(shop.end(fork), "completed");
    assert_eq!(shop.said(fork), ["I am the first.", "I am the fork."]);
    let told = of_codex.asked(1).dialogue().join("\n");
    assert!(told.contains("<assistant>I am the first.</assistant>") && told.ends_with("your turn"), "{told}");
    shop.grounds.run(&["say", &agent, "and you?", "--harness", "codex"]).good();
    shop.wait("the second end", |event| event["type"] == "run_ended" && event["agent"] == agent && event["run"] == 2);
    assert_eq!(shop.said(&agent), ["I am the first.", "I am the second."]);
    let told = of_codex.asked(2);
    assert_eq!(told.body["model"], "gpt-5.5", "the model of one vendor means nothing to the other");
    assert!(told.dialogue().join("\n").contains("<user>hello</user>"), "{told:?}");
    let specs: Vec<_> = shop.of(&agent).into_iter().filter(|event| event["type"] == "run_requested").collect();
    assert_eq!((&specs[0]["spec"]["harness"], &specs[1]["spec"]["harness"]), (&json!("claude"), &json!("codex")));
    let models: Vec<_> = shop.of(&agent).into_iter().filter(|event| event["type"] == "run_started").collect();
    assert_eq!((&models[0]["model"], &models[1]["model"]), (&json!("claude-sonnet-5"), &json!("gpt-5.5")));
    // And back again.
    let back = shop.grounds.run(&["fork", &agent, "and now?", "--harness", "claude"]).good();
    let back = back.trim();
    assert_eq!(shop.end(back), "completed");
    assert_eq!(shop.said(back), ["I am the first.", "I am the second.", "I am back."]);
    let told = of_claude.asked(2).dialogue().join("\n");
    assert!(told.contains("<assistant>I am the second.</assistant>") && told.contains("and now?"), "{told}");
}
