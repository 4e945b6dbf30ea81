//! Step forks: agents that the agent of a step has forked. A step fork belongs to the step: it takes a slot of the quest or waits for one,
//! its cost counts for the quest, and it owes no signal. It ends with the run of the step's agent, before anything else happens in the
//! step's folder.

use super::{Quest, QuestState, StepContext, StepId};
use crate::agent::{Agent, Birth, Lifecycle};
use crate::event::{AgentEvent, RunEvent, StepEvent};
use crate::run::{self, Run, RunSpec, RunState, StopWhy};
use crate::{AgentId, Event, EventId, QuestId, Refusal, World};
use serde::{Deserialize, Serialize};

/// How many step forks of a quest may work or wait at the same time. Each waits for a slot, and a quest has few slots.
pub const MAX_STEP_FORKS: usize = 100;

/// A fork that works for a step or waits for a slot. A fork whose run has ended is not kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepFork {
    pub step: StepId,
    /// The agent of the step. The fork ends with this agent's run.
    #[serde(rename = "root")]
    pub step_agent: AgentId,
    /// The agent that was forked: the agent of the step, or another fork.
    pub parent: AgentId,
    /// The number of the fork among all forks of the quest.
    pub number: u32,
    pub state: StepForkState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepForkState {
    /// Waits for a slot since this event.
    Queued(EventId),
    /// Holds a slot.
    Running,
    /// The run of the fork is parked.
    Parked,
}

/// The event by which a new fork belongs to the step of its parent, if the parent may have a fork for its step now. None if the parent has
/// no step to work on, so that the fork would have nothing to do.
pub(crate) fn join(world: &World, parent: AgentId, child: AgentId) -> Result<Option<Event>, Refusal> {
    let Some(assignment) = world.assignment(parent) else { return Ok(None) };
    let Some(at) = StepContext::find(world, assignment.quest, &assignment.step) else { return Ok(None) };
    let step_agent = match world.step_fork(parent) {
        Some(fork) => Some(fork.step_agent),
        None => at.step.agent().filter(|agent| *agent == parent),
    };
    let works = |step_agent: &AgentId| world.run(*step_agent).is_some_and(Run::is_open);
    let Some(step_agent) = step_agent.filter(works).filter(|_| !at.quest.is_over()) else { return Ok(None) };
    if at.quest.forks.len() >= MAX_STEP_FORKS {
        return Err(Refusal::TooManyStepForks { quest: at.id });
    }
    let what = StepEvent::Forked { agent: child, step_agent, parent };
    Ok(Some(Event::Step { quest: at.id, step: at.step_id.clone(), what }))
}

/// The events that create a fork for the step of its parent. Its run begins when there is a slot.
pub(crate) fn born(
    world: &World,
    parent: AgentId,
    birth: &Birth,
    events: impl FnOnce(&Birth) -> Vec<Event>,
) -> Result<Vec<Event>, Refusal> {
    let joined = join(world, parent, birth.agent)?;
    let mut events = events(&Birth { run: None, ..birth.clone() });
    match joined {
        // After the creation of the agent, because this event names the agent.
        Some(joined) => events.insert(1, joined),
        None => events.push(Event::Agent { agent: birth.agent, what: AgentEvent::Slept }),
    }
    Ok(events)
}

/// The events with which the next fork takes a slot. None if there is no slot or no fork waits.
pub(super) fn begin(world: &World, id: QuestId) -> Option<Vec<Event>> {
    let agent = world.fork_to_begin(id)?;
    let fork = world.step_fork(agent)?;
    match world.run(agent) {
        Some(run) if run.is_parked() => {
            Some(vec![Event::Run { of: run.attempt_id(agent).next(), what: RunEvent::Resumed }])
        }
        _ => {
            let spec = &world.run(fork.parent).or_else(|| world.run(fork.step_agent))?.spec;
            run::request(world, agent, &RunSpec { signals: false, ..(**spec).clone() }).ok()
        }
    }
}

/// The event that queues a parked fork for a slot, instead of continuing it at once.
pub(crate) fn queue(world: &World, agent: AgentId) -> Option<Event> {
    let quest = world.assignment(agent)?.quest;
    let fork = world.step_fork(agent).filter(|fork| fork.state == StepForkState::Parked)?;
    Some(Event::Step { quest, step: fork.step.clone(), what: StepEvent::ForkQueued { agent } })
}

