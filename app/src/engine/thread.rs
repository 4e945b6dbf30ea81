//! The engine's thread: it waits for the next thing to do, and lets the [`Committer`] do it. The module above describes the order of its
//! work.

use super::committer::{Checkpoint, CommitSize, Committer};
use super::handle::Shared;
use super::{EngineError, INBOX, Job};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, mpsc};

/// How many commands are decided and appended together: the whole inbox, because a second commit costs more than a longer one.
pub(super) const BATCH: usize = INBOX;
/// How long the next commit waits for the senders that were just answered: this part of the previous commit's time, at most the longest
/// time.
const GATHER_PART: u32 = 4;
const LONGEST_GATHER: Duration = Duration::from_millis(5);

/// Everything that can wake the thread.
#[derive(Debug)]
enum EngineWake {
    Jobs,
    /// A deadline of the world, or of a command that waits for mail.
    Due,
    /// Another writer may have appended.
    Foreign,
    /// A checkpoint was encoded on another thread, and can be written.
    Encoded(Checkpoint),
    /// A sender has committed, and the world has an earlier deadline now or the engine has to end.
    Recheck,
    Stop,
}

pub(super) struct EngineThread {
    pub committer: Arc<Mutex<Committer>>,
    pub runtime: tokio::runtime::Handle,
    pub shared: Arc<Shared>,
    pub inbox: mpsc::Receiver<Job>,
    pub foreign: Arc<Notify>,
    pub checkpoints: mpsc::Receiver<Checkpoint>,
}

impl EngineThread {
    pub fn run(&mut self) -> Result<(), EngineError> {
        let ended = self.serve();
        // Also after an error, because no sender may commit when the engine has ended. After a panic in a commit, the poisoned lock
        // prevents commits.
        if let Ok(mut committer) = self.committer.lock() {
            committer.stop();
        }
        ended
    }

    fn serve(&mut self) -> Result<(), EngineError> {
        // Deadlines that passed while no daemon ran come before the first command.
        self.committer().tick()?;
        let mut waiting = Vec::with_capacity(BATCH);
        loop {
            match self.next_wake(&mut waiting)? {
                EngineWake::Jobs => {
                    self.gather(&mut waiting);
                    let jobs = std::mem::take(&mut waiting);
                    match self.shared.store.is_shared() && jobs.len() > 1 {
                        true => self.commit_ahead(jobs)?,
                        false => self.commit(jobs)?,
                    }
                }
                EngineWake::Due => self.committer().tick()?,
                EngineWake::Foreign => {
                    let mut committer = self.committer();
                    committer.catch_up_if_available()?;
                    committer.tick()?;
                }
                EngineWake::Encoded(checkpoint) => self.committer().write_checkpoint(&checkpoint.0, &checkpoint.1),
                EngineWake::Recheck => {}
                EngineWake::Stop => break,
            }
        }
        self.committer().stop();
        self.inbox.close();
        while let Ok(job) = self.inbox.try_recv() {
            self.commit(vec![job])?;
        }
        self.committer().finish();
        Ok(())
    }

    /// If a sender panicked while it committed, a commit may be incomplete. Then the engine ends, as if its own thread had panicked.
    pub(super) fn committer(&self) -> MutexGuard<'_, Committer> {
        self.committer.lock().expect("no commit panics")
    }

    pub(super) fn commit(&self, jobs: Vec<Job>) -> Result<(), EngineError> {
        let count = jobs.len();
        let committed = self.committer().commit_jobs(jobs);
        self.shared.queued.fetch_sub(count, Ordering::Release);
        committed
    }

    /// Waits a moment for the senders that were just answered, because they are about to send again: a commit with only the first of them
    /// would make the others wait for a whole sync. Ends when as many commands wait as the previous commit had, or after a part of that
    /// commit's time. A single sender never waits.
    fn gather(&mut self, waiting: &mut Vec<Job>) {
        let CommitSize { jobs: expected, took } = self.committer().last_commit();
        let patience = (took / GATHER_PART).min(LONGEST_GATHER);
        let started = Instant::now();
        while waiting.len() < expected && started.elapsed() < patience {
            match self.inbox.try_recv() {
                Ok(job) => waiting.push(job),
                Err(_) => std::thread::yield_now(),
            }
        }
    }

    fn next_wake(&mut self, waiting: &mut Vec<Job>) -> Result<EngineWake, EngineError> {
        let due = {
            let mut committer = self.committer();
            if let Some(fatal) = committer.take_fatal() {
                return Err(fatal);
            }
            committer.dismiss_overdue();
            committer.sleep()
        };
        let (inbox, checkpoints) = (&mut self.inbox, &mut self.checkpoints);
        let (stop, foreign, recheck) = (&self.shared.stop, &self.foreign, &self.shared.recheck);
        Ok(self.runtime.block_on(async {
            // In random order: a source that is always ready, such as many clients or another daemon, must not starve the others.
            tokio::select! {
                () = stop.notified() => EngineWake::Stop,
                count = inbox.recv_many(waiting, BATCH) => if count == 0 { EngineWake::Stop } else { EngineWake::Jobs },
                Some(checkpoint) = checkpoints.recv() => EngineWake::Encoded(checkpoint),
                () = foreign.notified() => EngineWake::Foreign,
                () = recheck.notified() => EngineWake::Recheck,
                () = tokio::time::sleep(due.unwrap_or_default()), if due.is_some() => EngineWake::Due,
            }
        }))
    }
}
