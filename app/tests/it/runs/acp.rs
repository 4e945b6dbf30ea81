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
fn a_tool_of_ours_a_plain_answer_and_a_word_that_loads_the_session() {
    let cli = opencode_or_skip!();
    let call = Step::tool_use("hatchery_send", json!({ "to": "human", "body": "from the model" }));
    let model = Model::playing([call, Step::text("first answer"), Step::text("second answer")]);
    let (shop, _home) = vendors::of_opencode(cli, &model);
    let agent = shop.prompt("hello", json!({}));
    assert_eq!(shop.end(&agent), "completed", "{:#?}", shop.of(&agent));
    assert_eq!(shop.said(&agent), ["first answer"]);
    let sent = shop.wait("the mail", |event| event["type"] == "mail_sent");
    assert_eq!((&sent["from"], &sent["body"]), (&json!(agent), &json!("from the model")));
    let kinds: Vec<_> = shop.door().history(&agent).iter().map(|message| message["kind"].clone()).collect();
    assert_eq!(kinds, ["user", "tool_call", "tool_result", "assistant"]);
    shop.say(&agent, "and then?");
    shop.wait("the second end", |event| event["type"] == "run_ended" && event["run"] == 2);
    assert_eq!(shop.said(&agent), ["first answer", "second answer"], "what was loaded is not said again");
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
    let interrupted = shop.door().post(&format!("/api/agents/{agent}/interrupt"), &json!({}));
    assert_eq!(interrupted.status, 200, "{interrupted:?}");
    let mut turns = 0;
    shop.wait("the end of the second turn", |event| {
        turns += usize::from(event["type"] == "turn_ended");
        turns == 2
    });
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
    let asked = shop.wait("a question", |event| event["agent"] == agent && event["type"] == "question_asked");
    let answer = shop.door().post(&format!("/api/questions/{}/answer", asked["id"]), &json!({ "answer": "allow" }));
    assert_eq!(answer.status, 200, "{answer:?}");
    let mut met = 0;
    shop.wait("a second question", |event| {
        met += usize::from(event["agent"] == agent && event["type"] == "question_asked");
        met == 2
    });
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
    let asked = shop.wait_for(&agent, "question_asked");
    let answer = shop.door().post(&format!("/api/questions/{}/answer", asked["id"]), &json!({ "answer": "allow" }));
    assert_eq!(answer.status, 200, "{answer:?}");
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
