//! The status as the log records it: the fields that people, agents and other programs have set, the newest build events, and the ideas.
//! The files `.fctry/state.json` and `.fctry/inbox.json` are written from it.
//!
//! The fields that show a running quest are not kept here. [`super::quest_view`] computes them and puts them over these fields.

use super::foreign::InboxEdits;
use super::merge::difference;
use super::quest_view::QuestView;
use super::{
    Edit, EditError, IdeaChange, Json, JsonKind, Object, Path, Segment, StatusChange, StatusDocument, StatusRefusal,
};
use crate::build_event::{BuildEvent, MAX_EVENTS_IN_DOCUMENT, has_id, id_of, is_copy};
use crate::event::{FieldEdit, StatusEvent, StatusSource};
use crate::idea_inbox::{Idea, IdeaInbox, InboxError, MAX_ITEMS};
use crate::{Event, Refusal, Timestamp, World};
use imbl::{OrdMap, Vector};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The longest value in the log, in bytes. A longer value of another program stays only in the file.
pub const MAX_KEPT_VALUE_BYTES: usize = 1024 * 1024;
/// How many of the newest build events are searched for one with the same time. A quest has far fewer slots.
const MAX_SAME_TIME: usize = 64;
/// The most fields of a document in the log.
pub const MAX_KEPT_FIELDS: usize = 1_000;
/// The field with the build events.
pub const BUILD_EVENTS: &str = "buildEvents";
/// The field with the time at which the file was written. It is not kept, because it says nothing about the project.
pub const LAST_UPDATED: &str = "lastUpdated";

/// The field with the current version of the spec.
pub const SPEC_VERSION: &str = "specVersion";

/// The status, computed from the log. Values are JSON text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptStatus {
    fields: OrdMap<Arc<str>, Arc<str>>,
    /// The newest last.
    build_events: Vector<Arc<str>>,
    /// The newest first, by id.
    ideas: Vector<(Arc<str>, Arc<str>)>,
}

/// The known build events, to compare many events with them.
pub(super) struct KnownEvents {
    ids: BTreeSet<String>,
    events: Vec<Object>,
    /// Older events were left out.
    pub(super) is_full: bool,
}

