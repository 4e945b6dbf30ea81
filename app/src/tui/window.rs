//! Which part of the log a conversation is read from, and what was read. A conversation is one piece of the log without gaps; it need not
//! reach to the end.

use hatchery_core::{AgentId, EventId, Record, Timestamp};

/// The part that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowPart {
    /// The end. Where an agent was last heard long ago, the search begins before this event.
    End { before: Option<EventId> },
    /// What comes before this event, which is the first one that is known.
    Before(EventId),
    /// What comes after this event, which is the last one that is known.
    After(EventId),
    /// Both sides of this event.
    Around(EventId),
}

impl WindowPart {
    /// Whether it takes the place of what was read before.
    pub fn replaces(self) -> bool {
        matches!(self, Self::End { .. } | Self::Around(_))
    }
}

/// A part of the log as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    pub records: Vec<Record>,
    /// The window begins after this event.
    pub from: EventId,
    /// There is something before it.
    pub more: bool,
    /// The window ends with this event.
    pub to: EventId,
    /// There is something after it.
    pub later: bool,
}

/// The end of what was said in one agent before another one was forked from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Ancestor {
    pub agent: AgentId,
    /// The last message of it that was inherited.
    pub upto: EventId,
    /// When the next one was forked from it.
    pub forked: Timestamp,
    pub records: Vec<Record>,
}

/// What the whole of a conversation is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whole {
    Copy,
    /// In the pager; with everything that is folded, or as it is on the screen.
    Page {
        full: bool,
    },
}
