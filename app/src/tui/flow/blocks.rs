//! The blocks of a conversation as lines: messages, thoughts, notes, lines across.

use super::lines::{TOGETHER, across, divided, indented, left_out, note, number, said, shortened};
use super::{Flow, FlowItem, MAX_TEXT, NARROW};
use crate::tui::conversation::{Block, BlockKind};
use crate::tui::look::Ink;
use crate::tui::markdown;
use crate::tui::model::{Outgoing, TextUnderWay};
use crate::tui::text;
use crate::tui::tool::Tool;
use crate::tui::words;
use hatchery_core::partial::PartialKind;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

/// A line across has this many cells beside its words.
const ACROSS_LEAST: usize = 11;
/// Of a text that is being written only so much is laid out again for each frame.
const MAX_PARTIAL_BYTES: usize = 16 << 10;

impl Flow<'_> {
    pub(super) fn lay(&self, item: &FlowItem<'_>, chosen: bool) -> Vec<Line<'static>> {
        let dim = self.look().style(Ink::Dim);
        match item {
            FlowItem::Inherited { open } => vec![self.inherited_line(*open, chosen)],
            FlowItem::ForkLine => vec![self.fork_line()],
            FlowItem::NewSince => {
                let since = self.desk.new_from.map(|(_, left)| self.time(left)).unwrap_or_default();
                vec![across(&format!("new since {since}"), self.cells, dim)]
            }
            FlowItem::Group { blocks, inherited: false } => vec![self.group_line(blocks, chosen, self.cells)],
            FlowItem::Group { blocks, inherited: true } => {
                self.edged(vec![self.group_line(blocks, chosen, self.cells - 2)])
            }
            FlowItem::Starting => {
                let evidence = self.model.current.and_then(|agent| self.model.roster.agents.get(&agent));
                let what = evidence.and_then(|agent| agent.evidence.first()).map_or("", |it| it.what.as_str());
                vec![Line::styled(text::cut(&format!("  starting: {what}"), self.cells), dim)]
            }
            FlowItem::Waiting(outgoing) => self.waiting(outgoing),
            FlowItem::Partial(partial) => self.partial(partial),
            FlowItem::Block { block, inherited: false, header } => self.block(block, *header, chosen, self.cells),
            FlowItem::Block { block, inherited: true, header } => {
                self.edged(self.block(block, *header, chosen, self.cells - 2))
            }
        }
    }

    /// Inherited lines: behind a dashed edge, dim.
    fn edged(&self, lines: Vec<Line<'static>>) -> Vec<Line<'static>> {
        let dim = self.look().style(Ink::Dim);
        let moved = |line: Line<'static>| {
            let mut spans = vec![Span::styled("╎ ", dim)];
            spans.extend(line.spans.into_iter().map(|span| {
                let style = span.style.patch(dim);
                span.style(style)
            }));
            Line::from(spans)
        };
        lines.into_iter().map(moved).collect()
    }

    /// What is being written: a text grows row by row, of a thought the latest sentence is shown.
    fn partial(&self, partial: &TextUnderWay) -> Vec<Line<'static>> {
        match partial.kind {
            PartialKind::Text => {
                let shown = format!("{}…", partial.text.trim_end().trim_end_matches('…'));
                indented(markdown::lay(last_part(&shown), self.text_cells(), self.look()))
            }
            PartialKind::Thinking => {
                let words = text::clean(last_part(&partial.text)).into_owned();
                let left = format!("thinks: {}", latest_sentence(&words));
                let age = text::age(self.model.now.0 - partial.since.0);
                vec![self.foldable("▸", &left, Ink::DimItalic, &age, Ink::Dim, false, self.cells)]
            }
        }
    }

    pub(super) fn text_cells(&self) -> usize {
        self.cells.saturating_sub(3).clamp(4, MAX_TEXT)
    }

    pub(super) fn time(&self, at: hatchery_core::Timestamp) -> String {
        text::clock(at, self.model.offset_s)
    }

    pub(super) fn block(&self, block: &Block, header: bool, chosen: bool, cells: usize) -> Vec<Line<'static>> {
        let look = self.look();
        let text_cells = cells.saturating_sub(3).clamp(4, MAX_TEXT);
        match &block.kind {
            BlockKind::ToAgent { text, heard } => {
                let pending = !heard && self.may_be_unheard(block);
                let right = match pending {
                    true => "not heard yet: it hears this when its turn ends".to_owned(),
                    false => number(block.id),
                };
                let by = if self.is_assigned() { "Hatchery" } else { "You" };
                let mut lines = vec![self.header(by, block.at, &right, chosen, cells)];
                lines.extend(said(text, self.most, text_cells, look, pending));
                lines
            }
            BlockKind::Spoken { text, reaches_model } => {
                let mut lines = Vec::new();
                if header {
                    let name = self.model.name(self.speaker(block));
                    lines.push(self.header(&name, block.at, &number(block.id), chosen, cells));
                }
                let (begin, rest) = shortened(text, self.most);
                let laid = indented(markdown::lay(begin, text_cells, look)).into_iter().chain(left_out(rest, look));
                let dim = look.style(Ink::Dim);
                lines.extend(laid.map(|line| if *reaches_model { line } else { line.patch_style(dim) }));
                lines
            }
            BlockKind::Thought { text, lasted_ms } => self.thought(block, text, *lasted_ms, chosen, cells),
            BlockKind::Tool(tool) => self.tool(block, tool, chosen, cells),
            BlockKind::Note { text, bad } => {
                let ink = if *bad { Ink::Bad } else { Ink::Dim };
                note(
                    &self.time(block.at),
                    &words::named(self.model, text),
                    block.id,
                    text_cells,
                    look.style(ink),
                    chosen,
                    look,
                )
            }
            BlockKind::Crashed { resumed_ms, .. } => {
                let words = crashed(&block.kind);
                // Once it is over, it is not alarming any more.
                let ink = if resumed_ms.is_some() { Ink::Dim } else { Ink::Bad };
                note(&self.time(block.at), &words, block.id, text_cells, look.style(ink), chosen, look)
            }
            BlockKind::Across { text } => {
                let words = words::named(self.model, &text.replace("{time}", &self.time(block.at)));
                vec![across(&words, cells, look.style(Ink::Dim))]
            }
            BlockKind::Interrupted => {
                let sentence = "You interrupted it. What it said in this turn does not reach the model.";
                note(&self.time(block.at), sentence, block.id, text_cells, Style::new(), chosen, look)
            }
            BlockKind::Ask { text, answer, open, .. } => self.ask(block, text, answer.as_deref(), *open, cells),
            BlockKind::Here { text } => {
                let dim = look.style(Ink::Dim);
                let mut lines = vec![Line::styled("  only here, not in the history", dim)];
                let laid = indented(markdown::lay(text, text_cells, look));
                lines.extend(laid.into_iter().map(|line| line.style(dim)));
                lines
            }
        }
    }

    /// Which agent said a block: its own, or the one that it was inherited from.
    pub(super) fn speaker(&self, block: &Block) -> hatchery_core::AgentId {
        let inherited = self.talk.inherited.as_ref().and_then(|it| it.speaker(block.id));
        inherited.unwrap_or(self.talk.agent)
    }

    pub(super) fn is_assigned(&self) -> bool {
        self.model.roster.agents.get(&self.talk.agent).is_some_and(|agent| agent.view.assignment.is_some())
    }

    /// Only the last thing that was said can be unheard; imported messages never were heard by a process of ours.
    pub(super) fn may_be_unheard(&self, block: &Block) -> bool {
        let later = self.talk.blocks().iter().rev().take_while(|it| it.id > block.id);
        let in_turn = self.model.roster.agents.get(&self.talk.agent).is_some_and(|agent| {
            use crate::tui::roster::State;
            matches!(self.model.roster.state(agent), State::Working | State::Asks | State::Silent | State::Parked)
        });
        in_turn && later.clone().all(|it| !matches!(it.kind, BlockKind::Spoken { .. } | BlockKind::Tool(_)))
    }

    pub(super) fn header(
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

    pub(super) fn waiting(&self, outgoing: &Outgoing) -> Vec<Line<'static>> {
        let look = self.look();
        let state = match (outgoing.sending, self.model.link) {
            (true, _) => "sending",
            (false, _) => "will be sent",
        };
        let mut lines = vec![self.header("You", outgoing.at, state, false, self.cells)];
        lines.extend(said(&outgoing.field.shown(), self.most, self.text_cells(), look, true));
        lines
    }

    pub(super) fn inherited_line(&self, open: bool, chosen: bool) -> Line<'static> {
        let look = self.look();
        let Some(inherited) = &self.talk.inherited else { return Line::default() };
        let count =
            inherited.count.map_or_else(|| "messages".to_owned(), |count| crate::tui::words::counted(count, "message"));
        let upto = if self.cells < NARROW { String::new() } else { format!(", up to {}", number(inherited.upto)) };
        let words = format!("{count} inherited from {}{upto}", self.model.name(inherited.from));
        let mark = if chosen { "❯" } else { if open { "▾" } else { "▸" } };
        let ink = look.style(if chosen { Ink::Accent } else { Ink::Dim });
        Line::from(vec![
            Span::styled("╎ ", look.style(Ink::Dim)),
            Span::styled(format!("{mark} "), ink),
            Span::styled(text::cut(&words, self.cells.saturating_sub(5)), look.style(Ink::Dim)),
        ])
    }

    pub(super) fn fork_line(&self) -> Line<'static> {
        let Some(inherited) = &self.talk.inherited else { return Line::default() };
        let begin = format!("forked from {} at {}", self.model.name(inherited.from), self.time(inherited.forked));
        let own = self.model.name(self.talk.agent);
        let forms = [
            format!("{begin} · from here on it is {own}'s own"),
            format!("{begin} · from here on its own"),
            begin.clone(),
        ];
        let fits = forms.iter().find(|form| text::width(form) + ACROSS_LEAST <= self.cells).unwrap_or(&forms[2]);
        across(fits, self.cells, self.look().style(Ink::Dim))
    }

    pub(super) fn group_line(&self, blocks: &[Block], chosen: bool, cells: usize) -> Line<'static> {
        let mut counts: Vec<(String, usize)> = Vec::new();
        for block in blocks {
            if let BlockKind::Tool(tool) = &block.kind {
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
            BlockKind::Tool(Tool { outcome: Some(outcome), .. }) => outcome.at.0,
            _ => block.at.0,
        });
        let calls = format!("{} tool calls", blocks.len());
        let left = format!("{calls}  {}", text::clean(&words.join(", ")));
        let line = self.foldable("▸", &left, Ink::Plain, &text::lasted(end - begin), Ink::Dim, chosen, cells);
        divided(line, calls.len(), self.look().style(Ink::Plain), self.look().style(Ink::Dim))
    }

    pub(super) fn thought(
        &self,
        block: &Block,
        thought: &str,
        lasted_ms: i64,
        chosen: bool,
        cells: usize,
    ) -> Vec<Line<'static>> {
        let open = self.opened(block, false);
        let lines = thought.lines().filter(|line| !line.trim().is_empty()).count();
        let first = thought.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        let dots = if lines > 1 { " …" } else { "" };
        let mut right = crate::tui::words::counted(lines, "line");
        let lasted = text::lasted(lasted_ms);
        if !lasted.is_empty() {
            right = format!("{right} · {lasted}");
        }
        let mark = if open { "▾" } else { "▸" };
        let left = format!("thought: {}{dots}", text::clean(first));
        let mut out = vec![self.foldable(mark, &left, Ink::DimItalic, &right, Ink::Dim, chosen, cells)];
        if open {
            let (begin, rest) = shortened(thought, self.most);
            let laid = markdown::lay(begin, cells.saturating_sub(3).clamp(4, MAX_TEXT), self.look());
            let laid = indented(laid).into_iter().chain(left_out(rest, self.look()));
            out.extend(laid.map(|line| line.style(self.look().style(Ink::DimItalic))));
        }
        out
    }

    /// One line with a mark, and something at its right end.
    #[allow(clippy::too_many_arguments, reason = "one line of the screen, from left to right")]
    pub(super) fn foldable(
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

/// What is said of a crash: what happens next by itself, and then what has happened.
pub fn crashed(kind: &BlockKind) -> String {
    let BlockKind::Crashed { what, how, attempt, forgotten, resumed_ms } = kind else { return String::new() };
    let what = how_it_ended(what, how);
    let why = if what.is_empty() { String::new() } else { format!(": {what}") };
    let Some(resumed_ms) = resumed_ms else {
        return format!("Its run crashed{why}. It is resumed, attempt {attempt}.");
    };
    let was = match (what.contains("SIGKILL"), what.contains("in the middle of a turn")) {
        (true, true) => "Its process was killed in the middle of a turn".to_owned(),
        (true, false) => format!("Its process was killed{why}"),
        (false, _) => format!("Its run crashed{why}"),
    };
    let after = match resumed_ms / 1_000 {
        0 => "at once".to_owned(),
        _ => format!("after {}", text::age(*resumed_ms).replace(' ', &TOGETHER.to_string())),
    };
    match forgotten {
        false => format!("{was}. It was resumed {after}, and nothing that it had said was lost."),
        true => format!("{was}. Its program had lost the conversation, so it was started {after} with its history."),
    }
}

/// How a process ended, as the end of a sentence. What one could do about it is left out: it is resumed by itself.
fn how_it_ended(detail: &str, exit: &str) -> String {
    let detail = text::clean(detail);
    let ended = match detail.find("). ").filter(|_| detail.starts_with("It ended")) {
        Some(at) => &detail[..=at],
        None => detail.trim_end_matches('.'),
    };
    let ended = ended.strip_prefix("It ").map_or_else(|| ended.to_owned(), |rest| format!("it {rest}"));
    let exit = if ended.contains(exit.trim().trim_matches(['(', ')'])) { "" } else { exit };
    format!("{ended}{exit}")
}

/// The end of a text, from the begin of a line on where there is one.
fn last_part(text: &str) -> &str {
    let mut from = text.len().saturating_sub(MAX_PARTIAL_BYTES);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    match from {
        0 => text,
        from => text[from..].find('\n').map_or(&text[from..], |at| &text[from + at + 1..]),
    }
}

/// The last sentence that has been begun.
fn latest_sentence(text: &str) -> &str {
    let text = text.trim();
    let text = text.rsplit('\n').map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let begun = text.match_indices(['.', '!', '?']).rev().find(|(at, mark)| text[at + mark.len()..].starts_with(' '));
    begun.map_or(text, |(at, mark)| text[at + mark.len()..].trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the words of the core.
    #[test]
    fn a_crash_is_told_in_a_sentence() {
        let told = |what: &str, how: &str, resumed_ms| {
            let (what, how) = (what.to_owned(), how.to_owned());
            crashed(&BlockKind::Crashed { what, how, attempt: 2, forgotten: false, resumed_ms })
        };
        let killed = "It ended in the middle of a turn (SIGKILL). Look at what it wrote to stderr. It can be resumed.";
        let now = "Its run crashed: it ended in the middle of a turn (SIGKILL). It is resumed, attempt 2.";
        assert_eq!(told(killed, " (SIGKILL)", None), now);
        let after = "Its process was killed in the middle of a turn. It was resumed at once, and nothing that it had said was lost.";
        assert_eq!(told(killed, " (SIGKILL)", Some(20)), after);
        let code = "It ended before it said anything (exit code 3). Look at what it wrote to stderr.";
        let now = "Its run crashed: it ended before it said anything (exit code 3). It is resumed, attempt 2.";
        assert_eq!(told(code, " (exit code 3)", None), now);
        let failed = "It failed: API Error: 500. Try later. Resume it, or begin anew.";
        let now = "Its run crashed: it failed: API Error: 500. Try later. Resume it, or begin anew (exit code 1). It is resumed, attempt 2.";
        assert_eq!(told(failed, " (exit code 1)", None), now);
        assert_eq!(told("", "", None), "Its run crashed. It is resumed, attempt 2.");
    }
}
