//! A second agent that is spoken to by ACP: the real adapter of codex, run by the daemon against a scripted model. Hatchery has an adapter
//! of its own for codex; here it is an agent like any other that speaks ACP.

use crate::support::codex_acp::codex_acp_or_skip;
use crate::support::codex_cli::codex_or_skip;
use crate::support::model::{Gate, Model, Step};
use crate::support::vendors;
use serde_json::json;

#[test]
fn a_tool_of_ours_a_plain_answer_a_word_that_resumes_the_session_and_a_fork() {
    let programs = (codex_acp_or_skip!(), codex_or_skip!());
    let call = Step::tool_use("mcp__hatchery__send", json!({ "to": "human", "body": "from the model" }));
    let answers = ["first answer", "second answer", "the fork's answer"].map(Step::text);
    let model = Model::playing([call].into_iter().chain(answers));
    let (shop, _home) = vendors::of_codex_acp(programs, &model);
    let agent = shop.prompt("hello", json!({}));
    assert_eq!(shop.end(&agent), "completed", "{:#?}", shop.of(&agent));
    assert_eq!(shop.said(&agent).last().map(String::as_str), Some("first answer"));
    shop.expect_mail(&agent, "from the model");
    shop.say(&agent, "and then?");
    shop.wait("the second end", |event| event["type"] == "run_ended" && event["run"] == 2);
    let said = shop.said(&agent);
    assert_eq!(said.iter().filter(|text| *text == "first answer").count(), 1, "nothing is said again");
    assert_eq!(shop.opened_by(&agent, 2, 1), "session/resume");
    assert_eq!(said.last().map(String::as_str), Some("second answer"), "{said:?}");
    let child = shop.door().child(&agent);
    shop.say(&child, "your turn");
    assert_eq!(shop.end(&child), "completed", "{:#?}", shop.of(&child));
    let seen = model.asked(4).dialogue();
    assert!(seen.contains(&"assistant: second answer".to_owned()), "a copy, not a briefing: {seen:?}");
    assert_eq!(seen.last().map(String::as_str), Some("user: your turn"), "{seen:?}");
}

#[test]
fn a_permission_is_asked_and_answered_and_a_cancelled_turn_leaves_the_process() {
    let programs = (codex_acp_or_skip!(), codex_or_skip!());
    let input =
        json!({ "cmd": "touch allowed.txt", "sandbox_permissions": "require_escalated", "justification": "May I?" });
    let gate = Gate::default();
    let model = Model::playing([
        Step::tool_use("exec_command", input),
        Step::text("first answer"),
        Step::text("never said").behind(&gate),
        Step::text("third answer"),
    ]);
    let (shop, _home) = vendors::of_codex_acp(programs, &model);
    let agent = shop.prompt("one", json!({ "permissions": "ask", "stays": true }));
    shop.answer_nth(&agent, 1, "allow");
    shop.wait("the first answer", |event| event["content"] == "first answer");
    assert!(shop.grounds.path().join("allowed.txt").exists());
    shop.wait_for(&agent, "turn_ended");
    shop.say(&agent, "two");
    model.asked(3);
    shop.interrupt(&agent);
    shop.wait_nth_of(&agent, "turn_ended", 2);
    shop.say(&agent, "three");
    shop.wait("the third answer", |event| event["content"] == "third answer");
    assert_eq!(shop.count_of(&agent, "run_spawned"), 1);
    shop.stop(&agent);
    assert_eq!(shop.end(&agent), "user_ended");
    shop.expect_nothing_left();
}

#[test]
fn a_message_that_was_heard_before_a_kill_is_not_heard_twice() {
    let programs = (codex_acp_or_skip!(), codex_or_skip!());
    let gate = Gate::default();
    let silent = Step::text("never said").behind(&gate);
    let model = Model::playing([Step::text("first answer"), silent, Step::text("the answer")]);
    let (shop, _home) = vendors::of_codex_acp(programs, &model);
    let agent = shop.prompt("one", json!({ "stays": true }));
    shop.wait("the first answer", |event| event["content"] == "first answer");
    shop.wait_for(&agent, "turn_ended");
    shop.say(&agent, "the second word");
    model.asked(2);
    // The adapter has started codex. Killed, it cannot end it any more.
    let words = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let of_codex: Vec<u32> = shop.processes().into_iter().filter(|pid| words(pid).contains("app-server")).collect();
    assert!(!of_codex.is_empty());
    shop.kill_process(&agent);
    shop.wait_for(&agent, "run_crashed");
    let left: Vec<&u32> = of_codex.iter().filter(|pid| words(pid).contains("app-server")).collect();
    assert!(left.is_empty(), "{left:?} of {of_codex:?}");
    shop.wait("the answer", |event| event["content"] == "the answer");
    assert_eq!(shop.opened_by(&agent, 1, 2), "session/load", "its history shows what it has heard");
    let seen = model.asked(3).dialogue();
    assert_eq!(seen.iter().filter(|line| line.contains("the second word")).count(), 1, "{seen:?}");
    shop.stop(&agent);
    assert_eq!(shop.end(&agent), "user_ended");
    shop.expect_nothing_left();
}

/// A denial interrupts the turn of this agent. The reason is said to it, so it goes on as others do.
#[test]
fn the_reason_of_a_denial_is_said_and_the_model_of_the_run_is_used() {
    let programs = (codex_acp_or_skip!(), codex_or_skip!());
    let input =
        json!({ "cmd": "touch denied.txt", "sandbox_permissions": "require_escalated", "justification": "May I?" });
    let model = Model::playing([Step::tool_use("exec_command", input), Step::text("without it, then").for_ever()]);
    let (shop, _home) = vendors::of_codex_acp(programs, &model);
    let agent = shop.prompt("one", json!({ "permissions": "ask", "model": "gpt-6-astra" }));
    shop.answer_nth(&agent, 1, "deny: not that one");
    assert_eq!(shop.end(&agent), "completed", "{:#?}", shop.of(&agent));
    assert_eq!(shop.said(&agent).last().map(String::as_str), Some("without it, then"));
    let asked = model.asked(model.count());
    let seen = asked.dialogue();
    assert!(seen.iter().any(|line| line.ends_with("The user did not allow it: not that one")), "{seen:?}");
    assert_eq!(asked.body["model"], "gpt-6-astra");
    assert!(!shop.grounds.path().join("denied.txt").exists());
}
