//! A question of the agent, in its conversation: raised by its bar while it is open.

use super::lines::{indented, number};
use super::{Flow, MAX_TEXT};
use crate::tui::conversation::Block;
use crate::tui::look::Ink;
use crate::tui::markdown;
use crate::tui::panel::{asked_rows, choices, numbered, permission_words};
use crate::tui::text;
use ratatui::text::{Line, Span};

/// How many rows of a request are shown in its conversation.
const SHOWN_ROWS: usize = 12;

impl Flow<'_> {
    pub(super) fn ask(
        &self,
        block: &Block,
        asked: &str,
        answer: Option<&str>,
        open: bool,
        cells: usize,
    ) -> Vec<Line<'static>> {
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
        let permission = question.and_then(|question| question.permission.as_ref());
        let whole = match (question, permission) {
            (_, Some(permission)) => permission_words(self.model, permission).0,
            (Some(question), None) => question.whole(),
            (None, None) => asked.to_owned(),
        };
        let laid = markdown::lay(&whole, cells.saturating_sub(5).clamp(4, MAX_TEXT), look);
        match open {
            true => {
                lines.push(bar(vec![
                    Span::styled("? ", look.style(Ink::AccentFilled)),
                    Span::styled(head, look.style(Ink::Dim)),
                ]));
                lines.extend(laid.into_iter().map(|line| bar(line.spans)));
                if let Some(permission) = permission {
                    let (_, what) = permission_words(self.model, permission);
                    let rows = asked_rows(&what, cells.saturating_sub(5), SHOWN_ROWS);
                    lines.extend(rows.into_iter().map(|(row, ink)| bar(vec![Span::styled(row, look.style(ink))])));
                }
                if let Some(question) = question {
                    let choices = choices(self.model, question);
                    for row in numbered(&choices, cells.saturating_sub(4)) {
                        lines.push(bar(vec![Span::styled(row, look.style(Ink::Dim))]));
                    }
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
}
