//! Agents over HTTP: the registry, fork and kill. An agent is named by its id, the beginning of it, or its name.

use super::error::{ApiError, Body, Path};
use super::{Accepted, Api};
use crate::clock;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use hatchery_core::agent::{self, Agent, Birth, Lifecycle};
use hatchery_core::quest::StepId;
use hatchery_core::{AgentId, Command, Event, EventId, QuestId, SessionId, Timestamp, World};
use serde::{Deserialize, Serialize};
use std::fmt;

#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Fork {
    /// The child's id, if the caller draws it: 128 random bits. Then the request can be repeated when its answer is lost, and is
    /// refused with `agent_exists` if it was carried out.
    id: Option<AgentId>,
    /// Whom to fork; agent 0 if not given.
    parent: Option<String>,
    /// Fork from this earlier message of its history instead of from its end.
    at: Option<EventId>,
    /// The child's first message. At most 1 MiB of UTF-8.
    prompt: Option<String>,
    /// What to call the child. At most 64 bytes of UTF-8.
    #[schema(
        min_length = 1,
        max_length = 64,
        pattern = "^[^\\s\\x00-\\x1f\\x7f-\\x9f]([^\\x00-\\x1f\\x7f-\\x9f]*[^\\s\\x00-\\x1f\\x7f-\\x9f])?$"
    )]
    name: Option<String>,
    /// The provider of its model, for the record. At most 64 bytes of UTF-8.
    #[schema(
        min_length = 1,
        max_length = 64,
        pattern = "^[^\\s\\x00-\\x1f\\x7f-\\x9f]([^\\x00-\\x1f\\x7f-\\x9f]*[^\\s\\x00-\\x1f\\x7f-\\x9f])?$"
    )]
    provider: Option<String>,
    /// Its model, for the record. At most 64 bytes of UTF-8.
    #[schema(
        min_length = 1,
        max_length = 64,
        pattern = "^[^\\s\\x00-\\x1f\\x7f-\\x9f]([^\\x00-\\x1f\\x7f-\\x9f]*[^\\s\\x00-\\x1f\\x7f-\\x9f])?$"
    )]
    model: Option<String>,
    /// The session that it takes part in.
    session: Option<SessionId>,
    /// Make an egg that expires unless it speaks within this time. At most a day.
    #[schema(minimum = 1, maximum = 86_400_000)]
    hatch_ms: Option<u64>,
}

#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RenameAgent {
    /// At most 64 bytes of UTF-8. No name takes the name away.
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
    /// The session in which it is awake.
    session: Option<SessionId>,
}

#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Kill {
    /// Everybody below it as well. Otherwise its children move up.
    #[serde(default)]
    cascade: bool,
    /// The agent that asks, if one does. It may not kill those above it.
    by: Option<String>,
    /// Why, for people.
    #[schema(max_length = 1024)]
    remark: Option<String>,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AgentView {
    pub id: AgentId,
    pub name: Option<String>,
    pub parent: Option<AgentId>,
    pub state: AgentState,
    pub provider: Option<String>,
    pub model: Option<String>,
    #[serde(rename = "sessionId")]
    pub session: Option<SessionId>,
    pub created: Timestamp,
    #[serde(rename = "lastActive")]
    pub last_active: Timestamp,
    /// The agent whose history it inherits, and the last message of it that it inherits.
    #[serde(rename = "forkedFrom")]
    pub forked_from: Option<AgentId>,
    #[serde(rename = "forkPoint")]
    pub fork_point: Option<EventId>,
    /// Its own messages.
    pub messages: u64,
    #[serde(rename = "lastMessage")]
    pub last_message: Option<EventId>,
    #[serde(rename = "unreadMail")]
    pub unread_mail: usize,
    /// What it works for, if it is an agent of a quest.
    #[serde(default)]
    pub assignment: Option<AssignmentView>,
}

/// What an agent of a quest was made for.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AssignmentView {
    pub quest: QuestId,
    pub step: StepId,
    pub role: String,
}

