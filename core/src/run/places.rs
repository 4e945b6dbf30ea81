//! Places limit how many agents have processes at the same time. The other agents wait for a place, in order.
//!
//! A run that is in its tool `wait` does nothing, and often waits for an agent below it. So it lends its place to one agent below it at a
//! time. Otherwise agents that fork and wait could take all places, and their children would never start. A borrowed place can be lent
//! again, up to [`MAX_LENDERS`] times. When the wait of a run is over, the run works again at once, at the same time as the run that has
//! borrowed its place. Then no run starts until fewer runs work than there are places. So the number of processes is limited even if agents
//! fork and wait without end: at most `MAX_LENDERS + 1` for each place.

use super::Run;
use crate::agent::ancestors;
use crate::{AgentId, World};
use std::collections::BTreeSet;

/// The tool with which an agent waits for others. In the meantime it does nothing, so its forks can use its slot and its place.
pub(crate) const WAIT_TOOL: &str = "wait";

/// How often a borrowed place can be lent again. Forks of forks that all wait for each other are rarely deeper. Deeper ones wait for a
/// place like all others.
pub const MAX_LENDERS: usize = 4;

/// The places of one machine.
#[derive(Debug)]
pub struct Places<'a> {
    world: &'a World,
    /// How many places are free.
    free: usize,
    /// How many more runs may work. A run in its tool `wait` does not count.
    may_work: usize,
    /// How many more processes are allowed.
    may_live: usize,
    /// The runs that could lend their places and have not.
    lenders: BTreeSet<AgentId>,
}

impl<'a> Places<'a> {
    /// The free places, if there are `places` in all and the agents in `held` have one each or have borrowed one.
    pub fn new(world: &'a World, places: usize, held: impl IntoIterator<Item = AgentId>) -> Self {
        let awaits_others = |agent: &AgentId| world.run(*agent).is_some_and(Run::awaits_others);
        let mut held: Vec<(usize, AgentId)> =
            held.into_iter().map(|agent| (ancestors(world, agent).count(), agent)).collect();
        let awaiting: BTreeSet<AgentId> = held.iter().map(|(_, agent)| *agent).filter(awaits_others).collect();
        let above = |agent: &AgentId| ancestors(world, *agent).filter(|it| awaiting.contains(it)).count();
        let lenders = awaiting.iter().copied().filter(|agent| above(agent) < MAX_LENDERS).collect();
        let may_work = places.saturating_sub(held.len() - awaiting.len());
        let may_live = places.saturating_mul(MAX_LENDERS + 1).saturating_sub(held.len());
        let mut it = Self { world, free: places, may_work, may_live, lenders };
        // The deepest agents first: each borrows from its nearest ancestor that lends.
        held.sort_unstable_by(|one, other| other.cmp(one));
        for (_, agent) in held {
            if !it.borrow(agent) {
                it.free = it.free.saturating_sub(1);
            }
        }
        it
    }

    /// Whether no run can start.
    pub fn are_taken(&self) -> bool {
        self.is_full() || (self.free == 0 && self.lenders.is_empty())
    }

    /// Gives an agent a place, if there is one. False if not.
    pub fn take(&mut self, agent: AgentId) -> bool {
        if self.is_full() {
            return false;
        }
        if !self.borrow(agent) {
            if self.free == 0 {
                return false;
            }
            self.free -= 1;
        }
        self.may_work -= 1;
        self.may_live -= 1;
        true
    }

    /// Whether the limit of working runs or of processes is reached.
    fn is_full(&self) -> bool {
        self.may_work == 0 || self.may_live == 0
    }

    fn borrow(&mut self, agent: AgentId) -> bool {
        let lender = ancestors(self.world, agent).find(|above| self.lenders.contains(above));
        lender.is_some_and(|lender| self.lenders.remove(&lender))
    }
}

impl Run {
    /// Whether the agent is in its tool `wait`, and so does nothing.
    pub fn awaits_others(&self) -> bool {
        self.attempt.waiting_call.is_some()
    }
}
