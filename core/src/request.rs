//! Requests with an id that the caller has chosen. A caller whose connection broke does not know whether its request was carried out. So
//! the caller repeats the request with the same id. The request is carried out only once, and the repetition gets the first answer.
//!
//! The id is recorded in the same append as the events that the request led to, so a crash cannot separate them.

use crate::event::RequestEvent;
use crate::{Command, Event, EventId, Fingerprint, Refusal, RequestId, Timestamp, World, decide};
use imbl::OrdMap;
use serde::{Deserialize, Serialize};

/// How many request ids are remembered: the newest. A caller repeats a request within seconds or minutes after its connection broke, and
/// few callers send ids: people, and scripts that say something to agents. An entry takes about 100 bytes of memory.
pub const KEPT_REQUESTS: usize = 10_000;

/// The id and the fingerprint of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub id: RequestId,
    /// Distinguishes the content of this request from that of another request.
    pub fingerprint: Fingerprint,
}

/// A request that was carried out. The events that it led to follow the event that records it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenRequest {
    pub at: EventId,
    pub fingerprint: Fingerprint,
    pub led_to: u64,
}

/// The latest requests with an id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenRequests {
    by_id: OrdMap<RequestId, TakenRequest>,
    /// The ids of the requests by age, so that the oldest is found without a search.
    by_event: OrdMap<EventId, RequestId>,
}

impl TakenRequests {
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// How a request was carried out. None if it was not, or if it is so old that its id is forgotten.
    pub fn find(&self, request: &Request) -> Result<Option<TakenRequest>, Refusal> {
        match self.by_id.get(&request.id) {
            Some(taken) if taken.fingerprint != request.fingerprint => {
                Err(Refusal::RequestIdUsed { id: request.id, at: taken.at })
            }
            taken => Ok(taken.copied()),
        }
    }

    pub(crate) fn take(&mut self, id: RequestId, taken: TakenRequest) {
        if let Some(before) = self.by_id.insert(id, taken) {
            self.by_event.remove(&before.at);
        }
        self.by_event.insert(taken.at, id);
        if self.by_id.len() > KEPT_REQUESTS
            && let Some((oldest, id)) = self.by_event.get_min().copied()
        {
            self.by_event.remove(&oldest);
            self.by_id.remove(&id);
        }
    }
}

/// Carries out a request, unless it was carried out before. A refused request is not recorded, so it may be repeated.
pub(crate) fn once(world: &World, request: &Request, command: &Command, now: Timestamp) -> Result<Vec<Event>, Refusal> {
    if let Some(TakenRequest { at, led_to, .. }) = world.requests().find(request)? {
        return Err(Refusal::RequestTaken { id: request.id, at, led_to });
    }
    let events = decide(world, command, now)?;
    let Request { id, fingerprint } = *request;
    let taken = RequestEvent::Taken { request: id, fingerprint, led_to: events.len() as u64 };
    Ok([Event::Request(taken)].into_iter().chain(events).collect())
}
