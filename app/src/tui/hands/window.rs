//! A conversation is read by parts, from anywhere in the log: where one reads comes back, and nothing that is there is missed.

use super::{NOW, all, at_ann, control, id, overview, press, said, write};
use crate::tui::model::{BlockKey, Focus, Model, ScrollPosition};
use crate::tui::scenes::shown;
use crate::tui::update::{Effect, Failed, Msg, Tag, update};
use crate::tui::window::{Whole, Window, WindowPart};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use hatchery_core::{EventId, MessageKind, Record};
use serde_json::{Value, json};

/// A log in which ann says something with each event.
struct PlayedLog(u64);

impl PlayedLog {
    fn record(number: u64) -> Record {
        match number % 10 {
            5 => {
                let call = json!({ "id": number.to_string(), "name": "Bash", "input": { "command": format!("make {number}") } });
                said(number, "aaaa", MessageKind::ToolCall, &call.to_string())
            }
            6 => {
                let output = format!("needle-{number} in the output\nand one more line");
                let result = json!({ "id": (number - 1).to_string(), "content": output, "is_error": false });
                said(number, "aaaa", MessageKind::ToolResult, &result.to_string())
            }
            _ => said(number, "aaaa", MessageKind::Assistant, &format!("message {number}")),
        }
    }

    /// As the daemon would answer.
    fn window(&self, part: WindowPart) -> Window {
        let (from, to) = match part {
            WindowPart::End { .. } => (self.0.saturating_sub(200), self.0),
            WindowPart::Before(before) => (before.0.saturating_sub(201), before.0 - 1),
            WindowPart::After(after) => (after.0, (after.0 + 200).min(self.0)),
            WindowPart::Around(event) => (event.0.saturating_sub(100), (event.0 + 100).min(self.0)),
        };
        let records = (from + 1..=to).map(Self::record).collect();
        Window { records, from: EventId(from), more: from > 0, to: EventId(to), later: to < self.0 }
    }

    /// Answers everything that is asked for, and what that leads to.
    fn answer(&self, model: &mut Model, effects: Vec<Effect>) {
        let mut effects = effects;
        for _ in 0..100 {
            let Some(effect) = effects.pop() else { return };
            let more = match effect {
                Effect::Load { agent, part } => {
                    update(model, Msg::Window { agent, part, result: Ok(self.window(part)) })
                }
                Effect::Get { tag: tag @ Tag::Search { .. }, path } => {
                    let result = Ok(self.search(&path));
                    update(model, Msg::Answer { tag, result })
                }
                Effect::Get { tag: tag @ Tag::Goto { .. }, path } => {
                    let after: u64 = path.rsplit('=').next().unwrap().parse().unwrap();
                    let result = Ok(json!({ "events": [wire(&Self::record(after + 1))] }));
                    update(model, Msg::Answer { tag, result })
                }
                _ => Vec::new(),
            };
            effects.extend(more);
        }
        panic!("it asks without end: {effects:?}");
    }

    /// Some of the log, backwards, with the words in it.
    fn search(&self, path: &str) -> Value {
        let value = |name: &str| path.split(['?', '&']).find_map(|part| part.strip_prefix(name)).unwrap();
        let (before, words): (u64, &str) = (value("before=").parse().unwrap(), value("words="));
        let before = before.min(self.0 + 1);
        let from = before.saturating_sub(301);
        let found = (from + 1..before).map(|number| wire(&Self::record(number)));
        let events: Vec<Value> = found.filter(|event| event.to_string().contains(words)).collect();
        json!({ "events": events, "from": from, "upto": before - 1, "more": from > 0 })
    }
}

fn wire(record: &Record) -> Value {
    let mut value: Value = serde_json::from_str(&record.body()).unwrap();
    value["id"] = json!(record.id);
    value
}

/// Ann is in front, and the end of her conversation is read.
fn at_the_end(log: &PlayedLog) -> Model {
    let mut model = Model::new((80, 24), NOW, crate::tui::look::Look::PLAIN);
    update(&mut model, overview(log.0, Vec::new()));
    let effects = crate::tui::act::go(&mut model, id("aaaa"));
    log.answer(&mut model, effects);
    model
}

fn first_rows(model: &Model) -> Vec<String> {
    shown(model).lines().take(20).map(str::to_owned).collect()
}

