//! Your hands are safe: what each key leads to, and that nothing that arrives changes what is typed or where one reads.

mod answers;
mod arrivals;
mod elsewhere;
mod harm;
mod kept;
mod mouse;
mod overlays;
mod requests;
mod settings;
mod shown;
mod window;

use super::field::Field;
use super::look::Look;
use super::model::{Connection, Model, Purpose, ScrollPosition};
use super::overlay::Overlay;
use super::update::{Effect, Failed, Msg, Tag, update};
use super::window::{Window, WindowPart};
use crate::http::Overview;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use hatchery_core::event::MessageEvent;
use hatchery_core::{AgentId, Event, EventId, MessageKind, Record, Timestamp};
use serde_json::{Value, json};

const NOW: Timestamp = Timestamp(1_779_980_000_000);

fn id(begin: &str) -> AgentId {
    format!("{begin:A<22}").parse().unwrap()
}

fn seen(begin: &str, name: &str, parent: Option<&str>, activity: &str) -> Value {
    json!({
        "agent": {
            "id": id(begin), "name": name, "parent": parent.map(id), "state": "alive", "provider": null, "model": null, "sessionId": null,
            "created": NOW.0 - 100_000, "lastActive": NOW.0 - 5_000, "forkedFrom": null, "forkPoint": null, "messages": 1, "lastMessage": 10,
            "unreadMail": 0, "activity": activity, "evidence": null,
            "spent": usage(),
        },
        "activity": activity, "evidence": [], "run": null, "spent": usage(), "stallMs": 600_000,
    })
}

fn usage() -> Value {
    serde_json::to_value(hatchery_core::usage::Usage::default()).unwrap()
}

fn question(number: u64, of: &str) -> Value {
    json!({
        "id": number, "agent": id(of), "name": null, "quest": null, "step": null,
        "about": { "silence": { "agent": id(of), "run": 1, "attempt": 1 } }, "text": "Is it well?", "context": null,
        "takes": { "words": ["wait", "stop"], "amount": false, "ward": false, "text": true }, "asked": NOW.0 - 1_000,
    })
}

fn overview(head: u64, questions: Vec<Value>) -> Msg {
    let value = json!({
        "head": head, "now": NOW.0, "project": "/x/parcel-api", "version": "1", "trouble": null,
        "agents": [seen("root", "root", None, "resting"), seen("aaaa", "ann", Some("root"), "working"), seen("bbbb", "bob", Some("root"), "resting")],
        "agentCount": 3, "quests": [], "questCount": 0, "questions": questions, "budgets": [], "today": usage(), "mail": [],
    });
    Msg::Overview(Box::new(serde_json::from_value::<Overview>(value).unwrap()))
}

fn said(number: u64, of: &str, kind: MessageKind, content: &str) -> Record {
    let event =
        Event::Message(MessageEvent::Added { agent: id(of), kind, content: content.into(), to: None, source_id: None });
    Record { id: EventId(number), ts: NOW, session: None, event }
}

/// The whole conversation of an agent.
fn all(of: &str, records: Vec<Record>) -> Msg {
    let to = records.last().map_or(EventId::START, |record| record.id);
    let window = Window { records, from: EventId::START, more: false, to, later: false };
    Msg::Window { agent: id(of), part: WindowPart::End { before: None }, result: Ok(window) }
}

/// Ann is in front, with a long conversation.
fn at_ann() -> Model {
    let mut model = Model::new((80, 24), NOW, Look::PLAIN);
    model.instance = "ann".into();
    update(&mut model, overview(100, Vec::new()));
    drop(super::act::go(&mut model, id("aaaa")));
    let records = (1..=60)
        .map(|number| said(number, "aaaa", MessageKind::Assistant, &format!("message {number}\n\nwith two paragraphs")))
        .collect();
    update(&mut model, all("aaaa", records));
    model
}

