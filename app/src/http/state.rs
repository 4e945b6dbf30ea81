//! The status document over HTTP. Reading shows what the log contains and changes nothing. A change is answered when it is in the log and,
//! in a project with status files, in the file. A client that does not read the file need not wait for it (`wait=log`).

use super::Api;
use super::error::{ApiError, JsonBody, Query, Text};
use crate::clock;
use crate::spec_sections;
use crate::status_files::StatusFile;
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use hatchery_core::build_event::{self, ContextHealth, MAX_EVENT_BYTES};
use hatchery_core::build_run::{BuildError, BuildRun, Resume};
use hatchery_core::event::StatusEvent;
use hatchery_core::status::kept::{LAST_UPDATED, SPEC_VERSION};
use hatchery_core::status::{EditError, Json as Value, Object, Path, StatusChange, StatusDocument, StatusRefusal};
use hatchery_core::{Command, Event, EventId, Record, Refusal};
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct StatePart {
    /// Only the value at this path, such as `scenarioScore.total` or `buildRun.chunks[0].status`.
    path: Option<String>,
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ChangeWait {
    /// What the answer waits for: `file`, which is the default, or `log`. The change is durable with both.
    #[param(inline)]
    #[serde(default)]
    wait: Shown,
}

/// Where a change is visible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Shown {
    /// The log has it, and `.fctry/state.json` shows it.
    #[default]
    File,
    /// The log has it, so every answer of the daemon shows it. The file follows within milliseconds.
    Log,
}

/// The value at a path.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StatusValue {
    /// `null` if there is none.
    #[schema(value_type = serde_json::Value)]
    pub value: Value,
}

/// A change that is durable.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Changed {
    /// The value at the path of the change, or of the only field that was changed. `null` if several fields were changed, or none.
    #[schema(value_type = serde_json::Value)]
    pub value: Value,
    /// The id of the build event that was recorded, or that was known already.
    #[schema(required = false, nullable = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// False if nothing was changed: the value, or a build event with this id, was there already.
    pub changed: bool,
    /// Whether `.fctry/state.json` shows the change.
    #[serde(rename = "inFile")]
    pub in_file: bool,
}

/// What the user or an agent must know to resume a build run, and which choices there are.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResumeView {
    /// The last event that this answer includes. Null if no daemon was asked.
    pub head: Option<EventId>,
    pub run_id: String,
    /// `running`, `paused` or `partial`.
    pub status: String,
    /// The current version of the spec.
    pub spec_version: Option<String>,
    /// The numbers of the completed chunks.
    pub completed: Vec<u64>,
    pub failed: Vec<u64>,
    pub remaining: Vec<u64>,
    /// The remaining chunks that can start.
    pub ready: Vec<u64>,
    /// Completed chunks whose sections of the spec have changed since they were built.
    pub outdated: Vec<u64>,
    /// `resume`, `fresh` and `cancel`.
    pub choices: Vec<String>,
    /// What can be done with outdated chunks: `rebuild` and `keep`.
    pub changed: Vec<String>,
}

impl ResumeView {
    pub fn of(shown: &Resume, spec_version: Option<String>) -> Self {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        Self {
            head: None,
            run_id: shown.run.id.clone(),
            status: shown.run.status.name().to_owned(),
            spec_version,
            completed: shown.done.clone(),
            failed: shown.failed.clone(),
            remaining: shown.remaining.clone(),
            ready: shown.ready.clone(),
            outdated: shown.outdated.clone(),
            choices: words(&["resume", "fresh", "cancel"]),
            changed: words(&["rebuild", "keep"]),
        }
    }
}

/// A build event. Other fields are kept unchanged.
#[derive(Debug, utoipa::ToSchema)]
#[expect(dead_code, reason = "only described here: an event is kept as its author wrote it")]
pub struct BuildEventObject {
    /// Such as `chunk-verified`, `verification-failed`, `context-checkpointed` or `chunk-started`.
    kind: String,
    /// A second event with the same id is ignored. An event without an id gets one.
    #[schema(required = false, nullable = false)]
    id: Option<String>,
    /// ISO 8601. An event without a timestamp gets the current time.
    #[schema(required = false, nullable = false)]
    timestamp: Option<String>,
    /// One line for people.
    #[schema(required = false, nullable = false)]
    summary: Option<String>,
}