/// The events that queue those parked forks of a quest for whose runs `is_meant` is true.
pub(super) fn queue_those(world: &World, quest: &Quest, is_meant: impl Fn(&Run) -> bool) -> Vec<Event> {
    let meant = |agent: &&AgentId| world.run(**agent).is_some_and(&is_meant);
    quest.forks.keys().filter(meant).filter_map(|agent| queue(world, *agent)).collect()
}

/// Forks that never got a slot sleep when the run of their step's agent has ended.
pub(super) fn rest(world: &World, id: QuestId, step_agent: AgentId) -> Vec<Event> {
    let of_step_agent = |(_, fork): &(&AgentId, &StepFork)| fork.step_agent == step_agent;
    let awake =
        |agent: &AgentId| world.agent(*agent).is_some_and(|it: &Agent| matches!(it.lifecycle, Lifecycle::Alive { .. }));
    let forks = world.quest(id).into_iter().flat_map(|quest| quest.forks.iter()).filter(of_step_agent);
    let slept = |agent: AgentId| Event::Agent { agent, what: AgentEvent::Slept };
    forks.map(|(agent, _)| *agent).filter(awake).map(slept).collect()
}

/// The events that stop the forks of a quest.
pub(super) fn stopped(world: &World, quest: &Quest, why: &StopWhy) -> Vec<Event> {
    let keeps = |run: &Run| run.is_parked() && matches!(why, StopWhy::Paused);
    let open = |agent: &&AgentId| world.run(**agent).is_some_and(|run| run.is_open() && !keeps(run));
    quest.forks.keys().filter(open).flat_map(|agent| run::stop(world, *agent, why).unwrap_or_default()).collect()
}

impl World {
    /// The step fork that an agent is, if it is one.
    pub fn step_fork(&self, agent: AgentId) -> Option<&StepFork> {
        self.quest(self.assignment(agent)?.quest)?.forks.get(&agent)
    }

    /// Whether an agent works for its quest at the moment: as the agent of a step, or as a step fork. The user may also talk with an agent
    /// of a quest; that is not work for the quest.
    pub fn works_for_quest(&self, agent: AgentId) -> bool {
        self.run(agent).is_some_and(|run| run.spec.signals) || self.step_fork(agent).is_some()
    }

    /// The fork that gets a slot of the quest now: the one that has waited longest. An agent in its tool `wait` leaves its slot to forks.
    /// Otherwise a fork that its parent waits for could wait forever.
    pub(crate) fn fork_to_begin(&self, id: QuestId) -> Option<AgentId> {
        let (quest, quest_spec) = self.quest(id).zip(self.quest_spec(id))?;
        if quest.forks.is_empty() || quest.state != QuestState::Open || quest.waits_for_money() {
            return None;
        }
        let is_open = |agent: AgentId| self.run(agent).is_some_and(Run::is_open);
        let queued = |(agent, fork): (&AgentId, &StepFork)| match fork.state {
            StepForkState::Queued(since) if is_open(fork.step_agent) => Some((since, *agent)),
            StepForkState::Queued(_) | StepForkState::Running | StepForkState::Parked => None,
        };
        let (_, first) = quest.forks.iter().filter_map(queued).min()?;
        let works = |agent: AgentId| !self.run(agent).is_some_and(Run::awaits_others);
        let in_steps = quest.working.iter().filter_map(|step| quest.step(step));
        let in_steps = in_steps.filter(|step| step.agent().is_none_or(works)).count();
        let running = |(agent, fork): &(&AgentId, &StepFork)| fork.state == StepForkState::Running && works(**agent);
        let at_work = in_steps + quest.forks.iter().filter(running).count();
        (at_work < quest_spec.slots as usize).then_some(first)
    }

    /// Whether the run of any fork of a step's agent is open.
    pub(crate) fn has_open_forks(&self, quest: QuestId, step_agent: AgentId) -> bool {
        let forks = self.quest(quest).into_iter().flat_map(|quest| quest.forks.iter());
        forks
            .filter(|(_, fork)| fork.step_agent == step_agent)
            .any(|(agent, _)| self.run(*agent).is_some_and(Run::is_open))
    }
}

impl StepForkState {
    /// The state of the fork, from its run. None if the run has ended.
    pub(crate) fn of(self, run: &Run) -> Option<Self> {
        match (&run.state, self) {
            (RunState::Ended { .. }, _) => None,
            (RunState::Parked { .. }, Self::Queued(since)) => Some(Self::Queued(since)),
            (RunState::Parked { .. }, Self::Running | Self::Parked) => Some(Self::Parked),
            (
                RunState::Starting | RunState::Spawned { .. } | RunState::Running { .. } | RunState::Stopping { .. },
                _,
            ) => Some(Self::Running),
        }
    }
}
