//! The committer has the world and everything that changes with it. It decides commands, appends their events, and only then publishes them
//! and answers the callers.
//!
//! The committer is behind a lock, because two kinds of threads use it: the engine's thread, and a sender that finds the engine idle and
//! commits its one command itself. Otherwise the thread would have to be woken for that command, and the sender for the answer: two context
//! switches, which take about as long as half a sync.

use super::decision::{CommandOutcome, Decision, NotDone, Round, panic_message};
use super::handle::{Shared, View};
use super::page::{Page, PageWriter};
use super::recent::RecentMessages;
use super::{EngineError, EngineOptions, Job, SubmitError, recent_since, snapshot};
use crate::clock::Clock;
use crate::store::{Batch, MessageRanges, Snapshot, Store, StoreError};
use hatchery_core::{Command, EventId, Plan, Record, Refusal, Timestamp, World, plan};
use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// How long the store may be unavailable before the waiting commands fail. Shorter than the HTTP timeout.
const STORE_PATIENCE: Duration = Duration::from_secs(20);
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// After a commit that took longer than this, senders leave the next commit to the engine's thread: a slow disk must not block the threads
/// that serve other clients.
const SLOW_COMMIT: Duration = Duration::from_millis(5);
/// There is at least one event between two snapshots for each so many bytes of the previous snapshot. So the cost of snapshots per event
/// does not grow with the world.
const SNAPSHOT_BYTES_PER_EVENT: u64 = 256;

/// What a checkpoint writes: a snapshot and the ranges for the index.
pub(super) type Checkpoint = Box<(Snapshot, MessageRanges)>;

/// How many commands a commit had, and how long it took.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CommitSize {
    pub jobs: usize,
    pub took: Duration,
}

/// What a start has read from the store.
pub(super) struct StartState {
    pub world: World,
    pub recent: RecentMessages,
    /// The last event of the snapshot.
    pub snapshot_at: EventId,
}

pub(super) struct Committer {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    options: EngineOptions,
    runtime: tokio::runtime::Handle,
    /// The world after the last durable event.
    world: World,
    recent: RecentMessages,
    shared: Arc<Shared>,
    /// Jobs that wait for mail, the longest wait first.
    mail_waiters: Vec<Job>,
    last_commit: CommitSize,
    /// The next deadline of the world. `awaited` is the deadline for which the engine's thread waits.
    wake_at: Option<Timestamp>,
    /// When the engine's thread wakes to look at the deadlines: at the next one, or at an earlier one that has vanished.
    awaited: Option<Timestamp>,
    snapshot_at: EventId,
    snapshot_every: u64,
    encoded: mpsc::Sender<Checkpoint>,
    /// After a failed tick: its message, and when deadlines are considered again.
    tick_failure: Option<(String, Instant)>,
    /// The error because of which a sender's commit must end the engine. The thread returns it.
    fatal: Option<EngineError>,
    /// The engine has ended or is about to end, so no sender commits any more.
    stopped: bool,
}

enum Appended {
    At(EventId),
    NothingToAdd,
    /// Another writer was first. Its events are in the world now.
    DecideAgain,
}

impl Committer {
    pub fn new(
        clock: Arc<dyn Clock>,
        options: EngineOptions,
        runtime: tokio::runtime::Handle,
        restored: StartState,
        shared: Arc<Shared>,
        encoded: mpsc::Sender<Checkpoint>,
    ) -> Self {
        let StartState { world, recent, snapshot_at } = restored;
        let wake_at = shared.plan.borrow().wake_at;
        Self {
            store: Arc::clone(&shared.store),
            clock,
            options,
            runtime,
            world,
            recent,
            mail_waiters: Vec::new(),
            last_commit: CommitSize::default(),
            wake_at,
            awaited: None,
            snapshot_at,
            snapshot_every: options.snapshot_every,
            encoded,
            tick_failure: None,
            fatal: None,
            stopped: false,
            shared,
        }
    }

    pub fn last_commit(&self) -> CommitSize {
        self.last_commit
    }

    pub fn note_commit(&mut self, size: CommitSize) {
        self.last_commit = size;
    }

