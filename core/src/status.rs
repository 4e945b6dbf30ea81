//! The status document, `.fctry/state.json`: what a project's agents do at the moment, for the status line, viewers and other agents. This
//! module knows the fields of the document and how they may be changed. It never touches a file.
//!
//! Every field is optional, `null` equals absent, and unknown fields are kept unchanged, nested ones included. So the document is not a
//! struct but JSON text ([`Json`]), which is decoded where a field is read or changed.
//!
//! | Module | Owns |
//! |---|---|
//! | [`json`] | values as text |
//! | [`path`] | the names of values in the document |
//! | [`merge`] | three-way merge and comparison, field by field |
//! | [`view`] | what a reader sees, even if fields are malformed |
//! | [`shape`] | which values the fields of the protocol accept |
//! | [`change`] | the changes that people, agents and hooks may request |
//! | [`kept`] | what the log says about the status, and the decisions about it |
//! | [`foreign`] | which differences in a file another program has made, and which come from an old copy |
//! | [`quest_view`] | a quest as a build run |
//! | [`quest_events`] | the events of a quest as build events |

pub mod change;
pub mod foreign;
pub mod json;
pub mod kept;
pub mod merge;
pub mod path;
pub mod quest_events;
pub mod quest_view;
pub(crate) mod shape;
pub mod view;

pub use change::{IdeaChange, StatusChange, StatusRefusal};
pub use json::{Json, JsonKind, Object};
pub use path::{Path, Segment};
use std::str::FromStr;

/// Files and values beyond this are refused. A document of a large project has some hundred kilobytes.
pub const MAX_DOCUMENT_BYTES: usize = 64 * 1024 * 1024;
/// The most items of a list, because a hook may append to a list forever.
pub const MAX_LIST_ITEMS: usize = 100_000;

/// The whole document.
#[derive(Clone, Debug, Default)]
pub struct StatusDocument {
    fields: Object,
}

/// One change of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    Set {
        path: Path,
        value: Json,
    },
    /// Objects are merged field by field; everything else is replaced.
    Merge {
        patch: Json,
    },
    Increment {
        path: Path,
        by: i64,
    },
    Append {
        path: Path,
        value: Json,
    },
    /// Sets `null`, which equals absent.
    Clear {
        path: Path,
    },
}

/// Why an edit is not possible, or why a text is not a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    #[error("the path `{path}` cannot be used: {why}")]
    BadPath { path: String, why: String },
    #[error("the value is not JSON: {why}")]
    NotJson { why: String },
    #[error("the status document is not an object, but {kind}")]
    NotAnObject { kind: JsonKind },
    #[error("only an object can be merged, and this is {kind}")]
    PatchNotAnObject { kind: JsonKind },
    #[error("`{at}` is {kind}, so nothing can be below it")]
    NothingBelow { at: Path, kind: JsonKind },
    #[error("`{at}` cannot be {found}: the protocol says that it is {accepts}")]
    WrongShape { at: Path, found: String, accepts: String },
    #[error("`{at}` has {len} items, and there is no item {index}")]
    NoSuchItem { at: Path, index: String, len: usize },
    #[error("`{at}` is {kind} and not a list, so it has no item {index}")]
    NoList { at: Path, kind: JsonKind, index: String },
    #[error("`{at}` is {kind}, so it cannot be counted up")]
    NotANumber { at: Path, kind: JsonKind },
    #[error("`{at}` would become too large a number")]
    Overflow { at: Path },
    #[error("`{at}` is {kind}, so nothing can be appended to it")]
    NotAList { at: Path, kind: JsonKind },
    #[error("`{at}` has {MAX_LIST_ITEMS} items already")]
    ListFull { at: Path },
    #[error("an item of a list cannot be cleared: `{at}`")]
    ItemNotClearable { at: Path },
    #[error("the document would have {bytes} bytes, and {MAX_DOCUMENT_BYTES} is the most")]
    TooLarge { bytes: usize },
}

