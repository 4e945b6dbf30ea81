//! An agent: an entry in the registry, which outlives its processes. It is created as a fork of another agent, has a parent, and ends when
//! it is killed or expires. Its messages are in the log; the world keeps where to look for them.

use crate::event::{AgentEvent, BudgetEvent};
use crate::history::Cut;
use crate::run::RunSpec;
use crate::usage::Money;
use crate::{AgentId, Event, EventId, MessageKind, Refusal, SessionId, Timestamp, World};
use imbl::{OrdSet, Vector};
use serde::{Deserialize, Serialize};

/// The name of agent 0, which no other agent can be given.
pub const ROOT_NAME: &str = "root";
/// The longest name, provider or model, in bytes.
pub const MAX_NAME_BYTES: usize = 64;
/// The longest remark on why an agent was killed.
pub const MAX_REMARK_BYTES: usize = 1_024;
/// How many forks of one agent may wait for their results. A model asks for a few in one message.
pub const MAX_PENDING_FORKS: usize = 16;
/// The longest time an egg may take to hatch: a day.
pub const MAX_HATCH_MS: u64 = 24 * 3_600 * 1_000;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// When a parent is killed, its children get the parent's parent.
    pub parent: Option<AgentId>,
    /// Where its history comes from. This never changes: a new parent does not change what was inherited.
    pub origin: Option<Origin>,
    /// Its children that are not dead.
    pub children: OrdSet<AgentId>,
    pub name: Option<String>,
    pub provider: Option<String>,
    pub model: Option<String>,
    pub lifecycle: Lifecycle,
    /// The event by which it was made: all its own messages come after it, and all that it inherits comes before.
    pub born: EventId,
    pub created: Timestamp,
    pub last_active: Timestamp,
    pub last_message: Option<EventId>,
    pub messages: u64,
    /// Tools that were called and have not answered.
    pub open_tools: u32,
    /// Forks that were asked for in the middle of a tool call, in that order.
    pub pending_forks: Vector<PendingFork>,
    /// Where its own history was cut, in order.
    pub cuts: Vector<Cut>,
    /// Its marks, in order.
    pub marks: Vector<(EventId, String)>,
}

/// Up to where an agent inherits the history of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Origin {
    pub agent: AgentId,
    /// The last of that agent's own messages that is inherited. Nothing when it had none: not a limit of 0, which would let
    /// later ones in.
    #[serde(default)]
    pub upto: Option<EventId>,
}

/// Everything that is decided when an agent is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Birth {
    /// The new agent.
    pub agent: AgentId,
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub provider: Option<String>,
    #[serde(default)]
    pub model: Option<String>,
    /// Its first message.
    #[serde(default)]
    pub prompt: Option<String>,
    /// The session in which it is awake.
    #[serde(default)]
    pub session: Option<SessionId>,
    /// When given, it is an egg that expires unless it speaks within this time.
    #[serde(default)]
    pub hatch_ms: Option<u64>,
    /// When given, a process plays it from the start.
    #[serde(default)]
    pub run: Option<Box<RunSpec>>,
    /// What it may spend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Money>,
    /// It works for the step of a quest that its parent works for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub for_step: bool,
}

impl Birth {
    /// A birth with an id and nothing else.
    pub fn of(agent: AgentId) -> Self {
        Self {
            agent,
            name: None,
            provider: None,
            model: None,
            prompt: None,
            session: None,
            hatch_ms: None,
            run: None,
            budget: None,
            for_step: false,
        }
    }
}

/// A fork that was asked for while tools of the parent ran. The call of the tool that asked for it has no result yet, so the child is born
/// when the result is in the parent's history: the child inherits a call with its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingFork {
    pub birth: Box<Birth>,
    pub state: PendingForkState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PendingForkState {
    Waiting,
    /// The child is born next. It inherits up to this message, whatever is said meanwhile.
    Ready {
        upto: Option<EventId>,
    },
}

/// What an agent can be. Nothing is deleted: an end is a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Lifecycle {
    /// It was created and has not been heard from yet.
    Hatching { until: Timestamp, session: Option<SessionId> },
    /// Takes part, perhaps in a session.
    Alive { session: Option<SessionId> },
    /// It rests until it is woken.
    Sleeping,
    /// It was not heard from in time.
    Expired { at: Timestamp },
    /// Killed, for good.
    Dead { at: Timestamp },
}

