//! Histories over HTTP: add messages, clear and rewind, read, import.

use super::agents::{find, tell};
use super::error::{ApiError, JsonBody, PathParts, Query, Text};
use super::once::{CallerId, Once};
use super::{Accepted, Api};
use crate::engine::{HistoryError, Replayed};
use crate::history_import::{self, ImportError};
use axum::Json;
use axum::extract::{FromRequest as _, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use hatchery_core::event::MessageEvent;
use hatchery_core::history::{RewindTo, SourceId};
use hatchery_core::seat::Seats;
use hatchery_core::{AgentId, Command, Event, EventId, MessageKind, Record, Refusal, Timestamp, World};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Write as _;

/// The largest file of histories. The lines of a file refer to each other, so it cannot be sent in parts. During the import it is in memory
/// about three times.
const IMPORT_BYTES: usize = 256 << 20;
/// How many times the usual time limit a file may take to arrive. The import itself has no time limit: it takes turns with all other
/// commands.
const IMPORT_PATIENCE: u32 = 20;

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddMessage {
    /// An id that the caller has chosen. A repeated request with the same id and content gets the same answer, and is carried out only once.
    id: Option<CallerId>,
    kind: MessageKind,
    /// The text. For a rewind: a mark's label, a message's id, or empty for the last mark. At most 1 MiB of UTF-8.
    content: String,
}

#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetMark {
    /// The label of the mark.
    #[serde(default)]
    #[schema(max_length = 256)]
    label: String,
}

#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Rewind {
    /// Go back to the last mark with this label.
    mark: Option<String>,
    /// Go back to this message. Without label and message: to the last mark.
    message: Option<EventId>,
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct HistoryQuery {
    /// Include what a model does not receive: marks, commands, interrupted turns.
    #[serde(default)]
    full: bool,
    /// Only messages before this id.
    #[param(minimum = 1)]
    before: Option<u64>,
    /// Only this many last messages, from 1 to 10,000; all messages if not given.
    #[param(minimum = 1, maximum = 10_000)]
    limit: Option<usize>,
}

/// The most messages of a history that can be asked for by number.
const MAX_MESSAGES: usize = 10_000;

/// The history of an agent.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct HistoryView {
    /// The last event that this answer includes. A client that follows the log after this event misses nothing.
    pub head: EventId,
    pub agent: AgentId,
    pub messages: Vec<MessageView>,
    /// How many messages come before the first of these.
    #[serde(default)]
    pub earlier: usize,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct MessageView {
    pub id: EventId,
    /// When it was said, in milliseconds since 1970.
    pub ts: Timestamp,
    /// The agent that the message belongs to: the agent itself, or an ancestor.
    pub agent: AgentId,
    pub kind: MessageKind,
    /// The text as people read it: texts of agents of the seats have no status markers. The event has the whole text.
    pub content: String,
    /// Its id in the file that it was imported from.
    pub source_id: Option<SourceId>,
    pub interrupted: bool,
    /// Whether a model receives it.
    #[serde(rename = "reachesModel")]
    pub reaches_model: bool,
    /// True if the message was sent to the agent, and no process of the agent has received it yet.
    #[serde(default)]
    #[schema(required = false)]
    pub unheard: bool,
}

/// The result of an import.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ImportView {
    /// The id in Hatchery for each agent id of the file.
    pub agents: BTreeMap<String, AgentId>,
    pub messages: u64,
}

impl From<HistoryError> for ApiError {
    fn from(error: HistoryError) -> Self {
        match error {
            HistoryError::Store(error) => Self::from(&error),
            HistoryError::Unreadable(error) => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "unreadable", error, "run `hatchery fsck`")
            }
        }
    }
}

impl From<ImportError> for ApiError {
    fn from(error: ImportError) -> Self {
        match error {
            ImportError::TooMany(_) => {
                let hint = "divide it: a file needs each agent together with its ancestors";
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_many_lines", error, hint)
            }
            ImportError::Line { .. } | ImportError::Whole(_) => {
                Self::bad("bad_line", error, "see `hatchery history import --help`")
            }
        }
    }
}

/// Show an agent's history: inherited messages, then its own.
#[utoipa::path(get, path = "/api/agents/{agent}/history", operation_id = "read_history", tag = "history", params(("agent" = String, Path, description = "An id, the beginning of one, or a name"), HistoryQuery),
    responses((status = 200, description = "What it knows", body = HistoryView)))]
