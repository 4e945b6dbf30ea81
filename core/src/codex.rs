//! Reads the output of `codex app-server`, line by line, into [`Output`]s. The lines are JSON-RPC without the version field: answers to
//! Hatchery's requests, notifications, and requests of codex.
//!
//! The ids of Hatchery's requests say what was requested ([`CodexRequestId`]), so any reader understands any answer. Unknown methods and
//! kinds of items are skipped, because new versions of codex often bring new ones. Only a line that is not JSON is an error.

mod command_line;
pub(crate) mod failure;
mod item;
mod permission;
mod request_id;
pub mod rollout;
mod tally;

use crate::Timestamp;
use crate::failure::by_words;
use crate::harness::Reader;
use crate::json::{Fields, object, text};
use crate::json_rpc::RpcMessage;
use crate::output::{FailureKind, Output, TurnEnd, TurnResult, outputs_of};
use crate::partial::{Partial, PartialKind};
use crate::price::PriceTable;
use crate::run::TOOL_SERVER;
use item::Items;
use std::collections::BTreeMap;
use std::sync::Arc;
use tally::Tally;

pub use permission::{ApprovalKind, approval};
pub use request_id::CodexRequestId;

/// How many subagents are told apart. Codex runs a few at once.
const MAX_SUBAGENTS: usize = 256;
/// How many requests of codex are remembered until they are resolved. Codex sends a few at once.
const MAX_OPEN_REQUESTS: usize = 256;

/// Reads the output of one process.
#[derive(Clone, Debug, Default)]
pub struct CodexReader {
    opening: OpeningProgress,
    /// The thread that the process has opened. Every other thread belongs to a subagent.
    thread: Option<String>,
    /// The folder in which the process works.
    folder: Option<String>,
    items: Items,
    /// The tool use that started each subagent, by the subagent's thread.
    subagents: BTreeMap<String, String>,
    /// Requests of codex that wait for an answer, by the id that codex gave them.
    asked: BTreeMap<String, String>,
    tally: Tally,
    /// The item whose text codex is writing now.
    writing: Option<String>,
    progress: TurnProgress,
    /// A turn runs.
    in_turn: bool,
    /// The last state of the rate limit, because codex repeats it after each request.
    limit: Option<Output>,
}

/// How far a turn has come. Codex accepts a message until the very end of a turn. A message that arrives after codex last checked for
/// messages is kept in the thread, but the turn ends without a request to the model about the message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TurnProgress {
    /// The model has not said anything yet.
    #[default]
    Begun,
    Answered,
    /// A message arrived after the model answered.
    Addressed,
}

/// What has happened before the process is ready.
#[derive(Clone, Debug, Default)]
struct OpeningProgress {
    /// The answer to the request that opens the thread.
    thread: Option<OpenedThread>,
    /// A resumed thread must be asked which messages it contains. Hatchery sends messages only after the answer, so that none is sent
    /// twice.
    needs_turns: bool,
    /// The answer about the messages has arrived. It may arrive before the thread is open.
    has_turns: bool,
    tools_answer: bool,
    is_over: bool,
}

#[derive(Clone, Debug)]
struct OpenedThread {
    id: String,
    model: Option<String>,
    version: Option<String>,
}

impl Reader for CodexReader {
    fn read(&mut self, line: &str) -> Result<Vec<Output>, String> {
        outputs_of(line, |line| self.outputs(line))
    }

    fn partial(&mut self, line: &str) -> Option<Partial> {
        // Only lines with partials, and few others, contain this word. So other lines are not parsed twice.
        line.contains("elta\"").then(|| self.piece(&object(line).ok()??))?
    }
}

impl CodexReader {
    /// A reader for a process that works in `folder`. `thread` is the thread that the process has opened already, if any.
    pub fn new(prices: Arc<PriceTable>, folder: Option<String>, thread: Option<&str>) -> Self {
        let opening = OpeningProgress { is_over: thread.is_some(), ..OpeningProgress::default() };
        Self { opening, folder, thread: thread.map(str::to_owned), tally: Tally::new(prices), ..Self::default() }
    }

    /// Sets the requested model. The line that names the thread's model may not be in the spool any more.
    #[must_use]
    pub fn with_model(mut self, model: Option<&str>) -> Self {
        if let Some(thread) = self.thread.clone() {
            self.tally.name_model(&thread, model.map(str::to_owned));
        }
        self
    }

