//! Agents over HTTP: the registry, fork and kill. An agent is named by its id, by the beginning of its id, or by its name.

use super::agent_view::{AgentView, Doing, open_question};
use super::error::{ApiError, JsonBody, PathParts, Query};
use super::{Accepted, Api};
use crate::clock;
use crate::engine::HistoryError;
use crate::short_ids::ShortIds;
use crate::store::StoreError;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use hatchery_core::agent::{self, Agent, Birth};
use hatchery_core::event::{AgentEvent, QuestionEvent, RunEvent};
use hatchery_core::roles::titled;
use hatchery_core::run::{Run, RunOptions, fork_starts, last_spec};
use hatchery_core::{AgentId, Command, Event, EventId, Record, SessionId, Timestamp, World};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// For how many working agents the last text or tool call is read from the log for one list: those that were active last.
const MAX_DOING: usize = 500;
/// For how many agents at rest the last text or tool call is read: those that were active last.
const MAX_SAID: usize = 40;

#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Fork {
    /// The child's id, if the caller chooses it: 128 random bits. Then the request can be repeated if its answer is lost; it is
    /// refused with `agent_exists` if the first request was carried out.
    id: Option<AgentId>,
    /// The parent; agent 0 if not given.
    parent: Option<String>,
    /// Inherit only up to this message of the parent's history.
    at: Option<EventId>,
    /// The child's first message. At most 1 MiB of UTF-8.
    prompt: Option<String>,
    /// The child's name. At most 64 bytes of UTF-8.
    #[schema(
        min_length = 1,
        max_length = 64,
        pattern = "^[^\\s\\x00-\\x1f\\x7f-\\x9f]([^\\x00-\\x1f\\x7f-\\x9f]*[^\\s\\x00-\\x1f\\x7f-\\x9f])?$"
    )]
    name: Option<String>,
    /// The provider of the child's model; only recorded. If not given: the child's harness. At most 64 bytes of UTF-8.
    #[schema(
        min_length = 1,
        max_length = 64,
        pattern = "^[^\\s\\x00-\\x1f\\x7f-\\x9f]([^\\x00-\\x1f\\x7f-\\x9f]*[^\\s\\x00-\\x1f\\x7f-\\x9f])?$"
    )]
    provider: Option<String>,
    /// Whether the child starts to work on the prompt. If not given: only if the parent has worked, or if `with` is given.
    run: Option<bool>,
    /// Options of the child's run. Anything that is left out is as in the parent's last run.
    #[serde(default)]
    with: RunOptions,
    /// The child's model; if not given, that of `with`, else the parent's if the harness is the same. At most 64 bytes of UTF-8.
    #[schema(
        min_length = 1,
        max_length = 64,
        pattern = "^[^\\s\\x00-\\x1f\\x7f-\\x9f]([^\\x00-\\x1f\\x7f-\\x9f]*[^\\s\\x00-\\x1f\\x7f-\\x9f])?$"
    )]
    model: Option<String>,
    /// Accept a name that another living agent has. For agents that choose their own names. Otherwise such a name is refused.
    #[serde(default)]
    #[serde(rename = "anyName", alias = "any_name")]
    any_name: bool,
    /// The session that the child belongs to.
    session: Option<SessionId>,
    /// The agent expires unless it is heard from within this time. At most a day.
    #[schema(minimum = 1, maximum = 86_400_000)]
    #[serde(rename = "hatchMs", alias = "hatch_ms")]
    hatch_ms: Option<u64>,
}

#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RenameAgent {
    /// At most 64 bytes of UTF-8. Null removes the name.
    #[schema(
        min_length = 1,
        max_length = 64,
        pattern = "^[^\\s\\x00-\\x1f\\x7f-\\x9f]([^\\x00-\\x1f\\x7f-\\x9f]*[^\\s\\x00-\\x1f\\x7f-\\x9f])?$"
    )]
    name: Option<String>,
}

#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WakeAgent {
    /// The session that the agent joins.
    session: Option<SessionId>,
}