#[test]
fn what_could_not_be_read_is_read_when_the_daemon_is_back() {
    let mut model = at_ann();
    update(&mut model, Msg::Away { since: NOW, again: NOW });
    let (part, result) = (WindowPart::End { before: None }, Err(Failed::Away { sent: false }));
    update(&mut model, Msg::Window { agent: id("bbbb"), part, result });
    let effects = crate::tui::act::go(&mut model, id("bbbb"));
    let Some(Effect::Load { agent, part }) = effects.first().cloned() else { panic!("{effects:?}") };
    update(&mut model, Msg::Window { agent, part, result: Err(Failed::Away { sent: false }) });
    assert!(!shown(&model).contains("Nothing was said yet."), "{}", shown(&model));
    // Its events are not taken for all that it has said.
    let late = said(101, "bbbb", MessageKind::Assistant, "late");
    update(&mut model, Msg::Events(vec![late.clone()]));
    let effects = update(&mut model, overview(101, Vec::new()));
    assert!(effects.contains(&Effect::Load { agent, part }), "{effects:?}");
    update(&mut model, all("bbbb", vec![said(9, "bbbb", MessageKind::Assistant, "early"), late]));
    let ids: Vec<u64> = model.talk().unwrap().blocks().iter().map(|block| block.id.0).collect();
    assert_eq!(ids, [9, 101]);
}

#[test]
fn scrolling_up_while_the_daemon_is_away_cuts_nothing() {
    let log = PlayedLog(1_000);
    let mut model = at_the_end(&log);
    let mut asked = Vec::new();
    while asked.is_empty() {
        asked = press(&mut model, KeyCode::PageUp);
    }
    let Some(Effect::Load { agent, part }) = asked.first().cloned() else { panic!("{asked:?}") };
    update(&mut model, Msg::Window { agent, part, result: Err(Failed::Away { sent: false }) });
    assert!(model.talk().unwrap().more);
    let effects = update(&mut model, Msg::Up);
    log.answer(&mut model, effects);
    assert!(model.talk().unwrap().has(EventId(700)));
}

/// As after a restart: the place is far above the end.
#[test]
fn the_part_is_read_where_one_was() {
    let log = PlayedLog(2_500);
    let mut model = Model::new((80, 24), NOW, crate::tui::look::Look::PLAIN);
    let place = ScrollPosition::At { item: BlockKey(EventId(1_234), 0), line: 0 };
    let desk = model.desks.entry(id("aaaa")).or_default();
    (desk.place, desk.seen) = (place, EventId(2_400));
    update(&mut model, overview(log.0, Vec::new()));
    let effects = crate::tui::act::go(&mut model, id("aaaa"));
    log.answer(&mut model, effects);
    assert_eq!(model.desk().place, place);
    let screen = shown(&model);
    assert!(screen.contains("message 1234") && screen.contains("↓ more"), "{screen}");
    // What arrives is counted, and moves nothing.
    let before = first_rows(&model);
    update(&mut model, Msg::Events((2_501..2_504).map(PlayedLog::record).collect()));
    assert_eq!(first_rows(&model), before);
    // Downwards it is read on without a gap, up to what has arrived meanwhile.
    let log = PlayedLog(2_503);
    for _ in 0..2_000 {
        let effects = press(&mut model, KeyCode::PageDown);
        log.answer(&mut model, effects);
        if model.desk().place == ScrollPosition::End {
            break;
        }
    }
    let ids: Vec<u64> = model.talk().unwrap().blocks().iter().map(|block| block.id.0).collect();
    let gapless: Vec<u64> = (ids[0]..=2_503).filter(|number| number % 10 != 6).collect();
    assert_eq!(ids, gapless);
    assert!(!model.talk().unwrap().later);
}

/// The end is one key away, and follows.
#[test]
fn ctrl_end_reads_the_end() {
    let log = PlayedLog(2_500);
    let mut model = Model::new((80, 24), NOW, crate::tui::look::Look::PLAIN);
    model.desks.entry(id("aaaa")).or_default().place =
        ScrollPosition::At { item: BlockKey(EventId(1_234), 0), line: 0 };
    update(&mut model, overview(log.0, Vec::new()));
    let effects = crate::tui::act::go(&mut model, id("aaaa"));
    log.answer(&mut model, effects);
    let effects = update(&mut model, Msg::Key(KeyEvent::new(KeyCode::End, KeyModifiers::CONTROL)));
    // What arrives while it is read is in it once.
    update(&mut model, Msg::Events(vec![PlayedLog::record(2_501)]));
    log.answer(&mut model, effects);
    let ids: Vec<u64> = model.talk().unwrap().blocks().iter().map(|block| block.id.0).collect();
    assert_eq!((ids.last(), ids.iter().filter(|number| **number == 2_501).count()), (Some(&2_501), 1));
    assert!(shown(&model).contains("message 2501"), "{}", shown(&model));
}

/// More events than are kept in memory arrive while one reads far above.
#[test]
fn what_one_reads_is_never_left_out() {
    let mut log = PlayedLog(200);
    let mut model = at_the_end(&log);
    for _ in 0..8 {
        press(&mut model, KeyCode::PageUp);
    }
    let (place, before) = (model.desk().place, first_rows(&model));
    assert_ne!(place, ScrollPosition::End);
    for begin in (201..12_001).step_by(100) {
        update(&mut model, Msg::Events((begin..begin + 100).map(PlayedLog::record).collect()));
    }
    log.0 = 12_000;
    assert_eq!((model.desk().place, first_rows(&model)), (place, before));
    assert!(model.talk().unwrap().blocks().len() <= 4_000);
    let effects = update(&mut model, Msg::Key(KeyEvent::new(KeyCode::End, KeyModifiers::CONTROL)));
    log.answer(&mut model, effects);
    assert!(shown(&model).contains("message 12000"), "{}", shown(&model));
}

