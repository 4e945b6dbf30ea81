//! A person has a say: an answer about a step, another try, more money. And the time of what waits without one.

use super::chore::reconciling;
use super::{At, Brief, Course, Next, Quest, StepId, StepState, ward, words};
use crate::ask::StepTrouble;
use crate::run::{self, Run, StopWhy};
use crate::{AgentId, Event, MessageKind, QuestId, Refusal, World, agent, history};

/// A person has answered a question about a step. Without a refusal, the answer is none of those that it asks for.
pub(crate) fn answered(
    world: &World,
    id: QuestId,
    agent: AgentId,
    trouble: StepTrouble,
    answer: &str,
) -> Result<Vec<Event>, Option<Refusal>> {
    let errand = world.errand(agent).ok_or(Some(Refusal::NoErrand(agent)))?;
    let at = At::going(world, id, &errand.step).map_err(Some)?;
    let StepState::Asking(next) = &at.step.state else { return Err(None) };
    let course = Course { follow_ups: 0, ..at.course() };
    match (trouble, answer.trim()) {
        (StepTrouble::Approval, consent) if consent.eq_ignore_ascii_case("yes") => Ok(vec![at.completed()]),
        (StepTrouble::Ended | StepTrouble::Ward | StepTrouble::Merge, "retry") => {
            Ok(vec![at.queued(course, next.clone())])
        }
        (StepTrouble::Input | StepTrouble::Circle | StepTrouble::Ended | StepTrouble::Approval, _) => {
            let text = words::answer(answer);
            history::check_content(MessageKind::User, &text).map_err(Some)?;
            Ok(told(&at, course, next, text))
        }
        (StepTrouble::Ward, other) => {
            let command = other.strip_prefix("ward:").map(str::trim).ok_or(None)?;
            ward::changed(world, id, at.quest, command, None, Some(at.step_id)).map_err(Some)
        }
        (StepTrouble::Merge, _) => Err(None),
    }
}

/// An agent is told something, and goes on. If it is dead, whoever takes its place is told.
pub(super) fn told(at: &At<'_>, course: Course, next: &Next, text: String) -> Vec<Event> {
    match next {
        Next::Resume { agent, .. } if agent::living(at.world, *agent).is_ok() => {
            vec![history::said(*agent, MessageKind::User, text), at.queued(course, next.clone())]
        }
        Next::Resume { role, .. } => {
            let next = Next::Begin { role: role.clone(), brief: words::lost_hand(Some(&text)) };
            vec![at.queued(course, next)]
        }
        Next::Begin { .. } | Next::Ward | Next::Merge => vec![at.queued(course, next.clone())],
    }
}

/// A failed step is tried again.
pub(crate) fn retry(world: &World, id: QuestId, step_id: &StepId) -> Result<Vec<Event>, Refusal> {
    let at = At::going(world, id, step_id)?;
    let StepState::Failed { then, .. } = &at.step.state else {
        return Err(Refusal::StepNotFailed { step: step_id.clone(), status: at.step.status().word() });
    };
    // As many mendings as before, the one that it begins with among them.
    let course = Course { mendings: u32::from(at.step.course.mendings > 0), ..at.course() };
    let course = match then {
        Next::Begin { brief: Brief::Reconcile { .. }, .. } => reconciling(&at, Course { conflicts: 1, ..course }),
        // The ward is another one since, and perhaps there is none.
        Next::Ward => return Ok(at.arrive(Course { mendings: 0, ..course })),
        Next::Begin { .. } | Next::Resume { .. } | Next::Merge => course,
    };
    Ok(vec![at.queued(course, then.clone())])
}

/// Its time has come: a parked agent can go on, or one that has signalled has not left.
pub(crate) fn due(world: &World, agent: AgentId) -> Vec<Event> {
    match queue_parked(world, agent) {
        Some(queued) => vec![queued],
        None => run::stop(world, agent, &StopWhy::Signalled).unwrap_or_default(),
    }
}

/// The event by which a parked agent of a quest waits for a slot, instead of going on at once.
pub(crate) fn queue_parked(world: &World, agent: AgentId) -> Option<Event> {
    let errand = world.errand(agent)?;
    let at = At::find(world, errand.quest, &errand.step)?;
    parked(&at).filter(|(parked, _)| *parked == agent).map(|(_, next)| at.queued(at.course(), next))
}

/// The step of an agent that gets no more money has failed. Another try asks for it again.
pub(crate) fn out_of_money(world: &World, agent: AgentId) -> Option<Event> {
    let errand = world.errand(agent)?;
    let at = At::find(world, errand.quest, &errand.step)?;
    let (_, then) = parked(&at).filter(|(parked, _)| *parked == agent)?;
    let why = format!("the budget of its agent ({agent}) is used up, and a person gave no more");
    Some(Event::StepFailed { quest: at.id, step: at.step_id.clone(), why, then })
}

/// The events by which those of a quest wait for a slot whose agents wait for money.
pub(super) fn queue_broke(world: &World, id: QuestId, quest: &Quest) -> Vec<Event> {
    queue_those(world, id, quest, Run::is_broke)
}

/// The same for those who have asked nobody.
pub(super) fn queue_unasked(world: &World, id: QuestId, quest: &Quest) -> Vec<Event> {
    queue_those(world, id, quest, |run| run.is_broke() && run.question.is_none())
}

fn queue_those(world: &World, id: QuestId, quest: &Quest, is_meant: impl Fn(&Run) -> bool) -> Vec<Event> {
    let places = quest.steps.keys().filter_map(|step| At::find(world, id, step));
    let waiting = places.filter_map(|at| {
        let (_, next) = parked(&at).filter(|(agent, _)| world.run(*agent).is_some_and(&is_meant))?;
        Some(at.queued(at.course(), next))
    });
    waiting.collect()
}

/// The agent of a step that is parked, and what it does next.
fn parked(at: &At<'_>) -> Option<(AgentId, Next)> {
    let StepState::Parked { agent, role, .. } = &at.step.state else { return None };
    Some((*agent, Next::Resume { agent: *agent, role: role.clone() }))
}
