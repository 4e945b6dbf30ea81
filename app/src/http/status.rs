//! The state of the daemon.

use super::Api;
use super::error::{ApiError, JsonBody};
use crate::fsck::{self, FsckReport};
use crate::version::version;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use hatchery_core::EventId;
use hatchery_core::seat::session_uuid;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Health {
    pub status: Condition,
    pub version: &'static str,
    /// Whether a session of the seats is open. Missing without the token.
    #[serde(rename = "sessionActive", skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub session_active: Option<bool>,
    /// The session of the seats, as a UUID, or null. Missing without the token.
    #[serde(rename = "sessionId", skip_serializing_if = "Option::is_none")]
    #[schema(required = false, value_type = Option<String>)]
    pub session_id: Option<Option<String>>,
    /// A fingerprint of the content of `hatchery.toml` that is in effect. Missing without the token.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub settings: Option<String>,
    /// Whether changed settings wait until the daemon is started again. Not told without the token.
    #[serde(rename = "settingsWait", skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub settings_wait: Option<bool>,
    /// Always false, because agent programs log in by themselves. Clients of the original program read it. Missing without the token.
    #[serde(rename = "needsSetup", skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub needs_setup: Option<bool>,
}

#[derive(Clone, Copy, Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    Ok,
    /// Nothing can be recorded now.
    StoreTrouble,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct DaemonStatus {
    pub version: String,
    pub pid: u32,
    pub project: String,
    pub store: String,
    /// The current problem of the store.
    pub trouble: Option<String>,
    /// The last event.
    pub head: EventId,
    pub sessions: usize,
    pub agents: usize,
    #[serde(rename = "uptimeMs")]
    pub uptime_ms: u64,
}

#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FsckRequest {
    /// Rebuild derived data that is wrong.
    #[serde(default)]
    repair: bool,
}

/// Whether the daemon is alive. Needs no token.
#[utoipa::path(get, path = "/api/health", operation_id = "health", tag = "daemon", security(()), responses((status = 200, description = "It is alive", body = Health)))]
pub async fn health(State(api): State<Api>, headers: HeaderMap) -> Json<Health> {
    let status = if api.handle.trouble().is_some() { Condition::StoreTrouble } else { Condition::Ok };
    // Clients without the token learn only that the daemon is alive.
    let trusted = api.guard.trusts(&headers);
    let session = trusted.then(|| {
        let world = api.handle.view();
        world.seats().session().map(|open| session_uuid(open.id))
    });
    Json(Health {
        status,
        version: version(),
        session_active: session.as_ref().map(Option::is_some),
        needs_setup: session.is_some().then_some(false),
        session_id: session,
        settings: trusted.then(|| api.settings.mark()),
        settings_wait: trusted.then(|| !api.settings.waiting().is_empty()),
    })
}

/// Show the daemon: project, store, size of the log.
#[utoipa::path(get, path = "/api/status", operation_id = "status", tag = "daemon", responses((status = 200, description = "How it is doing", body = DaemonStatus)))]
pub async fn status(State(api): State<Api>) -> Json<DaemonStatus> {
    let world = api.handle.view();
    Json(DaemonStatus {
        version: version().into(),
        pid: std::process::id(),
        project: api.project.clone(),
        store: api.store.clone(),
        trouble: api.handle.trouble(),
        head: world.head(),
        sessions: world.session_count(),
        agents: world.agent_count(),
        uptime_ms: u64::try_from(api.started.elapsed().as_millis()).unwrap_or(u64::MAX),
    })
}

/// Read the whole log and check everything that is derived from it. Can take long.
#[utoipa::path(post, path = "/api/fsck", operation_id = "fsck", tag = "daemon", request_body = FsckRequest,
    responses((status = 200, description = "What was found", body = FsckReport)))]
pub async fn fsck(State(api): State<Api>, body: JsonBody<FsckRequest>) -> Result<Json<FsckReport>, ApiError> {
    let store = std::sync::Arc::clone(api.handle.store());
    let head = api.log_head.clone();
    let check = tokio::task::spawn_blocking(move || {
        fsck::check_against(store.as_ref(), head.as_ref(), body.0.repair, &mut |_| {})
    });
    match check.await {
        Ok(Ok(findings)) => Ok(Json(findings)),
        Ok(Err(error)) => {
            Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "check_failed", error, "look into .hatchery/daemon.log"))
        }
        Err(error) => {
            Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "check_failed", error, "look into .hatchery/daemon.log"))
        }
    }
}
