//! What we rely on in the real agent CLI, held true by running it. `docs/claude-cli.md` has the list. Hatchery has no part in most
//! of these: when one fails after a change of the pinned version, the CLI has changed, and the harness must follow.

mod conversation;
mod killed;
mod refusals;
mod tools;

use crate::support::claude_cli::Ended;
use serde_json::Value;

fn is_init(line: &Value) -> bool {
    line["subtype"] == "init"
}

fn is_echo(line: &Value) -> bool {
    line["isReplay"] == true
}

/// The UUIDs of our own lines, as they came back.
fn echoes(ended: &Ended) -> Vec<&Value> {
    ended.lines.iter().filter(|line| is_echo(line)).map(|line| &line["uuid"]).collect()
}

fn sessions(ended: &Ended) -> Vec<Value> {
    let mut sessions: Vec<Value> = ended.lines.iter().map(|line| line["session_id"].clone()).collect();
    sessions.dedup();
    sessions
}
