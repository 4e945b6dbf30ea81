//! The events of the original program, field by field as its clients spell them.

use hatchery_core::seat::{ArtifactMeta, Identity, ListedStatus, Position};
use hatchery_core::{EventId, Timestamp};
use serde::Serialize;
use serde_json::Value;

/// An event of the stream with `dialect=julian`. Its id is the id of the event of the log that it is a view of.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DialectEvent {
    pub id: EventId,
    pub ts: Timestamp,
    /// The session of the seats, as a UUID.
    pub session_id: Option<String>,
    #[serde(flatten)]
    pub what: DialectWhat,
}

#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum DialectWhat {
    UserSessionStart {
        demo_mode: bool,
        has_previous_transcript: bool,
        has_artifact_catalog: bool,
    },
    UserSessionEnd {},
    /// The session is open.
    SessionStart {
        /// The process of the daemon that opened it. Absent in logs of older versions.
        #[serde(skip_serializing_if = "Option::is_none")]
        pid: Option<u32>,
        model: Option<String>,
        demo_mode: bool,
    },
    /// Told when the end is decided, before a next session can begin.
    SessionEnd {
        /// Of the lead's process. Null if it has not ended before the session, or ended without a code.
        exit_code: Option<i32>,
        reason: DialectEnd,
    },
    UserSummon {},
    UserWake {
        agent_payloads: Vec<WokenSeat>,
    },
    /// A message of a person. Without a target it is for the lead.
    UserMessage {
        text: String,
        speaker_name: String,
        target_agent: Option<String>,
        target_grid_position: Option<Position>,
    },
    AgentRegistered {
        agent: RegisteredSeat,
    },
    AgentStatus {
        agents: Vec<ReportedSeat>,
    },
    AgentMessage {
        agent_name: String,
        grid_position: Option<u8>,
        content: Vec<DialectContent>,
    },
    /// The process of the lead is ready.
    ClaudeSystem {
        claude_session_id: String,
        /// Empty if the agent program does not say so.
        available_tools: Vec<String>,
    },
    ClaudeText {
        message_id: String,
        content: Vec<DialectContent>,
    },
    ClaudeToolResult {
        tool_use_id: String,
        /// Empty if the call is too long ago.
        tool_name: String,
        content: Value,
        is_error: bool,
    },
    ClaudeResult {
        subtype: DialectResult,
        num_turns: u64,
        cost_usd: f64,
        usage: DialectUsage,
        /// The last words of the turn, without reports about seats. Empty if the agent program does not say so.
        result_text: String,
    },
    ClaudeCompact {},
    /// The lead has written a file into its folder of artifacts. The result of its tool is an event of its own.
    ArtifactWritten {
        filename: String,
        path: String,
        /// Whether the file was not there before. Absent if the tool does not say so.
        #[serde(skip_serializing_if = "Option::is_none")]
        is_new: Option<bool>,
        size_bytes: u64,
        /// What the file says about itself, in elements such as `<meta name="artifact-description" content="…">`.
        meta: Option<ArtifactMeta>,
    },
    ServerError {
        message: String,
        code: DialectError,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DialectEnd {
    UserEnded,
    InactivityTimeout,
    ProcessCrash,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DialectResult {
    Success,
    Error,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DialectError {
    AuthFailed,
    ProcessExited,
    TurnTimeout,
    Unknown,
}

/// A seat that is filled again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WokenSeat {
    pub name: Option<String>,
    pub color: Option<String>,
    pub color_name: Option<String>,
    pub grid_position: Position,
    pub has_soul: bool,
    pub has_transcript: bool,
}

/// An agent that has chosen its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegisteredSeat {
    #[serde(flatten)]
    pub identity: Identity,
    pub grid_position: Position,
    /// As ISO 8601.
    pub created_at: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportedSeat {
    pub name: Option<String>,
    pub status: ListedStatus,
    pub grid_position: Position,
}

/// A part of what was said.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum DialectContent {
    Text { text: String },
    Thinking { thinking: String },
    ToolUse { id: String, name: String, input: Value },
}

impl DialectContent {
    pub fn text(text: impl Into<String>) -> Vec<Self> {
        vec![Self::Text { text: text.into() }]
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DialectUsage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_tokens: u64,
    pub cache_creation_tokens: u64,
}