/// What an agent is at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentState {
    /// An egg: made, but has not spoken yet.
    Hatching,
    Alive,
    Sleeping,
    /// An egg that never hatched.
    Expired,
    Dead,
}

impl AgentState {
    /// False when nothing can happen to it any more.
    pub fn is_living(self) -> bool {
        !matches!(self, Self::Expired | Self::Dead)
    }
}

impl From<Lifecycle> for AgentState {
    fn from(lifecycle: Lifecycle) -> Self {
        match lifecycle {
            Lifecycle::Hatching { .. } => Self::Hatching,
            Lifecycle::Alive { .. } => Self::Alive,
            Lifecycle::Sleeping => Self::Sleeping,
            Lifecycle::Expired { .. } => Self::Expired,
            Lifecycle::Dead { .. } => Self::Dead,
        }
    }
}

impl fmt::Display for AgentState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Hatching => "hatching",
            Self::Alive => "alive",
            Self::Sleeping => "sleeping",
            Self::Expired => "expired",
            Self::Dead => "dead",
        })
    }
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AgentList {
    pub agents: Vec<AgentView>,
}

impl AgentView {
    pub(super) fn of(world: &World, id: AgentId) -> Option<Self> {
        world.agent(id).map(|agent| Self::new(world, id, agent))
    }

    fn new(world: &World, id: AgentId, agent: &Agent) -> Self {
        Self {
            id,
            name: agent.name.clone(),
            parent: agent.parent,
            state: agent.lifecycle.into(),
            provider: agent.provider.clone(),
            model: agent.model.clone(),
            session: agent.session(),
            created: agent.created,
            last_active: agent.last_active,
            forked_from: agent.origin.map(|origin| origin.agent),
            fork_point: agent.origin.and_then(|origin| origin.upto),
            messages: agent.messages,
            last_message: agent.last_message,
            unread_mail: world.mailbox(hatchery_core::Address::Agent(id)).map_or(0, |mailbox| mailbox.unread.len()),
            assignment: world.assignment(id).map(|it| AssignmentView {
                quest: it.quest,
                step: it.step.clone(),
                role: it.role.clone(),
            }),
        }
    }
}

/// Who is meant by a reference in a path or a body.
pub(super) fn find(api: &Api, reference: &str) -> Result<AgentId, ApiError> {
    Ok(agent::resolve(&api.handle.view(), reference)?)
}

/// Every agent, the newest last.
#[utoipa::path(get, path = "/api/agents", operation_id = "list_agents", tag = "agents", responses((status = 200, description = "All of them", body = AgentList)))]
pub async fn list(State(api): State<Api>) -> Json<AgentList> {
    let world = api.handle.view();
    let mut agents: Vec<(AgentId, &Agent)> = world.agents().collect();
    // By the log: clocks may stand still or run backwards.
    agents.sort_by_key(|(_, agent)| agent.born);
    Json(AgentList { agents: agents.into_iter().map(|(id, agent)| AgentView::new(&world, id, agent)).collect() })
}

/// One agent.
#[utoipa::path(get, path = "/api/agents/{agent}", operation_id = "show_agent", tag = "agents", params(("agent" = String, Path, description = "An id, the beginning of one, or a name")),
    responses((status = 200, description = "This one", body = AgentView)))]
pub async fn show(State(api): State<Api>, reference: Path<String>) -> Result<Json<AgentView>, ApiError> {
    let world = api.handle.view();
    let id = agent::resolve(&world, &reference.0)?;
    let agent = world.agent(id).ok_or(hatchery_core::Refusal::UnknownAgent(id))?;
    Ok(Json(AgentView::new(&world, id, agent)))
}

/// The id of an agent that is to be made, drawn by the caller or here. Asked before anything else: what may be wrong when a
/// request is repeated says nothing of the first time.
pub(super) fn drawn(world: &World, id: Option<AgentId>) -> Result<AgentId, hatchery_core::Refusal> {
    match id {
        Some(id) if world.is_taken(id) => Err(hatchery_core::Refusal::AgentExists(id)),
        Some(id) => Ok(id),
        None => Ok(clock::new_agent_id()),
    }
}

