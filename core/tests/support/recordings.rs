//! Recorded conversations in JSON-RPC by lines: `> ` begins what was written to the agent, `< ` what it said.

use hatchery_core::output::{Output, TurnEnd};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

fn folder(of: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(of)
}

/// The names of all recordings in a folder.
pub fn names(of: &str) -> Vec<String> {
    let files = fs::read_dir(folder(of)).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = files.filter_map(|name| name.strip_suffix(".jsonl").map(str::to_owned)).collect();
    names.sort();
    names
}

/// The lines of the same programs in other modes, which no harness uses: `codex exec --json` and `opencode run --format json`.
pub fn foreign() -> Vec<String> {
    let texts = ["codex-cli", "opencode-cli"].into_iter().flat_map(|of| {
        let file = move |name: String| fs::read_to_string(folder(of).join(format!("{name}.jsonl"))).unwrap();
        names(of).into_iter().map(file)
    });
    let lines: Vec<String> = texts.flat_map(|text| text.split('\n').map(str::to_owned).collect::<Vec<_>>()).collect();
    assert!(lines.len() > 300, "{} lines", lines.len());
    lines
}

/// What the agent said. The recordings were made with numbers as ids; answers get the ids that we would have used.
pub fn said<Id: ToString>(of: &str, name: &str, id: impl Fn(&Value) -> Option<Id>) -> Vec<String> {
    let recording = fs::read_to_string(folder(of).join(format!("{name}.jsonl"))).unwrap();
    let mut asked: BTreeMap<String, String> = BTreeMap::new();
    let mut lines = Vec::new();
    for line in recording.split('\n') {
        if let Some(ours) = line.strip_prefix("> ").and_then(|line| serde_json::from_str::<Value>(line).ok()) {
            asked.extend(id(&ours).map(|id| (ours["id"].to_string(), id.to_string())));
        }
        if let Some(theirs) = line.strip_prefix("< ") {
            lines.push(renamed(theirs, &asked));
        }
    }
    lines
}

fn renamed(line: &str, asked: &BTreeMap<String, String>) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(line) else { return line.to_owned() };
    if value.get("method").is_none()
        && let Some(id) = asked.get(&value["id"].to_string())
    {
        value["id"] = json!(id);
        return value.to_string();
    }
    line.to_owned()
}

pub fn texts(outputs: &[Output]) -> Vec<&str> {
    let texts = outputs.iter().filter_map(|output| match output {
        Output::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

pub fn ends(outputs: &[Output]) -> Vec<&TurnEnd> {
    let ends = outputs.iter().filter_map(|output| match output {
        Output::TurnEnded(end) => Some(end),
        _ => None,
    });
    ends.collect()
}
