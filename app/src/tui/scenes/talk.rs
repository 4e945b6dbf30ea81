//! What was said in the design's screens, as events of the log.

use super::project::{NOW, at, attempt, id, parcel_api};
use crate::tui::conversation::{ConversationView, Inherited};
use crate::tui::field::Field;
use crate::tui::model::{Model, Purpose};
use crate::tui::window::{Ancestor, Window, WindowPart};
use hatchery_core::event::{MessageEvent, RunEvent};
use hatchery_core::harness::Capabilities;
use hatchery_core::outcome::{Cause, Exit};
use hatchery_core::output::Output;
use hatchery_core::permission::{Access, DecidedBy, PermissionDecision, PermissionRequest};
use hatchery_core::{Event, EventId, MessageKind, Record, Timestamp};
use serde_json::json;

pub(super) fn message(number: u64, clock: Timestamp, whose: &str, kind: MessageKind, content: &str) -> Record {
    let event = Event::Message(MessageEvent::Added {
        agent: id(whose),
        kind,
        content: content.into(),
        to: None,
        source_id: None,
    });
    Record { id: EventId(number), ts: clock, session: None, event }
}

/// The input of a tool of the Claude CLI that is about one file.
pub(super) fn file_input(name: &str, file: &str) -> serde_json::Value {
    match name {
        "Bash" => json!({ "command": file }),
        "Read" => json!({ "file_path": file }),
        _ => json!({ "path": file }),
    }
}

pub(super) fn call(number: u64, clock: Timestamp, name: &str, input: serde_json::Value) -> Record {
    let content = json!({ "id": number.to_string(), "name": name, "input": input }).to_string();
    message(number, clock, "k3Qd", MessageKind::ToolCall, &content)
}

pub(super) fn result(number: u64, of: u64, clock: Timestamp, text: &str, failed: bool) -> Record {
    let content = json!({ "id": of.to_string(), "content": text, "is_error": failed }).to_string();
    message(number, clock, "k3Qd", MessageKind::ToolResult, &content)
}

pub(super) fn later(clock: &str, millis: i64) -> Timestamp {
    Timestamp(at(clock).0 + millis)
}

/// With the line breaks of the screens that are 80 wide: agents break their lines themselves.
pub(super) const TABLE_80: &str = "The table `delivery_attempts` has everything but the time of the next try.\nI add `next_at` and an index on what is not delivered yet, so that the\nworker asks for what is due and nothing else.";
pub(super) const TABLE: &str = "The table `delivery_attempts` has everything but the time of the next try. I add `next_at` and an index on what is not delivered yet, so that the worker asks for what is due and nothing else.";
pub(super) const MIGRATION: &str = "ALTER TABLE delivery_attempts ADD COLUMN next_at timestamptz;\n-- The worker asks for what is due, and for nothing else.\nCREATE INDEX delivery_attempts_due ON delivery_attempts (next_at)\n  WHERE delivered_at IS NULL;";
pub(super) const PAUSE: &str = "The pause is 30 seconds at first, then doubled up to six hours, give or take a fifth so that they do not all come at once. Ten tries, then it is left alone.";

/// What weaver-table did up to 13:40.
pub(super) fn table_begin(table: &str) -> Vec<Record> {
    let mut events = vec![message(
        46_351,
        at("13:31"),
        "k3Qd",
        MessageKind::User,
        "Try it with a table. Leave the worker's interface as it is.",
    )];
    for (number, name) in ["Read", "Grep", "Read", "Read", "Grep", "Bash", "Read"].into_iter().enumerate() {
        let number = number as u64;
        let begin = later("13:32", i64::try_from(number).unwrap() * 6_000);
        events.push(call(46_360 + 2 * number, begin, name, file_input(name, "src/store.rs")));
        events.push(result(46_361 + 2 * number, 46_360 + 2 * number, Timestamp(begin.0 + 2_000), "x\ny", false));
    }
    events.push(message(46_402, at("13:36"), "k3Qd", MessageKind::Assistant, table));
    let edit = json!({ "file_path": "migrations/0014_next_at.sql", "old_string": "", "new_string": MIGRATION });
    events.push(call(46_410, at("13:37"), "Edit", edit));
    events.push(result(46_411, 46_410, later("13:37", 50), "ok", false));
    events.push(call(46_420, at("13:38"), "Bash", json!({ "command": "cargo test -p store attempts" })));
    events.push(result(46_421, 46_420, later("13:38", 6_200), "test result: ok. 14 passed; 0 failed", false));
    events
}

