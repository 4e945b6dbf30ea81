//! One step of a quest: its state, the agents that work on it, and what is remembered of its past.
//!
//! A step holds a slot only while it is running. Its next action is in [`NextAction`]; its position in its path and the roles that wait for
//! a follow-up are in [`StepProgress`].

use super::{ChoreKind, Note, NoteKind, Signal};
use crate::recent_list::RecentList;
use crate::roles::Phase;
use crate::{AgentId, EventId, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How many notes of a step are kept in the world. The log has everything.
const KEPT_NOTES: usize = 50;
/// How many wards, and how many signals, of a step are kept.
const KEPT_WARDS: usize = 20;
/// How many findings of each of these wards are kept.
const KEPT_FINDINGS: usize = 20;
/// How many characters of each text of these signals are kept.
const KEPT_SIGNAL_CHARS: usize = 4_000;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    pub phase: Phase,
    /// The position of the step in the plan.
    pub number: u32,
    pub state: StepState,
    pub progress: StepProgress,
    /// How many of the steps that it depends on are not complete.
    pub waits_for: u32,
    /// The new plan does not contain this step. The step is removed when the agent that made the plan has finished.
    pub dropped: bool,
    /// The open question to the user about the step.
    pub question: Option<EventId>,
    /// How many wards and merges were begun for the step. Each is known by its number.
    pub chores: u32,
    /// How often an agent was started or continued on the step.
    pub attempts: u32,
    /// The agents of the step, in the order in which they worked last.
    pub agents: RecentList<StepAgent>,
    /// The last wards of the step.
    #[serde(default)]
    pub wards: RecentList<WardRun>,
    /// The last signals of the step's agents.
    #[serde(default)]
    pub signals: RecentList<GivenSignal>,
    /// The last signal that was refused, if no other signal followed.
    #[serde(default)]
    pub refused: Option<RefusedSignal>,
    /// How many tool uses were denied to the agents of the step.
    #[serde(default)]
    pub denied: u32,
    /// How many tool uses were denied since the user was last asked about this.
    #[serde(default)]
    pub denied_since: u32,
    /// Some work of the step was merged.
    #[serde(default)]
    pub has_work: bool,
    /// The summary of the last agent.
    pub summary: String,
    /// The time of the last change of the state.
    pub since: Timestamp,
    /// The last notes about the step.
    pub notes: RecentList<Note>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepState {
    /// The step waits for other steps.
    Pending,
    /// The step waits for a slot.
    Queued(NextAction),
    /// The step holds a slot.
    Running(SlotWork),
    /// The step waits for the user's answer, and then does this.
    Asking(NextAction),
    /// The run of the step's agent is parked.
    Parked { agent: AgentId, role: String, until: Option<Timestamp> },
    /// The step depends on a step that failed.
    Blocked,
    /// The step failed. `then` is what a retry starts with.
    Failed { why: String, then: NextAction },
    Complete {
        summary: String,
        at: Timestamp,
        /// The version of the project's spec in the status document when the step was completed.
        #[serde(default)]
        spec_version: Option<Arc<str>>,
    },
}

/// The name of a step's state, the same in all interfaces.
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

/// The work that a step does in its slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SlotWork {
    Agent {
        agent: AgentId,
        role: String,
        signal: Option<Signal>,
        /// The quest was paused. The agent continues later.
        paused: bool,
    },
    Ward(u32),
    Merge(u32),
}

/// What a step does when it gets a slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum NextAction {
    /// A new agent works on the step.
    Begin {
        role: String,
        brief: Brief,
    },
    /// An agent continues its conversation. Its history contains the message for it.
    Resume {
        agent: AgentId,
        role: String,
    },
    Ward,
    Merge,
}

/// Why an agent starts to work, in addition to the plan of its step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Brief {
    /// The station of the role has come.
    Begin,
    /// The previous agent in the role had to stop early.
    Continue { progress: String, continuation_point: String },
    /// The ward was red.
    Mend { findings: Vec<String>, artifact: String },
    /// The step conflicts with what other steps did.
    Reconcile { files: Vec<String> },
    /// Another role has called this one.
    FollowUp { from: String, reason: String, context: String },
}

