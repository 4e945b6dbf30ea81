//! Lines of every form: known, unknown, and broken.

use super::damage::{are_stored, damaged, is_noticed};
use super::{names, outputs, said};
use hatchery_core::codex::CodexReader;
use hatchery_core::harness::Reader as _;
use hatchery_core::output::{FailureKind, Output, TurnEnd, TurnResult};
use proptest::prelude::*;
use serde_json::json;
use std::sync::Arc;

fn read(lines: &[serde_json::Value]) -> Vec<Output> {
    let mut reader = CodexReader::default();
    lines.iter().flat_map(|line| reader.read(&line.to_string()).unwrap()).collect()
}

fn opened(id: &str) -> serde_json::Value {
    json!({ "id": id, "result": { "thread": { "id": "t", "cliVersion": "1" }, "model": "m", "cwd": "/p" } })
}

fn tools_are(status: &str) -> serde_json::Value {
    let params = json!({ "threadId": "t", "name": "hatchery", "status": status });
    json!({ "method": "mcpServer/startupStatus/updated", "params": params })
}

#[test]
fn it_is_ready_when_the_thread_is_open_and_the_tools_answer_in_either_order() {
    let ready =
        Output::Ready { session: "t".into(), model: Some("m".into()), version: Some("1".into()), tools: Vec::new() };
    let (thread, tools) = (opened("thread/start"), tools_are("ready"));
    for lines in [[thread.clone(), tools.clone()], [tools.clone(), thread.clone()]] {
        assert_eq!(read(&lines), std::slice::from_ref(&ready));
    }
    assert_eq!(read(&[thread.clone(), tools_are("starting")]), []);
    assert_eq!(read(&[tools.clone(), thread.clone(), tools, thread]), [ready], "it is said once");
}

#[test]
fn a_resumed_thread_is_ready_when_it_has_said_which_messages_it_holds() {
    let turns = json!({ "id": "thread/turns/list", "result": { "data": [
        { "items": [{ "type": "userMessage", "clientId": "b" }, { "type": "agentMessage", "text": "x" }] },
        { "items": [{ "type": "userMessage", "clientId": "a" }, { "type": "userMessage" }] },
    ] } });
    let refused = json!({ "id": "thread/turns/list", "error": { "code": -32600, "message": "no" } });
    let (thread, tools) = (opened("thread/resume"), tools_are("ready"));
    assert_eq!(read(&[thread.clone(), tools.clone()]), []);
    let ready = |outputs: &[Output]| matches!(outputs.last(), Some(Output::Ready { .. }));
    for order in [[&thread, &tools, &turns], [&turns, &tools, &thread], [&turns, &thread, &tools]] {
        let said = read(&order.map(Clone::clone));
        assert!(said.len() == 3 && said.iter().any(|it| matches!(it, Output::Ready { .. })), "{said:?}");
    }
    let said = read(&[thread, tools, refused.clone()]);
    assert!(ready(&said), "it is told everything then");
    assert!(matches!(&said[0], Output::Note { text } if text.ends_with("receive a message twice: no")), "{said:?}");
    assert_eq!(read(&[refused]), [], "of a thread that is not open nothing is expected");
}

#[test]
fn a_thread_that_is_gone_is_no_failure_of_the_tools() {
    let gone =
        json!({ "id": "thread/resume", "error": { "code": -32600, "message": "no rollout found for thread id t" } });
    let [Output::TurnEnded(end)] = &read(&[gone])[..] else { panic!("no end") };
    assert_eq!(end.result, TurnResult::SessionUnknown);
    let taken = json!({ "id": "thread/resume", "error": { "message": "thread t already has an active writer" } });
    let [Output::TurnEnded(end)] = &read(&[taken])[..] else { panic!("no end") };
    let TurnResult::Failed { kind: FailureKind::Other, detail } = &end.result else { panic!("{end:?}") };
    assert!(detail.contains("active writer") && detail.contains("end that process"), "{detail}");
    let other = json!({ "id": "thread/resume", "error": { "message": "cwd is no folder" } });
    assert!(matches!(&read(&[other])[..], [Output::NotReady { why }] if why == "cwd is no folder"));
}

#[test]
fn a_message_that_is_refused_ends_the_turn_that_it_was_to_begin() {
    let refused = json!({ "id": "say:m", "error": { "code": -32600, "message": "thread not found: t" } });
    let [Output::TurnEnded(end)] = &read(std::slice::from_ref(&refused))[..] else { panic!("no end") };
    let TurnResult::Failed { kind: FailureKind::Other, detail } = &end.result else { panic!("{end:?}") };
    assert_eq!(detail, "codex has refused a message: thread not found: t");
    // A turn that runs is not ended by it.
    let began = json!({ "method": "turn/started", "params": { "threadId": "t" } });
    let said = read(&[began.clone(), refused.clone()]);
    assert!(matches!(&said[..], [Output::TurnStarted, Output::Note { .. }]), "{said:?}");
    let over = json!({ "method": "turn/completed", "params": { "threadId": "t", "turn": { "status": "completed" } } });
    let said = read(&[began, over, refused]);
    assert!(matches!(&said[..], [Output::TurnStarted, Output::TurnEnded(_), Output::TurnEnded(_)]), "{said:?}");
}

