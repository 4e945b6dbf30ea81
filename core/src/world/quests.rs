//! How events change quests, and the indexes with which due events are found. [`steps`] has the events of steps, [`forks`] those of step
//! forks.

mod forks;
mod order;
mod steps;

use super::{Due, Impossible, World, set_member};
use crate::event::QuestEvent;
use crate::quest::{
    Chore, GIVEN, Quest, QuestSpec, QuestState, Requirements, SlotWork, Step, StepId, StepPlan, StepProgress,
    StepState, WardSpec, phase,
};
use crate::recent_list::RecentList;
use crate::roles::Phase;
use crate::run::Run;
use crate::usage::{Money, Usage};
use crate::{AgentId, EventId, QuestId, Timestamp};
use imbl::{OrdMap, OrdSet};
use std::sync::Arc;

impl World {
    pub(super) fn apply_quest(
        &mut self,
        at: EventId,
        ts: Timestamp,
        id: QuestId,
        what: &QuestEvent,
    ) -> Result<(), Impossible> {
        match what {
            QuestEvent::Created { quest_spec, budget } => self.quest_created(at, ts, id, quest_spec, *budget),
            QuestEvent::Paused => self.quest_state(at, ts, id, QuestState::Paused),
            QuestEvent::Resumed => self.quest_state(at, ts, id, QuestState::Open),
            QuestEvent::Abandoned => self.quest_state(at, ts, id, QuestState::Abandoned { at: ts }),
            QuestEvent::Completed => self.quest_state(at, ts, id, QuestState::Complete { at: ts }),
            QuestEvent::BudgetSet { limit } => self.quest_budget_set(at, ts, id, *limit),
            QuestEvent::WardChanged { command, limit_ms } => self.ward_changed(at, ts, id, command, *limit_ms),
            QuestEvent::WardRemoved => self.ward_removed(at, ts, id),
            QuestEvent::RequirementsSet { requirements } => self.requirements_set(at, ts, id, requirements),
            QuestEvent::StepsPlanned { steps, by, summary, needs_consent } => {
                let planner = by.filter(|_| *needs_consent).and_then(|by| self.assignments.get(&by)).cloned();
                if let Some(planner) = planner {
                    self.change_quest(at, ts, id, |quest, _| {
                        quest.unapproved.insert(planner.step.clone());
                        Ok(())
                    })?;
                }
                self.steps_planned(at, ts, id, steps, *by, summary.as_deref())
            }
        }
    }

    fn quest_created(
        &mut self,
        at: EventId,
        ts: Timestamp,
        id: QuestId,
        quest_spec: &QuestSpec,
        budget: Option<Money>,
    ) -> Result<(), Impossible> {
        if self.quests.contains_key(&id) {
            return Err(Impossible::Quest { at, quest: id, why: "existed already" });
        }
        let mut quest = Quest {
            state: QuestState::Open,
            requirements: None,
            ward: quest_spec.ward.clone(),
            plans: OrdMap::new(),
            steps: OrdMap::new(),
            dependents: OrdMap::new(),
            queue: OrdSet::new(),
            positions: OrdMap::new(),
            working: OrdSet::new(),
            forks: OrdMap::new(),
            forked: 0,
            open: 0,
            unapproved: OrdSet::new(),
            agents: 0,
            past_chores: OrdMap::new(),
            budget,
            spent: Usage::default(),
            spec_version: self.status.spec_version(),
            created: ts,
            changed: ts,
            version: at,
        };
        for (number, step) in [StepId::requirements(), StepId::plan(), StepId::review()].into_iter().enumerate() {
            quest.steps.insert(step.clone(), Arc::new(new_step(phase(&step), number, ts)));
        }
        self.quest_specs.insert(id, quest_spec.clone());
        self.quests.insert(id, Arc::new(quest));
        self.change_quest(at, ts, id, |quest, quest_spec| {
            quest.proceed(quest_spec, at, ts);
            Ok(())
        })
    }

    fn quest_state(&mut self, at: EventId, ts: Timestamp, id: QuestId, state: QuestState) -> Result<(), Impossible> {
        let (mut questions_to_withdraw, mut agents, mut forks) = (Vec::new(), Vec::new(), Vec::new());
        self.change_quest(at, ts, id, |quest, _| {
            if quest.is_over() {
                return Err("was over");
            }
            quest.state = state;
            for step in quest.working.clone() {
                if let Some(StepState::Running(SlotWork::Agent { paused, .. })) =
                    quest.step_mut(&step).map(|step| &mut step.state)
                {
                    *paused |= state == QuestState::Paused;
                }
            }
            if quest.is_over() {
                forks.extend(quest.forks.keys().copied());
                questions_to_withdraw.extend(quest.steps.values().filter_map(|step| step.question));
                agents.extend(quest.steps.values().filter_map(|step| step.agent()));
            }
            Ok(())
        })?;
        self.questions_to_withdraw.extend(questions_to_withdraw);
        for agent in agents {
            self.clear_step_deadline(agent);
            self.note_run_change(agent);
        }
        for agent in forks {
            self.note_unwanted(agent);
        }
        Ok(())
    }

