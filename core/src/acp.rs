//! Reads the output of agents that speak ACP, the Agent Client Protocol, version 1: one JSON-RPC message per line.
//!
//! In version 1 an agent does not echo the messages that it receives. The first update after a message shows that the turn has begun, and
//! the answer to `session/prompt` is the end of the turn. Texts come in chunks, which the reader joins. Unknown kinds of updates are
//! skipped. Only a line that is not JSON is an error.

mod declared;
mod failure;
mod permission;
mod replay;
mod request_id;
mod tool_call;
mod usage;

use crate::harness::{Declared, ModelChoice, Reader, WaitingMessage};
use crate::json::{Fields, object};
use crate::json_rpc::RpcMessage;
use crate::output::{FailureKind, Output, TurnEnd, TurnResult, outputs_of};
use crate::partial::{Partial, PartialKind};
use crate::price::{PriceTable, Unpriced};
use crate::usage::{ContextUse, Money, Usage};
use replay::SessionReplay;
use std::sync::Arc;
use tool_call::ToolCalls;

pub use declared::{PROTOCOL_VERSION, declared};
pub use permission::approval;
pub use request_id::AcpRequestId;

/// The notification for everything that happens in a turn.
const UPDATE: &str = "session/update";
/// The longest text that is joined from chunks. The chunks beyond this limit become another message.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// Reads the output of one process.
#[derive(Clone, Debug, Default)]
pub struct AcpReader {
    prices: Arc<PriceTable>,
    stage: SessionStage,
    version: Option<String>,
    model: Option<String>,
    /// What the process says that it can do.
    declared: Declared,
    /// The models that the session can use, if the agent names them.
    models: Vec<String>,
    folder: Option<String>,
    /// The text whose chunks are arriving now.
    chunks: Option<Chunks>,
    tools: ToolCalls,
    /// What the session has cost so far, if the agent reports it.
    cost: Option<Money>,
    /// How full the context is.
    context: Option<ContextUse>,
    /// What the requests of the turn used, if the agent reports this for each request.
    used: Option<Usage>,
    /// The last complete text of the turn.
    answer: Option<String>,
    /// The history that an agent repeats when it loads a session.
    replay: SessionReplay,
    /// The agent has answered `session/load`. It may still repeat its history.
    is_loaded: bool,
    /// The agent has reported, outside of its answers, that its turn has failed.
    has_failed: bool,
    unpriced: Unpriced,
}

/// What the process is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SessionStage {
    /// The session is not open yet. An agent that loads a session repeats the history of the session now; the history is in the log
    /// already.
    #[default]
    Opening,
    Idle,
    InTurn,
}

#[derive(Clone, Debug)]
struct Chunks {
    kind: PartialKind,
    /// The id that the agent gave to the message. Some agents give none.
    message: Option<String>,
    text: String,
    /// Partials of this text have been shown.
    is_shown: bool,
}

/// A chunk of a text or a thought.
struct TextChunk {
    kind: PartialKind,
    message: Option<String>,
    text: String,
}

impl Chunks {
    fn goes_on_with(&self, chunk: &TextChunk) -> bool {
        self.kind == chunk.kind && self.message == chunk.message && self.text.len() + chunk.text.len() <= MAX_TEXT_BYTES
    }
}

impl Reader for AcpReader {
    fn read(&mut self, line: &str) -> Result<Vec<Output>, String> {
        outputs_of(line, |line| self.outputs(line))
    }

    fn partial(&mut self, line: &str) -> Option<Partial> {
        // Only lines with chunks, and few others, contain this word. So other lines are not parsed twice.
        line.contains("_chunk\"").then(|| self.piece(&object(line).ok()??))?
    }
}

impl AcpReader {
    /// A reader for a process that works in `folder`. `opened` says whether the process has opened its session already. `waiting` is the
    /// message that the process is to receive first.
    pub fn new(prices: Arc<PriceTable>, folder: Option<String>, opened: bool, waiting: Option<WaitingMessage>) -> Self {
        let stage = if opened { SessionStage::Idle } else { SessionStage::Opening };
        Self { prices, folder, stage, replay: SessionReplay::new(waiting), ..Self::default() }
    }

    fn outputs(&mut self, line: &Fields) -> Vec<Output> {
        match RpcMessage::of(line) {
            Some(RpcMessage::Request { method, id, params }) => self.request(&method, id, &params),
            Some(RpcMessage::Notification { method, params }) if method == UPDATE => {
                params.object("update").map(|update| self.update(&update)).unwrap_or_default()
            }
            Some(RpcMessage::Answer { id, result, error }) => match AcpRequestId::read(&id) {
                Some(id) => self.answer(&id, result, error),
                None => Vec::new(),
            },
            Some(RpcMessage::Notification { .. }) | None => Vec::new(),
        }
    }

