//! The real CLI, run by the daemon against a scripted model: what the scripted agent shows in hundreds of cases is shown here
//! to hold for the real thing.

use crate::support::claude_cli::cli_or_skip;
use crate::support::model::{Gate, Model, Step};
use crate::support::scenes::{self, Scene};
use crate::support::vendors;
use crate::support::victim::{Victim, rounds};
use serde_json::json;

#[test]
fn a_plain_answer_and_a_word_that_resumes() {
    let cli = cli_or_skip!();
    let Scene { shop, model, home: _home, .. } =
        scenes::a_plain_answer_and_a_word_that_resumes(|model| vendors::of_claude(cli, model));
    let seen = model.asked(2).dialogue();
    assert!(
        seen.iter().any(|line| line == "user: hello") && seen.iter().any(|line| line.contains("and then?")),
        "{seen:?}"
    );
    let usage = shop.door().get("/api/usage").json();
    assert!(usage["total"]["outputTokens"].as_u64().unwrap() > 0, "{usage}");
}

#[test]
fn a_tool_of_ours_is_called() {
    let cli = cli_or_skip!();
    scenes::a_tool_of_ours_is_called(|model| vendors::of_claude(cli, model));
}

#[test]
fn a_fork_knows_what_its_parent_said() {
    let cli = cli_or_skip!();
    let (Scene { model, shop: _shop, home: _home, .. }, _) =
        scenes::a_fork_knows_what_its_parent_said(|model| vendors::of_claude(cli, model));
    let seen = model.asked(2).dialogue();
    assert!(seen.iter().any(|line| line.contains("the parent's answer")), "{seen:?}");
}

#[test]
fn an_interrupted_turn_does_not_end_the_conversation() {
    let cli = cli_or_skip!();
    let open = |model: &Model| vendors::of_claude(cli, model);
    scenes::an_interrupted_turn_does_not_end_the_conversation(open, |Scene { shop, model, agent, .. }| {
        // What the model saw is what the history says: each line as the model got it, without its role.
        let seen: Vec<String> = model.asked(2).dialogue();
        let seen: Vec<&str> = seen.iter().filter_map(|line| line.split_once(": ")).map(|(_, words)| words).collect();
        let history = shop.door().context(agent);
        assert_eq!(history.last().map(String::as_str), Some("the next answer"));
        assert_eq!(history[..history.len() - 1], seen, "{history:?}");
    });
}

/// The message was said before the turn was interrupted, and the model sees it after that.
#[test]
fn a_message_that_waits_while_a_turn_is_interrupted_stands_where_the_model_sees_it() {
    let cli = cli_or_skip!();
    let gate = Gate::default();
    let model = Model::playing([Step::text("never said").behind(&gate), Step::text("the next answer")]);
    let (shop, _home) = vendors::of_claude(cli, &model);
    let agent = shop.prompt("hello", json!({ "stays": true }));
    model.asked(1);
    shop.wait_for(&agent, "run_started");
    shop.say(&agent, "rather this");
    let interrupted = shop.door().post(&format!("/api/agents/{agent}/interrupt"), &json!({}));
    assert_eq!(interrupted.status, 200, "{interrupted:?}");
    shop.wait("the answer", |event| event["content"] == "the next answer");
    let seen: Vec<String> = model.asked(2).dialogue();
    let seen: Vec<&str> = seen.iter().filter_map(|line| line.split_once(": ")).map(|(_, words)| words).collect();
    let history = shop.door().context(&agent);
    assert_eq!(history.last().map(String::as_str), Some("the next answer"));
    assert_eq!(history[..history.len() - 1], seen, "{history:?}");
    shop.stop(&agent);
    assert_eq!(shop.end(&agent), "user_ended");
    shop.expect_nothing_left();
}

/// The answers of the model say what they cost. The second answer does not come as long as the gate is closed.
#[test]
fn what_a_turn_costs_is_shown_while_it_lasts() {
    let cli = cli_or_skip!();
    let gate = Gate::default();
    let model =
        Model::playing([Step::tool_use("mcp__hatchery__check-mail", json!({})), Step::text("done").behind(&gate)]);
    let (shop, _home) = vendors::of_claude(cli, &model);
    let agent = shop.prompt("hello", json!({ "stays": true, "model": "claude-opus-5-5" }));
    model.asked(2);
    shop.wait_for(&agent, "usage_metered");
    let cost = || shop.door().get(&format!("/api/agents/{agent}")).json()["spent"]["cost"]["nanodollars"].as_u64();
    let within = cost().unwrap();
    assert!(within > 0 && shop.count_of(&agent, "turn_ended") == 0, "{:?}", shop.of(&agent));
    let listed = shop.grounds.run(&["ps"]).good();
    assert!(listed.lines().any(|line| line.contains(&agent[..8]) && !line.contains(" $0 ")), "{listed}");
    gate.open();
    shop.wait_for(&agent, "turn_ended");
    assert!(cost().unwrap() > within, "the second answer costs something, too");
    shop.stop(&agent);
    shop.end(&agent);
}

#[test]
fn an_overload_parks_the_run() {
    let cli = cli_or_skip!();
    let model = Model::playing([Step::refuse(529, "Overloaded").for_ever()]);
    let (shop, _home) = vendors::of_claude(cli, &model);
    let agent = shop.prompt("hello", json!({}));
    let parked = shop.wait_for(&agent, "run_parked");
    assert_eq!(parked["cause"], "overloaded", "{parked}");
    shop.stop(&agent);
    assert_eq!(shop.end(&agent), "user_ended");
}

#[test]
fn a_process_killed_in_mid_turn_is_resumed() {
    let cli = cli_or_skip!();
    scenes::a_process_killed_in_mid_turn_is_resumed(|model| vendors::of_claude(cli, model));
}

#[test]
fn a_daemon_killed_in_mid_turn_finds_its_agent_again() {
    let cli = cli_or_skip!();
    scenes::a_daemon_killed_in_mid_turn_finds_its_agent_again(|model| vendors::of_claude(cli, model));
}

/// The CLI refuses a conversation that another process is at, and the process of a killed launcher is still being ended then.
#[test]
fn a_launcher_killed_in_mid_turn_never_ends_the_run() {
    let cli = cli_or_skip!();
    let rounds = rounds(3, 31);
    let gate = Gate::default();
    let in_turn = |round| [Step::text("never said").behind(&gate), Step::text(&format!("answer {round}"))];
    let model = Model::playing([Step::text("hello")].into_iter().chain((0..rounds).flat_map(in_turn)));
    let (mut shop, _home) = vendors::of_claude(cli, &model);
    let agent = shop.prompt("hello", json!({ "stays": true }));
    shop.wait_for(&agent, "turn_ended");
    for round in 0..rounds {
        shop.say(&agent, &format!("word {round}"));
        model.asked(2 * round + 2);
        Victim::Launcher.kill(&mut shop, &agent);
        let answer = format!("answer {round}");
        let next = shop.wait("the answer", |event| event["type"] == "run_ended" || event["content"] == answer.as_str());
        assert_ne!(next["type"], "run_ended", "round {round}: {next}");
    }
    shop.stop(&agent);
    assert_eq!(shop.end(&agent), "user_ended");
    shop.expect_nothing_left();
}
