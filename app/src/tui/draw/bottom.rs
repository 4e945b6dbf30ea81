//! The bottom line: on the left what Enter will do, or what has just happened; on the right at most five keys that fit the moment.

use super::put;
use crate::tui::act;
use crate::tui::look::Ink;
use crate::tui::model::{Connection, Focus, Model};
use crate::tui::overlay::Overlay;
use crate::tui::panel::{Home, SheetKind, Side, choices};
use crate::tui::roster::Need;
use crate::tui::text;
use crate::tui::words;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

/// Whether something is typed on the bottom line.
pub fn is_typed_on(model: &Model) -> bool {
    let in_overlay = matches!(&model.overlay, Some(Overlay::Propose(_) | Overlay::Recall { .. } | Overlay::Goto(_)));
    in_overlay || model.search.as_ref().is_some_and(|search| search.typing)
}

/// What is said at the moment, where it has no room on the bottom line or there is none.
pub fn too_long(model: &Model) -> Option<&str> {
    if !super::has_bottom(model) {
        return model.notice().filter(|_| model.overlay.is_none());
    }
    let before = match &model.overlay {
        Some(Overlay::Propose(field)) => text::width(&field.shown()) + NOTICE_GAP,
        None => 0,
        Some(_) => return None,
    };
    model.notice().filter(|notice| before + text::width(notice) + 2 > usize::from(model.size.0))
}

pub fn draw(model: &Model, buffer: &mut Buffer, area: Rect) -> Option<Position> {
    let cells = usize::from(area.width).saturating_sub(2);
    let (left, keys, caret) = said(model);
    let mut keys = keys;
    // The words come first; keys that do not fit are left out, the least useful one first.
    while text::width(&left) + text::width(&keys.join(" · ")) + 2 > cells && keys.len() > 1 {
        keys.remove(if keys.len() > 2 { 1 } else { 0 });
    }
    let right = keys.join(" · ");
    let right =
        if text::width(&left) + text::width(&right) + 2 > cells && !left.is_empty() { String::new() } else { right };
    let room = cells.saturating_sub(text::width(&right) + usize::from(!right.is_empty()));
    let left = text::padded(&left, room);
    let gap = if right.is_empty() { "" } else { " " };
    let ink = if model.notice().is_some() { Ink::Plain } else { Ink::Dim };
    let ink = if caret.is_some() { Ink::Plain } else { ink };
    let (accent, dim) = (model.look.style(Ink::Accent), model.look.style(Ink::Dim));
    // The name of the panel that the keys go to, and how many need you, are about you.
    let named = matches!(model.focus, Focus::Browse | Focus::Tree | Focus::Side) && model.overlay.is_none();
    let name = if named { left.find("  ").unwrap_or(left.len()) } else { 0 };
    let mut spans = vec![Span::raw(" "), Span::styled(left[..name].to_owned(), accent)];
    spans.extend([Span::styled(left[name..].to_owned(), model.look.style(ink)), Span::raw(gap)]);
    let next = right.find("next of ").map(|at| (at, right[at..].find(" ·").map_or(right.len(), |end| at + end)));
    let (from, to) = next.unwrap_or((0, 0));
    spans.extend([
        Span::styled(right[..from].to_owned(), dim),
        Span::styled(right[from..to].to_owned(), accent),
        Span::styled(right[to..].to_owned(), dim),
    ]);
    let line = Line::from(spans);
    put(buffer, area.x, area.y, area.width, &line);
    caret.map(|column| Position { x: area.x + 1 + u16::try_from(column).unwrap_or(0), y: area.y })
}

/// Between a command and what is said about it.
const NOTICE_GAP: usize = 3;

/// The next key that is worth knowing.
fn next_hint(model: &Model, x: &str) -> Option<String> {
    let back = model.last_visited().is_some().then_some(('x', "^X", "the last one"));
    let hints = back.into_iter().chain([('o', "o", "find"), ('h', "h", "home"), ('m', "m", "mail")]);
    let mut unknown = hints.filter(|(letter, ..)| !model.is_learned(&format!("^X {letter}")));
    unknown.next().map(|(letter, key, does)| match letter {
        'x' => format!("{x} {key} {does}"),
        letter => format!("{x} {} {does}", model.keys.shown(letter)),
    })
}

