//! What the sandbox of the real codex keeps its commands from, under the policy `edits`.

use crate::support::codex_cli::codex_or_skip;
use crate::support::model::{Model, Step};
use crate::support::vendors;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;
use std::fs;

/// What `edits` does not cover, without what is always there.
const MISSING: [&str; 7] = [".claude", ".mcp.json", ".codex", ".opencode", "opencode.json", ".gemini", ".qwen"];

fn run(command: &str) -> Step {
    Step::tool_use("exec_command", json!({ "cmd": command }))
}

#[test]
fn the_policy_edits_keeps_codex_from_the_settings_of_agents() {
    let cli = codex_or_skip!();
    let patch = "*** Begin Patch\n*** Add File: .claude/settings.json\n+{}\n*** End Patch\n";
    let each: Vec<String> =
        MISSING.iter().map(|name| format!("mkdir -p {name}; echo x > {name}; echo x > {name}/x")).collect();
    let model = Model::playing([
        run(&each.join("; ")),
        run("echo x > .hatchery/x; echo x > inside.txt"),
        Step::tool_use("apply_patch", json!({ "patch": patch })),
        Step::text("done").for_ever(),
    ]);
    let (shop, home) = vendors::of_codex(cli, &model);
    // What a user sets for codex alone does not count.
    let settings = home.path().join("config.toml");
    let own = fs::read_to_string(&settings).unwrap();
    fs::write(&settings, format!("sandbox_mode = 'danger-full-access'\n{own}")).unwrap();
    let agent = shop.prompt("hello", json!({ "permissions": "edits" }));
    // A patch is asked for, and the question names the file.
    let question = shop.answer_nth(&agent, 1, "deny");
    assert!(question["text"].as_str().unwrap().contains(".claude/settings.json"), "{question}");
    assert_eq!(shop.end(&agent), "completed");
    let root = shop.grounds.path();
    assert!(root.join("inside.txt").exists(), "its folder is writable");
    for name in MISSING.into_iter().chain([".hatchery/x"]) {
        assert!(!root.join(name).exists(), "{name}");
    }
    assert_eq!(shop.count_of(&agent, "question_asked"), 1);
}

/// The project is below the folder for temporary files, which is writable.
#[test]
fn an_agent_in_a_folder_of_its_own_cannot_write_what_belongs_to_hatchery() {
    let cli = codex_or_skip!();
    let model = Model::playing([run("echo x > ../.hatchery/x; echo x > inside.txt"), Step::text("done")]);
    let (shop, _home) = vendors::of_codex(cli, &model);
    let inner = shop.grounds.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let agent = shop.prompt("hello", json!({ "permissions": "edits", "folder": "inner" }));
    assert_eq!(shop.end(&agent), "completed");
    assert!(inner.join("inside.txt").exists());
    assert!(!shop.grounds.path().join(".hatchery/x").exists());
}

/// Codex keeps the sandbox of a thread that goes on, unless it is told another.
#[test]
fn a_thread_that_goes_on_gets_the_sandbox_of_its_new_policy() {
    let cli = codex_or_skip!();
    let model =
        Model::playing([Step::text("first"), run("echo x > .mcp.json; echo x > inside.txt"), Step::text("second")]);
    let (shop, _home) = vendors::of_codex(cli, &model);
    let agent = shop.prompt("hello", json!({ "permissions": "ask" }));
    assert_eq!(shop.end(&agent), "completed");
    let more = json!({ "text": "and this", "with": { "permissions": "edits" } });
    let answer = shop.door().post(&format!("/api/agents/{agent}/say"), &more);
    assert_eq!(answer.status, 200, "{answer:?}");
    shop.wait_nth_of(&agent, "run_ended", 2);
    assert_eq!(shop.said(&agent), ["first", "second"]);
    let root = shop.grounds.path();
    assert!(root.join("inside.txt").exists() && !root.join(".mcp.json").exists());
}

/// While a command runs, the sandbox puts empty files where the protected ones are missing.
#[cfg(target_os = "linux")]
#[test]
fn a_killed_codex_leaves_none_of_the_empty_files_of_its_sandbox() {
    let cli = codex_or_skip!();
    let model = Model::playing([run("echo up > up; sleep 600"), Step::text("done")]);
    let (shop, _home) = vendors::of_codex(cli, &model);
    let root = shop.grounds.path();
    let up = root.join("up");
    mknodat(CWD, &up, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let agent = shop.prompt("hello", json!({ "permissions": "edits" }));
    assert_eq!(fs::read_to_string(&up).unwrap(), "up\n", "the command runs");
    assert!(root.join(".mcp.json").is_file(), "otherwise there is nothing to remove");
    shop.kill_process(&agent);
    assert_eq!(shop.end(&agent), "completed");
    for name in [".claude", ".mcp.json", ".opencode", "opencode.json", ".gemini", ".qwen"] {
        assert!(!root.join(name).exists(), "{name}");
    }
}