impl KeptStatus {
    /// True if nothing was ever set.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.build_events.is_empty() && self.ideas.is_empty()
    }

    /// The whole document, without the fields that show quests.
    pub fn document(&self) -> StatusDocument {
        let mut document = self.fields_alone();
        if !self.build_events.is_empty() {
            document.set(BUILD_EVENTS, self.build_event_list());
        }
        document
    }

    pub fn inbox(&self) -> IdeaInbox {
        IdeaInbox::of(self.ideas.iter().map(|(_, body)| parsed(body)).collect())
    }

    /// The document without its build events, of which there may be many.
    fn fields_alone(&self) -> StatusDocument {
        let mut fields = Object::default();
        for (name, value) in &self.fields {
            fields.push(name, parsed(value));
        }
        StatusDocument { fields }
    }

    /// A document with only one field, because most changes concern one field.
    fn part(&self, name: &str) -> StatusDocument {
        let mut document = StatusDocument::default();
        if let Some(value) = self.field(name) {
            document.set(name, value);
        }
        document
    }

    /// The current version of the spec.
    pub(crate) fn spec_version(&self) -> Option<Arc<str>> {
        self.field(SPEC_VERSION)?.words().map(Into::into)
    }

    pub(super) fn field(&self, name: &str) -> Option<Json> {
        match name {
            BUILD_EVENTS if self.build_events.is_empty() => None,
            BUILD_EVENTS => Some(self.build_event_list()),
            _ => self.fields.get(name).map(|text| parsed(text)),
        }
    }

    fn build_event_list(&self) -> Json {
        Json::of_list(&self.build_events.iter().map(|body| parsed(body)).collect::<Vec<_>>())
    }

    /// Whether an event with this id is among the newest.
    fn knows_event(&self, id: &str) -> bool {
        self.build_events.iter().any(|body| has_id(body, id))
    }

    /// The known event that was given again with the same time and without an id.
    pub fn repeated_event(&self, given: &Object) -> Option<Object> {
        let time = given.get("timestamp").filter(|_| id_of(given).is_none())?;
        // Few events have the same time.
        let alike = self.build_events.iter().filter(|body| body.contains(time.text()));
        alike.filter_map(|body| parsed(body).object()).find(|known| is_copy(known, given))
    }

    pub(super) fn known_events(&self) -> KnownEvents {
        let events: Vec<Object> = self.build_events.iter().filter_map(|body| parsed(body).object()).collect();
        let is_full = events.len() >= MAX_EVENTS_IN_DOCUMENT;
        KnownEvents { ids: events.iter().filter_map(id_of).collect(), events, is_full }
    }

    pub(crate) fn apply(&mut self, event: &StatusEvent) -> Result<(), &'static str> {
        match event {
            StatusEvent::Edited { edits, .. } => edits.iter().try_for_each(|edit| self.edit(edit)),
            StatusEvent::BuildEventRecorded { body, .. } => {
                Json::parse(body).map_err(|_| "is not JSON")?;
                self.build_events.push_back(body.as_str().into());
                self.note(&[]);
                Ok(())
            }
            StatusEvent::IdeaKept { idea, body, .. } => {
                Json::parse(body).map_err(|_| "is not JSON")?;
                let kept = (Arc::from(idea.as_str()), Arc::from(body.as_str()));
                match self.ideas.iter().position(|(id, _)| **id == **idea) {
                    Some(place) => drop(self.ideas.set(place, kept)),
                    None => self.ideas.push_front(kept),
                }
                Ok(())
            }
            StatusEvent::IdeaDismissed { idea, .. } => {
                let place = self.ideas.iter().position(|(id, _)| **id == **idea).ok_or("names an unknown idea")?;
                self.ideas.remove(place);
                Ok(())
            }
        }
    }

    /// The time for build events that follow from an event of the log: `ts`, or some milliseconds later if a build event has that time
    /// already. Viewers take two events with the same kind and time for one event, so steps that start together would be shown as one.
    pub(crate) fn free_event_time(&self, ts: Timestamp) -> Timestamp {
        let is_taken = |ts: &Timestamp| {
            let written = ts.rfc3339();
            self.build_events.iter().rev().take(MAX_SAME_TIME).any(|body| body.contains(&written))
        };
        let mut moments = (0..).take(MAX_SAME_TIME).map(|ms| ts.plus_ms(ms));
        moments.find(|ts| !is_taken(ts)).unwrap_or(ts)
    }

    /// Adds build events that follow from other events of the log.
    pub(crate) fn note(&mut self, events: &[Json]) {
        self.build_events.extend(events.iter().map(|event| Arc::from(event.text())));
        while self.build_events.len() > MAX_EVENTS_IN_DOCUMENT {
            self.build_events.pop_front();
        }
    }

    fn edit(&mut self, edit: &FieldEdit) -> Result<(), &'static str> {
        let name = edit.path.segments().first().ok_or("has an empty path")?.as_str();
        let mut part = self.part(name);
        part.apply(&edit.edit().map_err(|_| "is not JSON")?).map_err(|_| "does not fit the document")?;
        match part.field(name) {
            None if name == BUILD_EVENTS => self.build_events.clear(),
            None => drop(self.fields.remove(name)),
            Some(value) if name == BUILD_EVENTS && value.kind() == JsonKind::List => {
                let items = value.list().unwrap_or_default();
                let surplus = items.len().saturating_sub(MAX_EVENTS_IN_DOCUMENT);
                self.build_events = items[surplus..].iter().map(|item| Arc::from(item.text())).collect();
            }
            Some(_) if name == BUILD_EVENTS => self.build_events.clear(),
            Some(value) => drop(self.fields.insert(name.into(), value.text().into())),
        }
        Ok(())
    }
}

impl KnownEvents {
    pub(super) fn has(&self, id: &str) -> bool {
        self.ids.contains(id)
    }

    /// Whether an event without an id is known with an id.
    pub(super) fn has_copy_of(&self, event: &Object) -> bool {
        self.events.iter().any(|known| is_copy(known, event))
    }
}

impl FieldEdit {
    /// The edit of a document.
    pub fn edit(&self) -> Result<Edit, EditError> {
        let path = self.path.clone();
        Ok(match &self.value {
            None => Edit::Clear { path },
            Some(value) if self.append => Edit::Append { path, value: value.parse()? },
            Some(value) => Edit::Set { path, value: value.parse()? },
        })
    }

