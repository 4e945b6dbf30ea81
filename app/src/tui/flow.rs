//! A conversation as rows: which items there are, how each is laid out, and which rows are in sight. Only what is in sight is laid out,
//! however long the conversation is. Pure.

use super::conversation::{Block, Conversation, Kind};
use super::look::{Ink, Look};
use super::markdown;
use super::model::{Desk, Key, Model, Outgoing, Place};
use super::text;
use super::tool::{Tool, ToolLine};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use std::collections::BTreeMap;

/// So many tools in a row are folded to one line.
const GROUP: usize = 5;
/// How many lines of a change are shown, and of the begin and the end of an output.
const SHOWN_CHANGES: usize = 8;
const SHOWN_OUTPUT: usize = 8;
/// Text is not wider than this, so that the eye finds the next line.
const MAX_TEXT: usize = 96;
/// A longer text is cut on the screen. `v` shows it whole.
const MAX_SHOWN_BYTES: usize = 64 << 10;

/// A row of the conversation on the screen.
#[derive(Clone, Debug)]
pub struct Row {
    pub item: Key,
    /// The line in its item.
    pub line: usize,
    pub text: Line<'static>,
}

/// Something that stands in the conversation.
#[derive(Clone, Copy, Debug)]
enum Item<'a> {
    Inherited { open: bool },
    Block { block: &'a Block, inherited: bool, header: bool },
    ForkLine,
    Group(&'a [Block]),
    NewSince,
    Starting,
    Waiting(&'a Outgoing),
    Partial(&'a str),
}

/// The conversation of the current agent, ready to be laid out.
#[derive(Debug)]
pub struct Flow<'a> {
    model: &'a Model,
    desk: &'a Desk,
    talk: &'a Conversation,
    items: Vec<(Key, Item<'a>, bool)>,
    cells: usize,
}

impl<'a> Flow<'a> {
    pub fn new(model: &'a Model, cells: usize) -> Option<Self> {
        let talk = model.talk()?;
        let desk = model.desk();
        let mut flow = Self { model, desk, talk, items: Vec::new(), cells };
        flow.collect();
        Some(flow)
    }

    /// The rows that are in sight.
    pub fn visible(&self, height: usize) -> Vec<Row> {
        match self.desk.place {
            Place::End => self.last_rows(height),
            Place::At { item, line } => match self.rows_from(item, line, height) {
                rows if rows.len() < height => self.last_rows(height),
                rows => rows,
            },
        }
    }

    fn last_rows(&self, height: usize) -> Vec<Row> {
        let mut rows: Vec<Row> = Vec::new();
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

    fn rows_from(&self, item: Key, line: usize, height: usize) -> Vec<Row> {
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
    pub fn scrolled(&self, by: isize, height: usize) -> (Place, bool) {
        let visible = self.visible(height);
        let Some(top) = visible.first() else { return (Place::End, true) };
        let Some(mut at) = self.items.iter().position(|(key, ..)| *key == top.item) else { return (Place::End, true) };
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
                return (Place::End, true);
            }
            let line = line.min(self.rows(at).len().saturating_sub(1));
            return (Place::At { item: self.items[at].0, line }, begin);
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
            return (Place::End, false);
        }
        let item = self.items[at].0;
        match self.rows_from(item, line, height + 1).len() > height {
            true => (Place::At { item, line }, false),
            false => (Place::End, false),
        }
    }

    /// Everything that is loaded.
    pub fn all_rows(&self) -> Vec<Row> {
        (0..self.items.len()).flat_map(|at| self.rows(at)).collect()
    }

    /// The items, in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = Key> + '_ {
        self.items.iter().map(|(key, ..)| *key)
    }

    /// The place with an item in sight, near the middle.
    pub fn place_of(&self, item: Key, height: usize) -> Place {
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
            true => Place::End,
            false => Place::At { item, line },
        }
    }

    /// What an item says, as its source: for copying and searching.
    pub fn source(&self, key: Key) -> String {
        let found = self.items.iter().find(|(other, ..)| *other == key).map(|(_, item, _)| *item);
        match found {
            Some(Item::Block { block, .. }) => source(block),
            Some(Item::Group(blocks)) => blocks.iter().map(source).collect::<Vec<_>>().join("\n"),
            Some(Item::Waiting(outgoing)) => outgoing.field.whole(),
            Some(Item::Partial(text)) => text.to_owned(),
            _ => String::new(),
        }
    }

    /// Whether an item is open: none when it cannot be folded.
    pub fn is_open(&self, key: Key) -> Option<bool> {
        match self.items.iter().find(|(other, ..)| *other == key).map(|(_, item, _)| *item)? {
            Item::Inherited { open } => Some(open),
            Item::Group(_) => Some(false),
            Item::Block { block, .. } => match &block.kind {
                Kind::Tool(tool) => Some(self.opened(block, tool.opens_by_itself())),
                Kind::Thought { .. } => Some(self.opened(block, false)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether the item is a group of tools.
    pub fn is_group(&self, key: Key) -> bool {
        self.items.iter().any(|(other, item, _)| *other == key && matches!(item, Item::Group(_)))
    }

    fn opened(&self, block: &Block, by_itself: bool) -> bool {
        self.desk.folds.get(&block.id).copied().unwrap_or(by_itself)
    }

    fn collect(&mut self) {
        let talk = self.talk;
        if let Some(inherited) = &talk.inherited {
            let open = self.desk.inherited_open.unwrap_or(false);
            self.push(Key(hatchery_core::EventId::START, 0), Item::Inherited { open });
            if open {
                self.push_blocks(&inherited.blocks, true);
            }
            self.push(Key(inherited.upto, 250), Item::ForkLine);
        }
        self.push_blocks(talk.blocks(), false);
        let last = talk.blocks().last().map_or(talk.upto(), |block| block.id);
        if talk.blocks().is_empty() || matches!(talk.blocks().last(), Some(Block { kind: Kind::ToAgent { .. }, .. })) {
            let starting = self.model.current.and_then(|agent| self.model.roster.agents.get(&agent));
            if starting.is_some_and(|agent| self.model.roster.state(agent) == super::roster::State::Starting) {
                self.push(Key(last, 251), Item::Starting);
            }
        }
        for (at, outgoing) in self.model.outbox.iter().filter(|it| Some(it.agent) == self.model.current).enumerate() {
            let number = u8::try_from(at.min(1)).unwrap_or(1);
            self.push(Key(last, 252 + number), Item::Waiting(outgoing));
        }
        if let Some(partial) = self.model.current.and_then(|agent| self.model.partial.get(&agent))
            && !partial.trim().is_empty()
        {
            self.push(Key(last, 254), Item::Partial(partial));
        }
    }

    fn push_blocks(&mut self, blocks: &'a [Block], inherited: bool) {
        let mut at = 0;
        while at < blocks.len() {
            let run = blocks[at..].iter().take_while(|block| is_finished_tool(block)).count();
            let first = &blocks[at];
            if let Some((seen, _)) = self.desk.new_from
                && !inherited
                && first.id > seen
                && !self.items.iter().any(|(_, item, _)| matches!(item, Item::NewSince))
            {
                self.push(Key(seen, 249), Item::NewSince);
            }
            if run >= GROUP {
                let group = &blocks[at..at + run];
                let upto = group.last().map_or(first.id, |block| block.id);
                if upto <= self.desk.grouped && !self.desk.open_groups.contains(&first.id) {
                    self.push(Key(first.id, 0), Item::Group(group));
                    at += run;
                    continue;
                }
            }
            let before = at.checked_sub(1).map(|before| &blocks[before].kind);
            let header = !matches!((before, &first.kind), (Some(Kind::Spoken { .. }), Kind::Spoken { .. }));
            // Answers that are only here have the id of the block before them.
            let number = u8::from(matches!(first.kind, Kind::Here { .. }));
            self.push(Key(first.id, number), Item::Block { block: first, inherited, header });
            at += 1;
        }
    }

    fn push(&mut self, key: Key, item: Item<'a>) {
        let blank = self.items.last().is_some_and(|(_, before, _)| needs_blank(before, &item));
        self.items.push((key, item, blank));
    }

    fn rows(&self, at: usize) -> Vec<Row> {
        let (key, item, blank) = &self.items[at];
        let chosen = self.desk.chosen == Some(*key) && self.model.focus == super::model::Focus::Browse;
        let mut lines = self.lay(item, chosen);
        if let Some(search) = &self.model.search
            && search.found.contains(key)
        {
            lines = lines.into_iter().map(|line| marked(line, &search.words.whole(), self.look())).collect();
        }
        if *blank {
            let inherited = matches!(item, Item::Block { inherited: true, .. });
            lines.insert(0, if inherited { Line::styled("╎", self.look().style(Ink::Dim)) } else { Line::default() });
        }
        lines.into_iter().enumerate().map(|(line, text)| Row { item: *key, line, text }).collect()
    }

    fn look(&self) -> Look {
        self.model.look
    }

    fn lay(&self, item: &Item<'_>, chosen: bool) -> Vec<Line<'static>> {
        let dim = self.look().style(Ink::Dim);
        match item {
            Item::Inherited { open } => vec![self.inherited_line(*open, chosen)],
            Item::ForkLine => vec![self.fork_line()],
            Item::NewSince => {
                let since = self.desk.new_from.map(|(_, left)| self.time(left)).unwrap_or_default();
                vec![across(&format!("new since {since}"), self.cells, dim)]
            }
            Item::Group(blocks) => vec![self.group_line(blocks, chosen)],
            Item::Starting => {
                let evidence = self.model.current.and_then(|agent| self.model.roster.agents.get(&agent));
                let what = evidence.and_then(|agent| agent.evidence.first()).map_or("", |it| it.what.as_str());
                vec![Line::styled(text::cut(&format!("  starting: {what}"), self.cells), dim)]
            }
            Item::Waiting(outgoing) => self.waiting(outgoing),
            Item::Partial(text) => {
                let shown = format!("{}…", text.trim_end().trim_end_matches('…'));
                indented(markdown::lay(&shown, self.text_cells(), self.look()))
            }
            Item::Block { block, inherited: false, header } => self.block(block, *header, chosen, self.cells),
            Item::Block { block, inherited: true, header } => {
                let edge = || Span::styled("╎ ", dim);
                let lines = self.block(block, *header, chosen, self.cells - 2);
                let moved = |line: Line<'static>| {
                    let mut spans = vec![edge()];
                    spans.extend(line.spans.into_iter().map(|span| {
                        let style = span.style.patch(dim);
                        span.style(style)
                    }));
                    Line::from(spans)
                };
                lines.into_iter().map(moved).collect()
            }
        }
    }

    fn text_cells(&self) -> usize {
        self.cells.saturating_sub(3).clamp(4, MAX_TEXT)
    }

    fn time(&self, at: hatchery_core::Timestamp) -> String {
        text::clock(at, self.model.offset_s)
    }

    fn block(&self, block: &Block, header: bool, chosen: bool, cells: usize) -> Vec<Line<'static>> {
        let look = self.look();
        let text_cells = cells.saturating_sub(3).clamp(4, MAX_TEXT);
        match &block.kind {
            Kind::ToAgent { text, heard } => {
                let pending = !heard && self.may_be_unheard(block);
                let right = match pending {
                    true => "not heard yet: it hears this when its turn ends".to_owned(),
                    false => number(block.id),
                };
                let by = if self.is_assigned() { "Hatchery" } else { "You" };
                let mut lines = vec![self.header(by, block.at, &right, chosen, cells)];
                lines.extend(said(text, text_cells, look, pending));
                lines
            }
            Kind::Spoken { text, reaches_model } => {
                let mut lines = Vec::new();
                if header {
                    let name = self.model.name(self.speaker(block));
                    lines.push(self.header(&name, block.at, &number(block.id), chosen, cells));
                }
                let laid = indented(markdown::lay(shortened(text), text_cells, look));
                let dim = look.style(Ink::Dim);
                lines.extend(laid.into_iter().map(|line| if *reaches_model { line } else { line.patch_style(dim) }));
                lines
            }
            Kind::Thought { text, lasted_ms } => self.thought(block, text, *lasted_ms, chosen, cells),
            Kind::Tool(tool) => self.tool(block, tool, chosen, cells),
            Kind::Note { text, bad } => {
                let words = format!("{}  {}", self.named(text), number(block.id));
                note(
                    &self.time(block.at),
                    &words,
                    text_cells,
                    look.style(if *bad { Ink::Bad } else { Ink::Dim }),
                    chosen,
                    look,
                )
            }
            Kind::Across { text } => {
                let words = self.named(&text.replace("{time}", &self.time(block.at)));
                vec![across(&words, cells, look.style(Ink::Dim))]
            }
            Kind::Interrupted => {
                let sentence = format!(
                    "You interrupted it. What it said in this turn does not reach the model.  {}",
                    number(block.id)
                );
                note(&self.time(block.at), &sentence, text_cells, Style::new(), chosen, look)
            }
            Kind::Ask { text, answer, open } => self.ask(block, text, answer.as_deref(), *open, cells),
            Kind::Here { text } => {
                let dim = look.style(Ink::Dim);
                let mut lines = vec![Line::styled("  only here, not in the history", dim)];
                let laid = indented(markdown::lay(text, text_cells, look));
                lines.extend(laid.into_iter().map(|line| line.style(dim)));
                lines
            }
        }
    }

    /// Which agent said a block: its own, or the one that it was inherited from.
    fn speaker(&self, block: &Block) -> hatchery_core::AgentId {
        let inherited =
            self.talk.inherited.as_ref().filter(|it| block.id <= it.upto && it.blocks.iter().any(|b| b.id == block.id));
        inherited.map_or(self.talk.agent, |it| it.from)
    }

    fn is_assigned(&self) -> bool {
        self.model.roster.agents.get(&self.talk.agent).is_some_and(|agent| agent.view.assignment.is_some())
    }

    /// Only the last thing that was said can be unheard; imported messages never were heard by a process of ours.
    fn may_be_unheard(&self, block: &Block) -> bool {
        let later = self.talk.blocks().iter().rev().take_while(|it| it.id > block.id);
        let in_turn = self.model.roster.agents.get(&self.talk.agent).is_some_and(|agent| {
            use super::roster::State;
            matches!(self.model.roster.state(agent), State::Working | State::Asks | State::Silent | State::Parked)
        });
        in_turn && later.clone().all(|it| !matches!(it.kind, Kind::Spoken { .. } | Kind::Tool(_)))
    }

    fn named(&self, text: &str) -> String {
        let mut out = text::clean(text).into_owned();
        while let Some(from) = out.find("{agent:") {
            let Some(length) = out[from..].find('}') else { break };
            let name = out[from + 7..from + length].parse().map(|agent| self.model.name(agent)).unwrap_or_default();
            out.replace_range(from..=from + length, &name);
        }
        out
    }

    fn header(
        &self,
        name: &str,
        at: hatchery_core::Timestamp,
        right: &str,
        chosen: bool,
        cells: usize,
    ) -> Line<'static> {
        let look = self.look();
        let mut spans = Vec::new();
        if chosen {
            spans.push(Span::styled("❯ ", look.style(Ink::Accent)));
        }
        spans.push(Span::styled(text::cut(name, cells / 2), look.style(Ink::Bold)));
        spans.push(Span::styled(
            text::cut(&format!("  {}  {right}", self.time(at)), cells.saturating_sub(text::width(name) + 1)),
            look.style(Ink::Dim),
        ));
        Line::from(spans)
    }

    fn waiting(&self, outgoing: &Outgoing) -> Vec<Line<'static>> {
        let look = self.look();
        let state = match (outgoing.sending, self.model.link) {
            (true, _) => "sending",
            (false, _) => "will be sent",
        };
        let mut lines = vec![self.header("You", outgoing.at, state, false, self.cells)];
        lines.extend(said(&outgoing.field.shown(), self.text_cells(), look, true));
        lines
    }

    fn inherited_line(&self, open: bool, chosen: bool) -> Line<'static> {
        let look = self.look();
        let Some(inherited) = &self.talk.inherited else { return Line::default() };
        let count =
            inherited.count.map_or_else(|| "messages".to_owned(), |count| super::words::counted(count, "message"));
        let words =
            format!("{count} inherited from {}, up to {}", self.model.name(inherited.from), number(inherited.upto));
        let mark = if chosen { "❯" } else { if open { "▾" } else { "▸" } };
        let ink = look.style(if chosen { Ink::Accent } else { Ink::Dim });
        Line::from(vec![
            Span::styled("╎ ", look.style(Ink::Dim)),
            Span::styled(format!("{mark} "), ink),
            Span::styled(text::cut(&words, self.cells.saturating_sub(5)), look.style(Ink::Dim)),
        ])
    }

    fn fork_line(&self) -> Line<'static> {
        let Some(inherited) = &self.talk.inherited else { return Line::default() };
        let begin = format!("forked from {} at {}", self.model.name(inherited.from), self.time(inherited.forked));
        let own = self.model.name(self.talk.agent);
        let forms = [
            format!("{begin} · from here on it is {own}'s own"),
            format!("{begin} · from here on its own"),
            begin.clone(),
        ];
        let fits = forms.iter().find(|form| text::width(form) + 6 <= self.cells).unwrap_or(&forms[2]);
        across(fits, self.cells, self.look().style(Ink::Dim))
    }

    fn group_line(&self, blocks: &[Block], chosen: bool) -> Line<'static> {
        let mut counts: Vec<(String, usize)> = Vec::new();
        for block in blocks {
            if let Kind::Tool(tool) = &block.kind {
                match counts.iter_mut().find(|(name, _)| *name == tool.name) {
                    Some((_, count)) => *count += 1,
                    None => counts.push((tool.name.clone(), 1)),
                }
            }
        }
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let words: Vec<String> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
        let begin = blocks.first().map_or(0, |block| block.at.0);
        let end = blocks.last().map_or(0, |block| match &block.kind {
            Kind::Tool(Tool { outcome: Some(outcome), .. }) => outcome.at.0,
            _ => block.at.0,
        });
        let left = format!("{} tool calls  {}", blocks.len(), text::clean(&words.join(", ")));
        self.foldable("▸", &left, Ink::Plain, &text::lasted(end - begin), Ink::Dim, chosen, self.cells)
    }

    fn thought(&self, block: &Block, thought: &str, lasted_ms: i64, chosen: bool, cells: usize) -> Vec<Line<'static>> {
        let open = self.opened(block, false);
        let lines = thought.lines().filter(|line| !line.trim().is_empty()).count();
        let first = thought.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        let dots = if lines > 1 { " …" } else { "" };
        let mut right = super::words::counted(lines, "line");
        let lasted = text::lasted(lasted_ms);
        if !lasted.is_empty() {
            right = format!("{right} · {lasted}");
        }
        let mark = if open { "▾" } else { "▸" };
        let left = format!("thought: {}{dots}", text::clean(first));
        let mut out = vec![self.foldable(mark, &left, Ink::DimItalic, &right, Ink::Dim, chosen, cells)];
        if open {
            let laid = markdown::lay(shortened(thought), cells.saturating_sub(3).clamp(4, MAX_TEXT), self.look());
            out.extend(indented(laid).into_iter().map(|line| line.style(self.look().style(Ink::DimItalic))));
        }
        out
    }

    fn tool(&self, block: &Block, tool: &Tool, chosen: bool, cells: usize) -> Vec<Line<'static>> {
        let look = self.look();
        let asks = tool.outcome.is_none() && tool.denied.is_none() && self.asks_for(tool);
        let runs = tool.outcome.is_none() && tool.denied.is_none();
        let open = self.opened(block, tool.opens_by_itself()) && !runs;
        let failed = tool.outcome.as_ref().is_some_and(|outcome| outcome.failed);
        let ring = self.model.roster.agents.get(&self.talk.agent).map_or(0, |agent| agent.ring);
        let over = self.model.current.and_then(|agent| self.model.roster.agents.get(&agent)).is_some_and(|agent| {
            use super::roster::State;
            !matches!(
                self.model.roster.state(agent),
                State::Working | State::Asks | State::Silent | State::Starting | State::Stopping
            )
        });
        let right = match (&tool.outcome, runs) {
            (Some(outcome), _) => {
                let lasted = if tool.shows_time() { text::lasted(outcome.at.0 - block.at.0) } else { String::new() };
                [tool.summary(), lasted].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
            }
            (None, true) if asks => "waits for you".to_owned(),
            (None, true) if over => "no result".to_owned(),
            (None, true) => match self.model.link {
                super::model::Link::Away { since, .. } => text::clock_seconds(since, self.model.offset_s),
                _ => text::age(self.model.now.0 - block.at.0),
            },
            (None, false) => tool.summary(),
        };
        let mark = match (runs, open) {
            (true, _) if asks => "?",
            (true, _) if over => "▸",
            (true, _) => super::look::RING[ring % 4],
            (false, true) => "▾",
            (false, false) => "▸",
        };
        let left = format!("{} {}", text::clean(&tool.name), tool.target());
        let right_ink = if failed || tool.denied.is_some() { Ink::Bad } else { Ink::Dim };
        let mut lines = vec![self.foldable(mark, &left, Ink::Plain, &right, right_ink, chosen, cells)];
        if runs
            && !over
            && let Some(span) = lines[0].spans.first_mut()
        {
            span.style = look.style(if asks { Ink::AccentFilled } else { Ink::Good });
        }
        if open {
            lines.extend(self.tool_lines(block, tool, cells));
        }
        lines
    }

    fn asks_for(&self, _tool: &Tool) -> bool {
        let Some(question) = self.model.roster.question_of(self.talk.agent) else { return false };
        serde_json::to_value(question.about).is_ok_and(|about| about.to_string().contains("permission"))
    }

    fn tool_lines(&self, block: &Block, tool: &Tool, cells: usize) -> Vec<Line<'static>> {
        let look = self.look();
        let lines = tool.lines();
        let whole = self.desk.open_groups.contains(&block.id);
        let is_change = matches!(lines.first(), Some(ToolLine::Added(..) | ToolLine::Removed(..) | ToolLine::Same(..)));
        let numbered = lines.iter().any(|line| matches!(line, ToolLine::Removed(..) | ToolLine::Same(..)));
        let shown: Vec<Option<&ToolLine>> = match (whole, is_change) {
            (true, _) => lines.iter().map(Some).collect(),
            (false, true) if lines.len() > SHOWN_CHANGES + 1 => {
                lines[..SHOWN_CHANGES].iter().map(Some).chain([None]).collect()
            }
            (false, false) if lines.len() > 2 * SHOWN_OUTPUT + 1 => {
                let (begin, end) = (&lines[..SHOWN_OUTPUT], &lines[lines.len() - SHOWN_OUTPUT..]);
                begin.iter().map(Some).chain([None]).chain(end.iter().map(Some)).collect()
            }
            _ => lines.iter().map(Some).collect(),
        };
        let left_out = lines.len() - shown.iter().flatten().count();
        let mut out = Vec::new();
        for line in shown {
            let Some(line) = line else {
                let more = format!("       … {left_out} more lines, Enter shows them");
                let more = if is_change { format!("{more}, ^X d all changes") } else { more };
                out.push(Line::styled(text::cut(&more, cells.saturating_sub(1)), look.style(Ink::Dim)));
                continue;
            };
            let (sign, at, words, ink) = match line {
                ToolLine::Added(at, words) => ("+ ", at, words, Ink::Good),
                ToolLine::Removed(at, words) => ("- ", at, words, Ink::Bad),
                ToolLine::Same(at, words) => ("  ", at, words, Ink::Dim),
                ToolLine::Output(words) => ("", &None, words, Ink::Plain),
                ToolLine::Subagent(words) => ("╎ ", &None, words, Ink::Dim),
            };
            let begin = match (numbered, at) {
                (true, Some(at)) => format!("  {at:>4} {sign}"),
                (true, None) => format!("    {sign}"),
                (false, _) => format!("  {sign}"),
            };
            let hang = text::width(&begin) + 2;
            let words = text::clean(words).into_owned();
            let style = look.style(ink);
            let mut rows = Vec::new();
            markdown::wrapped(&mut rows, &[(begin, style), (words, style)], hang, cells.saturating_sub(1));
            out.extend(rows);
        }
        out
    }

    fn ask(&self, block: &Block, asked: &str, answer: Option<&str>, open: bool, cells: usize) -> Vec<Line<'static>> {
        let look = self.look();
        let mut lines = Vec::new();
        let bar = |spans: Vec<Span<'static>>| {
            let mut all = vec![Span::styled("▎ ", look.style(Ink::Accent))];
            all.extend(spans);
            Line::from(all)
        };
        let right = if open { "asks you" } else { "asked you" };
        let head = format!("{}  {}  {}", right, self.time(block.at), number(block.id));
        let question = self.model.roster.questions.iter().find(|question| question.id == block.id);
        let whole = question.map_or_else(|| asked.to_owned(), |question| question.whole());
        let laid = markdown::lay(&whole, cells.saturating_sub(5).clamp(4, MAX_TEXT), look);
        match open {
            true => {
                lines.push(bar(vec![
                    Span::styled("? ", look.style(Ink::AccentFilled)),
                    Span::styled(head, look.style(Ink::Dim)),
                ]));
                lines.extend(laid.into_iter().map(|line| bar(line.spans)));
                if let Some(question) = question {
                    let choices = super::panel::choices(question);
                    let words: Vec<String> =
                        choices.iter().enumerate().map(|(at, choice)| format!("{} {}", at + 1, choice.label)).collect();
                    lines.push(bar(vec![Span::styled(
                        text::cut(&words.join("  "), cells.saturating_sub(4)),
                        look.style(Ink::Dim),
                    )]));
                }
            }
            false => {
                lines.push(Line::styled(format!("  {head}"), look.style(Ink::Dim)));
                lines.extend(indented(laid));
                let said = answer.map_or_else(
                    || "The question was withdrawn.".to_owned(),
                    |answer| format!("You answered: {}", text::clean(answer)),
                );
                for row in text::wrap(&said, cells.saturating_sub(3)) {
                    lines.push(Line::styled(format!("  {row}"), look.style(Ink::Dim)));
                }
            }
        }
        lines
    }

    /// One line with a mark, and something at its right end.
    #[allow(clippy::too_many_arguments, reason = "one line of the screen, from left to right")]
    fn foldable(
        &self,
        mark: &str,
        left: &str,
        left_ink: Ink,
        right: &str,
        right_ink: Ink,
        chosen: bool,
        cells: usize,
    ) -> Line<'static> {
        let look = self.look();
        let inner = cells.saturating_sub(3);
        let right = text::cut(right, inner / 2);
        let room = inner.saturating_sub(text::width(&right) + usize::from(!right.is_empty()));
        let left = text::padded(left, room);
        let gap = if right.is_empty() { "" } else { " " };
        let (mark, mark_ink) = if chosen { ("❯", Ink::Accent) } else { (mark, Ink::Dim) };
        Line::from(vec![
            Span::styled(mark.to_owned(), look.style(mark_ink)),
            Span::raw(" "),
            Span::styled(left, look.style(left_ink)),
            Span::raw(gap),
            Span::styled(right, look.style(right_ink)),
        ])
    }
}

