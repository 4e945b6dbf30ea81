//! Build events: reports about a build while it runs, for example on the states of chunks, their verification, and the agent's context.
//! Each event has an id and is recorded once. The status document keeps the newest ones in `buildEvents`.

use crate::build_run::BuildRun;
use crate::status::shape::is_time;
use crate::status::view::fields;
use crate::status::{Json, JsonKind, Object, StatusDocument};

/// How many events the document keeps. Readers of the file show a feed, not an archive.
pub const MAX_EVENTS_IN_DOCUMENT: usize = 1_000;
pub const MAX_EVENT_BYTES: usize = 64 * 1024;
pub const MAX_CHECKS: usize = 1_000;
const MAX_KIND_BYTES: usize = 64;
const MAX_ID_BYTES: usize = 128;

/// The kinds that the protocol defines. Other kinds are accepted unchanged, because readers skip unknown kinds.
pub const KINDS: [&str; 15] = [
    "chunk-started",
    "chunk-completed",
    "chunk-failed",
    "chunk-retrying",
    "section-started",
    "section-completed",
    "scenario-evaluated",
    CHUNK_VERIFIED,
    VERIFICATION_FAILED,
    CHECKPOINTED,
    BOUNDARY,
    "context-compacted",
    "interview-started",
    "interview-completed",
    "checkpoint-saved",
];
const CHUNK_VERIFIED: &str = "chunk-verified";
const VERIFICATION_FAILED: &str = "verification-failed";
const CHECKPOINTED: &str = "context-checkpointed";
const BOUNDARY: &str = "context-boundary";

const MODES: [&str; 3] = ["full", "reduced", "minimal"];
const RESULTS: [&str; 2] = ["pass", "fail"];

/// A build event that has been checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildEvent {
    pub id: String,
    pub kind: String,
    body: Json,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    #[error("a build event must be an object, and this is {0}")]
    NotAnObject(JsonKind),
    #[error("a build event needs a `kind`: a text of 1 to {MAX_KIND_BYTES} letters, digits and dashes")]
    NoKind,
    #[error("`{field}` of the build event cannot be used: {why}")]
    BadField { field: &'static str, why: String },
    #[error("the build event has {0} bytes, and {MAX_EVENT_BYTES} is the most")]
    TooLarge(usize),
}

/// The state of the agent's context, as the three fields that a viewer shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextHealth {
    pub isolation_mode: String,
    /// Percent of the context window in use, if that is known.
    pub usage: Option<u8>,
    pub last_checkpoint: Option<String>,
}

impl EventError {
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotAnObject(_) => "build_event_not_an_object",
            Self::NoKind => "build_event_without_kind",
            Self::BadField { .. } => "bad_build_event",
            Self::TooLarge(_) => "build_event_too_large",
        }
    }

    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotAnObject(_) | Self::NoKind => {
                "give an object, such as {\"kind\":\"chunk-verified\",\"summary\":\"4/4 checks passed\"}"
            }
            Self::BadField { .. } => "docs/status.md lists the fields of build events",
            Self::TooLarge(_) => "put large evidence into a file and name the file in `screenshot` or `summary`",
        }
    }
}

