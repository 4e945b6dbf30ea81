//! Draws the model: a pure function. No clock, no terminal, no request.

mod bottom;
mod home;
mod overlays;
mod quest;
mod separator;
mod sheet;
mod tree;

use super::field::FieldRow;
use super::flow::Flow;
use super::look::{self, Ink};
use super::model::{Connection, Focus, MIN_SIZE, Model};
use super::overlay::Overlay;
use super::panel::Side;
use super::text;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Color;
use ratatui::text::{Line, Span};

pub use home::TODAY_MS;
pub use overlays::{PREFIX_PAUSE_MS, reader_end};
pub use quest::{end as quest_end, listed as listed_steps};
#[cfg(test)]
pub use separator::line as separator_line;
pub use sheet::entry_at as sheet_row;
pub use tree::{TreeKey, at_row as tree_at_row, rows as tree_rows};

/// From here on a tree fits beside the conversation, and is shown unless the user closed it.
const TREE_FROM: u16 = 100;
const TREE_SHOWN_FROM: u16 = 110;
/// From here on everything fits side by side.
const WIDE_FROM: u16 = 160;
const TREE_CELLS: u16 = 34;
const WIDE_TREE_CELLS: u16 = 38;
const SIDE_CELLS: u16 = 58;
/// A panel that would leave less to the conversation takes its place.
const LEAST_TALK: u16 = 60;
/// From here on a panel fits beside the conversation.
pub const SIDE_FROM: u16 = LEAST_TALK + SIDE_CELLS + 1;
const WIDE_SIDE_CELLS: u16 = 61;
/// Below so many rows there is no bottom line; from so many on your text has two rows.
const BOTTOM_FROM: u16 = 14;
const TWO_ROWS_FROM: u16 = 30;
const MAX_TEXT_ROWS: u16 = 10;
/// The most rows under the separator that are not yours.
const MAX_BELOW_ROWS: u16 = 6;

/// Where everything is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Areas {
    pub tree: Option<Rect>,
    pub talk: Option<Rect>,
    pub side: Option<Rect>,
    pub separator: Rect,
    /// What stands under the separator while the daemon is away or its store is in trouble.
    pub below: Option<Rect>,
    pub text: Rect,
    pub bottom: Option<Rect>,
}

/// Whether the tree is on the screen.
pub fn shows_tree(model: &Model) -> bool {
    let (width, _) = model.size;
    match width {
        WIDE_FROM.. => model.tree != Some(false),
        TREE_FROM.. => {
            model.side.is_none() && model.tree.unwrap_or(width >= TREE_SHOWN_FROM) && model.current.is_some()
        }
        _ => model.focus == Focus::Tree,
    }
}

/// Whether there is a bottom line. On a small screen it is there while something is typed on it.
fn has_bottom(model: &Model) -> bool {
    model.size.1 >= BOTTOM_FROM || bottom::is_typed_on(model)
}

