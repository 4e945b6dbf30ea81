//! A run: one piece of work of an agent. It is requested, spawned (it has a process), started (the process can call our tools), perhaps
//! parked and resumed, and it ends with a cause. Each process of a run is an attempt with a number. Reports of older attempts are refused.
//!
//! Messages to a process wait in a queue of [`Delivery`]s. The id of a delivery is the event that caused it. A delivery leaves the queue
//! when the process confirms it. If the process dies before that, the next process gets the delivery. No process gets it twice.

mod attempt;
mod choice;
mod conversation;
mod desired;
mod ending;
mod listener;
mod opening;
mod places;
mod spec;
mod waiting;

use crate::agent::{Lifecycle, living};
use crate::event::Refused;
use crate::event::{AgentEvent, RunEvent};
use crate::harness::Capabilities;
use crate::outcome::{Cause, Exit};
use crate::output::TurnResult;
use crate::permission::{EarlyAnswer, PATIENCE_MS};
use crate::refusal::BAD_SIGNAL;
use crate::usage::Usage;
use crate::{AgentId, Command, Event, EventId, MessageKind, Refusal, Timestamp, World};
use imbl::Vector;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub use attempt::{Attempt, AttemptId, BudgetState, Readiness};
pub use choice::{EarlierWork, RunFacts, RunOptions, RunPurpose, UsualRun, choose_spec, fork_starts, last_spec};
pub use conversation::{Conversation, Delivery, DeliveryKind, ForeignSession, HarnessSession, delivery_of, wire_name};
pub use desired::{DesiredRun, DesiredState};
pub(crate) use ending::{exited, unreachable};
pub(crate) use listener::{take_output, tool_call, tool_result};
pub use opening::{inherited_session, opening};
pub(crate) use places::WAIT_TOOL;
pub use places::{MAX_LENDERS, Places};
pub(crate) use spec::check_spec;
use spec::check_texts;
pub use spec::{MAX_RETRIES, MAX_SPEC_BYTES, MAX_STALL_MS, MIN_STALL_MS, RunSpec};
pub(crate) use waiting::{due, goes_on};

/// The name of the MCP server that offers our tools to a process.
pub const TOOL_SERVER: &str = "hatchery";

/// If a run stops stuck processes, a silent process is stopped this long after its silence was reported. The daemon may have been away, and
/// first reads what the process wrote meanwhile.
const LAST_LOOK_MS: u64 = 10_000;

/// The longest detail of a state that the world keeps, in characters.
const MAX_WORDS_CHARS: usize = 1_000;

/// The last run of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    pub number: u32,
    pub spec: Arc<RunSpec>,
    pub state: RunState,
    /// The current process, or the next one.
    pub attempt: Attempt,
    pub crashes: u32,
    /// How often in a row it was parked.
    pub parks: u32,
    pub requested: Timestamp,
    /// Since when a delivery waits, if one waits.
    pub addressed: Timestamp,
    /// The open question to the user about it.
    pub question: Option<EventId>,
    /// Answers that came after the process that asked had ended.
    pub early_answers: Vector<EarlyAnswer>,
    /// It has sent its signal.
    pub signalled: bool,
    pub turns: u32,
    pub spent: Usage,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunState {
    /// A process is wanted, and the runner has not reported one yet.
    Starting,
    /// There is a process, which has not shown that it can call our tools.
    Spawned {
        process: Process,
    },
    /// It works, or waits for a message.
    Running {
        process: Process,
    },
    /// The end of the run is recorded as decided, and the runner has not reported the end of the process yet.
    Stopping {
        why: StopWhy,
        process: Option<Process>,
    },
    /// Waits for a better moment, without a process.
    Parked {
        cause: Cause,
        until: Option<Timestamp>,
    },
    Ended {
        cause: Cause,
        at: Timestamp,
    },
}

/// A process. Its start time distinguishes it from a later process with the same id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Process {
    pub pid: u32,
    /// In a unit of the operating system, counted from the start of the machine.
    pub began: u64,
}

