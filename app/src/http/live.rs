//! What an agent is writing at the moment, as a live stream. Partials are not in the log: if a client misses one, the whole text is still
//! in the log later.

use super::Api;
use super::error::ApiError;
use crate::live_text::Watcher;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior};

/// The pause between two frames of a client. Each frame has all words that were written since the previous one.
const PIECE_PAUSE: Duration = Duration::from_millis(50);
const OPENING: Bytes = Bytes::from_static(b"retry:1000\n\n");
const HEARTBEAT: Bytes = Bytes::from_static(b":\n\n");

/// Follow what an agent is writing, as server-sent events. Complete texts and thoughts are in the log.
/// Harnesses that report only complete texts send nothing here.
#[utoipa::path(get, path = "/api/agents/{agent}/live", operation_id = "follow_live_text", tag = "agents", params(("agent" = String, Path, description = "An id, the beginning of one, or a name")),
    responses((status = 200, description = "Frames with `data:`, each a LivePiece as JSON: first what has been written so far, then what is added. Comment lines are heartbeats.", content_type = "text/event-stream", body = crate::live_text::LivePiece)))]
pub async fn of_agent(State(api): State<Api>, reference: Path<String>) -> Result<Response, ApiError> {
    let agent = super::agents::find(&api, &reference.0)?;
    let mut heartbeat = tokio::time::interval(api.heartbeat);
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    heartbeat.reset();
    let has_markers = api.handle.view().seats().position_of(agent).is_some();
    let watcher = api.live.watch(agent, has_markers);
    let client =
        PartialsClient { opening: Some(OPENING), watcher, last: None, heartbeat, closing: api.closing.clone() };
    let frames = futures_util::stream::unfold(client, |mut client| async move {
        let bytes = client.next().await?;
        Some((Ok::<_, Infallible>(bytes), client))
    });
    let headers =
        [(header::CONTENT_TYPE, "text/event-stream"), (header::HeaderName::from_static("x-accel-buffering"), "no")];
    Ok((headers, Body::from_stream(frames)).into_response())
}

struct PartialsClient {
    opening: Option<Bytes>,
    watcher: Watcher,
    /// When the last frame was sent.
    last: Option<Instant>,
    heartbeat: Interval,
    closing: watch::Receiver<bool>,
}

impl PartialsClient {
    /// What to send next. None if the daemon shuts down.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(opening) = self.opening.take() {
            return Some(opening);
        }
        if let Some(last) = self.last {
            tokio::time::sleep_until(last + PIECE_PAUSE).await;
        }
        tokio::select! {
            biased;
            _ = self.closing.wait_for(|closing| *closing) => None,
            piece = self.watcher.next() => {
                self.last = Some(Instant::now());
                self.heartbeat.reset();
                let json = serde_json::to_string(&piece).unwrap_or_default();
                Some(Bytes::from(format!("data:{json}\n\n")))
            }
            _ = self.heartbeat.tick() => Some(HEARTBEAT),
        }
    }
}