impl EditError {
    /// What to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::BadPath { .. } => {
                "write names with dots between them, such as `chunkProgress.current` or `buildRun.chunks[0].status`"
            }
            Self::NotJson { .. } => "a text needs quotes of its own: '\"evolve\"'",
            Self::NotAnObject { .. } => "look at the file; `hatchery state get` shows what is in it",
            Self::PatchNotAnObject { .. } => "give an object, such as '{\"currentCommand\":\"evolve\"}'",
            Self::NothingBelow { .. } | Self::NoList { .. } | Self::NotANumber { .. } | Self::NotAList { .. } => {
                "clear it first, or choose another path; `hatchery state get PATH` shows what it holds"
            }
            Self::WrongShape { .. } => {
                "docs/status.md lists what each field accepts; `hatchery state clear PATH` clears a field"
            }
            Self::NoSuchItem { .. } => "append to the list instead: `hatchery state append PATH JSON`",
            Self::Overflow { .. } => "set it to a smaller number first",
            Self::ListFull { .. } => "clear the list, or set it to the items that still matter",
            Self::ItemNotClearable { .. } => "set the whole list without this item",
            Self::TooLarge { .. } => "clear what is not needed any more",
        }
    }

    /// A short name for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::BadPath { .. } => "bad_path",
            Self::NotJson { .. } => "not_json",
            Self::NotAnObject { .. } => "not_an_object",
            Self::PatchNotAnObject { .. } => "patch_not_an_object",
            Self::NothingBelow { .. } => "nothing_below",
            Self::WrongShape { .. } => "wrong_shape",
            Self::NoSuchItem { .. } => "no_such_item",
            Self::NoList { .. } => "no_list",
            Self::NotANumber { .. } => "not_a_number",
            Self::Overflow { .. } => "overflow",
            Self::NotAList { .. } => "not_a_list",
            Self::ListFull { .. } => "list_full",
            Self::ItemNotClearable { .. } => "item_not_clearable",
            Self::TooLarge { .. } => "document_too_large",
        }
    }
}

impl StatusDocument {
    /// Reads a document. An empty text is an error, because the file may just be being written.
    pub fn parse(text: &str) -> Result<Self, EditError> {
        if text.len() > MAX_DOCUMENT_BYTES {
            return Err(EditError::TooLarge { bytes: text.len() });
        }
        let json = parse_value(text.strip_prefix('\u{feff}').unwrap_or(text))?;
        let fields = json.object().ok_or(EditError::NotAnObject { kind: json.kind() })?;
        Ok(Self { fields })
    }

    pub fn of(fields: Object) -> Self {
        Self { fields }
    }

    /// The document as it is written to the file.
    pub fn text(&self) -> String {
        let mut text = self.to_json().laid_out();
        text.push('\n');
        text
    }

    pub fn to_json(&self) -> Json {
        self.fields.to_json()
    }

    pub fn fields(&self) -> &Object {
        &self.fields
    }

    /// A field of the document. `null` is the same as no field.
    pub fn field(&self, name: &str) -> Option<&Json> {
        self.fields.get(name)
    }

    /// The value at a path. `null` is the same as absent.
    pub fn get(&self, path: &Path) -> Option<Json> {
        let mut found = self.to_json();
        for segment in path.segments() {
            found = match found.kind() {
                JsonKind::Object => found.object()?.get(segment.as_str())?.clone(),
                JsonKind::List => found.list()?.into_iter().nth(segment.as_str().parse().ok()?)?,
                JsonKind::Null | JsonKind::Boolean | JsonKind::Number | JsonKind::Text => return None,
            };
        }
        Some(found).filter(|found| !found.is_null())
    }

    /// Changes the document. After an error it is unchanged.
    pub fn apply(&mut self, edit: &Edit) -> Result<(), EditError> {
        let old = self.to_json();
        let new = match edit {
            Edit::Set { path, value } => change(Some(&old), path, 0, &mut |_| Ok(value.clone()))?,
            Edit::Merge { patch } => match patch.kind() {
                JsonKind::Object => merged(&old, patch),
                kind @ (JsonKind::Null | JsonKind::Boolean | JsonKind::Number | JsonKind::Text | JsonKind::List) => {
                    return Err(EditError::PatchNotAnObject { kind });
                }
            },
            Edit::Increment { path, by } => change(Some(&old), path, 0, &mut |at| incremented(at, *by, path))?,
            Edit::Append { path, value } => change(Some(&old), path, 0, &mut |at| appended(at, value, path))?,
            Edit::Clear { path } => {
                if parent_is_list(&old, path) {
                    return Err(EditError::ItemNotClearable { at: path.clone() });
                }
                let cleared = change(Some(&old), path, 0, &mut |_| Ok(Json::null()))?;
                // A path to nothing does not create objects.
                if self.get(path).is_some() { cleared } else { old }
            }
        };
        if new.text().len() > MAX_DOCUMENT_BYTES {
            return Err(EditError::TooLarge { bytes: new.text().len() });
        }
        self.fields = new.object().ok_or(EditError::NotAnObject { kind: new.kind() })?;
        Ok(())
    }

    /// Sets a field of the document.
    pub fn set(&mut self, name: &str, value: impl Into<Json>) {
        self.fields.set(name, value.into());
    }

    /// Clears a field of the document. An absent field is not written as `null`.
    pub fn clear(&mut self, name: &str) {
        if self.fields.get(name).is_some() {
            self.fields.set(name, Json::null());
        }
    }
}

/// Equal documents have the same meaning. The order of fields does not count, and neither do fields that are `null`.
impl PartialEq for StatusDocument {
    fn eq(&self, other: &Self) -> bool {
        merge::difference(self, other).is_empty()
    }
}

impl Eq for StatusDocument {}

impl FromStr for Json {
    type Err = EditError;

