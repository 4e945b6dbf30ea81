//! Sessions over HTTP.

use super::error::{ApiError, Body, ErrorBody, Path};
use super::{Accepted, Api};
use crate::clock;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use hatchery_core::session::{EndReason, SessionState};
use hatchery_core::{Command, SessionId, Timestamp};
use serde::{Deserialize, Serialize};

#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartSession {
    /// What it is about, for people.
    #[schema(max_length = 256)]
    label: Option<String>,
    /// End by itself after this much silence.
    #[schema(minimum = 1000)]
    idle_ms: Option<u64>,
}

#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EndSession {
    /// `user` if not given. `inactive` is for the daemon itself to say.
    reason: Option<EndReason>,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SessionView {
    pub id: SessionId,
    pub label: Option<String>,
    pub state: String,
    pub reason: Option<EndReason>,
    pub started: Timestamp,
    #[serde(rename = "lastActive")]
    pub last_active: Timestamp,
    /// How many agents are awake in it.
    pub awake: usize,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SessionList {
    pub sessions: Vec<SessionView>,
}

/// Every session, the newest last.
#[utoipa::path(get, path = "/api/sessions", tag = "sessions", responses((status = 200, body = SessionList), (status = 401, description = "No token", body = ErrorBody)))]
pub async fn list(State(api): State<Api>) -> Json<SessionList> {
    let world = api.handle.view();
    let mut sessions: Vec<SessionView> = world
        .sessions()
        .map(|(id, session)| {
            let (state, reason) = match &session.state {
                SessionState::Open => ("open", None),
                SessionState::Ending { reason, .. } => ("ending", Some(reason.clone())),
                SessionState::Ended { reason, .. } => ("ended", Some(reason.clone())),
            };
            SessionView {
                id,
                label: session.label.clone(),
                state: state.into(),
                reason,
                started: session.started,
                last_active: session.last_active,
                awake: session.awake.len(),
            }
        })
        .collect();
    sessions.sort_by_key(|session| (session.started, session.id));
    Json(SessionList { sessions })
}

/// Start a session.
#[utoipa::path(post, path = "/api/sessions", tag = "sessions", request_body = StartSession,
    responses((status = 201, body = super::AcceptedBody), (status = "4XX", description = "Refused", body = ErrorBody), (status = "5XX", description = "The store is in trouble; see the code", body = ErrorBody)))]
pub async fn start(State(api): State<Api>, body: Body<StartSession>) -> Result<(StatusCode, Accepted), ApiError> {
    let session = clock::new_session_id();
    let records =
        api.handle.submit(Command::StartSession { session, label: body.0.label, idle_ms: body.0.idle_ms }).await?;
    Ok((StatusCode::CREATED, Accepted::new(session.to_string(), &records)))
}

/// Ask for the end of a session. The reason is recorded first; `session_ended` follows when it is done.
#[utoipa::path(post, path = "/api/sessions/{id}/end", tag = "sessions", params(("id" = SessionId, Path)), request_body = EndSession,
    responses((status = 202, body = super::AcceptedBody), (status = "4XX", description = "Refused", body = ErrorBody), (status = "5XX", description = "The store is in trouble; see the code", body = ErrorBody)))]
pub async fn end(
    State(api): State<Api>,
    id: Path<SessionId>,
    body: Body<EndSession>,
) -> Result<(StatusCode, Accepted), ApiError> {
    let reason = match body.0.reason {
        Some(EndReason::Inactive) => {
            return Err(ApiError::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "bad_reason",
                "only the daemon ends a session for inactivity",
                "say user, completed or failed",
            ));
        }
        given => given.unwrap_or(EndReason::User),
    };
    let records = api.handle.submit(Command::EndSession { session: id.0, reason }).await?;
    Ok((StatusCode::ACCEPTED, Accepted::new(id.0.to_string(), &records)))
}
