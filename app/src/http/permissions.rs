//! The rules that allow agents to use tools without a question, over HTTP. A rule is added by an answer to a question.

use super::error::{ApiError, PathParts};
use super::{Accepted, Api};
use axum::Json;
use axum::extract::State;
use hatchery_core::permission::PermissionRule;
use hatchery_core::{AgentId, Command, EventId, Refusal};
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PermissionRuleList {
    /// The last event that this answer includes. A client that follows the log after this event misses nothing.
    pub head: EventId,
    /// The oldest first.
    pub rules: Vec<PermissionRuleView>,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PermissionRuleView {
    pub id: EventId,
    /// The agent that the rule is for; null for all agents of the project.
    pub agent: Option<AgentId>,
    pub name: Option<String>,
    pub allows: PermissionRule,
    /// The rule as text.
    pub text: String,
}

/// List the rules that allow agents to use tools without a question.
#[utoipa::path(get, path = "/api/permissions", operation_id = "list_permission_rules", tag = "questions", responses((status = 200, description = "The oldest first", body = PermissionRuleList)))]
pub async fn list(State(api): State<Api>) -> Json<PermissionRuleList> {
    let world = api.handle.view();
    let view = |(id, scoped): (&EventId, &hatchery_core::permission::ScopedRule)| PermissionRuleView {
        id: *id,
        agent: scoped.agent,
        name: scoped.agent.and_then(|agent| world.agent(agent)).and_then(|agent| agent.name.clone()),
        allows: scoped.rule.clone(),
        text: scoped.rule.to_string(),
    };
    Json(PermissionRuleList { head: world.head(), rules: world.permission_rules().iter().map(view).collect() })
}

/// Remove a rule. The user is asked again about what the rule allowed. The id in the answer is the rule's agent, or agent 0.
#[utoipa::path(post, path = "/api/permissions/{rule}/remove", operation_id = "remove_permission_rule", tag = "questions", params(("rule" = u64, Path, description = "The id of a rule")),
    responses((status = 200, description = "Removed", body = super::AcceptedBody)))]
pub async fn remove(State(api): State<Api>, rule: PathParts<u64>) -> Result<Accepted, ApiError> {
    let rule = EventId(rule.0);
    let world = api.handle.view();
    let scoped = world.permission_rules().get(&rule).ok_or(Refusal::NoRule(rule))?;
    let about = scoped.agent.or_else(|| world.root()).map(|agent| agent.to_string()).unwrap_or_default();
    let records = api.handle.submit(Command::RemovePermissionRule { rule }).await?;
    Ok(Accepted::new(about, &records))
}
