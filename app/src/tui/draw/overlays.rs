//! What lies over the conversation: the letters after `^X`, the finder, the keys, a kill, a completion, a text to read.

use super::{Areas, apart, put};
use crate::quest_document::QuestWord;
use crate::tui::finder;
use crate::tui::look::Ink;
use crate::tui::model::Model;
use crate::tui::overlay::{Act, Finder, Help, KillAsk, Overlay, Suggest, TextReader};
use crate::tui::roster::State;
use crate::tui::text;
use crate::tui::words::counted;
use hatchery_core::AgentId;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};
use std::collections::BTreeSet;

/// The letters are shown when no second key has come for so long.
pub const PREFIX_PAUSE_MS: i64 = 500;
/// The rows of the question about a kill that are not about one agent.
const KILL_ROWS: usize = 10;
/// In fewer cells, they are told in fewer words.
const KILL_WORDS_FROM: usize = 60;
/// How many entries of a completion are shown.
const SUGGESTIONS: usize = 8;

/// How many rows an overlay takes from the conversation.
pub fn rows(model: &Model, most: u16) -> u16 {
    let rows = match &model.overlay {
        Some(Overlay::Finder(finder)) => finder_lines(model, finder, 60).len(),
        Some(Overlay::Kill(ask)) => kill_lines(model, ask, 80, usize::MAX).len(),
        _ if shows_letters(model) => letters(model).len() + 1,
        _ => 0,
    };
    u16::try_from(rows).unwrap_or(most).min(most)
}

pub fn shows_letters(model: &Model) -> bool {
    model.prefix.is_some_and(|at| model.now.0 - at.0 >= PREFIX_PAUSE_MS)
}

pub fn draw(model: &Model, buffer: &mut Buffer, areas: &Areas) -> Option<Position> {
    let width = buffer.area.width;
    let bottom = areas.separator.y;
    let cells = usize::from(width);
    if shows_letters(model) {
        let lines = letters(model);
        let rule = Line::styled("─".repeat(cells), model.look.style(Ink::Line));
        let all: Vec<Line<'static>> = std::iter::once(rule).chain(lines).collect();
        stack(buffer, &all, width, bottom);
        return None;
    }
    if let Some(notice) = super::bottom::too_long(model) {
        let rule = Line::styled("─".repeat(cells), model.look.style(Ink::Line));
        let rows = text::wrap(&text::clean(notice), cells.saturating_sub(2));
        let rows = rows.into_iter().map(|row| Line::raw(format!(" {row}")));
        let all: Vec<Line<'static>> = std::iter::once(rule).chain(rows).collect();
        stack(buffer, &all, width, bottom);
        return None;
    }
    match model.overlay.as_ref()? {
        Overlay::Finder(finder) => {
            let lines = finder_lines(model, finder, cells);
            let top = stack(buffer, &lines, width, bottom);
            let column = 13 + text::width(finder.words.before_cursor());
            Some(Position { x: u16::try_from(column).unwrap_or(0), y: top })
        }
        Overlay::Kill(ask) => {
            let lines = kill_lines(model, ask, cells, usize::from(bottom));
            // All but the blank row above it.
            let top = stack(buffer, &lines, width, bottom) + 1;
            super::tint(model, buffer, Rect::new(0, top, width, bottom.saturating_sub(top)));
            let choices: u16 = if ask.cascade.as_ref().is_some_and(|all| all.killed.len() > 1) { 3 } else { 2 };
            let row = choices.saturating_sub(u16::try_from(ask.choice).unwrap_or(0));
            Some(Position { x: 1, y: bottom.saturating_sub(row) })
        }
        Overlay::Suggest(suggest) => {
            stack(buffer, &suggest_lines(model, suggest, cells), width, bottom);
            None
        }
        Overlay::Help(help) => Some(help_page(model, help, buffer, Rect::new(0, 0, width, bottom))),
        Overlay::Reader(reader) => {
            read(model, reader, buffer, Rect::new(0, 0, width, bottom));
            Some(Position { x: 0, y: 0 })
        }
        Overlay::Propose(_) | Overlay::Recall { .. } | Overlay::Goto(_) => None,
    }
}