/// The fields of the document that viewers of builds need.
const BUILD_FIELDS: [&str; 13] = [
    "workflowStep",
    "currentCommand",
    "chunkProgress",
    "activeSection",
    "activeSectionNumber",
    "completedSteps",
    "scenarioScore",
    "nextStep",
    "lastUpdated",
    "buildEvents",
    "buildRun",
    "agentOutputs",
    "contextState",
];

/// Show the status document, or a part of it. Reading changes nothing.
#[utoipa::path(get, path = "/api/state", operation_id = "read_state", tag = "status", params(StatePart),
    responses((status = 200, description = "What is there; `null` if nothing is", body = StatusValue)))]
pub async fn read(State(api): State<Api>, query: Query<StatePart>) -> Result<Json<StatusValue>, ApiError> {
    let path: Path = query.0.path.map(|path| path.parse()).transpose().map_err(refused)?.unwrap_or_default();
    let shown = dated(&api);
    Ok(Json(StatusValue { value: shown.get(&path).unwrap_or_else(Value::null) }))
}

/// Change the status document. The answer comes when the change is durable and the file shows it, or with `wait=log` when it is durable.
#[utoipa::path(post, path = "/api/state", operation_id = "change_state", tag = "status", params(ChangeWait), request_body = StatusChange,
    responses((status = 200, description = "Changed", body = Changed)))]
pub async fn change(
    State(api): State<Api>,
    query: Query<ChangeWait>,
    body: JsonBody<StatusChange>,
) -> Result<Json<Changed>, ApiError> {
    Ok(Json(carry_out(&api, body.0, query.0.wait).await?))
}

/// Record a build event: a JSON object with a `kind`. Unknown fields are kept. A second event with the same id is ignored.
#[utoipa::path(post, path = "/api/build-events", operation_id = "record_build_event", tag = "status", request_body(content = BuildEventObject, content_type = "application/json"),
    responses((status = 201, description = "Recorded, or known already", body = Changed)))]
pub async fn record_build_event(
    State(api): State<Api>,
    body: Text<MAX_EVENT_BYTES>,
) -> Result<(StatusCode, Json<Changed>), ApiError> {
    let event = body.0.parse().map_err(refused)?;
    let change = StatusChange::RecordEvent { event, id: clock::new_named_id("event") };
    Ok((StatusCode::CREATED, Json(carry_out(&api, change, Shown::File).await?)))
}

/// Show the build: the fields of the status document that viewers of builds need, and the health of the context.
#[utoipa::path(get, path = "/api/build-status", operation_id = "build_status", tag = "status",
    responses((status = 200, description = "Fields that are absent are `null`", content_type = "application/json", body = Object)))]
pub async fn build_status(State(api): State<Api>) -> Response {
    let shown = build_shown(&dated(&api));
    ([(header::CONTENT_TYPE, "application/json")], shown.to_json().to_string()).into_response()
}

/// Show what the user or an agent must know to resume the build run. Reading changes nothing; `resume_build` of `POST /api/state` continues
/// the run.
#[utoipa::path(get, path = "/api/build-resume", operation_id = "build_resume", tag = "status",
    responses((status = 200, description = "What is done, what remains, and what is outdated", body = ResumeView)))]
pub async fn build_resume(State(api): State<Api>) -> Result<Json<ResumeView>, ApiError> {
    let head = api.handle.view().head();
    let (folder, shown) = (api.status_files.folder().clone(), dated(&api));
    let read = move || {
        let version = spec_sections::registered_version(&folder).or_else(|| shown.words(SPEC_VERSION));
        let sections = spec_sections::fingerprints(&folder).unwrap_or_default();
        let resume = BuildRun::read(&shown).and_then(|run| run.resume(version.as_deref(), &sections));
        Ok(resume.map(|resume| ResumeView { head: Some(head), ..ResumeView::of(&resume, version) }))
    };
    let resume = crate::blocking::blocking(read).await.map_err(unread)?;
    resume.map(Json).ok_or_else(|| Refusal::Status(Box::new(StatusRefusal::from(BuildError::NoRun))).into())
}

fn unread(error: std::io::Error) -> ApiError {
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "spec_unreadable", error, "try again")
}

/// The document as all readers see it, with the time at which the file was written.
pub(super) fn dated(api: &Api) -> StatusDocument {
    let mut shown = api.status_files.view().shown(&api.handle.view());
    if let Some(at) = api.status_files.last_updated() {
        shown.set(LAST_UPDATED, at.as_str());
    }
    shown
}

