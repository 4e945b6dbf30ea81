//! What is an edit by another program, and what is only an old copy of ours or a file that was begun anew.

use crate::given::*;
use hatchery_core::event::FieldEdit;
use hatchery_core::idea_inbox::IdeaInbox;
use hatchery_core::status::foreign::{FileEdits, InboxEdits, Writer, WrittenVersions};
use hatchery_core::status::kept::MAX_KEPT_VALUE_BYTES;
use hatchery_core::status::{Edit, StatusDocument};
use hatchery_core::{Timestamp, World};

fn document(text: &str) -> StatusDocument {
    StatusDocument::parse(text).expect("a document")
}

fn inbox(text: &str) -> IdeaInbox {
    IdeaInbox::parse(text).expect("an inbox")
}

/// Versions that were written one after the other.
fn written(versions: &[&str]) -> WrittenVersions<StatusDocument> {
    let mut written = WrittenVersions::default();
    for (version, at) in versions.iter().zip(0..) {
        let version = document(version);
        WrittenVersions::<StatusDocument>::wrote(&mut written, &version, &version, Timestamp(at));
    }
    written
}

fn ideas(versions: &[&str]) -> WrittenVersions<IdeaInbox> {
    let mut written = WrittenVersions::default();
    for (version, at) in versions.iter().zip(0..) {
        WrittenVersions::<IdeaInbox>::wrote(&mut written, &inbox(version), Timestamp(at));
    }
    written
}

fn world() -> World {
    nothing().world
}

fn shown(edits: &FileEdits) -> Vec<String> {
    let line = |edit: &FieldEdit| format!("{}={}", edit.path, edit.value.as_deref().unwrap_or("-"));
    edits.edits.iter().map(line).collect()
}

fn changed(versions: &[&str], found: &str) -> Vec<String> {
    shown(&written(versions).edits(&world(), &document(found), Writer::Another))
}