/// Where a step is in its path, and how it got there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StepProgress {
    /// The index of the station in the path.
    pub station: u32,
    /// The agents that called another role, the first one first.
    #[serde(default)]
    pub callers: Vec<Caller>,
    /// How many repairs there were since the ward was green.
    #[serde(default)]
    pub mendings: u32,
    /// How many conflicts of merges were repaired.
    #[serde(default)]
    pub conflicts: u32,
    /// How many follow-ups there were since the user last decided something.
    #[serde(default)]
    pub follow_ups: u32,
    /// How many new agents in a row continued the same work.
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

/// An agent that was assigned to a step.
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
    /// The number among the wards and merges of the step. It is part of the path of the output.
    pub number: u32,
    /// When the ward started. Older exports call this field `began`.
    #[serde(alias = "began")]
    pub started: Timestamp,
    pub ended: Option<Timestamp>,
    /// None while the ward runs. If there are many findings, only the first are kept.
    pub verdict: Option<Verdict>,
}

/// A report of an agent about its step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GivenSignal {
    pub at: Timestamp,
    pub agent: AgentId,
    pub role: String,
    /// Long texts are shortened.
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

/// The result of a ward.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Green,
    Red {
        findings: Vec<String>,
    },
    /// The ward was not run, because the step conflicts with what other steps did in the meantime.
    Conflict {
        files: Vec<String>,
    },
    /// The ward could not be run.
    Broken {
        why: String,
    },
}

impl Step {
    /// How many tries there were: the first one, one more for each red ward since the last green one, and one more for each conflict.
    pub fn tries(&self) -> u32 {
        1 + self.progress.mendings + self.progress.conflicts
    }

    pub fn status(&self) -> StepStatus {
        let called = !self.progress.callers.is_empty();
        match self.state {
            StepState::Pending => StepStatus::Pending,
            // A new plan has put another step before this one.
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

    /// The agent that works on the step now, or is parked.
    pub fn agent(&self) -> Option<AgentId> {
        match self.state {
            StepState::Running(SlotWork::Agent { agent, .. }) | StepState::Parked { agent, .. } => Some(agent),
            StepState::Pending
            | StepState::Queued(_)
            | StepState::Running(SlotWork::Ward(_) | SlotWork::Merge(_))
            | StepState::Asking(_)
            | StepState::Blocked
            | StepState::Failed { .. }
            | StepState::Complete { .. } => None,
        }
    }

    /// The ward or the merge that is running, with its number.
    pub(crate) fn chore(&self) -> Option<(u32, ChoreKind)> {
        match self.state {
            StepState::Running(SlotWork::Ward(number)) => Some((number, ChoreKind::Ward)),
            StepState::Running(SlotWork::Merge(number)) => Some((number, ChoreKind::Merge)),
            StepState::Running(SlotWork::Agent { .. })
            | StepState::Pending
            | StepState::Queued(_)
            | StepState::Asking(_)
            | StepState::Parked { .. }
            | StepState::Blocked
            | StepState::Failed { .. }
            | StepState::Complete { .. } => None,
        }
    }

    /// Whether no agent has worked on the step yet, so that a new plan may change or drop it.
    pub(crate) fn is_untouched(&self) -> bool {
        let fresh = matches!(self.state, StepState::Pending | StepState::Blocked | StepState::Queued(_));
        fresh && self.attempts == 0
    }

    pub(crate) fn ward_began(&mut self, at: Timestamp, number: u32) {
        self.wards.push(WardRun { number, started: at, ended: None, verdict: None }, KEPT_WARDS);
    }

    pub(crate) fn ward_ended(&mut self, at: Timestamp, number: u32, verdict: &Verdict) {
        if let Some(ward) = self.wards.last_mut().filter(|ward| ward.number == number) {
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
        self.signals.push(GivenSignal { at, agent, role: role.to_owned(), signal }, KEPT_WARDS);
    }

    pub(crate) fn note(&mut self, at: Timestamp, what: NoteKind) {
        self.notes.push(Note { at, what }, KEPT_NOTES);
    }
}
