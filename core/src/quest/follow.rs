//! What becomes of a step when the run of its agent has ended. This depends on the agent's signal or, without a signal, on how the run
//! ended. Each call decides one round of events; `settle` applies them and calls again.

use super::human::told;
use super::{Brief, Caller, NextAction, Signal, SlotWork, StepContext, StepProgress, StepState, step_fork, words};
use super::{MAX_CALLERS, MAX_CONTINUATIONS, MAX_FOLLOW_UPS, MAX_RETURNS};
use crate::agent::{self, Lifecycle};
use crate::ask::StepTrouble;
use crate::event::{AgentEvent, StepEvent};
use crate::outcome::Cause;
use crate::roles::{self, Phase};
use crate::run::RunState;
use crate::{AgentId, Event, World};

/// The run of an agent has ended, or is parked.
pub(crate) fn follow(world: &World, agent: AgentId) -> Vec<Event> {
    let Some(assignment) = world.assignment(agent) else { return Vec::new() };
    let Some((at, run)) = StepContext::find(world, assignment.quest, &assignment.step).zip(world.run(agent)) else {
        return Vec::new();
    };
    let (role, signal, paused) = match &at.step.state {
        StepState::Running(SlotWork::Agent { role, signal, paused, .. }) => (role, signal.as_ref(), *paused),
        // The user has ended a parked run.
        StepState::Parked { role, .. } => (role, None, false),
        StepState::Pending
        | StepState::Queued(_)
        | StepState::Running(SlotWork::Ward(_) | SlotWork::Merge(_))
        | StepState::Asking(_)
        | StepState::Blocked
        | StepState::Failed { .. }
        | StepState::Complete { .. } => return Vec::new(),
    };
    let cause = match run.state {
        RunState::Parked { until, .. } => {
            return vec![Event::Step { quest: at.id, step: at.step_id.clone(), what: StepEvent::Parked { until } }];
        }
        RunState::Ended { cause, .. } => cause,
        RunState::Starting | RunState::Spawned { .. } | RunState::Running { .. } | RunState::Stopping { .. } => {
            return Vec::new();
        }
    };
    let goes_on = NextAction::Resume { agent, role: role.clone() };
    let then = match signal {
        Some(signal) => act_on_signal(&at, agent, role, signal),
        // The agent was stopped because its quest was paused, or the run was a conversation with the user and not work on the step.
        None if paused || !run.spec.signals => vec![at.queued(at.progress(), goes_on)],
        None => left(&at, agent, role, cause),
    };
    step_fork::rest(world, at.id, agent).into_iter().chain(then).collect()
}

/// An agent's run has ended without a signal.
fn left(at: &StepContext<'_>, agent: AgentId, role: &str, cause: Cause) -> Vec<Event> {
    let progress = at.progress();
    let goes_on = NextAction::Resume { agent, role: role.to_owned() };
    let who = roles::duty(role).map_or_else(|| format!("{role} ({agent})"), |duty| format!("{role} ({duty}; {agent})"));
    let ending = at.world.past_runs(agent).last().map(|(_, past)| past.detail.clone()).unwrap_or_default();
    match cause {
        // The context of the agent is full. A new agent continues with the files in the folder.
        Cause::PromptTooLong if progress.continuations < MAX_CONTINUATIONS => {
            let progress = StepProgress { continuations: progress.continuations + 1, ..progress };
            vec![
                at.queued(progress, NextAction::Begin { role: role.to_owned(), brief: words::replacement_brief(None) }),
            ]
        }
        // The same conversation would end in the same way, so a retry begins with a new agent.
        Cause::PromptTooLong | Cause::Refused | Cause::OutputTooLong => {
            let fresh = NextAction::Begin { role: role.to_owned(), brief: words::replacement_brief(None) };
            at.failed(format!("the {who} ended without a signal ({cause}): {ending}"), fresh)
        }
        Cause::Crashed | Cause::LostWithMachine | Cause::Completed => {
            at.failed(format!("the {who} ended without a signal: {ending}"), goes_on)
        }
        Cause::UserEnded
        | Cause::Killed
        | Cause::Stuck
        | Cause::OutOfCredit
        | Cause::Unauthorised
        | Cause::RateLimited
        | Cause::Overloaded
        | Cause::AwaitsPermission
        | Cause::Unavailable
        | Cause::WrongModel
        | Cause::BadArguments
        | Cause::OverBudget => {
            let text = format!(
                "The {who} of step `{}` ended before it was done: {} Answer `retry`, or a message to the agent.",
                at.step_id,
                words::sentence(&ending)
            );
            at.asks(progress, goes_on, agent, StepTrouble::Ended, text)
        }
    }
}

