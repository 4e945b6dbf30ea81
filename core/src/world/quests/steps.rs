//! How events change the steps of a quest.

use super::super::{Impossible, World};
use crate::event::{Refused, StepEvent};
use crate::quest::{
    Assignment, ChoreKind, Merge, NextAction, NoteKind, Quest, SIGNAL_GRACE_MS, Signal, SlotWork, StepAgent, StepId,
    StepProgress, StepState, phase,
};
use crate::roles::Phase;
use crate::run::{AttemptId, RunState};
use crate::status::Json;
use crate::status::quest_events::{Happened, made};
use crate::{AgentId, EventId, QuestId, Timestamp};
use std::sync::Arc;

/// How many agents of a step are kept.
const KEPT_AGENTS: usize = 100;

impl World {
    pub(in crate::world) fn apply_step(
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
                // Before the step is queued, because it may have to wait for steps of the new plan.
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
            StepEvent::Forked { agent, step_agent, parent } => {
                self.step_forked(at, ts, id, step, *agent, *step_agent, *parent)
            }
            StepEvent::ForkQueued { agent } => self.fork_queued(at, ts, id, *agent),
            StepEvent::SignalGiven { of, signal } => self.signal_given(at, ts, id, step, *of, signal),
            StepEvent::WardBegun { number } => self.chore_begun(at, ts, id, step, *number, ChoreKind::Ward),
            StepEvent::MergeBegun { number } => self.chore_begun(at, ts, id, step, *number, ChoreKind::Merge),
            StepEvent::WardEnded { number, verdict, restored, .. } => {
                self.chore_ended(at, ts, id, step, &SlotWork::Ward(*number), NoteKind::of_verdict(verdict))?;
                self.change_step(at, ts, id, step, |it| {
                    it.ward_ended(ts, *number, verdict);
                    if !restored.is_empty() {
                        it.note(ts, NoteKind::WardRestored { files: restored.clone() });
                    }
                    Ok(())
                })
            }
            StepEvent::MergeEnded { number, merge, left_out } => {
                self.chore_ended(at, ts, id, step, &SlotWork::Merge(*number), NoteKind::of_merge(merge, left_out))?;
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

    /// The build events of an event that is about to be applied to a step.
    pub(in crate::world) fn build_events(&self, it: &Happened<'_>, event: &StepEvent) -> Vec<Json> {
        let quest = self.quests.get(&it.quest);
        let made = |quest: &Arc<Quest>| made(quest, it, event, |agent| self.assignments.contains_key(&agent));
        quest.map(made).unwrap_or_default()
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
            it.note(ts, NoteKind::of_next(next));
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
        let assignment = Arc::new(Assignment { quest: id, step: step.clone(), role: role.to_owned() });
        let fresh = self.assignments.insert(agent, assignment).is_none();
        self.change_step(at, ts, id, step, |it| {
            if !matches!(it.state, StepState::Queued(_)) {
                return Err("was not queued");
            }
            let role = role.to_owned();
            it.attempts += 1;
            // An agent that continues becomes the last one.
            it.agents.retain(|other| other.agent != agent);
            it.agents.push(StepAgent { agent, role: role.clone() }, KEPT_AGENTS);
            let by = role.clone();
            it.note(
                ts,
                match fresh {
                    true => NoteKind::Begun { role: by, agent },
                    false => NoteKind::Resumed { role: by, agent },
                },
            );
            it.state = StepState::Running(SlotWork::Agent { agent, role, signal: None, paused: false });
            Ok(())
        })?;
        self.change_quest(at, ts, id, |quest, _| {
            quest.agents += u32::from(fresh);
            Ok(())
        })
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
                ChoreKind::Ward => SlotWork::Ward(number),
                ChoreKind::Merge => SlotWork::Merge(number),
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
        work: &SlotWork,
        outcome: NoteKind,
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
            let StepState::Running(SlotWork::Agent { agent, role, signal, .. }) = &mut it.state else {
                return Err("had no agent");
            };
            if *agent != of.agent {
                return Err("had another agent");
            }
            *signal = Some(given.clone());
            let what = NoteKind::Signalled { role: role.clone(), signal: given.kind() };
            let role = role.clone();
            it.signalled(ts, of.agent, &role, given);
            if let Signal::Complete { summary } = given {
                it.summary.clone_from(summary);
            }
            it.note(ts, what);
            Ok(())
        })?;
        self.run_signalled(at, of)?;
        // A run that is being stopped needs no deadline.
        if self.runs.get(&of.agent).is_some_and(|run| !matches!(run.state, RunState::Stopping { .. })) {
            self.set_step_deadline(of.agent, ts.plus_ms(SIGNAL_GRACE_MS));
        }
        Ok(())
    }