#[test]
fn a_model_without_a_price_is_told_once() {
    let tokens = |count: u64| json!({ "inputTokens": count, "outputTokens": count });
    let used = |thread: &str, total: u64| {
        let usage = json!({ "total": tokens(total), "last": tokens(1) });
        json!({ "method": "thread/tokenUsage/updated", "params": { "threadId": thread, "tokenUsage": usage } })
    };
    let began = json!({ "method": "turn/started", "params": { "threadId": "t" } });
    let lines = |model: &str| {
        let thread = json!({ "thread": { "id": "t" }, "model": model });
        [json!({ "id": "thread/start", "result": thread }), began.clone(), used("t", 1), used("t", 2)]
    };
    let notes = |model: &str| {
        let notes = read(&lines(model)).into_iter().filter_map(|output| match output {
            Output::Note { text } => Some(text),
            _ => None,
        });
        notes.collect::<Vec<_>>()
    };
    assert_eq!(notes("gpt-5.5"), Vec::<String>::new());
    let told = notes("house-model");
    assert!(matches!(&told[..], [text] if text.contains("`house-model`") && text.contains("[prices]")), "{told:?}");
}

#[test]
fn a_reader_that_knows_its_thread_needs_no_beginning() {
    let mut reader = CodexReader::new(Arc::default(), None, Some("t"));
    let item =
        |thread: &str| json!({ "threadId": thread, "item": { "type": "agentMessage", "id": "i", "text": "hi" } });
    let line = |thread: &str| json!({ "method": "item/completed", "params": item(thread) }).to_string();
    assert_eq!(reader.read(&line("t")), Ok(vec![Output::Text { text: "hi".into() }]));
    assert!(matches!(&reader.read(&line("other")).unwrap()[..], [Output::Subagent { .. }]));
    assert_eq!(reader.read(&opened("thread/start").to_string()), Ok(vec![]), "it was ready before");
}

#[test]
fn a_reader_that_knows_its_model_prices_requests_without_a_beginning() {
    let tokens = json!({ "inputTokens": 10, "outputTokens": 5 });
    let usage = json!({ "threadId": "t", "tokenUsage": { "total": tokens, "last": tokens } });
    let lines = [
        json!({ "method": "turn/started", "params": { "threadId": "t" } }).to_string(),
        json!({ "method": "thread/tokenUsage/updated", "params": usage }).to_string(),
    ];
    let mut reader = CodexReader::new(Arc::default(), None, Some("t")).with_model(Some("gpt-5.5"));
    let used = lines.iter().flat_map(|line| reader.read(line).unwrap()).last();
    assert!(matches!(used, Some(Output::Used { usage, .. }) if usage.cost.nanodollars == 200_000), "{used:?}");
}

/// Codex takes a message until the very end of a turn, and ends the turn without asking the model about it.
#[test]
fn a_turn_that_ends_with_a_message_is_unanswered() {
    let unanswered = |items: &[&str]| {
        let item = |kind: &&str| {
            let item = json!({ "type": kind, "id": "i", "clientId": "c", "text": "hi" });
            json!({ "method": "item/started", "params": { "threadId": "t", "item": item } })
        };
        let began = json!({ "method": "turn/started", "params": { "threadId": "t" } });
        let turn = json!({ "id": "u", "status": "completed", "items": [] });
        let over = json!({ "method": "turn/completed", "params": { "threadId": "t", "turn": turn } });
        let lines: Vec<_> = [began].into_iter().chain(items.iter().map(item)).chain([over]).collect();
        match read(&lines).pop() {
            Some(Output::TurnEnded(end)) => end.unanswered,
            other => panic!("{other:?}"),
        }
    };
    assert!(unanswered(&["userMessage", "agentMessage", "userMessage"]));
    assert!(unanswered(&["userMessage", "commandExecution", "userMessage", "userMessage"]));
    assert!(!unanswered(&["userMessage", "agentMessage", "userMessage", "reasoning"]));
    // A model that says nothing is not asked again.
    assert!(!unanswered(&["userMessage", "userMessage"]));
}

