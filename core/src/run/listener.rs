//! Turns the outputs of a process into events, each once. Texts and tool calls go into the agent's history, usage is metered, and the rest
//! is recorded.

use super::{AttemptId, Conversation, Run, RunState, StopWhy, at_attempt, cut, delivery_of};
use crate::agent::{Lifecycle, living};
use crate::event::{AgentEvent, MessageEvent, RunEvent};
use crate::harness::{Capabilities, ModelChoice};
use crate::history::{TURN_INTERRUPTED, said};
use crate::output::{Denial, FailureKind, Output, TurnEnd, TurnResult};
use crate::usage::Meter;
use crate::{Event, EventId, MessageKind, Refusal, Timestamp, World, budget, permission};

/// How many denials of a turn are kept.
const MAX_DENIALS: usize = 20;
/// How many tool names are kept. Agent programs have a few dozen tools, and each tool server adds a few.
const MAX_TOOLS: usize = 200;
/// How many requests a process may make to the model after its turn was interrupted because of a budget. Requests that were on their way,
/// also those of subagents, need some.
const MAX_OVERSPENT: u32 = 5;
/// The note for a run with a model, if the agent program does not let Hatchery choose it.
const MODEL_NOT_TOLD: &str =
    "This agent program cannot be told which model to use. It uses the model of its own settings.";

/// The detail of a turn that a harness cancelled by itself.
const CANCELLED_UNASKED: &str = "the agent program cancelled its turn, although Hatchery had not asked for that";

/// Takes the outputs of a process between two positions of its spool. Each is taken exactly once, because the position is checked.
pub(crate) fn take_output(
    world: &World,
    of: AttemptId,
    from: u64,
    upto: u64,
    outputs: &[Output],
    now: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    let run = at_attempt(world, of)?;
    if run.process().is_none() {
        return Err(Refusal::StaleAttempt(of));
    }
    if run.attempt.spooled != from || upto <= from {
        return Err(Refusal::OutputTaken { agent: of.agent, at: run.attempt.spooled });
    }
    let agent = of.agent;
    let mut listener = Listener::new(of, run, world.conversation(agent));
    let stopping = matches!(run.state, RunState::Stopping { .. });
    let mut events: Vec<Event> = Vec::new();
    for output in outputs {
        events.extend(listener.take(output));
        if let Output::Asked(request) = output
            && !stopping
        {
            events.extend(permission::follows(world, of, run, request));
        }
    }
    match living(world, agent).map(|it| it.lifecycle) {
        Ok(Lifecycle::Hatching { .. }) if events.iter().any(speaks) && !world.seats().is_nameless(agent) => {
            events.insert(0, Event::Agent { agent, what: AgentEvent::Hatched })
        }
        Ok(_) => {}
        // A dead agent says nothing. Its texts stay in the spool only, but its usage is counted.
        Err(_) => events.retain(|event| !matches!(event, Event::Message(MessageEvent::Added { .. }))),
    }
    events = crate::seat::spoken_for(world, agent, events);
    if living(world, agent).is_ok() {
        let reports = crate::seat::take_reports(world, agent, &events, outputs.iter().filter_map(words), now);
        events.extend(reports);
        events.extend(crate::seat::artifacts(world, agent, outputs));
    }
    if listener.more != 0 && !stopping && budget::over_by(world, agent, listener.more, now).is_some() {
        events.extend(listener.over_budget());
    }
    events.push(Event::Run { of, what: RunEvent::OutputTaken { upto } });
    Ok(events)
}

struct Listener<'a> {
    of: AttemptId,
    run: &'a Run,
    /// The conversation after the outputs so far.
    conversation: Conversation,
    /// The meter of a process that has not opened its session yet.
    meter: Meter,
    /// The capabilities of the process, with what it has declared so far.
    capabilities: Capabilities,
    /// The process has reported that it is ready.
    started: bool,
    stopping: bool,
    in_turn: bool,
    /// The cost of the outputs so far that the world does not know yet, in billionths of a dollar. Negative if a turn was cheaper than
    /// estimated.
    more: i128,
}

impl<'a> Listener<'a> {
    fn new(of: AttemptId, run: &'a Run, conversation: Option<&Conversation>) -> Self {
        Self {
            of,
            run,
            conversation: conversation.cloned().unwrap_or_default(),
            meter: run.attempt.meter,
            capabilities: run.attempt.capabilities,
            started: run.attempt.has_started(),
            stopping: matches!(run.state, RunState::Stopping { .. }),
            in_turn: run.attempt.in_turn,
            more: 0,
        }
    }

