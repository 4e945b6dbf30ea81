//! What the user decides about steps: an answer, a retry, a higher budget.

use super::chore::reconciling;
use super::follow::consented;
use super::{Brief, NextAction, Quest, StepContext, StepId, StepProgress, StepState, step_fork, ward, words};
use crate::ask::StepTrouble;
use crate::event::StepEvent;
use crate::roles::Phase;
use crate::run::Run;
use crate::{AgentId, Event, MessageKind, QuestId, Refusal, World, agent, history};

/// The user has answered a question about a step. An error without a refusal says that the question does not accept this answer.
pub(crate) fn answered(
    world: &World,
    id: QuestId,
    agent: AgentId,
    trouble: StepTrouble,
    answer: &str,
) -> Result<Vec<Event>, Option<Refusal>> {
    let assignment = world.assignment(agent).ok_or(Some(Refusal::NoAssignment(agent)))?;
    let at = StepContext::going(world, id, &assignment.step).map_err(Some)?;
    let StepState::Asking(next) = &at.step.state else { return Err(None) };
    let progress = StepProgress { follow_ups: 0, ..at.progress() };
    match (trouble, answer.trim()) {
        (StepTrouble::Approval, consent) if consent.eq_ignore_ascii_case("yes") => match at.step.phase {
            Phase::Plan => Ok(vec![at.completed()]),
            Phase::Requirements | Phase::Work | Phase::Review => Ok(consented(&at)),
        },
        (StepTrouble::Ended | StepTrouble::Ward | StepTrouble::Merge, "retry") => {
            Ok(vec![at.queued(progress, next.clone())])
        }
        (StepTrouble::Input | StepTrouble::Circle | StepTrouble::Ended | StepTrouble::Approval, _) => {
            let text = words::answer(answer);
            history::check_content(MessageKind::User, &text).map_err(Some)?;
            Ok(told(&at, progress, next, text))
        }
        (StepTrouble::Ward, other) => {
            let command = other.strip_prefix("ward:").map(str::trim).ok_or(None)?;
            ward::changed(world, id, at.quest, command, None, Some(at.step_id)).map_err(Some)
        }
        (StepTrouble::Merge, _) => Err(None),
    }
}

/// Sends text to an agent, which then continues. If the agent is dead, the agent that takes its place gets the text.
pub(super) fn told(at: &StepContext<'_>, progress: StepProgress, next: &NextAction, text: String) -> Vec<Event> {
    match next {
        NextAction::Resume { agent, .. } if agent::living(at.world, *agent).is_ok() => {
            vec![history::said(*agent, MessageKind::User, text), at.queued(progress, next.clone())]
        }
        NextAction::Resume { role, .. } => {
            let next = NextAction::Begin { role: role.clone(), brief: words::replacement_brief(Some(&text)) };
            vec![at.queued(progress, next)]
        }
        NextAction::Begin { .. } | NextAction::Ward | NextAction::Merge => vec![at.queued(progress, next.clone())],
    }
}

/// Retries a failed step. With `fresh`, a new agent works on it, which does not know the conversation of the previous one.
pub(crate) fn retry(world: &World, id: QuestId, step_id: &StepId, fresh: bool) -> Result<Vec<Event>, Refusal> {
    let at = StepContext::going(world, id, step_id)?;
    let StepState::Failed { then, .. } = &at.step.state else {
        return Err(Refusal::StepNotFailed { step: step_id.clone(), status: at.step.status().word() });
    };
    // The retry gets all repairs again. If it begins with a repair, that one is counted.
    let progress = StepProgress { mendings: u32::from(at.step.progress.mendings > 0), ..at.progress() };
    let progress = match then {
        // A conflict that a merge found goes back to the last ward. A conflict that a ward found stays at that ward.
        NextAction::Begin { brief: Brief::Reconcile { .. }, .. } if progress.conflicts > 0 => {
            reconciling(&at, StepProgress { conflicts: 1, ..progress })
        }
        // The quest may have another ward by now, or none.
        NextAction::Ward => return Ok(at.go_to_station(StepProgress { mendings: 0, ..progress })),
        NextAction::Begin { .. } | NextAction::Resume { .. } | NextAction::Merge => progress,
    };
    let next = match then {
        NextAction::Resume { role, .. } if fresh => {
            NextAction::Begin { role: role.clone(), brief: words::replacement_brief(None) }
        }
        NextAction::Resume { .. } | NextAction::Begin { .. } | NextAction::Ward | NextAction::Merge => then.clone(),
    };
    Ok(vec![at.queued(progress, next)])
}

/// The event that queues the parked agent of a step for a slot, instead of continuing it at once.
pub(crate) fn queue_parked(world: &World, agent: AgentId) -> Option<Event> {
    let assignment = world.assignment(agent)?;
    let at = StepContext::find(world, assignment.quest, &assignment.step)?;
    parked(&at).filter(|(parked, _)| *parked == agent).map(|(_, next)| at.queued(at.progress(), next))
}

/// The step of an agent that gets no more budget fails. A retry asks for a budget again.
pub(crate) fn out_of_money(world: &World, agent: AgentId) -> Option<Event> {
    let assignment = world.assignment(agent)?;
    let at = StepContext::find(world, assignment.quest, &assignment.step)?;
    let (_, then) = parked(&at).filter(|(parked, _)| *parked == agent)?;
    let why = format!("the budget of its agent ({agent}) is used up, and the user did not raise it");
    Some(Event::Step { quest: at.id, step: at.step_id.clone(), what: StepEvent::Failed { why, then } })
}

/// The events that queue the steps of a quest whose agents wait for a budget.
pub(super) fn queue_broke(world: &World, id: QuestId, quest: &Quest) -> Vec<Event> {
    queue_those(world, id, quest, Run::is_broke)
}

/// The events that queue the steps of a quest whose agents wait for a budget and have no open question about it.
pub(super) fn queue_unasked(world: &World, id: QuestId, quest: &Quest) -> Vec<Event> {
    queue_those(world, id, quest, |run| run.is_broke() && run.question.is_none())
}

fn queue_those(world: &World, id: QuestId, quest: &Quest, is_meant: impl Fn(&Run) -> bool) -> Vec<Event> {
    let positions = quest.steps.keys().filter_map(|step| StepContext::find(world, id, step));
    let waiting = positions.filter_map(|at| {
        let (_, next) = parked(&at).filter(|(agent, _)| world.run(*agent).is_some_and(&is_meant))?;
        Some(at.queued(at.progress(), next))
    });
    waiting.chain(step_fork::queue_those(world, quest, &is_meant)).collect()
}

/// The agent of a parked step, and what the step does next.
fn parked(at: &StepContext<'_>) -> Option<(AgentId, NextAction)> {
    let StepState::Parked { agent, role, .. } = &at.step.state else { return None };
    Some((*agent, NextAction::Resume { agent: *agent, role: role.clone() }))
}
