//! For clients that know only the original program of the seats: its event stream (`?dialect=julian`), and errors in its form.

use super::error::ApiError;
use super::event_stream::{self, StreamClient, Upkeep, UpkeepDue};
use super::{Api, ApiContext};
use crate::config::Dialect;
use crate::engine::RecordFollower;
use crate::seat_dialect::Translator;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use hatchery_core::EventId;
use serde_json::json;
use std::sync::Arc;

/// How soon a browser reconnects after the daemon was stopped.
const OPENING: Bytes = Bytes::from_static(b"retry: 1000\n\n");

/// One client of the stream.
struct DialectClient {
    api: Api,
    follower: RecordFollower,
    translator: Translator,
    /// The last id that was sent to the client.
    announced: EventId,
    upkeep: Upkeep,
}

pub(super) async fn stream(api: &Api, after: EventId) -> Result<Response, ApiError> {
    let unreadable = |error| ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "unreadable", error, "run `hatchery fsck`");
    let world = api.handle.world_at(after).await.map_err(unreadable)?;
    let before = match after {
        EventId::START => None,
        after => api.handle.record(after).await?,
    };
    let client = DialectClient {
        api: api.clone(),
        follower: api.handle.follow_records(after),
        translator: Translator::after(world, before, &api.defaults.seats.human),
        announced: after,
        upkeep: Upkeep::of(api),
    };
    Ok(event_stream::response(OPENING, client))
}

/// Such clients show the field `error` to people, so it must be a sentence. A client with our token knows our own form.
pub async fn say_errors(State(context): State<Arc<ApiContext>>, request: Request, next: Next) -> Response {
    let dialect = context.settings.defaults().seats.dialect;
    let is_theirs = dialect == Dialect::Julian && !context.guard.has_token(request.headers());
    let response = next.run(request).await;
    match response.extensions().get::<ApiError>().filter(|_| is_theirs) {
        None => response,
        Some(error) => {
            let words = match error.code {
                "no_seat_session" => "No active session",
                "seats_active" => "Session already active",
                _ => error.message.as_str(),
            };
            let body = json!({ "error": words, "code": error.code, "hint": error.hint });
            let (mut parts, _) = response.into_parts();
            parts.headers.remove(header::CONTENT_LENGTH);
            Response::from_parts(parts, Body::from(body.to_string()))
        }
    }
}

impl StreamClient for DialectClient {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let records = tokio::select! {
                biased;
                records = self.follower.next_records() => records,
                due = self.upkeep.next() => return (due == UpkeepDue::Heartbeat).then(|| self.heartbeat()),
            };
            let records = match records {
                Ok(records) => records,
                Err(error) => {
                    tracing::debug!(%error, "an event stream ends");
                    return None;
                }
            };
            let mut frames = String::new();
            for record in records.iter() {
                let said = match self.translator.take(record) {
                    Ok(said) => said,
                    Err(error) => {
                        tracing::warn!(%error, event = record.id.0, "an event stream ends: the log cannot be followed");
                        return None;
                    }
                };
                for event in said {
                    let Ok(data) = serde_json::to_string(&event) else { continue };
                    frames.push_str(&format!("id: {}\ndata: {data}\n\n", event.id));
                    self.announced = event.id;
                }
            }
            self.translator.share(&self.api.handle.view());
            if !frames.is_empty() {
                self.upkeep.note_sent();
                return Some(Bytes::from(frames));
            }
        }
    }
}

impl DialectClient {
    /// Keeps the connection open. A frame with an id and without data moves the client's cursor, and is not an event for the client.
    fn heartbeat(&mut self) -> Bytes {
        let cursor = self.translator.position();
        match cursor > self.announced {
            true => {
                self.announced = cursor;
                Bytes::from(format!("id: {cursor}\n\n"))
            }
            false => Bytes::from_static(b": heartbeat\n\n"),
        }
    }
}