/// Fork an agent: the only way to make one. 202 means that it waits for tools that run in the parent.
#[utoipa::path(post, path = "/api/agents", operation_id = "fork_agent", tag = "agents", request_body = Fork,
    responses((status = 201, description = "Forked", body = super::AcceptedBody), (status = 202, description = "It waits for tools that run in the parent", body = super::AcceptedBody)))]
pub async fn fork(State(api): State<Api>, body: Body<Fork>) -> Result<(StatusCode, Accepted), ApiError> {
    let Fork { id, parent, at, prompt, name, provider, model, session, hatch_ms } = body.0;
    let world = api.handle.view();
    let agent = drawn(&world, id)?;
    let parent = match (parent, world.root()) {
        (Some(reference), _) => agent::resolve(&world, &reference)?,
        (None, Some(root)) => root,
        (None, None) => return Err(hatchery_core::Refusal::NobodyCalled("agent 0".into()).into()),
    };
    if let Some(message) = at {
        super::history::check_message(&api, parent, message).await?;
    }
    let birth = Birth { agent, name, provider, model, prompt, session, hatch_ms, run: None };
    let records = api.handle.submit(Command::Fork { parent, at, birth }).await?;
    let waits = records.iter().any(|record| matches!(record.event, Event::ForkRequested { .. }));
    let status = if waits { StatusCode::ACCEPTED } else { StatusCode::CREATED };
    Ok((status, Accepted::new(agent.to_string(), &records)))
}

/// Give an agent another name.
#[utoipa::path(post, path = "/api/agents/{agent}/rename", operation_id = "rename_agent", tag = "agents", params(("agent" = String, Path, description = "An id, the beginning of one, or a name")), request_body = RenameAgent,
    responses((status = 200, description = "Renamed", body = super::AcceptedBody)))]
pub async fn rename(
    State(api): State<Api>,
    reference: Path<String>,
    body: Body<RenameAgent>,
) -> Result<Accepted, ApiError> {
    let agent = find(&api, &reference.0)?;
    tell(&api, agent, Command::RenameAgent { agent, name: body.0.name }).await
}

/// Wake a sleeping agent.
#[utoipa::path(post, path = "/api/agents/{agent}/wake", operation_id = "wake_agent", tag = "agents", params(("agent" = String, Path, description = "An id, the beginning of one, or a name")), request_body = WakeAgent,
    responses((status = 200, description = "Awake", body = super::AcceptedBody)))]
pub async fn wake(
    State(api): State<Api>,
    reference: Path<String>,
    body: Body<WakeAgent>,
) -> Result<Accepted, ApiError> {
    let agent = find(&api, &reference.0)?;
    tell(&api, agent, Command::WakeAgent { agent, session: body.0.session }).await
}

/// Kill an agent for good, perhaps with everybody below it.
#[utoipa::path(post, path = "/api/agents/{agent}/kill", operation_id = "kill_agent", tag = "agents", params(("agent" = String, Path, description = "An id, the beginning of one, or a name")), request_body = Kill,
    responses((status = 200, description = "Killed", body = super::AcceptedBody)))]
pub async fn kill(State(api): State<Api>, reference: Path<String>, body: Body<Kill>) -> Result<Accepted, ApiError> {
    let agent = find(&api, &reference.0)?;
    let by = body.0.by.map(|reference| find(&api, &reference)).transpose()?;
    tell(&api, agent, Command::Kill { agent, cascade: body.0.cascade, by, remark: body.0.remark }).await
}

pub(super) async fn tell(api: &Api, agent: AgentId, command: Command) -> Result<Accepted, ApiError> {
    let records = api.handle.submit(command).await?;
    Ok(Accepted::new(agent.to_string(), &records))
}