/// A report of the lead about seats is no part of the conversation. What another agent writes is shown as it is.
#[test]
fn reports_of_the_lead_are_not_shown() {
    let mut model = at_ann();
    let report = "Good morning.\n[AGENT_STATUS] {\"agents\":[]}";
    update(&mut model, Msg::Events(vec![said(101, "aaaa", MessageKind::Assistant, report)]));
    let texts = |model: &Model| -> Vec<String> {
        let spoken = model.talk().unwrap().blocks().iter().filter_map(|block| match &block.kind {
            super::conversation::BlockKind::Spoken { text, .. } => Some(text.clone()),
            _ => None,
        });
        spoken.collect()
    };
    assert_eq!(texts(&model).last().unwrap(), report);
    let mut lead = seen("lead", "lead", Some("root"), "working")["agent"].take();
    lead["seat"] = json!(4);
    update(&mut model, Msg::Agent(Box::new(serde_json::from_value(lead).unwrap())));
    drop(super::act::go(&mut model, id("lead")));
    let early = said(102, "lead", MessageKind::Assistant, report);
    update(&mut model, all("lead", vec![early]));
    let alone = said(103, "lead", MessageKind::Assistant, "[AGENT_STATUS] {\"agents\":[]}");
    let prose = said(104, "lead", MessageKind::Assistant, "I write [AGENT_STATUS] {} for that.");
    update(&mut model, Msg::Events(vec![alone, prose]));
    assert_eq!(texts(&model), ["Good morning.\n", "I write [AGENT_STATUS] {} for that."]);
}

fn press(model: &mut Model, code: KeyCode) -> Vec<Effect> {
    update(model, Msg::Key(KeyEvent::new(code, KeyModifiers::NONE)))
}

fn control(model: &mut Model, letter: char) -> Vec<Effect> {
    update(model, Msg::Key(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL)))
}

fn write(model: &mut Model, text: &str) {
    for letter in text.chars() {
        press(model, KeyCode::Char(letter));
    }
}

fn posted(effects: &[Effect]) -> Vec<(&str, &Value)> {
    effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Post { path, body, .. } => Some((path.as_str(), body)),
            _ => None,
        })
        .collect()
}

#[test]
fn enter_says_and_a_refusal_gives_the_text_back() {
    let mut model = at_ann();
    write(&mut model, "hello");
    let effects = press(&mut model, KeyCode::Enter);
    let path = format!("/api/agents/{}/say", id("aaaa"));
    assert_eq!(posted(&effects), [(path.as_str(), &json!({ "id": "ann-1", "text": "hello" }))]);
    assert!(model.desk().field.is_empty());
    let refused = Failed::Refused { code: "x".into(), words: "It cannot hear.".into() };
    update(&mut model, Msg::Answer { tag: Tag::Say(1), result: Err(refused) });
    assert_eq!(model.desk().field.whole(), "hello");
    assert_eq!(model.notice(), Some("It cannot hear."));
    assert!(model.outbox.is_empty());
}

#[test]
fn a_question_that_comes_up_while_one_types_changes_nothing() {
    let mut model = at_ann();
    write(&mut model, "a mess");
    update(&mut model, overview(101, vec![question(101, "aaaa")]));
    update(&mut model, Msg::Events(vec![said(101, "aaaa", MessageKind::Assistant, "x")]));
    write(&mut model, "age");
    assert_eq!(model.desk().purpose, Some(Purpose::Message));
    let effects = press(&mut model, KeyCode::Enter);
    assert!(posted(&effects)[0].0.ends_with("/say"), "{effects:?}");
    // Now the question was there first.
    write(&mut model, "yes");
    assert_eq!(model.desk().purpose, Some(Purpose::Answer(EventId(101))));
    let effects = press(&mut model, KeyCode::Enter);
    assert_eq!(posted(&effects), [("/api/questions/101/answer", &json!({ "answer": "yes" }))]);
}

#[test]
fn what_is_said_while_the_daemon_is_away_is_sent_once() {
    let mut model = at_ann();
    update(&mut model, Msg::Away { since: NOW, again: Timestamp(NOW.0 + 1_000) });
    for text in ["first", "second"] {
        write(&mut model, text);
        assert!(posted(&press(&mut model, KeyCode::Enter)).is_empty());
    }
    assert!(matches!(model.link, Connection::Away { .. }));
    let effects = update(&mut model, overview(100, Vec::new()));
    assert_eq!(posted(&effects).len(), 1, "one at a time: {effects:?}");
    // The connection breaks while it is sent; the log shows that it has arrived.
    let number = model.outbox[0].number;
    update(&mut model, Msg::Answer { tag: Tag::Say(number), result: Err(Failed::Away { sent: true }) });
    update(&mut model, Msg::Away { since: NOW, again: Timestamp(NOW.0 + 1_000) });
    let effects = update(&mut model, overview(102, Vec::new()));
    assert!(posted(&effects).is_empty(), "nothing is sent before the log was read: {effects:?}");
    update(
        &mut model,
        Msg::Events(vec![
            said(101, "aaaa", MessageKind::User, "first"),
            said(102, "aaaa", MessageKind::Assistant, "ok"),
        ]),
    );
    let effects = update(&mut model, overview(102, Vec::new()));
    let sent = posted(&effects);
    assert_eq!(sent.len(), 1, "{effects:?}");
    assert_eq!((&sent[0].1["text"], &sent[0].1["id"]), (&json!("second"), &json!("ann-2")));
    // The connection breaks again, and the log does not show it: it is sent again with its id, so that it is said once.
    let number = model.outbox[0].number;
    update(&mut model, Msg::Answer { tag: Tag::Say(number), result: Err(Failed::Away { sent: true }) });
    update(&mut model, Msg::Away { since: NOW, again: Timestamp(NOW.0 + 1_000) });
    let effects = update(&mut model, overview(102, Vec::new()));
    assert_eq!(posted(&effects)[0].1, &json!({ "id": "ann-2", "text": "second" }));
}

