//! Reads the output of agents that speak ACP, the Agent Client Protocol, version 1: JSON-RPC by lines.
//!
//! Version 1 has no echo of messages: the answer to `session/prompt` is the end of its turn, and the first update is the sign that the
//! turn has begun. Texts come in chunks, which are joined. Unknown kinds of updates are skipped. Only a line that is not JSON is an
//! error.

mod permission;
mod request_id;
mod tool_call;

use crate::harness::Reader;
use crate::output::{FailureKind, Output, TurnEnd, TurnResult};
use crate::price::PriceTable;
use crate::stream_json::fields::{Fields, text};
use crate::stream_json::object;
use crate::usage::{Money, Usage};
use std::sync::Arc;
use tool_call::ToolCalls;

pub use permission::approval;
pub use request_id::RequestId;

/// How long a joined text can be. The rest of it is another message.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// Reads the output of one process.
#[derive(Clone, Debug, Default)]
pub struct AcpReader {
    prices: Arc<PriceTable>,
    stage: Stage,
    version: Option<String>,
    model: Option<String>,
    folder: Option<String>,
    /// The text that is being said.
    chunks: Option<Chunks>,
    tools: ToolCalls,
    /// What the session has cost so far, if the agent says so.
    cost: Option<Money>,
    /// The last whole text of the turn.
    answer: Option<String>,
}

/// Where the process is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// The session is not open. An agent that loads one repeats its history, which is in the log already.
    #[default]
    Opening,
    Idle,
    InTurn,
}

