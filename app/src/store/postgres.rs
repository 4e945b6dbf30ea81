//! The shared store. Every append takes its ids while it holds the lock of the one row in `log`, and holds this lock until it has
//! committed. So ids have no gaps and become visible in order: a follower never skips an event that commits late, as it could with ids from
//! a sequence.
//!
//! The calls block on a runtime that drives the connections. The runtime must have worker threads of its own, and no call may
//! come from inside it.

mod append;
mod connection;
mod explain;
mod listener;

use super::migration::{self, Migration};
use super::sum::{self, FirstSum};
use super::{
    AppendCallback, Batch, IdRange, MessageRanges, RowVisitor, SNAPSHOTS_KEPT, Snapshot, Store, StoreError,
    StoreStatus, StoreUrl,
};
use append::Appends;
use connection::ConnectionOptions;
use deadpool_postgres::{Client, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime, Transaction};
use futures_util::StreamExt as _;
use hatchery_core::EventId;
use hatchery_core::history::HistoryRange;
use listener::NotifyListener;
use std::fmt;
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Config, IsolationLevel};

pub use connection::{UrlError, check};

/// How long a new connection may take. A running server answers in milliseconds, even over a slow network.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an append waits for an answer before the connection counts as lost. Longer than [`LOCK_TIMEOUT`], so that a server that only
/// waits for another writer can report this itself.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a statement waits for another writer's lock. Appends hold theirs for milliseconds.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client may send nothing during a transaction before the server ends the transaction. A writer that was suspended between
/// claim and commit must not block all others.
const IDLE_IN_TRANSACTION: Duration = Duration::from_secs(5);
/// After this time without traffic a connection is probed; unanswered data for this time makes it count as lost.
const SILENCE: Duration = Duration::from_secs(15);
/// How many connections there are beside the writer's. A few readers catch up at the same time, and a server allows about a hundred
/// connections in all.
const SIDE_CONNECTIONS: usize = 4;
/// The most rows that are fetched from a reader's connection at once. The rest stays on the server until it is requested.
const READ_CHUNK: usize = 256;
/// How long to ask for the outcome of a commit whose answer was lost. A server restarts within this time.
const SETTLE_FOR: Duration = Duration::from_secs(15);
/// Deletes old marks of writers. A mark is read within [`SETTLE_FOR`].
const OLD_MARKS: &str = "DELETE FROM writers WHERE at < now() - interval '7 days'";
/// The advisory lock for migrations: any number, the same in every version of Hatchery.
const MIGRATION_LOCK: i64 = 0x6861_7463_6865_7279;

const READ_PARTS: &str = "
    SELECT events.id, events.body, events.stream, events.sum
    FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS part (agent, after, upto)
    JOIN message_ranges ON message_ranges.agent = part.agent AND message_ranges.first <= part.upto AND message_ranges.last > part.after
    CROSS JOIN LATERAL unnest(message_ranges.los, message_ranges.his) AS range (first, last)
    JOIN events ON events.id BETWEEN greatest(range.first, part.after + 1) AND least(range.last, part.upto)
    UNION ALL
    SELECT events.id, events.body, events.stream, events.sum
    FROM unnest($4::bigint[], $5::bigint[]) AS range (first, last)
    JOIN events ON events.id BETWEEN range.first AND range.last";
/// See [`Store::indexed`].
const INDEXED: &str = "SELECT upto FROM indexed WHERE upto = again AND upto BETWEEN 0 AND (SELECT head FROM log)";
const READ_AFTER: &str = "SELECT id, body, stream, sum FROM events WHERE id > $1 ORDER BY id LIMIT $2";

pub struct Postgres {
    /// The URL without its password, for messages.
    name: String,
    connection_options: ConnectionOptions,
    runtime: Handle,
    /// One connection, because a process has one writer.
    writer: Pool,
    /// Connections for everything but appends.
    side: Pool,
    appends: Appends,
    settle_for: Duration,
    listener: Mutex<Option<NotifyListener>>,
    /// The first row with a checksum. Known after the first read, if any row has one.
    first_sum: OnceLock<EventId>,
}

