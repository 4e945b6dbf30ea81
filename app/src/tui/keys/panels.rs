//! The keys in panels.

use super::{back_to_text, edit_key, letter_of_prefix, means_nothing, propose};
use crate::client::paths::{agent_path, escaped};
use crate::tui::act;
use crate::tui::command;
use crate::tui::draw;
use crate::tui::field::Field;
use crate::tui::model::{Focus, Model};
use crate::tui::overlay::Overlay;
use crate::tui::panel::{SheetAct, Side};
use crate::tui::update::{Effect, Tag};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::json;

/// Goes down or up by so many rows of the tree.
pub(super) fn choose_in_tree(model: &mut Model, by: isize) {
    let (rows, _) = draw::tree_rows(model);
    let agents: Vec<_> = rows
        .iter()
        .filter_map(|row| match row.key {
            draw::TreeKey::Agent(agent) => Some(agent),
            _ => None,
        })
        .collect();
    let chosen = model.tree_row.or(model.current);
    let at = chosen.and_then(|row| agents.iter().position(|agent| *agent == row));
    let to = at.map_or(0, |at| at.saturating_add_signed(by)).min(agents.len().saturating_sub(1));
    model.tree_row = agents.get(to).copied();
}

/// The next or previous step of the quest.
pub(super) fn choose_step(model: &mut Model, down: bool) {
    let Some(Side::Quest(panel)) = &mut model.side else { return };
    let listed = model.roster.documents.get(&panel.quest).map(draw::listed_steps).unwrap_or_default();
    let to = match down {
        true => listed.iter().find(|at| **at > panel.step).or(listed.last()),
        false => listed.iter().rev().find(|at| **at < panel.step).or(listed.first()),
    };
    (panel.step, panel.ward, panel.scroll) = (to.copied().unwrap_or(panel.step), None, 0);
}

/// The next or previous one in Home: those that need you, then who works. Nothing is chosen in it yet.
pub(super) fn choose_in_home(model: &mut Model, down: bool) {
    let mut all: Vec<String> = model.roster.needs().iter().map(crate::tui::roster::Need::key).collect();
    let needs = all.len();
    all.extend(model.roster.below_needs(model.now));
    let Some(Side::Home(home)) = &mut model.side else { return };
    let at = home.chosen.as_ref().and_then(|chosen| all.iter().position(|key| key == chosen)).unwrap_or(0);
    let to = match (down, &home.chosen) {
        (true, None) if needs == 0 => 0,
        (true, _) => (at + 1).min(all.len().saturating_sub(1)),
        (false, _) => at.saturating_sub(1),
    };
    (home.chosen, home.choice, home.typing) = (all.get(to).cloned(), None, false);
}

pub(super) fn in_tree(model: &mut Model, key: KeyEvent) -> Vec<Effect> {
    match key.code {
        KeyCode::Char('j') | KeyCode::Down => {
            choose_in_tree(model, 1);
            Vec::new()
        }
        KeyCode::Char('k') | KeyCode::Up => {
            choose_in_tree(model, -1);
            Vec::new()
        }
        KeyCode::Enter => match model.tree_row {
            Some(agent) => act::go(model, agent),
            None => Vec::new(),
        },
        KeyCode::Char(' ') => {
            if let Some(agent) = model.tree_row
                && !model.tree_folds.remove(&agent)
            {
                model.tree_folds.insert(agent);
            }
            Vec::new()
        }
        KeyCode::Char(letter @ ('f' | 'X')) => match model.tree_row {
            Some(agent) => {
                let name = command::reference(model, agent);
                propose(model, &if letter == 'f' { format!("/fork {name} ") } else { format!("/stop {name}") })
            }
            None => Vec::new(),
        },
        _ => leave_or_letter(model, key),
    }
}

