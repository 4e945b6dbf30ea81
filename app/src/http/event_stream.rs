//! What all event streams have in common: the headers, the heartbeats that keep a connection open, and the end when the daemon shuts down.

use super::Api;
use axum::body::Body;
use axum::http::header::{self, HeaderName};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use tokio::time::{Interval, MissedTickBehavior};

/// Tells a browser how soon to reconnect after the daemon was stopped.
pub(super) const OPENING: Bytes = Bytes::from_static(b"retry:1000\n\n");
/// A comment line. It is not an event for the client.
pub(super) const HEARTBEAT: Bytes = Bytes::from_static(b":\n\n");

/// One client of an event stream.
pub(super) trait StreamClient: Send + 'static {
    /// What to send next. None if the stream ends; then the client reconnects.
    fn next(&mut self) -> impl Future<Output = Option<Bytes>> + Send;
}

/// Sends everything that a client's `next` returns, after the opening.
pub(super) fn response(opening: Bytes, client: impl StreamClient) -> Response {
    let frames = futures_util::stream::unfold((Some(opening), client), |(mut opening, mut client)| async move {
        let bytes = match opening.take() {
            Some(opening) => opening,
            None => client.next().await?,
        };
        Some((Ok::<_, Infallible>(bytes), (None, client)))
    });
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (HeaderName::from_static("x-accel-buffering"), "no")];
    (headers, Body::from_stream(frames)).into_response()
}

/// Says when a client needs something although there is no event.
pub(super) struct Upkeep {
    /// Twice per heartbeat. A timer that is set again for each event would cost more than the event.
    ticks: Interval,
    /// Whether something was sent since the last tick.
    is_fresh: bool,
    /// One future for the whole life of the client. With a new one for each event, a thousand clients would enter and leave one list of
    /// waiting tasks for each event.
    closing: Pin<Box<dyn Future<Output = ()> + Send>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UpkeepDue {
    /// Nothing was sent for a while.
    Heartbeat,
    /// The daemon shuts down.
    End,
}

impl Upkeep {
    pub fn of(api: &Api) -> Self {
        let mut ticks = tokio::time::interval(api.heartbeat / 2);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.reset();
        let mut closing = api.closing.clone();
        let closing = Box::pin(async move { drop(closing.wait_for(|closing| *closing).await) });
        Self { ticks, is_fresh: true, closing }
    }

    /// Something is sent, so the next heartbeat is not needed.
    pub fn note_sent(&mut self) {
        self.is_fresh = true;
    }

    /// The future may be dropped while it waits. Must not be called again after [`UpkeepDue::End`].
    pub async fn next(&mut self) -> UpkeepDue {
        loop {
            tokio::select! {
                biased;
                () = &mut self.closing => return UpkeepDue::End,
                _ = self.ticks.tick() => {
                    // A heartbeat is something that was sent, too.
                    if !std::mem::replace(&mut self.is_fresh, false) {
                        self.is_fresh = true;
                        return UpkeepDue::Heartbeat;
                    }
                }
            }
        }
    }
}

impl fmt::Debug for Upkeep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upkeep").field("is_fresh", &self.is_fresh).finish_non_exhaustive()
    }
}
