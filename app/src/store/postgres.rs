//! The shared store. Every append takes its ids under the lock of the one row in `log` and holds that lock until it is
//! committed. So ids have no gaps, and they become visible in order: whoever follows the log by a cursor never skips an
//! event that commits late, as happens with ids from a sequence.
//!
//! ```text
//! append:  BEGIN, claim the ids, insert unless in conflict ──► one round trip
//!          NOTIFY, COMMIT                                  ──► one round trip, then it is durable
//! ```
//!
//! The calls block on a runtime that carries the connections. It must have worker threads of its own, and no call may
//! come from inside it. The server is PostgreSQL 13 or later: older ones cannot name a transaction for good.

mod explain;
mod line;
mod listener;

use super::migration::{self, Migration};
use super::{
    Batch, Hint, IdRange, Look, MessageRanges, Row, SNAPSHOTS_KEPT, Snapshot, Store, StoreError, StoreUrl, Visit,
};
use deadpool_postgres::{Client, Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime, Transaction};
use futures_util::{StreamExt as _, future};
use hatchery_core::EventId;
use hatchery_core::history::Range;
use line::Line;
use listener::{CHANNEL, Listener};
use std::fmt;
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Config, IsolationLevel};

pub use line::{Unfit, check};

/// How long a new connection may take. A server that is up answers in milliseconds, also over a bad line.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an append waits for an answer before it counts the connection as lost. Longer than [`LOCK_TIMEOUT`], so that
/// a server that only waits for another writer says so itself.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a statement waits for another writer's lock. Appends hold theirs for milliseconds.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// After this the server ends a transaction whose client has fallen silent: a writer that was suspended between claim
/// and commit must not hold up all the others.
const IDLE_IN_TRANSACTION: Duration = Duration::from_secs(5);
/// After this without a sign of life a silent connection is probed, and unanswered data makes it count as lost.
const SILENCE: Duration = Duration::from_secs(15);
/// Connections beside the appender's: a few readers catch up at the same time, and a server has a hundred for everybody.
const SIDE_CONNECTIONS: usize = 4;
/// Rows taken over at once from a reader's connection.
const READ_CHUNK: usize = 256;
/// How long to find out what became of a commit whose answer was lost. A server restarts within this time.
const SETTLE_FOR: Duration = Duration::from_secs(15);
/// Pauses between two questions about a lost commit, doubling from the first to the second.
const SETTLE_PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));
/// The advisory lock of migrations: any number, the same for every Hatchery.
const MIGRATION_LOCK: i64 = 0x6861_7463_6865_7279;

/// The isolation level is said, because a default of the server could be another: the insert must see what was committed
/// while the claim waited for its lock.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";
const CLAIM: &str = "UPDATE log SET head = head + $1 RETURNING head - $1, pg_current_xact_id()::text";
/// Adds all rows or, when a stream that was read has moved on, none. The range of ids is closed on both sides by the
/// question's own bounds, so that a plan made without knowing them still takes the index.
const INSERT: &str = "
    INSERT INTO events (id, stream, body)
    SELECT log.head - cardinality($3::text[]) + row.place, row.stream, row.body
    FROM log, unnest($3::text[], $4::text[]) WITH ORDINALITY AS row (stream, body, place)
    WHERE NOT ($5 AND log.head - cardinality($3::text[]) <> $1) AND NOT EXISTS (
        SELECT FROM events WHERE id > $1 AND id <= (SELECT head FROM log) AND stream = ANY ($2::text[])
    )
    ORDER BY row.place";
const FOLLOWS: &str = "
    SELECT head, $3 AND head <> $1 OR EXISTS (
        SELECT FROM events WHERE id > $1 AND id <= head AND stream = ANY ($2::text[])
    ) FROM log";
