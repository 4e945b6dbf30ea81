//! What each key does. In your text the keys are readline's; after `^X`, in the conversation and in panels, a letter has one meaning. No
//! single key does harm.

mod browse;
mod overlays;
mod panels;
mod prefix;
mod typing;

use browse::{in_browse, in_search, propose};
use overlays::in_overlay;
use panels::{in_side, in_tree};
use prefix::{after_g, after_prefix, letter_of_prefix};
use typing::in_text;
pub use typing::{edit_key, fix_purpose, settle_purpose};

use super::act;
use super::draw;
use super::field::TooLong;
use super::model::{Focus, Model};
use super::overlay::{Finder, Help, Overlay};
use super::panel::Side;
use super::text;
use super::update::Effect;
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

/// The longest paste that is kept for `/attach`.
const MAX_ATTACHED_BYTES: usize = 64 << 20;
/// The letters of panels, also after `g` as on the page.
const PANELS: &str = "hmlwdcstq";
/// Rows that the wheel moves.
const WHEEL: isize = 3;

pub fn key(model: &mut Model, key: KeyEvent) -> Vec<Effect> {
    if key.kind == KeyEventKind::Release {
        return Vec::new();
    }
    if let Some(awaited) = &mut model.awaited_fork {
        awaited.stay = true;
    }
    let leaving = std::mem::take(&mut model.leaving);
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let alt = key.modifiers.contains(KeyModifiers::ALT);
    if model.prefix.take().is_some() {
        return after_prefix(model, key);
    }
    if model.focus != Focus::Browse && std::mem::take(&mut model.pending_g) {
        return after_g(model, key);
    }
    if control && key.code == KeyCode::Char('x') {
        model.prefix = Some(model.now);
        return Vec::new();
    }
    if control && key.code == KeyCode::Char('l') {
        return vec![Effect::Redraw];
    }
    if control && key.code == KeyCode::Char('z') {
        return vec![Effect::Suspend];
    }
    if model.overlay.as_ref().is_some_and(Overlay::takes_keys) {
        return in_overlay(model, key);
    }
    if alt && let KeyCode::Char(letter @ ('e' | 'o' | 'j' | 'k' | 'a')) = key.code {
        return letter_of_prefix(model, letter);
    }
    if model.search.as_ref().is_some_and(|search| search.typing) {
        return in_search(model, key);
    }
    match model.focus {
        Focus::Text => in_text(model, key, leaving),
        Focus::Browse => in_browse(model, key),
        Focus::Tree => in_tree(model, key),
        Focus::Side => in_side(model, key),
    }
}

/// A paste is one insert into whatever is being typed. It never sends or runs anything.
pub fn paste(model: &mut Model, pasted: &str) -> Vec<Effect> {
    let line = || pasted.replace(['\n', '\r'], " ");
    if let Some(
        Overlay::Finder(Finder { words, .. })
        | Overlay::Help(Help { words, .. })
        | Overlay::Recall { words, .. }
        | Overlay::Propose(words)
        | Overlay::Goto(words),
    ) = &mut model.overlay
    {
        words.insert(&line());
        return Vec::new();
    }
    if let Some(search) = model.search.as_mut().filter(|search| search.typing) {
        search.words.insert(&line());
        return act::search(model);
    }
    if let Some(Side::Home(home)) = &mut model.side
        && model.focus == Focus::Side
        && home.typing
    {
        let key = home.chosen.clone().unwrap_or_default();
        home.own.entry(key).or_default().insert(&line());
        return Vec::new();
    }
    model.focus = Focus::Text;
    let was_empty = model.desk().field.is_empty();
    if let Err(TooLong(bytes)) = model.desk_mut().field.paste(pasted) {
        model.say(format!("{} is too long for a message. /attach makes a file of it.", text::size(bytes)));
        if pasted.len() <= MAX_ATTACHED_BYTES {
            model.too_long = Some(pasted.to_owned());
        }
    }
    fix_purpose(model, was_empty);
    model.overlay = None;
    Vec::new()
}

pub fn mouse(model: &mut Model, event: MouseEvent) -> Vec<Effect> {
    let areas = draw::areas(model);
    let at = ratatui::layout::Position { x: event.column, y: event.row };
    match event.kind {
        MouseEventKind::ScrollUp | MouseEventKind::ScrollDown => {
            let by = if event.kind == MouseEventKind::ScrollUp { -WHEEL } else { WHEEL };
            match (&mut model.side, areas.side.filter(|area| area.contains(at))) {
                (Some(Side::Sheet(sheet)), Some(_)) => {
                    sheet.cursor = sheet.cursor.saturating_add_signed(by).min(sheet.rows.len().saturating_sub(1));
                    Vec::new()
                }
                _ => act::scroll(model, by),
            }
        }
        MouseEventKind::Down(MouseButton::Left) => {
            if areas.separator.contains(at) {
                act::to_end(model);
            } else if areas.text.contains(at) {
                let cells = draw::text_cells(model.size.0);
                let row = usize::from(at.y - areas.text.y);
                model.desk_mut().field.click(row, usize::from(at.x.saturating_sub(2)), cells);
                model.focus = Focus::Text;
            } else if let Some(area) = areas.tree.filter(|area| area.contains(at)) {
                let (rows, _) = draw::tree_rows(model);
                let row = usize::from(at.y.saturating_sub(area.y + 1));
                match rows.get(row).map(|row| row.key) {
                    Some(draw::TreeKey::Agent(agent)) => return act::go(model, agent),
                    Some(draw::TreeKey::Quest(quest)) => return act::open_quest(model, Some(quest)),
                    _ => {}
                }
            } else if let Some(area) = areas.talk.filter(|area| area.contains(at)) {
                let (cells, height) = draw::talk_size(model);
                let rows = super::flow::Flow::new(model, cells).map(|flow| flow.visible(height)).unwrap_or_default();
                let top = usize::from(area.height).saturating_sub(rows.len());
                if let Some(row) = usize::from(at.y - area.y).checked_sub(top).and_then(|row| rows.get(row)) {
                    let key = row.item;
                    model.desk_mut().chosen = Some(key);
                    act::fold(model, key);
                }
            } else if areas.side.is_some_and(|area| area.contains(at)) {
                model.focus = Focus::Side;
            }
            Vec::new()
        }
        _ => Vec::new(),
    }
}
