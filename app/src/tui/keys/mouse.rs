//! The mouse: the wheel scrolls what is under it, a click goes to a row, folds, sets the caret.

use super::panels::{choose_in_home, choose_in_tree, choose_step};
use crate::tui::act;
use crate::tui::draw;
use crate::tui::flow::Flow;
use crate::tui::model::{Focus, Model};
use crate::tui::overlay::Overlay;
use crate::tui::panel::Side;
use crate::tui::update::Effect;
use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

/// Rows that the wheel moves.
const WHEEL: isize = 3;

pub fn mouse(model: &mut Model, event: MouseEvent) -> Vec<Effect> {
    let at = Position { x: event.column, y: event.row };
    // What lies over the screen is not clicked through.
    let covered = model.overlay.as_ref().is_some_and(Overlay::takes_keys);
    match event.kind {
        MouseEventKind::ScrollUp => wheel(model, at, false),
        MouseEventKind::ScrollDown => wheel(model, at, true),
        MouseEventKind::Down(MouseButton::Left) if !covered => click(model, at),
        _ => Vec::new(),
    }
}

fn wheel(model: &mut Model, at: Position, down: bool) -> Vec<Effect> {
    let by = if down { WHEEL } else { -WHEEL };
    let lines = draw::reader_end(model);
    if let Some(Overlay::Reader(reader)) = &mut model.overlay {
        reader.top = reader.top.saturating_add_signed(by).min(lines);
        return Vec::new();
    }
    if model.overlay.as_ref().is_some_and(Overlay::takes_keys) {
        return Vec::new();
    }
    let areas = draw::areas(model);
    if areas.tree.is_some_and(|area| area.contains(at)) {
        choose_in_tree(model, by);
        return Vec::new();
    }
    if !areas.side.is_some_and(|area| area.contains(at)) {
        return act::scroll(model, by);
    }
    match &mut model.side {
        Some(Side::Sheet(sheet)) => {
            sheet.cursor = sheet.cursor.saturating_add_signed(by).min(sheet.rows.len().saturating_sub(1));
        }
        // A need is several rows, and a step is one of a few.
        Some(Side::Home(_)) => choose_in_home(model, down),
        Some(Side::Quest(_)) => choose_step(model, down),
        None => {}
    }
    Vec::new()
}

fn click(model: &mut Model, at: Position) -> Vec<Effect> {
    let areas = draw::areas(model);
    if areas.separator.contains(at) {
        return act::to_end(model);
    }
    if areas.text.contains(at) {
        let cells = draw::text_cells(model.size.0);
        let field = &mut model.desk_mut().field;
        let (_, top) = draw::text_top(&field.rows(cells), areas.text.height);
        field.click(top + usize::from(at.y - areas.text.y), usize::from(at.x.saturating_sub(2)), cells);
        model.focus = Focus::Text;
    } else if let Some(area) = areas.tree.filter(|area| area.contains(at)) {
        match draw::tree_at_row(model, area, at.y) {
            Some(draw::TreeKey::Agent(agent)) => return act::go(model, agent),
            Some(draw::TreeKey::Quest(quest)) => return act::open_quest(model, Some(quest)),
            Some(draw::TreeKey::Root | draw::TreeKey::Folded) | None => {}
        }
    } else if let Some(area) = areas.talk.filter(|area| area.contains(at)) {
        let (cells, height) = draw::talk_size(model);
        let rows = Flow::new(model, cells).map(|flow| flow.visible(height)).unwrap_or_default();
        let top = usize::from(area.height).saturating_sub(rows.len());
        if let Some(row) = usize::from(at.y - area.y).checked_sub(top).and_then(|row| rows.get(row)) {
            let key = row.item;
            model.desk_mut().chosen = Some(key);
            act::fold(model, key);
        }
    } else if let Some(area) = areas.side.filter(|area| area.contains(at)) {
        model.focus = Focus::Side;
        if let Some(Side::Sheet(sheet)) = &mut model.side
            && let Some(row) = draw::sheet_row(sheet, area.height, at.y - area.y)
        {
            sheet.cursor = row;
        }
    }
    Vec::new()
}
