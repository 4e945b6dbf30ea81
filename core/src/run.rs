//! A run: a piece of work of an agent, in a process. A run is requested, spawned, started (Hatchery's tools answer), perhaps parked and
//! resumed, and it ends for a cause. Each process of a run is an attempt with a number. Reports of older attempts are refused.
//!
//! Messages to a process wait in a queue of [`Delivery`]s. The id of a delivery is the event that caused it. A delivery leaves the queue
//! when the process confirms that it received the delivery. So a delivery that a process did not confirm goes to the next process, and no
//! delivery is confirmed twice.

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

/// The name of the MCP server with Hatchery's tools.
pub const TOOL_SERVER: &str = "hatchery";

/// If a run stops stuck processes, a silent process is stopped this long after its silence was reported. The daemon may not have run in the
/// meantime, so it reads the output of the process first.
const LAST_LOOK_MS: u64 = 10_000;

/// The longest detail of a state that the world keeps, in characters.
const MAX_WORDS_CHARS: usize = 1_000;

/// The last run of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    pub number: u32,
    pub spec: Arc<RunSpec>,
    pub state: RunState,
    /// The current attempt, or the next one.
    pub attempt: Attempt,
    pub crashes: u32,
    /// How often in a row the run was parked.
    pub parks: u32,
    pub requested: Timestamp,
    /// When the oldest waiting message arrived, or when the run was requested.
    pub addressed: Timestamp,
    /// The open question to the user about the run.
    pub question: Option<EventId>,
    /// Answers that came after the process that asked had ended.
    pub early_answers: Vector<EarlyAnswer>,
    /// The agent has sent its signal.
    pub signalled: bool,
    pub turns: u32,
    pub spent: Usage,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunState {
    /// A process is wanted, but none has been reported yet.
    Starting,
    /// A process runs, but has not shown yet that Hatchery's tools answer.
    Spawned {
        process: Process,
    },
    /// The process works, or waits for a message.
    Running {
        process: Process,
    },
    /// The end is decided and recorded. The runner has not stopped the process yet.
    Stopping {
        why: StopWhy,
        process: Option<Process>,
    },
    /// The run waits for a rate limit, an overload, a budget or an answer, without a process.
    Parked {
        cause: Cause,
        until: Option<Timestamp>,
    },
    Ended {
        cause: Cause,
        at: Timestamp,
    },
}

/// A process of the operating system. Its start time distinguishes it from a later process with the same id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Process {
    pub pid: u32,
    /// In a unit of the operating system, counted from the start of the machine.
    pub began: u64,
}

/// Why a process is stopped. This is recorded before the process is stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum StopWhy {
    /// The user asked for it.
    User,
    /// The agent was killed.
    Killed,
    /// The process was silent for too long, and the run stops stuck processes.
    Stuck,
    /// The session of the agent ends.
    Session,
    /// The process reports that it cannot work, for example because Hatchery's tools do not answer.
    NotReady { why: String },
    /// The quest was paused. The agent continues later.
    Paused,
    /// The quest was abandoned.
    Abandoned,
    /// The agent has signalled, but the process did not end in time.
    Signalled,
    /// The process has waited for the user's answer for so long that its slot is given to another step.
    AwaitsPermission,
    /// A budget was used up in the middle of a turn, and the turn could not be interrupted. The run continues when there is a budget again.
    OverBudget,
    /// The agent is a step fork, and the run of the step's agent has ended.
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
            Self::User => "stopped by the user".into(),
            Self::Session => "its session ended".into(),
            Self::Killed => "its agent was killed".into(),
            Self::Stuck => "silent for too long".into(),
            Self::Paused => "its quest was paused".into(),
            Self::Abandoned => "its quest was abandoned".into(),
            Self::Signalled => "it did not end after its signal".into(),
            Self::AwaitsPermission => "It waits for a permission, and continues after your answer.".into(),
            Self::OverBudget => "its budget was used up in the middle of a turn".into(),
            Self::StepOver => "the run of the step's agent has ended".into(),
            Self::NotReady { why } => format!("it did not start: {why}; see its stderr"),
        }
    }
}

