//! A replay: an agent's history as the store has it, inherited parts first.
//!
//! The messages stay JSON, all in one piece of memory. Most callers send a history on as JSON, and decoding and encoding ten thousand
//! messages would cost more than reading them.

use crate::store::StoreError;
use hatchery_core::event::{MessageEvent, Unreadable, stored_message};
use hatchery_core::history::{self, HistoryMessage, interrupted, put_in_order};
use hatchery_core::{AgentId, Event, EventId, MessageKind, Record, World};
use std::ops::Range;

#[derive(Debug)]
pub struct Replay {
    /// The last event of the world from which the history was computed.
    head: EventId,
    /// The bodies of all messages, one after the other.
    bodies: String,
    messages: Vec<StoredMessage>,
}

#[derive(Debug)]
struct StoredMessage {
    id: EventId,
    agent: AgentId,
    kind: MessageKind,
    body: Range<usize>,
    interrupted: bool,
}

/// One message of a replay.
#[derive(Clone, Copy, Debug)]
pub struct Replayed<'a> {
    pub id: EventId,
    pub kind: MessageKind,
    /// The event as it is stored: everything but the id.
    pub body: &'a str,
    /// Part of an interrupted turn: it stays in the history, but a model does not see it.
    pub interrupted: bool,
}

impl Replay {
    pub(super) fn of(head: EventId) -> Self {
        Self { head, bodies: String::new(), messages: Vec::new() }
    }

    /// The last event of the world from which the history was computed.
    pub fn head(&self) -> EventId {
        self.head
    }

    pub fn len(&self) -> usize {
        self.messages.len()
    }

    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = Replayed<'_>> {
        self.messages.iter().map(|StoredMessage { id, kind, body, interrupted, .. }| Replayed {
            id: *id,
            kind: *kind,
            body: &self.bodies[body.clone()],
            interrupted: *interrupted,
        })
    }

    /// Adds a row. The rows may come in any order. A row that is not a message is ignored.
    pub(super) fn push(&mut self, id: EventId, body: &str) -> Result<(), Unreadable> {
        if let Some((agent, kind)) = stored_message(id, body)? {
            let start = self.bodies.len();
            self.bodies.push_str(body);
            self.messages.push(StoredMessage { id, agent, kind, body: start..self.bodies.len(), interrupted: false });
        }
        Ok(())
    }

    /// Sorts the messages in the order in which the agent received them, drops duplicates, and marks the interrupted ones. Refuses what
    /// cannot be the history of these parts.
    pub(super) fn finish(&mut self, world: &World, parts: &[history::HistoryRange]) -> Result<(), StoreError> {
        self.messages.sort_by_key(|it| it.id);
        self.messages.dedup_by_key(|it| it.id);
        check(world, parts, self.messages.iter().map(|it| (it.id, it.agent)))?;
        put_in_order(world, &mut self.messages, |it| it.id);
        for turn in interrupted(self.messages.iter().map(|it| it.kind)) {
            self.messages[turn].iter_mut().for_each(|it| it.interrupted = true);
        }
        Ok(())
    }
}

/// Compares the messages that the index of the store has given for the parts of a history, in order, with what the world knows: each belongs
/// to a part, a part that goes up to the last message of its agent has that message, and a part with all messages of its agent has as many as
/// the agent. The rows of the log have checksums, those of the index have none.
pub(super) fn check(
    world: &World,
    parts: &[history::HistoryRange],
    messages: impl Iterator<Item = (EventId, AgentId)>,
) -> Result<(), StoreError> {
    let mut found = vec![(0_u64, EventId::START); parts.len()];
    let mut at = 0;
    for (id, agent) in messages {
        let has = |part: &history::HistoryRange| part.agent == agent && part.after < id && id <= part.upto;
        // Almost always the part of the message before.
        if !parts.get(at).is_some_and(has) {
            let wrong = || damaged(format_args!("it names event {id} as a message of another agent"));
            at = parts.iter().position(has).ok_or_else(wrong)?;
        }
        found[at] = (found[at].0 + 1, id);
    }
    for (part, (count, last)) in parts.iter().zip(found) {
        let Some(agent) = world.agent(part.agent).filter(|agent| agent.last_message == Some(part.upto)) else {
            continue;
        };
        if part.after == agent.born && count != agent.messages {
            return Err(damaged(format_args!(
                "it has {count} of the {} messages of agent {}",
                agent.messages, part.agent
            )));
        }
        if last != part.upto {
            return Err(damaged(format_args!("it lacks message {} of agent {}", part.upto, part.agent)));
        }
    }
    Ok(())
}

fn damaged(how: std::fmt::Arguments<'_>) -> StoreError {
    StoreError::Damaged(format!(
        "the index of the messages does not fit the log: {how}; `hatchery fsck --repair` makes the index again from the log"
    ))
}

impl Replayed<'_> {
    pub fn reaches_model(&self) -> bool {
        self.kind.reaches_model() && !self.interrupted
    }

    /// The message, decoded.
    pub fn said(&self) -> Result<Option<HistoryMessage>, Unreadable> {
        let Self { id, interrupted, .. } = *self;
        Ok(match Record::read(id, self.body)?.event {
            Event::Message(MessageEvent::Added { agent, kind, content, source_id, .. }) => {
                Some(HistoryMessage { id, agent, kind, content, source_id, interrupted })
            }
            _ => None,
        })
    }
}
