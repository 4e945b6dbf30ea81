//! A commit whose outcome nobody can tell, with a log that cannot be read at that moment either.

use crate::support::place::Place;
use crate::support::rows::read;
use crate::support::runtime;
use hatchery::clock::{SystemClock, new_agent_id};
use hatchery::engine::{Engine, Options, SubmitError};
use hatchery::store::{AppendCallback, Batch, IdRange, MessageRanges, RowVisitor, Snapshot, Store, StoreError};
use hatchery_core::MessageKind;
use hatchery_core::history::Range;
use hatchery_core::{Command, EventId};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn is_never_recorded_twice() {
    let place = Place::sqlite();
    let store =
        Arc::new(Flaky { inner: place.open(), appends: AtomicUsize::new(0), failing_reads: AtomicUsize::new(0) });
    let engine = Engine::start(store.clone(), Arc::new(SystemClock), Options::default(), runtime().clone()).unwrap();
    let agent = new_agent_id();
    let submit = |command| runtime().block_on(engine.handle.submit(command));
    submit(Command::FoundRegistry { agent, name: None }).unwrap();
    let say = |content: &str| Command::AddMessage { agent, kind: MessageKind::User, content: content.to_owned() };
    let answer = submit(say("once"));
    let unknown = matches!(&answer, Err(SubmitError::Store(error)) if matches!(**error, StoreError::Unknown(_)));
    assert!(unknown, "{answer:?}");
    let next = submit(say("next")).unwrap();
    assert_eq!(next[0].id, EventId(3), "it was recorded, and the engine has learnt of it");
    assert_eq!(engine.handle.head(), EventId(3));
    engine.handle.stop();
    engine.join().unwrap();
    let log = read(store.inner.as_ref(), 0);
    assert_eq!(log.iter().filter(|(_, body)| body.contains("once")).count(), 1, "{log:?}");
}

/// A store that commits its second append and loses the answer, and then cannot be read once.
#[derive(Debug)]
struct Flaky {
    inner: Arc<dyn Store>,
    appends: AtomicUsize,
    failing_reads: AtomicUsize,
}

impl Store for Flaky {
    fn migrate(&self) -> Result<(), StoreError> {
        self.inner.migrate()
    }

    fn head(&self) -> Result<EventId, StoreError> {
        self.inner.head()
    }

    fn append(&self, batch: Batch<'_>) -> Result<EventId, StoreError> {
        let first = self.inner.append(batch)?;
        match self.appends.fetch_add(1, Ordering::Relaxed) {
            1 => {
                self.failing_reads.store(1, Ordering::Relaxed);
                Err(StoreError::Unknown("the answer was lost".to_owned()))
            }
            _ => Ok(first),
        }
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

    fn indexed(&self) -> Result<EventId, StoreError> {
        self.inner.indexed()
    }

    fn read_parts(&self, parts: &[Range], recent: &[IdRange], visit: RowVisitor<'_>) -> Result<(), StoreError> {
        self.inner.read_parts(parts, recent, visit)
    }

    fn rebuild(&self, snapshot: &Snapshot, runs: &MessageRanges) -> Result<bool, StoreError> {
        self.inner.rebuild(snapshot, runs)
    }

    fn check(&self) -> Result<Vec<String>, StoreError> {
        self.inner.check()
    }

    fn on_foreign_append(&self, notify: AppendCallback) {
        self.inner.on_foreign_append(notify);
    }
}
