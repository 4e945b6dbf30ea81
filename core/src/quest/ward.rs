//! A person sets another ward, or removes it, while the quest continues. Complete steps stay complete, and agents at work keep working.
//! Steps that are at the ward, queued for it, or stopped by its findings start over with the new ward: the old verdict does not count.

use super::{
    Brief, MAX_WARD_MS, MIN_WARD_MS, NextAction, Quest, SlotWork, StepContext, StepId, StepProgress, StepState,
    WardSpec,
};
use super::{check_ward, going};
use crate::event::{QuestEvent, QuestionEvent};
use crate::{AgentId, Event, EventId, QuestId, Refusal, World};

/// Sets the ward of a quest, or takes it away. `limit_ms` is for a quest that has none; otherwise its limit stays.
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

/// Another command, and what follows for the steps. The question of the step `answered` is closed by its answer.
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

/// What becomes of the steps, now that the ward of their quest is another.
fn anew(world: &World, id: QuestId, after: &Quest, answered: Option<&StepId>) -> Vec<Event> {
    let steps = after.steps.keys().filter_map(|step| StepContext::find(world, id, step));
    let concerned = steps.filter(|at| is_concerned(&at.step.state));
    let follows = concerned.flat_map(|at| {
        let open = at.step.question.filter(|_| answered != Some(at.step_id));
        let withdrawn = open.and_then(|question| withdrawn(world, question));
        // A person has had a say, and what the old one found is nothing to the new one.
        let progress = StepProgress { mendings: 0, follow_ups: 0, ..at.progress() };
        withdrawn.into_iter().chain(StepContext { quest: after, ..at }.go_to_station(progress)).collect::<Vec<_>>()
    });
    follows.collect()
}

/// Whether a step is at the ward, waits for it, or waits to be mended because of it.
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

/// Whether it is about what a ward found.
pub(crate) fn mends(next: &NextAction) -> bool {
    matches!(next, NextAction::Begin { brief: Brief::Mend { .. }, .. })
}

fn withdrawn(world: &World, question: EventId) -> Option<Event> {
    let agent: AgentId = world.question(question)?.agent;
    Some(Event::Question { agent, what: QuestionEvent::Withdrawn { question } })
}
