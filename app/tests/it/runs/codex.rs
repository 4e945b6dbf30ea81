//! The real codex, run by the daemon against a scripted model.

use crate::support::codex_cli::{CodexCli, CodexHome, codex_or_skip};
use crate::support::model::{Gate, Model, Step};
use crate::support::workshop::Workshop;
use serde_json::{Value, json};

/// A workshop whose agents are played by codex.
fn workshop(cli: &CodexCli, model: &Model) -> (Workshop, CodexHome) {
    let home = CodexHome::new(model);
    let settings = format!("harness = 'codex'\ncodex_path = '{}'\nstop_grace_ms = 3000\n", cli.program().display());
    (Workshop::with(&settings, home.environment()), home)
}

fn run(shop: &Workshop, prompt: &str, with: Value) -> String {
    let answer = shop.door().post("/api/runs", &json!({ "prompt": prompt, "with": with }));
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.id()
}

#[test]
fn a_plain_answer_and_a_word_that_resumes() {
    let cli = codex_or_skip!();
    let model = Model::playing([Step::text("first answer"), Step::text("second answer")]);
    let (shop, _home) = workshop(cli, &model);
    let agent = run(&shop, "hello", json!({}));
    assert_eq!(shop.end(&agent), "completed");
    assert_eq!(shop.said(&agent), ["first answer"]);
    shop.say(&agent, "and then?");
    shop.wait("the second end", |event| event["type"] == "run_ended" && event["run"] == 2);
    assert_eq!(shop.said(&agent), ["first answer", "second answer"]);
    let seen = model.asked(2).dialogue();
    assert_eq!(seen, ["user: hello", "assistant: first answer", "user: and then?"]);
    let usage = shop.door().get("/api/usage").json();
    assert_eq!((&usage["total"]["input_tokens"], &usage["total"]["output_tokens"]), (&json!(20), &json!(10)));
}

#[test]
fn a_tool_of_ours_is_called() {
    let cli = codex_or_skip!();
    let call = Step::tool_use("mcp__hatchery__send", json!({ "to": "human", "body": "from the model" }));
    let model = Model::playing([call, Step::text("sent")]);
    let (shop, _home) = workshop(cli, &model);
    let agent = run(&shop, "send a mail", json!({}));
    assert_eq!(shop.end(&agent), "completed");
    let sent = shop.wait("the mail", |event| event["type"] == "mail_sent");
    assert_eq!((&sent["from"], &sent["body"]), (&json!(agent), &json!("from the model")));
    let kinds: Vec<_> = shop.door().history(&agent).iter().map(|message| message["kind"].clone()).collect();
    assert_eq!(kinds, ["user", "tool_call", "tool_result", "assistant"]);
}

#[test]
fn a_process_killed_in_mid_turn_is_resumed() {
    let cli = codex_or_skip!();
    let gate = Gate::default();
    let model = Model::playing([Step::text("never said").behind(&gate), Step::text("the answer")]);
    let (shop, home) = workshop(cli, &model);
    let agent = run(&shop, "hello", json!({}));
    model.asked(1);
    shop.wait_for(&agent, "message_heard");
    let pid = shop.wait_for(&agent, "run_spawned")["process"]["pid"].as_i64().unwrap();
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    assert_eq!(shop.end(&agent), "completed");
    assert_eq!(shop.said(&agent), ["the answer"]);
    let seen = model.asked(2).dialogue();
    assert_eq!(seen[0], "user: hello", "{seen:?}");
    let recorded = home.recorded_messages();
    assert_eq!(recorded.len(), 2, "the message and the nudge, each once: {recorded:?}");
    assert_eq!(shop.wait_for(&agent, "run_crashed")["exit"], json!({ "signal": 9 }));
}
