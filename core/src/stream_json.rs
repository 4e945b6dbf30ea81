//! Reads the output of the Claude CLI (`--output-format stream-json`), line by line, into [`Output`]s.
//!
//! The order of keys varies, so no line is recognised by its beginning. Unknown types, subtypes and blocks are skipped, because new
//! versions often bring new ones. Only a line that is not JSON is an error: the process was stopped in the middle of the line, or does not
//! write this format.

mod request_meter;

use crate::harness::Reader;
use crate::json::{self, Fields, joined, object};
use crate::output::{Denial, FailureKind, Output, ServiceError, TurnEnd, TurnResult, outputs_of};
use crate::partial::{Partial, PartialKind};
use crate::permission::{Access, PermissionRequest};
use crate::price::PriceTable;
use crate::run::TOOL_SERVER;
use crate::usage::Usage;
use crate::{Timestamp, failure};
use request_meter::RequestMeter;
use serde_json::value::RawValue;
use std::sync::Arc;

/// Reads the output of one process.
#[derive(Clone, Debug, Default)]
pub struct StreamJsonReader {
    /// The process has shown that Hatchery's tools answer.
    is_ready: bool,
    /// The folder in which the process works.
    folder: Option<String>,
    /// The message that the process works on next. When its turn begins, the message is stored in the harness session.
    begun: Option<String>,
    /// The last error of the service in this turn. The result line has fewer details.
    api_error: Option<ServiceError>,
    meter: RequestMeter,
}

impl Reader for StreamJsonReader {
    fn read(&mut self, line: &str) -> Result<Vec<Output>, String> {
        outputs_of(line, |line| self.outputs(line))
    }

    fn partial(&mut self, line: &str) -> Option<Partial> {
        // Only lines with partials, and few others, contain this word. So other lines are not parsed twice.
        line.contains("stream_event").then(|| partial(&object(line).ok()??))?
    }
}

impl StreamJsonReader {
    /// A reader that prices requests with this table.
    pub fn new(prices: Arc<PriceTable>) -> Self {
        Self { meter: RequestMeter::new(prices), ..Self::default() }
    }

    fn outputs(&mut self, line: &Fields) -> Vec<Output> {
        // The usage of a subagent counts for the agent of the run.
        let parent = line.text("parent_tool_use_id");
        let used = self.meter.take(line, parent.is_none());
        let used = used.map(|(usage, context)| Output::Used { usage, context });
        let mut outputs = match parent {
            // Apart from that, the lines of a subagent do not change the state of the parent.
            Some(tool_use) => {
                let outputs = Self::default().own_outputs(line).into_iter();
                outputs.map(|output| Output::Subagent { tool_use: tool_use.clone(), output: output.into() }).collect()
            }
            None => self.own_outputs(line),
        };
        outputs.extend(used);
        outputs
    }

