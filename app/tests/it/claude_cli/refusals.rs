//! A model that says no.

use crate::support::claude_cli::{Home, cli_or_skip, uuid};
use crate::support::model::{Model, Step};
use serde_json::json;

#[test]
fn an_overload_ends_the_run_with_its_status() {
    let cli = cli_or_skip!();
    let model = Model::playing([Step::refuse(529, "Overloaded").for_ever()]);
    let home = Home::new(cli, &model);
    let mut run = home.begin(&uuid());
    run.say("first");
    let ended = run.end();
    assert_eq!((ended.code, model.count()), (Some(1), 2), "{ended:#?}");
    // A success by its subtype.
    let result = ended.results()[0];
    assert_eq!((&result["subtype"], &result["is_error"]), (&json!("success"), &json!(true)));
    assert_eq!((&result["terminal_reason"], &result["api_error_status"]), (&json!("api_error"), &json!(529)));
    let retry = ended.lines.iter().find(|line| line["subtype"] == "api_retry").unwrap();
    assert_eq!((&retry["error_status"], &retry["max_retries"]), (&json!(529), &json!(1)));
    let said = ended.lines.iter().find(|line| line["type"] == "assistant").unwrap();
    assert_eq!(said["error"], "server_error");
}

#[test]
fn after_an_overload_the_same_process_takes_the_next_line() {
    let cli = cli_or_skip!();
    let overloaded = || Step::refuse(529, "Overloaded");
    let model = Model::playing([overloaded(), overloaded(), Step::text("two")]);
    let home = Home::new(cli, &model);
    let mut run = home.begin(&uuid());
    run.say("first");
    assert_eq!(run.result(1)["api_error_status"], 529);
    run.say("second");
    assert_eq!(run.result(2)["result"], "two");
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    // What the CLI said in the place of an answer is for people, not for the model.
    assert_eq!(model.asked(3).dialogue(), ["user: first", "user: second"]);
}

#[test]
fn a_limit_with_a_time_to_wait_ends_the_run_at_once() {
    let cli = cli_or_skip!();
    let model = Model::playing([Step::refuse(429, "slow down").header("retry-after", 987_654).for_ever()]);
    let home = Home::new(cli, &model);
    let mut run = home.begin(&uuid());
    run.say("first");
    let ended = run.end();
    assert_eq!((ended.code, model.count()), (Some(1), 1), "{ended:#?}");
    let result = ended.results()[0];
    assert_eq!((&result["is_error"], &result["api_error_status"]), (&json!(true), &json!(429)));
    let said = ended.lines.iter().find(|line| line["type"] == "assistant").unwrap();
    assert_eq!(said["error"], "rate_limit");
    // When to come back is nowhere in what it says.
    assert!(ended.lines.iter().all(|line| !line.to_string().contains("987654")), "{ended:#?}");
}
