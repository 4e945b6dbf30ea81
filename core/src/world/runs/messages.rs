//! What a message of an agent's history means for its run: the message must be delivered, begins or ends a wait, or appears later in the
//! history.

use super::super::World;
use crate::history::{MAX_LATE_MESSAGES, TURN_INTERRUPTED};
use crate::run::{DeliveryKind, Run, WAIT_TOOL};
use crate::{AgentId, EventId, MessageKind, Timestamp};
use std::sync::Arc;

impl World {
    /// A message for an agent with runs must reach its process. A clear or a rewind ends the harness session, because the agent program
    /// cannot forget a part of it.
    pub(in crate::world) fn note_message(&mut self, at: EventId, ts: Timestamp, agent: AgentId, kind: MessageKind) {
        match kind {
            MessageKind::User => self.change_conversation(agent, |run, conversation| {
                if let Some(run) = run.filter(|_| conversation.waiting.is_empty()) {
                    run.addressed = ts;
                }
                Arc::make_mut(conversation).add(at, DeliveryKind::Message);
            }),
            MessageKind::Clear | MessageKind::Rewind => {
                self.change_conversation(agent, |_, conversation| Arc::make_mut(conversation).begin_anew())
            }
            MessageKind::System
            | MessageKind::Assistant
            | MessageKind::ToolCall
            | MessageKind::ToolResult
            | MessageKind::Mark
            | MessageKind::AgentKilled
            | MessageKind::Command
            | MessageKind::Fork
            | MessageKind::Usage
            | MessageKind::Interrupted => {}
        }
    }

    /// A turn was interrupted. The waiting messages are received after that, so they follow the interrupt in the history.
    pub(in crate::world) fn note_interrupt(&mut self, at: EventId, agent: AgentId, kind: MessageKind, content: &str) {
        if kind != MessageKind::System || content != TURN_INTERRUPTED || !self.run(agent).is_some_and(Run::is_open) {
            return;
        }
        let waiting = self.conversations.get(&agent).into_iter().flat_map(|conversation| conversation.waiting.iter());
        let waiting: Vec<EventId> =
            waiting.filter(|delivery| delivery.what == DeliveryKind::Message).map(|delivery| delivery.id).collect();
        self.late_messages.extend(waiting.into_iter().map(|message| (message, at)));
        while self.late_messages.len() > MAX_LATE_MESSAGES
            && let Some((oldest, _)) = self.late_messages.get_min().cloned()
        {
            self.late_messages.remove(&oldest);
        }
    }

    /// The mark of an interrupt that a message follows in its history, although the message was sent before.
    pub fn heard_after(&self, message: EventId) -> Option<EventId> {
        self.late_messages.get(&message).copied()
    }

    /// Notes whether an agent is in its tool `wait`. Then its forks can use its place, and its slot in a quest.
    pub(in crate::world) fn note_wait(&mut self, agent: AgentId, kind: MessageKind, content: &str) {
        let Some(run) = self.run(agent).filter(|run| run.is_open()) else { return };
        let waiting_call = match (kind, &run.attempt.waiting_call) {
            (MessageKind::ToolCall, _) => match call_of(content, WAIT_TOOL) {
                Some(call) => Some(call),
                None => return,
            },
            // The result may be of another tool that ran at the same time.
            (MessageKind::ToolResult, Some(call)) if answers(content, call) => None,
            (MessageKind::ToolResult, _) => return,
            (
                MessageKind::Clear
                | MessageKind::System
                | MessageKind::User
                | MessageKind::Assistant
                | MessageKind::Mark
                | MessageKind::Rewind
                | MessageKind::AgentKilled
                | MessageKind::Command
                | MessageKind::Fork
                | MessageKind::Usage
                | MessageKind::Interrupted,
                _,
            ) => return,
        };
        self.change_conversation(agent, |run, _| {
            if let Some(run) = run {
                run.attempt.waiting_call = waiting_call;
            }
        });
        if let Some(quest) = self.assignments.get(&agent).map(|assignment| assignment.quest) {
            self.note_quest_to_schedule(quest);
        }
    }
}

/// The id of a tool call in a message of a history. None if it is a call of another tool.
fn call_of(content: &str, tool: &str) -> Option<String> {
    let call: serde_json::Value = content.contains(tool).then(|| serde_json::from_str(content).ok())??;
    (call["name"] == tool).then(|| call["id"].as_str().map(str::to_owned))?
}

/// Whether a tool result in a message of a history belongs to this call.
fn answers(content: &str, call: &str) -> bool {
    content.contains(call)
        && serde_json::from_str::<serde_json::Value>(content).is_ok_and(|result| result["id"] == call)
}
