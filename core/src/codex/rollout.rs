//! The rollout of a thread: the lines of JSON that codex keeps about the thread. The messages are in completed items. The other lines
//! repeat the messages in the form that the model sees, or are about codex itself.

use crate::MessageKind;
use crate::json::{Fields, joined, object, text};
use crate::run::{TOOL_SERVER, tool_call, tool_result};
use serde_json::json;
use serde_json::value::RawValue;

/// What a line of a rollout says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RolloutLine {
    Thread(RolloutThread),
    Said { ordinal: u64, id: String, said: Vec<(MessageKind, String)> },
    Other,
}

/// The thread to which a rollout belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolloutThread {
    pub id: String,
    /// The folder in which the thread works.
    pub folder: Option<String>,
    /// The rollout of a fork contains only what came after the fork. These are the thread with the part before, and the ordinal of the
    /// first line of that thread that the fork does not have.
    pub base: Option<(String, u64)>,
    /// The thread is a subagent of another thread's turn.
    pub is_subagent: bool,
}

pub fn parse(line: &str) -> Result<RolloutLine, String> {
    let Some(line) = object(line).map_err(|error| error.to_string())? else { return Ok(RolloutLine::Other) };
    let Some(payload) = line.object("payload") else { return Ok(RolloutLine::Other) };
    let read = match line.text("type").as_deref() {
        Some("session_meta") => thread(&payload).map(RolloutLine::Thread),
        Some("event_msg") if payload.text("type").as_deref() == Some("item_completed") => {
            let item = payload.object("item");
            let ordinal = line.count("ordinal").unwrap_or_default();
            item.and_then(|item| Some(RolloutLine::Said { ordinal, id: item.text("id")?, said: said(&item)? }))
        }
        _ => None,
    };
    Ok(read.unwrap_or(RolloutLine::Other))
}

fn thread(payload: &Fields) -> Option<RolloutThread> {
    let base = payload.object("history_base");
    Some(RolloutThread {
        id: payload.text("id")?,
        folder: payload.text("cwd"),
        base: base.and_then(|base| Some((base.text("thread_id")?, base.count("end_ordinal_exclusive")?))),
        // For a thread that is no subagent, the source is a string.
        is_subagent: payload.raw("source").is_some_and(|source| text(source).is_none()),
    })
}

fn said(item: &Fields) -> Option<Vec<(MessageKind, String)>> {
    let id = item.text("id")?;
    let failed = item.text("status").is_some_and(|status| status != "completed");
    let used = |name: &str, input: &str, result: &str| {
        vec![
            (MessageKind::ToolCall, tool_call(&id, name, input)),
            (MessageKind::ToolResult, tool_result(&id, result, failed)),
        ]
    };
    Some(match item.text("type")?.as_str() {
        "UserMessage" => vec![(MessageKind::User, joined(&item.objects("content")))],
        "AgentMessage" => vec![(MessageKind::Assistant, joined(&item.objects("content")))],
        "CommandExecution" => {
            let words: Vec<String> = item.list("command").into_iter().filter_map(text).collect();
            // The last word is the command of the shell.
            let input = json!({ "command": words.last() }).to_string();
            used("exec_command", &input, &item.text("aggregated_output").unwrap_or_default())
        }
        "McpToolCall" => {
            let (server, tool) = (item.text("server")?, item.text("tool")?);
            let name = if server == TOOL_SERVER { tool } else { format!("mcp__{server}__{tool}") };
            let result = item.object("result").map(|result| joined(&result.objects("content")));
            let input = item.raw("arguments").map_or("{}", RawValue::get);
            used(&name, input, &result.unwrap_or_default())
        }
        "FileChange" => {
            let input = item.raw("changes").map_or("{}", RawValue::get);
            used("apply_patch", &format!("{{\"changes\":{input}}}"), &item.text("status").unwrap_or_default())
        }
        _ => return None,
    })
}
