//! The history that an agent repeats when it loads a session. The history is in the log already, so it leads to no outputs. But its end
//! shows whether the agent has received the waiting message: if a process was killed before it answered a message, the message is the last
//! entry of the repeated history.

use super::MAX_TEXT_BYTES;
use crate::harness::WaitingMessage;
use crate::json::Fields;

#[derive(Clone, Debug, Default)]
pub(super) struct SessionReplay {
    waiting: Option<WaitingMessage>,
    /// The user's message at the end of the history that was repeated so far. None if the agent said or did something after it.
    last: Option<UserMessage>,
}

#[derive(Clone, Debug)]
struct UserMessage {
    /// The id that the agent gave to the message. Some agents give none.
    id: Option<String>,
    text: String,
}

impl SessionReplay {
    pub fn new(waiting: Option<WaitingMessage>) -> Self {
        Self { waiting, last: None }
    }

    /// Takes in an update that repeats the history.
    pub fn take(&mut self, update: &Fields) {
        let id = update.text("messageId");
        match update.text("sessionUpdate").as_deref() {
            _ if self.waiting.is_none() => {}
            Some("user_message_chunk") => {
                let piece = update.object("content").and_then(|content| content.text("text")).unwrap_or_default();
                match self.last.take() {
                    // A text that is longer than Hatchery's longest message is not a message of Hatchery.
                    Some(last) if last.id == id && last.text.len() + piece.len() > MAX_TEXT_BYTES => {}
                    Some(last) if last.id == id => self.last = Some(UserMessage { id, text: last.text + &piece }),
                    Some(_) | None => self.last = Some(UserMessage { id, text: piece }),
                }
            }
            // Text without an id is not part of the history, for example a warning about the agent's settings.
            Some("agent_message_chunk") if id.is_none() && self.last.as_ref().is_some_and(|last| last.id.is_some()) => {
            }
            Some("agent_message_chunk" | "agent_thought_chunk" | "tool_call" | "tool_call_update") => self.last = None,
            Some(_) | None => {}
        }
    }

    /// The id of the waiting message, if the repeated history ends with this message. Called when the history is complete.
    pub fn heard(&mut self) -> Option<String> {
        let (waiting, last) = (self.waiting.take()?, self.last.take()?);
        (last.text.trim() == waiting.text.trim()).then_some(waiting.id)
    }
}
