//! Text is never destroyed.

use super::{at_ann, control, press, write};
use crate::tui::update::{Effect, Failed, Msg, update};
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

/// ↑ shows an older text. The draft that was there stays at the bottom, and is among the texts when something is done to the older one.
#[test]
fn a_draft_is_kept_whatever_is_done_to_an_older_text() {
    for what in ["sent", "typed in", "pasted into", "left"] {
        let mut model = at_ann();
        write(&mut model, "an old one");
        press(&mut model, KeyCode::Enter);
        write(&mut model, "half a thought");
        press(&mut model, KeyCode::Up);
        assert_eq!(model.desk().field.whole(), "an old one");
        match what {
            "sent" => drop(press(&mut model, KeyCode::Enter)),
            "typed in" => write(&mut model, "!"),
            "pasted into" => drop(update(&mut model, Msg::Paste("!".into()))),
            _ => drop(crate::tui::act::go(&mut model, super::id("bbbb"))),
        }
        // The draft of one agent never comes into the text to another one.
        press(&mut model, KeyCode::Down);
        assert_ne!(model.desk().field.whole(), "half a thought", "{what}");
        let kept =
            model.recall.entries.iter().any(|it| it.agent == Some(super::id("aaaa")) && it.text == "half a thought");
        assert!(kept, "{what}: {:?}", model.recall.entries);
    }
}

/// Enter carries a command out for the agent in front: one that was refused goes back to where it was typed.
#[test]
fn a_refused_command_goes_back_to_the_agent_that_it_was_for() {
    let refused = || Failed::Refused { code: "x".into(), words: "It cannot.".into() };
    for command in ["/clear", "/fork try it"] {
        let mut model = at_ann();
        write(&mut model, command);
        let Some(Effect::Post { tag, .. }) = press(&mut model, KeyCode::Enter).into_iter().next() else {
            panic!("{command} is not sent")
        };
        drop(crate::tui::act::go(&mut model, super::id("bbbb")));
        update(&mut model, Msg::Answer { tag, result: Err(refused()) });
        assert!(model.desk().field.is_empty(), "{command}");
        assert!(command.ends_with(&model.desks[&super::id("aaaa")].field.whole()), "{command}");
        assert_eq!(model.notice(), Some("It cannot. Your words are in your text to ann."));
    }
}