#[test]
fn the_first_message_of_a_fork_goes_with_the_request_and_the_suggestions_go() {
    let mut model = at_ann();
    write(&mut model, "/fork --name kid try it");
    let effects = press(&mut model, KeyCode::Enter);
    let (path, body) = posted(&effects)[0];
    assert_eq!((path, &body["name"], &body["prompt"]), ("/api/agents", &json!("kid"), &json!("try it")));
    write(&mut model, "/wh");
    assert!(matches!(model.overlay, Some(Overlay::Suggest(_))));
    write(&mut model, "y");
    press(&mut model, KeyCode::Enter);
    assert!(!matches!(model.overlay, Some(Overlay::Suggest(_))), "{:?}", model.overlay);
}

#[test]
fn the_store_s_trouble_is_told_while_it_lasts() {
    let separator = |model: &Model| super::draw::separator_line(model, 100).to_string();
    let mut model = at_ann();
    update(&mut model, Msg::Trouble(Some("the disk is full".into())));
    assert!(separator(&model).contains("⊗ the disk is full"), "{}", separator(&model));
    update(&mut model, Msg::Trouble(None));
    assert!(!separator(&model).contains("the disk is full"));
}

#[test]
fn keys_lead_where_they_should() {
    let mut model = at_ann();
    control(&mut model, 'x');
    press(&mut model, KeyCode::Char('j'));
    assert_eq!(model.current, Some(id("bbbb")));
    control(&mut model, 'x');
    control(&mut model, 'x');
    assert_eq!(model.current, Some(id("aaaa")));
    control(&mut model, 'x');
    press(&mut model, KeyCode::Char('o'));
    assert!(matches!(model.overlay, Some(Overlay::Finder(_))));
    write(&mut model, "bo");
    press(&mut model, KeyCode::Enter);
    assert_eq!(model.current, Some(id("bbbb")));
    control(&mut model, 'x');
    let effects = press(&mut model, KeyCode::Char('I'));
    assert!(posted(&effects)[0].0.ends_with("/interrupt"));
    control(&mut model, 'x');
    let effects = press(&mut model, KeyCode::Char('f'));
    assert_eq!(posted(&effects)[0].1["parent"], id("bbbb").to_string());
}

#[test]
fn commands_suggest_the_nearest_and_the_text_stays() {
    let mut model = at_ann();
    let mistakes = [
        ("/frok", "There is no /frok. /fork? Tab takes it."),
        ("/xyzzy", "There is no /xyzzy. /help lists them."),
        ("/go an", "No living agent is called an. ann?"),
        ("/quest paus", "There is no /quest paus. pause?"),
    ];
    for (typed, words) in mistakes {
        model.desk_mut().field = Field::of(typed);
        super::keys::settle_purpose(&mut model, true);
        model.overlay = None;
        let effects = press(&mut model, KeyCode::Enter);
        assert!(effects.is_empty(), "{effects:?}");
        assert_eq!(model.notice(), Some(words));
        assert_eq!(model.desk().field.whole(), typed);
    }
}

#[test]
fn a_draft_belongs_to_its_agent() {
    let mut model = at_ann();
    write(&mut model, "for ann");
    press(&mut model, KeyCode::PageUp);
    let place = model.desk().place;
    assert_ne!(place, ScrollPosition::End);
    control(&mut model, 'x');
    press(&mut model, KeyCode::Char('j'));
    write(&mut model, "for bob");
    control(&mut model, 'x');
    press(&mut model, KeyCode::Char('k'));
    assert_eq!((model.desk().field.whole().as_str(), model.desk().place), ("for ann", place));
    // Ctrl-C destroys nothing.
    control(&mut model, 'c');
    assert!(model.desk().field.is_empty());
    press(&mut model, KeyCode::Up);
    assert_eq!(model.desk().field.whole(), "for ann");
}

