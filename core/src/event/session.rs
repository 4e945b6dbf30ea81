//! The events of a session.

use crate::session::EndReason;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "type")]
pub enum SessionEvent {
    #[serde(rename = "session_started")]
    Started {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        label: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        idle_ms: Option<u64>,
    },
    /// The session is to end. This is logged before its agents are stopped.
    #[serde(rename = "session_ending")]
    Ending { reason: EndReason },
    #[serde(rename = "session_ended")]
    Ended { reason: EndReason },
}
