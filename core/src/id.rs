//! Identities: 128 random bits, written as 22 characters of base64url. The caller creates the bits, because the core has no randomness.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// The length of a written id in characters.
pub const ID_CHARS: usize = 22;

/// A text that is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an id: an id is {ID_CHARS} characters of A-Z, a-z, 0-9, - and _")]
pub struct NotAnId(pub String);

/// How many characters of a wrong text an error repeats.
const SHOWN_CHARS: usize = 64;

impl NotAnId {
    fn of(text: &str) -> Self {
        Self(text.chars().take(SHOWN_CHARS).collect())
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $read:path) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        pub struct $name([u8; 16]);

        /// Compares the bytes as one number, because comparing ids is the most frequent operation of the world's maps.
        impl Ord for $name {
            fn cmp(&self, other: &Self) -> std::cmp::Ordering {
                u128::from_be_bytes(self.0).cmp(&u128::from_be_bytes(other.0))
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }

        impl $name {
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(bytes)
            }

            pub const fn as_bytes(&self) -> &[u8; 16] {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut text = [0; ID_CHARS];
                f.write_str(written(&self.0, &mut text))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({self})", stringify!($name))
            }
        }

        impl FromStr for $name {
            type Err = NotAnId;

            fn from_str(text: &str) -> Result<Self, NotAnId> {
                $read(text).map(Self).ok_or_else(|| NotAnId::of(text))
            }
        }

        /// Written as text in JSON, which people read, and as 16 bytes in snapshots.
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if serializer.is_human_readable() {
                    let mut text = [0; ID_CHARS];
                    serializer.serialize_str(written(&self.0, &mut text))
                } else {
                    serializer.serialize_bytes(&self.0)
                }
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                if deserializer.is_human_readable() {
                    deserializer.deserialize_str(IdVisitor { id: Self, read: $read })
                } else {
                    deserializer.deserialize_bytes(IdVisitor { id: Self, read: $read })
                }
            }
        }

        #[cfg(feature = "openapi")]
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                utoipa::openapi::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::schema::Type::String)
                    .min_length(Some(ID_CHARS))
                    .max_length(Some(ID_CHARS))
                    .pattern(Some("^[A-Za-z0-9_-]{21}[AQgw]$"))
                    .into()
            }
        }

        #[cfg(feature = "openapi")]
        impl utoipa::ToSchema for $name {}
    };
}

id!(
    /// The identity of an agent. Names may repeat, ids do not.
    AgentId,
    parsed
);
id!(
    /// The identity of a session. It can also be written as a UUID, because other programs do so.
    SessionId,
    parsed_or_uuid
);

id!(
    /// The identity of a quest.
    QuestId,
    parsed
);

id!(
    /// The identity of a request, by which a repeated request is recognised.
    RequestId,
    parsed
);

id!(
    /// A hash of what a request asks for. Two requests with the same content have the same fingerprint.
    Fingerprint,
    parsed
);

fn written<'a>(bytes: &[u8; 16], text: &'a mut [u8; ID_CHARS]) -> &'a str {
    URL_SAFE_NO_PAD.encode_slice(bytes, text).expect("16 bytes take exactly 22 characters");
    std::str::from_utf8(text).expect("base64url is ASCII")
}

fn parsed(text: &str) -> Option<[u8; 16]> {
    let mut bytes = [0; 16];
    if text.len() != ID_CHARS {
        return None;
    }
    let count = URL_SAFE_NO_PAD.decode_slice(text, &mut bytes).ok()?;
    (count == bytes.len()).then_some(bytes)
}

/// Reads an id of 22 characters, or a UUID with its hyphens.
fn parsed_or_uuid(text: &str) -> Option<[u8; 16]> {
    const UUID_CHARS: usize = 36;
    const HYPHENS: [usize; 4] = [8, 13, 18, 23];
    if text.len() != UUID_CHARS || !text.is_ascii() {
        return parsed(text);
    }
    let is_grouped = text.bytes().enumerate().all(|(at, byte)| (byte == b'-') == HYPHENS.contains(&at));
    let digits = text.bytes().filter(|byte| *byte != b'-').map(|byte| char::from(byte).to_digit(16));
    let digits: Vec<u8> = digits.map(|digit| digit.and_then(|it| u8::try_from(it).ok())).collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    is_grouped.then_some(bytes)?.try_into().ok()
}

/// Reads an id without copying its text, because every line of a log has one or more ids. Holds the constructor of the id's type.
struct IdVisitor<T> {
    id: fn([u8; 16]) -> T,
    read: fn(&str) -> Option<[u8; 16]>,
}

impl<T> Visitor<'_> for IdVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an id")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        (self.read)(text).map(self.id).ok_or_else(|| E::custom(NotAnId::of(text)))
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<T, E> {
        <[u8; 16]>::try_from(bytes).map(self.id).map_err(|_| E::invalid_length(bytes.len(), &"16 bytes"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_22_characters_and_comes_back_unchanged() {
        for bytes in [[0; 16], [0xff; 16], *b"0123456789abcdef"] {
            let id = AgentId::from_bytes(bytes);
            assert_eq!(id.to_string().len(), ID_CHARS);
            assert_eq!(id.to_string().parse(), Ok(id));
            assert_eq!(serde_json::from_str::<AgentId>(&serde_json::to_string(&id).unwrap()).unwrap(), id);
        }
    }

    #[test]
    fn a_session_is_also_known_by_its_uuid() {
        let id = SessionId::from_bytes(*b"0123456789abcdef");
        let uuid = crate::seat::session_uuid(id);
        assert_eq!(uuid.parse(), Ok(id));
        assert_eq!(uuid.to_uppercase().parse(), Ok(id));
        assert_eq!(serde_json::from_value::<SessionId>(uuid.clone().into()).unwrap(), id);
        assert!(uuid.parse::<AgentId>().is_err());
        for wrong in [uuid.replacen('-', "0", 1), uuid.replacen('3', "g", 1), uuid.replacen("30", "é", 1)] {
            assert!(wrong.parse::<SessionId>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_not_an_id_is_refused() {
        for text in ["", "short", "AAAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAA/A", "AAAAAAAAAAAAAAAAAAAAAB", "é"] {
            assert!(text.parse::<AgentId>().is_err(), "{text}");
        }
    }
}
