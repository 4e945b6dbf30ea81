//! An agent that is spoken to by ACP: the real opencode, run by the daemon against a scripted model.

use crate::support::model::{Gate, Model, Step};
use crate::support::opencode_cli::opencode_or_skip;
use crate::support::vendors;
use serde_json::json;

/// What the model was shown in a conversation, without what opencode asks beside it.
fn seen(model: &Model, times: usize) -> Vec<String> {
    model.asked(times).dialogue()
}

#[test]
fn a_tool_of_ours_a_plain_answer_and_a_word_that_resumes_the_session() {
    let cli = opencode_or_skip!();
    let call = Step::tool_use("hatchery_send", json!({ "to": "human", "body": "from the model" }));
    let model = Model::playing([call, Step::text("first answer"), Step::text("second answer")]);
    let (shop, _home) = vendors::of_opencode(cli, &model);
    let agent = shop.prompt("hello", json!({}));
    assert_eq!(shop.end(&agent), "completed", "{:#?}", shop.of(&agent));
    assert_eq!(shop.said(&agent), ["first answer"]);
    shop.expect_mail(&agent, "from the model");
    let kinds: Vec<_> = shop.door().history(&agent).iter().map(|message| message["kind"].clone()).collect();
    assert_eq!(kinds, ["user", "tool_call", "tool_result", "assistant"]);
    shop.say(&agent, "and then?");
    shop.wait("the second end", |event| event["type"] == "run_ended" && event["run"] == 2);
    assert_eq!(shop.said(&agent), ["first answer", "second answer"], "nothing is said again");
    assert_eq!(shop.opened_by(&agent, 2, 1), "session/resume", "nothing is asked of its history");
    let seen = seen(&model, 3);
    assert!(seen.iter().any(|line| line.contains("first answer")), "{seen:?}");
    assert!(seen.last().is_some_and(|line| line.contains("and then?")), "{seen:?}");
}

#[test]
fn a_message_in_mid_turn_waits_for_the_end_of_the_turn_and_a_cancelled_turn_leaves_the_process() {
    let cli = opencode_or_skip!();
    let (first, second) = (Gate::default(), Gate::default());
    let model = Model::playing([
        Step::text("first answer").behind(&first),
        Step::text("never said").behind(&second),
        Step::text("third answer"),
    ]);
    let (shop, _home) = vendors::of_opencode(cli, &model);
    let agent = shop.prompt("one", json!({ "stays": true }));
    model.asked(1);
    shop.say(&agent, "two");
    first.open();
    shop.wait("the first answer", |event| event["content"] == "first answer");
    model.asked(2);
    // Nothing says that the second turn has begun before it says something. It can be interrupted all the same.
    shop.interrupt(&agent);
    shop.wait_nth_of(&agent, "turn_ended", 2);
    shop.say(&agent, "three");
    shop.wait("the third answer", |event| event["content"] == "third answer");
    assert_eq!(shop.count_of(&agent, "run_spawned"), 1);
    assert_eq!(shop.count_of(&agent, "message_heard"), 3);
    shop.stop(&agent);
    assert_eq!(shop.end(&agent), "user_ended");
    shop.expect_nothing_left();
}

#[test]
fn a_permission_is_asked_and_answered_and_a_killed_process_is_loaded_again() {
    let cli = opencode_or_skip!();
    let touch =
        |file: &str| Step::tool_use("bash", json!({ "command": format!("touch {file}"), "description": "touch" }));
    let model = Model::playing([touch("allowed.txt"), touch("asked.txt"), Step::text("the answer")]);
    let (shop, _home) = vendors::of_opencode(cli, &model);
    let agent = shop.prompt("hello", json!({ "permissions": "ask" }));
    shop.answer_nth(&agent, 1, "allow");
    shop.wait_nth_of(&agent, "question_asked", 2);
    assert!(shop.grounds.path().join("allowed.txt").exists());
    shop.kill_process(&agent);
    assert_eq!(shop.end(&agent), "completed", "{:#?}", shop.of(&agent));
    assert_eq!(shop.said(&agent), ["the answer"]);
    assert!(!shop.grounds.path().join("asked.txt").exists());
    assert_eq!(shop.door().get("/api/questions").json()["questions"], json!([]));
    shop.expect_nothing_left();
}

/// The history that the agent repeats ends with the message, so it is not said again: the agent is only told to go on.
#[test]
fn a_message_that_was_heard_before_a_kill_is_not_heard_twice() {
    let cli = opencode_or_skip!();
    let gate = Gate::default();
    let silent = Step::text("never said").behind(&gate);
    let model = Model::playing([Step::text("first answer"), silent, Step::text("the answer")]);
    let (shop, _home) = vendors::of_opencode(cli, &model);
    let agent = shop.prompt("one", json!({ "stays": true }));
    shop.wait("the first answer", |event| event["content"] == "first answer");
    shop.wait_for(&agent, "turn_ended");
    shop.say(&agent, "the second word");
    model.asked(2);
    shop.kill_process(&agent);
    shop.wait("the answer", |event| event["content"] == "the answer");
    assert_eq!(shop.opened_by(&agent, 1, 2), "session/load", "its history shows what it has heard");
    let seen = seen(&model, 3);
    assert_eq!(seen.iter().filter(|line| line.contains("the second word")).count(), 1, "{seen:?}");
    assert!(seen.last().is_some_and(|line| line.contains("Continue where you stopped")), "{seen:?}");
    shop.stop(&agent);
    assert_eq!(shop.end(&agent), "user_ended");
}

