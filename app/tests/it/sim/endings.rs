//! How a script can end, and what the core makes of it.

use crate::support::daemon::PATIENCE;
use crate::support::sim::Stage;
use hatchery_core::{Cause, Exit};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::fs;
use std::time::{Duration, Instant};

#[test]
fn it_ends_without_a_result() {
    let stage = Stage::new();
    let exited = stage.play_steps(&[json!({ "text": "a" }), json!({ "exit": 3 }), json!({ "text": "never" })]);
    assert_eq!((exited.exit, exited.cause(), exited.texts()), (Exit::Code(3), Cause::Crashed, vec!["a"]));
    let last = stage.play_steps(&[json!({ "last_words": "farewell" })]);
    assert_eq!((last.exit, last.cause(), last.texts()), (Exit::Code(0), Cause::Crashed, vec!["farewell"]));
}

#[test]
fn it_dies_of_signals() {
    let stage = Stage::new();
    for (signal, exit) in [
        ("KILL", Exit::Signal(9)),
        ("SEGV", Exit::Signal(11)),
        ("ABRT", Exit::Signal(6)),
        ("TERM", Exit::Code(143)),
        ("HUP", Exit::Code(129)),
    ] {
        let played = stage.play_steps(&[json!({ "text": "a" }), json!({ "crash": signal })]);
        assert_eq!((played.exit, played.cause(), played.texts()), (exit, Cause::Crashed, vec!["a"]), "{signal}");
    }
}

#[test]
fn the_service_fails_in_many_ways() {
    let stage = Stage::new();
    for (api, cause) in [
        (json!(401), Cause::Unauthorised),
        (json!(429), Cause::RateLimited),
        (json!(500), Cause::Unavailable),
        (json!(529), Cause::Overloaded),
        (json!("credit"), Cause::OutOfCredit),
        (json!("too_long"), Cause::PromptTooLong),
    ] {
        let played = stage.play_steps(&[json!({ "text": "a" }), json!({ "error": { "api": api } })]);
        assert_eq!((played.exit, played.cause(), played.texts()), (Exit::Code(1), cause, vec!["a"]), "{api}");
        assert_eq!(played.outcome().resets_at(), None);
    }
    let limited = stage.play_steps(&[json!({ "error": { "api": 429, "resets_in_s": 3_600 } })]);
    assert!(limited.outcome().resets_at().is_some(), "{limited:?}");
}

#[test]
fn a_hang_ends_by_sigterm_alone() {
    let stage = Stage::new();
    let mut playing = stage.start(&[&stage.script(&[json!({ "hang": {} })]), "go"]);
    playing.hears("hanging");
    playing.signal(Signal::INT);
    playing.signal(Signal::TERM);
    assert_eq!(playing.ended().exit, Exit::Code(143));
}

#[test]
fn a_hang_can_ignore_sigterm() {
    let stage = Stage::new();
    let mut playing = stage.start(&[&stage.script(&[json!({ "hang": { "ignore_sigterm": true } })]), "go"]);
    playing.hears("hanging");
    playing.signal(Signal::TERM);
    // That nothing happens can only be seen by waiting.
    std::thread::sleep(Duration::from_millis(200));
    assert!(playing.is_alive());
    playing.signal(Signal::KILL);
    assert_eq!(playing.ended().exit, Exit::Signal(9));
}

#[test]
fn sigint_breaks_the_turn_off() {
    let stage = Stage::new();
    let mut playing = stage.start(&[&stage.script(&[json!({ "text": "a" }), json!({ "sleep_ms": 600_000 })]), "go"]);
    playing.hears("\"a\"");
    playing.signal(Signal::INT);
    let played = playing.ended();
    assert_eq!((played.exit, played.cause()), (Exit::Code(0), Cause::UserEnded));
    assert_eq!(played.outcome().last_turn(), Some(&hatchery_core::output::TurnResult::Interrupted));
}

#[test]
fn a_grandchild_lives_on_in_its_own_session() {
    let stage = Stage::new();
    let played = stage.play_steps(&[json!({ "child": { "sleep_s": 600 } }), json!({ "crash": "KILL" })]);
    let said = format!("{:?}", played.outputs);
    let pid: i32 = said.split("pid ").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
    let stat = || fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let deadline = Instant::now() + PATIENCE;
    while !stat().contains("(sleep)") {
        assert!(Instant::now() < deadline, "{}", stat());
        std::thread::yield_now();
    }
    // After the name: state, parent, group, session.
    let session = stat().rsplit(')').next().unwrap().split_whitespace().nth(3).unwrap().to_owned();
    assert_eq!(session, pid.to_string());
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}
