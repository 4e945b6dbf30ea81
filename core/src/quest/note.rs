//! What happened to a step, for people to read. A note contains data; the interfaces choose the words.

use super::{Brief, Merge, NextAction, Verdict};
use crate::roles::SignalKind;
use crate::{AgentId, Timestamp};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    pub at: Timestamp,
    pub what: NoteKind,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum NoteKind {
    /// A new agent of this role is next.
    RoleNext {
        role: String,
    },
    /// A new agent is to continue the work of the previous agent in this role.
    Continues {
        role: String,
    },
    /// A new agent of this role is to repair what the ward found.
    Mends {
        role: String,
        findings: u32,
    },
    /// A new agent of this role is to resolve conflicts.
    Reconciles {
        role: String,
        files: u32,
    },
    /// The role `from` has called this role.
    Called {
        role: String,
        from: String,
    },
    /// An agent is to continue its conversation.
    Resumes {
        role: String,
    },
    WardNext,
    MergeNext,
    /// A new agent has begun.
    Begun {
        role: String,
        agent: AgentId,
    },
    /// An agent has continued.
    Resumed {
        role: String,
        agent: AgentId,
    },
    Forked {
        parent: AgentId,
        agent: AgentId,
    },
    Signalled {
        role: String,
        signal: SignalKind,
    },
    SignalRefused {
        role: String,
        why: String,
    },
    WardGreen,
    WardRed {
        findings: u32,
    },
    /// The ward was not run, because the step conflicts with other steps.
    WardConflict {
        files: u32,
    },
    WardBroken {
        why: String,
    },
    /// The ward had changed or deleted these tracked files, and they were restored.
    WardRestored {
        files: Vec<String>,
    },
    /// `without` lists the by-products that were left out.
    Merged {
        without: Vec<String>,
    },
    NothingToMerge,
    MergeConflict {
        files: u32,
    },
    MergeBroken {
        why: String,
    },
    Asks,
    Parked {
        role: String,
    },
    Failed {
        why: String,
    },
    Completed,
}

impl NoteKind {
    pub(crate) fn of_next(next: &NextAction) -> Self {
        match next {
            NextAction::Begin { role, brief } => {
                let role = role.clone();
                match brief {
                    Brief::Begin => Self::RoleNext { role },
                    Brief::Continue { .. } => Self::Continues { role },
                    Brief::Mend { findings, .. } => Self::Mends { role, findings: count(findings) },
                    Brief::Reconcile { files } => Self::Reconciles { role, files: count(files) },
                    Brief::FollowUp { from, .. } => Self::Called { role, from: from.clone() },
                }
            }
            NextAction::Resume { role, .. } => Self::Resumes { role: role.clone() },
            NextAction::Ward => Self::WardNext,
            NextAction::Merge => Self::MergeNext,
        }
    }

    pub(crate) fn of_verdict(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Green => Self::WardGreen,
            Verdict::Red { findings } => Self::WardRed { findings: count(findings) },
            Verdict::Conflict { files } => Self::WardConflict { files: count(files) },
            Verdict::Broken { why } => Self::WardBroken { why: why.clone() },
        }
    }

    pub(crate) fn of_merge(merge: &Merge, left_out: &[String]) -> Self {
        match merge {
            Merge::Merged => Self::Merged { without: left_out.to_vec() },
            Merge::Empty => Self::NothingToMerge,
            Merge::Conflict { files } => Self::MergeConflict { files: count(files) },
            Merge::Broken { why } => Self::MergeBroken { why: why.clone() },
        }
    }
}

fn count<T>(items: &[T]) -> u32 {
    u32::try_from(items.len()).unwrap_or(u32::MAX)
}