    fn take(&mut self, output: &Output) -> Vec<Event> {
        let of = self.of;
        let message = |kind, content| vec![said(of.agent, kind, content)];
        match output {
            Output::Ready { session, model, tools, .. } => self.ready(session, model.as_deref(), tools),
            Output::Declares(declared) => {
                self.capabilities = self.capabilities.with(*declared);
                vec![Event::Run { of, what: RunEvent::OutputNoted { output: output.clone() } }]
            }
            Output::NotReady { why } => self.not_ready(why).into_iter().collect(),
            Output::TurnStarted => self.turn_starts(),
            Output::Text { text } => message(MessageKind::Assistant, text.clone()),
            Output::ToolUse { id, name, input } => message(MessageKind::ToolCall, tool_call(id, name, input)),
            Output::ToolResult { id, content, is_error } => {
                message(MessageKind::ToolResult, tool_result(id, content, *is_error))
            }
            Output::Answered { request, .. } if self.asked_for(request) => {
                vec![Event::Run { of, what: RunEvent::OutputNoted { output: output.clone() } }]
            }
            Output::Heard { id } | Output::Answered { request: id, .. } => {
                delivery_of(id).and_then(|id| self.confirmed(id)).into_iter().collect()
            }
            Output::TurnEnded(end) => self.turn_ends(end),
            Output::Used { usage, context } => {
                self.more += i128::from(usage.cost.nanodollars);
                self.conversation.metered.add(*usage);
                vec![Event::Run { of, what: RunEvent::Metered { used: *usage, context: *context } }]
            }
            Output::Thinking { .. }
            | Output::Note { .. }
            | Output::ModelChosen { .. }
            | Output::Subagent { .. }
            | Output::Retrying { .. }
            | Output::Limit { .. }
            | Output::Denied { .. }
            | Output::Asked(_)
            | Output::AskCancelled { .. }
            | Output::Compacted { .. }
            | Output::ApiError(_)
            | Output::Unread { .. } => vec![Event::Run { of, what: RunEvent::OutputNoted { output: output.clone() } }],
        }
    }

    /// Whether this is a request of the process that has been decided.
    fn asked_for(&self, request: &str) -> bool {
        self.run.attempt.permissions.iter().any(|pending| pending.request.request == *request)
    }

    /// When a process is ready, a delivery waits for it. So its first turn counts as begun. A restarted reader may report `Ready` again.
    fn ready(&mut self, session: &str, model: Option<&str>, tools: &[String]) -> Vec<Event> {
        if std::mem::replace(&mut self.started, true) {
            return Vec::new();
        }
        self.in_turn = true;
        let session = cut(session);
        self.conversation.enter(&session, &self.run.spec, self.meter, self.capabilities);
        let tools = tools.iter().take(MAX_TOOLS).map(|name| cut(name)).collect();
        let started = RunEvent::Started { session, model: model.map(cut), tools };
        let cannot = self.run.spec.model.is_some() && self.capabilities.model_choice == ModelChoice::Never;
        let note = cannot.then(|| RunEvent::OutputNoted { output: Output::Note { text: MODEL_NOT_TOLD.to_owned() } });
        [started].into_iter().chain(note).map(|what| Event::Run { of: self.of, what }).collect()
    }

    fn not_ready(&mut self, why: &str) -> Option<Event> {
        if self.started || std::mem::replace(&mut self.stopping, true) {
            return None;
        }
        Some(Event::Run { of: self.of, what: RunEvent::Stopping { why: StopWhy::NotReady { why: cut(why) } } })
    }

    /// A turn has begun; a process may begin turns by itself, too. Without echoes, the beginning of a turn confirms the oldest message that
    /// waits.
    fn turn_starts(&mut self) -> Vec<Event> {
        let begins = !std::mem::replace(&mut self.in_turn, true);
        let oldest = match self.run.attempt.capabilities.echoes_messages {
            true => None,
            false => self.conversation.oldest_words(),
        };
        let heard = oldest.and_then(|id| self.confirmed(id));
        begins.then_some(Event::Run { of: self.of, what: RunEvent::TurnStarted }).into_iter().chain(heard).collect()
    }

    fn confirmed(&mut self, id: EventId) -> Option<Event> {
        let delivery = self.conversation.confirm(id)?;
        Some(Event::Run { of: self.of, what: RunEvent::MessageHeard { message: delivery.id } })
    }

