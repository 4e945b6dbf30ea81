//! Reads the stream of the Claude CLI (`--output-format stream-json`), line by line, into [`Output`]s.
//!
//! The order of keys varies, so nothing is matched by its beginning. Types, subtypes and blocks that we do not know are passed
//! over: new versions bring new ones all the time. Only a line that is not JSON at all is told apart, because it means that
//! the child was cut off in the middle of it, or does not speak this format.

pub(crate) mod fields;

use crate::Timestamp;
use crate::output::{ApiError, ApiErrorKind, Denial, McpServer, Output, ServerStatus, TurnEnd};
use crate::usage::Usage;
use fields::Fields;
use serde_json::value::RawValue;

/// A line that is not JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this line is not JSON: {reason}")]
pub struct NotJson {
    reason: String,
}

/// What one line says: often one thing, sometimes several, and nothing when it is of no interest.
pub fn parse(line: &str) -> Result<Vec<Output>, NotJson> {
    Ok(object(line)?.as_ref().map(said).unwrap_or_default())
}

/// The fields of a line, or nothing when it is empty or JSON of another sort.
pub(crate) fn object(line: &str) -> Result<Option<Fields<'_>>, NotJson> {
    let line = line.trim();
    if line.is_empty() {
        return Ok(None);
    }
    match serde_json::from_str(line) {
        Ok(fields) => Ok(Some(fields)),
        // It may still be JSON, only not an object.
        Err(_) => match serde_json::from_str::<&RawValue>(line) {
            Ok(_) => Ok(None),
            Err(error) => Err(NotJson { reason: error.to_string() }),
        },
    }
}

fn said(line: &Fields) -> Vec<Output> {
    let outputs = match line.text("type").as_deref() {
        Some("system") => system(line).into_iter().collect(),
        Some("assistant") => assistant(line),
        Some("user") => user(line),
        Some("result") => vec![Output::TurnEnded(turn_end(line))],
        Some("rate_limit_event") => limit(line).into_iter().collect(),
        Some("command_lifecycle") => begun(line).into_iter().collect(),
        Some("control_request") => asked(line).into_iter().collect(),
        Some("control_response") => answered(line).into_iter().collect(),
        _ => Vec::new(),
    };
    match line.text("parent_tool_use_id") {
        None => outputs,
        Some(tool_use) => outputs
            .into_iter()
            .map(|output| Output::Subagent { tool_use: tool_use.clone(), output: Box::new(output) })
            .collect(),
    }
}

/// Newer versions say what becomes of each message of ours.
fn begun(line: &Fields) -> Option<Output> {
    match line.text("state")?.as_str() {
        "started" => Some(Output::Begun { uuid: line.text("command_uuid")? }),
        _ => None,
    }
}

fn system(line: &Fields) -> Option<Output> {
    match line.text("subtype")?.as_str() {
        "init" => Some(Output::SessionStarted {
            session: line.text("session_id")?,
            model: line.text("model"),
            version: line.text("claude_code_version"),
            servers: line.objects("mcp_servers").iter().filter_map(server).collect(),
        }),
        "api_retry" => Some(Output::Retrying {
            attempt: line.count("attempt").unwrap_or_default(),
            max_attempts: line.count("max_retries"),
            status: line.count("error_status"),
            delay_ms: line.count("retry_delay_ms"),
            reason: line.text("error"),
        }),
        "permission_denied" => Some(Output::Denied {
            tool: line.text("tool_name")?,
            tool_use: line.text("tool_use_id"),
            reason: line.text("message").or_else(|| line.text("decision_reason")).unwrap_or_default(),
        }),
        "compact_boundary" => {
            let about = line.object("compact_metadata");
            Some(Output::Compacted {
                trigger: about.as_ref().and_then(|about| about.text("trigger")),
                tokens_before: about.as_ref().and_then(|about| about.count("pre_tokens")),
            })
        }
        _ => None,
    }
}

fn server(entry: &Fields) -> Option<McpServer> {
    let status = match entry.text("status")?.as_str() {
        "connected" => ServerStatus::Connected,
        "pending" => ServerStatus::Pending,
        "failed" => ServerStatus::Failed,
        other => ServerStatus::Other(other.to_owned()),
    };
    Some(McpServer { name: entry.text("name")?, status })
}

fn assistant(line: &Fields) -> Vec<Output> {
    let blocks = blocks(line);
    if line.raw("error").is_some() || line.flag("is_api_error_message") {
        let texts: Vec<_> = blocks.iter().filter_map(|block| block.text("text")).collect();
        return vec![Output::ApiError(ApiError {
            kind: api_error_kind(line.text("error")),
            status: line.count("api_error_status"),
            text: texts.join("\n"),
        })];
    }
    blocks.iter().filter_map(assistant_block).collect()
}

