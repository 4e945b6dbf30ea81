//! What a user wants to see first, in one answer and after one event. A client that follows the log after `head` misses nothing and counts
//! nothing twice.

use super::Api;
use super::agent_view::AgentView;
use super::agents;
use super::error::ApiError;
use super::questions::{self, BudgetView, QuestionView};
use super::quests::{self, QuestLine};
use super::runs::{self, RunView};
use crate::clock;
use crate::mail_reader::{self, Header};
use axum::Json;
use axum::extract::State;
use hatchery_core::usage::Usage;
use hatchery_core::why::{self, Activity, Evidence};
use hatchery_core::{Address, AgentId, EventId, Timestamp, World, budget};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// How many idle agents without an open question are shown: those that were active last.
const RECENT_AGENTS: usize = 100;
/// How many ended quests are shown.
const RECENT_QUESTS: usize = 50;

/// The current state of everything. Long lists are cut: working agents and open questions are always complete; of the others only the
/// latest are listed.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Overview {
    /// The last event that this answer includes.
    pub head: EventId,
    /// The time of the request, by the daemon's clock.
    pub now: Timestamp,
    pub project: String,
    pub version: String,
    /// The current problem of the store.
    pub trouble: Option<String>,
    /// The oldest first.
    pub agents: Vec<AgentOverview>,
    /// How many agents there are in all.
    pub agent_count: usize,
    /// The oldest first.
    pub quests: Vec<QuestLine>,
    pub quest_count: usize,
    /// The oldest first.
    pub questions: Vec<QuestionView>,
    pub budgets: Vec<BudgetView>,
    /// The usage since midnight in UTC.
    #[serde(with = "crate::amounts::usage")]
    #[schema(value_type = crate::amounts::UsageAmount)]
    pub today: Usage,
    /// Unread mail of the user.
    pub mail: Vec<Header>,
}

/// An agent, what it is doing, and the evidence.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentOverview {
    pub agent: AgentView,
    pub activity: Activity,
    pub evidence: Vec<Evidence>,
    /// Its last run.
    pub run: Option<RunView>,
    #[serde(with = "crate::amounts::usage")]
    #[schema(value_type = crate::amounts::UsageAmount)]
    pub spent: Usage,
    /// Silence that counts as stuck.
    pub stall_ms: Option<u64>,
}

/// The overview for the home page.
#[utoipa::path(get, path = "/api/overview", operation_id = "overview", tag = "daemon", responses((status = 200, description = "As of `head`", body = Overview)))]
pub async fn overview(State(api): State<Api>) -> Result<Json<Overview>, ApiError> {
    let world = api.handle.view();
    let now = clock::now();
    let mut seen: Vec<AgentOverview> = shown(&world).into_iter().filter_map(|agent| seen(&world, agent, now)).collect();
    agents::add_doing(&api, &world, seen.iter_mut().map(|seen| &mut seen.agent).collect()).await?;
    Ok(Json(Overview {
        head: world.head(),
        now,
        project: api.project.clone(),
        version: crate::version::version().to_owned(),
        trouble: api.handle.trouble(),
        agents: seen,
        agent_count: world.agent_count(),
        quests: quest_lines(&world),
        quest_count: world.quests().count(),
        questions: questions::views(&world),
        budgets: questions::budget_views(&world, now),
        today: world.spent_on(budget::day(now)),
        mail: mail_reader::check(&world, Address::Human),
    }))
}

/// The agents that are shown, the oldest first.
fn shown(world: &World) -> Vec<AgentId> {
    let asked: BTreeSet<AgentId> = world.questions_to_answer().map(|(_, question)| question.agent).collect();
    let works = |agent: AgentId| world.run(agent).is_some_and(hatchery_core::run::Run::is_open);
    let (mut busy, mut idle): (Vec<_>, Vec<_>) =
        world.agents().partition(|(id, _)| works(*id) || asked.contains(id) || world.root() == Some(*id));
    idle.sort_by_key(|(_, agent)| std::cmp::Reverse((agent.last_active, agent.born)));
    idle.truncate(RECENT_AGENTS);
    busy.append(&mut idle);
    busy.sort_by_key(|(_, agent)| agent.born);
    busy.into_iter().map(|(id, _)| id).collect()
}

fn seen(world: &World, id: AgentId, now: Timestamp) -> Option<AgentOverview> {
    let why = why::why(world, id)?;
    Some(AgentOverview {
        agent: AgentView::of(world, id, now)?,
        activity: why.state,
        evidence: why.evidence,
        run: runs::views(world, id).pop(),
        spent: world.conversation(id).map(|it| it.spent).unwrap_or_default(),
        stall_ms: world.run(id).map(|run| run.spec.stall_ms),
    })
}

fn quest_lines(world: &World) -> Vec<QuestLine> {
    let (mut open, mut over): (Vec<_>, Vec<_>) = world.quests().partition(|(_, quest)| !quest.is_over());
    over.sort_by_key(|(_, quest)| std::cmp::Reverse(quest.version));
    over.truncate(RECENT_QUESTS);
    open.append(&mut over);
    open.sort_by_key(|(id, quest)| (quest.created, *id));
    open.into_iter().filter_map(|(id, _)| quests::line_of(world, id)).collect()
}
