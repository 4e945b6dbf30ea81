//! What lies over the conversation for a moment: the finder, the keys, a kill, a completion, a proposed command.

use super::field::Field;
use hatchery_core::{AgentId, EventId, QuestId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Overlay {
    Finder(Finder),
    Help(Help),
    Kill(KillAsk),
    /// Entries that fit what is being typed. The keys stay with the text.
    Suggest(Suggest),
    /// A command on the bottom line: proposed by a letter, or typed after `:`.
    Propose(Field),
    /// `^R`: words that are looked for in what was typed before.
    Recall {
        words: Field,
        at: usize,
    },
    /// `#`: an event to go to.
    Goto(Field),
    /// A text of its own: one event, a file's changes, a mail.
    Reader(TextReader),
}

impl Overlay {
    /// Whether keys go to it instead of the text.
    pub fn takes_keys(&self) -> bool {
        !matches!(self, Self::Suggest(_))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finder {
    pub words: Field,
    pub at: usize,
    /// Tab: only what can be done with this one.
    pub with: Option<AgentId>,
    /// How many events have the words in them, once that is known.
    pub events: Option<(String, u64)>,
}

/// One entry of the finder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinderEntry {
    pub section: &'static str,
    pub act: Act,
    pub left: String,
    pub middle: String,
    pub right: String,
    pub end: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    Go(AgentId),
    Quest(QuestId),
    /// Search the log of the current agent for these words.
    Log(String),
    /// Put this command where it can be completed.
    Propose(String),
    /// Carry this key out.
    Key(char),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Help {
    pub words: Field,
    /// None before one was chosen.
    pub at: Option<usize>,
    pub page: usize,
}

/// What a kill would do, in both forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KillAsk {
    pub agent: AgentId,
    pub remark: Option<String>,
    pub alone: Option<Preview>,
    pub cascade: Option<Preview>,
    pub choice: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preview {
    pub killed: Vec<AgentId>,
    pub moved: Vec<(AgentId, AgentId)>,
    pub stopped: Vec<AgentId>,
    pub withdrawn: Vec<EventId>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggest {
    /// The byte at which the completed word begins.
    pub from: usize,
    pub entries: Vec<Suggestion>,
    /// Chosen by Tab or ↓. Enter takes an entry only then.
    pub at: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggestion {
    pub insert: String,
    pub left: String,
    pub right: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextReader {
    pub title: String,
    pub text: String,
    pub top: usize,
}
