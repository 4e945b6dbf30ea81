//! The engine: one committer owns the world. The committer decides commands, appends their events to the log, and only then publishes them.
//!
//! ```text
//! Handle::submit ──► inbox ──► decide all waiting commands ──► append once ──► publish ──► answer
//!        │                            ▲                            │
//!        │                            └───── catch up, decide ◄────┘ conflict: another writer was first
//!        └─ idle ──► decide one command ──► append ──► publish ──► answer
//! ```
//!
//! The waiting commands are decided one after the other on a tentative copy of the world, and their events are appended together (a group
//! commit). Nothing is visible before the append returns; if the append fails, the tentative world is dropped. The engine's thread commits
//! waiting commands. A sender that finds the engine idle commits its command itself, on its own thread.
//!
//! If the decision of a command panics, only that command fails: see [`SubmitError::Failed`].

mod ahead;
mod committer;
mod decision;
mod follower;
mod handle;
mod page;
pub mod recent;
mod replay;
pub mod snapshot;
mod thread;

pub use follower::{FollowError, Follower, NewRecords, RecordFollower};
pub use handle::{Handle, HistoryError};
pub use page::{PAGE_ROWS, Page};
pub use replay::{Replay, Replayed};

use crate::clock::Clock;
use crate::store::{Store, StoreError};
use committer::{Committer, StartState};
use handle::{Shared, View};
use hatchery_core::event::Unreadable;
use hatchery_core::world::Impossible;
use hatchery_core::{Command, EventId, Record, Refusal, Timestamp, World, plan, step};
use recent::RecentMessages;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::time::Instant;
use thread::EngineThread;
use tokio::sync::{Notify, broadcast, mpsc, oneshot, watch};

/// How many commands may wait. When the inbox is full, `submit` waits, which slows the sender down.
const INBOX: usize = 1_024;
/// How many pages a live follower may be behind before it has to read the log.
const LIVE_PAGES: usize = 256;

/// How a command changes a world: decide, apply, settle. Outside of tests this is always [`hatchery_core::step`].
pub type StepFn = fn(&mut World, &Command, Timestamp) -> Result<Vec<Record>, Refusal>;

#[derive(Debug, Clone, Copy)]
pub struct EngineOptions {
    /// The least number of events between two snapshots. A large world has more events between two snapshots.
    pub snapshot_every: u64,
    /// A test sets a faulty function here to see that the engine survives it.
    pub step: StepFn,
}

impl Default for EngineOptions {
    /// Applying 10,000 events takes a few hundredths of a second, and a small snapshot takes far less time than that.
    fn default() -> Self {
        Self { snapshot_every: 10_000, step }
    }
}

/// Why a command was not carried out.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SubmitError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Store(Arc<StoreError>),
    /// The decision of the command panicked, which is a bug. Nothing was recorded, the world is unchanged, and other commands are not
    /// affected. The cause is in the daemon's log and not in the message, because it says something about the code only.
    #[error("the daemon failed to decide this command; nothing was recorded")]
    Failed,
    #[error("the daemon is shutting down")]
    Stopped,
}

/// Why an engine could not start, or had to stop.
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

/// A command, and the channel for its answer.
#[derive(Debug)]
struct Job {
    command: Command,
    /// Until when the command may wait for mail. Only `TakeMail` waits.
    until: Option<Instant>,
    reply: oneshot::Sender<Result<Vec<Record>, SubmitError>>,
}

impl Job {
    /// Whether the command waits for mail and its caller has left. Mail that it takes would be lost.
    fn was_given_up(&self) -> bool {
        self.until.is_some() && self.reply.is_closed()
    }
}

/// A running engine. It ends when its thread ends: see [`Engine::join`].
#[derive(Debug)]
pub struct Engine {
    pub handle: Handle,
    thread: std::thread::JoinHandle<Result<(), EngineError>>,
}

impl Engine {
    /// Restores the world (snapshot, then the rest of the log) and starts the thread. Blocks while it reads the store.
    pub fn start(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        options: EngineOptions,
        runtime: tokio::runtime::Handle,
    ) -> Result<Self, EngineError> {
        let mut world = snapshot::restore(store.as_ref())?;
        let snapshot_at = world.head();
        let indexed = store.indexed()?;
        let mut recent = recent_since(store.as_ref(), indexed.unwrap_or(EventId::START), snapshot_at)?;
        snapshot::fold(store.as_ref(), &mut world, |record, _| recent.note(&record))?;
        if indexed.is_none() {
            rebuild_index(store.as_ref(), &world, &mut recent);
        }
        let (inbox, jobs) = mpsc::channel(INBOX);
        let foreign = Arc::new(Notify::new());
        let notified = Arc::clone(&foreign);
        store.on_foreign_append(Arc::new(move || notified.notify_one()));
        let shared = Arc::new(Shared {
            store: Arc::clone(&store),
            plan: watch::Sender::new(plan(&world)),
            head: watch::Sender::new(world.head()),
            view: RwLock::new(View { world: Arc::new(world.clone()), recent: recent.clone() }),
            pages: broadcast::Sender::new(LIVE_PAGES),
            trouble: watch::Sender::new(None),
            asked: Mutex::new(None),
            halted: OnceLock::new(),
            stop: Notify::new(),
            recheck: Notify::new(),
            queued: AtomicUsize::new(0),
        });
        let (encoded, checkpoints) = mpsc::channel(1);
        let restored = StartState { world, recent, snapshot_at };
        let committer = Committer::new(clock, options, runtime.clone(), restored, Arc::clone(&shared), encoded);
        let committer = Arc::new(Mutex::new(committer));
        let handle = Handle { inbox, committer: Arc::clone(&committer), shared: Arc::clone(&shared) };
        let mut thread = EngineThread { committer, runtime, shared, inbox: jobs, foreign, checkpoints };
        let thread = std::thread::Builder::new().name("engine".into()).spawn(move || thread.run())?;
        Ok(Self { handle, thread })
    }

    /// Waits until the engine has stopped.
    pub fn join(self) -> Result<(), EngineError> {
        match self.thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// Replaces an index that is not sound. If this fails, the next checkpoint tries again.
fn rebuild_index(store: &dyn Store, world: &World, recent: &mut RecentMessages) {
    let encoded = snapshot::encode(world).map_err(EngineError::from);
    match encoded.and_then(|snapshot| Ok(store.rebuild(&snapshot, &recent.ranges())?)) {
        Ok(true) => {
            tracing::warn!("the index of messages was damaged; it was rebuilt from the log");
            recent.forget(world.head());
        }
        Ok(false) => tracing::warn!("the index of messages was damaged; another daemon has rebuilt it"),
        Err(error) => tracing::warn!(%error, "the index of messages is damaged and could not be rebuilt"),
    }
}

/// The messages between the end of the store's index and another position.
fn recent_since(store: &dyn Store, indexed: EventId, upto: EventId) -> Result<RecentMessages, EngineError> {
    let mut recent = RecentMessages::since(indexed);
    snapshot::read_between(store, indexed, upto, |record| recent.note(record))?;
    Ok(recent)
}
