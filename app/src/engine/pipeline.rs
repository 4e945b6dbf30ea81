//! Two batches on their way to a store behind a network. The server syncs one while the engine decides the next, and no time is lost
//! between two syncs.
//!
//! The second batch is decided in the world that the first one leads to. It counts only if the first one does, so nobody sees anything of
//! it before: batches are answered and published one after the other, each when it is durable. If one of them adds nothing, or its
//! answer is an error, the others on their way are waited for, and all their commands are decided again.

use super::committer::{CommitSize, Committer};
use super::decision::{Decision, NotDone, Outcome};
use super::thread::{BATCH, EngineThread};
use super::{EngineError, Job};
use crate::store::{Row, SentAppend, Store, StoreError};
use hatchery_core::{EventId, Refusal, World};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// More would not help: the server syncs one at a time, and another one waits.
const ON_THE_WAY: usize = 2;
/// After so many batches the engine looks at everything else: deadlines, other writers, checkpoints, the stop.
const TURNS: usize = 32;

/// A batch that was sent.
pub(super) struct SentBatch<'a> {
    jobs: Vec<Job>,
    /// Its rows are in `rows`, which the store has as well.
    decision: Decision,
    rows: Arc<Vec<Row>>,
    answer: SentAppend<'a>,
    sent: Instant,
}

impl SentBatch<'_> {
    /// Whether the next batch can be decided before this one is answered. Who waits for mail is known only then.
    fn can_be_followed(&self) -> bool {
        let waits = |job: &Job, outcome: &Outcome| {
            job.until.is_some() && matches!(outcome, Err(NotDone::Refused(Refusal::NoMail(_))))
        };
        let mut outcomes = self.jobs.iter().zip(&self.decision.outcomes);
        self.decision.served.is_empty() && !outcomes.any(|(job, outcome)| waits(job, outcome))
    }
}

impl EngineThread {
    /// Commits the jobs, and those that come meanwhile.
    pub(super) fn commit_in_turns(&mut self, jobs: Vec<Job>) -> Result<(), EngineError> {
        let store = Arc::clone(&self.shared.store);
        let mut waiting = jobs;
        let mut batches: VecDeque<SentBatch<'_>> = VecDeque::with_capacity(ON_THE_WAY);
        let mut turns = if store.is_shared() && waiting.len() > 1 { TURNS } else { 0 };
        loop {
            while turns > 0 && batches.len() < ON_THE_WAY && !waiting.is_empty() {
                if batches.back().is_some_and(|last| !last.can_be_followed()) {
                    break;
                }
                // Half of all who wait each. Otherwise a batch of one and a batch of all others would take turns for ever.
                let on_the_way: usize = batches.iter().map(|batch| batch.jobs.len()).sum();
                let share = (on_the_way + waiting.len()).div_ceil(ON_THE_WAY).min(waiting.len());
                let rest = waiting.split_off(share);
                let ahead = batches.back().map(|last| &last.decision.world);
                match self.committer().send(store.as_ref(), ahead, waiting) {
                    Ok(sent) => {
                        batches.push_back(sent);
                        waiting = rest;
                        turns -= 1;
                    }
                    // They are committed when nothing is on its way any more.
                    Err(given_back) => {
                        waiting = given_back;
                        waiting.extend(rest);
                        turns = 0;
                    }
                }
            }
            let room = turns > 0 && batches.len() < ON_THE_WAY;
            let Some(first) = batches.front_mut() else { break };
            let inbox = &mut self.inbox;
            let answer = self.runtime.block_on(async {
                tokio::select! {
                    biased;
                    answer = &mut first.answer => Some(answer),
                    count = inbox.recv_many(&mut waiting, BATCH), if room && waiting.is_empty() => {
                        turns = if count == 0 { 0 } else { turns };
                        None
                    }
                }
            });
            let Some(answer) = answer else {
                let last = self.committer().last_commit();
                self.gather(&mut waiting, last);
                continue;
            };
            let Some(batch) = batches.pop_front() else { break };
            match answer {
                Ok(_) => {
                    let count = batch.jobs.len();
                    self.committer().accept_sent(batch)?;
                    self.shared.queued.fetch_sub(count, Ordering::Release);
                }
                Err(error) => {
                    turns = 0;
                    self.decide_again(batch, Err(error), batches.drain(..).collect())?;
                }
            }
            self.shared.asked_at(batches.front().map(|batch| batch.sent));
        }
        match waiting.is_empty() {
            true => Ok(()),
            false => self.commit(waiting),
        }
    }

    /// A batch did not count. Waits for those behind it, because nothing else may be sent before their answers are here.
    fn decide_again(
        &self,
        batch: SentBatch<'_>,
        answer: Result<EventId, StoreError>,
        behind: Vec<SentBatch<'_>>,
    ) -> Result<(), EngineError> {
        let mut answered = vec![(batch.jobs, batch.decision, answer)];
        drop(batch.answer);
        for SentBatch { jobs, decision, answer, .. } in behind {
            answered.push((jobs, decision, self.runtime.block_on(answer)));
        }
        self.shared.asked_at(None);
        for (jobs, decision, answer) in answered {
            let count = jobs.len();
            self.committer().settle_sent(jobs, decision, answer)?;
            self.shared.queued.fetch_sub(count, Ordering::Release);
        }
        Ok(())
    }
}

impl Committer {
    /// Decides jobs in the world that the last batch on its way leads to, or in the durable one, and sends their events. Gives
    /// the jobs back if they have no events: then their refusals have to rest on what is durable.
    fn send<'a>(&self, store: &'a dyn Store, ahead: Option<&World>, jobs: Vec<Job>) -> Result<SentBatch<'a>, Vec<Job>> {
        let world = ahead.unwrap_or_else(|| self.world());
        let mut decision = self.decide(world, &jobs, false);
        if decision.rows.is_empty() {
            return Err(jobs);
        }
        let rows = Arc::new(std::mem::take(&mut decision.rows));
        let sent = Instant::now();
        match store.send(world.head(), Arc::clone(&rows)) {
            Some(answer) => {
                self.shared().asked_at(Some(sent));
                Ok(SentBatch { jobs, decision, rows, answer, sent })
            }
            None => Err(jobs),
        }
    }

    /// A batch is durable.
    fn accept_sent(&mut self, batch: SentBatch<'_>) -> Result<(), EngineError> {
        let SentBatch { jobs, mut decision, rows, answer, sent } = batch;
        drop(answer);
        decision.rows = Arc::try_unwrap(rows).unwrap_or_else(|rows| rows.to_vec());
        self.note_commit(CommitSize { jobs: jobs.len(), took: sent.elapsed() });
        self.report_trouble(None);
        let first = self.world().head().next();
        self.accept(jobs, decision, first)
    }

    /// What becomes of jobs whose batch was sent, after it or one before it did not count.
    fn settle_sent(
        &mut self,
        jobs: Vec<Job>,
        decision: Decision,
        answer: Result<EventId, StoreError>,
    ) -> Result<(), EngineError> {
        match answer {
            // It counts, so the one before it does, whose answer is lost. The log has both.
            Ok(_) => {
                self.catch_up_if_available()?;
                self.answer_all(jobs, decision);
                Ok(())
            }
            Err(error @ StoreError::Unknown(_)) => {
                self.catch_up_if_available()?;
                self.fail_for(jobs, error);
                Ok(())
            }
            // Nothing was written.
            Err(_) => self.commit_jobs(jobs),
        }
    }
}

impl std::fmt::Debug for SentBatch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SentBatch").field("jobs", &self.jobs.len()).finish_non_exhaustive()
    }
}