    /// The partial in a line. Partials of subagents are not shown.
    fn piece(&mut self, line: &Fields) -> Option<Partial> {
        let kind = match line.text("method")?.as_str() {
            "item/agentMessage/delta" => PartialKind::Text,
            "item/reasoning/textDelta" | "item/reasoning/summaryTextDelta" => PartialKind::Thinking,
            _ => return None,
        };
        let params = line.object("params")?;
        if params.text("threadId").is_some_and(|thread| self.is_subagent(&thread)) {
            return None;
        }
        let item = params.text("itemId");
        let begins = self.writing != item;
        self.writing = item;
        Some(Partial { kind, begins, text: params.text("delta").unwrap_or_default() })
    }

    fn outputs(&mut self, line: &Fields) -> Vec<Output> {
        match RpcMessage::of(line) {
            Some(RpcMessage::Request { method, id, params }) => self.request(&method, id, &params),
            Some(RpcMessage::Notification { method, params }) => self.notification(&method, &params),
            Some(RpcMessage::Answer { id, result, error }) => match CodexRequestId::read(&id) {
                Some(id) => self.answer(&id, result, error),
                None => Vec::new(),
            },
            None => Vec::new(),
        }
    }

    fn answer(&mut self, id: &CodexRequestId, result: Option<Fields>, error: Option<Fields>) -> Vec<Output> {
        let problem = error.map(|error| error.text("message").unwrap_or_else(|| "no reason".into()));
        match (id, problem) {
            (CodexRequestId::Initialize, _) => Vec::new(),
            (
                CodexRequestId::StartThread | CodexRequestId::ResumeThread | CodexRequestId::ForkThread,
                Some(problem),
            ) => self.cannot_open(problem),
            (CodexRequestId::StartThread | CodexRequestId::ResumeThread | CodexRequestId::ForkThread, None) => {
                let Some(result) = result else { return Vec::new() };
                self.opened(&result, *id == CodexRequestId::ResumeThread)
            }
            (CodexRequestId::ListTurns, None) => {
                self.opening.has_turns = true;
                let turns = result.map(|result| result.objects("data")).unwrap_or_default();
                heard(&turns).into_iter().chain(self.ready()).collect()
            }
            // If the thread cannot list its messages, all waiting messages are sent. If the thread is not open, another answer says why.
            (CodexRequestId::ListTurns, Some(problem)) => {
                self.opening.has_turns = true;
                let is_open = self.opening.thread.is_some();
                let text = format!(
                    "codex does not say which messages its thread contains, so it may receive a message twice: {problem}"
                );
                is_open.then_some(Output::Note { text }).into_iter().chain(self.ready()).collect()
            }
            (CodexRequestId::Say(_), None) => Vec::new(),
            (CodexRequestId::Say(_), Some(problem)) => vec![self.refused(&problem)],
            (CodexRequestId::Interrupt(request), problem) => {
                vec![Output::Answered { request: request.clone(), problem }]
            }
        }
    }

    /// Codex refuses a message. If no turn is running, no turn end will follow, so the refusal counts as the end of a turn.
    fn refused(&mut self, problem: &str) -> Output {
        let detail = format!("codex has refused a message: {problem}");
        if self.in_turn {
            return Output::Note { text: detail };
        }
        let result = TurnResult::Failed { kind: by_words(problem), detail };
        let (total, since_last, num_turns) = self.tally.end_turn();
        Output::TurnEnded(TurnEnd { result, total, since_last, num_turns, ..TurnEnd::default() })
    }

    fn cannot_open(&mut self, problem: String) -> Vec<Output> {
        if self.opening.is_over {
            return Vec::new();
        }
        let result = match problem {
            // Codex has no records of a thread whose process was killed before the first message.
            _ if problem.contains("no rollout found") => TurnResult::SessionUnknown,
            // The previous process may need a moment to release the thread, so the request is repeated.
            _ if problem.contains("active writer") => TurnResult::Failed {
                kind: FailureKind::Other,
                detail: format!("another process of codex has the thread open ({problem}): end that process"),
            },
            _ => return vec![Output::NotReady { why: problem }],
        };
        vec![Output::TurnEnded(TurnEnd { result, ..TurnEnd::default() })]
    }

