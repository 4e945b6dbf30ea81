//! No single key does harm, and each key does what the table says.

use super::{NOW, all, at_ann, control, id, posted, press, question, said, seen, usage, write};
use crate::tui::model::{Focus, Model, ScrollPosition};
use crate::tui::overlay::Overlay;
use crate::tui::panel::{Home, QuestPanel, SheetKind, Side};
use crate::tui::scenes::project::parcel_api;
use crate::tui::scenes::shown;
use crate::tui::update::{Effect, Msg, Tag, update};
use crate::tui::window::Whole;
use crossterm::event::KeyCode;
use hatchery_core::{EventId, MessageKind};
use serde_json::json;

/// The panels in which letters mean something.
fn panels() -> Vec<Side> {
    let project = parcel_api((120, 40));
    let quest = *project.roster.documents.keys().next().unwrap();
    let sheet = |kind| Side::Sheet(crate::tui::panel::Sheet::loading(kind, Some(id("aaaa")), "x"));
    vec![
        Side::Home(Home::default()),
        Side::Quest(QuestPanel { quest, step: 6, ward: None, scroll: 0 }),
        sheet(SheetKind::Mail),
        sheet(SheetKind::Log),
        sheet(SheetKind::Seats),
    ]
}

#[test]
fn no_single_key_does_harm() {
    let project = parcel_api((120, 40));
    for focus in [Focus::Text, Focus::Browse, Focus::Tree, Focus::Side] {
        for side in panels() {
            for letter in ('a'..='z').chain('A'..='Z').chain('0'..='9').chain("#/:? ".chars()) {
                let mut model = at_ann();
                model.roster.documents = project.roster.documents.clone();
                (model.focus, model.side, model.tree_row) = (focus, Some(side.clone()), Some(id("aaaa")));
                let effects = press(&mut model, KeyCode::Char(letter));
                assert!(posted(&effects).is_empty(), "{letter} in {focus:?} with {side:?}: {effects:?}");
                assert!(!model.quit);
            }
        }
        let mut model = at_ann();
        model.focus = focus;
        assert!(posted(&press(&mut model, KeyCode::Esc)).is_empty());
        assert!(posted(&control(&mut model, 'c')).is_empty());
        assert!(!model.quit);
    }
}

/// Where letters are keys, a letter with Ctrl is not the letter: it leaves or goes back as in your text. A letter that is no key there says so.
#[test]
fn held_letters_are_no_letters() {
    for (focus, side) in [(Focus::Browse, None), (Focus::Tree, None), (Focus::Side, Some(Side::Home(Home::default())))]
    {
        for letter in ('a'..='z').filter(|letter| !"cdglxz".contains(*letter)) {
            let mut model = at_ann();
            (model.focus, model.side) = (focus, side.clone());
            let before = (model.current, model.side.clone(), model.focus);
            assert!(posted(&control(&mut model, letter)).is_empty(), "^{letter} in {focus:?}");
            assert_eq!((model.current, model.side.clone(), model.focus), before, "^{letter}");
            assert!(model.overlay.is_none() && !model.quit, "^{letter} in {focus:?}");
        }
        let mut model = at_ann();
        write(&mut model, "half a thought");
        (model.focus, model.side) = (focus, side.clone());
        control(&mut model, 'd');
        assert!(!model.quit && model.notice().is_some(), "{focus:?}");
        let kept = model.desk_mut().take_text();
        control(&mut model, 'd');
        assert!(model.quit && model.side == side && kept.field.whole() == "half a thought", "{focus:?}");
        press(&mut model, KeyCode::Char('u'));
        let said = "u does nothing here: letters are keys. Esc goes back to your text.";
        assert_eq!(model.notice(), Some(said), "{focus:?}");
    }
}

/// Esc and then a command: a slash searches there, so the command is proposed where the search finds nothing.
#[test]
fn a_command_that_was_typed_as_a_search_is_proposed() {
    let mut model = at_ann();
    press(&mut model, KeyCode::Esc);
    write(&mut model, "/go bob");
    press(&mut model, KeyCode::Enter);
    assert!(model.search.is_none());
    assert!(
        matches!(&model.overlay, Some(Overlay::Propose(field)) if field.whole() == "/go bob"),
        "{:?}",
        model.overlay
    );
    press(&mut model, KeyCode::Enter);
    assert_eq!(model.current, Some(id("bbbb")));
}

