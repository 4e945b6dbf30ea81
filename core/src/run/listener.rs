//! Listening to a process: what it says becomes events, each thing once. Words go into the agent's history, results are metered,
//! and the rest is noted.

use super::{AttemptId, Conversation, OUR_SERVER, Run, RunState, StopWhy, at_attempt, cut, delivery_of};
use crate::agent::{Lifecycle, living};
use crate::event::{AgentEvent, MessageEvent, RunEvent};
use crate::history::said;
use crate::output::{Denial, McpServer, Output, ServerStatus, TurnEnd};
use crate::usage::{Meter, Usage};
use crate::{Event, EventId, MessageKind, Refusal, Timestamp, World, budget};

/// How many of a turn's errors and denials are kept.
const MAX_COMPLAINTS: usize = 20;

/// Takes in what a process said, from one place in its output to another: exactly once, because the place is part of it.
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
    if run.spooled != from || upto <= from {
        return Err(Refusal::OutputTaken { agent: of.agent, at: run.spooled });
    }
    let agent = of.agent;
    let mut listener = Listener::new(of, run, world.conversation(agent));
    let mut events: Vec<Event> = outputs.iter().flat_map(|output| listener.hear(output)).collect();
    match living(world, agent).map(|it| it.lifecycle) {
        Ok(Lifecycle::Hatching { .. }) if events.iter().any(speaks) => {
            events.insert(0, Event::Agent { agent, what: AgentEvent::Hatched })
        }
        Ok(_) => {}
        // The dead say nothing, and what they said stays in the spool; but what it cost was spent.
        Err(_) => events.retain(|event| !matches!(event, Event::Message(MessageEvent::Added { .. }))),
    }
    let spent = listener.spent;
    if !run.held && spent != Usage::default() && budget::over(world, agent, spent, now).is_some() {
        events.push(Event::Run { of, what: RunEvent::BudgetReached });
    }
    events.push(Event::Run { of, what: RunEvent::OutputTaken { upto } });
    Ok(events)
}

struct Listener<'a> {
    of: AttemptId,
    run: &'a Run,
    /// As it is after what was heard so far.
    conversation: Conversation,
    /// For a process that has not shown its conversation.
    meter: Meter,
    /// Our tools are known to answer.
    started: bool,
    stopping: bool,
    in_turn: bool,
    /// What it said last that it begins to work on.
    begun: Option<EventId>,
    /// What it has used that the world does not know of.
    spent: Usage,
}

impl<'a> Listener<'a> {
    fn new(of: AttemptId, run: &'a Run, conversation: Option<&Conversation>) -> Self {
        Self {
            of,
            run,
            conversation: conversation.cloned().unwrap_or_default(),
            meter: run.meter,
            started: run.started,
            stopping: matches!(run.state, RunState::Stopping { .. }),
            in_turn: run.in_turn,
            begun: None,
            spent: Usage::default(),
        }
    }

    fn hear(&mut self, output: &Output) -> Vec<Event> {
        let of = self.of;
        let message = |kind, content| vec![said(of.agent, kind, content)];
        match output {
            Output::SessionStarted { session, servers, .. } => self.turn_begins(session, servers),
            Output::Text { text } => message(MessageKind::Assistant, text.clone()),
            Output::ToolUse { id, name, input } => message(MessageKind::ToolCall, tool_call(id, name, input)),
            Output::ToolResult { id, content, is_error } => {
                message(MessageKind::ToolResult, tool_result(id, content, *is_error))
            }
            Output::Heard { uuid } | Output::Answered { request: uuid, .. } => {
                delivery_of(uuid).and_then(|id| self.heard(id)).into_iter().collect()
            }
            Output::Begun { uuid } => {
                self.begun = delivery_of(uuid);
                Vec::new()
            }
            Output::TurnEnded(end) => self.turn_ends(end),
            Output::Thinking { .. }
            | Output::Note { .. }
            | Output::Subagent { .. }
            | Output::Retrying { .. }
            | Output::Limit { .. }
            | Output::Denied { .. }
            | Output::Asked { .. }
            | Output::Compacted { .. }
            | Output::ApiError(_)
            | Output::Unread { .. } => vec![Event::Run { of, what: RunEvent::OutputNoted { output: output.clone() } }],
        }
    }

