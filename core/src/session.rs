//! A session: a period of work of a group of agents. A session is opened, its end is requested for a reason, and then it has ended for that
//! reason. The reason is logged before anything is stopped, so that a stop is never mistaken for a failure later.

use crate::event::{AgentEvent, SessionEvent};
use crate::{AgentId, Event, Refusal, SessionId, Timestamp, World};
use imbl::OrdSet;
use serde::{Deserialize, Serialize};

/// The longest label, in bytes. A label is a title.
pub const MAX_LABEL_BYTES: usize = 256;
/// The shortest idle limit. A shorter one would end sessions between two keystrokes.
pub const MIN_IDLE_MS: u64 = 1_000;
/// The longest idle limit: a year.
pub const MAX_IDLE_MS: u64 = 365 * 24 * 3_600 * 1_000;

/// Why a session ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// The work is complete.
    Completed,
    /// The user ended the session.
    User,
    /// Nothing happened in the session for longer than its idle limit.
    Inactive,
    /// The session could not continue.
    Failed,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    pub label: Option<String>,
    pub state: SessionState,
    pub started: Timestamp,
    pub last_active: Timestamp,
    /// How long the session may be idle before it ends.
    pub idle_ms: Option<u64>,
    /// The agents that are awake in the session.
    pub awake: OrdSet<AgentId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SessionState {
    Open,
    /// The end is decided and recorded; the runner has not carried it out yet.
    Ending {
        reason: EndReason,
        since: Timestamp,
    },
    Ended {
        reason: EndReason,
        at: Timestamp,
    },
}

impl Session {
    /// When the session ends if nothing happens until then.
    pub fn deadline(&self) -> Option<Timestamp> {
        match self.state {
            SessionState::Open => self.idle_ms.map(|ms| self.last_active.plus_ms(ms)),
            SessionState::Ending { .. } | SessionState::Ended { .. } => None,
        }
    }
}

pub(crate) fn start(
    world: &World,
    session: SessionId,
    label: Option<&str>,
    idle_ms: Option<u64>,
) -> Result<Vec<Event>, Refusal> {
    if let Some(label) = label.filter(|label| label.len() > MAX_LABEL_BYTES) {
        return Err(Refusal::LabelTooLong { bytes: label.len() });
    }
    if let Some(ms) = idle_ms.filter(|ms| !(MIN_IDLE_MS..=MAX_IDLE_MS).contains(ms)) {
        return Err(Refusal::IdleOutOfRange { ms });
    }
    match world.session(session) {
        None => Ok(vec![Event::Session {
            session,
            what: SessionEvent::Started { label: label.map(str::to_owned), idle_ms },
        }]),
        Some(_) => Err(Refusal::SessionExists(session)),
    }
}

pub(crate) fn end(world: &World, session: SessionId, reason: &EndReason) -> Result<Vec<Event>, Refusal> {
    open(world, session)?;
    let ending = Event::Session { session, what: SessionEvent::Ending { reason: reason.clone() } };
    let asked = crate::seat::closing(world, session).filter(|_| *reason == EndReason::User);
    Ok(asked.into_iter().chain([ending]).collect())
}

/// Ends a session. Its agents fall asleep in the same append. Refused while one of them has an open run.
pub(crate) fn close(world: &World, id: SessionId) -> Result<Vec<Event>, Refusal> {
    let session = known(world, id)?;
    match &session.state {
        SessionState::Ending { reason, .. } => {
            session.awake.iter().try_for_each(|agent| crate::run::at_rest(world, *agent))?;
            let asleep = session.awake.iter().map(|agent| Event::Agent { agent: *agent, what: AgentEvent::Slept });
            Ok(asleep
                .chain([Event::Session { session: id, what: SessionEvent::Ended { reason: reason.clone() } }])
                .collect())
        }
        SessionState::Ended { reason, .. } => Err(Refusal::SessionOver { session: id, reason: reason.clone() }),
        SessionState::Open => Err(Refusal::SessionNotEnding(id)),
    }
}

/// The session, if it is open.
pub(crate) fn open(world: &World, id: SessionId) -> Result<&Session, Refusal> {
    let session = known(world, id)?;
    match &session.state {
        SessionState::Open => Ok(session),
        SessionState::Ending { reason, .. } => Err(Refusal::SessionEnding { session: id, reason: reason.clone() }),
        SessionState::Ended { reason, .. } => Err(Refusal::SessionOver { session: id, reason: reason.clone() }),
    }
}

fn known(world: &World, id: SessionId) -> Result<&Session, Refusal> {
    world.session(id).ok_or(Refusal::UnknownSession(id))
}
