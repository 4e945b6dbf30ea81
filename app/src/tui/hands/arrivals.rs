//! Whatever arrives, what is typed and where one reads do not change, and neither does what Enter does.

use super::answers::permission;
use super::{NOW, at_ann, id, overview, posted, press, question, said, write};
use crate::live_text::LivePiece;
use crate::tui::flow::Flow;
use crate::tui::model::Model;
use crate::tui::update::{Failed, Msg, Tag, update};
use crate::tui::window::{Ancestor, Window, WindowPart};
use crossterm::event::KeyCode;
use hatchery_core::event::{AgentEvent, MailEvent, QuestionEvent};
use hatchery_core::partial::PartialKind;
use hatchery_core::{Address, AgentId, Event, EventId, MessageKind, Record, Timestamp};
use proptest::prelude::*;
use serde_json::json;

/// Anything that may arrive while the user types.
fn arrival() -> impl Strategy<Value = (u8, u8, String)> {
    (0..18u8, 0..3u8, "[a-z0-9 \\n`*#\u{1b}日]{0,60}")
}

fn record(number: u64, event: Event) -> Record {
    Record { id: EventId(number), ts: NOW, session: None, event }
}

/// Lets one thing arrive. Its number is that of the last event.
fn arrive(model: &mut Model, number: u64, (kind, whose, text): (u8, u8, String)) {
    let of = ["aaaa", "bbbb", "root"][usize::from(whose)];
    let about = || serde_json::from_value(question(1, of)["about"].clone()).unwrap();
    let msg = match kind {
        0 => Msg::Events(vec![said(number, of, MessageKind::Assistant, &text)]),
        1 => Msg::Events(vec![said(number, of, MessageKind::User, &text)]),
        2 => {
            let call = json!({ "id": "t", "name": "Bash", "input": { "command": text } });
            Msg::Events(vec![said(number, of, MessageKind::ToolCall, &call.to_string())])
        }
        3 => {
            let result = json!({ "id": "t", "content": text, "is_error": false });
            Msg::Events(vec![said(number, of, MessageKind::ToolResult, &result.to_string())])
        }
        4 => Msg::Events(vec![said(number, of, MessageKind::Interrupted, "")]),
        5 => {
            let what = QuestionEvent::Asked { about: about(), text };
            Msg::Events(vec![record(number, Event::Question { agent: id(of), what })])
        }
        6 => overview(number, vec![question(number, of)]),
        7 => overview(number, vec![permission(number, of)]),
        8 => {
            let (kind, begins) = (PartialKind::Text, number.is_multiple_of(3));
            Msg::Live { agent: id(of), piece: LivePiece::Writing { kind, begins, text, since: NOW } }
        }
        9 => Msg::Tick(Timestamp(NOW.0 + i64::try_from(number).unwrap() * 1_000)),
        10 => {
            let records = (1..=20).map(|it| said(it, of, MessageKind::Assistant, &format!("early {it}"))).collect();
            let window = Window { records, from: EventId(0), more: false, to: EventId(20), later: false };
            Msg::Window { agent: id(of), part: WindowPart::Before(EventId(1)), result: Ok(window) }
        }
        11 => {
            let result = Err(Failed::Away { sent: false });
            Msg::Window { agent: id(of), part: WindowPart::Before(EventId(1)), result }
        }
        12 => Msg::Away { since: NOW, again: NOW },
        13 => Msg::Up,
        14 => {
            let refused = Failed::Refused { code: "no_question".into(), words: text };
            let tag = Tag::Answer { need: "q5".into(), agent: Some(id(of)), words: String::new() };
            Msg::Answer { tag, result: Err(refused) }
        }
        15 => {
            let records = vec![said(3, "root", MessageKind::Assistant, &text)];
            let ancestors = vec![Ancestor { agent: id("root"), upto: EventId(3), forked: NOW, records }];
            Msg::Inherited { agent: id(of), from: id("root"), forked: NOW, count: Some(1), ancestors }
        }
        16 => {
            let what = AgentEvent::Killed { by: None, remark: Some(text) };
            Msg::Events(vec![record(number, Event::Agent { agent: id(of), what })])
        }
        _ => {
            let sent = MailEvent::Sent { from: Address::Agent(id(of)), to: Address::Human, body: text };
            Msg::Events(vec![record(number, Event::Mail(sent))])
        }
    };
    update(model, msg);
}

/// What Enter sends is what was typed, to the agent in front, as a message.
fn sends_it(model: &mut Model, typed: &str, agent: AgentId) -> bool {
    let effects = press(model, KeyCode::Enter);
    let path = format!("/api/agents/{agent}/say");
    let sent = posted(&effects).iter().all(|(to, body)| *to == path && body["text"] == typed);
    let is_forked = posted(&effects).iter().any(|(to, body)| *to == "/api/agents" && body["prompt"] == typed);
    is_forked || sent && model.outbox.iter().any(|it| it.agent == agent && it.field.whole() == typed)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn hands_are_safe(
        typed in "[a-z0-9 ]{1,20}|[1-4]",
        scrolled in 0..3usize,
        size in prop_oneof![Just((80u16, 24u16)), Just((60, 20)), Just((120, 40))],
        moved in any::<bool>(),
        arrivals in proptest::collection::vec(arrival(), 1..40),
    ) {
        let mut model = at_ann();
        update(&mut model, Msg::Resize(size.0, size.1));
        write(&mut model, &typed);
        for _ in 0..scrolled {
            press(&mut model, KeyCode::PageUp);
        }
        let hands = |model: &Model| {
            let desk = model.desk();
            (desk.field.clone(), desk.purpose, desk.place, model.focus, model.current, model.overlay.clone())
        };
        let before = hands(&model);
        let first_row = |model: &Model| {
            let (cells, height) = crate::tui::draw::talk_size(model);
            let flow = Flow::new(model, cells)?;
            flow.visible(height).first().map(|row| (row.item, row.line, row.text.to_string()))
        };
        let top = first_row(&model);
        for (number, arrival) in (101..).zip(arrivals) {
            arrive(&mut model, number, arrival);
            let area = ratatui::layout::Rect::new(0, 0, size.0, size.1);
            crate::tui::draw::draw(&model, &mut ratatui::buffer::Buffer::empty(area));
        }
        prop_assert_eq!(&before, &hands(&model));
        if scrolled > 0 {
            prop_assert_eq!(&top, &first_row(&model));
        }
        // A size and back is the same place, too.
        update(&mut model, Msg::Resize(100, 30));
        update(&mut model, Msg::Resize(size.0, size.1));
        if scrolled > 0 {
            prop_assert_eq!(&top, &first_row(&model));
        }
        if moved {
            press(&mut model, KeyCode::Left);
            prop_assert_eq!(before.1, model.desk().purpose);
        }
        if typed.trim().is_empty() {
            prop_assert!(posted(&press(&mut model, KeyCode::Enter)).is_empty());
        } else {
            prop_assert!(sends_it(&mut model, &typed, id("aaaa")));
        }
    }
}