    fn quest_budget_set(
        &mut self,
        at: EventId,
        ts: Timestamp,
        id: QuestId,
        limit: Option<Money>,
    ) -> Result<(), Impossible> {
        self.change_quest(at, ts, id, |quest, _| {
            quest.budget = limit;
            Ok(())
        })
    }

    fn ward_changed(
        &mut self,
        at: EventId,
        ts: Timestamp,
        id: QuestId,
        command: &str,
        limit_ms: Option<u64>,
    ) -> Result<(), Impossible> {
        self.change_quest(at, ts, id, |quest, _| {
            let limit_ms = limit_ms.or(quest.ward.as_ref().map(|ward| ward.limit_ms)).ok_or("had no ward")?;
            quest.ward = Some(WardSpec { command: command.to_owned(), limit_ms, guessed_from: None });
            quest.forget_findings();
            Ok(())
        })
    }

    fn ward_removed(&mut self, at: EventId, ts: Timestamp, id: QuestId) -> Result<(), Impossible> {
        self.change_quest(at, ts, id, |quest, _| {
            quest.ward.take().ok_or("had no ward")?;
            quest.forget_findings();
            Ok(())
        })
    }

    fn requirements_set(
        &mut self,
        at: EventId,
        ts: Timestamp,
        id: QuestId,
        requirements: &Requirements,
    ) -> Result<(), Impossible> {
        self.change_quest(at, ts, id, |quest, _| {
            quest.requirements = Some(requirements.clone());
            Ok(())
        })
    }

    /// The steps of a plan, or of a changed plan. Steps that an agent has worked on stay as they are.
    fn steps_planned(
        &mut self,
        at: EventId,
        ts: Timestamp,
        id: QuestId,
        steps: &[StepPlan],
        by: Option<AgentId>,
        summary: Option<&str>,
    ) -> Result<(), Impossible> {
        let own =
            by.and_then(|by| self.assignments.get(&by)).map_or_else(StepId::plan, |assignment| assignment.step.clone());
        let spec_version = self.status.spec_version();
        self.change_quest(at, ts, id, |quest, quest_spec| {
            quest.spec_version = spec_version;
            let listed = |id: &StepId| steps.iter().any(|plan| plan.id == *id);
            let (mut gone, mut left_out) = (Vec::new(), false);
            for (step, state) in quest.steps.iter().filter(|(_, state)| state.phase == Phase::Work) {
                match () {
                    () if *step == own => left_out = !listed(step),
                    () if state.is_untouched() => gone.push(step.clone()),
                    () => {}
                }
            }
            for step in &gone {
                quest.forget(step);
            }
            if let Some(step) = quest.step_mut(&own).filter(|step| step.phase == Phase::Work) {
                step.dropped = left_out;
                step.waits_for = 0;
                quest.plans.remove(&own);
            }
            let next = quest.steps.values().map(|step| step.number + 1).max().unwrap_or_default() as usize;
            for (number, plan) in steps.iter().enumerate() {
                let step = &plan.id;
                if *step != own && quest.steps.contains_key(step) {
                    continue;
                }
                quest.plans.insert(step.clone(), plan.clone());
                if !quest.steps.contains_key(step) {
                    let chores = quest.past_chores.get(step).copied().unwrap_or_default();
                    let new = Step { chores, ..new_step(Phase::Work, next + number, ts) };
                    quest.steps.insert(step.clone(), Arc::new(new));
                    quest.open += 1;
                }
            }
            // If the steps came with the quest, there is nothing to plan.
            if by.is_none() {
                let spec_version = quest.spec_version.clone();
                let plan = quest.step_mut(&StepId::plan()).ok_or("had no plan")?;
                let summary = summary.unwrap_or(GIVEN).to_owned();
                plan.state = StepState::Complete { summary, at: ts, spec_version };
                quest.list_step(&StepId::plan(), at);
            }
            quest.link(at);
            quest.block_anew(ts);
            quest.proceed(quest_spec, at, ts);
            Ok(())
        })
    }

    /// Replaces a part of the quest's usage: `after` is the new usage of an agent, `before` the one that was counted.
    pub(super) fn quest_spent(&mut self, agent: AgentId, before: Usage, after: Usage) {
        let Some(assignment) = self.assignments.get(&agent) else { return };
        if let Some(quest) = self.quests.get_mut(&assignment.quest) {
            let quest = Arc::make_mut(quest);
            quest.spent = quest.spent.replacing(before, after);
        }
    }

    /// Sets the time at which `settle` looks at the agent's step if nothing happens before.
    fn set_step_deadline(&mut self, agent: AgentId, at: Timestamp) {
        self.deadlines.insert((at, Due::Assignment(agent)));
        self.step_deadlines.insert(agent, at);
    }

