//! The settings of the running daemon.

use super::Api;
use super::error::ApiError;
use super::quests::unusable;
use crate::live_settings::SettingsTaken;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use std::sync::Arc;

/// Take over `hatchery.toml` if it has changed. The daemon also does this by itself, after a moment.
#[utoipa::path(post, path = "/api/settings", operation_id = "take_settings", tag = "daemon",
    responses((status = 200, description = "What counts now, and what waits for a restart", body = SettingsTaken)))]
pub async fn take_over(State(api): State<Api>) -> Result<Json<SettingsTaken>, ApiError> {
    let settings = Arc::clone(&api.settings);
    match tokio::task::spawn_blocking(move || settings.take_over()).await {
        Ok(taken) => taken.map(Json).map_err(unusable),
        Err(error) => {
            let hint = "look into .hatchery/daemon.log";
            Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "settings_unread", error, hint))
        }
    }
}
