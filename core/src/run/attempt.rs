//! An attempt: one process of a run, and what is known of it. The next attempt begins with [`Attempt::new`], so nothing of an
//! older process is left in it.

use crate::harness::Capabilities;
use crate::outcome::Outcome;
use crate::output::{Output, TurnResult};
use crate::permission::{Access, PendingPermission, PendingState, PermissionDecision};
use crate::usage::Meter;
use crate::{AgentId, EventId, Timestamp};
use imbl::Vector;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Counted from 1. Reports of an attempt with another number are refused.
    pub number: u32,
    /// It has to wait until fewer agents run.
    pub waits: bool,
    /// The last sign of life of the process.
    pub last_output: Timestamp,
    /// How much of the process's output is taken in, in bytes.
    pub spooled: u64,
    /// How many of the calls that it wrote down are taken in.
    pub calls: u64,
    /// Where the answers to the last of them are.
    pub answers: Vector<(u64, EventId)>,
    /// What the harness of the process can do.
    pub capabilities: Capabilities,
    /// Its conversation begins as a copy of another: so do the counts of what it used.
    pub copied: bool,
    pub readiness: Readiness,
    /// The process has heard something of what was to be said to it.
    pub heard: bool,
    /// A turn is under way.
    pub in_turn: bool,
    /// The call of its tool `wait` that has not been answered: it does nothing until others write to it or end.
    pub waiting_call: Option<String>,
    /// When its silence was reported, if it is silent.
    pub silent: Option<Timestamp>,
    /// What the process asks permission for, and has not received the answer to.
    pub permissions: Vector<PendingPermission>,
    pub budget: BudgetState,
    /// The signal that the process last spoke of in its own stream, as it was written.
    pub signal_heard: Option<String>,
    pub outcome: Outcome,
    /// What the process has reported before it showed its conversation.
    pub meter: Meter,
}

/// How far the process has come before something can be said to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Readiness {
    /// It has not shown yet that our tools answer it.
    Starting,
    /// It has yet to confirm the model that it was told to use. Nothing else is said to it before.
    ConfirmsModel,
    Ready,
}

/// How the process stands to the budgets that it is paid from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BudgetState {
    Within,
    /// A budget is used up: after this turn nothing more is begun.
    UsedUp {
        /// Its turn was interrupted for that, so there is more to do.
        cut_short: bool,
        /// How often it has asked the model since then.
        calls: u32,
    },
}

impl BudgetState {
    /// The budget is used up, in the middle of a turn or between two.
    pub(crate) fn use_up(&mut self, in_turn: bool) {
        let calls = self.calls_since();
        *self = Self::UsedUp { cut_short: in_turn, calls };
    }

    /// The process has asked the model once more.
    pub(crate) fn count_call(&mut self) {
        if let Self::UsedUp { calls, .. } = self {
            *calls += 1;
        }
    }

    /// Its turn ended in good order, so nothing was cut short.
    pub(crate) fn end_turn(&mut self) {
        if let Self::UsedUp { cut_short, .. } = self {
            *cut_short = false;
        }
    }

    pub(super) fn is_used_up(self) -> bool {
        matches!(self, Self::UsedUp { .. })
    }

    pub(super) fn is_cut_short(self) -> bool {
        matches!(self, Self::UsedUp { cut_short: true, .. })
    }

    pub(super) fn calls_since(self) -> u32 {
        match self {
            Self::Within => 0,
            Self::UsedUp { calls, .. } => calls,
        }
    }
}

impl Attempt {
    pub fn new(number: u32, now: Timestamp) -> Self {
        Self {
            number,
            waits: false,
            last_output: now,
            spooled: 0,
            calls: 0,
            answers: Vector::new(),
            capabilities: Capabilities::default(),
            copied: false,
            readiness: Readiness::Starting,
            heard: false,
            in_turn: false,
            waiting_call: None,
            silent: None,
            permissions: Vector::new(),
            budget: BudgetState::Within,
            signal_heard: None,
            outcome: Outcome::default(),
            meter: Meter::New,
        }
    }

    /// Since when the user has been asked for a permission.
    pub(super) fn asked_since(&self) -> Option<Timestamp> {
        let asked = self.permissions.iter().filter_map(|pending| match pending.state {
            PendingState::Asked { since, .. } => Some(since),
            PendingState::New | PendingState::Decided { .. } => None,
        });
        asked.min()
    }

    /// The last decision about a permission that the process has not received.
    pub(super) fn last_decision(&self) -> Option<EventId> {
        let decided = self.permissions.iter().filter_map(|pending| match pending.state {
            PendingState::Decided { at, .. } => Some(at),
            PendingState::New | PendingState::Asked { .. } => None,
        });
        decided.max()
    }

    /// Whether a permission was denied in this turn, and the user was asked for nothing after that.
    pub(super) fn denied_last(&self) -> bool {
        let (mut denied, mut asked) = (None, None);
        // A program does not give up because of a service that Hatchery does not offer.
        for pending in self.permissions.iter().filter(|pending| pending.request.access != Access::NotOffered) {
            match &pending.state {
                PendingState::Decided { at, decision: PermissionDecision::Deny { .. } } => {
                    denied = denied.max(Some(*at))
                }
                PendingState::Asked { question, .. } => asked = asked.max(Some(*question)),
                PendingState::New | PendingState::Decided { .. } => {}
            }
        }
        denied > asked
    }

    /// The process has shown that our tools answer it.
    pub fn has_started(&self) -> bool {
        self.readiness != Readiness::Starting
    }

    /// Nothing is to be confirmed any more.
    pub(crate) fn confirm_model(&mut self) {
        if self.readiness == Readiness::ConfirmsModel {
            self.readiness = Readiness::Ready;
        }
    }

    /// Whether its process had ended its turn in good order.
    pub(super) fn had_finished(&self) -> bool {
        matches!(self.outcome.last_turn(), Some(TurnResult::Ok | TurnResult::Interrupted))
    }

    /// A sign of life.
    pub(crate) fn alive(&mut self, ts: Timestamp) {
        self.last_output = self.last_output.max(ts);
        self.silent = None;
    }

    pub(crate) fn begin_turn(&mut self) {
        self.in_turn = true;
        // Whatever happens to it now happens in the middle of a turn.
        self.outcome.take(&Output::TurnStarted);
    }
}

/// Which process of which run of which agent is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AttemptId {
    pub agent: AgentId,
    pub run: u32,
    pub attempt: u32,
}

impl AttemptId {
    #[must_use]
    pub fn next(self) -> Self {
        Self { attempt: self.attempt + 1, ..self }
    }
}
