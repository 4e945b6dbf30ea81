//! The log over HTTP: as a live stream, and as an export.

use super::Api;
use super::error::{ApiError, Query};
use super::event_stream::{self, HEARTBEAT, OPENING, StreamClient, Upkeep, UpkeepDue};
use super::log::{FilterText, filter};
use crate::config::Dialect;
use crate::engine::{FollowError, Follower, Handle, PAGE_ROWS};
use crate::log_filter::LogFilter;
use crate::store::StoreError;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hatchery_core::{Event, EventId, SessionId, Timestamp};
use serde::{Deserialize, Serialize};
use std::pin::Pin;
use tokio::sync::watch;

/// An entry of the log, as clients see it.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct EventObject {
    pub id: EventId,
    /// Milliseconds since 1970.
    pub ts: Timestamp,
    #[serde(rename = "sessionId")]
    pub session_id: Option<SessionId>,
    #[serde(flatten)]
    pub event: Event,
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Cursor {
    /// Only events after this id; 0 or -1 is the beginning. Overrides `Last-Event-ID`. Must not be beyond the end of the log.
    #[param(minimum = -1)]
    after: Option<i64>,
    /// Only events about these agents, and their mail: ids, beginnings of ids, or names, separated by commas.
    agent: Option<String>,
    /// Only events of these quests and of the agents that work for them: ids, or beginnings of ids, separated by commas.
    quest: Option<String>,
    /// Only events of these types, separated by commas.
    #[serde(rename = "type")]
    #[param(rename = "type")]
    kind: Option<String>,
    /// The form of the events. With `julian`, clients of the original program get the events that they know; filters have no
    /// effect then, `Last-Event-ID` overrides `after`, and an `after` beyond the end of the log means its end. The setting `seats.dialect` is used if not given.
    #[param(inline)]
    dialect: Option<Dialect>,
}

/// Only for the description: the header is read by hand, because `after` overrides it.
#[derive(Debug, utoipa::IntoParams)]
#[into_params(parameter_in = Header)]
pub struct LastSeen {
    /// Sent by browsers when they reconnect.
    #[param(rename = "Last-Event-ID", minimum = -1)]
    _last_event_id: Option<i64>,
}

/// A filtered stream reports its position to the client after at most this many events that do not match.
const MAX_UNANNOUNCED: u64 = PAGE_ROWS as u64;

/// The current problem of the store: `event: trouble` in the stream.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Trouble {
    /// Null if there is no problem any more.
    pub trouble: Option<String>,
}

/// Follow the log as server-sent events: first everything after the cursor, then new events.
#[utoipa::path(get, path = "/api/events", operation_id = "follow_events", tag = "events", params(Cursor, LastSeen),
    responses((status = 200, description = "One frame for each event: `id:` and `data:` with the event as JSON, an `EventObject` or, with `dialect=julian`, a `DialectEvent`. Comment lines are heartbeats. A frame with `event: trouble` and no `id:` has a `Trouble`: the store has a problem, or no longer has one. A stream with filters also has frames with an `id:` and no data: nothing up to that event matched, and a client that comes back continues after it.", content_type = "text/event-stream", body = String)))]
pub async fn stream(State(api): State<Api>, query: Query<Cursor>, headers: HeaderMap) -> Result<Response, ApiError> {
    let Cursor { after, agent, quest, kind, dialect } = query.0;
    let dialect = dialect.unwrap_or(api.defaults.seats.dialect);
    let filter = filter(&api, &FilterText { agent, quest, kind, ..FilterText::default() })?;
    let last_seen = headers.get("last-event-id").filter(|value| !value.is_empty());
    let after = match (after, last_seen) {
        // A browser that reconnects uses its first address again, and sends the last event that it has seen in the header.
        (Some(after), None) => after,
        (Some(after), Some(_)) if dialect == Dialect::Hatchery => after,
        (None, None) => 0,
        (_, Some(value)) => value.to_str().ok().and_then(|text| text.trim().parse().ok()).ok_or_else(|| {
            ApiError::bad(
                "bad_cursor",
                "Last-Event-ID is not a number",
                "send the id of the last event that you have seen",
            )
        })?,
    };
    if dialect == Dialect::Julian {
        // Such clients send a very large number if they want only new events.
        let now = api.handle.head();
        let after = if after > i64::try_from(now.0).unwrap_or(i64::MAX) { now } else { cursor(&api, after).await? };
        return super::dialect::stream(&api, after).await;
    }
    let after = cursor(&api, after).await?;
    let source =
        EventSource { follower: api.handle.follow(after), handle: api.handle.clone(), filter, announced: after };
    let mut troubles = api.handle.trouble_changes();
    // The first look at the problem is at once.
    troubles.mark_changed();
    let client = EventClient { source, upkeep: Upkeep::of(&api), trouble: change(troubles), told: None };
    Ok(event_stream::response(OPENING, client))
}

/// The whole log as JSON lines.
#[utoipa::path(get, path = "/api/export", operation_id = "export", tag = "events",
    responses((status = 200, description = "One event a line, to the last one there was when the export began", content_type = "application/x-ndjson", body = String)))]
