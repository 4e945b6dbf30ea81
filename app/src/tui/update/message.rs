//! What can happen to the model, and what an answer of the daemon is to.

use super::Attached;
use crate::http::{AgentView, Overview};
use crate::live_text::LivePiece;
use crate::quest_document::QuestDocument;
use crate::report::Report;
use crate::tui::field::Field;
use crate::tui::panel::SheetKind;
use crate::tui::window::{Ancestor, Whole, Window, WindowPart};
use crossterm::event::{KeyEvent, MouseEvent};
use hatchery_core::{AgentId, EventId, Record, Timestamp};
use serde_json::Value;

/// Something happened.
#[derive(Debug)]
pub enum Msg {
    Key(KeyEvent),
    Paste(String),
    /// So many characters at once that they are a paste, though the terminal did not say so.
    TypedAtOnce(String),
    Mouse(MouseEvent),
    Resize(u16, u16),
    Tick(Timestamp),
    Overview(Box<Overview>),
    Quest(Box<QuestDocument>),
    Agent(Box<AgentView>),
    Agents(Vec<AgentView>),
    Events(Vec<Record>),
    /// Some more of what an agent is writing.
    Live {
        agent: AgentId,
        piece: LivePiece,
    },
    /// A part of a conversation.
    Window {
        agent: AgentId,
        part: WindowPart,
        result: Result<Window, Failed>,
    },
    /// All of a conversation.
    Whole {
        agent: AgentId,
        what: Whole,
        result: Result<Vec<Record>, Failed>,
    },
    /// The inherited part could not be read.
    NotInherited(AgentId),
    /// What an agent has from those before it, the oldest first. Without any, it has nothing.
    Inherited {
        agent: AgentId,
        from: AgentId,
        forked: Timestamp,
        count: Option<usize>,
        ancestors: Vec<Ancestor>,
    },
    /// What is wrong with the store, or nothing any more.
    Trouble(Option<String>),
    Up,
    /// The daemon cannot be reached, and why.
    Unreached(Report),
    /// Everything was heard up to this time.
    Away {
        since: Timestamp,
        again: Timestamp,
    },
    Answer {
        tag: Tag,
        result: Result<Value, Failed>,
    },
    /// What the editor left.
    Edited(String),
    Attached(Attached),
}

/// Why a request was not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failed {
    Refused {
        code: String,
        words: String,
    },
    /// There was no answer. It is not known whether the request was carried out, unless it was not even sent.
    Away {
        sent: bool,
    },
}

/// What an answer is to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tag {
    /// Something that was said: the number of the outgoing text.
    Say(u64),
    /// The first agent, or another one by `/run`.
    Run(String),
    /// A fork, with the child's first message, which is given back if the fork is refused.
    Fork {
        parent: AgentId,
        field: Option<Field>,
    },
    /// An answer to a question: the key of its need, and who asked, if that is known here.
    Answer {
        need: String,
        agent: Option<AgentId>,
        words: String,
    },
    /// A command whose success is one sentence. On failure the text comes back.
    Done {
        words: String,
        text: String,
    },
    /// A new quest. Its ward is tried before it begins.
    NewQuest {
        /// It is created paused, and stays so.
        hold: bool,
        text: String,
    },
    /// The trial of the ward of a new quest.
    Trial,
    /// The mail that was waited for.
    Waited,
    /// The conversations that can be adopted.
    Adoptable,
    Adopted {
        text: String,
    },
    KillPreview {
        agent: AgentId,
        cascade: bool,
    },
    /// A list, and the agent that it is about.
    Sheet(SheetKind, Option<AgentId>),
    /// More of the log, before this event.
    MoreOfLog {
        agent: Option<AgentId>,
        before: EventId,
    },
    /// One event, to be shown as it is.
    Event(EventId),
    /// The event that one wants to go to.
    Goto {
        agent: AgentId,
        id: EventId,
    },
    File(String),
    Mail,
    Ward {
        step: String,
    },
    Count(String),
    /// How much an agent has changed.
    Changes(AgentId),
    /// The files of an agent's folder.
    Files(AgentId),
    Search {
        agent: AgentId,
        words: String,
    },
}

/// Why a request was not carried out, as a sentence.
pub fn words(why: &Failed) -> String {
    match why {
        Failed::Refused { words, .. } => words.clone(),
        Failed::Away { .. } => "The daemon did not answer.".to_owned(),
    }
}
