//! The head of the log as it was last seen, kept in `.hatchery/head.json`: outside of the database, so that a log which has become
//! shorter, or is another one, is noticed at the next start and by `fsck`. The file is sealed: a repository cannot bring one that fits its
//! own log.
//!
//! The file is written some seconds after the events, so it never names an event that was not durable.

use crate::project::Project;
use crate::sealed_file;
use crate::store::{Store, StoreError, StoreUrl};
use hatchery_core::EventId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// The file, for one store of the project.
#[derive(Clone, Debug)]
pub struct LogHead {
    path: PathBuf,
    store: String,
}

/// The last event of a log, and its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    pub id: EventId,
    pub sum: Option<u32>,
}

/// How a log differs from what is remembered of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loss {
    Shorter {
        was: EventId,
        is: EventId,
    },
    /// The log has another event in this place.
    Different {
        at: EventId,
    },
    /// What is remembered cannot be read.
    Unreadable {
        path: PathBuf,
        why: String,
    },
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct HeadFile {
    /// By store, because the setting may be changed and changed back.
    heads: BTreeMap<String, Head>,
}

impl LogHead {
    pub fn new(project: &Project, store: &StoreUrl) -> Self {
        // A project that is moved keeps its memory: a database inside of it is named from its root.
        let store = match store {
            StoreUrl::Sqlite(path) => {
                format!("sqlite:{}", path.strip_prefix(project.root()).unwrap_or(path).display())
            }
            StoreUrl::Postgres(_) => store.to_string(),
        };
        Self { path: project.head_file(), store }
    }

    /// Compares the log with what is remembered of it.
    pub fn compare(&self, store: &dyn Store) -> Result<Option<Loss>, StoreError> {
        let known = match self.read() {
            Ok(file) => file.heads.get(&self.store).copied(),
            Err(why) => return Ok(Some(Loss::Unreadable { path: self.path.clone(), why })),
        };
        let Some(known) = known else { return Ok(None) };
        let is = store.head()?;
        if is < known.id {
            return Ok(Some(Loss::Shorter { was: known.id, is }));
        }
        match (known.sum, store.sum_of(known.id)?) {
            (Some(was), sum) if sum != Some(was) => Ok(Some(Loss::Different { at: known.id })),
            _ => Ok(None),
        }
    }

    /// The head of a log now. None while the log is empty.
    pub fn of(store: &dyn Store, id: EventId) -> Result<Option<Head>, StoreError> {
        match id {
            EventId::START => Ok(None),
            id => Ok(Some(Head { id, sum: store.sum_of(id)? })),
        }
    }

    /// Remembers a head. Durable when it returns.
    pub fn remember(&self, head: Head) -> std::io::Result<()> {
        let mut file = self.read().unwrap_or_default();
        if file.heads.insert(self.store.clone(), head) == Some(head) {
            return Ok(());
        }
        self.write(&file)
    }

    /// Forgets the head, because the user accepts what was lost.
    pub fn forget(&self) -> std::io::Result<()> {
        let mut file = self.read().unwrap_or_default();
        file.heads.remove(&self.store);
        self.write(&file)
    }

    fn read(&self) -> Result<HeadFile, String> {
        sealed_file::read(&self.path).map(Option::unwrap_or_default).map_err(|error| error.to_string())
    }

    fn write(&self, file: &HeadFile) -> std::io::Result<()> {
        sealed_file::write(&self.path, file)
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shorter { was, is } => {
                let lost = was.0 - is.0;
                let events = if lost == 1 { "event" } else { "events" };
                write!(
                    f,
                    "the log ends {lost} {events} earlier than it did: it ended at event {was} and ends at event {is} now"
                )
            }
            Self::Different { at } => {
                write!(f, "the log is not the one that this project had: event {at} is another one now")
            }
            Self::Unreadable { path, why } => {
                write!(f, "{}, which says how long the log was, cannot be read: {why}", path.display())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Batch, Row, sqlite::Sqlite};

    #[test]
    fn a_shorter_and_another_log_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::find(folder.path()).unwrap();
        project.prepare().unwrap();
        let fill = |name: &str, bodies: &[&str]| {
            let path = project.data().join(name);
            let store = Sqlite::open(&path).unwrap();
            store.migrate().unwrap();
            let row = |(id, body): (u64, &&str)| Row { id: EventId(id), stream: "a".into(), body: (*body).into() };
            let rows: Vec<Row> = (1..).zip(bodies).map(row).collect();
            store.append(Batch { seen: EventId::START, reads: &[], rows: &rows, fixed: false }).unwrap();
            store
        };
        let whole = fill("a", &["1", "2", "3"]);
        let memory = LogHead::new(&project, &StoreUrl::Sqlite(project.data().join("a")));
        assert_eq!(memory.compare(&whole).unwrap(), None);
        memory.remember(LogHead::of(&whole, EventId(3)).unwrap().unwrap()).unwrap();
        assert_eq!(memory.compare(&whole).unwrap(), None);
        let shorter = fill("b", &["1", "2"]);
        let loss = memory.compare(&shorter).unwrap().unwrap();
        assert_eq!(
            loss.to_string(),
            "the log ends 1 event earlier than it did: it ended at event 3 and ends at event 2 now"
        );
        let other = fill("c", &["1", "2", "x", "y"]);
        assert_eq!(memory.compare(&other).unwrap(), Some(Loss::Different { at: EventId(3) }));
        // A head of another log, which a repository could bring.
        let brought = std::fs::read_to_string(project.head_file()).unwrap().replace("\"id\": 3", "\"id\": 2");
        std::fs::remove_file(project.head_file()).unwrap();
        std::fs::write(project.head_file(), brought).unwrap();
        assert!(matches!(memory.compare(&shorter).unwrap(), Some(Loss::Unreadable { .. })));
        std::fs::write(project.head_file(), "{").unwrap();
        assert!(matches!(memory.compare(&whole).unwrap(), Some(Loss::Unreadable { .. })));
        memory.forget().unwrap();
        assert_eq!(memory.compare(&shorter).unwrap(), None);
    }
}
