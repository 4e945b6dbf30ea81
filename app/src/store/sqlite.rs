//! The embedded store. It uses a WAL with `synchronous=FULL`: a commit that has returned survives a power cut. One connection writes, and
//! the engine groups its appends. Reads have connections of their own and never wait for a commit.

use super::migration::{self, Migration};
use super::sum::{self, FirstSum};
use super::{
    AppendCallback, Batch, IdRange, MessageRanges, RowVisitor, SNAPSHOTS_KEPT, Snapshot, Store, StoreError, StoreStatus,
};
use crate::file_identity::FileIdentity;
use hatchery_core::EventId;
use hatchery_core::history::HistoryRange;
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension as _, params};
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// How long a commit waits for another process that uses the same file. Only tools read the file while the daemon runs.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How many idle read connections are kept for the next reader. Each has a page cache.
const READERS_KEPT: usize = 2;
/// The page cache of a reader, in KiB. Readers scan and do not return to a page, so a small cache is enough.
const READER_CACHE_KIB: i64 = 256;
/// A disk with less free space counts as full, because SQLite's index of the WAL grows by 32 KiB at a time.
const LEAST_ROOM: u64 = 64 * 1024;

#[derive(Debug)]
pub struct Sqlite {
    path: PathBuf,
    // Before the writer, because fields are dropped in order: the last connection to close writes the WAL back into the file, which a
    // reader may not do.
    readers: Mutex<Vec<Connection>>,
    writer: Mutex<Connection>,
    file: FileIdentity,
    /// Known after the first commit, which creates the WAL.
    wal: OnceLock<FileIdentity>,
    /// The first row with a checksum, if there is one. Known after a row without a checksum was read.
    first_sum: OnceLock<EventId>,
}

impl Sqlite {
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        refuse_orphaned_wal(path)?;
        create_closed(path);
        let writer = Connection::open(path).map_err(|error| explain(path, error))?;
        // SQLite opens a read-only file without an error, and would fail at the first append.
        if writer.is_readonly(rusqlite::MAIN_DB).map_err(|error| explain(path, error))? {
            return Err(StoreError::ReadOnly(format!("{}: the file is read-only", path.display())));
        }
        prepare(&writer).map_err(|error| explain(path, error))?;
        let file =
            FileIdentity::at(path).map_err(|error| StoreError::Broken(format!("{}: {error}", path.display())))?;
        let (writer, readers) = (Mutex::new(writer), Mutex::default());
        Ok(Self { path: path.to_owned(), writer, readers, file, wal: OnceLock::new(), first_sum: OnceLock::new() })
    }

    fn writer(&self) -> MutexGuard<'_, Connection> {
        // After a panic during a write, the transaction was rolled back when it was dropped.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reading<T>(&self, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        let kept = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match kept {
            Some(connection) => connection,
            None => open_reader(&self.path).map_err(|error| explain(&self.path, error))?,
        };
        let result = read(&connection).map_err(|error| explain(&self.path, error));
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if result.is_ok() && readers.len() < READERS_KEPT {
            readers.push(connection);
        }
        result
    }

    /// Passes rows of id, body, stream and checksum to `visit`, unless one differs from its checksum.
    fn visit_rows(
        &self,
        connection: &Connection,
        mut rows: rusqlite::Rows<'_>,
        visit: RowVisitor<'_>,
    ) -> rusqlite::Result<Result<(), StoreError>> {
        let mut looked = None;
        while let Some(row) = rows.next()? {
            let (id, body, kept) = (EventId(row.get(0)?), row.get_ref(1)?.as_str()?, row.get(3)?);
            let first = match (kept, looked) {
                (Some(_), _) => FirstSum::Nowhere,
                (None, Some(first)) => first,
                (None, None) => *looked.insert(self.first_sum(connection)?),
            };
            if let Err(damaged) = sum::verify(id, row.get_ref(2)?.as_str()?, body, kept, first) {
                return Ok(Err(damaged));
            }
            if visit(id, body).is_break() {
                break;
            }
        }
        Ok(Ok(()))
    }

    /// Searched only when a row without a checksum is found, because the search reads all rows of an older version.
    fn first_sum(&self, connection: &Connection) -> rusqlite::Result<FirstSum> {
        const FIRST: &str = "SELECT id FROM events WHERE sum IS NOT NULL ORDER BY id LIMIT 1";
        if let Some(first) = self.first_sum.get() {
            return Ok(FirstSum::At(*first));
        }
        let first = connection.prepare_cached(FIRST)?.query_row([], |row| row.get(0)).optional()?;
        Ok(first.map_or(FirstSum::Nowhere, |id| FirstSum::At(*self.first_sum.get_or_init(|| EventId(id)))))
    }

    /// Runs `write` in a transaction, with the last event of the log: all of it is written, or nothing.
    fn writing<T>(&self, write: impl FnOnce(&Connection, EventId) -> Result<T, WriteProblem>) -> Result<T, StoreError> {
        let writer = self.writer();
        let explain = |error| explain(&self.path, error);
        self.refuse_if_lost()?;
        let transaction = Transaction::begin(&writer).map_err(explain)?;
        let before = head_of(&writer).map_err(explain)?;
        let done = match write(&writer, before) {
            Ok(done) => done,
            Err(WriteProblem::Known(error)) => return Err(error),
            Err(WriteProblem::Sql(error)) => return Err(explain(error)),
        };
        match transaction.commit() {
            // Checked again before anything is acknowledged. This costs little compared with a sync.
            Ok(()) => {
                if self.wal.get().is_none()
                    && let Ok(wal) = FileIdentity::at(&wal_of(&self.path))
                {
                    self.wal.get_or_init(|| wal);
                }
                self.refuse_if_lost()?;
                Ok(done)
            }
            // A failed commit is rolled back. Read the file to be sure before reporting that.
            Err(error) => match head_of(&writer) {
                Ok(head) if head == before => Err(explain(error)),
                _ => Err(StoreError::Unknown(error.to_string())),
            },
        }
    }
}