#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Kill {
    /// Also kill all its descendants. Otherwise its children become children of its nearest living ancestor.
    #[serde(default)]
    cascade: bool,
    /// The agent that sends the command, if an agent sends it. An agent cannot kill its ancestors.
    by: Option<String>,
    /// The reason, for the log.
    #[schema(max_length = 1024)]
    remark: Option<String>,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AgentList {
    /// The last event that this answer includes. A client that follows the log after this event misses nothing.
    pub head: EventId,
    pub agents: Vec<AgentView>,
    /// How many other agents there are.
    pub hidden: usize,
    /// So many characters distinguish the ids of all agents, listed or not.
    #[serde(rename = "idChars")]
    pub id_chars: usize,
}

/// One agent, and when this was so.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct AgentDetail {
    /// The last event that this answer includes. A client that follows the log after this event misses nothing.
    pub head: EventId,
    #[serde(flatten)]
    pub agent: AgentView,
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct AgentQuery {
    /// Only agents that are not dead or expired.
    #[serde(default)]
    living: bool,
    /// Only agents with an open run.
    #[serde(default)]
    active: bool,
    /// Only agents of this quest: an id, or the beginning of one.
    quest: Option<String>,
    /// Which agents are wanted [default: `all`].
    #[serde(default)]
    #[param(inline)]
    extent: ListExtent,
}

/// How many agents are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
enum ListExtent {
    #[default]
    All,
    /// Living agents that have a run or a question, and at most 50 others outside of quests: the latest that were active in the last 24
    /// hours.
    Current,
    /// The current ones and their ancestors.
    CurrentWithAncestors,
}

/// How long an agent without a run is current after its last activity.
const RECENT_MS: u64 = 24 * 3_600 * 1_000;
/// How many agents without a run and a question are current. A longer list does not fit on a screen.
const MAX_CURRENT_AT_REST: usize = 50;

