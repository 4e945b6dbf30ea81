//! Seats: nine fixed positions for identities, in a grid of three by three. The seat in the middle belongs to the lead. Processes and
//! agents come and go; the seat keeps the name, the soul and the appearance. A soul is written once and never replaced.
//!
//! | Module | Owns |
//! |---|---|
//! | `state` | the states of a seat, what changes them, and which button the page shows |
//! | `places` | all seats, and how events change them |
//! | `decide` | the commands about seats |
//! | `report` | what agents report with markers, and what the daemon knows about its processes |
//! | `words` | messages to agents of seats, and how they reach the agents |
//! | `lead_call` | tool calls of the lead that have no result yet |
//! | `document` | the identity document that other programs exchange, and merging two of them |
//! | `marker` | markers in the texts of agents |
//! | `payload` | what a woken agent receives: its soul and the transcript |
//! | `refusal` | every refusal about seats |

mod decide;
mod document;
mod lead_call;
mod marker;
mod payload;
mod places;
mod refusal;
mod report;
mod state;
mod words;

pub use decide::{EggOrder, LEAD_NAME, LeadOrder, Rising};
pub(crate) use decide::{closing, enter, import, open, register, rise, summon};
pub use document::{Born, SeatDocument, SeatFields, SeatStatus, Vital};
pub(crate) use lead_call::artifacts;
pub use lead_call::{ArtifactMeta, ArtifactWrite, LeadCall};
use marker::floor;
pub use marker::{Marker, MarkerProblem, Scanned, scan, shown, shown_so_far};
pub use payload::{MAX_PAYLOAD_BYTES, Payload, SpeakerLine, TRANSCRIPT_CHARS, escape};
pub use places::{MAX_REPLIES, SeatSession, Seats};
pub use refusal::SeatRefusal;
pub(crate) use report::{due, follow, restate, take_reports};
pub use state::{Button, SeatInput, SeatState, button, next};
pub use words::{Reach, inbox_name, reach, team_managed};
pub(crate) use words::{address, addressed, kills_told, relay, session_of, spoken_for, take_reply};

use crate::agent::check_name;
use crate::{AgentId, Timestamp};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// How many seats there are.
pub const SEATS: u8 = 9;
/// How long an agent has to choose a name.
pub const HATCH_MS: u64 = 5 * 60 * 1_000;
/// How long a woken seat has until it is reported alive.
pub const WAKE_MS: u64 = 5 * 60 * 1_000;
/// The longest soul, in bytes as XML. This is many pages. All souls are kept in memory.
pub const MAX_SOUL_BYTES: usize = 256 << 10;
/// The longest colour, name of a colour, gender and part of a face, in bytes.
pub const MAX_TRAIT_BYTES: usize = 256;
/// The longest message to a seat over HTTP, in characters.
pub const MAX_SAID_CHARS: usize = 100_000;
/// The longest name of a speaker, in bytes.
pub const MAX_SPEAKER_BYTES: usize = 256;

/// The position of a seat in the grid: 0 to 8, row by row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(value_type = u8, maximum = 8))]
#[serde(try_from = "u8", into = "u8")]
pub struct Position(u8);

impl Position {
    /// The seat in the middle belongs to the lead.
    pub const LEAD: Self = Self(4);

    pub fn new(number: u64) -> Option<Self> {
        u8::try_from(number).ok().filter(|number| *number < SEATS).map(Self)
    }

    /// All seats, row by row.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..SEATS).map(Self)
    }

    /// The seats that can be summoned: all but the lead's.
    pub fn free() -> impl Iterator<Item = Self> {
        Self::all().filter(|position| *position != Self::LEAD)
    }

    pub fn number(self) -> u8 {
        self.0
    }
}

impl TryFrom<u8> for Position {
    type Error = String;

    fn try_from(number: u8) -> Result<Self, String> {
        Self::new(number.into()).ok_or_else(|| format!("there is no seat {number}: seats are 0 to 8"))
    }
}

impl From<Position> for u8 {
    fn from(position: Position) -> Self {
        position.0
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Who runs the processes of the seats, and therefore reports who is alive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = SeatMode))]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The daemon starts a process for each seat.
    #[default]
    Direct,
    /// The lead manages a team of its own and reports with markers.
    Lead,
}

/// The identity of a seat: what its agent has chosen or was given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = SeatIdentity))]
#[serde(rename_all = "camelCase")]
pub struct Identity {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
    /// None until the agent has chosen a name, because the name of a colour would suggest one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub color_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gender: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub face_variant: Option<FaceVariant>,
    /// The soul: the text in which the agent described itself when it chose its name.
    #[serde(rename = "individuationArtifact", default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub soul: Option<Arc<str>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FaceVariant {
    #[serde(default)]
    pub eyes: String,
    #[serde(default)]
    pub mouth: String,
}

/// An entry of a report about who is alive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = SeatListed))]
#[serde(rename_all = "camelCase")]
pub struct SeatListed {
    #[serde(rename = "gridPosition")]
    pub position: Position,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default)]
    pub status: ListedStatus,
}

impl SeatListed {
    /// The name of a listed agent that is alive, if the name is allowed.
    pub(crate) fn chosen_name(&self) -> Option<&str> {
        let lives = self.status != ListedStatus::Shutdown;
        self.name.as_deref().filter(|name| lives && check_name(Some(name)).is_ok())
    }

    /// What the entry does to the state of its seat.
    fn input(&self) -> SeatInput {
        match (self.status, self.chosen_name()) {
            (ListedStatus::Shutdown, _) => SeatInput::ReportedGone,
            (ListedStatus::Alive | ListedStatus::Idle, None) => SeatInput::ReportedAlive,
            (ListedStatus::Alive | ListedStatus::Idle, Some(_)) => SeatInput::ReportedByName,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = SeatListedStatus))]
#[serde(rename_all = "snake_case")]
pub enum ListedStatus {
    #[default]
    Alive,
    /// Alive, between two turns.
    Idle,
    Shutdown,
}

/// A seat that was summoned or imported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seat {
    pub state: SeatState,
    /// The agent of the registry in this seat. None after the agent was killed, and for a seat that was imported and not woken yet.
    pub agent: Option<AgentId>,
    pub identity: Identity,
    /// Identities of the same seat that came from elsewhere and are not this seat's own.
    pub others: Vec<Born>,
    /// When the seat was summoned. None if an imported document does not contain the time.
    pub created: Option<Timestamp>,
    /// The last time at which the seat was known to be alive.
    pub last_alive: Option<Timestamp>,
    /// The last session in which the seat was known to be alive, as a UUID.
    pub last_session: Option<String>,
}

impl Seat {
    pub fn has_soul(&self) -> bool {
        self.identity.soul.as_ref().is_some_and(|soul| !soul.is_empty())
    }

    /// The name of the seat for people, if it has one.
    pub fn called(&self) -> Option<&str> {
        self.identity.name.as_deref()
    }
}

/// The id of a session in the form of other programs: a UUID.
pub fn session_uuid(session: crate::SessionId) -> String {
    let hex: String = session.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}
