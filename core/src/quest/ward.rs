//! The user sets another ward, or removes it, while the quest continues. Complete steps stay complete, and agents at work keep working.
//! Steps that are at the ward, queued for it, or queued for a repair of its findings start over with the new ward, because the old verdict
//! does not count.

use super::{
    Brief, MAX_WARD_MS, MIN_WARD_MS, NextAction, Quest, SlotWork, StepContext, StepId, StepProgress, StepState,
    WardSpec,
};
use super::{check_ward, going};
use crate::event::{QuestEvent, QuestionEvent};
use crate::{AgentId, Event, EventId, QuestId, Refusal, World};

/// Sets or removes the ward of a quest. `limit_ms` is for a quest that has no ward; otherwise the limit does not change.
pub(crate) fn set_ward(
    world: &World,
    id: QuestId,
    command: Option<&str>,
    limit_ms: u64,
) -> Result<Vec<Event>, Refusal> {
    let quest = going(world, id)?;
    match command {
        Some(command) => {
            let limit_ms = quest.ward.is_none().then_some(limit_ms);
            changed(world, id, quest, command, limit_ms, None)
        }
        None if quest.ward.is_none() => Err(Refusal::NoWard(id)),
        None => {
            let after = Quest { ward: None, ..quest.clone() };
            let anew = anew(world, id, &after, None);
            Ok([Event::Quest { quest: id, what: QuestEvent::WardRemoved }].into_iter().chain(anew).collect())
        }
    }
}

/// The events that set another command, and what follows for the steps. The question of the step `answered` is closed by its answer.
pub(super) fn changed(
    world: &World,
    id: QuestId,
    quest: &Quest,
    command: &str,
    limit_ms: Option<u64>,
    answered: Option<&StepId>,
) -> Result<Vec<Event>, Refusal> {
    check_ward(command)?;
    if let Some(ms) = limit_ms.filter(|ms| !(MIN_WARD_MS..=MAX_WARD_MS).contains(ms)) {
        return Err(Refusal::WardOutOfRange { ms });
    }
    let kept = quest.ward.as_ref().map(|ward| ward.limit_ms);
    let limit = limit_ms.or(kept).ok_or(Refusal::NoWard(id))?;
    let ward = WardSpec { command: command.to_owned(), limit_ms: limit, guessed_from: None };
    let after = Quest { ward: Some(ward), ..quest.clone() };
    let changed = Event::Quest { quest: id, what: QuestEvent::WardChanged { command: command.to_owned(), limit_ms } };
    Ok([changed].into_iter().chain(anew(world, id, &after, answered)).collect())
}

/// What follows for the steps after the ward has changed.
fn anew(world: &World, id: QuestId, after: &Quest, answered: Option<&StepId>) -> Vec<Event> {
    let steps = after.steps.keys().filter_map(|step| StepContext::find(world, id, step));
    let concerned = steps.filter(|at| is_concerned(&at.step.state));
    let follows = concerned.flat_map(|at| {
        let open = at.step.question.filter(|_| answered != Some(at.step_id));
        let withdrawn = open.and_then(|question| withdrawn(world, question));
        // The user has decided something, and the findings of the old ward no longer count.
        let progress = StepProgress { mendings: 0, follow_ups: 0, ..at.progress() };
        withdrawn.into_iter().chain(StepContext { quest: after, ..at }.go_to_station(progress)).collect::<Vec<_>>()
    });
    follows.collect()
}

/// Whether a step is at the ward, waits for it, or waits for a repair of its findings.
fn is_concerned(state: &StepState) -> bool {
    match state {
        StepState::Running(SlotWork::Ward(_))
        | StepState::Queued(NextAction::Ward)
        | StepState::Asking(NextAction::Ward) => true,
        StepState::Queued(next) => mends(next),
        StepState::Pending
        | StepState::Running(SlotWork::Agent { .. } | SlotWork::Merge(_))
        | StepState::Asking(_)
        | StepState::Parked { .. }
        | StepState::Blocked
        | StepState::Failed { .. }
        | StepState::Complete { .. } => false,
    }
}

/// Whether the next action is a repair of what a ward found.
pub(crate) fn mends(next: &NextAction) -> bool {
    matches!(next, NextAction::Begin { brief: Brief::Mend { .. }, .. })
}

fn withdrawn(world: &World, question: EventId) -> Option<Event> {
    let agent: AgentId = world.question(question)?.agent;
    Some(Event::Question { agent, what: QuestionEvent::Withdrawn { question } })
}
