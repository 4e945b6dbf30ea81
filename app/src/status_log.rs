//! The log, for commands that use the status files while no daemon runs. A daemon that was killed may have answered changes that are
//! only in its log. A command that started from the files then would undo these changes, so the files follow the log first.
//!
//! ```text
//! the daemon starts: note_log ──► ends in order: forget_log
//!                        │
//!                        └─ killed ──► the next command: read the log, compare, write the files, forget_log
//! ```
//!
//! The log is read and never changed. What other programs have written into the files stays there, as a difference to the copies of
//! what the log says (`.hatchery/shown/`), and the next daemon takes it in.

use crate::clock;
use crate::config::{Config, Flags};
use crate::engine::{EngineError, snapshot};
use crate::project::Project;
use crate::report::{Code, Context as _, Report};
use crate::shared_file::{FileAsRead, Update};
use crate::state_file::{self, FileContent, FileFound, HeldFolder, StatusFolder, read_settled};
use crate::status_view::StatusView;
use crate::store::{self, Store, StoreUrl};
use hatchery_core::idea_inbox::IdeaInbox;
use hatchery_core::status::StatusDocument;
use hatchery_core::status::foreign::{FileEdits, InboxEdits, Writer, WrittenVersions};
use hatchery_core::status::kept::LAST_UPDATED;
use hatchery_core::{Command, Event, EventId, World};
use std::fs::Metadata;
use std::path::PathBuf;

/// The files as they should be, from the log of a daemon that was killed. One that cannot be read does not keep the other back.
pub(crate) struct Followed {
    pub state: Result<FollowedFile<StatusDocument>, Report>,
    pub inbox: Result<FollowedFile<IdeaInbox>, Report>,
}

pub(crate) struct FollowedFile<C> {
    /// What the log says.
    log: C,
    /// The same with what others have changed in the file.
    pub content: C,
    found: Bytes,
    /// The file before it was read.
    replaced: Option<Metadata>,
    /// All that differs from the log is an edit. Otherwise the next daemon compares the file as that of any other program.
    is_settled: bool,
    /// The file shows it already.
    is_true: bool,
}

/// What is at the path of a file.
enum Bytes {
    Missing,
    Damaged,
    Parsed(Vec<u8>),
}

impl Followed {
    /// Reads the log, if the last daemon was killed. Changes nothing.
    pub fn read(project: &Project, folder: &StatusFolder) -> Result<Option<Self>, Report> {
        // A log that came from elsewhere is not opened before the user has said so.
        let Some(store) = folder.log_ahead().filter(|_| project.foreign().is_none()) else { return Ok(None) };
        let Some(log) = LogStatus::read(project, folder, &store).map_err(unread)? else { return Ok(None) };
        Ok(Some(Self { state: follow_state(project, folder, &log), inbox: follow_inbox(folder, &log) }))
    }

    /// Writes the files, and notes where damaged ones are kept. The log stays noted until both files show it. False if another program
    /// has written a file since it was read: then all of this is to be done again.
    pub fn write(
        self,
        folder: &StatusFolder,
        held: &HeldFolder,
        update: &mut Update,
        aside: &mut Vec<PathBuf>,
    ) -> Result<bool, Report> {
        let is_whole = self.state.is_ok() && self.inbox.is_ok();
        // The daemon that was killed may have left half a copy.
        folder.sweep();
        if let Ok(mut state) = self.state {
            if !state.is_true {
                let now = clock::written(clock::now());
                state.content.set(LAST_UPDATED, now.as_str());
                state.log.set(LAST_UPDATED, now.as_str());
            }
            if !state.write(folder, held, update, aside)? {
                return Ok(false);
            }
        }
        if let Ok(inbox) = self.inbox
            && !inbox.write(folder, held, update, aside)?
        {
            return Ok(false);
        }
        if is_whole {
            folder.forget_log();
        }
        Ok(true)
    }
}

impl<C: FileContent> FollowedFile<C> {
    /// Writes the file, unless another program has written it since it was read. The copy comes after the file: a file that is older than
    /// its copy would be taken for an edit. If the command is killed in between, the next one does the same again.
    fn write(
        &self,
        folder: &StatusFolder,
        held: &HeldFolder,
        update: &mut Update,
        aside: &mut Vec<PathBuf>,
    ) -> Result<bool, Report> {
        let mut found = None;
        match &self.found {
            Bytes::Damaged if !self.is_true => aside.push(held.set_aside::<C>()?),
            Bytes::Parsed(bytes) if self.is_true && self.is_settled => {
                folder.sign(C::FILE, bytes).unwrap_or_default();
            }
            Bytes::Parsed(bytes) => found = FileAsRead::of(self.replaced.as_ref(), Some(bytes)),
            Bytes::Damaged | Bytes::Missing => {}
        }
        let is_put = self.is_true || held.put::<C>(self.content.text().as_bytes(), self.is_settled, found, update)?;
        if is_put {
            let copied = folder.copy_shown(C::FILE, self.log.text().as_bytes());
            copied.map_err(|error| Report::failed(format_args!("what the log says cannot be copied: {error}")))?;
        }
        Ok(is_put)
    }
}

