//! One question to the model: what it was shown.

use axum::http::HeaderMap;
use serde_json::Value;

#[derive(Clone, Debug)]
pub struct Asked {
    /// Who asked: the API key that was shown.
    pub key: String,
    /// The session that the client says it is in.
    pub session: Option<String>,
    pub body: Value,
}

/// How the ACP adapter of codex asks for a title.
const TITLE: &str = "user: Your task is to generate a very short title for a conversation";

impl Asked {
    pub(super) fn new(headers: &HeaderMap, body: Value) -> Self {
        let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let bearer = || header("authorization")?.strip_prefix("Bearer ");
        Self {
            key: header("x-api-key").or_else(bearer).unwrap_or_default().to_owned(),
            session: header("x-claude-code-session-id").map(str::to_owned),
            body,
        }
    }

    /// Whether it is a turn of the agent. What is asked beside it (a title, whether there is quota left) comes without tools.
    pub(super) fn is_conversation(&self) -> bool {
        self.body["tools"].as_array().is_some_and(|tools| !tools.is_empty())
    }

    /// Whether the ACP adapter of codex wants a title: it asks with all its tools.
    pub(super) fn is_for_title(&self) -> bool {
        self.dialogue().iter().any(|line| line.starts_with(TITLE))
    }

    /// The conversation, a line a block: `user: hello`. Without what the client adds by itself.
    pub fn dialogue(&self) -> Vec<String> {
        if let Some(items) = self.body["input"].as_array() {
            return items.iter().filter_map(item).collect();
        }
        if let Some(contents) = self.body["contents"].as_array() {
            return contents.iter().flat_map(content).collect();
        }
        let messages = self.body["messages"].as_array().into_iter().flatten();
        let talk = messages.filter(|message| message["role"] != "system");
        talk.flat_map(|message| {
            let role = message["role"].as_str().unwrap_or_default();
            words(&message["content"]).into_iter().map(move |words| format!("{role}: {words}"))
        })
        .collect()
    }

    /// The tools whose schema the model sees.
    pub fn tools(&self) -> Vec<&str> {
        let tools = self.body["tools"].as_array().into_iter().flatten();
        // Each vendor has the name in another place.
        tools
            .flat_map(|tool| match tool.get("functionDeclarations").and_then(Value::as_array) {
                Some(all) => all.iter().collect(),
                None => vec![tool.get("function").unwrap_or(tool)],
            })
            .filter_map(|tool| tool["name"].as_str())
            .collect()
    }

    /// Everything that tells the model how to behave.
    pub fn system(&self) -> String {
        words(&self.body["system"]).join("\n")
    }
}

/// An item of the Responses API. Codex puts what it adds by itself into tags.
fn item(item: &Value) -> Option<String> {
    let text = |name: &str| item[name].as_str().unwrap_or_default().to_owned();
    match item["type"].as_str()? {
        "message" if matches!(item["role"].as_str(), Some("user" | "assistant")) => {
            let words: Vec<&str> =
                item["content"].as_array()?.iter().filter_map(|part| part["text"].as_str()).collect();
            let words = words.join(" ");
            (!words.starts_with('<')).then(|| format!("{}: {words}", text("role")))
        }
        "function_call" => Some(format!("assistant: (calls) {} {}", text("name"), text("arguments"))),
        "custom_tool_call" => Some(format!("assistant: (calls) {} {}", text("name"), text("input"))),
        "function_call_output" | "custom_tool_call_output" => Some(format!("user: (returns) {}", item["output"])),
        _ => None,
    }
}

/// A content of the Gemini API. The agent puts what it adds by itself into tags.
fn content(content: &Value) -> Vec<String> {
    let role = if content["role"] == "model" { "assistant" } else { "user" };
    let part = |part: &Value| match (part["text"].as_str(), part.get("functionCall"), part.get("functionResponse")) {
        (Some(text), ..) => (!text.starts_with('<')).then(|| format!("{role}: {text}")),
        (None, Some(call), _) => Some(format!("{role}: (calls) {}", call["name"].as_str().unwrap_or_default())),
        (None, None, Some(answer)) => Some(format!("{role}: (returns) {}", answer["response"])),
        (None, None, None) => None,
    };
    content["parts"].as_array().into_iter().flatten().filter_map(part).collect()
}

fn words(content: &Value) -> Vec<String> {
    match content {
        Value::String(text) => vec![text.clone()],
        Value::Array(blocks) => blocks.iter().filter_map(block).collect(),
        _ => Vec::new(),
    }
}

fn block(block: &Value) -> Option<String> {
    let text = |name: &str| block[name].as_str().unwrap_or_default().trim().to_owned();
    match block["type"].as_str()? {
        "text" => Some(text("text")).filter(|text| !text.starts_with("<system-reminder>")),
        "thinking" => Some(format!("(thinks) {}", text("thinking"))),
        "tool_use" => Some(format!("(calls) {} {}", text("name"), block["input"])),
        "tool_result" => Some(format!("(returns) {}", words(&block["content"]).join(" "))),
        other => Some(format!("({other})")),
    }
}