/// Why a process is stopped. Recorded before it is stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum StopWhy {
    /// A person asked for it.
    User,
    /// Its agent was killed.
    Killed,
    /// It was silent for too long, and its run stops stuck processes.
    Stuck,
    /// Its session ends.
    Session,
    /// The process says that it cannot work, for example because our tools do not answer it.
    NotReady { why: String },
    /// Its quest is paused; it goes on later.
    Paused,
    /// Its quest was abandoned.
    Abandoned,
    /// It has signalled, and did not leave.
    Signalled,
    /// It waits for the user's answer for so long that its slot is given to another step.
    AwaitsPermission,
    /// A budget is used up in the middle of a turn, and the turn cannot be interrupted. It goes on when there is money again.
    OverBudget,
    /// It is a fork of an agent of a quest, and that agent's run is over.
    StepOver,
}

impl StopWhy {
    fn cause(&self) -> Cause {
        match self {
            Self::User | Self::Session | Self::Paused | Self::Abandoned | Self::StepOver => Cause::UserEnded,
            Self::Signalled => Cause::Completed,
            Self::AwaitsPermission => Cause::AwaitsPermission,
            Self::OverBudget => Cause::OverBudget,
            Self::Killed => Cause::Killed,
            Self::Stuck => Cause::Stuck,
            Self::NotReady { .. } => Cause::Crashed,
        }
    }

    pub(crate) fn detail(&self) -> String {
        match self {
            Self::User => "stopped by a person".into(),
            Self::Session => "its session ended".into(),
            Self::Killed => "its agent was killed".into(),
            Self::Stuck => "silent for too long".into(),
            Self::Paused => "its quest was paused".into(),
            Self::Abandoned => "its quest was abandoned".into(),
            Self::Signalled => "it had signalled and did not leave".into(),
            Self::AwaitsPermission => "It waits for a permission, and goes on with your answer.".into(),
            Self::OverBudget => "its budget was used up in the middle of a turn".into(),
            Self::StepOver => "the run of the agent that it was forked for is over".into(),
            Self::NotReady { why } => format!("it did not start: {why}; see its stderr"),
        }
    }
}

/// A run that is over, in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastRun {
    pub harness: String,
    pub attempts: u32,
    pub turns: u32,
    pub requested: Timestamp,
    pub ended: Timestamp,
    pub cause: Cause,
    pub detail: String,
    pub spent: Usage,
}

impl Run {
    pub fn is_open(&self) -> bool {
        match self.state {
            RunState::Starting
            | RunState::Spawned { .. }
            | RunState::Running { .. }
            | RunState::Stopping { .. }
            | RunState::Parked { .. } => true,
            RunState::Ended { .. } => false,
        }
    }

    /// When the silence of the process is to be reported, or the wait of the run is over.
    pub(crate) fn deadline(&self, conversation: &Conversation) -> Option<Timestamp> {
        match self.state {
            // No launcher has started it, so its silence means nothing.
            RunState::Starting if self.attempt.waits => None,
            RunState::Starting | RunState::Spawned { .. } | RunState::Running { .. } => {
                let due = match self.attempt.silent {
                    None => Some(self.quiet_since().plus_ms(self.spec.stall_ms)),
                    Some(at) => self.spec.kill_stuck.then(|| at.plus_ms(self.spec.stall_ms.min(LAST_LOOK_MS))),
                };
                match self.attempt.asked_since() {
                    // An agent of a quest holds a slot.
                    Some(since) => self.spec.signals.then(|| since.plus_ms(PATIENCE_MS)),
                    None => due.filter(|_| !self.listens(conversation)),
                }
            }
            // After its wait, an agent of a quest waits for a slot.
            RunState::Parked { until, .. } => until.filter(|_| !self.spec.signals),
            RunState::Stopping { .. } | RunState::Ended { .. } => None,
        }
    }

    /// Whether its process has nothing to do but to wait for a message, so that its silence means nothing.
    fn listens(&self, conversation: &Conversation) -> bool {
        let at_rest =
            matches!(self.state, RunState::Running { .. }) && !self.attempt.in_turn && conversation.unheard.is_empty();
        at_rest && !self.is_last(conversation)
    }

    /// Whether the user has been asked for a permission and has not answered, so that the silence of the process means nothing.
    pub fn waits_for_permission(&self) -> bool {
        self.attempt.asked_since().is_some()
    }

