//! An attempt: one process of a run, and what is known of it. The next attempt begins with [`Attempt::new`], so it contains nothing of an
//! older process.

use crate::harness::Capabilities;
use crate::outcome::Outcome;
use crate::output::{Output, TurnResult};
use crate::permission::{Access, PendingPermission, PendingState, PermissionDecision};
use crate::usage::Meter;
use crate::{AgentId, EventId, Timestamp};
use imbl::Vector;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Counted from 1. Reports of an attempt with another number are refused.
    pub number: u32,
    /// The attempt waits for a place.
    pub waits: bool,
    /// The time of the process's last output or other sign of life.
    pub last_output: Timestamp,
    /// How many bytes of the process's output were read.
    pub spooled: u64,
    /// How many tool calls of the process were taken.
    pub calls: u64,
    /// The numbers of the last calls, and the events with their answers.
    pub answers: VecDeque<(u64, EventId)>,
    /// What the harness of the process can do.
    pub capabilities: Capabilities,
    /// The harness session began as a copy of another one, and so did its usage.
    pub copied: bool,
    pub readiness: Readiness,
    /// The process has confirmed a delivery.
    pub has_confirmed: bool,
    /// A turn is running.
    pub in_turn: bool,
    /// The open call of the tool `wait`. The process does nothing until another agent sends mail or ends.
    pub waiting_call: Option<String>,
    /// When the silence of the process was reported. None if the process is not silent.
    pub silent: Option<Timestamp>,
    /// The requests for permission whose answers the process has not received.
    pub permissions: Vector<PendingPermission>,
    pub budget: BudgetState,
    /// The last signal in the output of the process, as JSON text.
    pub signal_in_output: Option<String>,
    pub outcome: Outcome,
    /// The usage that the process reported before it opened its session.
    pub meter: Meter,
}

/// Whether the process is ready: its session is open, and Hatchery's tools answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Readiness {
    /// The process has not shown yet that Hatchery's tools answer.
    Starting,
    /// The process has not confirmed the requested model yet. No message is sent before that.
    ConfirmsModel,
    Ready,
}

/// Whether a budget is used up for the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BudgetState {
    Within,
    /// A budget is used up. No turn begins after this one.
    UsedUp {
        /// The turn was interrupted because of the budget, so its work is not complete.
        cut_short: bool,
        /// How many requests to the model the process has made since then.
        calls: u32,
    },
}

impl BudgetState {
    /// The budget is used up, during a turn (`in_turn`) or between two turns.
    pub(crate) fn use_up(&mut self, in_turn: bool) {
        let calls = self.calls_since();
        *self = Self::UsedUp { cut_short: in_turn, calls };
    }

    /// The process has made one more request to the model.
    pub(crate) fn count_call(&mut self) {
        if let Self::UsedUp { calls, .. } = self {
            *calls += 1;
        }
    }

    /// The turn ended successfully, so its work is complete.
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
            answers: VecDeque::new(),
            capabilities: Capabilities::default(),
            copied: false,
            readiness: Readiness::Starting,
            has_confirmed: false,
            in_turn: false,
            waiting_call: None,
            silent: None,
            permissions: Vector::new(),
            budget: BudgetState::Within,
            signal_in_output: None,
            outcome: Outcome::default(),
            meter: Meter::New,
        }
    }

    /// Since when the user has not answered a question about a permission.
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

    /// Whether a permission was denied in this turn, and no later request is a question to the user.
    pub(super) fn denied_last(&self) -> bool {
        let (mut denied, mut asked) = (None, None);
        // A request for something that Hatchery does not offer does not make a program give up.
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

    /// Whether the process has shown that Hatchery's tools answer.
    pub fn has_started(&self) -> bool {
        self.readiness != Readiness::Starting
    }

    /// The model is confirmed.
    pub(crate) fn confirm_model(&mut self) {
        if self.readiness == Readiness::ConfirmsModel {
            self.readiness = Readiness::Ready;
        }
    }

    /// Whether the process ended its last turn without a failure.
    pub(super) fn had_finished(&self) -> bool {
        matches!(self.outcome.last_turn(), Some(TurnResult::Ok | TurnResult::Interrupted))
    }

    /// The process has shown a sign of life.
    pub(crate) fn alive(&mut self, ts: Timestamp) {
        self.last_output = self.last_output.max(ts);
        self.silent = None;
    }

    pub(crate) fn begin_turn(&mut self) {
        self.in_turn = true;
        // A failure from here on is a failure in the middle of a turn.
        self.outcome.take(&Output::TurnStarted);
    }
}

/// The id of an attempt: agent, run and number.
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