/// What the keys do in Home with what is chosen there.
fn home_keys(model: &Model, home: &Home, wide: bool, back: &str) -> Vec<String> {
    let below = model.roster.below_needs(model.now);
    let is_below = home.chosen.as_ref().is_some_and(|chosen| below.contains(chosen));
    let need = act::chosen_need(model).map(|(_, need)| need).filter(|_| !is_below);
    let is_gone = home.chosen.is_some() && home.chosen != need.as_ref().map(Need::key);
    let next = if wide { "j k next" } else { "↓ next" };
    let mut keys = match need {
        _ if home.typing && is_gone => vec!["Enter sets your words aside".to_owned()],
        Some(_) if home.typing => return ["Enter answers", "↓ next", "Esc keeps your words"].map(str::to_owned).into(),
        Some(need) => {
            let (count, does) = match need {
                Need::Question(question) => (choices(model, question).len(), "Enter answers"),
                Need::FailedStep { .. } => (2, "Enter does it"),
            };
            vec![format!("1–{count} choose"), does.to_owned(), next.to_owned()]
        }
        None if is_below => vec!["Enter goes there".to_owned(), next.to_owned()],
        None if below.is_empty() => Vec::new(),
        None => vec![next.to_owned()],
    };
    if wide && act::chosen_in_home(model).is_some() {
        keys.push("s its conversation".to_owned());
    }
    keys.push(back.to_owned());
    keys
}

