//! Leftovers over HTTP.

use super::Api;
use super::error::{ApiError, JsonBody};
use crate::gc::{self, Leftover};
use crate::own_environment;
use crate::worktree::Repository;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use std::time::Duration;

#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GcRequest {
    /// Clear the leftovers. Otherwise they are only listed.
    #[serde(default)]
    clear: bool,
    /// Only leftovers that are at least this many days old.
    #[serde(default)]
    days: u32,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Leftovers {
    pub leftovers: Vec<FoundLeftover>,
    /// How many of them were cleared.
    pub cleared: usize,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FoundLeftover {
    #[serde(flatten)]
    pub leftover: Leftover,
    /// Why it could not be cleared. Null if it was cleared, or only listed.
    pub stays: Option<String>,
}

/// List or clear leftovers: folders of ended attempts, wards and quests, locks, the state of scripted agents, merged branches.
#[utoipa::path(post, path = "/api/gc", operation_id = "gc", tag = "daemon", request_body = GcRequest,
    responses((status = 200, description = "What was found", body = Leftovers)))]
pub async fn gc(State(api): State<Api>, body: JsonBody<GcRequest>) -> Result<Json<Leftovers>, ApiError> {
    let (project, world) = (api.defaults.project.clone(), api.handle.view());
    let keep = Duration::from_secs(u64::from(body.0.days) * 24 * 3_600);
    let work = tokio::task::spawn_blocking(move || {
        let repository = Repository::find(&project, own_environment::entries()).ok().and_then(Result::ok);
        let leftovers = gc::find(&project, &world, repository.as_ref(), keep)?;
        let clear = body.0.clear;
        let done = leftovers.into_iter().map(|leftover| {
            let cleared = if clear { gc::clear(&project, repository.as_ref(), &leftover) } else { Ok(()) };
            FoundLeftover { leftover, stays: cleared.err().map(|error| error.to_string()) }
        });
        let leftovers: Vec<FoundLeftover> = done.collect();
        let cleared = if clear { leftovers.iter().filter(|found| found.stays.is_none()).count() } else { 0 };
        Ok(Leftovers { leftovers, cleared })
    });
    let done = work.await.map_err(std::io::Error::other).flatten();
    done.map(Json).map_err(|error: std::io::Error| {
        let hint = "look into .hatchery/daemon.log";
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "folder_unreadable", error, hint)
    })
}
