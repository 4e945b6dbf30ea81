//! Strict reading of what people and models write: settings, plans, bodies of requests and arguments of tools. Serde reads; this file
//! says in plain words which field is wrong, what it was, and what would be right.
//!
//! The types that are read say what they accept: `deny_unknown_fields`, [`Within`] for ranges, [`not_empty`] and [`list`] for lengths.

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{self, DeserializeOwned, Deserializer, Expected, IntoDeserializer, Unexpected, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};
use serde_json::Value;
use std::fmt;

/// How much of a wrong value is repeated in an error.
const SHOWN_CHARS: usize = 60;

/// What is to be read.
#[derive(Clone, Debug)]
pub enum Given {
    /// A value that has a type of its own.
    Typed(Value),
    /// A text that stands for whatever is wanted in its place, such as the value of an environment variable. Lists are divided by commas.
    Text(String),
    Fields(Vec<(String, Given)>),
}

/// Why something cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The field, with the fields around it: `quests.roles[0].may`. Empty for the whole.
    pub path: String,
    problem: Problem,
}

/// What is wrong with a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    Unknown { known: Vec<&'static str> },
    UnknownWord { found: Found, written: String, known: Vec<&'static str> },
    Missing(&'static str),
    Unfit { found: Found, wanted: String },
    Other(String),
}

/// What was found in the place of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// As it is written.
    value: String,
    /// What can be said of it if it may be a secret. A number in the place of another number is none.
    kind: String,
}

/// Reads a whole value.
pub fn read<T: DeserializeOwned>(given: Given) -> Result<T, Wrong> {
    serde_path_to_error::deserialize(given).map_err(|error| {
        let path = error.path().to_string();
        let path = if path == "." { String::new() } else { path };
        let problem = error.into_inner();
        match problem {
            Problem::Missing(field) if path.is_empty() => Wrong { path: field.into(), problem },
            Problem::Missing(field) => Wrong { path: format!("{path}.{field}"), problem },
            _ => Wrong { path, problem },
        }
    })
}

/// Reads a JSON object, or says in a sentence why it cannot be read.
pub fn read_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    // Serde would also take a list for a struct, field by field.
    if bytes.trim_ascii_start().first().is_some_and(|byte| *byte != b'{') {
        return Err("the body is not a JSON object".into());
    }
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let read = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        // What is JSON can be read once more for a better explanation. What is not has only a place.
        let explained = serde_json::from_slice(bytes).ok().and_then(|value| self::read::<T>(Given::Typed(value)).err());
        let path = error.path().to_string();
        match (explained, path.as_str()) {
            (Some(wrong), _) => wrong.to_string(),
            (None, ".") => error.into_inner().to_string(),
            (None, _) => format!("`{path}`: {}", error.into_inner()),
        }
    })?;
    reader.end().map_err(|error| error.to_string())?;
    Ok(read)
}

impl Wrong {
    /// The same, without what was written: it may be a secret.
    pub fn without_values(mut self) -> Self {
        if let Problem::UnknownWord { found, .. } | Problem::Unfit { found, .. } = &mut self.problem {
            found.value.clone_from(&found.kind);
        }
        self
    }

    /// What is wrong, without what to do about it.
    pub fn message(&self) -> String {
        let path = &self.path;
        match &self.problem {
            Problem::Unknown { .. } => format!("`{path}` is not known"),
            Problem::Missing(_) => format!("`{path}` is missing"),
            Problem::UnknownWord { found, known, .. } => self.must_be(&quoted(known), &found.value),
            Problem::Unfit { found, wanted } => self.must_be(wanted, &found.value),
            Problem::Other(why) if path.is_empty() => why.clone(),
            Problem::Other(why) => format!("`{path}`: {why}"),
        }
    }

    /// What to do about it: the name that was probably meant, and the other known names.
    pub fn hint(&self) -> Option<String> {
        let meant = format!("did you mean {}?", self.meant()?);
        match &self.problem {
            Problem::Unknown { known } => Some(format!("{meant} Known are: {}", known.join(", "))),
            _ => Some(meant),
        }
    }

    /// The known name that is most like the one that was written.
    pub fn meant(&self) -> Option<String> {
        match &self.problem {
            Problem::Unknown { known } => {
                let written = self.path.rsplit('.').next().unwrap_or_default();
                let around = &self.path[..self.path.len() - written.len()];
                nearest(written, known).map(|meant| format!("`{around}{meant}`"))
            }
            Problem::UnknownWord { written, known, .. } => nearest(written, known).map(|meant| format!("\"{meant}\"")),
            Problem::Missing(_) | Problem::Unfit { .. } | Problem::Other(_) => None,
        }
    }

