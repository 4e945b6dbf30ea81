//! Markdown as rows of a terminal: lists, bold, code and tables. Inline code keeps its backticks and HTML stays text, so that
//! nothing is lost.

use super::look::{Ink, Look};
use super::text;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

/// Rows of at most so many cells. A fence that has not ended is code all the same.
pub fn lay(source: &str, cells: usize, look: Look) -> Vec<Line<'static>> {
    let source = text::clean(source);
    let mut rows = Vec::new();
    let mut fence: Option<String> = None;
    let mut lines = source.lines().peekable();
    while let Some(line) = lines.next() {
        let trimmed = line.trim_start();
        if let Some(open) = &fence {
            match trimmed.starts_with(open.as_str()) {
                true => fence = None,
                false => code(&mut rows, line, cells, look),
            }
            continue;
        }
        if let Some(mark) = fence_mark(trimmed) {
            let language = trimmed[mark.len()..].split_whitespace().next().unwrap_or_default();
            if !language.is_empty() {
                rows.push(Line::styled(text::cut(language, cells), look.style(Ink::Dim)));
            }
            fence = Some(mark);
            continue;
        }
        if trimmed.starts_with('|') {
            let mut table = vec![trimmed];
            while let Some(next) = lines.next_if(|next| next.trim_start().starts_with('|')) {
                table.push(next.trim_start());
            }
            lay_table(&mut rows, &table, cells, look);
            continue;
        }
        if let Some(title) = heading(trimmed) {
            wrapped(&mut rows, &[(title.to_owned(), look.style(Ink::Bold))], 0, cells);
            continue;
        }
        let indent = line.len() - trimmed.len();
        let hang = indent + marker(trimmed);
        let mut spans = vec![(" ".repeat(indent), Style::new())];
        spans.extend(inline(trimmed, look));
        wrapped(&mut rows, &spans, hang.min(cells / 2), cells);
    }
    rows
}

/// Wraps styled text, with the rows after the first moved in by `hang`.
pub fn wrapped(rows: &mut Vec<Line<'static>>, spans: &[(String, Style)], hang: usize, cells: usize) {
    let whole: String = spans.iter().map(|(text, _)| text.as_str()).collect();
    let first = text::rows(&whole, cells);
    let Some(head) = first.first().cloned() else { return };
    rows.push(Line::from(sliced(spans, head.clone())));
    if first.len() == 1 {
        return;
    }
    let rest = &whole[head.end..];
    for row in text::rows(rest, cells.saturating_sub(hang)) {
        let mut line = vec![Span::raw(" ".repeat(hang))];
        line.extend(sliced(spans, head.end + row.start..head.end + row.end));
        rows.push(Line::from(line));
    }
}

fn sliced(spans: &[(String, Style)], range: std::ops::Range<usize>) -> Vec<Span<'static>> {
    let mut out = Vec::new();
    let mut at = 0;
    for (text, style) in spans {
        let (from, to) = (range.start.max(at), range.end.min(at + text.len()));
        if from < to {
            out.push(Span::styled(text[from - at..to - at].to_owned(), *style));
        }
        at += text.len();
    }
    out
}

fn code(rows: &mut Vec<Line<'static>>, line: &str, cells: usize, look: Look) {
    const HANG: usize = 4;
    let style = look.style(Ink::Code);
    let comment = ["//", "#", "--", ";"].iter().any(|mark| line.trim_start().starts_with(mark));
    let ink = if comment { style.patch(look.style(Ink::Dim)) } else { style };
    let mut laid = Vec::new();
    wrapped(&mut laid, &[(line.to_owned(), ink)], HANG, cells);
    for mut row in laid {
        let missing = cells.saturating_sub(row.width());
        if style.bg.is_some() {
            row.push_span(Span::styled(" ".repeat(missing), style));
        }
        rows.push(row);
    }
}

fn fence_mark(line: &str) -> Option<String> {
    let mark = line.chars().next().filter(|char| matches!(char, '`' | '~'))?;
    let length = line.chars().take_while(|char| *char == mark).count();
    let info = &line[length..];
    (length >= 3 && !info.contains('`')).then(|| mark.to_string().repeat(length))
}

fn heading(line: &str) -> Option<&str> {
    let title = line.trim_start_matches('#');
    let level = line.len() - title.len();
    ((1..=6).contains(&level) && title.starts_with(' ')).then(|| title.trim())
}