impl Sqlite {
    fn refuse_if_lost(&self) -> Result<(), StoreError> {
        self.lost().map_or(Ok(()), |why| Err(StoreError::Gone(why)))
    }
}

impl Store for Sqlite {
    fn migrate(&self) -> Result<(), StoreError> {
        let applied = {
            let writer = self.writer();
            applied(&writer).map_err(|error| explain(&self.path, error))?
        };
        for Migration { name, sqlite, .. } in migration::pending(&applied)? {
            self.writing(|transaction, _| {
                transaction.execute_batch(sqlite)?;
                transaction.execute("INSERT INTO migrations (name) VALUES (?1)", [name])?;
                Ok(())
            })?;
        }
        Ok(())
    }

    fn head(&self) -> Result<EventId, StoreError> {
        self.reading(head_of)
    }

    fn append(&self, batch: Batch<'_>) -> Result<EventId, StoreError> {
        self.writing(|transaction, head| {
            if head != batch.seen && (batch.fixed || touched_since(transaction, batch)?) {
                return Err(WriteProblem::Known(StoreError::Conflict));
            }
            let mut insert =
                transaction.prepare_cached("INSERT INTO events (id, stream, body, sum) VALUES (?1, ?2, ?3, ?4)")?;
            for (id, row) in (head.0 + 1..).zip(batch.rows) {
                insert.execute(params![id, row.stream, row.body, sum::row_sum(EventId(id), &row.stream, &row.body)])?;
            }
            Ok(head.next())
        })
    }

    fn sum_of(&self, id: EventId) -> Result<Option<u32>, StoreError> {
        let kept: Option<Option<i64>> = self.reading(|connection| {
            let mut select = connection.prepare_cached("SELECT sum FROM events WHERE id = ?1")?;
            select.query_row([sql_id(id)], |row| row.get(0)).optional()
        })?;
        Ok(kept.flatten().map(bits))
    }

    fn read_after(&self, after: EventId, limit: usize, visit: RowVisitor<'_>) -> Result<(), StoreError> {
        self.reading(|connection| {
            let mut select = connection
                .prepare_cached("SELECT id, body, stream, sum FROM events WHERE id > ?1 ORDER BY id LIMIT ?2")?;
            // SQLite's numbers end at 2^63. A cursor beyond that is after the end of the log, and such a limit is no limit.
            let [after, limit] = [after.0, limit as u64].map(|number| i64::try_from(number).unwrap_or(i64::MAX));
            self.visit_rows(connection, select.query([after, limit])?, visit)
        })?
    }