pub async fn export(State(api): State<Api>) -> Response {
    let end = api.handle.head();
    let lines = futures_util::stream::try_unfold(EventId::START, move |after| {
        let handle = api.handle.clone();
        async move {
            if after >= end {
                return Ok(None);
            }
            let page = handle.read(after, PAGE_ROWS).await?;
            let mut lines = Vec::with_capacity(page.frames().len());
            for (_, event) in page.events().take_while(|(id, _)| *id <= end) {
                lines.extend_from_slice(&event);
                lines.push(b'\n');
            }
            let last = page.last().unwrap_or(end);
            Ok::<_, crate::store::StoreError>(Some((Bytes::from(lines), last)))
        }
    });
    ([(header::CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(lines)).into_response()
}

/// One client of the stream.
struct EventClient {
    source: EventSource,
    upkeep: Upkeep,
    trouble: TroubleChange,
    /// The problem that was last reported to the client.
    told: Option<String>,
}

/// Waits for a change of the store's problem. One future for many events, as in [`Upkeep`].
type TroubleChange = Pin<Box<dyn Future<Output = watch::Receiver<Option<String>>> + Send>>;

fn change(mut troubles: watch::Receiver<Option<String>>) -> TroubleChange {
    Box::pin(async move {
        match troubles.changed().await {
            Ok(()) => troubles,
            // The engine has ended, so the stream ends, too.
            Err(_) => std::future::pending().await,
        }
    })
}

impl StreamClient for EventClient {
    async fn next(&mut self) -> Option<Bytes> {
        // The end of a silence of the store is not announced, so it is looked for while the client knows of a problem.
        if self.told.is_some()
            && let Some(trouble) = new_trouble(&self.source.handle, &mut self.told)
        {
            return Some(trouble);
        }
        loop {
            tokio::select! {
                biased;
                troubles = &mut self.trouble => {
                    self.trouble = change(troubles);
                    if let Some(trouble) = new_trouble(&self.source.handle, &mut self.told) {
                        return Some(trouble);
                    }
                }
                frames = self.source.next_frames() => return match frames {
                    Ok(frames) => {
                        self.upkeep.note_sent();
                        Some(frames)
                    }
                    Err(error) => {
                        tracing::debug!(%error, "an event stream ends");
                        None
                    }
                },
                due = self.upkeep.next() => return match due {
                    UpkeepDue::End => None,
                    UpkeepDue::Heartbeat => {
                        let trouble = new_trouble(&self.source.handle, &mut self.told);
                        Some(trouble.unwrap_or_else(|| self.source.heartbeat()))
                    }
                },
            }
        }
    }
}

/// A frame with the problem of the store, if it is not the one in `told`. The frame has no id, so it moves no cursor.
fn new_trouble(handle: &Handle, told: &mut Option<String>) -> Option<Bytes> {
    let trouble = handle.trouble();
    if trouble == *told {
        return None;
    }
    told.clone_from(&trouble);
    let data = serde_json::to_string(&Trouble { trouble }).ok()?;
    Some(Bytes::from(format!("event:trouble\ndata:{data}\n\n")))
}

/// The frames for one client.
struct EventSource {
    follower: Follower,
    handle: Handle,
    filter: LogFilter,
    /// The last id that was sent to the client. Used only with a filter.
    announced: EventId,
}

impl EventSource {
    /// The next frames. The future may be dropped while it waits.
    async fn next_frames(&mut self) -> Result<Bytes, FollowError> {
        if self.filter.is_empty() {
            return self.follower.next_frames().await;
        }
        loop {
            let (filter, handle) = (&self.filter, &self.handle);
            let mut world = None;
            let matches = |json: &[u8]| {
                let world = world.get_or_insert_with(|| handle.view());
                std::str::from_utf8(json).is_ok_and(|json| filter.matches(world, json))
            };
            let (frames, last) = self.follower.next_frames_where(matches).await?;
            if let Some(last) = last {
                self.announced = last;
                return Ok(frames);
            }
            if self.follower.cursor().0 - self.announced.0 >= MAX_UNANNOUNCED {
                return Ok(self.announce());
            }
        }
    }

    /// Keeps the connection open. With a filter it also reports the position in the log: a client that reconnects continues there, so the
    /// same events are not searched again.
    fn heartbeat(&mut self) -> Bytes {
        match !self.filter.is_empty() && self.follower.cursor() > self.announced {
            true => self.announce(),
            false => HEARTBEAT,
        }
    }

    /// A frame with an id and without data, which moves the client's cursor and is not an event for the client.
    fn announce(&mut self) -> Bytes {
        self.announced = self.follower.cursor();
        Bytes::from(format!("id:{}\n\n", self.announced))
    }
}

/// The position for a cursor. A cursor after the end of the log belongs to another log, and its client would wait forever, so it is
/// refused.
pub(super) async fn cursor(api: &Api, after: i64) -> Result<EventId, ApiError> {
    let after = match u64::try_from(after) {
        Ok(after) => EventId(after),
        Err(_) if after == -1 => EventId::START,
        Err(_) => {
            return Err(ApiError::bad(
                "bad_cursor",
                format!("{after} is not a place in the log"),
                "use 0 for the beginning",
            ));
        }
    };
    if after > api.handle.head() {
        let store = std::sync::Arc::clone(api.handle.store());
        // Another daemon may have written events that this one has not read yet, so the store is asked.
        let head = tokio::task::spawn_blocking(move || store.head()).await;
        let head = head.unwrap_or_else(|error| Err(StoreError::Broken(error.to_string())));
        let head = head.map_err(|error| ApiError::from(&error))?.max(api.handle.head());
        if after > head {
            return Err(ApiError::bad(
                "cursor_beyond_log",
                format!("the log ends at event {head}, before {after}"),
                "start again after event 0",
            ));
        }
    }
    Ok(after)
}
