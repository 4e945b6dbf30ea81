//! A store whose appends a test replaces.

use hatchery::store::{AppendCallback, Batch, IdRange, MessageRanges, RowVisitor, Snapshot, Store, StoreError};
use hatchery_core::EventId;
use hatchery_core::history::HistoryRange;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Gets the real store and what is to be appended.
type Append = Box<dyn Fn(&dyn Store, Batch<'_>) -> Result<EventId, StoreError> + Send + Sync>;

pub struct FaultyStore {
    pub inner: Arc<dyn Store>,
    pub append: Append,
    /// When it is not 0, the next read of the log fails.
    pub failing_reads: Arc<AtomicUsize>,
}

impl FaultyStore {
    pub fn new(
        inner: Arc<dyn Store>,
        append: impl Fn(&dyn Store, Batch<'_>) -> Result<EventId, StoreError> + Send + Sync + 'static,
    ) -> Self {
        Self { inner, append: Box::new(append), failing_reads: Arc::default() }
    }
}

impl fmt::Debug for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FaultyStore").field(&self.inner).finish()
    }
}

impl Store for FaultyStore {
    fn migrate(&self) -> Result<(), StoreError> {
        self.inner.migrate()
    }

    fn head(&self) -> Result<EventId, StoreError> {
        self.inner.head()
    }

    fn append(&self, batch: Batch<'_>) -> Result<EventId, StoreError> {
        (self.append)(self.inner.as_ref(), batch)
    }

    fn sum_of(&self, id: EventId) -> Result<Option<u32>, StoreError> {
        self.inner.sum_of(id)
    }

    fn read_after(&self, after: EventId, limit: usize, visit: RowVisitor<'_>) -> Result<(), StoreError> {
        match self.failing_reads.swap(0, Ordering::Relaxed) {
            0 => self.inner.read_after(after, limit, visit),
            _ => Err(StoreError::Unavailable("away".to_owned())),
        }
    }

    fn snapshots(&self) -> Result<Vec<Snapshot>, StoreError> {
        self.inner.snapshots()
    }

    fn checkpoint(&self, snapshot: &Snapshot, runs: &MessageRanges) -> Result<EventId, StoreError> {
        self.inner.checkpoint(snapshot, runs)
    }

    fn indexed(&self) -> Result<Option<EventId>, StoreError> {
        self.inner.indexed()
    }

    fn read_parts(&self, parts: &[HistoryRange], recent: &[IdRange], visit: RowVisitor<'_>) -> Result<(), StoreError> {
        self.inner.read_parts(parts, recent, visit)
    }

    fn rebuild(&self, snapshot: &Snapshot, runs: &MessageRanges) -> Result<bool, StoreError> {
        self.inner.rebuild(snapshot, runs)
    }

    fn check(&self) -> Result<Vec<String>, StoreError> {
        self.inner.check()
    }

    fn is_shared(&self) -> bool {
        self.inner.is_shared()
    }

    fn on_foreign_append(&self, notify: AppendCallback) {
        self.inner.on_foreign_append(notify);
    }
}
