//! Every event, in the past tense. Each noun has an enum of its own; [`Event`] says to which noun an event belongs.
//!
//! A [`Record`] is an event with its envelope: `id`, `ts`, `sessionId`. It is written as one flat JSON object whose `type` is
//! unique among all nouns. Events are permanent: a variant may get more optional fields, but no variant or field is renamed or removed.
//! `tests/golden` contains every line that was ever released.

mod agent;
mod budget;
mod mail;
mod message;
mod permission;
mod quest;
mod question;
mod record;
mod request;
mod run;
mod seat;
mod session;
mod status;
mod step;
mod stream;

pub use agent::AgentEvent;
pub use budget::BudgetEvent;
pub use mail::MailEvent;
pub use message::MessageEvent;
pub use permission::PermissionEvent;
pub use quest::QuestEvent;
pub use question::QuestionEvent;
pub use record::{Record, Unreadable, is_event_type, stored_message, wire_id, write_wire};
pub use request::RequestEvent;
pub use run::RunEvent;
pub use seat::{Egg, SeatEvent, WakeOrder, Waking};
pub use session::SessionEvent;
pub use status::{FieldEdit, StatusEvent, StatusSource};
pub use step::StepEvent;
pub use stream::Stream;

use crate::quest::StepId;
use crate::run::AttemptId;
use crate::{AgentId, QuestId, Refusal, SessionId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The position of an event in the log: 1, 2, 3, … without a gap. 0 is the position before the first event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(transparent)]
pub struct EventId(pub u64);

impl EventId {
    /// Before the first event.
    pub const START: Self = Self(0);

    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The position before this one.
    #[must_use]
    pub fn before(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One event: the noun, its ids, and what happened to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum Event {
    Session {
        session: SessionId,
        #[serde(flatten)]
        what: SessionEvent,
    },
    Agent {
        agent: AgentId,
        #[serde(flatten)]
        what: AgentEvent,
    },
    Message(MessageEvent),
    Mail(MailEvent),
    Question {
        /// The agent that waits for the answer.
        agent: AgentId,
        #[serde(flatten)]
        what: QuestionEvent,
    },
    Budget(BudgetEvent),
    Permission(PermissionEvent),
    Run {
        #[serde(flatten)]
        of: AttemptId,
        #[serde(flatten)]
        what: RunEvent,
    },
    Seat(SeatEvent),
    Quest {
        quest: QuestId,
        #[serde(flatten)]
        what: QuestEvent,
    },
    Step {
        quest: QuestId,
        step: StepId,
        #[serde(flatten)]
        what: StepEvent,
    },
    Status(StatusEvent),
    Request(RequestEvent),
}

impl Event {
    pub fn stream(&self) -> Stream {
        match *self {
            Self::Session { session, .. } => Stream::Session(session),
            // In the parent's stream: killing the parent and forking from it must conflict.
            Self::Agent { what: AgentEvent::Created { parent, .. }, .. } => {
                parent.map_or(Stream::Registry, Stream::Agent)
            }
            // Not in the agent's stream: giving one conversation to two agents must conflict.
            Self::Agent { what: AgentEvent::HarnessSessionAdopted(_), .. } => Stream::Registry,
            Self::Agent { agent, .. }
            | Self::Question { agent, .. }
            | Self::Message(MessageEvent::Added { agent, .. })
            | Self::Run { of: AttemptId { agent, .. }, .. } => Stream::Agent(agent),
            Self::Budget(BudgetEvent::Set { agent, .. }) => agent.map_or(Stream::Registry, Stream::Agent),
            Self::Permission(ref what) => what.agent().map_or(Stream::Registry, Stream::Agent),
            Self::Mail(ref what) => Stream::Mail(what.to()),
            Self::Seat(_) => Stream::Seats,
            Self::Quest { quest, .. } | Self::Step { quest, .. } => Stream::Quest(quest),
            Self::Status(_) => Stream::Status,
            // Not in the stream of the thing that the request changes: only a repetition of the same request must conflict.
            Self::Request(RequestEvent::Taken { request, .. }) => Stream::Request(request),
        }
    }

    /// The event that this one refers to by its id. A batch that refers to its own events cannot be renumbered.
    pub fn refers_to(&self) -> Option<EventId> {
        match *self {
            Self::Agent { what: AgentEvent::Created { origin, .. }, .. } => origin.and_then(|origin| origin.upto),
            Self::Message(MessageEvent::Added { to, .. }) => to,
            Self::Mail(MailEvent::Delivered { mail, .. } | MailEvent::Read { mail, .. }) => Some(mail),
            Self::Run { what: RunEvent::MessageHeard { message }, .. } => Some(message),
            Self::Permission(PermissionEvent::RuleRemoved { rule, .. }) => Some(rule),
            Self::Question {
                what: QuestionEvent::Answered { question, .. } | QuestionEvent::Withdrawn { question },
                ..
            } => Some(question),
            Self::Seat(SeatEvent::Relayed { message, .. }) => Some(message),
            Self::Session { .. }
            | Self::Agent { .. }
            | Self::Mail(MailEvent::Sent { .. })
            | Self::Question { what: QuestionEvent::Asked { .. }, .. }
            | Self::Budget(_)
            | Self::Permission(PermissionEvent::RuleAdded { .. })
            | Self::Run { .. }
            | Self::Seat(_)
            | Self::Quest { .. }
            | Self::Step { .. }
            | Self::Status(_)
            | Self::Request(_) => None,
        }
    }
}

/// A refusal that is logged, because the agent that got the refusal may ask for the answer again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Refused {
    pub code: String,
    pub message: String,
    pub hint: String,
}

impl From<&Refusal> for Refused {
    fn from(refusal: &Refusal) -> Self {
        Self { code: refusal.code().into(), message: refusal.to_string(), hint: refusal.hint() }
    }
}
