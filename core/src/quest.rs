//! A quest: a request that becomes requirements, a plan, steps and a review. Agents in roles work on each of them, in a limited number of
//! slots. Requirements, plan and review are steps, too, with reserved names. So all steps have the same states.
//!
//! ```text
//!                    ┌──────────────── waiting for a human, parked ◄───────────────┐
//!                    ▼                                                             │
//! pending ──► queued(next) ──► running(agent | ward | merge) ──► the signal, the verdict ──► complete
//!                    ▲                                                             ├──► failed
//!                    └──────────── the next station, a follow-up, a mending ◄──────┘
//! ```
//! Every change of a step is an event of its quest, with one exception: a step that becomes queued, blocked or complete only because of the
//! steps that it depends on has no event of its own; `world/quests/order.rs` computes this. `step.rs` defines a step.

mod chore;
mod deadline;
mod follow;
mod human;
mod life;
mod note;
mod plan;
mod quest_spec;
mod reference;
mod signal;
mod slot;
mod station;
mod step;
mod step_context;
mod step_fork;
mod ward;
mod words;

use crate::usage::{Money, Usage};
use crate::{AgentId, EventId, QuestId, Timestamp};
use imbl::{OrdMap, OrdSet};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub use chore::MAX_FINDINGS;
pub(crate) use chore::{merged, warded};
pub(crate) use deadline::due;
pub(crate) use follow::follow;
pub(crate) use human::{answered, out_of_money, queue_parked, retry};
pub(crate) use life::{abandon, create, going, pause, resume, set_budget};
pub use note::{Note, NoteKind};
pub use plan::{MAX_STEPS, MAX_TEXT_BYTES, Observable, QuestContext, Requirements, StepId, StepPlan, WorkPlan};
pub(crate) use plan::{hand_in, phase, require};
pub(crate) use quest_spec::check_ward;
pub use quest_spec::{
    Isolation, MAX_REQUEST_BYTES, MAX_SLOTS, MAX_WARD_BYTES, MAX_WARD_MS, MIN_WARD_MS, QuestSpec, QuestStart, WardSpec,
};
pub use reference::{QuestCandidate, QuestCandidates, resolve, slug_of};
pub use signal::{MAX_SIGNAL_BYTES, SIGNAL_TOOL, Signal};
pub(crate) use signal::{from_stream, give, of_tool};
pub(crate) use slot::serve;
pub use step::{
    Brief, Caller, GivenSignal, NextAction, RefusedSignal, SlotWork, Step, StepAgent, StepProgress, StepState,
    StepStatus, Verdict, WardRun,
};
use step_context::StepContext;
pub use step_fork::{MAX_STEP_FORKS, StepFork, StepForkState};
pub(crate) use step_fork::{born as born_for_step, queue as queue_fork};
pub(crate) use ward::{mends, set_ward};

/// How often a red ward is repaired before the step fails.
pub const MAX_MENDINGS: u32 = 3;
/// How often the roles of a step may call another role before the user is asked.
pub const MAX_FOLLOW_UPS: u32 = 10;
/// How many agents of a step may wait for each other's follow-ups at once.
pub const MAX_CALLERS: usize = 5;
/// How many agents of one role may wait when that role is called again. A called agent is a new one, so it never waits for itself. But
/// roles that only call each other would never end.
pub const MAX_RETURNS: usize = 2;
/// How often in a row a role may hand its work to a new agent before the user is asked.
pub const MAX_CONTINUATIONS: u32 = 20;
/// How long an agent may continue after its signal, so that it can finish its answer.
pub const SIGNAL_GRACE_MS: u64 = 60_000;
/// How often a crashed agent of a quest is resumed.
pub const CRASH_RETRIES: u32 = 3;
/// The summary of a phase that no agent worked on, because its result came with the quest.
pub(crate) const GIVEN: &str = "given from the start";
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quest {
    pub state: QuestState,
    pub requirements: Option<Requirements>,
    pub ward: Option<WardSpec>,
    /// The plan of each step. Separate from the states, because plans change less often.
    pub plans: OrdMap<StepId, StepPlan>,
    pub steps: OrdMap<StepId, Arc<Step>>,
    /// The steps that depend on each step.
    pub dependents: OrdMap<StepId, OrdSet<StepId>>,
    /// The steps that wait for a slot: first the steps that were begun, then in the order in which they became ready.
    pub queue: OrdSet<QueuePosition>,
    /// The position of each step in the queue.
    pub positions: OrdMap<StepId, QueuePosition>,
    /// The steps that hold a slot.
    pub working: OrdSet<StepId>,
    /// The step forks that work or wait for a slot.
    #[serde(default)]
    pub forks: OrdMap<AgentId, StepFork>,
    /// How many step forks were created.
    #[serde(default)]
    pub forked: u32,
    /// How many steps of the plan are not complete.
    pub open: u32,
    /// The steps whose agents have changed the plan, if the user must approve plans and has not yet. No step of the plan begins
    /// until then.
    #[serde(default)]
    pub unapproved: OrdSet<StepId>,
    /// How many agents were created for the quest.
    pub agents: u32,
    /// How many wards and merges each dropped step had. A new step with the same id continues the count, because a ward is found by its
    /// number.
    pub past_chores: OrdMap<StepId, u32>,
    pub budget: Option<Money>,
    pub spent: Usage,
    /// The version of the project's spec in the status document when steps were planned last.
    #[serde(default)]
    pub spec_version: Option<Arc<str>>,
    pub created: Timestamp,
    pub changed: Timestamp,
    /// The last event that changed the quest.
    pub version: EventId,
}

