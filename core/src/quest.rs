//! A quest: a request that becomes requirements, a plan, steps and a review, each worked on by agents in roles, in a bounded number of
//! slots. Requirements, plan and review are steps too, with names of their own, so that there is one life for all.
//!
//! ```text
//!                    ┌──────────────── waiting for a human, parked ◄───────────────┐
//!                    ▼                                                             │
//! pending ──► queued(next) ──► running(agent | ward | merge) ──► the signal, the verdict ──► complete
//!                    ▲                                                             ├──► failed
//!                    └──────────── the next station, a follow-up, a mending ◄──────┘
//! ```
//!
//! A step holds a slot while it is running and at no other time. What it does next is in its [`Next`]; where it is in its path and who
//! waits for whom is in its [`Course`]. Every change of a step is an event of its quest.

mod at;
mod chore;
mod follow;
mod human;
mod plan;
mod signal;
mod slot;
mod words;

use crate::roles::{Phase, Table};
use crate::run::RunSpec;
use crate::usage::{Money, Usage};
use crate::{AgentId, Event, EventId, QuestId, Refusal, Timestamp, World};
use imbl::{OrdMap, OrdSet, Vector};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use at::At;
pub use chore::MAX_FINDINGS;
pub(crate) use chore::{merged, warded};
pub(crate) use follow::follow;
pub(crate) use human::{answered, due, queue_parked, retry};
pub use plan::{Context, Observable, Requirements, StepId, StepPlan, WorkPlan};
pub(crate) use plan::{hand_in, phase, require};
pub use signal::{SIGNAL_TOOL, Signal};
pub(crate) use signal::{from_stream, give, of_tool};
pub(crate) use slot::serve;

/// The longest request, in bytes.
pub const MAX_REQUEST_BYTES: usize = 256 << 10;
/// How many agents of a quest may be at work at once.
pub const MAX_SLOTS: u32 = 64;
/// How often a red ward is mended before the step fails.
pub const MAX_MENDINGS: u32 = 3;
/// How often a step may go to another role before a person is asked.
pub const MAX_FOLLOW_UPS: u32 = 10;
/// How many may wait for each other's follow-ups at once.
pub const MAX_CALLERS: usize = 5;
/// How often in a row a role may hand its work to a fresh agent before a person is asked.
pub const MAX_CONTINUATIONS: u32 = 20;
/// How long an agent may go on after its signal: it has a last sentence to say.
pub const SIGNAL_GRACE_MS: u64 = 60_000;
/// How often a crashed agent of a quest is resumed.
pub const CRASH_RETRIES: u32 = 3;
/// The shortest time for a ward.
pub const MIN_WARD_MS: u64 = 1_000;
/// The longest: a day.
pub const MAX_WARD_MS: u64 = 24 * 3_600 * 1_000;
/// The longest command of a ward, in bytes.
pub const MAX_WARD_BYTES: usize = 4_096;
/// How much of a step's past is kept at hand. The log has all of it.
const KEPT_NOTES: usize = 50;

/// What is decided when a quest begins, and stays so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Charter {
    /// What somebody wants.
    pub request: String,
    /// How many of its agents may be at work at once.
    pub slots: u32,
    /// How its agents are run.
    pub spec: RunSpec,
    #[serde(default)]
    pub ward: Option<WardSpec>,
    pub isolation: Isolation,
    /// Whether a person has to agree to the plan before it is carried out.
    #[serde(default)]
    pub approve_plan: bool,
    pub table: Table,
}

/// What is known of a quest when it begins, and what of it is done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// Begin nothing until it is resumed.
    pub hold: bool,
    pub requirements: Option<Requirements>,
    /// The plan, if it is made already.
    pub steps: Vec<StepPlan>,
    /// Steps that were done elsewhere, and what was said about them.
    pub complete: Vec<(StepId, String)>,
}

/// The command that says whether the work is good.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WardSpec {
    pub command: String,
    pub limit_ms: u64,
    /// What it was guessed from, when nobody named it.
    #[serde(default)]
    pub guessed_from: Option<String>,
}