    /// Since when it is silent although it has work.
    fn quiet_since(&self) -> Timestamp {
        match self.attempt.in_turn {
            true => self.attempt.last_output,
            false => self.attempt.last_output.max(self.addressed),
        }
    }

    /// Whether nothing more will be sent to its process, so that its input can be closed: the work is done, or cannot be done.
    fn is_last(&self, conversation: &Conversation) -> bool {
        let done = self.turns > 0 && !self.attempt.in_turn && conversation.unheard.is_empty();
        let failed = self.attempt.outcome.last_turn().is_some() && !self.attempt.had_finished();
        let stays = self.spec.stays && self.attempt.capabilities.stays_open;
        // Some programs do not leave by themselves when they cannot open the session, or do not take the model. What waits is for the
        // next process.
        let lost = match self.attempt.outcome.last_turn() {
            Some(TurnResult::SessionUnknown) => !self.attempt.has_started(),
            Some(TurnResult::Failed { .. }) => self.attempt.readiness != Readiness::Ready,
            Some(TurnResult::Ok | TurnResult::Interrupted) | None => false,
        };
        (done && (!stays || failed)) || (self.attempt.budget.is_used_up() && !self.attempt.in_turn) || lost
    }

    /// Its end is decided.
    pub fn is_stopping(&self) -> bool {
        matches!(self.state, RunState::Stopping { .. })
    }

    /// Waits for a better moment.
    pub fn is_parked(&self) -> bool {
        matches!(self.state, RunState::Parked { .. })
    }

    /// Waits for money.
    pub fn is_broke(&self) -> bool {
        matches!(self.state, RunState::Parked { cause: Cause::OverBudget, .. })
    }

    /// Whether it was to signal and has not.
    fn owes_signal(&self) -> bool {
        self.spec.signals && !self.signalled
    }

    /// The attempt that it is at.
    pub fn attempt_id(&self, agent: AgentId) -> AttemptId {
        AttemptId { agent, run: self.number, attempt: self.attempt.number }
    }

    pub fn process(&self) -> Option<&Process> {
        match &self.state {
            RunState::Spawned { process } | RunState::Running { process } => Some(process),
            RunState::Stopping { process, .. } => process.as_ref(),
            RunState::Starting | RunState::Parked { .. } | RunState::Ended { .. } => None,
        }
    }
}

/// Gives an agent that was never run a conversation that was begun elsewhere. A conversation has one agent, because two
/// processes must not write to it.
pub(crate) fn adopt(
    world: &World,
    agent: AgentId,
    harness_session: &ForeignSession,
    name: Option<&str>,
) -> Result<Vec<Event>, Refusal> {
    crate::agent::check_name(name)?;
    check_texts([
        Some(&harness_session.harness),
        Some(&harness_session.session),
        Some(&harness_session.host),
        harness_session.folder.as_deref(),
    ])?;
    living(world, agent)?;
    if world.conversation(agent).is_some() {
        return Err(Refusal::HasHarnessSession(agent));
    }
    if let Some(owner) = holder(world, &harness_session.session) {
        let name = world.agent(owner).and_then(|it| it.name.clone());
        return Err(Refusal::HarnessSessionTaken { session: harness_session.session.clone(), agent: owner, name });
    }
    let named = name.map(|name| Event::Agent { agent, what: AgentEvent::Renamed { name: Some(name.to_owned()) } });
    Ok(named
        .into_iter()
        .chain([Event::Agent { agent, what: AgentEvent::HarnessSessionAdopted(harness_session.clone()) }])
        .collect())
}

/// The agent of a conversation. If the agent is dead and its process has ended, the conversation can be taken over.
pub fn holder(world: &World, session: &str) -> Option<AgentId> {
    world
        .harness_session_owner(session)
        .filter(|owner| living(world, *owner).is_ok() || at_rest(world, *owner).is_err())
}