    /// The field edit for an edit that [`difference`] returns.
    pub(super) fn of(edit: Edit) -> Option<Self> {
        match edit {
            Edit::Set { path, value } => Some(Self { path, value: Some(value.text().into()), append: false }),
            Edit::Append { path, value } => Some(Self { path, value: Some(value.text().into()), append: true }),
            Edit::Clear { path } => Some(Self { path, value: None, append: false }),
            Edit::Merge { .. } | Edit::Increment { .. } => None,
        }
    }

    fn bytes(&self) -> usize {
        self.value.as_ref().map_or(0, String::len)
    }
}

/// Decides a change of the document.
pub(crate) fn change(world: &World, change: &StatusChange, now: Timestamp) -> Result<Vec<Event>, Refusal> {
    let refused = |error: StatusRefusal| Refusal::Status(Box::new(error));
    let (kept, at) = (world.status(), now.rfc3339());
    if let StatusChange::RecordEvent { event, id } = change {
        return record(world, event, id, &at).map_err(refused);
    }
    if let StatusChange::Append { path, value } = change
        && path.segments() == [BUILD_EVENTS]
        && value.object().as_ref().and_then(id_of).is_some_and(|id| kept.knows_event(&id))
    {
        return Ok(Vec::new());
    }
    if let Some(quest) = change.is_about_build().then(|| QuestView::owner(world, &Path::field("buildRun"))).flatten() {
        return Err(refused(StatusRefusal::ShowsQuest { field: "buildRun".into(), quest }));
    }
    let before = match change {
        StatusChange::Set { path, .. }
        | StatusChange::Increment { path, .. }
        | StatusChange::Append { path, .. }
        | StatusChange::Clear { path } => kept.part(path.segments().first().map_or("", Segment::as_str)),
        StatusChange::NoteUntracked { .. } => kept.part("untrackedChanges"),
        StatusChange::Merge { .. } => kept.document(),
        StatusChange::RecordEvent { .. }
        | StatusChange::StartCommand { .. }
        | StatusChange::EndCommand {}
        | StatusChange::StartStep { .. }
        | StatusChange::FinishStep { .. }
        | StatusChange::ApprovePlan { .. }
        | StatusChange::MoveChunk { .. }
        | StatusChange::PauseBuild {}
        | StatusChange::ResumeBuild { .. }
        | StatusChange::ClearBuild {} => kept.fields_alone(),
    };
    let mut after = before.clone();
    change.apply(&mut after, &at).map_err(refused)?;
    let edits: Vec<FieldEdit> = match change.edit() {
        // The log contains only the new item of a list, not the whole list.
        Some(edit @ Edit::Append { .. }) => FieldEdit::of(edit).into_iter().collect(),
        _ => difference(&before, &after).into_iter().filter_map(FieldEdit::of).collect(),
    };
    check(world, &edits).map_err(refused)?;
    match edits.is_empty() {
        true => Ok(Vec::new()),
        false => Ok(vec![Event::Status(StatusEvent::Edited { from: StatusSource::Request, edits })]),
    }
}

/// Refuses values that are too long, and changes of fields that show a quest.
fn check(world: &World, edits: &[FieldEdit]) -> Result<(), StatusRefusal> {
    for edit in edits {
        if let Some(quest) = QuestView::owner(world, &edit.path) {
            return Err(StatusRefusal::ShowsQuest { field: edit.path.to_string(), quest });
        }
        if !edit.path.is_writable() {
            let why = "it has an empty name, or it is too long".into();
            return Err(EditError::BadPath { path: edit.path.to_string().chars().take(200).collect(), why }.into());
        }
        if edit.bytes() > MAX_KEPT_VALUE_BYTES {
            return Err(StatusRefusal::TooLong { what: "value", bytes: edit.bytes(), max: MAX_KEPT_VALUE_BYTES });
        }
    }
    let kept = world.status();
    let is_new =
        |edit: &&FieldEdit| edit.path.segments().first().is_some_and(|name| !kept.fields.contains_key(name.as_str()));
    match kept.fields.len() + edits.iter().filter(is_new).count() > MAX_KEPT_FIELDS
        && edits.iter().any(|it| is_new(&it))
    {
        true => Err(StatusRefusal::TooManyFields { count: kept.fields.len(), max: MAX_KEPT_FIELDS }),
        false => Ok(()),
    }
}