/// Gets id, body, stream and checksum of one row.
type RawVisitor<'a> = &'a mut dyn FnMut(EventId, &str, &str, Option<i64>) -> Result<ControlFlow<()>, StoreError>;

impl Postgres {
    /// Prepares the pools. The first call connects.
    pub fn open(url: &str, runtime: Handle) -> Result<Self, StoreError> {
        let name = StoreUrl::Postgres(url.to_owned()).to_string();
        let mut connection_options = ConnectionOptions::read(url, &name)?;
        configure(&mut connection_options.config);
        let sender = getrandom::u64().map_err(|error| StoreError::Broken(format!("{name}: {error}")))?;
        Ok(Self {
            writer: pool(&name, &connection_options, 1, RecyclingMethod::Fast)?,
            // The check of an idle connection costs a round trip, but saves a reader a failure after a restart of the server.
            side: pool(&name, &connection_options, SIDE_CONNECTIONS, RecyclingMethod::Verified)?,
            appends: Appends::new(sender),
            settle_for: SETTLE_FOR,
            listener: Mutex::default(),
            first_sum: OnceLock::new(),
            name,
            connection_options,
            runtime,
        })
    }

    /// See [`super::inspect`].
    pub fn inspect(&self) -> Result<StoreStatus, StoreError> {
        let (encoding, names, head) = self.on_side_connection(async |reader| {
            let transaction = reader.build_transaction().read_only(true).start().await?;
            let encoding = transaction.query_one("SHOW server_encoding", &[]).await?.try_get(0)?;
            let names = match exists(&transaction, "migrations").await? {
                true => migrated(&transaction).await?,
                false => Vec::new(),
            };
            let head = match exists(&transaction, "log").await? {
                true => event_id(transaction.query_one("SELECT head FROM log", &[]).await?.try_get(0)?),
                false => EventId::START,
            };
            Ok::<(String, _, _), _>((encoding, names, head))
        })?;
        self.check_encoding(&encoding)?;
        Ok(StoreStatus { head, pending: migration::pending(&names)?.len() })
    }

    fn check_encoding(&self, encoding: &str) -> Result<(), StoreError> {
        match encoding {
            "UTF8" => Ok(()),
            other => Err(StoreError::Broken(format!(
                "{}: the database has the encoding {other}, which cannot hold every text; create it with ENCODING 'UTF8'",
                self.name
            ))),
        }
    }

    async fn connection(&self, pool: &Pool) -> Result<Client, StoreError> {
        pool.get().await.map_err(|error| explain::pool(&self.name, error))
    }