    fn snapshots(&self) -> Result<Vec<Snapshot>, StoreError> {
        self.reading(|connection| {
            let mut select = connection.prepare("SELECT at, format, checksum, body FROM snapshots ORDER BY at DESC")?;
            let rows = select.query_map([], |row| {
                let [at, format, checksum] = [row.get(0)?, row.get(1)?, row.get(2)?];
                Ok(Snapshot { at: position(at), format: bits(format), checksum: bits(checksum), body: row.get(3)? })
            })?;
            rows.collect()
        })
    }

    fn checkpoint(&self, snapshot: &Snapshot, ranges: &MessageRanges) -> Result<EventId, StoreError> {
        self.writing(|transaction, _| {
            add_snapshot(transaction, snapshot)?;
            transaction.execute(
                "DELETE FROM snapshots WHERE at NOT IN (SELECT at FROM snapshots ORDER BY at DESC LIMIT ?1)",
                [SNAPSHOTS_KEPT],
            )?;
            let indexed = sound_index(transaction)?;
            if indexed != ranges.after {
                return Ok(indexed);
            }
            add_ranges(transaction, ranges)?;
            Ok(ranges.upto)
        })
    }

    fn indexed(&self) -> Result<Option<EventId>, StoreError> {
        self.reading(indexed_of)
    }

    fn read_parts(&self, parts: &[HistoryRange], recent: &[IdRange], visit: RowVisitor<'_>) -> Result<(), StoreError> {
        // The joins are crossed, which fixes their order: parts, then their ranges, then the rows of each range.
        const READ_PARTS: &str = "
            WITH part AS (SELECT value ->> 0 AS agent, value ->> 1 AS after, value ->> 2 AS upto FROM json_each(?1)),
            range AS (
                SELECT max(part.after + 1, pair.value ->> 0) AS first, min(part.upto, pair.value ->> 1) AS last
                FROM part
                CROSS JOIN message_ranges ON message_ranges.agent = part.agent AND message_ranges.first <= part.upto AND message_ranges.last > part.after
                CROSS JOIN json_each(message_ranges.ids) AS pair
                UNION ALL
                SELECT value ->> 0, value ->> 1 FROM json_each(?2)
            )
            SELECT events.id, events.body, events.stream, events.sum FROM range CROSS JOIN events ON events.id BETWEEN range.first AND range.last";
        let parts: Vec<_> = parts.iter().map(|part| (part.agent, part.after.0, sql_id(part.upto))).collect();
        let parts = serde_json::to_string(&parts).expect("parts are plain data");
        self.reading(|connection| {
            let mut select = connection.prepare_cached(READ_PARTS)?;
            self.visit_rows(connection, select.query(params![parts, pairs(recent)])?, visit)
        })?
    }

    fn rebuild(&self, snapshot: &Snapshot, ranges: &MessageRanges) -> Result<bool, StoreError> {
        self.writing(|transaction, _| {
            if sound_index(transaction)? > ranges.upto {
                return Ok(false);
            }
            transaction.execute_batch("DELETE FROM snapshots; DELETE FROM message_ranges")?;
            add_snapshot(transaction, snapshot)?;
            add_ranges(transaction, ranges)?;
            Ok(true)
        })
    }

    fn check(&self) -> Result<Vec<String>, StoreError> {
        let found = self.reading(|connection| {
            let mut select = connection.prepare("PRAGMA integrity_check")?;
            let lines: Vec<String> = select.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
            let mut found: Vec<String> = lines.into_iter().filter(|line| line != "ok").collect();
            let mut sums = sum::Checker::default();
            let mut select = connection.prepare("SELECT id, body, stream, sum FROM events ORDER BY id")?;
            let mut rows = select.query([])?;
            while let Some(row) = rows.next()? {
                let (id, kept) = (EventId(row.get(0)?), row.get(3)?);
                sums.take(id, row.get_ref(2)?.as_str()?, row.get_ref(1)?.as_str()?, kept);
            }
            found.extend(sums.findings());
            Ok(found)
        });
        match found {
            // A file that is too damaged to be checked is a finding, too.
            Err(StoreError::Damaged(what)) => Ok(vec![what]),
            found => found,
        }
    }

    fn lost(&self) -> Option<String> {
        self.file.lost().or_else(|| self.wal.get()?.lost())
    }

    /// Uses the connection that writes, because it still has the file open if the file was deleted.
    fn copy_to(&self, path: &Path) -> Result<bool, StoreError> {
        let explain = |error| explain(path, error);
        self.writer().execute("VACUUM INTO ?1", [path.to_string_lossy()]).map_err(explain)?;
        let closed = std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600));
        closed.map_err(|error| StoreError::Broken(format!("{}: {error}", path.display())))?;
        Ok(true)
    }

    fn is_shared(&self) -> bool {
        false
    }

    /// Does nothing: the daemon's lock keeps other writers away from the file.
    fn on_foreign_append(&self, _: AppendCallback) {}
}

