//! The items of a turn: messages, commands, file changes, tool calls. Codex reports each item when it starts and when it is completed.

use super::command_line;
use crate::json::{Fields, joined};
use crate::output::Output;
use crate::run::TOOL_SERVER;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How many open items are remembered. A turn has a few at once.
const MAX_OPEN: usize = 256;

/// The items that have started and are not completed.
#[derive(Clone, Debug, Default)]
pub(super) struct Items {
    open: BTreeMap<String, OpenItem>,
}

#[derive(Clone, Debug)]
struct OpenItem {
    /// The files that the item changes.
    paths: Vec<String>,
    /// The arguments of the tool.
    input: String,
}

impl Items {
    pub fn started(&mut self, params: &Fields) -> Vec<Output> {
        let Some(item) = params.object("item") else { return Vec::new() };
        match item.text("type").as_deref() {
            // When codex writes this line, the message is on its disk.
            Some("userMessage") => item.text("clientId").map(|id| Output::Heard { id }).into_iter().collect(),
            _ => self.begin(&item).into_iter().collect(),
        }
    }

    pub fn completed(&mut self, params: &Fields) -> Vec<Output> {
        let Some(item) = params.object("item") else { return Vec::new() };
        match item.text("type").as_deref() {
            Some("agentMessage") => {
                item.text("text").filter(|it| !it.is_empty()).map(|text| Output::Text { text }).into_iter().collect()
            }
            Some("reasoning") => reasoning(&item).into_iter().collect(),
            Some("contextCompaction") => vec![Output::Compacted { trigger: None, tokens_before: None }],
            _ => {
                let begun = match item.text("id").is_some_and(|id| self.open.contains_key(&id)) {
                    true => None,
                    false => self.begin(&item),
                };
                let result = result(&item);
                item.text("id").and_then(|id| self.open.remove(&id));
                begun.into_iter().chain(result).collect()
            }
        }
    }

    /// The input of an item that waits for permission, and the paths that it changes.
    pub fn of(&self, id: &str) -> Option<(&str, &[String])> {
        self.open.get(id).map(|item| (item.input.as_str(), item.paths.as_slice()))
    }

    fn begin(&mut self, item: &Fields) -> Option<Output> {
        let id = item.text("id")?;
        let (name, input) = tool(item)?;
        let paths = item.objects("changes").iter().filter_map(|change| change.text("path")).collect();
        if self.open.len() < MAX_OPEN {
            self.open.insert(id.clone(), OpenItem { paths, input: input.clone() });
        }
        Some(Output::ToolUse { id, name, input })
    }
}

/// The tool of an item, and its arguments. None if the item is not a tool use.
fn tool(item: &Fields) -> Option<(String, String)> {
    match item.text("type")?.as_str() {
        "commandExecution" => {
            let command = command_line::inner(&item.text("command")?);
            Some(("exec_command".to_owned(), json!({ "command": command, "cwd": item.text("cwd") }).to_string()))
        }
        "fileChange" => {
            let changes: Vec<Value> = item.objects("changes").iter().map(change).collect();
            Some(("apply_patch".to_owned(), json!({ "changes": changes }).to_string()))
        }
        "mcpToolCall" => {
            let (server, tool) = (item.text("server")?, item.text("tool")?);
            let name = if server == TOOL_SERVER { tool } else { format!("mcp__{server}__{tool}") };
            Some((name, item.raw("arguments").map_or("{}", RawValue::get).to_owned()))
        }
        "webSearch" => Some(("web_search".to_owned(), json!({ "query": item.text("query") }).to_string())),
        "collabAgentToolCall" => {
            let input = json!({ "prompt": item.text("prompt"), "model": item.text("model") });
            Some((item.text("tool")?, input.to_string()))
        }
        _ => None,
    }
}

fn change(change: &Fields) -> Value {
    let kind = change.object("kind").and_then(|kind| kind.text("type"));
    json!({ "path": change.text("path"), "kind": kind, "diff": change.text("diff") })
}

/// The result of a tool use.
fn result(item: &Fields) -> Option<Output> {
    let id = item.text("id")?;
    let status = item.text("status").unwrap_or_else(|| "completed".to_owned());
    let failed = matches!(status.as_str(), "failed" | "declined");
    let (content, is_error) = match item.text("type")?.as_str() {
        "commandExecution" => {
            let code: Option<u32> = item.count("exitCode");
            let output = item.text("aggregatedOutput").unwrap_or_default();
            let content = match (status.as_str(), code) {
                ("declined", _) => "It was not allowed.".to_owned(),
                (_, Some(code @ 1..)) => format!("{output}\n(exit code {code})"),
                _ => output,
            };
            (content, failed || code.is_some_and(|code| code != 0))
        }
        "mcpToolCall" => {
            let problem = item.object("error").and_then(|error| error.text("message"));
            let said = item.object("result").map(|result| joined(&result.objects("content")));
            (problem.or(said).unwrap_or(status), failed)
        }
        "collabAgentToolCall" => {
            let states = item.object("agentsStates").map(|states| {
                states
                    .into_values()
                    .filter_map(Fields::of)
                    .filter_map(|state| state.text("message"))
                    .collect::<Vec<_>>()
            });
            (states.unwrap_or_default().join("\n"), failed)
        }
        "fileChange" | "webSearch" => (status, failed),
        _ => return None,
    };
    Some(Output::ToolResult { id, content, is_error })
}

fn reasoning(item: &Fields) -> Option<Output> {
    let parts = item.list("summary").into_iter().chain(item.list("content"));
    let texts: Vec<String> = parts.filter_map(crate::json::text).collect();
    (!texts.is_empty()).then(|| Output::Thinking { text: texts.join("\n") })
}