    /// A signal of an agent was refused. The state of its step does not change.
    pub(in crate::world) fn signal_refused(
        &mut self,
        at: EventId,
        ts: Timestamp,
        of: AttemptId,
        refused: &Refused,
    ) -> Result<(), Impossible> {
        let Some(assignment) = self.assignments.get(&of.agent).cloned() else { return Ok(()) };
        let Assignment { quest, step, role } = &*assignment;
        // A new plan may have dropped the step in the meantime.
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
            it.note(ts, NoteKind::Asks);
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
            let StepState::Running(SlotWork::Agent { agent, role, .. }) = &it.state else { return Err("had no agent") };
            parked = Some(*agent);
            let (agent, role) = (*agent, role.clone());
            it.note(ts, NoteKind::Parked { role: role.clone() });
            it.state = StepState::Parked { agent, role, until };
            Ok(())
        })?;
        if let Some((agent, until)) = parked.zip(until) {
            self.set_step_deadline(agent, until);
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
            it.note(ts, NoteKind::Failed { why: why.to_owned() });
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
        // The version of the spec now. The document may name another version later.
        let spec_version = self.status.spec_version();
        self.change_step(at, ts, id, step, |it| {
            if matches!(it.state, StepState::Complete { .. }) {
                return Err("was complete");
            }
            it.state = StepState::Complete { summary: summary.to_owned(), at: ts, spec_version };
            it.progress = StepProgress::default();
            it.note(ts, NoteKind::Completed);
            Ok(())
        })?;
        self.change_quest(at, ts, id, |quest, quest_spec| {
            // Steps of the changed plan waited for the approval, which is no longer asked for.
            let unapproved = quest.unapproved.remove(step).is_some();
            quest.open -= u32::from(phase(step) == Phase::Work);
            for dependent in quest.dependents.get(step).cloned().unwrap_or_default() {
                if let Some(waiting) = quest.step_mut(&dependent) {
                    waiting.waits_for = waiting.waits_for.saturating_sub(1);
                }
                quest.enqueue_if_ready(&dependent, quest_spec, at, ts);
                quest.list_step(&dependent, at);
            }
            if phase(step) != Phase::Work || quest.open == 0 || unapproved {
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
        // The run of the agent no longer has any effect on the quest.
        if let Some(agent) = agent {
            self.clear_step_deadline(agent);
            self.note_run_change(agent);
        }
        Ok(())
    }

    /// Sets or removes the open question of a step.
    pub(in crate::world) fn step_question(&mut self, agent: AgentId, question: Option<EventId>) {
        let Some(assignment) = self.assignments.get(&agent) else { return };
        if let Some(step) =
            self.quests.get_mut(&assignment.quest).and_then(|quest| Arc::make_mut(quest).step_mut(&assignment.step))
        {
            step.question = question;
        }
    }

    /// An agent was denied the use of a tool.
    pub(in crate::world) fn tool_denied(&mut self, agent: AgentId) {
        let Some(assignment) = self.assignments.get(&agent) else { return };
        let step = self.quests.get_mut(&assignment.quest).map(Arc::make_mut);
        if let Some(step) = step.and_then(|quest| quest.step_mut(&assignment.step)) {
            step.denied += 1;
            step.denied_since += 1;
        }
    }
}
