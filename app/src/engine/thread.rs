//! The engine's thread: the only place where the world changes. See the module above for the order of its work.

use super::decision::{Decision, NotDone, Outcome, Round, panic_message};
use super::handle::{Shared, View};
use super::page::{Page, PageWriter};
use super::recent::RecentMessages;
use super::{EngineError, INBOX, Job, Options, SubmitError, recent_since, snapshot};
use crate::clock::Clock;
use crate::store::{Batch, MessageRanges, Snapshot, Store, StoreError};
use hatchery_core::{Command, EventId, Plan, Record, Refusal, Stream, World, plan};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, mpsc};

/// Commands decided and appended together: the whole inbox, because a second commit costs more than a longer one.
const BATCH: usize = INBOX;
/// The part of a commit's time, and the longest time, that the next commit waits for the senders that were just answered.
const GATHER_PART: u32 = 4;
const LONGEST_GATHER: Duration = Duration::from_millis(5);
/// How long the store may be unavailable before the waiting commands fail. Shorter than the HTTP timeout.
const STORE_PATIENCE: Duration = Duration::from_secs(20);
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// There is at least one event between two snapshots for each so many bytes of the last one, so that the cost of snapshots for
/// each event does not grow with the world.
const SNAPSHOT_BYTES_PER_EVENT: u64 = 256;

/// What is kept at a checkpoint.
type Checkpoint = Box<(Snapshot, MessageRanges)>;

/// Everything that can wake the thread.
#[derive(Debug)]
enum Wake {
    Jobs,
    /// A deadline of the world, or of a command that waits for mail.
    Due,
    /// Another writer may have appended.
    Foreign,
    /// A checkpoint was encoded beside the thread, and can be written.
    Encoded(Checkpoint),
    Stop,
}

pub(super) struct EngineThread {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    options: Options,
    runtime: tokio::runtime::Handle,
    /// As of the last durable event.
    world: World,
    recent: RecentMessages,
    shared: Arc<Shared>,
    inbox: mpsc::Receiver<Job>,
    /// The jobs that are decided next.
    waiting: Vec<Job>,
    /// Jobs that wait for mail, the longest wait first.
    mail_waiters: Vec<Job>,
    /// How many commands the last commit had, and how long it took.
    last_commit: (usize, Duration),
    foreign: Arc<Notify>,
    snapshot_at: EventId,
    snapshot_every: u64,
    encoded: mpsc::Sender<Checkpoint>,
    checkpoints: mpsc::Receiver<Checkpoint>,
    /// After a failure of the tick: its message, and when deadlines are considered again.
    tick_failure: Option<(String, Instant)>,
}

enum Appended {
    At(EventId),
    NothingToAdd,
    /// Another writer was first; its events are in the world now.
    DecideAgain,
}

