//! The stations of a step, and what is done at each.

use super::{Brief, NextAction, StepContext, StepProgress};
use crate::Event;
use crate::roles::{Phase, WARD};

impl<'a> StepContext<'a> {
    /// The stations of the step, in order.
    pub fn path(&self) -> &'a [String] {
        self.quest_spec.table.path(self.step.phase)
    }

    /// Whether a station is the ward.
    pub fn is_ward(&self, station: u32) -> bool {
        self.path().get(station as usize).is_some_and(|station| station == WARD)
    }

    /// The events with which the step begins the station `progress.station`. Without a ward, the ward's stations are skipped. After the
    /// last station the work is merged, or a plan is submitted for the user's approval.
    pub fn go_to_station(&self, mut progress: StepProgress) -> Vec<Event> {
        while self.quest.ward.is_none() && self.is_ward(progress.station) {
            progress.station += 1;
        }
        if progress.station as usize >= self.path().len() {
            // The role that had to submit something may have called another role instead, and ended.
            progress.station = self.owed().unwrap_or(progress.station);
        }
        match self.path().get(progress.station as usize) {
            Some(station) if station == WARD => vec![self.queued(progress, NextAction::Ward)],
            Some(role) => vec![self.queued(progress, NextAction::Begin { role: role.clone(), brief: Brief::Begin })],
            None if self.is_merged() => vec![self.queued(progress, NextAction::Merge)],
            None if self.step.phase == Phase::Plan && self.quest_spec.approve_plan => self.asks_consent(progress),
            None if self.step.phase == Phase::Work && self.step.denied_since > 0 => self.asks_about_denials(
                progress,
                "without a worktree it cannot be seen whether the step changed something",
            ),
            None => vec![self.completed()],
        }
    }

    /// The station of the role that still has to submit the result of this step.
    fn owed(&self) -> Option<u32> {
        let table = &self.quest_spec.table;
        let role = match self.step.phase {
            Phase::Requirements => Some(&table.requirer).filter(|_| self.quest.requirements.is_none()),
            Phase::Plan => Some(&table.planner).filter(|_| self.quest.plans.is_empty()),
            Phase::Work | Phase::Review => None,
        };
        let station = self.path().iter().position(|station| Some(station) == role)?;
        u32::try_from(station).ok()
    }
}