pub fn areas(model: &Model) -> Areas {
    let (width, height) = model.size;
    let bottom_rows = u16::from(has_bottom(model));
    let below_rows = match height >= BOTTOM_FROM {
        true => u16::try_from(below_separator(model).len()).unwrap_or(0).min(MAX_BELOW_ROWS),
        false => 0,
    };
    let least = if height >= TWO_ROWS_FROM { 2 } else { 1 };
    let most = MAX_TEXT_ROWS.min(height * 2 / 5).max(least);
    let wanted = u16::try_from(model.desk().field.rows(text_cells(width)).len()).unwrap_or(u16::MAX);
    let text_rows = wanted.clamp(least, most);
    let body = height.saturating_sub(bottom_rows + below_rows + text_rows + 1);
    let separator = body;
    // The conversation makes room for what lies under it, and comes back.
    let body = body - overlays::rows(model, body.saturating_sub(3));
    let row = |y, rows| Rect::new(0, y, width, rows);
    let shows_tree = shows_tree(model);
    let (mut tree, mut side) = (None, None);
    let mut talk = Some(row(0, body));
    match width {
        WIDE_FROM.. => {
            let from = if shows_tree { WIDE_TREE_CELLS + 2 } else { 0 };
            let to = if model.side.is_some() { width - WIDE_SIDE_CELLS - 1 } else { width };
            tree = shows_tree.then(|| Rect::new(0, 0, WIDE_TREE_CELLS, body));
            side = model.side.is_some().then(|| Rect::new(to + 1, 0, WIDE_SIDE_CELLS, body));
            talk = Some(Rect::new(from, 0, to - from, body));
        }
        TREE_FROM.. if model.side.is_some() => {
            let to = width - SIDE_CELLS - 1;
            match to >= LEAST_TALK {
                true => {
                    side = Some(Rect::new(to + 1, 0, SIDE_CELLS, body));
                    talk = Some(Rect::new(0, 0, to, body));
                }
                false => (side, talk) = (talk, None),
            }
        }
        TREE_FROM.. if shows_tree => {
            let from = TREE_CELLS + 2;
            tree = Some(Rect::new(0, 0, TREE_CELLS, body));
            talk = Some(Rect::new(from, 0, width - from, body));
        }
        _ if shows_tree => (tree, talk) = (talk, None),
        _ if model.side.is_some() && width < TREE_FROM => (side, talk) = (talk, None),
        _ => {}
    }
    Areas {
        tree,
        talk,
        side,
        separator: row(separator, 1),
        below: (below_rows > 0).then(|| row(separator + 1, below_rows)),
        text: row(separator + 1 + below_rows, text_rows),
        bottom: (bottom_rows > 0).then(|| row(height - 1, 1)),
    }
}

/// A sentence under the separator: that agents go on without the daemon, or all of what is wrong with the store.
fn below_separator(model: &Model) -> Vec<String> {
    let cells = usize::from(model.size.0);
    const GOES_ON: &str = "Agents go on without it, and nothing that they say is lost.";
    let words = match (model.link, &model.unreached) {
        (Connection::Away { .. }, Some(why)) => format!("{why}\n{GOES_ON}"),
        (Connection::Away { .. }, None) => GOES_ON.to_owned(),
        (Connection::Opening | Connection::Up, _) => {
            separator::cut_trouble(model, cells).unwrap_or_default().to_owned()
        }
    };
    text::wrap(&text::clean(&words), cells.saturating_sub(2))
}

/// How wide the text is that you type.
pub fn text_cells(width: u16) -> usize {
    usize::from(width.saturating_sub(3)).max(4)
}

/// Draws everything and says where the terminal's own cursor belongs.
pub fn draw(model: &Model, buffer: &mut Buffer) -> Option<Position> {
    let (width, height) = model.size;
    if width < MIN_SIZE.0 || height < MIN_SIZE.1 {
        let words = format!("Too small to draw: {}×{} at least. Nothing is lost.", MIN_SIZE.0, MIN_SIZE.1);
        for (y, row) in text::wrap(&words, usize::from(width)).into_iter().enumerate().take(usize::from(height)) {
            put(buffer, 0, u16::try_from(y).unwrap_or(0), width, &Line::from(row));
        }
        return None;
    }
    let areas = areas(model);
    let mut cursor = None;
    if let Some(area) = areas.tree {
        cursor = tree::draw(model, buffer, area).or(cursor);
        if areas.talk.is_some() {
            hairline(model, buffer, area.right(), area.height);
        }
    }
    if let Some(area) = areas.talk {
        talk(model, buffer, area);
    }
    if let (Some(area), Some(side)) = (areas.side, &model.side) {
        let beside = areas.talk.is_some();
        if beside {
            hairline(model, buffer, area.x - 1, area.height);
        }
        let inner = if beside { Rect::new(area.x + 1, area.y, area.width - 1, area.height) } else { area };
        let at = match side {
            Side::Home(home) => home::draw(model, home, buffer, inner),
            Side::Quest(panel) => quest::draw(model, panel, buffer, inner),
            Side::Sheet(sheet) => sheet::draw(model, sheet, buffer, inner),
        };
        cursor = at.filter(|_| model.focus == Focus::Side).or(cursor);
    }
    put(buffer, 0, areas.separator.y, width, &separator::line(model, usize::from(width)));
    if let Some(area) = areas.below {
        for (y, words) in (area.y..area.bottom()).zip(below_separator(model)) {
            put(buffer, 0, y, width, &Line::styled(format!(" {words}"), model.look.style(Ink::Dim)));
        }
    }
    let caret = own_text(model, buffer, areas.text);
    if model.focus == Focus::Text {
        cursor = Some(caret);
    }
    if let Some(area) = areas.bottom {
        let at = bottom::draw(model, buffer, area);
        cursor = at.or(cursor);
    }
    cursor = overlays::draw(model, buffer, &areas).or(cursor);
    if model.look.ascii {
        look::to_ascii(buffer);
    }
    cursor
}