    /// Waits for the server's answer, at most [`ANSWER_TIMEOUT`].
    async fn answer<T>(
        &self,
        question: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, StoreError> {
        match timeout(ANSWER_TIMEOUT, question).await {
            Ok(answer) => answer.map_err(|error| explain::error(&self.name, &error)),
            Err(_) => Err(StoreError::Unavailable(format!("{}: no answer in {ANSWER_TIMEOUT:?}", self.name))),
        }
    }

    /// Runs `work` on a connection of its own, so that appends are not held up.
    fn on_side_connection<T>(
        &self,
        work: impl AsyncFnOnce(&mut Client) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, StoreError> {
        self.runtime.block_on(async {
            let mut connection = self.connection(&self.side).await?;
            work(&mut connection).await.map_err(|error| explain::error(&self.name, &error))
        })
    }
}

impl Postgres {
    /// Passes the rows of a statement (id, body, stream and checksum each) to `visit` as they arrive, unless one differs from its
    /// checksum.
    fn visit_rows(
        &self,
        statement: &str,
        parameters: &[&(dyn ToSql + Sync)],
        visit: RowVisitor<'_>,
    ) -> Result<(), StoreError> {
        let first = self.first_sum()?;
        self.visit_raw(statement, parameters, &mut |id, body, stream, kept| {
            sum::verify(id, stream, body, kept, first)?;
            Ok(visit(id, body))
        })
    }

    /// Must be called before rows are read, because reading rows occupies a connection. Takes one query during the whole life of the
    /// daemon, unless no row has a checksum yet.
    fn first_sum(&self) -> Result<FirstSum, StoreError> {
        const FIRST: &str = "SELECT id FROM events WHERE sum IS NOT NULL ORDER BY id LIMIT 1";
        if let Some(first) = self.first_sum.get() {
            return Ok(FirstSum::At(*first));
        }
        let row = self.on_side_connection(async |reader| {
            let row = reader.query_opt(FIRST, &[]).await?;
            row.map(|row| row.try_get::<_, i64>(0)).transpose()
        })?;
        Ok(row.map_or(FirstSum::Nowhere, |id| FirstSum::At(*self.first_sum.get_or_init(|| event_id(id)))))
    }

    /// Passes the rows of a statement to `visit`, with their streams and checksums, which are not compared. Memory holds one chunk of the rows
    /// and not the whole result.
    fn visit_raw(
        &self,
        statement: &str,
        parameters: &[&(dyn ToSql + Sync)],
        visit: RawVisitor<'_>,
    ) -> Result<(), StoreError> {
        let explain = |error| explain::error(&self.name, &error);
        let reader = self.runtime.block_on(self.connection(&self.side))?;
        let rows = self.runtime.block_on(self.answer(async {
            let select = reader.prepare_cached(statement).await?;
            reader.query_raw(&select, parameters.iter().copied()).await
        }))?;
        // The visitor runs outside of the runtime, so that it may call the store, as it may with the other back end.
        let mut chunks = pin!(rows.ready_chunks(READ_CHUNK));
        while let Some(chunk) = self.runtime.block_on(self.answer(async { Ok(chunks.next().await) }))? {
            for row in chunk {
                let row = row.map_err(explain)?;
                let (id, body) = (event_id(row.try_get(0).map_err(explain)?), row.try_get(1).map_err(explain)?);
                let (stream, kept) = (row.try_get(2).map_err(explain)?, row.try_get(3).map_err(explain)?);
                if visit(id, body, stream, kept)?.is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

impl Postgres {
    /// Compares every row with its checksum.
    fn check_sums(&self) -> Result<Vec<String>, StoreError> {
        const ALL: &str = "SELECT id, body, stream, sum FROM events ORDER BY id";
        let mut sums = sum::Checker::default();
        self.visit_raw(ALL, &[], &mut |id, body, stream, kept| {
            sums.take(id, stream, body, kept);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(sums.findings())
    }
}

impl Store for Postgres {
    fn migrate(&self) -> Result<(), StoreError> {
        let explain = |error| explain::error(&self.name, &error);
        self.runtime.block_on(async {
            let mut writer = self.connection(&self.writer).await?;
            // The level is named for the same reason as in `BEGIN`: migrations that others applied while this transaction waited must be
            // visible.
            let transaction = writer.build_transaction().isolation_level(IsolationLevel::ReadCommitted);
            let transaction = transaction.start().await.map_err(explain)?;
            let encoding = transaction.query_one("SHOW server_encoding", &[]).await.map_err(explain)?;
            self.check_encoding(encoding.try_get(0).map_err(explain)?)?;
            // If two daemons start together, the second waits here and then finds everything done. The lock ends with the transaction.
            transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&MIGRATION_LOCK]).await.map_err(explain)?;
            let applied = applied(&transaction).await.map_err(explain)?;
            for Migration { name, postgres, .. } in migration::pending(&applied)? {
                transaction.batch_execute(postgres).await.map_err(explain)?;
                transaction.execute("INSERT INTO migrations (name) VALUES ($1)", &[name]).await.map_err(explain)?;
            }
            // An unknown outcome does no harm, because the next start reads the table.
            transaction.commit().await.map_err(explain)
        })
    }

    fn head(&self) -> Result<EventId, StoreError> {
        self.on_side_connection(async |reader| {
            let select = reader.prepare_cached("SELECT head FROM log").await?;
            Ok(event_id(reader.query_one(&select, &[]).await?.try_get(0)?))
        })
    }

    fn append(&self, batch: Batch<'_>) -> Result<EventId, StoreError> {
        self.runtime
            .block_on(async { if batch.rows.is_empty() { self.follows(batch).await } else { self.add(batch).await } })
    }

    fn sum_of(&self, id: EventId) -> Result<Option<u32>, StoreError> {
        let kept = self.on_side_connection(async |reader| {
            let row = reader.query_opt("SELECT sum FROM events WHERE id = $1", &[&position(id)]).await?;
            row.map(|row| row.try_get::<_, Option<i64>>(0)).transpose()
        })?;
        Ok(kept.flatten().map(bits))
    }

    fn read_after(&self, after: EventId, limit: usize, visit: RowVisitor<'_>) -> Result<(), StoreError> {
        self.visit_rows(READ_AFTER, &[&position(after), &count(limit)], visit)
    }

    fn snapshots(&self) -> Result<Vec<Snapshot>, StoreError> {
        let rows = self.on_side_connection(async |reader| {
            reader.query("SELECT at, format, checksum, body FROM snapshots ORDER BY at DESC", &[]).await
        })?;
        rows.iter()
            .map(|row| {
                let [at, format, checksum] = [row.try_get(0)?, row.try_get(1)?, row.try_get(2)?];
                Ok(Snapshot { at: event_id(at), format: bits(format), checksum: bits(checksum), body: row.try_get(3)? })
            })
            .collect::<Result<_, _>>()
            .map_err(|error| explain::error(&self.name, &error))
    }

    /// A commit without an answer counts as failed: a checkpoint is derived from the log, and writing it twice does no harm.
    fn checkpoint(&self, snapshot: &Snapshot, ranges: &MessageRanges) -> Result<EventId, StoreError> {
        self.on_side_connection(async |connection| {
            let transaction = connection.transaction().await?;
            add_snapshot(&transaction, snapshot).await?;
            transaction
                .execute(
                    "DELETE FROM snapshots WHERE at NOT IN (SELECT at FROM snapshots ORDER BY at DESC LIMIT $1)",
                    &[&count(SNAPSHOTS_KEPT)],
                )
                .await?;
            transaction.execute(OLD_MARKS, &[]).await?;
            let mut upto = locked_sound_index(&transaction).await?;
            if upto == ranges.after {
                add_ranges(&transaction, ranges).await?;
                upto = ranges.upto;
            }
            transaction.commit().await?;
            Ok(upto)
        })
    }

    fn indexed(&self) -> Result<Option<EventId>, StoreError> {
        self.on_side_connection(async |reader| {
            reader.query_opt(INDEXED, &[]).await?.map(|row| row.try_get(0).map(event_id)).transpose()
        })
    }

    fn read_parts(&self, parts: &[HistoryRange], recent: &[IdRange], visit: RowVisitor<'_>) -> Result<(), StoreError> {
        let agents: Vec<String> = parts.iter().map(|part| part.agent.to_string()).collect();
        let afters: Vec<i64> = parts.iter().map(|part| position(part.after)).collect();
        let uptos: Vec<i64> = parts.iter().map(|part| position(part.upto)).collect();
        let (los, his) = bounds(recent);
        self.visit_rows(READ_PARTS, &[&agents, &afters, &uptos, &los, &his], visit)
    }

    fn rebuild(&self, snapshot: &Snapshot, ranges: &MessageRanges) -> Result<bool, StoreError> {
        self.on_side_connection(async |connection| {
            let transaction = connection.transaction().await?;
            if locked_sound_index(&transaction).await? > ranges.upto {
                return Ok(false);
            }
            transaction.batch_execute("DELETE FROM snapshots; DELETE FROM message_ranges").await?;
            add_snapshot(&transaction, snapshot).await?;
            add_ranges(&transaction, ranges).await?;
            transaction.commit().await?;
            Ok(true)
        })
    }

    /// Reads every row to its last byte, so that a page or a large value that cannot be read is found.
    fn check(&self) -> Result<Vec<String>, StoreError> {
        let checked = self.on_side_connection(async |reader| {
            let row = reader
                .query_one(
                    "SELECT (SELECT head FROM log), coalesce(max(id), 0), coalesce(min(id), 1), count(*),
                            sum(length(stream) + length(body))
                     FROM events",
                    &[],
                )
                .await?;
            let invalid = reader
                .query(
                    "SELECT indexrelid::regclass::text FROM pg_index
                     WHERE indrelid IN ('log'::regclass, 'events'::regclass, 'snapshots'::regclass, 'message_ranges'::regclass) AND NOT indisvalid",
                    &[],
                )
                .await?;
            let numbers: [i64; 4] =
                [row.try_get::<_, Option<i64>>(0)?.unwrap_or(-1), row.try_get(1)?, row.try_get(2)?, row.try_get(3)?];
            let invalid = invalid.iter().map(|row| row.try_get(0)).collect::<Result<Vec<String>, _>>()?;
            Ok((numbers, invalid))
        });
        let ([head, last, first, rows], invalid) = match checked {
            Ok(checked) => checked,
            Err(StoreError::Damaged(found)) => return Ok(vec![found]),
            Err(error) => return Err(error),
        };
        let mut found: Vec<String> = invalid.iter().map(|index| format!("the index {index} is invalid")).collect();
        if head != last {
            found.push(format!("the log says that it ends at event {head}, but its last row is {last}"));
        }
        if first != 1 || rows != last {
            found.push(format!("the log has {rows} rows, from {first} to {last}: some are missing"));
        }
        found.extend(self.check_sums()?);
        Ok(found)
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn on_foreign_append(&self, notify: AppendCallback) {
        let (options, name, sender) = (self.connection_options.clone(), self.name.clone(), self.appends.sender.clone());
        let listener = NotifyListener::start(&self.runtime, options, name, sender, notify);
        *self.listener.lock().unwrap_or_else(PoisonError::into_inner) = Some(listener);
    }
}

async fn add_snapshot(transaction: &Transaction<'_>, snapshot: &Snapshot) -> Result<(), tokio_postgres::Error> {
    let Snapshot { at, format, checksum, body } = snapshot;
    transaction
        .execute(
            "INSERT INTO snapshots (at, format, checksum, body) VALUES ($1, $2, $3, $4)
             ON CONFLICT (at) DO UPDATE
             SET format = excluded.format, checksum = excluded.checksum, body = excluded.body",
            &[&position(*at), &i64::from(*format), &i64::from(*checksum), body],
        )
        .await?;
    Ok(())
}

/// The last event in the index. An index that is not sound is emptied. The index is locked until the transaction ends.
async fn locked_sound_index(transaction: &Transaction<'_>) -> Result<EventId, tokio_postgres::Error> {
    // A statement of its own, so that the end of the log is read after the wait for the lock.
    transaction.execute("SELECT FROM indexed FOR UPDATE", &[]).await?;
    if let Some(row) = transaction.query_opt(INDEXED, &[]).await? {
        return Ok(event_id(row.try_get(0)?));
    }
    transaction.batch_execute("DELETE FROM message_ranges; UPDATE indexed SET upto = 0, again = 0").await?;
    Ok(EventId::START)
}

/// Adds the ranges to the index, with one statement for all agents. Afterwards the index ends where the ranges end.
async fn add_ranges(transaction: &Transaction<'_>, ranges: &MessageRanges) -> Result<(), tokio_postgres::Error> {
    let each = || ranges.of.iter().flat_map(|(agent, of)| of.iter().map(move |range| (agent, range)));
    let agents: Vec<String> = each().map(|(agent, _)| agent.to_string()).collect();
    let los: Vec<i64> = each().map(|(_, range)| position(range.first)).collect();
    let his: Vec<i64> = each().map(|(_, range)| position(range.last)).collect();
    transaction
        .execute(
            "INSERT INTO message_ranges (agent, first, last, los, his)
             SELECT agent, min(first), max(last), array_agg(first ORDER BY first), array_agg(last ORDER BY first)
             FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS range (agent, first, last)
             GROUP BY agent",
            &[&agents, &los, &his],
        )
        .await?;
    transaction.execute("UPDATE indexed SET upto = $1, again = $1", &[&position(ranges.upto)]).await?;
    Ok(())
}

/// The two ends of each range, in two arrays.
fn bounds(ranges: &[IdRange]) -> (Vec<i64>, Vec<i64>) {
    ranges.iter().map(|range| (position(range.first), position(range.last))).unzip()
}

/// Without the configuration, which has the password.
impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Postgres").field(&self.name).finish()
    }
}

/// Adds Hatchery's settings where the URL has none, and overrides those that must have a certain value.
fn configure(config: &mut Config) {
    if config.get_application_name().is_none() {
        config.application_name("hatchery");
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_TIMEOUT);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(SILENCE);
    }
    if config.get_keepalives_idle() > SILENCE {
        config.keepalives_idle(SILENCE).keepalives_interval(SILENCE / 3).keepalives_retries(3);
    }
    // The last setting wins, and a client's setting wins over the defaults of server, database and role. A commit must not be acknowledged
    // before it is on disk. A statement that waited for another writer must see what that writer has committed. Compiling a statement (jit)
    // takes longer than any of these statements runs.
    let options = format!(
        "{} -c synchronous_commit=on -c default_transaction_isolation=read\\ committed -c jit=off -c lock_timeout={} -c idle_in_transaction_session_timeout={}",
        config.get_options().unwrap_or_default(),
        LOCK_TIMEOUT.as_millis(),
        IDLE_IN_TRANSACTION.as_millis(),
    );
    config.options(options.trim_start());
}

fn pool(
    name: &str,
    options: &ConnectionOptions,
    size: usize,
    recycling_method: RecyclingMethod,
) -> Result<Pool, StoreError> {
    let manager = Manager::from_config(options.config.clone(), options.tls.clone(), ManagerConfig { recycling_method });
    Pool::builder(manager)
        .max_size(size)
        .runtime(Runtime::Tokio1)
        // When all connections are busy, the caller waits as long as one answer may take.
        .wait_timeout(Some(ANSWER_TIMEOUT))
        .create_timeout(Some(CONNECT_TIMEOUT))
        .recycle_timeout(Some(CONNECT_TIMEOUT))
        .build()
        .map_err(|error| StoreError::Broken(format!("{name}: {error}")))
}

/// Creates the table of migrations only if it is missing. So a role without the right to create tables can use a store that is up to date.
async fn applied(transaction: &Transaction<'_>) -> Result<Vec<String>, tokio_postgres::Error> {
    if !exists(transaction, "migrations").await? {
        transaction.batch_execute("CREATE TABLE migrations (name TEXT PRIMARY KEY)").await?;
        return Ok(Vec::new());
    }
    migrated(transaction).await
}

async fn exists(transaction: &Transaction<'_>, table: &str) -> Result<bool, tokio_postgres::Error> {
    transaction.query_one("SELECT to_regclass($1::text) IS NOT NULL", &[&table]).await?.try_get(0)
}

async fn migrated(transaction: &Transaction<'_>) -> Result<Vec<String>, tokio_postgres::Error> {
    let names = transaction.query("SELECT name FROM migrations ORDER BY name COLLATE \"C\"", &[]).await?;
    names.iter().map(|row| row.try_get(0)).collect()
}

/// A position in the log as the server's signed number. A position beyond 2^63 is beyond the end of every log.
fn position(id: EventId) -> i64 {
    i64::try_from(id.0).unwrap_or(i64::MAX)
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Ids begin at 1 and are never negative.
fn event_id(id: i64) -> EventId {
    EventId(id.unsigned_abs())
}

/// A 32-bit number from a wider column. A value that does not fit is damage, which the checksum finds.
fn bits(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_of_the_url_are_kept_but_commits_stay_durable() {
        let mut config = "postgres://ann@host/db?options=-c%20synchronous_commit%3Doff".parse().unwrap();
        configure(&mut config);
        let options = config.get_options().unwrap();
        assert!(options.starts_with("-c synchronous_commit=off -c synchronous_commit=on "), "{options}");
    }

    #[test]
    fn a_commit_whose_outcome_cannot_be_asked_for_stays_unknown() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let mut store = Postgres::open("postgres://ann@%2Fnowhere/db", runtime.handle().clone()).unwrap();
        store.settle_for = Duration::from_millis(50);
        let lost = StoreError::Unavailable("connection closed".to_owned());
        let settled = runtime.block_on(store.settle(EventId(1), 1, lost));
        assert!(matches!(settled, Err(StoreError::Unknown(_))), "{settled:?}");
    }
}
