//! Decides ahead, for a store behind a network: while the server appends one batch, the engine decides the next one. So the server never
//! waits for the engine.
//!
//! ```text
//! server   ── append 1 ──────┐┌── append 2 ──────┐┌── append 3 …
//! engine   decide 2 ─────────┘└ answer 1, decide 3┘└ answer 2, decide 4 …
//! ```
//!
//! The next batch is decided in the world after the current batch. It is sent only when the current batch is durable with the expected ids,
//! so it never has to be undone: if the current batch fails, the next decision is dropped and its commands are decided again.

use super::committer::{CommitSize, Committer};
use super::decision::{CommandOutcome, Decision, NotDone};
use super::thread::{BATCH, EngineThread};
use super::{EngineError, Job};
use crate::store::{Batch, Row, StoreError};
use hatchery_core::{EventId, Refusal, World};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use tokio::task::JoinHandle;

/// After this number of batches the engine looks at everything else: deadlines, other writers, checkpoints, the stop.
const TURNS: usize = 32;

/// Commands that were decided together, with the decision.
struct Decided {
    jobs: Vec<Job>,
    decision: Decision,
    /// The last event of the world in which the commands were decided.
    seen: EventId,
}

/// A batch that the server is appending.
struct SentBatch {
    jobs: Vec<Job>,
    /// Without its rows, which the append has.
    decision: Decision,
    rows: Arc<Vec<Row>>,
    seen: EventId,
    answer: JoinHandle<Result<EventId, StoreError>>,
    sent: Instant,
}

impl SentBatch {
    /// Whether the next batch can be decided before the answer. Only the answer shows which commands wait for mail.
    fn can_be_followed(&self) -> bool {
        let waits = |job: &Job, outcome: &CommandOutcome| {
            job.until.is_some() && matches!(outcome, Err(NotDone::Refused(Refusal::NoMail(_))))
        };
        let mut outcomes = self.jobs.iter().zip(&self.decision.outcomes);
        self.decision.served.is_empty() && !outcomes.any(|(job, outcome)| waits(job, outcome))
    }
}

impl EngineThread {
    /// Commits the jobs, and jobs that arrive in the meantime, for up to [`TURNS`] batches.
    pub(super) fn commit_ahead(&mut self, mut waiting: Vec<Job>) -> Result<(), EngineError> {
        let mut under_way: Option<SentBatch> = None;
        for _ in 0..TURNS {
            if under_way.is_none() {
                let Some(decided) = self.decide_share(&mut waiting, 0, None) else { break };
                under_way = Some(self.send(decided));
            }
            let Some(mut batch) = under_way.take() else { break };
            let (answer, next) = self.wait_for(&mut batch, &mut waiting);
            under_way = match answer {
                Ok(first) if first == batch.seen.next() => {
                    // The next batch goes to the server before anything else is done about this one.
                    let sent = next.map(|decided| self.send(decided));
                    self.accept(batch, first)?;
                    sent
                }
                answer => {
                    // At the front, because these commands came first.
                    waiting.splice(0..0, next.into_iter().flat_map(|decided| decided.jobs));
                    self.settle(batch, answer)?;
                    break;
                }
            };
        }
        if let Some(mut batch) = under_way {
            let answer = self.runtime.block_on(&mut batch.answer);
            self.settle(batch, returned(answer))?;
        }
        match waiting.is_empty() {
            true => Ok(()),
            false => self.commit(waiting),
        }
    }

    /// Waits for the answer to a batch. In the meantime it accepts commands, and decides the next batch.
    fn wait_for(
        &mut self,
        batch: &mut SentBatch,
        waiting: &mut Vec<Job>,
    ) -> (Result<EventId, StoreError>, Option<Decided>) {
        let on_the_way = batch.jobs.len();
        let can_be_followed = batch.can_be_followed();
        let mut next = None;
        let mut is_open = true;
        let answer = loop {
            // As many as are on their way: a larger batch would be decided too late, a smaller one would be followed by a larger one.
            if can_be_followed && next.is_none() && waiting.len() >= on_the_way {
                next = self.decide_share(waiting, on_the_way, Some(&batch.decision.world));
            }
            let inbox = &mut self.inbox;
            let takes = is_open && waiting.len() < BATCH;
            let answer = self.runtime.block_on(async {
                tokio::select! {
                    biased;
                    answer = &mut batch.answer => Some(returned(answer)),
                    count = inbox.recv_many(waiting, BATCH), if takes => {
                        is_open = count > 0;
                        None
                    }
                }
            });
            if let Some(answer) = answer {
                break answer;
            }
        };
        self.shared.asked_at(None);
        let is_as_expected = answer.as_ref().is_ok_and(|first| *first == batch.seen.next());
        if is_as_expected && can_be_followed && next.is_none() {
            next = self.decide_share(waiting, on_the_way, Some(&batch.decision.world));
        }
        (answer, next)
    }

