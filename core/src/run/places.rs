//! Places: only so many agents have processes at once. The others wait for a place, in order.
//!
//! A run that is in its tool `wait` does nothing, and often waits for an agent below it. So it lends its place to one agent below it
//! at a time; otherwise agents that fork and wait could take all places, and their children would never begin. A borrowed place can be
//! lent again, [`MAX_LENDERS`] times. A run whose wait is over works again at once, beside the one that has borrowed its place; then
//! no run begins until fewer runs work than there are places. So agents that fork and wait without end have a bounded number of processes,
//! too: never more than `MAX_LENDERS + 1` for each place.

use super::Run;
use crate::agent::ancestors;
use crate::{AgentId, World};
use std::collections::BTreeSet;

/// The tool in which an agent waits for others. Meanwhile it does nothing, so its slot and its place can be used by its forks.
pub(crate) const WAIT_TOOL: &str = "wait";

/// How often a place can be lent again. Forks of forks that wait for each other are rarely deeper. Deeper forks wait for a place like all
/// other runs.
pub const MAX_LENDERS: usize = 4;

/// The places of one machine.
#[derive(Debug)]
pub struct Places<'a> {
    world: &'a World,
    /// How many are not taken.
    free: usize,
    /// How many more may work: those that are not in their tool `wait`.
    may_work: usize,
    /// How many more may have a process.
    may_live: usize,
    /// The runs that could lend their places and have not.
    lenders: BTreeSet<AgentId>,
}

impl<'a> Places<'a> {
    /// What is left of so many places, when these agents have one each or have borrowed one.
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
        // The deepest first: each borrows from the nearest that lends.
        held.sort_unstable_by(|one, other| other.cmp(one));
        for (_, agent) in held {
            if !it.borrow(agent) {
                it.free = it.free.saturating_sub(1);
            }
        }
        it
    }

    /// Whether no run can begin.
    pub fn are_taken(&self) -> bool {
        self.is_full() || (self.free == 0 && self.lenders.is_empty())
    }

    /// Gives an agent a place, if there is one for it.
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

    /// Whether as many work or have processes as may.
    fn is_full(&self) -> bool {
        self.may_work == 0 || self.may_live == 0
    }

    fn borrow(&mut self, agent: AgentId) -> bool {
        let lender = ancestors(self.world, agent).find(|above| self.lenders.contains(above));
        lender.is_some_and(|lender| self.lenders.remove(&lender))
    }
}

impl Run {
    /// Whether it is in its tool `wait`, and so does nothing.
    pub fn awaits_others(&self) -> bool {
        self.attempt.waiting_call.is_some()
    }
}
