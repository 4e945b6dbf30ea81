//! Appending to the shared store.
//!
//! ```text
//! no other writer since:       claim, insert, mark, notify in one statement  ──► one round trip, then it is durable
//! otherwise:                   BEGIN, claim, insert unless in conflict, mark ──► one round trip
//!                              NOTIFY, COMMIT                                ──► one round trip, then it is durable
//! ```
//!
//! Each batch writes its number into its writer's row of `writers`. If the answer is lost, that number shows whether the batch was
//! committed. A statement may still be on its way to the server then. So the epoch of the log is raised first. This waits for every append
//! that has begun, and makes a later one add nothing.

use super::listener::CHANNEL;
use super::{CONNECT_TIMEOUT, Postgres, count, event_id, explain, position};
use crate::store::{Batch, Row, StoreError, sum};
use deadpool_postgres::{Client, Object};
use futures_util::future;
use hatchery_core::EventId;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::error::Severity;

/// The pauses between two questions about a lost commit, doubling from the first value to the second.
const SETTLE_PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// Adds all rows and returns one row, if the log ends where the writer expects it. Otherwise changes nothing. After a wait for another
/// writer, the server reads `head` and `epoch` again. Each row gets its id from its place in the arrays, so the rows need not be sorted.
const APPEND: &str = "
    WITH claim AS (
        UPDATE log SET head = head + cardinality($3::text[]) WHERE head = $1 AND epoch = $2 RETURNING $1 AS seen
    ), added AS (
        INSERT INTO events (id, stream, body, sum)
        SELECT seen + place, stream, body, sum # ((seen + place) & 4294967295)
        FROM claim, unnest($3::text[], $4::text[], $5::bigint[]) WITH ORDINALITY AS row (stream, body, sum, place)
    ), mark AS (
        INSERT INTO writers (sender, batch) SELECT $6, $7::bigint FROM claim
        ON CONFLICT (sender) DO UPDATE SET batch = excluded.batch, at = now()
    )
    SELECT pg_notify($8, $6) FROM claim";
/// The isolation level is named because the server's default may differ: the insert must see what was committed while the claim waited for
/// its lock.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";
const CLAIM: &str = "UPDATE log SET head = head + $1 RETURNING head - $1, epoch";
/// Adds all rows or, if a stream that was read has changed, none. The query bounds the range of ids on both sides itself, so that the
/// server uses the index even with a generic plan.
const INSERT: &str = "
    INSERT INTO events (id, stream, body, sum)
    SELECT log.head - cardinality($3::text[]) + row.place, row.stream, row.body,
           row.sum # ((log.head - cardinality($3::text[]) + row.place) & 4294967295)
    FROM log, unnest($3::text[], $4::text[], $6::bigint[]) WITH ORDINALITY AS row (stream, body, sum, place)
    WHERE NOT ($5 AND log.head - cardinality($3::text[]) <> $1) AND NOT EXISTS (
        SELECT FROM events WHERE id > $1 AND id <= (SELECT head FROM log) AND stream = ANY ($2::text[])
    )";
const MARK: &str = "
    INSERT INTO writers (sender, batch) VALUES ($1, $2)
    ON CONFLICT (sender) DO UPDATE SET batch = excluded.batch, at = now()";
const RAISE_EPOCH: &str = "UPDATE log SET epoch = epoch + 1";
const LAST_BATCH: &str = "SELECT coalesce((SELECT batch FROM writers WHERE sender = $1), 0)";
const FOLLOWS: &str = "
    SELECT head, $3 AND head <> $1 OR EXISTS (
        SELECT FROM events WHERE id > $1 AND id <= head AND stream = ANY ($2::text[])
    ) FROM log";

/// What a writer knows about its appends.
pub(super) struct Appends {
    /// Identifies the writer.
    pub sender: String,
    /// The number of the last batch.
    batch: AtomicI64,
    /// The last known epoch of the log. A wrong one costs a second attempt.
    epoch: AtomicI64,
}