/// Where the work is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// In the project itself.
    None,
    /// Each step in a git worktree of its own.
    Worktree {
        /// The folder that holds those of this quest.
        base: String,
        /// The part of a worktree that is the project, when it is not all of it.
        within: Option<String>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quest {
    pub state: QuestState,
    pub requirements: Option<Requirements>,
    pub ward: Option<WardSpec>,
    /// What the steps are to do. Beside their states, because it does not change with them.
    pub plans: OrdMap<StepId, StepPlan>,
    pub steps: OrdMap<StepId, Step>,
    /// Who depends on a step.
    pub dependents: OrdMap<StepId, OrdSet<StepId>>,
    /// What waits for a slot: first what was begun, then in the order in which it became possible.
    pub queue: OrdSet<Place>,
    /// Where in the queue a step is.
    pub places: OrdMap<StepId, Place>,
    /// Who holds a slot.
    pub working: OrdSet<StepId>,
    /// How many steps of the plan are not complete.
    pub open: u32,
    /// How many agents were made for it.
    pub agents: u32,
    pub budget: Option<Money>,
    pub spent: Usage,
    pub created: Timestamp,
    pub changed: Timestamp,
    /// The last event that changed it.
    pub version: EventId,
}

/// A place in the queue of a quest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// What was begun goes first: it is nearer to its end.
    pub fresh: bool,
    pub since: EventId,
    pub number: u32,
    pub step: StepId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum QuestState {
    Open,
    /// Nothing is begun until a person says so.
    Paused,
    Complete {
        at: Timestamp,
    },
    Abandoned {
        at: Timestamp,
    },
}

impl QuestState {
    pub fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Paused => "paused",
            Self::Complete { .. } => "complete",
            Self::Abandoned { .. } => "abandoned",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    pub phase: Phase,
    /// Its place in the plan.
    pub number: u32,
    pub state: StepState,
    pub course: Course,
    /// How many steps that it depends on are not complete.
    pub waits_for: u32,
    /// The new plan does without it: it goes when whoever made that plan is done.
    pub dropped: bool,
    /// The question to the human that is open about it.
    pub question: Option<EventId>,
    /// How many wards and merges were begun for it: each is known by its number.
    pub chores: u32,
    /// How many agents were set to work on it.
    pub attempts: u32,
    /// Who works or worked on it, the last ones.
    pub hands: Vector<Hand>,
    /// What the last agent said that was done.
    pub summary: String,
    pub since: Timestamp,
    /// What happened to it, in short, the last of it.
    pub notes: Vector<Note>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepState {
    /// Waits for other steps.
    Pending,
    /// Waits for a slot.
    Queued(Next),
    /// Holds a slot.
    Running(Work),
    /// Waits for an answer, and then does this.
    Asking(Next),
    /// Its agent waits for a better moment.
    Parked {
        agent: AgentId,
        role: String,
        until: Option<Timestamp>,
    },
    /// Depends on one that failed.
    Blocked,
    /// Can be tried again, with this.
    Failed {
        why: String,
        then: Next,
    },
    Complete {
        summary: String,
        at: Timestamp,
    },
}

/// The word for a step's state, the same everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = StepStatus))]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Pending,
    Queued,
    Running,
    WaitingForHuman,
    WaitingForRole,
    Parked,
    Blocked,
    Failed,
    Complete,
}

impl Status {
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Queued => "queued",
            Self::Running => "running",
            Self::WaitingForHuman => "waiting for human",
            Self::WaitingForRole => "waiting for role",
            Self::Parked => "parked",
            Self::Blocked => "blocked",
            Self::Failed => "failed",
            Self::Complete => "complete",
        }
    }
}

/// What is done in a slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Work {
    Agent {
        agent: AgentId,
        role: String,
        signal: Option<Signal>,
        /// Its quest was paused: it shall go on later.
        recalled: bool,
    },
    Ward(u32),
    Merge(u32),
}

/// What is to be done with a step when there is a slot for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Next {
    /// A fresh agent.
    Begin {
        role: String,
        brief: Brief,
    },
    /// An agent goes on with its conversation; what it is told is in its history.
    Resume {
        agent: AgentId,
        role: String,
    },
    Ward,
    Merge,
}

/// Why an agent is set to work, beside what its step is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Brief {
    /// It is its turn.
    Begin,
    /// The last of its role had to leave off.
    Continue { progress: String, continuation_point: String },
    /// The ward was red.
    Mend { findings: Vec<String>, artifact: String },
    /// What the step did cannot be merged.
    Reconcile { files: Vec<String> },
    /// Another role asks.
    FollowUp { from: String, reason: String, context: String },
}

