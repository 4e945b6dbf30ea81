//! The keys in your text.

use crate::http::QuestionView;
use crate::tui::act;
use crate::tui::complete;
use crate::tui::draw;
use crate::tui::field::Field;
use crate::tui::model::{Focus, Model, Purpose};
use crate::tui::overlay::Overlay;
use crate::tui::panel::{is_answered_by_words, numbered_word};
use crate::tui::update::Effect;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use hatchery_core::EventId;

pub(super) fn in_text(model: &mut Model, key: KeyEvent, leaving: bool) -> Vec<Effect> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let alt = key.modifiers.contains(KeyModifiers::ALT);
    let shift = key.modifiers.contains(KeyModifiers::SHIFT);
    let cells = draw::text_cells(model.size.0);
    let was_empty = model.desk().field.is_empty();
    if let Some(effects) = in_suggestions(model, key) {
        return effects;
    }
    let (_, height) = draw::talk_size(model);
    let page = isize::try_from(height.saturating_sub(2).max(1)).unwrap_or(10);
    match key.code {
        KeyCode::Enter if shift || alt => edit(model, |field| field.insert("\n")),
        KeyCode::Enter if model.desk().field.before_cursor().ends_with('\\') => edit(model, |field| {
            field.backspace();
            field.insert("\n");
        }),
        KeyCode::Enter => return act::send(model),
        KeyCode::Char('j') if control => edit(model, |field| field.insert("\n")),
        KeyCode::Tab | KeyCode::BackTab => return complete::tab(model, key.code == KeyCode::BackTab),
        KeyCode::Esc => {
            model.overlay = None;
            model.focus = Focus::Browse;
            model.desk_mut().chosen = None;
            if model.is_first_time("esc") {
                model.say("You browse: j k move, Enter folds, Esc goes back. It never stops anybody.");
            }
            return act::choose_block(model, 0);
        }
        KeyCode::PageUp => return act::scroll(model, -page),
        KeyCode::PageDown => return act::scroll(model, page),
        KeyCode::Home if control => return act::to_begin(model),
        KeyCode::End if control => return act::to_end(model),
        KeyCode::Up => return vertical(model, false, cells),
        KeyCode::Down => return vertical(model, true, cells),
        KeyCode::Char('p') if control => return vertical(model, false, cells),
        KeyCode::Char('n') if control => return vertical(model, true, cells),
        KeyCode::Char('r') if control => {
            model.overlay = Some(Overlay::Recall { words: Field::default(), at: 0 });
            return Vec::new();
        }
        KeyCode::Char('c') if control => {
            if !was_empty {
                act::set_aside(model);
            } else if leaving {
                model.quit = true;
            } else {
                model.leaving = true;
                model.say("Ctrl-C again leaves. Agents go on.");
            }
            return Vec::new();
        }
        KeyCode::Char('d') if control && was_empty => {
            model.quit = true;
            return Vec::new();
        }
        _ => {
            let changed = edit_key(&mut model.desk_mut().field, key);
            if changed {
                model.recall.settle();
            }
        }
    }
    fix_purpose(model, was_empty);
    complete::refresh(model)
}

fn edit(model: &mut Model, change: impl FnOnce(&mut Field)) {
    model.recall.settle();
    change(&mut model.desk_mut().field);
}

/// Readline's keys on a field. True when the text may have changed.
pub fn edit_key(field: &mut Field, key: KeyEvent) -> bool {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let alt = key.modifiers.contains(KeyModifiers::ALT);
    match key.code {
        KeyCode::Left if control || alt => field.word_left(),
        KeyCode::Right if control || alt => field.word_right(),
        KeyCode::Left => field.left(),
        KeyCode::Right => field.right(),
        KeyCode::Home => field.home(),
        KeyCode::End => field.end(),
        KeyCode::Backspace if alt => field.kill_to_word(false),
        KeyCode::Backspace if control => field.kill_word_back(),
        KeyCode::Backspace => field.backspace(),
        KeyCode::Delete => field.delete_forward(),
        KeyCode::Char(letter) if control => match letter {
            'a' => field.home(),
            'e' => field.end(),
            'b' => field.left(),
            'f' => field.right(),
            'd' => field.delete_forward(),
            'h' => field.backspace(),
            'w' => field.kill_word_back(),
            'u' => field.kill_to_line_start(),
            'k' => field.kill_to_line_end(),
            'y' => field.yank(),
            't' => field.transpose(),
            // Terminals send ^_ in different ways.
            '_' | '7' | '/' | '-' => field.undo(),
            _ => return false,
        },
        KeyCode::Char(letter) if alt => match letter {
            'b' => field.word_left(),
            'f' => field.word_right(),
            'd' => field.kill_to_word(true),
            _ => return false,
        },
        KeyCode::Char(letter) => field.insert(letter.encode_utf8(&mut [0; 4])),
        _ => return false,
    }
    true
}

