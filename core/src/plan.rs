//! What should be happening now. Level-triggered: the plan says what is wanted, not what just changed, so that a restart
//! needs no second path: fold the log, plan, reconcile.

use crate::{SessionId, Timestamp, World};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Sessions whose end is recorded and has yet to be brought about.
    pub close: Vec<SessionId>,
    /// When something follows by itself, if nothing happens before.
    pub wake_at: Option<Timestamp>,
}

pub fn plan(world: &World) -> Plan {
    Plan { close: world.ending().collect(), wake_at: world.next_deadline().map(|(at, _)| at) }
}
