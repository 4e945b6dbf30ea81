//! An agent: an identity that outlives its processes. Bodies of its messages are in the log; the world keeps where they are.

use crate::{AgentId, EventId, SessionId, Timestamp};
use serde::{Deserialize, Serialize};

/// The longest name, in bytes.
pub const MAX_NAME_BYTES: usize = 64;
/// The longest message, in bytes of UTF-8. The HTTP body limit is above it with room for JSON's escapes.
pub const MAX_MESSAGE_BYTES: usize = 1 << 20;
/// The longest remark on why an agent ended.
pub const MAX_REMARK_BYTES: usize = 1_024;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    pub parent: Option<AgentId>,
    pub name: Option<String>,
    pub life: Life,
    pub created: Timestamp,
    pub last_active: Timestamp,
    pub last_message: Option<EventId>,
    pub messages: u64,
}

/// What an agent can be. Nothing is deleted: an end is a state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Life {
    /// Takes part, perhaps in a session.
    Alive { session: Option<SessionId> },
    /// Its session ended; it can be woken.
    Sleeping,
    /// Ended for good.
    Dead { at: Timestamp },
}

/// Who speaks, or what kind of line it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum MessageKind {
    System,
    User,
    Assistant,
    ToolCall,
    ToolResult,
}

impl Agent {
    /// The session that it is awake in.
    pub fn session(&self) -> Option<SessionId> {
        match self.life {
            Life::Alive { session } => session,
            Life::Sleeping | Life::Dead { .. } => None,
        }
    }
}