    /// The world after the last durable event.
    pub fn world(&self) -> &World {
        &self.world
    }

    pub fn take_fatal(&mut self) -> Option<EngineError> {
        self.fatal.take()
    }

    /// How long the engine's thread may sleep, if nothing else wakes it.
    pub fn sleep(&mut self) -> Option<Duration> {
        let now = self.clock.now();
        // A vanished deadline costs one needless look. Without it the thread would have to be woken for each deadline that takes its place,
        // as with the reports of agents that work one after the other, while a sender commits.
        self.awaited = self.awaited.filter(|at| *at > now).into_iter().chain(self.wake_at).min();
        let deadline = self.awaited.map(|at| Duration::from_millis(at.ms_since(now)));
        let retry = self.tick_failure.as_ref().map(|(_, at)| at.saturating_duration_since(Instant::now()));
        let deadline = deadline.map(|deadline| deadline.max(retry.unwrap_or_default()));
        let patience = self.mail_waiters.iter().filter_map(|job| job.until).min();
        let patience = patience.map(|until| until.saturating_duration_since(Instant::now()));
        deadline.into_iter().chain(patience).min()
    }

    /// From now on only the engine's thread commits.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// Answers the waiting jobs and writes the last snapshot, after the last commit.
    pub fn finish(&mut self) {
        fail_all(std::mem::take(&mut self.mail_waiters), &SubmitError::Stopped);
        if self.world.head() != self.snapshot_at {
            match snapshot::encode(&self.world) {
                Ok(snapshot) => self.write_checkpoint(&snapshot, &self.recent.ranges()),
                Err(error) => tracing::warn!(%error, "the next start reads more of the log"),
            }
        }
    }

    /// Commits one command on its sender's thread, and answers it. Returns the command if this is not possible; then the engine's thread
    /// decides it again. Only that thread waits for a store, and only that thread refuses, because a refusal may depend on events of other
    /// writers.
    pub fn commit_at_once(&mut self, job: Job) -> Option<Job> {
        let CommitSize { jobs, took } = self.last_commit;
        if self.stopped || self.store.is_shared() || jobs > 1 || took > SLOW_COMMIT {
            return Some(job);
        }
        let started = Instant::now();
        let mut jobs = vec![job];
        let decision = self.decide(&self.world, &jobs, false);
        if decision.rows.is_empty() || decision.outcomes.iter().any(Result::is_err) {
            return jobs.pop();
        }
        let committed = match self.append(&decision) {
            Ok(Appended::At(first)) => {
                self.report_trouble(None);
                self.accept(jobs, decision, first)
            }
            Err(EngineError::Store(error @ StoreError::Unknown(_))) => {
                self.fail(jobs, error);
                Ok(())
            }
            // Nothing was written.
            Ok(Appended::NothingToAdd | Appended::DecideAgain) | Err(EngineError::Store(_)) => return jobs.pop(),
            Err(fatal) => {
                fail_all(jobs, &SubmitError::Stopped);
                Err(fatal)
            }
        };
        self.last_commit = CommitSize { jobs: 1, took: started.elapsed() };
        if let Err(fatal) = committed {
            self.fatal = Some(fatal);
            self.stopped = true;
        }
        let is_earlier = self.wake_at.is_some_and(|at| self.awaited.is_none_or(|awaited| at < awaited));
        if self.stopped || is_earlier {
            self.awaited = self.wake_at;
            self.shared.recheck.notify_one();
        }
        None
    }

    /// Commits jobs together. Answers every job.
    pub fn commit_jobs(&mut self, jobs: Vec<Job>) -> Result<(), EngineError> {
        let (count, started) = (jobs.len(), Instant::now());
        let committed = self.commit(jobs, false);
        self.last_commit = CommitSize { jobs: count, took: started.elapsed() };
        committed
    }

    /// Handles deadlines that have passed.
    pub fn tick(&mut self) -> Result<(), EngineError> {
        self.commit(Vec::new(), true)
    }