pub async fn read(
    State(api): State<Api>,
    reference: PathParts<String>,
    query: Query<HistoryQuery>,
) -> Result<Response, ApiError> {
    let HistoryQuery { full, before, limit } = query.0;
    if limit.is_some_and(|limit| !(1..=MAX_MESSAGES).contains(&limit)) {
        let hint = format!("choose from 1 to {MAX_MESSAGES}, or leave it out");
        return Err(ApiError::bad("bad_limit", "the limit of messages is out of range", hint));
    }
    let agent = find(&api, &reference.0)?;
    let replay = api.handle.replay(agent).await?;
    let is_shown = |message: &Replayed<'_>| {
        (full || message.reaches_model()) && before.is_none_or(|before| message.id < EventId(before))
    };
    let count = replay.iter().filter(is_shown).count();
    let earlier = limit.map_or(0, |limit| count.saturating_sub(limit));
    let head = replay.head();
    let mut body = format!("{{\"head\":{head},\"agent\":\"{agent}\",\"earlier\":{earlier},\"messages\":[").into_bytes();
    let world = api.handle.view();
    let conversation = world.conversation(agent);
    // Inherited messages were sent to other agents.
    let born = world.agent(agent).map(|agent| agent.born);
    let answered = replay.iter().filter(|message| message.kind != MessageKind::User).map(|message| message.id);
    let answered = answered.chain(born).max().unwrap_or(replay.head());
    for (at, message) in replay.iter().filter(is_shown).skip(earlier).enumerate() {
        body.extend_from_slice(if at == 0 { b"" } else { b"," });
        let unheard = message.kind == MessageKind::User
            && conversation.is_some_and(|conversation| conversation.awaits(message.id, answered));
        match without_markers(world.seats(), &message)? {
            Some(shown) => write_message(&mut body, &Replayed { body: &shown, ..message }, unheard),
            None => write_message(&mut body, &message, unheard),
        }
    }
    body.extend_from_slice(b"]}");
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

/// The stored form of a message without the parts that people do not read. None if the message is shown unchanged.
fn without_markers(seats: &Seats, message: &Replayed<'_>) -> Result<Option<String>, HistoryError> {
    if message.kind != MessageKind::Assistant || !message.body.contains("[A") {
        return Ok(None);
    }
    let mut record = Record::read(message.id, message.body)?;
    let Event::Message(MessageEvent::Added { agent, content, .. }) = &mut record.event else { return Ok(None) };
    match seats.shown(*agent, content) {
        Cow::Borrowed(_) => return Ok(None),
        Cow::Owned(shown) => *content = shown,
    }
    Ok(Some(record.body()))
}

/// Writes a [`MessageView`]: the stored message, and what its place in the history says about it.
fn write_message(out: &mut Vec<u8>, message: &Replayed<'_>, unheard: bool) {
    let Replayed { id, body, interrupted, .. } = *message;
    let (reaches_model, rest) = (message.reaches_model(), body.strip_prefix('{').unwrap_or(body));
    // Nearly every message was received, so only the others have the field.
    let unheard = if unheard { "\"unheard\":true," } else { "" };
    write!(out, "{{\"id\":{id},\"interrupted\":{interrupted},\"reachesModel\":{reaches_model},{unheard}{rest}")
        .expect("a vector takes what it is given");
}

/// Add a message to an agent's history.
#[utoipa::path(post, path = "/api/agents/{agent}/messages", operation_id = "add_message", tag = "history", params(("agent" = String, Path, description = "An id, the beginning of one, or a name")), request_body = AddMessage,
    responses((status = 201, description = "Added", body = super::AcceptedBody)))]
pub async fn add(
    State(api): State<Api>,
    reference: PathParts<String>,
    body: JsonBody<AddMessage>,
) -> Result<(StatusCode, Accepted), ApiError> {
    let once = Once::of(body.0.id.as_ref(), "message", &reference.0, &body.0)?;
    if let Some(answer) = once.answered(&api).await? {
        return Ok((StatusCode::CREATED, answer));
    }
    let agent = find(&api, &reference.0)?;
    let AddMessage { kind, content, .. } = body.0;
    let records = once.submit(&api, Command::AddMessage { agent, kind, content }).await?;
    Ok((StatusCode::CREATED, Accepted::new(agent.to_string(), &records)))
}

/// Start the history again from nothing. Earlier messages stay in the log.
#[utoipa::path(post, path = "/api/agents/{agent}/clear", operation_id = "clear_history", tag = "history", params(("agent" = String, Path, description = "An id, the beginning of one, or a name")), request_body = Nothing,
    responses((status = 201, description = "Begun anew", body = super::AcceptedBody)))]
pub async fn clear(
    State(api): State<Api>,
    reference: PathParts<String>,
    _body: JsonBody<Nothing>,
) -> Result<(StatusCode, Accepted), ApiError> {
    let agent = find(&api, &reference.0)?;
    created(tell(&api, agent, Command::AddMessage { agent, kind: MessageKind::Clear, content: String::new() }).await)
}

