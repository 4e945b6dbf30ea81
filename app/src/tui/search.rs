//! A search in a conversation: what was found in the windows that were looked at, and what the log has elsewhere. Pure.

use super::conversation::{Block, BlockKind, ConversationView, blocks};
use super::field::Field;
use super::flow;
use super::model::{BlockKey, ScrollPosition};
use super::tool::ToolOutcome;
use hatchery_core::event::MessageEvent;
use hatchery_core::{AgentId, Event, EventId, MessageKind, Record};

/// The most matches that are found: a person does not go through more of them one by one.
pub const MAX_FOUND: usize = 1_000;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    pub words: Field,
    /// The words are still typed.
    pub typing: bool,
    /// The items that match, in order. One outside of the window has the event that matches.
    pub found: Vec<BlockKey>,
    pub at: usize,
    /// Where you were before.
    pub back: ScrollPosition,
    /// How far back the log was searched; none when all of it was.
    pub upto: Option<EventId>,
    /// The windows that were looked at: from after one event to another one.
    looked: Vec<(EventId, EventId)>,
}

impl Search {
    pub fn begin(back: ScrollPosition) -> Self {
        Self { typing: true, back, ..Self::default() }
    }

    /// The words as they are compared.
    pub fn wanted(&self) -> String {
        self.words.whole().to_lowercase()
    }

    /// Other words: nothing is known of them.
    pub fn restart(&mut self) {
        (self.found, self.at, self.looked, self.upto) = (Vec::new(), 0, Vec::new(), None);
    }

    pub fn current(&self) -> Option<BlockKey> {
        self.found.get(self.at).copied()
    }

    /// Whether this item matches, and is open while one searches.
    pub fn has(&self, id: EventId) -> bool {
        let at = self.found.partition_point(|key| key.0 < id);
        self.found.get(at).is_some_and(|key| key.0 == id)
    }

    /// Looks in the window of a conversation. What is known of this part of the log is replaced by it.
    pub fn look_in(&mut self, talk: &ConversationView) {
        let words = self.wanted();
        let from = if talk.more { talk.from } else { EventId::START };
        let to = if talk.later { talk.to } else { EventId(u64::MAX) };
        let current = self.current();
        let inherited = talk.inherited.iter().flat_map(|inherited| &inherited.blocks);
        let matches = |block: &&Block| !words.is_empty() && flow::source(block).to_lowercase().contains(&words);
        let key = |block: &Block| BlockKey(block.id, u8::from(matches!(block.kind, BlockKind::Here { .. })));
        let here: Vec<BlockKey> = inherited.chain(talk.blocks()).filter(matches).map(key).collect();
        // A tool at an end of the window may have its call or its output outside of it: what the log has found of it stays.
        let is_here = |id: EventId| {
            let block = talk.blocks()[..talk.blocks().partition_point(|block| block.id <= id)].last();
            block.is_some_and(|block| here.contains(&key(block)))
        };
        self.found.retain(|found| found.0 <= from || found.0 > to || !is_here(found.0));
        self.found.extend(here);
        let first = talk.blocks().first().map_or(from, |block| block.id.before());
        self.looked.push((first.max(from), to));
        self.settle(current);
    }

    /// The log has these matches. Those of windows that were looked at are known already.
    pub fn add(&mut self, ids: impl Iterator<Item = EventId>) {
        let current = self.current();
        let looked = &self.looked;
        let is_new = |id: &EventId| !looked.iter().any(|(from, to)| *id > *from && *id <= *to);
        self.found.extend(ids.filter(is_new).map(|id| BlockKey(id, 0)));
        self.settle(current);
    }

    /// The same match stays chosen; at first it is the last one.
    fn settle(&mut self, current: Option<BlockKey>) {
        self.found.sort();
        self.found.dedup();
        self.at = match current {
            Some(current) => self.found.partition_point(|key| *key <= current).saturating_sub(1),
            None => self.found.len().saturating_sub(1),
        };
    }
}

/// Whether people would find the words in an event. The daemon looks for them in the whole record, where names of fields are as well.
pub fn is_in(agent: AgentId, record: &Record, words: &str) -> bool {
    let text = match &record.event {
        Event::Message(MessageEvent::Added { kind: MessageKind::ToolResult, content, .. }) => {
            ToolOutcome::read(content, record.ts).text
        }
        _ => {
            let blocks = blocks(agent, false, std::slice::from_ref(record));
            blocks.iter().map(flow::source).collect()
        }
    };
    text.to_lowercase().contains(words)
}
