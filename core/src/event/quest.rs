//! The events of a quest as a whole.

use crate::AgentId;
use crate::quest::{QuestSpec, Requirements, StepPlan};
use crate::usage::Money;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "type")]
pub enum QuestEvent {
    #[serde(rename = "quest_created")]
    Created {
        quest_spec: Box<QuestSpec>,
        /// How much the agents of the quest may spend together.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget: Option<Money>,
    },
    /// Nothing new is started. Agents at work are stopped and continue later.
    #[serde(rename = "quest_paused")]
    Paused,
    #[serde(rename = "quest_resumed")]
    Resumed,
    /// The user ended the quest before it was complete.
    #[serde(rename = "quest_abandoned")]
    Abandoned,
    #[serde(rename = "quest_completed")]
    Completed,
    #[serde(rename = "quest_budget_set")]
    BudgetSet {
        /// None removes the budget.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<Money>,
    },
    /// The user set another ward command.
    #[serde(rename = "ward_changed")]
    WardChanged {
        command: String,
        /// The time limit, if the quest had no ward before. None keeps the limit of the previous ward.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit_ms: Option<u64>,
    },
    /// The user removed the ward.
    #[serde(rename = "ward_removed")]
    WardRemoved,
    #[serde(rename = "requirements_set")]
    RequirementsSet { requirements: Requirements },
    /// The steps were planned, or planned again. Steps that are complete or under way are not changed.
    #[serde(rename = "steps_planned")]
    StepsPlanned {
        steps: Vec<StepPlan>,
        /// The agent that planned. None if the plan came with the quest.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<AgentId>,
        /// The summary that came with the plan, if the plan came with the quest.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
        /// The plan was changed, and no step of it begins before the user approves it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        needs_consent: bool,
    },
}
