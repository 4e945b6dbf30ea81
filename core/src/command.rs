//! Everything that can be asked of the world, in the imperative. Ids are drawn by whoever asks.

use crate::agent::Birth;
use crate::history::{Imported, MessageKind, RewindTo};
use crate::mail::Address;
use crate::session::EndReason;
use crate::{AgentId, EventId, SessionId, Stream};

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
    /// Registers agent 0.
    FoundRegistry {
        agent: AgentId,
        name: Option<String>,
    },
    /// Makes an agent that inherits the history of another, up to now or up to an earlier message.
    Fork {
        parent: AgentId,
        at: Option<EventId>,
        birth: Birth,
    },
    RenameAgent {
        agent: AgentId,
        name: Option<String>,
    },
    WakeAgent {
        agent: AgentId,
        session: Option<SessionId>,
    },
    Kill {
        agent: AgentId,
        cascade: bool,
        /// The agent that asks; nobody when a person does.
        by: Option<AgentId>,
        remark: Option<String>,
    },
    AddMessage {
        agent: AgentId,
        kind: MessageKind,
        content: String,
    },
    Rewind {
        agent: AgentId,
        to: RewindTo,
    },
    ImportHistory {
        items: Vec<Imported>,
    },
    SendMail {
        from: Address,
        to: Address,
        body: String,
    },
    /// Claims the oldest queued mail, perhaps of one sender.
    TakeMail {
        to: Address,
        from: Option<Address>,
    },
    /// Reads the oldest unread mail, or a certain one.
    ReadMail {
        to: Address,
        mail: Option<EventId>,
    },
    /// Time has passed: nothing is asked, but something may follow by itself.
    Tick,
}

impl Command {
    /// The streams that it names and whose state decides the answer. What its events change besides is in
    /// [`crate::rests_on`].
    pub fn reads(&self) -> Vec<Stream> {
        let mailbox = |address: &Address| match address {
            Address::Human => vec![Stream::Mail(Address::Human)],
            Address::Agent(agent) => vec![Stream::Mail(*address), Stream::Agent(*agent)],
        };
        match self {
            Self::StartSession { session, .. } | Self::EndSession { session, .. } | Self::CloseSession { session } => {
                vec![Stream::Session(*session)]
            }
            Self::FoundRegistry { .. } => vec![Stream::Registry],
            Self::Fork { parent, birth, .. } => {
                let session = birth.session.map(Stream::Session);
                [Stream::Agent(*parent), Stream::Agent(birth.agent)].into_iter().chain(session).collect()
            }
            Self::WakeAgent { agent, session } => {
                [Stream::Agent(*agent)].into_iter().chain(session.map(Stream::Session)).collect()
            }
            Self::Kill { agent, by, .. } => [Stream::Agent(*agent)].into_iter().chain(by.map(Stream::Agent)).collect(),
            Self::RenameAgent { agent, .. } | Self::AddMessage { agent, .. } | Self::Rewind { agent, .. } => {
                vec![Stream::Agent(*agent)]
            }
            Self::ImportHistory { items } => items
                .iter()
                .flat_map(|item| match item {
                    Imported::Agent { agent, parent, .. } => vec![Stream::Agent(*agent), Stream::Agent(*parent)],
                    Imported::Message { agent, .. } => vec![Stream::Agent(*agent)],
                })
                .collect(),
            Self::SendMail { from, to, .. } => [mailbox(from), mailbox(to)].concat(),
            Self::TakeMail { to, from } => {
                let sender = from.as_ref().map(mailbox).unwrap_or_default();
                [mailbox(to), sender].concat()
            }
            Self::ReadMail { to, .. } => mailbox(to),
            Self::Tick => Vec::new(),
        }
    }
}