const READ_PARTS: &str = "
    SELECT events.id, events.body
    FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS part (agent, after, upto)
    JOIN message_ranges ON message_ranges.agent = part.agent AND message_ranges.first <= part.upto AND message_ranges.last > part.after
    CROSS JOIN LATERAL unnest(message_ranges.los, message_ranges.his) AS range (first, last)
    JOIN events ON events.id BETWEEN greatest(range.first, part.after + 1) AND least(range.last, part.upto)
    UNION ALL
    SELECT events.id, events.body
    FROM unnest($4::bigint[], $5::bigint[]) AS range (first, last)
    JOIN events ON events.id BETWEEN range.first AND range.last";
const READ_AFTER: &str = "SELECT id, body FROM events WHERE id > $1 ORDER BY id LIMIT $2";
/// Silent on a standby: it may lag, and then it knows nothing of our transaction yet.
const STATUS: &str = "SELECT CASE WHEN pg_is_in_recovery() THEN NULL ELSE pg_xact_status($1::text::xid8) END";
const IS_THERE: &str = "SELECT EXISTS (SELECT FROM events WHERE id = $1 AND stream = $2 AND body = $3)";

pub struct Postgres {
    /// The URL without its password, for messages.
    name: String,
    line: Line,
    runtime: Handle,
    /// One connection: a process has one appender.
    writer: Pool,
    /// Everything but appends.
    side: Pool,
    /// Marks our own notifications, which are no news to us.
    mark: String,
    settle_for: Duration,
    listener: Mutex<Option<Listener>>,
}

/// A batch that was inserted and waits for its commit.
struct Claimed {
    first: EventId,
    transaction: String,
}

/// What became of a transaction.
enum Outcome {
    Committed,
    Aborted,
    InDoubt,
}

impl Postgres {
    /// Prepares the connections and makes none: the first call does.
    pub fn open(url: &str, runtime: Handle) -> Result<Self, StoreError> {
        let name = StoreUrl::Postgres(url.to_owned()).to_string();
        let mut line = Line::to(url, &name)?;
        configure(&mut line.config);
        let mark = getrandom::u64().map_err(|error| StoreError::Broken(format!("{name}: {error}")))?;
        Ok(Self {
            writer: pool(&name, &line, 1, RecyclingMethod::Fast)?,
            // Asking an idle connection whether it still stands costs a round trip, and saves a reader from a restart.
            side: pool(&name, &line, SIDE_CONNECTIONS, RecyclingMethod::Verified)?,
            mark: format!("{mark:016x}"),
            settle_for: SETTLE_FOR,
            listener: Mutex::default(),
            name,
            line,
            runtime,
        })
    }

