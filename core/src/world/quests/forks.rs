//! How events change step forks.

use super::super::{Impossible, World};
use crate::agent::Lifecycle;
use crate::quest::{NoteKind, StepFork, StepForkState, StepId};
use crate::{AgentId, EventId, QuestId, Timestamp};
use std::sync::Arc;

impl World {
    #[expect(clippy::too_many_arguments, reason = "the parts of one event")]
    pub(super) fn step_forked(
        &mut self,
        at: EventId,
        ts: Timestamp,
        id: QuestId,
        step: &StepId,
        agent: AgentId,
        step_agent: AgentId,
        parent: AgentId,
    ) -> Result<(), Impossible> {
        let above =
            self.assignments.get(&parent).filter(|assignment| assignment.quest == id && assignment.step == *step);
        let above = above.ok_or(Impossible::Agent { at, agent: parent, why: "did not work for this step" })?;
        self.assignments.insert(agent, above.clone());
        self.change_quest(at, ts, id, |quest, _| {
            quest.step_mut(step).ok_or("had no such step")?.note(ts, NoteKind::Forked { parent, agent });
            quest.forked += 1;
            let state = StepForkState::Queued(at);
            let fork = StepFork { step: step.clone(), step_agent, parent, number: quest.forked, state };
            quest.forks.insert(agent, fork);
            Ok(())
        })
    }

    pub(super) fn fork_queued(
        &mut self,
        at: EventId,
        ts: Timestamp,
        id: QuestId,
        agent: AgentId,
    ) -> Result<(), Impossible> {
        self.change_quest(at, ts, id, |quest, _| {
            quest.forks.get_mut(&agent).ok_or("had no such fork")?.state = StepForkState::Queued(at);
            Ok(())
        })?;
        // The wait is over. Now the fork waits for a slot.
        self.end_of_park(agent);
        Ok(())
    }

    /// Updates the state of a fork after its run has changed, or after it was put to sleep without a run.
    pub(super) fn fork_changed(&mut self, id: QuestId, agent: AgentId) {
        let Some(fork) = self.quests.get(&id).and_then(|quest| quest.forks.get(&agent)) else { return };
        let (before, step_agent) = (fork.state, fork.step_agent);
        let lives = self.agent(agent).is_some_and(|it| matches!(it.lifecycle, Lifecycle::Alive { .. }));
        let after = match self.run(agent) {
            Some(run) => before.of(run),
            None => Some(before).filter(|_| lives),
        };
        if after == Some(before) {
            return;
        }
        if let Some(quest) = self.quests.get_mut(&id).map(Arc::make_mut) {
            match after {
                Some(after) => quest.forks.entry(agent).and_modify(|fork| fork.state = after),
                None => return self.fork_over(id, agent, step_agent),
            };
        }
        self.note_quest_to_schedule(id);
    }

    pub(super) fn fork_over(&mut self, id: QuestId, agent: AgentId, step_agent: AgentId) {
        if let Some(quest) = self.quests.get_mut(&id).map(Arc::make_mut) {
            quest.forks.remove(&agent);
        }
        self.note_quest_to_schedule(id);
        // The step may continue now.
        self.note_run_change(step_agent);
    }

    /// The run of a step's agent has ended, so its forks end.
    pub(super) fn stop_forks(&mut self, id: QuestId, step_agent: AgentId) {
        let forks = self.quests.get(&id).map(|quest| quest.forks.clone()).unwrap_or_default();
        for (agent, _) in forks.iter().filter(|(_, fork)| fork.step_agent == step_agent) {
            self.note_unwanted(*agent);
        }
    }
}
