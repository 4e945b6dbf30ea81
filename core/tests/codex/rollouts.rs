//! The records of threads, as codex 0.166.0 wrote them: every file in `fixtures/codex-rollouts`.

use super::damage::{damaged, is_noticed};
use hatchery_core::MessageKind;
use hatchery_core::codex::rollout::{RolloutLine, RolloutThread, parse};
use proptest::prelude::*;
use std::fs;
use std::path::PathBuf;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/codex-rollouts")
}

fn lines(name: &str) -> Vec<RolloutLine> {
    recorded(name).iter().map(|line| parse(line).unwrap()).collect()
}

fn recorded(name: &str) -> Vec<String> {
    let text = fs::read_to_string(folder().join(name)).unwrap();
    text.split('\n').filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

fn names() -> Vec<String> {
    fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn thread(name: &str) -> RolloutThread {
    let found = lines(name).into_iter().find_map(|line| match line {
        RolloutLine::Thread(thread) => Some(thread),
        RolloutLine::Said { .. } | RolloutLine::Other => None,
    });
    found.unwrap()
}

fn said(name: &str) -> Vec<(MessageKind, String)> {
    let said = lines(name).into_iter().flat_map(|line| match line {
        RolloutLine::Said { said, .. } => said,
        RolloutLine::Thread(_) | RolloutLine::Other => Vec::new(),
    });
    said.collect()
}

#[test]
fn every_rollout_names_its_thread_and_says_something() {
    for name in names() {
        assert!(!thread(&name).id.is_empty(), "{name}");
        assert!(!said(&name).is_empty(), "{name}");
    }
}

#[test]
fn what_was_said_is_told_once() {
    let said = said("full_session.jsonl");
    let texts: Vec<&str> =
        said.iter().filter(|(kind, _)| *kind == MessageKind::User).map(|(_, text)| text.as_str()).collect();
    assert_eq!(
        texts,
        ["first message", "second message, in mid-turn", "third message", "fourth message", "fifth message"],
        "without what codex adds for the model"
    );
    let count = |wanted: MessageKind| said.iter().filter(|(kind, _)| *kind == wanted).count();
    assert_eq!(count(MessageKind::ToolCall), count(MessageKind::ToolResult));
    assert!(said.iter().any(|(kind, call)| *kind == MessageKind::ToolCall && call.contains("\"signal-back\"")));
}

#[test]
fn a_fork_names_what_it_has_inherited() {
    let (parent, fork) = (thread("full_session.jsonl"), thread("fork_of_full_session.jsonl"));
    assert_eq!(fork.base, Some((parent.id, 61)));
    assert!(parent.base.is_none() && !parent.is_subagent);
    assert_eq!(fork.folder.as_deref(), Some("/home/dev/project"));
}

proptest! {
    /// Cut anywhere, with a byte changed anywhere: a line is read or refused, but never brings the reader down.
    #[test]
    fn no_line_brings_the_reader_down(
        line in prop::sample::select(names().iter().flat_map(|name| recorded(name)).collect::<Vec<_>>()),
        at in any::<prop::sample::Index>(),
        byte: u8,
        cut: bool,
    ) {
        let damaged = damaged(line, at, byte, cut);
        let read = parse(&damaged);
        prop_assert!(is_noticed(cut, &damaged, &read), "half a line was taken for a whole one");
    }
}
