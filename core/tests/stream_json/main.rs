//! The stream of the real Claude CLI, as it was recorded: every file in `fixtures/claude-cli` is read, judged and metered.
//! `NAME.stdout.jsonl` is what version 2.1.325 said (2.1.112 with the prefix `js_`), `NAME.meta.json` how it was called and ended.

#![allow(clippy::disallowed_methods, reason = "recordings are read from files, though not by the core itself")]
#![allow(clippy::unwrap_used, reason = "a test and its support stop where something is not as it must be")]

mod metering;
mod outcomes;
mod shapes;

#[path = "../support/damage.rs"]
mod damage;

use hatchery_core::harness::Reader as _;
use hatchery_core::output::{Output, TurnEnd};
use hatchery_core::stream_json::StreamJsonReader;
use hatchery_core::{Exit, Outcome};
use std::fs;
use std::path::PathBuf;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/claude-cli")
}

/// The names of all recorded runs.
fn names() -> Vec<String> {
    let files = fs::read_dir(folder()).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = files.filter_map(|name| name.strip_suffix(".stdout.jsonl").map(str::to_owned)).collect();
    names.sort();
    names
}

fn recorded(name: &str) -> String {
    fs::read_to_string(folder().join(format!("{name}.stdout.jsonl"))).unwrap()
}

/// How the recorded process ended: a negative code stands for a signal.
fn exit(name: &str) -> Exit {
    let meta = fs::read_to_string(folder().join(format!("{name}.meta.json"))).unwrap();
    let meta: serde_json::Value = serde_json::from_str(&meta).unwrap();
    match i32::try_from(meta["rc"].as_i64().unwrap()).unwrap() {
        signal @ ..0 => Exit::Signal(-signal),
        code => Exit::Code(code),
    }
}

/// What was said, without the lines that are not JSON.
fn outputs(name: &str) -> Vec<Output> {
    read(&recorded(name))
}

fn read(recording: &str) -> Vec<Output> {
    let mut reader = StreamJsonReader::default();
    recording.lines().filter_map(|line| reader.read(line).ok()).flatten().collect()
}

/// What a line says by itself.
fn parse(line: &str) -> Result<Vec<Output>, String> {
    StreamJsonReader::default().read(line)
}

fn outcome(name: &str) -> Outcome {
    let mut outcome = Outcome::default();
    outputs(name).iter().for_each(|output| outcome.take(output));
    outcome
}

fn turn_ends(name: &str) -> Vec<TurnEnd> {
    let ends = outputs(name).into_iter().filter_map(|output| match output {
        Output::TurnEnded(end) => Some(end),
        _ => None,
    });
    ends.collect()
}