/// Where a step is in its path, and what it took to get there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Course {
    /// The station.
    pub station: u32,
    /// Those who asked another role to act first, the last one last.
    #[serde(default)]
    pub callers: Vec<Caller>,
    /// Mendings since the ward was green.
    #[serde(default)]
    pub mendings: u32,
    /// Conflicts that were mended.
    #[serde(default)]
    pub conflicts: u32,
    /// Follow-ups since a person had a say.
    #[serde(default)]
    pub follow_ups: u32,
    /// Fresh agents in a row for one piece of work.
    #[serde(default)]
    pub continuations: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Caller {
    pub agent: AgentId,
    pub role: String,
    /// Whether it goes on when the one it called is done.
    pub resume: bool,
}

/// Somebody who was set to work on a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Hand {
    pub agent: AgentId,
    pub role: String,
}

/// Something that happened to a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Note {
    pub at: Timestamp,
    pub what: String,
}

/// What an agent of a quest was made for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errand {
    pub quest: QuestId,
    pub step: StepId,
    pub role: String,
}

/// What a ward found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Green,
    Red {
        findings: Vec<String>,
    },
    /// It could not be run, so it says nothing.
    Broken {
        why: String,
    },
}

/// What became of an attempt to merge a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Merge {
    Merged,
    Conflict { files: Vec<String> },
    Broken { why: String },
}

/// Something that the shell should do for a step, beside running agents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chore {
    pub number: u32,
    pub host: String,
    pub what: ChoreKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChoreKind {
    Ward,
    Merge,
}

impl Quest {
    pub fn step(&self, id: &StepId) -> Option<&Step> {
        self.steps.get(id)
    }

    pub fn is_over(&self) -> bool {
        match self.state {
            QuestState::Open | QuestState::Paused => false,
            QuestState::Complete { .. } | QuestState::Abandoned { .. } => true,
        }
    }

    pub fn is_complete(&self) -> bool {
        matches!(self.state, QuestState::Complete { .. })
    }

    /// Whether there is a slot and something to do in it.
    pub(crate) fn can_begin(&self, charter: &Charter) -> bool {
        self.state == QuestState::Open && !self.queue.is_empty() && self.working.len() < charter.slots as usize
    }

    /// Whether everything is done.
    pub(crate) fn is_done(&self) -> bool {
        let done = |step: &Step| matches!(step.state, StepState::Complete { .. });
        self.state == QuestState::Open && self.open == 0 && self.steps.get(&StepId::review()).is_some_and(done)
    }
}

impl Step {
    pub fn status(&self) -> Status {
        let called = !self.course.callers.is_empty();
        match self.state {
            StepState::Pending => Status::Pending,
            // A new plan has put something before it.
            StepState::Queued(_) if self.waits_for > 0 => Status::Pending,
            StepState::Queued(_) | StepState::Running(_) if called => Status::WaitingForRole,
            StepState::Queued(_) => Status::Queued,
            StepState::Running(_) => Status::Running,
            StepState::Asking(_) => Status::WaitingForHuman,
            StepState::Parked { .. } => Status::Parked,
            StepState::Blocked => Status::Blocked,
            StepState::Failed { .. } => Status::Failed,
            StepState::Complete { .. } => Status::Complete,
        }
    }

    /// The agent that works on it now.
    pub fn agent(&self) -> Option<AgentId> {
        match self.state {
            StepState::Running(Work::Agent { agent, .. }) | StepState::Parked { agent, .. } => Some(agent),
            StepState::Pending
            | StepState::Queued(_)
            | StepState::Running(Work::Ward(_) | Work::Merge(_))
            | StepState::Asking(_)
            | StepState::Blocked
            | StepState::Failed { .. }
            | StepState::Complete { .. } => None,
        }
    }

    /// The ward or the merge that it is at, by its number.
    pub(crate) fn chore(&self) -> Option<(u32, ChoreKind)> {
        match self.state {
            StepState::Running(Work::Ward(number)) => Some((number, ChoreKind::Ward)),
            StepState::Running(Work::Merge(number)) => Some((number, ChoreKind::Merge)),
            StepState::Running(Work::Agent { .. })
            | StepState::Pending
            | StepState::Queued(_)
            | StepState::Asking(_)
            | StepState::Parked { .. }
            | StepState::Blocked
            | StepState::Failed { .. }
            | StepState::Complete { .. } => None,
        }
    }

