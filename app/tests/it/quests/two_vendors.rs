//! A quest in which codex codes and Claude reviews, both real, against scripted models.

use crate::support::claude_cli::{Home, cli_or_skip};
use crate::support::codex_cli::{CodexHome, codex_or_skip};
use crate::support::model::{Model, Step};
use crate::support::quest::step;
use crate::support::workshop::Workshop;
use serde_json::{Value, json};
use std::ffi::OsString;

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
    let (home, codex_home) = (Home::new(claude, &reviewer), CodexHome::new(&coder));
    let mut environment: Vec<(String, OsString)> =
        home.environment().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let own = |entry: &(String, OsString)| matches!(entry.0.as_str(), "CODEX_HOME" | "OPENAI_API_KEY");
    environment.extend(codex_home.environment().into_iter().filter(own));
    let settings = format!(
        "harness = 'codex'\ncodex_path = '{}'\nclaude_path = '{}'\nstop_grace_ms = 3000\npermissions = 'edits'\n\
         [quests.paths]\nrequirements = []\nwork = ['codeweaver', 'siegemaster']\nreview = []\n\
         [quests.roles.siegemaster]\nharness = 'claude'\nmodel = 'claude-sonnet-5'\n",
        codex.program().display(),
        claude.program().display()
    );
    let shop = Workshop::with(&settings, environment);
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
    let of_claude = Model::playing([Step::text("I am the first.")]);
    let of_codex = Model::playing([Step::text("I am the fork."), Step::text("I am the second.")]);
    let (home, codex_home) = (Home::new(claude, &of_claude), CodexHome::new(&of_codex));
    let mut environment: Vec<(String, OsString)> =
        home.environment().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let own = |entry: &(String, OsString)| matches!(entry.0.as_str(), "CODEX_HOME" | "OPENAI_API_KEY");
    environment.extend(codex_home.environment().into_iter().filter(own));
    let (codex, claude) = (codex.program().display(), claude.program().display());
    let settings = format!("codex_path = '{codex}'\nclaude_path = '{claude}'\nstop_grace_ms = 3000\n");
    let shop = Workshop::with(&settings, environment);
    let with = json!({ "model": "claude-sonnet-5" });
    let agent = shop.door().post("/api/runs", &json!({ "prompt": "hello", "with": with })).id();
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
}