/// The letters that change something put a command on the bottom line, and Enter carries it out.
#[test]
fn letters_in_panels_propose_commands() {
    let project = parcel_api((120, 40));
    let proposed = |model: &Model| match &model.overlay {
        Some(Overlay::Propose(field)) => field.whole(),
        other => panic!("{other:?}"),
    };
    let mut model = at_ann();
    (model.focus, model.tree_row) = (Focus::Tree, Some(id("bbbb")));
    press(&mut model, KeyCode::Char('f'));
    assert_eq!(proposed(&model), "/fork bob ");
    let effects = press(&mut model, KeyCode::Enter);
    assert_eq!(posted(&effects)[0].1["parent"], id("bbbb").to_string());
    (model.focus, model.tree_row) = (Focus::Tree, Some(id("bbbb")));
    press(&mut model, KeyCode::Char('X'));
    assert_eq!(proposed(&model), "/stop bob");
    model.overlay = None;
    model.roster.documents = project.roster.documents.clone();
    model.roster.quests = project.roster.quests;
    (model.focus, model.side) = (Focus::Side, Some(panels().remove(1)));
    let step = match &model.side {
        Some(Side::Quest(panel)) => model.roster.documents[&panel.quest].steps[panel.step].id.to_string(),
        _ => unreachable!(),
    };
    press(&mut model, KeyCode::Char('r'));
    assert!(proposed(&model).starts_with("/quest retry ") && proposed(&model).ends_with(&format!(" {step}")));
    let effects = press(&mut model, KeyCode::Enter);
    assert!(posted(&effects)[0].0.ends_with(&format!("/{step}/retry")), "{effects:?}");
    press(&mut model, KeyCode::Char('p'));
    assert!(proposed(&model).starts_with("/quest pause "), "{}", proposed(&model));
    let effects = press(&mut model, KeyCode::Enter);
    assert!(posted(&effects)[0].0.ends_with("/pause"), "{effects:?}");
}

/// A key, and what is true after it.
type Does = fn(&Model, &[Effect]) -> bool;

fn is_sheet(model: &Model, kind: SheetKind) -> bool {
    matches!(&model.side, Some(Side::Sheet(sheet)) if sheet.kind == kind)
}

/// Ann is in front and has a text; bob, her child, needs you.
fn with_a_need() -> Model {
    let mut model = at_ann();
    let agents = [
        seen("root", "root", None, "resting"),
        seen("aaaa", "ann", Some("root"), "working"),
        seen("bbbb", "bob", Some("aaaa"), "resting"),
    ];
    let value = json!({
        "head": 100, "now": NOW.0, "project": "/x/parcel-api", "version": "1", "trouble": null, "agents": agents, "agentCount": 3,
        "quests": [], "questCount": 0, "questions": [question(99, "bbbb")], "budgets": [], "today": usage(), "mail": [],
    });
    update(&mut model, Msg::Overview(Box::new(serde_json::from_value(value).unwrap())));
    write(&mut model, "kept");
    model
}