fn follow_state(
    project: &Project,
    folder: &StatusFolder,
    log: &LogStatus,
) -> Result<FollowedFile<StatusDocument>, Report> {
    let (world, view) = (&log.world, StatusView::new(project));
    let (replaced, bytes, found) = found::<StatusDocument>(folder)?;
    let last = folder.last_known::<StatusDocument>(log.took_state);
    let written = last
        .as_ref()
        .map_or_else(WrittenVersions::default, |(_, file)| WrittenVersions::begun(world, file, clock::now()));
    let (is_last, is_ours) = origin(folder, &bytes, last.as_ref());
    let edits = match &found {
        Some(found) if !is_last => written.edits(world, found, writer(is_ours)),
        Some(_) | None => written.unchanged(),
    };
    let mut then = world.clone();
    take(&mut then, &take_status(&edits))?;
    let found = found.unwrap_or_default();
    let settled = edits.settled(&found, &view.shown(&then));
    let content = settled.map_err(|error| Report::failed(error).hint("`hatchery up` says more"))?;
    let mut log = view.shown(world);
    if let Some(at) = found.words(LAST_UPDATED) {
        log.set(LAST_UPDATED, at.as_str());
    }
    Ok(FollowedFile { is_true: found == content, log, content, found: bytes, replaced, is_settled: true })
}

fn follow_inbox(
    folder: &StatusFolder,
    LogStatus { world, took_inbox, .. }: &LogStatus,
) -> Result<FollowedFile<IdeaInbox>, Report> {
    let (replaced, bytes, found) = found::<IdeaInbox>(folder)?;
    let last = folder.last_known::<IdeaInbox>(*took_inbox);
    let mut written = WrittenVersions::<IdeaInbox>::default();
    if let Some((_, file)) = &last {
        written.wrote(file, clock::now());
    }
    let (is_last, is_ours) = origin(folder, &bytes, last.as_ref());
    let log = world.status().inbox();
    let mut then = world.clone();
    if let Some(found) = found.as_ref().filter(|_| !is_last) {
        take(&mut then, &Command::TakeInboxEdits { edits: written.edits(&log, found, writer(is_ours)) })?;
    }
    let found = found.unwrap_or_default();
    let content = InboxEdits::settled(&found, &then.status().inbox());
    // Ideas survive everything: one that another program has left out is not removed by the command that comes next.
    Ok(FollowedFile { is_true: found == content, log, content, found: bytes, replaced, is_settled: is_ours })
}

/// The command that takes in what others have changed in the document.
pub(crate) fn take_status(edits: &FileEdits) -> Command {
    let ids = edits.build_events.iter().cloned().map(|event| (clock::new_named_id("event"), event));
    Command::TakeStatusEdits { edits: edits.edits.clone(), build_events: ids.collect() }
}

fn take(world: &mut World, command: &Command) -> Result<(), Report> {
    hatchery_core::step(world, command, clock::now()).map(drop).map_err(Report::failed)
}

fn found<C: FileContent>(folder: &StatusFolder) -> Result<(Option<Metadata>, Bytes, Option<C>), Report> {
    let path = folder.path().join(C::FILE);
    let (replaced, found) = (state_file::known(&path), read_settled::<C>(&path)?);
    state_file::refuse_link(&path, replaced.as_ref())?;
    Ok(match found {
        FileFound::Content { content, bytes } => (replaced, Bytes::Parsed(bytes), Some(content)),
        FileFound::Missing => (replaced, Bytes::Missing, None),
        FileFound::Unparseable(_) => (replaced, Bytes::Damaged, None),
    })
}

/// Whether a file is the one that the daemon wrote last, and whether it comes from daemons and commands alone.
fn origin<C: FileContent>(folder: &StatusFolder, found: &Bytes, last: Option<&(Vec<u8>, C)>) -> (bool, bool) {
    match found {
        Bytes::Missing | Bytes::Damaged => (false, true),
        Bytes::Parsed(found) => {
            let is_last = last.is_some_and(|(last, _)| last == found);
            (is_last, is_last || folder.is_from_us(C::FILE, found))
        }
    }
}

fn writer(is_ours: bool) -> Writer {
    if is_ours { Writer::Command } else { Writer::Another }
}

/// What the log says.
struct LogStatus {
    world: World,
    /// The edits that are in the file now were taken in.
    took_state: bool,
    took_inbox: bool,
}

impl LogStatus {
    /// None if there is no log any more.
    fn read(project: &Project, folder: &StatusFolder, noted: &str) -> Result<Option<Self>, Report> {
        let url = match noted.parse::<StoreUrl>().context("the note about the log cannot be read")? {
            StoreUrl::Sqlite(path) if !path.exists() => return Ok(None),
            url @ StoreUrl::Sqlite(_) => url,
            // The note has no password.
            StoreUrl::Postgres(_) => {
                let configured = Config::resolve(project, &Flags::default())?.store;
                if configured.to_string() != noted {
                    let what = format!("it is in {noted}, and the settings name {configured}");
                    return Err(Report::failed(what));
                }
                configured
            }
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.context("no runtime")?;
        let store = store::open_as_is(&url, runtime.handle()).map_err(Report::failed)?;
        Self::fold(folder, store.as_ref()).map(Some).map_err(Report::failed)
    }

    fn fold(folder: &StatusFolder, store: &dyn Store) -> Result<Self, EngineError> {
        let mut world = snapshot::restore(store)?;
        snapshot::fold(store, &mut world, |_, _| {})?;
        let took_state = took::<StatusDocument>(folder, store, world.head())?;
        let took_inbox = took::<IdeaInbox>(folder, store, world.head())?;
        Ok(Self { world, took_state, took_inbox })
    }
}

/// Whether the log has the edits that are in a file.
fn took<C: FileContent>(folder: &StatusFolder, store: &dyn Store, head: EventId) -> Result<bool, EngineError> {
    let Some(after) = folder.taking::<C>() else { return Ok(false) };
    let mut is_taken = false;
    snapshot::read_between(store, after, head, |record| {
        is_taken |= matches!(&record.event, Event::Status(event) if C::is_taken(event));
    })?;
    Ok(is_taken)
}

fn unread(report: Report) -> Report {
    let what =
        format!("the last daemon was killed, and what it answered cannot be read from its log: {}", report.message);
    Report::new(Code::Unreachable, what).hint("start it again with `hatchery up`; nothing was changed")
}