/// What is said on the left, the keys on the right, and the caret of what is typed here.
fn said(model: &Model) -> (String, Vec<String>, Option<usize>) {
    let width = model.size.0;
    let wide = width >= 110;
    let x = if wide { "Ctrl-X" } else { "^X" };
    let keys = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>();
    let kept = if model.desk().field.is_empty() { String::new() } else { "Your text is kept.".to_owned() };
    match &model.overlay {
        Some(Overlay::Finder(_)) => {
            let left = match model.desk().field.shown().chars().count() {
                0 => "Your text is empty.".to_owned(),
                count => format!("Your text is kept, {count} characters."),
            };
            return (left, keys(&["↑ ↓ choose", "Enter go", "Tab do …", "Esc back"]), None);
        }
        Some(Overlay::Help(_)) => return (kept, keys(&["↑ ↓ choose", "Enter does it", "Esc back"]), None),
        Some(Overlay::Reader(_)) => {
            return (kept, keys(&["Space b page", "y copy", "v in your pager", "Esc back"]), None);
        }
        Some(Overlay::Kill(_)) => {
            return ("1 2 3 choose, then Enter. Any other key keeps it.".to_owned(), keys(&["Esc keeps it"]), None);
        }
        Some(Overlay::Propose(field)) => {
            let column = text::width(&field.before_cursor().replace('\n', " "));
            let notice = model.notice().filter(|_| too_long(model).is_none());
            let gap = " ".repeat(NOTICE_GAP);
            let left = notice.map_or_else(|| field.shown(), |notice| format!("{}{gap}{notice}", field.shown()));
            return (left, keys(&["Enter carries it out", "Esc back"]), Some(column));
        }
        Some(Overlay::Goto(field)) => {
            let left = format!("go to event #{}", field.shown());
            let column = text::width(&left);
            return (left, keys(&["Enter goes there", "Esc back"]), Some(column));
        }
        Some(Overlay::Recall { words, at }) => {
            let found = model.recall.search(&words.whole(), 1_000);
            let left = format!("search what you typed: {}", words.shown());
            let column = text::width(&left);
            let entry = found
                .get(*at)
                .map_or_else(|| "no match".to_owned(), |text| text.lines().next().unwrap_or_default().to_owned());
            return (format!("{left}   {entry}"), keys(&["^R older", "Enter takes it", "Esc back"]), Some(column));
        }
        Some(Overlay::Suggest(_)) | None => {}
    }
    if model.prefix.is_some() {
        return (x.to_owned(), keys(&["a letter", "? all keys", "Esc"]), None);
    }
    if let Some(search) = &model.search
        && (search.typing || model.focus == Focus::Browse)
    {
        let words = format!("/{}", search.words.shown());
        let count = match (search.found.len(), search.upto) {
            (0, _) if search.words.is_empty() => String::new(),
            (0, Some(upto)) => format!("  no match · to #{}", text::thousands(upto.0)),
            (0, None) => "  no match".to_owned(),
            (all, Some(upto)) => format!("  {} of {all} · to #{}", search.at + 1, text::thousands(upto.0)),
            (all, None) => format!("  {} of {all}", search.at + 1),
        };
        let column = search.typing.then(|| text::width(&words));
        let right = match search.typing {
            true => keys(&["Enter stays", "Esc back"]),
            false => keys(&["n N", "Enter fold", "f fork", "y copy", "Esc back"]),
        };
        return (words + &count, right, column);
    }
    if let Some(notice) = model.notice().filter(|_| too_long(model).is_none()) {
        let right = match model.last_visited() {
            Some(_) if notice.starts_with("You are in the fork") => keys(&["^X ^X goes back"]),
            _ => keys(&["^X keys"]),
        };
        return (notice.to_owned(), right, None);
    }
    match model.focus {
        Focus::Browse => {
            let fits = ["j k block", "Enter fold", "f fork", "y copy", "Esc back"];
            (format!("Browse  {kept}").trim_end().to_owned(), keys(&fits), None)
        }
        Focus::Tree => (
            format!("Tree  {kept}").trim_end().to_owned(),
            keys(&["j k choose", "Enter go", "f fork", "Space fold", "Esc back"]),
            None,
        ),
        Focus::Side => {
            let back = if wide { "Esc back to your text" } else { "Esc back" };
            let (name, right) = match &model.side {
                Some(Side::Home(home)) => {
                    let right = home_keys(model, home, wide, back);
                    // Shown where there is room, because a user may start to type a sentence here.
                    let kept = if kept.is_empty() && !home.typing && width >= 80 { "Letters are keys." } else { &kept };
                    return (format!("Home  {kept}").trim_end().to_owned(), right, None);
                }
                Some(Side::Quest(_)) if wide => (
                    "Quest",
                    vec!["j k step", "Enter opens who is at work", "r retry", "p pause", "Tab other panel", back],
                ),
                Some(Side::Quest(_)) => ("Quest", vec!["j k step", "Enter who", "r retry", back]),
                Some(Side::Sheet(sheet)) => match sheet.kind {
                    SheetKind::Mail => ("Mail", vec!["j k choose", "Enter read", "c write", back]),
                    SheetKind::Log => ("Log", vec!["j k choose", "Enter the event", "/ filter", "A all agents", back]),
                    SheetKind::Why => ("How we know", vec!["j k", back]),
                    SheetKind::Changes => ("Changes", vec!["j k choose", "Enter the file", back]),
                    SheetKind::Cost => ("Cost", vec!["j k choose", "Enter go", back]),
                    SheetKind::Seats => ("Seats", vec!["j k choose", "Enter go, summon or wake", back]),
                },
                None => ("", vec![back]),
            };
            (format!("{name}  {kept}").trim_end().to_owned(), keys(&right), None)
        }
        Focus::Text => {
            let mut right = Vec::new();
            let needs = model.roster.need_count();
            let away = matches!(model.link, Connection::Away { .. });
            if away {
                right.push(format!("{x} {} try now", model.keys.shown('r')));
            } else if needs > 0 && model.is_learned("^X e") {
                // The separator says how many they are; the room is for a key that is not known yet.
                right.extend(next_hint(model, x));
            } else if needs > 0 && width < 70 {
                right.push(format!("{x} {} {needs}", model.keys.shown('e')));
            } else if needs > 0 {
                right.push(format!("{x} {} next of {needs}", model.keys.shown('e')));
            }
            if model.current.is_none() {
                return (words::enter_does(model), keys(&["^X keys", "/help", "/exit"]), None);
            }
            if model.desk().field.raw().chars().any(|char| u32::from(char) >= 0xF_0000) {
                right = vec![format!("{x} v shows the paste in your editor")];
            }
            if !model.is_learned("^X ?") || right.is_empty() {
                right.push(format!("{x} keys"));
            }
            if width >= 70 && !away && right.len() < 3 && !right[0].contains("paste") {
                let known = model.is_learned("esc");
                right.extend(if known { next_hint(model, x) } else { Some("Esc browse".to_owned()) });
                right.dedup();
            }
            (words::enter_does(model), right, None)
        }
    }
}
