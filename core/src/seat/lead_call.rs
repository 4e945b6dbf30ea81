//! Tool calls of the lead without a result. In the log, a call and its result are two messages far apart. Clients that receive a result
//! also need the name of the tool, and whether the lead has written an artifact.

use super::{Seats, floor};
use crate::event::SeatEvent;
use crate::file_write::{FileWrite, is_new};
use crate::output::Output;
use crate::{AgentId, Event, World};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How many calls without a result are remembered: the newest. A turn has a few.
const MAX_CALLS: usize = 256;
/// The longest id and name of a tool, and the longest path, in bytes. Longer ones are not remembered.
const MAX_NAME_BYTES: usize = 1 << 10;
const MAX_PATH_BYTES: usize = 4 << 10;
/// The folder of the artifacts, relative to the lead's folder.
const ARTIFACTS: &str = "memory/";
/// How many bytes of a file are searched for its `meta` elements. They are at its beginning.
const MAX_HEAD_BYTES: usize = 64 << 10;
/// The longest text that is taken from such an element, in characters.
const MAX_META_CHARS: usize = 1_000;

/// A tool call of the lead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeadCall {
    pub id: String,
    pub tool: String,
    /// The artifact that the call writes.
    pub artifact: Option<ArtifactWrite>,
}

/// A file that a call writes into the folder of artifacts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtifactWrite {
    pub path: String,
    /// The path within the folder of artifacts.
    pub filename: String,
    pub bytes: u64,
    pub meta: Option<ArtifactMeta>,
}

/// The description of an artifact, from elements such as `<meta name="artifact-description" content="…">`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ArtifactMeta {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chapter: Option<String>,
}

impl ArtifactMeta {
    /// None if the file says nothing of this.
    pub fn read(content: &str) -> Option<Self> {
        let head = &content[..floor(content, MAX_HEAD_BYTES)];
        let found = |name: &str| {
            let tags = head.match_indices("<meta").map(|(at, _)| &head[at..]);
            let tag = tags.filter_map(|from| from.split_once('>')).map(|(tag, _)| tag);
            let text = tag.filter(|tag| attribute(tag, "name") == Some(name)).find_map(|tag| attribute(tag, "content"));
            text.map(|text| text.chars().take(MAX_META_CHARS).collect::<String>()).filter(|text| !text.is_empty())
        };
        let meta = Self {
            description: found("artifact-description"),
            category: found("artifact-category"),
            chapter: found("artifact-chapter"),
        };
        (meta != Self::default()).then_some(meta)
    }
}

/// The value of an attribute in quotes.
fn attribute<'t>(tag: &'t str, name: &str) -> Option<&'t str> {
    let (_, value) = tag.split_once(&format!(" {name}="))?;
    let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    value[1..].split_once(quote).map(|(value, _)| value)
}

impl LeadCall {
    pub(crate) fn new(id: &str, tool: &str, input: &Value) -> Self {
        Self { id: id.to_owned(), tool: tool.to_owned(), artifact: ArtifactWrite::of(input) }
    }

    /// Reads a tool call from a message of a history.
    pub(crate) fn read(content: &str) -> Option<Self> {
        let call: Value = serde_json::from_str(content).ok()?;
        let name = |value: &'_ Value| value.as_str().filter(|it| it.len() <= MAX_NAME_BYTES).map(str::to_owned);
        Some(Self::new(&name(&call["id"])?, &name(&call["name"])?, &call["input"]))
    }
}

impl ArtifactWrite {
    /// The first artifact that a call with this input writes.
    fn of(input: &Value) -> Option<Self> {
        FileWrite::all(input).filter(|write| write.path.len() <= MAX_PATH_BYTES).find_map(
            |FileWrite { path, content }| {
                let inside =
                    path.strip_prefix(ARTIFACTS).or_else(|| path.split_once("/memory/").map(|(_, inside)| inside))?;
                let meta = ArtifactMeta::read(content);
                Some(Self { path: path.to_owned(), filename: inside.to_owned(), bytes: content.len() as u64, meta })
            },
        )
    }
}

/// The id of the call that a result answers, from a message of a history.
fn answered(content: &str) -> Option<String> {
    let result: Value = serde_json::from_str(content).ok()?;
    result["id"].as_str().map(str::to_owned)
}

/// The artifacts that the lead has written, from the outputs of its process.
pub(crate) fn artifacts(world: &World, agent: AgentId, outputs: &[Output]) -> Vec<Event> {
    let seats = world.seats();
    if seats.lead() != Some(agent) {
        return Vec::new();
    }
    // A call and its result may be in the same outputs.
    let mut calls: Vec<LeadCall> = Vec::new();
    let mut written = Vec::new();
    for output in outputs {
        if let Output::ToolUse { id, name, input } = output {
            let input = serde_json::from_str(input).unwrap_or_default();
            calls.push(LeadCall::new(id, name, &input));
        }
        if let Output::ToolResult { id, content, is_error: false } = output {
            let call = calls.iter().find(|call| call.id == *id).or_else(|| seats.call(id));
            written.extend(call.and_then(|call| call.artifact.as_ref()).map(|artifact| {
                Event::Seat(SeatEvent::ArtifactWritten {
                    agent,
                    path: artifact.path.clone(),
                    filename: artifact.filename.clone(),
                    bytes: artifact.bytes,
                    is_new: is_new(content),
                    meta: artifact.meta.clone(),
                })
            }));
        }
    }
    written
}

impl Seats {
    /// A tool call of the lead that has no result yet.
    pub fn call(&self, id: &str) -> Option<&LeadCall> {
        self.calls.iter().find(|call| call.id == id).map(AsRef::as_ref)
    }

    pub(crate) fn call_made(&mut self, content: &str) {
        let Some(call) = LeadCall::read(content) else { return };
        self.calls.push_back(std::sync::Arc::new(call));
        if self.calls.len() > MAX_CALLS {
            self.calls.pop_front();
        }
    }

    pub(crate) fn call_answered(&mut self, content: &str) {
        let Some(id) = answered(content) else { return };
        self.calls.retain(|call| call.id != id);
    }
}