#[test]
fn each_letter_after_ctrl_x_does_what_it_should() {
    let table: [(char, Does); 20] = [
        ('e', |model, _| model.current == Some(id("bbbb"))),
        ('o', |model, effects| matches!(model.overlay, Some(Overlay::Finder(_))) && effects == [Effect::AllAgents]),
        ('j', |model, _| model.current == Some(id("bbbb"))),
        ('k', |model, _| model.current == Some(id("root"))),
        ('1', |model, _| model.pins[0].is_some() && model.current == model.pins[0]),
        ('9', |model, _| model.notice() == Some("No agent has the number 9. /pin 9 gives it to this one.")),
        ('h', |model, _| matches!(model.side, Some(Side::Home(_)))),
        ('t', |model, _| model.focus == Focus::Tree),
        ('q', |model, _| model.notice() == Some("There is no quest. /quest new WHAT YOU WANT begins one.")),
        ('m', |model, _| is_sheet(model, SheetKind::Mail)),
        ('l', |model, _| is_sheet(model, SheetKind::Log)),
        ('w', |model, _| is_sheet(model, SheetKind::Why)),
        ('d', |model, _| is_sheet(model, SheetKind::Changes)),
        ('c', |model, _| is_sheet(model, SheetKind::Cost)),
        ('a', |model, _| matches!(model.side, Some(Side::Home(_))) && model.focus == Focus::Side),
        ('y', |_, effects| effects == [Effect::Copy("message 60\n\nwith two paragraphs".into())]),
        ('/', |model, _| model.search.as_ref().is_some_and(|search| search.typing)),
        ('r', |_, effects| effects == [Effect::TryAgain]),
        ('M', |model, effects| model.mouse && effects == [Effect::Mouse(true)]),
        ('?', |model, _| matches!(model.overlay, Some(Overlay::Help(_)))),
    ];
    for (letter, does) in table {
        let mut model = with_a_need();
        control(&mut model, 'x');
        let effects = press(&mut model, KeyCode::Char(letter));
        assert!(does(&model, &effects), "^X {letter}: {effects:?}\n{}", shown(&model));
        assert_eq!(model.desks[&id("aaaa")].field.whole(), "kept", "^X {letter}");
        assert!(posted(&effects).is_empty(), "^X {letter}: {effects:?}");
    }
    let mut model = with_a_need();
    control(&mut model, 'x');
    press(&mut model, KeyCode::Right);
    assert_eq!(model.current, Some(id("bbbb")));
    control(&mut model, 'x');
    press(&mut model, KeyCode::Left);
    assert_eq!(model.current, Some(id("aaaa")));
    control(&mut model, 'x');
    press(&mut model, KeyCode::Char('1'));
    assert_eq!(model.current, model.pins[0]);
    drop(crate::tui::act::go(&mut model, id("aaaa")));
    // At once, with the text.
    control(&mut model, 'x');
    let effects = press(&mut model, KeyCode::Char('F'));
    assert_eq!(posted(&effects)[0].1["prompt"], "kept");
    assert!(model.desk().field.is_empty());
    control(&mut model, 'x');
    assert_eq!(press(&mut model, KeyCode::Char('v')), [Effect::Editor(String::new())]);
    // The same letter closes a panel.
    for letter in "hmlwdc".chars() {
        for is_open in [true, false] {
            control(&mut model, 'x');
            press(&mut model, KeyCode::Char(letter));
            assert_eq!(model.side.is_some(), is_open, "^X {letter}");
        }
    }
}

#[test]
fn each_letter_in_the_conversation_does_what_it_should() {
    const CODE: &str = "Look:\n\n```rust\nlet x = 1;\n```";
    let proposes =
        |model: &Model, words: &str| matches!(&model.overlay, Some(Overlay::Propose(field)) if field.whole() == words);
    let browsing = || {
        let mut model = at_ann();
        let call = json!({ "id": "t", "name": "Bash", "input": { "command": "seq 3" } }).to_string();
        let result = json!({ "id": "t", "content": "one\ntwo\nthree", "is_error": false }).to_string();
        let records = vec![
            said(61, "aaaa", MessageKind::User, "go on"),
            said(62, "aaaa", MessageKind::ToolCall, &call),
            said(63, "aaaa", MessageKind::ToolResult, &result),
            said(64, "aaaa", MessageKind::Assistant, CODE),
        ];
        let before = (1..=60).map(|it| said(it, "aaaa", MessageKind::Assistant, &format!("message {it}")));
        update(&mut model, all("aaaa", before.chain(records).collect()));
        press(&mut model, KeyCode::Esc);
        assert_eq!(model.desk().chosen.map(|key| key.0), Some(EventId(64)));
        model
    };
    let chosen = |model: &Model| model.desk().chosen.map(|key| key.0.0);
    let mut model = browsing();
    press(&mut model, KeyCode::Char('k'));
    assert_eq!(chosen(&model), Some(62));
    press(&mut model, KeyCode::Enter);
    assert!(shown(&model).contains("  two"), "{}", shown(&model));
    press(&mut model, KeyCode::Enter);
    assert!(!shown(&model).contains("  two"), "{}", shown(&model));
    press(&mut model, KeyCode::Char('E'));
    assert!(shown(&model).contains("  two"), "{}", shown(&model));
    press(&mut model, KeyCode::Char('j'));
    assert_eq!(chosen(&model), Some(64));
    assert_eq!(press(&mut model, KeyCode::Char('y')), [Effect::Copy(CODE.into())]);
    assert_eq!(press(&mut model, KeyCode::Char('Y')), [Effect::Copy("let x = 1;\n".into())]);
    let whole = Effect::Whole { agent: id("aaaa"), what: Whole::Page { full: false } };
    assert_eq!(press(&mut model, KeyCode::Char('v')), [whole]);
    press(&mut model, KeyCode::Char('f'));
    assert!(proposes(&model, "/fork --at #64 "), "{:?}", model.overlay);
    for (letter, words) in [('X', "/stop"), ('I', "/interrupt"), (':', "/")] {
        let mut model = browsing();
        press(&mut model, KeyCode::Char(letter));
        assert!(proposes(&model, words), "{letter}: {:?}", model.overlay);
    }
    let mut model = browsing();
    press(&mut model, KeyCode::Char('#'));
    assert!(matches!(model.overlay, Some(Overlay::Goto(_))));
    write(&mut model, "30");
    press(&mut model, KeyCode::Enter);
    assert_eq!(chosen(&model), Some(30));
    let mut model = browsing();
    press(&mut model, KeyCode::Char('/'));
    write(&mut model, "message 5");
    press(&mut model, KeyCode::Enter);
    assert_eq!(chosen(&model), Some(59));
    press(&mut model, KeyCode::Char('N'));
    assert_eq!(chosen(&model), Some(58));
    press(&mut model, KeyCode::Char('n'));
    assert_eq!(chosen(&model), Some(59));
    let mut model = browsing();
    press(&mut model, KeyCode::Char('g'));
    press(&mut model, KeyCode::Char('g'));
    assert_eq!(chosen(&model), Some(1));
    press(&mut model, KeyCode::Char('G'));
    assert_eq!(model.desk().place, ScrollPosition::End);
    press(&mut model, KeyCode::Char('b'));
    assert_ne!(model.desk().place, ScrollPosition::End);
    press(&mut model, KeyCode::Char(' '));
    assert_eq!(model.desk().place, ScrollPosition::End);
    press(&mut model, KeyCode::Char('J'));
    assert_eq!(model.current, Some(id("bbbb")));
    model.focus = Focus::Browse;
    press(&mut model, KeyCode::Char('K'));
    assert_eq!(model.current, Some(id("aaaa")));
    model.focus = Focus::Browse;
    press(&mut model, KeyCode::Char('s'));
    assert_eq!(model.focus, Focus::Text);
}

