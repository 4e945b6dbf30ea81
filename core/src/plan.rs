//! What should be happening now. Level-triggered: the plan says what is wanted, not what just changed, so that a restart
//! needs no second path: fold the log, plan, reconcile.

use crate::quest::{Chore, StepId};
use crate::run::{DesiredRun, Run};
use crate::{AgentId, QuestId, SessionId, Timestamp, World};
use imbl::OrdMap;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Sessions whose end is recorded and has yet to be brought about.
    pub close: Vec<SessionId>,
    /// What should be so for the runs that are not over.
    pub runs: OrdMap<AgentId, DesiredRun>,
    /// Wards and merges that have not been reported.
    pub chores: OrdMap<(QuestId, StepId), Chore>,
    /// When something follows by itself, if nothing happens before.
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
