//! The plain mode: the same project, told in lines.

use super::project::{NOW, parcel_api};
use super::talk::{inherit, last_tool, message, result, table_begin, typed, with_talk};
use super::{at, id};
use crate::tui::model::Model;
use crate::tui::plain::{self, Spoken};
use crate::tui::update::{Effect, Msg, update};
use crate::tui::window::Part;
use hatchery_core::{EventId, MessageKind, Record, Timestamp};
use serde_json::json;

/// A session: what was told, and what was typed behind its prompt.
struct Session {
    model: Model,
    spoken: Spoken,
    out: Vec<String>,
}

impl Session {
    fn told(&mut self) {
        let lines = self.spoken.tell(&mut self.model);
        self.out.extend(lines);
    }

    /// Types a line, and gives what it wants to be done.
    fn types(&mut self, line: &str) -> Vec<Effect> {
        self.out.push(format!("{}{line}", plain::prompt(&self.model)));
        let effects = plain::typed(&mut self.model, line);
        self.told();
        effects
    }

    fn comes(&mut self, event: Record) {
        update(&mut self.model, Msg::Events(vec![event]));
        self.told();
    }
}

#[test]
fn plain_mode() {
    let mut model = parcel_api((80, 24));
    let mut events = table_begin("x");
    // Its tests still run.
    let tests = events.pop().unwrap();
    with_talk(&mut model, "k3Qd", events);
    inherit(&mut model, "k3Qd", "13:31", false);
    typed(&mut model, "Leave the tests of the old worker alone");
    model.roster.questions[0].context = Some("The table has room for both. I would keep them.".into());
    model.upto = EventId(46_420);
    let mut session = Session { model, spoken: Spoken::default(), out: vec!["$ hatchery tui --plain".to_owned()] };
    session.told();
    session.comes(tests);
    session.comes(Record { ts: Timestamp(NOW.0 - 48_000), ..last_tool() });
    session.types("/next");
    let effects = session.types("/answer 2");
    let Some(Effect::Post { tag, path, body }) = effects.into_iter().next() else { panic!("no answer is sent") };
    let words = "Keep it, and list it on the admin page";
    assert_eq!((path.as_str(), body), ("/api/questions/47902/answer", json!({ "answer": words })));
    session.model.roster.questions.remove(0);
    update(&mut session.model, Msg::Answer { tag, result: Ok(json!({ "events": [{ "id": 48_214 }] })) });
    session.told();
    session.types("/go weaver-table");
    session.comes(result(48_214, 48_210, NOW, "212 passed", false));
    let text = "The suite passes. What is left is the worker itself.";
    session.comes(message(48_215, at("14:06"), "k3Qd", MessageKind::Assistant, text));
    session.out.push(plain::prompt(&session.model));
    assert_eq!(session.model.current, Some(id("k3Qd")));
    screen!(text "16-screen-reader", session.out.join("\n"));
}

/// Panels and lists are told as well: a command that shows nothing would be of no use.
#[test]
fn what_a_command_shows_is_told() {
    let mut session = Session { model: parcel_api((80, 24)), spoken: Spoken::default(), out: Vec::new() };
    with_talk(&mut session.model, "k3Qd", table_begin("x"));
    session.told();
    session.out.clear();
    session.types("/agents");
    assert!(session.out.iter().any(|line| line == "slow-tests: silent for 13 min. It needs you."), "{:?}", session.out);
    let effects = session.types("/check-mail");
    let Some(Effect::Get { tag, .. }) = effects.into_iter().next() else { panic!("the mail is not asked for") };
    update(&mut session.model, Msg::Answer { tag, result: Ok(json!({ "mail": [], "before": null, "head": 1 })) });
    session.told();
    assert_eq!(session.out.last().map(String::as_str), Some("No mail. Agents write to `human`."));
    assert!(session.out.iter().all(|line| !line.contains('❯') && !line.contains('│')), "{:?}", session.out);
}

/// What is only shown here is told as well, row by row.
#[test]
fn the_list_of_quests_is_told() {
    let mut session = Session { model: parcel_api((80, 24)), spoken: Spoken::default(), out: Vec::new() };
    with_talk(&mut session.model, "k3Qd", table_begin("x"));
    session.told();
    session.out.clear();
    session.types("/quest list");
    let quests = session.model.roster.quests.len();
    assert_eq!(session.out.len(), 1 + quests, "{:?}", session.out);
    assert!(session.out[1].contains("1 of 8 steps"), "{:?}", session.out);
    // It is told once, and the next one is told again.
    session.told();
    assert_eq!(session.out.len(), 1 + quests, "{:?}", session.out);
    session.types("/quest list");
    assert_eq!(session.out.len(), 2 * (1 + quests), "{:?}", session.out);
}

/// Who needs you is told on request.
#[test]
fn home_is_told() {
    let mut session = Session { model: parcel_api((80, 24)), spoken: Spoken::default(), out: Vec::new() };
    with_talk(&mut session.model, "k3Qd", table_begin("x"));
    session.told();
    session.out.clear();
    session.types("/home");
    assert!(
        session.out.iter().any(|line| line.starts_with("codeweaver-worker needs you. Question 47902:")),
        "{:?}",
        session.out
    );
}

/// Code and lists keep their rows, and a question is told once.
#[test]
fn rows_of_code_and_lists_are_rows() {
    let mut session = Session { model: parcel_api((80, 24)), spoken: Spoken::default(), out: Vec::new() };
    with_talk(&mut session.model, "k3Qd", table_begin("x"));
    session.told();
    session.out.clear();
    let text =
        "Two **things**\nare left:\n\n- the worker\n- the tests\n\n```rust\nlet x = 1;\n\nlet y = 2;\n```\nDone.";
    session.comes(message(48_215, at("14:06"), "k3Qd", MessageKind::Assistant, text));
    let told = [
        "Two things are left:",
        "- the worker",
        "- the tests",
        "Code, rust:",
        "let x = 1;",
        "let y = 2;",
        "End of code.",
        "Done.",
    ];
    assert_eq!(session.out, told.map(|row| format!("weaver-table: {row}")));
}

/// Of a long conversation the end is told, not all that was ever said.
#[test]
fn of_a_conversation_that_is_opened_the_end_is_told() {
    let mut session = Session { model: parcel_api((80, 24)), spoken: Spoken::default(), out: Vec::new() };
    session.told();
    drop(crate::tui::act::go(&mut session.model, id("k3Qd")));
    session.told();
    session.out.clear();
    let records = (1..=60)
        .map(|number| message(number, at("13:00"), "k3Qd", MessageKind::Assistant, &format!("message {number}")))
        .collect();
    let result = Ok(super::talk::window(records, EventId(0)));
    update(&mut session.model, Msg::Window { agent: id("k3Qd"), part: Part::End { before: None }, result });
    session.told();
    assert_eq!(session.out, ["weaver-table: message 59", "weaver-table: message 60"]);
}
