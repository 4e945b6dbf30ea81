//! The real codex, run by the daemon against a scripted model.

use crate::support::codex_cli::codex_or_skip;
use crate::support::model::{Fault, Gate, Model, Place, Step};
use crate::support::scenes::{self, Scene};
use crate::support::vendors;
use serde_json::json;

#[test]
fn a_plain_answer_and_a_word_that_resumes() {
    let cli = codex_or_skip!();
    let Scene { shop, model, home: _home, .. } =
        scenes::a_plain_answer_and_a_word_that_resumes(|model| vendors::of_codex(cli, model));
    let seen = model.asked(2).dialogue();
    assert_eq!(seen, ["user: hello", "assistant: first answer", "user: and then?"]);
    let usage = shop.door().get("/api/usage").json();
    assert_eq!((&usage["total"]["inputTokens"], &usage["total"]["outputTokens"]), (&json!(20), &json!(10)));
}

#[test]
fn a_tool_of_ours_is_called() {
    let cli = codex_or_skip!();
    scenes::a_tool_of_ours_is_called(|model| vendors::of_codex(cli, model));
}

#[test]
fn a_process_killed_in_mid_turn_is_resumed() {
    let cli = codex_or_skip!();
    let Scene { home, shop, agent, .. } =
        scenes::a_process_killed_in_mid_turn_is_resumed(|model| vendors::of_codex(cli, model));
    let recorded = home.recorded_messages();
    assert_eq!(recorded.len(), 2, "the message and the nudge, each once: {recorded:?}");
    // The resumed thread says that it holds the message: if the echo had been lost, the message would not be sent again.
    let spool = std::fs::read_to_string(shop.folder(&agent, 1, 2).join("stdout.jsonl")).unwrap();
    let lines = spool.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let listed = lines.into_iter().find(|line| line["id"] == "thread/turns/list").expect("no answer");
    let turns = listed["result"]["data"].as_array().unwrap_or_else(|| panic!("{listed}"));
    let items = turns.iter().flat_map(|turn| turn["items"].as_array().unwrap());
    let held: Vec<&str> = items.filter_map(|item| item["clientId"].as_str()).collect();
    assert_eq!(held, [recorded[0].as_str()], "{listed}");
}

#[test]
fn a_daemon_killed_in_mid_turn_finds_its_agent_again() {
    let cli = codex_or_skip!();
    scenes::a_daemon_killed_in_mid_turn_finds_its_agent_again(|model| vendors::of_codex(cli, model));
}

#[test]
fn a_message_in_mid_turn_is_heard_and_answered() {
    let cli = codex_or_skip!();
    let gate = Gate::default();
    let held = Step::text("the first answer").fault(Place::Within(0), Fault::Hold(gate.clone()));
    let model = Model::playing([held, Step::text("the second answer")]);
    let (shop, home) = vendors::of_codex(cli, &model);
    let agent = shop.prompt("hello", json!({}));
    gate.reached();
    shop.wait_for(&agent, "message_heard");
    shop.say(&agent, "and this");
    gate.open();
    assert_eq!(shop.end(&agent), "completed");
    assert_eq!(shop.said(&agent), ["the first answer", "the second answer"], "the answer was not broken off");
    let seen = model.asked(2).dialogue();
    assert_eq!(seen[..3], ["user: hello", "assistant: the first answer", "user: and this"]);
    // On a busy machine the message comes while the turn ends. Then codex keeps it, and has to be told to answer it.
    let reminded = seen.get(3).is_some_and(|text| text.ends_with("Answer it now."));
    assert_eq!(home.recorded_messages().len(), 2 + usize::from(reminded), "{seen:?}");
}

#[test]
fn an_interrupted_turn_does_not_end_the_conversation() {
    let cli = codex_or_skip!();
    scenes::an_interrupted_turn_does_not_end_the_conversation(|model| vendors::of_codex(cli, model), |_| {});
}

#[test]
fn a_fork_knows_what_its_parent_said_and_pays_only_for_itself() {
    let cli = codex_or_skip!();
    let (Scene { shop, model, home: _home, .. }, child) =
        scenes::a_fork_knows_what_its_parent_said(|model| vendors::of_codex(cli, model));
    let seen = model.asked(2).dialogue();
    assert_eq!(seen, ["user: hello", "assistant: the parent's answer", "user: your turn"]);
    let spent = shop.wait_for(&child, "turn_ended")["spent"].clone();
    assert_eq!((&spent["input_tokens"], &spent["output_tokens"]), (&json!(10), &json!(5)), "{spent}");
    // gpt-5.5 costs 5 and 30 dollars for a million tokens of input and output.
    assert_eq!(spent["cost"]["nanodollars"], 10 * 5_000 + 5 * 30_000, "{spent}");
}

