//! A replay: an agent's history, inherited parts first, as it stands in the store.
//!
//! The messages stay the JSON that is stored, all of them in one piece of memory: most who ask for a history send it on as
//! JSON, and need not take ten thousand texts apart only to write them again.

use hatchery_core::event::MessageEvent;
use hatchery_core::event::{Unreadable, message_kind};
use hatchery_core::history::{Said, interrupted};
use hatchery_core::{Event, EventId, MessageKind, Record};
use std::ops::Range;

#[derive(Debug, Default)]
pub struct Replay {
    /// The bodies of all messages, one after the other.
    bodies: String,
    messages: Vec<Message>,
}

#[derive(Debug)]
struct Message {
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
    /// Taken back by an interruption: part of the history, but not of what a model sees.
    pub interrupted: bool,
}

impl Replay {
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = Replayed<'_>> {
        self.messages.iter().map(|Message { id, kind, body, interrupted }| Replayed {
            id: *id,
            kind: *kind,
            body: &self.bodies[body.clone()],
            interrupted: *interrupted,
        })
    }

    /// Takes in a row, in any order. What is not a message is passed over.
    pub(super) fn push(&mut self, id: EventId, body: &str) -> Result<(), Unreadable> {
        if let Some(kind) = message_kind(id, body)? {
            let start = self.bodies.len();
            self.bodies.push_str(body);
            self.messages.push(Message { id, kind, body: start..self.bodies.len(), interrupted: false });
        }
        Ok(())
    }

    /// Puts everything in order, drops what came twice, and marks what was interrupted.
    pub(super) fn finish(&mut self) {
        self.messages.sort_by_key(|it| it.id);
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

    /// The message, taken out of its JSON.
    pub fn said(&self) -> Result<Option<Said>, Unreadable> {
        let Self { id, interrupted, .. } = *self;
        Ok(match Record::read(id, self.body)?.event {
            Event::Message(MessageEvent::Added { agent, kind, content, source_id, .. }) => {
                Some(Said { id, agent, kind, content, source_id, interrupted })
            }
            _ => None,
        })
    }
}
