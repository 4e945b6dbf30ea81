//! The store keeps rows and knows nothing of their meaning. Two back ends, [`sqlite`] and [`postgres`], behave alike: one
//! conformance suite and one differential test run over both. They are the only rooms with SQL.
//!
//! The calls block. The engine has a thread of its own for them; everybody else uses [`crate::engine::Handle`].

pub mod migration;
pub mod postgres;
pub mod sqlite;

use hatchery_core::history::Range;
use hatchery_core::{AgentId, EventId};
use std::fmt;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

/// One event as it is kept: its place, whose it is, and its JSON without the id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub id: EventId,
    pub stream: String,
    pub body: String,
}

/// Events that were decided together, and what the decision rested on.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// The last event that the decision knew of. The version of every stream is "as of this event".
    pub seen: EventId,
    /// The streams that the decision read: a later event in one of them by another writer is a conflict.
    pub reads: &'a [String],
    /// What to add, numbered from `seen + 1`. Renumbered when other writers came in between without a conflict.
    pub rows: &'a [Row],
    /// The rows speak of each other by their ids: they stand as they are numbered, or it is a conflict.
    pub fixed: bool,
}

/// Consecutive events that are all messages of one agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdRange {
    pub first: EventId,
    pub last: EventId,
}

/// Where the messages of each agent are, for the events after one place up to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageRanges {
    pub after: EventId,
    pub upto: EventId,
    pub of: Vec<(AgentId, Vec<IdRange>)>,
}

/// A folded world, encoded. A cache: the log can always make it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The last event folded into it.
    pub at: EventId,
    /// How the body is encoded; a program that does not know the format folds the log instead.
    pub format: u32,
    pub checksum: u32,
    pub body: Vec<u8>,
}

/// Called when another writer may have appended something. A hint to read the log, and nothing else. It comes on a thread
/// that carries connections, so it must not block.
pub type Hint = Arc<dyn Fn() + Send + Sync>;

/// Looks at one row, its id and body, and says whether to go on.
pub type Visit<'a> = &'a mut dyn FnMut(EventId, &str) -> ControlFlow<()>;

pub trait Store: Send + Sync + fmt::Debug {
    /// Brings the schema up to date. A schema newer than this program is refused, untouched.
    fn migrate(&self) -> Result<(), StoreError>;

    /// The last event of the log.
    fn head(&self) -> Result<EventId, StoreError>;

    /// Adds all rows of a batch, or none; durable when it returns. Gives the id of the first row.
    fn append(&self, batch: Batch<'_>) -> Result<EventId, StoreError>;

    /// Shows up to `limit` rows after a place in the log, in order, until told to stop.
    fn read_after(&self, after: EventId, limit: usize, visit: Visit<'_>) -> Result<(), StoreError>;

    /// The kept snapshots, the newest first.
    fn snapshots(&self) -> Result<Vec<Snapshot>, StoreError>;

    /// Keeps a snapshot, drops all but the newest [`SNAPSHOTS_KEPT`], and adds ranges to the index unless somebody else did.
    /// Gives how far the index goes now.
    fn checkpoint(&self, snapshot: &Snapshot, ranges: &MessageRanges) -> Result<EventId, StoreError>;

    /// How far the index of ranges goes.
    fn indexed(&self) -> Result<EventId, StoreError>;

    /// Shows all messages of the parts of a history, by one statement: those that the index knows, and the `recent` ranges,
    /// which the caller knows. Not in order, and perhaps twice where both know it.
    fn read_parts(&self, parts: &[Range], recent: &[IdRange], visit: Visit<'_>) -> Result<(), StoreError>;

    /// Puts a snapshot and an index, both from the first event on, in the place of all that was derived from the log before:
    /// all at once, or nothing. False when the index has gone further meanwhile; then nothing is changed.
    fn rebuild(&self, snapshot: &Snapshot, ranges: &MessageRanges) -> Result<bool, StoreError>;

    /// Looks for damage below the log: broken pages, a broken schema. Gives what it found, in words.
    fn check(&self) -> Result<Vec<String>, StoreError>;

    /// Registers whom to tell of other writers' appends. A store with one writer never calls it.
    fn on_foreign_append(&self, hint: Hint);
}

/// The last good snapshot and the one before, in case the last is damaged.
pub const SNAPSHOTS_KEPT: usize = 2;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another writer changed what the decision rested on: decide again.
    #[error("another writer changed what this rested on")]
    Conflict,
    /// Nothing was written, and a later try may succeed.
    #[error("the store cannot be reached: {0}")]
    Unavailable(String),
    /// Nothing was written: no room is left.
    #[error("no space is left for the store: {0}")]
    Full(String),
    /// Nothing was written: the store may not be written to.
    #[error("the store cannot be written: {0}")]
    ReadOnly(String),
    /// Nothing was written: who answers has not shown that it is the server.
    #[error("the server of the store is not trusted: {0}")]
    Untrusted(String),
    /// It is not known whether the rows were written. Read the log before doing anything else.
    #[error("it is not known whether this was recorded: {0}")]
    Unknown(String),
    #[error("the store was written by a newer Hatchery (schema `{found}`); this one knows up to `{known}`")]
    NewerSchema { found: String, known: &'static str },
    #[error("the store is damaged: {0}")]
    Damaged(String),
    #[error("the store failed: {0}")]
    Broken(String),
}

/// Where the log is kept: `sqlite:PATH`, a bare path, or `postgres://…`.
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
    Unprotected(String, &'static str),
}

impl FromStr for StoreUrl {
    type Err = NotAStore;

    fn from_str(text: &str) -> Result<Self, NotAStore> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            let url = Self::Postgres(text.to_owned());
            return match postgres::check(text) {
                Ok(()) => Ok(url),
                Err(postgres::Unfit::Url(_)) => Err(NotAStore::Unknown(url.to_string())),
                Err(postgres::Unfit::Protection(why)) => Err(NotAStore::Unprotected(url.to_string(), why)),
            };
        }
        let path = text.strip_prefix("sqlite:").unwrap_or(text);
        match path {
            "" => Err(NotAStore::Unknown(text.to_owned())),
            _ if path.contains("://") => Err(NotAStore::Unknown(text.to_owned())),
            _ => Ok(Self::Sqlite(PathBuf::from(path))),
        }
    }
}

/// Never shows a password: this is printed by `status` and written to logs.
impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(url) => {
                // The first `@` ends the user and password, as the connection reads it. Where a password or a parameter
                // may hold a mark unescaped, what could be a part of it is left out.
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

/// Opens a store and brings its schema up to date. `runtime` carries the connections of the shared store.
pub fn open(url: &StoreUrl, runtime: &tokio::runtime::Handle) -> Result<Arc<dyn Store>, StoreError> {
    let store: Arc<dyn Store> = match url {
        StoreUrl::Sqlite(path) => Arc::new(sqlite::Sqlite::open(path)?),
        StoreUrl::Postgres(url) => Arc::new(postgres::Postgres::open(url, runtime.clone())?),
    };
    store.migrate()?;
    Ok(store)
}

/// What a look at a store shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    pub head: EventId,
    /// Migrations that the schema has not had yet.
    pub pending: usize,
}

/// Looks at a store and changes nothing in it, its schema included. What would keep it from being opened is an error.
pub fn look(url: &StoreUrl, runtime: &tokio::runtime::Handle) -> Result<Look, StoreError> {
    match url {
        StoreUrl::Sqlite(path) => sqlite::look(path),
        StoreUrl::Postgres(url) => postgres::Postgres::open(url, runtime.clone())?.look(),
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
    }
}
