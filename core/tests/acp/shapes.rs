//! Lines of every form: known, unknown, and broken.

use super::damage::{are_stored, damaged, is_noticed};
use super::{names, outputs, said};
use hatchery_core::acp::AcpReader;
use hatchery_core::harness::{ModelChoice, Reader as _, WaitingMessage};
use hatchery_core::output::{FailureKind, Output, TurnEnd, TurnResult};
use hatchery_core::permission::Access;
use hatchery_core::usage::Usage;
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
fn a_model_without_a_price_is_told_once() {
    let mut reader = reader();
    let usage = json!({ "inputTokens": 10, "outputTokens": 5, "totalTokens": 15 });
    let ended = json!({ "id": "say:m", "result": { "stopReason": "end_turn", "usage": usage } }).to_string();
    let mut notes = || {
        let said = reader.read(&ended).unwrap();
        said.into_iter().filter(|output| matches!(output, Output::Note { .. })).count()
    };
    assert_eq!((notes(), notes()), (1, 0));
}

#[test]
fn a_turn_without_a_word_is_a_turn() {
    let mut reader = reader();
    let ended = reader.read(&json!({ "id": "say:m", "error": { "code": -1, "message": "no" } }).to_string()).unwrap();
    assert!(matches!(&ended[..], [Output::TurnStarted, Output::Heard { .. }, Output::TurnEnded(_)]), "{ended:?}");
}

#[test]
fn a_model_is_taken_or_refused() {
    let opened = |about: serde_json::Value| json!({ "id": "session/new", "result": about }).to_string();
    let models = json!([{ "modelId": "big" }, { "modelId": "small" }]);
    let by_request =
        opened(json!({ "sessionId": "s", "models": { "currentModelId": "big", "availableModels": models } }));
    let choice = |line: &str| {
        let mut reader = AcpReader::new(Arc::default(), None, false, None);
        match &reader.read(line).unwrap()[..] {
            [Output::Declares(declared), Output::Ready { .. }] => (declared.model_choice, reader),
            other => panic!("{other:?}"),
        }
    };
    let (how, mut reader) = choice(&by_request);
    assert_eq!(how, ModelChoice::SessionModel);
    assert_eq!(choice(&opened(json!({ "sessionId": "s" }))).0, ModelChoice::Never);
    let taken = json!({ "id": "model:small", "result": {} }).to_string();
    assert_eq!(reader.read(&taken), Ok(vec![Output::ModelChosen { model: "small".into() }]));
    let refused = json!({ "id": "model:huge", "error": { "code": -32602, "message": "Invalid params" } }).to_string();
    let [Output::TurnEnded(end)] = &reader.read(&refused).unwrap()[..] else { panic!("no end") };
    let detail = "the agent does not accept the model `huge`: Invalid params; it has big, small".to_owned();
    assert_eq!(end.result, TurnResult::Failed { kind: FailureKind::WrongModel, detail });
}

/// As gemini asks: the tool is in the title and in the id, the input in a text.
#[test]
fn a_tool_of_ours_is_known_by_title_and_id() {
    let access = |id: &str, title: &str| {
        let content = json!([{ "type": "content", "content": { "type": "text", "text": "{\"to\":\"human\"}" } }]);
        let call =
            json!({ "toolCallId": id, "status": "pending", "title": title, "content": content, "kind": "other" });
        let line =
            json!({ "id": 0, "method": "session/request_permission", "params": { "options": [], "toolCall": call } });
        match reader().read(&line.to_string()).unwrap().pop() {
            Some(Output::Asked(request)) => (request.tool, request.access, request.input),
            other => panic!("{other:?}"),
        }
    };
    let (own, input) = ("send (hatchery MCP Server)", "{\"to\":\"human\"}".to_owned());
    assert_eq!(
        access("mcp_hatchery_send__mcp_hatchery_send_1_0", own),
        ("send".into(), Access::OwnTool, input.clone())
    );
    // The title of a command is the command, and a model may write anything there.
    assert_eq!(access("run_shell_command__run_shell_command_1_0", own), ("other".into(), Access::Other, input));
}

/// What each request used counts at once, and the end of the turn has the sum.
#[test]
fn tokens_are_read_where_agents_have_them() {
    let mut reader = reader();
    let piece = json!({
        "sessionUpdate": "agent_message_chunk",
        "content": { "type": "text", "text": "" },
        "_meta": { "usage": { "inputTokens": 10, "outputTokens": 5 } },
    });
    let line = update(piece);
    let used = Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() };
    assert_eq!(reader.read(&line).unwrap(), [Output::TurnStarted, Output::Used { usage: used, context: None }]);
    assert_eq!(reader.partial(&line), None, "it is no piece of a text");
    assert_eq!(reader.read(&line).unwrap(), [Output::Used { usage: used, context: None }]);
    let since = |ended: Vec<Output>| match ended.last() {
        Some(Output::TurnEnded(end)) => end.since_last,
        other => panic!("{other:?}"),
    };
    let ended = reader.read(&json!({ "id": "say:m", "result": { "stopReason": "end_turn" } }).to_string()).unwrap();
    assert_eq!(since(ended), Some(used + used));
    let quota = json!({ "quota": { "token_count": { "input_tokens": 10, "output_tokens": 5 } } });
    let ended =
        reader.read(&json!({ "id": "say:n", "result": { "stopReason": "end_turn", "_meta": quota } }).to_string());
    assert_eq!(since(ended.unwrap()), Some(used));
}