/// Lists follow what happens while they are open, at most once a second.
#[test]
fn an_open_list_is_read_again_when_something_concerns_it() {
    let mut model = at_ann();
    control(&mut model, 'x');
    press(&mut model, KeyCode::Char('l'));
    let fill = |model: &mut Model, upto: u64| {
        let events: Vec<_> = (1..=upto).map(|it| json!({ "id": it, "ts": NOW.0, "type": "message_added" })).collect();
        update(
            model,
            Msg::Answer { tag: Tag::Sheet(SheetKind::Log, Some(id("aaaa"))), result: Ok(json!({ "events": events })) },
        );
    };
    let later = |model: &mut Model, ms: i64| {
        let at = hatchery_core::Timestamp(model.now.0 + ms);
        update(model, Msg::Tick(at))
    };
    fill(&mut model, 100);
    assert!(later(&mut model, 2_000).is_empty());
    update(&mut model, Msg::Events(vec![said(101, "bbbb", MessageKind::Assistant, "of another one")]));
    assert!(later(&mut model, 2_000).is_empty());
    update(&mut model, Msg::Events(vec![said(102, "aaaa", MessageKind::Assistant, "news")]));
    let effects = later(&mut model, 10);
    assert!(
        matches!(effects.as_slice(), [Effect::Get { tag: Tag::Sheet(..), path }] if path.contains("before=103")),
        "{effects:?}"
    );
    fill(&mut model, 102);
    update(&mut model, Msg::Events(vec![said(103, "aaaa", MessageKind::Assistant, "more")]));
    assert!(later(&mut model, 10).is_empty(), "not at once again");
    assert_eq!(later(&mut model, 1_000).len(), 1);
    // At its end one stays at its end, elsewhere where one was.
    press(&mut model, KeyCode::Char('k'));
    fill(&mut model, 103);
    assert!(matches!(&model.side, Some(Side::Sheet(sheet)) if sheet.cursor == 100), "{:?}", model.side);
    // A mail that was read is no longer unread.
    press(&mut model, KeyCode::Char('m'));
    let mail = json!({ "from": "human", "body": "x" });
    let effects = update(&mut model, Msg::Answer { tag: Tag::Mail, result: Ok(mail) });
    assert!(
        effects.iter().any(|it| matches!(it, Effect::Get { tag: Tag::Sheet(..), path } if path.contains("threads")))
    );
}