    /// Whether nobody has touched it yet, so that a new plan may change it or drop it.
    pub(crate) fn is_untouched(&self) -> bool {
        let fresh = matches!(self.state, StepState::Pending | StepState::Blocked | StepState::Queued(_));
        fresh && self.attempts == 0
    }

    pub(crate) fn note(&mut self, at: Timestamp, what: String) {
        self.notes.push_back(Note { at, what });
        if self.notes.len() > KEPT_NOTES {
            self.notes.pop_front();
        }
    }
}

impl Charter {
    /// The folder that a step is worked on in; the project's root without.
    pub fn folder(&self, step: &StepId, phase: Phase) -> Option<String> {
        match &self.isolation {
            Isolation::None => self.spec.folder.clone(),
            Isolation::Worktree { base, within } => {
                let within = within.as_ref().map(|within| format!("/{within}")).unwrap_or_default();
                Some(match phase {
                    Phase::Work => format!("{base}/steps/{step}{within}"),
                    Phase::Requirements | Phase::Plan | Phase::Review => format!("{base}/trunk{within}"),
                })
            }
        }
    }

    fn check(&self) -> Result<(), Refusal> {
        let bytes = self.request.len();
        if self.request.trim().is_empty() || bytes > MAX_REQUEST_BYTES {
            return Err(Refusal::BadRequest { bytes });
        }
        if !(1..=MAX_SLOTS).contains(&self.slots) {
            return Err(Refusal::SlotsOutOfRange { slots: self.slots });
        }
        if let Some(ward) = &self.ward {
            check_ward(&ward.command)?;
            if !(MIN_WARD_MS..=MAX_WARD_MS).contains(&ward.limit_ms) {
                return Err(Refusal::WardOutOfRange { ms: ward.limit_ms });
            }
        }
        self.table.check().map_err(|bad| Refusal::BadTable { why: bad.to_string() })?;
        crate::run::check_spec(&self.spec)
    }
}

pub(crate) fn check_ward(command: &str) -> Result<(), Refusal> {
    match command.trim().is_empty() || command.len() > MAX_WARD_BYTES {
        true => Err(Refusal::BadWard { bytes: command.len() }),
        false => Ok(()),
    }
}

/// Begins a quest, with what of it is known or done already.
pub(crate) fn create(
    world: &World,
    quest: QuestId,
    charter: &Charter,
    budget: Option<Money>,
    start: &Start,
) -> Result<Vec<Event>, Refusal> {
    if world.quest(quest).is_some() {
        return Err(Refusal::QuestExists(quest));
    }
    charter.check()?;
    if world.root().is_none() {
        return Err(Refusal::NoRoot);
    }
    let Start { hold, requirements, steps, complete } = start;
    if steps.is_empty() && charter.table.paths.plan.is_empty() {
        return Err(Refusal::NoPlan(quest));
    }
    requirements.as_ref().map_or(Ok(()), plan::check_requirements)?;
    plan::check(steps, requirements.as_ref())?;
    plan::check_graph(&steps.iter().collect::<Vec<_>>())?;
    let known = |step: &StepId| step.is_reserved() || steps.iter().any(|plan| plan.id == *step);
    if let Some((step, _)) = complete.iter().find(|(step, _)| !known(step)) {
        return Err(Refusal::UnknownStep { quest, step: step.clone() });
    }
    let completed = |step: StepId, summary: String| Event::StepCompleted { quest, step, summary };
    let mut events = vec![Event::QuestCreated { quest, charter: Box::new(charter.clone()), budget }];
    events.extend(hold.then_some(Event::QuestPaused { quest }));
    events.extend(requirements.iter().map(|given| Event::RequirementsSet { quest, requirements: given.clone() }));
    // Whoever knows what is wanted or by which steps need not be asked.
    let is_clear = requirements.is_some() || !steps.is_empty();
    if is_clear && !charter.table.paths.requirements.is_empty() {
        events.push(completed(StepId::requirements(), "given from the start".into()));
    }
    if !steps.is_empty() {
        events.push(Event::StepsPlanned { quest, steps: steps.clone(), by: None });
    }
    // Named twice, it was done once.
    let done: BTreeMap<&StepId, &String> = complete.iter().map(|(step, summary)| (step, summary)).collect();
    let said = |step: &StepId| done.get(step).map(|summary| completed(step.clone(), (*summary).clone()));
    events.extend(steps.iter().filter_map(|plan| said(&plan.id)));
    // A review is worth as much as what it has seen.
    let all_done = !steps.is_empty() && steps.iter().all(|plan| done.contains_key(&plan.id));
    if all_done && !charter.table.paths.review.is_empty() {
        events.extend(said(&StepId::review()));
    }
    Ok(events)
}

