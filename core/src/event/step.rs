//! The events of one step of a quest.

use crate::quest::{Merge, NextAction, Signal, StepProgress, Verdict};
use crate::run::AttemptId;
use crate::{AgentId, Timestamp};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "type")]
pub enum StepEvent {
    /// The step waits for a slot. `next` is what the step does in the slot.
    #[serde(rename = "step_queued")]
    Queued {
        next: NextAction,
        progress: StepProgress,
        /// The user has approved the changed plan of the step's agent.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        consented: bool,
    },
    /// An agent works on the step.
    #[serde(rename = "step_begun")]
    Begun { agent: AgentId, role: String },
    /// An agent of the step has forked an agent. The fork works for the step when there is a slot, and ends with the run of `root`, the
    /// agent of the step.
    #[serde(rename = "step_forked")]
    Forked {
        agent: AgentId,
        #[serde(rename = "root")]
        step_agent: AgentId,
        parent: AgentId,
    },
    /// A parked fork of the step's agent waits for a slot.
    #[serde(rename = "step_fork_queued")]
    ForkQueued { agent: AgentId },
    /// The agent reported on its step. The signal takes effect when the agent's run has ended.
    #[serde(rename = "signal_given")]
    SignalGiven {
        #[serde(flatten)]
        of: AttemptId,
        signal: Signal,
    },
    #[serde(rename = "ward_begun")]
    WardBegun { number: u32 },
    #[serde(rename = "ward_ended")]
    WardEnded {
        number: u32,
        verdict: Verdict,
        /// The file with the output of the ward.
        artifact: String,
        /// Tracked files that the ward had changed or deleted. They were restored, because they are not the work of an agent.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        restored: Vec<String>,
    },
    #[serde(rename = "merge_begun")]
    MergeBegun { number: u32 },
    #[serde(rename = "merge_ended")]
    MergeEnded {
        number: u32,
        merge: Merge,
        /// By-products of builds, tests and wards that were not committed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        left_out: Vec<String>,
    },
    /// The step waits for the user. `then` is what the step does after the answer.
    #[serde(rename = "step_waits")]
    Waits { progress: StepProgress, then: NextAction },
    /// The agent of the step waits, for example until a rate limit is over.
    #[serde(rename = "step_parked")]
    Parked {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
    #[serde(rename = "step_failed")]
    Failed {
        why: String,
        /// What a retry starts with.
        then: NextAction,
    },
    #[serde(rename = "step_completed")]
    Completed { summary: String },
    /// A new plan no longer contains the step.
    #[serde(rename = "step_dropped")]
    Dropped,
}
