//! Mail: durable, the oldest first, each mail read by exactly one reader. The id of a mail is the id of the event that sent it. Its body is
//! read from the log.

use crate::agent::{self, living};
use crate::event::MailEvent;
use crate::{AgentId, Event, EventId, Refusal, World};
use imbl::{OrdMap, OrdSet};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// The longest body, in bytes of UTF-8.
pub const MAX_MAIL_BYTES: usize = 1 << 20;

/// The user's address. No agent can have this name.
pub const HUMAN: &str = "human";

/// A sender or recipient of mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// The user.
    Human,
    Agent(AgentId),
}

/// The unread mail of one recipient, the oldest first. Read mail is only in the log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mailbox {
    pub unread: OrdMap<EventId, Letter>,
    /// The unread mail that was not delivered. A separate set, so that the next mail is found without a search.
    pub queued: OrdSet<EventId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Letter {
    pub from: Address,
    pub state: LetterState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LetterState {
    /// Not delivered yet.
    Queued,
    /// Given to a reader that waited for it, and not confirmed as read yet.
    Delivered,
}

impl Mailbox {
    /// The oldest mail that was not delivered, from any sender or from the given one.
    pub fn first_queued(&self, from: Option<Address>) -> Option<EventId> {
        let fits = |mail: &&EventId| from.is_none_or(|from| self.unread.get(*mail).is_some_and(|it| it.from == from));
        self.queued.iter().find(fits).copied()
    }
}

pub(crate) fn send(world: &World, from: Address, to: Address, body: &str) -> Result<Vec<Event>, Refusal> {
    if body.len() > MAX_MAIL_BYTES {
        return Err(Refusal::MailTooLong { bytes: body.len() });
    }
    present(world, from)?;
    present(world, to)?;
    Ok(vec![Event::Mail(MailEvent::Sent { from, to, body: body.to_owned() })])
}

/// Delivers the oldest queued mail, optionally of one sender, to the caller.
pub(crate) fn take(world: &World, to: Address, from: Option<Address>) -> Result<Vec<Event>, Refusal> {
    match world.mailbox(to).and_then(|mailbox| mailbox.first_queued(from)) {
        Some(mail) => Ok(vec![Event::Mail(MailEvent::Delivered { to, mail })]),
        None => Err(none(world, to, from)),
    }
}

/// Reads the oldest unread mail, or the given one.
pub(crate) fn read(world: &World, to: Address, mail: Option<EventId>) -> Result<Vec<Event>, Refusal> {
    let mailbox = world.mailbox(to);
    let found = match mail {
        Some(mail) => {
            mailbox.filter(|it| it.unread.contains_key(&mail)).map(|_| mail).ok_or(Refusal::NotUnread { to, mail })?
        }
        None => {
            mailbox.and_then(|it| it.unread.get_min()).map(|(mail, _)| *mail).ok_or_else(|| none(world, to, None))?
        }
    };
    Ok(vec![Event::Mail(MailEvent::Read { to, mail: found })])
}

/// Why there is no mail: `NoMail` if a mail may still come, otherwise that the agent is dead or unknown, so that a reader does not wait in
/// vain.
fn none(world: &World, to: Address, from: Option<Address>) -> Refusal {
    let gone = from.into_iter().chain([to]).find_map(|party| present(world, party).err());
    gone.unwrap_or(Refusal::NoMail(to))
}

fn present(world: &World, party: Address) -> Result<(), Refusal> {
    match party {
        Address::Human => Ok(()),
        Address::Agent(agent) => living(world, agent).map(|_| ()),
    }
}

/// The address that a reference means: the human, or an agent by its id, the beginning of one, or its name.
pub fn resolve(world: &World, reference: &str) -> Result<Address, Refusal> {
    match reference {
        HUMAN => Ok(Address::Human),
        agent => agent::resolve(world, agent).map(Address::Agent),
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Human => f.write_str(HUMAN),
            Self::Agent(id) => id.fmt(f),
        }
    }
}

impl FromStr for Address {
    type Err = crate::id::NotAnId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            HUMAN => Ok(Self::Human),
            id => id.parse().map(Self::Agent),
        }
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serializer.is_human_readable() {
            true => serializer.collect_str(self),
            false => match self {
                Self::Human => None::<AgentId>.serialize(serializer),
                Self::Agent(id) => Some(id).serialize(serializer),
            },
        }
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.is_human_readable() {
            true => std::borrow::Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom),
            false => Option::<AgentId>::deserialize(deserializer).map(|id| id.map_or(Self::Human, Self::Agent)),
        }
    }
}

#[cfg(feature = "openapi")]
impl utoipa::PartialSchema for Address {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        utoipa::openapi::ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::Type::String)
            .description(Some("An agent's id, or `human`."))
            .pattern(Some("^(human|[A-Za-z0-9_-]{21}[AQgw])$"))
            .into()
    }
}

#[cfg(feature = "openapi")]
impl utoipa::ToSchema for Address {}