#[test]
fn a_change_of_several_files_is_a_question() {
    let path = |changes: &[&str]| {
        let changes: Vec<_> = changes.iter().map(|path| json!({ "path": path, "kind": { "type": "add" } })).collect();
        let item = json!({ "type": "fileChange", "id": "i", "changes": changes });
        let asked = json!({ "method": "item/fileChange/requestApproval", "id": 7, "params": { "threadId": "t", "itemId": "i" } });
        let outputs = read(&[json!({ "method": "item/started", "params": { "threadId": "t", "item": item } }), asked]);
        match outputs.last() {
            Some(Output::Asked(request)) => serde_json::to_value(&request.access).unwrap()["edit"]["path"].clone(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(path(&["/p/a/x"]), "/p/a/x");
    assert_eq!(path(&["/p/a/x", "/p/b/y"]), json!(null));
}

#[test]
fn failures_without_a_recording_have_the_causes_that_all_harnesses_share() {
    let failed = |message: &str, info: serde_json::Value| {
        let error = json!({ "message": message, "codexErrorInfo": info });
        let turn = json!({ "id": "u", "status": "failed", "error": error, "items": [] });
        match read(&[json!({ "method": "turn/completed", "params": { "threadId": "t", "turn": turn } })]).pop() {
            Some(Output::TurnEnded(TurnEnd { result: TurnResult::Failed { kind, detail }, .. })) => {
                assert_eq!(detail, message, "the service's own words");
                kind
            }
            other => panic!("{other:?}"),
        }
    };
    let connection = |kind: &str, status: Option<u16>| json!({ kind: { "httpStatusCode": status } });
    assert_eq!(failed("no", json!("modelNotFound")), FailureKind::WrongModel);
    assert_eq!(failed("no", json!("cyberPolicy")), FailureKind::Refused);
    assert_eq!(failed("no", json!("misalignmentPolicyViolation")), FailureKind::Refused);
    assert_eq!(failed("no", json!("internalServerError")), FailureKind::Unavailable);
    assert_eq!(failed("no", connection("httpConnectionFailed", None)), FailureKind::Unavailable);
    assert_eq!(failed("no", connection("responseStreamDisconnected", Some(502))), FailureKind::Unavailable);
    assert_eq!(failed("no", connection("responseTooManyFailedAttempts", Some(429))), FailureKind::RateLimited);
    assert_eq!(failed("no", connection("httpConnectionFailed", Some(403))), FailureKind::Unauthorised);
    // The sentences of recorded runs of `codex exec`.
    let other = || json!("other");
    let stopped = |reason: &str| format!("Incomplete response returned, reason: {reason}");
    assert_eq!(failed("The model does not exist", other()), FailureKind::WrongModel);
    assert_eq!(failed(r#"{"error": {"code": "context_length_exceeded"}}"#, other()), FailureKind::PromptTooLong);
    assert_eq!(failed(&stopped("max_output_tokens"), other()), FailureKind::OutputTooLong);
    assert_eq!(failed(&stopped("content_filter"), other()), FailureKind::Refused);
    assert_eq!(failed("Quota exceeded. Check your plan.", json!("usageLimitExceeded")), FailureKind::OutOfCredit);
    assert_eq!(failed("Missing environment variable: `KEY`", other()), FailureKind::Unauthorised);
    assert_eq!(failed("Bad thing", json!("badRequest")), FailureKind::Other);
    assert_eq!(failed("Bad thing", json!({ "future": { "x": 1 } })), FailureKind::Other);
    assert_eq!(failed("Bad thing", json!(null)), FailureKind::Other);
}

#[test]
fn what_is_unknown_is_skipped() {
    for line in [
        json!({ "method": "future/thing", "params": { "threadId": "t" } }),
        json!({ "method": "item/completed", "params": { "threadId": "t", "item": { "type": "future", "id": "i" } } }),
        json!({ "method": "turn/completed" }),
        json!({ "id": 7, "result": {} }),
        json!({ "id": "stranger", "result": {} }),
        json!([1]),
        json!({}),
    ] {
        assert_eq!(read(std::slice::from_ref(&line)), [], "{line}");
    }
    assert!(CodexReader::default().read("half a li").is_err());
}

#[test]
fn lines_of_other_modes_say_nothing() {
    let mut reader = CodexReader::default();
    for line in super::recordings::foreign() {
        assert_eq!(reader.partial(&line), None, "{line}");
        assert_eq!(reader.read(&line), Ok(vec![]), "{line}");
    }
}

#[test]
fn a_request_of_an_unknown_kind_is_asked_because_codex_waits_for_an_answer() {
    let asked =
        json!({ "method": "item/tool/requestUserInput", "id": "x", "params": { "threadId": "t", "questions": [] } });
    assert!(matches!(&read(&[asked])[..], [Output::Asked(request)] if request.request == "unknown:\"x\""));
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
        let mut reader = CodexReader::default();
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
