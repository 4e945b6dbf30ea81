//! What single lines become, and that no line does harm.

use super::damage::{are_stored, damaged, is_noticed};
use super::{names, outputs, parse, read, recorded};
use hatchery_core::Timestamp;
use hatchery_core::output::{FailureKind, Output, ServiceError, TurnResult};
use hatchery_core::permission::{Access, PermissionRequest};
use proptest::prelude::*;

fn one(line: &str) -> Output {
    let [output] = parse(line).unwrap().try_into().unwrap();
    output
}

fn nothing(line: &str) {
    assert_eq!(parse(line), Ok(vec![]), "{line}");
}

#[test]
fn a_turn_with_everything_in_it() {
    let kinds: Vec<_> = outputs("tool_use").iter().map(kind).collect();
    let expected = "not_ready turn_started thinking used text tool_use tool_use tool_result tool_result tool_use used denied \
                    tool_result tool_use used tool_result text used turn_ended";
    assert_eq!(kinds.join(" "), expected);
    assert!(outputs("tool_use").contains(&Output::ToolUse {
        id: "toolu_bee828b05a90478d8b981427".to_owned(),
        name: "Bash".to_owned(),
        input: r#"{"command":"echo hi; echo err >&2","description":"say hi"}"#.to_owned(),
    }));
    assert!(outputs("tool_use").contains(&Output::ToolResult {
        id: "toolu_bee828b05a90478d8b981427".to_owned(),
        content: "hi\nerr".to_owned(),
        is_error: false,
    }));
}

/// The recordings have a server called `orch`.
fn as_ours(name: &str) -> Vec<Output> {
    read(&recorded(name).replace("\"orch\"", "\"hatchery\"").replace("mcp__orch__", "mcp__hatchery__"))
}