fn vertical(model: &mut Model, down: bool, cells: usize) -> Vec<Effect> {
    let agent = model.current;
    if model.desk_mut().field.vertical(down, cells) {
        return Vec::new();
    }
    let was_empty = model.desk().field.is_empty();
    // What waits to be sent can be taken back.
    if !down
        && was_empty
        && let Some(at) = model.outbox.iter().rposition(|it| Some(it.agent) == agent && !it.sending && !it.doubtful)
    {
        let outgoing = model.outbox.remove(at);
        model.desk_mut().field.set(&outgoing.field);
        settle_purpose(model, was_empty);
        return Vec::new();
    }
    let shown = model.desk().field.clone();
    let recalled = match down {
        false => model.recall.older(agent, &shown),
        true => model.recall.newer(agent),
    };
    if let Some(field) = recalled {
        model.desk_mut().field.set(&field);
        settle_purpose(model, was_empty);
    }
    Vec::new()
}

/// The purpose is fixed with the first character. A question that comes up later changes nothing, whatever is typed after it.
pub fn fix_purpose(model: &mut Model, was_empty: bool) {
    if model.desk().field.is_empty() {
        let desk = model.desk_mut();
        (desk.purpose, desk.begun_on) = (None, None);
        return;
    }
    if was_empty {
        model.desk_mut().begun_on =
            model.current.and_then(|agent| model.roster.question_of(agent)).map(|question| question.id);
    }
    let begins = was_empty || model.desk().purpose.is_none();
    let purpose = match model.desk().purpose.filter(|_| !begins) {
        None => meant(model),
        // The second slash says that it was no command.
        Some(Purpose::Command) if model.desk().field.raw().starts_with("//") => Purpose::Message,
        // A number alone answers; with more words behind it, it is a message.
        Some(Purpose::Message) => by_number(model).map_or(Purpose::Message, Purpose::Answer),
        Some(Purpose::Answer(id)) if by_number(model).is_none() => {
            let asked = model.roster.questions.iter().find(|question| question.id == id);
            if asked.is_some_and(is_answered_by_words) { Purpose::Message } else { Purpose::Answer(id) }
        }
        Some(purpose) => purpose,
    };
    model.desk_mut().purpose = Some(purpose);
    // What a command will do is said before Enter; what has happened before it was begun is old.
    if begins && purpose == Purpose::Command {
        model.notice = None;
    }
}

/// The question that was open when the text was begun, if it still is.
fn begun_on(model: &Model) -> Option<&QuestionView> {
    let begun_on = model.desk().begun_on?;
    model.roster.question_of(model.current?).filter(|question| question.id == begun_on)
}

/// That question, if the text is the number of one of its answers and it takes no other words.
fn by_number(model: &Model) -> Option<EventId> {
    let question = begun_on(model)?;
    let number = model.desk().field.whole();
    let is_meant = is_answered_by_words(question) && numbered_word(model, question, &number).is_some();
    is_meant.then_some(question.id)
}

/// What a text is for that came as a whole, or that begins.
fn meant(model: &Model) -> Purpose {
    let raw = model.desk().field.raw();
    if raw.starts_with('/') && !raw.starts_with("//") {
        return Purpose::Command;
    }
    let question = begun_on(model).filter(|question| !is_answered_by_words(question));
    let asked = question.map(|question| question.id).or_else(|| by_number(model));
    asked.map_or(Purpose::Message, Purpose::Answer)
}

/// The purpose of a text that came as a whole into an empty field, or instead of the text that was there.
pub fn settle_purpose(model: &mut Model, was_empty: bool) {
    model.desk_mut().purpose = None;
    fix_purpose(model, was_empty);
}

/// Keys while entries are offered. None when the key is for the text.
fn in_suggestions(model: &mut Model, key: KeyEvent) -> Option<Vec<Effect>> {
    let Some(Overlay::Suggest(suggest)) = &mut model.overlay else { return None };
    let count = suggest.entries.len();
    match key.code {
        KeyCode::Down => suggest.at = Some(suggest.at.map_or(0, |at| (at + 1) % count)),
        KeyCode::Up if suggest.at.is_some() => suggest.at = suggest.at.map(|at| (at + count - 1) % count),
        KeyCode::Enter if suggest.at.is_some() => complete::take(model),
        KeyCode::Esc => model.overlay = None,
        // What is sent needs no more suggestions.
        KeyCode::Enter => {
            model.overlay = None;
            return None;
        }
        _ => return None,
    }
    Some(Vec::new())
}
