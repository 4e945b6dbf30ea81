//! Agents over HTTP.

use super::error::{ApiError, Body, Path};
use super::{Accepted, Api};
use crate::clock;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use hatchery_core::agent::{Life, MessageKind};
use hatchery_core::{AgentId, Command, EventId, SessionId, Timestamp};
use serde::{Deserialize, Serialize};
use std::fmt;

#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateAgent {
    /// At most 64 bytes of UTF-8.
    #[schema(
        min_length = 1,
        max_length = 64,
        pattern = "^[^\\s\\x00-\\x1f\\x7f-\\x9f]([^\\x00-\\x1f\\x7f-\\x9f]*[^\\s\\x00-\\x1f\\x7f-\\x9f])?$"
    )]
    name: Option<String>,
    parent: Option<AgentId>,
    /// The session that it takes part in.
    session: Option<SessionId>,
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
    session: Option<SessionId>,
}

#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EndAgent {
    /// Why, for people.
    #[schema(max_length = 1024)]
    remark: Option<String>,
}

#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddMessage {
    kind: MessageKind,
    /// At most 1 MiB of UTF-8.
    content: String,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AgentView {
    pub id: AgentId,
    pub name: Option<String>,
    pub parent: Option<AgentId>,
    pub state: AgentState,
    #[serde(rename = "sessionId")]
    pub session: Option<SessionId>,
    pub created: Timestamp,
    #[serde(rename = "lastActive")]
    pub last_active: Timestamp,
    pub messages: u64,
    #[serde(rename = "lastMessage")]
    pub last_message: Option<EventId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentState {
    Alive,
    Sleeping,
    Dead,
}

impl fmt::Display for AgentState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Alive => "alive",
            Self::Sleeping => "sleeping",
            Self::Dead => "dead",
        })
    }
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AgentList {
    pub agents: Vec<AgentView>,
}

/// Every agent, the newest last.
#[utoipa::path(get, path = "/api/agents", operation_id = "list_agents", tag = "agents", responses((status = 200, description = "All of them", body = AgentList)))]
pub async fn list(State(api): State<Api>) -> Json<AgentList> {
    let world = api.handle.view();
    let mut agents: Vec<AgentView> = world
        .agents()
        .map(|(id, agent)| AgentView {
            id,
            name: agent.name.clone(),
            parent: agent.parent,
            state: match agent.life {
                Life::Alive { .. } => AgentState::Alive,
                Life::Sleeping => AgentState::Sleeping,
                Life::Dead { .. } => AgentState::Dead,
            },
            session: agent.session(),
            created: agent.created,
            last_active: agent.last_active,
            messages: agent.messages,
            last_message: agent.last_message,
        })
        .collect();
    agents.sort_by_key(|agent| (agent.created, agent.id));
    Json(AgentList { agents })
}

/// Create an agent.
#[utoipa::path(post, path = "/api/agents", operation_id = "create_agent", tag = "agents", request_body = CreateAgent,
    responses((status = 201, description = "Created", body = super::AcceptedBody)))]
pub async fn create(State(api): State<Api>, body: Body<CreateAgent>) -> Result<(StatusCode, Accepted), ApiError> {
    let CreateAgent { name, parent, session } = body.0;
    let agent = clock::new_agent_id();
    let records = api.handle.submit(Command::CreateAgent { agent, parent, name, session }).await?;
    Ok((StatusCode::CREATED, Accepted::new(agent.to_string(), &records)))
}

/// Give an agent another name.
#[utoipa::path(post, path = "/api/agents/{id}/rename", operation_id = "rename_agent", tag = "agents", params(("id" = AgentId, Path)), request_body = RenameAgent,
    responses((status = 200, description = "Renamed", body = super::AcceptedBody)))]
pub async fn rename(State(api): State<Api>, id: Path<AgentId>, body: Body<RenameAgent>) -> Result<Accepted, ApiError> {
    tell(&api, id.0, Command::RenameAgent { agent: id.0, name: body.0.name }).await
}

/// Wake a sleeping agent.
#[utoipa::path(post, path = "/api/agents/{id}/wake", operation_id = "wake_agent", tag = "agents", params(("id" = AgentId, Path)), request_body = WakeAgent,
    responses((status = 200, description = "Awake", body = super::AcceptedBody)))]
pub async fn wake(State(api): State<Api>, id: Path<AgentId>, body: Body<WakeAgent>) -> Result<Accepted, ApiError> {
    tell(&api, id.0, Command::WakeAgent { agent: id.0, session: body.0.session }).await
}

/// End an agent for good.
#[utoipa::path(post, path = "/api/agents/{id}/end", operation_id = "end_agent", tag = "agents", params(("id" = AgentId, Path)), request_body = EndAgent,
    responses((status = 200, description = "Ended", body = super::AcceptedBody)))]
pub async fn end(State(api): State<Api>, id: Path<AgentId>, body: Body<EndAgent>) -> Result<Accepted, ApiError> {
    tell(&api, id.0, Command::EndAgent { agent: id.0, remark: body.0.remark }).await
}

/// Add a message to an agent's history.
#[utoipa::path(post, path = "/api/agents/{id}/messages", operation_id = "add_message", tag = "agents", params(("id" = AgentId, Path)), request_body = AddMessage,
    responses((status = 201, description = "Added", body = super::AcceptedBody)))]
pub async fn add_message(
    State(api): State<Api>,
    id: Path<AgentId>,
    body: Body<AddMessage>,
) -> Result<(StatusCode, Accepted), ApiError> {
    let AddMessage { kind, content } = body.0;
    let accepted = tell(&api, id.0, Command::AddMessage { agent: id.0, kind, content }).await?;
    Ok((StatusCode::CREATED, accepted))
}

async fn tell(api: &Api, agent: AgentId, command: Command) -> Result<Accepted, ApiError> {
    let records = api.handle.submit(command).await?;
    Ok(Accepted::new(agent.to_string(), &records))
}
