//! What the model wants to be done outside.

use super::Tag;
use crate::tui::window::{Whole, WindowPart};
use hatchery_core::{AgentId, EventId, QuestId, Timestamp};
use serde_json::Value;

/// Something to do outside.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    Load {
        agent: AgentId,
        part: WindowPart,
    },
    /// Reads all of a conversation.
    Whole {
        agent: AgentId,
        what: Whole,
    },
    /// Reads the end of what an agent has from the one that it was forked from, and from those before it.
    LoadInherited {
        agent: AgentId,
        from: AgentId,
        /// The last message that it has of it. None if there was none yet.
        upto: Option<EventId>,
        forked: Timestamp,
        count: bool,
    },
    Get {
        tag: Tag,
        path: String,
    },
    Post {
        tag: Tag,
        path: String,
        body: Value,
    },
    Refresh,
    Quest(QuestId),
    Agent(AgentId),
    /// All agents, for the finder.
    AllAgents,
    Copy(String),
    Editor(String),
    Pager(String),
    Suspend,
    Redraw,
    TryAgain,
    Bell,
    Mouse(bool),
    Attach(Attach),
}

/// What is added to your text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attach {
    /// A file of this machine, from the project on.
    File(String),
    /// A paste that is too long for a message: it becomes a file.
    Paste(String),
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attached {
    /// A text that fits into a message.
    Text { path: String, text: String },
    /// Something that the agent reads itself.
    Path { path: String, bytes: u64 },
    Failed {
        why: String,
        /// What was asked for, to be corrected.
        command: String,
    },
}