    fn answer(&mut self, id: &AcpRequestId, result: Option<Fields>, error: Option<Fields>) -> Vec<Output> {
        match (id, error) {
            // A missing login is no problem of the agent program or of the session.
            (
                AcpRequestId::Initialize
                | AcpRequestId::NewSession
                | AcpRequestId::LoadSession(_)
                | AcpRequestId::ResumeSession(_)
                | AcpRequestId::ForkSession(_),
                Some(error),
            ) if failure::needs_login(&error) => {
                let result = failure::of_request(&error);
                vec![Output::TurnEnded(TurnEnd { result, ..TurnEnd::default() })]
            }
            (AcpRequestId::Initialize | AcpRequestId::NewSession, Some(error)) => {
                vec![Output::NotReady { why: failure::words(&error) }]
            }
            (AcpRequestId::LoadSession(_) | AcpRequestId::ResumeSession(_) | AcpRequestId::ForkSession(_), Some(_)) => {
                let end = TurnEnd { result: TurnResult::SessionUnknown, ..TurnEnd::default() };
                vec![Output::TurnEnded(end)]
            }
            (AcpRequestId::Initialize, None) => {
                let agent = result.as_ref().and_then(|result| result.object("agentInfo"));
                self.version = agent.and_then(|agent| agent.text("version"));
                match result.as_ref().map(declared::of_process) {
                    Some(Ok(declared)) => self.declared = declared,
                    Some(Err(why)) => return vec![Output::NotReady { why }],
                    None => {}
                }
                Vec::new()
            }
            (AcpRequestId::NewSession | AcpRequestId::ForkSession(_), None) => {
                let Some(result) = result else { return Vec::new() };
                let Some(session) = result.text("sessionId") else { return Vec::new() };
                self.take_models(Some(&result));
                self.open(session)
            }
            (AcpRequestId::ResumeSession(session), None) => {
                self.take_models(result.as_ref());
                self.open(session.clone())
            }
            (AcpRequestId::LoadSession(_), None) => {
                self.is_loaded = true;
                self.take_models(result.as_ref());
                Vec::new()
            }
            // Agents do not know this request and answer with an error. Any answer shows that the history was repeated.
            (AcpRequestId::HistoryRepeated(session), _) if self.is_loaded => {
                let heard =
                    self.replay.heard().filter(|_| self.stage == SessionStage::Opening).map(|id| Output::Heard { id });
                let opened = self.open(session.clone());
                heard.into_iter().chain(opened).collect()
            }
            (AcpRequestId::HistoryRepeated(_), _) => Vec::new(),
            (AcpRequestId::ChooseModel(model), None) => {
                self.model = Some(model.clone());
                vec![Output::ModelChosen { model: model.clone() }]
            }
            (AcpRequestId::ChooseModel(model), Some(error)) => {
                let detail = declared::not_a_model(model, &failure::words(&error), &self.models);
                let result = TurnResult::Failed { kind: FailureKind::WrongModel, detail };
                vec![Output::TurnEnded(TurnEnd { result, ..TurnEnd::default() })]
            }
            (AcpRequestId::Say(message), Some(error)) => {
                let failed = failure::of_request(&error);
                self.turn_ends(message, failed, None)
            }
            (AcpRequestId::Say(message), None) => {
                let Some(answer) = result else { return Vec::new() };
                let said = self.chunks.as_ref().map(|chunks| chunks.text.as_str()).or(self.answer.as_deref());
                let reason = answer.text("stopReason");
                let result = failure::of_stop(reason.as_deref(), said.filter(|_| self.has_failed));
                self.turn_ends(message, result, usage::of_turn(&answer))
            }
        }
    }

    /// Takes the models from the answer that opens a session.
    fn take_models(&mut self, answer: Option<&Fields>) {
        self.model = answer.and_then(declared::model);
        self.models = answer.map(declared::models).unwrap_or_default();
        self.declared.model_choice = answer.map_or(ModelChoice::Never, declared::model_choice);
    }

    fn open(&mut self, session: String) -> Vec<Output> {
        let is_first = self.stage == SessionStage::Opening;
        // Everything before this answer is the history of the session. A reader that started again after a restart may have read it as a
        // turn.
        (self.stage, self.chunks, self.answer) = (SessionStage::Idle, None, None);
        self.tools = ToolCalls::default();
        let declares = Output::Declares(self.declared);
        let (model, version) = (self.model.clone(), self.version.clone());
        let ready = Output::Ready { session, model, version, tools: Vec::new() };
        if is_first { vec![declares, ready] } else { Vec::new() }
    }