fn record(world: &World, given: &Json, id: &str, now: &str) -> Result<Vec<Event>, StatusRefusal> {
    let event = BuildEvent::check(given, id, now)?;
    // Some programs send an event and also write it into the file. Without an id, the time shows that it is the same event.
    match given.object().and_then(|given| world.status().repeated_event(&given)) {
        Some(_) => Ok(Vec::new()),
        None => Ok(recorded(world, &event, StatusSource::Request)),
    }
}

fn recorded(world: &World, event: &BuildEvent, from: StatusSource) -> Vec<Event> {
    let kept = world.status();
    if kept.knows_event(&event.id) {
        return Vec::new();
    }
    let body = event.body().text().to_owned();
    let recorded = Event::Status(StatusEvent::BuildEventRecorded { from, build_event: event.id.clone(), body });
    // A checkpoint of the context is also a checkpoint of the build run.
    let mut run = kept.part("buildRun");
    event.record(&mut run);
    run.clear(BUILD_EVENTS);
    let edits: Vec<FieldEdit> =
        difference(&kept.part("buildRun"), &run).into_iter().filter_map(FieldEdit::of).collect();
    let checkpoint = (!edits.is_empty()).then_some(Event::Status(StatusEvent::Edited { from, edits }));
    [recorded].into_iter().chain(checkpoint).collect()
}

/// Decides a change of the inbox.
pub(crate) fn change_ideas(world: &World, change: &IdeaChange, now: Timestamp) -> Result<Vec<Event>, Refusal> {
    let mut inbox = world.status().inbox();
    let before = inbox.clone();
    let item = change.apply(&mut inbox, &now.rfc3339()).map_err(|error| Refusal::Status(Box::new(error)))?;
    if inbox == before {
        return Ok(Vec::new());
    }
    let (from, Idea { id: idea, body, .. }) = (StatusSource::Request, item);
    Ok(vec![Event::Status(match change {
        IdeaChange::Dismiss { .. } => StatusEvent::IdeaDismissed { from, idea },
        IdeaChange::Add { .. } | IdeaChange::Take { .. } | IdeaChange::Finish { .. } => {
            StatusEvent::IdeaKept { from, idea, body: body.text().to_owned() }
        }
    })])
}

/// Records what another program has changed. Edits that no longer fit are left out.
pub(crate) fn take_edits(world: &World, edits: &[FieldEdit], events: &[(String, Json)], now: Timestamp) -> Vec<Event> {
    let from = StatusSource::File;
    let mut then = world.status().clone();
    let fits = |edit: &&FieldEdit| check(world, std::slice::from_ref(*edit)).is_ok() && then.edit(edit).is_ok();
    let edits: Vec<FieldEdit> = edits.iter().filter(fits).cloned().collect();
    let edited = (then != *world.status()).then_some(Event::Status(StatusEvent::Edited { from, edits }));
    let (at, mut ids) = (now.rfc3339(), BTreeSet::new());
    let found = events.iter().filter_map(|(id, event)| BuildEvent::found(event, id, &at));
    let once = found.filter(|event| ids.insert(event.id.clone()));
    edited.into_iter().chain(once.flat_map(|event| recorded(world, &event, from))).collect()
}

/// Records what another program has changed in the inbox.
pub(crate) fn take_ideas(world: &World, edits: &InboxEdits) -> Result<Vec<Event>, Refusal> {
    let (from, ideas) = (StatusSource::File, &world.status().ideas);
    let known = |id: &str| ideas.iter().find(|(known, _)| **known == *id);
    let is_new = |(id, _): &&(String, Json)| known(id).is_none();
    if ideas.len() + edits.kept.iter().filter(is_new).count() > MAX_ITEMS {
        return Err(Refusal::Status(Box::new(InboxError::Full.into())));
    }
    let differs = |(id, body): &&(String, Json)| {
        body.text().len() <= MAX_KEPT_VALUE_BYTES && known(id).is_none_or(|(_, known)| parsed(known) != *body)
    };
    let kept = edits.kept.iter().filter(differs).map(|(id, body)| StatusEvent::IdeaKept {
        from,
        idea: id.clone(),
        body: body.text().to_owned(),
    });
    let dismissed = edits.dismissed.iter().filter(|id| known(id).is_some());
    let dismissed = dismissed.map(|id| StatusEvent::IdeaDismissed { from, idea: id.clone() });
    Ok(kept.chain(dismissed).map(Event::Status).collect())
}

/// Parses a value that was checked when it was recorded.
fn parsed(text: &str) -> Json {
    Json::parse(text).unwrap_or_else(|_| Json::null())
}
