//! `hatchery demo`

use super::events::{EventLines, Line};
use super::paint::{BAD, DIM, GOOD, paint};
use super::{Context, asking, print_line};
use crate::client::Client;
use crate::http::Status;
use crate::report::{Context as _, Report};
use http_body_util::BodyExt as _;
use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Child;
use tokio::sync::watch;

/// Show Hatchery at work in a temporary project, with a kill -9 in the middle
///
/// Two agents play a short script, and its events stream in. Halfway the daemon is killed and another one goes on. Needs no
/// account and no network, and leaves nothing behind.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Milliseconds between two lines of the script
    #[arg(long, default_value_t = 250, value_name = "MS")]
    pace: u64,
}

/// Who says what, after the two agents exist.
const SCRIPT: [(&str, &str, &str); 6] = [
    ("Codeweaver", "user", "Add a --verbose flag, and a test for it."),
    ("Codeweaver", "assistant", "The flag is in, reading the tests now."),
    ("Siegemaster", "user", "Try to break the new flag."),
    ("Siegemaster", "tool_call", "cargo test verbose"),
    ("Siegemaster", "tool_result", "3 passed"),
    ("Codeweaver", "assistant", "Done: flag, help text and test."),
];
/// After this many lines of the script the daemon is killed.
const KILL_AFTER: usize = 3;

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Report> {
    let folder = tempfile::Builder::new().prefix("hatchery-demo-").tempdir().context("no temporary folder")?;
    // Makes it a project of its own, whatever the folder for temporary files belongs to.
    std::fs::create_dir(folder.path().join(".hatchery")).context("no temporary folder")?;
    asking(play(folder.path(), Duration::from_millis(args.pace), context.json))
}

async fn play(folder: &Path, pace: Duration, json: bool) -> Result<ExitCode, Report> {
    say(format_args!("a daemon starts in {}", folder.display()));
    let (mut child, client) = start(folder).await?;
    let (current, clients) = watch::channel(client.clone());
    let seen = Arc::new(AtomicU64::new(0));
    let follower = tokio::spawn(follow(clients, Arc::clone(&seen), json));

    // Agent 0 is there already.
    let before: Status = client.get("/api/status").await?;
    let mut acknowledged = 0;
    let session = create(&client, "/api/sessions", &serde_json::json!({ "label": "demo" }), &mut acknowledged).await?;
    let mut agents = std::collections::BTreeMap::new();
    for name in ["Codeweaver", "Siegemaster"] {
        let body = serde_json::json!({ "name": name, "session": session });
        agents.insert(name, create(&client, "/api/agents", &body, &mut acknowledged).await?);
    }
    let mut client = client;
    for (number, (who, kind, content)) in SCRIPT.iter().enumerate() {
        tokio::time::sleep(pace).await;
        if number == KILL_AFTER {
            child.kill().await.context("the daemon cannot be killed")?;
            say("the daemon was killed with -9, in the middle of its work; another one starts");
            (child, client) = start(folder).await?;
            current.send_replace(client.clone());
        }
        let body = serde_json::json!({ "kind": kind, "content": content });
        create(&client, &format!("/api/agents/{}/messages", agents[who]), &body, &mut acknowledged).await?;
    }
    tokio::time::sleep(pace).await;
    create(
        &client,
        &format!("/api/sessions/{session}/end"),
        &serde_json::json!({ "reason": "completed" }),
        &mut acknowledged,
    )
    .await?;

    // The session's end is brought about after it was recorded: both agents fall asleep, then it has ended.
    let expected = before.head.0 + acknowledged + 3;
    let all = async {
        while seen.load(Ordering::Relaxed) < expected {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let whole = tokio::time::timeout(Duration::from_secs(10), all).await.is_ok();
    follower.abort();
    if let Some(pid) = child.id().and_then(|id| rustix::process::Pid::from_raw(id.cast_signed())) {
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).context("the daemon cannot be stopped")?;
    }
    child.wait().await.context("the daemon did not end")?;
    let seen = seen.load(Ordering::Relaxed);
    let verdict = match whole {
        true => paint(GOOD, "nothing was lost"),
        false => paint(BAD, "events are missing"),
    };
    match json {
        true => print_line(
            &serde_json::json!({ "whole": whole, "acknowledged": acknowledged, "seen": seen, "expected": expected })
                .to_string(),
        )?,
        false => print_line(&format!(
            "{verdict}: {acknowledged} events acknowledged, {seen} of {expected} seen, each once and in order"
        ))?,
    }
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn start(folder: &Path) -> Result<(Child, Client), Report> {
    #[derive(serde::Deserialize)]
    struct Ready {
        url: String,
        token: String,
    }
    let program = std::env::current_exe().context("this program cannot be found again")?;
    let mut command = tokio::process::Command::new(program);
    // Settings for real projects, a shared store above all, are not for the demo.
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("HATCHERY_")) {
        command.env_remove(name);
    }
    let mut child = command
        .args(["up", "--json", "--project"])
        .arg(folder)
        .env("HATCHERY_LOG", "error")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("the daemon cannot be started")?;
    let mut line = String::new();
    if let Some(output) = child.stdout.take() {
        BufReader::new(output).read_line(&mut line).await.context("the daemon cannot be heard")?;
    }
    let ready: Ready = serde_json::from_str(&line).context("the daemon did not get ready")?;
    Ok((child, Client::new(&ready.url, ready.token)))
}

/// Prints every event as it comes, across the death of the daemon. Each must follow the one before.
async fn follow(mut clients: watch::Receiver<Client>, seen: Arc<AtomicU64>, json: bool) -> Result<(), Report> {
    loop {
        let client = clients.borrow_and_update().clone();
        if let Ok(mut body) = client.stream(&format!("/api/events?after={}", seen.load(Ordering::Relaxed))).await {
            let mut lines = EventLines::default();
            while let Some(Ok(frame)) = body.frame().await {
                let Ok(bytes) = frame.into_data() else { continue };
                for event in lines.take(&bytes) {
                    let line = Line::read(&event)?;
                    if line.id != seen.load(Ordering::Relaxed) + 1 {
                        return Err(Report::failed(format_args!("event {} came out of order", line.id)));
                    }
                    match json {
                        true => print_line(&event)?,
                        false => print_line(&line.to_string())?,
                    }
                    seen.store(line.id, Ordering::Relaxed);
                }
            }
        }
        clients.changed().await.context("the demo is over")?;
    }
}

async fn create(
    client: &Client,
    path: &str,
    body: &serde_json::Value,
    acknowledged: &mut u64,
) -> Result<String, Report> {
    let accepted: serde_json::Value = client.post(path, body).await?;
    *acknowledged += accepted["events"].as_array().map_or(0, Vec::len) as u64;
    Ok(accepted["id"].as_str().unwrap_or_default().to_owned())
}

fn say(words: impl std::fmt::Display) {
    anstream::eprintln!("{}", paint(DIM, format_args!("  — {words}")));
}
