//! The status document and the idea inbox: what commands and other programs may change.

use crate::given::*;
use hatchery_core::event::{FieldEdit, StatusEvent, StatusSource};
use hatchery_core::status::foreign::{FileEdits, Writer, Written};
use hatchery_core::status::{Document, IdeaChange, StatusChange, StatusRefusal};
use hatchery_core::{Command, Event, Refusal, Timestamp};

fn change(change: StatusChange) -> Command {
    Command::ChangeStatus { change: Box::new(change) }
}

fn set(path: &str, value: &str) -> Command {
    change(StatusChange::Set { path: path.parse().expect("a path"), value: value.parse().expect("JSON") })
}

fn increment(path: &str) -> Command {
    change(StatusChange::Increment { path: path.parse().expect("a path"), by: 1 })
}

fn edit(path: &str, value: Option<&str>) -> FieldEdit {
    FieldEdit { path: path.parse().expect("a path"), value: value.map(str::to_owned), append: false }
}

fn edited(from: StatusSource, edits: Vec<FieldEdit>) -> Event {
    Event::Status(StatusEvent::Edited { from, edits })
}

fn document(text: &str) -> Document {
    Document::parse(text).expect("a document")
}

/// What a program changed that found `base` and wrote `found`.
fn foreign(it: &Given, base: &str, found: &str) -> FileEdits {
    Written::<Document>::begun(&it.world, &document(base), Timestamp(0)).edits(
        &it.world,
        &document(found),
        Writer::Another,
    )
}

#[test]
fn a_change_is_logged_as_what_it_led_to() {
    let request = StatusSource::Request;
    nothing()
        .when(increment("n"))
        .then([edited(request, vec![edit("n", Some("1"))])])
        .when(increment("n"))
        .then([edited(request, vec![edit("n", Some("2"))])])
        .when(set("n", "2"))
        .then([])
        .when(change(StatusChange::Append { path: "list".parse().expect("a path"), value: "1".parse().expect("JSON") }))
        .then([edited(request, vec![FieldEdit { append: true, ..edit("list", Some("1")) }])])
        .when(change(StatusChange::StartCommand { name: "evolve".into() }))
        .then([edited(request, vec![edit("currentCommand", Some("\"evolve\"")), edit("completedSteps", Some("[]"))])]);
}

#[test]
fn a_value_stays_as_it_is_written() {
    let it = nothing().when(set("a", r#"{"big":1e400,"b":[ 1 ]}"#)).answer();
    assert_eq!(it.world.status().document().to_json().text(), r#"{"a":{"big":1e400,"b":[ 1 ]}}"#);
}

#[test]
fn a_build_event_counts_once_and_a_checkpoint_moves_the_run() {
    let event = r#"{"kind":"context-checkpointed","id":"e1","timestamp":"2026-02-17T14:30:00Z"}"#;
    let record = || change(StatusChange::RecordEvent { event: event.parse().expect("JSON"), id: "other".into() });
    let it = nothing().when(set("buildRun", r#"{"runId":"run-1"}"#)).answer().when(record()).answer();
    let checkpoint = it.world.status().document().get(&"buildRun.lastCheckpoint".parse().expect("a path"));
    assert_eq!(checkpoint.expect("a time").text(), "\"2026-02-17T14:30:00Z\"");
    it.when(record()).then([]);
}

#[test]
fn an_idea_is_taken_by_one() {
    let add = IdeaChange::Add { id: "inbox-1-a".into(), kind: "feature".into(), content: "faster".into() };
    let take = || Command::ChangeIdeas { change: IdeaChange::Take { id: None, taker: Some("ann".into()) } };
    let it = nothing().when(Command::ChangeIdeas { change: add }).answer().when(take()).answer();
    assert_eq!(it.world.status().inbox().items()[0].status.name(), "processing");
    let nothing_pending = hatchery_core::idea_inbox::InboxError::NothingPending;
    it.when(take()).refused(Refusal::Status(Box::new(StatusRefusal::Inbox(nothing_pending))));
}

#[test]
fn what_another_program_writes_is_taken_field_by_field() {
    let it = nothing().when(set("a", r#"{"b":1,"c":2}"#)).answer();
    let edits = foreign(&it, r#"{"a":{"b":1,"c":2}}"#, r#"{"a":{"b":1,"c":3},"lastUpdated":"now"}"#);
    assert_eq!(edits.edits, [edit("a.c", Some("3"))], "the time of the write is no fact");
    let take = |edits: FileEdits| Command::TakeStatusEdits { edits: edits.edits, build_events: Vec::new() };
    it.when(take(edits.clone())).then([edited(StatusSource::File, edits.edits.clone())]).when(take(edits)).then([]);
}

#[test]
fn a_run_outlives_a_program_that_leaves_it_out() {
    let it = nothing().when(set("buildRun", r#"{"runId":"run-1"}"#)).answer().when(set("a", "1")).answer();
    let base = r#"{"buildRun":{"runId":"run-1"},"a":1}"#;
    assert_eq!(foreign(&it, base, "{}").edits, [edit("a", None)]);
    assert_eq!(foreign(&it, base, r#"{"buildRun":null,"a":1}"#).edits, [edit("buildRun", None)]);
}

#[test]
fn build_events_of_others_are_new_or_known() {
    let event = r#"{"kind":"x","id":"e1"}"#.parse().expect("JSON");
    let it = nothing().when(change(StatusChange::RecordEvent { event, id: String::new() })).answer();
    let known = it.world.status().document().field("buildEvents").expect("events").clone();
    let found = r#"{"buildEvents":[{"kind":"x"},{"kind":"y"},{"kind":"z","id":"e2"},{"kind":"x","id":"e1"}]}"#;
    let new = foreign(&it, &format!(r#"{{"buildEvents":{known}}}"#), found).build_events;
    let new: Vec<&str> = new.iter().map(hatchery_core::status::Json::text).collect();
    assert_eq!(new, [r#"{"kind":"y"}"#, r#"{"kind":"z","id":"e2"}"#], "the first is a copy without its id");
}
