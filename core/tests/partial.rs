//! Pieces of texts, as the recorded runs of the agent programs have them: put together, they are what is said in the end.

#![allow(clippy::disallowed_methods, reason = "recordings are read from files, though not by the core itself")]
#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it must be")]

use hatchery_core::codex::CodexReader;
use hatchery_core::harness::Reader;
use hatchery_core::output::Output;
use hatchery_core::partial::PartialKind;
use hatchery_core::stream_json::StreamJsonReader;
use std::path::Path;

/// The texts and thoughts that were whole, and the pieces before each of them, put together.
fn said(reader: &mut dyn Reader, file: &str) -> Vec<(PartialKind, String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(file);
    let mut pieces = String::new();
    let mut said = Vec::new();
    for line in std::fs::read_to_string(path).unwrap().lines().filter(|line| !line.starts_with("> ")) {
        // A recording of both sides marks what the program said.
        let line = line.strip_prefix("< ").unwrap_or(line);
        if let Some(partial) = reader.partial(line) {
            assert_eq!(reader.read(line).unwrap(), [], "a line with a piece says nothing else: {line}");
            if partial.begins {
                pieces.clear();
            }
            pieces.push_str(&partial.text);
            continue;
        }
        for output in reader.read(line).unwrap() {
            let (kind, text) = match output {
                Output::Text { text } => (PartialKind::Text, text),
                Output::Thinking { text } => (PartialKind::Thinking, text),
                _ => continue,
            };
            said.push((kind, std::mem::take(&mut pieces), text));
        }
    }
    said
}

#[test]
fn the_pieces_of_the_claude_cli_are_its_texts() {
    let said = said(&mut StreamJsonReader::default(), "claude-cli/partial_messages.stdout.jsonl");
    let kinds: Vec<PartialKind> = said.iter().map(|(kind, ..)| *kind).collect();
    assert_eq!(kinds, [PartialKind::Thinking, PartialKind::Text, PartialKind::Text]);
    for (_, pieces, whole) in said {
        assert_eq!(pieces, whole);
    }
}

/// A sub-agent writes beside its parent, and is not taken for it.
#[test]
fn the_pieces_of_a_subagent_are_not_those_of_its_parent() {
    let line = r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}},"parent_tool_use_id":"toolu_1"}"#;
    assert_eq!(StreamJsonReader::default().partial(line), None);
}

#[test]
fn the_pieces_of_codex_are_its_texts() {
    let said = said(&mut CodexReader::default(), "codex-app-server/stream_cut_once.jsonl");
    let with_pieces: Vec<_> = said.iter().filter(|(_, pieces, _)| !pieces.is_empty()).collect();
    assert!(!with_pieces.is_empty());
    for (_, pieces, whole) in with_pieces {
        assert_eq!(pieces, whole);
    }
}