/// What is searched is found in all of the log, also in what is folded, and shown.
#[test]
fn a_search_goes_through_the_log() {
    let log = PlayedLog(2_000);
    let mut model = at_the_end(&log);
    control(&mut model, 'x');
    press(&mut model, KeyCode::Char('/'));
    let mut effects = Vec::new();
    for letter in "needle-1006".chars() {
        effects = press(&mut model, KeyCode::Char(letter));
    }
    assert!(shown(&model).contains("no match"), "{}", shown(&model));
    log.answer(&mut model, effects);
    let screen = shown(&model);
    assert!(screen.contains("needle-1006 in the output"), "{screen}");
    assert!(screen.contains("/needle-1006  1 of 1"), "{screen}");
    press(&mut model, KeyCode::Enter);
    assert_eq!(model.focus, Focus::Browse);
    // Esc goes back to where one was.
    let effects = press(&mut model, KeyCode::Esc);
    log.answer(&mut model, effects);
    assert!(shown(&model).contains("message 2000"), "{}", shown(&model));
}

#[test]
fn all_matches_of_the_log_are_counted_and_gone_through() {
    let log = PlayedLog(2_000);
    let mut model = at_the_end(&log);
    write(&mut model, "/find needle-");
    let effects = press(&mut model, KeyCode::Enter);
    log.answer(&mut model, effects);
    assert!(shown(&model).contains("/needle-  200 of 200"), "{}", shown(&model));
    // Backwards beyond the window, and forwards around to the first one.
    for _ in 0..60 {
        let effects = press(&mut model, KeyCode::Char('N'));
        log.answer(&mut model, effects);
    }
    let screen = shown(&model);
    assert!(screen.contains("140 of 200") && screen.contains("needle-1396 in the output"), "{screen}");
    for _ in 0..61 {
        let effects = press(&mut model, KeyCode::Char('n'));
        log.answer(&mut model, effects);
    }
    let screen = shown(&model);
    assert!(screen.contains("  1 of 200") && screen.contains("needle-6 in the output"), "{screen}");
    // Names of fields in the log are not searched, because no agent has written them.
    write(&mut model, "s");
    write(&mut model, "/find content");
    let effects = press(&mut model, KeyCode::Enter);
    log.answer(&mut model, effects);
    assert!(shown(&model).contains("no match"), "{}", shown(&model));
}

#[test]
fn an_event_far_away_is_gone_to() {
    let log = PlayedLog(5_000);
    let mut model = at_the_end(&log);
    press(&mut model, KeyCode::Esc);
    press(&mut model, KeyCode::Char('#'));
    write(&mut model, "777");
    let effects = press(&mut model, KeyCode::Enter);
    log.answer(&mut model, effects);
    assert_eq!((model.desk().chosen, &model.overlay), (Some(BlockKey(EventId(777), 0)), &None));
    assert!(shown(&model).contains("message 777"), "{}", shown(&model));
}

/// The pager gets all of it, not what happens to be loaded.
#[test]
fn the_whole_conversation_is_read_for_the_pager() {
    let log = PlayedLog(1_000);
    let mut model = at_the_end(&log);
    let agent = id("aaaa");
    press(&mut model, KeyCode::Esc);
    let effects = press(&mut model, KeyCode::Char('v'));
    assert_eq!(effects, [Effect::Whole { agent, what: Whole::Page { full: false } }]);
    press(&mut model, KeyCode::Esc);
    for (command, what) in [("/history --full", Whole::Page { full: true }), ("/copy all", Whole::Copy)] {
        write(&mut model, command);
        assert_eq!(press(&mut model, KeyCode::Enter), [Effect::Whole { agent, what }]);
        let records = (1..=1_000).map(PlayedLog::record).collect();
        let effects = update(&mut model, Msg::Whole { agent, what, result: Ok(records) });
        let [Effect::Pager(text) | Effect::Copy(text)] = effects.as_slice() else { panic!("{effects:?}") };
        assert!(text.contains("message 1\n") && text.contains("message 1000"), "{text}");
        assert_eq!(text.contains("needle-16 in the output"), what == Whole::Page { full: true });
    }
    // Without the daemon, what is here is better than nothing.
    let what = Whole::Page { full: false };
    let effects = update(&mut model, Msg::Whole { agent, what, result: Err(Failed::Away { sent: false }) });
    assert!(matches!(effects.as_slice(), [Effect::Pager(text)] if text.contains("message 1000")));
    assert!(model.notice().unwrap().contains("This is what was read before."));
}