/// See [`super::inspect`]. If a WAL was left behind, SQLite may create its index beside the file.
pub fn inspect(path: &Path) -> Result<StoreStatus, StoreError> {
    refuse_orphaned_wal(path)?;
    // Before SQLite opens the file, because closing any handle of a file releases all locks that the process has on the file.
    if let Err(error) = File::options().write(true).open(path) {
        return Err(StoreError::ReadOnly(format!("{}: {error}", path.display())));
    }
    let explain = |error| explain(path, error);
    let reader = if length(&wal_of(path)) == 0 { open_untouched(path) } else { open_reader(path) }.map_err(explain)?;
    let pending = migration::pending(&applied(&reader).map_err(explain)?)?.len();
    Ok(StoreStatus { head: head_of(&reader).map_err(explain)?, pending })
}

/// A transaction that rolls back unless it is committed. Unlike rusqlite's own, it does not parse its statements each time, which would be
/// noticeable in a single append.
struct Transaction<'a>(&'a Connection);

impl<'a> Transaction<'a> {
    fn begin(connection: &'a Connection) -> rusqlite::Result<Self> {
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        Ok(Self(connection))
    }

    fn commit(self) -> rusqlite::Result<()> {
        self.0.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if !self.0.is_autocommit()
            && let Err(error) = self.0.execute_batch("ROLLBACK")
        {
            tracing::warn!(%error, "a transaction could not be rolled back");
        }
    }
}

/// An error that this module has detected, or one of SQLite.
enum WriteProblem {
    Known(StoreError),
    Sql(rusqlite::Error),
}

impl From<rusqlite::Error> for WriteProblem {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

fn prepare(writer: &Connection) -> rusqlite::Result<()> {
    writer.busy_timeout(BUSY_TIMEOUT)?;
    writer.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    writer.pragma_update(None, "synchronous", "FULL")?;
    writer.execute_batch("CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY) STRICT")
}

/// SQLite treats an empty or missing file as a new database, and deletes the WAL beside it. That WAL may be the only remaining part of a
/// log.
fn refuse_orphaned_wal(path: &Path) -> Result<(), StoreError> {
    let wal = wal_of(path);
    match (length(path), length(&wal)) {
        (0, 1..) => Err(StoreError::Damaged(format!(
            "{} is empty or missing, but {} still holds a part of the log",
            path.display(),
            wal.display()
        ))),
        _ => Ok(()),
    }
}

/// SQLite gives its other files the mode of the database. If the file cannot be created, SQLite reports the error.
fn create_closed(path: &Path) {
    drop(File::options().write(true).create_new(true).mode(0o600).open(path));
}

fn wal_of(path: &Path) -> PathBuf {
    let mut wal = path.as_os_str().to_owned();
    wal.push("-wal");
    PathBuf::from(wal)
}

fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |file| file.len())
}

/// A negative number is damage. It becomes a position that no log has, which the checks on snapshots find.
fn position(number: i64) -> EventId {
    EventId(u64::try_from(number).unwrap_or(u64::MAX))
}

