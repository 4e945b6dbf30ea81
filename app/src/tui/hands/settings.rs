//! Settings, files and what is added to your text.

use super::{at_ann, control, id, press, write};
use crate::config::Keys;
use crate::tui::overlay::Overlay;
use crate::tui::update::{Attach, Attached, Effect, Msg, Tag, update};
use crossterm::event::KeyCode;
use serde_json::json;

#[test]
fn a_letter_that_was_moved_does_what_it_did() {
    let mut model = at_ann();
    model.keys = Keys::moved(&[('g', 'o')]);
    control(&mut model, 'x');
    press(&mut model, KeyCode::Char('o'));
    assert_eq!(model.overlay, None);
    assert_eq!(model.notice(), Some("^X o does nothing. ^X ? shows all keys."));
    control(&mut model, 'x');
    press(&mut model, KeyCode::Char('g'));
    assert!(matches!(model.overlay, Some(Overlay::Finder(_))));
}

/// The page's `g` and a letter, from your text as well.
#[test]
fn g_and_a_letter_open_a_panel() {
    use crate::tui::panel::{SheetKind, Side};
    let mut model = at_ann();
    write(&mut model, "kept");
    control(&mut model, 'x');
    press(&mut model, KeyCode::Char('g'));
    press(&mut model, KeyCode::Char('s'));
    assert!(matches!(&model.side, Some(Side::Sheet(sheet)) if sheet.kind == SheetKind::Seats), "{:?}", model.side);
    assert_eq!(model.desk().field.whole(), "kept");
}

/// Arguments are completed as well: marks of this conversation, and quests.
#[test]
fn the_arguments_of_a_command_are_offered() {
    use crate::tui::field::Field;
    use hatchery_core::MessageKind;
    let mut model = at_ann();
    let mark = |number, label: &str| super::said(number, "aaaa", MessageKind::Mark, label);
    update(&mut model, Msg::Events(vec![mark(900, "start"), mark(901, "tests")]));
    let mut offered = |text: &str| {
        model.overlay = None;
        model.desk_mut().field = Field::of(text);
        super::super::keys::settle_purpose(&mut model, true);
        press(&mut model, KeyCode::Tab);
        match &model.overlay {
            Some(Overlay::Suggest(suggest)) => suggest.entries.iter().map(|it| it.insert.trim().to_owned()).collect(),
            _ => vec![model.desk().field.whole().trim().to_owned()],
        }
    };
    assert_eq!(offered("/rewind "), ["tests", "start"]);
    assert_eq!(offered("/rewind st"), ["/rewind start"]);
    model.desk_mut().field = Field::of("/rewind before");
    super::super::keys::settle_purpose(&mut model, true);
    assert_eq!(press(&mut model, KeyCode::Enter), []);
    assert_eq!(model.notice(), Some("/rewind: no mark before. Marks: tests, start."));
    assert_eq!(model.desk().field.whole(), "/rewind before");
}

#[test]
fn set_changes_what_is_known_and_suggests_the_nearest() {
    let mut model = at_ann();
    let mut command = |text: &str| {
        model.desk_mut().field = crate::tui::field::Field::of(text);
        super::super::keys::settle_purpose(&mut model, true);
        press(&mut model, KeyCode::Enter);
        (model.bell, model.roster.still, model.notice().unwrap_or_default().to_owned())
    };
    assert_eq!((command("/set bell on").0, command("/set motion off").1), (true, true));
    assert!(command("/set bel on").2.contains("bell?"));
    assert_eq!(command("/set bell").2, "/set bell needs on or off.");
}

#[test]
fn an_at_sign_offers_files_of_the_agents_folder() {
    let mut model = at_ann();
    write(&mut model, "look at ");
    let effects = press(&mut model, KeyCode::Char('@'));
    let path = format!("/api/agents/{}/files", id("aaaa"));
    assert_eq!(effects, [Effect::Get { tag: Tag::Files(id("aaaa")), path }]);
    let files = json!({ "head": 7, "files": ["docs/field.md", "src/tui/field.rs", "README.md"], "more": false });
    let effects = update(&mut model, Msg::Answer { tag: Tag::Files(id("aaaa")), result: Ok(files) });
    assert!(effects.is_empty(), "they are not asked for again: {effects:?}");
    assert!(press(&mut model, KeyCode::Char('f')).is_empty());
    write(&mut model, "ield");
    let Some(Overlay::Suggest(suggest)) = &model.overlay else { panic!("{:?}", model.overlay) };
    assert_eq!(suggest.entries[0].left, "docs/field.md");
    press(&mut model, KeyCode::Tab);
    press(&mut model, KeyCode::Tab);
    press(&mut model, KeyCode::Enter);
    assert_eq!(model.desk().field.whole(), "look at @src/tui/field.rs ");
}

#[test]
fn a_file_is_added_and_a_paste_that_is_too_long_becomes_one() {
    let mut model = at_ann();
    write(&mut model, "/attach notes.txt");
    let effects = press(&mut model, KeyCode::Enter);
    assert_eq!(effects, [Effect::Attach(Attach::File("notes.txt".into()))]);
    assert!(model.desk().field.is_empty());
    update(&mut model, Msg::Attached(Attached::Text { path: "notes.txt".into(), text: "one".into() }));
    assert_eq!(model.desk().field.whole(), "notes.txt:\none");
    let long = "x".repeat(3 << 20);
    update(&mut model, Msg::Paste(long.clone()));
    assert!(model.notice().is_some_and(|notice| notice.contains("/attach makes a file of it")));
    control(&mut model, 'c');
    write(&mut model, "/attach");
    let effects = press(&mut model, KeyCode::Enter);
    assert!(effects == [Effect::Attach(Attach::Paste(long))], "the paste itself");
    update(&mut model, Msg::Attached(Attached::Path { path: "/x/paste-1.txt".into(), bytes: 3 << 20 }));
    assert_eq!(model.desk().field.whole(), "@/x/paste-1.txt ");
}
