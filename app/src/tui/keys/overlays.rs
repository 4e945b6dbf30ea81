//! The keys in overlays.

use super::{edit_key, letter_of_prefix, propose, settle_purpose};
use crate::client::paths::escaped;
use crate::tui::act;
use crate::tui::command;
use crate::tui::draw;
use crate::tui::field::Field;
use crate::tui::finder;
use crate::tui::model::Model;
use crate::tui::overlay::{Act, Overlay};
use crate::tui::panel::Side;
use crate::tui::update::{Effect, Tag};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use hatchery_core::EventId;

pub(super) fn in_overlay(model: &mut Model, key: KeyEvent) -> Vec<Effect> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let is_out = key.code == KeyCode::Esc || (control && matches!(key.code, KeyCode::Char('g' | 'c')));
    let chosen_act = finder::chosen_act(model);
    let entries = finder::entry_count(model);
    let cells = usize::from(model.size.0);
    let last_top = draw::reader_end(model);
    let Some(overlay) = &mut model.overlay else { return Vec::new() };
    match overlay {
        Overlay::Kill(ask) => match key.code {
            KeyCode::Char(number @ '1'..='3') => {
                let below = ask.cascade.as_ref().is_some_and(|preview| preview.killed.len() > 1);
                let number = number as usize - '1' as usize;
                if number < 2 || below {
                    ask.choice = number;
                }
                Vec::new()
            }
            KeyCode::Enter => act::kill(model),
            _ => {
                let name = ask.agent;
                model.overlay = None;
                model.say(format!("{} is kept.", model.name(name)));
                Vec::new()
            }
        },
        _ if is_out => {
            model.overlay = None;
            Vec::new()
        }
        Overlay::Finder(finder) => match key.code {
            KeyCode::Down | KeyCode::Char('n') if control || key.code == KeyCode::Down => {
                finder.at = (finder.at + 1).min(entries.saturating_sub(1));
                Vec::new()
            }
            KeyCode::Up | KeyCode::Char('p') if control || key.code == KeyCode::Up => {
                finder.at = finder.at.min(entries.saturating_sub(1)).saturating_sub(1);
                Vec::new()
            }
            KeyCode::Tab => {
                if let Some(Act::Go(agent)) = chosen_act {
                    (finder.with, finder.at, finder.words) = (Some(agent), 0, Field::default());
                }
                Vec::new()
            }
            KeyCode::Enter => match chosen_act {
                Some(act) => carry_out(model, act),
                None => Vec::new(),
            },
            _ => {
                edit_key(&mut finder.words, key);
                (finder.at, finder.events) = (0, None);
                let words = finder.words.whole();
                match words.chars().count() >= 2 {
                    true => vec![Effect::Get {
                        tag: Tag::Count(words.clone()),
                        path: format!("/api/events/count?words={}", escaped(&words)),
                    }],
                    false => Vec::new(),
                }
            }
        },
        Overlay::Help(help) => match key.code {
            KeyCode::Down | KeyCode::Up => {
                help.at = finder::next_in_help(help, cells, key.code == KeyCode::Down);
                Vec::new()
            }
            KeyCode::PageDown | KeyCode::PageUp => {
                (help.page, help.at) = (usize::from(key.code == KeyCode::PageDown), None);
                Vec::new()
            }
            KeyCode::Enter => match finder::help_act(help, cells) {
                Some(act) => carry_out(model, act),
                None => Vec::new(),
            },
            _ => {
                edit_key(&mut help.words, key);
                help.at = None;
                Vec::new()
            }
        },
        Overlay::Propose(field) => match key.code {
            KeyCode::Enter => {
                let command = field.whole();
                model.overlay = None;
                command::run_proposed(model, &command)
            }
            _ => {
                edit_key(field, key);
                if field.is_empty() {
                    model.overlay = None;
                }
                Vec::new()
            }
        },
        Overlay::Goto(field) => match key.code {
            KeyCode::Enter => {
                let digits: String = field.whole().chars().filter(char::is_ascii_digit).collect();
                model.overlay = None;
                match digits.parse() {
                    Ok(id) => act::goto(model, EventId(id)).unwrap_or_else(|mistake| {
                        model.say(mistake);
                        Vec::new()
                    }),
                    Err(_) => Vec::new(),
                }
            }
            _ => {
                edit_key(field, key);
                Vec::new()
            }
        },
        Overlay::Recall { words, at } => match key.code {
            KeyCode::Up | KeyCode::Char('r') if control || key.code == KeyCode::Up => {
                let found = model.recall.search(&words.whole(), *at + 2).len();
                *at = (*at + 1).min(found.saturating_sub(1));
                Vec::new()
            }
            KeyCode::Down => {
                *at = at.saturating_sub(1);
                Vec::new()
            }
            KeyCode::Enter => {
                let (words, at) = (words.whole(), *at);
                let found = model.recall.search(&words, at + 1).get(at).map(|text| Field::of_any(text));
                model.overlay = None;
                if let Some(field) = found {
                    let was_empty = model.desk().field.is_empty();
                    act::lay_aside(model);
                    model.desk_mut().field.set(&field);
                    settle_purpose(model, was_empty);
                }
                Vec::new()
            }
            _ => {
                edit_key(words, key);
                *at = 0;
                Vec::new()
            }
        },
        Overlay::Reader(reader) => {
            let page = usize::from(model.size.1).saturating_sub(6).max(1);
            let lines = last_top;
            match key.code {
                KeyCode::Char('j') | KeyCode::Down => reader.top = (reader.top + 1).min(lines),
                KeyCode::Char('k') | KeyCode::Up => reader.top = reader.top.saturating_sub(1),
                KeyCode::Char(' ') | KeyCode::PageDown => reader.top = (reader.top + page).min(lines),
                KeyCode::Char('b') | KeyCode::PageUp => reader.top = reader.top.saturating_sub(page),
                KeyCode::Char('y') => return vec![Effect::Copy(reader.text.clone())],
                KeyCode::Char('v') => return vec![Effect::Pager(reader.text.clone())],
                KeyCode::Char('q' | 's' | 'i') => model.overlay = None,
                _ => {}
            }
            Vec::new()
        }
        Overlay::Suggest(_) => Vec::new(),
    }
}

/// Does what an entry of the finder or of the keys stands for.
fn carry_out(model: &mut Model, act: Act) -> Vec<Effect> {
    model.overlay = None;
    match act {
        Act::Go(agent) => act::go(model, agent),
        Act::Quest(quest) => act::open_quest(model, Some(quest)),
        Act::Log(words) => {
            drop(act::open_sheet(model, crate::tui::panel::SheetKind::Log));
            if let Some(Side::Sheet(sheet)) = &mut model.side {
                (sheet.filter, sheet.agent) = (Field::of(&words), None);
                sheet.title = "Log of all agents".to_owned();
            }
            act::read_sheet(model)
        }
        Act::Propose(command) => propose(model, &command),
        Act::Key(letter) => letter_of_prefix(model, letter),
    }
}
