//! Transcripts of the Claude CLI: lines of our own making, in the shapes that 2.1.325 was seen to write.

#![allow(clippy::unwrap_used, reason = "a test and its support stop where something is not as it must be")]

use hatchery_core::MessageKind::{self, Assistant, Clear, Command, System, ToolCall, ToolResult, User};
use hatchery_core::history::MAX_MESSAGE_BYTES;
use hatchery_core::transcript::{Knot, LinePart, Tree, parse};
use serde_json::{Value, json};

/// A line of the conversation.
fn line(kind: &str, uuid: &str, parent: Option<&str>, more: Value) -> Value {
    let mut line = json!({ "type": kind, "uuid": uuid, "parentUuid": parent, "isSidechain": false, "cwd": "/w" });
    line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    line
}

fn user(uuid: &str, parent: Option<&str>, content: Value) -> Value {
    line("user", uuid, parent, json!({ "message": { "role": "user", "content": content } }))
}

fn assistant(uuid: &str, parent: Option<&str>, content: Value) -> Value {
    line("assistant", uuid, parent, json!({ "message": { "role": "assistant", "content": content } }))
}

fn text(uuid: &str, parent: &str, text: &str) -> Value {
    assistant(uuid, Some(parent), json!([{ "type": "text", "text": text }]))
}

fn call(uuid: &str, parent: &str) -> Value {
    assistant(
        uuid,
        Some(parent),
        json!([{ "type": "tool_use", "id": format!("call-{uuid}"), "name": "Bash", "input": { "command": uuid } }]),
    )
}

/// The result of a call, hung onto it as the CLI does.
fn result(uuid: &str, call: &str) -> Value {
    user(uuid, Some(call), json!([{ "type": "tool_result", "tool_use_id": format!("call-{call}"), "content": uuid }]))
}

fn with(mut line: Value, name: &str, value: Value) -> Value {
    line[name] = value;
    line
}

fn knot(line: &Value) -> Knot {
    match parse(&line.to_string()).unwrap().part {
        LinePart::Knot(knot) => knot,
        other => panic!("{line} is {other:?}"),
    }
}

#[track_caller]
fn says(line: &Value, expected: &[(MessageKind, &str)]) {
    let said = knot(line).said;
    assert_eq!(said.iter().map(|(kind, text)| (*kind, text.as_str())).collect::<Vec<_>>(), expected);
}

/// The names of the lines that make up the history.
#[track_caller]
fn path(lines: &[Value], expected: &str) {
    let (mut tree, mut names) = (Tree::default(), Vec::new());
    for line in lines {
        let knot = knot(line);
        tree.add(&knot);
        names.push(knot.uuid);
    }
    let path: Vec<&str> = tree.path().into_iter().map(|at| names[at].as_str()).collect();
    assert_eq!(path.join(" "), expected);
}

#[test]
fn words_are_told_by_who_says_them() {
    let hello = user("a", None, json!("hello"));
    says(&hello, &[(User, "hello")]);
    says(&with(hello.clone(), "isMeta", json!(true)), &[(System, "hello")]);
    says(&with(hello.clone(), "isCompactSummary", json!(true)), &[(System, "hello")]);
    says(&with(hello.clone(), "origin", json!({ "kind": "task-notification" })), &[(System, "hello")]);
    says(&with(hello, "origin", json!({ "kind": "human" })), &[(User, "hello")]);
    says(
        &user("a", None, json!("<command-name>/compact</command-name>")),
        &[(Command, "<command-name>/compact</command-name>")],
    );
    let broken_off = json!([{ "type": "text", "text": "[Request interrupted by user]" }]);
    says(&user("a", None, broken_off), &[(System, "[Request interrupted by user]")]);
    says(&text("b", "a", "hi"), &[(Assistant, "hi")]);
}

