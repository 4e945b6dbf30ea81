//! Reading mail and waiting for it. The engine gives each mail to one reader; the bodies are read from the log.

use crate::engine::{Handle, HistoryError, SubmitError};
use crate::store::StoreError;
use hatchery_core::agent::{self, Lifecycle};
use hatchery_core::event::MailEvent;
use hatchery_core::mail::LetterState;
use hatchery_core::{Address, AgentId, Command, Event, EventId, Record, Refusal, Timestamp, World};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Mail {
    pub id: EventId,
    pub from: Address,
    pub to: Address,
    pub sent: Timestamp,
    pub body: String,
}

/// An unread mail without its body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Header {
    pub id: EventId,
    pub from: Address,
    pub state: MailState,
}

/// The state of an unread mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MailState {
    Queued,
    /// Given to a reader that waited, but not confirmed.
    Delivered,
}

impl From<LetterState> for MailState {
    fn from(state: LetterState) -> Self {
        match state {
            LetterState::Queued => Self::Queued,
            LetterState::Delivered => Self::Delivered,
        }
    }
}

impl fmt::Display for MailState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Queued => "queued",
            Self::Delivered => "delivered",
        })
    }
}

/// An agent whose mail is waited for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Awaited {
    /// The reference that the caller used.
    pub agent: String,
    /// The agent that the reference meant when the wait began. It does not change when the agent dies meanwhile.
    pub id: Option<AgentId>,
    pub state: AwaitedState,
    pub mail: Option<Mail>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(description = "The state of an agent whose mail is waited for.")]
pub enum AwaitedState {
    /// It has sent mail, perhaps before it ended.
    Mail,
    /// It has not sent mail yet, and still can.
    Waiting,
    /// Asleep or expired, or its run is over: it sends nothing until it is woken or given another message.
    Finished,
    Dead,
    Unknown,
    /// Several agents have this name.
    Ambiguous,
}

impl AwaitedState {
    /// The word for it, the same everywhere.
    pub fn word(self) -> &'static str {
        match self {
            Self::Mail => "mail",
            Self::Waiting => "waiting",
            Self::Finished => "finished",
            Self::Dead => "dead",
            Self::Unknown => "unknown",
            Self::Ambiguous => "ambiguous",
        }
    }
}

/// The unread mail of an address.
pub fn check(world: &World, of: Address) -> Vec<Header> {
    let unread = world.mailbox(of).into_iter().flat_map(|mailbox| mailbox.unread.iter());
    unread.map(|(id, letter)| Header { id: *id, from: letter.from, state: letter.state.into() }).collect()
}

pub async fn read(handle: &Handle, of: Address, mail: Option<EventId>) -> Result<Mail, SubmitError> {
    let records = handle.submit(Command::ReadMail { to: of, mail }).await?;
    fetch(handle, &records).await
}

/// Claims the next mail for an address. None when no mail came in time.
pub async fn next(handle: &Handle, of: Address, patience: Duration) -> Result<Option<Mail>, SubmitError> {
    claim(handle, of, None, patience).await
}

/// Waits until each of the named agents has sent mail, or no longer can. Mail is claimed only then: a caller that gives up before
/// claims nothing.
pub async fn wait_for(
    handle: &Handle,
    of: Address,
    named: Vec<String>,
    patience: Duration,
) -> Result<Vec<Awaited>, SubmitError> {
    let deadline = Instant::now() + patience;
    let mut heads = handle.heads();
    let mut awaited: Vec<Awaited> = {
        let world = handle.view();
        named.into_iter().map(|agent| Awaited::named(&world, agent)).collect()
    };
    let waiting = |awaited: &[Awaited]| awaited.iter().any(|one| one.state == AwaitedState::Waiting);
    loop {
        heads.mark_unchanged();
        let world = handle.view();
        for one in awaited.iter_mut().filter(|one| one.mail.is_none()) {
            if let Some(id) = one.id {
                one.state = state_of(&world, of, id);
            }
        }
        if waiting(&awaited) {
            can_receive(&world, of)?;
        }
        let over = waiting(&awaited) && !changed(&mut heads, deadline).await;
        if over || !waiting(&awaited) {
            for one in awaited.iter_mut().filter(|one| one.state == AwaitedState::Mail && one.mail.is_none()) {
                claim_from(handle, of, one).await?;
            }
            if over || !waiting(&awaited) {
                return Ok(awaited);
            }
        }
    }
}

