//! The deadlines of steps.

use super::human::queue_parked;
use crate::run::{self, StopWhy};
use crate::{AgentId, Event, World};

/// The deadline of a step has passed. A parked agent is queued, so that it continues. An agent that has signalled and still runs is
/// stopped.
pub(crate) fn due(world: &World, agent: AgentId) -> Vec<Event> {
    match queue_parked(world, agent) {
        Some(queued) => vec![queued],
        None => run::stop(world, agent, &StopWhy::Signalled).unwrap_or_default(),
    }
}