/// The summary of a run that has ended.
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

    /// When the silence of the process is reported, or the wait of a parked run ends.
    pub(crate) fn deadline(&self, conversation: &Conversation) -> Option<Timestamp> {
        match self.state {
            // No launcher has started the process, so its silence means nothing.
            RunState::Starting if self.attempt.waits => None,
            RunState::Starting | RunState::Spawned { .. } | RunState::Running { .. } => {
                let due = match self.attempt.silent {
                    None => Some(self.quiet_since().plus_ms(self.spec.stall_ms)),
                    Some(at) => self.spec.kill_stuck.then(|| at.plus_ms(self.spec.stall_ms.min(LAST_LOOK_MS))),
                };
                match self.attempt.asked_since() {
                    // While an agent of a quest waits for an answer, it holds a slot.
                    Some(since) => self.spec.signals.then(|| since.plus_ms(PATIENCE_MS)),
                    None => due.filter(|_| !self.listens(conversation)),
                }
            }
            // After its wait, an agent of a quest waits for a slot instead.
            RunState::Parked { until, .. } => until.filter(|_| !self.spec.signals),
            RunState::Stopping { .. } | RunState::Ended { .. } => None,
        }
    }

    /// Whether the process only waits for a message, so that its silence means nothing.
    fn listens(&self, conversation: &Conversation) -> bool {
        let at_rest =
            matches!(self.state, RunState::Running { .. }) && !self.attempt.in_turn && conversation.waiting.is_empty();
        at_rest && !self.is_last(conversation)
    }

    /// Whether the user has been asked for a permission and has not answered, so that the silence of the process means nothing.
    pub fn waits_for_permission(&self) -> bool {
        self.attempt.asked_since().is_some()
    }

    /// Since when the process is silent although it has work.
    fn quiet_since(&self) -> Timestamp {
        match self.attempt.in_turn {
            true => self.attempt.last_output,
            false => self.attempt.last_output.max(self.addressed),
        }
    }

    /// Whether the process may end, because its work is done or cannot be done.
    fn is_last(&self, conversation: &Conversation) -> bool {
        let done = self.turns > 0 && !self.attempt.in_turn && conversation.waiting.is_empty();
        let failed = self.attempt.outcome.last_turn().is_some() && !self.attempt.had_finished();
        let stays = self.spec.stays && self.attempt.capabilities.stays_open;
        // Some agent programs do not exit if they cannot open the session or do not accept the model. The deliveries in the queue are then
        // for the next process.
        let lost = match self.attempt.outcome.last_turn() {
            Some(TurnResult::SessionUnknown) => !self.attempt.has_started(),
            Some(TurnResult::Failed { .. }) => self.attempt.readiness != Readiness::Ready,
            Some(TurnResult::Ok | TurnResult::Interrupted) | None => false,
        };
        (done && (!stays || failed)) || (self.attempt.budget.is_used_up() && !self.attempt.in_turn) || lost
    }

    /// Whether the end of the run is decided.
    pub fn is_stopping(&self) -> bool {
        matches!(self.state, RunState::Stopping { .. })
    }

    /// Whether the run is parked.
    pub fn is_parked(&self) -> bool {
        matches!(self.state, RunState::Parked { .. })
    }

    /// Whether the run waits for a budget.
    pub fn is_broke(&self) -> bool {
        matches!(self.state, RunState::Parked { cause: Cause::OverBudget, .. })
    }

    /// Whether the agent must still send a signal.
    fn owes_signal(&self) -> bool {
        self.spec.signals && !self.signalled
    }

    /// The id of the current attempt.
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

/// Gives an agent without a run a conversation that was started outside of Hatchery. A conversation belongs to only one agent, because two
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

/// The agent that owns a conversation. None if no agent does, or if the owner is dead and its process has ended, so that another agent can
/// adopt the conversation.
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
    // An agent of the seats receives nothing outside of their session.
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

/// Takes a tool call, exactly once, because its number is checked. A refusal is an answer, too, and is recorded like any other.
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

/// Interrupts the turn; the process keeps running. A second request for the same turn changes nothing, because it would interrupt the next
/// turn.
pub(crate) fn interrupt(world: &World, agent: AgentId) -> Result<Vec<Event>, Refusal> {
    let run = open(world, agent)?;
    let conversation = world.conversation(agent);
    // Without echoes, the first output of a turn shows that it has begun. Until then, its message counts as being worked on.
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

/// The beginning of a text from a process, as the world keeps it.
fn cut(words: &str) -> String {
    words.chars().take(MAX_WORDS_CHARS).collect()
}
