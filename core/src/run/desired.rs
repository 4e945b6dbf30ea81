//! The desired state of the process of a run that is not over. The runner compares it with reality.

use super::{Conversation, Run, RunState};
use crate::EventId;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The desired state of one run: which attempt, on which machine, with or without a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DesiredRun {
    pub run: u32,
    pub attempt: u32,
    pub host: Arc<str>,
    pub state: DesiredState,
    /// It is in its tool `wait`, and lends its place to an agent below it.
    pub lends_place: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DesiredState {
    /// There is a process. It is sent the deliveries and the decisions about permissions up to `upto`. With `last`, nothing will follow:
    /// its input is closed.
    Running { upto: Option<EventId>, last: bool },
    /// There is no process.
    Stopped,
}

impl Run {
    /// What the runner has to carry out. None while the run is parked or over.
    pub(crate) fn desired(&self, conversation: &Conversation) -> Option<DesiredRun> {
        let state = match self.state {
            RunState::Starting | RunState::Spawned { .. } | RunState::Running { .. } => {
                let upto = conversation.unheard.get_max().map(|delivery| delivery.id).max(self.attempt.last_decision());
                DesiredState::Running { upto, last: self.is_last(conversation) }
            }
            RunState::Stopping { .. } => DesiredState::Stopped,
            RunState::Parked { .. } | RunState::Ended { .. } => return None,
        };
        let (host, lends_place) = (self.spec.host.clone(), self.awaits_others());
        Some(DesiredRun { run: self.number, attempt: self.attempt.number, host, state, lends_place })
    }
}
