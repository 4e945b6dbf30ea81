//! The idea inbox, `.fctry/inbox.json`: ideas for later work, the newest first. The inbox outlives sessions and builds. Exactly one taker
//! can take an item for processing. Unknown fields of items are kept.

use crate::status::view::fields;
use crate::status::{Json, Object};

pub const MAX_ITEMS: usize = 10_000;
pub const MAX_CONTENT_BYTES: usize = 64 * 1024;

/// The type of an idea.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdeaType {
    Evolve,
    Reference,
    Feature,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemStatus {
    Pending,
    Processing,
    Processed,
    Incorporated,
    Error,
}

/// An item as readers see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idea {
    pub id: String,
    /// The type as it is written. Other programs may have types of their own.
    pub kind: String,
    pub content: String,
    pub timestamp: Option<String>,
    pub status: ItemStatus,
    pub note: Option<String>,
    pub body: Json,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdeaInbox {
    items: Vec<Json>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InboxError {
    #[error("the inbox is not a list of items: {0}")]
    NotAList(String),
    #[error("`{0}` is no type of idea")]
    BadType(String),
    #[error("`{0}` is no status of an item")]
    BadStatus(String),
    #[error("the processing of an item cannot end with the status `{0}`")]
    BadResult(String),
    #[error("an idea needs words")]
    Empty,
    #[error("the idea has {0} bytes, and {MAX_CONTENT_BYTES} is the most")]
    TooLong(usize),
    #[error("the inbox has {MAX_ITEMS} items already")]
    Full,
    #[error("the inbox has no item `{0}`")]
    NoSuchItem(String),
    #[error("the item `{id}` is {status} already", status = status.name())]
    Taken { id: String, status: ItemStatus },
    #[error("the item `{id}` is {status}, not processing", status = status.name())]
    NotProcessing { id: String, status: ItemStatus },
    #[error("the inbox has no pending item")]
    NothingPending,
}

impl InboxError {
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotAList(_) => "inbox_not_a_list",
            Self::BadType(_) => "bad_idea_type",
            Self::BadStatus(_) | Self::BadResult(_) => "bad_item_status",
            Self::Empty => "empty_idea",
            Self::TooLong(_) => "idea_too_long",
            Self::Full => "inbox_full",
            Self::NoSuchItem(_) => "no_such_item",
            Self::Taken { .. } => "item_taken",
            Self::NotProcessing { .. } => "item_not_processing",
            Self::NothingPending => "nothing_pending",
        }
    }

    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotAList(_) => "look at the file; it is kept as it is",
            Self::BadType(_) => "choose one of: evolve, reference, feature",
            Self::BadStatus(_) => "choose one of: pending, processing, processed, incorporated, error",
            Self::BadResult(_) => "choose one of: processed, incorporated, error, pending",
            Self::Empty => "say what should be done",
            Self::TooLong(_) => "put the long text into a file and name it",
            Self::Full => "dismiss items that do not matter any more",
            Self::NoSuchItem(_) | Self::NothingPending | Self::NotProcessing { .. } => {
                "`hatchery inbox list` shows what is there"
            }
            Self::Taken { .. } => "another taker has it; take the next one without naming an id",
        }
    }
}

impl IdeaType {
    pub fn name(self) -> &'static str {
        match self {
            Self::Evolve => "evolve",
            Self::Reference => "reference",
            Self::Feature => "feature",
        }
    }

    pub fn parse(text: &str) -> Result<Self, InboxError> {
        let all = [Self::Evolve, Self::Reference, Self::Feature];
        all.into_iter()
            .find(|one| one.name() == text)
            .ok_or_else(|| InboxError::BadType(text.chars().take(100).collect()))
    }
}

impl ItemStatus {
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Processing => "processing",
            Self::Processed => "processed",
            Self::Incorporated => "incorporated",
            Self::Error => "error",
        }
    }

    pub fn parse(text: &str) -> Result<Self, InboxError> {
        let all = [Self::Pending, Self::Processing, Self::Processed, Self::Incorporated, Self::Error];
        all.into_iter()
            .find(|one| one.name() == text)
            .ok_or_else(|| InboxError::BadStatus(text.chars().take(100).collect()))
    }
}

impl IdeaInbox {
    pub fn parse(text: &str) -> Result<Self, InboxError> {
        let json = Json::parse(text.strip_prefix('\u{feff}').unwrap_or(text));
        let json = json.map_err(|error| InboxError::NotAList(error.to_string()))?;
        let items = json.list().ok_or_else(|| InboxError::NotAList(format!("it is {}", json.kind())))?;
        Ok(Self { items })
    }

    /// An inbox with these items, the newest first.
    pub fn of(items: Vec<Json>) -> Self {
        Self { items }
    }