/// Requests a run of the agent. A sleeping agent wakes: an agent of a seat in the session of the seats, any other agent outside of
/// a session.
pub(crate) fn request(world: &World, agent: AgentId, spec: &RunSpec) -> Result<Vec<Event>, Refusal> {
    let it = living(world, agent)?;
    at_rest(world, agent)?;
    check_spec(spec)?;
    let woken = match (crate::seat::session_of(world, agent)?, it.session()) {
        (Some(session), _) => crate::seat::enter(world, agent, session),
        (None, Some(session)) => crate::session::open(world, session).map(|_| Vec::new())?,
        (None, None) if it.lifecycle == Lifecycle::Sleeping => {
            vec![Event::Agent { agent, what: AgentEvent::Woken { session: None } }]
        }
        (None, None) => Vec::new(),
    };
    let run = world.run(agent).map_or(0, |last| last.number) + 1;
    Ok(woken
        .into_iter()
        .chain([Event::Agent { agent, what: AgentEvent::RunRequested { run, spec: spec.clone() } }])
        .collect())
}

/// Refuses an agent that has an open run.
pub(crate) fn at_rest(world: &World, agent: AgentId) -> Result<(), Refusal> {
    match world.run(agent).filter(|run| run.is_open()) {
        Some(run) => Err(Refusal::RunOpen { agent, run: run.number }),
        None => Ok(()),
    }
}

/// Sends a message to an agent. If the agent has no open run, `spec` says how to run it. An open run is not moved to another program or
/// model.
pub(crate) fn say(world: &World, agent: AgentId, text: &str, spec: Option<&RunSpec>) -> Result<Vec<Event>, Refusal> {
    let said = crate::history::add(world, agent, MessageKind::User, text)?;
    // An agent of the seats hears nothing outside of their session.
    crate::seat::session_of(world, agent)?;
    // The message would wait for a run that was not requested.
    let is_stopping = |run: &&Run| matches!(run.state, RunState::Stopping { .. }) && !world.seats().awaits(agent);
    if let Some(run) = world.run(agent).filter(is_stopping) {
        return Err(Refusal::RunStopping { agent, run: run.number });
    }
    let begun = match (world.run(agent).filter(|run| run.is_open()), spec) {
        (None, Some(spec)) => request(world, agent, spec)?,
        (Some(run), Some(spec)) if run.spec.harness != spec.harness || run.spec.model != spec.model => {
            let (harness, model) = (run.spec.harness.clone(), run.spec.model.clone());
            return Err(Refusal::OtherHarness { agent, harness, model });
        }
        (Some(_), Some(_)) | (_, None) => Vec::new(),
    };
    Ok(crate::seat::addressed(world, agent).into_iter().chain(said).chain(begun).collect())
}

/// The runner has a process for the attempt.
pub(crate) fn spawned(
    world: &World,
    of: AttemptId,
    process: &Process,
    session: Option<&str>,
    copy_of: Option<&str>,
    capabilities: Capabilities,
) -> Result<Vec<Event>, Refusal> {
    let run = at_attempt(world, of)?;
    match run.state {
        RunState::Starting | RunState::Stopping { process: None, .. } => {
            let (session, copy_of) = (session.map(str::to_owned), copy_of.map(str::to_owned));
            let what = RunEvent::Spawned { process: process.clone(), session, copy_of, capabilities };
            Ok(vec![Event::Run { of, what }])
        }
        RunState::Spawned { .. }
        | RunState::Running { .. }
        | RunState::Stopping { .. }
        | RunState::Parked { .. }
        | RunState::Ended { .. } => Err(Refusal::StaleAttempt(of)),
    }
}

/// There is no place for a process of the attempt. Recorded once for each attempt.
pub(crate) fn waits(world: &World, of: AttemptId) -> Result<Vec<Event>, Refusal> {
    let run = at_attempt(world, of)?;
    match run.state {
        RunState::Starting if run.attempt.waits => Ok(Vec::new()),
        RunState::Starting => Ok(vec![Event::Run { of, what: RunEvent::Waiting }]),
        RunState::Spawned { .. }
        | RunState::Running { .. }
        | RunState::Stopping { .. }
        | RunState::Parked { .. }
        | RunState::Ended { .. } => Err(Refusal::StaleAttempt(of)),
    }
}

