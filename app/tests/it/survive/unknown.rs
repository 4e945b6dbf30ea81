//! A commit whose outcome nobody can tell, with a log that cannot be read at that moment either.

use crate::support::faulty_store::FaultyStore;
use crate::support::place::Place;
use crate::support::rows::read;
use crate::support::runtime;
use hatchery::clock::{SystemClock, new_agent_id};
use hatchery::engine::{Engine, EngineOptions, SubmitError};
use hatchery::store::StoreError;
use hatchery_core::MessageKind;
use hatchery_core::{Command, EventId};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn is_never_recorded_twice() {
    let place = Place::sqlite();
    let (appends, failing_reads) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let failing = Arc::clone(&failing_reads);
    // The second append is made and its answer is lost, and then the log cannot be read once.
    let lossy = FaultyStore::new(place.open(), move |store, batch| {
        let first = store.append(batch)?;
        match appends.fetch_add(1, Ordering::Relaxed) {
            1 => {
                failing.store(1, Ordering::Relaxed);
                Err(StoreError::Unknown("the answer was lost".to_owned()))
            }
            _ => Ok(first),
        }
    });
    let store = Arc::new(FaultyStore { failing_reads, ..lossy });
    let engine =
        Engine::start(store.clone(), Arc::new(SystemClock), EngineOptions::default(), runtime().clone()).unwrap();
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