/// `#46,342`.
pub fn number(id: hatchery_core::EventId) -> String {
    format!("#{}", text::thousands(id.0))
}

fn is_finished_tool(block: &Block) -> bool {
    matches!(&block.kind, Kind::Tool(tool) if tool.outcome.is_some() || tool.denied.is_some())
}

/// Whether a blank row divides two items. Tools and thoughts stand together, and so do notes.
fn needs_blank(before: &Item<'_>, item: &Item<'_>) -> bool {
    #[derive(PartialEq)]
    enum Class {
        Work,
        Note,
        Across,
        Edge,
        Text,
    }
    let class = |item: &Item<'_>| match item {
        Item::Group(_) => Class::Work,
        Item::ForkLine | Item::NewSince => Class::Across,
        Item::Inherited { .. } => Class::Edge,
        Item::Starting | Item::Waiting(_) | Item::Partial(_) => Class::Text,
        Item::Block { block, .. } => match block.kind {
            Kind::Tool(_) | Kind::Thought { .. } => Class::Work,
            Kind::Note { .. } => Class::Note,
            Kind::Across { .. } => Class::Across,
            _ => Class::Text,
        },
    };
    let together = matches!(
        (class(before), class(item)),
        (_, Class::Across) | (Class::Edge, _) | (Class::Work, Class::Work) | (Class::Note, Class::Note)
    );
    !together
}

