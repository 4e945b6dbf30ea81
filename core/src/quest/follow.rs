//! An agent's run is over: what becomes of its step, by what it signalled, or by how it ended without. Nothing here looks further than
//! the events that come next: the next thing follows when those are true.

use super::human::told;
use super::{At, Brief, Caller, Course, Next, Signal, StepState, Work, words};
use super::{MAX_CALLERS, MAX_CONTINUATIONS, MAX_FOLLOW_UPS};
use crate::agent::{self, Life};
use crate::ask::StepTrouble;
use crate::outcome::Cause;
use crate::roles::Phase;
use crate::run::RunState;
use crate::{AgentId, Event, World};

/// An agent's run is over, or waits.
pub(crate) fn follow(world: &World, agent: AgentId) -> Vec<Event> {
    let Some(errand) = world.errand(agent) else { return Vec::new() };
    let Some((at, run)) = At::find(world, errand.quest, &errand.step).zip(world.run(agent)) else { return Vec::new() };
    let (role, signal, recalled) = match &at.step.state {
        StepState::Running(Work::Agent { role, signal, recalled, .. }) => (role, signal.as_ref(), *recalled),
        // A person has ended what waited.
        StepState::Parked { role, .. } => (role, None, false),
        StepState::Pending
        | StepState::Queued(_)
        | StepState::Running(Work::Ward(_) | Work::Merge(_))
        | StepState::Asking(_)
        | StepState::Blocked
        | StepState::Failed { .. }
        | StepState::Complete { .. } => return Vec::new(),
    };
    let cause = match run.state {
        RunState::Parked { until, .. } => {
            return vec![Event::StepParked { quest: at.id, step: at.step_id.clone(), until }];
        }
        RunState::Ended { cause, .. } => cause,
        RunState::Starting | RunState::Spawned { .. } | RunState::Running { .. } | RunState::Stopping { .. } => {
            return Vec::new();
        }
    };
    let goes_on = Next::Resume { agent, role: role.clone() };
    match signal {
        Some(signal) => heed(&at, agent, role, signal),
        // It was called back by a pause, or a person had a word with it that was not about its step.
        None if recalled || !run.spec.signals => vec![at.queued(at.course(), goes_on)],
        None => left(&at, agent, role, cause),
    }
}

/// An agent has left without a signal.
fn left(at: &At<'_>, agent: AgentId, role: &str, cause: Cause) -> Vec<Event> {
    let course = at.course();
    let goes_on = Next::Resume { agent, role: role.to_owned() };
    let ending = at.world.past_runs(agent).last().map(|(_, past)| past.detail.clone()).unwrap_or_default();
    match cause {
        // It has forgotten too much to be resumed; one that begins with little knows where the work is.
        Cause::PromptTooLong if course.continuations < MAX_CONTINUATIONS => {
            let course = Course { continuations: course.continuations + 1, ..course };
            vec![at.queued(course, Next::Begin { role: role.to_owned(), brief: words::lost_hand(None) })]
        }
        Cause::Crashed | Cause::LostWithMachine | Cause::Completed | Cause::PromptTooLong => {
            at.failed(format!("the {role} ({agent}) ended without a signal: {ending}"), goes_on)
        }
        Cause::UserEnded
        | Cause::Killed
        | Cause::Stuck
        | Cause::OutOfCredit
        | Cause::Unauthorised
        | Cause::RateLimited
        | Cause::Overloaded
        | Cause::OverBudget => {
            let text = format!(
                "The {role} ({agent}) of step `{}` ended before it was done: {} Answer `retry`, or something to say to it.",
                at.step_id,
                words::sentence(&ending)
            );
            at.asks(course, goes_on, agent, StepTrouble::Ended, text)
        }
    }
}