fn bits(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn open_reader(path: &Path) -> rusqlite::Result<Connection> {
    let reader = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    reader.busy_timeout(BUSY_TIMEOUT)?;
    reader.pragma_update(None, "cache_size", -READER_CACHE_KIB)?;
    Ok(reader)
}

/// A reader that creates no files. An ordinary reader creates files for a WAL and may not delete them. If there is no WAL, the file is
/// complete.
fn open_untouched(path: &Path) -> rusqlite::Result<Connection> {
    let name = percent_encode(path.as_os_str().as_bytes(), NON_ALPHANUMERIC);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    Connection::open_with_flags(format!("file:{name}?immutable=1"), flags)
}

fn applied(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    match connection.prepare("SELECT name FROM migrations ORDER BY name") {
        Ok(mut select) => select.query_map([], |row| row.get(0))?.collect(),
        Err(error) if error.to_string().contains("no such table") => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// A file without the table of events has an empty log.
fn head_of(connection: &Connection) -> rusqlite::Result<EventId> {
    match connection.prepare_cached("SELECT max(id) FROM events") {
        Ok(mut select) => select.query_row([], |row| row.get::<_, Option<u64>>(0)).map(|id| EventId(id.unwrap_or(0))),
        Err(error) if error.to_string().contains("no such table") => Ok(EventId::START),
        Err(error) => Err(error),
    }
}

fn add_snapshot(connection: &Connection, snapshot: &Snapshot) -> rusqlite::Result<()> {
    connection.execute(
        "INSERT OR REPLACE INTO snapshots (at, format, checksum, body) VALUES (?1, ?2, ?3, ?4)",
        params![snapshot.at.0, snapshot.format, snapshot.checksum, snapshot.body],
    )?;
    Ok(())
}

/// Adds the ranges to the index. Afterwards the index ends where the ranges end.
fn add_ranges(connection: &Connection, ranges: &MessageRanges) -> rusqlite::Result<()> {
    let mut insert =
        connection.prepare_cached("INSERT INTO message_ranges (agent, first, last, ids) VALUES (?1, ?2, ?3, ?4)")?;
    for (agent, of) in &ranges.of {
        if let (Some(first), Some(last)) = (of.first(), of.last()) {
            insert.execute(params![agent.to_string(), first.first.0, last.last.0, pairs(of)])?;
        }
    }
    set_indexed(connection, ranges.upto)
}

/// See [`Store::indexed`].
fn indexed_of(connection: &Connection) -> rusqlite::Result<Option<EventId>> {
    const SOUND: &str = "SELECT upto FROM indexed
        WHERE upto = again AND upto BETWEEN 0 AND (SELECT coalesce(max(id), 0) FROM events)";
    connection.query_row(SOUND, [], |row| row.get(0)).optional().map(|upto| upto.map(position))
}

/// The last event in the index. An index that is not sound is emptied.
fn sound_index(connection: &Connection) -> rusqlite::Result<EventId> {
    if let Some(upto) = indexed_of(connection)? {
        return Ok(upto);
    }
    connection.execute("DELETE FROM message_ranges", [])?;
    set_indexed(connection, EventId::START)?;
    Ok(EventId::START)
}

fn set_indexed(connection: &Connection, upto: EventId) -> rusqlite::Result<()> {
    connection.execute("INSERT OR REPLACE INTO indexed (single, upto, again) VALUES (1, ?1, ?1)", [upto.0])?;
    Ok(())
}

/// Ranges as JSON pairs, which a statement can take apart with `json_each`.
fn pairs(ranges: &[IdRange]) -> String {
    let pairs: Vec<_> = ranges.iter().map(|range| (range.first.0, range.last.0)).collect();
    serde_json::to_string(&pairs).expect("pairs are plain data")
}

/// SQLite's numbers are signed.
fn sql_id(id: EventId) -> u64 {
    id.0.min(i64::MAX.unsigned_abs())
}

fn touched_since(connection: &Connection, batch: Batch<'_>) -> rusqlite::Result<bool> {
    let mut select = connection.prepare_cached("SELECT 1 FROM events WHERE id > ?1 AND stream = ?2 LIMIT 1")?;
    for stream in batch.reads {
        if select.query_row(params![batch.seen.0, stream], |_| Ok(())).optional()?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// SQLite reports a full disk as an I/O error when it enlarges the index of the WAL.
fn no_room(path: &Path) -> bool {
    // A limit on the size of files is like a full disk. SQLite gets the error "file too large".
    let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize).current.unwrap_or(u64::MAX);
    if length(path).max(length(&wal_of(path))).saturating_add(LEAST_ROOM) > limit {
        return true;
    }
    let folder = path.parent().unwrap_or(path);
    rustix::fs::statvfs(folder).is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < LEAST_ROOM)
}

fn explain(path: &Path, error: rusqlite::Error) -> StoreError {
    let text = format!("{}: {error}", path.display());
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full(text),
        Some(ErrorCode::SystemIoFailure) if no_room(path) => StoreError::Full(text),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => StoreError::ReadOnly(text),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Unavailable(text),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Damaged(text),
        _ => StoreError::Broken(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_store_is_one_file() {
        let folder = tempfile::tempdir().unwrap();
        let store = Sqlite::open(&folder.path().join("log.db")).unwrap();
        store.migrate().unwrap();
        assert_eq!(store.head().unwrap(), EventId::START);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
        drop(store);
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["log.db"]);
    }
}
