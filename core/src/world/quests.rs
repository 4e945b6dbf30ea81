//! How events change quests and their steps, and the indexes by which it is found what follows.

mod order;

use super::{Due, Impossible, World};
use crate::agent::Lifecycle;
use crate::event::{QuestEvent, Refused, StepEvent};
use crate::quest::{
    Assignment, Chore, ChoreKind, GIVEN, NextAction, Quest, QuestSpec, QuestState, Requirements, SIGNAL_GRACE_MS,
    Signal, Step, StepAgent, StepFork, StepForkState, StepId, StepPlan, StepProgress, StepState, WardSpec, Work, phase,
};
use crate::quest::{Brief, Merge, Verdict};
use crate::roles::Phase;
use crate::run::{AttemptId, RunState};
use crate::status::Json;
use crate::status::quest_events::{Happened, made};
use crate::usage::{Money, Usage};
use crate::{AgentId, EventId, QuestId, Timestamp};
use imbl::{OrdMap, OrdSet, Vector};
use std::sync::Arc;

/// How many of those who worked on a step are kept at hand.
const KEPT_HANDS: usize = 100;

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

    pub(super) fn apply_step(
        &mut self,
        at: EventId,
        ts: Timestamp,
        id: QuestId,
        step: &StepId,
        what: &StepEvent,
    ) -> Result<(), Impossible> {
        match what {
            StepEvent::Queued { next, progress, consented: false } => {
                self.step_queued(at, ts, id, step, next, progress)
            }
            StepEvent::Queued { next, progress, consented: true } => {
                // Before it is queued, because it may have to wait for steps of the new plan.
                self.change_quest(at, ts, id, |quest, _| {
                    quest.unapproved.remove(step);
                    Ok(())
                })?;
                self.step_queued(at, ts, id, step, next, progress)?;
                self.change_quest(at, ts, id, |quest, quest_spec| {
                    quest.proceed(quest_spec, at, ts);
                    Ok(())
                })
            }
            StepEvent::Begun { agent, role } => self.step_begun(at, ts, id, step, *agent, role),
            StepEvent::Forked { agent, root, parent } => self.step_forked(at, ts, id, step, *agent, *root, *parent),
            StepEvent::ForkQueued { agent } => self.fork_queued(at, ts, id, *agent),
            StepEvent::SignalGiven { of, signal } => self.signal_given(at, ts, id, step, *of, signal),
            StepEvent::WardBegun { number } => self.chore_begun(at, ts, id, step, *number, ChoreKind::Ward),
            StepEvent::MergeBegun { number } => self.chore_begun(at, ts, id, step, *number, ChoreKind::Merge),
            StepEvent::WardEnded { number, verdict, .. } => {
                self.chore_ended(at, ts, id, step, &Work::Ward(*number), ward_words(verdict))?;
                self.change_step(at, ts, id, step, |it| {
                    it.ward_ended(ts, *number, verdict);
                    Ok(())
                })
            }
            StepEvent::MergeEnded { number, merge, left_out } => {
                self.chore_ended(at, ts, id, step, &Work::Merge(*number), merge_words(merge, left_out))?;
                self.change_step(at, ts, id, step, |it| {
                    it.has_work |= *merge == Merge::Merged;
                    Ok(())
                })
            }
            StepEvent::Waits { progress, then } => self.step_waits(at, ts, id, step, progress, then),
            StepEvent::Parked { until } => self.step_parked(at, ts, id, step, *until),
            StepEvent::Failed { why, then } => self.step_failed(at, ts, id, step, why, then),
            StepEvent::Completed { summary } => self.step_completed(at, ts, id, step, summary),
            StepEvent::Dropped => self.step_dropped(at, ts, id, step),
        }
    }

    /// The build events that follow from something that is about to happen to a step.
    pub(super) fn build_events(&self, it: &Happened<'_>, event: &StepEvent) -> Vec<Json> {
        let quest = self.quests.get(&it.quest);
        let made = |quest: &Arc<Quest>| made(quest, it, event, |agent| self.assignments.contains_key(&agent));
        quest.map(made).unwrap_or_default()
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
                if let Some(StepState::Running(Work::Agent { recalled, .. })) =
                    quest.step_mut(&step).map(|step| &mut step.state)
                {
                    *recalled |= state == QuestState::Paused;
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
            self.let_go(agent);
            self.stir(agent);
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

    /// A plan, or another one: what was touched stays as it is.
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
        self.change_quest(at, ts, id, |quest, quest_spec| {
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
            // With steps from the start there is nothing to plan.
            if by.is_none() {
                let plan = quest.step_mut(&StepId::plan()).ok_or("had no plan")?;
                plan.state = StepState::Complete { summary: summary.unwrap_or(GIVEN).to_owned(), at: ts };
                quest.shelve(&StepId::plan(), at);
            }
            quest.link(at);
            quest.block_anew(ts);
            quest.proceed(quest_spec, at, ts);
            Ok(())
        })
    }

    fn step_queued(
        &mut self,
        at: EventId,
        ts: Timestamp,
        id: QuestId,
        step: &StepId,
        next: &NextAction,
        progress: &StepProgress,
    ) -> Result<(), Impossible> {
        let mut had_failed = false;
        self.change_step(at, ts, id, step, |it| {
            if matches!(it.state, StepState::Complete { .. }) {
                return Err("was complete");
            }
            had_failed = matches!(it.state, StepState::Failed { .. });
            it.state = StepState::Queued(next.clone());
            it.progress = progress.clone();
            it.note(ts, words(next));
            Ok(())
        })?;
        match had_failed {
            true => self.change_quest(at, ts, id, |quest, quest_spec| {
                quest.unblock(quest_spec, at, ts);
                Ok(())
            }),
            false => Ok(()),
        }
    }

    fn step_begun(
        &mut self,
        at: EventId,
        ts: Timestamp,
        id: QuestId,
        step: &StepId,
        agent: AgentId,
        role: &str,
    ) -> Result<(), Impossible> {
        let fresh = self
            .assignments
            .insert(agent, Arc::new(Assignment { quest: id, step: step.clone(), role: role.to_owned() }))
            .is_none();
        self.change_step(at, ts, id, step, |it| {
            if !matches!(it.state, StepState::Queued(_)) {
                return Err("was not queued");
            }
            let role = role.to_owned();
            it.attempts += 1;
            if fresh {
                it.agents.push_back(StepAgent { agent, role: role.clone() });
                if it.agents.len() > KEPT_HANDS {
                    it.agents.pop_front();
                }
            }
            it.note(ts, format!("{role} {} ({agent})", if fresh { "begins" } else { "goes on" }));
            it.state = StepState::Running(Work::Agent { agent, role, signal: None, recalled: false });
            Ok(())
        })?;
        self.change_quest(at, ts, id, |quest, _| {
            quest.agents += u32::from(fresh);
            Ok(())
        })
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one event")]
    fn step_forked(
        &mut self,
        at: EventId,
        ts: Timestamp,
        id: QuestId,
        step: &StepId,
        agent: AgentId,
        root: AgentId,
        parent: AgentId,
    ) -> Result<(), Impossible> {
        let above =
            self.assignments.get(&parent).filter(|assignment| assignment.quest == id && assignment.step == *step);
        let above = above.ok_or(Impossible::Agent { at, agent: parent, why: "did not work for this step" })?;
        self.assignments.insert(agent, above.clone());
        self.change_quest(at, ts, id, |quest, _| {
            quest.step_mut(step).ok_or("had no such step")?.note(ts, format!("{parent} forks {agent}"));
            quest.forked += 1;
            let state = StepForkState::Queued(at);
            let fork = StepFork { step: step.clone(), root, parent, number: quest.forked, state };
            quest.forks.insert(agent, fork);
            Ok(())
        })
    }

    fn fork_queued(&mut self, at: EventId, ts: Timestamp, id: QuestId, agent: AgentId) -> Result<(), Impossible> {
        self.change_quest(at, ts, id, |quest, _| {
            quest.forks.get_mut(&agent).ok_or("had no such fork")?.state = StepForkState::Queued(at);
            Ok(())
        })?;
        // Its time has come; now it waits for the slot.
        self.end_of_park(agent);
        Ok(())
    }

    /// The run of a fork has changed, or it has none and never will.
    fn fork_changed(&mut self, agent: AgentId) {
        let Some(id) = self.assignments.get(&agent).map(|assignment| assignment.quest) else { return };
        let Some(fork) = self.quests.get(&id).and_then(|quest| quest.forks.get(&agent)) else { return };
        let (before, root) = (fork.state, fork.root);
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
                None => return self.fork_over(id, agent, root),
            };
        }
        self.weigh_quest(id);
    }

    fn fork_over(&mut self, id: QuestId, agent: AgentId, root: AgentId) {
        if let Some(quest) = self.quests.get_mut(&id).map(Arc::make_mut) {
            quest.forks.remove(&agent);
        }
        self.weigh_quest(id);
        // The step may go on now.
        self.stir(root);
    }

    fn chore_begun(
        &mut self,
        at: EventId,
        ts: Timestamp,
        id: QuestId,
        step: &StepId,
        number: u32,
        what: ChoreKind,
    ) -> Result<(), Impossible> {
        self.change_step(at, ts, id, step, |it| {
            if number != it.chores + 1 || !matches!(it.state, StepState::Queued(_)) {
                return Err("was not queued for that");
            }
            it.chores = number;
            if what == ChoreKind::Ward {
                it.ward_began(ts, number);
            }
            it.state = StepState::Running(match what {
                ChoreKind::Ward => Work::Ward(number),
                ChoreKind::Merge => Work::Merge(number),
            });
            Ok(())
        })
    }

    fn chore_ended(
        &mut self,
        at: EventId,
        ts: Timestamp,
        id: QuestId,
        step: &StepId,
        work: &Work,
        outcome: String,
    ) -> Result<(), Impossible> {
        self.change_step(at, ts, id, step, |it| {
            if it.state != StepState::Running(work.clone()) {
                return Err("was not at that");
            }
            it.note(ts, outcome);
            Ok(())
        })
    }

    fn signal_given(
        &mut self,
        at: EventId,
        ts: Timestamp,
        id: QuestId,
        step: &StepId,
        of: AttemptId,
        given: &Signal,
    ) -> Result<(), Impossible> {
        self.change_step(at, ts, id, step, |it| {
            let StepState::Running(Work::Agent { agent, role, signal, .. }) = &mut it.state else {
                return Err("had no agent");
            };
            if *agent != of.agent {
                return Err("had another agent");
            }
            *signal = Some(given.clone());
            let what = format!("{role} signals {}", given.kind());
            let role = role.clone();
            it.signalled(ts, of.agent, &role, given);
            if let Signal::Complete { summary } = given {
                it.summary.clone_from(summary);
            }
            it.note(ts, what);
            Ok(())
        })?;
        self.run_signalled(at, of)?;
        // One that is being stopped leaves without being told again.
        if self.runs.get(&of.agent).is_some_and(|run| !matches!(run.state, RunState::Stopping { .. })) {
            self.remind(of.agent, ts.plus_ms(SIGNAL_GRACE_MS));
        }
        Ok(())
    }

    /// An agent has signalled something that does not count. Its step goes on as before.
    pub(super) fn signal_refused(
        &mut self,
        at: EventId,
        ts: Timestamp,
        of: AttemptId,
        refused: &Refused,
    ) -> Result<(), Impossible> {
        let Some(assignment) = self.assignments.get(&of.agent).cloned() else { return Ok(()) };
        let Assignment { quest, step, role } = &*assignment;
        // A plan may have dropped the step meanwhile.
        if self.quests.get(quest).is_none_or(|quest| quest.step(step).is_none()) {
            return Ok(());
        }
        self.change_quest(at, ts, *quest, |quest, _| {
            if let Some(it) = quest.step_mut(step) {
                it.signal_refused(ts, of.agent, role, &refused.message);
            }
            Ok(())
        })
    }

    fn step_waits(
        &mut self,
        at: EventId,
        ts: Timestamp,
        id: QuestId,
        step: &StepId,
        progress: &StepProgress,
        then: &NextAction,
    ) -> Result<(), Impossible> {
        self.change_step(at, ts, id, step, |it| {
            it.state = StepState::Asking(then.clone());
            it.progress = progress.clone();
            it.denied_since = 0;
            it.note(ts, "asks the human".into());
            Ok(())
        })
    }

    fn step_parked(
        &mut self,
        at: EventId,
        ts: Timestamp,
        id: QuestId,
        step: &StepId,
        until: Option<Timestamp>,
    ) -> Result<(), Impossible> {
        let mut parked = None;
        self.change_step(at, ts, id, step, |it| {
            let StepState::Running(Work::Agent { agent, role, .. }) = &it.state else { return Err("had no agent") };
            parked = Some(*agent);
            let (agent, role) = (*agent, role.clone());
            it.note(ts, format!("{role} is parked"));
            it.state = StepState::Parked { agent, role, until };
            Ok(())
        })?;
        if let Some((agent, until)) = parked.zip(until) {
            self.remind(agent, until);
        }
        Ok(())
    }

    fn step_failed(
        &mut self,
        at: EventId,
        ts: Timestamp,
        id: QuestId,
        step: &StepId,
        why: &str,
        then: &NextAction,
    ) -> Result<(), Impossible> {
        self.change_step(at, ts, id, step, |it| {
            it.state = StepState::Failed { why: why.to_owned(), then: then.clone() };
            it.note(ts, format!("failed: {why}"));
            Ok(())
        })?;
        self.change_quest(at, ts, id, |quest, _| {
            quest.block(step, ts);
            Ok(())
        })
    }

    fn step_completed(
        &mut self,
        at: EventId,
        ts: Timestamp,
        id: QuestId,
        step: &StepId,
        summary: &str,
    ) -> Result<(), Impossible> {
        self.change_step(at, ts, id, step, |it| {
            if matches!(it.state, StepState::Complete { .. }) {
                return Err("was complete");
            }
            it.state = StepState::Complete { summary: summary.to_owned(), at: ts };
            it.progress = StepProgress::default();
            it.note(ts, "complete".into());
            Ok(())
        })?;
        self.change_quest(at, ts, id, |quest, quest_spec| {
            quest.unapproved.remove(step);
            quest.open -= u32::from(phase(step) == Phase::Work);
            for dependent in quest.dependents.get(step).cloned().unwrap_or_default() {
                if let Some(waiting) = quest.step_mut(&dependent) {
                    waiting.waits_for = waiting.waits_for.saturating_sub(1);
                }
                quest.enqueue_if_ready(&dependent, quest_spec, at, ts);
                quest.shelve(&dependent, at);
            }
            if phase(step) != Phase::Work || quest.open == 0 {
                quest.proceed(quest_spec, at, ts);
            }
            Ok(())
        })
    }

    fn step_dropped(&mut self, at: EventId, ts: Timestamp, id: QuestId, step: &StepId) -> Result<(), Impossible> {
        let mut agent = None;
        self.change_quest(at, ts, id, |quest, quest_spec| {
            let dropped = quest.step(step).ok_or("had no such step")?;
            agent = dropped.agent();
            let chores = dropped.chores;
            if chores > 0 {
                quest.past_chores.insert(step.clone(), chores);
            }
            quest.unapproved.remove(step);
            quest.forget(step);
            quest.link(at);
            quest.block_anew(ts);
            quest.proceed(quest_spec, at, ts);
            Ok(())
        })?;
        // Nothing follows any more from how its run is.
        if let Some(agent) = agent {
            self.let_go(agent);
            self.stir(agent);
        }
        Ok(())
    }

    /// A question about a step is open, or not any more.
    pub(super) fn step_question(&mut self, agent: AgentId, question: Option<EventId>) {
        let Some(assignment) = self.assignments.get(&agent) else { return };
        if let Some(step) =
            self.quests.get_mut(&assignment.quest).and_then(|quest| Arc::make_mut(quest).step_mut(&assignment.step))
        {
            step.question = question;
        }
    }

    /// An agent was denied the use of a tool.
    pub(super) fn tool_denied(&mut self, agent: AgentId) {
        let Some(assignment) = self.assignments.get(&agent) else { return };
        let step = self.quests.get_mut(&assignment.quest).map(Arc::make_mut);
        if let Some(step) = step.and_then(|quest| quest.step_mut(&assignment.step)) {
            step.denied += 1;
            step.denied_since += 1;
        }
    }

    /// What an agent of a quest has used, in place of what was counted before.
    pub(super) fn quest_spent(&mut self, agent: AgentId, before: Usage, after: Usage) {
        let Some(assignment) = self.assignments.get(&agent) else { return };
        if let Some(quest) = self.quests.get_mut(&assignment.quest) {
            let quest = Arc::make_mut(quest);
            quest.spent = quest.spent.replacing(before, after);
        }
    }

    /// Its step has to be looked at then, if nothing happens before.
    fn remind(&mut self, agent: AgentId, at: Timestamp) {
        self.deadlines.insert((at, Due::Assignment(agent)));
        self.grace.insert(agent, at);
    }

    pub(super) fn let_go(&mut self, agent: AgentId) {
        if let Some(due) = self.grace.remove(&agent) {
            self.deadlines.remove(&(due, Due::Assignment(agent)));
        }
    }

    /// Whether something follows for its step from how the run of an agent is now. What follows from its end has to wait for the ends of its
    /// forks, because they work in the same folder.
    pub(super) fn stir(&mut self, agent: AgentId) {
        self.fork_changed(agent);
        let Some(assignment) = self.assignments.get(&agent).cloned() else { return };
        if self.run(agent).is_some_and(|run| !run.is_open()) {
            // It has left, so nobody need wait for that any more.
            self.let_go(agent);
            self.stop_forks(assignment.quest, agent);
        }
        let alone = !self.has_open_forks(assignment.quest, agent);
        let quest = self.quests.get(&assignment.quest).filter(|quest| !quest.is_over());
        let step = quest.and_then(|quest| quest.step(&assignment.step));
        let run = self.run(agent);
        let (ended, parked) = (run.is_some_and(|run| !run.is_open()), run.is_some_and(|run| run.is_parked()));
        let stirs = |step: &Step| {
            let works = matches!(step.state, StepState::Running(_));
            step.agent() == Some(agent) && ((ended && alone) || (parked && works))
        };
        match step.is_some_and(stirs) {
            true => self.unhandled_run_changes.insert(agent),
            false => self.unhandled_run_changes.remove(&agent),
        };
    }

    /// The run of a step's agent is over: so are its forks.
    fn stop_forks(&mut self, id: QuestId, root: AgentId) {
        let forks = self.quests.get(&id).map(|quest| quest.forks.clone()).unwrap_or_default();
        for (agent, _) in forks.iter().filter(|(_, fork)| fork.root == root) {
            self.note_unwanted(*agent);
        }
    }

    /// Keeps the place of a quest among those of which something follows.
    pub(super) fn weigh_quest(&mut self, id: QuestId) {
        let Some((quest, quest_spec)) = self.quest(id).zip(self.quest_spec(id)) else { return };
        let follows = quest.is_done() || quest.can_begin(quest_spec) || self.fork_to_begin(id).is_some();
        match follows {
            true => self.quests_to_schedule.insert(id),
            false => self.quests_to_schedule.remove(&id),
        };
    }

    /// Changes one step, and keeps its place in the queue, in the slots and among the chores.
    fn change_step(
        &mut self,
        at: EventId,
        ts: Timestamp,
        id: QuestId,
        step_id: &StepId,
        change: impl FnOnce(&mut Step) -> Result<(), &'static str>,
    ) -> Result<(), Impossible> {
        let host = self.quest_specs.get(&id).map(|quest_spec| quest_spec.spec.host.clone()).unwrap_or_default();
        let mut agents = [None, None];
        let mut chore = None;
        self.change_quest(at, ts, id, |quest, _| {
            let step = quest.step_mut(step_id).ok_or("had no such step")?;
            agents[0] = step.agent();
            change(step)?;
            step.since = ts;
            agents[1] = step.agent();
            chore = step.chore();
            quest.shelve(step_id, at);
            Ok(())
        })?;
        let key = (id, step_id.clone());
        match chore {
            Some((number, what)) => self.chores.insert(key, Chore { number, host, what }),
            None => self.chores.remove(&key),
        };
        for agent in agents.into_iter().flatten() {
            self.let_go(agent);
            self.stir(agent);
        }
        Ok(())
    }

    /// Changes a quest, and keeps its place among those of which something follows.
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
        match quest.budget.is_some() && !quest.is_over() {
            true => self.budgeted_quests.insert(id),
            false => self.budgeted_quests.remove(&id),
        };
        if quest.is_over() {
            let of_it: Vec<_> = quest.working.iter().map(|step| (id, step.clone())).collect();
            for key in of_it {
                self.chores.remove(&key);
            }
        }
        self.weigh_quest(id);
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
        agents: Vector::new(),
        wards: Vector::new(),
        signals: Vector::new(),
        refused: None,
        denied: 0,
        denied_since: 0,
        has_work: false,
        summary: String::new(),
        since: ts,
        notes: Vector::new(),
    }
}

