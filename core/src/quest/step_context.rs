//! A step with its quest and everything that belongs to it, found once; and the events with which the step moves on.

use super::{Isolation, NextAction, Quest, QuestSpec, Step, StepId, StepProgress};
use crate::ask::{About, StepTrouble};
use crate::event::{QuestionEvent, StepEvent};
use crate::roles::{Phase, WARD};
use crate::{AgentId, Event, QuestId, Refusal, World};

pub(super) struct StepContext<'a> {
    pub world: &'a World,
    pub id: QuestId,
    pub quest: &'a Quest,
    pub quest_spec: &'a QuestSpec,
    pub step_id: &'a StepId,
    pub step: &'a Step,
}

impl<'a> StepContext<'a> {
    /// The context of a step. None if the quest or the step does not exist.
    pub fn find(world: &'a World, id: QuestId, step_id: &'a StepId) -> Option<Self> {
        let (quest, quest_spec) = world.quest(id).zip(world.quest_spec(id))?;
        let step = quest.step(step_id)?;
        Some(Self { world, id, quest, quest_spec, step_id, step })
    }

    /// The context of a step of a quest that has not ended. Otherwise a refusal.
    pub fn going(world: &'a World, id: QuestId, step_id: &'a StepId) -> Result<Self, Refusal> {
        super::going(world, id)?;
        Self::find(world, id, step_id).ok_or_else(|| Refusal::UnknownStep { quest: id, step: step_id.clone() })
    }

    pub fn progress(&self) -> StepProgress {
        self.step.progress.clone()
    }

    /// Whether the step has a branch of its own, which must be merged.
    pub fn is_merged(&self) -> bool {
        self.step.phase == Phase::Work && self.quest_spec.isolation != Isolation::None
    }

    /// The last agent of the step, and its role.
    pub fn last_agent(&self) -> Option<(AgentId, String)> {
        self.step.agents.last().map(|it| (it.agent, it.role.clone()))
    }

    pub fn queued(&self, progress: StepProgress, next: NextAction) -> Event {
        Event::Step {
            quest: self.id,
            step: self.step_id.clone(),
            what: StepEvent::Queued { next, progress, consented: false },
        }
    }

    pub fn failed(&self, why: String, then: NextAction) -> Vec<Event> {
        vec![Event::Step { quest: self.id, step: self.step_id.clone(), what: StepEvent::Failed { why, then } }]
    }

    pub fn completed(&self) -> Event {
        Event::Step {
            quest: self.id,
            step: self.step_id.clone(),
            what: StepEvent::Completed { summary: self.step.summary.clone() },
        }
    }

    /// The step waits for the user's answer to a question in the name of an agent.
    pub fn asks(
        &self,
        progress: StepProgress,
        then: NextAction,
        agent: AgentId,
        trouble: StepTrouble,
        text: String,
    ) -> Vec<Event> {
        let waits =
            Event::Step { quest: self.id, step: self.step_id.clone(), what: StepEvent::Waits { progress, then } };
        let about = About::Step { quest: self.id, trouble };
        vec![waits, Event::Question { agent, what: QuestionEvent::Asked { about, text } }]
    }

    /// Asks the user about a step whose agents were denied tools and may have done nothing, even if they report success.
    pub fn asks_about_denials(&self, progress: StepProgress, evidence: &str) -> Vec<Event> {
        let Some((agent, role)) = self.last_agent() else { return vec![self.completed()] };
        let text = format!(
            "The agents of step `{}` were denied {} uses of tools, and {evidence}. Its last agent says: {} Allow more (`hatchery \
             permissions`) and answer `retry`, or answer with a message to the agent.",
            self.step_id,
            self.step.denied_since,
            super::words::sentence(&self.step.summary),
        );
        // If the agent does something now, the ward must check it.
        let station = self.path().iter().rposition(|station| station != WARD).unwrap_or_default();
        let station = u32::try_from(station).unwrap_or(u32::MAX);
        let progress = StepProgress { station, mendings: 0, ..progress };
        self.asks(progress, NextAction::Resume { agent, role }, agent, StepTrouble::Ended, text)
    }

    /// Asks the user to approve the plan that the last agent of this step has made or changed.
    pub fn asks_consent(&self, progress: StepProgress) -> Vec<Event> {
        let Some((agent, role)) = self.last_agent() else { return vec![self.completed()] };
        let (is_first, open) = (self.step.phase == Phase::Plan, self.quest.open);
        let plan = match is_first {
            true => format!("The plan has {} steps", self.quest.plans.len()),
            false => format!("The plan was changed for step `{}`, and {open} steps are left", self.step_id),
        };
        let text = format!(
            "{plan}: `hatchery quest show {}` shows them. Answer `yes` to carry it out, or say what to change.",
            self.id
        );
        // If the agent changes the plan again, the stations after the last role must see the change.
        let station = self.path().iter().rposition(|station| station != WARD).unwrap_or_default();
        let station = if is_first { u32::try_from(station).unwrap_or(u32::MAX) } else { progress.station };
        let progress = StepProgress { station, ..progress };
        self.asks(progress, NextAction::Resume { agent, role }, agent, StepTrouble::Approval, text)
    }
}
