//! Sessions over HTTP.

use super::error::{ApiError, JsonBody, PathParts};
use super::{Accepted, Api};
use crate::clock;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use hatchery_core::session::{EndReason, SessionState};
use hatchery_core::{Command, EventId, SessionId, Timestamp};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartSession {
    /// Its id, if the caller chooses it: 128 random bits. Then the request can be repeated if its answer is lost; it is refused
    /// with `session_exists` if the first request was carried out.
    id: Option<SessionId>,
    /// A label for people.
    #[schema(max_length = 256)]
    label: Option<String>,
    /// End the session after this much inactivity.
    #[schema(minimum = 1000, maximum = 31_536_000_000_i64)]
    #[serde(default, deserialize_with = "whole_number")]
    #[serde(rename = "idleMs", alias = "idle_ms")]
    idle_ms: Option<u64>,
}

#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EndSession {
    /// `user` if not given.
    reason: Option<AskedReason>,
}

/// The reason of a client for ending a session. Only the daemon ends a session because it is inactive.
#[derive(Clone, Copy, Debug, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AskedReason {
    Completed,
    User,
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionPhase {
    Open,
    Ending,
    Ended,
}

impl fmt::Display for SessionPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Open => "open",
            Self::Ending => "ending",
            Self::Ended => "ended",
        })
    }
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SessionView {
    pub id: SessionId,
    pub label: Option<String>,
    pub state: SessionPhase,
    pub reason: Option<EndReason>,
    pub started: Timestamp,
    #[serde(rename = "lastActive")]
    pub last_active: Timestamp,
    /// How many agents are awake in it.
    pub awake: usize,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SessionList {
    /// The last event that this answer includes. A client that follows the log after this event misses nothing.
    pub head: EventId,
    pub sessions: Vec<SessionView>,
}

/// List the sessions, newest last.
#[utoipa::path(get, path = "/api/sessions", operation_id = "list_sessions", tag = "sessions", responses((status = 200, description = "All of them", body = SessionList)))]
pub async fn list(State(api): State<Api>) -> Json<SessionList> {
    let world = api.handle.view();
    let mut sessions: Vec<SessionView> = world
        .sessions()
        .map(|(id, session)| {
            let (state, reason) = match &session.state {
                SessionState::Open => (SessionPhase::Open, None),
                SessionState::Ending { reason, .. } => (SessionPhase::Ending, Some(reason.clone())),
                SessionState::Ended { reason, .. } => (SessionPhase::Ended, Some(reason.clone())),
            };
            SessionView {
                id,
                label: session.label.clone(),
                state,
                reason,
                started: session.started,
                last_active: session.last_active,
                awake: session.awake.len(),
            }
        })
        .collect();
    sessions.sort_by_key(|session| (session.started, session.id));
    Json(SessionList { head: world.head(), sessions })
}

/// Start a session.
#[utoipa::path(post, path = "/api/sessions", operation_id = "start_session", tag = "sessions", request_body = StartSession,
    responses((status = 201, description = "Started", body = super::AcceptedBody)))]
pub async fn start(State(api): State<Api>, body: JsonBody<StartSession>) -> Result<(StatusCode, Accepted), ApiError> {
    let session = body.0.id.unwrap_or_else(clock::new_session_id);
    let records =
        api.handle.submit(Command::StartSession { session, label: body.0.label, idle_ms: body.0.idle_ms }).await?;
    Ok((StatusCode::CREATED, Accepted::new(session.to_string(), &records)))
}

/// End a session. The reason is logged first; `session_ended` follows when the session has ended.
#[utoipa::path(post, path = "/api/sessions/{id}/end", operation_id = "end_session", tag = "sessions", params(("id" = String, Path, description = "The session's id, or the same as a UUID")), request_body = EndSession,
    responses((status = 202, description = "It is ending", body = super::AcceptedBody)))]
pub async fn end(
    State(api): State<Api>,
    id: PathParts<String>,
    body: JsonBody<EndSession>,
) -> Result<(StatusCode, Accepted), ApiError> {
    let reason = match body.0.reason {
        Some(AskedReason::Completed) => EndReason::Completed,
        Some(AskedReason::Failed) => EndReason::Failed,
        Some(AskedReason::User) | None => EndReason::User,
    };
    let session: SessionId = id.0.parse().map_err(|_| unknown(&id.0))?;
    let records = api.handle.submit(Command::EndSession { session, reason }).await?;
    Ok((StatusCode::ACCEPTED, Accepted::new(session.to_string(), &records)))
}

/// A text that is not an id is answered like an id that no session has.
fn unknown(id: &str) -> ApiError {
    let shown: String = id.chars().take(64).collect();
    let message = format!("there is no session {shown}");
    ApiError::new(StatusCode::NOT_FOUND, "unknown_session", message, "`hatchery session list` shows the sessions")
}

/// JSON does not distinguish integers: 5000.0 is the same number as 5000, and some programs write it so.
fn whole_number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    /// Larger floats do not represent one integer exactly.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let Some(number) = Option::<serde_json::Number>::deserialize(from)? else { return Ok(None) };
    let whole = number.as_f64().filter(|it| it.fract() == 0.0 && (0.0..=EXACT).contains(it));
    match number.as_u64().or(whole.map(|it| it as u64)) {
        Some(whole) => Ok(Some(whole)),
        None => Err(serde::de::Error::custom(format_args!("{number} is not a whole number from 0 upwards"))),
    }
}