    pub(super) fn clear_step_deadline(&mut self, agent: AgentId) {
        if let Some(due) = self.step_deadlines.remove(&agent) {
            self.deadlines.remove(&(due, Due::Assignment(agent)));
        }
    }

    /// Marks the agent for `settle` if its run has ended or parked. The end of a run waits until the agent's forks have ended, too, because
    /// they work in the same folder.
    pub(super) fn note_run_change(&mut self, agent: AgentId) {
        let Some(assignment) = self.assignments.get(&agent).cloned() else { return };
        self.fork_changed(assignment.quest, agent);
        let run = self.run(agent);
        let (ended, parked) = (run.is_some_and(|run| !run.is_open()), run.is_some_and(Run::is_parked));
        if !ended && !parked {
            return set_member(&mut self.unhandled_run_changes, agent, false);
        }
        if ended {
            // The agent has ended, so the deadline for its end does not matter any more.
            self.clear_step_deadline(agent);
            self.stop_forks(assignment.quest, agent);
        }
        let alone = !self.has_open_forks(assignment.quest, agent);
        let quest = self.quests.get(&assignment.quest).filter(|quest| !quest.is_over());
        let step = quest.and_then(|quest| quest.step(&assignment.step));
        let is_to_handle = step.is_some_and(|step| {
            let works = matches!(step.state, StepState::Running(_));
            step.agent() == Some(agent) && ((ended && alone) || (parked && works))
        });
        set_member(&mut self.unhandled_run_changes, agent, is_to_handle);
    }

    /// Updates whether the quest is in the index of quests in which events are due.
    pub(super) fn note_quest_to_schedule(&mut self, id: QuestId) {
        let Some((quest, quest_spec)) = self.quest(id).zip(self.quest_spec(id)) else { return };
        let forks = || !quest.forks.is_empty() && self.fork_to_begin(id).is_some();
        let follows = quest.is_done() || quest.can_begin(quest_spec) || forks();
        set_member(&mut self.quests_to_schedule, id, follows);
    }

    /// Changes one step, and updates the queue, the slots and the chores. This counts as the last change of the step, and clears the
    /// deadlines of its agents. So a deadline must be set after it.
    fn change_step(
        &mut self,
        at: EventId,
        ts: Timestamp,
        id: QuestId,
        step_id: &StepId,
        change: impl FnOnce(&mut Step) -> Result<(), &'static str>,
    ) -> Result<(), Impossible> {
        let mut agents = [None, None];
        let mut chore = None;
        self.change_quest(at, ts, id, |quest, quest_spec| {
            let step = quest.step_mut(step_id).ok_or("had no such step")?;
            agents[0] = step.agent();
            change(step)?;
            step.since = ts;
            agents[1] = step.agent();
            let host = || Arc::clone(&quest_spec.spec.host);
            chore = step.chore().map(|(number, what)| Chore { number, host: host(), what });
            quest.list_step(step_id, at);
            Ok(())
        })?;
        match chore {
            Some(chore) => drop(self.chores.insert((id, step_id.clone()), chore)),
            None if self.chores.is_empty() => {}
            None => drop(self.chores.remove(&(id, step_id.clone()))),
        }
        let [before, after] = agents;
        for agent in before.into_iter().chain(after.filter(|_| after != before)) {
            self.clear_step_deadline(agent);
            self.note_run_change(agent);
        }
        Ok(())
    }

    /// Changes a quest, and updates the indexes.
    fn change_quest(
        &mut self,
        at: EventId,
        ts: Timestamp,
        id: QuestId,
        change: impl FnOnce(&mut Quest, &QuestSpec) -> Result<(), &'static str>,
    ) -> Result<(), Impossible> {
        let impossible = |why| Impossible::Quest { at, quest: id, why };
        let (Some(quest), Some(quest_spec)) = (self.quests.get_mut(&id).map(Arc::make_mut), self.quest_specs.get(&id))
        else {
            return Err(impossible("did not exist"));
        };
        change(quest, quest_spec).map_err(impossible)?;
        quest.changed = quest.changed.max(ts);
        quest.version = at;
        set_member(&mut self.budgeted_quests, id, quest.budget.is_some() && !quest.is_over());
        if quest.is_over() {
            let of_it: Vec<_> = quest.working.iter().map(|step| (id, step.clone())).collect();
            for key in of_it {
                self.chores.remove(&key);
            }
        }
        self.note_quest_to_schedule(id);
        Ok(())
    }
}

fn new_step(phase: Phase, number: usize, ts: Timestamp) -> Step {
    Step {
        phase,
        number: u32::try_from(number).unwrap_or(u32::MAX),
        state: StepState::Pending,
        progress: StepProgress::default(),
        waits_for: 0,
        dropped: false,
        question: None,
        chores: 0,
        attempts: 0,
        agents: RecentList::default(),
        wards: RecentList::default(),
        signals: RecentList::default(),
        refused: None,
        denied: 0,
        denied_since: 0,
        has_work: false,
        summary: String::new(),
        since: ts,
        notes: RecentList::default(),
    }
}
