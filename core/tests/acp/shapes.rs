//! Lines of every form: known, unknown, and broken.

use super::{names, outputs, said};
use hatchery_core::acp::AcpReader;
use hatchery_core::harness::{Reader as _, WaitingMessage};
use hatchery_core::output::{FailureKind, Output, TurnEnd, TurnResult};
use proptest::prelude::*;
use serde_json::json;
use std::sync::Arc;

/// A reader for a process that has opened its session.
fn reader() -> AcpReader {
    AcpReader::new(Arc::default(), None, true, None)
}

fn update(update: serde_json::Value) -> String {
    json!({ "method": "session/update", "params": { "sessionId": "s", "update": update } }).to_string()
}

fn chunk(message: Option<&str>, text: &str) -> String {
    let content = json!({ "type": "text", "text": text });
    update(json!({ "sessionUpdate": "agent_message_chunk", "messageId": message, "content": content }))
}

#[test]
fn a_message_ends_where_another_begins() {
    let mut reader = reader();
    let mut read = |line: &str| reader.read(line).unwrap();
    assert_eq!(read(&chunk(Some("a"), "one ")), [Output::TurnStarted]);
    assert_eq!(read(&chunk(Some("a"), "text")), []);
    assert_eq!(read(&chunk(Some("b"), "another")), [Output::Text { text: "one text".into() }]);
    assert_eq!(read(&chunk(None, "a third")), [Output::Text { text: "another".into() }]);
    let ended = read(&json!({ "id": "say:m", "result": { "stopReason": "end_turn" } }).to_string());
    assert_eq!(ended[..2], [Output::Heard { id: "m".into() }, Output::Text { text: "a third".into() }]);
    assert!(matches!(&ended[2..], [Output::TurnEnded(end)] if end.text.as_deref() == Some("a third")));
}

#[test]
fn a_turn_without_a_word_is_a_turn() {
    let mut reader = reader();
    let ended = reader.read(&json!({ "id": "say:m", "error": { "code": -1, "message": "no" } }).to_string()).unwrap();
    assert!(matches!(&ended[..], [Output::TurnStarted, Output::Heard { .. }, Output::TurnEnded(_)]), "{ended:?}");
}

/// A piece of the history that an agent repeats when it loads a session.
fn repeated(kind: &str, message: Option<&str>, text: &str) -> String {
    let content = json!({ "type": "text", "text": text });
    update(json!({ "sessionUpdate": kind, "messageId": message, "content": content }))
}

fn loaded() -> String {
    json!({ "id": "session/load:s", "result": {} }).to_string()
}

#[test]
fn a_message_at_the_end_of_a_loaded_history_was_heard() {
    let (user, agent) = ("user_message_chunk", "agent_message_chunk");
    let told = |lines: &[String], waits: &str| {
        let waiting = WaitingMessage { id: "m".into(), text: waits.into() };
        let mut reader = AcpReader::new(Arc::default(), None, false, Some(waiting));
        let outputs = lines.iter().chain([&loaded()]).flat_map(|line| reader.read(line).unwrap()).collect::<Vec<_>>();
        assert!(matches!(outputs.last(), Some(Output::Ready { .. })), "{outputs:?}");
        outputs.contains(&Output::Heard { id: "m".into() })
    };
    let before = [repeated(user, Some("a"), "one"), repeated(agent, Some("b"), "an answer")];
    let with = |more: &[String]| [&before, more].concat();
    let in_two = [repeated(user, Some("c"), "go "), repeated(user, Some("c"), "on\n")];
    assert!(told(&with(&in_two), "go on"));
    assert!(!told(&before, "go on"), "it was lost with the process");
    assert!(!told(&before, "one"), "the same words were said before, and answered");
    let answer = repeated(agent, Some("d"), "sure");
    assert!(!told(&with(&[in_two[0].clone(), in_two[1].clone(), answer]), "go on"), "the log has heard of it");
    let tool = update(json!({ "sessionUpdate": "tool_call", "toolCallId": "t" }));
    assert!(!told(&with(&[in_two[0].clone(), in_two[1].clone(), tool]), "go on"), "it is sent again, to be safe");
    let warning = repeated(agent, None, "Config warning: no bubblewrap");
    assert!(told(&with(&[in_two[0].clone(), in_two[1].clone(), warning]), "go on"));
    let twice = [repeated(user, None, "go on"), repeated(user, None, "go on")];
    assert!(!told(&with(&twice), "go on"), "without ids the end of a message is not seen");
}