/// A position in the queue of a quest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct QueuePosition {
    /// False for a step that has been worked on. Such a step goes first, because it is nearer to its end.
    pub fresh: bool,
    pub since: EventId,
    pub number: u32,
    pub step: StepId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum QuestState {
    Open,
    /// No step begins until the user resumes the quest.
    Paused,
    Complete {
        at: Timestamp,
    },
    Abandoned {
        at: Timestamp,
    },
}

impl QuestState {
    pub fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Paused => "paused",
            Self::Complete { .. } => "complete",
            Self::Abandoned { .. } => "abandoned",
        }
    }
}

/// The quest, step and role of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    pub quest: QuestId,
    pub step: StepId,
    pub role: String,
}

/// The result of merging a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Merge {
    Merged,
    /// There is nothing to merge: the branch of the step has no commit of its own.
    Empty,
    Conflict {
        files: Vec<String>,
    },
    Broken {
        why: String,
    },
}

/// Work on a step without an agent: a ward or a merge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chore {
    pub number: u32,
    pub host: Arc<str>,
    pub what: ChoreKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChoreKind {
    Ward,
    Merge,
}

impl Quest {
    pub fn step(&self, id: &StepId) -> Option<&Step> {
        self.steps.get(id).map(Arc::as_ref)
    }

    pub(crate) fn step_mut(&mut self, id: &StepId) -> Option<&mut Step> {
        self.steps.get_mut(id).map(Arc::make_mut)
    }

    pub fn is_over(&self) -> bool {
        match self.state {
            QuestState::Open | QuestState::Paused => false,
            QuestState::Complete { .. } | QuestState::Abandoned { .. } => true,
        }
    }

    pub fn is_complete(&self) -> bool {
        matches!(self.state, QuestState::Complete { .. })
    }

    /// Whether a slot is free and a step waits for it.
    pub(crate) fn can_begin(&self, quest_spec: &QuestSpec) -> bool {
        if self.state != QuestState::Open || self.queue.is_empty() {
            return false;
        }
        let forks = self.forks.values().filter(|fork| fork.state == StepForkState::Running).count();
        let free = self.working.len() + forks < quest_spec.slots as usize;
        free && !self.waits_for_money()
    }

    /// Whether the quest's budget is used up and a step has asked the user for more. Another agent would only ask the same.
    fn waits_for_money(&self) -> bool {
        let used_up = self.budget.is_some_and(|budget| self.spent.cost >= budget);
        used_up && self.steps.values().any(|step| matches!(step.state, StepState::Parked { until: None, .. }))
    }

    /// Whether all steps are complete.
    pub(crate) fn is_done(&self) -> bool {
        let done = |step: &Step| matches!(step.state, StepState::Complete { .. });
        self.state == QuestState::Open && self.open == 0 && self.step(&StepId::review()).is_some_and(done)
    }
}

/// The id of the next agent of a quest. It is as random as the quest's id, and different for each number, because the core has no
/// randomness of its own.
pub(crate) fn agent_id(quest: QuestId, number: u32) -> AgentId {
    // A bijection, so that no two numbers of a quest share an id.
    let mut bits = u128::from_be_bytes(*quest.as_bytes()) ^ u128::from(number).wrapping_add(1);
    for odd in [0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835, 0xda94_2042_e4dd_58b5_d120_2768_1a37_9f1b] {
        bits ^= bits >> 61;
        bits = bits.wrapping_mul(odd);
    }
    bits ^= bits >> 67;
    let mut bytes = bits.to_be_bytes();
    // An id that begins with a dash would look like an option.
    if bytes[0] >> 2 == 62 {
        bytes[0] &= 0x7f;
    }
    AgentId::from_bytes(bytes)
}