/// Lines right above the separator, over whatever is there. Gives the first row.
fn stack(buffer: &mut Buffer, lines: &[Line<'static>], width: u16, bottom: u16) -> u16 {
    let count = u16::try_from(lines.len()).unwrap_or(bottom).min(bottom);
    let top = bottom - count;
    let skipped = lines.len() - usize::from(count);
    for (at, line) in lines.iter().skip(skipped).enumerate() {
        let y = top + u16::try_from(at).unwrap_or(0);
        wipe(buffer, Rect::new(0, y, width, 1));
        put(buffer, 0, y, width, line);
    }
    top
}

fn wipe(buffer: &mut Buffer, area: Rect) {
    for position in area.positions() {
        if let Some(cell) = buffer.cell_mut(position) {
            cell.reset();
        }
    }
}

fn letters(model: &Model) -> Vec<Line<'static>> {
    let needs = model.roster.need_count();
    let last = model.last_visited().map_or_else(
        || "the last one".to_owned(),
        |agent| format!("last: {}", text::cut_middle(&model.name(agent), 14)),
    );
    let next = if needs > 0 { format!("next of {needs}") } else { "who needs you".to_owned() };
    let table = [
        [("e", next), ("h", "home".to_owned()), ("a", "answer oldest".to_owned())],
        [("o", "find or do".to_owned()), ("t", "tree".to_owned()), ("f F", "fork".to_owned())],
        [("j k", "next, previous".to_owned()), ("q", "quest".to_owned()), ("I", "interrupt".to_owned())],
        [("← →", "parent, child".to_owned()), ("m", "mail".to_owned()), ("y", "copy its answer".to_owned())],
        [("^X", last), ("l", "log".to_owned()), ("v", "your editor".to_owned())],
        [("1–9", "by number".to_owned()), ("d w", "changes, how".to_owned()), ("/", "search".to_owned())],
    ];
    let look = model.look;
    // Two letters stand together, the others alone.
    let shown = |key: &str| match key {
        "^X" | "← →" | "1–9" => key.to_owned(),
        key => key.chars().map(|letter| model.keys.shown(letter)).collect(),
    };
    let column = |(key, words): &(&'static str, String)| {
        let cells = if model.size.0 >= 66 { 22 } else { 16 };
        [
            Span::raw("  "),
            Span::styled(text::padded(&shown(key), 4), look.style(Ink::Accent)),
            Span::raw(text::padded(words, cells - 6 + 4)),
        ]
    };
    table.iter().map(|row| Line::from(row.iter().flat_map(column).collect::<Vec<_>>())).collect()
}

fn finder_lines(model: &Model, finder: &Finder, cells: usize) -> Vec<Line<'static>> {
    let look = model.look;
    let found = finder::entries(model, finder);
    let head = vec![Span::styled(" Find or do  ", look.style(Ink::Bold)), Span::raw(finder.words.shown())];
    let quests = model.roster.quests.iter().filter(|quest| quest.state == QuestWord::Open).count();
    let counts = format!(
        "{} of {}, {}, {} commands",
        found.agents,
        counted(model.roster.agents.len().saturating_sub(1), "agent"),
        counted(quests, "quest"),
        crate::tui::command::NAMES.len()
    );
    let mut lines =
        vec![apart(head, vec![Span::styled(counts, look.style(Ink::Dim))], cells.saturating_sub(1)), Line::default()];
    let mut section = "";
    for (at, entry) in found.entries.iter().enumerate() {
        if entry.section != section {
            section = entry.section;
            let title = match finder.with.or(found.about) {
                Some(agent) if section == "Do with" => format!(" Do with {}", model.name(agent)),
                _ => format!(" {section}"),
            };
            lines.push(Line::styled(title, look.style(Ink::Dim)));
        }
        let chosen = at == finder.at.min(found.entries.len() - 1);
        let mark = if chosen { Span::styled("❯ ", look.style(Ink::Accent)) } else { Span::raw("  ") };
        let (glyph, ink) = glyph_of(model, &entry.act);
        let names = 32.min(cells * 2 / 5);
        let left = vec![
            mark,
            Span::styled(glyph, look.style(ink)),
            Span::raw(" "),
            Span::styled(
                text::padded(&text::cut(&entry.left, names.saturating_sub(4)), names.saturating_sub(2)),
                look.style(if chosen { Ink::Bold } else { Ink::Plain }),
            ),
            Span::styled(text::padded(&entry.middle, 12.min(cells / 6)), look.style(Ink::Dim)),
            Span::raw(entry.right.clone()),
        ];
        lines.push(apart(left, vec![Span::styled(entry.end.clone(), look.style(Ink::Dim))], cells.saturating_sub(1)));
    }
    if found.entries.is_empty() {
        lines.push(Line::styled(
            format!(" No match. {} events are there.", text::thousands(model.roster.head.0)),
            look.style(Ink::Dim),
        ));
    }
    lines.push(Line::default());
    lines
}

