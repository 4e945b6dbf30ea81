//! What an agent is writing at the moment, as a live stream. Partials are not in the log: if a client misses one, the whole text is still
//! in the log later.

use super::Api;
use super::error::ApiError;
use super::event_stream::{self, HEARTBEAT, OPENING, StreamClient, Upkeep, UpkeepDue};
use crate::live_text::Watcher;
use axum::extract::{Path, State};
use axum::response::Response;
use bytes::Bytes;
use std::time::Duration;
use tokio::time::Instant;

/// The pause between two frames of a client. Each frame has all words that were written since the previous one.
const PIECE_PAUSE: Duration = Duration::from_millis(50);

/// Follow what an agent is writing, as server-sent events. Complete texts and thoughts are in the log.
/// Harnesses that report only complete texts send nothing here.
#[utoipa::path(get, path = "/api/agents/{agent}/live", operation_id = "follow_live_text", tag = "agents", params(("agent" = String, Path, description = "An id, the beginning of one, or a name")),
    responses((status = 200, description = "Frames with `data:`, each a LivePiece as JSON: first what has been written so far, then what is added. Comment lines are heartbeats.", content_type = "text/event-stream", body = crate::live_text::LivePiece)))]
pub async fn of_agent(State(api): State<Api>, reference: Path<String>) -> Result<Response, ApiError> {
    let agent = super::agents::find(&api, &reference.0)?;
    let has_markers = api.handle.view().seats().position_of(agent).is_some();
    let watcher = api.live.watch(agent, has_markers);
    Ok(event_stream::response(OPENING, PartialsClient { watcher, last: None, upkeep: Upkeep::of(&api) }))
}

struct PartialsClient {
    watcher: Watcher,
    /// When the last frame was sent.
    last: Option<Instant>,
    upkeep: Upkeep,
}

impl StreamClient for PartialsClient {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(last) = self.last {
            tokio::time::sleep_until(last + PIECE_PAUSE).await;
        }
        tokio::select! {
            biased;
            due = self.upkeep.next() => (due == UpkeepDue::Heartbeat).then_some(HEARTBEAT),
            piece = self.watcher.next() => {
                self.last = Some(Instant::now());
                self.upkeep.note_sent();
                let json = serde_json::to_string(&piece).unwrap_or_default();
                Some(Bytes::from(format!("data:{json}\n\n")))
            }
        }
    }
}
