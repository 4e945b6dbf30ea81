//! A run: an agent at work in a process. It is asked for, spawned, started (its tools answer), perhaps parked or resumed,
//! and it ends for a cause. Each process of a run is an attempt with a number: whatever comes from an older one is refused.
//!
//! What is to be said to a process is a queue of [`Delivery`]s, each known by the event that caused it. It leaves the
//! queue when the process says that it has heard it, so a process that dies before that gets it again, and none gets it twice.

mod conversation;
mod listener;

use crate::agent::{Lifecycle, living};
use crate::event::Refused;
use crate::event::{AgentEvent, RunEvent};
use crate::harness::{Capabilities, Opening};
use crate::outcome::{Cause, Exit, Outcome};
use crate::output::TurnResult;
use crate::permission::{EarlyAnswer, PATIENCE_MS, PendingPermission, PendingState, PermissionPolicy};
use crate::usage::{Meter, Usage};
use crate::{AgentId, Command, Event, EventId, MessageKind, Refusal, Timestamp, World, ask, budget, quest};
use imbl::Vector;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub use conversation::{Conversation, Delivery, DeliveryKind, ForeignSession, HarnessSession, delivery_of, wire_name};
pub(crate) use listener::{take_output, tool_call, tool_result};

/// The name of the MCP server that offers our tools to a process.
pub const TOOL_SERVER: &str = "hatchery";
/// The longest folder, harness or host name, in bytes.
pub const MAX_SPEC_BYTES: usize = 4_096;
/// The shortest silence that may count as stuck.
pub const MIN_STALL_MS: u64 = 1_000;
/// The longest: a week.
pub const MAX_STALL_MS: u64 = 7 * 24 * 3_600 * 1_000;
/// More than this many crashes in a row are not bad luck.
pub const MAX_RETRIES: u32 = 100;
/// The first wait after an overload, when nobody says how long to wait; each further one is twice as long.
const FIRST_PARK_MS: u64 = 15_000;
/// The same after a crash.
const FIRST_CRASH_PAUSE_MS: u64 = 1_000;
/// The longest wait between two attempts.
const LONGEST_PARK_MS: u64 = 30 * 60 * 1_000;

/// How long after the report of its silence a process is stopped that is to be stopped for it. Whoever was away itself first hears
/// what was said meanwhile.
const LAST_LOOK_MS: u64 = 10_000;

/// How much of what is said about something is kept in the world.
const MAX_WORDS_CHARS: usize = 1_000;

/// How an agent is to be run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunSpec {
    /// The adapter that knows how to start the process.
    pub harness: String,
    /// Where it runs: processes do not move between machines.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub host: Arc<str>,
    /// The folder it works in; the project's root without.
    #[serde(default)]
    pub folder: Option<String>,
    #[serde(default)]
    pub model: Option<String>,
    /// The script that a scripted agent plays.
    #[serde(default)]
    pub script: Option<String>,
    /// Waits for further messages after a turn, instead of ending.
    #[serde(default)]
    pub stays: bool,
    /// Silence that counts as stuck.
    pub stall_ms: u64,
    /// Whether a stuck process is stopped. Otherwise a person is asked.
    #[serde(default)]
    pub kill_stuck: bool,
    /// How often a crashed process is resumed.
    pub retries: u32,
    /// Whether the run waits out rate limits and overloads.
    pub parks: bool,
    /// Its work is done when it has signalled: an end without a signal is a crash, whatever the exit code.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub signals: bool,
    /// What its agent may do without asking. Runs from before there were permissions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<PermissionPolicy>,
}

impl RunSpec {
    pub fn policy(&self) -> PermissionPolicy {
        self.permissions.unwrap_or(PermissionPolicy::None)
    }
}

