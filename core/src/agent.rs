//! An agent: an identity that outlives its processes. An agent is created by a fork of another agent, it has a parent, and it ends when it
//! is killed. Its messages are in the log; the world knows where they are.

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
/// The longest remark on a kill, in bytes.
pub const MAX_REMARK_BYTES: usize = 1_024;
/// How many forks of one agent may wait for tool results. A model requests a few in one message.
pub const MAX_PENDING_FORKS: usize = 16;
/// The longest time limit of an egg: a day.
pub const MAX_HATCH_MS: u64 = 24 * 3_600 * 1_000;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// The parent at the moment. When a parent is killed, its children get another parent.
    pub parent: Option<AgentId>,
    /// Where the inherited history comes from. This never changes, even if the parent does.
    pub origin: Option<Origin>,
    /// The children that are not dead.
    pub children: OrdSet<AgentId>,
    pub name: Option<String>,
    pub provider: Option<String>,
    pub model: Option<String>,
    pub lifecycle: Lifecycle,
    /// The event that created the agent. All its own messages come after this event, and all inherited messages before it.
    pub born: EventId,
    pub created: Timestamp,
    pub last_active: Timestamp,
    pub last_message: Option<EventId>,
    pub messages: u64,
    /// How many tool calls have no result yet.
    pub open_tools: u32,
    /// Forks that were requested while tools ran, in the order of the requests.
    pub pending_forks: Vector<PendingFork>,
    /// The clears and rewinds of its own history, in order.
    pub cuts: Vector<Cut>,
    /// Its marks, in order.
    pub marks: Vector<(EventId, String)>,
}

/// Up to which message an agent inherits the history of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Origin {
    pub agent: AgentId,
    /// The last of that agent's own messages that is inherited. None if that agent had no message yet. A limit of 0 would not do: later
    /// messages would be inherited.
    #[serde(default)]
    pub upto: Option<EventId>,
}

/// Everything that is decided when an agent is created.
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
    /// The session that the agent joins.
    #[serde(default)]
    pub session: Option<SessionId>,
    /// If set, the agent is an egg and expires unless it speaks within this time.
    #[serde(default)]
    pub hatch_ms: Option<u64>,
    /// If set, the agent's first run is requested at once.
    #[serde(default)]
    pub run: Option<Box<RunSpec>>,
    /// The budget of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Money>,
    /// The agent works for the quest step of its parent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub for_step: bool,
}

impl Birth {
    /// Only an id.
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

/// A fork that was requested while tools of the parent ran. The tool call that requested the fork has no result yet. So the child is
/// created when the result is in the parent's history, and inherits the call together with its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingFork {
    pub birth: Box<Birth>,
    pub state: PendingForkState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PendingForkState {
    Waiting,
    /// The child is created next. It inherits the history up to this message, even if the parent says more in the meantime.
    Ready {
        upto: Option<EventId>,
    },
}

/// The state of an agent. Agents are never deleted: they end in a final state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Lifecycle {
    /// Created, and not heard from yet.
    Hatching { until: Timestamp, session: Option<SessionId> },
    /// Awake, perhaps in a session.
    Alive { session: Option<SessionId> },
    /// At rest until it is woken.
    Sleeping,
    /// Not heard from in time.
    Expired { at: Timestamp },
    /// Killed. This is final.
    Dead { at: Timestamp },
}

impl Agent {
    /// The session in which the agent is awake.
    pub fn session(&self) -> Option<SessionId> {
        match self.lifecycle {
            Lifecycle::Hatching { session, .. } | Lifecycle::Alive { session } => session,
            Lifecycle::Sleeping | Lifecycle::Expired { .. } | Lifecycle::Dead { .. } => None,
        }
    }

    /// False if the agent is in a final state.
    pub fn is_living(&self) -> bool {
        match self.lifecycle {
            Lifecycle::Hatching { .. } | Lifecycle::Alive { .. } | Lifecycle::Sleeping => true,
            Lifecycle::Expired { .. } | Lifecycle::Dead { .. } => false,
        }
    }
}

impl Lifecycle {
    /// The name of the state, the same in all interfaces.
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

/// The agent, if it is not in a final state.
pub(crate) fn living(world: &World, id: AgentId) -> Result<&Agent, Refusal> {
    let agent = world.agent(id).ok_or(Refusal::UnknownAgent(id))?;
    match agent.lifecycle {
        Lifecycle::Dead { .. } => Err(Refusal::AgentDead(id)),
        Lifecycle::Expired { .. } => Err(Refusal::AgentExpired(id)),
        Lifecycle::Hatching { .. } | Lifecycle::Alive { .. } | Lifecycle::Sleeping => Ok(agent),
    }
}

/// Creates agent 0, from which all others descend.
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

/// Creates an agent that inherits a history. The cost does not depend on the length of the history, because the child only refers to it.
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

/// The events that create a fork. A fork that works for a step of a quest starts to work when there is a slot.
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

/// The events that create an agent: the agent, its budget, its first message, and the request to run it.
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

/// Kills one agent, or with `cascade` all its descendants, too. Without `cascade` its children become children of its parent.
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

/// The time limit of an egg has passed.
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

/// The ancestors of an agent, the nearest first.
pub fn ancestors(world: &World, agent: AgentId) -> impl Iterator<Item = AgentId> {
    std::iter::successors(world.agent(agent).and_then(|it| it.parent), |id| world.agent(*id).and_then(|it| it.parent))
}

/// An agent and its living descendants, parents before their children.
pub fn below(world: &World, agent: AgentId) -> Vec<AgentId> {
    let mut found = vec![agent];
    let mut next = 0;
    while let Some(id) = found.get(next).copied() {
        found.extend(world.agent(id).into_iter().flat_map(|it| it.children.iter().copied()));
        next += 1;
    }
    found
}

/// The agent that a reference names: by an id, by a name that only one living agent has, or by the beginning of an id. If no living agent
/// has the name, a dead agent with the name is found, because its history can still be read.
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

/// Whether a user may give this name to an agent: no other living agent may have it, and `root` belongs to agent 0. Agents that choose
/// their own names may have the same name.
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
                // `human` is an address: mail to an agent with this name could not be delivered.
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