fn glyph_of(model: &Model, act: &Act) -> (String, Ink) {
    match act {
        Act::Go(agent) => model.roster.agents.get(agent).map_or_else(
            || (" ".to_owned(), Ink::Dim),
            |agent| {
                let state = model.roster.state(agent);
                (state.glyph(agent.ring).to_owned(), state.ink())
            },
        ),
        Act::Quest(_) => ("◶".to_owned(), Ink::Dim),
        Act::Log(_) | Act::Propose(_) | Act::Key(_) => (" ".to_owned(), Ink::Dim),
    }
}

/// What a kill would do. Where not all agents have room, some of them are counted.
fn kill_lines(model: &Model, ask: &KillAsk, cells: usize, height: usize) -> Vec<Line<'static>> {
    let look = model.look;
    let name = model.name(ask.agent);
    let bar = |spans: Vec<Span<'static>>| {
        let mut all = vec![Span::styled("▎", look.style(Ink::Accent))];
        all.extend(spans);
        Line::from(all)
    };
    let empty = || bar(Vec::new());
    let mut lines = vec![
        Line::default(),
        bar(vec![
            Span::styled(format!(" Kill {name}?"), look.style(Ink::Bold)),
            Span::styled("  Its run ends. Its history stays and can be forked.", look.style(Ink::Dim)),
        ]),
        empty(),
    ];
    let (Some(alone), Some(cascade)) = (&ask.alone, &ask.cascade) else {
        lines.push(bar(vec![Span::styled(" Asking what it would do …", look.style(Ink::Dim))]));
        return lines;
    };
    let narrow = cells < KILL_WORDS_FROM;
    let names = if narrow { 15 } else { 30.min(cells / 2) };
    let column = if narrow { (cells.saturating_sub(names + 2)) / 2 } else { 23.min(cells / 3) };
    let columns = |first: String, second: String, inks: [Ink; 2]| {
        let first = format!("{} ", text::padded(&first, column.saturating_sub(1)));
        let second = text::cut(&second, cells.saturating_sub(names + column + 2));
        [Span::styled(first, look.style(inks[0])), Span::styled(second, look.style(inks[1]))]
    };
    let mut head = vec![Span::raw(text::padded("", names))];
    let heads = if narrow { ("alone".to_owned(), "all below") } else { (format!("{name} alone"), "with all below") };
    head.extend(columns(heads.0, heads.1.to_owned(), [Ink::Dim, Ink::Dim]));
    lines.push(bar(head));
    let mut tree = Vec::new();
    branch(model, ask.agent, &cascade.killed, String::new(), &mut tree);
    let room = height.saturating_sub(KILL_ROWS).max(2);
    let left_out = if tree.len() > room { tree.len() - (room - 1) } else { 0 };
    tree.truncate(tree.len() - left_out);
    for (agent, art) in tree {
        let Some(it) = model.roster.agents.get(&agent) else { continue };
        let state = model.roster.state(it);
        let asks = model
            .roster
            .questions
            .iter()
            .any(|question| question.agent == agent && cascade.withdrawn.contains(&question.id));
        let second = match state {
            _ if asks && !narrow => "ends, its question too".to_owned(),
            State::Working if !narrow => "ends in mid-turn".to_owned(),
            _ if it.fresh > 0 && !narrow => format!("ends, {} new unread", it.fresh),
            _ => "ends".to_owned(),
        };
        let first = match (alone.killed.contains(&agent), alone.moved.iter().find(|(moved, _)| *moved == agent)) {
            (true, _) => second.clone(),
            (false, Some(_)) if narrow => "moves up".to_owned(),
            (false, Some((_, to))) => format!("moves up to {}", model.name(*to)),
            (false, None) if narrow => "stays".to_owned(),
            (false, None) => "stays below it".to_owned(),
        };
        let loses = asks || state == State::Working;
        let used = 1 + text::width(&art) + 1;
        let mut spans = vec![
            Span::styled(format!(" {art}"), look.style(Ink::Line)),
            Span::styled(state.glyph(it.ring), look.style(state.ink())),
            Span::raw(text::padded(&format!(" {}", model.name(agent)), names.saturating_sub(used))),
        ];
        spans.extend(columns(first, second, [Ink::Plain, if loses { Ink::Bad } else { Ink::Plain }]));
        lines.push(bar(spans));
    }
    if left_out > 0 {
        lines.push(bar(vec![Span::styled(format!(" … {left_out} more below it"), look.style(Ink::Dim))]));
    }
    lines.push(empty());
    let mut kept: Vec<String> = Vec::new();
    let steps = cascade.killed.iter().filter_map(|id| model.roster.agents.get(id)?.view.assignment.as_ref());
    let steps: BTreeSet<_> = steps.map(|assignment| (assignment.quest, &assignment.step)).collect();
    match steps.len() {
        0 => {}
        1 => kept.push("Its worktree is kept under rescue.".to_owned()),
        count => kept.push(format!("{count} worktrees are kept under rescue.")),
    }
    let drafts: Vec<String> = cascade
        .killed
        .iter()
        .filter(|id| **id != ask.agent && model.desks.get(id).is_some_and(|desk| !desk.field.is_empty()))
        .map(|id| model.name(*id))
        .collect();
    if !drafts.is_empty() {
        kept.push(format!("Your text in {} is kept.", drafts.join(", ")));
    }
    if !kept.is_empty() {
        lines.push(bar(vec![Span::styled(format!(" {}", kept.join(" ")), look.style(Ink::Dim))]));
        lines.push(empty());
    }
    let below = cascade.killed.len().saturating_sub(1);
    let mut labels = vec!["1 Keep it".to_owned()];
    labels.push(match below {
        0 => format!("2 Kill {name}"),
        1 => format!("2 Kill {name}, 1 goes on"),
        count => format!("2 Kill {name}, {count} go on"),
    });
    if below > 0 {
        labels.push(format!("3 Kill all {}", below + 1));
    }
    for (at, label) in labels.into_iter().enumerate() {
        let chosen = at == ask.choice;
        let mark = if chosen { Span::styled("❯ ", look.style(Ink::Accent)) } else { Span::raw("  ") };
        let style = look.style(if chosen { Ink::Accent } else { Ink::Plain });
        let style = if chosen { style.add_modifier(Modifier::BOLD) } else { style };
        lines.push(bar(vec![mark, Span::styled(label, style)]));
    }
    // A low screen has no room for blank rows.
    while lines.len() > height {
        let is_blank = |line: &Line<'_>| matches!(line.to_string().trim(), "" | "▎");
        let Some(at) = lines.iter().rposition(is_blank) else { break };
        lines.remove(at);
    }
    lines
}

