//! Two daemons on one store, which hear the same of the same quest at the same time: whoever is first decides, and both agree.

use super::hands;
use crate::support::place::Place;
use crate::support::runtime;
use hatchery::clock::{SystemClock, new_agent_id};
use hatchery::engine::{Engine, EngineOptions, Handle, SubmitError};
use hatchery::store::Store;
use hatchery_core::event::StepEvent;
use hatchery_core::quest::{Signal, StepId};
use hatchery_core::{Command, Event, EventId, QuestId, Record, World};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

const STEPS: usize = 24;
const SLOTS: u32 = 3;

#[test]
fn each_step_is_done_once_by_two_daemons_that_race() {
    let place = Place::postgres();
    let store = place.open();
    let engines = [engine(&place), engine(&place)];
    let [one, other] = [0, 1].map(|number| engines[number].handle.clone());
    let quest = runtime().block_on(async {
        one.submit(Command::FoundRegistry { agent: new_agent_id(), name: None }).await.unwrap();
        let quest = hands::begin(&one, hands::quest_spec(SLOTS), hands::random(STEPS)).await;
        work_off(&[one.clone(), other.clone()], quest).await;
        other.heads().wait_for(|head| *head >= one.head()).await.unwrap();
        quest
    });
    for handle in [&one, &other] {
        handle.stop();
    }
    for engine in engines {
        engine.join().unwrap();
    }
    let (begun, completed) = witness(store.as_ref(), quest);
    assert_eq!(begun.len(), STEPS);
    assert!(begun.values().all(|count| *count == 1), "{begun:?}");
    assert!(completed.values().all(|count| *count == 1), "{completed:?}");
    assert!(one.view() == other.view(), "they do not agree");
}

fn engine(place: &Place) -> Engine {
    Engine::start(place.open(), Arc::new(SystemClock), EngineOptions::default(), runtime().clone()).unwrap()
}

/// Reports of every agent at work all that there is to report, as if its process were here, until the quest is over. In turns the one
/// daemon hears of it, the other, and both at once; whoever hears it, it counts once.
async fn work_off(daemons: &[Handle; 2], quest: QuestId) {
    let [one, other] = daemons;
    let mut heads = one.heads();
    let mut turn = 0;
    loop {
        // What the other one has written is here, too.
        let written = other.head();
        heads.wait_for(|head| *head >= written).await.unwrap();
        if one.view().quest(quest).is_some_and(|quest| quest.is_over()) {
            return;
        }
        let at_work = hands::at_work(one, quest);
        if at_work.is_empty() {
            heads.changed().await.unwrap();
        }
        for (step, agent) in at_work {
            let signal = Signal::Complete { summary: "It is done.".into() };
            let [spawned, started] = hands::arrival(agent);
            for report in [spawned, started, hands::call(agent, step, signal), hands::exit(agent)] {
                turn += 1;
                let counted = match turn % 3 {
                    0 => counts(one, report).await,
                    1 => counts(other, report).await,
                    _ => {
                        let (first, second) = tokio::join!(counts(one, report.clone()), counts(other, report));
                        first + second
                    }
                };
                assert_eq!(counted, 1, "report {turn}");
            }
        }
    }
}

/// 1 when something came of it, 0 when it was known.
async fn counts(handle: &Handle, report: Command) -> usize {
    match handle.submit(report).await {
        Ok(records) => usize::from(!records.is_empty()),
        Err(SubmitError::Refused(_)) => 0,
        Err(error) => panic!("{error}"),
    }
}

/// How often each step was begun and completed. The log is folded once more, and after each event no more are at work than may be.
fn witness(store: &dyn Store, quest: QuestId) -> (BTreeMap<StepId, u32>, BTreeMap<StepId, u32>) {
    let (mut world, mut begun, mut completed) = (World::default(), BTreeMap::new(), BTreeMap::new());
    let mut look = |id: EventId, body: &str| {
        let record = Record::read(id, body).unwrap();
        world.apply(&record).unwrap();
        match record.event {
            Event::Step { step, what: StepEvent::Begun { .. }, .. } => *begun.entry(step).or_default() += 1,
            Event::Step { step, what: StepEvent::Completed { .. }, .. } => *completed.entry(step).or_default() += 1,
            _ => {}
        }
        let working = world.quest(quest).map_or(0, |quest| quest.working.len());
        assert!(working <= SLOTS as usize, "{working} are at work at event {id}");
        ControlFlow::Continue(())
    };
    store.read_after(EventId::START, usize::MAX, &mut look).unwrap();
    (begun, completed)
}
