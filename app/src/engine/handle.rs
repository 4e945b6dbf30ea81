//! The one door to the world: submit a command, view what is true, follow what happens.

use super::page::{PAGE_ROWS, Page, PageWriter};
use super::recent::Recent;
use super::replay::Replay;
use super::{Job, SubmitError};
use crate::store::{Store, StoreError};
use hatchery_core::event::MessageEvent;
use hatchery_core::event::Unreadable;
use hatchery_core::history::{self, Said};
use hatchery_core::{AgentId, Command, Event, EventId, Plan, Record, World};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, broadcast, mpsc, oneshot, watch};

/// A commit takes milliseconds; one that takes longer than this is trouble.
const STORE_SILENCE: Duration = Duration::from_secs(1);

/// How far before its last message the last words of an agent are looked for. Between them are results of tools, and what others did.
const LATEST_WINDOW: u64 = 256;

/// Cheap to clone; all clones speak to the same engine.
#[derive(Clone, Debug)]
pub struct Handle {
    pub(super) inbox: mpsc::Sender<Job>,
    pub(super) shared: Arc<Shared>,
}

/// What is true, and where the latest messages are: always of the same event.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub world: World,
    pub recent: Recent,
}

/// Why a history cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}

/// What the engine shows to the outside. Only the engine writes here.
#[derive(Debug)]
pub(super) struct Shared {
    pub store: Arc<dyn Store>,
    pub view: RwLock<View>,
    /// The last event of the view.
    pub head: watch::Sender<EventId>,
    pub pages: broadcast::Sender<Arc<Page>>,
    pub plan: watch::Sender<Plan>,
    pub trouble: watch::Sender<Option<String>>,
    /// Since when the store has owed an answer to an append.
    pub asked: Mutex<Option<Instant>>,
    pub stop: Notify,
}

impl Shared {
    pub fn asked_at(&self, at: Option<Instant>) {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = at;
    }
}

impl Handle {
    /// Asks for something. The answer comes when the events are durable, or when it is certain that there are none.
    pub async fn submit(&self, command: Command) -> Result<Vec<Record>, SubmitError> {
        self.send(command, None).await
    }

    /// The same, but when there is no mail to take it waits for some. Dropping the future gives the place in the queue up.
    pub async fn submit_within(&self, command: Command, patience: Duration) -> Result<Vec<Record>, SubmitError> {
        self.send(command, Instant::now().checked_add(patience)).await
    }

    async fn send(&self, command: Command, until: Option<Instant>) -> Result<Vec<Record>, SubmitError> {
        let (reply, answer) = oneshot::channel();
        self.inbox.send(Job { command, until, reply }).await.map_err(|_| SubmitError::Stopped)?;
        answer.await.unwrap_or(Err(SubmitError::Stopped))
    }

    /// What is true, as of the last durable event. Costs a few counters, whatever the size of the world.
    pub fn view(&self) -> World {
        self.shared.view.read().unwrap_or_else(PoisonError::into_inner).world.clone()
    }

    pub fn head(&self) -> EventId {
        self.shared.view.read().unwrap_or_else(PoisonError::into_inner).world.head()
    }

    /// Changes when the view has. Whoever looks at the view must wait for this, and not for the log: an event can be read
    /// from the store before the view shows it.
    pub fn heads(&self) -> watch::Receiver<EventId> {
        self.shared.head.subscribe()
    }

    /// An agent's whole history, inherited parts first, with what was interrupted marked.
    pub async fn replay(&self, agent: AgentId) -> Result<Replay, HistoryError> {
        let View { world, recent } = self.shared.view.read().unwrap_or_else(PoisonError::into_inner).clone();
        let store = Arc::clone(&self.shared.store);
        let read = move || {
            let parts = history::ranges(&world, agent);
            let mut replay = Replay::default();
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
            replay.finish();
            Ok(replay)
        };
        match tokio::task::spawn_blocking(read).await {
            Ok(replay) => replay,
            Err(error) => Err(StoreError::Broken(error.to_string()).into()),
        }
    }

    /// The same, taken out of its JSON, for those who work with it.
    pub async fn history(&self, agent: AgentId) -> Result<Vec<Said>, HistoryError> {
        let replay = self.replay(agent).await?;
        Ok(replay.iter().filter_map(|message| message.said().transpose()).collect::<Result<_, _>>()?)
    }

