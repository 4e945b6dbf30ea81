//! Every "no" of the core: what was refused, for which id, and what to do next. A refusal never leaves a trace on the log.

use crate::agent::{MAX_MESSAGE_BYTES, MAX_NAME_BYTES, MAX_REMARK_BYTES};
use crate::session::{EndReason, MAX_IDLE_MS, MAX_LABEL_BYTES, MIN_IDLE_MS};
use crate::{AgentId, SessionId};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("there is no session {0}")]
    UnknownSession(SessionId),
    #[error("session {0} exists already")]
    SessionExists(SessionId),
    #[error("session {session} has ended ({reason:?})")]
    SessionOver { session: SessionId, reason: EndReason },
    #[error("session {session} is ending already ({reason:?})")]
    SessionEnding { session: SessionId, reason: EndReason },
    #[error("session {0} was not asked to end")]
    SessionNotEnding(SessionId),
    #[error("there is no agent {0}")]
    UnknownAgent(AgentId),
    #[error("agent {0} exists already")]
    AgentExists(AgentId),
    #[error("agent {0} is dead")]
    AgentDead(AgentId),
    #[error("agent {0} is awake already")]
    AgentAwake(AgentId),
    #[error("the label is {bytes} bytes long")]
    LabelTooLong { bytes: usize },
    #[error("an idle limit of {ms} ms is out of range")]
    IdleOutOfRange { ms: u64 },
    #[error("`{name}` cannot be a name")]
    BadName { name: String },
    #[error("the message is {bytes} bytes long")]
    MessageTooLong { bytes: usize },
    #[error("the remark is {bytes} bytes long")]
    RemarkTooLong { bytes: usize },
}

/// What sort of "no" it is, for those who answer in codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// What it speaks of does not exist.
    Missing,
    /// It does not fit what is true now.
    Untimely,
    /// It could never be right.
    Invalid,
}

impl Refusal {
    pub fn sort(&self) -> Sort {
        match self {
            Self::UnknownSession(_) | Self::UnknownAgent(_) => Sort::Missing,
            Self::SessionExists(_)
            | Self::SessionOver { .. }
            | Self::SessionEnding { .. }
            | Self::SessionNotEnding(_)
            | Self::AgentExists(_)
            | Self::AgentDead(_)
            | Self::AgentAwake(_) => Sort::Untimely,
            Self::LabelTooLong { .. }
            | Self::IdleOutOfRange { .. }
            | Self::BadName { .. }
            | Self::MessageTooLong { .. }
            | Self::RemarkTooLong { .. } => Sort::Invalid,
        }
    }

    /// A stable word for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownSession(_) => "unknown_session",
            Self::SessionExists(_) => "session_exists",
            Self::SessionOver { .. } => "session_over",
            Self::SessionEnding { .. } => "session_ending",
            Self::SessionNotEnding(_) => "session_not_ending",
            Self::UnknownAgent(_) => "unknown_agent",
            Self::AgentExists(_) => "agent_exists",
            Self::AgentDead(_) => "agent_dead",
            Self::AgentAwake(_) => "agent_awake",
            Self::LabelTooLong { .. } => "label_too_long",
            Self::IdleOutOfRange { .. } => "idle_out_of_range",
            Self::BadName { .. } => "bad_name",
            Self::MessageTooLong { .. } => "message_too_long",
            Self::RemarkTooLong { .. } => "remark_too_long",
        }
    }

    /// What to do next.
    pub fn hint(&self) -> String {
        match self {
            Self::UnknownSession(_) => "`hatchery session list` shows the sessions".into(),
            Self::SessionExists(_) | Self::AgentExists(_) => "draw a new id".into(),
            Self::SessionOver { .. } => "start a new session".into(),
            Self::SessionEnding { .. } => "wait for its session_ended event".into(),
            Self::SessionNotEnding(_) => "ask for its end first".into(),
            Self::UnknownAgent(_) => "`hatchery ps --all` shows the agents".into(),
            Self::AgentDead(_) => "the dead stay dead; create another agent".into(),
            Self::AgentAwake(_) => "nothing to do".into(),
            Self::LabelTooLong { .. } => format!("a label has at most {MAX_LABEL_BYTES} bytes"),
            Self::IdleOutOfRange { .. } => format!("choose between {MIN_IDLE_MS} and {MAX_IDLE_MS}"),
            Self::BadName { .. } => {
                format!("a name has 1 to {MAX_NAME_BYTES} bytes, no control characters and no blank at either end")
            }
            Self::MessageTooLong { .. } => format!("a message has at most {MAX_MESSAGE_BYTES} bytes; send it in parts"),
            Self::RemarkTooLong { .. } => format!("a remark has at most {MAX_REMARK_BYTES} bytes"),
        }
    }
}