    fn from_str(text: &str) -> Result<Self, EditError> {
        parse_value(text)
    }
}

fn parse_value(text: &str) -> Result<Json, EditError> {
    Json::parse(text).map_err(|error| EditError::NotJson { why: error.to_string() })
}

/// Changes the value at a path, and creates the objects on the way to it.
fn change(
    here: Option<&Json>,
    path: &Path,
    walked: usize,
    at_end: &mut dyn FnMut(Option<&Json>) -> Result<Json, EditError>,
) -> Result<Json, EditError> {
    let here = here.filter(|value| !value.is_null());
    let Some(segment) = path.segments().get(walked) else { return at_end(here) };
    let at = || path.segments()[..walked].iter().fold(Path::root(), |path, segment| path.with(segment.clone()));
    match here.map(|value| (value, value.kind())) {
        None => match segment {
            Segment::Name(name) => {
                let mut object = Object::default();
                object.set(name, change(None, path, walked + 1, at_end)?);
                Ok(object.to_json())
            }
            // A list has no gaps, so an item cannot be the first thing that is known of it.
            Segment::Item(index) => Err(EditError::NoSuchItem { at: at(), index: index.clone(), len: 0 }),
        },
        Some((value, JsonKind::Object)) => {
            let Segment::Name(name) = segment else {
                return Err(EditError::NoList { at: at(), kind: JsonKind::Object, index: segment.as_str().to_owned() });
            };
            let mut object =
                value.object().ok_or_else(|| EditError::NothingBelow { at: at(), kind: JsonKind::Object })?;
            let changed = change(object.get(name), path, walked + 1, at_end)?;
            object.set(name, changed);
            Ok(object.to_json())
        }
        Some((value, JsonKind::List)) => {
            let mut items = value.list().unwrap_or_default();
            let missing = || EditError::NoSuchItem { at: at(), index: segment.as_str().to_owned(), len: items.len() };
            let index =
                segment.as_str().parse().ok().filter(|index: &usize| *index < items.len()).ok_or_else(missing)?;
            items[index] = change(items.get(index), path, walked + 1, at_end)?;
            Ok(Json::of_list(&items))
        }
        Some((_, kind @ (JsonKind::Null | JsonKind::Boolean | JsonKind::Number | JsonKind::Text))) => {
            Err(EditError::NothingBelow { at: at(), kind })
        }
    }
}

fn parent_is_list(document: &Json, path: &Path) -> bool {
    let mut here = Some(document.clone());
    let way = path.segments().split_last().map(|(_, way)| way).unwrap_or_default();
    for segment in way {
        here = here.and_then(|value| match value.kind() {
            JsonKind::Object => value.object()?.get(segment.as_str()).cloned(),
            JsonKind::List => value.list()?.into_iter().nth(segment.as_str().parse().ok()?),
            JsonKind::Null | JsonKind::Boolean | JsonKind::Number | JsonKind::Text => None,
        });
    }
    here.is_some_and(|value| value.kind() == JsonKind::List)
}

/// Merges a patch: objects field by field; any other value replaces the old one. `null` in a patch clears a field.
fn merged(old: &Json, patch: &Json) -> Json {
    let (Some(mut object), Some(changes)) = (old.object(), patch.object()) else { return patch.clone() };
    for (name, change) in changes.iter() {
        let value = match object.get(name) {
            Some(known) if known.kind() == JsonKind::Object && change.kind() == JsonKind::Object => {
                merged(known, change)
            }
            _ => change.clone(),
        };
        object.set(name, value);
    }
    object.to_json()
}

fn incremented(at: Option<&Json>, by: i64, path: &Path) -> Result<Json, EditError> {
    let overflow = || EditError::Overflow { at: path.clone() };
    let Some(known) = at else { return Ok(serde_json::Value::from(by).into()) };
    if known.kind() != JsonKind::Number {
        return Err(EditError::NotANumber { at: path.clone(), kind: known.kind() });
    }
    if let Ok(number) = known.text().parse::<i64>() {
        return number.checked_add(by).map(|sum| serde_json::Value::from(sum).into()).ok_or_else(overflow);
    }
    let fraction = known.text().parse::<f64>().map_err(|_| overflow())? + by as f64;
    serde_json::Number::from_f64(fraction).map(|sum| serde_json::Value::from(sum).into()).ok_or_else(overflow)
}

fn appended(at: Option<&Json>, value: &Json, path: &Path) -> Result<Json, EditError> {
    let Some(known) = at else { return Ok(Json::of_list(std::slice::from_ref(value))) };
    let mut items = known.list().ok_or_else(|| EditError::NotAList { at: path.clone(), kind: known.kind() })?;
    if items.len() >= MAX_LIST_ITEMS {
        return Err(EditError::ListFull { at: path.clone() });
    }
    items.push(value.clone());
    Ok(Json::of_list(&items))
}
