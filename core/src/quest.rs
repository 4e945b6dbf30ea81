//! A quest: a request that becomes requirements, a plan, steps and a review, each worked on by agents in roles, in a bounded number of
//! slots. Requirements, plan and review are steps too, with names of their own, so that there is one life for all.
//!
//! ```text
//!                    ┌──────────────── waiting for a human, parked ◄───────────────┐
//!                    ▼                                                             │
//! pending ──► queued(next) ──► running(agent | ward | merge) ──► the signal, the verdict ──► complete
//!                    ▲                                                             ├──► failed
//!                    └──────────── the next station, a follow-up, a mending ◄──────┘
//! ```
//!
//! A step holds a slot while it is running and at no other time. What it does next is in its [`NextAction`]; where it is in its path and who
//! waits for whom is in its [`StepProgress`]. Every change of a step is an event
//! of its quest, except that a step becomes queued, blocked or complete without work of its own: that follows from the events of the steps
//! that it depends on (`world/quests/order.rs`).

mod chore;
mod follow;
mod human;
mod life;
mod note;
mod plan;
mod quest_spec;
mod signal;
mod slot;
mod step_context;
mod step_fork;
mod ward;
mod words;

use crate::roles::Phase;
use crate::usage::{Money, Usage};
use crate::{AgentId, EventId, QuestId, Timestamp};
use imbl::{OrdMap, OrdSet, Vector};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub use chore::MAX_FINDINGS;
pub(crate) use chore::{merged, warded};
pub(crate) use follow::follow;
pub(crate) use human::{answered, due, out_of_money, queue_parked, retry};
pub(crate) use life::{abandon, create, going, pause, resume, set_budget};
pub use note::{Note, NoteKind};
pub use plan::{Observable, QuestContext, Requirements, StepId, StepPlan, WorkPlan};
pub(crate) use plan::{hand_in, phase, require};
pub(crate) use quest_spec::check_ward;
pub use quest_spec::{
    Isolation, MAX_REQUEST_BYTES, MAX_SLOTS, MAX_WARD_BYTES, MAX_WARD_MS, MIN_WARD_MS, QuestSpec, Start, WardSpec,
};
pub use signal::{SIGNAL_TOOL, Signal};
pub(crate) use signal::{from_stream, give, of_tool};
pub(crate) use slot::serve;
use step_context::StepContext;
pub use step_fork::{MAX_STEP_FORKS, StepFork, StepForkState};
pub(crate) use step_fork::{born as born_for_step, queue as queue_fork};
pub(crate) use ward::{mends, set_ward};

/// How often a red ward is mended before the step fails.
pub const MAX_MENDINGS: u32 = 3;
/// How often a step may go to another role before a person is asked.
pub const MAX_FOLLOW_UPS: u32 = 10;
/// How many may wait for each other's follow-ups at once.
pub const MAX_CALLERS: usize = 5;
/// How many of one role may wait when that role is called once more. A called agent is a fresh one, so it does not wait for itself; but
/// roles that only call each other never end.
pub const MAX_RETURNS: usize = 2;
/// How often in a row a role may hand its work to a fresh agent before a person is asked.
pub const MAX_CONTINUATIONS: u32 = 20;
/// How long an agent may go on after its signal: it has a last sentence to say.
pub const SIGNAL_GRACE_MS: u64 = 60_000;
/// How often a crashed agent of a quest is resumed.
pub const CRASH_RETRIES: u32 = 3;
/// What is said of a phase that nobody had to go through.
pub(crate) const GIVEN: &str = "given from the start";
/// How much of a step's past is kept at hand. The log has all of it.
const KEPT_NOTES: usize = 50;
/// How many wards and signals of a step are kept at hand.
const KEPT_WARDS: usize = 20;
/// How many findings of each of these wards.
const KEPT_FINDINGS: usize = 20;
/// How much of each text of these signals, in characters.
const KEPT_SIGNAL_CHARS: usize = 4_000;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quest {
    pub state: QuestState,
    pub requirements: Option<Requirements>,
    pub ward: Option<WardSpec>,
    /// What the steps are to do. Beside their states, because it does not change with them.
    pub plans: OrdMap<StepId, StepPlan>,
    pub steps: OrdMap<StepId, Arc<Step>>,
    /// Who depends on a step.
    pub dependents: OrdMap<StepId, OrdSet<StepId>>,
    /// What waits for a slot: first what was begun, then in the order in which it became possible.
    pub queue: OrdSet<QueuePosition>,
    /// Where in the queue a step is.
    pub positions: OrdMap<StepId, QueuePosition>,
    /// Who holds a slot.
    pub working: OrdSet<StepId>,
    /// Agents that agents of steps have forked, while they work or wait for a slot.
    #[serde(default)]
    pub forks: OrdMap<AgentId, StepFork>,
    /// How many there were.
    #[serde(default)]
    pub forked: u32,
    /// How many steps of the plan are not complete.
    pub open: u32,
    /// The steps whose agents have split the plan anew, if a person has to consent to plans and has not yet. Nothing of the plan is begun
    /// until then.
    #[serde(default)]
    pub unapproved: OrdSet<StepId>,
    /// How many agents were made for it.
    pub agents: u32,
    /// How many wards and merges those steps had that were dropped. One that gets such a name counts on: a ward is found by its number.
    pub past_chores: OrdMap<StepId, u32>,
    pub budget: Option<Money>,
    pub spent: Usage,
    /// The version of the project's spec when steps were planned last, as the status document named it.
    #[serde(default)]
    pub spec_version: Option<Arc<str>>,
    pub created: Timestamp,
    pub changed: Timestamp,
    /// The last event that changed the quest.
    pub version: EventId,
}