pub(super) fn last_tool() -> Record {
    call(48_210, Timestamp(NOW.0 - 12_000), "Bash", json!({ "command": "cargo test --workspace" }))
}

pub(super) fn crash() -> Record {
    let what = RunEvent::Crashed {
        cause: Cause::Crashed,
        detail: "ended in the middle of a turn".into(),
        exit: Exit::Signal(9),
        forgotten: false,
    };
    Record { id: EventId(46_466), ts: at("13:44"), session: None, event: Event::Run { of: attempt("k3Qd"), what } }
}

/// The crash, and the process that followed it after a second.
pub(super) fn crash_and_resume() -> Vec<Record> {
    let process = json!({ "pid": 41_902, "began": 1 });
    let spawned = RunEvent::Spawned {
        process: serde_json::from_value(process).unwrap(),
        session: None,
        copy_of: None,
        capabilities: Capabilities::ALL,
    };
    let event = Event::Run { of: attempt("k3Qd"), what: spawned };
    vec![crash(), Record { id: EventId(46_467), ts: later("13:44", 1_000), session: None, event }]
}

/// A call that the user did not allow, with these words.
pub(super) fn denied_call(number: u64, clock: &str, reason: &str) -> Vec<Record> {
    let mut events = asked_call(number, clock);
    let reason = if reason.is_empty() { ".".to_owned() } else { format!(": {reason}") };
    let decision = PermissionDecision::Deny { reason: format!("The user did not allow it{reason}") };
    let decided = RunEvent::PermissionDecided { request: "r1".into(), decision, by: DecidedBy::Human };
    let event = Event::Run { of: attempt("k3Qd"), what: decided };
    events.push(Record { id: EventId(number + 2), ts: at(clock), session: None, event });
    events
}

/// A call that waits for the user's answer.
pub(super) fn asked_call(number: u64, clock: &str) -> Vec<Record> {
    let command = "psql -c \"select count(*) from delivery_attempts\"";
    let request = PermissionRequest {
        request: "r1".into(),
        tool: "Bash".into(),
        tool_use: Some(number.to_string()),
        input: json!({ "command": command }).to_string(),
        access: Access::Execute { command: command.into() },
        folder: None,
    };
    vec![
        call(number, at(clock), "Bash", json!({ "command": command })),
        noted(number + 1, at(clock), Output::Asked(request)),
    ]
}

pub(super) fn noted(number: u64, clock: Timestamp, output: Output) -> Record {
    Record {
        id: EventId(number),
        ts: clock,
        session: None,
        event: Event::Run { of: attempt("k3Qd"), what: RunEvent::OutputNoted { output } },
    }
}

/// Everything that was said after an event.
pub(super) fn window(records: Vec<Record>, from: EventId) -> Window {
    let to = records.last().map_or(from, |record| record.id);
    Window { records, from, more: false, to, later: false }
}

pub(super) fn with_talk(model: &mut Model, begin: &str, events: Vec<Record>) {
    let mut talk = ConversationView::new(id(begin), model.roster.has_seat(id(begin)));
    talk.take(WindowPart::End { before: None }, window(events, EventId(46_342)));
    model.talks.insert(id(begin), talk);
    model.visit(id(begin));
    model.desk_mut().new_from = None;
}

/// The part that an agent has from weaver: all of it, or its last words.
pub(super) fn inherit(model: &mut Model, begin: &str, forked: &str, brief: bool) {
    let mut events = vec![message(
        46_318,
        at("13:24"),
        "9fA2",
        MessageKind::User,
        "Deliveries that fail are lost today. How could we send them again?",
    )];
    for (number, name) in (0..9).zip(["Read", "Grep", "Read", "Read", "Grep", "Read", "Grep", "Read", "Read"]) {
        let begin = later("13:25", number * 8_000);
        let id = 46_320 + 2 * u64::try_from(number).unwrap();
        events.push(Record { ts: begin, ..call(id, begin, name, file_input(name, "src/store.rs")) });
        events.push(result(id + 1, id, Timestamp(begin.0 + 2_000), "x", false));
    }
    let two = "Two places fit: a sorted set in Redis, or a table with the time of the next try.";
    let more = " Redis is quicker to build. The table survives a restart and can be asked with SQL.";
    let text = if brief { two.to_owned() } else { format!("{two}{more}") };
    if brief {
        events.clear();
    }
    events.push(message(46_342, at("13:29"), "9fA2", MessageKind::Assistant, &text));
    let ancestor = Ancestor { agent: id("9fA2"), upto: EventId(46_342), forked: at(forked), records: events };
    let inherited = Inherited::of(id("9fA2"), at(forked), Some(12), &[ancestor], |_| false);
    if let Some(talk) = model.talks.get_mut(&id(begin)) {
        talk.inherited = inherited;
    }
}