fn leave_or_letter(model: &mut Model, key: KeyEvent) -> Vec<Effect> {
    match key.code {
        KeyCode::Esc | KeyCode::Char('i') => {
            back_to_text(model);
            Vec::new()
        }
        KeyCode::Tab => {
            model.focus = match (model.focus, &model.side) {
                (Focus::Side, _) if draw::shows_tree(model) => Focus::Tree,
                (Focus::Tree, Some(_)) => Focus::Side,
                (focus, _) => focus,
            };
            Vec::new()
        }
        KeyCode::Char(':' | '/') => propose(model, "/"),
        KeyCode::Char(letter @ ('e' | 'o' | 'h' | 't' | 'q' | 'm' | 'l' | 'w' | 'd' | 'c' | 'a' | 'z' | 'g' | '?')) => {
            letter_of_prefix(model, letter)
        }
        _ => means_nothing(model, key),
    }
}

/// Rows that a page of the quest is.
const QUEST_PAGE: usize = 10;

/// A page down or up in the quest, where what its step has come to is longer than the panel.
fn scroll_quest(model: &mut Model, down: bool) {
    let end = draw::quest_end(model);
    let Some(Side::Quest(panel)) = &mut model.side else { return };
    panel.scroll = match down {
        true => panel.scroll.saturating_add(QUEST_PAGE).min(end),
        false => panel.scroll.min(end).saturating_sub(QUEST_PAGE),
    };
}

pub(super) fn in_side(model: &mut Model, key: KeyEvent) -> Vec<Effect> {
    match &model.side {
        Some(Side::Home(_)) => in_home(model, key),
        Some(Side::Quest(_)) => match key.code {
            KeyCode::Char('j') | KeyCode::Down | KeyCode::Char('k') | KeyCode::Up => {
                choose_step(model, matches!(key.code, KeyCode::Char('j') | KeyCode::Down));
                Vec::new()
            }
            KeyCode::Enter => act::open_step(model),
            KeyCode::PageDown | KeyCode::Char(' ') | KeyCode::PageUp | KeyCode::Char('b') => {
                scroll_quest(model, matches!(key.code, KeyCode::PageDown | KeyCode::Char(' ')));
                Vec::new()
            }
            KeyCode::Char('r') => act::quest_command(model, "retry").map_or_else(Vec::new, |it| propose(model, &it)),
            KeyCode::Char('p') => act::quest_command(model, "pause").map_or_else(Vec::new, |it| propose(model, &it)),
            _ => leave_or_letter(model, key),
        },
        Some(Side::Sheet(_)) => in_sheet(model, key),
        None => leave_or_letter(model, key),
    }
}

fn in_home(model: &mut Model, key: KeyEvent) -> Vec<Effect> {
    let chosen = act::chosen_need(model).map(|(_, need)| need.key());
    let agent = act::chosen_in_home(model);
    let mut all: Vec<String> = model.roster.needs().iter().map(crate::tui::roster::Need::key).collect();
    let needs = all.len();
    all.extend(model.roster.below_needs(model.now));
    let Some(Side::Home(home)) = &mut model.side else { return Vec::new() };
    if home.typing {
        match key.code {
            KeyCode::Enter if !key.modifiers.contains(KeyModifiers::SHIFT) => return act::answer_chosen(model),
            KeyCode::Esc => home.typing = false,
            KeyCode::Up | KeyCode::Down => home.typing = false,
            _ => {
                // Also when this one is no longer asked: what is typed is for no other question.
                let key_of = home.chosen.clone().or(chosen).unwrap_or_default();
                edit_key(&mut model.own.entry(key_of).or_default().field, key);
            }
        }
        return Vec::new();
    }
    // Who stands below the needs is gone to, and what is chosen among them is answered.
    let is_need = needs > 0 && !home.chosen.as_ref().is_some_and(|chosen| all[needs..].contains(chosen));
    match key.code {
        KeyCode::Char(number @ '1'..='9') if is_need => {
            act::choose(model, number as usize - '0' as usize);
            Vec::new()
        }
        KeyCode::Enter if is_need => act::answer_chosen(model),
        KeyCode::Char('j') | KeyCode::Down | KeyCode::Char('k') | KeyCode::Up => {
            choose_in_home(model, matches!(key.code, KeyCode::Char('j') | KeyCode::Down));
            Vec::new()
        }
        KeyCode::Char('s') | KeyCode::Enter => match agent {
            Some(agent) => act::go(model, agent),
            None => Vec::new(),
        },
        KeyCode::Char('v') if is_need => {
            act::read_request(model);
            Vec::new()
        }
        _ => leave_or_letter(model, key),
    }
}