/// What an agent has started may live in a session of its own, where no signal to the agent reaches it.
#[test]
fn what_a_killed_agent_leaves_behind_is_ended() {
    let cli = opencode_or_skip!();
    let gate = Gate::default();
    let command = "setsid sleep 4242 >/dev/null 2>&1 & echo $! > left.txt";
    let model = Model::playing([
        Step::tool_use("bash", json!({ "command": command, "description": "start" })),
        Step::text("never said").behind(&gate),
        Step::text("the answer"),
    ]);
    let (shop, _home) = vendors::of_opencode(cli, &model);
    let agent = shop.prompt("hello", json!({ "permissions": "ask" }));
    shop.answer_nth(&agent, 1, "allow");
    model.asked(2);
    let left = std::fs::read_to_string(shop.grounds.path().join("left.txt")).unwrap();
    let left = std::path::Path::new("/proc").join(left.trim());
    assert!(left.exists(), "it outlives the tool that started it");
    shop.kill_process(&agent);
    shop.wait_for(&agent, "run_crashed");
    assert!(!left.exists(), "it is gone before the crash is told");
    gate.open();
    assert_eq!(shop.end(&agent), "completed", "{:#?}", shop.of(&agent));
    shop.expect_nothing_left();
}

/// A denial ends the turn of this agent. The reason is said to it, so it goes on as others do.
#[test]
fn the_reason_of_a_denial_is_said_and_the_agent_goes_on() {
    let cli = opencode_or_skip!();
    let touch = Step::tool_use("bash", json!({ "command": "touch denied.txt", "description": "touch" }));
    let model = Model::playing([touch, Step::text("without it, then")]);
    let (shop, _home) = vendors::of_opencode(cli, &model);
    let agent = shop.prompt("hello", json!({ "permissions": "ask" }));
    shop.answer_nth(&agent, 1, "deny: not in this folder");
    assert_eq!(shop.end(&agent), "completed", "{:#?}", shop.of(&agent));
    assert_eq!(shop.said(&agent), ["without it, then"]);
    let seen = seen(&model, 2);
    assert!(
        seen.last().is_some_and(|line| line.ends_with("The user did not allow it: not in this folder")),
        "{seen:?}"
    );
    assert!(!shop.grounds.path().join("denied.txt").exists());
}

#[test]
fn the_model_of_a_run_is_used_and_a_wrong_one_is_told() {
    let cli = opencode_or_skip!();
    let model = Model::playing([Step::text("ok").for_ever()]);
    let (shop, _home) = vendors::of_opencode(cli, &model);
    let agent = shop.prompt("hello", json!({ "model": "scripted/other" }));
    assert_eq!(shop.end(&agent), "completed", "{:#?}", shop.of(&agent));
    assert_eq!(model.asked(1).body["model"], "other");
    shop.say(&agent, "again");
    shop.wait_nth_of(&agent, "run_ended", 2);
    assert_eq!(model.asked(2).body["model"], "other", "a loaded session is told, too");
    let usual = shop.prompt("hello", json!({}));
    assert_eq!(shop.end(&usual), "completed");
    assert_eq!(model.asked(3).body["model"], "m");
    let wrong = shop.prompt("hello", json!({ "model": "scripted/none" }));
    assert_eq!(shop.end(&wrong), "wrong_model", "{:#?}", shop.of(&wrong));
    let ended = shop.wait_for(&wrong, "run_ended")["detail"].as_str().unwrap().to_owned();
    assert!(ended.contains("`scripted/none`") && ended.contains("scripted/m, scripted/other"), "{ended}");
    assert_eq!(model.count(), 3, "the model was not asked");
    shop.expect_nothing_left();
}

/// This agent reports what the session has cost, and the session of a fork begins with what its parent has cost.
#[test]
fn the_first_turn_of_a_fork_has_its_price() {
    let cli = opencode_or_skip!();
    let model = Model::playing([Step::text("first answer"), Step::text("the fork's answer")]);
    let (shop, _home) = vendors::of_opencode(cli, &model);
    let cost =
        |agent: &str| shop.door().get(&format!("/api/agents/{agent}")).json()["spent"]["cost"]["nanodollars"].clone();
    let agent = shop.prompt("hello", json!({}));
    assert_eq!(shop.end(&agent), "completed");
    let child = shop.door().child(&agent);
    shop.say(&child, "your turn");
    assert_eq!(shop.end(&child), "completed", "{:#?}", shop.of(&child));
    let seen = seen(&model, 2);
    assert!(seen.contains(&"assistant: first answer".to_owned()), "a copy, not a briefing: {seen:?}");
    // 10 tokens of input and 5 of output, at the prices in its settings.
    assert_eq!((cost(&agent), cost(&child)), (json!(10 * 2_000 + 5 * 4_000), json!(10 * 2_000 + 5 * 4_000)));
}

#[test]
fn the_doctor_says_what_the_agent_declares() {
    let cli = opencode_or_skip!();
    let model = Model::playing([]);
    let (shop, _home) = vendors::of_opencode(cli, &model);
    let words = shop.grounds.run(&["doctor"]).good();
    let line = words.lines().find(|line| line.contains("own: ")).unwrap_or_default();
    for can in ["go on with a session", "copy a session", "be interrupted"] {
        assert!(line.split("cannot").next().unwrap_or_default().contains(can), "{words}");
    }
    assert!(line.contains("1.18.33") && model.count() == 0, "{words}");
}