fn branch(model: &Model, agent: AgentId, among: &[AgentId], art: String, out: &mut Vec<(AgentId, String)>) {
    out.push((agent, art.clone()));
    let children: Vec<AgentId> =
        model.roster.children(agent).into_iter().filter(|child| among.contains(child)).collect();
    let base = art.replace("├─ ", "│  ").replace("└─ ", "   ");
    for (at, child) in children.iter().enumerate() {
        let mark = if at + 1 == children.len() { "└─ " } else { "├─ " };
        branch(model, *child, among, format!("{base}{mark}"), out);
    }
}

fn suggest_lines(model: &Model, suggest: &Suggest, cells: usize) -> Vec<Line<'static>> {
    let look = model.look;
    let at = suggest.at.unwrap_or(0);
    let top = (at + 1).saturating_sub(SUGGESTIONS);
    let shown = suggest.entries.iter().enumerate().skip(top).take(SUGGESTIONS);
    shown
        .map(|(at, entry)| {
            let chosen = suggest.at == Some(at);
            let mark = if chosen { Span::styled("❯ ", look.style(Ink::Accent)) } else { Span::raw("  ") };
            let name = Span::styled(
                text::padded(&entry.left, 30.min(cells / 2)),
                look.style(if chosen { Ink::Bold } else { Ink::Plain }),
            );
            apart(
                vec![mark, name, Span::styled(format!(" {}", entry.right), look.style(Ink::Dim))],
                Vec::new(),
                cells.saturating_sub(1),
            )
        })
        .collect()
}

