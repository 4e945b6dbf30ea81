//! Followers: positions in the log that move forward. A follower first reads the log and then receives the live pages: each event once, in
//! order. It subscribes before it reads, so it misses no event in between. A follower that is too slow for the live pages reads the log
//! again, so nothing is buffered for it.

use super::page::{PAGE_ROWS, Page, PageWriter};
use crate::store::{Store, StoreError};
use bytes::Bytes;
use hatchery_core::event::Unreadable;
use hatchery_core::{EventId, Record};
use std::ops::{ControlFlow, Deref};
use std::sync::Arc;
use tokio::sync::broadcast;

#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    #[error("the engine has stopped")]
    Stopped,
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}

/// Follows the log as frames of the event stream.
#[derive(Debug)]
pub struct Follower(PageFollower);

impl Follower {
    pub(super) fn new(store: Arc<dyn Store>, after: EventId, live: broadcast::Receiver<Arc<Page>>) -> Self {
        Self(PageFollower { store, cursor: after, live, behind: true, content: Content::Frames })
    }

    /// The next events. The future may be dropped while it waits.
    pub async fn next_frames(&mut self) -> Result<Bytes, FollowError> {
        let before = self.0.cursor;
        let page = self.0.next_page().await?;
        Ok(page.frames_after(before))
    }

    /// The frames of those of the next events whose JSON matches, and the id of the last one. Empty if none matches.
    pub async fn next_frames_where(
        &mut self,
        mut matches: impl FnMut(&[u8]) -> bool,
    ) -> Result<(Bytes, Option<EventId>), FollowError> {
        let before = self.0.cursor;
        let page = self.0.next_page().await?;
        let new = page.count_upto(before)..page.len();
        let chosen: Vec<usize> = new.filter(|at| matches(&page.json(*at))).collect();
        Ok((page.frames_of(&chosen), chosen.last().map(|at| page.id(*at))))
    }

    /// The last event that was read, or the position at which the follower began.
    pub fn cursor(&self) -> EventId {
        self.0.cursor
    }
}

/// Follows the log as records.
#[derive(Debug)]
pub struct RecordFollower(PageFollower);

impl RecordFollower {
    pub(super) fn new(store: Arc<dyn Store>, after: EventId, live: broadcast::Receiver<Arc<Page>>) -> Self {
        Self(PageFollower { store, cursor: after, live, behind: true, content: Content::Records })
    }

    /// The next events. The future may be dropped while it waits.
    pub async fn next_records(&mut self) -> Result<NewRecords, FollowError> {
        let before = self.0.cursor;
        let page = self.0.next_page().await?;
        Ok(NewRecords { known: page.count_upto(before), page })
    }

    /// The last event that was returned, or the position at which the follower began.
    pub fn cursor(&self) -> EventId {
        self.0.cursor
    }
}

/// The records of a page that are new for this follower. All followers share the page.
#[derive(Clone, Debug)]
pub struct NewRecords {
    page: Arc<Page>,
    known: usize,
}

impl Deref for NewRecords {
    type Target = [Record];

    fn deref(&self) -> &[Record] {
        &self.page.records()[self.known..]
    }
}

/// What the pages of a follower must contain. Live pages contain both.
#[derive(Clone, Copy, Debug)]
pub(super) enum Content {
    Frames,
    /// Frames and records.
    Records,
}

#[derive(Debug)]
struct PageFollower {
    store: Arc<dyn Store>,
    cursor: EventId,
    live: broadcast::Receiver<Arc<Page>>,
    /// Whether the next page has to be read from the log.
    behind: bool,
    content: Content,
}

impl PageFollower {
    /// The next page with a new event. Its first events may be known already.
    async fn next_page(&mut self) -> Result<Arc<Page>, FollowError> {
        loop {
            let page = match self.behind {
                true => Arc::new(read_page(Arc::clone(&self.store), self.cursor, PAGE_ROWS, self.content).await?),
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
                // Events before the page are missing. They are in the log.
                (Some(_), Some(_)) => self.behind = true,
                // The end of the log, or a live page that was too large to hand out.
                _ => self.behind = !self.behind,
            }
        }
    }
}

pub(super) async fn read_page(
    store: Arc<dyn Store>,
    after: EventId,
    limit: usize,
    content: Content,
) -> Result<Page, FollowError> {
    let read = move || {
        let mut writer = PageWriter::default();
        let mut problem = None;
        store.read_after(after, limit, &mut |id, body| {
            match content {
                Content::Frames => writer.push(id, body),
                Content::Records => match Record::read(id, body) {
                    Ok(record) => writer.push_record(record, body),
                    Err(error) => problem = Some(error),
                },
            }
            if writer.is_full() || problem.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        match problem {
            // The events before the unreadable one are returned first. The next page begins with the unreadable one.
            Some(error) if writer.is_empty() => Err(error.into()),
            _ => Ok(writer.finish()),
        }
    };
    match tokio::task::spawn_blocking(read).await {
        Ok(page) => page,
        Err(error) => Err(StoreError::Broken(error.to_string()).into()),
    }
}
