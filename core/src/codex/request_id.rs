//! The ids of Hatchery's requests to codex. An id says what was requested. So a daemon that did not send the request understands the
//! answer.

use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CodexRequestId {
    Initialize,
    StartThread,
    ResumeThread,
    ForkThread,
    /// Asks which messages a resumed thread contains.
    ListTurns,
    /// Sends a message; contains the id of the message.
    Say(String),
    /// Interrupts a turn; contains the id of the interrupt.
    Interrupt(String),
}

const SAY: &str = "say:";
const INTERRUPT: &str = "interrupt:";

impl CodexRequestId {
    pub fn read(id: &str) -> Option<Self> {
        if let Some(message) = id.strip_prefix(SAY) {
            return Some(Self::Say(message.to_owned()));
        }
        if let Some(interrupt) = id.strip_prefix(INTERRUPT) {
            return Some(Self::Interrupt(interrupt.to_owned()));
        }
        [Self::Initialize, Self::StartThread, Self::ResumeThread, Self::ForkThread, Self::ListTurns]
            .into_iter()
            .find(|it| it.to_string() == id)
    }
}

impl fmt::Display for CodexRequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Initialize => f.write_str("initialize"),
            Self::StartThread => f.write_str("thread/start"),
            Self::ResumeThread => f.write_str("thread/resume"),
            Self::ForkThread => f.write_str("thread/fork"),
            Self::ListTurns => f.write_str("thread/turns/list"),
            Self::Say(message) => write!(f, "{SAY}{message}"),
            Self::Interrupt(interrupt) => write!(f, "{INTERRUPT}{interrupt}"),
        }
    }
}
