//! The store keeps rows and does not know their meaning. Its two back ends, [`sqlite`] and [`postgres`], behave alike: one conformance
//! suite and one differential test run on both. No other module contains SQL.
//!
//! The calls block. The engine makes them on threads that may block; other code uses [`crate::engine::Handle`].

pub mod migration;
pub mod postgres;
pub mod sqlite;
mod sum;

use hatchery_core::history::HistoryRange;
use hatchery_core::{AgentId, EventId};
use std::fmt;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

/// One event as it is stored: its id, its stream, and its JSON without the id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub id: EventId,
    pub stream: String,
    pub body: String,
}

/// Events that were decided together, and what the decision depends on.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// The last event that the decision took into account.
    pub seen: EventId,
    /// The streams that the decision read. A later event of another writer in one of them is a conflict.
    pub reads: &'a [String],
    /// The rows to add, numbered from `seen + 1`. They are renumbered if other writers have appended in between without a conflict.
    pub rows: &'a [Row],
    /// The rows refer to each other by their ids, so they cannot be renumbered. Then any event in between is a conflict.
    pub fixed: bool,
}

/// Consecutive events that are all messages of one agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdRange {
    pub first: EventId,
    pub last: EventId,
}

/// The ids of the messages of each agent, among the events `after + 1 ..= upto`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageRanges {
    pub after: EventId,
    pub upto: EventId,
    pub of: Vec<(AgentId, Vec<IdRange>)>,
}

/// An encoded world. It is a cache: it can always be computed from the log again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The last event that was applied to the world.
    pub at: EventId,
    /// The version of the body's encoding. A program that does not know it reads the log instead.
    pub format: u32,
    pub checksum: u32,
    pub body: Vec<u8>,
}

/// Called when another writer may have appended, so that the log is read. It is called on a thread that drives connections, so it must not
/// block.
pub type AppendCallback = Arc<dyn Fn() + Send + Sync>;

/// Gets the id and the body of one row, and decides whether to continue.
pub type RowVisitor<'a> = &'a mut dyn FnMut(EventId, &str) -> ControlFlow<()>;

pub trait Store: Send + Sync + fmt::Debug {
    /// Brings the schema up to date. A schema that is newer than this program is refused and not changed.
    fn migrate(&self) -> Result<(), StoreError>;

    /// The last event of the log.
    fn head(&self) -> Result<EventId, StoreError>;