impl BuildEvent {
    /// Checks an event. `id` and `now` are used if the event has no id or no time.
    pub fn check(given: &Json, id: &str, now: &str) -> Result<Self, EventError> {
        if given.text().len() > MAX_EVENT_BYTES {
            return Err(EventError::TooLarge(given.text().len()));
        }
        let mut object = given.object().ok_or(EventError::NotAnObject(given.kind()))?;
        let usable = |kind: &String| {
            (1..=MAX_KIND_BYTES).contains(&kind.len())
                && kind.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        let kind = object.get("kind").and_then(Json::words).filter(usable).ok_or(EventError::NoKind)?;
        if [CHUNK_VERIFIED, VERIFICATION_FAILED].contains(&kind.as_str()) {
            check_verification(&object)?;
        }
        for field in ["id", "timestamp", "chunk", "summary", "screenshot"] {
            // A chunk may be named by its number.
            let fits =
                |value: &Json| value.kind() == JsonKind::Text || (field == "chunk" && value.kind() == JsonKind::Number);
            if let Some(value) = object.get(field).filter(|value| !fits(value)) {
                return Err(EventError::BadField { field, why: format!("it is {}, not a text", value.kind()) });
            }
        }
        if object.get("timestamp").and_then(Json::words).is_some_and(|time| !is_time(&time)) {
            let why = "it must be a time such as \"2026-02-12T15:23:45Z\"".to_owned();
            return Err(EventError::BadField { field: "timestamp", why });
        }
        let id = match object.get("id").and_then(Json::words) {
            Some(own) if is_plain(&own) => own,
            Some(_) => {
                let why = format!("it must have 1 to {MAX_ID_BYTES} letters, digits, dashes, dots and underscores");
                return Err(EventError::BadField { field: "id", why });
            }
            None => {
                object.set("id", id.into());
                id.to_owned()
            }
        };
        if object.get("timestamp").is_none() {
            object.set("timestamp", now.into());
        }
        Ok(Self { id, kind, body: object.to_json() })
    }

    /// An event that another program wrote into the document. Only its size is checked, because the program would not see an error. None if
    /// the event is too large for the log or is not an object.
    pub fn found(given: &Json, id: &str, now: &str) -> Option<Self> {
        if !is_takeable(given) {
            return None;
        }
        let mut object = given.object()?;
        let own = id_of(&object);
        if own.is_none() {
            object.set("id", id.into());
        }
        if object.get("timestamp").is_none() {
            object.set("timestamp", now.into());
        }
        let kind = object.get("kind").and_then(Json::words).unwrap_or_default();
        Some(Self { id: own.unwrap_or_else(|| id.to_owned()), kind, body: object.to_json() })
    }

    pub fn body(&self) -> &Json {
        &self.body
    }

    /// Adds the event to the document. False if the document has it already.
    pub fn record(&self, document: &mut StatusDocument) -> bool {
        let mut events = document.field("buildEvents").and_then(Json::list).unwrap_or_default();
        if events.iter().any(|event| has_id(event.text(), &self.id)) {
            return false;
        }
        events.push(self.body.clone());
        let surplus = events.len().saturating_sub(MAX_EVENTS_IN_DOCUMENT);
        document.set("buildEvents", Json::of_list(&events[surplus..]));
        if self.kind == CHECKPOINTED
            && let Some(mut run) = document.field("buildRun").and_then(Json::object)
            && let Some(at) = fields(Some(&self.body)).and_then(|event| event.text("timestamp"))
        {
            // Times in RFC 3339 and UTC can be compared as text. An event may arrive late, so the newest time is kept.
            let newest = BuildRun::read(document).and_then(|run| run.last_checkpoint).filter(|known| *known > at);
            run.set("lastCheckpoint", newest.unwrap_or(at).as_str().into());
            document.set("buildRun", run.to_json());
        }
        true
    }
}

impl ContextHealth {
    /// From the newest context events, or from what another program has written into `contextState`. `usage` is the last value that the
    /// status line received.
    pub fn of(document: &StatusDocument, usage: Option<u8>) -> Self {
        let events = document.field("buildEvents").and_then(Json::list).unwrap_or_default();
        let newest = |kind: &str| {
            let kinds = events.iter().rev().filter_map(|event| fields(Some(event)));
            kinds.into_iter().find(|event| event.text("kind").as_deref() == Some(kind))
        };
        // Newer versions write the mode into a field of its own, older ones into the summary.
        let mode = newest(BOUNDARY).and_then(|event| {
            ["isolationMode", "isolation", "mode", "summary"].iter().find_map(|field| event.text(field))
        });
        let checkpoint = newest(CHECKPOINTED).and_then(|event| event.text("timestamp"));
        let checkpoint = checkpoint.max(BuildRun::read(document).and_then(|run| run.last_checkpoint));
        let written = fields(document.field("contextState"));
        let said = |field: &str| written.as_ref().and_then(|context| context.text(field));
        Self {
            isolation_mode: mode.or_else(|| said("isolationMode")).unwrap_or_else(|| "standard".into()),
            usage,
            last_checkpoint: checkpoint.or_else(|| said("lastCheckpoint")),
        }
    }
}

/// The known event that was given again, if the given event has a time and no id. Some programs report an event twice.
pub fn repeated_event(document: &StatusDocument, given: &Json) -> Option<Object> {
    let given = given.object().filter(|given| given.get("timestamp").is_some() && id_of(given).is_none())?;
    let events = document.field("buildEvents").and_then(Json::list).unwrap_or_default();
    events.iter().filter_map(Json::object).find(|known| is_copy(known, &given))
}

/// Whether an event without an id is a known event, to which Hatchery has added an id and perhaps a time.
pub(crate) fn is_copy(known: &Object, given: &Object) -> bool {
    let bare = |event: &Object| {
        let mut event = event.clone();
        event.remove("id");
        if given.get("timestamp").is_none() {
            event.remove("timestamp");
        }
        event.to_json()
    };
    bare(known) == bare(given)
}

/// The id of an event. Other programs may use numbers as ids.
pub fn id_of(event: &Object) -> Option<String> {
    let id = event.get("id")?;
    match id.kind() {
        JsonKind::Number => Some(id.text().to_owned()),
        JsonKind::Null | JsonKind::Boolean | JsonKind::Text | JsonKind::List | JsonKind::Object => {
            id.words().filter(|id| !id.is_empty())
        }
    }
}

/// Whether the JSON text of an event has this id.
pub(crate) fn has_id(event: &str, id: &str) -> bool {
    // Decoding every known event for each new one would be slow. Only an event whose text contains the id can have it.
    (!is_plain(id) || event.contains(id))
        && Json::parse(event).ok().and_then(|event| id_of(&event.object()?)).as_deref() == Some(id)
}

/// Whether an event of another program can be stored in the log.
pub(crate) fn is_takeable(event: &Json) -> bool {
    event.kind() == JsonKind::Object && event.text().len() <= MAX_EVENT_BYTES
}

/// Whether JSON writes the id without escapes.
fn is_plain(id: &str) -> bool {
    (1..=MAX_ID_BYTES).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

fn check_verification(event: &Object) -> Result<(), EventError> {
    let bad = |field: &'static str, why: String| EventError::BadField { field, why };
    if let Some(mode) = event.get("mode")
        && !mode.words().is_some_and(|mode| MODES.contains(&mode.as_str()))
    {
        return Err(bad("mode", format!("it must be one of: {}", MODES.join(", "))));
    }
    let Some(checks) = event.get("checks") else { return Ok(()) };
    let checks = checks.list().ok_or_else(|| bad("checks", format!("it is {}, not a list", checks.kind())))?;
    if checks.len() > MAX_CHECKS {
        return Err(bad("checks", format!("it has {} items, and {MAX_CHECKS} is the most", checks.len())));
    }
    for check in &checks {
        let check = check.object().ok_or_else(|| bad("checks", "each item must be an object".into()))?;
        if check.get("name").and_then(Json::words).is_none() {
            return Err(bad("checks", "each item needs a `name`".into()));
        }
        if !check.get("result").and_then(Json::words).is_some_and(|result| RESULTS.contains(&result.as_str())) {
            return Err(bad("checks", "the `result` of each item must be `pass` or `fail`".into()));
        }
        if check.get("retried").is_some_and(|retried| retried.kind() != JsonKind::Boolean) {
            return Err(bad("checks", "`retried` must be true or false".into()));
        }
    }
    Ok(())
}