    fn opened(&mut self, result: &Fields, resumed: bool) -> Vec<Output> {
        let Some(thread) = result.object("thread") else { return Vec::new() };
        let Some(id) = thread.text("id") else { return Vec::new() };
        if self.is_subagent(&id) {
            return Vec::new();
        }
        self.folder = result.text("cwd").or_else(|| self.folder.take());
        self.tally.name_model(&id, result.text("model").or_else(|| thread.text("model")));
        self.thread = Some(id.clone());
        let turns = thread.objects("turns");
        self.opening.needs_turns = resumed && turns.is_empty();
        self.opening.thread =
            Some(OpenedThread { id, model: result.text("model"), version: thread.text("cliVersion") });
        let heard = if resumed { heard(&turns) } else { Vec::new() };
        heard.into_iter().chain(self.ready()).collect()
    }

    fn ready(&mut self) -> Option<Output> {
        let OpeningProgress { thread: Some(thread), needs_turns, has_turns, tools_answer: true, is_over: false } =
            &self.opening
        else {
            return None;
        };
        if *needs_turns && !has_turns {
            return None;
        }
        let OpenedThread { id, model, version } = thread.clone();
        self.opening.is_over = true;
        Some(Output::Ready { session: id, model, version, tools: Vec::new() })
    }