/// A daemon that was restarted reads the output of a process that is ready once more, from its beginning.
#[test]
fn a_reader_that_begins_again_does_not_say_a_loaded_history() {
    let mut reader = reader();
    for line in [repeated("agent_message_chunk", Some("b"), "an old answer"), loaded()] {
        reader.read(&line).unwrap();
    }
    assert_eq!(reader.read(&chunk(Some("c"), "new")), Ok(vec![Output::TurnStarted]));
}

#[test]
fn reasons_to_stop_have_the_causes_that_all_harnesses_share() {
    let failed = |reason: &str| {
        let line = json!({ "id": "say:m", "result": { "stopReason": reason } }).to_string();
        match reader().read(&line).unwrap().pop() {
            Some(Output::TurnEnded(TurnEnd { result: TurnResult::Failed { kind, detail }, .. })) => (kind, detail),
            other => panic!("{reason}: {other:?}"),
        }
    };
    assert_eq!(failed("refusal").0, FailureKind::Refused);
    assert_eq!(failed("max_tokens").0, FailureKind::OutputTooLong);
    assert_eq!(failed("a_new_reason"), (FailureKind::Other, "the agent stopped: a_new_reason".into()));
}

#[test]
fn what_is_unknown_is_skipped() {
    let mut reader = reader();
    for line in [
        update(json!({ "sessionUpdate": "future" })),
        json!({ "method": "_auth/status_update", "params": {} }).to_string(),
        json!({ "id": 7, "result": {} }).to_string(),
        json!({ "id": "stranger", "result": {} }).to_string(),
        "[1]".to_owned(),
        "{}".to_owned(),
    ] {
        assert_eq!(reader.read(&line), Ok(vec![]), "{line}");
    }
    assert!(reader.read("half a li").is_err());
}

#[test]
fn a_request_of_an_unknown_kind_is_asked_because_the_agent_waits_for_an_answer() {
    let mut reader = reader();
    let line = json!({ "id": 3, "method": "fs/read_text_file", "params": { "path": "/x" } }).to_string();
    let asked = reader.read(&line).unwrap();
    let Some(Output::Asked(request)) = asked.last() else { panic!("{asked:?}") };
    let answer = hatchery_core::acp::approval(request, &hatchery_core::permission::PermissionDecision::Allow);
    assert!(answer.contains("-32601") && answer.contains("\"id\":3"), "{answer}");
}

#[test]
fn what_was_said_can_be_written_down() {
    for output in names().iter().flat_map(|name| outputs(name)) {
        let written = serde_json::to_string(&output).unwrap();
        assert_eq!(serde_json::from_str::<Output>(&written).unwrap(), output, "{written}");
    }
}

proptest! {
    /// Cut anywhere, with a byte changed anywhere, after any other line: a line is read or refused, but never brings the reader down.
    #[test]
    fn no_line_brings_the_reader_down(
        before in recorded_line(),
        line in recorded_line(),
        at in any::<prop::sample::Index>(),
        byte: u8,
        cut: bool,
    ) {
        let mut bytes = line.into_bytes();
        let at = at.index(bytes.len());
        if cut {
            bytes.truncate(at);
        } else {
            bytes[at] = byte;
        }
        let mut reader = reader();
        prop_assert!(reader.read(&before).is_ok());
        reader.partial(&String::from_utf8_lossy(&bytes));
        let read = reader.read(&String::from_utf8_lossy(&bytes));
        prop_assert!(!cut || at == 0 || read.is_err(), "half a line was taken for a whole one");
    }
}

fn recorded_line() -> impl Strategy<Value = String> {
    prop::sample::select(
        names().iter().flat_map(|name| said(name)).filter(|line| line.starts_with('{')).collect::<Vec<_>>(),
    )
}