    /// The items of another inbox, followed by the items of this inbox that have no id. Without an id an item cannot be compared.
    #[must_use]
    pub fn updated(&self, to: &Self) -> Self {
        let nameless = self.items.iter().filter(|body| Idea::read(body).is_none());
        Self { items: to.items.iter().chain(nameless).cloned().collect() }
    }

    /// This inbox with more items at the end.
    pub(crate) fn and(mut self, more: Vec<Json>) -> Self {
        self.items.extend(more);
        self
    }

    /// The inbox as it is written to the file.
    pub fn text(&self) -> String {
        let mut text = self.to_json().laid_out();
        text.push('\n');
        text
    }

    pub fn to_json(&self) -> Json {
        Json::of_list(&self.items)
    }

    /// The items, the newest first. Items without an id are left out, because no command can name them.
    pub fn items(&self) -> Vec<Idea> {
        self.items.iter().filter_map(Idea::read).collect()
    }

    pub fn item(&self, id: &str) -> Result<Idea, InboxError> {
        self.items().into_iter().find(|item| item.id == id).ok_or_else(|| unknown(id))
    }

    /// Puts an idea before the others. If an item has the id already, nothing is added.
    pub fn add(&mut self, id: &str, kind: IdeaType, content: &str, now: &str) -> Result<Idea, InboxError> {
        let content = content.trim();
        if content.is_empty() {
            return Err(InboxError::Empty);
        }
        if content.len() > MAX_CONTENT_BYTES {
            return Err(InboxError::TooLong(content.len()));
        }
        if let Ok(known) = self.item(id) {
            return Ok(known);
        }
        if self.items.len() >= MAX_ITEMS {
            return Err(InboxError::Full);
        }
        let item = serde_json::json!({
            "id": id, "type": kind.name(), "content": content, "timestamp": now, "status": ItemStatus::Pending.name(),
        });
        self.items.insert(0, item.into());
        self.item(id)
    }

    /// Removes an item.
    pub fn dismiss(&mut self, id: &str) -> Result<Idea, InboxError> {
        let item = self.item(id)?;
        self.items.retain(|body| Idea::read(body).is_none_or(|item| item.id != id));
        Ok(item)
    }

    /// Takes an item for processing: the named one, or the oldest pending one.
    pub fn take(&mut self, id: Option<&str>, taker: Option<&str>, now: &str) -> Result<Idea, InboxError> {
        let chosen = match id {
            Some(id) => self.item(id)?,
            None => {
                let oldest = self.items().into_iter().rev().find(|item| item.status == ItemStatus::Pending);
                oldest.ok_or(InboxError::NothingPending)?
            }
        };
        if chosen.status != ItemStatus::Pending {
            return Err(InboxError::Taken { id: chosen.id, status: chosen.status });
        }
        self.change(&chosen.id, |item| {
            item.set("status", ItemStatus::Processing.name().into());
            item.set("processingAt", now.into());
            if let Some(taker) = taker {
                item.set("consumedBy", taker.into());
            }
        })
    }

    /// Ends the processing of an item. The status `pending` gives the item back.
    pub fn finish(&mut self, id: &str, status: ItemStatus, note: Option<&str>, now: &str) -> Result<Idea, InboxError> {
        let item = self.item(id)?;
        if item.status != ItemStatus::Processing {
            return Err(InboxError::NotProcessing { id: item.id, status: item.status });
        }
        self.change(id, |item| {
            item.set("status", status.name().into());
            item.set("processedAt", now.into());
            if status == ItemStatus::Incorporated {
                item.set("incorporated", serde_json::Value::Bool(true).into());
            }
            if let Some(note) = note {
                item.set("note", note.into());
            }
        })
    }

    fn change(&mut self, id: &str, change: impl FnOnce(&mut Object)) -> Result<Idea, InboxError> {
        let wanted = self.items.iter_mut().find(|body| Idea::read(body).is_some_and(|item| item.id == id));
        let body = wanted.ok_or_else(|| unknown(id))?;
        let mut object = body.object().ok_or_else(|| unknown(id))?;
        change(&mut object);
        *body = object.to_json();
        self.item(id)
    }
}

impl Idea {
    /// Reads an item. A missing or unknown status counts as pending, so that a typing error does not lose the item.
    pub fn read(body: &Json) -> Option<Self> {
        let item = fields(Some(body))?;
        let status = item.text("status").and_then(|status| ItemStatus::parse(&status).ok());
        Some(Self {
            id: item.text("id")?,
            kind: item.text("type").unwrap_or_default(),
            content: item.text("content").unwrap_or_default(),
            timestamp: item.text("timestamp"),
            status: status.unwrap_or(ItemStatus::Pending),
            note: item.text("note"),
            body: body.clone(),
        })
    }
}

fn unknown(id: &str) -> InboxError {
    InboxError::NoSuchItem(id.chars().take(100).collect())
}
