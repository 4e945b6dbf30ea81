//! What must hold for every document: nothing unknown is lost, and merging obeys its laws.

use super::document;
use hatchery_core::status::merge::{difference, merge};
use hatchery_core::status::{Edit, Json, Path, StatusDocument};
use proptest::prelude::*;
use serde_json::{Map, Value};

/// Any JSON value, some levels deep.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1000_i32..1000).prop_map(|n| Value::from(f64::from(n) / 8.0)),
        "[a-zäß\"\\\\\n]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            object_of(inner).prop_map(Value::Object),
        ]
    })
}

fn object_of(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::btree_map("[a-d.]{1,2}", inner, 0..5).prop_map(|fields| fields.into_iter().collect())
}

fn some_document() -> impl Strategy<Value = StatusDocument> {
    object_of(value()).prop_map(|fields| document(&Value::Object(fields).to_string()))
}

fn some_edit() -> impl Strategy<Value = Edit> {
    let path = prop::collection::vec("[a-d.]{1,2}|[0-2]", 1..4);
    let path = path.prop_map(|names| names.iter().fold(Path::root(), |path, name| path.below(name)));
    (path, value(), 0..5, any::<i32>()).prop_map(|(path, value, sort, by)| {
        let value = Json::from(&value);
        match sort {
            0 => Edit::Set { path, value },
            1 => Edit::Merge { patch: value },
            2 => Edit::Increment { path, by: by.into() },
            3 => Edit::Append { path, value },
            _ => Edit::Clear { path },
        }
    })
}

fn meaning(document: &StatusDocument) -> Value {
    document.to_json().value().unwrap()
}

/// Everything in a value that is no object, with its path. `null` equals absent.
fn leaves(value: &Value) -> Vec<(Vec<String>, Value)> {
    match value {
        Value::Null => Vec::new(),
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(name, value)| {
                leaves(value).into_iter().map(move |(mut path, leaf)| {
                    path.insert(0, name.clone());
                    (path, leaf)
                })
            })
            .collect(),
        leaf => vec![(Vec::new(), leaf.clone())],
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(document in some_document()) {
        let again = StatusDocument::parse(&document.text()).unwrap();
        prop_assert_eq!(meaning(&again), meaning(&document));
        let pretty = serde_json::to_string_pretty(&meaning(&document)).unwrap();
        prop_assert_eq!(document.text(), pretty + "\n");
    }

    #[test]
    fn an_edit_touches_nothing_beside_its_path(before in some_document(), edit in some_edit()) {
        let mut after = before.clone();
        if after.apply(&edit).is_err() {
            prop_assert_eq!(meaning(&after), meaning(&before));
            return Ok(());
        }
        let names = |at: &Path| at.segments().iter().map(|segment| segment.as_str().to_owned()).collect::<Vec<_>>();
        let touched = |path: &[String]| match &edit {
            Edit::Set { path: at, .. } | Edit::Increment { path: at, .. } | Edit::Append { path: at, .. } | Edit::Clear { path: at } => {
                // A list is a leaf here, so an edit of one of its items touches the list.
                let at = names(at);
                path.starts_with(&at) || at.starts_with(path)
            }
            Edit::Merge { patch } => leaves_and_nulls(&patch.value().unwrap()).iter().any(|leaf| path.starts_with(leaf) || leaf.starts_with(path)),
        };
        let (old, new) = (leaves(&meaning(&before)), leaves(&meaning(&after)));
        for leaf in old.iter().filter(|(path, _)| !touched(path)) {
            prop_assert!(new.contains(leaf), "{leaf:?} is lost by {edit:?}");
        }
        for leaf in new.iter().filter(|(path, _)| !touched(path)) {
            prop_assert!(old.contains(leaf), "{leaf:?} came from nowhere by {edit:?}");
        }
    }

    #[test]
    fn one_changed_side_wins_and_equal_sides_agree(base in some_document(), other in some_document()) {
        prop_assert_eq!(&merge(&base, &base, &other), &other);
        prop_assert_eq!(&merge(&base, &other, &base), &other);
        prop_assert_eq!(&merge(&base, &other, &other), &other);
    }

    #[test]
    fn changes_of_different_fields_are_both_kept(base in some_document(), mine in value(), theirs in value()) {
        let with = |name: &str, value: &Value| {
            let mut changed = base.clone();
            changed.set(name, value);
            changed
        };
        let (ours, others) = (with("mine", &mine), with("theirs", &theirs));
        let (one, two) = (merge(&base, &ours, &others), merge(&base, &others, &ours));
        prop_assert_eq!(&one, &two, "the order of the sides does not matter");
        let mut both = ours;
        both.set("theirs", &theirs);
        prop_assert_eq!(one, both);
    }

    #[test]
    fn a_field_of_either_side_comes_from_one_of_the_three(base in some_document(), ours in some_document(), theirs in some_document()) {
        let merged = meaning(&merge(&base, &ours, &theirs));
        let known: Vec<_> = [&base, &ours, &theirs].into_iter().flat_map(|it| leaves(&meaning(it))).collect();
        for (path, leaf) in leaves(&merged) {
            let list = leaf.is_array();
            prop_assert!(list || known.contains(&(path, leaf)), "something new in {merged}");
        }
        // What neither side has changed is still there.
        for leaf in leaves(&meaning(&base)) {
            let unchanged = |side: &StatusDocument| leaves(&meaning(side)).contains(&leaf);
            if unchanged(&ours) && unchanged(&theirs) {
                prop_assert!(leaves(&merged).contains(&leaf), "{leaf:?} is lost");
            }
        }
    }

    #[test]
    fn the_difference_leads_from_one_document_to_the_other(from in some_document(), to in some_document()) {
        let mut walked = from.clone();
        for edit in difference(&from, &to) {
            walked.apply(&edit).unwrap();
        }
        prop_assert_eq!(&walked, &to);
        prop_assert!(difference(&to, &to).is_empty());
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,40}") {
        if let Ok(document) = StatusDocument::parse(&text) {
            StatusDocument::parse(&document.text()).unwrap();
        }
    }
}

/// The places that a patch writes to, cleared ones included.
fn leaves_and_nulls(patch: &Value) -> Vec<Vec<String>> {
    match patch {
        Value::Object(fields) if !fields.is_empty() => fields
            .iter()
            .flat_map(|(name, value)| {
                leaves_and_nulls(value).into_iter().map(move |mut path| {
                    path.insert(0, name.clone());
                    path
                })
            })
            .collect(),
        _ => vec![Vec::new()],
    }
}

#[test]
fn lists_that_both_sides_appended_to_keep_both() {
    let base = document(r#"{"completedSteps":["a"]}"#);
    let ours = document(r#"{"completedSteps":["a","b","x"]}"#);
    let theirs = document(r#"{"completedSteps":["a","c","x"]}"#);
    assert_eq!(merge(&base, &ours, &theirs).names("completedSteps"), ["a", "c", "x", "b"]);
}

#[test]
fn where_both_changed_one_field_ours_is_taken() {
    let merged = merge(&document(r#"{"a":1}"#), &document(r#"{"a":2}"#), &document(r#"{"a":3,"b":4}"#));
    assert_eq!(merged, document(r#"{"a":2,"b":4}"#));
}
