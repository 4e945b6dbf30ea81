//! Where `.hatchery` and its database were made. A log can have programs run, so a log that came with a clone, a pull, an archive or a
//! copy is not opened before the user has said so. The stamp names the folder, the database, the database's write-ahead log and the token
//! by their inodes and the times of their creation, and is a sealed file itself: see [`sealed_file`](crate::sealed_file).

use super::{MAKE_ROOM, Project};
use crate::no_links;
use crate::report::{Context as _, Report};
use crate::sealed_file::{self, FileMark};
use crate::store::StoreUrl;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// What only a daemon puts there. A folder with one of these and without a stamp was made elsewhere.
const SIGNS: [&str; 7] = ["hatchery.db", "host", "token", "runs", "quests", "head.json", "trust.json"];

/// SQLite takes over what these files beside the database say. Nothing in them names the database that they were made for.
const WAL: &str = "hatchery.db-wal";
const JOURNAL: &str = "hatchery.db-journal";
const TOKEN: &str = "token";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    folder: FileMark,
    /// The database in the folder, once one was begun.
    database: Option<FileMark>,
    /// The other files that were made here, by their names. None in the stamp of an older version, which remembered none of them.
    #[serde(default)]
    files: Option<BTreeMap<String, FileMark>>,
    /// What [`Project::host`] gives. It is here and not only in its file, because it cannot be made again.
    #[serde(default)]
    host: Option<String>,
}

impl Stamp {
    /// Whether a file of the data folder was made here.
    fn knows(&self, name: &str, found: FileMark) -> bool {
        self.files.as_ref().is_none_or(|files| files.get(name) == Some(&found))
    }

    /// Whether a file of SQLite was made here. SQLite makes its files itself when it opens a new database, so nothing is known of them
    /// before the first start has come to its end. Until then the log is empty.
    fn knows_of_sqlite(&self, name: &str, found: FileMark) -> bool {
        self.knows(name, found) || self.files.as_ref().is_some_and(|files| !files.contains_key(WAL))
    }
}

#[derive(Debug, PartialEq, Eq)]
enum FolderOrigin {
    Here(Stamp),
    /// No daemon has used the folder yet.
    Unused,
    Elsewhere(PathBuf),
}

impl Project {
    /// Refuses a data folder or a database that was not made in this place. An empty folder is stamped.
    pub(super) fn check_stamp(&self) -> Result<(), Report> {
        match self.origin()? {
            FolderOrigin::Here(_) => Ok(()),
            FolderOrigin::Unused => {
                let folder = self.folder_mark()?;
                self.write_stamp(&Stamp { folder, database: None, files: Some(BTreeMap::new()), host: None })
            }
            // The first versions did not remember the database, so another one may have come with a pull.
            FolderOrigin::Elsewhere(what) if self.has_first_stamp() => Err(Report::failed(format_args!(
                "{} was made by an older Hatchery, which did not remember enough to tell that its log was made here",
                what.display()
            ))
            .hint("if it is yours, stop the daemon with `hatchery down`, then accept it with `hatchery trust`; agents keep working")
            .named("foreign_log")),
            FolderOrigin::Elsewhere(what) => {
                let message = format!(
                    "{} was not made here: it was cloned, pulled, copied or unpacked, and its log could have programs run",
                    what.display()
                );
                let is_beside = [WAL, JOURNAL].into_iter().any(|name| what.ends_with(name));
                Err(Report::failed(message).hint(match is_beside {
                    false => "`hatchery trust` accepts it; to begin a log of your own, delete it",
                    true => "delete it to continue without it; `hatchery trust` accepts it, for example if another program had the database open",
                })
                .named("foreign_log"))
            }
        }
    }

    /// The data folder or the database in it, if it was made elsewhere.
    pub fn foreign(&self) -> Option<PathBuf> {
        match self.origin() {
            Ok(FolderOrigin::Elsewhere(what)) => Some(what),
            _ => None,
        }
    }