/// A place in the queue of a quest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct QueuePosition {
    /// What was begun goes first: it is nearer to its end.
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
    /// Nothing is begun until a person says so.
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

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    pub phase: Phase,
    /// Its place in the plan.
    pub number: u32,
    pub state: StepState,
    pub progress: StepProgress,
    /// How many steps that it depends on are not complete.
    pub waits_for: u32,
    /// The new plan does without it: it goes when whoever made that plan is done.
    pub dropped: bool,
    /// The question to the human that is open about it.
    pub question: Option<EventId>,
    /// How many wards and merges were begun for it: each is known by its number.
    pub chores: u32,
    /// How often an agent was set to work on it, for the first time or again.
    pub attempts: u32,
    /// Who works or worked on it, in the order in which they worked last.
    pub agents: Vector<StepAgent>,
    /// The last wards that were run for it.
    #[serde(default)]
    pub wards: Vector<WardRun>,
    /// The last signals of its agents.
    #[serde(default)]
    pub signals: Vector<GivenSignal>,
    /// A signal of its agent that was refused, if no other signal followed.
    #[serde(default)]
    pub refused: Option<RefusedSignal>,
    /// How many tool uses were denied to the agents of this step.
    #[serde(default)]
    pub denied: u32,
    /// Those since a person was last asked about it.
    #[serde(default)]
    pub denied_since: u32,
    /// Something of it was merged.
    #[serde(default)]
    pub has_work: bool,
    /// What the last agent said that was done.
    pub summary: String,
    /// Its last change.
    pub since: Timestamp,
    /// What happened to it, in short, the last of it.
    pub notes: Vector<Note>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepState {
    /// Waits for other steps.
    Pending,
    /// Waits for a slot.
    Queued(NextAction),
    /// Holds a slot.
    Running(Work),
    /// Waits for an answer, and then does this.
    Asking(NextAction),
    /// Its agent waits for a better moment.
    Parked { agent: AgentId, role: String, until: Option<Timestamp> },
    /// Depends on one that failed.
    Blocked,
    /// Can be tried again, with this.
    Failed { why: String, then: NextAction },
    Complete {
        summary: String,
        at: Timestamp,
        /// The version of the project's spec that was current then, as the status document named it.
        #[serde(default)]
        spec_version: Option<Arc<str>>,
    },
}

/// The word for a step's state, the same everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = StepStatus))]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    Pending,
    Queued,
    Running,
    WaitingForHuman,
    WaitingForRole,
    Parked,
    Blocked,
    Failed,
    Complete,
}

impl StepStatus {
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Queued => "queued",
            Self::Running => "running",
            Self::WaitingForHuman => "waiting for human",
            Self::WaitingForRole => "waiting for role",
            Self::Parked => "parked",
            Self::Blocked => "blocked",
            Self::Failed => "failed",
            Self::Complete => "complete",
        }
    }
}

