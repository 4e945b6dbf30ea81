//! The end of a process: why it ended, and whether its run continues, waits or ends.

use super::{AttemptId, Conversation, Run, RunState, StopWhy, at_attempt, cut};
use crate::agent::living;
use crate::event::RunEvent;
use crate::outcome::{Cause, Exit};
use crate::output::TurnResult;
use crate::{Event, Refusal, Timestamp, World, budget, quest};

/// The first wait after an overload, if the service does not say how long to wait. Each further wait is twice as long.
const FIRST_PARK_MS: u64 = 15_000;
/// The first wait after a crash.
const FIRST_CRASH_PAUSE_MS: u64 = 1_000;
/// The longest wait between two attempts.
const LONGEST_PARK_MS: u64 = 30 * 60 * 1_000;

/// The detail of the end of a run that belongs to another project folder.
const UNREACHABLE: &str = "It was begun in another project folder, from which this log was imported or copied. Say something to it, and it \
    goes on here.";

/// A process has ended.
pub(crate) fn exited(
    world: &World,
    of: AttemptId,
    exit: Exit,
    evidence: Option<&str>,
    now: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    let run = at_attempt(world, of)?;
    let waits = world.conversation(of.agent).is_some_and(Conversation::has_words);
    // A signal in the output of the agent counts, even if the tools could not pass it on.
    let signal = match run.owes_signal() {
        true => quest::from_stream(world, of, run.attempt.signal_in_output.as_deref()),
        false => Vec::new(),
    };
    let owes = run.owes_signal() && signal.is_empty();
    let (cause, detail) = match &run.state {
        RunState::Stopping { why, .. } => (why.cause(), why.detail()),
        RunState::Starting | RunState::Spawned { .. } | RunState::Running { .. } => {
            judge(run, exit, evidence, waits, owes)
        }
        RunState::Parked { .. } | RunState::Ended { .. } => return Err(Refusal::StaleAttempt(of)),
    };
    let ended = |cause, detail| vec![Event::Run { of, what: RunEvent::Ended { cause, detail, exit } }];
    if run.signalled || !signal.is_empty() {
        return Ok(signal.into_iter().chain(ended(cause, detail)).collect());
    }
    let resumed = Event::Run { of: of.next(), what: RunEvent::Resumed };
    // The answer may have come while the process was being stopped.
    if matches!(run.state, RunState::Stopping { why: StopWhy::AwaitsPermission, .. }) && living(world, of.agent).is_ok()
    {
        return Ok(vec![match run.waits_for_permission() {
            true => Event::Run { of, what: RunEvent::Parked { cause, until: None, detail } },
            false => resumed,
        }]);
    }
    // If the budget is still used up, the run is parked before its next attempt.
    if matches!(run.state, RunState::Stopping { why: StopWhy::OverBudget, .. }) && living(world, of.agent).is_ok() {
        return Ok(vec![resumed]);
    }
    let lives = living(world, of.agent).is_ok() && !matches!(run.state, RunState::Stopping { .. });
    if !lives {
        return Ok(ended(cause, detail));
    }
    Ok(match cause {
        Cause::RateLimited | Cause::Overloaded | Cause::Unavailable if run.spec.parks => {
            let until = run
                .attempt
                .outcome
                .resets_at()
                .filter(|at| *at > now)
                .unwrap_or_else(|| now.plus_ms(back_off(FIRST_PARK_MS, run.parks)));
            vec![Event::Run { of, what: RunEvent::Parked { cause, until: Some(until), detail } }]
        }
        // The last turn had ended, so a new process would only cost a turn. The next message starts one.
        Cause::Crashed | Cause::LostWithMachine if run.attempt.had_finished() && !waits && !owes => {
            ended(cause, detail)
        }
        Cause::Crashed | Cause::LostWithMachine if run.crashes < run.spec.retries && exit != Exit::NotStarted => {
            let forgotten = run.attempt.outcome.last_turn() == Some(&TurnResult::SessionUnknown);
            let then = match crash_pause(run).filter(|_| cause == Cause::Crashed && !forgotten) {
                None => resumed,
                Some(ms) => {
                    let detail = format!("It is started again in {} s.", ms / 1_000);
                    Event::Run { of, what: RunEvent::Parked { cause, until: Some(now.plus_ms(ms)), detail } }
                }
            };
            vec![Event::Run { of, what: RunEvent::Crashed { cause, detail, exit, forgotten } }, then]
        }
        // The process ended because its budget was used up, and the agent has more to do. The run waits for a budget.
        Cause::Completed if owes => vec![resumed],
        // The turn was interrupted because of the budget.
        Cause::UserEnded if run.attempt.budget.is_cut_short() => vec![resumed],
        // A message arrived while the process was ending.
        Cause::Completed | Cause::UserEnded if waits => vec![resumed],
        // The process should have stayed open, but was ended because its budget was used up.
        Cause::Completed | Cause::UserEnded if run.attempt.budget.is_used_up() && run.spec.stays => {
            match budget::over(world, of.agent, now) {
                Some(over) => budget::park(world, of.agent, run, over),
                None => ended(cause, detail),
            }
        }
        Cause::Completed
        | Cause::Crashed
        | Cause::Stuck
        | Cause::Killed
        | Cause::UserEnded
        | Cause::RateLimited
        | Cause::Overloaded
        | Cause::OutOfCredit
        | Cause::Unauthorised
        | Cause::PromptTooLong
        | Cause::OverBudget
        | Cause::AwaitsPermission
        | Cause::Unavailable
        | Cause::Refused
        | Cause::OutputTooLong
        | Cause::WrongModel
        | Cause::BadArguments
        | Cause::LostWithMachine => ended(cause, detail),
    })
}

