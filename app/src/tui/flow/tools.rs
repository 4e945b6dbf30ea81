//! Tool calls as lines: one from begin to end, and what they changed or said when they are open.

use super::lines::divided;
use super::{Flow, NARROW};
use crate::tui::conversation::Block;
use crate::tui::look::Ink;
use crate::tui::markdown;
use crate::tui::text;
use crate::tui::tool::{Tool, ToolLine};
use ratatui::text::Line;

/// How many lines of a change are shown, and of the begin and the end of an output.
const SHOWN_CHANGES: usize = 8;
const SHOWN_OUTPUT: usize = 8;
/// From so many cells on, a line that leaves something out says where all of it is.
const MORE_WORDS_FROM: usize = 70;

impl Flow<'_> {
    pub(super) fn tool(&self, block: &Block, tool: &Tool, chosen: bool, cells: usize) -> Vec<Line<'static>> {
        let look = self.look();
        let asks = tool.outcome.is_none() && tool.denied.is_none() && tool.asked.is_some();
        let runs = tool.outcome.is_none() && tool.denied.is_none();
        let open = self.opened(block, tool.opens_by_itself()) && !runs;
        let failed = tool.outcome.as_ref().is_some_and(|outcome| outcome.failed);
        let ring = self.model.roster.agents.get(&self.talk.agent).map_or(0, |agent| agent.ring);
        let over = self.model.current.and_then(|agent| self.model.roster.agents.get(&agent)).is_some_and(|agent| {
            use crate::tui::roster::State;
            !matches!(
                self.model.roster.state(agent),
                State::Working | State::Asks | State::Silent | State::Starting | State::Stopping
            )
        });
        let right = match (&tool.outcome, runs) {
            (Some(outcome), _) => {
                let lasted = if tool.shows_time() && cells >= NARROW {
                    text::lasted(outcome.at.0 - block.at.0)
                } else {
                    String::new()
                };
                [tool.summary(), lasted].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
            }
            (None, true) if asks => "waits for you".to_owned(),
            (None, true) if over => "no result".to_owned(),
            (None, true) => match self.model.link {
                crate::tui::model::Connection::Away { since, .. } => text::clock_seconds(since, self.model.offset_s),
                _ => text::age(self.model.now.0 - block.at.0),
            },
            (None, false) => tool.summary(),
        };
        let mark = match (runs, open) {
            (true, _) if asks => "?",
            (true, _) if over => "▸",
            (true, _) => crate::tui::look::RING[ring % 4],
            (false, true) => "▾",
            (false, false) => "▸",
        };
        let left = format!("{} {}", text::clean(&tool.name), tool.target());
        let right_ink = match () {
            () if failed || tool.denied.is_some() => Ink::Bad,
            () if asks => Ink::Accent,
            () if tool.changed_lines() != (0, 0) => Ink::Good,
            () => Ink::Dim,
        };
        let line = self.foldable(mark, &left, Ink::Plain, &right, right_ink, chosen, cells);
        let name = text::clean(&tool.name).chars().count();
        let mut lines = vec![divided(line, name, look.style(Ink::Bold), look.style(Ink::Plain))];
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

    pub(super) fn tool_lines(&self, block: &Block, tool: &Tool, cells: usize) -> Vec<Line<'static>> {
        let look = self.look();
        let lines = tool.lines();
        let whole = self.desk.open_groups.contains(&block.id) || self.is_found(block);
        let is_change = matches!(lines.first(), Some(ToolLine::Added(..) | ToolLine::Removed(..) | ToolLine::Same(..)));
        let numbered = lines.iter().any(|line| matches!(line, ToolLine::Removed(..) | ToolLine::Same(..)));
        let failed = tool.outcome.as_ref().is_some_and(|outcome| outcome.failed);
        let by_itself = !self.desk.folds.contains_key(&block.id);
        let telling = tool.telling_line().filter(|_| failed && by_itself && !is_change);
        let shown: Vec<Option<&ToolLine>> = match (whole, is_change) {
            (true, _) => lines.iter().map(Some).collect(),
            // A failed tool that is not opened shows one line: what failed.
            (false, false) if telling.is_some() && lines.len() > 2 => {
                telling.into_iter().map(|at| lines.get(at)).chain([None]).collect()
            }
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
                let hint = match is_change {
                    true if cells >= MORE_WORDS_FROM => ", Enter shows them, ^X d all changes",
                    true => ", Enter shows them",
                    false => "",
                };
                let more = format!("       … {left_out} more lines{hint}");
                out.push(Line::styled(text::cut(&more, cells.saturating_sub(1)), look.style(Ink::Dim)));
                continue;
            };
            let (sign, at, words, ink) = match line {
                ToolLine::Added(at, words) => ("+ ", at, words, Ink::Good),
                ToolLine::Removed(at, words) => ("- ", at, words, Ink::Bad),
                ToolLine::Same(at, words) => ("  ", at, words, Ink::Dim),
                ToolLine::Output(words) => ("", &None, words, Ink::Plain),
                ToolLine::Subagent(words, outcome) if !outcome.is_empty() => {
                    let inner = cells.saturating_sub(3 + text::width(outcome)).saturating_sub(2);
                    let words = text::padded(&text::clean(words), inner);
                    out.push(Line::styled(format!("  ╎ {words}{outcome}"), look.style(Ink::Dim)));
                    continue;
                }
                ToolLine::Subagent(words, _) => ("╎ ", &None, words, Ink::Dim),
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
}
