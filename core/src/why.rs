//! What an agent is doing now, and the evidence for it. Each piece of evidence has a time, because its age matters as much as its content.

use crate::agent::Lifecycle;
use crate::run::{Run, RunState};
use crate::{AgentId, Timestamp, World};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Why {
    pub state: Activity,
    pub evidence: Vec<Evidence>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Evidence {
    pub what: String,
    pub at: Timestamp,
}

/// What an agent is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    Dead,
    Expired,
    /// No process runs, and none is wanted.
    Resting,
    /// A process is being started.
    Starting,
    /// A turn is running.
    Working,
    /// A process waits for a message.
    Listening,
    /// The process has been silent for longer than the run allows.
    Silent,
    Stopping,
    /// The run waits, for example for a rate limit, a budget or an answer.
    Parked,
}

impl Activity {
    /// Whether the agent has an open run.
    pub fn has_run(self) -> bool {
        match self {
            Self::Starting | Self::Working | Self::Listening | Self::Silent | Self::Stopping | Self::Parked => true,
            Self::Dead | Self::Expired | Self::Resting => false,
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::Dead => "dead",
            Self::Expired => "expired",
            Self::Resting => "resting",
            Self::Starting => "starting",
            Self::Working => "working",
            Self::Listening => "listening",
            Self::Silent => "silent",
            Self::Stopping => "stopping",
            Self::Parked => "parked",
        }
    }
}

/// What an agent is doing, and the evidence. None if there is no such agent.
pub fn why(world: &World, agent: AgentId) -> Option<Why> {
    let it = world.agent(agent)?;
    let mut evidence = Vec::new();
    let mut add = |what: String, at| evidence.push(Evidence { what, at });
    let run = world.run(agent);
    let state = match (it.lifecycle, run) {
        (Lifecycle::Dead { at }, _) => {
            add("it was killed".into(), at);
            Activity::Dead
        }
        (Lifecycle::Expired { at }, _) => {
            add("it never hatched".into(), at);
            Activity::Expired
        }
        (_, Some(run)) => {
            of_run(run, &mut add);
            activity(run)
        }
        (_, None) if world.step_fork(agent).is_some() => {
            add("it waits for a slot of its quest".into(), it.created);
            Activity::Resting
        }
        (_, None) => {
            add("it never had a process".into(), it.created);
            Activity::Resting
        }
    };
    if let Some((number, past)) = world.past_runs(agent).last() {
        add(format!("run {number} ended: {}. {}", past.cause, past.detail), past.ended);
    }
    if let Some(conversation) = world.conversation(agent).filter(|conversation| !conversation.waiting.is_empty()) {
        add(format!("{} of its messages not confirmed yet", conversation.waiting.len()), it.last_active);
    }
    if it.open_tools > 0 {
        let have = if it.open_tools == 1 { "has" } else { "have" };
        add(format!("{} of its tools {have} not answered", it.open_tools), it.last_active);
    }
    let noun = if it.messages == 1 { "message" } else { "messages" };
    add(format!("{} {noun} in its own history", it.messages), it.last_active);
    Some(Why { state, evidence })
}

fn activity(run: &Run) -> Activity {
    match run.state {
        RunState::Starting | RunState::Spawned { .. } if run.attempt.silent.is_some() => Activity::Silent,
        RunState::Starting | RunState::Spawned { .. } => Activity::Starting,
        RunState::Running { .. } if run.attempt.silent.is_some() => Activity::Silent,
        RunState::Running { .. } if run.attempt.in_turn => Activity::Working,
        RunState::Running { .. } => Activity::Listening,
        RunState::Stopping { .. } => Activity::Stopping,
        RunState::Parked { .. } => Activity::Parked,
        RunState::Ended { .. } => Activity::Resting,
    }
}

fn of_run(run: &Run, add: &mut impl FnMut(String, Timestamp)) {
    let name = format!("run {}, attempt {}", run.number, run.attempt.number);
    match &run.state {
        RunState::Starting if run.attempt.waits => {
            add(format!("{name} waits for its turn: as many agents run as `max_runs` allows"), run.attempt.last_output);
        }
        RunState::Starting => add(format!("{name} waits for its process"), run.attempt.last_output),
        RunState::Spawned { process } => {
            add(
                format!("{name} is process {}; it has not shown that Hatchery's tools answer", process.pid),
                run.attempt.last_output,
            );
        }
        RunState::Running { process } => {
            add(format!("{name} is process {}, which last said something", process.pid), run.attempt.last_output);
            if run.awaits_others() {
                add(
                    "it is in its tool `wait`, and an agent below it may use its place".into(),
                    run.attempt.last_output,
                );
            }
        }
        RunState::Stopping { why, .. } => {
            add(format!("{name} is being stopped: {}", why.detail()), run.attempt.last_output)
        }
        RunState::Parked { cause, until } => {
            add(format!("{name} is parked: {cause}"), run.attempt.last_output);
            match until {
                Some(until) => add("it continues by itself".into(), *until),
                None => add("it continues when the user says so".into(), run.attempt.last_output),
            }
        }
        RunState::Ended { .. } => {}
    }
    if let Some(complaint) = run.attempt.outcome.complaint() {
        add(format!("its last error: {complaint}"), run.attempt.last_output);
    }
    for pending in run.attempt.permissions.iter().filter(|pending| pending.question().is_some()) {
        add(
            format!("it waits for your permission to use {}: `hatchery ask list`", pending.request.tool),
            run.attempt.last_output,
        );
    }
}
