//! The engine: one thread owns the world, decides, appends, and only then tells anybody.
//!
//! ```text
//! Handle::submit ──► inbox ──► decide all that waits ──► append once ──► publish ──► answer
//!                                     ▲                      │
//!                                     └── catch up, decide ◄─┘ conflict: another writer was first
//! ```
//!
//! Commands that wait are decided one after the other on a tentative world and appended together: that is the group
//! commit. Until the append returns, nothing is visible; if it fails, the tentative world is dropped. The thread does the
//! commit itself: handing it to another one would cost every single append two more wake-ups.

mod handle;
mod page;
pub mod recent;
mod replay;
pub mod snapshot;

pub use handle::{FollowError, Follower, Handle, HistoryError};
use hatchery_core::event::{AgentEvent, MailEvent};
pub use page::{PAGE_ROWS, Page};
pub use replay::{Replay, Replayed};

use crate::clock::Clock;
use crate::store::{Batch, MessageRanges, Row, Snapshot, Store, StoreError};
use handle::{Shared, View};
use hatchery_core::event::Unreadable;
use hatchery_core::world::Impossible;
use hatchery_core::{Command, Event, EventId, Record, Refusal, Stream, Timestamp, World, plan, rests_on, step};
use page::PageWriter;
use recent::Recent;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, broadcast, mpsc, oneshot, watch};

/// Commands that may wait. Beyond it `submit` waits for room, which slows the sender down.
const INBOX: usize = 1_024;
/// Commands decided and appended together: all that may wait, because a second commit costs more than a longer one.
const BATCH: usize = INBOX;
/// The part of a commit's time, and the most time, that the next one waits for those who were answered by it.
const GATHER_PART: u32 = 4;
const LONGEST_GATHER: Duration = Duration::from_millis(5);
/// Pages that a live follower may be behind before it has to read the log.
const LIVE_PAGES: usize = 256;
/// How long a store may be away before the waiting commands are told so. Shorter than the HTTP timeout.
const STORE_PATIENCE: Duration = Duration::from_secs(20);
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// There is an event between two snapshots for so many bytes of the last one, at least: however large the world has become,
/// writing it down costs the same part of the work.
const SNAPSHOT_BYTES_PER_EVENT: u64 = 256;

#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Events between two snapshots, as long as they are small.
    pub snapshot_every: u64,
}

impl Default for Options {
    /// At 10,000 events the tail is read in a few hundredths of a second, and a small snapshot costs far less than they did.
    fn default() -> Self {
        Self { snapshot_every: 10_000 }
    }
}

/// Why a command was not carried out.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SubmitError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Store(Arc<StoreError>),
    #[error("the daemon is shutting down")]
    Stopped,
}

