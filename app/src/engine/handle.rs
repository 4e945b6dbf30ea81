//! The only access to the engine: submit a command, view the world, follow the log.

use super::committer::Committer;
use super::follower::{Content, FollowError, Follower, RecordFollower, read_page};
use super::page::Page;
use super::recent::RecentMessages;
use super::replay::{self, Replay};
use super::{EngineError, Job, SubmitError, snapshot};
use crate::store::{Store, StoreError};
use hatchery_core::event::{MessageEvent, Unreadable};
use hatchery_core::history::{self, HistoryMessage};
use hatchery_core::{AgentId, Command, Event, EventId, MessageKind, Plan, Record, World};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, Semaphore, broadcast, mpsc, oneshot, watch};

/// A commit takes milliseconds. If it takes longer than this, the store has a problem.
const STORE_SILENCE: Duration = Duration::from_secs(1);

/// How many events before an agent's last message are searched for its last own words. In between may be tool results and events of others.
const LATEST_WINDOW: u64 = 256;

/// How many past worlds are rebuilt at the same time. Each takes as much memory as the view, and a core.
static REBUILDS: Semaphore = Semaphore::const_new(2);

/// A reference to the engine. Cheap to clone; all clones reach the same engine.
#[derive(Clone, Debug)]
pub struct Handle {
    pub(super) inbox: mpsc::Sender<Job>,
    pub(super) committer: Arc<Mutex<Committer>>,
    pub(super) shared: Arc<Shared>,
}

/// The world, and the positions of the newest messages, after the same event.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub world: Arc<World>,
    pub recent: RecentMessages,
}

/// Why a history cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}

/// What the engine publishes. Only the [`Committer`] writes to the fields before `asked`.
#[derive(Debug)]
pub(super) struct Shared {
    pub store: Arc<dyn Store>,
    pub view: RwLock<View>,
    /// The last event of the view.
    pub head: watch::Sender<EventId>,
    pub pages: broadcast::Sender<Arc<Page>>,
    pub plan: watch::Sender<Plan>,
    pub trouble: watch::Sender<Option<String>>,
    /// When the current append was sent to the store. None if no append is on its way.
    pub asked: Mutex<Option<Instant>>,
    /// Why nothing may be recorded any more. Not set in normal operation.
    pub halted: OnceLock<String>,
    pub stop: Notify,
    /// Wakes the engine's thread to look at its deadlines again.
    pub recheck: Notify,
    /// How many commands were sent to the engine's thread and are not committed yet.
    pub queued: AtomicUsize,
}

impl Shared {
    pub fn asked_at(&self, at: Option<Instant>) {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = at;
    }
}

impl Handle {
    /// Submits a command. The answer comes when its events are durable, or when it is certain that there are none.
    pub async fn submit(&self, command: Command) -> Result<Vec<Record>, SubmitError> {
        self.send(command, None).await
    }

    /// Submits a command. A command that takes mail waits until there is mail, for at most `patience`. Dropping the future ends the wait.
    pub async fn submit_within(&self, command: Command, patience: Duration) -> Result<Vec<Record>, SubmitError> {
        self.send(command, Instant::now().checked_add(patience)).await
    }

    async fn send(&self, command: Command, until: Option<Instant>) -> Result<Vec<Record>, SubmitError> {
        if let Some(why) = self.shared.halted.get() {
            return Err(SubmitError::Store(Arc::new(StoreError::Gone(why.clone()))));
        }
        let (reply, answer) = oneshot::channel();
        if let Some(job) = self.commit_at_once(Job { command, until, reply }) {
            let place = self.inbox.reserve().await.map_err(|_| SubmitError::Stopped)?;
            self.shared.queued.fetch_add(1, Ordering::Acquire);
            place.send(job);
        }
        answer.await.unwrap_or(Err(SubmitError::Stopped))
    }

    /// Commits a command on this thread if the engine is idle. Waiting commands go first, so that no sender overtakes another, and no
    /// thread waits for the lock. Returns the command if the engine's thread has to commit it.
    fn commit_at_once(&self, job: Job) -> Option<Job> {
        if self.shared.queued.load(Ordering::Acquire) > 0 {
            return Some(job);
        }
        match self.committer.try_lock() {
            Ok(mut committer) => committer.commit_at_once(job),
            Err(_) => Some(job),
        }
    }

    /// The world after the last durable event. It does not change while the caller uses it, and costs one reference count.
    pub fn view(&self) -> Arc<World> {
        Arc::clone(&self.shared.view.read().unwrap_or_else(PoisonError::into_inner).world)
    }

