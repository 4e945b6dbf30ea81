//! Finds what another program has changed in a status file. Such a program reads the file, changes something and writes the whole file
//! back, and Hatchery may have changed the file in the meantime. So a difference is either an edit, or comes from a copy of an older
//! version that Hatchery wrote:
//!
//! 1. The version that the program has read is searched among those that Hatchery wrote lately: the one with the same `lastUpdated`, otherwise
//!    the most similar one, and the newest of several.
//! 2. Only a difference from that version is an edit. All other values are as Hatchery wrote them; newer values are written again.
//! 3. A missing value counts as removed only if the file is otherwise current. A new file removes nothing.

use super::kept::{BUILD_EVENTS, KeptStatus, LAST_UPDATED, MAX_KEPT_VALUE_BYTES};
use super::merge::difference;
use super::quest_events;
use super::quest_view::{self, QuestView};
use super::{Edit, EditError, Json, Object, Path, Segment, StatusDocument};
use crate::build_event::{self, MAX_EVENTS_IN_DOCUMENT};
use crate::build_run::{BuildRun, RunStatus};
use crate::event::FieldEdit;
use crate::idea_inbox::{Idea, IdeaInbox};
use crate::{Timestamp, World};
use std::collections::VecDeque;

/// How long a version is recognised after it was replaced, in milliseconds. If a program holds a copy for longer, its differences count as
/// edits.
const RECENT_MS: i64 = 10 * 60 * 1_000;
/// The most versions of a file that are recognised.
const MAX_VERSIONS: usize = 256;
/// The most bytes of all recognised versions of a file.
const MAX_VERSIONS_BYTES: usize = 4 * 1024 * 1024;
/// The most values of `lastUpdated` that are remembered for one version.
const MAX_STAMPS: usize = 32;
/// Fields that stay even if a program forgets to write them back. Only an explicit `null` clears them.
const OUTLIVING: [&str; 2] = [RUN, "chunkProgress"];
const RUN: &str = "buildRun";

/// The fields of a document that stay even if a program forgets to write them back.
pub fn outliving(document: &StatusDocument) -> StatusDocument {
    let mut kept = StatusDocument::default();
    for name in OUTLIVING {
        if let Some(value) = document.field(name) {
            kept.set(name, value.clone());
        }
    }
    kept
}

/// Whether a document has no field for the build run, not even `null`.
pub fn lacks_run(document: &StatusDocument) -> bool {
    !document.fields().iter().any(|(name, _)| name == RUN)
}

/// Adds the build run that a program has left out to a document. A document with a field for the build run does not change. True if
/// something was added.
pub fn restore(document: &mut StatusDocument, kept: &StatusDocument) -> bool {
    let is_over = |run: BuildRun| run.status == RunStatus::Completed;
    if !lacks_run(document) || BuildRun::read(kept).is_none_or(is_over) {
        return false;
    }
    for name in OUTLIVING {
        if let Some(value) = kept.field(name) {
            document.set(name, value.clone());
        }
    }
    true
}

/// The versions of a file that Hatchery wrote lately. They contain what is in the log.
#[derive(Clone, Debug)]
pub struct WrittenVersions<T> {
    /// The newest last.
    versions: VecDeque<ContentVersion<T>>,
}

#[derive(Clone, Debug)]
struct ContentVersion<T> {
    content: T,
    bytes: usize,
    /// The `lastUpdated` of the files that had this content, the newest last.
    stamps: VecDeque<String>,
    replaced: Option<Timestamp>,
}

/// The writer of a file that differs from the newest version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// A program that may have read any version.
    Another,
    /// A command of Hatchery that changed the newest version while no daemon ran. It has removed every value that is missing.
    Command,
}

/// What another program has changed in the status document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileEdits {
    pub edits: Vec<FieldEdit>,
    /// New build events, as JSON objects. Some may have no id.
    pub build_events: Vec<Json>,
    /// The version of Hatchery that the program has read.
    base: StatusDocument,
}

/// What another program has changed in the idea inbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InboxEdits {
    /// New and changed items, the oldest first.
    pub kept: Vec<(String, Json)>,
    pub dismissed: Vec<String>,
}

impl<T> Default for WrittenVersions<T> {
    fn default() -> Self {
        Self { versions: VecDeque::new() }
    }
}

impl<T: Clone + Default + PartialEq> WrittenVersions<T> {
    fn newest(&self) -> Option<&T> {
        self.versions.back().map(|version| &version.content)
    }

