//! JSON values that are kept as their text. So a value that is only passed on stays exactly as its author wrote it: large numbers,
//! fractions, the order of the fields. A value is decoded one level deep, and only where it is read or changed.

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt;

/// Deeper levels are written without line breaks. This bounds the space that indentation can take.
const MAX_INDENTED_LEVELS: usize = 16;

/// One JSON value, as text.
#[derive(Clone)]
pub struct Json(Box<RawValue>);

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonKind {
    Null,
    Boolean,
    Number,
    Text,
    List,
    Object,
}

/// The fields of a JSON object, in the order of the text. If a name is written twice, the last value counts, at the first position, as in
/// JavaScript.
#[derive(Clone, Debug, Default)]
pub struct Object(Vec<(String, Json)>);

impl Json {
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text).map(Self)
    }

    pub fn null() -> Self {
        Self::from(&Value::Null)
    }

    pub fn text(&self) -> &str {
        self.0.get()
    }

    pub fn kind(&self) -> JsonKind {
        match self.text().as_bytes().first() {
            Some(b'{') => JsonKind::Object,
            Some(b'[') => JsonKind::List,
            Some(b'"') => JsonKind::Text,
            Some(b't' | b'f') => JsonKind::Boolean,
            Some(b'n') | None => JsonKind::Null,
            Some(_) => JsonKind::Number,
        }
    }

    pub fn is_null(&self) -> bool {
        self.kind() == JsonKind::Null
    }

    /// The decoded value. None if it is nested too deeply.
    pub fn value(&self) -> Option<Value> {
        serde_json::from_str(self.text()).ok()
    }

    /// A string without its quotes. Half a surrogate pair, as JavaScript may write it, becomes a replacement character.
    pub fn words(&self) -> Option<String> {
        crate::json::text(&self.0)
    }

    pub fn object(&self) -> Option<Object> {
        if self.kind() == JsonKind::Object { serde_json::from_str(self.text()).ok() } else { None }
    }

    pub fn list(&self) -> Option<Vec<Self>> {
        if self.kind() != JsonKind::List {
            return None;
        }
        let items: Vec<Box<RawValue>> = serde_json::from_str(self.text()).ok()?;
        Some(items.into_iter().map(Self).collect())
    }

    /// A list of values.
    pub fn of_list(items: &[Self]) -> Self {
        let inner: Vec<&str> = items.iter().map(Self::text).collect();
        Self::known(format!("[{}]", inner.join(",")))
    }

    /// Whether two values have the same meaning, even if they are written differently. Values that cannot be decoded, such as `1e400`, are
    /// compared as text, without white space.
    pub fn same(&self, other: &Self) -> bool {
        self.text() == other.text()
            || (self.kind() == other.kind()
                && match (self.value(), other.value()) {
                    (Some(one), Some(other)) => one == other,
                    (None, None) => self.laid_out() == other.laid_out(),
                    (Some(_), None) | (None, Some(_)) => false,
                })
    }

    /// The text with line breaks and two spaces per level, as `JSON.stringify(value, null, 2)` writes it.
    pub fn laid_out(&self) -> String {
        lay_out(self.text())
    }

    pub(super) fn raw(&self) -> &RawValue {
        &self.0
    }

    /// A text that this module has put together from valid values.
    fn known(text: String) -> Self {
        Self(RawValue::from_string(text).expect("valid values in brackets are valid"))
    }
}

impl From<&Value> for Json {
    fn from(value: &Value) -> Self {
        Self::known(value.to_string())
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        Self::from(&value)
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::from(Value::from(text))
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// Works only within JSON, and not below a tagged or flattened type, because serde would decode the value.
impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self)
    }
}

/// Equal values have the same meaning.
impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.same(other)
    }
}

impl Eq for Json {}

impl fmt::Display for JsonKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "null",
            Self::Boolean => "true or false",
            Self::Number => "a number",
            Self::Text => "a text",
            Self::List => "a list",
            Self::Object => "an object",
        })
    }
}

impl Object {
    /// The value of a field. `null` is the same as no field.
    pub fn get(&self, name: &str) -> Option<&Json> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value).filter(|value| !value.is_null())
    }

    /// Sets a field, at its old position or as the last one.
    pub fn set(&mut self, name: &str, value: Json) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    /// Takes a field out.
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(known, _)| known != name);
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The fields by name, to compare large objects.
    pub(super) fn by_name(&self) -> BTreeMap<&str, &Json> {
        self.iter().collect()
    }

    pub(super) fn push(&mut self, name: &str, value: Json) {
        self.0.push((name.to_owned(), value));
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn to_json(&self) -> Json {
        let inner: Vec<String> =
            self.0.iter().map(|(name, value)| format!("{}:{}", Value::from(name.as_str()), value.text())).collect();
        Json::known(format!("{{{}}}", inner.join(",")))
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor;
        impl<'de> Visitor<'de> for ObjectVisitor {
            type Value = Object;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                let mut places: BTreeMap<String, usize> = BTreeMap::new();
                let mut fields: Vec<(String, Json)> = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    match places.get(&name) {
                        Some(place) => fields[*place].1 = Json(value),
                        None => {
                            places.insert(name.clone(), fields.len());
                            fields.push((name, Json(value)));
                        }
                    }
                }
                Ok(Object(fields))
            }
        }
        deserializer.deserialize_map(ObjectVisitor)
    }
}

/// Writes valid JSON with other white space. Numbers and strings are copied unchanged.
fn lay_out(json: &str) -> String {
    let mut out = String::with_capacity(json.len() + json.len() / 4);
    let mut level = 0_usize;
    let mut rest = json;
    // The text between two special characters is copied in one piece.
    while let Some(at) = rest.find(['"', '{', '[', '}', ']', ',', ':', ' ', '\t', '\r', '\n']) {
        out.push_str(&rest[..at]);
        let special = rest.as_bytes()[at];
        rest = &rest[at + 1..];
        match special {
            b'"' => {
                let end = end_of_text(rest);
                out.push('"');
                out.push_str(&rest[..end]);
                rest = &rest[end..];
            }
            b'{' | b'[' => {
                out.push(char::from(special));
                level += 1;
                if !rest.trim_start().starts_with(['}', ']']) {
                    break_line(&mut out, level);
                }
            }
            b'}' | b']' => {
                level = level.saturating_sub(1);
                if !out.ends_with(['{', '[']) {
                    break_line(&mut out, level);
                }
                out.push(char::from(special));
            }
            b',' => {
                out.push(',');
                break_line(&mut out, level);
            }
            b':' => out.push_str(if level <= MAX_INDENTED_LEVELS { ": " } else { ":" }),
            _ => {}
        }
    }
    out.push_str(rest);
    out
}

fn break_line(out: &mut String, level: usize) {
    if level <= MAX_INDENTED_LEVELS {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", level));
    }
}

/// The position after the closing quote of a string whose opening quote has been read.
fn end_of_text(rest: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in rest.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}
