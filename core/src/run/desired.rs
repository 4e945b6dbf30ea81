//! The desired state of a run that is not over. The shell compares it with what is.

use super::{Conversation, Run, RunState};
use crate::EventId;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What should be so for a run that is not over.
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
    /// There is a process, and it gets told everything up to here; `last` when nothing will follow.
    Running { upto: Option<EventId>, last: bool },
    /// There is no process.
    Stopped,
}

impl Run {
    /// What the runner has to carry out.
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
