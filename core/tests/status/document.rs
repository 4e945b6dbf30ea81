//! Reading and changing the document.

use super::{at, document, json};
use hatchery_core::status::view::{ChunkProgress, Section, Share};
use hatchery_core::status::{Edit, EditError, JsonKind, Path, StatusDocument};

const EXAMPLE: &str = include_str!("example.json");

fn path(text: &str) -> Path {
    text.parse().unwrap()
}

fn set(at: &str, value: &str) -> Edit {
    Edit::Set { path: path(at), value: json(value) }
}

#[track_caller]
fn changed(from: &str, edit: &Edit) -> String {
    let mut document = document(from);
    document.apply(edit).unwrap();
    document.to_json().text().to_owned()
}

#[track_caller]
fn refused(from: &str, edit: &Edit) -> EditError {
    let mut changed = document(from);
    let error = changed.apply(edit).unwrap_err();
    assert_eq!(changed.to_json().text(), document(from).to_json().text(), "a refused edit changes nothing");
    assert!(!error.hint().is_empty() && !error.code().is_empty());
    error
}

#[test]
fn the_example_is_read_field_by_field() {
    let example = document(EXAMPLE);
    assert_eq!(example.words("currentCommand").unwrap(), "evolve");
    assert_eq!(example.scenario_score(), Some(Share { done: 5, total: 8 }));
    assert_eq!(example.chunk_progress(), Some(ChunkProgress::Current(Share { done: 2, total: 4 })));
    assert_eq!(example.readiness(), Some(Share { done: 28, total: 40 }));
    assert_eq!(example.untracked_changes(), 1);
    let section = Section { alias: "#core-flow".into(), number: Some("2.2".into()) };
    assert_eq!(example.active_section(), Some(section));
    assert_eq!(example.names("completedSteps"), ["state-owner-scan"]);
}

#[test]
fn writing_the_example_changes_nothing_but_the_white_space() {
    assert_eq!(document(EXAMPLE).text(), {
        let value: serde_json::Value = serde_json::from_str(EXAMPLE).unwrap();
        let laid_out = document(&document(EXAMPLE).to_json().to_string()).text();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&laid_out).unwrap(), value);
        laid_out
    });
    assert!(
        document(EXAMPLE).text().contains("\n  \"scenarioScore\": {\n    \"satisfied\": 5,\n"),
        "{}",
        document(EXAMPLE).text()
    );
}

