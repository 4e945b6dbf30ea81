//! A list with a cursor: mail, log, evidence, changes, cost, seats.

use super::put;
use crate::tui::look::Ink;
use crate::tui::model::{Focus, Model};
use crate::tui::panel::Sheet;
use crate::tui::text;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

/// The row of the area in which the list begins.
fn first_row(sheet: &Sheet) -> usize {
    if sheet.filtering || !sheet.filter.is_empty() { 3 } else { 2 }
}

/// The first entry that is in sight.
fn top(sheet: &Sheet, height: usize) -> usize {
    let last = sheet.rows.len().saturating_sub(1);
    (sheet.cursor.min(last) + 1).saturating_sub(height).min(sheet.rows.len().saturating_sub(height))
}

/// The entry in a row of an area of this height.
pub fn entry_at(sheet: &Sheet, height: u16, row: u16) -> Option<usize> {
    let row = usize::from(row).checked_sub(first_row(sheet))?;
    let entry = top(sheet, usize::from(height).saturating_sub(first_row(sheet))) + row;
    (entry < sheet.rows.len()).then_some(entry)
}

pub fn draw(model: &Model, sheet: &Sheet, buffer: &mut Buffer, area: Rect) -> Option<Position> {
    let look = model.look;
    let cells = usize::from(area.width);
    let title = text::cut(&format!(" {}", sheet.title), cells.saturating_sub(1));
    put(buffer, area.x, area.y, area.width, &Line::styled(title, look.style(Ink::Bold)));
    let mut caret = None;
    let from = first_row(sheet);
    if sheet.filtering || !sheet.filter.is_empty() {
        let words = format!(" /{}", sheet.filter.shown());
        if sheet.filtering {
            let column = 2 + text::width(sheet.filter.before_cursor());
            caret = Some(Position { x: area.x + u16::try_from(column).unwrap_or(0), y: area.y + 1 });
        }
        put(buffer, area.x, area.y + 1, area.width, &Line::styled(words, look.style(Ink::Accent)));
    }
    let height = usize::from(area.height).saturating_sub(from);
    if sheet.rows.is_empty() {
        // The title says that there is nothing.
        let words = if sheet.loading { " Reading …" } else { "" };
        put(buffer, area.x, area.y + 2, area.width, &Line::styled(words, look.style(Ink::Dim)));
        return caret;
    }
    let cursor = sheet.cursor.min(sheet.rows.len() - 1);
    let top = top(sheet, height);
    for (at, row) in sheet.rows.iter().enumerate().skip(top).take(height) {
        let y = area.y + u16::try_from(from + at - top).unwrap_or(0);
        let chosen = at == cursor && model.focus == Focus::Side;
        // Where Enter does nothing, the cursor is only a place.
        let is_marked = chosen && row.act.is_some();
        let mark = if is_marked { Span::styled("❯ ", look.style(Ink::Accent)) } else { Span::raw("  ") };
        let left = vec![mark, Span::styled(row.left.clone(), look.style(row.ink))];
        let right = match row.right.is_empty() {
            true => Vec::new(),
            false => vec![Span::styled(row.right.clone(), look.style(Ink::Dim))],
        };
        put(buffer, area.x, y, area.width, &super::apart(left, right, cells.saturating_sub(1)));
        if chosen && caret.is_none() {
            caret = Some(Position { x: area.x, y });
        }
    }
    caret
}