#[test]
fn blocks_come_in_the_shapes_of_runs() {
    let both = json!([
        { "type": "thinking", "thinking": "hm" },
        { "type": "text", "text": "I look." },
        { "type": "tool_use", "id": "t1", "name": "Read", "input": { "file_path": "/x" } },
        { "type": "something_new" },
    ]);
    let read = r#"{"id":"t1","input":{"file_path":"/x"},"name":"Read"}"#;
    says(&assistant("b", Some("a"), both), &[(Assistant, "I look."), (ToolCall, read)]);
    let answers = json!([
        { "type": "tool_result", "tool_use_id": "t1", "content": "one" },
        { "type": "tool_result", "tool_use_id": "t2", "is_error": true,
          "content": [{ "type": "text", "text": "two" }, { "type": "image", "source": {} }] },
        { "type": "text", "text": "look at this" },
        { "type": "image", "source": { "type": "base64", "data": "…" } },
    ]);
    says(
        &user("c", Some("b"), answers),
        &[
            (ToolResult, r#"{"content":"one","id":"t1","is_error":false}"#),
            (ToolResult, r#"{"content":"two\n[image]","id":"t2","is_error":true}"#),
            (User, "look at this\n[image]"),
        ],
    );
}

#[test]
fn what_is_said_in_the_middle_of_a_turn_is_attached() {
    let queued = |mode: &str| {
        let attachment = json!({ "type": "queued_command", "prompt": "faster", "commandMode": mode });
        line("attachment", "c", Some("b"), json!({ "attachment": attachment }))
    };
    says(&queued("prompt"), &[(User, "faster")]);
    says(&queued("task-notification"), &[(System, "faster")]);
    let date = json!({ "attachment": { "type": "date", "date": "2026-11-15" } });
    says(&line("attachment", "d", Some("c"), date), &[]);
}

#[test]
fn what_is_no_part_of_the_conversation_is_told_apart() {
    let part = |line: &Value| parse(&line.to_string()).unwrap().part;
    let of_subagent = with(user("a", None, json!("do this part")), "isSidechain", json!(true));
    assert_eq!(part(&of_subagent), LinePart::Subagent);
    for aside in [
        json!({ "type": "summary", "summary": "A title", "leafUuid": "a" }),
        json!({ "type": "last-prompt", "lastPrompt": "hello", "leafUuid": "a" }),
        json!({ "type": "queue-operation", "operation": "enqueue", "content": "hello" }),
        json!({ "message": 3 }),
        json!([1, 2]),
        json!("text"),
    ] {
        assert_eq!(part(&aside), LinePart::Aside, "{aside}");
    }
    assert_eq!(parse("").unwrap().part, LinePart::Aside);
    let failure = with(text("b", "a", "API Error: 529"), "isApiErrorMessage", json!(true));
    says(&failure, &[]);
    says(&line("assistant", "b", None, json!({ "message": "nonsense" })), &[]);
    says(&line("user", "b", None, json!({ "message": { "content": [7, { "type": "tool_result" }] } })), &[]);
    says(&line("a new type", "b", None, json!({})), &[]);
}

#[test]
fn a_line_that_was_cut_off_is_not_json() {
    let whole = user("a", None, json!("hello")).to_string();
    for end in 1..whole.len() {
        assert!(parse(&whole[..end]).is_err(), "{}", &whole[..end]);
    }
}

#[test]
fn what_is_too_long_is_cut_and_says_so() {
    let long = "ü\"".repeat(MAX_MESSAGE_BYTES / 2);
    let lines = [
        user("a", None, json!(long)),
        text("b", "a", &long),
        assistant("c", None, json!([{ "type": "tool_use", "id": "t", "name": "Write", "input": { "content": long } }])),
        user("d", None, json!([{ "type": "tool_result", "tool_use_id": "t", "content": long }])),
    ];
    for line in lines {
        let said = knot(&line).said;
        let (kind, content) = &said[0];
        assert!(content.len() <= MAX_MESSAGE_BYTES && content.len() > MAX_MESSAGE_BYTES / 8, "{}", content.len());
        assert!(content.contains("bytes more]"));
        if matches!(kind, ToolCall | ToolResult) {
            assert_eq!(serde_json::from_str::<Value>(content).unwrap()["id"], "t");
        }
    }
}

#[test]
fn the_path_leads_from_the_root_to_the_last_line() {
    let lines = [user("a", None, json!("1")), text("b", "a", "2"), user("c", Some("b"), json!("3"))];
    path(&lines, "a b c");
    path(&[], "");
    // A rewind to b, then another question.
    let rewound = [&lines[..], &[text("d", "c", "4"), user("e", Some("b"), json!("5")), text("f", "e", "6")]].concat();
    path(&rewound, "a b e f");
}

#[test]
fn results_of_tools_that_ran_at_once_belong_to_it() {
    let at_once = [user("a", None, json!("1")), call("b", "a"), call("c", "b"), call("d", "c")];
    let results = [result("C", "c"), result("B", "b"), result("D", "d"), text("e", "D", "done")];
    path(&[&at_once[..], &results].concat(), "a b c d B C D e");
    // Killed before the last came.
    path(&[&at_once[..], &results[..2]].concat(), "a b c d B C");
    // A result of another branch does not, when the call was answered.
    let again = [user("a", None, json!("1")), call("b", "a"), result("B", "b"), text("c", "B", "x")];
    let retried = with(result("B2", "b"), "uuid", json!("B2"));
    path(&[&again[..], &[retried, text("d", "B2", "y")]].concat(), "a b B2 d");
}

#[test]
fn a_compaction_clears_and_keeps() {
    let boundary = |kept: Value| {
        let about = json!({ "subtype": "compact_boundary", "logicalParentUuid": "c", "compactMetadata": { "preservedMessages": kept } });
        line("system", "k", None, about)
    };
    let before = [user("a", None, json!("1")), text("b", "a", "2"), text("c", "b", "3")];
    let after =
        [with(user("s", Some("k"), json!("sum")), "isCompactSummary", json!(true)), user("d", Some("s"), json!("4"))];
    let kept = boundary(json!({ "anchorUuid": "s", "uuids": ["c", "lost"] }));
    says(&kept, &[(Clear, "compacted")]);
    path(&[&before[..], &[kept], &after].concat(), "a b c k s c d");
    path(&[&before[..], &[boundary(Value::Null)], &after].concat(), "a b c k s d");
}

#[test]
fn nothing_in_a_tree_is_fatal() {
    // The line above the lost one is the best guess.
    path(&[user("a", None, json!("1")), text("b", "a", "2"), user("d", Some("lost"), json!("3"))], "a b d");
    path(&[user("d", Some("lost"), json!("3"))], "d");
    // One that names itself, and two that name each other.
    path(&[text("a", "a", "1")], "a");
    path(&[text("a", "b", "1"), text("b", "a", "2")], "a b");
    // There twice: the last counts.
    path(&[user("a", None, json!("1")), user("b", None, json!("2")), text("a", "b", "3")], "b a");
}
