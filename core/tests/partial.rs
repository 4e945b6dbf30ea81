//! Pieces of texts, as the recorded runs of the agent programs have them: put together, they are what is said in the end.

#![allow(clippy::disallowed_methods, reason = "recordings are read from files, though not by the core itself")]
#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it must be")]

use hatchery_core::acp::AcpReader;
use hatchery_core::codex::CodexReader;
use hatchery_core::harness::Reader;
use hatchery_core::output::Output;
use hatchery_core::partial::PartialKind;
use hatchery_core::stream_json::StreamJsonReader;
use std::path::Path;
use std::sync::Arc;

/// The end of a turn by ACP.
const TURN_ENDED: &str = r#"{"id":"say:m","result":{"stopReason":"end_turn"}}"#;

/// What a program said in a recording. A recording of both sides marks it.
fn lines(file: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(file);
    let text = std::fs::read_to_string(path).unwrap();
    let said = text.lines().filter(|line| !line.starts_with("> "));
    said.map(|line| line.strip_prefix("< ").unwrap_or(line).to_owned()).collect()
}

/// The texts and thoughts that were whole, and the pieces before each of them, put together.
fn said(reader: &mut dyn Reader, lines: &[String]) -> Vec<(PartialKind, String, String)> {
    let mut pieces = String::new();
    let mut said = Vec::new();
    for line in lines {
        if let Some(partial) = reader.partial(line) {
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
    let said = said(&mut StreamJsonReader::default(), &lines("claude-cli/partial_messages.stdout.jsonl"));
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
    let said = said(&mut CodexReader::default(), &lines("codex-app-server/stream_cut_once.jsonl"));
    let with_pieces: Vec<_> = said.iter().filter(|(_, pieces, _)| !pieces.is_empty()).collect();
    assert!(!with_pieces.is_empty());
    for (_, pieces, whole) in with_pieces {
        assert_eq!(pieces, whole);
    }
}

/// The first chunk of a text is shown with the second. A text of one chunk is only said.
#[test]
fn the_pieces_of_agents_behind_acp_are_their_texts() {
    for agent in ["claude", "codex", "opencode"] {
        let mut reader = AcpReader::new(Arc::default(), None, true, None);
        let mut lines = lines(&format!("acp/{agent}_killed_loaded.jsonl"));
        // The recorded answer has an id that is not ours.
        lines.push(TURN_ENDED.to_owned());
        let said = said(&mut reader, &lines);
        let shown: Vec<_> = said.iter().filter(|(_, pieces, _)| !pieces.is_empty()).collect();
        let [(PartialKind::Text, pieces, whole)] = &shown[..] else { panic!("{agent}: {said:?}") };
        assert_eq!((pieces, whole.as_str()), (whole, "after session/load"), "{agent}");
    }
}

/// After a restart of the daemon, lines with pieces are read like others.
#[test]
fn a_text_is_whole_when_its_first_pieces_were_read_before_a_restart() {
    let line = |text: &str| {
        let content = serde_json::json!({ "type": "text", "text": text });
        let update = serde_json::json!({ "sessionUpdate": "agent_message_chunk", "content": content });
        serde_json::json!({ "method": "session/update", "params": { "update": update } }).to_string()
    };
    let mut reader = AcpReader::new(Arc::default(), None, true, None);
    reader.read(&line("one ")).unwrap();
    reader.read(&line("two ")).unwrap();
    let partial = reader.partial(&line("three")).unwrap();
    assert_eq!((partial.begins, partial.text.as_str()), (true, "one two three"));
    let ended = reader.read(TURN_ENDED).unwrap();
    assert!(ended.contains(&Output::Text { text: "one two three".into() }), "{ended:?}");
}
