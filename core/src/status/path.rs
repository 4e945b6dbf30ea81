//! Paths of values in the document, such as `buildRun.chunks[0].status`. A name that contains dots, brackets or quotes is written as a JSON
//! string: `readinessSummary."spec.ahead"`.

use super::EditError;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// The most names in a path. No real document is nested deeper.
pub const MAX_PATH_SEGMENTS: usize = 32;
pub const MAX_PATH_BYTES: usize = 4_096;

/// The names and indexes on the way to a value. An empty path is the whole document.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(Vec<Segment>);

/// One part of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Segment {
    /// The name of a field, or the index of an item: `chunks.0`.
    Name(String),
    /// An index in brackets: `chunks[0]`. It never becomes the name of a field.
    Item(String),
}

impl Segment {
    pub fn as_str(&self) -> &str {
        match self {
            Self::Name(text) | Self::Item(text) => text,
        }
    }
}

impl PartialEq<&str> for Segment {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl Path {
    pub fn root() -> Self {
        Self::default()
    }

    pub fn field(name: &str) -> Self {
        Self(vec![Segment::Name(name.to_owned())])
    }

    #[must_use]
    pub fn below(&self, name: &str) -> Self {
        self.with(Segment::Name(name.to_owned()))
    }

    #[must_use]
    pub(super) fn with(&self, segment: Segment) -> Self {
        Self(self.0.iter().cloned().chain([segment]).collect())
    }

    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the path can be written as text and read again. The path of a field without a name cannot.
    pub fn is_writable(&self) -> bool {
        self.to_string().parse::<Self>().is_ok_and(|read| read == *self)
    }

    /// Whether this path is `other` or leads into it.
    pub fn is_within(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }
}

impl FromStr for Path {
    type Err = EditError;

    fn from_str(text: &str) -> Result<Self, EditError> {
        let bad = |why: &str| EditError::BadPath { path: text.chars().take(200).collect(), why: why.to_owned() };
        if text.len() > MAX_PATH_BYTES {
            return Err(bad("it is too long"));
        }
        let mut segments = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (segment, after) = if rest.starts_with('"') {
                let mut parsed = serde_json::Deserializer::from_str(rest).into_iter::<String>();
                let name = parsed.next().and_then(Result::ok).ok_or_else(|| bad("a quoted name does not end"))?;
                (Segment::Name(name), &rest[parsed.byte_offset()..])
            } else if let Some(inside) = rest.strip_prefix('[') {
                let (index, after) = inside.split_once(']').ok_or_else(|| bad("a `[` is not closed"))?;
                index.parse::<usize>().map_err(|_| bad("between `[` and `]` there must be a number"))?;
                (Segment::Item(index.to_owned()), after)
            } else {
                let end = rest.find(['.', '[']).unwrap_or(rest.len());
                (Segment::Name(rest[..end].to_owned()), &rest[end..])
            };
            if segment.as_str().is_empty() {
                return Err(bad("it has an empty name"));
            }
            if segments.is_empty() && matches!(segment, Segment::Item(_)) {
                return Err(bad("it begins with an index, and the document is not a list"));
            }
            segments.push(segment);
            rest = match after.strip_prefix('.') {
                Some("") => return Err(bad("it ends with a dot")),
                Some(more) => more,
                None if after.is_empty() || after.starts_with('[') => after,
                None => return Err(bad("after a quoted name there must be a dot or nothing")),
            };
        }
        match segments.len() {
            0 => Err(bad("it is empty")),
            count if count > MAX_PATH_SEGMENTS => Err(bad("it has too many parts")),
            _ => Ok(Self(segments)),
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, segment) in self.0.iter().enumerate() {
            let dot = if at == 0 { "" } else { "." };
            match segment {
                Segment::Item(index) => write!(f, "[{index}]")?,
                Segment::Name(name)
                    if name.is_empty() || name.contains(['.', '[', ']', '"']) || name.contains(char::is_control) =>
                {
                    write!(f, "{dot}{}", serde_json::Value::from(name.as_str()))?;
                }
                Segment::Name(name) => write!(f, "{dot}{name}")?,
            }
        }
        Ok(())
    }
}

/// Written as a string.
impl Serialize for Path {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Path {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}