/// The effects of a kill.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct KillPreview {
    /// The last event that this answer includes. A client that follows the log after this event misses nothing.
    pub head: EventId,
    /// The agents that would die; the named one first.
    pub killed: Vec<AgentId>,
    /// The agents that would get another parent.
    pub moved: Vec<MovedAgent>,
    /// The killed agents whose runs would be stopped.
    pub stopped: Vec<AgentId>,
    /// Questions to the user that would be withdrawn.
    pub withdrawn: Vec<EventId>,
    /// Waiting forks that would be cancelled, by the id of the child.
    pub cancelled: Vec<AgentId>,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct MovedAgent {
    pub agent: AgentId,
    /// Its new parent.
    pub to: AgentId,
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct KillQuery {
    /// Also all its descendants.
    #[serde(default)]
    cascade: bool,
}

/// The agent that a reference in a path or a body means.
pub(super) fn find(api: &Api, reference: &str) -> Result<AgentId, ApiError> {
    let world = api.handle.view();
    agent::resolve(&world, reference).map_err(|refusal| not_found(&world, reference, refusal))
}

/// Why a reference means no agent, or several.
pub(super) fn not_found(world: &World, reference: &str, refusal: hatchery_core::Refusal) -> ApiError {
    match refusal {
        hatchery_core::Refusal::Ambiguous { candidates, .. } => ambiguous(world, reference, &candidates),
        refusal => refusal.into(),
    }
}

/// How many agents an ambiguous reference lists.
const MAX_CANDIDATES: usize = 10;

/// Lists the agents that a reference may mean, with data that distinguishes them.
fn ambiguous(world: &World, reference: &str, candidates: &[AgentId]) -> ApiError {
    let line = |id: &AgentId| {
        let agent = world.agent(*id)?;
        let state = agent.lifecycle.word();
        let work = match world.assignment(*id) {
            Some(assignment) => {
                format!("{} of step {}, quest {}", titled(&assignment.role), assignment.step, assignment.quest)
            }
            None if world.run(*id).is_some_and(Run::is_open) => "at work".to_owned(),
            None => "at rest".to_owned(),
        };
        Some(format!("\n  {id}  {state}, {work}, active {}", clock::age(agent.last_active, clock::now())))
    };
    let lines: String = candidates.iter().take(MAX_CANDIDATES).filter_map(line).collect();
    let more = match candidates.len().saturating_sub(MAX_CANDIDATES) {
        0 => String::new(),
        more => format!("\n  and {more} more"),
    };
    let shown: String = reference.chars().take(agent::MAX_NAME_BYTES).collect();
    let message = format!("`{shown}` may mean {} agents:{lines}{more}", candidates.len());
    ApiError::new(StatusCode::CONFLICT, "ambiguous", message, "give more characters of the id")
}

/// List agents, newest last, with what they are doing now.
#[utoipa::path(get, path = "/api/agents", operation_id = "list_agents", tag = "agents", params(AgentQuery), responses((status = 200, description = "All of them, or those that were asked for", body = AgentList)))]
pub async fn list(State(api): State<Api>, query: Query<AgentQuery>) -> Result<Json<AgentList>, ApiError> {
    let AgentQuery { living, active, quest, extent } = query.0;
    let world = api.handle.view();
    let quest = quest.map(|reference| super::quests::find(&api, &reference)).transpose()?;
    let is_active = |id: AgentId| world.run(id).is_some_and(Run::is_open);
    let is_meant = |(id, agent): &(AgentId, &Agent)| {
        (!living || agent.is_living())
            && (!active || is_active(*id))
            && quest.is_none_or(|quest| world.assignment(*id).is_some_and(|it| it.quest == quest))
    };
    let now = clock::now();
    let mut agents: Vec<(AgentId, &Agent)> = world.agents().filter(is_meant).collect();
    if extent != ListExtent::All {
        keep_current(&world, &mut agents, now);
    }
    if extent == ListExtent::CurrentWithAncestors {
        add_ancestors(&world, &mut agents);
    }
    // Sorted by their position in the log, because clocks may stand still or run backwards.
    agents.sort_by_key(|(_, agent)| agent.born);
    let mut agents: Vec<AgentView> =
        agents.into_iter().map(|(id, agent)| AgentView::new(&world, id, agent, now)).collect();
    add_doing(&api, &world, agents.iter_mut().collect()).await?;
    let hidden = world.agent_count() - agents.len();
    let id_chars = ShortIds::of_sorted(world.agents().map(|(id, _)| id)).width();
    Ok(Json(AgentList { head: world.head(), agents, hidden, id_chars }))
}

/// Removes all agents but those of [`ListExtent::Current`].
fn keep_current(world: &World, agents: &mut Vec<(AgentId, &Agent)>, now: Timestamp) {
    agents.retain(|(_, agent)| agent.is_living());
    let is_busy = |id: AgentId| world.run(id).is_some_and(Run::is_open) || open_question(world, id).is_some();
    let (busy, mut at_rest): (Vec<_>, Vec<_>) = agents.drain(..).partition(|(id, _)| is_busy(*id));
    // `hatchery quest show` shows the agents of quests at their steps.
    at_rest.retain(|(id, agent)| now.ms_since(agent.last_active) < RECENT_MS && world.assignment(*id).is_none());
    at_rest.sort_by_key(|(_, agent)| Reverse((agent.last_active, agent.born)));
    agents.extend(busy.into_iter().chain(at_rest.into_iter().take(MAX_CURRENT_AT_REST)));
}

/// Adds the ancestors of agents, so that a tree of them has no gaps.
fn add_ancestors<'world>(world: &'world World, agents: &mut Vec<(AgentId, &'world Agent)>) {
    let mut listed: BTreeSet<AgentId> = agents.iter().map(|(id, _)| *id).collect();
    let mut next = 0;
    while let Some((_, agent)) = agents.get(next) {
        if let Some(parent) = agent.parent.filter(|parent| listed.insert(*parent)) {
            agents.extend(world.agent(parent).map(|agent| (parent, agent)));
        }
        next += 1;
    }
}

/// Adds the last text or tool call of agents: of those that work, and of those at rest that were active last.
pub(super) async fn add_doing(api: &Api, world: &World, mut agents: Vec<&mut AgentView>) -> Result<(), ApiError> {
    agents.retain(|agent| agent.last_message.is_some());
    agents.sort_by_key(|agent| Reverse(agent.last_message));
    let (mut agents, mut at_rest): (Vec<_>, Vec<_>) =
        agents.into_iter().partition(|agent| world.run(agent.id).is_some_and(Run::is_open));
    agents.truncate(MAX_DOING);
    at_rest.truncate(MAX_SAID);
    agents.append(&mut at_rest);
    let ids: Vec<AgentId> = agents.iter().map(|agent| agent.id).collect();
    let latest = latest_spoken(api, &ids).await?;
    for agent in agents {
        agent.doing = latest.get(&agent.id).and_then(|record| Doing::of(world.seats(), record));
    }
    Ok(())
}

/// The last text or tool call of agents. Empty while the store cannot be reached, because everything else is known.
async fn latest_spoken(api: &Api, of: &[AgentId]) -> Result<BTreeMap<AgentId, Record>, ApiError> {
    match api.handle.latest_spoken(of).await {
        Err(HistoryError::Store(StoreError::Unavailable(_))) => Ok(BTreeMap::new()),
        read => Ok(read?),
    }
}

/// Show one agent.
#[utoipa::path(get, path = "/api/agents/{agent}", operation_id = "show_agent", tag = "agents", params(("agent" = String, Path, description = "An id, the beginning of one, or a name")),
    responses((status = 200, description = "This one", body = AgentDetail)))]