/// A quest that is not over.
pub(crate) fn going(world: &World, id: QuestId) -> Result<&Quest, Refusal> {
    let quest = world.quest(id).ok_or(Refusal::UnknownQuest(id))?;
    match quest.is_over() {
        true => Err(Refusal::QuestOver { quest: id, state: quest.state.word() }),
        false => Ok(quest),
    }
}

/// Begins nothing more, and stops those at work. They go on when the quest does; nothing is marked as failed.
pub(crate) fn pause(world: &World, id: QuestId) -> Result<Vec<Event>, Refusal> {
    let quest = going(world, id)?;
    if quest.state == QuestState::Paused {
        return Err(Refusal::QuestPaused(id));
    }
    let stopped = stopped(world, quest, &crate::run::StopWhy::Paused);
    Ok([Event::QuestPaused { quest: id }].into_iter().chain(stopped).collect())
}

pub(crate) fn resume(world: &World, id: QuestId) -> Result<Vec<Event>, Refusal> {
    match going(world, id)?.state {
        QuestState::Paused => Ok(vec![Event::QuestResumed { quest: id }]),
        QuestState::Open | QuestState::Complete { .. } | QuestState::Abandoned { .. } => Err(Refusal::QuestOpen(id)),
    }
}

/// Ends a quest for good, as it is.
pub(crate) fn abandon(world: &World, id: QuestId) -> Result<Vec<Event>, Refusal> {
    let quest = going(world, id)?;
    let stopped = stopped(world, quest, &crate::run::StopWhy::Abandoned);
    Ok([Event::QuestAbandoned { quest: id }].into_iter().chain(stopped).collect())
}

/// Sets the ceiling of a quest. What waited for it goes on when there is a slot.
pub(crate) fn set_budget(world: &World, id: QuestId, limit: Option<Money>) -> Result<Vec<Event>, Refusal> {
    let quest = going(world, id)?;
    let affordable = limit.is_none_or(|limit| quest.spent.cost < limit);
    let set = Event::QuestBudgetSet { quest: id, limit };
    let resumed = if affordable { human::queue_broke(world, id, quest) } else { Vec::new() };
    Ok([set].into_iter().chain(resumed).collect())
}

/// The events by which the agents of a quest are stopped that are at work or wait for a better moment.
fn stopped<'a>(world: &'a World, quest: &'a Quest, why: &'a crate::run::StopWhy) -> impl Iterator<Item = Event> + 'a {
    quest.steps.values().filter_map(Step::agent).flat_map(move |agent| {
        let parked = world.run(agent).is_some_and(crate::run::Run::is_parked);
        let keeps = parked && matches!(why, crate::run::StopWhy::Paused);
        let events = if keeps { Ok(Vec::new()) } else { crate::run::stop(world, agent, why) };
        events.unwrap_or_default()
    })
}

/// The id of the next agent of a quest: as random as that of the quest, and different for each number. The core draws none.
pub(crate) fn agent_id(quest: QuestId, number: u32) -> AgentId {
    // A bijection, so that no two numbers of a quest share an id.
    let mut bits = u128::from_be_bytes(*quest.as_bytes()) ^ u128::from(number).wrapping_add(1);
    for odd in [0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835, 0xda94_2042_e4dd_58b5_d120_2768_1a37_9f1b] {
        bits ^= bits >> 61;
        bits = bits.wrapping_mul(odd);
    }
    bits ^= bits >> 67;
    let mut bytes = bits.to_be_bytes();
    // An id that begins with a dash would look like an option.
    if bytes[0] >> 2 == 62 {
        bytes[0] &= 0x7f;
    }
    AgentId::from_bytes(bytes)
}