/// How many cells the marker of a list takes.
fn marker(line: &str) -> usize {
    if ["- ", "* ", "+ ", "> "].iter().any(|mark| line.starts_with(mark)) {
        return 2;
    }
    let digits = line.chars().take_while(char::is_ascii_digit).count();
    match (1..=3).contains(&digits) && (line[digits..].starts_with(". ") || line[digits..].starts_with(") ")) {
        true => digits + 2,
        false => 0,
    }
}

/// Bold, links, and code with its backticks.
fn inline(line: &str, look: Look) -> Vec<(String, Style)> {
    let (plain, bold) = (Style::new(), Style::new().add_modifier(Modifier::BOLD));
    let mut out: Vec<(String, Style)> = Vec::new();
    let mut rest = line;
    let mut pending = String::new();
    while !rest.is_empty() {
        let found = match rest.as_bytes()[0] {
            b'`' => rest[1..].find('`').map(|end| (end + 2, vec![(rest[..end + 2].to_owned(), look.style(Ink::Code))])),
            b'*' if rest.starts_with("**") => rest[2..]
                .find("**")
                .filter(|end| *end > 0)
                .map(|end| (end + 4, vec![(rest[2..end + 2].to_owned(), bold)])),
            b'[' => link(rest).map(|(length, words, address)| {
                (length, vec![(words.to_owned(), plain), (format!(" ({address})"), look.style(Ink::Dim))])
            }),
            _ => None,
        };
        match found {
            Some((length, spans)) => {
                out.push((std::mem::take(&mut pending), plain));
                out.extend(spans);
                rest = &rest[length..];
            }
            None => {
                let length = rest.chars().next().map_or(1, char::len_utf8);
                pending.push_str(&rest[..length]);
                rest = &rest[length..];
            }
        }
    }
    out.push((pending, plain));
    out
}

/// `[words](address)`: its length, the words and the address.
fn link(text: &str) -> Option<(usize, &str, &str)> {
    let words = text.find("](")?;
    let address = text[words + 2..].find(')')?;
    let (inner, target) = (&text[1..words], &text[words + 2..words + 2 + address]);
    (!inner.contains('[') && !target.contains(' ')).then_some((words + address + 3, inner, target))
}

fn lay_table(rows: &mut Vec<Line<'static>>, lines: &[&str], cells: usize, look: Look) {
    let split = |line: &str| -> Vec<String> {
        line.trim().trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let is_rule = |line: &str| line.contains("--") && line.chars().all(|char| "|-: ".contains(char));
    let table: Vec<Vec<String>> = lines.iter().filter(|line| !is_rule(line)).map(|line| split(line)).collect();
    let columns = table.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|at| table.iter().filter_map(|row| row.get(at)).map(|cell| text::width(cell)).max().unwrap_or(0))
        .collect();
    let fits = widths.iter().sum::<usize>() + 2 * columns.saturating_sub(1) <= cells;
    if !fits || lines.len() < 2 {
        for line in lines {
            wrapped(rows, &[((*line).to_owned(), Style::new())], 2, cells);
        }
        return;
    }
    let has_head = lines.get(1).is_some_and(|line| is_rule(line));
    for (at, row) in table.iter().enumerate() {
        let line: Vec<String> = widths
            .iter()
            .enumerate()
            .map(|(at, width)| text::padded(row.get(at).map_or("", String::as_str), *width))
            .collect();
        let style = if at == 0 && has_head { look.style(Ink::Bold) } else { Style::new() };
        rows.push(Line::styled(line.join("  ").trim_end().to_owned(), style));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(source: &str, cells: usize) -> Vec<String> {
        lay(source, cells, Look::PLAIN).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn lists_hang_code_stays_and_tables_line_up() {
        assert_eq!(rows("1. one two three\n- a **b**", 9), ["1. one ", "   two ", "   three", "- a b"]);
        assert_eq!(rows("a\n```sql\nSELECT 1\n  x\n```\nb", 20), ["a", "sql", "SELECT 1", "  x", "b"]);
        assert_eq!(rows("```\nopen", 20), ["open"]);
        assert_eq!(rows("|a|bb|\n|--|--|\n|ccc|d|", 20), ["a    bb", "ccc  d"]);
        assert_eq!(rows("see [the docs](http://x) `a*b` <b>", 60), ["see the docs (http://x) `a*b` <b>"]);
        assert_eq!(rows("\u{1b}[2Jx", 20), ["·[2Jx"]);
    }
}
