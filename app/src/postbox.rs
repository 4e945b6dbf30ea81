//! Reading mail and waiting for it: the engine gives each mail to one, and the bodies come from the log.

use crate::engine::{Follower, Handle, SubmitError};
use crate::store::StoreError;
use hatchery_core::agent::{self, Life};
use hatchery_core::mail::LetterState;
use hatchery_core::{Address, Command, Event, EventId, Record, Refusal, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Mail {
    pub id: EventId,
    pub from: Address,
    pub to: Address,
    pub sent: Timestamp,
    pub body: String,
}

/// What is known of an unread mail without reading it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Header {
    pub id: EventId,
    pub from: Address,
    /// `queued`, or `delivered` to one who waited and has not confirmed it.
    pub state: String,
}

/// How it stands with one agent that was waited for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Awaited {
    /// As it was named.
    pub agent: String,
    /// `mail`, `waiting`, `finished` (asleep or expired), `dead`, `unknown` or `ambiguous`.
    pub state: String,
    pub mail: Option<Mail>,
}

pub fn check(handle: &Handle, of: Address) -> Vec<Header> {
    let world = handle.view();
    let unread = world.mailbox(of).into_iter().flat_map(|mailbox| mailbox.unread.iter());
    unread
        .map(|(id, letter)| {
            let state = match letter.state {
                LetterState::Queued => "queued",
                LetterState::Delivered => "delivered",
            };
            Header { id: *id, from: letter.from, state: state.into() }
        })
        .collect()
}

pub async fn read(handle: &Handle, of: Address, mail: Option<EventId>) -> Result<Mail, SubmitError> {
    let records = handle.submit(Command::ReadMail { to: of, mail }).await?;
    fetch(handle, &records).await
}

/// The next mail for an address, claimed for whoever asks; nothing when none came in time.
pub async fn next(handle: &Handle, of: Address, patience: Duration) -> Result<Option<Mail>, SubmitError> {
    claim(handle, of, None, patience).await
}

/// Waits until each of the named agents has written, or cannot any more. Those who still could are `waiting` at the end.
pub async fn wait_for(
    handle: &Handle,
    of: Address,
    named: Vec<String>,
    patience: Duration,
) -> Result<Vec<Awaited>, SubmitError> {
    let deadline = Instant::now() + patience;
    let mut changes = handle.follow(handle.head());
    let mut awaited: Vec<Awaited> =
        named.into_iter().map(|agent| Awaited { agent, state: WAITING.into(), mail: None }).collect();
    loop {
        for one in awaited.iter_mut().filter(|one| one.state == WAITING) {
            look(handle, of, one).await?;
        }
        let settled = awaited.iter().all(|one| one.state != WAITING);
        if settled || !changed(&mut changes, deadline).await {
            return Ok(awaited);
        }
    }
}

const WAITING: &str = "waiting";

async fn look(handle: &Handle, of: Address, one: &mut Awaited) -> Result<(), SubmitError> {
    let world = handle.view();
    let id = match agent::resolve(&world, &one.agent) {
        Ok(id) => id,
        Err(refusal) => {
            let several = matches!(refusal, Refusal::Ambiguous { .. });
            one.state = if several { "ambiguous" } else { "unknown" }.into();
            return Ok(());
        }
    };
    // What somebody wrote before it ended still counts.
    if let Some(mail) = claim(handle, of, Some(Address::Agent(id)), Duration::ZERO).await? {
        one.mail = Some(mail);
        one.state = "mail".into();
        return Ok(());
    }
    one.state = match world.agent(id).map(|agent| agent.life) {
        Some(Life::Dead { .. }) => "dead",
        Some(Life::Sleeping | Life::Expired { .. }) => "finished",
        Some(Life::Alive { .. } | Life::Hatching { .. }) => WAITING,
        None => "unknown",
    }
    .into();
    Ok(())
}

/// False when the time is up, or nothing more will happen.
async fn changed(changes: &mut Follower, deadline: Instant) -> bool {
    matches!(tokio::time::timeout_at(deadline, changes.next_page()).await, Ok(Ok(_)))
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
        Event::MailDelivered { mail, .. } | Event::MailRead { mail, .. } => Some(mail),
        _ => None,
    });
    let damaged = |what: String| SubmitError::Store(Arc::new(StoreError::Damaged(what)));
    let id = given.ok_or_else(|| damaged("no mail was given out".into()))?;
    let page = handle.read(id.before(), 1).await.map_err(|error| SubmitError::Store(Arc::new(error)))?;
    let body =
        page.events().next().map(|(_, json)| json).ok_or_else(|| damaged(format!("mail {id} is not in the log")))?;
    let body = std::str::from_utf8(&body).map_err(|error| damaged(error.to_string()))?;
    let record = Record::read(id, body).map_err(|error| damaged(error.to_string()))?;
    match record.event {
        Event::MailSent { from, to, body } => Ok(Mail { id, from, to, sent: record.ts, body }),
        _ => Err(damaged(format!("event {id} is no mail"))),
    }
}