/// How many rows the conversation has.
pub fn talk_size(model: &Model) -> (usize, usize) {
    let areas = areas(model);
    areas.talk.map_or((usize::from(model.size.0), usize::from(areas.separator.y)), |area| {
        (usize::from(area.width), usize::from(area.height))
    })
}

fn talk(model: &Model, buffer: &mut Buffer, area: Rect) {
    let height = usize::from(area.height);
    let Some(flow) = Flow::new(model, usize::from(area.width)) else {
        return first_start(model, buffer, area);
    };
    let rows = flow.visible(height);
    // A short conversation stands at the bottom, next to your text.
    let top = area.height - u16::try_from(rows.len()).unwrap_or(area.height).min(area.height);
    for (at, row) in rows.iter().enumerate() {
        let y = area.y + top + u16::try_from(at).unwrap_or(0);
        put(buffer, area.x, y, area.width, &row.text);
    }
    if rows.is_empty() {
        let words = match model.talk() {
            Some(talk) if talk.loading => "  Reading its history …",
            Some(talk) if !talk.is_read => "  Its history could not be read. It is read when the daemon is back.",
            _ => "  Nothing was said yet.",
        };
        if area.height > 0 {
            put(buffer, area.x, area.bottom() - 1, area.width, &Line::styled(words, model.look.style(Ink::Dim)));
        }
    }
}

fn first_start(model: &Model, buffer: &mut Buffer, area: Rect) {
    let bold = model.look.style(Ink::Bold);
    let dim = model.look.style(Ink::Dim);
    // Before the first answer, it is not known whether there are agents.
    if model.link == Connection::Opening || model.project.is_empty() {
        let last = area.bottom().saturating_sub(1);
        put(buffer, area.x, last, area.width, &Line::styled("  Looking for the daemon …", dim));
        return;
    }
    let accent = model.look.style(Ink::Accent);
    let example = |words: &str, hint: &str| {
        let left = if hint.is_empty() { words.to_owned() } else { text::padded(words, 40) };
        Line::from(vec![
            Span::raw("  "),
            Span::styled("› ", accent),
            Span::raw(left),
            Span::styled(hint.to_owned(), dim),
        ])
    };
    let key = |key: &str, words: &str| {
        Line::from(vec![Span::raw("  "), Span::styled(text::padded(key, 9), bold), Span::raw(words.to_owned())])
    };
    let mut lines = vec![
        Line::default(),
        Line::default(),
        Line::styled("  No agents yet", bold),
        Line::default(),
        Line::from("  Say what you want to have. Enter starts an agent with it."),
        Line::default(),
        example("make the second test in tests/retry.rs faster", ""),
        example("/quest new limit requests per tenant", "several agents, with a plan"),
        example("/quest new --harness scripted try it", "needs no account"),
        example("/adopt", "continue a talk of Claude Code"),
        Line::default(),
        Line::from("  Three keys are enough for the first day:"),
        Line::default(),
        key("Ctrl-X", "then a letter: switch agent, open a panel. It shows which."),
        key("Tab", "completes /commands, @files and names of agents"),
        key("Esc", "from your text to the conversation and back; it never stops anybody"),
        Line::default(),
        Line::styled("  Agents go on when you leave. What you type here is kept, for each agent.", dim),
        Line::default(),
    ];
    let missing = model.missing.as_deref().map(missing).unwrap_or_default();
    let rows = text::wrap(&missing, usize::from(area.width).saturating_sub(3));
    lines.extend(rows.into_iter().map(|row| Line::styled(format!("  {row}"), model.look.style(Ink::Bad))));
    for (at, line) in lines.iter().enumerate().take(usize::from(area.height)) {
        put(buffer, area.x, area.y + u16::try_from(at).unwrap_or(0), area.width, line);
    }
}

