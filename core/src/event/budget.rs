//! The events of an agent's budget and of the daily budget. The budget of a quest belongs to the events of the quest.

use crate::AgentId;
use crate::usage::Money;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "type")]
pub enum BudgetEvent {
    #[serde(rename = "budget_set")]
    Set {
        /// None: the budget is for all agents together on each day.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentId>,
        /// None removes the budget.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<Money>,
    },
}