    /// Adds all rows of a batch, or none. The rows are durable when it returns. Returns the id of the first row.
    fn append(&self, batch: Batch<'_>) -> Result<EventId, StoreError>;

    /// The checksum of one event. None if the log does not have the event, or if a version without checksums wrote it.
    fn sum_of(&self, id: EventId) -> Result<Option<u32>, StoreError>;

    /// Passes up to `limit` rows after a position to `visit`, in order, until `visit` breaks. A row that differs from its checksum is not
    /// passed; the result is [`StoreError::Damaged`].
    fn read_after(&self, after: EventId, limit: usize, visit: RowVisitor<'_>) -> Result<(), StoreError>;

    /// The kept snapshots, the newest first.
    fn snapshots(&self) -> Result<Vec<Snapshot>, StoreError>;

    /// Writes a snapshot, deletes all but the newest [`SNAPSHOTS_KEPT`], and adds the ranges to the index, unless another process has
    /// indexed those events. An index that is not sound is emptied first. Returns the last event in the index.
    fn checkpoint(&self, snapshot: &Snapshot, ranges: &MessageRanges) -> Result<EventId, StoreError>;

    /// The last event in the index. None if the index is not sound: its row contradicts itself, or names an event after the end of the log.
    fn indexed(&self) -> Result<Option<EventId>, StoreError>;

    /// Passes all messages of the ranges of a history to `visit` as they arrive: those in the index, and those in `recent`, which the
    /// caller adds. They are not in order, and a message that is in both comes twice. Checksums are compared as in `read_after`.
    fn read_parts(&self, parts: &[HistoryRange], recent: &[IdRange], visit: RowVisitor<'_>) -> Result<(), StoreError>;

    /// Replaces all snapshots and the whole index by a snapshot and ranges that were computed from the whole log: everything at once, or
    /// nothing. False, without a change, if the index is sound and contains more events by now.
    fn rebuild(&self, snapshot: &Snapshot, ranges: &MessageRanges) -> Result<bool, StoreError>;

    /// Searches for damage: broken pages, a broken schema, rows that differ from their checksums. Returns a sentence for each finding, and
    /// for at most [`FINDINGS_SHOWN`] rows.
    fn check(&self) -> Result<Vec<String>, StoreError>;

    /// What has happened to the files of the store, if their paths no longer lead to the open files. Data that are written then are lost.
    /// None for a server, which manages its own files.
    fn lost(&self) -> Option<String> {
        None
    }

    /// Whether other processes may append, too. An append to a store that is not shared takes one sync and no network, so any thread may do
    /// it.
    fn is_shared(&self) -> bool;

    /// Writes a copy of everything to a new SQLite file. False, without a file, if the data are on a server.
    fn copy_to(&self, _path: &Path) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// Registers a callback for the appends of other writers. A store with one writer never calls it.
    fn on_foreign_append(&self, notify: AppendCallback);
}

/// How many snapshots are kept: the newest, and the one before it in case the newest is damaged.
pub const SNAPSHOTS_KEPT: usize = 2;

/// How many rows [`Store::check`] names one by one. The others are only counted.
pub const FINDINGS_SHOWN: usize = 20;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another writer has changed a stream that the decision depends on: decide again.
    #[error("another writer changed what this decision rests on")]
    Conflict,
    /// Nothing was written. A later attempt may succeed.
    #[error("the store cannot be reached: {0}")]
    Unavailable(String),
    /// Nothing was written: the disk is full.
    #[error("no space is left for the store: {0}")]
    Full(String),
    /// Nothing was written: the store is read-only.
    #[error("the store cannot be written: {0}")]
    ReadOnly(String),
    /// Nothing was recorded: the files of the store, or the whole data folder, were deleted or replaced.
    #[error("{0}")]
    Gone(String),
    /// Nothing was written: the server's certificate was not accepted.
    #[error("the server of the store is not trusted: {0}")]
    Untrusted(String),
    /// It is not known whether the rows were written. The log must be read before anything else is done.
    #[error("it is not known whether this was recorded: {0}")]
    Unknown(String),
    #[error("the store was written by a newer Hatchery (schema `{found}`); this one knows up to `{known}`")]
    NewerSchema { found: String, known: &'static str },
    #[error("the store is damaged: {0}")]
    Damaged(String),
    #[error("the store failed: {0}")]
    Broken(String),
}

/// Where the store is: `sqlite:PATH`, a path alone, or `postgres://…`.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreUrl {
    Sqlite(PathBuf),
    Postgres(String),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAStore {
    #[error("`{0}` is not a store: use sqlite:PATH or postgres://USER@HOST/DATABASE")]
    Unknown(String),
    #[error("the store `{0}` cannot be used: {1}")]
    Encryption(String, &'static str),
}

impl FromStr for StoreUrl {
    type Err = NotAStore;

    fn from_str(text: &str) -> Result<Self, NotAStore> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            let url = Self::Postgres(text.to_owned());
            return match postgres::check(text) {
                Ok(()) => Ok(url),
                Err(postgres::UrlError::Malformed(_)) => Err(NotAStore::Unknown(url.to_string())),
                Err(postgres::UrlError::Encryption(why)) => Err(NotAStore::Encryption(url.to_string(), why)),
            };
        }
        let path = text.strip_prefix("sqlite:").unwrap_or(text);
        match path {
            "" => Err(NotAStore::Unknown(without_secrets(text))),
            // A mistyped URL must not become the name of a file.
            _ if path.contains("://") || path.to_lowercase().starts_with("postgres") || has_password(path) => {
                Err(NotAStore::Unknown(without_secrets(text)))
            }
            _ => Ok(Self::Sqlite(PathBuf::from(path))),
        }
    }
}

/// Whether a text looks like the address of a database with a password, without its scheme: `user:word@host`, `password=word`.
fn has_password(text: &str) -> bool {
    let before_host = text.split_once('@').is_some_and(|(user, _)| user.contains(':'));
    before_host || text.to_lowercase().contains("password")
}

/// The text for an error, without a possible password: a text that is not a store may be a mistyped URL.
fn without_secrets(text: &str) -> String {
    let is_secret = text.contains(['@', '?', '=']) || text.to_lowercase().contains("password");
    match is_secret {
        true => format!("{}…", text.chars().take_while(char::is_ascii_alphabetic).collect::<String>()),
        false => text.to_owned(),
    }
}

/// Without the password, because this is printed by `status` and written to logs.
impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(url) => {
                // The first `@` ends the user and the password, as in the client library. If a password or a parameter may contain an
                // unescaped `@`, everything that could be a part of it is left out.
                let (scheme, rest) = url.split_once("://").unwrap_or(("postgres", url));
                let (user, host) = match rest.split_once('@') {
                    Some((user, host)) if user.contains('?') || host.contains('@') => (user, "…"),
                    Some(both) => both,
                    None => ("", rest),
                };
                let user = user.split([':', '/', '?']).next().unwrap_or_default();
                let host = host.split('?').next().unwrap_or_default();
                let at = if user.is_empty() { "" } else { "@" };
                write!(f, "{scheme}://{user}{at}{host}")
            }
        }
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Opens a store and brings its schema up to date. `runtime` drives the connections of the shared store.
pub fn open(url: &StoreUrl, runtime: &tokio::runtime::Handle) -> Result<Arc<dyn Store>, StoreError> {
    let store = open_as_is(url, runtime)?;
    store.migrate()?;
    Ok(store)
}

/// Opens a store for reading: the schema is not changed, because a daemon may be starting.
pub fn open_as_is(url: &StoreUrl, runtime: &tokio::runtime::Handle) -> Result<Arc<dyn Store>, StoreError> {
    Ok(match url {
        StoreUrl::Sqlite(path) => Arc::new(sqlite::Sqlite::open(path)?),
        StoreUrl::Postgres(url) => Arc::new(postgres::Postgres::open(url, runtime.clone())?),
    })
}

/// The state of a store, from [`inspect`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreStatus {
    pub head: EventId,
    /// How many migrations have not been applied yet.
    pub pending: usize,
}

