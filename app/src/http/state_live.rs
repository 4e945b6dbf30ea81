//! The status as a live stream: first all of it, then the changes.

use super::Api;
use super::event_stream::{self, HEARTBEAT, OPENING, StreamClient, Upkeep, UpkeepDue};
use super::state::build_shown;
use crate::clock;
use crate::engine::RecordFollower;
use crate::file_identity::FileVersion;
use crate::status_files::{StatusFile, changed_file};
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use hatchery_core::idea_inbox::IdeaInbox;
use hatchery_core::status::kept::LAST_UPDATED;
use hatchery_core::status::{Json, Object};
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// The least time between two frames of one client. The last state always arrives, and the last of several fast changes must arrive within
/// 20 ms.
const PACE: Duration = Duration::from_millis(15);

/// Follow the status: the content of `/api/build-status`, the ideas, and every change of them.
#[utoipa::path(get, path = "/api/status/live", operation_id = "follow_status", tag = "status",
    responses((status = 200, description = "Server-sent events. `status` comes first and has all fields of the status document, with `contextHealth`; `change` has the fields that have changed, `null` for those that are gone; `inbox` has all ideas, the newest first. The `id` is the last event of the log that is shown. Comment lines are heartbeats.", content_type = "text/event-stream", body = String)))]
pub async fn live(State(api): State<Api>) -> Response {
    let world = api.handle.view();
    let follower = api.handle.follow_records(world.head());
    let usage = api.status_files.view().usage();
    let client = StatusClient {
        upkeep: Upkeep::of(&api),
        api,
        follower,
        frames: VecDeque::new(),
        sent: None,
        inbox: None,
        changed: BTreeSet::from([StatusFile::State, StatusFile::Inbox]),
        usage,
        next: Instant::now(),
    };
    event_stream::response(OPENING, client)
}

/// One client of the stream.
struct StatusClient {
    api: Api,
    follower: RecordFollower,
    upkeep: Upkeep,
    frames: VecDeque<Bytes>,
    /// What was sent to the client.
    sent: Option<Object>,
    inbox: Option<IdeaInbox>,
    /// The files whose changes the client does not have yet.
    changed: BTreeSet<StatusFile>,
    /// Changes when something changes that is not in the log.
    usage: watch::Receiver<(Option<FileVersion>, Option<u8>)>,
    next: Instant,
}

impl StreamClient for StatusClient {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(frame) = self.frames.pop_front() {
                self.upkeep.note_sent();
                return Some(frame);
            }
            let is_due = tokio::select! {
                biased;
                () = tokio::time::sleep_until(self.next), if !self.changed.is_empty() => true,
                records = self.follower.next_records() => {
                    let records = records.inspect_err(|error| tracing::debug!(%error, "a status stream ends")).ok()?;
                    let world = self.api.handle.view();
                    self.changed.extend(records.iter().filter_map(|record| changed_file(&world, record)));
                    false
                }
                Ok(()) = self.usage.changed() => {
                    self.changed.insert(StatusFile::State);
                    false
                }
                due = self.upkeep.next() => return (due == UpkeepDue::Heartbeat).then_some(HEARTBEAT),
            };
            if is_due {
                self.render().await;
            }
        }
    }
}

impl StatusClient {
    async fn render(&mut self) {
        // An event of another writer can be read from the log before the view shows it.
        let cursor = self.follower.cursor();
        drop(self.api.handle.heads().wait_for(|head| *head >= cursor).await);
        let world = self.api.handle.view();
        let id = world.head();
        let changed = std::mem::take(&mut self.changed);
        self.next = Instant::now() + PACE;
        if changed.contains(&StatusFile::State) {
            let state = self.api.status_files.view().shown(&world);
            let mut shown = state.fields().clone();
            if let Some(health) = build_shown(&state).get("contextHealth") {
                shown.set("contextHealth", health.clone());
            }
            match &self.sent {
                None => {
                    let mut dated = shown.clone();
                    if let Some(at) = self.api.status_files.last_updated() {
                        dated.set(LAST_UPDATED, at.as_str().into());
                    }
                    self.push("status", id.0, &dated.to_json());
                }
                Some(sent) => {
                    let mut changes = changes(sent, &shown);
                    if !changes.is_empty() {
                        // The file may be written a moment later.
                        changes.set(LAST_UPDATED, clock::written(clock::now()).as_str().into());
                        self.push("change", id.0, &changes.to_json());
                    }
                }
            }
            self.sent = Some(shown);
        }
        if changed.contains(&StatusFile::Inbox) {
            let inbox = world.status().inbox();
            if self.inbox.as_ref() != Some(&inbox) {
                self.push("inbox", id.0, &inbox.to_json());
                self.inbox = Some(inbox);
            }
        }
    }

    fn push(&mut self, event: &str, id: u64, data: &Json) {
        // Values keep the white space of their author, but a line break would end the data.
        let data = data.text().replace(['\n', '\r'], " ");
        self.frames.push_back(Bytes::from(format!("event:{event}\nid:{id}\ndata:{data}\n\n")));
    }
}

/// The fields that have changed. Removed fields are `null`.
fn changes(from: &Object, to: &Object) -> Object {
    let mut changes = Object::default();
    for (name, value) in to.iter() {
        let known = from.get(name);
        let is_same = known == Some(value) || (value.is_null() && known.is_none());
        if !is_same {
            changes.set(name, value.clone());
        }
    }
    for (name, _) in from.iter().filter(|(name, _)| from.get(name).is_some()) {
        if !to.iter().any(|(known, _)| known == name) {
            changes.set(name, Json::null());
        }
    }
    changes
}
