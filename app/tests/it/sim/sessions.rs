//! Resuming, forking, and the queue.

use crate::support::sim::{FIRST, SECOND, Stage};
use hatchery_core::output::Output;
use hatchery_core::{Cause, Exit, Meter, Usage};
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;

#[test]
fn a_resumed_session_goes_on_after_the_step_at_which_it_died() {
    let stage = Stage::new();
    let script = stage.script(&[
        json!({ "text": "one" }),
        json!({ "crash": "KILL" }),
        json!({ "text": "two" }),
        json!({ "exit": 7 }),
        json!({ "text": "three" }),
    ]);
    let first = stage.talk(&["--session-id", FIRST, "--script", &script], &["a"]);
    assert_eq!((first.exit, first.texts()), (Exit::Signal(9), vec!["one"]));
    let second = stage.talk(&["--resume", FIRST, "--script", &script], &["b"]);
    assert_eq!((second.exit, second.texts()), (Exit::Code(7), vec!["two"]));
    fs::remove_file(&script).unwrap();
    let third = stage.play(&["--resume", FIRST, "--", "go on"]);
    assert_eq!((third.cause(), third.texts()), (Cause::Completed, vec!["three"]));
    assert_eq!(third.init["session_id"], FIRST);
}

#[test]
fn an_unknown_session_cannot_be_resumed() {
    let played = Stage::new().play(&["--resume", FIRST, "--", "go on"]);
    assert_eq!((played.exit, played.kinds().as_str()), (Exit::Code(1), "turn_ended"));
    assert_eq!(played.stderr, format!("No conversation found with session ID: {FIRST}\n"));
    let outcome = played.outcome();
    assert_eq!(outcome.last_turn(), Some(&hatchery_core::output::TurnResult::SessionUnknown));
    assert!(played.stderr.contains("No conversation found"), "{}", played.stderr);
}

#[test]
fn an_id_is_used_once() {
    let stage = Stage::new();
    let script = stage.script(&[json!({ "text": "one" })]);
    assert_eq!(stage.play(&["--session-id", FIRST, &script, "go"]).exit, Exit::Code(0));
    let again = stage.play(&["--session-id", FIRST, &script, "go"]);
    assert_eq!((again.exit, again.outputs.len()), (Exit::Code(1), 0));
    assert_eq!(again.stderr, format!("Error: Session ID {FIRST} is already in use.\n"));
    let bad = stage.play(&["--session-id", "../../etc", &script, "go"]);
    assert_eq!((bad.exit, bad.stderr.as_str()), (Exit::Code(1), "Error: Invalid session ID. Must be a valid UUID.\n"));
}

#[test]
fn a_fork_and_its_origin_both_go_on_from_the_same_place() {
    let stage = Stage::new();
    let script = stage.script(&[json!({ "text": "one" }), json!("turn"), json!({ "text": "two" })]);
    stage.play(&["--session-id", FIRST, &script, "go"]);
    let fork = stage.play(&["--resume", FIRST, "--fork-session", "--session-id", SECOND, "--", "go on"]);
    assert_eq!(fork.texts(), ["two"]);
    assert_eq!(fork.init["session_id"], SECOND);
    assert_eq!(stage.play(&["--resume", FIRST, "--", "go on"]).texts(), ["two"]);
    assert_eq!(stage.play(&["--resume", SECOND, "--", "more"]).texts(), ["You said: more"]);
    let taken = stage.play(&["--resume", FIRST, "--fork-session", "--session-id", SECOND, "--", "go on"]);
    assert!(taken.stderr.contains("already in use"), "{}", taken.stderr);
}

#[test]
fn it_is_metered_like_the_real_one() {
    let stage = Stage::new();
    let cost = json!({ "cost": { "usd": 1, "input_tokens": 10 } });
    let script = stage.script(&[cost.clone(), json!("turn"), cost.clone(), json!({ "crash": "KILL" }), cost]);
    let parts = [
        stage.talk(&["--session-id", FIRST, "--script", &script], &["a", "b"]),
        stage.talk(&["--resume", FIRST], &["c"]),
    ];
    let (mut meter, mut used) = (Meter::New, Usage::default());
    for part in &parts {
        meter.new_process();
        for output in &part.outputs {
            if let Output::TurnEnded(end) = output {
                used += meter.take(end);
            }
        }
    }
    assert_eq!(
        (used.cost.to_string(), used.input_tokens),
        ("$3.00".to_owned(), 30),
        "the killed turn is paid for, too"
    );
}

#[test]
fn each_script_of_a_queue_is_played_by_one() {
    const SCRIPTS: usize = 24;
    let stage = Stage::new();
    let queue = stage.path().join("queue");
    fs::create_dir(&queue).unwrap();
    for number in 0..SCRIPTS {
        fs::write(queue.join(format!("{number:02}.jsonl")), format!("{}\n", json!({ "text": number.to_string() })))
            .unwrap();
    }
    fs::write(queue.join(".half"), "{").unwrap();
    let folder = queue.to_str().unwrap();
    let first = stage.play(&["--session-id", FIRST, "--queue", folder, "go"]);
    assert_eq!(first.texts(), ["0"], "in the order of names");
    let mut rest: Vec<_> = (1..SCRIPTS).map(|_| stage.start(&["--queue", folder, "go"])).collect();
    let played: Vec<_> = rest.iter_mut().map(|playing| playing.ended()).collect();
    let texts: BTreeSet<_> = played.iter().flat_map(|played| played.texts()).map(str::to_owned).collect();
    assert_eq!(texts, (1..SCRIPTS).map(|number| number.to_string()).collect(), "each once");
    let none = stage.play(&["--queue", folder, "go"]);
    assert_eq!((none.exit, none.outputs.len()), (Exit::Code(64), 0));
    assert!(none.stderr.contains("there is no script left"), "{}", none.stderr);
    let resumed = stage.play(&["--resume", FIRST, "--queue", folder, "go on"]);
    assert_eq!(resumed.texts(), ["You said: go on"], "a resumed session keeps its own");
}