#[test]
fn a_permission_is_asked_and_answered() {
    let cli = codex_or_skip!();
    let outside = |file: &str| {
        let input = json!({ "cmd": format!("touch {file}"), "sandbox_permissions": "require_escalated", "justification": "May I?" });
        Step::tool_use("exec_command", input)
    };
    // The reason of the denial is a message. Codex may show it to the model at once, or when the model has answered.
    let model = Model::playing([outside("allowed.txt"), outside("denied.txt"), Step::text("done").for_ever()]);
    let (shop, _home) = vendors::of_codex(cli, &model);
    let agent = shop.prompt("hello", json!({ "permissions": "ask" }));
    shop.answer_nth(&agent, 1, "allow");
    shop.answer_nth(&agent, 2, "deny: not that one");
    assert_eq!(shop.end(&agent), "completed");
    assert!(shop.grounds.path().join("allowed.txt").exists());
    assert!(!shop.grounds.path().join("denied.txt").exists());
    let asked = shop.wait_for(&agent, "output_noted");
    assert_eq!(asked["output"]["access"]["execute"]["command"], "touch allowed.txt", "{asked}");
    let mut results = shop.door().history(&agent).into_iter().filter(|message| message["kind"] == "tool_result");
    assert!(results.next_back().unwrap()["content"].as_str().unwrap().contains("not allowed"));
    let seen = model.asked(model.count()).dialogue();
    let told =
        |line: &&String| line.contains("(run `touch denied.txt`) was denied. The user did not allow it: not that one");
    assert_eq!(seen.iter().filter(told).count(), 1, "{seen:#?}");
}

#[test]
fn the_policy_edits_lets_codex_write_its_folder_without_a_question() {
    let cli = codex_or_skip!();
    let write = |path: &str| Step::tool_use("exec_command", json!({ "cmd": format!("echo x > {path}") }));
    let patch = "*** Begin Patch\n*** Add File: patched.txt\n+hello\n*** End Patch\n";
    let patched = Step::tool_use("apply_patch", json!({ "patch": patch }));
    let model = Model::playing([write("inside.txt"), patched, Step::text("done")]);
    let (shop, _home) = vendors::of_codex(cli, &model);
    let inner = shop.grounds.path().join("work/inner");
    std::fs::create_dir_all(&inner).unwrap();
    let agent = shop.prompt("hello", json!({ "permissions": "edits", "folder": "work/inner" }));
    assert_eq!(shop.end(&agent), "completed");
    assert!(inner.join("inside.txt").exists() && inner.join("patched.txt").exists());
    assert_eq!(shop.count_of(&agent, "question_asked"), 0);
}

#[test]
fn failures_have_the_causes_of_all_harnesses() {
    let cli = codex_or_skip!();
    for (step, cause) in [
        (Step::refuse(401, "bad key"), "unauthorised"),
        (Step::refuse_as(429, "insufficient_quota", "You exceeded your current quota"), "out_of_credit"),
        (Step::refuse_as(404, "model_not_found", "The model does not exist"), "wrong_model"),
        (Step::refuse_as(400, "context_length_exceeded", "Your input exceeds the context window"), "prompt_too_long"),
    ] {
        let model = Model::playing([step.for_ever()]);
        let (shop, _home) = vendors::of_codex(cli, &model);
        let agent = shop.prompt("hello", json!({}));
        assert_eq!(shop.end(&agent), cause, "{:#?}", shop.of(&agent));
    }
}

#[test]
fn a_service_that_fails_parks_the_run() {
    let cli = codex_or_skip!();
    let model = Model::playing([Step::refuse(500, "scripted failure").for_ever()]);
    let (shop, _home) = vendors::of_codex(cli, &model);
    let agent = shop.prompt("hello", json!({}));
    let parked = shop.wait_for(&agent, "run_parked");
    assert_eq!(parked["cause"], "unavailable", "{parked}");
    shop.stop(&agent);
    assert_eq!(shop.end(&agent), "user_ended");
}

#[test]
fn a_used_up_limit_parks_the_run_until_it_is_lifted() {
    let cli = codex_or_skip!();
    let resets_at = 4_000_000_000_u64;
    let refused = Step::refuse_as(429, "usage_limit_reached", "The usage limit has been reached")
        .header("x-codex-primary-used-percent", 100)
        .header("x-codex-primary-window-minutes", 300)
        .header("x-codex-primary-reset-at", resets_at);
    let model = Model::playing([refused.for_ever()]);
    let (shop, _home) = vendors::of_codex(cli, &model);
    let agent = shop.prompt("hello", json!({}));
    let parked = shop.wait_for(&agent, "run_parked");
    assert_eq!(parked["cause"], "rate_limited", "{parked}");
    assert_eq!(parked["until"], resets_at * 1_000, "{parked}");
    shop.stop(&agent);
    assert_eq!(shop.end(&agent), "user_ended");
}

