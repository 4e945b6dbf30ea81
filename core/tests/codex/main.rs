//! The stream of the real `codex app-server`, as it was recorded: every file in `fixtures/codex-app-server` is read and judged. A line
//! that begins with `> ` was written to codex 0.166.0, one with `< ` is what it said. `NAME.meta.json` says how it was called.

#![allow(clippy::disallowed_methods, reason = "recordings are read from files, though not by the core itself")]
#![allow(clippy::unwrap_used, reason = "a test and its support stop where something is not as it must be")]

mod answers;
mod outcomes;
mod rollouts;
mod shapes;

use hatchery_core::codex::{CodexReader, RequestId};
use hatchery_core::harness::Reader as _;
use hatchery_core::output::{Output, TurnEnd};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/codex-app-server")
}

/// The names of all recordings.
fn names() -> Vec<String> {
    let files = fs::read_dir(folder()).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = files.filter_map(|name| name.strip_suffix(".jsonl").map(str::to_owned)).collect();
    names.sort();
    names
}

/// What codex said. The recordings were made with numbers as ids; answers get the ids that we would have used.
fn said(name: &str) -> Vec<String> {
    let recording = fs::read_to_string(folder().join(format!("{name}.jsonl"))).unwrap();
    let mut asked: BTreeMap<String, RequestId> = BTreeMap::new();
    let mut lines = Vec::new();
    for line in recording.split('\n') {
        if let Some(ours) = line.strip_prefix("> ").and_then(|line| serde_json::from_str::<Value>(line).ok()) {
            asked.extend(id(&ours).map(|id| (ours["id"].to_string(), id)));
        }
        if let Some(theirs) = line.strip_prefix("< ") {
            lines.push(renamed(theirs, &asked));
        }
    }
    lines
}

fn id(request: &Value) -> Option<RequestId> {
    let name = || request["id"].to_string();
    Some(match request["method"].as_str()? {
        "initialize" => RequestId::Initialize,
        "thread/start" => RequestId::StartThread,
        "thread/resume" => RequestId::ResumeThread,
        "thread/fork" => RequestId::ForkThread,
        "turn/start" | "turn/steer" => RequestId::Say(name()),
        "turn/interrupt" => RequestId::Interrupt(name()),
        _ => return None,
    })
}

fn renamed(line: &str, asked: &BTreeMap<String, RequestId>) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(line) else { return line.to_owned() };
    if value.get("method").is_none()
        && let Some(id) = asked.get(&value["id"].to_string())
    {
        value["id"] = json!(id.to_string());
        return value.to_string();
    }
    line.to_owned()
}

fn outputs(name: &str) -> Vec<Output> {
    let mut reader = CodexReader::default();
    said(name).iter().flat_map(|line| reader.read(line).unwrap()).collect()
}

fn texts(outputs: &[Output]) -> Vec<&str> {
    let texts = outputs.iter().filter_map(|output| match output {
        Output::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

fn heard(outputs: &[Output]) -> Vec<&str> {
    let heard = outputs.iter().filter_map(|output| match output {
        Output::Heard { id } => Some(id.as_str()),
        _ => None,
    });
    heard.collect()
}

fn ends(outputs: &[Output]) -> Vec<&TurnEnd> {
    let ends = outputs.iter().filter_map(|output| match output {
        Output::TurnEnded(end) => Some(end),
        _ => None,
    });
    ends.collect()
}
