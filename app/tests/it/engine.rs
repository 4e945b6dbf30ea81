//! Who commits, and what happens to a command that meets a bug: it fails alone, and everything else goes on.

use crate::support::faulty_store::FaultyStore;
use crate::support::place::Place;
use crate::support::runtime;
use hatchery::clock::{SystemClock, new_agent_id};
use hatchery::engine::{Engine, EngineOptions, SubmitError};
use hatchery::http::ApiError;
use hatchery_core::agent::Birth;
use hatchery_core::event::MessageEvent;
use hatchery_core::{Address, AgentId, Command, Event, EventId, MessageKind, Record, Refusal, Timestamp, World, step};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The name that makes deciding panic, and the one that makes it yield an event that is impossible.
const PANIC: &str = "panic";
const IMPOSSIBLE: &str = "impossible";
/// While the root agent has this name, time cannot pass.
const NO_TIME: &str = "no time";
static TICKS: AtomicUsize = AtomicUsize::new(0);

/// Decides like the core, with three bugs. Each shows only after the world was changed.
fn faulty_step(world: &mut World, command: &Command, now: Timestamp) -> Result<Vec<Record>, Refusal> {
    let records = step(world, command, now)?;
    match command {
        Command::RenameAgent { name, .. } if name.as_deref() == Some(PANIC) => panic!("a bug in the core"),
        Command::RenameAgent { name, .. } if name.as_deref() == Some(IMPOSSIBLE) => {
            let again = records[0].clone();
            world.apply(&again).expect("what was decided in this world is possible in it");
        }
        Command::Tick => {
            TICKS.fetch_add(1, Ordering::Relaxed);
            let root = world.root().and_then(|root| world.agent(root));
            assert!(root.is_none_or(|root| root.name.as_deref() != Some(NO_TIME)), "a bug in the passing of time");
        }
        _ => {}
    }
    Ok(records)
}

fn start(place: &Place) -> Engine {
    let options = EngineOptions { step: faulty_step, ..EngineOptions::default() };
    Engine::start(place.open(), Arc::new(SystemClock), options, runtime().clone()).unwrap()
}

fn rename(agent: AgentId, name: &str) -> Command {
    Command::RenameAgent { agent, name: Some(name.into()) }
}

fn say(agent: AgentId, content: &str) -> Command {
    Command::AddMessage { agent, kind: MessageKind::User, content: content.into() }
}

#[test]
fn a_command_that_panics_fails_alone() {
    for place in [Place::sqlite(), Place::postgres()] {
        let engine = start(&place);
        let handle = engine.handle.clone();
        let root = new_agent_id();
        let founded = Command::FoundRegistry { agent: root, name: Some("root".into()) };
        runtime().block_on(handle.submit(founded)).unwrap();
        let before = handle.head();
        // Together, so that good and bad ones are decided in the same round.
        let (panics, one, impossible, other) = runtime().block_on(async {
            tokio::join!(
                handle.submit(rename(root, PANIC)),
                handle.submit(say(root, "one")),
                handle.submit(rename(root, IMPOSSIBLE)),
                handle.submit(say(root, "other")),
            )
        });
        for failed in [panics, impossible] {
            assert!(matches!(failed, Err(SubmitError::Failed)), "{failed:?}");
        }
        let ids: Vec<EventId> = [one, other].into_iter().map(|said| said.unwrap()[0].id).collect();
        assert_eq!(ids, [before.next(), before.next().next()], "nothing of the failed ones is in the log");
        assert_eq!(handle.view().agent(root).unwrap().name.as_deref(), Some("root"));
        runtime().block_on(handle.submit(rename(root, "goes on"))).unwrap();
        let world = handle.view();
        handle.stop();
        engine.join().unwrap();
        let again = start(&place);
        assert!(again.handle.view() == world, "the log can be folded again");
        again.handle.stop();
        again.join().unwrap();
    }
}

#[test]
fn the_answer_is_a_500_that_names_no_internals() {
    let answer = ApiError::from(SubmitError::Failed);
    assert_eq!((answer.status.as_u16(), answer.code), (500, "command_failed"));
    assert!(answer.hint.contains("daemon.log"), "{}", answer.hint);
}