/// The last run of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    pub number: u32,
    pub spec: Arc<RunSpec>,
    pub state: RunState,
    /// It is `Starting`, and has to wait until fewer agents run.
    pub waits: bool,
    /// The number of its latest process.
    pub attempt: u32,
    pub crashes: u32,
    /// Parked so often in a row.
    pub parks: u32,
    pub requested: Timestamp,
    /// The last sign of life of the process.
    pub last_output: Timestamp,
    /// Since when something waits to be said to it, if anything does.
    pub addressed: Timestamp,
    /// How much of the process's output is taken in, in bytes.
    pub spooled: u64,
    /// How many of the calls that it wrote down are taken in.
    pub calls: u64,
    /// Where the answers to the last of them are.
    pub answers: Vector<(u64, EventId)>,
    /// What the harness of its process can do.
    pub capabilities: Capabilities,
    /// Its conversation begins as a copy of another: so do the counts of what it used.
    pub copied: bool,
    /// Its process has shown that our tools answer it.
    pub started: bool,
    /// Its process has heard something of what was to be said to it.
    pub heard: bool,
    /// A turn is under way.
    pub in_turn: bool,
    /// When its silence was reported, if it is silent.
    pub silent: Option<Timestamp>,
    /// What the human was asked about it and has not answered.
    pub question: Option<EventId>,
    /// What its process asks permission for, and has not received the answer to.
    pub permissions: Vector<PendingPermission>,
    /// Answers that came when the process that had asked was gone.
    pub early_answers: Vector<EarlyAnswer>,
    /// A budget is used up: after this turn nothing more is begun.
    pub held: bool,
    /// Its turn was interrupted for the budget, so that there is more to do.
    pub cut_short: bool,
    /// How often it has asked the model since then.
    pub overspent: u32,
    /// It has signalled what there is to say about its step.
    pub signalled: bool,
    /// The signal that its process last spoke of in its own stream, as it was written.
    pub signal_heard: Option<String>,
    pub turns: u32,
    pub outcome: Outcome,
    /// What its process has reported before it showed its conversation.
    pub meter: Meter,
    pub spent: Usage,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunState {
    /// A process is wanted; none is known.
    Starting,
    /// There is a process; it has not shown that our tools answer it.
    Spawned {
        process: Process,
    },
    /// It works, or waits for a message.
    Running {
        process: Process,
    },
    /// Its end is decided and recorded; the shell has yet to bring it about.
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

/// A process, told from a later one with the same number by when it began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Process {
    pub pid: u32,
    /// In the machine's own count, since it was switched on.
    pub began: u64,
}

/// Why a process is stopped: recorded before it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum StopWhy {
    /// A person asked for it.
    User,
    /// Its agent was killed.
    Killed,
    /// It was silent for too long, and the run says that such ones are stopped.
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
}

