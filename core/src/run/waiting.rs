//! What happens when time passes: a process is silent for too long, or a wait ends.

use super::{Conversation, Run, RunState, StopWhy};
use crate::event::RunEvent;
use crate::outcome::{Cause, Exit};
use crate::{AgentId, Event, World, ask, quest};

/// The deadline of a run has passed: its process is silent for too long, or its wait has ended.
pub(crate) fn due(world: &World, agent: AgentId) -> Vec<Event> {
    let Some(run) = world.run(agent) else { return Vec::new() };
    let of = run.attempt_id(agent);
    match run.state {
        // A step fork waits for a slot first.
        RunState::Parked { .. } if world.step_fork(agent).is_some() => {
            quest::queue_fork(world, agent).into_iter().collect()
        }
        RunState::Parked { .. } => vec![goes_on(world, agent, run)],
        RunState::Starting | RunState::Spawned { .. } | RunState::Running { .. } if run.waits_for_permission() => {
            vec![Event::Run { of, what: RunEvent::Stopping { why: StopWhy::AwaitsPermission } }]
        }
        RunState::Starting | RunState::Spawned { .. } | RunState::Running { .. } => {
            let silent = Event::Run { of, what: RunEvent::Silent { since: run.quiet_since() } };
            match (run.attempt.silent, run.spec.kill_stuck) {
                (None, false) => vec![silent, ask::of_silence(of, run.spec.stall_ms)],
                (None, true) => vec![silent],
                (Some(_), _) => vec![Event::Run { of, what: RunEvent::Stopping { why: StopWhy::Stuck } }],
            }
        }
        RunState::Stopping { .. } | RunState::Ended { .. } => Vec::new(),
    }
}

/// The wait of a parked run has ended. A run that had finished its work before it was parked ends here, because another process would only
/// cost a turn. The next message starts a new run.
pub(crate) fn goes_on(world: &World, agent: AgentId, run: &Run) -> Event {
    let of = run.attempt_id(agent);
    let waits = world.conversation(agent).is_some_and(Conversation::has_words);
    match run.state {
        RunState::Parked { cause: Cause::OverBudget, .. } if run.attempt.had_finished() && !waits => {
            let detail = "Its last turn ended well, and nothing was said to it since.".to_owned();
            Event::Run { of, what: RunEvent::Ended { cause: Cause::Completed, detail, exit: Exit::Unknown } }
        }
        RunState::Parked { .. }
        | RunState::Starting
        | RunState::Spawned { .. }
        | RunState::Running { .. }
        | RunState::Stopping { .. }
        | RunState::Ended { .. } => Event::Run { of: of.next(), what: RunEvent::Resumed },
    }
}
