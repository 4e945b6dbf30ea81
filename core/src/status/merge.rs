//! Merges two changed copies of a document, and compares two documents, both field by field.

use super::path::MAX_PATH_SEGMENTS;
use super::{Edit, Json, JsonKind, Object, Path, StatusDocument};

/// Merges two copies that were made from `base`. A field that one side has changed is taken from that side. If both have changed it:
/// objects are merged further, lists that both sides have appended to keep all new items, and otherwise `ours` is taken.
pub fn merge(base: &StatusDocument, ours: &StatusDocument, theirs: &StatusDocument) -> StatusDocument {
    let fields = merge_objects(Some(base.fields()), ours.fields(), theirs.fields(), MAX_PATH_SEGMENTS);
    StatusDocument { fields }
}

/// The edits that turn `from` into `to`, one for each field that differs. Objects are compared field by field, lists as a whole.
pub fn difference(from: &StatusDocument, to: &StatusDocument) -> Vec<Edit> {
    let mut edits = Vec::new();
    compare(from.fields(), to.fields(), &Path::root(), &mut edits);
    edits
}

fn merge_objects(base: Option<&Object>, ours: &Object, theirs: &Object, levels: usize) -> Object {
    let (base, mine) = (base.map(Object::by_name).unwrap_or_default(), ours.by_name());
    let others = theirs.by_name();
    let names = theirs.iter().chain(ours.iter().filter(|(name, _)| !others.contains_key(name))).map(|(name, _)| name);
    let mut merged = Object::default();
    for name in names {
        let side = |of: &std::collections::BTreeMap<&str, &Json>| of.get(name).copied().cloned();
        if let Some(value) = merge_values(side(&base), side(&mine), side(&others), levels.saturating_sub(1)) {
            merged.push(name, value);
        }
    }
    merged
}

fn merge_values(base: Option<Json>, ours: Option<Json>, theirs: Option<Json>, levels: usize) -> Option<Json> {
    if same(ours.as_ref(), theirs.as_ref()) || same(ours.as_ref(), base.as_ref()) {
        return theirs;
    }
    if same(theirs.as_ref(), base.as_ref()) {
        return ours;
    }
    let (Some(mine), Some(others)) = (&ours, &theirs) else { return ours };
    match (mine.kind(), others.kind()) {
        (JsonKind::Object, JsonKind::Object) if levels > 0 => {
            let (Some(mine), Some(others)) = (mine.object(), others.object()) else { return ours };
            let base = base.and_then(|base| base.object());
            Some(merge_objects(base.as_ref(), &mine, &others, levels).to_json())
        }
        (JsonKind::List, JsonKind::List) => {
            let (Some(mine), Some(others)) = (mine.list(), others.list()) else { return ours };
            let base = base.and_then(|base| base.list()).unwrap_or_default();
            merge_lists(&base, &mine, others).or(ours)
        }
        _ => ours,
    }
}

/// Both sides have appended to a list: the new items of both, without duplicates.
fn merge_lists(base: &[Json], ours: &[Json], theirs: Vec<Json>) -> Option<Json> {
    if !ours.starts_with(base) || !theirs.starts_with(base) {
        return None;
    }
    let mut items = theirs;
    let added: Vec<Json> =
        ours[base.len()..].iter().filter(|item| !items[base.len()..].contains(item)).cloned().collect();
    items.extend(added);
    Some(Json::of_list(&items))
}

fn compare(from: &Object, to: &Object, at: &Path, edits: &mut Vec<Edit>) {
    let (old, new) = (from.by_name(), to.by_name());
    for (name, value) in to.iter() {
        let known = old.get(name).copied();
        if same(known, Some(value)) {
            continue;
        }
        let path = at.below(name);
        let both = known.and_then(Json::object).zip(value.object());
        match both.filter(|_| path.segments().len() < MAX_PATH_SEGMENTS) {
            Some((known, value)) => compare(&known, &value, &path, edits),
            None if value.is_null() => edits.push(Edit::Clear { path }),
            None => edits.push(Edit::Set { path, value: value.clone() }),
        }
    }
    for (name, value) in from.iter() {
        if !value.is_null() && !new.contains_key(name) {
            edits.push(Edit::Clear { path: at.below(name) });
        }
    }
}

/// `null` equals absent.
fn same(one: Option<&Json>, other: Option<&Json>) -> bool {
    match (one.filter(|it| !it.is_null()), other.filter(|it| !it.is_null())) {
        (None, None) => true,
        (Some(one), Some(other)) => one.same(other),
        (None, Some(_)) | (Some(_), None) => false,
    }
}
