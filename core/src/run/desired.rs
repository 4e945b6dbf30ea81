//! The desired state of a run that has not ended. The runner compares it with the actual state.

use super::{Conversation, Run, RunState};
use crate::EventId;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The desired state of a run that has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DesiredRun {
    pub run: u32,
    pub attempt: u32,
    pub host: Arc<str>,
    pub state: DesiredState,
    /// The agent is in its tool `wait`, so its place can be lent to an agent below it.
    pub lends_place: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DesiredState {
    /// A process runs, and receives all deliveries and decisions up to `upto`. `last` says that nothing will follow.
    Running { upto: Option<EventId>, last: bool },
    /// No process runs.
    Stopped,
}

impl Run {
    /// The desired state. None if the runner has nothing to do.
    pub(crate) fn desired(&self, conversation: &Conversation) -> Option<DesiredRun> {
        let state = match self.state {
            RunState::Starting | RunState::Spawned { .. } | RunState::Running { .. } => {
                let upto = conversation.waiting.get_max().map(|delivery| delivery.id).max(self.attempt.last_decision());
                DesiredState::Running { upto, last: self.is_last(conversation) }
            }
            RunState::Stopping { .. } => DesiredState::Stopped,
            RunState::Parked { .. } | RunState::Ended { .. } => return None,
        };
        let (host, lends_place) = (self.spec.host.clone(), self.awaits_others());
        Some(DesiredRun { run: self.number, attempt: self.attempt.number, host, state, lends_place })
    }
}
