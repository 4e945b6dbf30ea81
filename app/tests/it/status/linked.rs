//! Git worktrees: one that the user made shares the status of the main checkout, and what is worked on there counts.

use crate::support::daemon::{PROGRAM, Ran};
use crate::support::repository::Checkout;
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A checkout with the folder `.fctry`, and a worktree of it on the branch `feature`, which is beside it in the folder.
fn with_worktree() -> (Checkout, TempDir, PathBuf) {
    let checkout = Checkout::new();
    let beside = TempDir::new().unwrap();
    let worktree = beside.path().canonicalize().unwrap().join("feature");
    checkout.git(&["worktree", "add", "--quiet", "-b", "feature", worktree.to_str().unwrap()]);
    fs::create_dir(checkout.top().join(".fctry")).unwrap();
    (checkout, beside, worktree)
}

fn in_folder(checkout: &Checkout, folder: &Path, arguments: &[&str], input: &str) -> Ran {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).current_dir(folder).env_clear().env("NO_COLOR", "1");
    command.env("HOME", checkout.top().join("home")).env("HATCHERY_TRUST_ALL", "1");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    Ran::from(child.wait_with_output().unwrap())
}

#[test]
fn a_worktree_shares_the_status_of_its_main_checkout() {
    let (checkout, _beside, worktree) = with_worktree();
    let run = |arguments: &[&str], input: &str| in_folder(&checkout, &worktree, arguments, input).good();
    run(&["state", "set", "scenarioScore", r#"{"satisfied":1,"total":3}"#], "");
    run(&["inbox", "add", "from the worktree"], "");
    assert!(!worktree.join(".fctry").exists() && !worktree.join(".hatchery").exists());
    let state =
        || -> Value { serde_json::from_slice(&fs::read(checkout.top().join(".fctry/state.json")).unwrap()).unwrap() };
    assert_eq!(state()["scenarioScore"]["total"], 3);
    assert!(checkout.grounds.run(&["inbox", "list"]).good().contains("from the worktree"));
    let line = run(&["statusline"], &json!({ "cwd": worktree }).to_string());
    assert!(line.contains("⎇ feature") && line.contains("✓ 1/3") && line.contains("✉ 1"), "{line}");
    // What is written there is named as in the checkout.
    fs::write(checkout.top().join(".fctry/spec.md"), "### 2.2 Core flow {#core-flow}\nIn `src/a.rs`.\n").unwrap();
    let wrote = json!({ "tool_name": "Write", "tool_input": { "file_path": worktree.join("src/a.rs") } }).to_string();
    run(&["state", "untracked"], &wrote);
    assert_eq!(state()["untrackedChanges"][0]["file"], "src/a.rs");
    // With a state of its own it is a project of its own.
    fs::create_dir(worktree.join(".fctry")).unwrap();
    fs::write(worktree.join(".fctry/state.json"), "{}").unwrap();
    assert_eq!(run(&["state", "get", "scenarioScore"], ""), "null\n");
}
