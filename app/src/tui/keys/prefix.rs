//! The keys after ^X.

use super::PANELS;
use crate::tui::act;
use crate::tui::model::{Focus, Model};
use crate::tui::overlay::{Finder, Help, Overlay};
use crate::tui::update::Effect;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

pub(super) fn after_prefix(model: &mut Model, key: KeyEvent) -> Vec<Effect> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Esc => Vec::new(),
        KeyCode::Char('g') if control => Vec::new(),
        KeyCode::Char('x') if control => {
            used(model, 'x');
            act::last_visited(model)
        }
        KeyCode::Left => act::relative(model, true),
        KeyCode::Right => act::relative(model, false),
        KeyCode::Char(letter @ '1'..='9') => letter_of_prefix(model, letter),
        KeyCode::Char(letter) => match model.keys.meant(letter) {
            Some(meant) => letter_of_prefix(model, meant),
            None => {
                model.say(format!("^X {letter} does nothing. ^X {} shows all keys.", model.keys.shown('?')));
                Vec::new()
            }
        },
        _ => Vec::new(),
    }
}

/// The letter after `^X g`: a panel, as on the page.
pub(super) fn after_g(model: &mut Model, key: KeyEvent) -> Vec<Effect> {
    match key.code {
        KeyCode::Esc => Vec::new(),
        KeyCode::Char(letter) if PANELS.contains(letter) => letter_of_prefix(model, letter),
        _ => {
            model.say("There is no such panel. ^X ? shows all keys.");
            Vec::new()
        }
    }
}

/// A letter after `^X`, from anywhere.
pub(super) fn letter_of_prefix(model: &mut Model, letter: char) -> Vec<Effect> {
    used(model, letter);
    // What lies over the screen makes room for what was asked for.
    if !matches!(letter, 'v' | 'y') {
        model.overlay = None;
    }
    match letter {
        'e' => act::next_need(model),
        'o' => {
            model.overlay = Some(Overlay::Finder(Finder::default()));
            vec![Effect::AllAgents]
        }
        'j' => act::neighbour(model, true),
        'k' => act::neighbour(model, false),
        '1'..='9' => act::by_number(model, letter as usize - '0' as usize),
        'h' | 'q' | 'm' | 'l' | 'w' | 'd' | 'c' => act::toggle(model, letter),
        's' => act::toggle(model, 's'),
        't' => act::toggle_tree(model),
        'z' => {
            (model.side, model.tree, model.side_closed, model.focus) = (None, Some(false), true, Focus::Text);
            Vec::new()
        }
        'a' => act::answer_oldest(model),
        'f' => match model.current {
            Some(agent) => act::fork(model, agent, None, None, None, None),
            None => Vec::new(),
        },
        'F' => match model.current {
            Some(agent) => {
                let field = act::take_text(model);
                act::fork(model, agent, None, None, None, Some(field))
            }
            None => Vec::new(),
        },
        'I' => act::interrupt(model),
        'y' if model.talk().is_some_and(|talk| talk.later) => {
            model.say(act::FURTHER_DOWN);
            Vec::new()
        }
        'y' => match act::last_answer(model) {
            Some(text) => vec![Effect::Copy(text)],
            None => {
                model.say("It has said nothing yet.");
                Vec::new()
            }
        },
        'v' => vec![Effect::Editor(model.desk().field.whole())],
        '/' => {
            act::begin_search(model);
            Vec::new()
        }
        'r' => vec![Effect::TryAgain],
        'M' => {
            model.choose_mouse(!model.mouse);
            model.say(if model.mouse {
                "The mouse scrolls and clicks. Shift-drag selects."
            } else {
                "The mouse is the terminal's."
            });
            vec![Effect::Mouse(model.mouse)]
        }
        'g' => {
            model.pending_g = true;
            model.say("g: h home · t tree · q quest · m mail · l log · w how we know · d changes · c cost · s seats");
            Vec::new()
        }
        '?' => {
            model.overlay = Some(Overlay::Help(Help::default()));
            Vec::new()
        }
        _ => {
            model.say(format!("^X {letter} does nothing. ^X ? shows all keys."));
            Vec::new()
        }
    }
}

fn used(model: &mut Model, letter: char) {
    *model.used.entry(format!("^X {letter}")).or_default() += 1;
}
