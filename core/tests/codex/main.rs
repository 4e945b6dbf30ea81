//! The stream of the real `codex app-server`, as it was recorded: every file in `fixtures/codex-app-server` is read and judged. A line
//! that begins with `> ` was written to codex 0.166.0, one with `< ` is what it said. `NAME.meta.json` says how it was called.

#![allow(clippy::disallowed_methods, reason = "recordings are read from files, though not by the core itself")]
#![allow(clippy::unwrap_used, reason = "a test and its support stop where something is not as it must be")]

mod answers;
mod outcomes;
mod rollouts;
mod shapes;

#[path = "../support/damage.rs"]
mod damage;
#[path = "../support/recordings.rs"]
mod recordings;

use hatchery_core::codex::{CodexReader, CodexRequestId};
use hatchery_core::harness::Reader as _;
use hatchery_core::output::Output;
use recordings::{ends, texts};
use serde_json::Value;

const RECORDINGS: &str = "codex-app-server";

fn names() -> Vec<String> {
    recordings::names(RECORDINGS)
}

/// What codex said.
fn said(name: &str) -> Vec<String> {
    recordings::said(RECORDINGS, name, id)
}

fn id(request: &Value) -> Option<CodexRequestId> {
    let name = || request["id"].to_string();
    Some(match request["method"].as_str()? {
        "initialize" => CodexRequestId::Initialize,
        "thread/start" => CodexRequestId::StartThread,
        "thread/resume" => CodexRequestId::ResumeThread,
        "thread/fork" => CodexRequestId::ForkThread,
        "thread/turns/list" => CodexRequestId::ListTurns,
        "turn/start" | "turn/steer" => CodexRequestId::Say(name()),
        "turn/interrupt" => CodexRequestId::Interrupt(name()),
        _ => return None,
    })
}

fn outputs(name: &str) -> Vec<Output> {
    let mut reader = CodexReader::default();
    said(name).iter().flat_map(|line| reader.read(line).unwrap()).collect()
}

fn heard(outputs: &[Output]) -> Vec<&str> {
    let heard = outputs.iter().filter_map(|output| match output {
        Output::Heard { id } => Some(id.as_str()),
        _ => None,
    });
    heard.collect()
}