#[test]
fn time_that_cannot_pass_does_not_stop_commands_and_is_not_tried_without_end() {
    let place = Place::sqlite();
    let engine = start(&place);
    let handle = engine.handle.clone();
    let (root, egg) = (new_agent_id(), new_agent_id());
    let submit = |command| runtime().block_on(handle.submit(command));
    submit(Command::FoundRegistry { agent: root, name: None }).unwrap();
    submit(rename(root, NO_TIME)).unwrap();
    let before = TICKS.load(Ordering::Relaxed);
    submit(Command::Fork { parent: root, at: None, birth: Birth { hatch_ms: Some(1), ..Birth::of(egg) } }).unwrap();
    let waits = Command::TakeMail { to: Address::Agent(root), from: None };
    let nothing = runtime().block_on(handle.submit_within(waits, Duration::from_millis(300)));
    assert!(matches!(nothing, Err(SubmitError::Refused(Refusal::NoMail(_)))), "{nothing:?}");
    let ticks = TICKS.load(Ordering::Relaxed) - before;
    assert!((1..100).contains(&ticks), "{ticks} attempts");
    submit(say(root, "still here")).unwrap();
    // As soon as time passes again, what was due happens.
    submit(rename(root, "time")).unwrap();
    let hatched = async {
        let mut heads = handle.heads();
        while handle.view().next_deadline().is_some() {
            heads.changed().await.unwrap();
        }
    };
    runtime().block_on(async { tokio::time::timeout(Duration::from_secs(20), hatched).await }).unwrap();
    handle.stop();
    engine.join().unwrap();
}

/// A store that notes which threads append to it, and takes its time.
fn watched(place: &Place, takes: Duration) -> (Engine, Arc<Mutex<Vec<Option<String>>>>) {
    let threads = Arc::<Mutex<Vec<Option<String>>>>::default();
    let noted = Arc::clone(&threads);
    let store = FaultyStore::new(place.open(), move |store, batch| {
        noted.lock().unwrap().push(std::thread::current().name().map(str::to_owned));
        std::thread::sleep(takes);
        store.append(batch)
    });
    let engine = Engine::start(Arc::new(store), Arc::new(SystemClock), EngineOptions::default(), runtime().clone());
    (engine.unwrap(), threads)
}

/// How many of five appends, one after the other, the engine's thread makes.
fn by_the_engine(place: &Place, takes: Duration) -> usize {
    let (engine, threads) = watched(place, takes);
    let root = new_agent_id();
    let submit = |command| runtime().block_on(engine.handle.submit(command)).unwrap();
    submit(Command::FoundRegistry { agent: root, name: None });
    for number in 1..5 {
        let said = submit(say(root, &format!("message {number}")));
        assert_eq!(engine.handle.view().agent(root).unwrap().last_message, Some(said[0].id), "the view is up to date");
    }
    engine.handle.stop();
    let handle = engine.handle.clone();
    engine.join().unwrap();
    let late = runtime().block_on(handle.submit(say(root, "too late")));
    assert!(matches!(late, Err(SubmitError::Stopped)), "{late:?}");
    let threads = threads.lock().unwrap();
    assert_eq!(threads.len(), 5, "{threads:?}");
    threads.iter().filter(|name| name.as_deref() == Some("engine")).count()
}

#[test]
fn a_sender_that_finds_the_engine_idle_commits_itself() {
    // The first sender does. Of the others, those do that come after a quick commit.
    assert!(by_the_engine(&Place::sqlite(), Duration::ZERO) < 5);
}

#[test]
fn a_shared_store_is_written_by_the_engine_alone() {
    assert_eq!(by_the_engine(&Place::postgres(), Duration::ZERO), 5);
}

/// The first sender meets the slow disk; after that the engine's thread waits for it.
#[test]
fn a_slow_disk_holds_up_no_senders_thread() {
    assert_eq!(by_the_engine(&Place::sqlite(), Duration::from_millis(20)), 4);
}

