//! The keys while you read.

use super::{PANELS, edit_key, letter_of_prefix, means_nothing};
use crate::tui::act;
use crate::tui::command;
use crate::tui::draw;
use crate::tui::field::Field;
use crate::tui::model::{BlockKey, Focus, Model};
use crate::tui::overlay::Overlay;
use crate::tui::update::Effect;
use crate::tui::window::Whole;
use crossterm::event::{KeyCode, KeyEvent};

pub(super) fn in_browse(model: &mut Model, key: KeyEvent) -> Vec<Effect> {
    let (_, height) = draw::talk_size(model);
    let page = isize::try_from(height.saturating_sub(2).max(1)).unwrap_or(10);
    let chosen = model.desk().chosen;
    let pending_g = std::mem::take(&mut model.pending_g);
    match key.code {
        KeyCode::Esc if model.search.is_some() => {
            if let Some(search) = model.search.take() {
                (model.desk_mut().place, model.going) = (search.back, None);
            }
            act::come_back(model)
        }
        KeyCode::Char(letter) if pending_g && PANELS.contains(letter) => letter_of_prefix(model, letter),
        KeyCode::Esc | KeyCode::Char('s' | 'i') => {
            model.focus = Focus::Text;
            model.search = None;
            model.desk_mut().chosen = None;
            Vec::new()
        }
        KeyCode::Home => act::to_begin(model),
        KeyCode::Char('g') if pending_g => act::to_begin(model),
        KeyCode::Char('g') => {
            model.pending_g = true;
            Vec::new()
        }
        KeyCode::Char('G') | KeyCode::End => {
            let effects = act::to_end(model);
            model.desk_mut().chosen = None;
            // What is there is not the end while the end is read.
            if effects.is_empty() { act::choose_block(model, 0) } else { effects }
        }
        KeyCode::Char('j') | KeyCode::Down => act::choose_block(model, 1),
        KeyCode::Char('k') | KeyCode::Up => act::choose_block(model, -1),
        KeyCode::Char('J') => act::neighbour(model, true),
        KeyCode::Char('K') => act::neighbour(model, false),
        KeyCode::Char(' ') | KeyCode::PageDown => {
            model.desk_mut().chosen = None;
            act::scroll(model, page)
        }
        KeyCode::Char('b') | KeyCode::PageUp => {
            model.desk_mut().chosen = None;
            act::scroll(model, -page)
        }
        KeyCode::Enter => {
            if let Some(key) = chosen {
                act::fold(model, key);
            }
            Vec::new()
        }
        KeyCode::Char('E') => {
            act::fold_turn(model);
            Vec::new()
        }
        KeyCode::Char(letter @ ('y' | 'Y')) => match chosen.map(|key| source_of(model, key)) {
            Some(source) if letter == 'Y' => copy_code(model, &source),
            Some(source) => vec![Effect::Copy(source)],
            None => {
                model.say(format!("j or k chooses a block, {letter} copies it."));
                Vec::new()
            }
        },
        KeyCode::Char('v') => match model.current {
            Some(agent) => vec![Effect::Whole { agent, what: Whole::Page { full: false } }],
            None => Vec::new(),
        },
        KeyCode::Char('/') => {
            act::begin_search(model);
            Vec::new()
        }
        KeyCode::Char('n') => act::next_match(model, true),
        KeyCode::Char('N') => act::next_match(model, false),
        KeyCode::Char('f') => {
            let at = chosen.map(|key| format!(" --at #{}", key.0)).unwrap_or_default();
            propose(model, &format!("/fork{at} "))
        }
        KeyCode::Char('X') => propose(model, "/stop"),
        KeyCode::Char('I') => propose(model, "/interrupt"),
        KeyCode::Char(':') => propose(model, "/"),
        KeyCode::Char('#') => {
            model.overlay = Some(Overlay::Goto(Field::default()));
            Vec::new()
        }
        KeyCode::Char(digit @ '1'..='9') if chosen.is_some() => {
            let number = digit.to_digit(10).and_then(|number| usize::try_from(number).ok()).unwrap_or(1);
            act::number_on_question(model, number).unwrap_or_else(|| letter_of_prefix(model, digit))
        }
        KeyCode::Char(
            letter @ ('e'
            | 'o'
            | 'h'
            | 't'
            | 'q'
            | 'm'
            | 'l'
            | 'w'
            | 'd'
            | 'c'
            | 'a'
            | 'z'
            | 'r'
            | 'M'
            | '?'
            | '1'..='9'),
        ) => letter_of_prefix(model, letter),
        _ => means_nothing(model, key),
    }
}

fn source_of(model: &Model, key: BlockKey) -> String {
    let (cells, _) = draw::talk_size(model);
    crate::tui::flow::Flow::new(model, cells).map(|flow| flow.source(key)).unwrap_or_default()
}

/// Copies the code in a text. Nothing to copy leaves the clipboard as it is.
fn copy_code(model: &mut Model, source: &str) -> Vec<Effect> {
    match act::code_of(source) {
        code if code.is_empty() => {
            model.say("There is no code in it.");
            Vec::new()
        }
        code => vec![Effect::Copy(code)],
    }
}

/// Puts a command on the bottom line. Enter carries it out.
pub(super) fn propose(model: &mut Model, command: &str) -> Vec<Effect> {
    model.overlay = Some(Overlay::Propose(Field::of(command)));
    Vec::new()
}

pub(super) fn in_search(model: &mut Model, key: KeyEvent) -> Vec<Effect> {
    let Some(search) = &mut model.search else { return Vec::new() };
    match key.code {
        KeyCode::Esc => {
            let back = search.back;
            (model.search, model.going) = (None, None);
            model.desk_mut().place = back;
            act::come_back(model)
        }
        KeyCode::Enter => {
            search.typing = false;
            let words = search.words.whole();
            let is_command = command::is_name(words.split_whitespace().next().unwrap_or_default());
            let may_be_command = search.found.is_empty() && is_command;
            if search.words.is_empty() || may_be_command {
                model.search = None;
            }
            match may_be_command {
                // In your text, the slash begins a command.
                true => propose(model, &format!("/{words}")),
                false => Vec::new(),
            }
        }
        _ => {
            edit_key(&mut search.words, key);
            act::search(model)
        }
    }
}
