//! The order of a quest's steps: dependencies, the queue and the slots. Updated with every change of a step.

use crate::EventId;
use crate::Timestamp;
use crate::quest::{Brief, NextAction, Quest, QuestSpec, QueuePosition, Step, StepId, StepState, mends, phase};
use crate::roles::Phase;
use imbl::{OrdMap, OrdSet};

impl Quest {
    /// Puts a step where it belongs after a change: into the queue, into a slot, or into neither.
    pub(super) fn list_step(&mut self, id: &StepId, at: EventId) {
        let Some(step) = self.steps.get(id) else { return };
        let works = matches!(step.state, StepState::Running(_));
        match (works, self.working.contains(id)) {
            (true, false) => drop(self.working.insert(id.clone())),
            (false, true) => drop(self.working.remove(id)),
            (true, true) | (false, false) => {}
        }
        // A new plan may have put other steps before one that was begun. But a plan that waits for approval has begun no steps, so the step
        // that made it need not wait for them.
        let free = step.waits_for == 0 || self.unapproved.contains(id);
        let queued = matches!(step.state, StepState::Queued(_)) && free;
        match (queued, self.positions.get(id)) {
            (true, None) => {
                let place =
                    QueuePosition { fresh: step.attempts == 0, since: at, number: step.number, step: id.clone() };
                self.positions.insert(id.clone(), place.clone());
                self.queue.insert(place);
            }
            (false, Some(_)) => {
                let place = self.positions.remove(id);
                place.and_then(|place| self.queue.remove(&place));
            }
            (true, Some(_)) | (false, None) => {}
        }
    }

    /// Queues every phase that can start now and has not started.
    pub(super) fn proceed(&mut self, quest_spec: &QuestSpec, at: EventId, ts: Timestamp) {
        let complete = |quest: &Self, id: &StepId| {
            quest.steps.get(id).is_some_and(|step| matches!(step.state, StepState::Complete { .. }))
        };
        let (requirements, plan, review) = (StepId::requirements(), StepId::plan(), StepId::review());
        self.enqueue_if_ready(&requirements, quest_spec, at, ts);
        if complete(self, &requirements) {
            self.enqueue_if_ready(&plan, quest_spec, at, ts);
        }
        if complete(self, &requirements) && complete(self, &plan) {
            for step in self.plans.keys().cloned().collect::<Vec<_>>() {
                self.enqueue_if_ready(&step, quest_spec, at, ts);
            }
            // Without a plan, there are no open steps either.
            if self.open == 0 && !self.plans.is_empty() {
                self.enqueue_if_ready(&review, quest_spec, at, ts);
            }
        }
    }

    /// Queues a step that has not begun and waits for no other step. A step with an empty path is complete at once.
    pub(super) fn enqueue_if_ready(&mut self, id: &StepId, quest_spec: &QuestSpec, at: EventId, ts: Timestamp) {
        let planned = |quest: &Self| {
            let plan = quest.steps.get(&StepId::plan());
            plan.is_some_and(|plan| matches!(plan.state, StepState::Complete { .. }))
        };
        let may = (planned(self) && self.unapproved.is_empty()) || phase(id) != Phase::Work;
        let spec_version = self.spec_version.clone();
        let Some(step) = self.step_mut(id).filter(|step| may && step.waits_for == 0) else { return };
        if step.state != StepState::Pending {
            return;
        }
        match quest_spec.table.path(step.phase).first() {
            Some(role) => {
                step.state = StepState::Queued(NextAction::Begin { role: role.clone(), brief: Brief::Begin });
                step.since = ts;
                self.list_step(id, at);
            }
            None => step.state = StepState::Complete { summary: String::new(), at: ts, spec_version },
        }
        if matches!(self.steps.get(id).map(|step| &step.state), Some(StepState::Complete { .. })) {
            self.proceed(quest_spec, at, ts);
        }
    }