/// Mark the current place in the history.
#[utoipa::path(post, path = "/api/agents/{agent}/mark", operation_id = "mark_history", tag = "history", params(("agent" = String, Path, description = "An id, the beginning of one, or a name")), request_body = SetMark,
    responses((status = 201, description = "Marked", body = super::AcceptedBody)))]
pub async fn mark(
    State(api): State<Api>,
    reference: PathParts<String>,
    body: JsonBody<SetMark>,
) -> Result<(StatusCode, Accepted), ApiError> {
    let agent = find(&api, &reference.0)?;
    created(tell(&api, agent, Command::AddMessage { agent, kind: MessageKind::Mark, content: body.0.label }).await)
}

/// Go back to a mark or a message. Children that were forked in the meantime keep what they inherited.
#[utoipa::path(post, path = "/api/agents/{agent}/rewind", operation_id = "rewind_history", tag = "history", params(("agent" = String, Path, description = "An id, the beginning of one, or a name")), request_body = Rewind,
    responses((status = 201, description = "Gone back", body = super::AcceptedBody)))]
pub async fn rewind(
    State(api): State<Api>,
    reference: PathParts<String>,
    body: JsonBody<Rewind>,
) -> Result<(StatusCode, Accepted), ApiError> {
    let agent = find(&api, &reference.0)?;
    let to = match (body.0.mark, body.0.message) {
        (None, None) => RewindTo::LastMark,
        (Some(label), None) => RewindTo::Mark(label),
        (None, Some(id)) => {
            check_message(&api, agent, id).await?;
            RewindTo::Message(id)
        }
        (Some(_), Some(_)) => {
            return Err(ApiError::bad("two_targets", "a rewind goes to one place", "give a mark or a message"));
        }
    };
    created(tell(&api, agent, Command::Rewind { agent, to }).await)
}

/// Import histories as JSON lines: `{"agent":{"id","parent","fork_message_id"}}` and `{"message":{"id","agent","kind","content"}}`.
///
/// At most 256 MiB and 1,000,000 lines, one file at a time; `max_body_bytes` does not apply here. The file must arrive within 20
/// times `request_timeout_ms`. The import finishes even if the client disconnects.
#[utoipa::path(post, path = "/api/history/import", operation_id = "import_history", tag = "history", request_body(content = String, content_type = "application/x-ndjson"),
    responses((status = 201, description = "Taken in", body = ImportView)))]
pub async fn import(State(api): State<Api>, request: Request) -> Result<(StatusCode, Json<ImportView>), ApiError> {
    // Before the body is read, because files that wait for their turn must not be in memory.
    let turn = api.imports.clone().try_acquire_owned().map_err(|_| {
        let hint = "repeat this when it is done";
        ApiError::new(StatusCode::TOO_MANY_REQUESTS, "import_busy", "another file is being taken in", hint)
    })?;
    let arriving = tokio::time::timeout(api.request_timeout * IMPORT_PATIENCE, Text::from_request(request, &api));
    let body: Text<IMPORT_BYTES> = arriving.await.map_err(|_| {
        ApiError::new(
            StatusCode::REQUEST_TIMEOUT,
            "too_slow",
            "the file took too long to arrive",
            "nothing was taken in",
        )
    })??;
    // In a task of its own, because a client that disconnects must not leave half of the file imported.
    let taken_in = tokio::spawn(async move {
        let _turn = turn;
        take_in(&api, body.0).await
    });
    let imported = taken_in.await.map_err(|error| broken(&error))??;
    Ok((StatusCode::CREATED, Json(ImportView { agents: imported.agents, messages: imported.messages })))
}

async fn take_in(api: &Api, text: String) -> Result<history_import::ImportedHistory, ApiError> {
    let world = api.handle.view();
    // This takes seconds, and only few threads serve requests.
    let rehearsed = tokio::task::spawn_blocking(move || {
        let file = history_import::parse(&text)?;
        history_import::rehearse(World::clone(&world), &file)?;
        Ok::<_, ApiError>(file)
    });
    let file = rehearsed.await.map_err(|error| broken(&error))??;
    Ok(history_import::import(&api.handle, &file).await?)
}

fn broken(error: &tokio::task::JoinError) -> ApiError {
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "import_failed", error, "look into .hatchery/daemon.log")
}

/// The world knows only ranges of ids, so the log is asked which agent a message belongs to.
pub(super) async fn check_message(api: &Api, agent: AgentId, message: EventId) -> Result<(), ApiError> {
    match api.handle.is_in_history(agent, message).await? {
        true => Ok(()),
        false => Err(Refusal::NotInHistory { agent, message }.into()),
    }
}

fn created(accepted: Result<Accepted, ApiError>) -> Result<(StatusCode, Accepted), ApiError> {
    accepted.map(|accepted| (StatusCode::CREATED, accepted))
}
