//! The user's other projects, for the page's switcher.

use super::Api;
use super::error::ApiError;
use crate::projects::{self, ProjectLine};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use hatchery_core::EventId;
use serde::Serialize;

#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct ProjectList {
    /// The last event that this answer includes. A client that follows the log after this event misses nothing.
    pub head: EventId,
    /// Sorted by folder, including this project.
    pub projects: Vec<ProjectLine>,
}

/// List the user's projects on this machine, each with the address of its page. The daemons are asked at the time of the request.
#[utoipa::path(get, path = "/api/projects", operation_id = "list_projects", tag = "daemon", responses((status = 200, description = "All projects", body = ProjectList)))]
pub async fn list(State(api): State<Api>) -> Result<Json<ProjectList>, ApiError> {
    match projects::lines().await {
        Ok(projects) => Ok(Json(ProjectList { head: api.handle.head(), projects })),
        Err(error) => {
            let hint = "check that the folder belongs to you";
            Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "folder_unreadable", error, hint))
        }
    }
}
