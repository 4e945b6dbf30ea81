//! The history that an agent repeats when it loads a session. It is in the log already, so nothing of it is said again. But its end shows
//! whether the agent has taken in the message that waits: a process that was killed before it said anything about a message leaves the
//! message as the last thing in the history.

use super::MAX_TEXT_BYTES;
use crate::harness::WaitingMessage;
use crate::json::Fields;

#[derive(Clone, Debug, Default)]
pub(super) struct SessionReplay {
    waiting: Option<WaitingMessage>,
    /// The message of the user at the end of what was repeated so far. None when the agent has said or done something after it.
    last: Option<UserMessage>,
}

#[derive(Clone, Debug)]
struct UserMessage {
    /// The id that the agent gave to it. Some give none.
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
                    // What is longer than any message of ours is none of them.
                    Some(last) if last.id == id && last.text.len() + piece.len() > MAX_TEXT_BYTES => {}
                    Some(last) if last.id == id => self.last = Some(UserMessage { id, text: last.text + &piece }),
                    Some(_) | None => self.last = Some(UserMessage { id, text: piece }),
                }
            }
            // What an agent tells beside the history, such as a warning about its settings, has no id.
            Some("agent_message_chunk") if id.is_none() && self.last.as_ref().is_some_and(|last| last.id.is_some()) => {
            }
            Some("agent_message_chunk" | "agent_thought_chunk" | "tool_call" | "tool_call_update") => self.last = None,
            Some(_) | None => {}
        }
    }

    /// The message that waits, if the history ends with it. The history is over.
    pub fn heard(&mut self) -> Option<String> {
        let (waiting, last) = (self.waiting.take()?, self.last.take()?);
        (last.text.trim() == waiting.text.trim()).then_some(waiting.id)
    }
}