/// What was decided about a step, in a few words.
fn words(next: &NextAction) -> String {
    match next {
        NextAction::Begin { role, brief } => match brief {
            Brief::Begin => format!("{role} is next"),
            Brief::Continue { .. } => format!("a fresh {role} goes on"),
            Brief::Mend { findings, .. } => format!("{role} mends {} findings", findings.len()),
            Brief::Reconcile { files } => format!("{role} reconciles {} files", files.len()),
            Brief::FollowUp { from, .. } => format!("{from} asks for {role}"),
        },
        NextAction::Resume { role, .. } => format!("{role} is to go on"),
        NextAction::Ward => "the ward is next".into(),
        NextAction::Merge => "to be merged".into(),
    }
}

/// A verdict in a word.
fn ward_words(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Green => "the ward is green".into(),
        Verdict::Red { findings } => format!("the ward is red: {} findings", findings.len()),
        Verdict::Conflict { files } => format!("the ward was not run: conflicts in {} files", files.len()),
        Verdict::Broken { why } => format!("the ward is broken: {why}"),
    }
}

/// What became of a merge, in a few words.
fn merge_words(merge: &Merge, left_out: &[String]) -> String {
    match merge {
        Merge::Merged if left_out.is_empty() => "merged".into(),
        Merge::Merged => format!("merged, without by-products: {}", left_out.join(", ")),
        Merge::Empty => "nothing to merge".into(),
        Merge::Conflict { files } => format!("conflicts in {} files", files.len()),
        Merge::Broken { why } => format!("could not be merged: {why}"),
    }
}
