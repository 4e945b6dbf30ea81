//! Requests with an id that the caller has chosen (`id` in the body). A repetition after a broken connection is carried out only once.

use super::error::ApiError;
use super::{Accepted, Api};
use crate::engine::SubmitError;
use hatchery_core::event::{MailEvent, MessageEvent, RequestEvent};
use hatchery_core::request::{Request, TakenRequest};
use hatchery_core::{Command, Event, EventId, Fingerprint, Record, Refusal, RequestId};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The longest id of a caller.
pub const MAX_ID_CHARS: usize = 128;

/// An id that the caller has chosen: 1 to 128 visible ASCII characters, different for each request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct CallerId(String);

impl TryFrom<String> for CallerId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let fits = (1..=MAX_ID_CHARS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        match fits {
            true => Ok(Self(text)),
            false => Err(format!("an id of a request has 1 to {MAX_ID_CHARS} visible ASCII characters")),
        }
    }
}

impl utoipa::PartialSchema for CallerId {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        utoipa::openapi::ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::Type::String)
            .min_length(Some(1))
            .max_length(Some(MAX_ID_CHARS))
            .pattern(Some("^[!-~]+$"))
            .into()
    }
}

impl utoipa::ToSchema for CallerId {}

impl CallerId {
    /// An id of 22 characters is recorded unchanged. Any other text is replaced by its hash.
    fn request(&self) -> RequestId {
        self.0.parse().unwrap_or_else(|_| RequestId::from_bytes(hashed([self.0.as_bytes()])))
    }
}

/// A request, with or without an id.
#[derive(Clone, Copy, Debug, Default)]
pub struct Once(Option<Request>);

/// When a request was carried out, and the events that its command led to.
#[derive(Debug)]
pub enum CarriedOut {
    Now(Vec<Record>),
    Before(Vec<Record>),
}

impl Once {
    /// The content of a request is its operation, its subject and its body, all as the caller wrote them.
    pub fn of(id: Option<&CallerId>, operation: &str, about: &str, body: &impl Serialize) -> Result<Self, ApiError> {
        let Some(id) = id else { return Ok(Self(None)) };
        let body = serde_json::to_vec(body)
            .map_err(|error| ApiError::bad("bad_json", error, "/api/openapi.json shows the shape of the body"))?;
        let fingerprint = hashed([operation.as_bytes(), about.as_bytes(), &body]);
        Ok(Self(Some(Request { id: id.request(), fingerprint: Fingerprint::from_bytes(fingerprint) })))
    }

    /// The answer of the first time, if this is a repeated request. Must be called first: what is wrong when a request is repeated may have
    /// been right the first time.
    pub async fn answered(&self, api: &Api) -> Result<Option<Accepted>, ApiError> {
        let records = self.answered_by(api).await?;
        Ok(records.map(|records| Accepted::new(about(&records), &records)))
    }

    /// The events of the first time, if this is a repeated request.
    pub async fn answered_by(&self, api: &Api) -> Result<Option<Vec<Record>>, ApiError> {
        let Some(request) = self.0 else { return Ok(None) };
        let taken = api.handle.view().requests().find(&request)?;
        match taken {
            None => Ok(None),
            Some(TakenRequest { at, led_to, .. }) => Ok(Some(first_answer(api, at, led_to).await?)),
        }
    }

    /// Carries out the command, unless this has happened before. The answer is the same both times: the events that the command itself led
    /// to.
    pub async fn submit(&self, api: &Api, command: Command) -> Result<Vec<Record>, ApiError> {
        match self.try_submit(api, command).await? {
            CarriedOut::Now(records) | CarriedOut::Before(records) => Ok(records),
        }
    }

    /// Carries out the command, unless this has happened before, and says which of the two it was. For a caller that does more than the
    /// command the first time.
    pub async fn try_submit(&self, api: &Api, command: Command) -> Result<CarriedOut, ApiError> {
        let Some(request) = self.0 else { return Ok(CarriedOut::Now(api.handle.submit(command).await?)) };
        match api.handle.submit(Command::Once { request, command: Box::new(command) }).await {
            Err(SubmitError::Refused(Refusal::RequestTaken { at, led_to, .. })) => {
                Ok(CarriedOut::Before(first_answer(api, at, led_to).await?))
            }
            answer => {
                let records = answer?;
                let led_to = records.first().map_or(0, |record| match record.event {
                    Event::Request(RequestEvent::Taken { led_to, .. }) => led_to,
                    _ => 0,
                });
                let own = records.into_iter().skip(1).take(usize::try_from(led_to).unwrap_or(usize::MAX));
                Ok(CarriedOut::Now(own.collect()))
            }
        }
    }
}

async fn first_answer(api: &Api, at: EventId, led_to: u64) -> Result<Vec<Record>, ApiError> {
    let count = usize::try_from(led_to).unwrap_or(usize::MAX);
    let mut records: Vec<Record> = Vec::new();
    // A page ends early if its events are long.
    while records.len() < count {
        let after = records.last().map_or(at, |record| record.id);
        let page = api.handle.read_records(after, count - records.len()).await?;
        if page.records().is_empty() {
            break;
        }
        records.extend_from_slice(page.records());
    }
    Ok(records)
}

/// The subject of the events, as in the first answer.
fn about(records: &[Record]) -> String {
    let party = |record: &Record| match &record.event {
        Event::Message(MessageEvent::Added { agent, .. }) | Event::Question { agent, .. } => Some(agent.to_string()),
        Event::Mail(MailEvent::Sent { to, .. }) => Some(to.to_string()),
        _ => None,
    };
    records.iter().find_map(party).unwrap_or_default()
}

/// The first half of SHA-256 over the parts. Each part is hashed with its length, so that the border between two parts matters.
fn hashed<const N: usize>(parts: [&[u8]; N]) -> [u8; 16] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let mut first = [0; 16];
    first.copy_from_slice(&hash.finalize()[..16]);
    first
}
