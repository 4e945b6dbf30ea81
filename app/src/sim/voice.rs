//! Says things in the stream of the Claude CLI: one JSON object a line, one write a line, so that a reader never waits for a
//! line that was said, and a kill cuts off no more than the last.

use super::failure::PlayedFailure;
use super::inbox::InboxMessage;
use crate::clock;
use hatchery_core::Usage;
use hatchery_core::partial::PartialKind;
use serde_json::{Value, json};
use std::io::{ErrorKind, Write as _};

/// How many tokens the model that it plays can take.
const CONTEXT_WINDOW: u64 = 200_000;

#[derive(Debug)]
pub struct Voice {
    session: String,
    model: String,
    /// Makes the uuids of two processes differ.
    salt: u64,
    /// Makes those of two lines differ.
    said: u64,
    /// How many turns have ended in this process.
    results: u64,
    /// What is being written, when pieces of it were said.
    writing: Option<PartialKind>,
    /// Pieces were asked for.
    partials: bool,
}

/// How a turn ends.
#[derive(Debug)]
pub enum TurnEnding<'a> {
    Well { text: &'a str },
    Interrupted { in_a_tool: bool },
    Failed(&'a PlayedFailure),
}

/// What a turn has used, what the session has used with it, and in how many rounds.
#[derive(Clone, Copy, Debug)]
pub struct Bill {
    pub turn: Usage,
    pub session: Usage,
    pub rounds: u32,
}

impl Voice {
    pub fn new(session: String, model: String, partials: bool) -> Self {
        let salt = u64::from_le_bytes(clock::random());
        Self { session, model, salt, said: 0, results: 0, writing: None, partials }
    }

    pub fn begin_turn(&mut self, servers: &[(String, &str)]) {
        let folder = std::env::current_dir().unwrap_or_default();
        let servers: Vec<_> = servers.iter().map(|(name, status)| json!({ "name": name, "status": status })).collect();
        let line = json!({
            "type": "system", "subtype": "init", "cwd": folder, "model": self.model, "mcp_servers": servers, "tools": [],
            "permissionMode": "default", "apiKeySource": "none",
            "claude_code_version": concat!("hatchery-sim ", env!("CARGO_PKG_VERSION")),
        });
        self.say(line);
    }

    pub fn heard(&mut self, message: &InboxMessage) {
        let mut line = json!({
            "type": "user", "message": { "role": "user", "content": message.content }, "parent_tool_use_id": null,
            "isReplay": true,
        });
        if let Some(uuid) = &message.uuid {
            line["uuid"] = json!(uuid);
        }
        self.say(line);
    }

    /// A piece of the next text or thought, if pieces were asked for.
    pub fn partial(&mut self, kind: PartialKind, text: &str) {
        if !self.partials {
            return;
        }
        let (block, field) = match kind {
            PartialKind::Text => ("text", "text"),
            PartialKind::Thinking => ("thinking", "thinking"),
        };
        if self.writing.replace(kind) != Some(kind) {
            self.stream_event(&json!({ "type": "content_block_start", "content_block": { "type": block, field: "" } }));
        }
        let delta = json!({ "type": format!("{block}_delta"), field: text });
        self.stream_event(&json!({ "type": "content_block_delta", "delta": delta }));
    }

    fn stream_event(&mut self, event: &Value) {
        self.say(json!({ "type": "stream_event", "event": event, "parent_tool_use_id": null }));
    }

    pub fn text(&mut self, text: &str) {
        self.writing = None;
        self.assistant(&format!(r#"{{"type":"text","text":{}}}"#, json!(text)), None);
    }

    pub fn think(&mut self, text: &str) {
        self.writing = None;
        self.assistant(&json!({ "type": "thinking", "thinking": text, "signature": "" }).to_string(), None);
    }

    /// Gives the id to which the result belongs.
    pub fn tool_use(&mut self, name: &str, input: &Value) -> String {
        let id = format!("toolu_{:016x}{:08x}", self.salt, self.said);
        self.assistant(&json!({ "type": "tool_use", "id": id, "name": name, "input": input }).to_string(), None);
        id
    }

    /// The content is a text, or blocks.
    pub fn tool_result(&mut self, id: &str, content: Value, is_error: bool) {
        let block = json!({ "type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error });
        self.user(block, None);
    }

    pub fn subagent(&mut self, tool_use: &str, prompt: &str, text: &str) {
        self.user(json!({ "type": "text", "text": prompt }), Some(tool_use));
        self.assistant(&json!({ "type": "text", "text": text }).to_string(), Some(tool_use));
    }

    /// A request to the model, whose answer says nothing.
    pub fn used(&mut self, usage: &Usage) {
        let message = json!({
            "id": self.uuid(), "type": "message", "role": "assistant", "model": self.model, "content": [],
            "stop_reason": null, "usage": {
                "input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens,
                "cache_read_input_tokens": usage.cache_read_tokens,
                "cache_creation_input_tokens": usage.cache_write_tokens,
            },
        });
        self.say(json!({ "type": "assistant", "message": message, "parent_tool_use_id": null }));
    }

    pub fn compacted(&mut self) {
        let about = json!({ "trigger": "auto", "pre_tokens": 150_000 });
        self.say(json!({ "type": "system", "subtype": "compact_boundary", "compact_metadata": about }));
    }

    /// For those who wait until it hangs. A reader of the stream passes it over.
    pub fn hanging(&mut self) {
        self.say(json!({ "type": "system", "subtype": "status", "status": "hanging" }));
    }

    pub fn answer(&mut self, request: &str, answer: Value) {
        let response = json!({ "subtype": "success", "request_id": request, "response": answer });
        self.write(&json!({ "type": "control_response", "response": response }).to_string());
    }

    /// Asks for permission to use a tool, and gives the id of the request.
    pub fn ask(&mut self, tool_use: &str, name: &str, input: &Value) -> String {
        let id = self.uuid();
        let request = json!({ "subtype": "can_use_tool", "tool_name": name, "input": input, "tool_use_id": tool_use });
        self.write(&json!({ "type": "control_request", "request_id": id, "request": request }).to_string());
        id
    }

    /// The answer to a request of ours is no longer waited for.
    pub fn cancel(&mut self, request: &str) {
        self.write(&json!({ "type": "control_cancel_request", "request_id": request }).to_string());
    }

    pub fn refuse(&mut self, request: &str, why: &str) {
        let response = json!({ "subtype": "error", "request_id": request, "error": why });
        self.write(&json!({ "type": "control_response", "response": response }).to_string());
    }

    /// The service fails, is asked again, and fails permanently.
    pub fn fail(&mut self, failure: &PlayedFailure, resets_at_s: Option<i64>) {
        for attempt in 1..=failure.retries {
            self.say(json!({
                "type": "system", "subtype": "api_retry", "attempt": attempt, "max_retries": failure.retries,
                "retry_delay_ms": 500 * attempt, "error_status": failure.status, "error": failure.error,
            }));
        }
        if let Some(resets_at_s) = resets_at_s {
            let about = json!({ "status": "rejected", "resetsAt": resets_at_s, "rateLimitType": "five_hour" });
            self.say(json!({ "type": "rate_limit_event", "rate_limit_info": about }));
        }
        let message = json!({
            "id": self.uuid(), "type": "message", "role": "assistant", "model": "<synthetic>",
            "content": [{ "type": "text", "text": failure.text }], "stop_reason": "stop_sequence",
        });
        self.say(json!({
            "type": "assistant", "message": message, "parent_tool_use_id": null, "error": failure.error,
            "is_api_error_message": true, "api_error_status": failure.status, "api_error_type": failure.api_type,
        }));
    }

    /// The mark of an interrupt in the conversation.
    pub fn broken_off(&mut self, in_a_tool: bool) {
        let mark =
            if in_a_tool { "[Request interrupted by user for tool use]" } else { "[Request interrupted by user]" };
        self.user(json!({ "type": "text", "text": mark }), None);
    }

    pub fn end_turn(&mut self, ending: &TurnEnding<'_>, bill: &Bill) {
        let cost = |usage: &Usage| usage.cost.nanodollars as f64 / 1e9;
        let by_model = |usage: &Usage| match *usage == Usage::default() {
            true => json!({}),
            false => json!({ self.model.as_str(): {
                "inputTokens": usage.input_tokens, "outputTokens": usage.output_tokens,
                "cacheReadInputTokens": usage.cache_read_tokens, "cacheCreationInputTokens": usage.cache_write_tokens,
                "costUSD": cost(usage), "contextWindow": CONTEXT_WINDOW,
            } }),
        };
        let mut line = json!({
            "type": "result", "num_turns": bill.rounds, "permission_denials": [], "api_error_status": null,
            "usage": { "input_tokens": bill.turn.input_tokens, "output_tokens": bill.turn.output_tokens },
            "total_cost_usd": cost(&bill.session), "modelUsage": by_model(&bill.session),
            "model_usage_since_last_result": by_model(&bill.turn), "result_index": self.results,
        });
        let how = match ending {
            TurnEnding::Well { text } => json!({
                "subtype": "success", "is_error": false, "result": text, "terminal_reason": "completed",
                "stop_reason": "end_turn",
            }),
            TurnEnding::Interrupted { in_a_tool } => json!({
                "subtype": "error_during_execution", "is_error": true, "errors": ["interrupted"], "stop_reason": null,
                "terminal_reason": if *in_a_tool { "aborted_tools" } else { "aborted_streaming" },
            }),
            TurnEnding::Failed(failure) => json!({
                "subtype": "success", "is_error": true, "result": failure.text, "api_error_status": failure.status,
                "api_error_type": failure.api_type, "terminal_reason": failure.terminal_reason,
                "stop_reason": "stop_sequence",
            }),
        };
        extend(&mut line, how);
        self.results += 1;
        self.say(line);
    }

    /// The only line of a run that could not begin.
    pub fn never_began(&mut self, why: &str) {
        self.say(json!({
            "type": "result", "subtype": "error_during_execution", "is_error": true, "num_turns": 0, "stop_reason": null,
            "total_cost_usd": 0, "usage": {}, "modelUsage": {}, "permission_denials": [], "errors": [why],
            "result_index": 0,
        }));
    }

    /// Written by hand because floods are made of it.
    fn assistant(&mut self, block: &str, parent: Option<&str>) {
        let (uuid, parent, model) = (self.uuid(), json!(parent), json!(self.model));
        let line = format!(
            r#"{{"type":"assistant","message":{{"id":"msg_{:016x}{:08x}","type":"message","role":"assistant","model":{model},"content":[{block}],"stop_reason":null}},"parent_tool_use_id":{parent},"session_id":"{}","uuid":"{uuid}"}}"#,
            self.salt, self.said, self.session
        );
        self.write(&line);
    }

    fn user(&mut self, block: Value, parent: Option<&str>) {
        let message = json!({ "role": "user", "content": [block] });
        self.say(json!({ "type": "user", "message": message, "parent_tool_use_id": parent }));
    }

    /// Says a line with what nearly every line carries.
    fn say(&mut self, mut line: Value) {
        let mut common = json!({ "session_id": self.session });
        if line["uuid"].is_null() {
            common["uuid"] = json!(self.uuid());
        }
        extend(&mut line, common);
        self.write(&line.to_string());
    }

    fn write(&mut self, line: &str) {
        let mut whole = String::with_capacity(line.len() + 1);
        whole.push_str(line);
        whole.push('\n');
        let mut stdout = std::io::stdout().lock();
        match stdout.write_all(whole.as_bytes()).and_then(|()| stdout.flush()) {
            Ok(()) => {}
            // Like the real program: it goes on working when its output is no longer read.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            Err(error) => {
                eprintln!("Error: the output cannot be written: {error}");
                std::process::exit(1);
            }
        }
    }

    /// In the form of a random one. There is no need for it to be one.
    fn uuid(&mut self) -> String {
        self.said += 1;
        let (high, low) = (self.salt >> 32, self.salt & 0xffff);
        format!(
            "{high:08x}-{low:04x}-4{:03x}-8{:03x}-{:012x}",
            self.salt >> 20 & 0xfff,
            self.salt >> 8 & 0xfff,
            self.said
        )
    }
}

fn extend(line: &mut Value, more: Value) {
    if let (Value::Object(line), Value::Object(more)) = (line, more) {
        line.extend(more);
    }
}