    /// Carries out the jobs, and adds the events that are due. Answers every job.
    fn commit(&mut self, jobs: Vec<Job>, tick: bool) -> Result<(), EngineError> {
        let started = Instant::now();
        let mut pause = FIRST_PAUSE;
        let mut caught_up = false;
        loop {
            let decision = self.decide(&self.world, &jobs, tick);
            if tick {
                self.note_tick_failure(decision.tick_failure.as_deref());
            }
            if decision.is_empty() {
                return Ok(());
            }
            let appended = match decision.rows.is_empty() {
                false => self.append(&decision),
                // Only refusals. They are valid if they are still refusals in a world that is newer than the commands.
                true if caught_up => Ok(Appended::NothingToAdd),
                true => self.catch_up().map(|()| {
                    caught_up = true;
                    Appended::DecideAgain
                }),
            };
            match appended {
                Ok(Appended::At(first)) => {
                    self.report_trouble(None);
                    return self.accept(jobs, decision, first);
                }
                Ok(Appended::NothingToAdd) => {
                    self.answer_all(jobs, decision);
                    return Ok(());
                }
                Ok(Appended::DecideAgain) => {}
                Err(EngineError::Store(StoreError::Unavailable(why))) if started.elapsed() < STORE_PATIENCE => {
                    self.report_trouble(Some(why));
                    if !self.pause(pause) {
                        fail_all(jobs, &SubmitError::Stopped);
                        return Ok(());
                    }
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                Err(EngineError::Store(error)) => {
                    self.fail(jobs, error);
                    // The deadline is still due, so wait before the store is tried again.
                    if tick {
                        self.pause(LONGEST_PAUSE);
                    }
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Fails the jobs because of the store.
    pub fn fail(&self, jobs: Vec<Job>, error: StoreError) {
        self.report_trouble(Some(error.to_string()));
        fail_all(jobs, &SubmitError::Store(Arc::new(error)));
    }

    pub fn decide(&self, world: &World, jobs: &[Job], tick: bool) -> Decision {
        let round = Round {
            world,
            step: self.options.step,
            now: self.clock.now(),
            jobs,
            mail_waiters: &self.mail_waiters,
            tick,
            tracks_reads: self.store.is_shared(),
        };
        round.decide()
    }

    /// Makes a decision durable.
    fn append(&mut self, decision: &Decision) -> Result<Appended, EngineError> {
        let seen = self.world.head();
        let reads = decision.reads_by_name();
        // If there is only one writer, the streams of a decision are not recorded: any event of another writer is a conflict.
        let fixed = !self.store.is_shared() || decision.is_fixed(seen);
        self.shared.asked_at(Some(Instant::now()));
        let appended = self.store.append(Batch { seen, reads: &reads, rows: &decision.rows, fixed });
        self.shared.asked_at(None);
        match appended {
            Ok(first) => Ok(Appended::At(first)),
            Err(StoreError::Conflict) => {
                self.catch_up()?;
                Ok(Appended::DecideAgain)
            }
            Err(StoreError::Unknown(why)) => {
                // The log shows whether the rows were written. Even if the log cannot be read now, the answer must not become "nothing was
                // written": the same commands would be decided, and perhaps recorded, a second time.
                self.catch_up_if_available()?;
                Err(StoreError::Unknown(why).into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The events are durable, so they may become visible now.
    pub fn accept(&mut self, jobs: Vec<Job>, mut decision: Decision, first: EventId) -> Result<(), EngineError> {
        let expected = self.world.head().next();
        if first == expected {
            self.world = std::mem::take(&mut decision.world);
            decision.records.iter().for_each(|record| self.recent.note(record));
            self.publish(|page| {
                for (record, row) in decision.records.iter().zip(&decision.rows) {
                    page.push_record(record.clone(), &row.body);
                }
            });
        } else {
            // Other writers have appended in between. The log has their events and these, in the order that counts.
            for record in &mut decision.records {
                record.id = EventId(record.id.0 + (first.0 - expected.0));
            }
            self.catch_up_if_available()?;
        }
        self.answer_all(jobs, decision);
        self.snapshot_when_due();
        Ok(())
    }

    fn answer_all(&mut self, jobs: Vec<Job>, decision: Decision) {
        let Decision { records, outcomes, served, .. } = decision;
        let mut records: Vec<Option<Record>> = records.into_iter().map(Some).collect();
        let mut taken = |part: Range<usize>| records[part].iter_mut().filter_map(Option::take).collect();
        for (at, outcome) in served.into_iter().rev() {
            answer_outcome(self.mail_waiters.remove(at), outcome, &mut taken);
        }
        for (job, outcome) in jobs.into_iter().zip(outcomes) {
            match outcome {
                Err(NotDone::Refused(Refusal::NoMail(_))) if job.until.is_some_and(|until| until > Instant::now()) => {
                    self.mail_waiters.push(job);
                }
                outcome => answer_outcome(job, outcome, &mut taken),
            }
        }
    }

    /// Answers the commands that have waited long enough for mail. Must not be called while a decision is on its way to the store, because
    /// the decision names the waiting commands by their positions.
    pub fn dismiss_overdue(&mut self) {
        let now = Instant::now();
        self.mail_waiters.retain(|job| !job.reply.is_closed());
        for job in self.mail_waiters.extract_if(.., |job| job.until.is_none_or(|until| until <= now)) {
            let nothing = match &job.command {
                Command::TakeMail { to, .. } => SubmitError::Refused(Refusal::NoMail(*to)),
                _ => SubmitError::Stopped,
            };
            answer(job, Err(nothing));
        }
    }

    /// Applies the events that other writers have appended.
    fn catch_up(&mut self) -> Result<(), EngineError> {
        let (mut world, mut recent) = (self.world.clone(), self.recent.clone());
        let mut page = PageWriter::default();
        snapshot::fold(self.store.as_ref(), &mut world, |record, body| {
            recent.note(&record);
            // A full page is not published, so the rest of it need not be kept.
            if !page.is_full() {
                page.push_record(record, body);
            }
        })?;
        if world.head() != self.world.head() {
            (self.world, self.recent) = (world, recent);
            self.publish(|empty| *empty = page);
        }
        Ok(())
    }

    /// Like `catch_up`, but an unavailable store is not an error, because the next append reports it.
    pub fn catch_up_if_available(&mut self) -> Result<(), EngineError> {
        match self.catch_up() {
            Err(EngineError::Store(error)) => {
                self.report_trouble(Some(error.to_string()));
                Ok(())
            }
            caught_up => {
                caught_up?;
                self.report_trouble(None);
                Ok(())
            }
        }
    }

    /// Publishes the new world, the new events and the new plan, in this order.
    fn publish(&mut self, fill: impl FnOnce(&mut PageWriter)) {
        self.show_world();
        if self.shared.pages.receiver_count() > 0 {
            let mut page = PageWriter::default();
            fill(&mut page);
            // A page that is too large is replaced by an empty one, which means "read the log".
            let page = if page.is_full() { Page::default() } else { page.finish() };
            // Fails only if the last follower has just left.
            drop(self.shared.pages.send(Arc::new(page)));
        }
        if let Some(wanted) = planned(&self.world) {
            self.wake_at = wanted.wake_at;
            self.shared.plan.send_if_modified(|shown| {
                let changed = *shown != wanted;
                *shown = wanted;
                changed
            });
        }
    }

    fn show_world(&self) {
        let view = View { world: Arc::new(self.world.clone()), recent: self.recent.clone() };
        *self.shared.view.write().unwrap_or_else(PoisonError::into_inner) = view;
        let head = self.world.head();
        self.shared.head.send_if_modified(|shown| std::mem::replace(shown, head) != head);
    }

    /// Encodes a checkpoint on another thread. The result comes back as a wake-up, because only the engine's thread writes it.
    fn snapshot_when_due(&mut self) {
        if self.world.head().0 - self.snapshot_at.0 < self.snapshot_every {
            return;
        }
        if let Ok(place) = self.encoded.clone().try_reserve_owned() {
            self.snapshot_at = self.world.head();
            let (world, recent) = (self.world.clone(), self.recent.clone());
            self.runtime.spawn_blocking(move || match snapshot::encode(&world) {
                Ok(snapshot) => drop(place.send(Box::new((snapshot, recent.ranges())))),
                Err(error) => tracing::warn!(%error, "the next start reads more of the log"),
            });
        }
    }

    pub fn write_checkpoint(&mut self, snapshot: &Snapshot, ranges: &MessageRanges) {
        let size = u64::try_from(snapshot.body.len()).unwrap_or(u64::MAX);
        self.snapshot_every = self.options.snapshot_every.max(size / SNAPSHOT_BYTES_PER_EVENT);
        match self.store.checkpoint(snapshot, ranges) {
            Ok(indexed) if indexed >= self.recent.after() => {
                self.recent.forget(indexed);
                self.show_world();
            }
            // Another daemon has rebuilt the index, and it is shorter now. So this process must know the messages that the index lacks.
            Ok(indexed) => match recent_since(self.store.as_ref(), indexed, self.world.head()) {
                Ok(recent) => {
                    self.recent = recent;
                    self.show_world();
                }
                Err(error) => {
                    tracing::warn!(%error, "the index is behind and the log cannot be read; restart the daemon");
                }
            },
            Err(error) => {
                tracing::warn!(%error, at = snapshot.at.0, "no checkpoint; the next start reads more of the log");
            }
        }
    }

    pub fn report_trouble(&self, trouble: Option<String>) {
        self.shared.trouble.send_if_modified(|shown| {
            let changed = *shown != trouble;
            match &trouble {
                Some(what) if changed => tracing::warn!(what, "the store is in trouble"),
                None if changed => tracing::info!("the store works again"),
                _ => {}
            }
            *shown = trouble;
            changed
        });
    }

    /// Deadlines that cannot be decided are tried again after a pause, so that this is not a busy loop.
    fn note_tick_failure(&mut self, failure: Option<&str>) {
        let known = self.tick_failure.as_ref().map(|(message, _)| message.as_str());
        if let Some(message) = failure.filter(|_| known != failure) {
            tracing::error!(cause = message, "what follows by itself cannot be decided; this is a bug in Hatchery");
        }
        self.tick_failure = failure.map(|message| (message.to_owned(), Instant::now() + LONGEST_PAUSE));
    }

    /// Waits for a time. False when the engine is to stop.
    fn pause(&self, length: Duration) -> bool {
        let stop = &self.shared.stop;
        let stopped = self.runtime.block_on(async { tokio::time::timeout(length, stop.notified()).await.is_ok() });
        if stopped {
            // The main loop waits for this notification, too.
            stop.notify_one();
        }
        !stopped
    }
}

impl fmt::Debug for Committer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Committer").field("head", &self.world.head()).finish_non_exhaustive()
    }
}

/// The plan of a world. If the computation panics, which is a bug, the previous plan stays in force.
fn planned(world: &World) -> Option<Plan> {
    match catch_unwind(AssertUnwindSafe(|| plan(world))) {
        Ok(plan) => Some(plan),
        Err(panic) => {
            tracing::error!(
                cause = panic_message(panic.as_ref()),
                "the plan cannot be made; this is a bug in Hatchery"
            );
            None
        }
    }
}

fn fail_all(jobs: Vec<Job>, error: &SubmitError) {
    for job in jobs {
        answer(job, Err(error.clone()));
    }
}

fn answer_outcome(job: Job, outcome: CommandOutcome, taken: impl FnOnce(Range<usize>) -> Vec<Record>) {
    let result = match outcome {
        Ok(part) => Ok(taken(part)),
        Err(NotDone::Refused(refusal)) => Err(SubmitError::Refused(refusal)),
        Err(NotDone::GivenUp) => return,
        Err(NotDone::Failed(cause)) => {
            let command = command_name(&job.command);
            tracing::error!(
                command,
                cause,
                "a command could not be decided and was dropped; this is a bug in Hatchery"
            );
            Err(SubmitError::Failed)
        }
    };
    answer(job, result);
}

/// The name of the variant, without its content, which may be long or private.
fn command_name(command: &Command) -> String {
    format!("{command:?}").chars().take_while(char::is_ascii_alphanumeric).collect()
}

fn answer(job: Job, result: Result<Vec<Record>, SubmitError>) {
    // The caller may have left. The decision is valid nevertheless.
    drop(job.reply.send(result));
}