    /// It says so at every turn, also at those that it begins by itself. The first time it has to show that our tools answer.
    fn turn_begins(&mut self, session: &str, servers: &[McpServer]) -> Vec<Event> {
        let of = self.of;
        let ours = servers.iter().find(|server| server.name == OUR_SERVER).map(|server| &server.status);
        if !self.started && ours == Some(&ServerStatus::Connected) {
            self.started = true;
            self.in_turn = true;
            let session = cut(session);
            self.conversation.enter(&session, &self.run.spec, self.meter);
            return [Event::Run { of, what: RunEvent::Started { session } }]
                .into_iter()
                .chain(self.heard_begun())
                .collect();
        }
        if !self.started && !self.stopping {
            self.stopping = true;
            let status = ours.map_or("missing".into(), status_word);
            return vec![Event::Run { of, what: RunEvent::Stopping { why: StopWhy::Gate { status } } }];
        }
        let begins = !std::mem::replace(&mut self.in_turn, true);
        begins.then_some(Event::Run { of, what: RunEvent::TurnStarted }).into_iter().chain(self.heard_begun()).collect()
    }

    /// What it has begun is in its own records when its turn begins, so it must not be said again.
    fn heard_begun(&mut self) -> Option<Event> {
        self.begun.take().and_then(|id| self.heard(id))
    }

    fn heard(&mut self, id: EventId) -> Option<Event> {
        let delivery = self.conversation.hear(id)?;
        Some(Event::Run { of: self.of, what: RunEvent::MessageHeard { message: delivery.id } })
    }

    fn turn_ends(&mut self, end: &TurnEnd) -> Vec<Event> {
        let of = self.of;
        let spent = self.conversation.take(end, &mut self.meter);
        self.spent += spent;
        self.in_turn = false;
        if end.forgotten() && !self.started {
            self.conversation.forget(self.run.copied);
        }
        // The mark takes back everything since the last message. One that waits was not part of the turn, and must not be
        // taken back with it.
        let marks = end.interrupted() && !self.conversation.has_words();
        let broken_off = marks.then(|| said(of.agent, MessageKind::Interrupted, String::new()));
        let ended = Event::Run { of, what: RunEvent::TurnEnded { end: in_short(end), spent } };
        broken_off.into_iter().chain([ended]).collect()
    }
}

fn speaks(event: &Event) -> bool {
    matches!(event, Event::Message(MessageEvent::Added { kind, .. }) if kind.is_spoken())
}

/// A tool call as it stands in a history.
pub(crate) fn tool_call(id: &str, name: &str, input: &str) -> String {
    let input: serde_json::Value = serde_json::from_str(input).unwrap_or_else(|_| input.into());
    serde_json::json!({ "id": id, "name": name, "input": input }).to_string()
}

/// What a tool answered, as it stands in a history.
pub(crate) fn tool_result(id: &str, content: &str, is_error: bool) -> String {
    serde_json::json!({ "id": id, "content": content, "is_error": is_error }).to_string()
}

/// A result without the answer, which is a message already. What went wrong stays, but not at any length: the world keeps it.
fn in_short(end: &TurnEnd) -> TurnEnd {
    let denial = |denial: &Denial| Denial { tool: cut(&denial.tool), tool_use: denial.tool_use.as_deref().map(cut) };
    TurnEnd {
        is_error: end.is_error,
        subtype: cut(&end.subtype),
        terminal_reason: end.terminal_reason.as_deref().map(cut),
        api_status: end.api_status,
        text: end.text.as_deref().filter(|_| end.is_error).map(cut),
        errors: end.errors.iter().take(MAX_COMPLAINTS).map(|error| cut(error)).collect(),
        num_turns: end.num_turns,
        denials: end.denials.iter().take(MAX_COMPLAINTS).map(denial).collect(),
        total: end.total,
        since_last: end.since_last,
    }
}

fn status_word(status: &ServerStatus) -> String {
    match status {
        ServerStatus::Connected => "connected".into(),
        ServerStatus::Pending => "pending".into(),
        ServerStatus::Failed => "failed".into(),
        ServerStatus::Other(word) => cut(word),
    }
}
