//! What the process of a lead does, in the words of the original program.

use super::*;
use hatchery_core::Timestamp;
use hatchery_core::outcome::Exit;
use hatchery_core::output::{FailureKind, ServiceError};
use serde_json::json;

fn told(what: &RunEvent) -> Value {
    serde_json::to_value(of_lead(EventId(7), what)).unwrap()
}

fn noted(output: Output) -> RunEvent {
    RunEvent::OutputNoted { output }
}

#[test]
fn what_a_lead_thinks_and_forgets_is_told() {
    let compacted = noted(Output::Compacted { trigger: None, tokens_before: Some(9) });
    assert_eq!(told(&compacted), json!({ "type": "claude_compact" }));
    let thought = told(&noted(Output::Thinking { text: "hm".into() }));
    assert_eq!((&thought["type"], &thought["messageId"]), (&json!("claude_text"), &json!("msg_7")));
    assert_eq!(thought["content"], json!([{ "type": "thinking", "thinking": "hm" }]));
}

#[test]
fn failures_of_a_lead_are_errors_with_a_code() {
    let refused = |kind, status| noted(Output::ApiError(ServiceError { kind, status, text: "no".into() }));
    let ended = |cause| RunEvent::Ended { cause, detail: "over".into(), exit: Exit::Code(1) };
    let crashed =
        RunEvent::Crashed { cause: Cause::Crashed, detail: "gone".into(), exit: Exit::Signal(9), forgotten: false };
    for (what, code) in [
        (refused(FailureKind::Unauthorised, Some(401)), "auth_failed"),
        // Not every agent program tells a status.
        (refused(FailureKind::Unauthorised, None), "auth_failed"),
        (refused(FailureKind::Overloaded, Some(529)), "unknown"),
        (RunEvent::Silent { since: Timestamp(1) }, "turn_timeout"),
        (crashed, "process_exited"),
        (ended(Cause::Crashed), "process_exited"),
    ] {
        let error = told(&what);
        assert_eq!((&error["type"], &error["code"]), (&json!("server_error"), &json!(code)), "{what:?}");
        assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{error}");
    }
    for cause in [Cause::Completed, Cause::UserEnded, Cause::Killed] {
        assert_eq!(told(&ended(cause)), Value::Null, "{cause:?} is no failure");
    }
}

/// The report of a lead is in the last words of its turn, too.
#[test]
fn the_result_of_a_turn_has_no_report_in_it() {
    let text = Some("Good morning.\n[AGENT_STATUS] {\"agents\":[]}".to_owned());
    let end = TurnEnd { text, num_turns: 2, ..TurnEnd::default() };
    let told = told(&RunEvent::TurnEnded { end, spent: Usage::default(), metered: Usage::default() });
    assert_eq!((&told["resultText"], &told["numTurns"]), (&json!("Good morning.\n"), &json!(2)));
}

/// The clients take every entry of a report for a living agent.
#[test]
fn a_seat_that_was_shut_down_is_not_reported() {
    let listed =
        |number, status| SeatListed { position: Position::new(number).unwrap(), name: Some("Lyra".into()), status };
    let agents = [listed(0, ListedStatus::Alive), listed(1, ListedStatus::Shutdown), listed(2, ListedStatus::Idle)];
    let told = serde_json::to_value(status(&World::default(), &agents)).unwrap();
    let seats: Vec<&Value> = told["agents"].as_array().unwrap().iter().map(|agent| &agent["gridPosition"]).collect();
    assert_eq!(seats, [&json!(0), &json!(2)], "{told}");
}
