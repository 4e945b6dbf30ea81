//! What the files of the status protocol hold, and how one is read that another program may be writing just now.

use super::read_bounded;
use crate::clock;
use crate::report::Report;
use hatchery_core::event::{StatusEvent, StatusSource};
use hatchery_core::idea_inbox::{IdeaInbox, InboxError};
use hatchery_core::status::{EditError, MAX_DOCUMENT_BYTES, StatusDocument};
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a file that does not parse is read again before it is set aside. Writing one takes milliseconds, but a busy machine may suspend
/// the writer.
pub(crate) const WRITER_PATIENCE: Duration = Duration::from_secs(1);
pub(crate) const WRITER_PAUSE: Duration = Duration::from_millis(5);

/// What one of the files holds.
pub(crate) trait FileContent: Sized + Default {
    const FILE: &'static str;
    /// Whether an event is an edit of another program that was taken in.
    fn is_taken(event: &StatusEvent) -> bool;
    /// Whether a change waits until the rename has reached the disk, too. Without that a loss of power can bring back the file of some
    /// seconds ago, whole.
    const SYNCS_RENAME: bool;
    fn parse(text: &str) -> Result<Self, String>;
    fn text(&self) -> String;
}

impl FileContent for StatusDocument {
    const FILE: &'static str = "state.json";

    fn is_taken(event: &StatusEvent) -> bool {
        match event {
            StatusEvent::Edited { from, .. } | StatusEvent::BuildEventRecorded { from, .. } => {
                *from == StatusSource::File
            }
            StatusEvent::IdeaKept { .. } | StatusEvent::IdeaDismissed { .. } => false,
        }
    }

    // It says what happens now, and hooks change it all the time. The wait would be longer than the rest of the change.
    const SYNCS_RENAME: bool = false;

    fn parse(text: &str) -> Result<Self, String> {
        Self::parse(text).map_err(|error: EditError| error.to_string())
    }

    fn text(&self) -> String {
        Self::text(self)
    }
}

impl FileContent for IdeaInbox {
    const FILE: &'static str = "inbox.json";

    fn is_taken(event: &StatusEvent) -> bool {
        match event {
            StatusEvent::IdeaKept { from, .. } | StatusEvent::IdeaDismissed { from, .. } => *from == StatusSource::File,
            StatusEvent::Edited { .. } | StatusEvent::BuildEventRecorded { .. } => false,
        }
    }

    const SYNCS_RENAME: bool = true;

    fn parse(text: &str) -> Result<Self, String> {
        Self::parse(text).map_err(|error: InboxError| error.to_string())
    }

    fn text(&self) -> String {
        Self::text(self)
    }
}

/// What is known of a file before it is read.
pub(crate) fn known(path: &Path) -> Option<Metadata> {
    std::fs::symlink_metadata(path).ok()
}

/// A link is left alone, like everything else that is no plain file: a rename would replace it, and what it leads to is not Hatchery's to
/// write, because a checkout may have brought the link.
pub(crate) fn refuse_link(path: &Path, known: Option<&Metadata>) -> Result<(), Report> {
    match known.is_some_and(Metadata::is_symlink) {
        true => {
            Err(Report::failed(format_args!("{} cannot be written: it is a symbolic link", path.display()))
                .hint(READABLE))
        }
        false => Ok(()),
    }
}

/// What is at the path of a file.
pub(crate) enum FileFound<C> {
    Content { content: C, bytes: Vec<u8> },
    Missing,
    Unparseable(String),
}

/// Reads a file, and again for a moment if it does not parse.
pub(crate) fn read_settled<C: FileContent>(path: &Path) -> Result<FileFound<C>, Report> {
    let deadline = Instant::now() + WRITER_PATIENCE;
    loop {
        let failed = |error: io::Error| {
            Report::failed(format_args!("{} cannot be read: {error}", path.display())).hint(READABLE)
        };
        let Some(bytes) = read_bounded(path, MAX_DOCUMENT_BYTES).map_err(failed)? else {
            return Ok(FileFound::Missing);
        };
        let parsed = std::str::from_utf8(&bytes).map_err(|error| error.to_string()).and_then(C::parse);
        match parsed {
            Ok(content) => return Ok(FileFound::Content { content, bytes }),
            Err(why) if Instant::now() > deadline => return Ok(FileFound::Unparseable(why)),
            Err(_) => std::thread::sleep(WRITER_PAUSE),
        }
    }
}

const READABLE: &str = "this path must be a readable regular file, or not exist; move away what is there";

/// Keeps a file under another name that says when.
pub(crate) fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let time: String = clock::written(clock::now()).chars().map(|char| if char == ':' { '-' } else { char }).collect();
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let named = (0..100_u32).map(|number| match number {
        0 => path.with_file_name(format!("{name}.corrupt-{time}")),
        number => path.with_file_name(format!("{name}.corrupt-{time}-{number}")),
    });
    let aside =
        named.into_iter().find(|aside| !aside.exists()).ok_or_else(|| io::Error::other("too many were set aside"))?;
    std::fs::rename(path, &aside)?;
    Ok(aside)
}