/// Many senders, so that the engine decides ahead, and another writer that comes in between again and again. Everything that was
/// acknowledged is in the log once, at the place that was named.
#[test]
fn many_senders_and_another_writer_share_a_store() {
    const SENDERS: usize = 48;
    const MESSAGES: usize = 12;
    let place = Place::postgres();
    let engines = [(); 2].map(|()| {
        Engine::start(place.open(), Arc::new(SystemClock), EngineOptions::default(), runtime().clone()).unwrap()
    });
    let root = new_agent_id();
    runtime().block_on(engines[0].handle.submit(Command::FoundRegistry { agent: root, name: None })).unwrap();
    let sender = |number: usize| {
        // One in eight speaks through the other engine.
        let handle = engines[usize::from(number.is_multiple_of(8))].handle.clone();
        runtime().spawn(async move {
            let mut said = Vec::new();
            for message in 0..MESSAGES {
                let content = format!("{number}:{message}");
                let records = handle.submit(say(root, &content)).await.unwrap();
                said.push((records[0].id, content));
            }
            said
        })
    };
    let senders: Vec<_> = (0..SENDERS).map(sender).collect();
    let mut said: Vec<(EventId, String)> = runtime().block_on(async {
        let mut said = Vec::new();
        for sender in senders {
            said.extend(sender.await.unwrap());
        }
        said
    });
    said.sort();
    assert_eq!(messages(&place), said);
    assert_eq!(place.open().check().unwrap(), Vec::<String>::new());
    for engine in engines {
        engine.handle.stop();
        engine.join().unwrap();
    }
}

/// Readers that wait for mail while many others send: the readers are known by their positions in a list, and a decision that was made
/// ahead must not answer another reader.
#[test]
fn mail_reaches_its_reader_among_many_senders() {
    const READERS: usize = 16;
    const SENDERS: usize = 32;
    let place = Place::postgres();
    let engine =
        Engine::start(place.open(), Arc::new(SystemClock), EngineOptions::default(), runtime().clone()).unwrap();
    let handle = &engine.handle;
    let root = new_agent_id();
    runtime().block_on(handle.submit(Command::FoundRegistry { agent: root, name: None })).unwrap();
    let readers: Vec<AgentId> = (0..READERS).map(|_| new_agent_id()).collect();
    for reader in &readers {
        let fork = Command::Fork { parent: root, at: None, birth: Birth::of(*reader) };
        runtime().block_on(handle.submit(fork)).unwrap();
    }
    let noise = |number: usize| {
        let handle = handle.clone();
        runtime().spawn(async move {
            for message in 0..20 {
                handle.submit(say(root, &format!("{number}:{message}"))).await.unwrap();
            }
        })
    };
    let noise: Vec<_> = (0..SENDERS).map(noise).collect();
    let read = |reader: AgentId| {
        let handle = handle.clone();
        runtime().spawn(async move {
            for letter in 0..5 {
                let take = Command::TakeMail { to: Address::Agent(reader), from: None };
                // The wait that is given up must not be answered in place of the next one.
                let impatient = handle.submit_within(take.clone(), Duration::from_secs(60));
                drop(tokio::time::timeout(Duration::from_micros(100), impatient).await);
                let body = format!("{reader} {letter}");
                let send = Command::SendMail { from: Address::Human, to: Address::Agent(reader), body: body.clone() };
                let (sent, taken) =
                    tokio::join!(handle.submit(send), handle.submit_within(take, Duration::from_secs(60)));
                sent.unwrap();
                match taken.unwrap().as_slice() {
                    [record] => assert_eq!(record.event.stream().to_string(), format!("mail:{reader}")),
                    other => panic!("{other:?}"),
                }
            }
        })
    };
    let readers: Vec<_> = readers.into_iter().map(read).collect();
    runtime().block_on(async {
        for task in noise.into_iter().chain(readers) {
            task.await.unwrap();
        }
    });
    handle.stop();
    engine.join().unwrap();
}

/// All messages of the log, in order.
fn messages(place: &Place) -> Vec<(EventId, String)> {
    let mut there = Vec::new();
    let mut note = |id, body: &str| {
        if let Event::Message(MessageEvent::Added { content, .. }) = Record::read(id, body).unwrap().event {
            there.push((id, content));
        }
        std::ops::ControlFlow::Continue(())
    };
    place.open().read_after(EventId::START, usize::MAX, &mut note).unwrap();
    there
}
