//! The events of the rules that allow tools without a question.

use crate::permission::PermissionRule;
use crate::{AgentId, EventId};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "type")]
pub enum PermissionEvent {
    /// The user has allowed something from now on. The id of the rule is the id of this event.
    #[serde(rename = "permission_rule_added")]
    RuleAdded {
        /// None: the rule is for all agents of the project.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentId>,
        allows: PermissionRule,
    },
    #[serde(rename = "permission_rule_removed")]
    RuleRemoved {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentId>,
        rule: EventId,
    },
}

impl PermissionEvent {
    /// The agent that the rule is for.
    pub fn agent(&self) -> Option<AgentId> {
        match *self {
            Self::RuleAdded { agent, .. } | Self::RuleRemoved { agent, .. } => agent,
        }
    }
}