    /// What each of these agents said or called last, if that is among the [`LATEST_WINDOW`] events up to its last message. By one
    /// statement, however many agents there are.
    pub async fn latest_spoken(&self, of: &[AgentId]) -> Result<BTreeMap<AgentId, Record>, HistoryError> {
        let View { world, recent } = self.shared.view.read().unwrap_or_else(PoisonError::into_inner).clone();
        let store = Arc::clone(&self.shared.store);
        let part = |agent: &AgentId| {
            let upto = world.agent(*agent)?.last_message?;
            Some(history::Range { agent: *agent, after: EventId(upto.0.saturating_sub(LATEST_WINDOW)), upto })
        };
        let parts: Vec<history::Range> = of.iter().filter_map(part).collect();
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

    /// Every event after a place in the log: first what is there, then what comes, each once, in order.
    pub fn follow(&self, after: EventId) -> Follower {
        let live = self.shared.pages.subscribe();
        Follower { store: Arc::clone(&self.shared.store), cursor: after, live, behind: true }
    }

    /// Up to `limit` events after a place in the log.
    pub async fn read(&self, after: EventId, limit: usize) -> Result<Page, StoreError> {
        read_page(Arc::clone(&self.shared.store), after, limit).await
    }

    /// Whether an event is a message that stands in an agent's history: its own, or an ancestor's that it inherited.
    pub async fn is_in_history(&self, agent: AgentId, message: EventId) -> Result<bool, HistoryError> {
        let world = self.view();
        let page = self.read(message.before(), 1).await?;
        let Some((id, json)) = page.events().next().filter(|(id, _)| *id == message) else { return Ok(false) };
        let body = std::str::from_utf8(&json).map_err(|error| StoreError::Damaged(error.to_string()))?;
        let Event::Message(MessageEvent::Added { agent: owner, .. }) = Record::read(id, body)?.event else {
            return Ok(false);
        };
        let inside = |part: &history::Range| part.after < id && id <= part.upto && owner == part.agent;
        Ok(history::ranges(&world, agent).iter().any(inside))
    }

    /// What should be happening, for those who bring it about.
    pub fn plan(&self) -> watch::Receiver<Plan> {
        self.shared.plan.subscribe()
    }

    /// What is wrong with the store at the moment, if anything. Silence counts: a store may take long to say that it is
    /// away, and the engine waits for its word.
    pub fn trouble(&self) -> Option<String> {
        let asked = *self.shared.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let silent = asked.map(|at| at.elapsed()).filter(|silent| *silent > STORE_SILENCE);
        let said = self.shared.trouble.borrow().clone();
        said.or_else(|| silent.map(|silent| format!("the store has not answered for {} s", silent.as_secs())))
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
    }

    /// Asks the engine to finish what it has and stop.
    pub fn stop(&self) {
        self.shared.stop.notify_one();
    }
}

/// A place in the log that moves forward. It subscribed before it reads, so nothing falls in between; when it is too slow
/// for the live pages it reads the log again, so nobody buffers for it.
#[derive(Debug)]
pub struct Follower {
    store: Arc<dyn Store>,
    cursor: EventId,
    live: broadcast::Receiver<Arc<Page>>,
    behind: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    #[error("the engine has stopped")]
    Stopped,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Follower {
    /// The next events as frames of an event stream. Safe to drop in the middle of waiting.
    pub async fn next_frames(&mut self) -> Result<bytes::Bytes, FollowError> {
        let before = self.cursor;
        let page = self.next_page().await?;
        Ok(page.frames_after(before))
    }

    /// The next page that has something new. Its first events may be known already.
    pub async fn next_page(&mut self) -> Result<Arc<Page>, FollowError> {
        loop {
            let page = match self.behind {
                true => Arc::new(read_page(Arc::clone(&self.store), self.cursor, PAGE_ROWS).await?),
                false => match self.live.recv().await {
                    Ok(page) => page,
                    Err(broadcast::error::RecvError::Lagged(_)) => {
                        self.behind = true;
                        continue;
                    }
                    Err(broadcast::error::RecvError::Closed) => return Err(FollowError::Stopped),
                },
            };
            match (page.first(), page.last()) {
                (Some(first), Some(last)) if first <= self.cursor.next() && last > self.cursor => {
                    self.cursor = last;
                    return Ok(page);
                }
                (Some(_), Some(last)) if last <= self.cursor => {}
                // A gap before the page: the log has what is missing.
                (Some(_), Some(_)) => self.behind = true,
                // The end of the log, or a live page too large to hand around.
                _ => self.behind = !self.behind,
            }
        }
    }
}

async fn read_page(store: Arc<dyn Store>, after: EventId, limit: usize) -> Result<Page, StoreError> {
    let read = move || {
        let mut writer = PageWriter::default();
        store.read_after(after, limit, &mut |id, body| {
            writer.push(id, body);
            if writer.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(writer.finish())
    };
    match tokio::task::spawn_blocking(read).await {
        Ok(page) => page,
        Err(error) => Err(StoreError::Broken(error.to_string())),
    }
}