/// Reads the state of a store and changes nothing, not even its schema. Fails if the store could not be opened.
pub fn inspect(url: &StoreUrl, runtime: &tokio::runtime::Handle) -> Result<StoreStatus, StoreError> {
    match url {
        StoreUrl::Sqlite(path) => sqlite::inspect(path),
        StoreUrl::Postgres(url) => postgres::Postgres::open(url, runtime.clone())?.inspect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        for url in ["postgres://ann:secret@host:5/db?password=secret", "postgresql://ann:secret@host:5/db"] {
            let shown = url.parse::<StoreUrl>().unwrap().to_string();
            assert!(!shown.contains("secret"), "{shown}");
            assert!(shown.ends_with("://ann@host:5/db"), "{shown}");
        }
        for url in [
            "postgres://ann:secret?secret@host/db",
            "postgres://ann:secret@secret@host/db",
            "postgres://ann:secret@secret?secret@host/db",
            "postgres://ann:secret/secret@host/db?password=secret@secret",
            "postgres://host/db?user=ann&password=secret@secret",
            "postgres://host/db?password=secret",
        ] {
            let shown = StoreUrl::Postgres(url.to_owned()).to_string();
            assert!(!shown.contains("secret"), "{shown}");
        }
    }

    #[test]
    fn what_is_not_a_store_is_refused() {
        for url in ["", "sqlite:", "mysql://x", "postgres://ann@host:x/db"] {
            assert!(url.parse::<StoreUrl>().is_err(), "{url}");
        }
        for url in [
            "postgre://ann:secret@host/db",
            "postgres//ann:secret@host/db",
            "postgres:ann:secret@host/db",
            "Postgres:/ann:secret@host/db",
            "mysql://host/db?password=secret",
            "sqlite:postgres://ann:secret@host/db",
            "postgres host=x password=secret",
            "postgres://ann:secret@host:x/db",
        ] {
            let refused = url.parse::<StoreUrl>().unwrap_err().to_string();
            assert!(!refused.contains("secret"), "{url}: {refused}");
        }
    }
}