/// What a signal leads to, after the run has ended.
fn act_on_signal(at: &StepContext<'_>, agent: AgentId, role: &str, signal: &Signal) -> Vec<Event> {
    let progress = at.progress();
    let goes_on = NextAction::Resume { agent, role: role.to_owned() };
    match signal {
        Signal::Complete { summary } => rest(at.world, agent).into_iter().chain(done(at, role, summary)).collect(),
        Signal::PartiallyComplete { progress: done, continuation_point }
            if progress.continuations < MAX_CONTINUATIONS =>
        {
            let progress = StepProgress { continuations: progress.continuations + 1, ..progress };
            let brief = Brief::Continue { progress: done.clone(), continuation_point: continuation_point.clone() };
            let next = at.queued(progress, NextAction::Begin { role: role.to_owned(), brief });
            rest(at.world, agent).into_iter().chain([next]).collect()
        }
        Signal::PartiallyComplete { progress: done, .. } => {
            let text = format!(
                "The {role} of step `{}` has handed its work to a new agent {MAX_CONTINUATIONS} times in a row and is still not done. It says: \
                 {done}\nYour answer is sent to the agent, which then continues.",
                at.step_id
            );
            at.asks(StepProgress { continuations: 0, ..progress }, goes_on, agent, StepTrouble::Circle, text)
        }
        Signal::NeedsUserInput { question, context, .. } => {
            let context = if context.is_empty() { String::new() } else { format!("\n\n{context}") };
            at.asks(progress, goes_on, agent, StepTrouble::Input, format!("{question}{context}"))
        }
        Signal::NeedsRoleFollowup { target_role, reason, context, resume } => {
            let circles = progress.callers.iter().filter(|caller| caller.role == *target_role).count() >= MAX_RETURNS;
            if circles || progress.callers.len() >= MAX_CALLERS || progress.follow_ups >= MAX_FOLLOW_UPS {
                let text = words::circle(role, target_role, reason, agent);
                return at.asks(StepProgress { follow_ups: 0, ..progress }, goes_on, agent, StepTrouble::Circle, text);
            }
            let caller = Caller { agent, role: role.to_owned(), resume: *resume };
            let callers = progress.callers.iter().cloned().chain([caller]).collect();
            let progress = StepProgress { callers, follow_ups: progress.follow_ups + 1, ..progress };
            let (reason, context) = (reason.clone(), context.clone());
            let brief = Brief::FollowUp { from: role.to_owned(), reason, context };
            vec![at.queued(progress, NextAction::Begin { role: target_role.clone(), brief })]
        }
    }
}

/// The role has finished its work. If it has changed the plan, the user may have to approve the plan first.
fn done(at: &StepContext<'_>, role: &str, summary: &str) -> Vec<Event> {
    match role == at.quest_spec.table.planner && at.quest.unapproved.contains(at.step_id) {
        true => at.asks_consent(at.progress()),
        false => proceed(at, role, summary),
    }
}

/// The user approves the plan that the planner of a step has changed.
pub(super) fn consented(at: &StepContext<'_>) -> Vec<Event> {
    let mut events = proceed(at, &at.quest_spec.table.planner, &at.step.summary);
    for event in &mut events {
        if let Event::Step { what: StepEvent::Queued { consented, .. }, .. } = event {
            *consented = true;
        }
    }
    events
}

/// If a role waits for the one that has finished, the waiting role continues. Otherwise the step goes to its next station.
fn proceed(at: &StepContext<'_>, role: &str, summary: &str) -> Vec<Event> {
    if at.step.dropped {
        return vec![Event::Step { quest: at.id, step: at.step_id.clone(), what: StepEvent::Dropped }];
    }
    let progress = StepProgress { continuations: 0, ..at.progress() };
    // Whether the planner was called by another role, or has planned steps that must come before this step.
    let planned = match at.step.phase {
        Phase::Work => !progress.callers.is_empty() || at.step.waits_for > 0,
        // The steps that the review asked for come before the review.
        Phase::Review => at.step.waits_for > 0,
        Phase::Requirements | Phase::Plan => false,
    };
    let replanned = planned && role == at.quest_spec.table.planner;
    let mut callers = progress.callers.clone();
    // A caller that does not continue is finished, so the step goes on to the caller before it.
    while callers.last().is_some_and(|caller| !caller.resume) {
        callers.pop();
    }
    if let Some(caller) = callers.pop() {
        let plan = at.quest.plans.get(at.step_id).filter(|_| replanned);
        let next = NextAction::Resume { agent: caller.agent, role: caller.role };
        let outcome = words::outcome(role, summary, plan);
        return told(at, StepProgress { callers, ..progress }, &next, outcome);
    }
    let progress = StepProgress { callers, ..progress };
    if replanned {
        // The plan of this step may have changed.
        return at.go_to_station(StepProgress { station: 0, mendings: 0, ..progress });
    }
    // After a repair comes the ward that asked for it; after anything else comes the next station.
    let mended = progress.mendings > 0 && at.is_ward(progress.station);
    at.go_to_station(StepProgress { station: progress.station + u32::from(!mended), ..progress })
}

/// An agent that has finished its work sleeps until it is needed.
fn rest(world: &World, agent: AgentId) -> Option<Event> {
    let alive = |it: &agent::Agent| matches!(it.lifecycle, Lifecycle::Alive { .. });
    world.agent(agent).is_some_and(alive).then_some(Event::Agent { agent, what: AgentEvent::Slept })
}
