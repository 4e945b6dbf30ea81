//! Agents that the agent of a step has forked. Such a fork belongs to the step: it takes a slot of the quest or waits for one, its money is
//! that of the quest, it owes no signal, and it ends with the run of the step's agent, before anything else happens in the step's folder.

use super::{Quest, QuestState, StepContext, StepId};
use crate::agent::{Agent, Birth, Lifecycle};
use crate::event::{AgentEvent, RunEvent, StepEvent};
use crate::run::{self, Run, RunSpec, RunState, StopWhy};
use crate::{AgentId, Event, EventId, QuestId, Refusal, World};
use serde::{Deserialize, Serialize};

/// How many forks of a quest may work or wait at once. Each waits for a slot, of which there are few.
pub const MAX_STEP_FORKS: usize = 100;

/// A fork that works for a step or waits for a slot. One whose run is over is not kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepFork {
    pub step: StepId,
    /// The agent of the step. The fork ends with its run.
    #[serde(rename = "root")]
    pub step_agent: AgentId,
    /// The agent that was forked: the agent of the step, or another fork.
    pub parent: AgentId,
    /// Its place among all forks of the quest.
    pub number: u32,
    pub state: StepForkState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepForkState {
    /// Waits for a slot since this event.
    Queued(EventId),
    /// Holds a slot.
    Running,
    /// Waits for a better moment.
    Parked,
}

/// Whether an agent may have a fork for its step now, and the event by which the fork belongs to the step. None when the step is over for
/// this agent, so that a fork would have nothing to do.
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

/// The birth of a fork that works for the step of its parent. Its run begins when there is a slot.
pub(crate) fn born(
    world: &World,
    parent: AgentId,
    birth: &Birth,
    events: impl FnOnce(&Birth) -> Vec<Event>,
) -> Result<Vec<Event>, Refusal> {
    let joined = join(world, parent, birth.agent)?;
    let mut events = events(&Birth { run: None, ..birth.clone() });
    match joined {
        // After the birth, because it names the agent.
        Some(joined) => events.insert(1, joined),
        None => events.push(Event::Agent { agent: birth.agent, what: AgentEvent::Slept }),
    }
    Ok(events)
}

/// The next fork gets a slot, or none does.
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

/// The event by which a parked fork waits for a slot, instead of going on at once.
pub(crate) fn queue(world: &World, agent: AgentId) -> Option<Event> {
    let quest = world.assignment(agent)?.quest;
    let fork = world.step_fork(agent).filter(|fork| fork.state == StepForkState::Parked)?;
    Some(Event::Step { quest, step: fork.step.clone(), what: StepEvent::ForkQueued { agent } })
}

/// The same for those of a quest that wait for money.
pub(super) fn queue_those(world: &World, quest: &Quest, is_meant: impl Fn(&Run) -> bool) -> Vec<Event> {
    let meant = |agent: &&AgentId| world.run(**agent).is_some_and(&is_meant);
    quest.forks.keys().filter(meant).filter_map(|agent| queue(world, *agent)).collect()
}

/// The forks that never got a slot sleep when the agent of their step is gone.
pub(super) fn rest(world: &World, id: QuestId, step_agent: AgentId) -> Vec<Event> {
    let of_step_agent = |(_, fork): &(&AgentId, &StepFork)| fork.step_agent == step_agent;
    let awake =
        |agent: &AgentId| world.agent(*agent).is_some_and(|it: &Agent| matches!(it.lifecycle, Lifecycle::Alive { .. }));
    let forks = world.quest(id).into_iter().flat_map(|quest| quest.forks.iter()).filter(of_step_agent);
    let slept = |agent: AgentId| Event::Agent { agent, what: AgentEvent::Slept };
    forks.map(|(agent, _)| *agent).filter(awake).map(slept).collect()
}

/// The events by which the forks of a quest are stopped.
pub(super) fn stopped(world: &World, quest: &Quest, why: &StopWhy) -> Vec<Event> {
    let keeps = |run: &Run| run.is_parked() && matches!(why, StopWhy::Paused);
    let open = |agent: &&AgentId| world.run(**agent).is_some_and(|run| run.is_open() && !keeps(run));
    quest.forks.keys().filter(open).flat_map(|agent| run::stop(world, *agent, why).unwrap_or_default()).collect()
}

impl World {
    /// A fork that works for a step, or waits for a slot of its quest.
    pub fn step_fork(&self, agent: AgentId) -> Option<&StepFork> {
        self.quest(self.assignment(agent)?.quest)?.forks.get(&agent)
    }

    /// Whether an agent is at work for its quest: as the agent of a step, or as a fork of it. A person may also talk with an agent of a
    /// quest, which is nothing to the quest.
    pub fn works_for_quest(&self, agent: AgentId) -> bool {
        self.run(agent).is_some_and(|run| run.spec.signals) || self.step_fork(agent).is_some()
    }

    /// The fork of a quest that gets a slot now: the one that has waited longest. An agent that waits for others leaves its slot to the
    /// forks; otherwise a fork that its parent waits for could wait for ever.
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

    /// Whether forks of a step's agent have a run that is not over.
    pub(crate) fn has_open_forks(&self, quest: QuestId, step_agent: AgentId) -> bool {
        let forks = self.quest(quest).into_iter().flat_map(|quest| quest.forks.iter());
        forks
            .filter(|(_, fork)| fork.step_agent == step_agent)
            .any(|(agent, _)| self.run(*agent).is_some_and(Run::is_open))
    }
}

impl StepForkState {
    /// As its run is now. None when the run is over.
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