    /// Decides half of the commands that wait or are on their way, so that batches of one and batches of all others do not alternate. None
    /// if no command waits, or if there is nothing to append: a refusal alone is decided in the ordinary way, in a durable world.
    fn decide_share(&self, waiting: &mut Vec<Job>, on_the_way: usize, world: Option<&World>) -> Option<Decided> {
        let share = (on_the_way + waiting.len()).div_ceil(2).min(waiting.len());
        if share == 0 {
            return None;
        }
        let rest = waiting.split_off(share);
        let jobs = std::mem::replace(waiting, rest);
        let committer = self.committer();
        let world = world.unwrap_or_else(|| committer.world());
        let (decision, seen) = (committer.decide(world, &jobs, false), world.head());
        if decision.rows.is_empty() {
            waiting.splice(0..0, jobs);
            return None;
        }
        Some(Decided { jobs, decision, seen })
    }

    /// Gives a batch to the store, on a thread that may block.
    fn send(&self, decided: Decided) -> SentBatch {
        let Decided { jobs, mut decision, seen } = decided;
        let rows = Arc::new(std::mem::take(&mut decision.rows));
        let (reads, fixed) = (decision.reads_by_name(), decision.is_fixed(seen));
        let (store, sent_rows, sent) = (Arc::clone(&self.shared.store), Arc::clone(&rows), Instant::now());
        self.shared.asked_at(Some(sent));
        let append = move || store.append(Batch { seen, reads: &reads, rows: &sent_rows, fixed });
        SentBatch { jobs, decision, rows, seen, answer: self.runtime.spawn_blocking(append), sent }
    }

    /// A batch is durable.
    fn accept(&self, batch: SentBatch, first: EventId) -> Result<(), EngineError> {
        let SentBatch { jobs, mut decision, rows, sent, .. } = batch;
        decision.rows = Arc::try_unwrap(rows).unwrap_or_else(|rows| rows.to_vec());
        let count = jobs.len();
        let mut committer = self.committer();
        committer.note_commit(CommitSize { jobs: count, took: sent.elapsed() });
        committer.report_trouble(None);
        committer.accept(jobs, decision, first)?;
        self.shared.queued.fetch_sub(count, Ordering::Release);
        Ok(())
    }

    /// Handles the answer to a batch after which nothing was sent.
    fn settle(&self, batch: SentBatch, answer: Result<EventId, StoreError>) -> Result<(), EngineError> {
        self.shared.asked_at(None);
        let count = batch.jobs.len();
        match answer {
            Ok(first) => return self.accept(batch, first),
            // Nothing was written. The commands are decided again, with the retries of an ordinary commit.
            Err(StoreError::Conflict | StoreError::Unavailable(_)) => return self.commit(batch.jobs),
            Err(error) => self.committer().fail_for(batch.jobs, error)?,
        }
        self.shared.queued.fetch_sub(count, Ordering::Release);
        Ok(())
    }
}

/// The result of a thread that may block. Its panic continues here.
fn returned<T>(answer: Result<T, tokio::task::JoinError>) -> T {
    match answer {
        Ok(answer) => answer,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

impl Committer {
    /// Fails the jobs because of the store. If it is not known whether their events were recorded, the log is read first.
    fn fail_for(&mut self, jobs: Vec<Job>, error: StoreError) -> Result<(), EngineError> {
        if let StoreError::Unknown(_) = error {
            self.catch_up_if_available()?;
        }
        self.fail(jobs, error);
        Ok(())
    }
}
