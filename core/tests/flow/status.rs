//! The status document and the idea inbox: what commands and other programs may change.

use crate::given::*;
use hatchery_core::build_event::{MAX_EVENT_BYTES, MAX_EVENTS_IN_DOCUMENT};
use hatchery_core::event::{FieldEdit, StatusEvent, StatusSource};
use hatchery_core::status::foreign::{FileEdits, Writer, WrittenVersions};
use hatchery_core::status::{IdeaChange, StatusChange, StatusDocument, StatusRefusal};
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

fn document(text: &str) -> StatusDocument {
    StatusDocument::parse(text).expect("a document")
}

/// What a program changed that found `base` and wrote `found`.
fn foreign(it: &Given, base: &str, found: &str) -> FileEdits {
    WrittenVersions::<StatusDocument>::begun(&it.world, &document(base), Timestamp(0)).edits(
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

/// Takes in what a program wrote that found the file as it should be. Gives the world after it, and the ids of the recorded events.
fn taken(it: Given, found: &str) -> (Given, Vec<String>) {
    let base = it.world.status().document().to_json().to_string();
    let edits = foreign(&it, &base, found);
    let ids = edits.build_events.iter().cloned().zip(0..).map(|(event, number)| (format!("given-{number}"), event));
    let take = Command::TakeStatusEdits { edits: edits.edits.clone(), build_events: ids.collect() };
    let mut it = it;
    let records = hatchery_core::step(&mut it.world, &take, Timestamp(1)).expect("taken");
    let id = |event: &Event| match event {
        Event::Status(StatusEvent::BuildEventRecorded { build_event, .. }) => Some(build_event.clone()),
        _ => None,
    };
    let ids = records.iter().filter_map(|record| id(&record.event)).collect();
    (it, ids)
}

#[test]
fn build_events_of_others_are_kept_as_they_are() {
    let odd = r#"{"kind":"Käse fertig","id":7,"timestamp":1708012345678}"#;
    let bare = r#"{"id":"a/b \"c\"","checks":"none"}"#;
    let (it, ids) = taken(nothing(), &format!(r#"{{"buildEvents":[{odd},{bare},{{}}]}}"#));
    assert_eq!(ids, ["7", "a/b \"c\"", "given-2"]);
    let text = it.world.status().document().to_json().to_string();
    assert!(text.contains(odd) && text.contains(r#""checks":"none","timestamp""#), "{text}");
    // They are known from then on, also in a copy that has no ids.
    let (it, ids) = taken(it, &text);
    assert_eq!(ids, Vec::<String>::new());
    assert_eq!(taken(it, &format!(r#"{{"buildEvents":[{bare},{odd}]}}"#)).1, Vec::<String>::new());
}

#[test]
fn an_id_counts_once_wherever_it_comes_from() {
    let event = r#"{"kind":"x","id":"e1"}"#;
    let (it, ids) = taken(nothing(), &format!(r#"{{"buildEvents":[{event},{event},{{"kind":"y","id":"e1"}}]}}"#));
    assert_eq!(ids, ["e1"]);
    let record = change(StatusChange::RecordEvent { event: event.parse().expect("JSON"), id: "other".into() });
    let append = change(StatusChange::Append {
        path: "buildEvents".parse().expect("a path"),
        value: event.parse().expect("JSON"),
    });
    let it = it.when(record).then([]).when(append).then([]);
    // Without an id, but with its time.
    let event = r#"{"kind":"z","timestamp":"2026-02-17T14:30:00Z"}"#;
    let record = || change(StatusChange::RecordEvent { event: event.parse().expect("JSON"), id: "e3".into() });
    let (it, ids) = taken(it, &format!(r#"{{"buildEvents":[{event}]}}"#));
    assert_eq!(ids, ["given-0"]);
    it.when(record()).then([]);
    let it = nothing().when(record()).answer();
    assert_eq!(taken(it, &format!(r#"{{"buildEvents":[{event}]}}"#)).1, Vec::<String>::new());
}

#[test]
fn an_event_that_was_cut_off_is_not_new() {
    let event = |number: usize| format!(r#"{{"kind":"x","id":"e{number}"}}"#);
    let mut it = nothing();
    let record =
        |number| change(StatusChange::RecordEvent { event: event(number).parse().expect("JSON"), id: String::new() });
    for number in 0..=MAX_EVENTS_IN_DOCUMENT {
        hatchery_core::step(&mut it.world, &record(number), Timestamp(0)).expect("recorded");
    }
    let old: Vec<String> = (0..=MAX_EVENTS_IN_DOCUMENT).map(event).collect();
    let found = format!(r#"{{"buildEvents":[{},{{"kind":"x","id":"new"}}]}}"#, old.join(","));
    assert_eq!(taken(it, &found).1, ["new"], "e0 was there before");
}

#[test]
fn null_clears_the_build_events() {
    let event = r#"{"kind":"x","id":"e1"}"#.parse().expect("JSON");
    let it = nothing().when(change(StatusChange::RecordEvent { event, id: String::new() })).answer();
    let it = it.when(set("a", "1")).answer();
    let (it, _) = taken(it, r#"{"a":1}"#);
    assert!(it.world.status().document().field("buildEvents").is_some(), "left out is not cleared");
    let (it, _) = taken(it, r#"{"a":1,"buildEvents":null,"lastUpdated":"now"}"#);
    assert!(it.world.status().document().field("buildEvents").is_none());
}

#[test]
fn an_old_null_clears_no_build_events() {
    let event = r#"{"kind":"x","id":"e1"}"#.parse().expect("JSON");
    let it = nothing().when(change(StatusChange::RecordEvent { event, id: String::new() })).answer();
    let mut written = WrittenVersions::default();
    for (file, at) in [r#"{"a":1,"lastUpdated":"t1"}"#, r#"{"a":1,"lastUpdated":"t2"}"#].into_iter().zip(0..) {
        WrittenVersions::<StatusDocument>::wrote(&mut written, &document(file), &document(file), Timestamp(at));
    }
    let edits = |stamp: &str| {
        let found = document(&format!(r#"{{"a":1,"buildEvents":null,"lastUpdated":"{stamp}"}}"#));
        written.edits(&it.world, &found, Writer::Another).edits
    };
    assert_eq!(edits("t1"), [], "a copy of the file before the event");
    assert_eq!(edits("t2"), [edit("buildEvents", None)]);
}

#[test]
fn an_entry_that_is_no_event_stays_in_the_file() {
    let large = format!(r#"{{"kind":"x","id":"large","text":"{}"}}"#, "x".repeat(MAX_EVENT_BYTES));
    let found = document(&format!(r#"{{"buildEvents":["words",{large},{{"kind":"x","id":"e1"}}]}}"#));
    let (it, ids) = taken(nothing(), &found.to_json().to_string());
    assert_eq!(ids, ["e1"]);
    let settled = FileEdits::default().settled(&found, &it.world.status().document()).expect("settled");
    let events = settled.field("buildEvents").and_then(|events| events.list()).expect("events");
    assert_eq!((events.len(), events[1].text(), events[2].text()), (3, "\"words\"", large.as_str()));
}