    fn own_outputs(&mut self, line: &Fields) -> Vec<Output> {
        match line.text("type").as_deref() {
            Some("system") if line.text("subtype").as_deref() == Some("init") => self.init(line),
            Some("system") => system(line).into_iter().collect(),
            Some("assistant") => self.assistant(line),
            Some("user") => user(line),
            Some("result") => {
                let context = self.meter.context(line.object("modelUsage"));
                vec![Output::TurnEnded(TurnEnd { context, ..turn_end(line, self.api_error.take()) })]
            }
            Some("rate_limit_event") => limit(line).into_iter().collect(),
            Some("command_lifecycle") => {
                if line.text("state").as_deref() == Some("started") {
                    self.begun = line.text("command_uuid");
                }
                Vec::new()
            }
            Some("control_request") => self.asked(line).into_iter().collect(),
            Some("control_cancel_request") => {
                line.text("request_id").map(|request| Output::AskCancelled { request }).into_iter().collect()
            }
            Some("control_response") => answered(line).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    /// The first line of every turn. The first of these lines shows whether Hatchery's tools answer.
    fn init(&mut self, line: &Fields) -> Vec<Output> {
        let Some(session) = line.text("session_id") else { return Vec::new() };
        self.folder = line.text("cwd").or_else(|| self.folder.take());
        let servers = line.objects("mcp_servers");
        let ours = servers.iter().find(|server| server.text("name").as_deref() == Some(TOOL_SERVER));
        let status = ours.and_then(|server| server.text("status")).unwrap_or_else(|| "missing".to_owned());
        let readiness = match status.as_str() {
            _ if self.is_ready => None,
            "connected" => {
                self.is_ready = true;
                let version = line.text("claude_code_version");
                let tools = line.texts("tools").iter().map(|name| tool_name(name)).collect();
                Some(Output::Ready { session, model: line.text("model"), version, tools })
            }
            other => Some(Output::NotReady { why: format!("it says that the `{TOOL_SERVER}` tools are {other}") }),
        };
        let heard = self.begun.take().map(|id| Output::Heard { id });
        readiness.into_iter().chain([Output::TurnStarted]).chain(heard).collect()
    }

    fn asked(&self, line: &Fields) -> Option<Output> {
        let request = line.object("request").filter(|it| it.text("subtype").as_deref() == Some("can_use_tool"))?;
        let tool = request.text("tool_name")?;
        Some(Output::Asked(PermissionRequest {
            request: line.text("request_id")?,
            access: request.object("input").map(|input| access(&tool, &input)).unwrap_or_default(),
            tool: tool_name(&tool),
            tool_use: request.text("tool_use_id"),
            input: request.raw("input").map_or("{}", RawValue::get).to_owned(),
            folder: self.folder.clone(),
        }))
    }

    fn assistant(&mut self, line: &Fields) -> Vec<Output> {
        let blocks = blocks(line);
        if line.raw("error").is_some() || line.flag("is_api_error_message") {
            let texts: Vec<_> = blocks.iter().filter_map(|block| block.text("text")).collect();
            let status = line.count("api_error_status");
            let error = ServiceError {
                kind: failure_kind(line.text("error").as_deref(), status),
                status,
                text: texts.join("\n"),
            };
            self.api_error = Some(error.clone());
            return vec![Output::ApiError(error)];
        }
        blocks.iter().filter_map(assistant_block).collect()
    }
}

fn system(line: &Fields) -> Option<Output> {
    match line.text("subtype")?.as_str() {
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

fn assistant_block(block: &Fields) -> Option<Output> {
    match block.text("type")?.as_str() {
        "text" => Some(Output::Text { text: block.text("text")? }),
        "thinking" => Some(Output::Thinking { text: block.text("thinking")? }),
        "tool_use" => Some(Output::ToolUse {
            id: block.text("id")?,
            name: tool_name(&block.text("name")?),
            input: block.raw("input").map_or("{}", RawValue::get).to_owned(),
        }),
        _ => None,
    }
}

/// The name of a tool. Hatchery's tools lose the prefix that the CLI gives to the tools of a server.
fn tool_name(name: &str) -> String {
    let ours = name.strip_prefix("mcp__").and_then(|rest| rest.strip_prefix(TOOL_SERVER)?.strip_prefix("__"));
    ours.unwrap_or(name).to_owned()
}

/// The kind of a failure, from the CLI's code and the HTTP status. A lack of credit has the status of a bad or a forbidden request, so its
/// code comes first. Otherwise the status decides, because some versions have the code of a rate limit for an overload.
fn failure_kind(word: Option<&str>, status: Option<u16>) -> FailureKind {
    match (word, status) {
        (Some("billing_error"), _) => FailureKind::OutOfCredit,
        (Some("authentication_failed"), None) => FailureKind::Unauthorised,
        (Some("rate_limit"), None) => FailureKind::RateLimited,
        (Some("server_error"), None) => FailureKind::Unavailable,
        (_, status) => failure::by_status(status),
    }
}

/// The partial in a line (`--include-partial-messages`). Partials of subagents are not shown.
fn partial(line: &Fields) -> Option<Partial> {
    if line.text("type").as_deref() != Some("stream_event") || line.raw("parent_tool_use_id").is_some() {
        return None;
    }
    let event = line.object("event")?;
    let (block, begins) = match event.text("type")?.as_str() {
        "content_block_start" => (event.object("content_block")?, true),
        "content_block_delta" => (event.object("delta")?, false),
        _ => return None,
    };
    let (kind, text) = match block.text("type")?.as_str() {
        "text" | "text_delta" => (PartialKind::Text, block.text("text")),
        "thinking" | "thinking_delta" => (PartialKind::Thinking, block.text("thinking")),
        _ => return None,
    };
    Some(Partial { kind, begins, text: text.unwrap_or_default() })
}

fn user(line: &Fields) -> Vec<Output> {
    if line.flag("isReplay") {
        return line.text("uuid").map(|id| Output::Heard { id }).into_iter().collect();
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

fn blocks<'a>(line: &Fields<'a>) -> Vec<Fields<'a>> {
    line.object("message").map(|message| message.objects("content")).unwrap_or_default()
}

fn turn_end(line: &Fields, api_error: Option<ServiceError>) -> TurnEnd {
    let mut total = line.object("modelUsage").map(models).unwrap_or_default();
    // The sum over the models does not include what is not charged by tokens.
    if line.raw("total_cost_usd").is_some() {
        total.cost = line.money("total_cost_usd");
    }
    TurnEnd {
        result: turn_result(line, api_error),
        text: line.text("result"),
        num_turns: line.count("num_turns").unwrap_or_default(),
        denials: line.objects("permission_denials").iter().filter_map(denial).collect(),
        total,
        since_last: line.object("model_usage_since_last_result").map(models),
        context: None,
        turn: None,
        unanswered: false,
    }
}

/// A failed request has the subtype `success`, too, so `is_error` distinguishes success from failure.
fn turn_result(line: &Fields, api_error: Option<ServiceError>) -> TurnResult {
    if !line.flag("is_error") {
        return TurnResult::Ok;
    }
    let errors: Vec<String> = line.list("errors").into_iter().filter_map(json::text).collect();
    let reason = line.text("terminal_reason").unwrap_or_default();
    if reason.starts_with("aborted_") {
        return TurnResult::Interrupted;
    }
    if errors.iter().any(|error| error.contains("No conversation found")) {
        return TurnResult::SessionUnknown;
    }
    let status: Option<u16> = line.count("api_error_status");
    // The most useful texts first.
    let words = [errors.join("; "), line.text("result").unwrap_or_default()].into_iter();
    let said = api_error.as_ref().map(|error| error.text.clone());
    let mut words = words.chain(said).chain(line.text("subtype"));
    let detail = words.find(|words| !words.trim().is_empty()).unwrap_or_default();
    let kind = match (&api_error, status) {
        _ if reason == "prompt_too_long" => FailureKind::PromptTooLong,
        (Some(ServiceError { kind: FailureKind::OutOfCredit, .. }), _) => FailureKind::OutOfCredit,
        (_, Some(status)) => failure_kind(None, Some(status)),
        (Some(error), None) => error.kind,
        (None, None) => FailureKind::Other,
    };
    let refused = line.text("stop_reason").as_deref() == Some("refusal");
    let kind = match kind {
        FailureKind::Other if refused => FailureKind::Refused,
        FailureKind::Other => failure::by_words(&detail),
        known @ (FailureKind::RateLimited
        | FailureKind::Overloaded
        | FailureKind::OutOfCredit
        | FailureKind::Unauthorised
        | FailureKind::PromptTooLong
        | FailureKind::Unavailable
        | FailureKind::Refused
        | FailureKind::OutputTooLong
        | FailureKind::WrongModel) => known,
    };
    TurnResult::Failed { kind, detail }
}

/// The sum of the usage of all models.
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

/// What a tool of the CLI would do with its input.
fn access(tool: &str, input: &Fields) -> Access {
    let path = || input.text("file_path").or_else(|| input.text("notebook_path")).or_else(|| input.text("path"));
    let access = match tool {
        "Edit" | "MultiEdit" | "Write" | "NotebookEdit" => path().map(|path| Access::Edit { path }),
        "Read" | "Glob" | "Grep" | "LS" => path().map(|path| Access::Read { path }),
        "Bash" => input.text("command").map(|command| Access::Execute { command }),
        _ => None,
    };
    access.unwrap_or_default()
}

fn answered(line: &Fields) -> Option<Output> {
    let answer = line.object("response")?;
    let refused = answer.text("subtype").as_deref() != Some("success");
    let problem = refused.then(|| answer.text("error").unwrap_or_else(|| "refused without a reason".to_owned()));
    Some(Output::Answered { request: answer.text("request_id")?, problem })
}
