//! What a child says, whatever its own format is: the normalised stream. Each harness has a room that translates into it; from
//! here on nobody asks which harness it was.
//!
//! A sub-agent's words are wrapped ([`Output::Subagent`]), so that they are never mistaken for its parent's.

use crate::Timestamp;
use crate::usage::Usage;
use serde::{Deserialize, Serialize};

/// One thing that a child said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Output {
    /// Said at the beginning of every turn, not only of the first; not always the first line.
    SessionStarted {
        session: String,
        model: Option<String>,
        version: Option<String>,
        servers: Vec<McpServer>,
    },
    Text {
        text: String,
    },
    Thinking {
        text: String,
    },
    /// The input is JSON text, exactly as it was said.
    ToolUse {
        id: String,
        name: String,
        input: String,
    },
    ToolResult {
        id: String,
        content: String,
        is_error: bool,
    },
    /// It has taken in a message of ours; the uuid is the one that we sent with it.
    Heard {
        uuid: String,
    },
    /// It begins to work on a message of ours. By the time it says so of its turn as well, it has it in its own records.
    Begun {
        uuid: String,
    },
    /// What the harness itself put before the model: the mark of an interrupt, a hook's objection, a sub-agent's task.
    Note {
        text: String,
    },
    /// What a sub-agent said, and the tool use by which it was started. Never the end of its parent.
    Subagent {
        tool_use: String,
        #[cfg_attr(feature = "openapi", schema(no_recursion))]
        output: Box<Output>,
    },
    /// A request has failed and will be made again after the delay.
    Retrying {
        attempt: u32,
        max_attempts: Option<u32>,
        status: Option<u16>,
        delay_ms: Option<u64>,
        reason: Option<String>,
    },
    /// How it stands with the account's limit. Said now and then while all is well, and before a request is refused.
    Limit {
        rejected: bool,
        resets_at: Option<Timestamp>,
        window: Option<String>,
    },
    /// It may not use a tool, and goes on without.
    Denied {
        tool: String,
        tool_use: Option<String>,
        reason: String,
    },
    /// It asks whether it may use a tool, and waits for the answer to this request.
    Asked {
        request: String,
        tool: String,
        tool_use: Option<String>,
        input: String,
    },
    /// It has answered a request of ours, such as an interrupt; with a problem, it has refused it.
    Answered {
        request: String,
        problem: Option<String>,
    },
    /// It has made its own history shorter.
    Compacted {
        trigger: Option<String>,
        tokens_before: Option<u64>,
    },
    /// The service has failed it. It says so in the assistant's name, but these are not the assistant's words.
    ApiError(ApiError),
    TurnEnded(TurnEnd),
    /// A line that could not be taken in, and why. It is still in the spool.
    Unread {
        bytes: u64,
        reason: String,
    },
}

/// An MCP server of the child, as it was when the turn began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct McpServer {
    pub name: String,
    pub status: ServerStatus,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ServerStatus {
    /// Its tools can be called.
    Connected,
    /// It was too slow; the child goes on without its tools.
    Pending,
    Failed,
    /// A word that we do not know.
    Other(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ApiError {
    pub kind: ApiErrorKind,
    /// The HTTP status, when an answer came at all.
    pub status: Option<u16>,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ApiErrorKind {
    Authentication,
    Billing,
    RateLimit,
    InvalidRequest,
    Server,
    /// A word that we do not know.
    Other(String),
}

/// The result with which a turn ends. The last one of a run is the one that counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TurnEnd {
    /// A failed request to the service ends in the subtype `success`, so this is what tells success from failure.
    pub is_error: bool,
    pub subtype: String,
    pub terminal_reason: Option<String>,
    pub api_status: Option<u16>,
    /// The answer, or the service's error in words.
    pub text: Option<String>,
    pub errors: Vec<String>,
    /// How many rounds with the model it took.
    pub num_turns: u32,
    pub denials: Vec<Denial>,
    /// What the child says it has used in all. What "all" means differs: see [`Meter`](crate::usage::Meter).
    pub total: Usage,
    /// What was used since the result before this one, where the child says so.
    pub since_last: Option<Usage>,
}

/// A tool that was not allowed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Denial {
    pub tool: String,
    pub tool_use: Option<String>,
}

impl TurnEnd {
    /// Whether it was to resume a conversation that it knows nothing of.
    pub fn forgotten(&self) -> bool {
        self.errors.iter().any(|error| error.contains("No conversation found"))
    }

    /// Whether somebody broke the turn off. The session is whole and can go on.
    pub fn interrupted(&self) -> bool {
        self.terminal_reason.as_deref().is_some_and(|reason| reason.starts_with("aborted_"))
    }
}