fn source(block: &Block) -> String {
    match &block.kind {
        Kind::ToAgent { text, .. } | Kind::Spoken { text, .. } | Kind::Thought { text, .. } => text.clone(),
        Kind::Note { text, .. } | Kind::Across { text } | Kind::Here { text } | Kind::Ask { text, .. } => text.clone(),
        Kind::Interrupted => String::new(),
        Kind::Tool(tool) => {
            let result = tool.outcome.as_ref().map(|outcome| text::without_escapes(&outcome.text)).unwrap_or_default();
            let input: BTreeMap<String, serde_json::Value> =
                serde_json::from_value(tool.input.clone()).unwrap_or_default();
            let input: Vec<String> = input.values().filter_map(|value| value.as_str().map(str::to_owned)).collect();
            format!("{} {}\n{result}", tool.name, input.join("\n"))
        }
    }
}

fn shortened(text: &str) -> &str {
    let mut end = text.len().min(MAX_SHOWN_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn indented(lines: Vec<Line<'static>>) -> Vec<Line<'static>> {
    lines
        .into_iter()
        .map(|mut line| {
            line.spans.insert(0, Span::raw("  "));
            line
        })
        .collect()
}

/// What you said: `›` before the first row.
fn said(words: &str, cells: usize, look: Look, dim: bool) -> Vec<Line<'static>> {
    let style = if dim { look.style(Ink::Dim) } else { Style::new() };
    let mut lines = Vec::new();
    for (at, row) in text::wrap(&text::clean(shortened(words)), cells).into_iter().enumerate() {
        let mark = if at == 0 { Span::styled("› ", look.style(Ink::Accent)) } else { Span::raw("  ") };
        lines.push(Line::from(vec![mark, Span::styled(row, style)]));
    }
    lines
}

/// A sentence with a time before it; its rows hang behind the time.
fn note(time: &str, words: &str, cells: usize, style: Style, chosen: bool, look: Look) -> Vec<Line<'static>> {
    let hang = text::width(time) + 2;
    let mut lines = Vec::new();
    for (at, row) in text::wrap(words, cells.saturating_sub(hang)).into_iter().enumerate() {
        let mark = if at == 0 && chosen { Span::styled("❯ ", look.style(Ink::Accent)) } else { Span::raw("  ") };
        let begin = if at == 0 { format!("{time}  ") } else { " ".repeat(hang) };
        lines.push(Line::from(vec![mark, Span::styled(begin, look.style(Ink::Dim)), Span::styled(row, style)]));
    }
    lines
}

/// A line across: `╌╌ words ╌╌╌╌`.
fn across(words: &str, cells: usize, style: Style) -> Line<'static> {
    let words = text::cut(words, cells.saturating_sub(6));
    let rest = cells.saturating_sub(text::width(&words) + 5);
    Line::styled(format!("╌╌ {words} {}", "╌".repeat(rest)), style)
}

/// A line with all matches marked.
fn marked(line: Line<'static>, words: &str, look: Look) -> Line<'static> {
    if words.is_empty() {
        return line;
    }
    let needle = words.to_lowercase();
    let mut spans = Vec::new();
    for span in line.spans {
        let lower = span.content.to_lowercase();
        // Where lowering changes lengths, offsets would be wrong: leave it unmarked.
        if lower.len() != span.content.len() || !lower.contains(&needle) {
            spans.push(span);
            continue;
        }
        let mut from = 0;
        while let Some(at) = lower[from..].find(&needle) {
            let (begin, end) = (from + at, from + at + needle.len());
            if !span.content.is_char_boundary(begin) || !span.content.is_char_boundary(end) {
                break;
            }
            spans.push(Span::styled(span.content[from..begin].to_owned(), span.style));
            spans.push(Span::styled(span.content[begin..end].to_owned(), span.style.patch(look.style(Ink::Found))));
            from = end;
        }
        spans.push(Span::styled(span.content[from..].to_owned(), span.style));
    }
    Line::from(spans)
}