#[test]
fn a_file_that_was_begun_anew_removes_nothing() {
    let newest = r#"{"currentCommand":"evolve","readinessSummary":{"aligned":3}}"#;
    assert_eq!(changed(&[newest], r#"{"n":1,"lastUpdated":"later"}"#), ["n=1"]);
    assert_eq!(changed(&[newest], r#"{"currentCommand":"other"}"#), ["currentCommand=\"other\""]);
    let unknown =
        WrittenVersions::<StatusDocument>::default().edits(&world(), &document(r#"{"n":1}"#), Writer::Another);
    assert_eq!(shown(&unknown), ["n=1"]);
}

#[test]
fn a_field_is_removed_by_a_program_that_knows_the_newest_file() {
    let versions = [r#"{"a":1,"b":{"c":1,"d":2}}"#];
    assert_eq!(changed(&versions, r#"{"b":{"c":1,"d":2}}"#), ["a=-"]);
    assert_eq!(changed(&versions, r#"{"a":1,"b":{"c":1}}"#), ["b.d=-"]);
    assert_eq!(changed(&versions, r#"{"a":null,"b":{"c":1,"d":3}}"#), ["a=-", "b.d=3"], "`null` always removes");
    assert_eq!(changed(&versions, r#"{"b":{"c":1,"d":3}}"#), ["b.d=3"], "it may never have known `a`");
    assert_eq!(changed(&versions, "{}"), ["a=-", "b=-"], "a session starts");
}

#[test]
fn a_run_and_its_progress_outlive_a_session_start() {
    assert_eq!(changed(&[r#"{"buildRun":{"runId":"r"},"chunkProgress":{"total":1},"a":1}"#], "{}"), ["a=-"]);
}

#[test]
fn an_old_copy_with_an_edit_changes_nothing_else() {
    let versions = [r#"{"mine":1,"foreign":0}"#, r#"{"mine":2,"foreign":0}"#, r#"{"mine":3,"foreign":0}"#];
    assert_eq!(changed(&versions, r#"{"mine":1,"foreign":7,"lastUpdated":"x"}"#), ["foreign=7"]);
    assert_eq!(changed(&versions, r#"{"mine":1,"foreign":0}"#), Vec::<String>::new());
    assert_eq!(changed(&versions, r#"{"mine":9,"foreign":0}"#), ["mine=9"], "never ours");
}

#[test]
fn the_time_in_the_file_tells_which_version_it_is() {
    let versions = [
        r#"{"command":"evolve","lastUpdated":"t1"}"#,
        r#"{"command":"review","lastUpdated":"t2"}"#,
        r#"{"command":null,"other":1,"lastUpdated":"t3"}"#,
    ];
    assert_eq!(changed(&versions, versions[0]), Vec::<String>::new());
    let back = r#"{"command":"evolve","other":1,"lastUpdated":"t3"}"#;
    assert_eq!(changed(&versions, back), ["command=\"evolve\""], "an edit of the newest, whatever was there before");
}

#[test]
fn an_old_null_destroys_no_run() {
    let versions = [
        r#"{"a":1,"buildRun":{"runId":"1"}}"#,
        r#"{"a":1,"buildRun":null,"lastUpdated":"t"}"#,
        r#"{"a":1,"buildRun":{"runId":"2"}}"#,
    ];
    assert_eq!(changed(&versions, r#"{"a":1,"buildRun":null,"lastUpdated":"t"}"#), Vec::<String>::new());
    assert_eq!(changed(&versions, r#"{"a":1,"buildRun":null}"#), Vec::<String>::new());
    assert_eq!(changed(&versions[2..], r#"{"a":1,"buildRun":null}"#), ["buildRun=-"]);
    // Also if nothing else is in the file.
    let alone = [r#"{"buildRun":null,"lastUpdated":"t"}"#, r#"{"buildRun":{"runId":"2"}}"#];
    assert_eq!(changed(&alone, alone[0]), Vec::<String>::new());
}

#[test]
fn a_program_may_go_back_to_a_value_of_its_own() {
    let world = world();
    let mut written = written(&[r#"{"x":1,"y":1}"#]);
    let next = document(r#"{"x":2,"y":2}"#);
    let edits = written.edits(&world, &next, Writer::Another);
    written.took(&edits, &next);
    WrittenVersions::<StatusDocument>::wrote(&mut written, &next, &next, Timestamp(1));
    assert_eq!(shown(&written.edits(&world, &document(r#"{"x":1,"y":3}"#), Writer::Another)), ["x=1", "y=3"]);
}

#[test]
fn a_version_of_long_ago_is_no_copy() {
    let mut written = written(&[r#"{"a":1}"#, r#"{"a":2}"#]);
    let newest = document(r#"{"a":3}"#);
    WrittenVersions::<StatusDocument>::wrote(&mut written, &newest, &newest, Timestamp(1_000_000));
    assert_eq!(shown(&written.edits(&world(), &document(r#"{"a":1}"#), Writer::Another)), ["a=1"]);
}

#[test]
fn what_the_log_cannot_take_stays_in_the_file() {
    let long = format!("\"{}\"", "x".repeat(MAX_KEPT_VALUE_BYTES));
    let found = document(&format!(r#"{{"new":{long},"grown":{long},"":1,"a":1,"lastUpdated":"t"}}"#));
    let log = document(r#"{"grown":1,"a":1}"#);
    let mut written = written(&[r#"{"grown":1,"a":1}"#]);
    let edits = written.edits(&world(), &found, Writer::Another);
    assert_eq!(shown(&edits), Vec::<String>::new());
    assert_eq!(edits.settled(&found, &log).expect("settled"), found);
    // Also when the file is written again.
    WrittenVersions::<StatusDocument>::wrote(&mut written, &log, &found, Timestamp(1));
    assert_eq!(written.unchanged().settled(&found, &log).expect("settled"), found);
    // Until Hatchery sets the field itself.
    let set = document(r#"{"grown":2,"a":1}"#);
    let mut wanted = found.clone();
    wanted
        .apply(&Edit::Set { path: "grown".parse().expect("a path"), value: "2".parse().expect("JSON") })
        .expect("set");
    assert_eq!(written.unchanged().settled(&found, &set).expect("settled"), wanted);
}

#[test]
fn an_old_copy_is_made_true_again() {
    let written = written(&[r#"{"a":1,"gone":1}"#, r#"{"a":2}"#]);
    let (found, log) = (document(r#"{"a":1,"gone":1,"theirs":[]}"#), document(r#"{"a":2,"theirs":[]}"#));
    let edits = written.edits(&world(), &found, Writer::Another);
    assert_eq!(shown(&edits), ["theirs=[]"]);
    assert_eq!(edits.settled(&found, &log).expect("settled"), log);
}

fn inbox_edits(versions: &[&str], found: &str) -> (Vec<String>, Vec<String>) {
    let log = versions.last().map_or_else(IdeaInbox::default, |newest| inbox(newest));
    let InboxEdits { kept, dismissed } = ideas(versions).edits(&log, &inbox(found), Writer::Another);
    (kept.into_iter().map(|(id, _)| id).collect(), dismissed)
}

fn named(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

#[test]
fn ideas_of_others_are_kept_and_dismissed() {
    let versions = [r#"[{"id":"a"},{"id":"b"}]"#];
    assert_eq!(inbox_edits(&versions, r#"[{"id":"c"},{"id":"a"}]"#), (named(&["c"]), named(&["b"])));
    assert_eq!(inbox_edits(&versions, r#"[{"id":"a","note":"x"},{"id":"b"}]"#), (named(&["a"]), named(&[])));
}

#[test]
fn no_idea_vanishes_with_the_file() {
    let versions = [r#"[{"id":"a"},{"id":"b"}]"#];
    assert_eq!(inbox_edits(&versions, "[]"), (named(&[]), named(&[])));
    assert_eq!(inbox_edits(&versions, r#"[{"id":"c"}]"#), (named(&["c"]), named(&[])));
    assert_eq!(inbox_edits(&[], r#"[{"id":"c"}]"#), (named(&["c"]), named(&[])));
    // But a program that removes the last idea leaves an empty list.
    assert_eq!(inbox_edits(&["[]", r#"[{"id":"a"}]"#], "[]"), (named(&[]), named(&["a"])));
}

#[test]
fn an_old_inbox_gives_no_idea_twice_and_loses_none() {
    let versions = [
        r#"[{"id":"a","status":"pending"}]"#,
        r#"[{"id":"b"},{"id":"a","status":"pending"}]"#,
        r#"[{"id":"b"},{"id":"a","status":"processing"}]"#,
    ];
    for old in &versions[..2] {
        assert_eq!(inbox_edits(&versions, old), (named(&[]), named(&[])), "{old}");
    }
    let added = r#"[{"id":"c"},{"id":"a","status":"pending"}]"#;
    assert_eq!(inbox_edits(&versions, added), (named(&["c"]), named(&[])));
}

#[test]
fn a_command_removes_what_it_left_out() {
    let known = written(&[r#"{"x":{"a":1},"b":1}"#]);
    let edits = known.edits(&world(), &document(r#"{"x":{"c":1}}"#), Writer::Command);
    assert_eq!(shown(&edits), ["x.c=1", "x.a=-", "b=-"]);
    let known = ideas(&[r#"[{"id":"a","status":"pending"},{"id":"b"}]"#]);
    let log = inbox(r#"[{"id":"a","status":"pending"},{"id":"b"}]"#);
    assert_eq!(known.edits(&log, &inbox("[]"), Writer::Command).dismissed, ["a", "b"]);
    let processed = known.edits(&log, &inbox(r#"[{"id":"a","status":"processing"}]"#), Writer::Command);
    assert_eq!((processed.kept.len(), processed.dismissed), (1, named(&["b"])));
}

#[test]
fn an_idea_that_the_log_cannot_take_stays_in_the_file() {
    let long = "x".repeat(MAX_KEPT_VALUE_BYTES);
    let found = inbox(&format!(r#"[{{"id":"long","content":"{long}"}},{{"id":"a"}},{{"content":"no id"}}]"#));
    let settled = InboxEdits::settled(&found, &inbox(r#"[{"id":"b"},{"id":"a"}]"#));
    let ids: Vec<String> = settled.items().into_iter().map(|item| item.id).collect();
    assert_eq!(ids, ["b", "a", "long"]);
    assert!(settled.text().contains("no id"));
}
