//! Keys and pastes where something else than your text is typed, and the way back to your text.

use super::{at_ann, control, id, overview, press, write};
use crate::tui::draw;
use crate::tui::model::{Focus, Model};
use crate::tui::overlay::Overlay;
use crate::tui::panel::{Sheet, SheetKind, Side};
use crate::tui::update::{Effect, Msg, update};
use crossterm::event::KeyCode;

fn after_prefix(model: &mut Model, letter: char) -> Vec<Effect> {
    control(model, 'x');
    press(model, KeyCode::Char(letter))
}

fn sheet(model: &Model) -> &Sheet {
    match &model.side {
        Some(Side::Sheet(sheet)) => sheet,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_paste_goes_into_the_filter_that_is_typed() {
    let mut model = at_ann();
    write(&mut model, "draft");
    after_prefix(&mut model, 'l');
    press(&mut model, KeyCode::Char('/'));
    update(&mut model, Msg::Paste("two\nwords".into()));
    assert_eq!((sheet(&model).filter.whole().as_str(), model.focus), ("two words", Focus::Side));
    assert_eq!(model.desk().field.whole(), "draft");
    // As in readline, Ctrl-G leaves what is typed.
    control(&mut model, 'g');
    assert!(!sheet(&model).filtering && sheet(&model).filter.is_empty());
}

/// A paste is no letter after `^X`, and what is typed after the paste is no letter either.
#[test]
fn a_paste_ends_what_waits_for_a_letter() {
    let mut model = at_ann();
    control(&mut model, 'x');
    update(&mut model, Msg::Paste("pasted".into()));
    let effects = press(&mut model, KeyCode::Char('I'));
    assert_eq!((model.desk().field.whole().as_str(), effects.len()), ("pastedI", 0));
}

/// Who pastes while a fork is on its way stays where the paste is.
#[test]
fn a_paste_keeps_one_where_one_is() {
    let mut model = at_ann();
    let Some(Effect::Post { tag, .. }) = after_prefix(&mut model, 'f').into_iter().next() else { panic!("no fork") };
    update(&mut model, Msg::Paste("for ann".into()));
    update(&mut model, Msg::Answer { tag, result: Ok(serde_json::json!({ "id": id("bbbb") })) });
    update(&mut model, overview(101, Vec::new()));
    assert_eq!((model.current, model.desk().field.whole().as_str()), (Some(id("aaaa")), "for ann"));
    assert_eq!(model.notice(), Some("bob is there · ^X ^X goes there"));
}

/// On a narrow screen a panel stands where the conversation was. Who goes on typing, searches or goes to an event sees the conversation.
#[test]
fn the_way_back_shows_the_conversation() {
    type Way = fn(&mut Model);
    let ways: [(&str, Way); 6] = [
        ("i", |model| drop(press(model, KeyCode::Char('i')))),
        ("Esc", |model| drop(press(model, KeyCode::Esc))),
        ("^C", |model| drop(control(model, 'c'))),
        ("^G", |model| drop(control(model, 'g'))),
        ("a paste", |model| drop(update(model, Msg::Paste("x".into())))),
        ("a search", |model| drop(after_prefix(model, '/'))),
    ];
    for (name, goes) in ways {
        let mut model = at_ann();
        after_prefix(&mut model, 'c');
        assert!(draw::areas(&model).talk.is_none(), "{name}");
        goes(&mut model);
        assert!(draw::areas(&model).talk.is_some(), "{name}");
    }
    let mut model = at_ann();
    after_prefix(&mut model, 'l');
    press(&mut model, KeyCode::Char('#'));
    write(&mut model, "7");
    press(&mut model, KeyCode::Enter);
    assert_eq!(model.desk().chosen.map(|key| key.0.0), Some(7));
    assert!(draw::areas(&model).talk.is_some());
}

/// Ctrl-G and Ctrl-C leave a search as Esc does.
#[test]
fn a_search_is_left_as_in_readline() {
    for letter in ['g', 'c'] {
        let mut model = at_ann();
        let before = model.desk().place;
        after_prefix(&mut model, '/');
        write(&mut model, "message 3");
        assert_ne!(model.desk().place, before);
        control(&mut model, letter);
        assert!(model.search.is_none());
        assert_eq!(model.desk().place, before);
    }
}

#[test]
fn an_event_that_is_not_there_is_told() {
    let mut model = at_ann();
    press(&mut model, KeyCode::Esc);
    press(&mut model, KeyCode::Char('#'));
    write(&mut model, "9999");
    assert!(press(&mut model, KeyCode::Enter).is_empty());
    assert_eq!(model.notice(), Some("There is no event #9,999. The last one is #100."));
    assert!(model.overlay.is_none());
}

/// `c` on a mail of an agent writes to this agent.
#[test]
fn a_mail_is_replied_to() {
    let mut model = at_ann();
    let Some(Effect::Get { tag, .. }) = after_prefix(&mut model, 'm').into_iter().next() else { panic!("no mail") };
    let mail = |number: u64, state: &str| {
        let sent = super::NOW.0;
        serde_json::json!({ "id": number, "from": id("bbbb"), "to": "human", "body": "Done.", "sent": sent, "state": state })
    };
    for state in ["queued", "read"] {
        let threads = serde_json::json!({ "mail": [mail(90, state)], "before": null, "head": 100 });
        update(&mut model, Msg::Answer { tag: tag.clone(), result: Ok(threads) });
        assert_eq!(sheet(&model).kind, SheetKind::Mail, "{state}");
        press(&mut model, KeyCode::Char('c'));
        let Some(Overlay::Propose(field)) = &model.overlay else { panic!("{state}: {:?}", model.overlay) };
        assert_eq!(field.whole(), "/send bob ", "{state}");
        press(&mut model, KeyCode::Esc);
    }
}
