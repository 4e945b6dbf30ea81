//! The mouse goes where it points, also in what is scrolled.

use super::{NOW, at_ann, id, press, seen, usage, write};
use crate::tui::draw;
use crate::tui::model::{Focus, Model, ScrollPosition};
use crate::tui::panel::{Home, SheetKind, Side};
use crate::tui::scenes::shown;
use crate::tui::update::{Msg, update};
use crossterm::event::{KeyCode, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use serde_json::json;

fn mouse(model: &mut Model, kind: MouseEventKind, (column, row): (u16, u16)) {
    update(model, Msg::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }));
}

fn click(model: &mut Model, at: (u16, u16)) {
    mouse(model, MouseEventKind::Down(MouseButton::Left), at);
}

/// Ann is in front, and there are more agents than the tree has room for.
fn with_many(size: (u16, u16)) -> Model {
    let mut model = at_ann();
    model.size = size;
    let mut agents = vec![seen("root", "root", None, "resting"), seen("aaaa", "ann", Some("root"), "working")];
    agents.extend(
        (0..60).map(|number| seen(&format!("n{number:03}"), &format!("agent-{number}"), Some("root"), "working")),
    );
    let overview = json!({
        "head": 100, "now": NOW.0, "project": "/x/parcel-api", "version": "1", "trouble": null, "agents": agents,
        "agentCount": 62, "quests": [], "questCount": 0, "questions": [], "budgets": [], "today": usage(), "mail": [],
    });
    update(&mut model, Msg::Overview(Box::new(serde_json::from_value(overview).unwrap())));
    model
}

/// The row of the screen with these words.
fn row_of(model: &Model, words: &str) -> u16 {
    let screen = shown(model);
    let row = screen.lines().position(|row| row.contains(words));
    u16::try_from(row.unwrap_or_else(|| panic!("{words}: {screen}"))).unwrap()
}

#[test]
fn a_click_in_a_long_tree_goes_to_the_agent_that_is_there() {
    let mut model = with_many((120, 30));
    drop(crate::tui::act::go(&mut model, id("n050")));
    assert!(!shown(&model).contains("agent-3 "), "the tree is scrolled: {}", shown(&model));
    let row = row_of(&model, "agent-45 ");
    click(&mut model, (10, row));
    assert_eq!(model.current, Some(id("n045")));
}

#[test]
fn a_click_in_a_long_text_sets_the_caret_there() {
    let mut model = at_ann();
    let lines: Vec<String> = (0..30).map(|number| format!("line {number} of mine")).collect();
    update(&mut model, Msg::Paste(lines[..15].join("\n")));
    update(&mut model, Msg::Paste(format!("\n{}", lines[15..].join("\n"))));
    let row = row_of(&model, "line 25 of mine");
    click(&mut model, (2 + 4, row));
    write(&mut model, "X");
    assert!(model.desk().field.whole().contains("\nlineX 25 of mine\n"), "{}", model.desk().field.whole());
}

#[test]
fn the_wheel_scrolls_what_is_under_it() {
    let mut model = with_many((200, 40));
    model.side = Some(Side::Home(Home::default()));
    let areas = draw::areas(&model);
    let of = |area: Option<ratatui::layout::Rect>| area.map(|area| (area.x + 3, area.y + 5)).unwrap();
    let (tree, talk, side) = (of(areas.tree), of(areas.talk), of(areas.side));
    mouse(&mut model, MouseEventKind::ScrollDown, tree);
    assert_eq!((model.desk().place, model.tree_row), (ScrollPosition::End, Some(id("n001"))));
    mouse(&mut model, MouseEventKind::ScrollUp, side);
    mouse(&mut model, MouseEventKind::ScrollDown, side);
    assert_eq!(model.desk().place, ScrollPosition::End);
    assert!(matches!(&model.side, Some(Side::Home(home)) if home.chosen.is_some()), "{:?}", model.side);
    mouse(&mut model, MouseEventKind::ScrollUp, talk);
    assert_ne!(model.desk().place, ScrollPosition::End);
    // A click on the separator goes to the end.
    click(&mut model, (5, areas.separator.y));
    assert_eq!(model.desk().place, ScrollPosition::End);
    // A list takes the click and the wheel.
    drop(crate::tui::act::open_sheet(&mut model, SheetKind::Log));
    let agent = model.current;
    let events: Vec<_> = (1..=50).map(|number| json!({ "id": number, "ts": NOW.0, "type": "message_added" })).collect();
    update(
        &mut model,
        Msg::Answer {
            tag: crate::tui::update::Tag::Sheet(SheetKind::Log, agent),
            result: Ok(json!({ "events": events })),
        },
    );
    let cursor = |model: &Model| match &model.side {
        Some(Side::Sheet(sheet)) => sheet.cursor,
        other => panic!("{other:?}"),
    };
    assert_eq!(cursor(&model), 49);
    mouse(&mut model, MouseEventKind::ScrollUp, side);
    assert_eq!(cursor(&model), 46);
    let row = row_of(&model, "#30 message added");
    click(&mut model, (side.0, row));
    assert_eq!((cursor(&model), model.focus), (29, Focus::Side));
    press(&mut model, KeyCode::Esc);
    assert_eq!(model.focus, Focus::Text);
}

#[test]
fn a_click_folds_what_it_is_on() {
    let mut model = at_ann();
    let call = json!({ "id": "t", "name": "Bash", "input": { "command": "seq 3" } }).to_string();
    let result = json!({ "id": "t", "content": "one\ntwo\nthree", "is_error": false }).to_string();
    let records = vec![
        super::said(101, "aaaa", hatchery_core::MessageKind::ToolCall, &call),
        super::said(102, "aaaa", hatchery_core::MessageKind::ToolResult, &result),
    ];
    update(&mut model, Msg::Events(records));
    let row = row_of(&model, "Bash seq 3");
    assert!(!shown(&model).contains("  two"));
    click(&mut model, (4, row));
    assert!(shown(&model).contains("  two"), "{}", shown(&model));
}
