//! A step and everything that belongs to it, looked up once, and the events by which it moves on.

use super::{Brief, Charter, Course, Isolation, Next, Quest, Step, StepId};
use crate::ask::{About, StepTrouble};
use crate::roles::{Phase, WARD};
use crate::{AgentId, Event, QuestId, Refusal, World};

pub(super) struct At<'a> {
    pub world: &'a World,
    pub id: QuestId,
    pub quest: &'a Quest,
    pub charter: &'a Charter,
    pub step_id: &'a StepId,
    pub step: &'a Step,
}

impl<'a> At<'a> {
    pub fn find(world: &'a World, id: QuestId, step_id: &'a StepId) -> Option<Self> {
        let (quest, charter) = world.quest(id).zip(world.charter(id))?;
        let step = quest.step(step_id)?;
        Some(Self { world, id, quest, charter, step_id, step })
    }

    /// The same, in a quest that is not over.
    pub fn going(world: &'a World, id: QuestId, step_id: &'a StepId) -> Result<Self, Refusal> {
        super::going(world, id)?;
        Self::find(world, id, step_id).ok_or_else(|| Refusal::UnknownStep { quest: id, step: step_id.clone() })
    }

    pub fn course(&self) -> Course {
        self.step.course.clone()
    }

    /// The stations that it goes through.
    pub fn path(&self) -> &'a [String] {
        self.charter.table.path(self.step.phase)
    }

    pub fn is_ward(&self, station: u32) -> bool {
        self.path().get(station as usize).is_some_and(|station| station == WARD)
    }

    /// Whether it has a branch of its own.
    pub fn is_merged(&self) -> bool {
        self.step.phase == Phase::Work && self.charter.isolation != Isolation::None
    }

    /// Who worked on it last.
    pub fn last_hand(&self) -> Option<(AgentId, String)> {
        self.step.hands.last().map(|hand| (hand.agent, hand.role.clone()))
    }

    pub fn queued(&self, course: Course, next: Next) -> Event {
        Event::StepQueued { quest: self.id, step: self.step_id.clone(), next, course }
    }

    pub fn failed(&self, why: String, then: Next) -> Vec<Event> {
        vec![Event::StepFailed { quest: self.id, step: self.step_id.clone(), why, then }]
    }

    pub fn completed(&self) -> Event {
        Event::StepCompleted { quest: self.id, step: self.step_id.clone(), summary: self.step.summary.clone() }
    }

    /// It waits for a person, who is asked on behalf of an agent.
    pub fn asks(&self, course: Course, then: Next, agent: AgentId, trouble: StepTrouble, text: String) -> Vec<Event> {
        let waits = Event::StepWaits { quest: self.id, step: self.step_id.clone(), course, then };
        let about = About::Step { quest: self.id, trouble };
        vec![waits, Event::QuestionAsked { agent, about, text }]
    }

    /// What is to be done at a station. A ward that nobody named is passed by; after the last station the work is merged, and a plan
    /// may need a person's consent.
    pub fn arrive(&self, mut course: Course) -> Vec<Event> {
        while self.quest.ward.is_none() && self.is_ward(course.station) {
            course.station += 1;
        }
        if course.station as usize >= self.path().len() {
            // Whoever was to hand something in may have asked another role instead, and left.
            course.station = self.owed().unwrap_or(course.station);
        }
        match self.path().get(course.station as usize) {
            Some(station) if station == WARD => vec![self.queued(course, Next::Ward)],
            Some(role) => vec![self.queued(course, Next::Begin { role: role.clone(), brief: Brief::Begin })],
            None if self.is_merged() => vec![self.queued(course, Next::Merge)],
            None if self.step.phase == Phase::Plan && self.charter.approve_plan => self.asks_consent(course),
            None => vec![self.completed()],
        }
    }

    /// The station of whoever has yet to hand in what this step is for.
    fn owed(&self) -> Option<u32> {
        let table = &self.charter.table;
        let role = match self.step.phase {
            Phase::Requirements => Some(&table.requirer).filter(|_| self.quest.requirements.is_none()),
            Phase::Plan => Some(&table.planner).filter(|_| self.quest.plans.is_empty()),
            Phase::Work | Phase::Review => None,
        };
        let station = self.path().iter().position(|station| Some(station) == role)?;
        u32::try_from(station).ok()
    }

    fn asks_consent(&self, course: Course) -> Vec<Event> {
        let Some((agent, role)) = self.last_hand() else { return vec![self.completed()] };
        let text = format!(
            "The plan has {} steps: `hatchery quest show {}` shows them. Answer `yes` to carry it out, or say what to change.",
            self.quest.plans.len(),
            self.id
        );
        // Whatever comes after the last role looks at the changed plan, too.
        let station = self.path().iter().rposition(|station| station != WARD).unwrap_or_default();
        let course = Course { station: u32::try_from(station).unwrap_or(u32::MAX), ..course };
        self.asks(course, Next::Resume { agent, role }, agent, StepTrouble::Approval, text)
    }
}
