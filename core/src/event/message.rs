//! The event of a message in an agent's history. Messages are added and never changed.

use crate::history::{MessageKind, SourceId};
use crate::{AgentId, EventId};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "type")]
pub enum MessageEvent {
    #[serde(rename = "message_added")]
    Added {
        agent: AgentId,
        kind: MessageKind,
        content: String,
        /// For a rewind: the message to go back to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<EventId>,
        /// For an imported message: its id in the source.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        source_id: Option<SourceId>,
    },
}
