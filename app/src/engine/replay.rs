//! A replay: an agent's history as the store has it, inherited parts first.
//!
//! The messages stay JSON, all in one piece of memory. Most callers send a history on as JSON, and decoding and encoding ten thousand
//! messages would cost more than reading them.

use hatchery_core::event::{MessageEvent, Unreadable, message_kind};
use hatchery_core::history::{HistoryMessage, interrupted, put_in_order};
use hatchery_core::{Event, EventId, MessageKind, Record, World};
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
        self.messages.iter().map(|StoredMessage { id, kind, body, interrupted }| Replayed {
            id: *id,
            kind: *kind,
            body: &self.bodies[body.clone()],
            interrupted: *interrupted,
        })
    }

    /// Adds a row. The rows may come in any order. A row that is not a message is ignored.
    pub(super) fn push(&mut self, id: EventId, body: &str) -> Result<(), Unreadable> {
        if let Some(kind) = message_kind(id, body)? {
            let start = self.bodies.len();
            self.bodies.push_str(body);
            self.messages.push(StoredMessage { id, kind, body: start..self.bodies.len(), interrupted: false });
        }
        Ok(())
    }

    /// Sorts the messages in the order in which the agent received them, drops duplicates, and marks the interrupted ones.
    pub(super) fn finish(&mut self, world: &World) {
        put_in_order(world, &mut self.messages, |it| it.id);
        self.messages.dedup_by_key(|it| it.id);
        for turn in interrupted(self.messages.iter().map(|it| it.kind)) {
            self.messages[turn].iter_mut().for_each(|it| it.interrupted = true);
        }
    }
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
