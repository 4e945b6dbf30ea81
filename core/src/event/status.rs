//! The events of the status document and the idea inbox. JSON values are stored as text, so they stay exactly as their author wrote them,
//! including large numbers and the order of fields.

use crate::status::Path;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "type")]
pub enum StatusEvent {
    /// Fields of the status document were changed.
    #[serde(rename = "status_edited")]
    Edited { from: StatusSource, edits: Vec<FieldEdit> },
    #[serde(rename = "build_event_recorded")]
    BuildEventRecorded {
        from: StatusSource,
        /// The id of the build event.
        build_event: String,
        /// The build event, as JSON text.
        body: String,
    },
    /// An idea was added to the inbox, or changed.
    #[serde(rename = "idea_kept")]
    IdeaKept {
        from: StatusSource,
        /// The id of the idea.
        idea: String,
        /// The item of the inbox, as JSON text.
        body: String,
    },
    #[serde(rename = "idea_dismissed")]
    IdeaDismissed { from: StatusSource, idea: String },
}

/// How a change came to Hatchery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum StatusSource {
    /// A command, a tool or a request asked for it.
    Request,
    /// Another program wrote the file.
    File,
}

/// One changed field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FieldEdit {
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub path: Path,
    /// The new value as JSON text. None clears the field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The value is a new item at the end of a list.
    #[serde(default, skip_serializing_if = "is_false")]
    pub append: bool,
}

fn is_false(it: &bool) -> bool {
    !it
}
