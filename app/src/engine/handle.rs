//! The one door to the world: submit a command, view what is true, follow what happens.

use super::page::{PAGE_ROWS, Page, PageWriter};
use super::{Job, SubmitError};
use crate::store::{Store, StoreError};
use hatchery_core::{Command, EventId, Plan, Record, World};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, broadcast, mpsc, oneshot, watch};

/// A commit takes milliseconds; one that takes longer than this is trouble.
const STORE_SILENCE: Duration = Duration::from_secs(1);

/// Cheap to clone; all clones speak to the same engine.
#[derive(Clone, Debug)]
pub struct Handle {
    pub(super) inbox: mpsc::Sender<Job>,
    pub(super) shared: Arc<Shared>,
}

/// What the engine shows to the outside. Only the engine writes here.
#[derive(Debug)]
pub(super) struct Shared {
    pub store: Arc<dyn Store>,
    pub world: RwLock<World>,
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
        let (reply, answer) = oneshot::channel();
        self.inbox.send(Job { command, reply }).await.map_err(|_| SubmitError::Stopped)?;
        answer.await.unwrap_or(Err(SubmitError::Stopped))
    }

    /// What is true, as of the last durable event. Costs a few counters, whatever the size of the world.
    pub fn view(&self) -> World {
        self.shared.world.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn head(&self) -> EventId {
        self.shared.world.read().unwrap_or_else(PoisonError::into_inner).head()
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