impl Agent {
    /// The session that it is awake in.
    pub fn session(&self) -> Option<SessionId> {
        match self.lifecycle {
            Lifecycle::Hatching { session, .. } | Lifecycle::Alive { session } => session,
            Lifecycle::Sleeping | Lifecycle::Expired { .. } | Lifecycle::Dead { .. } => None,
        }
    }

    /// False when nothing can happen to it any more.
    pub fn is_living(&self) -> bool {
        match self.lifecycle {
            Lifecycle::Hatching { .. } | Lifecycle::Alive { .. } | Lifecycle::Sleeping => true,
            Lifecycle::Expired { .. } | Lifecycle::Dead { .. } => false,
        }
    }
}

impl Lifecycle {
    /// The word for it, the same everywhere.
    pub fn word(self) -> &'static str {
        match self {
            Self::Hatching { .. } => "hatching",
            Self::Alive { .. } => "alive",
            Self::Sleeping => "sleeping",
            Self::Expired { .. } => "expired",
            Self::Dead { .. } => "dead",
        }
    }
}

/// An agent that something can still happen to.
pub(crate) fn living(world: &World, id: AgentId) -> Result<&Agent, Refusal> {
    let agent = world.agent(id).ok_or(Refusal::UnknownAgent(id))?;
    match agent.lifecycle {
        Lifecycle::Dead { .. } => Err(Refusal::AgentDead(id)),
        Lifecycle::Expired { .. } => Err(Refusal::AgentExpired(id)),
        Lifecycle::Hatching { .. } | Lifecycle::Alive { .. } | Lifecycle::Sleeping => Ok(agent),
    }
}

/// Agent 0: the one that all others descend from.
pub(crate) fn found(world: &World, agent: AgentId, name: Option<&str>) -> Result<Vec<Event>, Refusal> {
    check_name(name)?;
    match world.root() {
        Some(root) => Err(Refusal::RootExists(root)),
        None => Ok(vec![Event::Agent {
            agent,
            what: AgentEvent::Created {
                parent: None,
                origin: None,
                name: name.map(str::to_owned),
                provider: None,
                model: None,
                session: None,
                hatch_by: None,
            },
        }]),
    }
}

/// Makes an agent that inherits a history. The cost does not depend on the length of the history, because the child only refers to it.
pub(crate) fn fork(
    world: &World,
    parent: AgentId,
    at: Option<EventId>,
    birth: &Birth,
    now: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    for name in [&birth.name, &birth.provider, &birth.model] {
        check_name(name.as_deref())?;
    }
    if let Some(ms) = birth.hatch_ms.filter(|ms| !(1..=MAX_HATCH_MS).contains(ms)) {
        return Err(Refusal::HatchOutOfRange { ms });
    }
    if let Some(prompt) = &birth.prompt {
        crate::history::check_content(MessageKind::User, prompt)?;
    }
    if let Some(session) = birth.session {
        crate::session::open(world, session)?;
    }
    if let Some(spec) = &birth.run {
        crate::run::check_spec(spec)?;
    }
    if world.is_taken(birth.agent) {
        return Err(Refusal::AgentExists(birth.agent));
    }
    let forked = living(world, parent)?;
    // A user who stops an agent does not want a fork of it to start instead.
    if let Some(run) = world.run(parent).filter(|run| birth.run.is_some() && run.is_stopping()) {
        return Err(Refusal::RunStopping { agent: parent, run: run.number });
    }
    if forked.pending_forks.len() >= MAX_PENDING_FORKS {
        return Err(Refusal::ForkPending { parent });
    }
    match at {
        Some(at) => born_from(world, parent, crate::history::origin_at(world, parent, at)?, birth, now),
        None if forked.open_tools > 0 => {
            Ok(vec![Event::Agent { agent: parent, what: AgentEvent::ForkRequested { birth: birth.clone() } }])
        }
        None => born_from(world, parent, Origin { agent: parent, upto: forked.last_message }, birth, now),
    }
}

/// The events of a fork's birth. A fork that works for a step of a quest starts to work when there is a slot.
pub(crate) fn born_from(
    world: &World,
    parent: AgentId,
    origin: Origin,
    birth: &Birth,
    now: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    match birth.for_step {
        true => crate::quest::born_for_step(world, parent, birth, |birth| born(parent, origin, birth, now)),
        false => Ok(born(parent, origin, birth, now)),
    }
}