fn assistant_block(block: &Fields) -> Option<Output> {
    match block.text("type")?.as_str() {
        "text" => Some(Output::Text { text: block.text("text")? }),
        "thinking" => Some(Output::Thinking { text: block.text("thinking")? }),
        "tool_use" => Some(Output::ToolUse {
            id: block.text("id")?,
            name: block.text("name")?,
            input: block.raw("input").map_or("{}", RawValue::get).to_owned(),
        }),
        _ => None,
    }
}

fn api_error_kind(word: Option<String>) -> ApiErrorKind {
    match word.as_deref() {
        Some("authentication_failed") => ApiErrorKind::Authentication,
        Some("billing_error") => ApiErrorKind::Billing,
        Some("rate_limit") => ApiErrorKind::RateLimit,
        Some("invalid_request") => ApiErrorKind::InvalidRequest,
        Some("server_error") => ApiErrorKind::Server,
        other => ApiErrorKind::Other(other.unwrap_or("unknown").to_owned()),
    }
}

fn user(line: &Fields) -> Vec<Output> {
    if line.flag("isReplay") {
        return line.text("uuid").map(|uuid| Output::Heard { uuid }).into_iter().collect();
    }
    match line.object("message").and_then(|message| message.text("content")) {
        Some(text) => vec![Output::Note { text }],
        None => blocks(line).iter().filter_map(user_block).collect(),
    }
}

fn user_block(block: &Fields) -> Option<Output> {
    match block.text("type")?.as_str() {
        "text" => Some(Output::Note { text: block.text("text")? }),
        "tool_result" => Some(Output::ToolResult {
            id: block.text("tool_use_id")?,
            content: block.text("content").unwrap_or_else(|| joined(&block.objects("content"))),
            is_error: block.flag("is_error"),
        }),
        _ => None,
    }
}

/// A result in several blocks as one text. What is not text is only named: an image does not belong into a history of words.
pub(crate) fn joined(blocks: &[Fields]) -> String {
    let texts = blocks.iter().map(|block| {
        let kind = || block.text("type").unwrap_or_else(|| "something".to_owned());
        block.text("text").unwrap_or_else(|| format!("[{}]", kind()))
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn blocks<'a>(line: &Fields<'a>) -> Vec<Fields<'a>> {
    line.object("message").map(|message| message.objects("content")).unwrap_or_default()
}

fn turn_end(line: &Fields) -> TurnEnd {
    let mut total = line.object("modelUsage").map(models).unwrap_or_default();
    // The sum over the models misses what is charged otherwise.
    if line.raw("total_cost_usd").is_some() {
        total.cost = line.money("total_cost_usd");
    }
    TurnEnd {
        is_error: line.flag("is_error"),
        subtype: line.text("subtype").unwrap_or_default(),
        terminal_reason: line.text("terminal_reason"),
        api_status: line.count("api_error_status"),
        text: line.text("result"),
        errors: line.list("errors").into_iter().filter_map(fields::text).collect(),
        num_turns: line.count("num_turns").unwrap_or_default(),
        denials: line.objects("permission_denials").iter().filter_map(denial).collect(),
        total,
        since_last: line.object("model_usage_since_last_result").map(models),
    }
}

/// The sum of what each model used.
fn models(by_model: Fields) -> Usage {
    by_model.into_values().filter_map(Fields::of).fold(Usage::default(), |sum, model| {
        sum + Usage {
            cost: model.money("costUSD"),
            input_tokens: model.count("inputTokens").unwrap_or_default(),
            output_tokens: model.count("outputTokens").unwrap_or_default(),
            cache_read_tokens: model.count("cacheReadInputTokens").unwrap_or_default(),
            cache_write_tokens: model.count("cacheCreationInputTokens").unwrap_or_default(),
        }
    })
}

fn denial(entry: &Fields) -> Option<Denial> {
    Some(Denial { tool: entry.text("tool_name")?, tool_use: entry.text("tool_use_id") })
}

fn limit(line: &Fields) -> Option<Output> {
    let about = line.object("rate_limit_info")?;
    // The CLI writes seconds.
    let seconds: Option<u32> = about.count("resetsAt");
    Some(Output::Limit {
        rejected: about.text("status").as_deref() == Some("rejected"),
        resets_at: seconds.map(|seconds| Timestamp(i64::from(seconds) * 1_000)),
        window: about.text("rateLimitType"),
    })
}

fn asked(line: &Fields) -> Option<Output> {
    let request = line.object("request").filter(|it| it.text("subtype").as_deref() == Some("can_use_tool"))?;
    Some(Output::Asked {
        request: line.text("request_id")?,
        tool: request.text("tool_name")?,
        tool_use: request.text("tool_use_id"),
        input: request.raw("input").map_or("{}", RawValue::get).to_owned(),
    })
}

fn answered(line: &Fields) -> Option<Output> {
    let answer = line.object("response")?;
    let refused = answer.text("subtype").as_deref() != Some("success");
    let problem = refused.then(|| answer.text("error").unwrap_or_else(|| "refused without a reason".to_owned()));
    Some(Output::Answered { request: answer.text("request_id")?, problem })
}