    /// Blocks all steps that depend on a failed step and have not begun.
    pub(super) fn block(&mut self, failed: &StepId, ts: Timestamp) {
        let mut behind = self.dependents.get(failed).cloned().unwrap_or_default();
        let mut seen = OrdSet::new();
        while let Some(id) = behind.remove_min() {
            let Some(step) = self.step_mut(&id).filter(|step| step.state != StepState::Blocked) else { continue };
            if step.state == StepState::Pending {
                step.state = StepState::Blocked;
                step.since = ts;
            }
            if seen.insert(id.clone()).is_none() {
                behind.extend(self.dependents.get(&id).cloned().unwrap_or_default());
            }
        }
    }

    /// A failed step is retried: steps that were blocked only because of it become pending.
    pub(super) fn unblock(&mut self, quest_spec: &QuestSpec, at: EventId, ts: Timestamp) {
        self.block_anew(ts);
        self.proceed(quest_spec, at, ts);
    }

    /// Computes which steps are blocked, after a plan or a failed step has changed.
    pub(super) fn block_anew(&mut self, ts: Timestamp) {
        let failed = |step: &Step| matches!(step.state, StepState::Failed { .. });
        let failed: Vec<StepId> =
            self.steps.iter().filter(|(_, step)| failed(step)).map(|(id, _)| id.clone()).collect();
        for id in self.plans.keys().cloned().collect::<Vec<_>>() {
            if let Some(step) = self.step_mut(&id).filter(|step| step.state == StepState::Blocked) {
                step.state = StepState::Pending;
            }
        }
        for id in &failed {
            self.block(id, ts);
        }
    }

    /// The ward has changed. A retry of a step that failed because of the old ward begins with the new ward, not with the findings of the
    /// old one.
    pub(super) fn forget_findings(&mut self) {
        let by_ward = |step: &Step| matches!(&step.state, StepState::Failed { then, .. } if mends(then));
        let failed = self.steps.iter().filter(|(_, step)| by_ward(step)).map(|(id, _)| id.clone());
        for id in failed.collect::<Vec<_>>() {
            if let Some(StepState::Failed { then, .. }) = self.step_mut(&id).map(|step| &mut step.state) {
                *then = NextAction::Ward;
            }
        }
    }

    /// Computes the dependents of each step, and how many steps each one waits for.
    pub(super) fn link(&mut self, at: EventId) {
        self.dependents = OrdMap::new();
        let complete =
            |id: &StepId| self.steps.get(id).is_some_and(|step| matches!(step.state, StepState::Complete { .. }));
        let mut waits = Vec::with_capacity(self.plans.len());
        for (id, plan) in &self.plans {
            // A dependency that is listed twice counts once.
            let needs: OrdSet<&StepId> = plan.depends_on.iter().collect();
            waits.push((id.clone(), needs.iter().filter(|need| !complete(need)).count()));
            for need in needs {
                self.dependents.entry(need.clone()).or_default().insert(id.clone());
            }
        }
        // A review that has led to new steps continues when they are complete.
        let review = StepId::review();
        if self.steps.get(&review).is_some_and(|step| step.attempts > 0) {
            let open: Vec<StepId> = self.plans.keys().filter(|id| !complete(id)).cloned().collect();
            waits.push((review.clone(), open.len()));
            for id in open {
                self.dependents.entry(id).or_default().insert(review.clone());
            }
        }
        for (id, count) in waits {
            if let Some(step) = self.step_mut(&id) {
                step.waits_for = u32::try_from(count).unwrap_or(u32::MAX);
            }
            self.list_step(&id, at);
        }
    }

    /// Removes a step that the new plan does not contain.
    pub(super) fn forget(&mut self, id: &StepId) {
        self.plans.remove(id);
        self.working.remove(id);
        let place = self.positions.remove(id);
        place.and_then(|place| self.queue.remove(&place));
        if self.steps.remove(id).is_some() {
            self.open -= 1;
        }
    }
}