    fn must_be(&self, wanted: &str, found: &str) -> String {
        match self.path.as_str() {
            "" => format!("it must be {wanted}, not {found}"),
            path => format!("`{path}` must be {wanted}, not {found}"),
        }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message())?;
        self.hint().map_or(Ok(()), |hint| write!(f, "; {hint}"))
    }
}

/// A whole number in a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Within<const LOW: u64, const HIGH: u64>(pub u64);

impl<'de, const LOW: u64, const HIGH: u64> Deserialize<'de> for Within<LOW, HIGH> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WithinVisitor<const LOW: u64, const HIGH: u64>;
        impl<const LOW: u64, const HIGH: u64> Visitor<'_> for WithinVisitor<LOW, HIGH> {
            type Value = u64;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a whole number from {LOW} to {HIGH}")
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<u64, E> {
                match (LOW..=HIGH).contains(&number) {
                    true => Ok(number),
                    false => Err(E::invalid_value(Unexpected::Unsigned(number), &self)),
                }
            }
        }
        deserializer.deserialize_u64(WithinVisitor::<LOW, HIGH>).map(Self)
    }
}

/// For `deserialize_with`: a text that is not empty.
pub fn not_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    match text.is_empty() {
        true => Err(de::Error::invalid_value(Unexpected::Str(""), &"a text that is not empty")),
        false => Ok(text),
    }
}

/// For `deserialize_with`: a list of a bounded length.
pub fn list<'de, D, T, const LEAST: usize, const MOST: usize>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let list = Vec::deserialize(deserializer)?;
    match (LEAST..=MOST).contains(&list.len()) {
        true => Ok(list),
        false => Err(de::Error::invalid_length(list.len(), &format!("a list of {LEAST} to {MOST} entries").as_str())),
    }
}

/// The known word that is most like the one that was written.
fn nearest<'a>(written: &str, known: &[&'a str]) -> Option<&'a str> {
    let likeness = |word: &str| strsim::jaro_winkler(&written.to_lowercase(), &word.to_lowercase());
    known.iter().copied().max_by(|one, other| likeness(one).total_cmp(&likeness(other)))
}

/// A name may have an alias in snake_case. One spelling is enough for a hint.
fn without_aliases(known: &[&'static str]) -> Vec<&'static str> {
    let plain = |name: &str| name.replace('_', "").to_lowercase();
    let is_alias = |name: &&str| {
        name.contains('_') && known.iter().any(|other| !other.contains('_') && plain(other) == plain(name))
    };
    known.iter().copied().filter(|name| !is_alias(name)).collect()
}

fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" or ")
}

/// What was found, as it is written.
fn shown(found: Unexpected<'_>) -> String {
    match found {
        // An address in the wrong place may have a password in it.
        Unexpected::Str(text) if text.contains('@') && text.contains(':') => "an address".into(),
        Unexpected::Str(text) if text.chars().count() > SHOWN_CHARS => {
            format!("\"{}…\"", text.chars().take(SHOWN_CHARS).collect::<String>())
        }
        Unexpected::Str(text) => format!("\"{text}\""),
        Unexpected::Bool(it) => it.to_string(),
        Unexpected::Unsigned(it) => it.to_string(),
        Unexpected::Signed(it) => it.to_string(),
        Unexpected::Float(it) => it.to_string(),
        other => kind(other),
    }
}

/// What kind of value was found.
fn kind(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Str(_) => "a text".into(),
        Unexpected::Bool(_) => "true or false".into(),
        Unexpected::Unsigned(_) => "a whole number".into(),
        Unexpected::Signed(_) => "a negative number".into(),
        Unexpected::Float(_) => "a number with a fraction".into(),
        Unexpected::Unit | Unexpected::Option => "null".into(),
        Unexpected::Seq => "a list".into(),
        Unexpected::Map => "a table".into(),
        other => other.to_string(),
    }
}

/// A JSON value as serde names what it did not expect.
fn unexpected(value: &Value) -> Unexpected<'_> {
    match value {
        Value::Null => Unexpected::Unit,
        Value::Bool(it) => Unexpected::Bool(*it),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(it), _) => Unexpected::Unsigned(it),
            (_, Some(it)) => Unexpected::Signed(it),
            _ => Unexpected::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Unexpected::Str(text),
        Value::Array(_) => Unexpected::Seq,
        Value::Object(_) => Unexpected::Map,
    }
}

/// What serde's own types expect, in words for people.
fn in_words(expected: &dyn Expected) -> String {
    let range = |most: u64| format!("a whole number from 0 to {most}");
    match expected.to_string().as_str() {
        "a string" => "a text".into(),
        "path string" => "a path".into(),
        "a boolean" => "true or false".into(),
        "a sequence" => "a list, such as [\"one\", \"two\"]".into(),
        "u16" => range(u16::MAX.into()),
        "u32" => range(u32::MAX.into()),
        "u64" | "usize" => "a whole number, 0 or more".into(),
        other => other.to_owned(),
    }
}

