//! The idea inbox over HTTP. A change is answered when it is in the log and in the file.

use super::Api;
use super::error::{ApiError, JsonBody, PathParts};
use super::state::{Shown, submit};
use crate::clock;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use hatchery_core::Command;
use hatchery_core::idea_inbox::Idea;
use hatchery_core::status::{IdeaChange, Json as Value, StatusRefusal};
use hatchery_core::{Event, EventId, Refusal};
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct IdeaList {
    /// The last event that this answer includes. A client that follows the log after this event misses nothing.
    pub head: EventId,
    /// The newest first.
    pub items: Vec<IdeaView>,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct IdeaView {
    /// The id of the idea.
    pub id: String,
    /// `pending`, `processing`, `processed`, `incorporated` or `error`.
    pub status: String,
    /// The whole item: `type`, `content`, `timestamp`, and whatever else was written into it.
    #[schema(value_type = serde_json::Value)]
    pub item: Value,
}

/// An idea after a change that is durable.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ChangedIdea {
    /// The id of the idea.
    pub id: String,
    /// `pending`, `processing`, `processed`, `incorporated` or `error`.
    pub status: String,
    /// The whole item: `type`, `content`, `timestamp`, and whatever else was written into it.
    #[schema(value_type = serde_json::Value)]
    pub item: Value,
    /// Whether `.fctry/inbox.json` shows the change.
    #[serde(rename = "inFile")]
    pub in_file: bool,
}

#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewIdea {
    /// `evolve`, `reference` or `feature`.
    #[serde(rename = "type")]
    kind: String,
    /// The idea, a link or a description. At most 64 KiB of UTF-8.
    content: String,
}

/// The ideas that are kept for later.
#[utoipa::path(get, path = "/api/inbox", operation_id = "list_ideas", tag = "status", responses((status = 200, description = "The newest first", body = IdeaList)))]
pub async fn list(State(api): State<Api>) -> Json<IdeaList> {
    let world = api.handle.view();
    let items = world.status().inbox().items().into_iter().map(IdeaView::from).collect();
    Json(IdeaList { head: world.head(), items })
}

/// Add an idea. The answer comes when it is durable and the file shows it.
#[utoipa::path(post, path = "/api/inbox", operation_id = "add_idea", tag = "status", request_body = NewIdea,
    responses((status = 201, description = "Kept", body = ChangedIdea)))]
pub async fn add(State(api): State<Api>, body: JsonBody<NewIdea>) -> Result<(StatusCode, Json<ChangedIdea>), ApiError> {
    let NewIdea { kind, content } = body.0;
    let change = IdeaChange::Add { id: clock::new_named_id("inbox"), kind, content };
    Ok((StatusCode::CREATED, Json(carry_out(&api, change).await?)))
}

/// Change the inbox: add an idea, dismiss one, take one for processing, or report how the processing ended. Only one client can take an
/// idea.
#[utoipa::path(post, path = "/api/inbox/changes", operation_id = "change_inbox", tag = "status", request_body = IdeaChange,
    responses((status = 200, description = "The idea as it is now, or as it was when it was dismissed", body = ChangedIdea)))]
pub async fn change(State(api): State<Api>, body: JsonBody<IdeaChange>) -> Result<Json<ChangedIdea>, ApiError> {
    Ok(Json(carry_out(&api, body.0).await?))
}

/// Remove an idea.
#[utoipa::path(delete, path = "/api/inbox/{id}", operation_id = "dismiss_idea", tag = "status", params(("id" = String, Path, description = "The id of an idea")),
    responses((status = 200, description = "The idea as it was", body = ChangedIdea)))]
pub async fn dismiss(State(api): State<Api>, id: PathParts<String>) -> Result<Json<ChangedIdea>, ApiError> {
    Ok(Json(carry_out(&api, IdeaChange::Dismiss { id: id.0 }).await?))
}

async fn carry_out(api: &Api, change: IdeaChange) -> Result<ChangedIdea, ApiError> {
    let before = api.handle.view().status().inbox();
    let (records, in_file) = submit(api, Command::ChangeIdeas { change: change.clone() }, Shown::File).await?;
    let kept = records.iter().find_map(|record| match &record.event {
        Event::Status(hatchery_core::event::StatusEvent::IdeaKept { body, .. }) => body.parse().ok(),
        _ => None,
    });
    let item = match (kept.as_ref().and_then(Idea::read), &change) {
        (Some(item), _) => item,
        // The idea was removed, or was known already.
        (None, IdeaChange::Dismiss { id } | IdeaChange::Add { id, .. } | IdeaChange::Finish { id, .. }) => before
            .item(id)
            .or_else(|_| api.handle.view().status().inbox().item(id))
            .map_err(|error| ApiError::from(Refusal::Status(Box::new(StatusRefusal::from(error)))))?,
        (None, IdeaChange::Take { .. }) => {
            let error = hatchery_core::idea_inbox::InboxError::NothingPending;
            return Err(Refusal::Status(Box::new(error.into())).into());
        }
    };
    let IdeaView { id, status, item } = item.into();
    Ok(ChangedIdea { id, status, item, in_file })
}

impl From<Idea> for IdeaView {
    fn from(item: Idea) -> Self {
        Self { id: item.id, status: item.status.name().into(), item: item.body }
    }
}
