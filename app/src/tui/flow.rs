//! A conversation as rows: which items there are, how each is laid out, and which rows are in sight. Only what is in sight is laid out,
//! however long the conversation is. Pure.

mod ask;
mod blocks;
mod lines;
mod tools;

use super::conversation::{Asked, Block, BlockKind, ConversationView};
use super::look::{Ink, Look};
use super::model::{BlockKey, Desk, Model, Outgoing, ScrollPosition, TextUnderWay};
use super::panel::Side;
use super::text;
use hatchery_core::partial::PartialKind;
use ratatui::text::Line;
use std::collections::BTreeMap;

pub use blocks::crashed;
pub use lines::number;

/// So many tools in a row are folded to one line.
const GROUP: usize = 5;
/// An agent that speaks on is named again after so long, so that the time of what it says can be seen.
const NAMED_AGAIN_MS: i64 = 5 * 60_000;
/// Below so many cells, lines say less.
const NARROW: usize = 61;
/// Text is not wider than this, so that the eye finds the next line.
const MAX_TEXT: usize = 96;

/// A row of the conversation on the screen.
#[derive(Clone, Debug)]
pub struct FlowRow {
    pub item: BlockKey,
    /// The line in its item.
    pub line: usize,
    pub text: Line<'static>,
}

/// Something that stands in the conversation.
#[derive(Clone, Copy, Debug)]
enum FlowItem<'a> {
    Inherited { open: bool },
    Block { block: &'a Block, inherited: bool, header: bool },
    ForkLine,
    Group { blocks: &'a [Block], inherited: bool },
    NewSince,
    Starting,
    Waiting(&'a Outgoing),
    Partial(&'a TextUnderWay),
}

/// The conversation of the current agent, ready to be laid out.
#[derive(Debug)]
pub struct Flow<'a> {
    model: &'a Model,
    desk: &'a Desk,
    talk: &'a ConversationView,
    items: Vec<(BlockKey, FlowItem<'a>, bool)>,
    cells: usize,
    /// How much of one text is laid out, in bytes.
    most: usize,
}

impl<'a> Flow<'a> {
    pub fn new(model: &'a Model, cells: usize) -> Option<Self> {
        Some(Self::of(model, model.desk(), model.talk()?, cells))
    }

    /// The same with another part of the conversation, or other folds.
    pub fn of(model: &'a Model, desk: &'a Desk, talk: &'a ConversationView, cells: usize) -> Self {
        let mut flow = Self { model, desk, talk, items: Vec::new(), cells, most: lines::MAX_SHOWN_BYTES };
        flow.collect();
        flow
    }

    /// The same with long texts whole: for a pager, and not for a frame.
    pub fn whole(self) -> Self {
        Self { most: usize::MAX, ..self }
    }

    /// The place at the end of what is here. Only where nothing comes after it, one follows what arrives.
    pub fn end(&self, height: usize) -> ScrollPosition {
        match self.last_rows(height).first() {
            Some(row) if self.talk.later => ScrollPosition::At { item: row.item, line: row.line },
            _ => ScrollPosition::End,
        }
    }

    /// How many items come after the one at the top of the screen.
    pub fn items_below(&self) -> usize {
        match self.desk.place {
            ScrollPosition::At { item, .. } => self.items.len() - self.items.partition_point(|(key, ..)| *key <= item),
            ScrollPosition::End => 0,
        }
    }

    /// The rows that are in sight.
    pub fn visible(&self, height: usize) -> Vec<FlowRow> {
        match self.desk.place {
            ScrollPosition::End => self.last_rows(height),
            ScrollPosition::At { item, line } => match self.rows_from(item, line, height) {
                rows if rows.len() < height => self.last_rows(height),
                rows => rows,
            },
        }
    }

    fn last_rows(&self, height: usize) -> Vec<FlowRow> {
        let mut rows: Vec<FlowRow> = Vec::new();
        for at in (0..self.items.len()).rev() {
            let mut laid = self.rows(at);
            laid.append(&mut rows);
            rows = laid;
            if rows.len() >= height {
                break;
            }
        }
        rows.split_off(rows.len().saturating_sub(height))
    }

    fn rows_from(&self, item: BlockKey, line: usize, height: usize) -> Vec<FlowRow> {
        // An item that is gone (a folded group) is where the next one is.
        let start = self.items.partition_point(|(key, ..)| *key < item).min(self.items.len().saturating_sub(1));
        let mut rows = Vec::new();
        for at in start..self.items.len() {
            let skipped = if self.items[at].0 == item { line } else { 0 };
            rows.extend(self.rows(at).into_iter().skip(skipped));
            if rows.len() >= height {
                break;
            }
        }
        rows.truncate(height);
        rows
    }

    /// Where one is after scrolling by so many rows, and whether the begin was reached.
    pub fn scrolled(&self, by: isize, height: usize) -> (ScrollPosition, bool) {
        let visible = self.visible(height);
        let Some(top) = visible.first() else { return (ScrollPosition::End, true) };
        let Some(mut at) = self.items.iter().position(|(key, ..)| *key == top.item) else {
            return (ScrollPosition::End, true);
        };
        if by < 0 {
            let mut line = top.line;
            let mut left = by.unsigned_abs();
            let mut begin = false;
            while left > 0 {
                if line > 0 {
                    let step = left.min(line);
                    (line, left) = (line - step, left - step);
                } else if at > 0 {
                    at -= 1;
                    line = self.rows(at).len();
                } else {
                    begin = true;
                    break;
                }
            }
            // A short conversation stands at the bottom and cannot be scrolled.
            if visible.len() < height {
                return (self.end(height), true);
            }
            let line = line.min(self.rows(at).len().saturating_sub(1));
            return (ScrollPosition::At { item: self.items[at].0, line }, begin);
        }
        let mut left = by.unsigned_abs();
        let mut line = top.line;
        while left > 0 && at < self.items.len() {
            let rest = self.rows(at).len() - line;
            if left < rest {
                line += left;
                left = 0;
            } else {
                left -= rest;
                (at, line) = (at + 1, 0);
            }
        }
        if at >= self.items.len() {
            return (self.end(height), false);
        }
        let item = self.items[at].0;
        match self.rows_from(item, line, height + 1).len() > height {
            true => (ScrollPosition::At { item, line }, false),
            false => (self.end(height), false),
        }
    }

    /// Everything that is loaded.
    pub fn all_rows(&self) -> Vec<FlowRow> {
        (0..self.items.len()).flat_map(|at| self.rows(at)).collect()
    }

    /// The items, in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = BlockKey> + '_ {
        self.items.iter().map(|(key, ..)| *key)
    }

    /// The place with an item in sight, near the middle.
    pub fn place_of(&self, item: BlockKey, height: usize) -> ScrollPosition {
        if self.visible(height).iter().any(|row| row.item == item) {
            return self.desk.place;
        }
        let Some(mut at) = self.items.iter().position(|(key, ..)| *key == item) else { return self.desk.place };
        let mut above = height / 3;
        let mut line = 0;
        while above > 0 && at > 0 {
            let rows = self.rows(at - 1).len();
            at -= 1;
            line = rows.saturating_sub(above);
            above = above.saturating_sub(rows);
        }
        let item = self.items[at].0;
        match self.rows_from(item, line, height).len() < height {
            true => self.end(height),
            false => ScrollPosition::At { item, line },
        }
    }

    /// What an item says, as its source: for copying and searching.
    pub fn source(&self, key: BlockKey) -> String {
        let found = self.items.iter().find(|(other, ..)| *other == key).map(|(_, item, _)| *item);
        match found {
            Some(FlowItem::Block { block, .. }) => match &block.kind {
                BlockKind::Note { text, .. } | BlockKind::Across { text } => {
                    let time = super::text::clock(block.at, self.model.offset_s);
                    super::words::named(self.model, &text.replace("{time}", &time))
                }
                _ => source(block),
            },
            Some(FlowItem::Group { blocks, .. }) => blocks.iter().map(source).collect::<Vec<_>>().join("\n"),
            Some(FlowItem::Waiting(outgoing)) => outgoing.field.whole(),
            Some(FlowItem::Partial(partial)) => partial.text.clone(),
            _ => String::new(),
        }
    }

    /// Whether an item is open: none when it cannot be folded.
    pub fn is_open(&self, key: BlockKey) -> Option<bool> {
        match self.items.iter().find(|(other, ..)| *other == key).map(|(_, item, _)| *item)? {
            FlowItem::Inherited { open } => Some(open),
            FlowItem::Group { .. } => Some(false),
            FlowItem::Block { block, .. } => match &block.kind {
                BlockKind::Tool(tool) => Some(self.opened(block, tool.opens_by_itself())),
                BlockKind::Thought { .. } => Some(self.opened(block, false)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether the item is a group of tools.
    pub fn is_group(&self, key: BlockKey) -> bool {
        self.items.iter().any(|(other, item, _)| *other == key && matches!(item, FlowItem::Group { .. }))
    }

    fn opened(&self, block: &Block, by_itself: bool) -> bool {
        self.is_found(block) || self.desk.folds.get(&block.id).copied().unwrap_or(by_itself)
    }

    /// What was searched for is seen, however it is folded.
    fn is_found(&self, block: &Block) -> bool {
        self.model.search.as_ref().is_some_and(|search| search.has(block.id))
    }

    fn collect(&mut self) {
        let talk = self.talk;
        // Until the begin is read, something is missing between the two parts.
        if let Some(inherited) = talk.inherited.as_ref().filter(|_| !talk.more) {
            let open = self.desk.inherited_open.unwrap_or(false) || inherited.blocks.iter().any(|it| self.is_found(it));
            self.push(BlockKey(hatchery_core::EventId::START, 0), FlowItem::Inherited { open });
            if open {
                self.push_blocks(&inherited.blocks, true);
            }
            self.push(BlockKey(inherited.upto, 250), FlowItem::ForkLine);
        }
        self.push_blocks(talk.blocks(), false);
        // The rest stands at the end of the conversation.
        if talk.later {
            return;
        }
        let last = talk.blocks().last().map_or(talk.upto(), |block| block.id);
        if talk.blocks().is_empty()
            || matches!(talk.blocks().last(), Some(Block { kind: BlockKind::ToAgent { .. }, .. }))
        {
            let starting = self.model.current.and_then(|agent| self.model.roster.agents.get(&agent));
            if starting.is_some_and(|agent| self.model.roster.state(agent) == super::roster::State::Starting) {
                self.push(BlockKey(last, 251), FlowItem::Starting);
            }
        }
        for (at, outgoing) in self.model.outbox.iter().filter(|it| Some(it.agent) == self.model.current).enumerate() {
            let number = u8::try_from(at.min(1)).unwrap_or(1);
            self.push(BlockKey(last, 252 + number), FlowItem::Waiting(outgoing));
        }
        if let Some(partial) = self.model.current.and_then(|agent| self.model.partial.get(&agent))
            && !partial.text.trim().is_empty()
        {
            self.push(BlockKey(last, 254), FlowItem::Partial(partial));
        }
    }

    fn push_blocks(&mut self, blocks: &'a [Block], inherited: bool) {
        let mut at = 0;
        // When the agent was last named as the speaker of this turn.
        let mut named: Option<i64> = None;
        let mut new_from = self.desk.new_from.filter(|_| !inherited);
        while at < blocks.len() {
            let run = blocks[at..].iter().take_while(|block| is_finished_tool(block)).count();
            let first = &blocks[at];
            if let Some((seen, _)) = new_from.take_if(|(seen, _)| first.id > *seen) {
                self.push(BlockKey(seen, 249), FlowItem::NewSince);
            }
            if run >= GROUP {
                let group = &blocks[at..at + run];
                let upto = group.last().map_or(first.id, |block| block.id);
                let is_open = self.desk.open_groups.contains(&first.id) || group.iter().any(|it| self.is_found(it));
                if upto <= self.desk.grouped && !is_open {
                    self.push(BlockKey(first.id, 0), FlowItem::Group { blocks: group, inherited });
                    at += run;
                    continue;
                }
            }
            at += 1;
            if self.is_hidden(first) {
                continue;
            }
            let header = named.is_none_or(|named| first.at.0 - named >= NAMED_AGAIN_MS);
            named = match first.kind {
                BlockKind::Spoken { .. } if header => Some(first.at.0),
                BlockKind::Spoken { .. } | BlockKind::Tool(_) | BlockKind::Thought { .. } => named,
                _ => None,
            };
            // Answers that are only here have the id of the block before them.
            let number = u8::from(matches!(first.kind, BlockKind::Here { .. }));
            self.push(BlockKey(first.id, number), FlowItem::Block { block: first, inherited, header });
        }
    }

    /// The line of a tool says what was answered to a request for it. While Home stands beside the conversation, the request
    /// itself is there.
    fn is_hidden(&self, block: &Block) -> bool {
        match block.kind {
            BlockKind::Ask { about: Asked::Permission, open, .. } => {
                !open || matches!(self.model.side, Some(Side::Home(_))) && self.model.size.0 >= super::draw::SIDE_FROM
            }
            _ => false,
        }
    }

    fn push(&mut self, key: BlockKey, item: FlowItem<'a>) {
        let blank = self.items.last().is_some_and(|(_, before, _)| needs_blank(before, &item));
        self.items.push((key, item, blank));
    }

    fn rows(&self, at: usize) -> Vec<FlowRow> {
        let (key, item, blank) = &self.items[at];
        let chosen = self.desk.chosen == Some(*key) && self.model.focus == super::model::Focus::Browse;
        let mut lines = self.lay(item, chosen);
        if let Some(search) = &self.model.search
            && search.found.contains(key)
        {
            lines = lines.into_iter().map(|line| lines::marked(line, &search.words.whole(), self.look())).collect();
        }
        if *blank {
            let inherited =
                matches!(item, FlowItem::Block { inherited: true, .. } | FlowItem::Group { inherited: true, .. });
            lines.insert(0, if inherited { Line::styled("╎", self.look().style(Ink::Dim)) } else { Line::default() });
        }
        lines.into_iter().enumerate().map(|(line, text)| FlowRow { item: *key, line, text }).collect()
    }

    fn look(&self) -> Look {
        self.model.look
    }
}

fn is_finished_tool(block: &Block) -> bool {
    matches!(&block.kind, BlockKind::Tool(tool) if tool.outcome.is_some() || tool.denied.is_some())
}

/// Whether a blank row divides two items. Tools and thoughts stand together, and so do notes.
fn needs_blank(before: &FlowItem<'_>, item: &FlowItem<'_>) -> bool {
    #[derive(PartialEq)]
    enum Class {
        Work,
        Note,
        Across,
        Edge,
        Text,
    }
    let class = |item: &FlowItem<'_>| match item {
        FlowItem::Group { .. } => Class::Work,
        FlowItem::ForkLine | FlowItem::NewSince => Class::Across,
        FlowItem::Inherited { .. } => Class::Edge,
        FlowItem::Partial(TextUnderWay { kind: PartialKind::Thinking, .. }) => Class::Work,
        FlowItem::Starting | FlowItem::Waiting(_) | FlowItem::Partial(_) => Class::Text,
        FlowItem::Block { block, .. } => match block.kind {
            BlockKind::Tool(_) | BlockKind::Thought { .. } => Class::Work,
            BlockKind::Note { .. } | BlockKind::Crashed { .. } => Class::Note,
            BlockKind::Across { .. } => Class::Across,
            _ => Class::Text,
        },
    };
    let together = matches!(
        (class(before), class(item)),
        (_, Class::Across) | (Class::Edge, _) | (Class::Work, Class::Work) | (Class::Note, Class::Note)
    );
    !together
}

/// What a block says, as its source.
pub fn source(block: &Block) -> String {
    match &block.kind {
        BlockKind::ToAgent { text, .. } | BlockKind::Spoken { text, .. } | BlockKind::Thought { text, .. } => {
            text.clone()
        }
        BlockKind::Note { text, .. }
        | BlockKind::Across { text }
        | BlockKind::Here { text }
        | BlockKind::Ask { text, .. } => text.clone(),
        BlockKind::Crashed { what, .. } => what.clone(),
        BlockKind::Interrupted => String::new(),
        BlockKind::Tool(tool) => {
            let result = tool.outcome.as_ref().map(|outcome| text::without_escapes(&outcome.text)).unwrap_or_default();
            let input: BTreeMap<String, serde_json::Value> =
                serde_json::from_value(tool.input.clone()).unwrap_or_default();
            let input: Vec<String> = input.values().filter_map(|value| value.as_str().map(str::to_owned)).collect();
            format!("{} {}\n{result}", tool.name, input.join("\n"))
        }
    }
}
