//! What is asked for and what was said can be read whole: a request before it is allowed, a long text, and the log behind a filter.

use super::answers::permission;
use super::{all, at_ann, control, id, overview, press, said, write};
use crate::tui::model::Model;
use crate::tui::overlay::Overlay;
use crate::tui::scenes::shown;
use crate::tui::update::{Effect, Failed, Msg, Tag, update};
use crate::tui::window::{Whole, Window};
use crossterm::event::KeyCode;
use hatchery_core::event::QuestionEvent;
use hatchery_core::{Event, EventId, MessageKind, Record};
use serde_json::{Value, json};

/// Ann wants to change a file.
fn wants_to_change(tool: &str, input: &Value) -> Model {
    let mut model = at_ann();
    let mut asked = permission(101, "aaaa");
    asked["permission"]["tool"] = json!(tool);
    asked["permission"]["input"] = json!(input.to_string());
    asked["permission"]["access"] = json!({ "edit": { "path": "src/one.rs" } });
    let about = serde_json::from_value(asked["about"].clone()).unwrap();
    let what = QuestionEvent::Asked { about, text: "May it?".into() };
    let event = Event::Question { agent: id("aaaa"), what };
    update(&mut model, Msg::Events(vec![Record { id: EventId(101), ts: super::NOW, session: None, event }]));
    update(&mut model, overview(101, vec![asked]));
    model
}

/// Nobody should allow a change that cannot be read.
#[test]
fn a_change_is_read_before_it_is_allowed() {
    let edit = json!({ "file_path": "src/one.rs", "old_string": "let a = 1;", "new_string": "let b = 2;" });
    let other = json!({ "path": "src/one.rs", "patch": "@@\nlet b = 2;", "force": true });
    for (tool, input, words) in
        [("Edit", edit, ["- let a = 1;", "+ let b = 2;"]), ("patch", other, ["force: true", "let b = 2;"])]
    {
        let mut model = wants_to_change(tool, &input);
        for place in ["its conversation", "Home"] {
            let screen = shown(&model);
            assert!(screen.contains("src/one.rs"), "{tool} in {place}: {screen}");
            assert!(words.iter().all(|it| screen.contains(it)), "{tool} in {place}: {screen}");
            control(&mut model, 'x');
            press(&mut model, KeyCode::Char('a'));
        }
    }
}

#[test]
fn a_long_change_leaves_room_for_its_answers_and_is_read_whole() {
    let content: String = (1..=400).map(|number| format!("line {number}\n")).collect();
    let mut model = wants_to_change("Write", &json!({ "file_path": "src/one.rs", "content": content }));
    let screen = shown(&model);
    assert!(screen.contains("+ line 1") && screen.contains("more rows: ^X a, then v, shows all"), "{screen}");
    assert!(screen.contains("1 Allow once"), "{screen}");
    control(&mut model, 'x');
    press(&mut model, KeyCode::Char('a'));
    let screen = shown(&model);
    for words in ["+ line 1", "… 393 more rows", "1 Allow once", "4 Always in parcel-api"] {
        assert!(screen.contains(words), "{words}: {screen}");
    }
    press(&mut model, KeyCode::Char('v'));
    for _ in 0..40 {
        press(&mut model, KeyCode::Char(' '));
    }
    assert!(shown(&model).contains("+ line 400"), "{}", shown(&model));
}

/// What is cut on the screen says so, and the pager has all of it.
#[test]
fn a_text_that_is_cut_says_so() {
    let mut model = at_ann();
    let long = format!("{}THE_END", "0123456789 ".repeat(20_000));
    update(&mut model, Msg::Events(vec![said(101, "aaaa", MessageKind::Assistant, &long)]));
    let screen = shown(&model);
    assert!(screen.contains("… 150 KB more: v, after Esc, shows all") && !screen.contains("THE_END"), "{screen}");
    let records = vec![said(101, "aaaa", MessageKind::Assistant, &long)];
    let Msg::Window { result: Ok(Window { records, .. }), .. } = all("aaaa", records) else { unreachable!() };
    let what = Whole::Page { full: false };
    let effects = update(&mut model, Msg::Whole { agent: id("aaaa"), what, result: Ok(records) });
    assert!(matches!(&effects[..], [Effect::Pager(text)] if text.contains("THE_END")));
}

/// The daemon searches a part of a long log at once: the list goes on before it says that there is nothing.
#[test]
fn a_list_of_the_log_goes_on_until_it_is_full() {
    let mut model = at_ann();
    control(&mut model, 'x');
    press(&mut model, KeyCode::Char('l'));
    press(&mut model, KeyCode::Char('/'));
    write(&mut model, "needle");
    let asked = |effects: Vec<Effect>| match effects.into_iter().next() {
        Some(Effect::Get { tag, path }) => (tag, path),
        other => panic!("{other:?}"),
    };
    let (tag, _) = asked(press(&mut model, KeyCode::Enter));
    let nothing = json!({ "events": [], "from": 40_000, "more": true });
    let (tag, path) = asked(update(&mut model, Msg::Answer { tag, result: Ok(nothing) }));
    assert!(path.contains("before=40001") && path.contains("words=needle"), "{path}");
    assert!(shown(&model).contains("0 found · searched to #40,001"), "{}", shown(&model));
    // An answer to another search is left out.
    let late = Tag::MoreOfLog { agent: Some(id("aaaa")), before: EventId(7) };
    let event = |number: u64| json!({ "id": number, "ts": 1, "type": "message_added", "content": "a needle" });
    let stray = json!({ "events": [event(6)], "from": 0, "more": false });
    assert!(update(&mut model, Msg::Answer { tag: late, result: Ok(stray) }).is_empty());
    assert!(!shown(&model).contains("a needle"), "{}", shown(&model));
    let found = json!({ "events": [event(12)], "from": 0, "more": false });
    assert!(update(&mut model, Msg::Answer { tag, result: Ok(found) }).is_empty());
    assert!(shown(&model).contains("The last event of ann") && shown(&model).contains("#12"), "{}", shown(&model));
}

/// In plain mode there is no field: a refused line is no draft, and `↑` brings nothing back.
#[test]
fn a_refused_line_of_the_plain_mode_is_no_draft() {
    let mut model = at_ann();
    model.from_end = true;
    let effects = crate::tui::plain::typed(&mut model, "/budget abc", None).unwrap();
    let Some(Effect::Post { tag, .. }) = effects.into_iter().next() else { panic!("nothing is asked") };
    let refused = Failed::Refused { code: "x".into(), words: "abc is no amount".into() };
    update(&mut model, Msg::Answer { tag, result: Err(refused) });
    assert_eq!(model.notice(), Some("abc is no amount"));
    assert!(model.desk().field.is_empty() && model.overlay.is_none());
}

/// `v` on a question shows it as well.
#[test]
fn a_question_is_read_whole() {
    let mut model = at_ann();
    update(&mut model, overview(101, vec![super::question(101, "bbbb")]));
    control(&mut model, 'x');
    press(&mut model, KeyCode::Char('a'));
    press(&mut model, KeyCode::Char('v'));
    assert!(matches!(&model.overlay, Some(Overlay::Reader(reader)) if reader.title == "bob asks you"));
}