    fn note(&mut self, content: T, bytes: usize, stamp: Option<String>, now: Timestamp) {
        if self.newest() != Some(&content) {
            if let Some(last) = self.versions.back_mut() {
                last.replaced = Some(now);
            }
            self.versions.push_back(ContentVersion { content, bytes, stamps: VecDeque::new(), replaced: None });
        }
        if let (Some(stamp), Some(newest)) = (stamp, self.versions.back_mut()) {
            newest.stamps.push_back(stamp);
            if newest.stamps.len() > MAX_STAMPS {
                newest.stamps.pop_front();
            }
        }
        let is_old =
            |version: &ContentVersion<T>| version.replaced.is_some_and(|at| now.0.saturating_sub(at.0) > RECENT_MS);
        let mut bytes: usize = self.versions.iter().map(|version| version.bytes).sum();
        while self.versions.len() > 1
            && (self.versions.len() > MAX_VERSIONS
                || bytes > MAX_VERSIONS_BYTES
                || self.versions.front().is_some_and(is_old))
        {
            bytes -= self.versions.pop_front().map_or(0, |version| version.bytes);
        }
    }

    /// The most similar version, and its index. If several are equally similar, the newest.
    fn nearest<'a>(
        among: impl DoubleEndedIterator<Item = (usize, &'a ContentVersion<T>)>,
        distance: impl Fn(&T) -> usize,
    ) -> Option<(usize, &'a T)>
    where
        T: 'a,
    {
        // `min_by_key` returns the first of several minima, so the newest must come first.
        among.rev().min_by_key(|(_, version)| distance(&version.content)).map(|(at, version)| (at, &version.content))
    }
}

impl WrittenVersions<StatusDocument> {
    /// Starts with the file of an earlier daemon. Values that the log could not take are not from Hatchery.
    pub fn begun(world: &World, file: &StatusDocument, now: Timestamp) -> Self {
        let shown = quest_view::shown(world);
        let mut ours = file.clone();
        for edit in difference(&shown, file) {
            if let Edit::Set { path, value } = edit
                && !is_takeable(&path, &value)
            {
                put(&mut ours, &path, shown.get(&path));
            }
        }
        let mut written = Self::default();
        written.wrote(&ours, file, now);
        written
    }

    /// Notes that the file shows the log now. `file` may contain more than the log.
    pub fn wrote(&mut self, shown: &StatusDocument, file: &StatusDocument, now: Timestamp) {
        let facts = facts(shown);
        let bytes = facts.iter().map(|(name, value)| name.len() + value.text().len()).sum();
        self.note(StatusDocument::of(facts), bytes, file.words(LAST_UPDATED), now);
    }

    /// Notes that edits of another program were taken. In a copy of any version, they are not new.
    pub fn took(&mut self, edits: &FileEdits, shown: &StatusDocument) {
        for version in &mut self.versions {
            // The stored versions have no build events.
            for edit in edits.edits.iter().filter(|edit| !is_field(&edit.path, BUILD_EVENTS)) {
                put(&mut version.content, &edit.path, shown.get(&edit.path));
            }
        }
    }

    /// The result for a file whose content Hatchery wrote last.
    pub fn unchanged(&self) -> FileEdits {
        FileEdits { base: self.newest().cloned().unwrap_or_default(), ..FileEdits::default() }
    }

    /// The edits in the file.
    pub fn edits(&self, world: &World, found: &StatusDocument, writer: Writer) -> FileEdits {
        let facts = StatusDocument::of(facts(found));
        let newest = self.versions.len().saturating_sub(1);
        let stamp = found.words(LAST_UPDATED);
        let stamped: Vec<_> = self
            .versions
            .iter()
            .enumerate()
            .filter(|(_, version)| stamp.as_ref().is_some_and(|stamp| version.stamps.contains(stamp)))
            .collect();
        // Whether missing values were removed.
        let is_whole = writer == Writer::Command || (facts.fields().is_empty() && stamped.is_empty());
        let distance = |version: &StatusDocument| difference(version, &facts).len();
        let read = match (is_whole, stamped.is_empty()) {
            // A program that starts a session with an empty file replaces the newest version as a whole.
            (true, _) => self.newest().map(|base| (newest, base)),
            (false, false) => Self::nearest(stamped.iter().copied(), distance),
            (false, true) => Self::nearest(self.versions.iter().enumerate(), distance),
        };
        let log = quest_view::shown(world);
        let (base, is_current) = match read {
            Some((at, base)) => {
                let is_current = is_whole || !stamped.is_empty() || (at == newest && agrees(base, &facts));
                (base.clone(), is_current)
            }
            // Nothing is known about the file, so missing values mean nothing.
            None => (StatusDocument::of(self::facts(&log)), false),
        };
        let taken = |edit: &FieldEdit| {
            let name = edit.path.segments().first().map_or("", Segment::as_str);
            let value = edit.value.as_deref().unwrap_or_default();
            let is_removable = is_null(&facts, &edit.path)
                || (is_current && !(edit.path.segments().len() == 1 && OUTLIVING.contains(&name)));
            value.len() <= MAX_KEPT_VALUE_BYTES
                && (edit.value.is_some() || is_removable)
                && edit.path.is_writable()
                && QuestView::owner(world, &edit.path).is_none()
        };
        let mut edits: Vec<FieldEdit> =
            difference(&base, &facts).into_iter().filter_map(FieldEdit::of).filter(taken).collect();
        // An old copy has an old time. If a current file has no events, the program has removed them.
        let is_last = match stamped.is_empty() {
            true => is_current,
            false => self.versions.back().and_then(|version| version.stamps.back()) == stamp.as_ref(),
        };
        let events = Path::field(BUILD_EVENTS);
        if is_last && log.field(BUILD_EVENTS).is_some() && is_null(found, &events) {
            edits.extend(FieldEdit::of(Edit::Clear { path: events }));
        }
        let build_events = match log.field(BUILD_EVENTS) == found.field(BUILD_EVENTS) {
            true => Vec::new(),
            false => new_events(world.status(), found),
        };
        FileEdits { edits, build_events, base }
    }
}

impl FileEdits {
    pub fn is_empty(&self) -> bool {
        self.edits.is_empty() && self.build_events.is_empty()
    }