    /// The world as it was at an event. For the last event this is the view; otherwise the world is rebuilt from a snapshot and the log.
    pub async fn world_at(&self, at: EventId) -> Result<Arc<World>, EngineError> {
        let view = self.view();
        if view.head() == at {
            return Ok(view);
        }
        if at == EventId::START {
            return Ok(Arc::default());
        }
        let broken = |error: String| EngineError::Store(StoreError::Broken(error));
        let _turn = REBUILDS.acquire().await.map_err(|error| broken(error.to_string()))?;
        let store = Arc::clone(&self.shared.store);
        let rebuilt = tokio::task::spawn_blocking(move || snapshot::world_at(store.as_ref(), at)).await;
        rebuilt.unwrap_or_else(|error| Err(broken(error.to_string()))).map(Arc::new)
    }

    /// The last event of the view.
    pub fn head(&self) -> EventId {
        self.shared.view.read().unwrap_or_else(PoisonError::into_inner).world.head()
    }

    /// The last event of the view, as a channel that changes after the view. A caller that waits for a state of the view must wait for
    /// this channel and not for the log, because an event can be read from the store before the view shows it.
    pub fn heads(&self) -> watch::Receiver<EventId> {
        self.shared.head.subscribe()
    }

    /// An agent's whole history, inherited messages first. Interrupted messages are marked.
    pub async fn replay(&self, agent: AgentId) -> Result<Replay, HistoryError> {
        let View { world, recent } = self.shared.view.read().unwrap_or_else(PoisonError::into_inner).clone();
        let store = Arc::clone(&self.shared.store);
        let read = move || {
            let parts = history::ranges(&world, agent);
            let mut replay = Replay::of(world.head());
            let mut problem = None;
            store.read_parts(&parts, &recent.within(&parts), &mut |id, body| match replay.push(id, body) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    problem = Some(error);
                    ControlFlow::Break(())
                }
            })?;
            if let Some(error) = problem {
                return Err(HistoryError::Unreadable(error));
            }
            replay.finish(&world, &parts)?;
            Ok(replay)
        };
        match tokio::task::spawn_blocking(read).await {
            Ok(replay) => replay,
            Err(error) => Err(StoreError::Broken(error.to_string()).into()),
        }
    }

    /// The history of an agent as decoded messages.
    pub async fn history(&self, agent: AgentId) -> Result<Vec<HistoryMessage>, HistoryError> {
        let replay = self.replay(agent).await?;
        Ok(replay.iter().filter_map(|message| message.said().transpose()).collect::<Result<_, _>>()?)
    }

    /// The newest of an agent's own messages, in order, including cleared and rewound ones. Only wanted messages count for the limit.
    pub async fn own_messages(
        &self,
        agent: AgentId,
        limit: usize,
        wanted: fn(MessageKind) -> bool,
    ) -> Result<Vec<Record>, HistoryError> {
        let View { world, recent } = self.shared.view.read().unwrap_or_else(PoisonError::into_inner).clone();
        let store = Arc::clone(&self.shared.store);
        let own = world.agent(agent).and_then(|it| Some((it.born, it.last_message?)));
        let Some((after, upto)) = own else { return Ok(Vec::new()) };
        let read = move || {
            let parts = [history::HistoryRange { agent, after, upto }];
            let mut newest = std::collections::VecDeque::new();
            let mut all = Vec::new();
            let mut problem = None;
            store.read_parts(&parts, &recent.within(&parts), &mut |id, body| match Record::read(id, body) {
                Ok(record) => {
                    if let Event::Message(MessageEvent::Added { agent, kind, .. }) = &record.event {
                        all.push((id, *agent));
                        if wanted(*kind) {
                            newest.push_back(record);
                        }
                    }
                    if newest.len() > limit {
                        newest.pop_front();
                    }
                    ControlFlow::Continue(())
                }
                Err(error) => {
                    problem = Some(error);
                    ControlFlow::Break(())
                }
            })?;
            if let Some(error) = problem {
                return Err(HistoryError::Unreadable(error));
            }
            all.sort_unstable();
            all.dedup();
            replay::check(&world, &parts, all.into_iter())?;
            Ok(newest.into())
        };
        match tokio::task::spawn_blocking(read).await {
            Ok(read) => read,
            Err(error) => Err(StoreError::Broken(error.to_string()).into()),
        }
    }

    /// The last text or tool call of each of these agents, if it is among the [`LATEST_WINDOW`] events up to the agent's last message.
    /// Takes one statement, no matter how many agents there are.
    pub async fn latest_spoken(&self, of: &[AgentId]) -> Result<BTreeMap<AgentId, Record>, HistoryError> {
        let View { world, recent } = self.shared.view.read().unwrap_or_else(PoisonError::into_inner).clone();
        let store = Arc::clone(&self.shared.store);
        let part = |agent: &AgentId| {
            let upto = world.agent(*agent)?.last_message?;
            Some(history::HistoryRange { agent: *agent, after: EventId(upto.0.saturating_sub(LATEST_WINDOW)), upto })
        };
        let parts: Vec<history::HistoryRange> = of.iter().filter_map(part).collect();
        if parts.is_empty() {
            return Ok(BTreeMap::new());
        }
        let read = move || {
            let mut latest: BTreeMap<AgentId, Record> = BTreeMap::new();
            let mut problem = None;
            store.read_parts(&parts, &recent.within(&parts), &mut |id, body| match Record::read(id, body) {
                Ok(record) => {
                    if let Event::Message(MessageEvent::Added { agent, kind, .. }) = &record.event
                        && kind.is_spoken()
                        && latest.get(agent).is_none_or(|known| known.id < id)
                    {
                        latest.insert(*agent, record);
                    }
                    ControlFlow::Continue(())
                }
                Err(error) => {
                    problem = Some(error);
                    ControlFlow::Break(())
                }
            })?;
            problem.map_or(Ok(latest), |error| Err(HistoryError::Unreadable(error)))
        };
        match tokio::task::spawn_blocking(read).await {
            Ok(latest) => latest,
            Err(error) => Err(StoreError::Broken(error.to_string()).into()),
        }
    }

    /// Every event after a position in the log, as frames: first the existing events, then new ones, each once, in order.
    pub fn follow(&self, after: EventId) -> Follower {
        Follower::new(Arc::clone(&self.shared.store), after, self.shared.pages.subscribe())
    }

    /// Every event after a position in the log, as records: first the existing events, then new ones, each once, in order.
    pub fn follow_records(&self, after: EventId) -> RecordFollower {
        RecordFollower::new(Arc::clone(&self.shared.store), after, self.shared.pages.subscribe())
    }

    /// Up to `limit` events after a position in the log, as JSON. Fewer if they are long.
    pub async fn read(&self, after: EventId, limit: usize) -> Result<Page, StoreError> {
        match read_page(Arc::clone(&self.shared.store), after, limit, Content::Frames).await {
            Err(FollowError::Store(error)) => Err(error),
            page => page.map_err(|error| StoreError::Broken(error.to_string())),
        }
    }

    /// Up to `limit` events after a position in the log, as records. Fewer if they are long.
    pub async fn read_records(&self, after: EventId, limit: usize) -> Result<Page, HistoryError> {
        match read_page(Arc::clone(&self.shared.store), after, limit, Content::Records).await {
            Err(FollowError::Store(error)) => Err(error.into()),
            Err(FollowError::Unreadable(error)) => Err(error.into()),
            page => page.map_err(|error| StoreError::Broken(error.to_string()).into()),
        }
    }

    /// One event of the log.
    pub async fn record(&self, id: EventId) -> Result<Option<Record>, HistoryError> {
        let page = self.read_records(id.before(), 1).await?;
        Ok(page.records().first().filter(|record| record.id == id).cloned())
    }

    /// Whether an event is a message in an agent's history: its own, or one that it inherited.
    pub async fn is_in_history(&self, agent: AgentId, message: EventId) -> Result<bool, HistoryError> {
        let world = self.view();
        let Some(Event::Message(MessageEvent::Added { agent: owner, .. })) =
            self.record(message).await?.map(|it| it.event)
        else {
            return Ok(false);
        };
        let inside = |part: &history::HistoryRange| part.after < message && message <= part.upto && owner == part.agent;
        Ok(history::ranges(&world, agent).iter().any(inside))
    }

    /// The plan, which the runner carries out.
    pub fn plan(&self) -> watch::Receiver<Plan> {
        self.shared.plan.subscribe()
    }

    /// The current problem of the store, if there is one. A store that does not answer counts as a problem, because it may take long until
    /// the append fails.
    pub fn trouble(&self) -> Option<String> {
        let asked = *self.shared.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let silent = asked.map(|at| at.elapsed()).filter(|silent| *silent > STORE_SILENCE);
        let halted = self.shared.halted.get().cloned();
        let said = halted.or_else(|| self.shared.trouble.borrow().clone());
        said.or_else(|| silent.map(|silent| format!("the store has not answered for {} s", silent.as_secs())))
    }

    /// Wakes when [`trouble`](Self::trouble) may have changed. A store that does not answer causes no wake-up.
    pub fn trouble_changes(&self) -> watch::Receiver<Option<String>> {
        self.shared.trouble.subscribe()
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
    }

    /// Refuses every command from now on, because the data were deleted or replaced.
    pub fn halt(&self, why: String) {
        self.shared.halted.get_or_init(|| why);
        // Wake the watchers of the store's problems.
        self.shared.trouble.send_modify(|_| {});
    }

    /// Asks the engine to finish its queue and stop.
    pub fn stop(&self) {
        self.shared.stop.notify_one();
    }
}