pub async fn show(State(api): State<Api>, reference: PathParts<String>) -> Result<Json<AgentDetail>, ApiError> {
    let world = api.handle.view();
    let id = find(&api, &reference.0)?;
    let agent = world.agent(id).ok_or(hatchery_core::Refusal::UnknownAgent(id))?;
    let latest = latest_spoken(&api, &[id]).await?;
    let doing = latest.get(&id).and_then(|record| Doing::of(world.seats(), record));
    let agent = AgentView { doing, ..AgentView::new(&world, id, agent, clock::now()) };
    Ok(Json(AgentDetail { head: world.head(), agent }))
}

/// The id of a new agent: the caller's choice, or a random id. Must be called first: a repeated request must be refused with
/// `agent_exists`, even if something else has become wrong since the first request.
pub(super) fn new_agent_id(world: &World, id: Option<AgentId>) -> Result<AgentId, hatchery_core::Refusal> {
    match id {
        Some(id) if world.is_taken(id) => Err(hatchery_core::Refusal::AgentExists(id)),
        Some(id) => Ok(id),
        None => Ok(clock::new_agent_id()),
    }
}

/// Create an agent as a fork of another. 202 means that the fork waits for running tools of the parent.
#[utoipa::path(post, path = "/api/agents", operation_id = "fork_agent", tag = "agents", request_body = Fork,
    responses((status = 201, description = "Forked", body = super::AcceptedBody), (status = 202, description = "It waits for tools that run in the parent", body = super::AcceptedBody)))]
pub async fn fork(State(api): State<Api>, body: JsonBody<Fork>) -> Result<(StatusCode, Accepted), ApiError> {
    let Fork { id, parent, at, prompt, name, provider, run, with, model, any_name, session, hatch_ms } = body.0;
    let world = api.handle.view();
    let agent = new_agent_id(&world, id)?;
    if !any_name {
        agent::check_given_name(&world, name.as_deref(), None)?;
    }
    let parent = match (parent, world.root()) {
        (Some(reference), _) => find(&api, &reference)?,
        (None, Some(root)) => root,
        (None, None) => return Err(hatchery_core::Refusal::NobodyCalled("agent 0".into()).into()),
    };
    if let Some(message) = at {
        super::history::check_message(&api, parent, message).await?;
    }
    let last = last_spec(&world, parent);
    let run = match fork_starts(run, &with, prompt.as_deref(), last)? {
        true => {
            let model = model.clone().or(with.model);
            let spec = api.defaults.spec_of_run(last, None, RunOptions { model, ..with })?;
            super::runs::check_program(&api, &spec.harness).await?;
            Some(Box::new(spec))
        }
        false => None,
    };
    // If the child does not start yet, it will be run like its parent.
    let spec = run.as_deref().or(last);
    let model = model.or_else(|| spec?.model.clone());
    let provider = provider.or_else(|| Some(spec?.harness.clone()));
    let birth = Birth { name, provider, model, prompt, session, hatch_ms, run, ..Birth::of(agent) };
    let records = api.handle.submit(Command::Fork { parent, at, birth }).await?;
    let waits = records
        .iter()
        .any(|record| matches!(record.event, Event::Agent { what: AgentEvent::ForkRequested { .. }, .. }));
    let status = if waits { StatusCode::ACCEPTED } else { StatusCode::CREATED };
    Ok((status, Accepted::new(agent.to_string(), &records)))
}