/// Otherwise a file with such a number would never be what it should be, and would be written without end.
#[test]
fn a_number_that_cannot_be_decoded_is_equal_to_itself_however_it_is_laid_out() {
    let read = |text: &str| StatusDocument::parse(text).unwrap();
    assert_eq!(read(r#"{"a":{"b":[1e400]}}"#), read("{\n  \"a\": {\n    \"b\": [\n      1e400\n    ]\n  }\n}\n"));
    assert_ne!(read(r#"{"a":[1e400]}"#), read(r#"{"a":[1e401]}"#));
    assert_ne!(read(r#"{"a":[1e400]}"#), read(r#"{"a":[1]}"#));
}

#[test]
fn numbers_that_no_machine_number_can_hold_stay_as_they_are_written() {
    let strange = r#"{"a":123456789012345678901234567890,"b":{"c":[1e400,0.1000,-0,1E+2]},"d":0.30000000000000004}"#;
    let after = changed(strange, &set("b.x", "1"));
    assert_eq!(
        after,
        r#"{"a":123456789012345678901234567890,"b":{"c":[1e400,0.1000,-0,1E+2],"x":1},"d":0.30000000000000004}"#
    );
}

#[test]
fn what_is_no_object_is_no_document() {
    for text in ["", " \n", "{", "{\"a\":1", "[]", "null", "7", "\"x\"", "{}x", "\0\0\0\0", "{\"a\":}"] {
        assert!(StatusDocument::parse(text).is_err(), "{text:?}");
    }
    assert_eq!(StatusDocument::parse("[]").unwrap_err(), EditError::NotAnObject { kind: JsonKind::List });
    assert_eq!(document("\u{feff}{\"a\":1}").to_json().text(), "{\"a\":1}", "a byte order mark is no damage");
}

#[test]
fn a_deeply_nested_value_costs_no_stack_and_no_space() {
    let deep = format!("{{\"deep\":{}{},\"x\":1}}", "[".repeat(100_000), "]".repeat(100_000));
    let mut document = document(&deep);
    document.apply(&set("x", "2")).unwrap();
    let text = document.text();
    assert!(text.len() < deep.len() + 2_000, "{} bytes", text.len());
    assert_eq!(at(&StatusDocument::parse(&text).unwrap(), "x"), "2");
}

#[test]
fn a_name_that_is_written_twice_counts_as_in_javascript() {
    assert_eq!(document(r#"{"a":1,"b":2,"a":3}"#).to_json().text(), r#"{"a":3,"b":2}"#);
}

#[test]
fn set_makes_the_objects_on_the_way() {
    assert_eq!(changed("{}", &set("a.b.c", "[1]")), r#"{"a":{"b":{"c":[1]}}}"#);
    assert_eq!(changed(r#"{"a":null}"#, &set("a.b", "1")), r#"{"a":{"b":1}}"#);
    assert_eq!(changed(r#"{"l":[{"s":"x"},2]}"#, &set("l[0].s", "\"y\"")), r#"{"l":[{"s":"y"},2]}"#);
    assert_eq!(changed(r#"{"l":[1,2]}"#, &set("l.1", "3")), r#"{"l":[1,3]}"#);
    assert_eq!(changed("{}", &set(r#"a."b.c""#, "1")), r#"{"a":{"b.c":1}}"#);
}

#[test]
fn set_refuses_to_destroy_what_is_in_the_way() {
    let blocked = refused(r#"{"a":"x"}"#, &set("a.b", "1"));
    assert_eq!(blocked.to_string(), "`a` is a text, so nothing can be below it");
    let missing = refused(r#"{"l":[1]}"#, &set("l.5", "1"));
    assert_eq!(missing.to_string(), "`l` has 1 items, and there is no item 5");
    assert!(matches!(refused(r#"{"l":[1]}"#, &set("l.x", "1")), EditError::NoSuchItem { .. }));
}

#[test]
fn an_index_in_brackets_needs_a_list_with_that_item() {
    let missing = refused("{}", &set("a[99999999]", "1"));
    assert_eq!(missing.to_string(), "`a` has 0 items, and there is no item 99999999");
    assert!(matches!(refused(r#"{"a":null}"#, &set("a[0].b", "1")), EditError::NoSuchItem { .. }));
    assert!(matches!(refused(r#"{"a":[1]}"#, &set("a[1]", "1")), EditError::NoSuchItem { len: 1, .. }));
    let no_list = refused(r#"{"a":{"0":1}}"#, &set("a[0]", "2"));
    assert_eq!(no_list.to_string(), "`a` is an object and not a list, so it has no item 0");
    assert!(matches!(refused("{}", &Edit::Increment { path: path("a[7]"), by: 1 }), EditError::NoSuchItem { .. }));
    assert!(matches!(
        refused("{}", &Edit::Append { path: path("a[7]"), value: json("1") }),
        EditError::NoSuchItem { .. }
    ));
    assert_eq!(changed("{}", &set("a.7", "1")), r#"{"a":{"7":1}}"#, "a name may be a number");
}

#[test]
fn clear_writes_null_and_null_equals_absent() {
    let clear = |at: &str| Edit::Clear { path: path(at) };
    assert_eq!(changed(r#"{"a":1,"b":{"c":2}}"#, &clear("b.c")), r#"{"a":1,"b":{"c":null}}"#);
    assert_eq!(at(&document(r#"{"a":null}"#), "a"), "null");
    assert_eq!(document(r#"{"a":null,"b":1}"#), document(r#"{"b":1}"#));
    assert!(matches!(refused(r#"{"l":[1]}"#, &clear("l.0")), EditError::ItemNotClearable { .. }));
}

#[test]
fn clearing_what_is_not_there_changes_nothing() {
    let clear = |at: &str| Edit::Clear { path: path(at) };
    assert_eq!(changed(r#"{"a":1}"#, &clear("b.c")), r#"{"a":1}"#);
    assert_eq!(changed(r#"{"a":{}}"#, &clear("a.b.c")), r#"{"a":{}}"#);
    assert!(matches!(refused(r#"{"a":"x"}"#, &clear("a.b")), EditError::NothingBelow { .. }));
}

#[test]
fn merge_goes_field_by_field() {
    let merge = |patch: &str| Edit::Merge { patch: json(patch) };
    let before = r#"{"a":{"x":1,"y":{"z":1}},"keep":{"unknown":[1]}}"#;
    assert_eq!(
        changed(before, &merge(r#"{"a":{"y":{"w":2},"x":null},"n":[1]}"#)),
        r#"{"a":{"x":null,"y":{"z":1,"w":2}},"keep":{"unknown":[1]},"n":[1]}"#
    );
    assert!(matches!(refused("{}", &merge("[1]")), EditError::PatchNotAnObject { kind: JsonKind::List }));
}

#[test]
fn increment_counts_from_nothing_and_never_wraps() {
    let by = |at: &str, by: i64| Edit::Increment { path: path(at), by };
    assert_eq!(changed("{}", &by("n", 1)), r#"{"n":1}"#);
    assert_eq!(changed(r#"{"a":{"n":null}}"#, &by("a.n", 5)), r#"{"a":{"n":5}}"#);
    assert_eq!(changed(r#"{"n":41}"#, &by("n", 1)), r#"{"n":42}"#);
    assert_eq!(changed(r#"{"n":1.5}"#, &by("n", -1)), r#"{"n":0.5}"#);
    assert!(matches!(refused(&format!("{{\"n\":{}}}", i64::MAX), &by("n", 1)), EditError::Overflow { .. }));
    assert_eq!(refused(r#"{"n":"1"}"#, &by("n", 1)).to_string(), "`n` is a text, so it cannot be counted up");
}

#[test]
fn append_makes_the_list_and_refuses_other_things() {
    let append = |at: &str, value: &str| Edit::Append { path: path(at), value: json(value) };
    assert_eq!(changed("{}", &append("l", "1")), r#"{"l":[1]}"#);
    assert_eq!(changed(r#"{"l":[1]}"#, &append("l", "{\"a\":2}")), r#"{"l":[1,{"a":2}]}"#);
    assert!(matches!(refused(r#"{"l":{}}"#, &append("l", "1")), EditError::NotAList { .. }));
}

#[test]
fn paths_are_read_and_written_alike() {
    for text in ["a", "a.b", "a.0.b", "a[0].b", "a[0][1]", r#"a."b.c""#, r#""a[0]".b"#, r#""ü \"x\"""#] {
        assert_eq!(path(text).to_string(), text);
        assert_eq!(path(&path(text).to_string()), path(text));
    }
    for bad in
        ["", ".", "a.", ".a", "a..b", "a[x]", "a[0", "\"a", "\"a\"b", "[]", "[0]", "[0].a", "a[99999999999999999999]"]
    {
        assert!(matches!(bad.parse::<Path>(), Err(EditError::BadPath { .. })), "{bad:?}");
    }
    assert!(vec!["a"; 33].join(".").parse::<Path>().is_err());
}

#[test]
fn strange_values_are_just_not_there() {
    for strange in
        ["null", "true", "-1", "\"x\"", "[]", "[null]", "{}", "{\"total\":null}", "{\"total\":-3}", "{\"total\":\"8\"}"]
    {
        let names = ["scenarioScore", "chunkProgress", "readinessSummary", "scanProgress", "buildRun", "activeSection"];
        for name in names {
            let document = document(&format!("{{\"{name}\":{strange}}}"));
            assert_eq!(document.scenario_score(), None, "{name}: {strange}");
            assert_eq!(document.chunk_progress(), None, "{name}: {strange}");
            assert_eq!(document.scan_progress(), None, "{name}: {strange}");
        }
    }
    let absurd = document(
        r#"{"scenarioScore":{"satisfied":9,"total":8},"readinessSummary":{"a":18446744073709551615,"b":5,"c":-1}}"#,
    );
    assert_eq!(absurd.scenario_score(), Some(Share { done: 9, total: 8 }));
    assert_eq!(absurd.readiness(), Some(Share { done: 0, total: u64::MAX }));
}