/// What is done in a slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Work {
    Agent {
        agent: AgentId,
        role: String,
        signal: Option<Signal>,
        /// Its quest was paused: it shall go on later.
        recalled: bool,
    },
    Ward(u32),
    Merge(u32),
}

/// What is to be done with a step when there is a slot for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum NextAction {
    /// A fresh agent.
    Begin {
        role: String,
        brief: Brief,
    },
    /// An agent goes on with its conversation; what it is told is in its history.
    Resume {
        agent: AgentId,
        role: String,
    },
    Ward,
    Merge,
}

/// Why an agent is set to work, beside what its step is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Brief {
    /// It is its turn.
    Begin,
    /// The last of its role had to leave off.
    Continue { progress: String, continuation_point: String },
    /// The ward was red.
    Mend { findings: Vec<String>, artifact: String },
    /// What the step did cannot be merged.
    Reconcile { files: Vec<String> },
    /// Another role asks.
    FollowUp { from: String, reason: String, context: String },
}

/// Where a step is in its path, and what it took to get there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StepProgress {
    /// The station.
    pub station: u32,
    /// Those who asked another role to act first, the last one last.
    #[serde(default)]
    pub callers: Vec<Caller>,
    /// Mendings since the ward was green.
    #[serde(default)]
    pub mendings: u32,
    /// Conflicts that were mended.
    #[serde(default)]
    pub conflicts: u32,
    /// Follow-ups since a person had a say.
    #[serde(default)]
    pub follow_ups: u32,
    /// Fresh agents in a row for one piece of work.
    #[serde(default)]
    pub continuations: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Caller {
    pub agent: AgentId,
    pub role: String,
    /// Whether this agent continues when the role that it called is done.
    pub resume: bool,
}

/// Somebody who was set to work on a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StepAgent {
    pub agent: AgentId,
    pub role: String,
}

/// One run of the ward of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WardRun {
    /// The number among the wards and merges of the step. The output is found by this number.
    pub number: u32,
    /// Older exports call it `began`.
    #[serde(alias = "began")]
    pub started: Timestamp,
    pub ended: Option<Timestamp>,
    /// Nothing while it runs. Of many findings the first are kept.
    pub verdict: Option<Verdict>,
}

/// A report of an agent about its step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GivenSignal {
    pub at: Timestamp,
    pub agent: AgentId,
    pub role: String,
    /// Long texts are cut.
    pub signal: Signal,
}

/// A signal that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RefusedSignal {
    pub at: Timestamp,
    pub agent: AgentId,
    pub role: String,
    /// Why it was refused.
    pub why: String,
}

/// What an agent of a quest was made for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    pub quest: QuestId,
    pub step: StepId,
    pub role: String,
}

/// What a ward found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Green,
    Red {
        findings: Vec<String>,
    },
    /// It was not run, because the step conflicts with what other steps did meanwhile.
    Conflict {
        files: Vec<String>,
    },
    /// It could not be run, so it says nothing.
    Broken {
        why: String,
    },
}

/// What became of an attempt to merge a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Merge {
    Merged,
    /// There is nothing to merge: its branch has no commit of its own.
    Empty,
    Conflict {
        files: Vec<String>,
    },
    Broken {
        why: String,
    },
}

/// Something that the shell should do for a step, beside running agents.
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

    /// Whether there is a slot and something to do in it.
    pub(crate) fn can_begin(&self, quest_spec: &QuestSpec) -> bool {
        let forks = self.forks.values().filter(|fork| fork.state == StepForkState::Running).count();
        let free = self.working.len() + forks < quest_spec.slots as usize;
        self.state == QuestState::Open && free && !self.queue.is_empty() && !self.waits_for_money()
    }

    /// Its money is used up, and somebody has asked for more: whoever begins now would only ask the same.
    fn waits_for_money(&self) -> bool {
        let used_up = self.budget.is_some_and(|budget| self.spent.cost >= budget);
        used_up && self.steps.values().any(|step| matches!(step.state, StepState::Parked { until: None, .. }))
    }

    /// Whether everything is done.
    pub(crate) fn is_done(&self) -> bool {
        let done = |step: &Step| matches!(step.state, StepState::Complete { .. });
        self.state == QuestState::Open && self.open == 0 && self.step(&StepId::review()).is_some_and(done)
    }
}

impl Step {
    /// How often the work was begun: once, and again for each red ward and each conflict.
    pub fn tries(&self) -> u32 {
        1 + self.progress.mendings + self.progress.conflicts
    }