fn in_sheet(model: &mut Model, key: KeyEvent) -> Vec<Effect> {
    let Some(Side::Sheet(sheet)) = &mut model.side else { return Vec::new() };
    let last = sheet.rows.len().saturating_sub(1);
    let is_log = sheet.kind == crate::tui::panel::SheetKind::Log;
    if sheet.filtering {
        match key.code {
            KeyCode::Enter | KeyCode::Esc => {
                sheet.filtering = false;
                if key.code == KeyCode::Esc {
                    sheet.filter = Field::default();
                }
                return act::read_sheet(model);
            }
            _ => {
                edit_key(&mut sheet.filter, key);
                return Vec::new();
            }
        }
    }
    match key.code {
        KeyCode::Char('j') | KeyCode::Down => sheet.cursor = (sheet.cursor + 1).min(last),
        KeyCode::Char('k') | KeyCode::Up => sheet.cursor = sheet.cursor.min(last).saturating_sub(1),
        KeyCode::Char('G') | KeyCode::End => sheet.cursor = last,
        KeyCode::Home => sheet.cursor = 0,
        KeyCode::PageDown | KeyCode::Char(' ') => sheet.cursor = (sheet.cursor + 10).min(last),
        KeyCode::PageUp | KeyCode::Char('b') => sheet.cursor = sheet.cursor.saturating_sub(10),
        KeyCode::Char('/') if is_log => sheet.filtering = true,
        KeyCode::Char('#') if is_log => model.overlay = Some(Overlay::Goto(Field::default())),
        KeyCode::Char('A') if is_log => {
            sheet.agent = None;
            sheet.title = "Log of all agents".to_owned();
            return act::read_sheet(model);
        }
        KeyCode::Char('c') if sheet.kind == crate::tui::panel::SheetKind::Mail && key.modifiers.is_empty() => {
            let to = sheet.rows.get(sheet.cursor).and_then(|row| row.act.as_ref()).and_then(SheetAct::sender);
            let to = to.map(|agent| command::reference(model, agent) + " ").unwrap_or_default();
            return propose(model, &format!("/send {to}"));
        }
        KeyCode::Enter => {
            let act = sheet.rows.get(sheet.cursor).and_then(|row| row.act.clone());
            let agent = sheet.agent;
            return match act {
                Some(SheetAct::ReadMail { id, .. }) => {
                    vec![Effect::Post {
                        tag: Tag::Mail,
                        path: "/api/mail/human/read".into(),
                        body: json!({ "mail": id.0 }),
                    }]
                }
                Some(SheetAct::ShowEvent(id)) => {
                    vec![Effect::Get {
                        tag: Tag::Event(id),
                        path: format!("/api/events.json?limit=1&after={}", id.0.saturating_sub(1)),
                    }]
                }
                Some(SheetAct::ShowFile(file)) => match agent {
                    Some(agent) => {
                        let path = agent_path(&agent.to_string(), &format!("/changes?file={}", escaped(&file)));
                        vec![Effect::Get { tag: Tag::File(file), path }]
                    }
                    None => Vec::new(),
                },
                Some(SheetAct::Go(agent)) => act::go(model, agent),
                Some(SheetAct::Propose(command)) => propose(model, &command),
                Some(SheetAct::Read { title, text, .. }) => {
                    model.overlay = Some(Overlay::Reader(crate::tui::overlay::TextReader { title, text, top: 0 }));
                    Vec::new()
                }
                None => Vec::new(),
            };
        }
        _ => return leave_or_letter(model, key),
    }
    Vec::new()
}
