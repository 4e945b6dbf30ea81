//! What a script can say and do on its way.

use crate::support::sim::Stage;
use hatchery_core::output::{Output, TurnEnd};
use hatchery_core::usage::Money;
use hatchery_core::{Cause, Exit};
use serde_json::json;
use std::fs;

fn end(outputs: &[Output]) -> &TurnEnd {
    match outputs.last() {
        Some(Output::TurnEnded(end)) => end,
        other => panic!("no end: {other:?}"),
    }
}

#[test]
fn a_turn_with_everything_in_it() {
    let stage = Stage::new();
    let played = stage.play_steps(&[
        json!({ "think": "hm" }),
        json!({ "text": "one" }),
        json!({ "tool": { "name": "Bash", "input": { "command": "ls" }, "result": "a b", "is_error": true } }),
        json!({ "subagent": { "prompt": "please", "text": "done" } }),
        json!("compact"),
        json!({ "cost": { "usd": 0.25, "input_tokens": 10, "output_tokens": 5 } }),
        json!({ "sleep_ms": 1 }),
        json!({ "text": "two" }),
    ]);
    let expected = "turn_started thinking text tool_use tool_result tool_use subagent subagent tool_result compacted used text turn_ended";
    assert_eq!(played.kinds(), expected, "{played:?}");
    assert_eq!((played.exit, played.cause(), played.stderr.as_str()), (Exit::Code(0), Cause::Completed, ""));
    let Output::ToolUse { id, name, input } = &played.outputs[3] else { panic!("{played:?}") };
    assert_eq!((name.as_str(), input.as_str()), ("Bash", r#"{"command":"ls"}"#));
    assert_eq!(played.outputs[4], Output::ToolResult { id: id.clone(), content: "a b".to_owned(), is_error: true });
    let end = end(&played.outputs);
    assert_eq!((end.text.as_deref(), end.num_turns), (Some("two"), 3));
    assert_eq!(end.total.cost, Money::from_dollars(0.25));
    assert_eq!(end.since_last, Some(end.total));
}

#[test]
fn a_flood_is_numbered_and_padded() {
    let stage = Stage::new();
    let played = stage.play_steps(&[json!({ "flood": { "lines": 5_000, "bytes": 40 } })]);
    assert_eq!(played.texts().len(), 5_000);
    for (at, text) in played.texts().into_iter().enumerate() {
        assert_eq!(text, format!("{:x<40}", format!("flood {} ", at + 1)));
    }
}

#[test]
fn a_line_can_be_very_long() {
    let played = Stage::new().play_steps(&[json!({ "long_line": 5_000_000 })]);
    assert_eq!(played.texts()[0].len(), 5_000_000);
    assert_eq!(played.cause(), Cause::Completed);
}

#[test]
fn files_are_written_where_it_works() {
    let stage = Stage::new();
    let played = stage.play_steps(&[
        json!({ "write_file": { "path": "sub/a.txt", "content": "hello" } }),
        json!({ "write_file": { "path": "/proc/none/a.txt", "content": "hello" } }),
    ]);
    assert_eq!(fs::read_to_string(stage.path().join("sub/a.txt")).unwrap(), "hello");
    let errors = played.outputs.iter().filter_map(|output| match output {
        Output::ToolResult { is_error, .. } => Some(*is_error),
        _ => None,
    });
    assert_eq!(errors.collect::<Vec<_>>(), [false, true]);
}

#[test]
fn a_script_with_a_mistake_is_not_begun() {
    let stage = Stage::new();
    let played = stage.play_steps(&[json!({ "text": "fine" }), json!({ "txet": "not fine" })]);
    assert_eq!((played.exit, played.outputs.len()), (Exit::Code(1), 0));
    assert!(played.stderr.contains("line 2 of the script is not a step"), "{}", played.stderr);
}