/// The columns of a batch's rows.
struct Columns<'a> {
    streams: Vec<&'a str>,
    bodies: Vec<&'a str>,
    /// Without the ids, which the server adds.
    sums: Vec<i64>,
}

/// How an attempt to append ended, if not with success.
enum NotAdded {
    /// The log does not end where the batch expects it. An attempt with a transaction follows.
    Moved,
    Conflict,
    /// Nothing was written.
    Failed(StoreError),
    /// The server may have committed the batch, with this event as its first.
    Unanswered(EventId, StoreError),
}

impl Appends {
    pub fn new(sender: u64) -> Self {
        Self { sender: format!("{sender:016x}"), batch: AtomicI64::new(0), epoch: AtomicI64::new(0) }
    }
}

impl<'a> Columns<'a> {
    fn of(rows: &'a [Row]) -> Self {
        Self {
            streams: rows.iter().map(|row| row.stream.as_str()).collect(),
            bodies: rows.iter().map(|row| row.body.as_str()).collect(),
            sums: rows.iter().map(|row| i64::from(sum::content_sum(&row.stream, &row.body))).collect(),
        }
    }
}

impl Postgres {
    pub(super) async fn add(&self, batch: Batch<'_>) -> Result<EventId, StoreError> {
        let writer = self.connection(&self.writer).await?;
        let columns = Columns::of(batch.rows);
        let number = self.appends.batch.fetch_add(1, Ordering::Relaxed) + 1;
        let added = match self.add_in_one(&writer, batch.seen, &columns, number).await {
            Err(NotAdded::Moved) => self.add_in_transaction(&writer, batch, &columns, number).await,
            added => added,
        };
        match added {
            Ok(first) => Ok(first),
            Err(NotAdded::Moved | NotAdded::Conflict) => Err(StoreError::Conflict),
            Err(NotAdded::Failed(error)) => {
                discard(writer);
                Err(error)
            }
            Err(NotAdded::Unanswered(first, error)) => {
                discard(writer);
                self.settle(first, number, error).await
            }
        }
    }

    async fn add_in_one(
        &self,
        writer: &Client,
        seen: EventId,
        columns: &Columns<'_>,
        number: i64,
    ) -> Result<EventId, NotAdded> {
        let prepared = self.answer(writer.prepare_cached(APPEND)).await.map_err(NotAdded::Failed)?;
        let (at, epoch) = (position(seen), self.appends.epoch.load(Ordering::Relaxed));
        let Columns { streams, bodies, sums } = columns;
        let mut is_certain = false;
        let claimed = self.answer(async {
            let claimed = writer
                .query(&prepared, &[&at, &epoch, streams, bodies, sums, &self.appends.sender, &number, &CHANNEL])
                .await;
            is_certain = claimed.as_ref().is_err_and(is_only_the_statement);
            claimed
        });
        match claimed.await {
            Ok(claimed) if claimed.is_empty() => Err(NotAdded::Moved),
            Ok(_) => Ok(seen.next()),
            Err(error) if is_certain => Err(NotAdded::Failed(error)),
            Err(error) => Err(NotAdded::Unanswered(seen.next(), error)),
        }
    }

    async fn add_in_transaction(
        &self,
        writer: &Client,
        batch: Batch<'_>,
        columns: &Columns<'_>,
        number: i64,
    ) -> Result<EventId, NotAdded> {
        // COMMIT has not been sent, so nothing is written if this fails: the server rolls back when it notices the closed connection.
        let inserted = self.claim_and_insert(writer, batch, columns, number).await.map_err(NotAdded::Failed)?;
        let Some(first) = inserted else {
            return match self.answer(writer.batch_execute("ROLLBACK")).await {
                Ok(()) => Err(NotAdded::Conflict),
                Err(error) => Err(NotAdded::Failed(error)),
            };
        };
        // One notification for the whole batch. One for every row would cost most of the throughput.
        let commit = format!("NOTIFY {CHANNEL}, '{}'; COMMIT", self.appends.sender);
        match self.answer(writer.batch_execute(&commit)).await {
            Ok(()) => Ok(first),
            Err(error) => Err(NotAdded::Unanswered(first, error)),
        }
    }

