//! Messages and requests on standard input.

use crate::support::sim::{Stage, TALK};
use hatchery_core::output::Output;
use hatchery_core::{Cause, Exit};
use serde_json::json;

#[test]
fn without_a_script_it_says_what_was_said() {
    let stage = Stage::new();
    let played = stage.talk(&[], &["a", "b"]);
    assert_eq!(played.kinds(), ["turn_started heard text turn_ended"; 2].join(" "));
    assert_eq!(played.texts(), ["You said: a", "You said: b"]);
    assert!(played.outputs.contains(&Output::Heard { id: "b".to_owned() }));
    assert_eq!((played.exit, played.cause()), (Exit::Code(0), Cause::Completed));
}

#[test]
fn each_message_plays_one_turn_of_the_script() {
    let stage = Stage::new();
    let script = stage.script(&[json!({ "text": "one" }), json!("turn"), json!({ "text": "two" })]);
    let played = stage.talk(&["--script", &script], &["a", "b", "c"]);
    assert_eq!(played.texts(), ["one", "two", "You said: c"]);
}

#[test]
fn one_prompt_plays_one_turn() {
    let stage = Stage::new();
    let script = stage.script(&[json!({ "text": "one" }), json!("turn"), json!({ "text": "two" })]);
    assert_eq!(stage.play(&[&script, "go"]).texts(), ["one"]);
    assert_eq!(stage.play(&[&script]).texts(), ["one"], "an empty standard input is a prompt, too");
    let mut playing = stage.start(&[]);
    playing.write("from a pipe");
    assert_eq!(playing.end().texts(), ["You said: from a pipe\n"]);
}

#[test]
fn no_messages_is_no_turn() {
    let played = Stage::new().talk(&[], &[]);
    assert_eq!((played.exit, played.outputs.len()), (Exit::Code(0), 0));
}

#[test]
fn a_request_breaks_the_turn_off_and_the_next_message_begins_the_next() {
    let stage = Stage::new();
    let script = stage.script(&[
        json!({ "text": "one" }),
        json!({ "sleep_ms": 600_000 }),
        json!({ "text": "never" }),
        json!("turn"),
        json!({ "text": "two" }),
    ]);
    let mut playing = stage.start(&[&TALK[..], &["--script", &script]].concat());
    playing.tell("a");
    playing.hears("\"one\"");
    playing.ask("r1", "interrupt");
    playing.hears("aborted_streaming");
    playing.tell("b");
    let played = playing.end();
    let expected = "turn_started heard text answered note turn_ended turn_started heard text turn_ended";
    assert_eq!(played.kinds(), expected);
    assert!(played.outputs.contains(&Output::Answered { request: "r1".to_owned(), problem: None }));
    assert_eq!((played.texts(), played.cause()), (vec!["one", "two"], Cause::Completed));
}

#[test]
fn requests_between_turns_are_answered() {
    let stage = Stage::new();
    let mut playing = stage.start(&TALK);
    playing.ask("r0", "initialize");
    playing.hears("r0");
    playing.ask("r1", "interrupt");
    playing.hears("r1");
    playing.ask("r2", "dance");
    playing.hears("r2");
    playing.tell("a");
    let played = playing.end();
    assert_eq!(played.kinds(), "answered answered answered turn_started heard text turn_ended");
    let Output::Answered { problem, .. } = &played.outputs[2] else { panic!("{played:?}") };
    assert_eq!(problem.as_deref(), Some("a scripted agent does not know `dance`"));
}

#[test]
fn what_is_no_message_is_passed_over() {
    let stage = Stage::new();
    let mut playing = stage.start(&TALK);
    playing.write(r#"{"type":"keep_alive"}"#);
    playing.write("");
    playing.tell("a");
    assert_eq!(playing.end().texts(), ["You said: a"]);
}

#[test]
fn what_is_no_json_kills() {
    let stage = Stage::new();
    let mut playing = stage.start(&TALK);
    playing.write("this is no JSON!");
    let played = playing.ended();
    assert_eq!((played.exit, played.outputs.len()), (Exit::Code(1), 0));
    assert_eq!(played.stderr, "Error parsing streaming input line (type=unknown, 16 chars): SyntaxError\n");
}