impl StopWhy {
    fn cause(&self) -> Cause {
        match self {
            Self::User | Self::Session | Self::Paused | Self::Abandoned => Cause::UserEnded,
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

/// What should be so for a run that is not over: the shell compares it with what is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DesiredRun {
    pub run: u32,
    pub attempt: u32,
    pub host: Arc<str>,
    pub state: DesiredState,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DesiredState {
    /// There is a process, and it gets told everything up to here; `last` when nothing will follow.
    Running { upto: Option<EventId>, last: bool },
    /// There is no process.
    Stopped,
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

    /// When its silence is to be reported, or its wait is over.
    pub(crate) fn deadline(&self, conversation: &Conversation) -> Option<Timestamp> {
        match self.state {
            // Nobody has started it, so its silence means nothing.
            RunState::Starting if self.waits => None,
            RunState::Starting | RunState::Spawned { .. } | RunState::Running { .. } => {
                let due = match self.silent {
                    None => Some(self.quiet_since().plus_ms(self.spec.stall_ms)),
                    Some(at) => self.spec.kill_stuck.then(|| at.plus_ms(self.spec.stall_ms.min(LAST_LOOK_MS))),
                };
                match self.asked_since() {
                    // One that works for a quest holds a slot.
                    Some(since) => self.spec.signals.then(|| since.plus_ms(PATIENCE_MS)),
                    None => due.filter(|_| !self.listens(conversation)),
                }
            }
            // One that works for a quest waits for a slot when its time has come.
            RunState::Parked { until, .. } => until.filter(|_| !self.spec.signals),
            RunState::Stopping { .. } | RunState::Ended { .. } => None,
        }
    }

    /// Whether its process has nothing to do but to wait for a message, so that its silence means nothing.
    fn listens(&self, conversation: &Conversation) -> bool {
        let at_rest =
            matches!(self.state, RunState::Running { .. }) && !self.in_turn && conversation.unheard.is_empty();
        at_rest && !self.is_last(conversation)
    }

    /// Whether the user has been asked for a permission and has not answered, so that the silence of the process means nothing.
    pub fn waits_for_permission(&self) -> bool {
        self.asked_since().is_some()
    }

    /// Since when the user has been asked for a permission.
    fn asked_since(&self) -> Option<Timestamp> {
        let asked = self.permissions.iter().filter_map(|pending| match pending.state {
            PendingState::Asked { since, .. } => Some(since),
            PendingState::New | PendingState::Decided { .. } => None,
        });
        asked.min()
    }

    /// The last decision about a permission that the process has not received.
    fn last_decision(&self) -> Option<EventId> {
        let decided = self.permissions.iter().filter_map(|pending| match pending.state {
            PendingState::Decided { at, .. } => Some(at),
            PendingState::New | PendingState::Asked { .. } => None,
        });
        decided.max()
    }

    /// Since when nothing was heard of it that should have been.
    fn quiet_since(&self) -> Timestamp {
        match self.in_turn {
            true => self.last_output,
            false => self.last_output.max(self.addressed),
        }
    }

    /// Whether its process had ended its turn in good order.
    fn had_finished(&self) -> bool {
        matches!(self.outcome.last_turn(), Some(TurnResult::Ok | TurnResult::Interrupted))
    }

    /// Whether its process may leave: it has done what it was to do, or cannot.
    fn is_last(&self, conversation: &Conversation) -> bool {
        let done = self.turns > 0 && !self.in_turn && conversation.unheard.is_empty();
        let failed = self.outcome.last_turn().is_some() && !self.had_finished();
        let stays = self.spec.stays && self.capabilities.stays_open;
        // Some programs do not leave by themselves when they do not have the session. What waits is for the next process.
        let lost = !self.started && self.outcome.last_turn() == Some(&TurnResult::SessionUnknown);
        (done && (!stays || failed)) || (self.held && !self.in_turn) || lost
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
        AttemptId { agent, run: self.number, attempt: self.attempt }
    }

    pub fn process(&self) -> Option<&Process> {
        match &self.state {
            RunState::Spawned { process } | RunState::Running { process } => Some(process),
            RunState::Stopping { process, .. } => process.as_ref(),
            RunState::Starting | RunState::Parked { .. } | RunState::Ended { .. } => None,
        }
    }

    /// What the shell should bring about.
    pub(crate) fn desired(&self, conversation: &Conversation) -> Option<DesiredRun> {
        let state = match self.state {
            RunState::Starting | RunState::Spawned { .. } | RunState::Running { .. } => {
                let upto = conversation.unheard.get_max().map(|delivery| delivery.id).max(self.last_decision());
                DesiredState::Running { upto, last: self.is_last(conversation) }
            }
            RunState::Stopping { .. } => DesiredState::Stopped,
            RunState::Parked { .. } | RunState::Ended { .. } => return None,
        };
        Some(DesiredRun { run: self.number, attempt: self.attempt, host: self.spec.host.clone(), state })
    }
}

/// Gives an agent that was never run a conversation that was begun elsewhere. A conversation has one agent: two would speak
/// into each other's words.
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

/// The agent that has a conversation. One whose agent is dead, and its process gone, can be taken over.
pub fn holder(world: &World, session: &str) -> Option<AgentId> {
    world
        .harness_session_owner(session)
        .filter(|owner| living(world, *owner).is_ok() || at_rest(world, *owner).is_err())
}

/// Asks for a process that plays the agent. One that sleeps is woken by it, outside of any session.
pub(crate) fn request(world: &World, agent: AgentId, spec: &RunSpec) -> Result<Vec<Event>, Refusal> {
    let it = living(world, agent)?;
    at_rest(world, agent)?;
    check_spec(spec)?;
    if let Some(session) = it.session() {
        crate::session::open(world, session)?;
    }
    let woken = (it.lifecycle == Lifecycle::Sleeping)
        .then_some(Event::Agent { agent, what: AgentEvent::Woken { session: None } });
    let run = world.run(agent).map_or(0, |last| last.number) + 1;
    Ok(woken
        .into_iter()
        .chain([Event::Agent { agent, what: AgentEvent::RunRequested { run, spec: spec.clone() } }])
        .collect())
}

/// No process plays the agent, and none is about to.
pub(crate) fn at_rest(world: &World, agent: AgentId) -> Result<(), Refusal> {
    match world.run(agent).filter(|run| run.is_open()) {
        Some(run) => Err(Refusal::RunOpen { agent, run: run.number }),
        None => Ok(()),
    }
}

/// Says something to an agent. When nothing runs it, `spec` says how it is to be run.
pub(crate) fn say(world: &World, agent: AgentId, text: &str, spec: Option<&RunSpec>) -> Result<Vec<Event>, Refusal> {
    let said = crate::history::add(world, agent, MessageKind::User, text)?;
    // It would wait for a run that nobody asked for.
    if let Some(run) = world.run(agent).filter(|run| matches!(run.state, RunState::Stopping { .. })) {
        return Err(Refusal::RunStopping { agent, run: run.number });
    }
    let open = world.run(agent).is_some_and(Run::is_open);
    let begun = match spec.filter(|_| !open) {
        Some(spec) => request(world, agent, spec)?,
        None => Vec::new(),
    };
    Ok(crate::seat::addressed(world, agent).into_iter().chain(said).chain(begun).collect())
}

/// The shell has a process for the attempt.
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

/// The shell has no room for a process of the attempt. Said once for each attempt.
pub(crate) fn waits(world: &World, of: AttemptId) -> Result<Vec<Event>, Refusal> {
    let run = at_attempt(world, of)?;
    match run.state {
        RunState::Starting if run.waits => Ok(Vec::new()),
        RunState::Starting => Ok(vec![Event::Run { of, what: RunEvent::Waiting }]),
        RunState::Spawned { .. }
        | RunState::Running { .. }
        | RunState::Stopping { .. }
        | RunState::Parked { .. }
        | RunState::Ended { .. } => Err(Refusal::StaleAttempt(of)),
    }
}

/// Takes in something that an agent asked of us by a tool: exactly once, because its number is part of it. A "no" is an answer
/// too, and is on the log like any other.
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
    if number != run.calls + 1 {
        return Err(Refusal::CallTaken { agent: of.agent, number: run.calls });
    }
    let decided = match ask {
        Ok(command) => crate::decide(world, command, now).map_err(|refusal| Refused::from(&refusal)),
        Err(refused) => Err(refused.clone()),
    };
    let (events, refused) = match decided {
        Ok(events) => (events, None),
        Err(refused) => (Vec::new(), Some(refused)),
    };
    let taken = Event::Run { of, what: RunEvent::CallTaken { number, led_to: events.len() as u64, refused } };
    Ok([taken].into_iter().chain(events).collect())
}

/// The process is gone.
pub(crate) fn exited(
    world: &World,
    of: AttemptId,
    exit: Exit,
    evidence: Option<&str>,
    now: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    let run = at_attempt(world, of)?;
    let waits = world.conversation(of.agent).is_some_and(Conversation::has_words);
    // What it signalled in its own stream counts, even if its tools could not pass it on.
    let signal = match run.owes_signal() {
        true => quest::from_stream(world, of, run.signal_heard.as_deref()),
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
    // The answer may have come while it was being stopped.
    if matches!(run.state, RunState::Stopping { why: StopWhy::AwaitsPermission, .. }) && living(world, of.agent).is_ok()
    {
        return Ok(vec![match run.waits_for_permission() {
            true => Event::Run { of, what: RunEvent::Parked { cause, until: None, detail } },
            false => resumed,
        }]);
    }
    // It waits before the next attempt, if there is still no money.
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
                .outcome
                .resets_at()
                .filter(|at| *at > now)
                .unwrap_or_else(|| now.plus_ms(back_off(FIRST_PARK_MS, run.parks)));
            vec![Event::Run { of, what: RunEvent::Parked { cause, until: Some(until), detail } }]
        }
        // To start it again would only make it take a turn for nothing; the next message does.
        Cause::Crashed | Cause::LostWithMachine if run.had_finished() && !waits && !owes => ended(cause, detail),
        Cause::Crashed | Cause::LostWithMachine if run.crashes < run.spec.retries && exit != Exit::NotStarted => {
            let forgotten = run.outcome.last_turn() == Some(&TurnResult::SessionUnknown);
            // One that left in peace and only has not signalled is told so at once.
            let left = owes && exit == Exit::Code(0);
            let then = match crash_pause(run).filter(|_| cause == Cause::Crashed && !forgotten && !left) {
                None => resumed,
                Some(ms) => {
                    let detail = format!("It is started again in {} s.", ms / 1_000);
                    Event::Run { of, what: RunEvent::Parked { cause, until: Some(now.plus_ms(ms)), detail } }
                }
            };
            vec![Event::Run { of, what: RunEvent::Crashed { cause, detail, exit, forgotten } }, then]
        }
        // It was let go because its money is used up, and has more to do: it waits for some.
        Cause::Completed if owes => vec![resumed],
        // Its turn was interrupted for its budget.
        Cause::UserEnded if run.cut_short => vec![resumed],
        // Something was said to it while it was leaving.
        Cause::Completed | Cause::UserEnded if waits => vec![resumed],
        // It was to stay, and was sent away because nothing more may be begun.
        Cause::Completed | Cause::UserEnded if run.held && run.spec.stays => match budget::over(world, of.agent, now) {
            Some(over) => budget::park(world, of.agent, run, over),
            None => ended(cause, detail),
        },
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

/// Why a process ended that nobody had asked to end, when something `waits` to be said to it, or when it `owes` a signal.
fn judge(run: &Run, exit: Exit, evidence: Option<&str>, waits: bool, owes: bool) -> (Cause, String) {
    let (cause, detail) = match run.outcome.cause(exit, evidence) {
        // One that was to stay has no reason to leave.
        (Cause::Completed, _) if run.spec.stays && exit != Exit::Code(0) => {
            let cause = if exit == Exit::LostWithMachine { Cause::LostWithMachine } else { Cause::Crashed };
            (cause, format!("It ended between two turns ({exit}). Say something to it, and it goes on."))
        }
        (Cause::Completed, _) if owes && !run.held => {
            (Cause::Crashed, format!("It ended without `signal-back` ({exit})."))
        }
        // Started again for that, it would never come to an end.
        (Cause::Completed | Cause::UserEnded, _) if waits && !run.heard => {
            (Cause::Crashed, format!("It ended without having heard what was said to it ({exit})."))
        }
        judged => judged,
    };
    match evidence.filter(|_| cause == Cause::Crashed) {
        Some(evidence) => (cause, cut(&format!("{detail} It left behind: {evidence}"))),
        None => (cause, cut(&detail)),
    }
}

/// Interrupts the turn; the process lives on. A second request for the same turn changes nothing: it would interrupt the next
/// turn.
pub(crate) fn interrupt(world: &World, agent: AgentId) -> Result<Vec<Event>, Refusal> {
    let run = open(world, agent)?;
    let conversation = world.conversation(agent);
    // Without echoes, a turn is known to run when it says something. Until then its message counts as being worked on.
    let unconfirmed = !run.capabilities.echoes_messages && conversation.is_some_and(Conversation::has_words);
    let works = run.in_turn || (run.started && unconfirmed);
    match run.state {
        RunState::Spawned { .. } | RunState::Running { .. } if !run.capabilities.interrupts => {
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

/// Asks for the end of a run. One that has no process ends at once.
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

/// Its time has come: the silence of a process, or the end of a wait.
pub(crate) fn due(world: &World, agent: AgentId) -> Vec<Event> {
    let Some(run) = world.run(agent) else { return Vec::new() };
    let of = run.attempt_id(agent);
    match run.state {
        RunState::Parked { .. } => vec![goes_on(world, agent, run)],
        RunState::Starting | RunState::Spawned { .. } | RunState::Running { .. } if run.waits_for_permission() => {
            vec![Event::Run { of, what: RunEvent::Stopping { why: StopWhy::AwaitsPermission } }]
        }
        RunState::Starting | RunState::Spawned { .. } | RunState::Running { .. } => {
            let silent = Event::Run { of, what: RunEvent::Silent { since: run.quiet_since() } };
            match (run.silent, run.spec.kill_stuck) {
                (None, false) => vec![silent, ask::of_silence(of, run.spec.stall_ms)],
                (None, true) => vec![silent],
                (Some(_), _) => vec![Event::Run { of, what: RunEvent::Stopping { why: StopWhy::Stuck } }],
            }
        }
        RunState::Stopping { .. } | RunState::Ended { .. } => Vec::new(),
    }
}

/// The end of a wait. One that had nothing left to do when it was parked would take a turn for nothing; the next message runs it.
pub(crate) fn goes_on(world: &World, agent: AgentId, run: &Run) -> Event {
    let of = run.attempt_id(agent);
    let waits = world.conversation(agent).is_some_and(Conversation::has_words);
    match run.state {
        RunState::Parked { cause: Cause::OverBudget, .. } if run.had_finished() && !waits => {
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

/// Which process of which run of which agent is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AttemptId {
    pub agent: AgentId,
    pub run: u32,
    pub attempt: u32,
}

impl AttemptId {
    #[must_use]
    pub fn next(self) -> Self {
        Self { attempt: self.attempt + 1, ..self }
    }
}

/// The run, if it is at this attempt.
pub(crate) fn at_attempt(world: &World, of: AttemptId) -> Result<&Run, Refusal> {
    let run = world.run(of.agent).ok_or(Refusal::NoRun(of.agent))?;
    match run.number == of.run && run.attempt == of.attempt && run.is_open() {
        true => Ok(run),
        false => Err(Refusal::StaleAttempt(of)),
    }
}

fn open(world: &World, agent: AgentId) -> Result<&Run, Refusal> {
    world.agent(agent).ok_or(Refusal::UnknownAgent(agent))?;
    world.run(agent).filter(|run| run.is_open()).ok_or(Refusal::NoRun(agent))
}

/// The conversation of the agent that this one was forked from, while it is exactly what was inherited: it can be copied.
pub fn inherited_session(world: &World, agent: AgentId) -> Option<&HarnessSession> {
    let child = world.agent(agent)?;
    let origin = child.origin?;
    let conversation = world.conversation(origin.agent)?;
    let unmoved = origin.upto.is_some() && world.agent(origin.agent)?.last_message == origin.upto;
    // What waits to be heard, or is about to be said, is not in it yet, or in part.
    let at_rest = !conversation.has_words() && world.run(origin.agent).is_none_or(|run| !run.in_turn);
    let copyable = child.cuts.is_empty() && world.conversation(agent).is_none_or(|own| !own.orphaned);
    conversation.harness_session.as_ref().filter(|_| unmoved && at_rest && copyable)
}

/// The conversation of the agent that this one was forked from, and the turn up to which it holds what was inherited.
fn inherited_turn(world: &World, agent: AgentId) -> Option<(&HarnessSession, &str)> {
    let child = world.agent(agent)?;
    let origin = child.origin?;
    let conversation = world.conversation(origin.agent)?;
    let turn = conversation.turns.get(&origin.upto?)?;
    let copyable = child.cuts.is_empty() && world.conversation(agent).is_none_or(|own| !own.orphaned);
    conversation.harness_session.as_ref().filter(|_| copyable).map(|it| (it, turn.as_str()))
}

/// How the session of the agent's next process is opened. The agent's own session goes on, if this machine has it. Otherwise the
/// session of its parent is copied, if it holds exactly what the agent inherited, as a whole or up to a turn. Otherwise a new session
/// begins.
pub fn opening(world: &World, agent: AgentId, capabilities: Capabilities) -> Opening {
    let Some(run) = world.run(agent) else { return Opening::New };
    let is_here = |it: &&HarnessSession| it.harness == run.spec.harness && it.host == run.spec.host;
    let own = world.conversation(agent).and_then(|conversation| conversation.harness_session.as_ref());
    if let Some(own) = own.filter(is_here) {
        return Opening::Resume { session: own.session.clone() };
    }
    if !capabilities.forks {
        return Opening::New;
    }
    if let Some(inherited) = inherited_session(world, agent).filter(is_here) {
        return Opening::Fork { from: inherited.session.clone(), upto: None };
    }
    match inherited_turn(world, agent).filter(|(session, _)| is_here(session)) {
        Some((session, turn)) => Opening::Fork { from: session.session.clone(), upto: Some(turn.to_owned()) },
        None => Opening::New,
    }
}

fn back_off(first_ms: u64, times: u32) -> u64 {
    first_ms.saturating_mul(1 << times.min(16)).min(LONGEST_PARK_MS)
}

/// How long to wait after a crash. One that was at work goes on at once; what ends before that, or again, would likely do it again.
fn crash_pause(run: &Run) -> Option<u64> {
    (run.crashes > 0 || !run.started).then(|| back_off(FIRST_CRASH_PAUSE_MS, run.crashes))
}

pub(crate) fn check_spec(spec: &RunSpec) -> Result<(), Refusal> {
    if !(MIN_STALL_MS..=MAX_STALL_MS).contains(&spec.stall_ms) {
        return Err(Refusal::StallOutOfRange { ms: spec.stall_ms });
    }
    if spec.retries > MAX_RETRIES {
        return Err(Refusal::TooManyRetries { retries: spec.retries });
    }
    check_texts([
        Some(&spec.harness),
        Some(&spec.host),
        spec.folder.as_deref(),
        spec.model.as_deref(),
        spec.script.as_deref(),
    ])
}

/// They are kept in memory, and end up on a command line.
fn check_texts<const N: usize>(texts: [Option<&str>; N]) -> Result<(), Refusal> {
    match texts.into_iter().flatten().find(|text| text.is_empty() || text.len() > MAX_SPEC_BYTES) {
        Some(text) => Err(Refusal::BadSpec { text: text.chars().take(64).collect() }),
        None => Ok(()),
    }
}

/// The beginning of what a process said: the world keeps it.
fn cut(words: &str) -> String {
    words.chars().take(MAX_WORDS_CHARS).collect()
}