/// Carries out a change and waits until it is visible.
async fn carry_out(api: &Api, change: StatusChange, until: Shown) -> Result<Changed, ApiError> {
    let change = match spec_sections::matters_to(&change) {
        true => {
            let folder = api.status_files.folder().clone();
            crate::blocking::blocking(move || Ok(spec_sections::filled(&folder, &change))).await.map_err(unread)?
        }
        false => change,
    };
    let path = match &change {
        StatusChange::Set { path, .. }
        | StatusChange::Increment { path, .. }
        | StatusChange::Append { path, .. }
        | StatusChange::Clear { path } => Some(path.clone()),
        _ => None,
    };
    let event = match &change {
        StatusChange::RecordEvent { event, .. } => event.object(),
        _ => None,
    };
    let (records, in_file) = submit(api, Command::ChangeStatus { change: Box::new(change) }, until).await?;
    let value = value_of(path.as_ref(), &records)
        .or_else(|| api.status_files.view().shown(&api.handle.view()).get(path.as_ref()?));
    let recorded = records.iter().find_map(|record| match &record.event {
        Event::Status(StatusEvent::BuildEventRecorded { build_event, .. }) => Some(build_event.clone()),
        _ => None,
    });
    let id = recorded.or_else(|| {
        let event = event?;
        build_event::id_of(&event).or_else(|| build_event::id_of(&api.handle.view().status().repeated_event(&event)?))
    });
    Ok(Changed { value: value.unwrap_or_else(Value::null), id, changed: !records.is_empty(), in_file })
}

/// Submits a command about the status, and waits until the result is visible. Also returns whether the files show it.
pub(super) async fn submit(api: &Api, command: Command, until: Shown) -> Result<(Vec<Record>, bool), ApiError> {
    let files = &api.status_files;
    let file = match command {
        Command::ChangeIdeas { .. } => StatusFile::Inbox,
        _ => StatusFile::State,
    };
    if !files.are_taken().await {
        return Err(ApiError::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "status_files_held",
            format_args!(
                "another process has held the lock of {} since before the daemon started",
                files.folder().path().display()
            ),
            "nothing was changed; find that process with `fuser`, end it, and repeat this",
        ));
    }
    // A change gives the project status files. Their folder must exist before the event, because the event is shown in it.
    let folder = files.folder().path().to_owned();
    let made = !files.is_wanted() && crate::blocking::blocking(move || std::fs::create_dir(&folder)).await.is_ok();
    let records = match api.handle.submit(command).await {
        Ok(records) => records,
        Err(error) => {
            if made {
                // Only an empty folder is removed.
                let folder = files.folder().path().to_owned();
                crate::blocking::blocking(move || std::fs::remove_dir(&folder)).await.unwrap_or_default();
            }
            return Err(error.into());
        }
    };
    let in_file = match (records.last(), until) {
        _ if !files.is_wanted() => false,
        (None, _) => true,
        (Some(last), Shown::Log) => files.show(file, last.id),
        (Some(last), Shown::File) => files.wait_for(file, last.id).await,
    };
    Ok((records, in_file))
}

/// The value after a change, from the change's own events, because another change may have come after it.
fn value_of(path: Option<&Path>, records: &[Record]) -> Option<Value> {
    let edits = records.iter().filter_map(|record| match &record.event {
        Event::Status(StatusEvent::Edited { edits, .. }) => Some(edits),
        _ => None,
    });
    let edits: Vec<_> = edits.flatten().collect();
    let edit = match path {
        Some(path) => edits.iter().find(|edit| edit.path == *path && !edit.append)?,
        None if edits.len() == 1 => edits.first()?,
        None => return None,
    };
    edit.value.as_ref()?.parse().ok()
}

/// What viewers of builds see.
pub(super) fn build_shown(state: &StatusDocument) -> Object {
    let mut shown = Object::default();
    for field in BUILD_FIELDS {
        let absent = || if ["completedSteps", "buildEvents"].contains(&field) { json!([]) } else { json!(null) };
        shown.set(field, state.field(field).cloned().unwrap_or_else(|| absent().into()));
    }
    let usage = state.get(&Path::field("contextState").below("usage")).and_then(|it| it.text().parse::<f64>().ok());
    let usage = usage.filter(|it| (0.0..=100.0).contains(it)).map(|it| it.round() as u8);
    let health = ContextHealth::of(state, usage);
    let health = json!({
        "isolationMode": health.isolation_mode, "usage": health.usage, "lastCheckpoint": health.last_checkpoint,
    });
    shown.set("contextHealth", health.into());
    shown
}

pub(super) fn refused(error: EditError) -> ApiError {
    Refusal::Status(Box::new(StatusRefusal::from(error))).into()
}
