//! One step of a quest: where it is in its life, who works on it, and what is remembered of its past.
//!
//! A step holds a slot while it is running and at no other time. What it does next is in its [`NextAction`]; its position in its path and the
//! roles that wait for a follow-up are in its [`StepProgress`].

use super::{ChoreKind, Note, NoteKind, Signal};
use crate::recent_list::RecentList;
use crate::roles::Phase;
use crate::{AgentId, EventId, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How much of a step's past is kept at hand. The log has all of it.
const KEPT_NOTES: usize = 50;
/// How many wards and signals of a step are kept at hand.
const KEPT_WARDS: usize = 20;
/// How many findings of each of these wards.
const KEPT_FINDINGS: usize = 20;
/// How much of each text of these signals, in characters.
const KEPT_SIGNAL_CHARS: usize = 4_000;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    pub phase: Phase,
    /// Its place in the plan.
    pub number: u32,
    pub state: StepState,
    pub progress: StepProgress,
    /// How many steps that it depends on are not complete.
    pub waits_for: u32,
    /// The new plan does not have this step. The step is removed when the agent that made the plan is done.
    pub dropped: bool,
    /// The question to the human that is open about it.
    pub question: Option<EventId>,
    /// How many wards and merges were begun for it: each is known by its number.
    pub chores: u32,
    /// How often an agent was set to work on it, for the first time or again.
    pub attempts: u32,
    /// Who works or worked on it, in the order in which they worked last.
    pub agents: RecentList<StepAgent>,
    /// The last wards that were run for it.
    #[serde(default)]
    pub wards: RecentList<WardRun>,
    /// The last signals of its agents.
    #[serde(default)]
    pub signals: RecentList<GivenSignal>,
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
    pub notes: RecentList<Note>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepState {
    /// Waits for other steps.
    Pending,
    /// Waits for a slot.
    Queued(NextAction),
    /// Holds a slot.
    Running(SlotWork),
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
pub enum SlotWork {
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
    /// The agents that asked another role to act first, in order.
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

    /// The ward or the merge that it is at, by its number.
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

    /// Whether no agent has begun it yet, so that a new plan may change it or drop it.
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
