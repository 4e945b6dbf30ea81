//! What each key does. In your text the keys are readline's; after `^X`, in the conversation and in panels, a letter has one meaning. No
//! single key does harm.

mod browse;
mod mouse;
mod overlays;
mod panels;
mod prefix;
mod typing;

pub use mouse::mouse;

use browse::{in_browse, in_search, propose};
use overlays::in_overlay;
use panels::{in_side, in_tree};
use prefix::{after_g, after_prefix, letter_of_prefix};
use typing::in_text;
pub use typing::{edit_key, fix_purpose, settle_purpose};

use super::act;
use super::field::TooLong;
use super::model::{Focus, Model};
use super::overlay::{Finder, Help, Overlay};
use super::panel::Side;
use super::text;
use super::update::Effect;
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// The longest paste that is kept for `/attach`.
const MAX_ATTACHED_BYTES: usize = 64 << 20;
/// The letters of panels, also after `g` as on the page.
const PANELS: &str = "hmlwdcstq";

pub fn key(model: &mut Model, key: KeyEvent) -> Vec<Effect> {
    if key.kind == KeyEventKind::Release {
        return Vec::new();
    }
    if let Some(awaited) = &mut model.awaited_fork {
        awaited.stay = true;
    }
    let leaving = stays(model);
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
    let is_typed_elsewhere =
        model.search.as_ref().is_some_and(|search| search.typing) || (takes_text(model) && model.focus != Focus::Text);
    // Where something else than your text is typed, they leave it.
    let key = match key.code {
        KeyCode::Char('c' | 'g') if control && is_typed_elsewhere => KeyEvent::from(KeyCode::Esc),
        _ => key,
    };
    if model.search.as_ref().is_some_and(|search| search.typing) {
        return in_search(model, key);
    }
    if (control || alt)
        && !takes_text(model)
        && let KeyCode::Char(letter) = key.code
    {
        return held_letter(model, letter, control);
    }
    match model.focus {
        Focus::Text => in_text(model, key, leaving),
        Focus::Browse => in_browse(model, key),
        Focus::Tree => in_tree(model, key),
        Focus::Side => in_side(model, key),
    }
}

/// Whether letters are typed into something.
fn takes_text(model: &Model) -> bool {
    match (model.focus, &model.side) {
        (Focus::Text, _) => true,
        (Focus::Side, Some(Side::Home(home))) => home.typing,
        (Focus::Side, Some(Side::Sheet(sheet))) => sheet.filtering,
        _ => false,
    }
}

/// Goes to your text.
fn back_to_text(model: &mut Model) {
    model.focus = Focus::Text;
    act::uncover(model);
}

/// A letter with Ctrl or Alt where letters are keys. It is not the letter alone, and leaves or goes back as in your text.
fn held_letter(model: &mut Model, letter: char, control: bool) -> Vec<Effect> {
    match letter {
        'c' | 'g' if control => back_to_text(model),
        'd' if control && model.desk().field.is_empty() => model.quit = true,
        'd' if control => model.say("Ctrl-D leaves where your text is empty. Esc goes back to your text."),
        _ => {}
    }
    Vec::new()
}

/// A key that means nothing where one is. A user who types a sentence there must see that it has no effect.
fn means_nothing(model: &mut Model, key: KeyEvent) -> Vec<Effect> {
    if let KeyCode::Char(letter) = key.code {
        let name = if letter == ' ' { "Space".to_owned() } else { letter.to_string() };
        model.say(format!("{name} does nothing here: letters are keys. Esc goes back to your text."));
    }
    Vec::new()
}

/// Something else than the second Ctrl-C came: what was said about it is no longer true. Says whether Ctrl-C was pressed before.
fn stays(model: &mut Model) -> bool {
    let leaving = std::mem::take(&mut model.leaving);
    if leaving {
        model.notice = None;
    }
    leaving
}

/// A paste is one insert into whatever is being typed. It never sends or runs anything.
pub fn paste(model: &mut Model, pasted: &str) -> Vec<Effect> {
    stays(model);
    // After a paste, `^X` and `g` no longer wait for a letter.
    (model.prefix, model.pending_g) = (None, false);
    if let Some(awaited) = &mut model.awaited_fork {
        awaited.stay = true;
    }
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
        if let Err(TooLong(bytes)) = model.own.entry(key).or_default().field.paste(pasted) {
            model.say(format!("{} is too long for an answer.", text::size(bytes)));
        }
        return Vec::new();
    }
    if let Some(Side::Sheet(sheet)) = &mut model.side
        && model.focus == Focus::Side
        && sheet.filtering
    {
        sheet.filter.insert(&line());
        return Vec::new();
    }
    back_to_text(model);
    model.recall.settle();
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
