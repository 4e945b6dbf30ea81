//! Steps per second with agents that signal at once, against the rate at which this machine starts the same program.

use crate::Effort;
use crate::daemon::Daemon;
use crate::hands;
use crate::raw;
use crate::shop::PROGRAM;
use crate::table::{Goal, Table, Unit, in_turns};
use crate::wire::Client;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const SLOTS: u32 = 8;
const COMPLETED: &[u8] = b"\"type\":\"quest_completed\"";
const SIGNAL: &str =
    r#"{"mcp": {"tool": "signal-back", "arguments": {"signal": "complete", "stepId": "{{step}}", "summary": "done"}}}"#;

/// One role for each step, and nothing else.
const SETTINGS: &str =
    "harness = 'scripted'\n[quests.paths]\nrequirements = []\nplan = []\nwork = ['codeweaver']\nreview = []\n";

pub fn run(effort: Effort, table: &mut Table) {
    let folder = raw::folder();
    let playbook = folder.path().join("playbook");
    std::fs::create_dir_all(folder.path().join(".hatchery")).unwrap();
    std::fs::create_dir(&playbook).unwrap();
    std::fs::write(folder.path().join("hatchery.toml"), SETTINGS).unwrap();
    std::fs::write(playbook.join("codeweaver.jsonl"), SIGNAL).unwrap();
    let script = folder.path().join("bare.jsonl");
    std::fs::write(&script, "{\"text\":\"done\"}\n").unwrap();
    let daemon = Daemon::start(folder.path());
    let runtime = raw::runtime();
    let steps = effort.pick(24, 64);
    let quest = || runtime.block_on(quest(&daemon, &playbook, steps));
    let pairs = in_turns(effort.pick(2, 7), quest, || bare(&script, steps));
    let what = "steps per second, 8 slots, against bare starts of the program";
    table.add(what, Unit::PerSecond, pairs, Goal::AtLeast(0.3));
}

async fn quest(daemon: &Daemon, playbook: &Path, steps: usize) -> f64 {
    let head = daemon.log_head().await;
    let steps = hands::plan(steps, |_| Vec::new());
    let wish = serde_json::json!({
        "request": "be measured", "slots": SLOTS, "ward": "", "isolation": "none", "steps": steps,
        "with": { "script": playbook },
    });
    let request = daemon.post("/api/quests", &wish.to_string());
    let mut follower = TcpStream::connect(daemon.address).await.unwrap();
    follower.write_all(&daemon.follow_request(head)).await.unwrap();
    let start = Instant::now();
    Client::connect(daemon.address).await.ask(&request).await;
    let mut seen = Vec::new();
    while !done(&seen) {
        assert_ne!(follower.read_buf(&mut seen).await.unwrap(), 0, "the daemon hung up");
    }
    steps.len() as f64 / start.elapsed().as_secs_f64()
}

/// Whether it is among the last that was read, however that was cut.
fn done(seen: &[u8]) -> bool {
    let last = &seen[seen.len().saturating_sub(64 << 10)..];
    last.windows(COMPLETED.len()).any(|part| part == COMPLETED)
}

/// As many at once as there are slots.
fn bare(script: &Path, count: usize) -> f64 {
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..SLOTS {
            scope.spawn(|| {
                for _ in 0..count / SLOTS as usize {
                    let mut command = Command::new(PROGRAM);
                    command.arg("agent-sim").arg(script).arg("play").stdin(Stdio::null()).stdout(Stdio::null());
                    assert!(command.status().unwrap().success());
                }
            });
        }
    });
    count as f64 / start.elapsed().as_secs_f64()
}