/// What a signal leads to, now that the agent is gone.
fn heed(at: &At<'_>, agent: AgentId, role: &str, signal: &Signal) -> Vec<Event> {
    let course = at.course();
    let goes_on = Next::Resume { agent, role: role.to_owned() };
    match signal {
        Signal::Complete { summary } => rest(at.world, agent).into_iter().chain(done(at, role, summary)).collect(),
        Signal::PartiallyComplete { progress, continuation_point } if course.continuations < MAX_CONTINUATIONS => {
            let course = Course { continuations: course.continuations + 1, ..course };
            let (progress, continuation_point) = (progress.clone(), continuation_point.clone());
            let brief = Brief::Continue { progress, continuation_point };
            let next = at.queued(course, Next::Begin { role: role.to_owned(), brief });
            rest(at.world, agent).into_iter().chain([next]).collect()
        }
        Signal::PartiallyComplete { progress, .. } => {
            let text = format!(
                "The {role} of step `{}` has handed its work on {MAX_CONTINUATIONS} times in a row and is still not done. It says: \
                 {progress}\nYour answer is told to it, and it goes on.",
                at.step_id
            );
            at.asks(Course { continuations: 0, ..course }, goes_on, agent, StepTrouble::Circle, text)
        }
        Signal::NeedsUserInput { question, context } => {
            let context = if context.is_empty() { String::new() } else { format!("\n\n{context}") };
            at.asks(course, goes_on, agent, StepTrouble::Input, format!("{question}{context}"))
        }
        Signal::NeedsRoleFollowup { target_role, reason, context, resume } => {
            // A target that waits for this very answer would wait for itself.
            let circles = course.callers.iter().any(|caller| caller.role == *target_role);
            if circles || course.callers.len() >= MAX_CALLERS || course.follow_ups >= MAX_FOLLOW_UPS {
                let text = words::circle(role, target_role, reason, agent);
                return at.asks(Course { follow_ups: 0, ..course }, goes_on, agent, StepTrouble::Circle, text);
            }
            let caller = Caller { agent, role: role.to_owned(), resume: *resume };
            let callers = course.callers.iter().cloned().chain([caller]).collect();
            let course = Course { callers, follow_ups: course.follow_ups + 1, ..course };
            let (reason, context) = (reason.clone(), context.clone());
            let brief = Brief::FollowUp { from: role.to_owned(), reason, context };
            vec![at.queued(course, Next::Begin { role: target_role.clone(), brief })]
        }
    }
}

/// A role is done: whoever waits for it goes on, or the step moves on to its next station.
fn done(at: &At<'_>, role: &str, summary: &str) -> Vec<Event> {
    if at.step.dropped {
        return vec![Event::StepDropped { quest: at.id, step: at.step_id.clone() }];
    }
    let course = Course { continuations: 0, ..at.course() };
    // It was called to plan, or has found out by itself that something else comes first.
    let planned = !course.callers.is_empty() || at.step.waits_for > 0;
    let replanned = at.step.phase == Phase::Work && role == at.charter.table.planner && planned;
    let mut callers = course.callers.clone();
    // One that is not to go on is done with what it asked for.
    while callers.last().is_some_and(|caller| !caller.resume) {
        callers.pop();
    }
    if let Some(caller) = callers.pop() {
        let plan = at.quest.plans.get(at.step_id).filter(|_| replanned);
        let next = Next::Resume { agent: caller.agent, role: caller.role };
        let outcome = words::outcome(role, summary, plan);
        return told(at, Course { callers, ..course }, &next, outcome);
    }
    let course = Course { callers, ..course };
    if replanned {
        // Its plan may be another now.
        return at.arrive(Course { station: 0, mendings: 0, ..course });
    }
    // A mending is followed by the ward that asked for it; everything else by the next station.
    let mended = course.mendings > 0 && at.is_ward(course.station);
    at.arrive(Course { station: course.station + u32::from(!mended), ..course })
}

/// An agent that has done its work sleeps until it is needed.
fn rest(world: &World, agent: AgentId) -> Option<Event> {
    let alive = |it: &agent::Agent| matches!(it.life, Life::Alive { .. });
    world.agent(agent).is_some_and(alive).then_some(Event::AgentSlept { agent })
}