    pub fn status(&self) -> StepStatus {
        let called = !self.progress.callers.is_empty();
        match self.state {
            StepState::Pending => StepStatus::Pending,
            // A new plan has put something before it.
            StepState::Queued(_) if self.waits_for > 0 => StepStatus::Pending,
            StepState::Queued(_) | StepState::Running(_) if called => StepStatus::WaitingForRole,
            StepState::Queued(_) => StepStatus::Queued,
            StepState::Running(_) => StepStatus::Running,
            StepState::Asking(_) => StepStatus::WaitingForHuman,
            StepState::Parked { .. } => StepStatus::Parked,
            StepState::Blocked => StepStatus::Blocked,
            StepState::Failed { .. } => StepStatus::Failed,
            StepState::Complete { .. } => StepStatus::Complete,
        }
    }

    /// The agent that works on it now.
    pub fn agent(&self) -> Option<AgentId> {
        match self.state {
            StepState::Running(Work::Agent { agent, .. }) | StepState::Parked { agent, .. } => Some(agent),
            StepState::Pending
            | StepState::Queued(_)
            | StepState::Running(Work::Ward(_) | Work::Merge(_))
            | StepState::Asking(_)
            | StepState::Blocked
            | StepState::Failed { .. }
            | StepState::Complete { .. } => None,
        }
    }

    /// The ward or the merge that it is at, by its number.
    pub(crate) fn chore(&self) -> Option<(u32, ChoreKind)> {
        match self.state {
            StepState::Running(Work::Ward(number)) => Some((number, ChoreKind::Ward)),
            StepState::Running(Work::Merge(number)) => Some((number, ChoreKind::Merge)),
            StepState::Running(Work::Agent { .. })
            | StepState::Pending
            | StepState::Queued(_)
            | StepState::Asking(_)
            | StepState::Parked { .. }
            | StepState::Blocked
            | StepState::Failed { .. }
            | StepState::Complete { .. } => None,
        }
    }

    /// Whether nobody has touched it yet, so that a new plan may change it or drop it.
    pub(crate) fn is_untouched(&self) -> bool {
        let fresh = matches!(self.state, StepState::Pending | StepState::Blocked | StepState::Queued(_));
        fresh && self.attempts == 0
    }

    pub(crate) fn ward_began(&mut self, at: Timestamp, number: u32) {
        self.wards.push_back(WardRun { number, started: at, ended: None, verdict: None });
        if self.wards.len() > KEPT_WARDS {
            self.wards.pop_front();
        }
    }

    pub(crate) fn ward_ended(&mut self, at: Timestamp, number: u32, verdict: &Verdict) {
        if let Some(ward) = self.wards.back_mut().filter(|ward| ward.number == number) {
            ward.ended = Some(at);
            ward.verdict = Some(match verdict {
                Verdict::Red { findings } => {
                    Verdict::Red { findings: findings.iter().take(KEPT_FINDINGS).cloned().collect() }
                }
                Verdict::Conflict { files } => {
                    Verdict::Conflict { files: files.iter().take(KEPT_FINDINGS).cloned().collect() }
                }
                Verdict::Green | Verdict::Broken { .. } => verdict.clone(),
            });
        }
    }

    pub(crate) fn signal_refused(&mut self, at: Timestamp, agent: AgentId, role: &str, why: &str) {
        let why: String = why.chars().take(KEPT_SIGNAL_CHARS).collect();
        self.note(at, NoteKind::SignalRefused { role: role.to_owned(), why: why.clone() });
        self.refused = Some(RefusedSignal { at, agent, role: role.to_owned(), why });
    }

    pub(crate) fn signalled(&mut self, at: Timestamp, agent: AgentId, role: &str, signal: &Signal) {
        self.refused = None;
        let signal = signal.cut(KEPT_SIGNAL_CHARS);
        self.signals.push_back(GivenSignal { at, agent, role: role.to_owned(), signal });
        if self.signals.len() > KEPT_WARDS {
            self.signals.pop_front();
        }
    }

    pub(crate) fn note(&mut self, at: Timestamp, what: NoteKind) {
        self.notes.push_back(Note { at, what });
        if self.notes.len() > KEPT_NOTES {
            self.notes.pop_front();
        }
    }
}

/// The id of the next agent of a quest: as random as that of the quest, and different for each number. The core draws none.
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
