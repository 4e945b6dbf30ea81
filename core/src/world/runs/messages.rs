//! What a message of an agent's history means for its run: it has to be delivered, it begins or ends a wait, or it stands elsewhere.

use super::super::World;
use crate::run::{DeliveryKind, Run, WAIT_TOOL};
use crate::{AgentId, EventId, MessageKind, Timestamp};
use std::sync::Arc;

impl World {
    /// A message for an agent that is or was run has to reach its process. A cut ends the conversation: what was taken back
    /// cannot be unheard.
    pub(in crate::world) fn note_message(&mut self, at: EventId, ts: Timestamp, agent: AgentId, kind: MessageKind) {
        match kind {
            MessageKind::User => self.change_conversation(agent, |run, conversation| {
                if let Some(run) = run.filter(|_| conversation.unheard.is_empty()) {
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

    /// Whether an agent is in its tool `wait`. Then its forks can use its place, and its slot in a quest.
    pub(in crate::world) fn note_wait(&mut self, agent: AgentId, kind: MessageKind, content: &str) {
        let Some(run) = self.run(agent).filter(|run| run.is_open()) else { return };
        let waiting_call = match (kind, &run.waiting_call) {
            (MessageKind::ToolCall, _) => match call_of(content, WAIT_TOOL) {
                Some(call) => Some(call),
                None => return,
            },
            // Another tool may have run beside it.
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
                run.waiting_call = waiting_call;
            }
        });
        if let Some(quest) = self.assignments.get(&agent).map(|assignment| assignment.quest) {
            self.weigh_quest(quest);
        }
    }
}

/// The id of a tool call, as it stands in a history, if it is one of this tool.
fn call_of(content: &str, tool: &str) -> Option<String> {
    let call: serde_json::Value = content.contains(tool).then(|| serde_json::from_str(content).ok())??;
    (call["name"] == tool).then(|| call["id"].as_str().map(str::to_owned))?
}

/// Whether the result of a tool, as it stands in a history, answers this call.
fn answers(content: &str, call: &str) -> bool {
    content.contains(call)
        && serde_json::from_str::<serde_json::Value>(content).is_ok_and(|result| result["id"] == call)
}