    /// A budget is used up. A running turn is interrupted. If the turn cannot be interrupted, or the process continues to make requests to
    /// the model, the process is stopped.
    fn over_budget(&self) -> Vec<Event> {
        let event = |what| Event::Run { of: self.of, what };
        let budget = self.run.attempt.budget;
        let cuts_short = self.in_turn && !budget.is_cut_short();
        let reached = (!budget.is_used_up() || cuts_short).then(|| event(RunEvent::BudgetReached));
        let goes_on = budget.calls_since() >= MAX_OVERSPENT;
        let act = match self.in_turn {
            false => None,
            true if goes_on || !self.run.attempt.capabilities.interrupts => {
                Some(event(RunEvent::Stopping { why: StopWhy::OverBudget }))
            }
            true if self.conversation.is_interrupted() => None,
            true => cuts_short.then(|| event(RunEvent::Interrupted)),
        };
        reached.into_iter().chain(act).collect()
    }

    /// Whether a turn was cancelled without a reason. A process that is being stopped may report a cancelled turn. Without echoes, an
    /// interrupt waits until the turn has ended, so it is known whether there was one. In some programs, a denied permission ends the turn,
    /// unless the program asks for another permission after it.
    fn is_interrupted_by_nobody(&self, end: &TurnEnd) -> bool {
        let explained = self.conversation.is_interrupted() || self.run.attempt.denied_last() || self.stopping;
        end.result == TurnResult::Interrupted && !self.capabilities.echoes_messages && !explained
    }

    fn turn_ends(&mut self, end: &TurnEnd) -> Vec<Event> {
        let of = self.of;
        let failed = TurnResult::Failed { kind: FailureKind::Other, detail: CANCELLED_UNASKED.to_owned() };
        let end = &match self.is_interrupted_by_nobody(end) {
            true => TurnEnd { result: failed, ..end.clone() },
            false => end.clone(),
        };
        let (spent, metered) = self.conversation.take(end, &mut self.meter);
        self.more += i128::from(spent.cost.nanodollars) - i128::from(metered.cost.nanodollars);
        self.in_turn = false;
        if end.result == TurnResult::SessionUnknown && !self.started {
            self.conversation.forget(self.run.attempt.copied);
        }
        // Not a message of the kind `interrupted`, which would take the turn back. The agent program keeps the turn.
        let interrupted = end.result == TurnResult::Interrupted;
        let broken_off = interrupted.then(|| said(of.agent, MessageKind::System, TURN_INTERRUPTED.to_owned()));
        let ended = Event::Run { of, what: RunEvent::TurnEnded { end: in_short(end), spent, metered } };
        broken_off.into_iter().chain([ended]).collect()
    }
}

fn words(output: &Output) -> Option<&str> {
    if let Output::Text { text } = output { Some(text) } else { None }
}

fn speaks(event: &Event) -> bool {
    matches!(event, Event::Message(MessageEvent::Added { kind, .. }) if kind.is_spoken())
}

/// A tool call as a message of a history.
pub(crate) fn tool_call(id: &str, name: &str, input: &str) -> String {
    let input: serde_json::Value = serde_json::from_str(input).unwrap_or_else(|_| input.into());
    serde_json::json!({ "id": id, "name": name, "input": input }).to_string()
}

/// A tool result as a message of a history.
pub(crate) fn tool_result(id: &str, content: &str, is_error: bool) -> String {
    serde_json::json!({ "id": id, "content": content, "is_error": is_error }).to_string()
}

/// The end of a turn as the world keeps it: without the answer, which is a message already, and with short texts.
fn in_short(end: &TurnEnd) -> TurnEnd {
    let denial = |denial: &Denial| Denial { tool: cut(&denial.tool), tool_use: denial.tool_use.as_deref().map(cut) };
    let result = match &end.result {
        TurnResult::Failed { kind, detail } => TurnResult::Failed { kind: *kind, detail: cut(detail) },
        other @ (TurnResult::Ok | TurnResult::Interrupted | TurnResult::SessionUnknown) => other.clone(),
    };
    TurnEnd {
        result,
        text: None,
        num_turns: end.num_turns,
        denials: end.denials.iter().take(MAX_DENIALS).map(denial).collect(),
        total: end.total,
        since_last: end.since_last,
        context: end.context,
        turn: end.turn.as_deref().map(cut),
        unanswered: end.unanswered,
    }
}
