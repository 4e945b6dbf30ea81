//! What the user decides about a quest as a whole: create, pause, resume, abandon, set a budget.

use super::{
    GIVEN, NextAction, Quest, QuestSpec, QuestStart, QuestState, Step, StepId, StepState, human, plan, step_fork,
};
use crate::event::{QuestEvent, StepEvent};
use crate::run::{self, Run, StopWhy};
use crate::usage::Money;
use crate::{AgentId, Event, QuestId, Refusal, World};
use std::collections::BTreeMap;

/// Creates a quest. `start` contains the parts that are known or done already.
pub(crate) fn create(
    world: &World,
    quest: QuestId,
    quest_spec: &QuestSpec,
    budget: Option<Money>,
    start: &QuestStart,
) -> Result<Vec<Event>, Refusal> {
    if world.quest(quest).is_some() {
        return Err(Refusal::QuestExists(quest));
    }
    quest_spec.check()?;
    if world.root().is_none() {
        return Err(Refusal::NoRoot);
    }
    let QuestStart { hold, requirements, steps, complete } = start;
    if steps.is_empty() && quest_spec.table.paths.plan.is_empty() {
        return Err(Refusal::NoPlan(quest));
    }
    requirements.as_ref().map_or(Ok(()), plan::check_requirements)?;
    plan::check(steps, requirements.as_ref())?;
    plan::check_graph(&steps.iter().collect::<Vec<_>>())?;
    let known = |step: &StepId| step.is_reserved() || steps.iter().any(|plan| plan.id == *step);
    if let Some((step, _)) = complete.iter().find(|(step, _)| !known(step)) {
        return Err(Refusal::UnknownStep { quest, step: step.clone() });
    }
    let completed = |step: StepId, summary: String| Event::Step { quest, step, what: StepEvent::Completed { summary } };
    let mut events =
        vec![Event::Quest { quest, what: QuestEvent::Created { quest_spec: Box::new(quest_spec.clone()), budget } }];
    events.extend(hold.then_some(Event::Quest { quest, what: QuestEvent::Paused }));
    events.extend(
        requirements
            .iter()
            .map(|given| Event::Quest { quest, what: QuestEvent::RequirementsSet { requirements: given.clone() } }),
    );
    // Phases whose result was given with the quest are skipped.
    let is_clear = requirements.is_some() || !steps.is_empty();
    // A step that is listed twice was done once.
    let done: BTreeMap<&StepId, &String> = complete.iter().map(|(step, summary)| (step, summary)).collect();
    if is_clear && !quest_spec.table.paths.requirements.is_empty() {
        let summary = done.get(&StepId::requirements()).map_or_else(|| GIVEN.to_owned(), |summary| (*summary).clone());
        events.push(completed(StepId::requirements(), summary));
    }
    if !steps.is_empty() {
        let summary = done.get(&StepId::plan()).map(|summary| (*summary).clone());
        let what = QuestEvent::StepsPlanned { steps: steps.clone(), by: None, summary, needs_consent: false };
        events.push(Event::Quest { quest, what });
    }
    let said = |step: &StepId| done.get(step).map(|summary| completed(step.clone(), (*summary).clone()));
    events.extend(steps.iter().filter_map(|plan| said(&plan.id)));
    // A review counts only if all steps were complete when it was done.
    let all_done = !steps.is_empty() && steps.iter().all(|plan| done.contains_key(&plan.id));
    if all_done && !quest_spec.table.paths.review.is_empty() {
        events.extend(said(&StepId::review()));
    }
    Ok(events)
}

/// A quest that is not over.
pub(crate) fn going(world: &World, id: QuestId) -> Result<&Quest, Refusal> {
    let quest = world.quest(id).ok_or(Refusal::UnknownQuest(id))?;
    match quest.is_over() {
        true => Err(Refusal::QuestOver { quest: id, state: quest.state.word() }),
        false => Ok(quest),
    }
}

/// Pauses a quest: nothing new is started, and agents at work are stopped. They continue when the quest is resumed; nothing fails.
pub(crate) fn pause(world: &World, id: QuestId) -> Result<Vec<Event>, Refusal> {
    let quest = going(world, id)?;
    if quest.state == QuestState::Paused {
        return Err(Refusal::QuestPaused(id));
    }
    let stopped = stopped(world, quest, &StopWhy::Paused).chain(step_fork::stopped(world, quest, &StopWhy::Paused));
    Ok([Event::Quest { quest: id, what: QuestEvent::Paused }].into_iter().chain(stopped).collect())
}

pub(crate) fn resume(world: &World, id: QuestId) -> Result<Vec<Event>, Refusal> {
    let quest = going(world, id)?;
    match quest.state {
        // Agents that are parked because of a budget ask again.
        QuestState::Paused => {
            let asking = human::queue_unasked(world, id, quest);
            Ok([Event::Quest { quest: id, what: QuestEvent::Resumed }].into_iter().chain(asking).collect())
        }
        QuestState::Open | QuestState::Complete { .. } | QuestState::Abandoned { .. } => Err(Refusal::QuestOpen(id)),
    }
}

/// Ends a quest permanently, in its current state.
pub(crate) fn abandon(world: &World, id: QuestId) -> Result<Vec<Event>, Refusal> {
    let quest = going(world, id)?;
    let forks = step_fork::stopped(world, quest, &StopWhy::Abandoned);
    let stopped = stopped(world, quest, &StopWhy::Abandoned).chain(forks);
    Ok([Event::Quest { quest: id, what: QuestEvent::Abandoned }].into_iter().chain(stopped).collect())
}

/// Sets the budget of a quest. Agents that waited for the budget continue when there is a slot.
pub(crate) fn set_budget(world: &World, id: QuestId, limit: Option<Money>) -> Result<Vec<Event>, Refusal> {
    let quest = going(world, id)?;
    let affordable = limit.is_none_or(|limit| quest.spent.cost < limit);
    let set = Event::Quest { quest: id, what: QuestEvent::BudgetSet { limit } };
    let resumed = if affordable { human::queue_broke(world, id, quest) } else { Vec::new() };
    Ok([set].into_iter().chain(resumed).collect())
}

/// The events that stop the agents of a quest that are at work or parked. A pause leaves parked agents parked.
fn stopped<'a>(world: &'a World, quest: &'a Quest, why: &'a StopWhy) -> impl Iterator<Item = Event> + 'a {
    quest.steps.values().filter_map(move |step| hand(world, step)).flat_map(move |agent| {
        let parked = world.run(agent).is_some_and(Run::is_parked);
        let keeps = parked && matches!(why, StopWhy::Paused);
        let events = if keeps { Ok(Vec::new()) } else { run::stop(world, agent, why) };
        events.unwrap_or_default()
    })
}

/// The agent of a step whose run has not ended: it works, it is parked, or it was parked and waits for a slot.
fn hand(world: &World, step: &Step) -> Option<AgentId> {
    let StepState::Queued(NextAction::Resume { agent, .. }) = &step.state else { return step.agent() };
    Some(*agent).filter(|agent| world.run(*agent).is_some_and(Run::is_parked))
}