/// The run belongs to another project folder, and this log is a copy. The run ends, because a next attempt would belong to that folder,
/// too.
pub(crate) fn unreachable(world: &World, of: AttemptId) -> Result<Vec<Event>, Refusal> {
    let run = at_attempt(world, of)?;
    let (cause, detail) = match &run.state {
        RunState::Stopping { why, .. } => (why.cause(), why.detail()),
        RunState::Starting | RunState::Spawned { .. } | RunState::Running { .. } | RunState::Parked { .. } => {
            (Cause::LostWithMachine, UNREACHABLE.to_owned())
        }
        RunState::Ended { .. } => return Err(Refusal::StaleAttempt(of)),
    };
    Ok(vec![Event::Run { of, what: RunEvent::Ended { cause, detail, exit: Exit::Unknown } }])
}

/// Why a process ended that was not stopped. `waits`: a delivery waits for it. `owes`: the agent has not sent its signal yet.
fn judge(run: &Run, exit: Exit, evidence: Option<&str>, waits: bool, owes: bool) -> (Cause, String) {
    let (cause, detail) = match run.attempt.outcome.cause(exit, evidence) {
        // A process that should stay open ends only if its budget is used up: then it is asked to end, and is stopped if it does not.
        (Cause::Completed, _) if run.spec.stays && exit != Exit::Code(0) && !run.attempt.budget.is_used_up() => {
            let cause = if exit == Exit::LostWithMachine { Cause::LostWithMachine } else { Cause::Crashed };
            (cause, format!("It ended between two turns ({exit}). Say something to it, and it goes on."))
        }
        (Cause::Completed, _) if owes && !run.attempt.budget.is_used_up() => {
            (Cause::Crashed, format!("It ended without `signal-back` ({exit})."))
        }
        // This counts as a crash, so that the number of retries is limited.
        (Cause::Completed | Cause::UserEnded, _) if waits && !run.attempt.has_confirmed => {
            (Cause::Crashed, format!("It ended before it received its message ({exit})."))
        }
        judged => judged,
    };
    match evidence.filter(|_| cause == Cause::Crashed) {
        Some(evidence) => (cause, cut(&format!("{detail} It left behind: {evidence}"))),
        None => (cause, cut(&detail)),
    }
}

fn back_off(first_ms: u64, times: u32) -> u64 {
    first_ms.saturating_mul(1 << times.min(16)).min(LONGEST_PARK_MS)
}

/// How long to wait after a crash, or after an end without a signal. A process that was at work is restarted at once. A process that ended
/// before it was ready, or that crashed before, would probably crash again.
fn crash_pause(run: &Run) -> Option<u64> {
    (run.crashes > 0 || !run.attempt.has_started()).then(|| back_off(FIRST_CRASH_PAUSE_MS, run.crashes))
}
