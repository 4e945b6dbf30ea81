//! Everything that can be asked of the world, in the imperative. Ids are drawn by whoever asks.

use crate::agent::MessageKind;
use crate::session::EndReason;
use crate::{AgentId, SessionId, Stream};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    StartSession {
        session: SessionId,
        label: Option<String>,
        idle_ms: Option<u64>,
    },
    /// Asks for the end: recorded first, brought about by the shell afterwards.
    EndSession {
        session: SessionId,
        reason: EndReason,
    },
    /// The shell reports that nothing of an ending session is left.
    CloseSession {
        session: SessionId,
    },
    CreateAgent {
        agent: AgentId,
        parent: Option<AgentId>,
        name: Option<String>,
        session: Option<SessionId>,
    },
    RenameAgent {
        agent: AgentId,
        name: Option<String>,
    },
    WakeAgent {
        agent: AgentId,
        session: Option<SessionId>,
    },
    EndAgent {
        agent: AgentId,
        remark: Option<String>,
    },
    AddMessage {
        agent: AgentId,
        kind: MessageKind,
        content: String,
    },
    /// Time has passed: nothing is asked, but something may follow by itself.
    Tick,
}

impl Command {
    /// The streams that the command itself names. An answer rests on more than these: see [`crate::step::rests_on`].
    pub fn reads(&self) -> impl Iterator<Item = Stream> {
        let (session, agent, parent) = match *self {
            Self::StartSession { session, .. } | Self::EndSession { session, .. } | Self::CloseSession { session } => {
                (Some(session), None, None)
            }
            Self::CreateAgent { agent, parent, session, .. } => (session, Some(agent), parent),
            Self::WakeAgent { agent, session } => (session, Some(agent), None),
            Self::RenameAgent { agent, .. } | Self::EndAgent { agent, .. } | Self::AddMessage { agent, .. } => {
                (None, Some(agent), None)
            }
            Self::Tick => (None, None, None),
        };
        (session.map(Stream::Session).into_iter()).chain(agent.map(Stream::Agent)).chain(parent.map(Stream::Agent))
    }
}