fn missing(program: &str) -> String {
    format!("{program} is not there. hatchery doctor says what to do, or /quest new --harness scripted …")
}

/// The row of the caret, and the first row of your text that is in sight.
pub fn text_top(rows: &[FieldRow], height: u16) -> (usize, usize) {
    let of_cursor = rows.iter().position(|row| row.cursor.is_some()).unwrap_or(0);
    let height = usize::from(height).max(1);
    (of_cursor, (of_cursor + 1).saturating_sub(height).min(rows.len().saturating_sub(height)))
}

/// Your text, and where the caret is.
fn own_text(model: &Model, buffer: &mut Buffer, area: Rect) -> Position {
    let look = model.look;
    let field = &model.desk().field;
    let cells = text_cells(area.width);
    let rows = field.rows(cells);
    let height = usize::from(area.height).max(1);
    let (of_cursor, top) = text_top(&rows, area.height);
    // While the keys go elsewhere, your text waits.
    let waits = model.focus != Focus::Text || model.overlay.as_ref().is_some_and(Overlay::takes_keys);
    let mark = look.style(if waits { Ink::Dim } else { Ink::Accent });
    let ink = look.style(if waits { Ink::Dim } else { Ink::Plain });
    put(buffer, area.x, area.y, area.width, &Line::styled("❯", mark));
    for (at, row) in rows.iter().skip(top).take(height).enumerate() {
        let y = area.y + u16::try_from(at).unwrap_or(0);
        put(buffer, area.x + 2, y, area.width.saturating_sub(3), &Line::styled(row.text.clone(), ink));
    }
    if field.is_empty() {
        let words = match model.current {
            Some(agent) => format!("Say something to {}", model.name(agent)),
            None => "Say what you want to have".to_owned(),
        };
        let words = text::cut(&words, cells);
        put(buffer, area.x + 2, area.y, area.width.saturating_sub(3), &Line::styled(words, look.style(Ink::Dim)));
    }
    let column = rows.get(of_cursor).and_then(|row| row.cursor).unwrap_or(0);
    Position {
        x: (area.x + 2 + u16::try_from(column).unwrap_or(0)).min(area.right().saturating_sub(1)),
        y: area.y + u16::try_from(of_cursor - top).unwrap_or(0),
    }
}

fn hairline(model: &Model, buffer: &mut Buffer, x: u16, height: u16) {
    for y in 0..height {
        put(buffer, x, y, 1, &Line::styled("│", model.look.style(Ink::Line)));
    }
}

/// One line at a place, cut to its room.
fn put(buffer: &mut Buffer, x: u16, y: u16, width: u16, line: &Line<'_>) {
    if buffer.area.contains(Position { x, y }) {
        buffer.set_line(x, y, line, width.min(buffer.area.right().saturating_sub(x)));
    }
}

/// Puts your open question on a tint. What is filled or sunken stays so.
fn tint(model: &Model, buffer: &mut Buffer, area: Rect) {
    let style = model.look.style(Ink::Asked);
    for position in area.intersection(buffer.area).positions() {
        let cell = &mut buffer[position];
        if cell.bg == Color::Reset {
            cell.set_style(style);
        }
    }
}

/// Something on the left, and something at the right end of so many cells.
fn apart(left: Vec<Span<'static>>, right: Vec<Span<'static>>, cells: usize) -> Line<'static> {
    let wide = |spans: &[Span<'_>]| spans.iter().map(Span::width).sum::<usize>();
    let room = cells.saturating_sub(wide(&right) + usize::from(!right.is_empty()));
    let mut spans = Vec::new();
    let mut used = 0;
    for span in left {
        let part = text::cut(&span.content, room.saturating_sub(used));
        used += text::width(&part);
        spans.push(Span::styled(part, span.style));
    }
    spans.push(Span::raw(" ".repeat(cells.saturating_sub(used + wide(&right)))));
    spans.extend(right);
    Line::from(spans)
}