#[test]
fn a_process_is_ready_when_our_tools_answer_it() {
    let Output::Ready { session, model, version, tools } = &as_ours("mcp_stdio")[0] else { panic!("not ready") };
    assert!(!session.is_empty() && model.is_some() && version.is_some());
    assert!(
        tools.iter().any(|name| name == "Write") && !tools.iter().any(|name| name.contains("__hatchery__")),
        "{tools:?}"
    );
    let not_ready = |name: &str| match &as_ours(name)[0] {
        Output::NotReady { why } => why.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(not_ready("mcp_stdio_missing"), "it says that the `hatchery` tools are failed");
    assert_eq!(not_ready("mcp_slow_start_timeout"), "it says that the `hatchery` tools are pending");
    assert_eq!(not_ready("plain"), "it says that the `hatchery` tools are missing");
}

#[test]
fn readiness_is_said_once_and_each_turn_begins() {
    let init = r#"{"type":"system","subtype":"init","session_id":"s","mcp_servers":[{"name":"hatchery","status":"connected"}]}"#;
    let kinds: Vec<_> = read(&format!("{init}\n{init}")).iter().map(kind).collect();
    assert_eq!(kinds, ["ready", "turn_started", "turn_started"]);
}

#[test]
fn a_message_is_heard_when_the_turn_that_it_began_is_there() {
    let lines = [
        r#"{"type":"command_lifecycle","state":"queued","command_uuid":"m2"}"#,
        r#"{"type":"command_lifecycle","state":"started","command_uuid":"m1"}"#,
        r#"{"type":"system","subtype":"init","session_id":"s","mcp_servers":[]}"#,
        r#"{"type":"system","subtype":"init","session_id":"s","mcp_servers":[]}"#,
    ];
    let heard: Vec<_> = read(&lines.join("\n")).into_iter().filter(|output| kind(output) == "heard").collect();
    assert_eq!(heard, [Output::Heard { id: "m1".to_owned() }]);
}

#[test]
fn our_tools_have_the_names_that_we_gave_them() {
    let names = |outputs: Vec<Output>| -> Vec<String> {
        outputs
            .into_iter()
            .filter_map(|it| if let Output::ToolUse { name, .. } = it { Some(name) } else { None })
            .collect()
    };
    assert_eq!(names(as_ours("mcp_always_load")), ["signal-back"]);
    assert_eq!(names(outputs("mcp_always_load")), ["mcp__orch__signal-back"], "the tools of others keep their prefix");
}

#[test]
fn messages_that_were_taken_in_are_named_by_their_uuid() {
    let mut heard: Vec<_> = outputs("stdin_two_turns").into_iter().filter(|output| kind(output) == "heard").collect();
    // Said when its turn begins, and again by the echo.
    heard.dedup();
    let uuids = ["2d2ab027-44cc-407c-a363-e9c57b314d66", "248b9b61-c9b0-4e39-8a82-496c6165796c"];
    assert_eq!(heard, uuids.map(|id| Output::Heard { id: id.to_owned() }));
}

#[test]
fn an_interrupt_is_answered_and_marked() {
    let outputs = outputs("stdin_interrupt");
    assert!(outputs.contains(&Output::Answered { request: "r1".to_owned(), problem: None }));
    assert!(outputs.contains(&Output::Note { text: "[Request interrupted by user]".to_owned() }));
}

#[test]
fn a_sub_agents_words_are_wrapped() {
    let outputs = outputs("agents_task");
    let subagent =
        |output| Output::Subagent { tool_use: "toolu_6f56b6a3414c43b7ae87d0b9".to_owned(), output: Box::new(output) };
    assert!(outputs.contains(&subagent(Output::Note { text: "SUBTASK please".to_owned() })));
    assert!(outputs.contains(&subagent(Output::Text { text: "subagent says hi".to_owned() })));
    assert!(!outputs.contains(&Output::Text { text: "subagent says hi".to_owned() }));
}

#[test]
fn the_services_errors_are_not_the_assistants_words() {
    let kinds = |name: &str| outputs(name).iter().map(kind).collect::<Vec<_>>().join(" ");
    assert_eq!(kinds("api529_forever"), "not_ready turn_started retrying retrying api_error turn_ended");
    assert_eq!(kinds("js_api529"), "not_ready turn_started retrying api_error turn_ended");
    assert_eq!(
        outputs("js_api529")[2],
        Output::Retrying {
            attempt: 1,
            max_attempts: Some(1),
            status: Some(529),
            delay_ms: Some(530),
            reason: Some("rate_limit".to_owned()),
        }
    );
    let text = "Not logged in · Please run /login".to_owned();
    assert!(outputs("no_api_key").contains(&Output::ApiError(ServiceError {
        kind: FailureKind::Unauthorised,
        status: None,
        text,
    })));
}

#[test]
fn denials_are_told_as_they_happen_and_at_the_end() {
    let outputs = outputs("tool_denied");
    let tool_use = Some("toolu_818574ca41ef4016a80df998".to_owned());
    let reason = "Claude requested permissions to write to /home/dev/project/c.txt, but you haven't granted it yet.";
    assert!(outputs.contains(&Output::Denied {
        tool: "Write".to_owned(),
        tool_use: tool_use.clone(),
        reason: reason.to_owned()
    }));
    let Some(Output::TurnEnded(end)) = outputs.last() else { panic!("no end") };
    assert_eq!((end.denials[0].tool.as_str(), &end.denials[0].tool_use), ("Write", &tool_use));
}

#[test]
fn a_question_waits_for_its_answer() {
    let asked = outputs("stdin_can_use_tool").into_iter().find(|output| kind(output) == "asked").unwrap();
    let Output::Asked(PermissionRequest { tool, tool_use, input, request, access, folder }) = asked else {
        panic!("{asked:?}")
    };
    assert_eq!(access, Access::Edit { path: "/home/dev/project/perm.txt".into() });
    assert_eq!(folder.as_deref(), Some("/home/dev/project"));
    assert_eq!((tool.as_str(), tool_use.as_deref()), ("Write", Some("toolu_b6350d30d8434d13aae9191b")));
    assert_eq!(input, r#"{"file_path":"/home/dev/project/perm.txt","content":"x"}"#);
    assert!(!request.is_empty());
}

#[test]
fn what_a_tool_would_do_is_known_by_its_name_and_input() {
    let access = |tool: &str, input: &str| {
        let line = format!(
            r#"{{"type":"control_request","request_id":"r","request":{{"subtype":"can_use_tool","tool_name":"{tool}","input":{input}}}}}"#
        );
        match one(&line) {
            Output::Asked(request) => request.access,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(access("Bash", r#"{"command":"make all"}"#), Access::Execute { command: "make all".into() });
    assert_eq!(access("Edit", r#"{"file_path":"/a"}"#), Access::Edit { path: "/a".into() });
    assert_eq!(access("NotebookEdit", r#"{"notebook_path":"/a"}"#), Access::Edit { path: "/a".into() });
    assert_eq!(access("Read", r#"{"file_path":"/a"}"#), Access::Read { path: "/a".into() });
    assert_eq!(access("Grep", r#"{"pattern":"x","path":"/a"}"#), Access::Read { path: "/a".into() });
    assert_eq!(access("WebFetch", r#"{"url":"http://localhost"}"#), Access::Other);
    assert_eq!(access("Write", "{}"), Access::Other, "without a path nothing is known");
    assert_eq!(
        one(r#"{"type":"control_cancel_request","request_id":"r"}"#),
        Output::AskCancelled { request: "r".into() }
    );
}

#[test]
fn what_no_recording_has() {
    assert_eq!(
        one(
            r#"{"type":"system","subtype":"compact_boundary","compact_metadata":{"trigger":"auto","pre_tokens":156594}}"#
        ),
        Output::Compacted { trigger: Some("auto".to_owned()), tokens_before: Some(156_594) }
    );
    assert_eq!(
        one(
            r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1778565600,"rateLimitType":"five_hour"}}"#
        ),
        Output::Limit {
            rejected: true,
            resets_at: Some(Timestamp(1_778_565_600_000)),
            window: Some("five_hour".to_owned())
        }
    );
    assert_eq!(
        one(r#"{"type":"control_response","response":{"subtype":"error","request_id":"r9","error":"too late"}}"#),
        Output::Answered { request: "r9".to_owned(), problem: Some("too late".to_owned()) }
    );
    assert_eq!(
        one(
            r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"a"},{"type":"image"}]}]}}"#
        ),
        Output::ToolResult { id: "t".to_owned(), content: "a\n[image]".to_owned(), is_error: false }
    );
}

#[test]
fn what_we_do_not_know_is_passed_over() {
    nothing("");
    nothing("   \t");
    nothing("{}");
    nothing("null");
    nothing("[1, 2]");
    nothing("\"words\"");
    nothing(r#"{"type":"telepathy","text":"hello"}"#);
    nothing(r#"{"type":"system","subtype":"weather"}"#);
    nothing(r#"{"type":"system"}"#);
    nothing(r#"{"type":7}"#);
    nothing(r#"{"type":"assistant"}"#);
    nothing(r#"{"type":"assistant","message":{"content":[{"type":"poem","text":"x"},7,null]}}"#);
    nothing(r#"{"type":"control_request","request_id":"r","request":{"subtype":"other"}}"#);
}

#[test]
fn a_line_that_is_not_json_is_told_apart() {
    for line in ["words", "{", r#"{"type":"assistant""#, r#"{"type":"assistant"} {"#, "[1,", "\u{0}"] {
        assert!(parse(line).is_err(), "{line}");
    }
    assert_eq!(recorded("output_text").lines().filter(|line| parse(line).is_err()).count(), 1);
}

#[test]
fn keys_come_in_any_order() {
    let text = Output::Text { text: "hi".to_owned() };
    assert_eq!(one(r#"{"type":"assistant","message":{"content":[{"type":"text","text":"hi"}]}}"#), text);
    assert_eq!(one(r#"{"message":{"content":[{"text":"hi","type":"text"}]},"type":"assistant"}"#), text);
    assert_eq!(one(r#"{"message":{"content":[{"text":"hi","type":"text"}]},"t\u0079pe":"assistant"}"#), text);
}

#[test]
fn one_strange_field_does_not_cost_the_rest() {
    let Output::TurnEnded(end) =
        one(r#"{"type":"result","is_error":true,"num_turns":"many","result":7,"errors":["a",7]}"#)
    else {
        panic!("no end")
    };
    let failed = TurnResult::Failed { kind: FailureKind::Other, detail: "a".to_owned() };
    assert!(end.result == failed && end.text.is_none() && end.num_turns == 0);
}

#[test]
fn half_a_character_is_replaced() {
    let Output::Text { text } =
        one(r#"{"type":"assistant","message":{"content":[{"type":"text","text":"cut \ud83d"}]},"\ud83d":1}"#)
    else {
        panic!("no text")
    };
    assert!(text.starts_with("cut \u{fffd}"), "{text}");
}

#[test]
fn deep_nesting_is_kept_as_text() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let line = format!(
        r#"{{"type":"assistant","message":{{"content":[{{"type":"tool_use","id":"t","name":"n","input":{deep}}}]}}}}"#
    );
    assert_eq!(one(&line), Output::ToolUse { id: "t".to_owned(), name: "n".to_owned(), input: deep });
}

#[test]
fn a_huge_line_is_a_line() {
    let text = "x".repeat(16 << 20);
    let line = format!(r#"{{"type":"assistant","message":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#);
    assert_eq!(one(&line), Output::Text { text });
}

#[test]
fn what_was_said_can_be_written_down() {
    are_stored(names().iter().flat_map(|name| outputs(name)));
}

proptest! {
    /// Cut anywhere, with a byte changed anywhere, a recorded line is read or refused, but never brings the reader down.
    #[test]
    fn no_line_brings_the_reader_down(line in recorded_line(), at in any::<prop::sample::Index>(), byte: u8, cut: bool) {
        let damaged = damaged(line, at, byte, cut);
        let read = parse(&damaged);
        prop_assert!(is_noticed(cut, &damaged, &read), "half a line was taken for a whole one");
    }
}

fn recorded_line() -> impl Strategy<Value = String> {
    let lines: Vec<_> =
        names().iter().flat_map(|name| recorded(name).lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    prop::sample::select(lines.into_iter().filter(|line| line.starts_with('{')).collect::<Vec<_>>())
}

/// The name of what was said, as it is written.
fn kind(output: &Output) -> String {
    serde_json::to_value(output).unwrap()["type"].as_str().unwrap().to_owned()
}
