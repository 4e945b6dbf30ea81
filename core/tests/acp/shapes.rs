//! Lines of every form: known, unknown, and broken.

use super::{names, outputs, said};
use hatchery_core::acp::AcpReader;
use hatchery_core::harness::Reader as _;
use hatchery_core::output::Output;
use proptest::prelude::*;
use serde_json::json;
use std::sync::Arc;

fn update(update: serde_json::Value) -> String {
    json!({ "method": "session/update", "params": { "sessionId": "s", "update": update } }).to_string()
}

fn chunk(message: Option<&str>, text: &str) -> String {
    let content = json!({ "type": "text", "text": text });
    update(json!({ "sessionUpdate": "agent_message_chunk", "messageId": message, "content": content }))
}

#[test]
fn a_message_ends_where_another_begins() {
    let mut reader = AcpReader::new(Arc::default(), None, true);
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
    let mut reader = AcpReader::new(Arc::default(), None, true);
    let ended = reader.read(&json!({ "id": "say:m", "error": { "code": -1, "message": "no" } }).to_string()).unwrap();
    assert!(matches!(&ended[..], [Output::TurnStarted, Output::Heard { .. }, Output::TurnEnded(_)]), "{ended:?}");
}

#[test]
fn what_is_unknown_is_skipped() {
    let mut reader = AcpReader::new(Arc::default(), None, true);
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
    let mut reader = AcpReader::new(Arc::default(), None, true);
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
        let mut reader = AcpReader::new(Arc::default(), None, true);
        prop_assert!(reader.read(&before).is_ok());
        let read = reader.read(&String::from_utf8_lossy(&bytes));
        prop_assert!(!cut || at == 0 || read.is_err(), "half a line was taken for a whole one");
    }
}

fn recorded_line() -> impl Strategy<Value = String> {
    prop::sample::select(
        names().iter().flat_map(|name| said(name)).filter(|line| line.starts_with('{')).collect::<Vec<_>>(),
    )
}
