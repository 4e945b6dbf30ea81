//! The plan: the desired state, computed from the world. The plan says what is wanted, not what has just changed. So a restart needs no
//! code of its own: read the log, plan, reconcile.

use crate::quest::{Chore, StepId};
use crate::run::{DesiredRun, Run};
use crate::{AgentId, QuestId, SessionId, Timestamp, World};
use imbl::OrdMap;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Sessions that are ending and have no agent with an open run any more.
    pub close: Vec<SessionId>,
    /// The desired state of every run that is not over.
    pub runs: OrdMap<AgentId, DesiredRun>,
    /// Wards and merges that have not been reported yet.
    pub chores: OrdMap<(QuestId, StepId), Chore>,
    /// The next deadline.
    pub wake_at: Option<Timestamp>,
}

pub fn plan(world: &World) -> Plan {
    let at_work = |agent: &AgentId| world.run(*agent).is_some_and(Run::is_open);
    let quiet = |session: &SessionId| world.session(*session).is_some_and(|it| !it.awake.iter().any(at_work));
    Plan {
        close: world.ending().filter(quiet).collect(),
        runs: world.desired_runs().clone(),
        chores: world.chores().clone(),
        wake_at: world.next_deadline().map(|(at, _)| at),
    }
}