#[derive(Clone, Debug)]
struct Chunks {
    kind: ChunkKind,
    /// The id that the agent gave to the message. Some give none.
    message: Option<String>,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChunkKind {
    Said,
    Thought,
}

impl Reader for AcpReader {
    fn read(&mut self, line: &str) -> Result<Vec<Output>, String> {
        match object(line) {
            Ok(line) => Ok(line.as_ref().map(|line| self.outputs(line)).unwrap_or_default()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl AcpReader {
    /// A reader for a process that works in `folder`. `opened`: the process has opened its session before.
    pub fn new(prices: Arc<PriceTable>, folder: Option<String>, opened: bool) -> Self {
        let stage = if opened { Stage::Idle } else { Stage::Opening };
        Self { prices, folder, stage, ..Self::default() }
    }

    fn outputs(&mut self, line: &Fields) -> Vec<Output> {
        match (line.text("method"), line.raw("id")) {
            (Some(method), Some(id)) => self.request(&method, id.get(), line),
            (Some(method), None) if method == "session/update" => {
                let update = line.object("params").and_then(|params| params.object("update"));
                update.map(|update| self.update(&update)).unwrap_or_default()
            }
            (Some(_), None) | (None, None) => Vec::new(),
            (None, Some(id)) => match text(id).as_deref().and_then(RequestId::read) {
                Some(id) => self.answer(&id, line),
                None => Vec::new(),
            },
        }
    }

    fn answer(&mut self, id: &RequestId, line: &Fields) -> Vec<Output> {
        let (result, error) = (line.object("result"), line.object("error"));
        match (id, error) {
            (RequestId::Initialize | RequestId::NewSession, Some(error)) => {
                vec![Output::NotReady { why: words(&error) }]
            }
            (RequestId::LoadSession(_) | RequestId::ForkSession(_), Some(_)) => {
                let end = TurnEnd { result: TurnResult::SessionUnknown, ..TurnEnd::default() };
                vec![Output::TurnEnded(end)]
            }
            (RequestId::Initialize, None) => {
                let agent = result.and_then(|result| result.object("agentInfo"));
                self.version = agent.and_then(|agent| agent.text("version"));
                Vec::new()
            }
            (RequestId::NewSession | RequestId::ForkSession(_), None) => {
                let Some(result) = result else { return Vec::new() };
                let Some(session) = result.text("sessionId") else { return Vec::new() };
                self.open(session, Some(&result))
            }
            (RequestId::LoadSession(session), None) => self.open(session.clone(), result.as_ref()),
            (RequestId::Say(message), Some(error)) => {
                let failed = TurnResult::Failed { kind: kind(&error), detail: words(&error) };
                self.turn_ends(message, failed, None)
            }
            (RequestId::Say(message), None) => {
                let Some(answer) = result else { return Vec::new() };
                let result = match answer.text("stopReason").as_deref() {
                    Some("cancelled") => TurnResult::Interrupted,
                    Some("end_turn") | None => TurnResult::Ok,
                    Some(reason) => {
                        let detail = format!("the agent stopped: {reason}");
                        TurnResult::Failed { kind: FailureKind::Other, detail }
                    }
                };
                self.turn_ends(message, result, answer.object("usage").as_ref())
            }
        }
    }

    fn open(&mut self, session: String, result: Option<&Fields>) -> Vec<Output> {
        if self.stage != Stage::Opening {
            return Vec::new();
        }
        self.stage = Stage::Idle;
        self.chunks = None;
        self.tools = ToolCalls::default();
        self.model = result.and_then(model);
        vec![Output::Ready { session, model: self.model.clone(), version: self.version.clone() }]
    }

    fn update(&mut self, update: &Fields) -> Vec<Output> {
        if self.stage == Stage::Opening {
            return Vec::new();
        }
        let kind = update.text("sessionUpdate").unwrap_or_default();
        let mut outputs = match kind.as_str() {
            "agent_message_chunk" | "agent_thought_chunk" | "tool_call" | "tool_call_update" => self.begin_turn(),
            _ => Vec::new(),
        };
        match kind.as_str() {
            "agent_message_chunk" => outputs.extend(self.chunk(ChunkKind::Said, update)),
            "agent_thought_chunk" => outputs.extend(self.chunk(ChunkKind::Thought, update)),
            "tool_call" | "tool_call_update" => {
                outputs.extend(self.whole_text());
                outputs.extend(self.tools.take(update));
            }
            "usage_update" => {
                let cost = update.object("cost").filter(|cost| cost.raw("amount").is_some());
                self.cost = cost.map(|cost| cost.money("amount")).or(self.cost);
            }
            _ => {}
        }
        outputs
    }

    fn begin_turn(&mut self) -> Vec<Output> {
        match self.stage {
            Stage::Opening | Stage::InTurn => Vec::new(),
            Stage::Idle => {
                self.stage = Stage::InTurn;
                vec![Output::TurnStarted]
            }
        }
    }

    /// Adds a piece to the text that is being said. A piece of another text ends it.
    fn chunk(&mut self, kind: ChunkKind, update: &Fields) -> Option<Output> {
        let piece = update.object("content").and_then(|content| content.text("text"))?;
        let message = update.text("messageId");
        let same = |open: &Chunks| {
            open.kind == kind && open.message == message && open.text.len() + piece.len() <= MAX_TEXT_BYTES
        };
        if let Some(open) = self.chunks.as_mut().filter(|open| same(open)) {
            open.text.push_str(&piece);
            return None;
        }
        let whole = self.whole_text();
        self.chunks = Some(Chunks { kind, message, text: piece });
        whole
    }

    /// The text that was being said, which is whole now.
    fn whole_text(&mut self) -> Option<Output> {
        let Chunks { kind, text, .. } = self.chunks.take()?;
        if text.trim().is_empty() {
            return None;
        }
        Some(match kind {
            ChunkKind::Said => {
                self.answer = Some(text.clone());
                Output::Text { text }
            }
            ChunkKind::Thought => Output::Thinking { text },
        })
    }

    fn turn_ends(&mut self, message: &str, result: TurnResult, used: Option<&Fields>) -> Vec<Output> {
        let mut outputs = self.begin_turn();
        // A turn that fails before it says anything has taken its message in all the same.
        outputs.push(Output::Heard { id: message.to_owned() });
        outputs.extend(self.whole_text());
        outputs.extend(self.tools.close());
        self.stage = Stage::Idle;
        let used = used.map(tokens).unwrap_or_default();
        let used = match (&self.cost, &self.model) {
            (None, Some(model)) => self.prices.priced(model, used),
            (None, None) | (Some(_), _) => used,
        };
        let end = TurnEnd {
            result,
            text: self.answer.take(),
            num_turns: 1,
            denials: Vec::new(),
            // Money is counted for the session, tokens are counted for the turn.
            total: Usage { cost: self.cost.unwrap_or_default(), ..Usage::default() },
            since_last: Some(used),
            turn: None,
        };
        outputs.push(Output::TurnEnded(end));
        outputs
    }

    /// A request of the agent. One of an unknown kind is asked like any other, because the agent waits for an answer.
    fn request(&mut self, method: &str, id: &str, line: &Fields) -> Vec<Output> {
        let Some(params) = line.object("params") else { return Vec::new() };
        let mut outputs = self.begin_turn();
        outputs.extend(self.whole_text());
        let call = params.object("toolCall");
        if let Some(call) = &call {
            outputs.extend(self.tools.announce(call));
        }
        let known = call.and_then(|call| call.text("toolCallId")).and_then(|id| self.tools.of(&id));
        outputs.push(Output::Asked(permission::asked(method, id, &params, known, self.folder.as_deref())));
        outputs
    }
}

/// The model of a session. Agents say it in different places.
fn model(result: &Fields) -> Option<String> {
    let options = result.objects("configOptions");
    let chosen = options.iter().find(|option| option.text("id").as_deref() == Some("model"));
    let chosen = chosen.and_then(|option| option.text("currentValue"));
    chosen.or_else(|| result.object("models")?.text("currentModelId"))
}

fn tokens(usage: &Fields) -> Usage {
    let count = |name: &str| usage.count::<u64>(name).unwrap_or_default();
    Usage {
        input_tokens: count("inputTokens"),
        output_tokens: count("outputTokens"),
        cache_read_tokens: count("cachedReadTokens"),
        cache_write_tokens: count("cachedWriteTokens"),
        ..Usage::default()
    }
}

/// What went wrong. Some agents have the telling words in the data only.
fn words(error: &Fields) -> String {
    let data = error.object("data").and_then(|data| data.text("message").or_else(|| data.text("details")));
    data.or_else(|| error.text("message")).unwrap_or_else(|| "the agent gives no reason".to_owned())
}

/// The kind of a failure, as far as an agent says it. Version 1 has one code for it, and each agent has words of its own.
fn kind(error: &Fields) -> FailureKind {
    /// The agent must be logged in first.
    const AUTHENTICATION_REQUIRED: &str = "-32000";
    if error.raw("code").is_some_and(|code| code.get() == AUTHENTICATION_REQUIRED) {
        return FailureKind::Unauthorised;
    }
    let data = error.object("data");
    let word = |name: &str| data.as_ref().and_then(|data| data.text(name));
    match word("errorKind").or_else(|| word("codexErrorInfo")).as_deref() {
        Some("rate_limit" | "usageLimitExceeded" | "rateLimitExceeded") => FailureKind::RateLimited,
        Some("overloaded" | "serverOverloaded") => FailureKind::Overloaded,
        Some("billing_error") => FailureKind::OutOfCredit,
        Some("authentication_failed" | "unauthorized") => FailureKind::Unauthorised,
        Some("prompt_too_long" | "contextWindowExceeded") => FailureKind::PromptTooLong,
        _ => FailureKind::Other,
    }
}
