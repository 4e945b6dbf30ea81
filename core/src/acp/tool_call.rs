//! The tool calls of a turn. An agent announces a call, often without its input, and sends updates until the call has ended.

use crate::json::Fields;
use crate::output::Output;
use crate::run::TOOL_SERVER;
use serde_json::json;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// How many open calls are remembered. An agent has a few at a time.
const MAX_OPEN: usize = 256;

#[derive(Clone, Debug, Default)]
pub(super) struct ToolCalls {
    open: BTreeMap<String, OpenToolCall>,
}

/// A call that has not ended.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenToolCall {
    pub name: String,
    /// `execute`, `edit`, `read` and so on.
    pub kind: Option<String>,
    /// JSON text.
    pub input: Option<String>,
    /// What the call is about, in the agent's words.
    pub title: Option<String>,
    pub paths: Vec<String>,
    /// An output has announced the call.
    announced: bool,
}

impl ToolCalls {
    /// Takes in what an update says about a call.
    pub fn take(&mut self, update: &Fields) -> Vec<Output> {
        let Some(id) = update.text("toolCallId") else { return Vec::new() };
        self.note(&id, update);
        let status = update.text("status").unwrap_or_default();
        let is_over = matches!(status.as_str(), "completed" | "failed");
        let mut outputs = Vec::new();
        // Most agents know the input when the call begins to run.
        if is_over || status == "in_progress" {
            outputs.extend(self.begin(&id));
        }
        if is_over {
            let content = result(update);
            self.open.remove(&id);
            outputs.push(Output::ToolResult { id, content, is_error: status == "failed" });
        }
        outputs
    }

    /// Announces the call for which the agent requests permission, with what the request says about the call.
    pub fn announce(&mut self, call: &Fields) -> Option<Output> {
        let id = call.text("toolCallId")?;
        self.note(&id, call);
        self.begin(&id)
    }

    pub fn of(&self, id: &str) -> Option<&OpenToolCall> {
        self.open.get(id)
    }

    /// Ends all open calls, because the turn has ended.
    pub fn close(&mut self) -> Vec<Output> {
        let open = std::mem::take(&mut self.open);
        let announced = open.into_iter().filter(|(_, call)| call.announced);
        let broken_off = |id| Output::ToolResult { id, content: "The turn ended first.".to_owned(), is_error: true };
        announced.map(|(id, _)| broken_off(id)).collect()
    }

    fn note(&mut self, id: &str, about: &Fields) {
        if self.open.len() >= MAX_OPEN && !self.open.contains_key(id) {
            return;
        }
        let call = self.open.entry(id.to_owned()).or_default();
        if let Some(name) = name(about).filter(|_| call.name.is_empty()) {
            call.name = name;
        }
        call.title = about.text("title").or_else(|| call.title.take());
        call.kind = about.text("kind").or_else(|| call.kind.take());
        let input = about.raw("rawInput").map(RawValue::get).filter(|input| *input != "{}").map(str::to_owned);
        call.input = input.or_else(|| input_in_content(about)).or_else(|| call.input.take());
        let paths: Vec<String> = about.objects("locations").iter().filter_map(|place| place.text("path")).collect();
        if !paths.is_empty() {
            call.paths = paths;
        }
    }

    fn begin(&mut self, id: &str) -> Option<Output> {
        let call = self.open.get_mut(id).filter(|call| !call.announced)?;
        call.announced = true;
        let input = call.shown_input();
        let name = own_tool(&call.name).unwrap_or(&call.name).to_owned();
        Some(Output::ToolUse { id: id.to_owned(), name, input })
    }
}

impl OpenToolCall {
    /// The input. Some agents do not show the input, but only a title.
    pub fn shown_input(&self) -> String {
        let title = || self.title.as_ref().map(|title| json!({ "title": title }).to_string());
        self.input.clone().or_else(title).unwrap_or_else(|| "{}".to_owned())
    }
}

/// The name of Hatchery's tool, from the name that an agent program gives it. Each agent program joins the names of server and tool in its
/// own way.
pub(super) fn own_tool(name: &str) -> Option<&str> {
    [
        format!("mcp__{TOOL_SERVER}__"),
        format!("mcp.{TOOL_SERVER}."),
        format!("{TOOL_SERVER}__"),
        format!("{TOOL_SERVER}_"),
    ]
    .iter()
    .find_map(|prefix| name.strip_prefix(prefix.as_str()))
}

/// The input as gemini shows it: in a text beside the request for permission.
fn input_in_content(about: &Fields) -> Option<String> {
    let pending = about.text("status").is_some_and(|status| status == "pending");
    let texts = about.objects("content").into_iter().filter(|_| pending);
    let text = texts.filter_map(|part| part.object("content")?.text("text")).next()?;
    let is_object = serde_json::from_str(&text).ok().and_then(Fields::of).is_some();
    is_object.then_some(text)
}

/// The name of Hatchery's tool as gemini shows it: in the title, and at the beginning of the id. Both are compared, because the title of a
/// shell command is the command itself and could look the same.
fn own_by_title(about: &Fields) -> Option<String> {
    let title = about.text("title")?;
    let tool = title.strip_suffix(&format!(" ({TOOL_SERVER} MCP Server)"))?;
    let is_own = about.text("toolCallId")?.starts_with(&format!("mcp_{TOOL_SERVER}_{tool}__"));
    is_own.then(|| format!("mcp__{TOOL_SERVER}__{tool}"))
}

/// The name of the tool. If there is no name, a title of one word is the name, otherwise the kind. Longer titles are sentences.
fn name(about: &Fields) -> Option<String> {
    let title = about.text("title").filter(|title| !title.is_empty() && !title.contains(char::is_whitespace));
    let named = || about.object("_meta")?.text("toolName");
    about.text("name").or_else(named).or_else(|| own_by_title(about)).or(title).or_else(|| about.text("kind"))
}

/// The result of a call, as text.
fn result(update: &Fields) -> String {
    let parts = update.objects("content");
    let texts: Vec<String> = parts.iter().filter_map(|part| part.object("content")?.text("text")).collect();
    if !texts.is_empty() {
        return texts.join("\n");
    }
    let raw = update.object("rawOutput");
    let said = raw.as_ref().and_then(|raw| raw.text("output").or_else(|| raw.text("error")));
    said.or_else(|| update.text("rawOutput")).unwrap_or_default()
}