/// Carries out a call of an agent, exactly once: only the next number is accepted. A refused call is recorded, too, because the agent
/// may ask for the same answer again.
pub(crate) fn take_call(
    world: &World,
    of: AttemptId,
    number: u64,
    ask: &Result<Box<Command>, Refused>,
    now: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    let run = at_attempt(world, of)?;
    if run.process().is_none() {
        return Err(Refusal::StaleAttempt(of));
    }
    if number != run.attempt.calls + 1 {
        return Err(Refusal::CallTaken { agent: of.agent, number: run.attempt.calls });
    }
    let decided = match ask {
        Ok(command) => crate::decide(world, command, now).map_err(|refusal| Refused::from(&refusal)),
        Err(refused) => Err(refused.clone()),
    };
    let (events, refused) = match decided {
        Ok(events) => (events, None),
        Err(refused) => (Vec::new(), Some(refused)),
    };
    // A call that cannot be read has no command. Only its refusal is recorded.
    let signal = match ask {
        Ok(command) => matches!(**command, Command::GiveSignal { .. }),
        Err(refused) => refused.code == BAD_SIGNAL,
    };
    let taken = Event::Run { of, what: RunEvent::CallTaken { number, led_to: events.len() as u64, refused, signal } };
    Ok([taken].into_iter().chain(events).collect())
}

/// Interrupts the turn; the process keeps running. A second request for the same turn changes nothing, because it would interrupt the
/// next turn.
pub(crate) fn interrupt(world: &World, agent: AgentId) -> Result<Vec<Event>, Refusal> {
    let run = open(world, agent)?;
    let conversation = world.conversation(agent);
    // Without echoes, a turn is known to run when it says something. Until then its message counts as being worked on.
    let unconfirmed = !run.attempt.capabilities.echoes_messages && conversation.is_some_and(Conversation::has_words);
    let works = run.attempt.in_turn || (run.attempt.has_started() && unconfirmed);
    match run.state {
        RunState::Spawned { .. } | RunState::Running { .. } if !run.attempt.capabilities.interrupts => {
            Err(Refusal::CannotInterrupt { agent, harness: run.spec.harness.clone() })
        }
        RunState::Spawned { .. } | RunState::Running { .. }
            if works && conversation.is_some_and(Conversation::is_interrupted) =>
        {
            Ok(Vec::new())
        }
        RunState::Spawned { .. } | RunState::Running { .. } if works => {
            Ok(vec![Event::Run { of: run.attempt_id(agent), what: RunEvent::Interrupted }])
        }
        RunState::Starting
        | RunState::Spawned { .. }
        | RunState::Running { .. }
        | RunState::Stopping { .. }
        | RunState::Parked { .. }
        | RunState::Ended { .. } => Err(Refusal::NoTurn(agent)),
    }
}

/// Requests the end of a run. A run without a process ends at once.
pub(crate) fn stop(world: &World, agent: AgentId, why: &StopWhy) -> Result<Vec<Event>, Refusal> {
    let run = open(world, agent)?;
    let of = run.attempt_id(agent);
    match run.state {
        RunState::Stopping { .. } => Err(Refusal::RunStopping { agent, run: run.number }),
        RunState::Parked { .. } => Ok(vec![Event::Run {
            of,
            what: RunEvent::Ended { cause: why.cause(), detail: why.detail(), exit: Exit::Unknown },
        }]),
        RunState::Starting | RunState::Spawned { .. } | RunState::Running { .. } | RunState::Ended { .. } => {
            Ok(vec![Event::Run { of, what: RunEvent::Stopping { why: why.clone() } }])
        }
    }
}

/// The run, if it is at this attempt.
pub(crate) fn at_attempt(world: &World, of: AttemptId) -> Result<&Run, Refusal> {
    let run = world.run(of.agent).ok_or(Refusal::NoRun(of.agent))?;
    match run.number == of.run && run.attempt.number == of.attempt && run.is_open() {
        true => Ok(run),
        false => Err(Refusal::StaleAttempt(of)),
    }
}

fn open(world: &World, agent: AgentId) -> Result<&Run, Refusal> {
    world.agent(agent).ok_or(Refusal::UnknownAgent(agent))?;
    world.run(agent).filter(|run| run.is_open()).ok_or(Refusal::NoRun(agent))
}

/// The beginning of what a process said: the world keeps it.
fn cut(words: &str) -> String {
    words.chars().take(MAX_WORDS_CHARS).collect()
}
