//! A JSON object whose fields are read one by one. A field that is missing, null or of an unexpected type counts as absent, because the
//! formats of agent programs change with every version, and one strange field must not make the rest of the line unreadable.
//!
//! Only the requested fields are decoded; the rest stays text. So deep nesting costs no stack, and the input of a tool is kept exactly as
//! it was written.

use crate::usage::Money;
use serde::Deserialize;
use serde::de::{Deserializer, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// A line that is not JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this line is not JSON: {reason}")]
pub struct NotJson {
    reason: String,
}

#[derive(Deserialize)]
#[serde(transparent)]
pub(crate) struct Fields<'a> {
    #[serde(borrow)]
    all: BTreeMap<Words<'a>, &'a RawValue>,
}

impl<'a> Fields<'a> {
    pub fn of(value: &'a RawValue) -> Option<Self> {
        serde_json::from_str(value.get()).ok()
    }

    pub fn raw(&self, name: &str) -> Option<&'a RawValue> {
        self.all.get(name).copied().filter(|value| value.get() != "null")
    }

    pub fn text(&self, name: &str) -> Option<String> {
        self.raw(name).and_then(text)
    }

    pub fn flag(&self, name: &str) -> bool {
        self.raw(name).is_some_and(|value| value.get() == "true")
    }

    /// A count. Fractions are rounded, because some versions write milliseconds with a fraction.
    pub fn count<N: TryFrom<u64>>(&self, name: &str) -> Option<N> {
        let written = self.raw(name)?.get();
        let whole = written.parse().ok().or_else(|| {
            let fraction: f64 = written.parse().ok()?;
            // The cast saturates. A negative number is not a count.
            (fraction >= 0.0).then(|| fraction.round() as u64)
        });
        whole.and_then(|whole| N::try_from(whole).ok())
    }

    pub fn money(&self, name: &str) -> Money {
        let dollars = self.raw(name).and_then(|value| value.get().parse().ok());
        dollars.map(Money::from_dollars).unwrap_or_default()
    }

    pub fn object(&self, name: &str) -> Option<Self> {
        self.raw(name).and_then(Self::of)
    }

    pub fn list(&self, name: &str) -> Vec<&'a RawValue> {
        self.raw(name).and_then(|value| serde_json::from_str(value.get()).ok()).unwrap_or_default()
    }

    pub fn objects(&self, name: &str) -> Vec<Self> {
        self.list(name).into_iter().filter_map(Self::of).collect()
    }

    /// The texts of a list. Other items are left out.
    pub fn texts(&self, name: &str) -> Vec<String> {
        self.list(name).into_iter().filter_map(|it| serde_json::from_str(it.get()).ok()).collect()
    }

    /// The names of the fields, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.all.keys().map(|Words(name)| name.as_ref())
    }

    pub fn into_values(self) -> impl Iterator<Item = &'a RawValue> {
        self.all.into_values()
    }
}

/// The fields of a line. None if the line is empty, or is JSON but not an object.
pub(crate) fn object(line: &str) -> Result<Option<Fields<'_>>, NotJson> {
    let line = line.trim();
    if line.is_empty() {
        return Ok(None);
    }
    match serde_json::from_str(line) {
        Ok(fields) => Ok(Some(fields)),
        // It may still be JSON, only not an object.
        Err(_) => match serde_json::from_str::<&RawValue>(line) {
            Ok(_) => Ok(None),
            Err(error) => Err(NotJson { reason: error.to_string() }),
        },
    }
}

/// The blocks of a result as one text. Blocks that are not text are only named, because a history has no images.
pub(crate) fn joined(blocks: &[Fields]) -> String {
    let texts = blocks.iter().map(|block| {
        let kind = || block.text("type").unwrap_or_else(|| "something".to_owned());
        block.text("text").unwrap_or_else(|| format!("[{}]", kind()))
    });
    texts.collect::<Vec<_>>().join("\n")
}

pub(crate) fn text(value: &RawValue) -> Option<String> {
    let Words(words) = serde_json::from_str(value.get()).ok()?;
    Some(words.into_owned())
}

/// A JSON string. JavaScript programs may cut a text in the middle of a character and write half a surrogate pair. That half becomes a
/// replacement character here; decoding it as a `String` would fail.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Words<'a>(Cow<'a, str>);

impl std::borrow::Borrow<str> for Words<'_> {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Words<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(AnyWords)
    }
}

struct AnyWords;

impl<'de> Visitor<'de> for AnyWords {
    type Value = Words<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        Ok(Words(Cow::Owned(String::from_utf8_lossy(bytes).into_owned())))
    }

    fn visit_borrowed_bytes<E>(self, bytes: &'de [u8]) -> Result<Self::Value, E> {
        Ok(Words(String::from_utf8_lossy(bytes)))
    }
}
