//! The streams of the log, which are the unit of conflict: two writers that change the same stream at the same time conflict.

use crate::mail::Address;
use crate::{AgentId, QuestId, RequestId, SessionId};
use std::fmt;

/// What an event belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stream {
    Session(SessionId),
    Agent(AgentId),
    Mail(Address),
    Quest(QuestId),
    /// All seats together, because a lead reports on all of them at once.
    Seats,
    /// What exists once among all agents: the root agent, and the owner of an adopted conversation.
    Registry,
    /// The status document and the idea inbox.
    Status,
    /// One request with an id that the caller has chosen.
    Request(RequestId),
}

impl fmt::Display for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session(id) => write!(f, "session:{id}"),
            Self::Agent(id) => write!(f, "agent:{id}"),
            Self::Mail(address) => write!(f, "mail:{address}"),
            Self::Quest(id) => write!(f, "quest:{id}"),
            Self::Seats => f.write_str("seats"),
            Self::Registry => f.write_str("registry"),
            Self::Status => f.write_str("status"),
            Self::Request(id) => write!(f, "request:{id}"),
        }
    }
}