impl std::error::Error for Problem {}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Wrong { path: String::new(), problem: self.clone() }.fmt(f)
    }
}

impl de::Error for Problem {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::Other(message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::Unfit { found: Found { value: shown(found), kind: kind(found) }, wanted: in_words(expected) }
    }

    /// The type is right. So a number is one where a number is wanted, and no secret.
    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let value = shown(found);
        let kind = match found {
            Unexpected::Unsigned(_) | Unexpected::Signed(_) => value.clone(),
            other => kind(other),
        };
        Self::Unfit { found: Found { value, kind }, wanted: in_words(expected) }
    }

    fn invalid_length(length: usize, expected: &dyn Expected) -> Self {
        let value = length.to_string();
        Self::Unfit { found: Found { kind: value.clone(), value }, wanted: in_words(expected) }
    }

    fn unknown_variant(found: &str, known: &'static [&'static str]) -> Self {
        let value = shown(Unexpected::Str(found));
        let found_word = Found { value, kind: "another text".into() };
        Self::UnknownWord { found: found_word, written: found.to_owned(), known: known.to_vec() }
    }

    fn unknown_field(_: &str, known: &'static [&'static str]) -> Self {
        Self::Unknown { known: without_aliases(known) }
    }

    fn missing_field(field: &'static str) -> Self {
        Self::Missing(field)
    }
}

impl<'de> IntoDeserializer<'de, Problem> for Given {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// A number that is written as a text, where a number is wanted.
fn number<'de, V: Visitor<'de>>(given: Given, visitor: V) -> Result<V::Value, Problem> {
    match &given {
        Given::Text(text) => match (text.trim().parse(), text.trim().parse()) {
            (Ok(number), _) => visitor.visit_u64(number),
            (_, Ok(number)) => visitor.visit_i64(number),
            _ => given.deserialize_any(visitor),
        },
        _ => given.deserialize_any(visitor),
    }
}

macro_rules! numbers {
    ($($method:ident)+) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
            number(self, visitor)
        })+
    };
}

impl<'de> Deserializer<'de> for Given {
    type Error = Problem;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self {
            Self::Text(text) | Self::Typed(Value::String(text)) => visitor.visit_string(text),
            Self::Typed(Value::Null) => visitor.visit_unit(),
            Self::Typed(Value::Bool(it)) => visitor.visit_bool(it),
            Self::Typed(Value::Number(number)) => match (number.as_u64(), number.as_i64()) {
                (Some(number), _) => visitor.visit_u64(number),
                (_, Some(number)) => visitor.visit_i64(number),
                _ => visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN)),
            },
            Self::Typed(Value::Array(list)) => {
                visitor.visit_seq(SeqDeserializer::new(list.into_iter().map(Self::Typed)))
            }
            Self::Typed(Value::Object(fields)) => visitor
                .visit_map(MapDeserializer::new(fields.into_iter().map(|(name, value)| (name, Self::Typed(value))))),
            Self::Fields(fields) => visitor.visit_map(MapDeserializer::new(fields.into_iter())),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match &self {
            Self::Text(text) => match text.trim().to_lowercase().as_str() {
                "true" | "1" | "yes" | "on" => visitor.visit_bool(true),
                "false" | "0" | "no" | "off" => visitor.visit_bool(false),
                _ => self.deserialize_any(visitor),
            },
            _ => self.deserialize_any(visitor),
        }
    }

    numbers! { deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self {
            Self::Text(text) => {
                let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
                visitor.visit_seq(SeqDeserializer::new(entries.map(|entry| Self::Text(entry.to_owned()))))
            }
            other => other.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self {
            Self::Typed(Value::Null) => visitor.visit_none(),
            some => visitor.visit_some(some),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_newtype_struct(self)
    }

    /// Only what has named fields: serde would also take a list, field by field.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        let wanted = || format!("a table with: {}", without_aliases(fields).join(", "));
        match &self {
            Self::Fields(_) | Self::Typed(Value::Object(_)) => self.deserialize_any(visitor),
            Self::Text(text) => Err(de::Error::invalid_type(Unexpected::Str(text), &wanted().as_str())),
            Self::Typed(other) => Err(de::Error::invalid_type(unexpected(other), &wanted().as_str())),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        match self {
            Self::Text(text) | Self::Typed(Value::String(text)) => visitor.visit_enum(text.into_deserializer()),
            Self::Typed(other) => {
                let unfit: Problem = de::Error::invalid_type(unexpected(&other), &quoted(variants).as_str());
                other.deserialize_enum(name, variants, visitor).map_err(|_| unfit)
            }
            Self::Fields(_) => self.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        i128 u128 f32 f64 char str string bytes byte_buf unit unit_struct tuple tuple_struct map identifier ignored_any
    }
}