/// A piece of the history that an agent repeats when it loads a session.
fn repeated(kind: &str, message: Option<&str>, text: &str) -> String {
    let content = json!({ "type": "text", "text": text });
    update(json!({ "sessionUpdate": kind, "messageId": message, "content": content }))
}

/// The answer to `session/load`.
fn loaded() -> String {
    json!({ "id": "session/load:s", "result": {} }).to_string()
}

/// The answer to our question about the history, which no agent knows.
fn history_repeated() -> String {
    json!({ "id": "history:s", "error": { "code": -32601, "message": "Method not found" } }).to_string()
}

#[test]
fn a_message_at_the_end_of_a_loaded_history_was_heard() {
    let (user, agent) = ("user_message_chunk", "agent_message_chunk");
    let told = |lines: &[String], waits: &str| {
        let waiting = WaitingMessage { id: "m".into(), text: waits.into() };
        let mut reader = AcpReader::new(Arc::default(), None, false, Some(waiting));
        let lines = [lines, &[loaded(), history_repeated()]].concat();
        let outputs: Vec<_> = lines.iter().flat_map(|line| reader.read(line).unwrap()).collect();
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
    for line in [repeated("agent_message_chunk", Some("b"), "an old answer"), loaded(), history_repeated()] {
        reader.read(&line).unwrap();
    }
    assert_eq!(reader.read(&chunk(Some("c"), "new")), Ok(vec![Output::TurnStarted]));
}

/// Gemini answers `session/load` before it has repeated the history.
#[test]
fn a_history_that_is_repeated_after_the_answer_is_not_said_again() {
    let (user, agent) = ("user_message_chunk", "agent_message_chunk");
    let waiting = WaitingMessage { id: "m".into(), text: "go on".into() };
    let mut reader = AcpReader::new(Arc::default(), None, false, Some(waiting));
    for line in [
        repeated(user, Some("a"), "one"),
        loaded(),
        repeated(agent, Some("b"), "an old answer"),
        update(json!({ "sessionUpdate": "tool_call", "toolCallId": "t" })),
        repeated(user, Some("c"), "go on"),
    ] {
        assert_eq!(reader.read(&line), Ok(vec![]), "{line}");
    }
    let outputs = reader.read(&history_repeated()).unwrap();
    assert!(
        matches!(&outputs[..], [Output::Heard { id }, Output::Declares(_), Output::Ready { session, .. }] if id == "m" && session == "s"),
        "{outputs:?}"
    );
    assert_eq!(reader.read(&chunk(Some("d"), "new")), Ok(vec![Output::TurnStarted]));
}

#[test]
fn a_session_that_is_resumed_without_its_history_is_open_at_once() {
    let waiting = WaitingMessage { id: "m".into(), text: "go on".into() };
    let mut reader = AcpReader::new(Arc::default(), None, false, Some(waiting));
    let resumed = json!({ "id": "session/resume:s", "result": {} }).to_string();
    let outputs = reader.read(&resumed).unwrap();
    assert!(
        matches!(&outputs[..], [Output::Declares(_), Output::Ready { session, .. }] if session == "s"),
        "{outputs:?}"
    );
    assert_eq!(reader.read(&chunk(Some("d"), "new")), Ok(vec![Output::TurnStarted]));
}

#[test]
fn a_session_that_was_not_loaded_is_not_open_after_the_question_about_its_history() {
    let mut reader = AcpReader::default();
    let refused = json!({ "id": "session/load:s", "error": { "code": -32603, "message": "no such session" } });
    let ended = reader.read(&refused.to_string()).unwrap();
    assert!(matches!(&ended[..], [Output::TurnEnded(end)] if end.result == TurnResult::SessionUnknown), "{ended:?}");
    assert_eq!(reader.read(&history_repeated()), Ok(vec![]));
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
fn lines_of_other_modes_say_nothing() {
    let mut reader = reader();
    for line in super::recordings::foreign() {
        assert_eq!(reader.partial(&line), None, "{line}");
        assert_eq!(reader.read(&line), Ok(vec![]), "{line}");
    }
}

#[test]
fn a_request_of_an_unknown_kind_is_refused_because_the_agent_waits_for_an_answer() {
    let mut reader = reader();
    let line = json!({ "id": 3, "method": "fs/read_text_file", "params": { "path": "/x" } }).to_string();
    let asked = reader.read(&line).unwrap();
    let Some(Output::Asked(request)) = asked.last() else { panic!("{asked:?}") };
    assert_eq!(request.access, Access::NotOffered, "nobody is asked");
    let answer = hatchery_core::acp::approval(request, &hatchery_core::permission::PermissionDecision::Allow);
    assert!(answer.contains("-32601") && answer.contains("\"id\":3"), "{answer}");
}

#[test]
fn what_was_said_can_be_written_down() {
    are_stored(names().iter().flat_map(|name| outputs(name)));
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
        let damaged = damaged(line, at, byte, cut);
        let mut reader = reader();
        prop_assert!(reader.read(&before).is_ok());
        reader.partial(&damaged);
        let read = reader.read(&damaged);
        prop_assert!(is_noticed(cut, &damaged, &read), "half a line was taken for a whole one");
    }
}

fn recorded_line() -> impl Strategy<Value = String> {
    prop::sample::select(
        names().iter().flat_map(|name| said(name)).filter(|line| line.starts_with('{')).collect::<Vec<_>>(),
    )
}
