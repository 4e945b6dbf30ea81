//! Two more agents that are spoken to by ACP: the real Gemini CLI and the real Qwen Code, run by the daemon against a scripted model. Neither
//! can copy sessions.

use crate::support::model::{Model, Step};
use crate::support::node_agents::{GeminiCli, NodeAgent, QwenCode};
use crate::support::npm::or_skip;
use crate::support::vendors;
use serde_json::json;

/// Two runs of one agent, with a tool of ours, and a fork that is told the history.
fn conversation<A: NodeAgent>(agent: &A, send: &str, opened_by: &str) {
    let call = Step::tool_use(send, json!({ "to": "human", "body": "from the model" }));
    let answers = ["first answer", "second answer", "the fork's answer"].map(Step::text);
    let model = Model::playing([call].into_iter().chain(answers));
    let (shop, _home) = vendors::of_node_agent(agent, &model);
    let agent = shop.prompt("hello", json!({}));
    assert_eq!(shop.end(&agent), "completed", "{:#?} {:?}", shop.of(&agent), model.asked(1).tools());
    assert_eq!(shop.said(&agent), ["first answer"], "{:?}", model.asked(1).tools());
    shop.expect_mail(&agent, "from the model");
    let kinds: Vec<_> = shop.door().history(&agent).iter().map(|message| message["kind"].clone()).collect();
    assert_eq!(kinds, ["user", "tool_call", "tool_result", "assistant"]);
    shop.say(&agent, "and then?");
    shop.wait_nth_of(&agent, "run_ended", 2);
    assert_eq!(shop.said(&agent), ["first answer", "second answer"], "nothing is said again");
    assert_eq!(shop.opened_by(&agent, 2, 1), opened_by);
    let seen = model.asked(3).dialogue();
    assert!(seen.iter().any(|line| line.contains("first answer")), "{seen:?}");
    let usage = shop.door().get("/api/usage").json();
    assert_eq!((&usage["total"]["inputTokens"], &usage["total"]["outputTokens"]), (&json!(30), &json!(15)));
    let child = shop.door().child(&agent);
    shop.say(&child, "your turn");
    assert_eq!(shop.end(&child), "completed", "{:#?}", shop.of(&child));
    let seen = model.asked(4).dialogue();
    assert!(seen.iter().any(|line| line.contains("<assistant>second answer</assistant>")), "a briefing: {seen:?}");
    shop.expect_nothing_left();
}

/// A permission is allowed, another is denied with a reason, and a killed process is followed by another.
fn permissions<A: NodeAgent>(agent: &A) {
    let touch = |file: &str| {
        Step::tool_use("run_shell_command", json!({ "command": format!("touch {file}"), "description": "touch" }))
    };
    let model = Model::playing([
        touch("allowed.txt"),
        touch("denied.txt"),
        touch("asked.txt"),
        Step::text("the answer").for_ever(),
    ]);
    let (shop, _home) = vendors::of_node_agent(agent, &model);
    let agent = shop.prompt("hello", json!({ "permissions": "ask" }));
    let asked = shop.answer_nth(&agent, 1, "allow");
    assert!(asked["text"].as_str().unwrap().contains("touch allowed.txt"), "{asked}");
    shop.answer_nth(&agent, 2, "deny: not that one");
    shop.wait_nth_of(&agent, "question_asked", 3);
    assert!(shop.grounds.path().join("allowed.txt").exists());
    shop.kill_process(&agent);
    assert_eq!(shop.end(&agent), "completed", "{:#?}", shop.of(&agent));
    assert_eq!(shop.said(&agent).last().map(String::as_str), Some("the answer"));
    let seen = model.asked(model.count()).dialogue();
    let told = |line: &&String| line.contains("was denied. The user did not allow it: not that one");
    assert!(seen.iter().any(|line| told(&line)), "{seen:#?}");
    for file in ["denied.txt", "asked.txt"] {
        assert!(!shop.grounds.path().join(file).exists(), "{file}");
    }
    shop.expect_nothing_left();
}

#[test]
fn gemini_uses_a_tool_of_ours_and_goes_on_in_the_next_run() {
    conversation(or_skip!(GeminiCli), "mcp_hatchery_send", "session/load");
}

#[test]
fn gemini_asks_for_permission_and_goes_on_after_a_kill() {
    permissions(or_skip!(GeminiCli));
}

/// Gemini names the file of a session by the minute, and writes an empty history into it when it loads the session in the same minute.
/// Later it finds the session, and answers before it has repeated the history.
#[test]
fn gemini_loads_a_session_of_an_earlier_minute_and_says_nothing_again() {
    let cli = or_skip!(GeminiCli);
    let model = Model::playing(["first answer", "second answer", "third answer"].map(Step::text));
    let (shop, home) = vendors::of_node_agent(cli, &model);
    let agent = shop.prompt("one", json!({ "stays": true }));
    shop.wait_for(&agent, "turn_ended");
    shop.say(&agent, "two");
    shop.wait_nth_of(&agent, "turn_ended", 2);
    shop.kill_process(&agent);
    assert_eq!(shop.end(&agent), "crashed");
    home.age_sessions_of_gemini();
    shop.say(&agent, "three");
    shop.wait("the third answer", |event| event["content"] == "third answer");
    assert_eq!(shop.said(&agent), ["first answer", "second answer", "third answer"]);
    let session = |nth| shop.wait_nth_of(&agent, "run_started", nth)["session"].clone();
    assert_eq!(session(1), session(2), "the session goes on");
    let seen = model.asked(3).dialogue();
    assert!(seen.iter().any(|line| line.ends_with("second answer")), "{seen:#?}");
    assert!(!seen.iter().any(|line| line.contains("<assistant>")), "it needs no briefing: {seen:#?}");
    shop.stop(&agent);
    shop.wait_nth_of(&agent, "run_ended", 2);
    shop.expect_nothing_left();
}

#[test]
fn gemini_uses_the_model_of_a_run() {
    let cli = or_skip!(GeminiCli);
    let model = Model::playing([Step::text("ok").for_ever()]);
    let (shop, _home) = vendors::of_node_agent(cli, &model);
    let agent = shop.prompt("hello", json!({ "model": "gemini-3.5-flash-lite" }));
    assert_eq!(shop.end(&agent), "completed", "{:#?}", shop.of(&agent));
    assert_eq!(model.asked(1).body["model"], "gemini-3.5-flash-lite");
}

#[test]
fn qwen_uses_a_tool_of_ours_and_goes_on_with_its_session() {
    conversation(or_skip!(QwenCode), "mcp__hatchery__send", "session/resume");
}

/// When its outer process is killed in a question, the inner one says that the turn was cancelled. Nobody has asked for that.
#[test]
fn qwen_asks_for_permission_and_goes_on_after_a_kill() {
    permissions(or_skip!(QwenCode));
}

/// Its models have ids that nobody can guess. A model that it does not have is told with those that it has.
#[test]
fn qwen_says_which_models_it_has() {
    let cli = or_skip!(QwenCode);
    let model = Model::playing([]);
    let (shop, _home) = vendors::of_node_agent(cli, &model);
    let agent = shop.prompt("hello", json!({ "model": "other" }));
    assert_eq!(shop.end(&agent), "wrong_model", "{:#?}", shop.of(&agent));
    let ended = shop.wait_for(&agent, "run_ended")["detail"].as_str().unwrap().to_owned();
    assert!(ended.contains("`other`") && ended.contains("it has $runtime|openai|m(openai)"), "{ended}");
}
