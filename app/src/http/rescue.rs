//! Work that was rescued from removed worktrees, over HTTP.

use super::Api;
use super::changes::in_repository;
use super::error::{ApiError, JsonBody};
use crate::runner::agent_worktrees;
use crate::worktree::{RescueName, Rescued, Restored};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use hatchery_core::EventId;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RescueList {
    /// The newest first.
    pub rescued: Vec<Rescued>,
    /// The last event that this answer includes.
    pub head: EventId,
    /// The slugs of ended quests and dead agents whose worktrees still exist. Their work will be rescued in a moment.
    #[serde(default)]
    pub clearing: Vec<String>,
}

#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Restore {
    /// The name as in the list: `QUEST/STEP/NUMBER`.
    name: String,
}

/// List the work that was kept from removed worktrees.
#[utoipa::path(get, path = "/api/rescue", operation_id = "list_rescued", tag = "quests", responses((status = 200, description = "The newest first", body = RescueList)))]
pub async fn list(State(api): State<Api>) -> Result<Json<RescueList>, ApiError> {
    let world = api.handle.view();
    // Before the list is read, so that worktrees that are removed in between are in the list.
    let (head, seen) = (world.head(), world.clone());
    let (mut rescued, clearing) = in_repository(&api, move |repository| {
        let clearing = agent_worktrees::being_cleared(&seen, &repository.worktree_slugs());
        Ok((repository.rescued()?, clearing))
    })
    .await?;
    // Git stores seconds. Within a second, the later name is newer.
    rescued.reverse();
    rescued.sort_by_key(|rescue| Reverse(rescue.at));
    Ok(Json(RescueList { rescued, head, clearing }))
}

/// Restore rescued work into a new worktree in `.hatchery/rescued/`, with its own branch. The rescued work stays in the list.
#[utoipa::path(post, path = "/api/rescue/restore", operation_id = "restore_rescued", tag = "quests", request_body = Restore,
    responses((status = 201, description = "It is back", body = Restored)))]
pub async fn restore(
    State(api): State<Api>,
    body: JsonBody<Restore>,
) -> Result<(StatusCode, Json<Restored>), ApiError> {
    let name: RescueName = body.0.name.parse().map_err(|error| {
        ApiError::new(StatusCode::NOT_FOUND, "nothing_rescued", error, "GET /api/rescue lists what was kept")
    })?;
    let restored = in_repository(&api, move |repository| repository.restore(&name, None)).await?;
    Ok((StatusCode::CREATED, Json(restored)))
}
