//! What only the shared store has to do: tell of others, and tell the truth when the server or the line goes away.

use crate::support::place::Place;
use crate::support::postgres::{Durability, Server};
use crate::support::proxy::{Fault, Proxy};
use crate::support::rows::{append, read, row, rows};
use crate::support::runtime;
use hatchery::store::{self, AppendCallback, Store, StoreError};
use hatchery_core::EventId;
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::Duration;

/// Long enough for any machine, and never waited for when all is well.
const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn daemons_may_start_together() {
    const DAEMONS: usize = 8;
    let place = Place::postgres();
    let together = Barrier::new(DAEMONS);
    thread::scope(|scope| {
        for _ in 0..DAEMONS {
            scope.spawn(|| {
                together.wait();
                assert_eq!(place.open().head().unwrap(), EventId::START);
            });
        }
    });
}

#[test]
fn it_tells_of_other_writers_and_not_of_oneself() {
    let place = Place::postgres();
    let (ours, theirs) = (place.open(), place.open());
    let (hint, hints) = hints();
    ours.on_foreign_append(hint);
    let wait = || hints.recv_timeout(PATIENCE).expect("a hint");
    // Something may have been missed before the connection stood.
    wait();
    append(&*theirs, 0, &[], &rows("a", 100)).unwrap();
    append(&*ours, 100, &[], &rows("a", 1)).unwrap();
    append(&*theirs, 101, &[], &rows("a", 1)).unwrap();
    wait();
    wait();
    // Notifications come in the order of the commits: whatever else there was to hear has been heard.
    assert!(hints.try_recv().is_err(), "one hint for a batch, and none for our own");
    drop(ours);
    assert_eq!(hints.recv_timeout(PATIENCE), Err(mpsc::RecvTimeoutError::Disconnected), "the ear goes with the store");
}

#[test]
fn it_hears_again_after_a_restart() {
    let database = Server::own(Durability::None).database();
    let store = open(&database.url());
    let (hint, hints) = hints();
    store.on_foreign_append(hint);
    hints.recv_timeout(PATIENCE).expect("a hint for the first connection");
    append(&*store, 0, &[], &rows("a", 1)).unwrap();
    database.server().restart();
    hints.recv_timeout(PATIENCE).expect("a hint for the second connection");
    assert_eq!(store.head().unwrap(), EventId(1));
    assert_eq!(append_after(&*store, 1), EventId(2));
}

#[test]
fn a_commit_whose_answer_is_lost_counts() {
    let database = Server::shared().database();
    let proxy = Proxy::to(&database);
    let store = open(&proxy.url(&database));
    append(&*store, 0, &[], &rows("a", 1)).unwrap();
    proxy.plan(Fault::LoseAnswer);
    assert_eq!(append(&*store, 1, &["a"], &rows("a", 2)).unwrap(), EventId(2));
    assert_eq!(append(&*store, 3, &["a"], &rows("a", 1)).unwrap(), EventId(4));
    assert_eq!(read(&*store, 0).len(), 4);
}

#[test]
fn a_commit_that_is_lost_itself_does_not_count() {
    let database = Server::shared().database();
    let proxy = Proxy::to(&database);
    let store = open(&proxy.url(&database));
    append(&*store, 0, &[], &rows("a", 1)).unwrap();
    proxy.plan(Fault::LoseCommit);
    let lost = append(&*store, 1, &["a"], &rows("a", 2)).unwrap_err();
    assert!(matches!(lost, StoreError::Unavailable(_)), "{lost}");
    assert!(lost.to_string().contains("postgres://postgres@127.0.0.1:"), "{lost}");
    assert!(!format!("{lost} {store:?}").contains("secret"), "{lost} {store:?}");
    assert_eq!(read(&*store, 0).len(), 1);
    assert_eq!(append(&*store, 1, &["a"], &rows("a", 2)).unwrap(), EventId(2));
}

/// The statement of a lost append reaches the server after the writer was told that nothing was written.
#[test]
fn an_append_that_arrives_late_adds_nothing() {
    let database = Server::shared().database();
    let proxy = Proxy::to(&database);
    let store = open(&proxy.url(&database));
    append(&*store, 0, &[], &rows("a", 1)).unwrap();
    proxy.plan(Fault::Delay);
    let lost = append(&*store, 1, &["a"], &rows("a", 2)).unwrap_err();
    assert!(matches!(lost, StoreError::Unavailable(_)), "{lost}");
    proxy.deliver();
    assert_eq!(read(&*store, 0).len(), 1);
    assert_eq!(append(&*store, 1, &["a"], &rows("a", 2)).unwrap(), EventId(2));
}

/// Two writers append in turns, so that the log never ends where one of them thinks.
#[test]
fn an_append_behind_others_is_settled_too() {
    let database = Server::shared().database();
    let proxy = Proxy::to(&database);
    let (store, other) = (open(&proxy.url(&database)), open(&database.url()));
    append(&*store, 0, &[], &rows("a", 1)).unwrap();
    append(&*other, 1, &[], &rows("b", 1)).unwrap();
    proxy.plan_in_transaction(Fault::LoseAnswer);
    assert_eq!(append(&*store, 1, &["a"], &rows("a", 2)).unwrap(), EventId(3));
    append(&*other, 4, &[], &rows("b", 1)).unwrap();
    proxy.plan_in_transaction(Fault::LoseCommit);
    let lost = append(&*store, 4, &["a"], &rows("a", 2)).unwrap_err();
    assert!(matches!(lost, StoreError::Unavailable(_)), "{lost}");
    assert_eq!(read(&*store, 0).len(), 5);
}