/// The events of a birth: the agent, its budget, its first message, and the request to run it.
pub(crate) fn born(parent: AgentId, origin: Origin, birth: &Birth, now: Timestamp) -> Vec<Event> {
    let prompt = birth.prompt.clone().map(|prompt| crate::history::said(birth.agent, MessageKind::User, prompt));
    let run = birth.run.as_ref().map(|spec| Event::Agent {
        agent: birth.agent,
        what: AgentEvent::RunRequested { run: 1, spec: (**spec).clone() },
    });
    let limit = birth.budget;
    let budget = limit.map(|_| Event::Budget(BudgetEvent::Set { agent: Some(birth.agent), limit }));
    [created(parent, origin, birth, now)].into_iter().chain(budget).chain(prompt).chain(run).collect()
}

pub(crate) fn created(parent: AgentId, origin: Origin, birth: &Birth, now: Timestamp) -> Event {
    Event::Agent {
        agent: birth.agent,
        what: AgentEvent::Created {
            parent: Some(parent),
            origin: Some(origin),
            name: birth.name.clone(),
            provider: birth.provider.clone(),
            model: birth.model.clone(),
            session: birth.session,
            hatch_by: birth.hatch_ms.map(|ms| now.plus_ms(ms)),
        },
    }
}

/// Kills an agent; with `cascade`, also all agents below it. Without `cascade` its children become children of its parent.
pub(crate) fn kill(
    world: &World,
    agent: AgentId,
    cascade: bool,
    by: Option<AgentId>,
    remark: Option<&str>,
) -> Result<Vec<Event>, Refusal> {
    if let Some(text) = remark.filter(|text| text.len() > MAX_REMARK_BYTES) {
        return Err(Refusal::RemarkTooLong { bytes: text.len() });
    }
    let victim = living(world, agent)?;
    if world.root() == Some(agent) {
        return Err(Refusal::RootIsImmortal(agent));
    }
    if let Some(by) = by {
        living(world, by)?;
        if ancestors(world, by).any(|ancestor| ancestor == agent) {
            return Err(Refusal::KillsAncestor { by, ancestor: agent });
        }
    }
    let killed = |id| {
        let pending = world.agent(id).into_iter().flat_map(|it| it.pending_forks.iter());
        let cancelled = pending
            .map(move |fork| Event::Agent { agent: id, what: AgentEvent::ForkCancelled { child: fork.birth.agent } });
        let killed = Event::Agent { agent: id, what: AgentEvent::Killed { by, remark: remark.map(str::to_owned) } };
        cancelled.chain([killed]).collect::<Vec<_>>()
    };
    let mut events: Vec<Event> = match cascade {
        // Leaves first, so that no living agent ever has a dead parent.
        true => below(world, agent).into_iter().rev().flat_map(killed).collect(),
        false => orphans(world, agent, victim, "was killed").chain(killed(agent)).collect(),
    };
    events.extend(crate::seat::kills_told(world, &events, by, remark));
    Ok(events)
}

/// An egg's time is up.
pub(crate) fn expire(world: &World, agent: AgentId) -> Vec<Event> {
    let moved = world.agent(agent).into_iter().flat_map(|it| orphans(world, agent, it, "has expired"));
    moved.chain([Event::Agent { agent, what: AgentEvent::Expired }]).collect()
}

/// The children of an agent that ends become children of its parent, and a line in their history tells them so. The parent is alive,
/// because the same rule was applied when its own ancestors ended.
fn orphans<'a>(world: &'a World, id: AgentId, ends: &'a Agent, how: &'a str) -> impl Iterator<Item = Event> + 'a {
    let called = |agent: AgentId| match world.agent(agent).and_then(|it| it.name.as_deref()) {
        Some(name) => format!("{name} ({agent})"),
        None => agent.to_string(),
    };
    let moved = move |parent: AgentId| {
        let line = format!("Your parent {} {how}. Your parent is {} now.", called(id), called(parent));
        ends.children.iter().flat_map(move |child| {
            let told = crate::history::said(*child, MessageKind::AgentKilled, line.clone());
            [Event::Agent { agent: *child, what: AgentEvent::Reparented { parent } }, told]
        })
    };
    ends.parent.into_iter().flat_map(moved)
}

