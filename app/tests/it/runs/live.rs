//! What an agent is writing is shown while it is written, with each of the real programs.

use crate::support::claude_cli::cli_or_skip;
use crate::support::codex_cli::codex_or_skip;
use crate::support::model::{Fault, Gate, Model, Place, Step};
use crate::support::opencode_cli::opencode_or_skip;
use crate::support::sse::EventSource;
use crate::support::vendors;
use crate::support::workshop::Workshop;
use serde_json::json;

/// The model sends a text in pieces of eight letters, and stands still after the first half of them.
const TEXT: &str = "The quick brown fox jumps over the lazy dog.";

fn held(gate: &Gate) -> Model {
    Model::playing([Step::text(TEXT).fault(Place::Within(0), Fault::Hold(gate.clone()))])
}

fn shows_what_is_written(shop: &Workshop, gate: &Gate) {
    let agent = shop.prompt("hello", json!({}));
    let mut live = EventSource::open(&shop.door(), &format!("/api/agents/{agent}/live"));
    gate.reached();
    let mut written = String::new();
    while written.len() < TEXT.len() / 2 {
        let (_, piece) = live.next();
        assert_eq!((&piece["type"], &piece["kind"]), (&json!("writing"), &json!("text")), "{piece}");
        assert_eq!(piece["begins"], written.is_empty(), "{piece}");
        written.push_str(piece["text"].as_str().unwrap());
        assert!(TEXT.starts_with(&written), "{written:?}");
    }
    assert!(written.len() < TEXT.len(), "the rest is not said yet");
    assert_eq!(shop.said(&agent), [""; 0], "it is not in the log before it is whole");
    gate.open();
    while live.next().1["type"] != "ended" {}
    assert_eq!(shop.said(&agent), [TEXT], "it is in the log when the live text is over");
    assert_eq!(shop.end(&agent), "completed");
}

#[test]
fn a_text_of_claude_is_shown_while_it_is_written() {
    let (cli, gate) = (cli_or_skip!(), Gate::default());
    let model = held(&gate);
    let (shop, _home) = vendors::of_claude(cli, &model);
    shows_what_is_written(&shop, &gate);
}

#[test]
fn a_text_of_codex_is_shown_while_it_is_written() {
    let (cli, gate) = (codex_or_skip!(), Gate::default());
    let model = held(&gate);
    let (shop, _home) = vendors::of_codex(cli, &model);
    shows_what_is_written(&shop, &gate);
}

#[test]
fn a_text_of_an_agent_behind_acp_is_shown_while_it_is_written() {
    let (cli, gate) = (opencode_or_skip!(), Gate::default());
    let model = held(&gate);
    let (shop, _home) = vendors::of_opencode(cli, &model);
    shows_what_is_written(&shop, &gate);
}