pub(super) fn typed(model: &mut Model, text: &str) {
    let desk = model.desk_mut();
    (desk.field, desk.purpose) = (Field::of(text), Some(Purpose::Message));
}

/// weaver-table at work, with a draft.
pub(super) fn at_weaver_table(size: (u16, u16)) -> Model {
    let mut model = parcel_api(size);
    let mut events = table_begin(if size.0 == 80 { TABLE_80 } else { TABLE });
    events.push(last_tool());
    with_talk(&mut model, "k3Qd", events);
    inherit(&mut model, "k3Qd", "13:31", false);
    typed(&mut model, "Leave the tests of the old worker alone");
    model
}

/// What the agent of the step admin-page said.
pub(super) fn admin_page() -> Vec<Record> {
    let of = "0kGl";
    let said = |number, clock: &str, text: &str| message(number, at(clock), of, MessageKind::Assistant, text);
    let tool = |number: u64, clock: &str, name: &str, input: serde_json::Value| {
        let content = json!({ "id": number.to_string(), "name": name, "input": input }).to_string();
        message(number, at(clock), of, MessageKind::ToolCall, &content)
    };
    let done = |number: u64, clock: Timestamp, text: &str| {
        let content = json!({ "id": (number - 1).to_string(), "content": text, "is_error": false }).to_string();
        message(number, clock, of, MessageKind::ToolResult, &content)
    };
    let mut events = vec![said(
        47_402,
        "13:19",
        "The page lists what failed, newest first, with a button\nfor each. The list is read again every ten seconds.",
    )];
    let names = ["Edit", "Read", "Edit", "Read", "Bash", "Edit", "Read", "Edit", "Edit", "Read", "Bash", "Edit"];
    for (number, name) in (0..).zip(names) {
        let begin = later("13:19", 10_000 + i64::try_from(number).unwrap() * 16_000);
        let id = 47_404 + 2 * number;
        events.push(Record { ts: begin, ..tool(id, "13:19", name, file_input(name, "admin/attempts.tsx")) });
        events.push(done(id + 1, Timestamp(begin.0 + 15_000), "x"));
    }
    let signal = json!({ "signal": "complete", "stepId": "admin-page", "summary": "The page lists attempts." });
    events.push(tool(47_430, "13:22", "mcp__hatchery__signal-back", signal));
    events.push(done(47_431, at("13:22"), "ok"));
    events.push(message(
        48_203,
        at("14:03"),
        of,
        MessageKind::User,
        "siegemaster: A retry can be started twice: the button stays while the first one runs.",
    ));
    let text = "The row gets a state of its own, `retrying`, and the\nbutton is off while it holds.";
    events.push(said(48_207, "14:04", text));
    events.push(tool(48_208, "14:04", "Read", json!({ "file_path": "admin/attempts.tsx" })));
    events.push(done(48_209, at("14:04"), &"x\n".repeat(212)));
    let begin = "const [state, setState] = useState(row.state);";
    let retry =
        "const retry = () => {\n  if (state === \"retrying\") return;\n  setState(\"retrying\");\n  send(row.id);\n};";
    let old = format!("{begin}\nconst retry = () => send(row.id);\nreturn (\n{}", "  <old />\n".repeat(3));
    let new = format!("{begin}\n{retry}\nreturn (\n{}", "  <new />\n".repeat(13));
    events.push(tool(
        48_210,
        "14:04",
        "Edit",
        json!({ "file_path": "admin/attempts.tsx", "old_string": old, "new_string": new }),
    ));
    events.push(done(48_211, at("14:04"), "    41→const [state, setState] = useState(row.state);"));
    events.push(tool(48_212, "14:05", "Bash", json!({ "command": "npm test -- attempts" })));
    events.push(done(48_213, later("14:05", 3_100), "8 passed"));
    events
}