impl Awaited {
    fn named(world: &World, agent: String) -> Self {
        let (id, state) = match agent::resolve(world, &agent) {
            Ok(id) => (Some(id), AwaitedState::Waiting),
            Err(Refusal::Ambiguous { .. }) => (None, AwaitedState::Ambiguous),
            // A child whose fork waits for its result is as good as born.
            Err(_) => match world.find_promised(&agent) {
                Some(id) => (Some(id), AwaitedState::Waiting),
                None => (None, AwaitedState::Unknown),
            },
        };
        Self { agent, id, state, mail: None }
    }
}

fn state_of(world: &World, of: Address, id: AgentId) -> AwaitedState {
    if world.mailbox(of).is_some_and(|mailbox| mailbox.first_queued(Some(Address::Agent(id))).is_some()) {
        return AwaitedState::Mail;
    }
    match world.agent(id).map(|agent| agent.lifecycle) {
        // Mail of a run is recorded before its end. An agent that was never run may have a process outside of Hatchery, which can still send.
        Some(Lifecycle::Alive { .. } | Lifecycle::Hatching { .. }) => match world.run(id) {
            Some(run) if !run.is_open() => AwaitedState::Finished,
            Some(_) | None => AwaitedState::Waiting,
        },
        Some(Lifecycle::Sleeping | Lifecycle::Expired { .. }) => AwaitedState::Finished,
        Some(Lifecycle::Dead { .. }) => AwaitedState::Dead,
        None if world.is_promised(id) => AwaitedState::Waiting,
        None => AwaitedState::Unknown,
    }
}

/// Waiting for mail that cannot come is refused.
fn can_receive(world: &World, of: Address) -> Result<(), Refusal> {
    let Address::Agent(id) = of else { return Ok(()) };
    match world.agent(id).map(|agent| agent.lifecycle) {
        Some(Lifecycle::Alive { .. } | Lifecycle::Hatching { .. } | Lifecycle::Sleeping) => Ok(()),
        Some(Lifecycle::Expired { .. }) => Err(Refusal::AgentExpired(id)),
        Some(Lifecycle::Dead { .. }) => Err(Refusal::AgentDead(id)),
        None => Err(Refusal::UnknownAgent(id)),
    }
}

async fn claim_from(handle: &Handle, of: Address, one: &mut Awaited) -> Result<(), SubmitError> {
    match claim(handle, of, one.id.map(Address::Agent), Duration::ZERO).await {
        Ok(Some(mail)) => one.mail = Some(mail),
        // Another reader was faster, perhaps with the last mail of a dead agent: check the state again.
        Ok(None) | Err(SubmitError::Refused(_)) => one.state = AwaitedState::Waiting,
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Waits for a change of the view. False when the time is up or the engine has stopped.
async fn changed(heads: &mut watch::Receiver<EventId>, deadline: Instant) -> bool {
    matches!(tokio::time::timeout_at(deadline, heads.changed()).await, Ok(Ok(())))
}

async fn claim(
    handle: &Handle,
    to: Address,
    from: Option<Address>,
    patience: Duration,
) -> Result<Option<Mail>, SubmitError> {
    match handle.submit_within(Command::TakeMail { to, from }, patience).await {
        Ok(records) => fetch(handle, &records).await.map(Some),
        Err(SubmitError::Refused(Refusal::NoMail(_))) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The mail that was given out, read from the log.
async fn fetch(handle: &Handle, records: &[Record]) -> Result<Mail, SubmitError> {
    let given = records.iter().find_map(|record| match record.event {
        Event::Mail(MailEvent::Delivered { mail, .. } | MailEvent::Read { mail, .. }) => Some(mail),
        _ => None,
    });
    let damaged = |what: String| SubmitError::Store(Arc::new(StoreError::Damaged(what)));
    let id = given.ok_or_else(|| damaged("no mail was given out".into()))?;
    let record = match handle.record(id).await {
        Ok(record) => record.ok_or_else(|| damaged(format!("mail {id} is not in the log")))?,
        Err(HistoryError::Store(error)) => return Err(SubmitError::Store(Arc::new(error))),
        Err(HistoryError::Unreadable(error)) => return Err(damaged(error.to_string())),
    };
    sent(record).ok_or_else(|| damaged(format!("event {id} is no mail")))
}

/// The mail that an event sent, if it sent one.
pub fn sent(record: Record) -> Option<Mail> {
    match record.event {
        Event::Mail(MailEvent::Sent { from, to, body }) => {
            Some(Mail { id: record.id, from, to, sent: record.ts, body })
        }
        _ => None,
    }
}
