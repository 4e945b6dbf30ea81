//! Text is never destroyed.

use super::{at_ann, control, press, write};
use crate::tui::update::{Msg, update};
use crossterm::event::KeyCode;

/// A paste that is one character in the field.
fn long_paste() -> String {
    "a line of a long log, with something in it\n".repeat(10_000).trim_end().to_owned()
}

#[test]
fn a_long_paste_is_set_aside_and_comes_back() {
    let mut model = at_ann();
    write(&mut model, "see ");
    update(&mut model, Msg::Paste(long_paste()));
    control(&mut model, 'c');
    assert_eq!(model.notice(), Some("Set aside. ↑ brings it back."));
    assert!(model.desk().field.is_empty());
    press(&mut model, KeyCode::Up);
    assert_eq!(model.desk().field.whole(), format!("see {}", long_paste()));
    assert!(model.desk().field.shown().starts_with("[paste 1: "), "it is laid out as one character");
}

#[test]
fn a_text_with_a_paste_is_kept_when_another_one_takes_its_place() {
    let mut model = at_ann();
    write(&mut model, "an old one");
    control(&mut model, 'c');
    write(&mut model, "see ");
    update(&mut model, Msg::Paste(long_paste()));
    control(&mut model, 'r');
    write(&mut model, "old");
    press(&mut model, KeyCode::Enter);
    assert_eq!(model.desk().field.whole(), "an old one");
    control(&mut model, 'c');
    press(&mut model, KeyCode::Up);
    press(&mut model, KeyCode::Up);
    assert_eq!(model.desk().field.whole(), format!("see {}", long_paste()));
}

/// Many characters at once are a paste, which never sends, however it ends.
#[test]
fn what_comes_at_once_is_not_sent() {
    let mut model = at_ann();
    let line = "rm -rf everything that is in this folder, at once\n";
    let effects = update(&mut model, Msg::TypedAtOnce(line.into()));
    assert!(super::posted(&effects).is_empty(), "{effects:?}");
    assert_eq!(model.desk().field.whole(), line.trim_end());
    let effects = press(&mut model, KeyCode::Enter);
    assert_eq!(super::posted(&effects).len(), 1);
}