fn help_page(model: &Model, help: &Help, buffer: &mut Buffer, area: Rect) -> Position {
    wipe(buffer, area);
    let look = model.look;
    let cells = usize::from(area.width);
    let words = help.words.whole();
    let typed =
        if words.is_empty() { Span::styled("type to filter", look.style(Ink::Dim)) } else { Span::raw(words.clone()) };
    let commands = crate::tui::command::NAMES.len();
    let other = if help.page == 0 { format!("PgDn: {commands} commands") } else { "PgUp: keys".to_owned() };
    let head = apart(
        vec![Span::styled(" Keys and commands  ", look.style(Ink::Bold)), typed],
        vec![Span::styled(if words.is_empty() { other } else { String::new() }, look.style(Ink::Dim))],
        cells.saturating_sub(1),
    );
    put(buffer, area.x, area.y, area.width, &head);
    let lines = finder::help_lines(model, help, cells);
    let height = usize::from(area.height).saturating_sub(2);
    let top = lines.iter().position(|(_, chosen)| *chosen).map_or(0, |at| (at + 1).saturating_sub(height));
    for (at, (line, _)) in lines.iter().skip(top).take(height).enumerate() {
        put(buffer, area.x, area.y + 2 + u16::try_from(at).unwrap_or(0), area.width, line);
    }
    Position { x: area.x + 20 + u16::try_from(text::width(help.words.before_cursor())).unwrap_or(0), y: area.y }
}

fn reader_rows(reader: &TextReader, cells: usize) -> Vec<String> {
    text::wrap(&text::clean(&reader.text), cells)
}

/// The first row of the text that is read, when its end is in sight.
pub fn reader_end(model: &Model) -> usize {
    let Some(Overlay::Reader(reader)) = &model.overlay else { return 0 };
    let (width, height) = (usize::from(model.size.0), usize::from(super::areas(model).separator.y));
    reader_rows(reader, width.saturating_sub(2)).len().saturating_sub(height.saturating_sub(2))
}

fn read(model: &Model, reader: &TextReader, buffer: &mut Buffer, area: Rect) {
    wipe(buffer, area);
    let look = model.look;
    let cells = usize::from(area.width).saturating_sub(2);
    put(
        buffer,
        area.x,
        area.y,
        area.width,
        &Line::styled(format!(" {}", text::clean(&reader.title)), look.style(Ink::Bold)),
    );
    let lines = reader_rows(reader, cells);
    for (at, line) in lines.iter().skip(reader.top).take(usize::from(area.height).saturating_sub(2)).enumerate() {
        let ink = match line.chars().next() {
            Some('+') => Ink::Good,
            Some('-') => Ink::Bad,
            Some('@') => Ink::Dim,
            _ => Ink::Plain,
        };
        let y = area.y + 2 + u16::try_from(at).unwrap_or(0);
        put(buffer, area.x + 1, y, area.width - 1, &Line::styled(line.clone(), look.style(ink)));
    }
}