/// The server is killed again and again while a writer goes on. What was acknowledged is there, what was refused is not.
#[test]
fn a_killed_server_loses_nothing_and_invents_nothing() {
    const KILLS: usize = 3;
    const BETWEEN_KILLS: usize = 25;
    let database = Server::own(Durability::Full).database();
    let store = open(&database.url());
    let (progress, progressed) = mpsc::channel();
    let kept = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let progress = progress;
            let mut kept: Vec<String> = Vec::new();
            for try_ in 0.. {
                let body = format!("try {try_}");
                match append(&*store, u64::try_from(kept.len()).unwrap(), &["a"], &[row("a", &body)]) {
                    Ok(id) => {
                        kept.push(body);
                        assert_eq!(id.0, u64::try_from(kept.len()).unwrap());
                        if progress.send(()).is_err() {
                            break;
                        }
                    }
                    Err(StoreError::Unavailable(_)) => {}
                    // A machine so busy that the restart took too long to be asked: then the log is what counts.
                    Err(StoreError::Unknown(_)) => {
                        if head_at_last(&*store).0 > u64::try_from(kept.len()).unwrap() {
                            kept.push(body);
                        }
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            kept
        });
        for _ in 0..KILLS {
            for _ in 0..BETWEEN_KILLS {
                progressed.recv_timeout(PATIENCE).expect("appends go on");
            }
            database.server().kill();
            database.server().start();
        }
        progressed.recv_timeout(PATIENCE).expect("appends go on after the last kill");
        drop(progressed);
        writer.join().unwrap()
    });
    let there: Vec<String> = read(&*store, 0).into_iter().map(|(_, body)| body).collect();
    assert_eq!(there, kept);
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

#[test]
fn an_acknowledged_append_is_durable_even_where_the_database_would_rather_be_fast() {
    let database = Server::own(Durability::Full).database();
    database.run_sql("ALTER SYSTEM SET wal_writer_delay = '10s'");
    database.run_sql(&format!("ALTER DATABASE {} SET synchronous_commit = off", database.name()));
    database.server().restart();
    let store = open(&database.url());
    append(&*store, 0, &[], &rows("a", 1)).unwrap();
    database.server().kill();
    database.server().start();
    assert_eq!(read(&*store, 0).len(), 1);
}

#[test]
fn errors_say_what_can_be_done() {
    let database = Server::own(Durability::None).database();
    let missing = store::open(&database.url().replace(database.name(), "missing").parse().unwrap(), runtime());
    assert!(matches!(&missing, Err(StoreError::Broken(text)) if text.contains("does not exist")), "{missing:?}");

    open(&database.url());
    database.run_sql(&format!("ALTER DATABASE {} SET default_transaction_read_only = on", database.name()));
    let store = open(&database.url());
    let refused = append(&*store, 0, &[], &rows("a", 1));
    assert!(matches!(refused, Err(StoreError::ReadOnly(_))), "{refused:?}");
    assert_eq!(store.head().unwrap(), EventId::START);

    database.server().stop();
    let [read, written] = [store.head(), append(&*store, 0, &[], &rows("a", 1))];
    assert!(matches!(read, Err(StoreError::Unavailable(_))), "{read:?}");
    assert!(matches!(written, Err(StoreError::Unavailable(_))), "{written:?}");
}

#[test]
fn a_check_finds_missing_rows() {
    let place = Place::postgres();
    let store = place.open();
    append(&*store, 0, &[], &rows("a", 5)).unwrap();
    place.run_sql("DELETE FROM events WHERE id = 2");
    assert_eq!(store.check().unwrap(), ["the log has 4 rows, from 1 to 5: some are missing"]);
    place.run_sql("DELETE FROM events WHERE id = 5");
    assert_eq!(store.check().unwrap().len(), 2);
}

fn open(url: &str) -> Arc<dyn Store> {
    store::open(&url.parse().unwrap(), runtime()).unwrap()
}

fn hints() -> (AppendCallback, mpsc::Receiver<()>) {
    let (hint, hints) = mpsc::channel();
    (Arc::new(move || hint.send(()).unwrap_or_default()), hints)
}

/// Asks until the server is back.
fn head_at_last(store: &dyn Store) -> EventId {
    loop {
        match store.head() {
            Ok(head) => return head,
            Err(StoreError::Unavailable(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// The first append after a restart may be the one that finds its connection gone.
fn append_after(store: &dyn Store, seen: u64) -> EventId {
    match append(store, seen, &[], &rows("a", 1)) {
        Err(StoreError::Unavailable(_)) => append(store, seen, &[], &rows("a", 1)).unwrap(),
        other => other.unwrap(),
    }
}
