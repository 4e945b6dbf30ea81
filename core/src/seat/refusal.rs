//! Every refusal about seats.

use super::{MAX_SAID_CHARS, MAX_SOUL_BYTES, MAX_SPEAKER_BYTES, MAX_TRAIT_BYTES, Position};
use crate::refusal::RefusalKind;
use crate::{AgentId, EventId, SessionId};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SeatRefusal {
    #[error("the seats have a session already: {0}")]
    Active(SessionId),
    #[error("the seats have no session")]
    NoSession,
    #[error("none of the named seats is empty or expired")]
    NothingToSummon,
    #[error("none of the named seats sleeps")]
    NothingToWake,
    #[error("seat {0} belongs to the lead and is not summoned")]
    LeadSeat(Position),
    #[error("no agent is in seat {0}")]
    Empty(Position),
    #[error("seat {0} sleeps, so no agent would read the message")]
    Asleep(Position),
    #[error("the lead runs the process of seat {0}, so Hatchery does not start it")]
    TeamManaged(Position),
    #[error("agent {0} sits in no seat")]
    NoSeat(AgentId),
    #[error("agent {agent} sits in seat {own} and cannot speak for seat {other}")]
    OtherSeat { agent: AgentId, own: Position, other: Position },
    #[error("seat {0} has a soul, and a soul is written once")]
    HasSoul(Position),
    #[error("a registration needs a name")]
    NoName,
    #[error("a registration needs the text in which the agent describes itself")]
    NoSoul,
    #[error("the soul is {bytes} bytes long as XML, more than {MAX_SOUL_BYTES}")]
    SoulTooLong { bytes: usize },
    #[error("`{field}` is {bytes} bytes long, more than {MAX_TRAIT_BYTES}")]
    TraitTooLong { field: &'static str, bytes: usize },
    #[error("the message is empty")]
    NothingSaid,
    #[error("the message is {chars} characters long, more than {MAX_SAID_CHARS}")]
    SaidTooMuch { chars: usize },
    #[error("the speaker's name is {bytes} bytes long, more than {MAX_SPEAKER_BYTES}")]
    SpeakerTooLong { bytes: usize },
    #[error("there is no lead to pass the message on")]
    NoLead,
    #[error("message {0} was passed on before, or was part of a wake")]
    Relayed(EventId),
    #[error("the reply was recorded before")]
    ReplyTaken,
    #[error("the soul of seat {0} has changed while the wake was prepared")]
    Changed(Position),
}

impl SeatRefusal {
    pub(crate) fn kind(&self) -> RefusalKind {
        match self {
            Self::Empty(_) | Self::NoSeat(_) => RefusalKind::Missing,
            Self::Active(_)
            | Self::NoSession
            | Self::NothingToSummon
            | Self::NothingToWake
            | Self::HasSoul(_)
            | Self::NoLead
            | Self::Asleep(_)
            | Self::TeamManaged(_)
            | Self::Relayed(_)
            | Self::ReplyTaken
            | Self::Changed(_) => RefusalKind::Untimely,
            Self::LeadSeat(_)
            | Self::OtherSeat { .. }
            | Self::NoName
            | Self::NoSoul
            | Self::SoulTooLong { .. }
            | Self::TraitTooLong { .. }
            | Self::NothingSaid
            | Self::SaidTooMuch { .. }
            | Self::SpeakerTooLong { .. } => RefusalKind::Invalid,
        }
    }

    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Active(_) => "seats_active",
            Self::NoSession => "no_seat_session",
            Self::NothingToSummon => "nothing_to_summon",
            Self::NothingToWake => "nothing_to_wake",
            Self::LeadSeat(_) => "lead_seat",
            Self::Empty(_) => "empty_seat",
            Self::Asleep(_) => "seat_asleep",
            Self::TeamManaged(_) => "team_managed",
            Self::NoSeat(_) => "no_seat",
            Self::OtherSeat { .. } => "other_seat",
            Self::HasSoul(_) => "has_soul",
            Self::NoName => "no_name",
            Self::NoSoul => "no_soul",
            Self::SoulTooLong { .. } => "soul_too_long",
            Self::TraitTooLong { .. } => "trait_too_long",
            Self::NothingSaid => "nothing_said",
            Self::SaidTooMuch { .. } => "said_too_much",
            Self::SpeakerTooLong { .. } => "speaker_too_long",
            Self::NoLead => "no_lead",
            Self::Relayed(_) => "relayed",
            Self::ReplyTaken => "reply_taken",
            Self::Changed(_) => "seat_changed",
        }
    }

    pub(crate) fn hint(&self) -> String {
        match self {
            Self::Active(_) => "end it first: `hatchery session end`".into(),
            Self::NoSession => "start one: `hatchery wake` fills sleeping seats, `hatchery summon` empty ones, `hatchery session start --lead` starts the lead".into(),
            Self::NothingToSummon => "`hatchery seats` shows the seats; `hatchery wake` fills those that sleep".into(),
            Self::NothingToWake => "`hatchery seats` shows the seats; `hatchery summon` fills empty ones".into(),
            Self::LeadSeat(_) => "name another seat: 0 to 8 without 4".into(),
            Self::Empty(_) => "`hatchery summon` fills it".into(),
            Self::Asleep(position) => format!("wake it first: `hatchery wake {position}`"),
            Self::TeamManaged(position) => format!("talk to it: `hatchery say --seat {position} \"…\"`"),
            Self::NoSeat(_) => "only agents that were summoned or woken can do this".into(),
            Self::OtherSeat { .. } => "leave `gridPosition` out: the seat of an agent is known".into(),
            Self::HasSoul(_) => "nothing to do: the first registration stands".into(),
            Self::NoName => "send a name".into(),
            Self::NoSoul => "send a text about yourself".into(),
            Self::SoulTooLong { .. } | Self::TraitTooLong { .. } | Self::SpeakerTooLong { .. } => {
                "make it shorter".into()
            }
            Self::NothingSaid => "give the text of the message".into(),
            Self::SaidTooMuch { .. } => "put the text into a file and name the file".into(),
            Self::NoLead => "start the lead: `hatchery session start --lead`".into(),
            Self::Relayed(_) | Self::ReplyTaken => "nothing to do".into(),
            Self::Changed(_) => "repeat the wake".into(),
        }
    }
}