impl EngineThread {
    #[expect(clippy::too_many_arguments, reason = "the parts of one struct, each made in `Engine::start`")]
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        options: Options,
        runtime: tokio::runtime::Handle,
        world: World,
        recent: RecentMessages,
        shared: Arc<Shared>,
        inbox: mpsc::Receiver<Job>,
        foreign: Arc<Notify>,
        snapshot_at: EventId,
    ) -> Self {
        let (encoded, checkpoints) = mpsc::channel(1);
        Self {
            store,
            clock,
            options,
            runtime,
            world,
            recent,
            shared,
            inbox,
            waiting: Vec::with_capacity(BATCH),
            mail_waiters: Vec::new(),
            last_commit: (0, Duration::ZERO),
            foreign,
            snapshot_at,
            snapshot_every: options.snapshot_every,
            encoded,
            checkpoints,
            tick_failure: None,
        }
    }

    pub fn run(&mut self) -> Result<(), EngineError> {
        // Deadlines that passed while no daemon ran come before the first command.
        self.commit(Vec::new(), true)?;
        loop {
            self.dismiss_overdue();
            match self.next_wake() {
                Wake::Jobs => {
                    self.gather();
                    let jobs = std::mem::take(&mut self.waiting);
                    let (count, started) = (jobs.len(), Instant::now());
                    self.commit(jobs, false)?;
                    self.last_commit = (count, started.elapsed());
                }
                Wake::Due => self.commit(Vec::new(), true)?,
                Wake::Foreign => {
                    self.catch_up_if_available()?;
                    self.commit(Vec::new(), true)?;
                }
                Wake::Encoded(checkpoint) => self.write_checkpoint(&checkpoint.0, &checkpoint.1),
                Wake::Stop => break,
            }
        }
        self.inbox.close();
        while let Ok(job) = self.inbox.try_recv() {
            self.commit(vec![job], false)?;
        }
        fail_all(std::mem::take(&mut self.mail_waiters), &SubmitError::Stopped);
        if self.world.head() != self.snapshot_at {
            match snapshot::encode(&self.world) {
                Ok(snapshot) => self.write_checkpoint(&snapshot, &self.recent.ranges()),
                Err(error) => tracing::warn!(%error, "the next start reads more of the log"),
            }
        }
        Ok(())
    }

    /// Waits a moment for the senders that were just answered, because they are about to send again: a commit with the first of
    /// them would make the others wait for a whole sync. Ends when as many commands are here as last time, or after a part of
    /// the last commit's time. A single sender never waits.
    fn gather(&mut self) {
        let (expected, took) = self.last_commit;
        let patience = (took / GATHER_PART).min(LONGEST_GATHER);
        let started = Instant::now();
        while self.waiting.len() < expected && started.elapsed() < patience {
            match self.inbox.try_recv() {
                Ok(job) => self.waiting.push(job),
                Err(_) => std::thread::yield_now(),
            }
        }
    }

    fn next_wake(&mut self) -> Wake {
        let deadline = planned(&self.world).and_then(|plan| plan.wake_at);
        let deadline = deadline.map(|at| Duration::from_millis(at.ms_since(self.clock.now())));
        let retry = self.tick_failure.as_ref().map(|(_, at)| at.saturating_duration_since(Instant::now()));
        let deadline = deadline.map(|deadline| deadline.max(retry.unwrap_or_default()));
        let patience = self.mail_waiters.iter().filter_map(|job| job.until).min();
        let patience = patience.map(|until| until.saturating_duration_since(Instant::now()));
        let due = deadline.into_iter().chain(patience).min();
        let (inbox, waiting, checkpoints) = (&mut self.inbox, &mut self.waiting, &mut self.checkpoints);
        let (stop, foreign) = (&self.shared.stop, &self.foreign);
        self.runtime.block_on(async {
            // Not in a fixed order: a source that never rests, our own clients or other daemons, must not starve the others.
            tokio::select! {
                () = stop.notified() => Wake::Stop,
                count = inbox.recv_many(waiting, BATCH) => if count == 0 { Wake::Stop } else { Wake::Jobs },
                Some(checkpoint) = checkpoints.recv() => Wake::Encoded(checkpoint),
                () = foreign.notified() => Wake::Foreign,
                () = tokio::time::sleep(due.unwrap_or_default()), if due.is_some() => Wake::Due,
            }
        })
    }

    /// Carries out the jobs and what follows by itself. Answers every job.
    fn commit(&mut self, jobs: Vec<Job>, tick: bool) -> Result<(), EngineError> {
        let started = Instant::now();
        let mut pause = FIRST_PAUSE;
        let mut caught_up = false;
        loop {
            let decision = self.decide(&jobs, tick);
            if tick {
                self.note_tick_failure(decision.tick_failure.as_deref());
            }
            if decision.is_empty() {
                return Ok(());
            }
            let appended = match decision.rows.is_empty() {
                false => self.append(&decision),
                // Only refusals. They hold if they hold in a world that is newer than the commands.
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
                    self.report_trouble(Some(error.to_string()));
                    fail_all(jobs, &SubmitError::Store(Arc::new(error)));
                    // What was due is still due: wait before the full disk is asked again.
                    if tick {
                        self.pause(LONGEST_PAUSE);
                    }
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn decide(&self, jobs: &[Job], tick: bool) -> Decision {
        let round = Round {
            world: &self.world,
            step: self.options.step,
            now: self.clock.now(),
            jobs,
            mail_waiters: &self.mail_waiters,
            tick,
        };
        round.decide()
    }

    /// Makes a decision durable.
    fn append(&mut self, decision: &Decision) -> Result<Appended, EngineError> {
        let seen = self.world.head();
        let reads: Vec<String> = decision.reads.iter().map(Stream::to_string).collect();
        let fixed = decision.records.iter().any(|record| record.event.refers_to().is_some_and(|id| id > seen));
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
                // The log knows whether it was written. If the log cannot be read now, the answer must still not become
                // "nothing was written": the same commands would be decided, and perhaps recorded, a second time.
                self.catch_up_if_available()?;
                Err(StoreError::Unknown(why).into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The events are durable, so they may be seen now.
    fn accept(&mut self, jobs: Vec<Job>, mut decision: Decision, first: EventId) -> Result<(), EngineError> {
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
            // Other writers appended in between: the log has their events and ours, in the order that counts.
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
        self.mail_waiters.retain(|job| !job.reply.is_closed());
        for (job, outcome) in jobs.into_iter().zip(outcomes) {
            match outcome {
                Err(NotDone::Refused(Refusal::NoMail(_))) if job.until.is_some_and(|until| until > Instant::now()) => {
                    self.mail_waiters.push(job);
                }
                outcome => answer_outcome(job, outcome, &mut taken),
            }
        }
    }

    /// Tells the commands that have waited for mail long enough that there is none.
    fn dismiss_overdue(&mut self) {
        let now = Instant::now();
        for job in self.mail_waiters.extract_if(.., |job| job.until.is_none_or(|until| until <= now)) {
            let nothing = match &job.command {
                Command::TakeMail { to, .. } => SubmitError::Refused(Refusal::NoMail(*to)),
                _ => SubmitError::Stopped,
            };
            answer(job, Err(nothing));
        }
    }

    /// Folds in what other writers appended.
    fn catch_up(&mut self) -> Result<(), EngineError> {
        let (mut world, mut recent) = (self.world.clone(), self.recent.clone());
        let mut page = PageWriter::default();
        snapshot::fold(self.store.as_ref(), &mut world, |record, body| {
            recent.note(&record);
            // A page that is full is not handed out, so the rest of it need not be kept.
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

    /// The same, but an unavailable store is not an error: the next append finds out.
    fn catch_up_if_available(&mut self) -> Result<(), EngineError> {
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
    fn publish(&self, fill: impl FnOnce(&mut PageWriter)) {
        self.show_world();
        if self.shared.pages.receiver_count() > 0 {
            let mut page = PageWriter::default();
            fill(&mut page);
            // A page that is too large to hand out is replaced by an empty one, which means "read the log".
            let page = if page.is_full() { Page::default() } else { page.finish() };
            // Fails only when the last follower has just left.
            drop(self.shared.pages.send(Arc::new(page)));
        }
        if let Some(wanted) = planned(&self.world) {
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

    /// Encodes a checkpoint beside the thread. It comes back as a wake-up, because only this thread writes.
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

    fn write_checkpoint(&mut self, snapshot: &Snapshot, ranges: &MessageRanges) {
        let size = u64::try_from(snapshot.body.len()).unwrap_or(u64::MAX);
        self.snapshot_every = self.options.snapshot_every.max(size / SNAPSHOT_BYTES_PER_EVENT);
        match self.store.checkpoint(snapshot, ranges) {
            Ok(indexed) if indexed >= self.recent.after() => {
                self.recent.forget(indexed);
                self.show_world();
            }
            // The index was rebuilt meanwhile and is shorter now: this process must know what the index lacks.
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

    fn report_trouble(&self, trouble: Option<String>) {
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

    /// Deadlines that cannot be decided are tried again after a pause, not at once and for ever.
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
            // For the main loop, which waits for it as well.
            stop.notify_one();
        }
        !stopped
    }
}

/// The plan of a world. A plan that panics is a bug, and the last plan stays in force.
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

fn answer_outcome(job: Job, outcome: Outcome, taken: impl FnOnce(Range<usize>) -> Vec<Record>) {
    let result = match outcome {
        Ok(part) => Ok(taken(part)),
        Err(NotDone::Refused(refusal)) => Err(SubmitError::Refused(refusal)),
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
    // The caller may have gone away; what was decided stands all the same.
    drop(job.reply.send(result));
}