    fn update(&mut self, update: &Fields) -> Vec<Output> {
        if self.stage == SessionStage::Opening {
            self.replay.take(update);
            return Vec::new();
        }
        let kind = update.text("sessionUpdate").unwrap_or_default();
        match kind.as_str() {
            "agent_message_chunk" | "agent_thought_chunk" => {
                let mut outputs = self.begin_turn();
                outputs.extend(chunk(update).and_then(|chunk| self.add(chunk)));
                outputs.extend(usage::of_request(update).map(|used| self.request_used(used)));
                outputs
            }
            "tool_call" | "tool_call_update" => {
                let mut outputs = self.begin_turn();
                outputs.extend(self.whole_text());
                outputs.extend(self.tools.take(update));
                outputs
            }
            "usage_update" => {
                let cost = update.object("cost").filter(|cost| cost.raw("amount").is_some());
                self.cost = cost.map(|cost| cost.money("amount")).or(self.cost);
                let context = update.count("used").map(|tokens| ContextUse { tokens, window: update.count("size") });
                self.context = context.or(self.context);
                Vec::new()
            }
            "session_info_update" => {
                self.has_failed |= failure::is_system_error(update);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// The partial in a line. The first chunk of a text has none, because a turn may begin or another text may end with it. Its words are
    /// shown together with the second chunk.
    fn piece(&mut self, line: &Fields) -> Option<Partial> {
        if line.text("method")? != UPDATE || self.stage != SessionStage::InTurn {
            return None;
        }
        let update = line.object("params")?.object("update")?;
        if usage::of_request(&update).is_some() {
            return None;
        }
        let chunk = chunk(&update)?;
        let open = self.chunks.as_mut().filter(|open| open.goes_on_with(&chunk))?;
        open.text.push_str(&chunk.text);
        let begins = !std::mem::replace(&mut open.is_shown, true);
        let text = if begins { open.text.clone() } else { chunk.text };
        Some(Partial { kind: chunk.kind, begins, text })
    }

    fn begin_turn(&mut self) -> Vec<Output> {
        match self.stage {
            SessionStage::Opening | SessionStage::InTurn => Vec::new(),
            SessionStage::Idle => {
                self.stage = SessionStage::InTurn;
                vec![Output::TurnStarted]
            }
        }
    }

    /// Adds a chunk to the current text. A chunk of another text ends the current text.
    fn add(&mut self, chunk: TextChunk) -> Option<Output> {
        if let Some(open) = self.chunks.as_mut().filter(|open| open.goes_on_with(&chunk)) {
            open.text.push_str(&chunk.text);
            return None;
        }
        let whole = self.whole_text();
        let TextChunk { kind, message, text } = chunk;
        self.chunks = Some(Chunks { kind, message, text, is_shown: false });
        whole
    }

    /// The current text, which is complete now.
    fn whole_text(&mut self) -> Option<Output> {
        let Chunks { kind, text, .. } = self.chunks.take()?;
        if text.trim().is_empty() {
            return None;
        }
        Some(match kind {
            PartialKind::Text => {
                self.answer = Some(text.clone());
                Output::Text { text }
            }
            PartialKind::Thinking => Output::Thinking { text },
        })
    }

    fn turn_ends(&mut self, message: &str, result: TurnResult, used: Option<Usage>) -> Vec<Output> {
        let mut outputs = self.begin_turn();
        // If a turn fails before the agent says anything, the agent has received the message nevertheless.
        outputs.push(Output::Heard { id: message.to_owned() });
        outputs.extend(self.whole_text());
        outputs.extend(self.tools.close());
        (self.stage, self.has_failed) = (SessionStage::Idle, false);
        let by_request = self.used.take();
        let used = by_request.or_else(|| used.map(|used| self.priced(used))).unwrap_or_default();
        let end = TurnEnd {
            result,
            text: self.answer.take(),
            num_turns: 1,
            denials: Vec::new(),
            // The agent counts the cost for the session, and the tokens for the turn.
            total: Usage { cost: self.cost.unwrap_or_default(), ..Usage::default() },
            since_last: Some(used),
            context: self.context,
            turn: None,
            unanswered: false,
        };
        outputs.extend(self.unpriced.take().map(|text| Output::Note { text }));
        outputs.push(Output::TurnEnded(end));
        outputs
    }

    /// The usage of one request to the model. The end of the turn repeats the sum.
    fn request_used(&mut self, used: Usage) -> Output {
        let usage = self.priced(used);
        self.used = Some(self.used.unwrap_or_default() + usage);
        Output::Used { usage, context: None }
    }

    fn priced(&mut self, used: Usage) -> Usage {
        if self.cost.is_none() {
            self.unpriced.note(&self.prices, self.model.as_deref(), &used);
        }
        match (&self.cost, &self.model) {
            (None, Some(model)) => self.prices.priced(model, used),
            (None, None) | (Some(_), _) => used,
        }
    }

    /// A request of the agent. A request of an unknown kind is handled like a request for permission, because the agent waits for an
    /// answer.
    fn request(&mut self, method: &str, id: &str, params: &Fields) -> Vec<Output> {
        let mut outputs = self.begin_turn();
        outputs.extend(self.whole_text());
        let call = params.object("toolCall");
        if let Some(call) = &call {
            outputs.extend(self.tools.announce(call));
        }
        let known = call.and_then(|call| call.text("toolCallId")).and_then(|id| self.tools.of(&id));
        outputs.push(Output::Asked(permission::asked(method, id, params, known, self.folder.as_deref())));
        outputs
    }
}

/// The chunk of a text in an update.
fn chunk(update: &Fields) -> Option<TextChunk> {
    let kind = match update.text("sessionUpdate")?.as_str() {
        "agent_message_chunk" => PartialKind::Text,
        "agent_thought_chunk" => PartialKind::Thinking,
        _ => return None,
    };
    Some(TextChunk { kind, message: update.text("messageId"), text: update.object("content")?.text("text")? })
}