#[test]
fn a_thread_that_was_begun_elsewhere_is_adopted_and_goes_on() {
    let cli = codex_or_skip!();
    let model = Model::playing([Step::text("first answer"), Step::text("second answer"), Step::text("third answer")]);
    let (shop, home) = vendors::of_codex(cli, &model);
    // A thread of a project is the same for codex, whoever began it.
    let other = shop.prompt("hello", json!({}));
    assert_eq!(shop.end(&other), "completed");
    let fork = shop.door().child(&other);
    shop.say(&fork, "in the fork");
    assert_eq!(shop.end(&fork), "completed");
    let thread = shop.wait_for(&fork, "run_started")["session"].as_str().unwrap().to_owned();
    let killed = shop.door().post(&format!("/api/agents/{fork}/kill"), &json!({}));
    assert_eq!(killed.status, 200, "{killed:?}");
    let before = home.recorded_messages().len();
    let listed = shop.grounds.run(&["adopt"]).good();
    let line = listed.lines().find(|line| line.contains(&thread[..8]) && !line.contains("is agent")).unwrap();
    assert!(line.contains("codex") && line.contains("4 messages") && line.contains("hello"), "{listed}");
    shop.grounds.run(&["adopt", &thread, "--name", "taken"]).good();
    let agent = shop.wait("the agent", |event| event["type"] == "harness_session_adopted")["agent"].clone();
    let agent = agent.as_str().unwrap();
    let history = shop.door().history(agent);
    let said: Vec<_> = history.iter().map(|message| message["content"].as_str().unwrap()).collect();
    assert_eq!(said, ["hello", "first answer", "in the fork", "second answer"]);
    assert_eq!(home.recorded_messages().len(), before, "codex's records are only read");
    shop.say(agent, "and now?");
    assert_eq!(shop.end(agent), "completed");
    let seen = model.asked(3).dialogue();
    assert_eq!(seen.last().map(String::as_str), Some("user: and now?"), "{seen:?}");
    assert!(seen.contains(&"assistant: second answer".to_owned()), "{seen:?}");
}

#[test]
fn a_fork_at_an_earlier_turn_knows_what_was_said_until_then() {
    let cli = codex_or_skip!();
    let answers = ["first answer", "second answer", "the fork's answer"].map(Step::text);
    let model = Model::playing(answers);
    let (shop, _home) = vendors::of_codex(cli, &model);
    let agent = shop.prompt("hello", json!({}));
    assert_eq!(shop.end(&agent), "completed");
    shop.say(&agent, "and then?");
    shop.wait("the second end", |event| event["type"] == "run_ended" && event["run"] == 2);
    let history = shop.door().history(&agent);
    let at = history.iter().find(|message| message["content"] == "first answer").unwrap()["id"].to_string();
    let fork = shop.grounds.run(&["fork", &agent, "your turn", "--at", &at, "--harness", "codex"]).good();
    let fork = fork.trim();
    assert_eq!(shop.end(fork), "completed");
    let seen = model.asked(3).dialogue();
    assert_eq!(seen, ["user: hello", "assistant: first answer", "user: your turn"], "a copy, not a briefing");
    let spent = shop.wait_for(fork, "turn_ended")["spent"].clone();
    assert_eq!((&spent["input_tokens"], &spent["output_tokens"]), (&json!(10), &json!(5)), "{spent}");
}

/// Codex locks the threads that it has open, so a lock is another process of codex.
#[test]
fn a_thread_that_is_open_elsewhere_is_tried_again() {
    let cli = codex_or_skip!();
    let model = Model::playing([Step::text("first answer"), Step::text("second answer")]);
    let (shop, home) = vendors::of_codex(cli, &model);
    let agent = shop.prompt("hello", json!({ "retries": 5 }));
    assert_eq!(shop.end(&agent), "completed");
    let thread = shop.wait_for(&agent, "run_started")["session"].as_str().unwrap().to_owned();
    let lock = home.lock_thread(&thread);
    shop.say(&agent, "and then?");
    let crashed = shop.wait_for(&agent, "run_crashed");
    assert!(crashed["detail"].as_str().unwrap().contains("another process of codex has the thread open"), "{crashed}");
    drop(lock);
    shop.wait_nth_of(&agent, "run_ended", 2);
    assert_eq!(shop.said(&agent), ["first answer", "second answer"]);
    assert_eq!(model.asked(2).dialogue(), ["user: hello", "assistant: first answer", "user: and then?"]);
}