    /// Makes the file of the database in the data folder and the one of its write-ahead log, if they are missing, and remembers them as made
    /// here. To be called under the lock, before the store is opened. The files are empty when they are remembered, so a crash in between
    /// leaves nothing that is refused. SQLite replaces the write-ahead log of a new database, so this is called again when the store is open.
    pub fn begin_database(&self, store: &StoreUrl) -> Result<(), Report> {
        let database = self.database_file();
        let (FolderOrigin::Here(stamp), true) = (self.origin()?, *store == StoreUrl::Sqlite(database.clone())) else {
            return Ok(());
        };
        // If a file is there already, or cannot be made, the store says what is to be said.
        let make = |path: &Path| drop(File::options().write(true).create_new(true).mode(0o600).open(path));
        make(&database);
        let wal = self.data().join(WAL);
        let begun = length(&database) > 0;
        if begun {
            make(&wal);
        }
        let mut files = stamp.files.clone().unwrap_or_else(|| self.marks(&[TOKEN]));
        match FileMark::at(&wal).ok().filter(|_| begun || length(&wal) > 0) {
            Some(mark) => files.insert(WAL.to_owned(), mark),
            None => files.remove(WAL),
        };
        let now = Stamp { database: FileMark::at(&database).ok(), files: Some(files), ..stamp.clone() };
        if now == stamp { Ok(()) } else { self.write_stamp(&now) }
    }

    /// Takes the data folder as made here. It becomes another host, so that a copy of a project on a shared store does not take
    /// the original's processes for its own. The token is not taken over, because the owner of the original knows it.
    pub fn adopt_data(&self, new_host: bool) -> Result<(), Report> {
        self.refuse_links()?;
        let host = match new_host {
            true => None,
            false => self.written_host()?,
        };
        let head = self.head_file();
        sealed_file::adopt(&head).context(format_args!("{} cannot be taken over", head.display()))?;
        self.write_stamp(&Stamp {
            folder: self.folder_mark()?,
            database: FileMark::at(&self.database_file()).ok(),
            files: Some(self.marks(&[WAL, JOURNAL])),
            host,
        })
    }

    /// Whether the token was put into its place by something else than a daemon.
    pub fn has_foreign_token(&self) -> bool {
        match (self.origin(), FileMark::at(&self.token_file())) {
            (Ok(FolderOrigin::Here(stamp)), Ok(token)) => !stamp.knows(TOKEN, token),
            _ => false,
        }
    }

    /// Remembers the token that was just written. To be called under the lock.
    pub(super) fn stamp_token(&self) -> Result<(), Report> {
        self.change_stamp(|stamp| {
            let files = stamp.files.get_or_insert_default();
            files.extend(self.marks(&[TOKEN]));
        })
    }

    /// The host that was made here.
    pub(super) fn stamped_host(&self) -> Result<Option<String>, Report> {
        match self.origin()? {
            FolderOrigin::Here(Stamp { host: Some(host), .. }) => Ok(Some(host)),
            // Of an older version.
            FolderOrigin::Here(Stamp { files: None, .. }) => self.written_host(),
            _ => Ok(None),
        }
    }

    /// Remembers the host. To be called under the lock.
    pub(super) fn stamp_host(&self, host: &str) -> Result<(), Report> {
        self.change_stamp(|stamp| stamp.host = Some(host.to_owned()))
    }

    /// Forgets that the folder was made here, because something else may have written into it.
    pub fn withdraw_stamp(&self) {
        match std::fs::remove_file(self.stamp_file()) {
            Err(error) if error.kind() != ErrorKind::NotFound => tracing::warn!(%error, "the stamp cannot be removed"),
            _ => {}
        }
    }

    fn origin(&self) -> Result<FolderOrigin, Report> {
        let data = self.data();
        let here = self.folder_mark()?;
        let used = SIGNS.iter().any(|sign| data.join(sign).symlink_metadata().is_ok());
        // A stamp that cannot be read is none.
        let kept = sealed_file::read::<Stamp>(&self.stamp_file()).ok().flatten();
        let Some(stamp) = kept.filter(|stamp| stamp.folder == here) else {
            return Ok(if used { FolderOrigin::Elsewhere(data) } else { FolderOrigin::Unused });
        };
        let database = self.database_file();
        // An empty file holds no log.
        let found = |path: &Path| std::fs::symlink_metadata(path).ok().filter(|found| found.len() > 0);
        if found(&database).is_some_and(|found| stamp.database != Some(FileMark::of(&found))) {
            return Ok(FolderOrigin::Elsewhere(database));
        }
        let brought = [WAL, JOURNAL].into_iter().find(|name| {
            found(&data.join(name)).is_some_and(|found| !stamp.knows_of_sqlite(name, FileMark::of(&found)))
        });
        Ok(brought.map_or(FolderOrigin::Here(stamp), |name| FolderOrigin::Elsewhere(data.join(name))))
    }