/// Why an engine could not start, or not go on.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    #[error("the log contradicts itself: {0}")]
    Impossible(#[from] Impossible),
    #[error(transparent)]
    Encode(#[from] snapshot::EncodeError),
    #[error("the engine's thread could not be started: {0}")]
    Thread(#[from] std::io::Error),
}

#[derive(Debug)]
struct Job {
    command: Command,
    /// Until when it may wait for what it asks for to exist. Only taking mail waits.
    until: Option<Instant>,
    reply: oneshot::Sender<Result<Vec<Record>, SubmitError>>,
}

/// Everything that can wake the engine.
#[derive(Debug)]
enum Wake {
    Jobs,
    Due,
    Foreign,
    /// What is to be kept at a checkpoint was encoded.
    Encoded(Box<(Snapshot, MessageRanges)>),
    Stop,
}

/// A running engine. Ends with its thread: see [`Engine::join`].
#[derive(Debug)]
pub struct Engine {
    pub handle: Handle,
    thread: std::thread::JoinHandle<Result<(), EngineError>>,
}

impl Engine {
    /// Restores the world (snapshot plus tail) and starts. Blocks while it reads.
    pub fn start(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        options: Options,
        runtime: tokio::runtime::Handle,
    ) -> Result<Self, EngineError> {
        let mut world = snapshot::restore(store.as_ref())?;
        let snapshot_at = world.head();
        let mut recent = recent_since(store.as_ref(), store.indexed()?, snapshot_at)?;
        snapshot::fold(store.as_ref(), &mut world, |record, _| recent.note(record))?;
        let (inbox, jobs) = mpsc::channel(INBOX);
        let (encoded, snapshots) = mpsc::channel(1);
        let foreign = Arc::new(Notify::new());
        let told = Arc::clone(&foreign);
        store.on_foreign_append(Arc::new(move || told.notify_one()));
        let shared = Arc::new(Shared {
            store: Arc::clone(&store),
            plan: watch::Sender::new(plan(&world)),
            head: watch::Sender::new(world.head()),
            view: RwLock::new(View { world: world.clone(), recent: recent.clone() }),
            pages: broadcast::Sender::new(LIVE_PAGES),
            trouble: watch::Sender::new(None),
            asked: Mutex::new(None),
            stop: Notify::new(),
        });
        let handle = Handle { inbox, shared: Arc::clone(&shared) };
        let mut owner = Owner {
            store,
            clock,
            options,
            runtime,
            world,
            recent,
            shared,
            jobs,
            parked: Vec::new(),
            waiting: Vec::with_capacity(BATCH),
            last_commit: (0, Duration::ZERO),
            foreign,
            snapshot_at,
            snapshot_every: options.snapshot_every,
            encoded,
            snapshots,
        };
        let thread = std::thread::Builder::new().name("engine".into()).spawn(move || owner.run())?;
        Ok(Self { handle, thread })
    }

    /// Waits for the engine to have stopped.
    pub fn join(self) -> Result<(), EngineError> {
        match self.thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// The state of the engine's thread.
struct Owner {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    options: Options,
    runtime: tokio::runtime::Handle,
    /// As of the last durable event.
    world: World,
    recent: Recent,
    shared: Arc<Shared>,
    jobs: mpsc::Receiver<Job>,
    /// Those that wait for mail, the first come first.
    parked: Vec<Job>,
    waiting: Vec<Job>,
    /// How many commands the last commit took, and how long it lasted.
    last_commit: (usize, Duration),
    foreign: Arc<Notify>,
    snapshot_at: EventId,
    snapshot_every: u64,
    encoded: mpsc::Sender<Box<(Snapshot, MessageRanges)>>,
    snapshots: mpsc::Receiver<Box<(Snapshot, MessageRanges)>>,
}

enum Appended {
    At(EventId),
    NothingToAdd,
    /// Another writer was first; its events are in the world now.
    DecideAgain,
}

/// What became of the waiting commands on a tentative world.
struct Decided {
    world: World,
    records: Vec<Record>,
    rows: Vec<Row>,
    reads: BTreeSet<Stream>,
    /// For each command, in order: its part of `records`, or the refusal.
    outcomes: Vec<Result<Range<usize>, Refusal>>,
    /// Which of the parked need not wait any longer, in order: they got something, or nothing can come any more.
    served: Vec<(usize, Result<Range<usize>, Refusal>)>,
}

impl Owner {
    fn run(&mut self) -> Result<(), EngineError> {
        // What was due while nobody looked, before the first command.
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
                    self.catch_up_soon()?;
                    self.commit(Vec::new(), true)?;
                }
                Wake::Encoded(encoded) => self.keep(&encoded.0, &encoded.1),
                Wake::Stop => break,
            }
        }
        self.jobs.close();
        while let Ok(job) = self.jobs.try_recv() {
            self.commit(vec![job], false)?;
        }
        refuse_all(std::mem::take(&mut self.parked), &SubmitError::Stopped);
        if self.world.head() != self.snapshot_at {
            match snapshot::encode(&self.world) {
                Ok(snapshot) => self.keep(&snapshot, &self.recent.ranges()),
                Err(error) => tracing::warn!(%error, "the next start reads more of the log"),
            }
        }
        Ok(())
    }

    /// Whoever was answered just now is about to ask again. A commit that takes the first of them and leaves the others
    /// waiting costs a whole sync, so they get a moment: until as many are here as last time, or a part of what the last
    /// commit took has passed. A single sender never waits.
    fn gather(&mut self) {
        let (expected, took) = self.last_commit;
        let patience = (took / GATHER_PART).min(LONGEST_GATHER);
        let started = Instant::now();
        while self.waiting.len() < expected && started.elapsed() < patience {
            match self.jobs.try_recv() {
                Ok(job) => self.waiting.push(job),
                Err(_) => std::thread::yield_now(),
            }
        }
    }

    fn next_wake(&mut self) -> Wake {
        let planned = plan(&self.world).wake_at.map(|at| Duration::from_millis(at.ms_since(self.clock.now())));
        let patience = self.parked.iter().filter_map(|job| job.until).min();
        let patience = patience.map(|until| until.saturating_duration_since(Instant::now()));
        let due = planned.into_iter().chain(patience).min();
        let (jobs, waiting, snapshots) = (&mut self.jobs, &mut self.waiting, &mut self.snapshots);
        let (stop, foreign) = (&self.shared.stop, &self.foreign);
        self.runtime.block_on(async {
            // Not in a fixed order: whoever never rests, our own clients or other daemons, must not keep the rest waiting.
            tokio::select! {
                () = stop.notified() => Wake::Stop,
                count = jobs.recv_many(waiting, BATCH) => if count == 0 { Wake::Stop } else { Wake::Jobs },
                Some(encoded) = snapshots.recv() => Wake::Encoded(encoded),
                () = foreign.notified() => Wake::Foreign,
                () = tokio::time::sleep(due.unwrap_or_default()), if due.is_some() => Wake::Due,
            }
        })
    }

    /// Carries out the commands, and what follows by itself. Answers every one of them.
    fn commit(&mut self, jobs: Vec<Job>, tick: bool) -> Result<(), EngineError> {
        let started = Instant::now();
        let mut pause = FIRST_PAUSE;
        let mut caught_up = false;
        loop {
            let decided = self.decide(&jobs, tick);
            if decided.rows.is_empty() && decided.outcomes.is_empty() && decided.served.is_empty() {
                return Ok(());
            }
            let appended = match decided.rows.is_empty() {
                false => self.append(&decided),
                // Only refusals. They hold if they hold in a world that is newer than the questions.
                true if caught_up => Ok(Appended::NothingToAdd),
                true => self.catch_up().map(|()| {
                    caught_up = true;
                    Appended::DecideAgain
                }),
            };
            match appended {
                Ok(Appended::At(first)) => {
                    self.say_trouble(None);
                    return self.accept(jobs, decided, first);
                }
                Ok(Appended::NothingToAdd) => {
                    self.answer_all(jobs, decided);
                    return Ok(());
                }
                Ok(Appended::DecideAgain) => {}
                Err(EngineError::Store(StoreError::Unavailable(why))) if started.elapsed() < STORE_PATIENCE => {
                    self.say_trouble(Some(why));
                    if !self.pause(pause) {
                        refuse_all(jobs, &SubmitError::Stopped);
                        return Ok(());
                    }
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                Err(EngineError::Store(error)) => {
                    self.say_trouble(Some(error.to_string()));
                    refuse_all(jobs, &SubmitError::Store(Arc::new(error)));
                    // What was due stays due: do not ask a full disk again at once.
                    if tick {
                        self.pause(LONGEST_PAUSE);
                    }
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn decide(&self, jobs: &[Job], tick: bool) -> Decided {
        let now = self.clock.now();
        let mut decided = Decided {
            world: self.world.clone(),
            records: Vec::with_capacity(jobs.len()),
            rows: Vec::with_capacity(jobs.len()),
            reads: BTreeSet::new(),
            outcomes: Vec::with_capacity(jobs.len()),
            served: Vec::new(),
        };
        for job in jobs {
            let outcome = decided.take(&job.command, now);
            decided.outcomes.push(outcome);
        }
        if tick {
            decided.take(&Command::Tick, now).expect("time passing is never refused");
        }
        if tick || decided.records.iter().any(|record| ends_a_wait(&record.event)) {
            self.serve_waiting(jobs, &mut decided, now);
        }
        // A refusal rests on what it read as much as a decision does.
        for (job, _) in jobs.iter().zip(&decided.outcomes).filter(|(_, outcome)| outcome.is_err()) {
            decided.reads.extend(job.command.reads());
        }
        decided
    }

    /// Mail and whoever waits for it meet in the same append: the wait costs no second one. Those who have waited longest
    /// come first, then those who asked in this very batch, perhaps before the mail was sent.
    fn serve_waiting(&self, jobs: &[Job], decided: &mut Decided, now: Timestamp) {
        for (place, job) in self.parked.iter().enumerate().filter(|(_, job)| !job.reply.is_closed()) {
            match decided.take(&job.command, now) {
                Err(Refusal::NoMail(_)) => {}
                settled => decided.served.push((place, settled)),
            }
        }
        for (place, job) in jobs.iter().enumerate() {
            if matches!(decided.outcomes[place], Err(Refusal::NoMail(_))) && job.until.is_some() {
                decided.outcomes[place] = decided.take(&job.command, now);
            }
        }
    }

    /// Makes a decision durable.
    fn append(&mut self, decided: &Decided) -> Result<Appended, EngineError> {
        let seen = self.world.head();
        let reads: Vec<String> = decided.reads.iter().map(Stream::to_string).collect();
        let fixed = decided.records.iter().any(|record| record.event.refers_to().is_some_and(|id| id > seen));
        self.shared.asked_at(Some(Instant::now()));
        let appended = self.store.append(Batch { seen, reads: &reads, rows: &decided.rows, fixed });
        self.shared.asked_at(None);
        match appended {
            Ok(first) => Ok(Appended::At(first)),
            Err(StoreError::Conflict) => {
                self.catch_up()?;
                Ok(Appended::DecideAgain)
            }
            Err(StoreError::Unknown(why)) => {
                // Whatever the truth is, the log has it. If that cannot be read now, the answer must not become "nothing
                // was written": the same commands would be decided, and perhaps recorded, a second time.
                self.catch_up_soon()?;
                Err(StoreError::Unknown(why).into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The events are durable: now they may be seen.
    fn accept(&mut self, jobs: Vec<Job>, mut decided: Decided, first: EventId) -> Result<(), EngineError> {
        let expected = self.world.head().next();
        if first == expected {
            self.world = std::mem::take(&mut decided.world);
            decided.records.iter().for_each(|record| self.recent.note(record));
            self.publish(|page| decided.rows.iter().for_each(|row| page.push(row.id, &row.body)));
        } else {
            // Other writers came in between: the log has their events and ours, in the order that counts.
            for record in &mut decided.records {
                record.id = EventId(record.id.0 + (first.0 - expected.0));
            }
            self.catch_up_soon()?;
        }
        self.answer_all(jobs, decided);
        self.snapshot_when_due();
        Ok(())
    }

    fn answer_all(&mut self, jobs: Vec<Job>, decided: Decided) {
        let Decided { records, outcomes, served, .. } = decided;
        let mut records: Vec<Option<Record>> = records.into_iter().map(Some).collect();
        let mut taken = |part: Range<usize>| records[part].iter_mut().filter_map(Option::take).collect();
        for (place, settled) in served.into_iter().rev() {
            answer(self.parked.remove(place), settled.map(&mut taken).map_err(SubmitError::Refused));
        }
        self.parked.retain(|job| !job.reply.is_closed());
        for (job, outcome) in jobs.into_iter().zip(outcomes) {
            match outcome {
                Ok(part) => answer(job, Ok(taken(part))),
                Err(Refusal::NoMail(_)) if job.until.is_some_and(|until| until > Instant::now()) => {
                    self.parked.push(job)
                }
                Err(refusal) => answer(job, Err(SubmitError::Refused(refusal))),
            }
        }
    }

    /// Those who have waited long enough are told that there is nothing.
    fn dismiss_overdue(&mut self) {
        let now = Instant::now();
        for job in self.parked.extract_if(.., |job| job.until.is_none_or(|until| until <= now)) {
            let nothing = match &job.command {
                Command::TakeMail { to, .. } => SubmitError::Refused(Refusal::NoMail(*to)),
                _ => SubmitError::Stopped,
            };
            answer(job, Err(nothing));
        }
    }

    /// Takes in what other writers appended.
    fn catch_up(&mut self) -> Result<(), EngineError> {
        let (mut world, mut recent) = (self.world.clone(), self.recent.clone());
        let mut page = PageWriter::default();
        snapshot::fold(self.store.as_ref(), &mut world, |record, body| {
            page.push(record.id, body);
            recent.note(record);
        })?;
        if world.head() != self.world.head() {
            (self.world, self.recent) = (world, recent);
            self.publish(|empty| *empty = page);
        }
        Ok(())
    }

    /// The same where a store that is away is no reason to fail: the next append finds out.
    fn catch_up_soon(&mut self) -> Result<(), EngineError> {
        match self.catch_up() {
            Err(EngineError::Store(error)) => {
                self.say_trouble(Some(error.to_string()));
                Ok(())
            }
            caught_up => {
                caught_up?;
                self.say_trouble(None);
                Ok(())
            }
        }
    }

    /// Shows the new world, the new events and the new plan, in this order.
    fn publish(&self, fill: impl FnOnce(&mut PageWriter)) {
        self.show();
        if self.shared.pages.receiver_count() > 0 {
            let mut page = PageWriter::default();
            fill(&mut page);
            // A page too large to hand around is replaced by an empty one: "read the log".
            let page = if page.is_full() { Page::default() } else { page.finish() };
            // Fails only when the last follower has just left.
            drop(self.shared.pages.send(Arc::new(page)));
        }
        self.shared.plan.send_if_modified(|shown| {
            let wanted = plan(&self.world);
            let changed = *shown != wanted;
            *shown = wanted;
            changed
        });
    }

    fn show(&self) {
        let view = View { world: self.world.clone(), recent: self.recent.clone() };
        *self.shared.view.write().unwrap_or_else(PoisonError::into_inner) = view;
        let head = self.world.head();
        self.shared.head.send_if_modified(|shown| std::mem::replace(shown, head) != head);
    }

    /// Encoding happens beside the engine; keeping it comes back as a wake-up, because one thread writes.
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

    fn keep(&mut self, snapshot: &Snapshot, runs: &MessageRanges) {
        let size = u64::try_from(snapshot.body.len()).unwrap_or(u64::MAX);
        self.snapshot_every = self.options.snapshot_every.max(size / SNAPSHOT_BYTES_PER_EVENT);
        match self.store.checkpoint(snapshot, runs) {
            Ok(indexed) if indexed >= self.recent.after() => {
                self.recent.forget(indexed);
                self.show();
            }
            // Somebody has made the index anew, and shorter: what it lacks must be known here.
            Ok(indexed) => match recent_since(self.store.as_ref(), indexed, self.world.head()) {
                Ok(recent) => {
                    self.recent = recent;
                    self.show();
                }
                Err(error) => {
                    tracing::warn!(%error, "the index is behind and the log cannot be read; restart the daemon")
                }
            },
            Err(error) => {
                tracing::warn!(%error, at = snapshot.at.0, "no checkpoint; the next start reads more of the log");
            }
        }
    }

    fn say_trouble(&self, trouble: Option<String>) {
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

    /// Waits a little. False when the engine is to stop.
    fn pause(&self, length: Duration) -> bool {
        let stop = &self.shared.stop;
        let stopped = self.runtime.block_on(async { tokio::time::timeout(length, stop.notified()).await.is_ok() });
        if stopped {
            // For the main loop, which looks for it as well.
            stop.notify_one();
        }
        !stopped
    }
}

impl Decided {
    fn take(&mut self, command: &Command, now: Timestamp) -> Result<Range<usize>, Refusal> {
        let records = step(&mut self.world, command, now)?;
        self.reads.extend(rests_on(command, &records));
        let start = self.records.len();
        for record in &records {
            let stream = record.event.stream();
            self.rows.push(Row { id: record.id, stream: stream.to_string(), body: record.body() });
        }
        self.records.extend(records);
        Ok(start..self.records.len())
    }
}

/// Whether somebody who waits for mail may have to be told something.
fn ends_a_wait(event: &Event) -> bool {
    matches!(
        event,
        Event::Mail(MailEvent::Sent { .. })
            | Event::Agent { what: AgentEvent::Killed { .. } | AgentEvent::Expired, .. }
    )
}

/// Where the messages are between the end of the index and another place.
fn recent_since(store: &dyn Store, indexed: EventId, upto: EventId) -> Result<Recent, EngineError> {
    let mut recent = Recent::since(indexed);
    snapshot::read_between(store, indexed, upto, |record| recent.note(record))?;
    Ok(recent)
}

fn refuse_all(jobs: Vec<Job>, error: &SubmitError) {
    for job in jobs {
        answer(job, Err(error.clone()));
    }
}

fn answer(job: Job, result: Result<Vec<Record>, SubmitError>) {
    // Whoever asked may have gone away; what was decided stands all the same.
    drop(job.reply.send(result));
}