    /// The content that the file should have: the log, and values of other programs that the log did not take.
    pub fn settled(&self, found: &StatusDocument, shown: &StatusDocument) -> Result<StatusDocument, EditError> {
        let mut settled = found.clone();
        let extended = with_untaken_events(shown, found);
        let shown = extended.as_ref().unwrap_or(shown);
        for edit in difference(found, shown) {
            let is_theirs = match &edit {
                Edit::Clear { path } => {
                    is_field(path, LAST_UPDATED) || (!is_field(path, BUILD_EVENTS) && self.base.get(path).is_none())
                }
                // A value of another program stays until Hatchery sets the field itself.
                Edit::Set { path, .. } => {
                    found.get(path).is_some_and(|value| !is_takeable(path, &value))
                        && !is_field(path, BUILD_EVENTS)
                        && self.base.get(path) == shown.get(path)
                }
                Edit::Merge { .. } | Edit::Increment { .. } | Edit::Append { .. } => false,
            };
            if !is_theirs {
                settled.apply(&edit)?;
            }
        }
        Ok(settled)
    }
}

impl WrittenVersions<IdeaInbox> {
    /// Notes that the file shows the log now.
    pub fn wrote(&mut self, shown: &IdeaInbox, now: Timestamp) {
        let bytes = shown.to_json().text().len();
        self.note(shown.clone(), bytes, None, now);
    }

    /// Notes that edits of another program were taken.
    pub fn took(&mut self, edits: &InboxEdits, shown: &IdeaInbox) {
        let named: Vec<&String> = edits.kept.iter().map(|(id, _)| id).chain(&edits.dismissed).collect();
        let now: Vec<Idea> = shown.items().into_iter().filter(|item| named.contains(&&item.id)).collect();
        for version in &mut self.versions {
            let others = version.content.items().into_iter().filter(|item| !named.contains(&&item.id));
            version.content = IdeaInbox::of(now.iter().cloned().chain(others).map(|item| item.body).collect());
        }
    }

    /// The edits in the file.
    pub fn edits(&self, shown: &IdeaInbox, found: &IdeaInbox, writer: Writer) -> InboxEdits {
        let after = found.items();
        let same = |one: &Idea, other: &Idea| one.id == other.id && one.body == other.body;
        let distance = |version: &IdeaInbox| {
            let before = version.items();
            let gone = before.iter().filter(|item| !after.iter().any(|found| found.id == item.id)).count();
            gone + after.iter().filter(|item| !before.iter().any(|known| same(known, item))).count()
        };
        let newest = self.versions.iter().enumerate().next_back();
        // An empty list may be a new file or an old copy. But if there was only one idea, another program has removed it.
        let is_last = after.is_empty() && newest.is_some_and(|(_, version)| version.content.items().len() == 1);
        let read = match writer {
            Writer::Another if !is_last => Self::nearest(self.versions.iter().enumerate(), distance),
            Writer::Another | Writer::Command => newest.map(|(at, version)| (at, &version.content)),
        };
        let is_newest = read.is_some_and(|(at, _)| at + 1 == self.versions.len());
        let before = read.map_or_else(|| shown.items(), |(_, base)| base.items());
        let known = |item: &Idea| before.iter().find(|known| known.id == item.id);
        let kept = after.iter().rev().filter(|item| known(item).is_none_or(|known| known.body != item.body));
        // Ideas should not get lost. So an idea is removed only if the program evidently knew the newest inbox.
        let agrees = || {
            is_last
                || (after.iter().any(|item| known(item).is_some())
                    && after.iter().all(|item| known(item).is_none_or(|known| known.body == item.body)))
        };
        let is_current = is_newest && (writer == Writer::Command || agrees());
        let gone = before.iter().filter(|item| is_current && !after.iter().any(|found| found.id == item.id));
        InboxEdits {
            kept: kept.map(|item| (item.id.clone(), item.body.clone())).collect(),
            dismissed: gone.map(|item| item.id.clone()).collect(),
        }
    }
}

impl InboxEdits {
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty() && self.dismissed.is_empty()
    }

