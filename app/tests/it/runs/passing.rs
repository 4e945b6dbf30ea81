//! A start that fails for a reason that passes: it is waited for, or tried again.

use crate::support::transcripts::write;
use crate::support::workshop::Workshop;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command};

const SESSION: &str = "11111111-1111-4111-8111-111111111111";

/// A project with an agent `old` whose conversation is the session, played by a program that does nothing.
fn shop() -> (Workshop, tempfile::TempDir, String) {
    let programs = tempfile::tempdir().unwrap();
    let program = programs.path().join("claude");
    fs::write(&program, "#!/bin/sh\nexec sleep 600\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let environment = vec![("CLAUDE_CLI_PATH".to_owned(), program.into_os_string())];
    let shop = Workshop::with("harness = 'claude'\nstop_grace_ms = 300\n", environment);
    let root = shop.grounds.path().canonicalize().unwrap();
    write(&shop.grounds.path().join("home/.claude/projects"), &root, SESSION, 2);
    shop.grounds.run(&["adopt", SESSION, "--name", "old"]).good();
    let agent = shop.door().get("/api/agents/old").json()["id"].as_str().unwrap().to_owned();
    (shop, programs, agent)
}

/// A process of an attempt, as far as anybody can tell.
fn holder(seconds: &str) -> Child {
    Command::new("sleep").arg(seconds).env("HATCHERY_ATTEMPT", "of a test").spawn().unwrap()
}

/// Notes, as the CLI does it, that a process has the session open.
fn occupy(shop: &Workshop, pid: u32) {
    let notes = shop.grounds.path().join("home/.claude/sessions");
    fs::create_dir_all(&notes).unwrap();
    fs::write(notes.join(format!("{pid}.json")), json!({ "pid": pid, "sessionId": SESSION }).to_string()).unwrap();
}

#[test]
fn a_process_that_is_about_to_end_is_waited_for() {
    let (shop, _programs, agent) = shop();
    let mut holder = holder("1");
    occupy(&shop, holder.id());
    shop.grounds.run(&["say", "old", "go on"]).good();
    let spawned = shop.wait_for(&agent, "run_spawned");
    assert_eq!((&spawned["session"], &spawned["attempt"]), (&json!(SESSION), &json!(1)), "{spawned}");
    holder.wait().unwrap();
    shop.stop(&agent);
    assert_eq!(shop.end(&agent), "user_ended");
}

#[test]
fn a_start_that_failed_for_a_passing_reason_is_tried_again() {
    let (shop, _programs, agent) = shop();
    let mut holder = holder("600");
    occupy(&shop, holder.id());
    shop.grounds.run(&["say", "old", "go on"]).good();
    let crashed = shop.wait_for(&agent, "run_crashed");
    let detail = crashed["detail"].as_str().unwrap();
    assert!(detail.contains(&format!("process {} has the session", holder.id())), "{detail}");
    holder.kill().unwrap();
    holder.wait().unwrap();
    let spawned = shop.wait_for(&agent, "run_spawned");
    assert!(spawned["attempt"].as_u64() > Some(1), "{spawned}");
    shop.stop(&agent);
    assert_eq!(shop.end(&agent), "user_ended");
}
