//! The events of seats, the nine fixed positions for identities, and of the conversation with the lead.

use crate::run::RunSpec;
use crate::seat::{ArtifactMeta, Identity, Mode, Position, SeatDocument, SeatListed};
use crate::{AgentId, EventId, SessionId, Timestamp};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "type")]
pub enum SeatEvent {
    /// A session of the seats began. The event follows `session_started` of the same session.
    #[serde(rename = "seats_opened")]
    Opened {
        session: SessionId,
        mode: Mode,
        /// The process id of the daemon that opened the session. Older logs do not have it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pid: Option<u32>,
        /// A session that only shows the interface and costs nothing. It is recorded, and nothing else happens.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        demo: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The first message to the lead contained an earlier conversation.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        with_transcript: bool,
        /// The first message to the lead contained a catalogue of artifacts.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        with_catalog: bool,
    },
    /// The user requested the end of the session. `session_ending` follows.
    #[serde(rename = "seats_closing")]
    Closing { session: SessionId },
    /// This agent is the lead of the seats from now on.
    #[serde(rename = "seat_lead_named")]
    LeadNamed { agent: AgentId },
    /// The lead is to run in this session, but its previous process has not ended yet. Its next process starts after that.
    #[serde(rename = "seat_lead_awaited")]
    LeadAwaited { session: SessionId, spec: RunSpec },
    /// Agents without a name were created in empty or expired seats.
    #[serde(rename = "seats_summoned")]
    Summoned { seats: Vec<Egg> },
    /// An agent has chosen a name and described itself. The description is the soul of the seat.
    #[serde(rename = "seat_registered")]
    Registered { position: Position, identity: Identity },
    /// The lead reported an agent in a seat that had no agent here. This agent of the registry was created for it.
    #[serde(rename = "seat_filled")]
    Filled { position: Position, agent: AgentId },
    /// A report on who is alive: by the lead, or by the daemon for the processes that the daemon runs. Seats that are not listed are not
    /// alive.
    #[serde(rename = "seats_reported")]
    Reported {
        /// The lead. None if the daemon reports.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<AgentId>,
        agents: Vec<SeatListed>,
    },
    /// Sleeping seats are about to be filled again.
    #[serde(rename = "seats_waking")]
    Waking { seats: Vec<Waking> },
    /// The agent of the seat chose no name in time.
    #[serde(rename = "seat_expired")]
    Expired { position: Position },
    /// The seat was to be filled again, but no report said in time that its agent is alive. The seat stays asleep.
    #[serde(rename = "seat_wake_expired")]
    WakeExpired { position: Position },
    /// An identity document from elsewhere was merged into the seat. `document` is the result.
    #[serde(rename = "seat_imported")]
    Imported { document: SeatDocument },
    /// The user says something to the agent of a seat or to the lead. The message is the next event.
    #[serde(rename = "seat_addressed")]
    Addressed {
        /// The agent that receives the message.
        agent: AgentId,
        /// The seat that is meant. If `agent` is the lead, the lead is to pass the message on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        position: Option<Position>,
        speaker: String,
    },
    /// The agent of a seat has not read a message in its inbox file. The lead is asked to pass the message on; this request is the next
    /// event.
    #[serde(rename = "seat_message_relayed")]
    Relayed {
        /// The lead.
        agent: AgentId,
        position: Position,
        /// The message. It is in the history of the seat's agent.
        message: EventId,
    },
    /// The lead was asked to pass a message on, and answers for the agent of this seat. The answer is the next event.
    #[serde(rename = "seat_spoken_for")]
    SpokenFor { agent: AgentId, position: Position },
    /// An agent wrote a marker that cannot be carried out.
    #[serde(rename = "marker_rejected")]
    MarkerRejected { agent: AgentId, marker: String, reason: String },
    /// The lead has written a file into its folder of artifacts.
    #[serde(rename = "artifact_written")]
    ArtifactWritten {
        agent: AgentId,
        path: String,
        /// The path within the folder of artifacts.
        filename: String,
        bytes: u64,
        /// Whether the file was not there before, if the tool has said so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        is_new: Option<bool>,
        /// What the file says about itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        meta: Option<ArtifactMeta>,
    },
    /// An entry of the human's team inbox was read. If the agent is known, its words are the next event.
    #[serde(rename = "inbox_reply_taken")]
    ReplyTaken {
        /// A text that distinguishes the entry from all others.
        key: String,
        from: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        position: Option<Position>,
        /// The text of the entry, if it is in no history.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
}

/// A new agent that has not chosen a name for its seat yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Egg {
    pub position: Position,
    pub agent: AgentId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gender: Option<String>,
    /// When the agent expires if it has chosen no name.
    pub until: Timestamp,
}

/// A sleeping seat that is about to be filled again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Waking {
    pub position: Position,
    pub agent: AgentId,
    /// When the wake counts as failed.
    pub until: Timestamp,
    /// False if the seat has no soul. Its new agent is then invited to choose a name.
    pub has_soul: bool,
    pub has_transcript: bool,
    /// Messages up to this one are not completely in the transcript, so the woken agent does not receive them with it. Logs of older
    /// versions do not have this position; for them, all messages count as contained in the transcript.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untold_upto: Option<EventId>,
    /// What to start when the agent's previous process has ended. None if that process has ended already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Box<WakeOrder>>,
}

/// A wake that waits for the end of the agent's previous process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WakeOrder {
    pub session: SessionId,
    pub prompt: String,
    pub spec: RunSpec,
}