    /// See [`super::look`].
    pub fn look(&self) -> Result<Look, StoreError> {
        let (encoding, names, head) = self.beside(async |reader| {
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
        Ok(Look { head, pending: migration::pending(&names)?.len() })
    }

    fn check_encoding(&self, encoding: &str) -> Result<(), StoreError> {
        match encoding {
            "UTF8" => Ok(()),
            other => Err(StoreError::Broken(format!(
                "{}: the database is in {other} and cannot hold every text: create it with ENCODING 'UTF8'",
                self.name
            ))),
        }
    }

    async fn connection(&self, pool: &Pool) -> Result<Client, StoreError> {
        pool.get().await.map_err(|error| explain::pool(&self.name, error))
    }

    /// Waits for the server's answer, but not for ever.
    async fn answer<T>(
        &self,
        question: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, StoreError> {
        match timeout(ANSWER_TIMEOUT, question).await {
            Ok(answer) => answer.map_err(|error| explain::error(&self.name, &error)),
            Err(_) => Err(StoreError::Unavailable(format!("{}: no answer in {ANSWER_TIMEOUT:?}", self.name))),
        }
    }

    /// Runs on a connection of its own, so that appends go on meanwhile.
    fn beside<T>(
        &self,
        range: impl AsyncFnOnce(&mut Client) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, StoreError> {
        self.runtime.block_on(async {
            let mut connection = self.connection(&self.side).await?;
            range(&mut connection).await.map_err(|error| explain::error(&self.name, &error))
        })
    }

    async fn add(&self, batch: Batch<'_>) -> Result<EventId, StoreError> {
        let writer = self.connection(&self.writer).await?;
        match self.claim_and_insert(&writer, batch).await {
            Ok(Some(claimed)) => match self.commit(&writer).await {
                Ok(()) => Ok(claimed.first),
                Err(error) => {
                    discard(writer);
                    self.settle(&claimed, &batch.rows[0], error).await
                }
            },
            Ok(None) => {
                if self.answer(writer.batch_execute("ROLLBACK")).await.is_err() {
                    discard(writer);
                }
                Err(StoreError::Conflict)
            }
            // COMMIT was not sent, so nothing is written: the server rolls back when it sees the connection go.
            Err(error) => {
                discard(writer);
                Err(error)
            }
        }
    }

    /// Gives nothing when the batch is in conflict; its transaction is to be rolled back then.
    async fn claim_and_insert(&self, writer: &Client, batch: Batch<'_>) -> Result<Option<Claimed>, StoreError> {
        let streams: Vec<&str> = batch.rows.iter().map(|row| row.stream.as_str()).collect();
        let bodies: Vec<&str> = batch.rows.iter().map(|row| row.body.as_str()).collect();
        let count = count(batch.rows.len());
        let seen = place(batch.seen);
        self.answer(async {
            let claim = writer.prepare_cached(CLAIM).await?;
            let insert = writer.prepare_cached(INSERT).await?;
            // Polled together and in this order, the three travel together and in this order. The insert is a statement
            // of its own: its view of the log begins only after the claim has got the lock.
            let (begun, claimed, inserted) = future::join3(
                writer.batch_execute(BEGIN),
                writer.query_one(&claim, &[&count]),
                writer.execute(&insert, &[&seen, &batch.reads, &streams, &bodies, &batch.fixed]),
            )
            .await;
            begun?;
            let claimed = claimed?;
            if inserted? == 0 {
                return Ok(None);
            }
            let first = event_id(claimed.try_get(0)?).next();
            Ok(Some(Claimed { first, transaction: claimed.try_get(1)? }))
        })
        .await
    }

    /// Tells the others once for the whole batch: a notification for every row would cost most of the throughput.
    async fn commit(&self, writer: &Client) -> Result<(), StoreError> {
        let statements = format!("NOTIFY {CHANNEL}, '{}'; COMMIT", self.mark);
        self.answer(writer.batch_execute(&statements)).await
    }

    /// Finds out what became of a commit that was not answered with success. Whatever the answer said, only the server's
    /// record counts: one that is shut down may report an error for a commit that stands.
    async fn settle(&self, claimed: &Claimed, row: &Row, error: StoreError) -> Result<EventId, StoreError> {
        let deadline = Instant::now() + self.settle_for;
        let (mut pause, longest) = SETTLE_PAUSES;
        while Instant::now() < deadline {
            match timeout(CONNECT_TIMEOUT, self.outcome(claimed, row)).await {
                Ok(Ok(Outcome::Committed)) => return Ok(claimed.first),
                Ok(Ok(Outcome::Aborted)) => return Err(error),
                // Still in progress, or the server is not up yet.
                Ok(Ok(Outcome::InDoubt) | Err(_)) | Err(_) => {}
            }
            sleep(pause).await;
            pause = longest.min(pause * 2);
        }
        Err(StoreError::Unknown(error.to_string()))
    }

    async fn outcome(&self, claimed: &Claimed, row: &Row) -> Result<Outcome, StoreError> {
        let reader = self.connection(&self.side).await?;
        let asked = async {
            let status = match reader.query_one(STATUS, &[&claimed.transaction]).await {
                Ok(status) => status.try_get::<_, Option<&str>>(0)?.map(str::to_owned),
                // A number that the server has not given out yet: it crashed before it had kept anything of ours.
                Err(error) if error.code() == Some(&SqlState::INVALID_PARAMETER_VALUE) => return Ok(Outcome::Aborted),
                Err(error) => return Err(error),
            };
            match status.as_deref() {
                Some("committed") => {}
                Some("aborted") => return Ok(Outcome::Aborted),
                Some(_) | None => return Ok(Outcome::InDoubt),
            }
            // After a crash the server may have given our number to somebody else's transaction. Ours was then lost, so
            // the number alone proves nothing: our row must be there, too.
            let there = reader.query_one(IS_THERE, &[&place(claimed.first), &row.stream, &row.body]).await?;
            Ok(if there.try_get(0)? { Outcome::Committed } else { Outcome::Aborted })
        };
        asked.await.map_err(|error| explain::error(&self.name, &error))
    }

    /// What an append of nothing amounts to: a look at whether it would have been a conflict.
    async fn follows(&self, batch: Batch<'_>) -> Result<EventId, StoreError> {
        let reader = self.connection(&self.side).await?;
        let (head, moved) = self
            .answer(async {
                let row = reader.query_one(FOLLOWS, &[&place(batch.seen), &batch.reads, &batch.fixed]).await?;
                Ok((event_id(row.try_get(0)?), row.try_get::<_, bool>(1)?))
            })
            .await?;
        if moved { Err(StoreError::Conflict) } else { Ok(head.next()) }
    }
}

impl Store for Postgres {
    fn migrate(&self) -> Result<(), StoreError> {
        let explain = |error| explain::error(&self.name, &error);
        self.runtime.block_on(async {
            let mut writer = self.connection(&self.writer).await?;
            // The level is said for the same reason as in BEGIN: what others applied while we waited must show.
            let transaction = writer.build_transaction().isolation_level(IsolationLevel::ReadCommitted);
            let transaction = transaction.start().await.map_err(explain)?;
            let encoding = transaction.query_one("SHOW server_encoding", &[]).await.map_err(explain)?;
            self.check_encoding(encoding.try_get(0).map_err(explain)?)?;
            // Two daemons that start together take turns; the second finds everything done. The lock ends with the
            // transaction.
            transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&MIGRATION_LOCK]).await.map_err(explain)?;
            let applied = applied(&transaction).await.map_err(explain)?;
            for Migration { name, postgres, .. } in migration::pending(&applied)? {
                transaction.batch_execute(postgres).await.map_err(explain)?;
                transaction.execute("INSERT INTO migrations (name) VALUES ($1)", &[name]).await.map_err(explain)?;
            }
            // An unknown outcome needs no care here: the next start asks the table.
            transaction.commit().await.map_err(explain)
        })
    }

    fn head(&self) -> Result<EventId, StoreError> {
        self.beside(async |reader| {
            let select = reader.prepare_cached("SELECT head FROM log").await?;
            Ok(event_id(reader.query_one(&select, &[]).await?.try_get(0)?))
        })
    }

    fn append(&self, batch: Batch<'_>) -> Result<EventId, StoreError> {
        self.runtime
            .block_on(async { if batch.rows.is_empty() { self.follows(batch).await } else { self.add(batch).await } })
    }

    fn read_after(&self, after: EventId, limit: usize, visit: Visit<'_>) -> Result<(), StoreError> {
        let explain = |error| explain::error(&self.name, &error);
        let reader = self.runtime.block_on(self.connection(&self.side))?;
        let rows = self.runtime.block_on(self.answer(async {
            let select = reader.prepare_cached(READ_AFTER).await?;
            reader.query_raw(&select, [place(after), count(limit)]).await
        }))?;
        // The visitor runs outside of the runtime, so that it may call the store as it may with the other back end.
        let mut chunks = pin!(rows.ready_chunks(READ_CHUNK));
        while let Some(chunk) = self.runtime.block_on(self.answer(async { Ok(chunks.next().await) }))? {
            for row in chunk {
                let row = row.map_err(explain)?;
                let (id, body) = (row.try_get(0).map_err(explain)?, row.try_get(1).map_err(explain)?);
                if visit(event_id(id), body).is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn snapshots(&self) -> Result<Vec<Snapshot>, StoreError> {
        let rows = self.beside(async |reader| {
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

    /// A commit without an answer counts as failed: all of this is derived, and keeping it twice does no harm.
    fn checkpoint(&self, snapshot: &Snapshot, ranges: &MessageRanges) -> Result<EventId, StoreError> {
        self.beside(async |connection| {
            let transaction = connection.transaction().await?;
            add_snapshot(&transaction, snapshot).await?;
            transaction
                .execute(
                    "DELETE FROM snapshots WHERE at NOT IN (SELECT at FROM snapshots ORDER BY at DESC LIMIT $1)",
                    &[&count(SNAPSHOTS_KEPT)],
                )
                .await?;
            let mut upto = locked_index(&transaction).await?;
            if upto == ranges.after {
                add_ranges(&transaction, ranges).await?;
                upto = ranges.upto;
            }
            transaction.commit().await?;
            Ok(upto)
        })
    }

    fn indexed(&self) -> Result<EventId, StoreError> {
        self.beside(async |reader| Ok(event_id(reader.query_one("SELECT upto FROM indexed", &[]).await?.try_get(0)?)))
    }

    fn read_parts(&self, parts: &[Range], recent: &[IdRange], visit: Visit<'_>) -> Result<(), StoreError> {
        let agents: Vec<String> = parts.iter().map(|part| part.agent.to_string()).collect();
        let afters: Vec<i64> = parts.iter().map(|part| place(part.after)).collect();
        let uptos: Vec<i64> = parts.iter().map(|part| place(part.upto)).collect();
        let (los, his) = bounds(recent);
        let rows = self.beside(async |reader| {
            let select = reader.prepare_cached(READ_PARTS).await?;
            reader.query(&select, &[&agents, &afters, &uptos, &los, &his]).await
        })?;
        let explain = |error| explain::error(&self.name, &error);
        for row in rows {
            if visit(event_id(row.try_get(0).map_err(explain)?), row.try_get(1).map_err(explain)?).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn rebuild(&self, snapshot: &Snapshot, ranges: &MessageRanges) -> Result<bool, StoreError> {
        self.beside(async |connection| {
            let transaction = connection.transaction().await?;
            if locked_index(&transaction).await? > ranges.upto {
                return Ok(false);
            }
            transaction.batch_execute("DELETE FROM snapshots; DELETE FROM message_ranges").await?;
            add_snapshot(&transaction, snapshot).await?;
            add_ranges(&transaction, ranges).await?;
            transaction.commit().await?;
            Ok(true)
        })
    }

    /// Reads every row to its last byte, so that a page or a large value that cannot be read shows itself.
    fn check(&self) -> Result<Vec<String>, StoreError> {
        let looked = self.beside(async |reader| {
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
        let ([head, last, first, rows], invalid) = match looked {
            Ok(looked) => looked,
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
        Ok(found)
    }

    fn on_foreign_append(&self, hint: Hint) {
        let listener = Listener::start(&self.runtime, self.line.clone(), self.name.clone(), self.mark.clone(), hint);
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
            &[&place(*at), &i64::from(*format), &i64::from(*checksum), body],
        )
        .await?;
    Ok(())
}

/// How far the index goes, for nobody else to change until the transaction ends.
async fn locked_index(transaction: &Transaction<'_>) -> Result<EventId, tokio_postgres::Error> {
    let upto = transaction.query_one("SELECT upto FROM indexed FOR UPDATE", &[]).await?;
    Ok(event_id(upto.try_get(0)?))
}

/// Adds to the index, which then goes as far as the ranges do: one statement, however many agents there are.
async fn add_ranges(transaction: &Transaction<'_>, ranges: &MessageRanges) -> Result<(), tokio_postgres::Error> {
    let each = || ranges.of.iter().flat_map(|(agent, of)| of.iter().map(move |range| (agent, range)));
    let agents: Vec<String> = each().map(|(agent, _)| agent.to_string()).collect();
    let los: Vec<i64> = each().map(|(_, range)| place(range.first)).collect();
    let his: Vec<i64> = each().map(|(_, range)| place(range.last)).collect();
    transaction
        .execute(
            "INSERT INTO message_ranges (agent, first, last, los, his)
             SELECT agent, min(first), max(last), array_agg(first ORDER BY first), array_agg(last ORDER BY first)
             FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS range (agent, first, last)
             GROUP BY agent",
            &[&agents, &los, &his],
        )
        .await?;
    transaction.execute("UPDATE indexed SET upto = $1", &[&place(ranges.upto)]).await?;
    Ok(())
}

/// The two ends of each range, in two arrays.
fn bounds(ranges: &[IdRange]) -> (Vec<i64>, Vec<i64>) {
    ranges.iter().map(|range| (place(range.first), place(range.last))).unzip()
}

/// Never the configuration, which knows the password.
impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Postgres").field(&self.name).finish()
    }
}

/// The URL's own settings, and ours where it leaves them open or where they are not its to choose.
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
    // Last wins, and what a client asks for wins over the defaults of server, database and role. A commit that is
    // acknowledged before it is on disk would be a lie; compiling a statement takes longer than any of ours runs.
    let options = format!(
        "{} -c synchronous_commit=on -c lock_timeout={} -c idle_in_transaction_session_timeout={} -c jit=off",
        config.get_options().unwrap_or_default(),
        LOCK_TIMEOUT.as_millis(),
        IDLE_IN_TRANSACTION.as_millis(),
    );
    config.options(options.trim_start());
}

fn pool(name: &str, line: &Line, size: usize, recycling_method: RecyclingMethod) -> Result<Pool, StoreError> {
    let manager = Manager::from_config(line.config.clone(), line.tls.clone(), ManagerConfig { recycling_method });
    Pool::builder(manager)
        .max_size(size)
        .runtime(Runtime::Tokio1)
        // All of them are busy: the caller waits for as long as one answer may take.
        .wait_timeout(Some(ANSWER_TIMEOUT))
        .create_timeout(Some(CONNECT_TIMEOUT))
        .recycle_timeout(Some(CONNECT_TIMEOUT))
        .build()
        .map_err(|error| StoreError::Broken(format!("{name}: {error}")))
}

/// Takes a connection out of its pool, and closes it: its transaction is in a state that the next user must not inherit.
fn discard(connection: Client) {
    drop(Object::take(connection));
}

/// Makes the table of migrations only where it is missing, so that a role without the right to create tables can use a
/// store that is up to date.
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

/// A place in the log as a number of the server's. It counts to 2^63, and what lies beyond that is beyond the end.
fn place(id: EventId) -> i64 {
    i64::try_from(id.0).unwrap_or(i64::MAX)
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Ids begin at 1 and are never negative.
fn event_id(id: i64) -> EventId {
    EventId(id.unsigned_abs())
}

/// A 32-bit number that was kept in a wider column. A value that does not fit is damage, and the checksum finds it.
fn bits(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_urls_own_options_are_kept_but_cannot_make_a_commit_lie() {
        let mut config = "postgres://ann@host/db?options=-c%20synchronous_commit%3Doff".parse().unwrap();
        configure(&mut config);
        let options = config.get_options().unwrap();
        assert!(options.starts_with("-c synchronous_commit=off -c synchronous_commit=on "), "{options}");
    }

    #[test]
    fn a_commit_that_nobody_can_be_asked_about_stays_unknown() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let mut store = Postgres::open("postgres://ann@%2Fnowhere/db", runtime.handle().clone()).unwrap();
        store.settle_for = Duration::from_millis(50);
        let claimed = Claimed { first: EventId(1), transaction: "1".to_owned() };
        let row = Row { id: EventId(1), stream: "a".to_owned(), body: "{}".to_owned() };
        let lost = StoreError::Unavailable("connection closed".to_owned());
        let settled = runtime.block_on(store.settle(&claimed, &row, lost));
        assert!(matches!(settled, Err(StoreError::Unknown(_))), "{settled:?}");
    }
}