    /// The first id of the batch. None if the batch is in conflict; then the caller rolls the transaction back.
    async fn claim_and_insert(
        &self,
        writer: &Client,
        batch: Batch<'_>,
        columns: &Columns<'_>,
        number: i64,
    ) -> Result<Option<EventId>, StoreError> {
        let (rows, seen) = (count(batch.rows.len()), position(batch.seen));
        let Columns { streams, bodies, sums } = columns;
        self.answer(async {
            let claim = writer.prepare_cached(CLAIM).await?;
            let insert = writer.prepare_cached(INSERT).await?;
            let mark = writer.prepare_cached(MARK).await?;
            // The four futures are polled together and in this order, so they are sent together and in this order. The insert is a separate
            // statement, because its view of the log must begin after the claim has got the lock.
            let (begun, claimed, inserted, marked) = future::join4(
                writer.batch_execute(BEGIN),
                writer.query_one(&claim, &[&rows]),
                writer.execute(&insert, &[&seen, &batch.reads, streams, bodies, &batch.fixed, sums]),
                writer.execute(&mark, &[&self.appends.sender, &number]),
            )
            .await;
            begun?;
            let claimed = claimed?;
            if inserted? == 0 {
                return Ok(None);
            }
            marked?;
            self.appends.epoch.store(claimed.try_get(1)?, Ordering::Relaxed);
            Ok(Some(event_id(claimed.try_get(0)?).next()))
        })
        .await
    }

    /// Finds out whether a batch without an answer was committed. Only the server's data count: a server that shuts down may report an
    /// error for a commit that is valid.
    pub(super) async fn settle(&self, first: EventId, number: i64, error: StoreError) -> Result<EventId, StoreError> {
        let deadline = Instant::now() + self.settle_for;
        let (mut pause, longest) = SETTLE_PAUSES;
        while Instant::now() < deadline {
            match timeout(CONNECT_TIMEOUT, self.last_batch()).await {
                Ok(Ok(last)) if last >= number => return Ok(first),
                Ok(Ok(_)) => return Err(error),
                // The server is not up yet, or the append is still in progress.
                Ok(Err(_)) | Err(_) => {}
            }
            sleep(pause).await;
            pause = longest.min(pause * 2);
        }
        Err(StoreError::Unknown(error.to_string()))
    }

    /// The last committed batch of this writer. This is final: an append that is still on its way adds nothing any more.
    async fn last_batch(&self) -> Result<i64, StoreError> {
        let connection = self.connection(&self.side).await?;
        let asked = async {
            connection.execute(RAISE_EPOCH, &[]).await?;
            connection.query_one(LAST_BATCH, &[&self.appends.sender]).await?.try_get(0)
        };
        asked.await.map_err(|error| explain::error(&self.name, &error))
    }

    /// An append without rows, which only checks for a conflict.
    pub(super) async fn follows(&self, batch: Batch<'_>) -> Result<EventId, StoreError> {
        let reader = self.connection(&self.side).await?;
        let (head, moved) = self
            .answer(async {
                let row = reader.query_one(FOLLOWS, &[&position(batch.seen), &batch.reads, &batch.fixed]).await?;
                Ok((event_id(row.try_get(0)?), row.try_get::<_, bool>(1)?))
            })
            .await?;
        if moved { Err(StoreError::Conflict) } else { Ok(head.next()) }
    }
}

/// Whether only the statement failed. Then the server has undone it, and the connection can still be used.
fn is_only_the_statement(error: &tokio_postgres::Error) -> bool {
    let severity = error.as_db_error().and_then(tokio_postgres::error::DbError::parsed_severity);
    severity == Some(Severity::Error)
}

/// Closes a connection instead of returning it to its pool, because its transaction is in an unknown state.
fn discard(connection: Client) {
    drop(Object::take(connection));
}
