//! A conversation with every kind of block.

use super::project::{NOW, at, id, parcel_api};
use super::talk::{TABLE, call, crash, denied_call, inherit, later, message, noted, result, table_begin, with_talk};
use crate::tui::field::Field;
use crate::tui::model::{Purpose, TextUnderWay};
use hatchery_core::output::Output;
use hatchery_core::partial::PartialKind;
use hatchery_core::{EventId, MessageKind, Record};
use serde_json::json;

#[test]
fn all_kinds() {
    let mut model = parcel_api((100, 48));
    model.tree = Some(false);
    let mut events = vec![
        message(
            46_351,
            at("13:31"),
            "k3Qd",
            MessageKind::User,
            "Try it with a table. Leave the worker's interface as it is.",
        ),
        noted(
            46_352,
            later("13:31", 9_000),
            Output::Thinking {
                text: format!("who else reads delivery_attempts? The worker, the admin page\n{}", "and\n".repeat(13)),
            },
        ),
    ];
    events.extend(table_begin(TABLE).into_iter().filter(|event| (46_360..46_400).contains(&event.id.0)));
    let text = "I add `next_at` and an index. Three things follow:\n\n1. The worker asks for what is due, and nothing else.\n2. The admin page sorts by it.\n3. A restart loses nothing, see `docs/retry.md`.\n\n```sql\nSELECT id FROM delivery_attempts\n WHERE next_at <= now() AND delivered_at IS NULL\n```";
    events.push(message(46_402, at("13:36"), "k3Qd", MessageKind::Assistant, text));
    let due = |body: &str, rest: &str, lines: usize| {
        format!("pub async fn due(&self) -> Result<Vec<Attempt>> {{\n    {body}\n}}\n{}", rest.repeat(lines))
    };
    let old = due("self.all().await", "// before\n", 18);
    let new = due("self.where_next_at(Before(now())).await", "// after\n", 50);
    events.push(call(
        46_410,
        at("13:37"),
        "Edit",
        json!({ "file_path": "src/store/attempts.rs", "old_string": old, "new_string": new }),
    ));
    events.push(result(
        46_411,
        46_410,
        later("13:37", 50),
        "    87→pub async fn due(&self) -> Result<Vec<Attempt>> {",
        false,
    ));
    events.push(call(46_420, at("13:38"), "Bash", json!({ "command": "cargo test -p store" })));
    let output = format!(
        "thread 'due_is_sorted' panicked at src/store/attempts.rs:112:9:\n{}test result: FAILED. 14 passed; 1 failed",
        "trace\n".repeat(39)
    );
    events.push(result(46_421, 46_420, later("13:38", 6_200), &output, true));
    events.extend(denied_call(46_430, "13:39", "not on this one"));
    events.push(call(46_440, at("13:40"), "Agent", json!({ "description": "find every reader of delivery_attempts" })));
    let sub = |output| Output::Subagent { tool_use: "46440".into(), output: Box::new(output) };
    events.push(noted(
        46_441,
        at("13:40"),
        sub(Output::ToolUse {
            id: "s".into(),
            name: "Read".into(),
            input: json!({ "file_path": "src/admin/attempts.tsx" }).to_string(),
        }),
    ));
    let read = Output::ToolResult { id: "s".into(), content: "x\n".repeat(212), is_error: false };
    events.push(noted(46_442, at("13:40"), sub(read)));
    let said = sub(Output::Text { text: "Three places read it; none of them writes.".into() });
    events.push(noted(46_443, at("13:40"), said));
    events.push(result(46_444, 46_440, later("13:40", 41_000), "done", false));
    events.push(noted(
        46_450,
        at("13:50"),
        Output::Compacted { trigger: Some("auto".into()), tokens_before: Some(150_000) },
    ));
    events.push(message(
        46_465,
        at("13:52"),
        "k3Qd",
        MessageKind::Assistant,
        "The pause could be kept in the worker, th",
    ));
    events.push(message(46_466, at("13:52"), "k3Qd", MessageKind::Interrupted, ""));
    events.push(Record { id: EventId(46_470), ts: at("13:53"), ..crash() });
    events.push(message(48_000, at("13:58"), "k3Qd", MessageKind::User, "Leave the tests of the old worker alone."));
    with_talk(&mut model, "k3Qd", events);
    inherit(&mut model, "k3Qd", "13:31", true);
    model.desk_mut().inherited_open = Some(true);
    if let Some(agent) = model.roster.agents.get_mut(&id("k3Qd")) {
        agent.heard = NOW;
    }
    let desk = model.desk_mut();
    desk.folds.insert(EventId(46_440), true);
    let text = "Nothing but the store has to change".into();
    model.partial.insert(id("k3Qd"), TextUnderWay { kind: PartialKind::Text, text, since: NOW });
    // 12,408 lines, of which the last one is long, and 1 MiB.
    let line = format!("{:.<83}\n", "a line of a log");
    let log = line.repeat(12_407);
    let mut field = Field::default();
    field.paste(&format!("{log}{:.<1$}", "the end", (1 << 20) - log.len())).unwrap();
    field.insert(" What of this log is new since yesterday?");
    (model.desk_mut().field, model.desk_mut().purpose) = (field, Some(Purpose::Message));
    screen!("13-kinds-100x48", model);
}
