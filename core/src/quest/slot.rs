//! Fills a free slot with the next step in the queue: with a new agent, an agent that continues, a ward or a merge.

use super::{Brief, CRASH_RETRIES, NextAction, StepContext, StepState, agent_id, step_fork, words};
use crate::agent::{self, Birth, Origin};
use crate::event::{QuestEvent, RunEvent, StepEvent};
use crate::run::{self, RunSpec, RunState};
use crate::{AgentId, Event, QuestId, Timestamp, World};

/// The events that are due in a quest without a command: a slot is filled, or the quest is complete.
pub(crate) fn serve(world: &World, id: QuestId, now: Timestamp) -> Vec<Event> {
    let Some((quest, quest_spec)) = world.quest(id).zip(world.quest_spec(id)) else { return Vec::new() };
    if quest.is_done() {
        return vec![Event::Quest { quest: id, what: QuestEvent::Completed }];
    }
    if let Some(begun) = step_fork::begin(world, id) {
        return begun;
    }
    let first = quest.queue.get_min().filter(|_| quest.can_begin(quest_spec));
    let at = first.and_then(|place| StepContext::find(world, id, &place.step));
    at.map(|at| begin(&at, now)).unwrap_or_default()
}

/// The next step in the queue takes a slot.
fn begin(at: &StepContext<'_>, now: Timestamp) -> Vec<Event> {
    let StepState::Queued(next) = &at.step.state else { return Vec::new() };
    let (quest, step, number) = (at.id, at.step_id.clone(), at.step.chores + 1);
    match next {
        NextAction::Ward => vec![Event::Step { quest, step, what: StepEvent::WardBegun { number } }],
        NextAction::Merge => vec![Event::Step { quest, step, what: StepEvent::MergeBegun { number } }],
        NextAction::Begin { role, brief } => new_agent(at, role, brief, now),
        NextAction::Resume { agent, role } => match set_to_work_again(at, *agent, role) {
            Some(events) => {
                let begun = Event::Step { quest, step, what: StepEvent::Begun { agent: *agent, role: role.clone() } };
                [begun].into_iter().chain(events).collect()
            }
            // The agent was killed in the meantime: a new agent takes its place.
            None => new_agent(at, role, &words::replacement_brief(None), now),
        },
    }
}

/// Creates a new agent for a step.
fn new_agent(at: &StepContext<'_>, role: &str, brief: &Brief, now: Timestamp) -> Vec<Event> {
    let Some((root, line)) = at.world.root().zip(at.quest_spec.table.role(role)) else { return Vec::new() };
    let mut ids = (at.quest.agents..).map(|number| agent_id(at.id, number));
    // A client may have chosen the quest's id such that derived agent ids are already taken.
    let Some(agent) = ids.find(|agent| !at.world.is_taken(*agent)) else { return Vec::new() };
    let spec = spec(at, role);
    let name: String = format!("{role}-{}", at.step_id).chars().take(agent::MAX_NAME_BYTES).collect();
    let birth = Birth {
        name: Some(agent::free_name(at.world, &name)),
        model: spec.model.clone().filter(|model| model.len() <= agent::MAX_NAME_BYTES),
        prompt: Some(words::prompt(at, line, brief)),
        run: Some(Box::new(spec)),
        ..Birth::of(agent)
    };
    // Agents of a quest know only what their first message says. They do not inherit the history of agent 0.
    let origin = Origin { agent: root, upto: None };
    let begun =
        Event::Step { quest: at.id, step: at.step_id.clone(), what: StepEvent::Begun { agent, role: role.to_owned() } };
    let mut events = agent::born(root, origin, &birth, now);
    // After the creation of the agent, which the assignment names; before the run, which depends on the assignment.
    events.insert(1, begun);
    events
}

/// Continues an agent. A parked run is resumed. A run that the user started counts as the agent's work. Otherwise a new run is requested.
/// None if the agent is dead.
fn set_to_work_again(at: &StepContext<'_>, agent: AgentId, role: &str) -> Option<Vec<Event>> {
    let run = at.world.run(agent)?;
    match &run.state {
        RunState::Parked { .. } => Some(vec![Event::Run { of: run.attempt_id(agent).next(), what: RunEvent::Resumed }]),
        RunState::Starting | RunState::Spawned { .. } | RunState::Running { .. } | RunState::Stopping { .. } => {
            Some(Vec::new())
        }
        RunState::Ended { .. } => run::request(at.world, agent, &spec(at, role)).ok(),
    }
}

/// How the agents of a step are run.
fn spec(at: &StepContext<'_>, role: &str) -> RunSpec {
    let usual = &at.quest_spec.spec;
    let of_role = at.quest_spec.table.role(role);
    let harness = of_role.and_then(|role| role.harness.clone()).unwrap_or_else(|| usual.harness.clone());
    // The model of one harness may not exist in another.
    let usual_model = usual.model.clone().filter(|_| harness == usual.harness);
    RunSpec {
        permissions: Some(at.quest_spec.permissions(role)),
        model: of_role.and_then(|role| role.model.clone()).or(usual_model),
        harness,
        folder: at.quest_spec.folder(at.step_id, at.step.phase),
        signals: true,
        stays: false,
        retries: CRASH_RETRIES,
        ..at.quest_spec.spec.clone()
    }
}
