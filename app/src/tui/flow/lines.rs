//! Lines that several kinds of blocks are made of.

use crate::tui::look::{Ink, Look};
use crate::tui::text;
use hatchery_core::EventId;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

/// A longer text is cut on the screen, and it is said how to see the rest.
pub(super) const MAX_SHOWN_BYTES: usize = 64 << 10;

/// A blank at which a sentence is not broken.
pub(super) const TOGETHER: char = '\u{a0}';

/// `#46,342`.
pub fn number(id: EventId) -> String {
    format!("#{}", text::thousands(id.0))
}

/// The begin of a text, and how much of it is left out.
pub(super) fn shortened(text: &str, most: usize) -> (&str, usize) {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    (&text[..end], text.len() - end)
}

/// Where the rest of a text is that was cut.
pub(super) fn left_out(bytes: usize, look: Look) -> Option<Line<'static>> {
    let words = format!("  … {} more: v, after Esc, shows all", text::size(bytes));
    (bytes > 0).then(|| Line::styled(words, look.style(Ink::Dim)))
}

pub(super) fn indented(lines: Vec<Line<'static>>) -> Vec<Line<'static>> {
    lines
        .into_iter()
        .map(|mut line| {
            line.spans.insert(0, Span::raw("  "));
            line
        })
        .collect()
}

/// What you said: `›` before the first row.
pub(super) fn said(words: &str, most: usize, cells: usize, look: Look, dim: bool) -> Vec<Line<'static>> {
    let style = if dim { look.style(Ink::Dim) } else { Style::new() };
    let mut lines = Vec::new();
    let (begin, rest) = shortened(words, most);
    for (at, row) in text::wrap(&text::clean(begin), cells).into_iter().enumerate() {
        let mark = if at == 0 { Span::styled("› ", look.style(Ink::Accent)) } else { Span::raw("  ") };
        lines.push(Line::from(vec![mark, Span::styled(row, style)]));
    }
    lines.extend(left_out(rest, look));
    lines
}

/// A sentence with a time before it; its rows hang behind the time. The event stands at its end if there is room in the row.
pub(super) fn note(
    time: &str,
    words: &str,
    event: EventId,
    cells: usize,
    style: Style,
    chosen: bool,
    look: Look,
) -> Vec<Line<'static>> {
    let hang = text::width(time) + 2;
    let room = cells.saturating_sub(hang);
    let mut rows = text::wrap(words, room);
    let event = format!("  {}", number(event));
    if let Some(last) = rows.last_mut()
        && text::width(last) + text::width(&event) <= room
    {
        last.push_str(&event);
    }
    let mut lines = Vec::new();
    for (at, row) in rows.into_iter().enumerate() {
        let mark = if at == 0 && chosen { Span::styled("❯ ", look.style(Ink::Accent)) } else { Span::raw("  ") };
        let begin = if at == 0 { format!("{time}  ") } else { " ".repeat(hang) };
        let row = row.replace(TOGETHER, " ");
        lines.push(Line::from(vec![mark, Span::styled(begin, look.style(Ink::Dim)), Span::styled(row, style)]));
    }
    lines
}

/// A line across: `╌╌ words ╌╌╌╌`.
pub(super) fn across(words: &str, cells: usize, style: Style) -> Line<'static> {
    let words = text::cut(words, cells.saturating_sub(6));
    let rest = cells.saturating_sub(text::width(&words) + 5);
    Line::styled(format!("╌╌ {words} {}", "╌".repeat(rest)), style)
}

/// The words of a foldable line in two styles: the first so many characters, and the rest.
pub(super) fn divided(mut line: Line<'static>, chars: usize, first: Style, rest: Style) -> Line<'static> {
    const WORDS: usize = 2;
    if line.spans.len() > WORDS {
        let words = line.spans.remove(WORDS).content.into_owned();
        let at = words.char_indices().nth(chars).map_or(words.len(), |(at, _)| at);
        line.spans.insert(WORDS, Span::styled(words[at..].to_owned(), rest));
        line.spans.insert(WORDS, Span::styled(words[..at].to_owned(), first));
    }
    line
}

/// A line with all matches marked.
pub(super) fn marked(line: Line<'static>, words: &str, look: Look) -> Line<'static> {
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