/// Change or remove an agent's name.
#[utoipa::path(post, path = "/api/agents/{agent}/rename", operation_id = "rename_agent", tag = "agents", params(("agent" = String, Path, description = "An id, the beginning of one, or a name")), request_body = RenameAgent,
    responses((status = 200, description = "Renamed", body = super::AcceptedBody)))]
pub async fn rename(
    State(api): State<Api>,
    reference: PathParts<String>,
    body: JsonBody<RenameAgent>,
) -> Result<Accepted, ApiError> {
    let agent = find(&api, &reference.0)?;
    agent::check_given_name(&api.handle.view(), body.0.name.as_deref(), Some(agent))?;
    tell(&api, agent, Command::RenameAgent { agent, name: body.0.name }).await
}

/// Wake a sleeping agent.
#[utoipa::path(post, path = "/api/agents/{agent}/wake", operation_id = "wake_agent", tag = "agents", params(("agent" = String, Path, description = "An id, the beginning of one, or a name")), request_body = WakeAgent,
    responses((status = 200, description = "Awake", body = super::AcceptedBody)))]
pub async fn wake(
    State(api): State<Api>,
    reference: PathParts<String>,
    body: JsonBody<WakeAgent>,
) -> Result<Accepted, ApiError> {
    let agent = find(&api, &reference.0)?;
    tell(&api, agent, Command::WakeAgent { agent, session: body.0.session }).await
}

/// End an agent permanently, optionally with all its descendants.
#[utoipa::path(post, path = "/api/agents/{agent}/kill", operation_id = "kill_agent", tag = "agents", params(("agent" = String, Path, description = "An id, the beginning of one, or a name")), request_body = Kill,
    responses((status = 200, description = "Killed", body = super::AcceptedBody)))]
pub async fn kill(
    State(api): State<Api>,
    reference: PathParts<String>,
    body: JsonBody<Kill>,
) -> Result<Accepted, ApiError> {
    let agent = find(&api, &reference.0)?;
    let by = body.0.by.map(|reference| find(&api, &reference)).transpose()?;
    tell(&api, agent, Command::Kill { agent, cascade: body.0.cascade, by, remark: body.0.remark }).await
}

/// Show what killing an agent would do.
#[utoipa::path(get, path = "/api/agents/{agent}/kill", operation_id = "preview_kill", tag = "agents", params(("agent" = String, Path, description = "An id, the beginning of one, or a name"), KillQuery),
    responses((status = 200, description = "As things are now", body = KillPreview)))]
pub async fn preview_kill(
    State(api): State<Api>,
    reference: PathParts<String>,
    query: Query<KillQuery>,
) -> Result<Json<KillPreview>, ApiError> {
    let mut world = World::clone(&api.handle.view());
    let agent = agent::resolve(&world, &reference.0)?;
    let command = Command::Kill { agent, cascade: query.0.cascade, by: None, remark: None };
    let events = hatchery_core::step(&mut world, &command, clock::now())?;
    let mut preview = KillPreview {
        head: api.handle.head(),
        killed: Vec::new(),
        moved: Vec::new(),
        stopped: Vec::new(),
        withdrawn: Vec::new(),
        cancelled: Vec::new(),
    };
    for record in events {
        match record.event {
            Event::Agent { agent, what: AgentEvent::Killed { .. } } => preview.killed.push(agent),
            Event::Agent { agent, what: AgentEvent::Reparented { parent } } => {
                preview.moved.push(MovedAgent { agent, to: parent })
            }
            Event::Run { of, what: RunEvent::Stopping { .. } } | Event::Run { of, what: RunEvent::Ended { .. } } => {
                preview.stopped.push(of.agent)
            }
            Event::Question { what: QuestionEvent::Withdrawn { question }, .. } => preview.withdrawn.push(question),
            Event::Agent { what: AgentEvent::ForkCancelled { child }, .. } => preview.cancelled.push(child),
            _ => {}
        }
    }
    // Something else may have been due at the same time.
    preview.stopped.retain(|stopped| preview.killed.contains(stopped));
    // The named agent may come last, because its descendants die first.
    preview.killed.sort_by_key(|killed| *killed != agent);
    Ok(Json(preview))
}

pub(super) async fn tell(api: &Api, agent: AgentId, command: Command) -> Result<Accepted, ApiError> {
    let records = api.handle.submit(command).await?;
    Ok(Accepted::new(agent.to_string(), &records))
}