/// The finder asks for all agents. Those that are known stay as they are, and the others are put into their places once.
#[test]
fn all_agents_are_taken_in_at_once() {
    let mut model = at_ann();
    let before = model.roster.agents[&id("aaaa")].view.activity;
    let view = |begin: &str| {
        serde_json::from_value(seen(begin, &format!("agent-{begin}"), Some("root"), "resting")["agent"].clone())
            .unwrap()
    };
    let mut views: Vec<_> = (0..3_000).map(|number| view(&format!("{number:04}"))).collect();
    views.push(view("aaaa"));
    update(&mut model, Msg::Agents(views));
    assert_eq!(model.roster.order().len(), 3_003);
    assert_eq!(model.roster.agents[&id("aaaa")].view.activity, before);
    assert_eq!((model.roster.order()[0], model.name(id("0042"))), (id("root"), "agent-0042".to_owned()));
}

#[test]
fn an_event_that_comes_twice_is_shown_once() {
    let mut model = at_ann();
    let event = || said(101, "aaaa", MessageKind::Assistant, "only once");
    for _ in 0..2 {
        update(&mut model, Msg::Events(vec![event()]));
    }
    let talk = model.talk().unwrap();
    assert_eq!(talk.blocks().iter().filter(|block| block.id == EventId(101)).count(), 1);
}

#[test]
fn what_comes_while_a_conversation_is_read_is_not_lost() {
    let mut model = at_ann();
    drop(super::act::go(&mut model, id("bbbb")));
    assert!(model.talk().unwrap().loading);
    update(&mut model, Msg::Events(vec![said(101, "bbbb", MessageKind::Assistant, "early")]));
    let records = vec![said(9, "bbbb", MessageKind::User, "before")];
    update(&mut model, all("bbbb", records));
    let ids: Vec<u64> = model.talk().unwrap().blocks().iter().map(|block| block.id.0).collect();
    assert_eq!(ids, [9, 101]);
}

/// Prints how long a key takes to become a frame: `cargo test --release -p hatchery --lib every_key_arrives -- --nocapture`.
#[test]
fn every_key_arrives_over_a_long_conversation() {
    const KEYS: usize = 200;
    let mut model = at_ann();
    // As many events as a conversation keeps in memory, however long the history is.
    let events: Vec<Record> = (101..4_000)
        .map(|number| match number % 3 {
            0 => said(
                number,
                "aaaa",
                MessageKind::Assistant,
                &format!("message {number}\n\n- a list\n- of **two**\n\n```rust\nlet x = {number};\n```"),
            ),
            1 => said(
                number,
                "aaaa",
                MessageKind::ToolCall,
                &json!({ "id": number.to_string(), "name": "Bash", "input": { "command": "cargo test" } }).to_string(),
            ),
            _ => said(
                number,
                "aaaa",
                MessageKind::ToolResult,
                &json!({ "id": (number - 1).to_string(), "content": "14 passed\n".repeat(50), "is_error": false })
                    .to_string(),
            ),
        })
        .collect();
    for chunk in events.chunks(100) {
        update(&mut model, Msg::Events(chunk.to_vec()));
    }
    let mut buffer = ratatui::buffer::Buffer::empty(ratatui::layout::Rect::new(0, 0, 120, 40));
    model.size = (120, 40);
    let mut took: Vec<std::time::Duration> = Vec::new();
    for round in 0..KEYS {
        let begin = std::time::Instant::now();
        match round % 10 {
            9 => press(&mut model, KeyCode::PageUp),
            8 => press(&mut model, KeyCode::PageDown),
            _ => press(&mut model, KeyCode::Char('x')),
        };
        buffer.reset();
        super::draw::draw(&model, &mut buffer);
        took.push(begin.elapsed());
    }
    took.sort();
    let (median, slow) = (took[KEYS / 2], took[KEYS * 99 / 100]);
    println!("key to frame, 4,000 events in memory: median {median:?}, 99th percentile {slow:?}");
    assert_eq!(model.desk().field.whole(), "x".repeat(KEYS / 10 * 8));
}