/// Those above an agent, the nearest first.
pub fn ancestors(world: &World, agent: AgentId) -> impl Iterator<Item = AgentId> {
    std::iter::successors(world.agent(agent).and_then(|it| it.parent), |id| world.agent(*id).and_then(|it| it.parent))
}

/// An agent and all living ones below it, parents before their children.
pub fn below(world: &World, agent: AgentId) -> Vec<AgentId> {
    let mut found = vec![agent];
    let mut next = 0;
    while let Some(id) = found.get(next).copied() {
        found.extend(world.agent(id).into_iter().flat_map(|it| it.children.iter().copied()));
        next += 1;
    }
    found
}

/// The agent that a reference means: an id, the beginning of one, or a name that only one living agent has. If no living agent has the
/// name, it can mean a dead agent, whose history stays.
pub fn resolve(world: &World, reference: &str) -> Result<AgentId, Refusal> {
    let whole = reference.parse().ok();
    if let Some(id) = whole.filter(|id| world.agent(*id).is_some()) {
        return Ok(id);
    }
    let named = |living: bool| {
        let is_meant = move |agent: &Agent| agent.is_living() == living && agent.name.as_deref() == Some(reference);
        world.agents().filter(move |(_, agent)| is_meant(agent)).map(|(id, _)| id).collect()
    };
    let mut candidates: Vec<AgentId> = named(true);
    if candidates.is_empty() {
        candidates = named(false);
    }
    if candidates.is_empty() && !reference.is_empty() {
        candidates = world.agents().map(|(id, _)| id).filter(|id| id.to_string().starts_with(reference)).collect();
    }
    match candidates[..] {
        [one] => Ok(one),
        [] => Err(whole.map_or_else(
            || Refusal::NobodyCalled(reference.chars().take(MAX_NAME_BYTES).collect()),
            Refusal::UnknownAgent,
        )),
        _ => Err(Refusal::Ambiguous { reference: reference.chars().take(MAX_NAME_BYTES).collect(), candidates }),
    }
}

/// Whether a person may give this name to an agent: no other living agent may have it, and `root` belongs to agent 0. Agents choose their names
/// themselves, so two can still have the same one.
pub fn check_given_name(world: &World, name: Option<&str>, of: Option<AgentId>) -> Result<(), Refusal> {
    let Some(name) = name else { return Ok(()) };
    let reserved = world.root().filter(|_| name == ROOT_NAME);
    match reserved.or_else(|| living_named(world, name, of)).filter(|by| Some(*by) != of) {
        Some(by) => {
            let shown = name.chars().take(MAX_NAME_BYTES).collect();
            Err(Refusal::NameTaken { name: shown, by, free: free_name(world, name) })
        }
        None => Ok(()),
    }
}

/// The name itself if no living agent has it, otherwise the name with the first number that is free.
pub fn free_name(world: &World, name: &str) -> String {
    let is_free = |name: &str| name != ROOT_NAME && living_named(world, name, None).is_none();
    if is_free(name) {
        return name.to_owned();
    }
    let mut numbered = (2_u64..).map(|number| {
        let end = format!("-{number}");
        let mut kept = name.len().min(MAX_NAME_BYTES - end.len());
        while !name.is_char_boundary(kept) {
            kept -= 1;
        }
        format!("{}{end}", &name[..kept])
    });
    numbered.find(|name| is_free(name)).unwrap_or_else(|| name.to_owned())
}

fn living_named(world: &World, name: &str, but: Option<AgentId>) -> Option<AgentId> {
    let has_it =
        |(id, agent): &(AgentId, &Agent)| Some(*id) != but && agent.is_living() && agent.name.as_deref() == Some(name);
    world.agents().find(has_it).map(|(id, _)| id)
}

pub(crate) fn check_name(name: Option<&str>) -> Result<(), Refusal> {
    match name {
        Some(name)
            if name.is_empty()
                // An address of its own: an agent of this name could not be written to.
                || name == crate::mail::HUMAN
                || name.len() > MAX_NAME_BYTES
                || name.trim() != name
                || name.contains(char::is_control) =>
        {
            Err(Refusal::BadName { name: name.chars().take(MAX_NAME_BYTES).collect() })
        }
        _ => Ok(()),
    }
}
