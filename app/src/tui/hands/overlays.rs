//! What lies over the conversation: the end of a list is an end, a long text is read to its last row, and nothing that was not chosen is
//! carried out.

use super::{at_ann, control, id, press, write};
use crate::tui::model::Model;
use crate::tui::overlay::{KillAsk, Overlay, Preview, TextReader};
use crate::tui::scenes::shown;
use crate::tui::update::{Effect, Msg, update};
use crossterm::event::KeyCode;

fn after_prefix(model: &mut Model, letter: char) {
    control(model, 'x');
    press(model, KeyCode::Char(letter));
}

#[test]
fn the_finder_ends_with_its_last_entry() {
    let mut model = at_ann();
    after_prefix(&mut model, 'o');
    assert!(shown(&model).contains("2 of 2 agents, 0 quests"), "{}", shown(&model));
    for _ in 0..9 {
        press(&mut model, KeyCode::Down);
    }
    let chosen = |model: &Model| shown(model).lines().find(|line| line.starts_with('❯')).map(str::to_owned);
    assert!(chosen(&model).unwrap().contains("bob"), "{}", shown(&model));
    press(&mut model, KeyCode::Up);
    assert!(chosen(&model).unwrap().contains("ann"), "{}", shown(&model));
}

/// The page of the keys is there to be read: Enter does nothing before a key was chosen.
#[test]
fn a_key_of_the_help_is_carried_out_when_it_was_chosen() {
    let mut model = at_ann();
    after_prefix(&mut model, '?');
    press(&mut model, KeyCode::Enter);
    assert!(matches!(model.overlay, Some(Overlay::Help(_))));
    assert_eq!(model.current, Some(id("aaaa")));
    press(&mut model, KeyCode::Down);
    press(&mut model, KeyCode::Down);
    press(&mut model, KeyCode::Enter);
    assert!(matches!(model.overlay, Some(Overlay::Finder(_))), "the second key finds: {:?}", model.overlay);
    // What was typed chooses its first match.
    press(&mut model, KeyCode::Esc);
    after_prefix(&mut model, '?');
    write(&mut model, "seats");
    press(&mut model, KeyCode::Enter);
    assert!(matches!(&model.overlay, Some(Overlay::Propose(field)) if field.whole().starts_with("/s")));
}

/// A mail or an event may be one long line.
#[test]
fn a_long_line_is_read_to_its_end() {
    let mut model = at_ann();
    let text = format!("{}THE_END", "words ".repeat(2_000));
    model.overlay = Some(Overlay::Reader(TextReader { title: "Mail".into(), text, top: 0 }));
    assert!(!shown(&model).contains("THE_END"));
    for _ in 0..20 {
        press(&mut model, KeyCode::Char(' '));
    }
    let at_end = shown(&model);
    assert!(at_end.contains("THE_END"), "{at_end}");
    press(&mut model, KeyCode::Char('k'));
    assert_ne!(shown(&model), at_end, "one row up is one row up");
}

/// The search in what was typed stays at the oldest match.
#[test]
fn the_history_ends_with_its_oldest_text() {
    let mut model = at_ann();
    for words in ["first", "second"] {
        write(&mut model, words);
        control(&mut model, 'c');
    }
    for _ in 0..5 {
        control(&mut model, 'r');
    }
    let bottom = shown(&model).lines().last().unwrap().to_owned();
    assert!(bottom.contains("first") && !bottom.contains("no match"), "{bottom}");
}

/// On a small screen, what is asked and how it is answered stay in sight.
#[test]
fn a_kill_of_many_is_asked_about_on_a_small_screen() {
    let mut model = at_ann();
    let child = |number: usize| id(&format!("k{number:03}"));
    for number in 0..40 {
        let mut view = super::seen("x", &format!("kid-{number}"), Some("aaaa"), "resting")["agent"].take();
        view["id"] = serde_json::json!(child(number));
        update(&mut model, Msg::Agent(Box::new(serde_json::from_value(view).unwrap())));
    }
    let all: Vec<_> = std::iter::once(id("aaaa")).chain((0..40).map(child)).collect();
    let moved = (0..40).map(|number| (child(number), id("root"))).collect();
    let alone = Preview { killed: vec![id("aaaa")], moved, ..Preview::default() };
    let cascade = Preview { killed: all, ..Preview::default() };
    let ask = KillAsk { agent: id("aaaa"), remark: None, alone: Some(alone), cascade: Some(cascade), choice: 0 };
    model.overlay = Some(Overlay::Kill(ask));
    for (size, left_out) in
        [((80, 24), "… 31 more below it"), ((40, 14), "… 40 more below it"), ((40, 10), "… 40 more below it")]
    {
        model.size = size;
        let screen = shown(&model);
        for words in ["Kill ann?", left_out, "1 Keep it", "3 Kill all 41"] {
            assert!(screen.contains(words), "{words}: {screen}");
        }
    }
    // Who moves and who ends is readable on a narrow one.
    model.size = (40, 24);
    let screen = shown(&model);
    assert!(screen.contains("kid-0    moves up   ends"), "{screen}");
}

#[test]
fn an_empty_text_is_not_copied() {
    let mut model = at_ann();
    press(&mut model, KeyCode::Esc);
    let effects = press(&mut model, KeyCode::Char('Y'));
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Copy(_))), "{effects:?}");
    assert_eq!(model.notice(), Some("There is no code in it."));
}

/// Below 14 rows there is no bottom line: what is typed on it, and what was said, is seen all the same.
#[test]
fn a_small_screen_shows_what_is_typed_and_said() {
    let mut model = at_ann();
    model.size = (40, 10);
    press(&mut model, KeyCode::Esc);
    press(&mut model, KeyCode::Char('X'));
    assert!(shown(&model).contains("/stop"), "{}", shown(&model));
    press(&mut model, KeyCode::Esc);
    press(&mut model, KeyCode::Char('/'));
    write(&mut model, "message 3");
    assert!(shown(&model).contains("/message 3"), "{}", shown(&model));
    press(&mut model, KeyCode::Esc);
    press(&mut model, KeyCode::Char('U'));
    assert!(shown(&model).contains("U does nothing here"), "{}", shown(&model));
}