    /// The content of the file `host`, also if it was written on another machine.
    fn written_host(&self) -> Result<Option<String>, Report> {
        let path = self.host_file();
        match no_links::read(&path) {
            Ok(host) => Ok(Some(String::from_utf8_lossy(&host).trim().to_owned()).filter(|host| !host.is_empty())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Report::failed(format_args!("{} cannot be read: {error}", path.display()))),
        }
    }

    /// Whether the folder has the stamp of the first versions, and was made in this place: the mark of the folder alone.
    pub fn has_first_stamp(&self) -> bool {
        let kept = std::fs::read(self.stamp_file()).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        kept.is_some_and(|kept: FileMark| FileMark::at(&self.data()).is_ok_and(|here| here == kept))
    }

    fn marks(&self, names: &[&str]) -> BTreeMap<String, FileMark> {
        let mark = |name: &&str| Some(((*name).to_owned(), FileMark::at(&self.data().join(name)).ok()?));
        names.iter().filter_map(mark).collect()
    }

    fn folder_mark(&self) -> Result<FileMark, Report> {
        let data = self.data();
        FileMark::at(&data).context(format_args!("{} cannot be read", data.display()))
    }

    fn change_stamp(&self, change: impl FnOnce(&mut Stamp)) -> Result<(), Report> {
        let FolderOrigin::Here(mut stamp) = self.origin()? else { return Ok(()) };
        change(&mut stamp);
        self.write_stamp(&stamp)
    }

    fn write_stamp(&self, stamp: &Stamp) -> Result<(), Report> {
        let path = self.stamp_file();
        sealed_file::write(&path, stamp)
            .context(format_args!("{} cannot be written", path.display()))
            .map_err(|report| report.hint(MAKE_ROOM))
    }

    fn stamp_file(&self) -> PathBuf {
        self.data().join("stamp.json")
    }
}

fn length(path: &Path) -> u64 {
    std::fs::symlink_metadata(path).map_or(0, |found| found.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_that_takes_the_place_of_ours_is_foreign() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::find(folder.path()).unwrap();
        project.prepare().unwrap();
        let database = project.database_file();
        // Brought before a log was begun here.
        std::fs::write(&database, "a log").unwrap();
        assert_eq!(project.foreign(), Some(database.clone()));
        std::fs::remove_file(&database).unwrap();
        project.begin_database(&StoreUrl::Sqlite(database.clone())).unwrap();
        std::fs::write(&database, "our log").unwrap();
        assert_eq!(project.foreign(), None);
        // Brought in its place.
        let other = folder.path().join("other");
        std::fs::write(&other, "their log").unwrap();
        std::fs::rename(&other, &database).unwrap();
        assert_eq!(project.foreign(), Some(database.clone()));
        assert!(project.prepare().unwrap_err().to_string().contains("hatchery.db was not made here"));
        project.adopt_data(false).unwrap();
        project.prepare().unwrap();
        project.withdraw_stamp();
        assert_eq!(project.foreign(), Some(project.data()));
        assert!(project.prepare().unwrap_err().to_string().contains("was not made here"));
    }

    #[test]
    fn a_folder_of_the_first_version_is_called_so() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::find(folder.path()).unwrap();
        project.prepare().unwrap();
        std::fs::write(project.database_file(), "our log").unwrap();
        let mark = FileMark::at(&project.data()).unwrap();
        std::fs::write(project.stamp_file(), serde_json::to_vec(&mark).unwrap()).unwrap();
        let refused = project.prepare().unwrap_err().to_string();
        assert!(refused.contains("made by an older Hatchery") && refused.contains("`hatchery trust`"), "{refused}");
        project.adopt_data(false).unwrap();
        project.prepare().unwrap();
        assert!(!project.has_first_stamp());
    }
}