    /// The content that the file should have: the ideas of the log, and items of other programs that the log cannot take.
    pub fn settled(found: &IdeaInbox, shown: &IdeaInbox) -> IdeaInbox {
        let known = shown.items();
        let is_left = |item: &Idea| {
            item.body.text().len() > MAX_KEPT_VALUE_BYTES && !known.iter().any(|known| known.id == item.id)
        };
        let left: Vec<Json> = found.items().into_iter().filter(is_left).map(|item| item.body).collect();
        found.updated(shown).and(left)
    }
}

/// The fields without the time and the build events, which are compared differently.
fn facts(document: &StatusDocument) -> Object {
    let mut facts = document.fields().clone();
    facts.remove(LAST_UPDATED);
    facts.remove(BUILD_EVENTS);
    facts
}

fn is_field(path: &Path, name: &str) -> bool {
    path.segments() == [name]
}

/// Whether the log can take a value.
fn is_takeable(path: &Path, value: &Json) -> bool {
    value.text().len() <= MAX_KEPT_VALUE_BYTES && path.is_writable()
}

/// Whether both have fields in common, and all common fields agree.
fn agrees(base: &StatusDocument, found: &StatusDocument) -> bool {
    let mut common = found.fields().iter().filter_map(|(name, value)| Some((base.field(name)?, value))).peekable();
    let object = |json: &Json| json.object().map(StatusDocument::of);
    common.peek().is_some()
        && common.all(|(known, value)| match (object(known), object(value)) {
            // Fields inside an object may be missing.
            (Some(known), Some(value)) => {
                difference(&known, &value).iter().all(|edit| matches!(edit, Edit::Clear { .. }))
            }
            _ => value.is_null() || known == value,
        })
}

/// Whether a path is written with `null`.
fn is_null(document: &StatusDocument, path: &Path) -> bool {
    let Some((name, way)) = path.segments().split_last() else { return false };
    let parent =
        way.iter().try_fold(document.fields().clone(), |object, segment| object.get(segment.as_str())?.object());
    parent.is_some_and(|parent| parent.iter().any(|(known, value)| *name == known && value.is_null()))
}

/// Sets or clears the value at a path. Does nothing if the path does not fit the document.
fn put(document: &mut StatusDocument, path: &Path, value: Option<Json>) {
    let edit = match value {
        Some(value) => Edit::Set { path: path.clone(), value },
        None if document.get(path).is_none() => return,
        None => Edit::Clear { path: path.clone() },
    };
    document.apply(&edit).unwrap_or_default();
}

/// The events that another program has added.
fn new_events(kept: &KeptStatus, found: &StatusDocument) -> Vec<Json> {
    let known = kept.known_events();
    let is_known = |event: &Json| {
        event.object().is_some_and(|event| match build_event::id_of(&event) {
            Some(id) => known.has(&id) || quest_events::is_made(&id),
            None => known.has_copy_of(&event),
        })
    };
    let events = found.field(BUILD_EVENTS).and_then(Json::list).unwrap_or_default();
    // Events before a known event are older. If the log has dropped old events, they were among those.
    let from = events.iter().position(is_known).filter(|_| known.is_full).unwrap_or_default();
    events.into_iter().skip(from).filter(|event| build_event::is_takeable(event) && !is_known(event)).collect()
}

/// The build events of the log, and the entries of the file that the log cannot take. None if there are no such entries.
fn with_untaken_events(shown: &StatusDocument, found: &StatusDocument) -> Option<StatusDocument> {
    let events = found.field(BUILD_EVENTS).and_then(Json::list).unwrap_or_default();
    let untaken = events.into_iter().filter(|event| !build_event::is_takeable(event)).take(MAX_EVENTS_IN_DOCUMENT);
    let untaken: Vec<Json> = untaken.collect();
    let mut all = shown.field(BUILD_EVENTS).and_then(Json::list).unwrap_or_default();
    let mut shown = (!untaken.is_empty()).then(|| shown.clone())?;
    all.extend(untaken);
    shown.set(BUILD_EVENTS, Json::of_list(&all));
    Some(shown)
}