    fn notification(&mut self, method: &str, params: &Fields) -> Vec<Output> {
        let thread = params.text("threadId");
        match &thread {
            Some(thread) if self.is_subagent(thread) => {
                let thread = thread.clone();
                return self.of_subagent(&thread, method, params);
            }
            Some(_) | None => {}
        }
        match method {
            "mcpServer/startupStatus/updated" => self.tools_status(params).into_iter().collect(),
            "turn/started" => {
                self.tally.begin_turn();
                (self.progress, self.in_turn) = (TurnProgress::Begun, true);
                vec![Output::TurnStarted]
            }
            "turn/completed" => self.turn_ended(params).into_iter().collect(),
            "item/started" => {
                self.note_progress(params);
                self.items.started(params)
            }
            "item/completed" => {
                let outputs = self.items.completed(params);
                self.note_subagents(params);
                outputs
            }
            "error" => failure::error(params).into_iter().collect(),
            "thread/tokenUsage/updated" => {
                self.progress = TurnProgress::Answered;
                self.used(thread.as_deref().unwrap_or_default(), true, params)
            }
            "account/rateLimits/updated" => self.rate_limit(params).into_iter().collect(),
            "serverRequest/resolved" => {
                let id = params.raw("requestId").map(|id| id.get().to_owned());
                let request = id.and_then(|id| self.asked.remove(&id));
                request.map(|request| Output::Answered { request, problem: None }).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    fn note_progress(&mut self, params: &Fields) {
        let kind = params.object("item").and_then(|item| item.text("type"));
        self.progress = match (kind.as_deref(), self.progress) {
            (Some("userMessage"), TurnProgress::Begun) => TurnProgress::Begun,
            (Some("userMessage"), TurnProgress::Answered | TurnProgress::Addressed) => TurnProgress::Addressed,
            (Some(_), _) => TurnProgress::Answered,
            (None, progress) => progress,
        };
    }

    fn is_subagent(&self, thread: &str) -> bool {
        self.thread.as_deref().is_some_and(|own| own != thread)
    }

    /// The outputs of a subagent's notification. Apart from the usage, they do not change the state of the parent.
    fn of_subagent(&mut self, thread: &str, method: &str, params: &Fields) -> Vec<Output> {
        let outputs = match method {
            "item/started" => self.items.started(params),
            "item/completed" => self.items.completed(params),
            "error" => failure::error(params).into_iter().collect(),
            // The usage of a subagent counts for the agent of the run.
            "thread/tokenUsage/updated" => return self.used(thread, false, params),
            _ => Vec::new(),
        };
        let tool_use = self.subagents.get(thread).cloned().unwrap_or_else(|| thread.to_owned());
        outputs
            .into_iter()
            .map(|output| Output::Subagent { tool_use: tool_use.clone(), output: output.into() })
            .collect()
    }

    /// The usage of one finished request. The end of the turn repeats the sum.
    fn used(&mut self, thread: &str, own: bool, params: &Fields) -> Vec<Output> {
        let context = self.tally.note_context(own, params);
        let Some(usage) = self.tally.take(thread, own, params) else { return Vec::new() };
        let without_price = self.tally.without_price().map(|text| Output::Note { text });
        [Output::Used { usage, context }].into_iter().chain(without_price).collect()
    }

    /// The tool call that starts a subagent names the subagent's thread when the call is completed.
    fn note_subagents(&mut self, params: &Fields) {
        let Some(item) = params.object("item") else { return };
        if item.text("type").as_deref() != Some("collabAgentToolCall") {
            return;
        }
        let Some(call) = item.text("id") else { return };
        for thread in item.list("receiverThreadIds").into_iter().filter_map(text) {
            if self.subagents.len() < MAX_SUBAGENTS {
                self.tally.name_model(&thread, item.text("model").filter(|model| !model.is_empty()));
                self.subagents.entry(thread).or_insert_with(|| call.clone());
            }
        }
    }

    /// The start gate: whether Hatchery's tools answer the process.
    fn tools_status(&mut self, params: &Fields) -> Option<Output> {
        if params.text("name").as_deref() != Some(TOOL_SERVER) || self.opening.is_over {
            return None;
        }
        match params.text("status").as_deref() {
            Some("ready") => {
                self.opening.tools_answer = true;
                self.ready()
            }
            Some(status @ ("failed" | "cancelled")) => {
                let reason = params.text("error").unwrap_or_else(|| status.to_owned());
                Some(Output::NotReady { why: format!("codex reports about the `{TOOL_SERVER}` tools: {reason}") })
            }
            _ => None,
        }
    }

    fn turn_ended(&mut self, params: &Fields) -> Option<Output> {
        let turn = params.object("turn")?;
        self.in_turn = false;
        let result = match turn.text("status").as_deref() {
            Some("interrupted") => TurnResult::Interrupted,
            Some("failed") => failure::of_turn(&turn),
            _ => TurnResult::Ok,
        };
        let said = turn.objects("items");
        let answer = said.iter().rev().find(|item| item.text("type").as_deref() == Some("agentMessage"));
        let text = answer.and_then(|item| item.text("text"));
        let (total, since_last, num_turns) = self.tally.end_turn();
        let turn = turn.text("id");
        let unanswered = result.is_ok() && self.progress == TurnProgress::Addressed;
        Some(Output::TurnEnded(TurnEnd {
            result,
            text,
            num_turns,
            denials: Vec::new(),
            total,
            since_last,
            context: self.tally.context(),
            turn,
            unanswered,
        }))
    }

    fn rate_limit(&mut self, params: &Fields) -> Option<Output> {
        let limits = params.object("rateLimits")?;
        let windows = ["primary", "secondary"].into_iter().filter_map(|name| limits.object(name));
        // The fullest window is the one that stops the work.
        let full = windows.max_by_key(|window| window.count::<u64>("usedPercent").unwrap_or_default())?;
        let used: u64 = full.count("usedPercent").unwrap_or_default();
        let seconds: Option<u32> = full.count("resetsAt");
        let minutes: Option<u64> = full.count("windowDurationMins");
        let limit = Output::Limit {
            rejected: used >= 100,
            resets_at: seconds.map(|seconds| Timestamp(i64::from(seconds) * 1_000)),
            window: minutes.map(|minutes| format!("{minutes} minutes")),
        };
        if self.limit.as_ref() == Some(&limit) {
            return None;
        }
        self.limit = Some(limit.clone());
        Some(limit)
    }

    /// A request of codex. A request of an unknown kind is handled like a request for permission, because codex waits for an answer.
    fn request(&mut self, method: &str, id: &str, params: &Fields) -> Vec<Output> {
        let asked = permission::asked(method, id, params, &self.items, self.folder.as_deref());
        if self.asked.len() < MAX_OPEN_REQUESTS {
            self.asked.insert(id.to_owned(), asked.request.clone());
        }
        vec![Output::Asked(asked)]
    }
}

/// Hatchery's messages that the turns contain.
fn heard(turns: &[Fields]) -> Vec<Output> {
    let items = turns.iter().flat_map(|turn| turn.objects("items"));
    items.filter_map(|item| item.text("clientId")).map(|id| Output::Heard { id }).collect()
}
