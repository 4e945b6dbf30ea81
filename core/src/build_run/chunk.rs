//! A chunk of a build run: its states, what can happen to it, and how it is written in the status document.
//!
//! ```text
//! planned ──start──► active ──retry──► retrying ──complete──► completed
//!    ▲                  │ └────complete──────────────────────────▲
//!    │                  └──fail──► failed ──retry──► retrying
//!    └──────────rebuild─────────────┴── completed
//! ```
//!
//! A chunk that is retrying can also fail, or be retried again. `rebuild` also puts a chunk back whose session ended while the chunk was
//! active or retrying.

use crate::json::{self, Fields};
use crate::status::{Json, Object};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// How often a chunk was tried, while no attempt is running. The field `attempt` exists only during an attempt.
const ATTEMPTS: &str = "attempts";
/// The fields of a chunk that come from working on it.
pub(super) const PAST: [&str; 7] =
    ["attempt", ATTEMPTS, "startedAt", "completedAt", "failedAt", "specVersionAtBuild", "sectionFingerprints"];

pub type ChunkId = u64;

/// The state of a chunk, with the number of its current or last attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkState {
    /// Interrupted attempts before the chunk was planned again are counted.
    Planned {
        attempts: u64,
    },
    Active {
        attempt: u64,
    },
    Retrying {
        attempt: u64,
    },
    Completed,
    Failed {
        attempts: u64,
    },
}

/// What can happen to a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ChunkMove))]
#[serde(rename_all = "snake_case")]
pub enum Move {
    Start,
    Retry,
    Complete,
    Fail,
    /// The chunk becomes planned again.
    Rebuild,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    pub id: ChunkId,
    pub name: String,
    pub state: ChunkState,
    pub sections: Vec<String>,
    pub scenarios: Vec<String>,
    pub depends_on: Vec<ChunkId>,
    pub completed_at: Option<String>,
    /// The version of the spec from which the chunk was built.
    pub spec_version: Option<String>,
    /// The fingerprints of the chunk's sections when it was built, by alias.
    pub fingerprints: BTreeMap<String, String>,
}

impl ChunkState {
    pub fn name(self) -> &'static str {
        match self {
            Self::Planned { .. } => "planned",
            Self::Active { .. } => "active",
            Self::Retrying { .. } => "retrying",
            Self::Completed => "completed",
            Self::Failed { .. } => "failed",
        }
    }

    /// The next state. None if the action is not possible in this state.
    pub fn after(self, action: Move) -> Option<Self> {
        match (self, action) {
            (Self::Planned { attempts }, Move::Start) => Some(Self::Active { attempt: attempts.saturating_add(1) }),
            (
                Self::Active { attempt } | Self::Retrying { attempt } | Self::Failed { attempts: attempt },
                Move::Retry,
            ) => Some(Self::Retrying { attempt: attempt.saturating_add(1) }),
            (Self::Active { .. } | Self::Retrying { .. }, Move::Complete) => Some(Self::Completed),
            (Self::Active { attempt } | Self::Retrying { attempt }, Move::Fail) => {
                Some(Self::Failed { attempts: attempt })
            }
            (Self::Completed, Move::Rebuild) => Some(Self::Planned { attempts: 0 }),
            (Self::Failed { attempts }, Move::Rebuild) => Some(Self::Planned { attempts }),
            // The session ended in the middle of an attempt.
            (Self::Active { attempt } | Self::Retrying { attempt }, Move::Rebuild) => {
                Some(Self::Planned { attempts: attempt })
            }
            _ => None,
        }
    }

    fn read(chunk: &Fields<'_>) -> Self {
        let attempt = chunk.count("attempt").or_else(|| chunk.count(ATTEMPTS));
        match chunk.text("status").as_deref() {
            Some("active") => Self::Active { attempt: attempt.unwrap_or(1) },
            Some("retrying") => Self::Retrying { attempt: attempt.unwrap_or(2) },
            Some("completed") => Self::Completed,
            Some("failed") => Self::Failed { attempts: attempt.unwrap_or(1) },
            _ => Self::Planned { attempts: attempt.unwrap_or(0) },
        }
    }
}

impl Move {
    pub fn verb(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Retry => "be retried",
            Self::Complete => "be completed",
            Self::Fail => "fail",
            Self::Rebuild => "be planned again",
        }
    }
}

impl Chunk {
    pub(super) fn read(chunk: &Fields<'_>, place: ChunkId) -> Self {
        let id = chunk.count("id").unwrap_or(place);
        let texts = |name: &str| chunk.list(name).into_iter().filter_map(json::text).collect::<Vec<_>>();
        let depends_on = chunk.list("dependsOn").into_iter().filter_map(|id| id.get().parse().ok()).collect();
        Self {
            id,
            name: chunk.text("name").unwrap_or_else(|| format!("Chunk {id}")),
            state: ChunkState::read(chunk),
            sections: texts("sections"),
            scenarios: texts("scenarios"),
            depends_on,
            completed_at: chunk.text("completedAt"),
            spec_version: chunk.text("specVersionAtBuild"),
            fingerprints: texts_by_name(chunk.raw("sectionFingerprints")),
        }
    }
}

/// Writes the state of a chunk, and the version of the spec if the chunk is completed. Fields that belong to another state are set to null.
pub(super) fn write_state(chunk: &mut Object, state: ChunkState, version: Option<&str>, now: &str) {
    chunk.set("status", state.name().into());
    match state {
        ChunkState::Active { attempt } | ChunkState::Retrying { attempt } => {
            chunk.set("attempt", json!(attempt).into());
            chunk.set("startedAt", now.into());
            unset(chunk, &[ATTEMPTS, "completedAt", "failedAt"]);
        }
        ChunkState::Completed => {
            chunk.set("completedAt", now.into());
            if let Some(version) = version {
                chunk.set("specVersionAtBuild", version.into());
            }
            unset(chunk, &["attempt", ATTEMPTS, "failedAt"]);
        }
        ChunkState::Failed { attempts } => {
            chunk.set(ATTEMPTS, json!(attempts).into());
            chunk.set("failedAt", now.into());
            unset(chunk, &["attempt"]);
        }
        ChunkState::Planned { attempts } => {
            unset(chunk, &["attempt", ATTEMPTS, "startedAt", "completedAt", "failedAt"]);
            if attempts > 0 {
                chunk.set(ATTEMPTS, json!(attempts).into());
            }
        }
    }
}

fn unset(chunk: &mut Object, names: &[&str]) {
    for name in names {
        if chunk.get(name).is_some() {
            chunk.set(name, Json::null());
        }
    }
}

/// The texts of an object, by name. Values of other types are left out.
fn texts_by_name(object: Option<&RawValue>) -> BTreeMap<String, String> {
    let object = object.and_then(|raw| Json::parse(raw.get()).ok()?.object()).unwrap_or_default();
    object.iter().filter_map(|(name, value)| Some((name.to_owned(), value.words()?))).collect()
}
