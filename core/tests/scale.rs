//! What must not grow: a fork does not walk a history, the world keeps places and no bodies, and no walk goes deeper into the
//! stack than another.

use hatchery_core::agent::{Birth, ancestors, below};
use hatchery_core::event::MessageEvent;
use hatchery_core::harness::Capabilities;
use hatchery_core::history::{HistoryMessage, RewindTo, mark_interrupted, ranges};
use hatchery_core::output::{FailureKind, Output, ServiceError, TurnEnd, TurnResult};
use hatchery_core::quest::{Isolation, QuestSpec, QuestStart, Signal, StepId, StepPlan};
use hatchery_core::roles::{Paths, Role, SignalKind, Table};
use hatchery_core::run::{AttemptId, Process, RunSpec, wire_name};
use hatchery_core::{AgentId, Command, Event, EventId, Exit, MessageKind, QuestId, Record, Timestamp, World, step};

/// Far less than a test has: a walk that calls itself for each of ten thousand ancestors does not fit.
const SMALL_STACK: usize = 256 * 1024;

fn id(number: u128) -> AgentId {
    AgentId::from_bytes(number.to_be_bytes())
}

fn live(world: &mut World, command: &Command) -> Vec<Record> {
    step(world, command, Timestamp(0)).expect("it is possible")
}

fn founded() -> World {
    let mut world = World::default();
    live(&mut world, &Command::FoundRegistry { agent: id(0), name: None });
    world
}

fn say(world: &mut World, agent: AgentId, kind: MessageKind) -> EventId {
    let event =
        Event::Message(MessageEvent::Added { agent, kind, content: "x".repeat(200), to: None, source_id: None });
    let record = Record { id: world.head().next(), ts: Timestamp(0), session: None, event };
    world.apply(&record).expect("it is possible");
    record.id
}

fn fork(parent: AgentId, child: AgentId) -> Command {
    Command::Fork { parent, at: None, birth: Birth::of(child) }
}

#[test]
fn a_fork_is_one_event_and_the_world_no_larger_however_much_was_said() {
    let grown = |messages: u64| {
        let mut world = founded();
        for _ in 0..messages {
            say(&mut world, id(0), MessageKind::User);
        }
        let before = rmp_serde::to_vec_named(&world).expect("plain data").len();
        let forked = live(&mut world, &fork(id(0), id(1)));
        assert_eq!(ranges(&world, id(1)).len(), 1);
        (forked.len(), before)
    };
    let (few, many) = (grown(1_000), grown(1_000_000));
    assert_eq!((few.0, many.0), (1, 1));
    // Numbers are written in fewer bytes when they are small.
    assert!(many.1 <= few.1 + 8, "{} bytes after 1,000 messages, {} after 1,000,000", few.1, many.1);
}

/// What an agent costs that does nothing: its place in the maps is for the store's benchmark, this is what it carries.
#[test]
fn an_idle_agent_is_small() {
    assert!(size_of::<hatchery_core::agent::Agent>() <= 512, "{}", size_of::<hatchery_core::agent::Agent>());
}

#[test]
fn a_chain_of_ten_thousand_is_walked_without_a_deeper_stack() {
    let walk = || {
        let depth = 10_000;
        let mut world = founded();
        say(&mut world, id(0), MessageKind::Mark);
        for child in 1..=depth {
            live(&mut world, &fork(id(child - 1), id(child)));
            say(&mut world, id(child), MessageKind::User);
        }
        let leaf = id(depth);
        assert_eq!(ranges(&world, leaf).len(), 10_001);
        assert_eq!(ancestors(&world, leaf).count(), 10_000);
        assert_eq!(below(&world, id(0)).len(), 10_001);
        let saved = rmp_serde::to_vec_named(&world).expect("plain data");
        assert_eq!(rmp_serde::from_slice::<World>(&saved).expect("what was saved loads"), world);

        let back = live(&mut world, &Command::Rewind { agent: leaf, to: RewindTo::LastMark });
        assert_eq!(back[0].event.refers_to(), Some(EventId(2)), "the mark of the first, seen by the last");
        assert_eq!(ranges(&world, leaf).len(), 2);
        let kill = Command::Kill { agent: id(1), cascade: true, by: None, remark: None };
        assert_eq!(live(&mut world, &kill).len(), 10_000);
        assert_eq!(below(&world, id(0)), [id(0)]);
    };
    let thread = std::thread::Builder::new().stack_size(SMALL_STACK).spawn(walk).expect("a thread");
    thread.join().expect("it fits");
}

fn spec() -> RunSpec {
    RunSpec {
        harness: "scripted".into(),
        host: "mill".into(),
        folder: None,
        model: None,
        script: None,
        stays: true,
        stall_ms: 60_000,
        kill_stuck: false,
        retries: 0,
        parks: false,
        signals: false,
        permissions: None,
    }
}

/// Agent 0, played by a process; and its attempt.
fn at_work() -> (World, AttemptId) {
    let mut world = founded();
    let of = AttemptId { agent: id(0), run: 1, attempt: 1 };
    live(&mut world, &Command::StartRun { agent: id(0), spec: spec() });
    let process = Process { pid: 1, began: 1 };
    live(
        &mut world,
        &Command::ReportSpawn {
            of,
            process,
            session: Some("c".into()),
            copy_of: None,
            capabilities: Capabilities::ALL,
        },
    );
    (world, of)
}

/// With a look at the whole queue for each that is said or heard, this would not end.
#[test]
fn a_long_queue_is_heard_one_by_one() {
    let (mut world, of) = at_work();
    let briefing = EventId(2);
    let said: Vec<EventId> = (0..50_000).map(|_| say(&mut world, id(0), MessageKind::User)).collect();
    for (at, delivery) in (0..).zip([briefing].into_iter().chain(said)) {
        let outputs = vec![Output::Heard { id: wire_name(delivery) }];
        live(&mut world, &Command::TakeOutput { of, from: at, upto: at + 1, outputs });
    }
    assert!(world.conversation(id(0)).is_some_and(|conversation| conversation.waiting.is_empty()));
}

#[test]
fn the_world_is_no_larger_however_much_a_process_says_and_asks() {
    let grown = |times: u64| {
        let (mut world, of) = at_work();
        for at in 0..times {
            let error = ServiceError { kind: FailureKind::Other, status: None, text: "x".repeat(5_000) };
            let end = TurnEnd {
                result: TurnResult::Failed { kind: FailureKind::Other, detail: "x".repeat(5_000) },
                ..TurnEnd::default()
            };
            let outputs = vec![
                Output::Text { text: "x".repeat(5_000) },
                Output::Thinking { text: "x".repeat(5_000) },
                Output::ApiError(error),
                Output::TurnEnded(end),
            ];
            live(&mut world, &Command::TakeOutput { of, from: at, upto: at + 1, outputs });
            live(&mut world, &Command::TakeCall { of, number: at + 1, ask: Ok(Box::new(Command::Tick)) });
        }
        rmp_serde::to_vec_named(&world).expect("plain data").len()
    };
    let (few, many) = (grown(100), grown(2_000));
    // Numbers are written in fewer bytes when they are small, and 64 answers are kept by theirs.
    assert!(many <= few + 200 && many < 40_000, "{few} bytes after 100 turns, {many} after 2,000");
}

#[test]
fn the_world_keeps_so_many_runs_of_an_agent_and_no_more() {
    let grown = |runs: u32| {
        let mut world = founded();
        for run in 1..=runs {
            live(&mut world, &Command::StartRun { agent: id(0), spec: spec() });
            let of = AttemptId { agent: id(0), run, attempt: 1 };
            let evidence = Some("x".repeat(5_000));
            live(&mut world, &Command::ReportExit { of, exit: Exit::NotStarted, evidence });
        }
        rmp_serde::to_vec_named(&world).expect("plain data").len()
    };
    let (few, many) = (grown(100), grown(2_000));
    assert!(many <= few + 500, "{few} bytes after 100 runs, {many} after 2,000");
}

/// With a look at all earlier parts for each rewind, or at the whole turn for each interruption, this would not end.
#[test]
fn many_rewinds_and_interruptions_are_replayed_in_one_pass() {
    let mut world = founded();
    for _ in 0..100_000 {
        let to = say(&mut world, id(0), MessageKind::User);
        let event = Event::Message(MessageEvent::Added {
            agent: id(0),
            kind: MessageKind::Rewind,
            content: String::new(),
            to: Some(to),
            source_id: None,
        });
        let record = Record { id: world.head().next(), ts: Timestamp(0), session: None, event };
        world.apply(&record).expect("it is possible");
    }
    assert_eq!(ranges(&world, id(0)).len(), 100_001);

    let marker = |id| HistoryMessage {
        id: EventId(id),
        agent: AgentId::from_bytes([0; 16]),
        kind: MessageKind::Interrupted,
        content: String::new(),
        source_id: None,
        interrupted: false,
    };
    let mut said: Vec<HistoryMessage> = (0..300_000).map(marker).collect();
    mark_interrupted(&mut said);
    assert!(said.iter().all(|said| said.interrupted));
}

/// One role does everything, in eight slots.
fn quest_spec() -> QuestSpec {
    let role = |name: &str| Role {
        name: name.into(),
        may: vec![SignalKind::Complete],
        calls: vec![],
        prompt: String::new(),
        permissions: None,
        harness: None,
        model: None,
    };
    let paths = Paths { requirements: vec![], plan: vec![], work: vec!["smith".into()], review: vec![] };
    let planner = || "planner".to_owned();
    let roles = vec![role("smith"), role("planner")];
    let table = Table { roles, paths, mender: planner(), planner: planner(), requirer: planner() };
    let request = "a bridge".into();
    QuestSpec { request, slots: 8, spec: spec(), ward: None, isolation: Isolation::None, approve_plan: false, table }
}

/// So many steps, each behind up to two of the hundred before it.
fn graph(steps: usize) -> Vec<StepPlan> {
    let name = |step: usize| -> StepId { format!("s{step}").parse().expect("a name") };
    let planned = |step: usize| StepPlan {
        id: name(step),
        name: format!("step {step}"),
        description: String::new(),
        depends_on: [7, 100].iter().filter_map(|back| step.checked_sub(*back)).map(name).collect(),
        files_to_create: vec![],
        files_to_modify: vec![],
        observables: vec![],
    };
    (0..steps).map(planned).collect()
}

fn create(world: &mut World, quest: QuestId, steps: Vec<StepPlan>) {
    live(
        world,
        &Command::CreateQuest {
            quest,
            quest_spec: Box::new(quest_spec()),
            budget: None,
            start: QuestStart { steps, ..QuestStart::default() },
        },
    );
}

/// The first of those at work is spawned, signals, and leaves.
fn complete_one(world: &mut World, quest: QuestId) {
    let it = world.quest(quest).expect("it is there");
    let step_id = it.working.get_min().expect("somebody is at work").clone();
    let agent = it.step(&step_id).and_then(|step| step.agent()).expect("an agent");
    let of = world.run(agent).expect("it runs").attempt_id(agent);
    let process = Process { pid: 1, began: 1 };
    live(
        world,
        &Command::ReportSpawn {
            of,
            process,
            session: Some(format!("c-{agent}")),
            copy_of: None,
            capabilities: Capabilities::ALL,
        },
    );
    let signal = Signal::Complete { summary: "done".into() };
    let ask = Ok(Box::new(Command::GiveSignal { agent, step: step_id, signal }));
    live(world, &Command::TakeCall { of, number: 1, ask });
    live(world, &Command::ReportExit { of, exit: Exit::Code(0), evidence: None });
}

/// How much is changed by completing so many steps: events, and copies of quests and of steps. Whatever is unchanged is shared
/// between the worlds, so it has the same address in both.
fn changes(mut world: World, quest: QuestId, steps: usize) -> usize {
    let mut changes = 0;
    for _ in 0..steps {
        let before = world.clone();
        complete_one(&mut world, quest);
        changes += usize::try_from(world.head().0 - before.head().0).expect("a few");
        changes +=
            world.quests().filter(|(id, it)| before.quest(*id).is_none_or(|was| !std::ptr::eq(was, *it))).count();
        let (was, is) = (before.quest(quest).expect("it is there"), world.quest(quest).expect("it is there"));
        let changed = |id: &StepId| !was.step(id).zip(is.step(id)).is_some_and(|(was, is)| std::ptr::eq(was, is));
        changes += is.steps.keys().filter(|id| changed(id)).count();
    }
    changes
}

/// With a change to all steps for each, a step of two thousand would cost ten times as much as a step of two hundred.
#[test]
fn a_step_changes_as_much_in_a_large_quest_as_in_a_small_one() {
    let quest = QuestId::from_bytes([1; 16]);
    let played = |steps: usize, left: usize| {
        let mut world = founded();
        create(&mut world, quest, graph(steps));
        (0..steps - left).for_each(|_| complete_one(&mut world, quest));
        world
    };
    let (small, large) = (played(400, 150), played(4_000, 150));
    assert_eq!(changes(small, quest, 100), changes(large.clone(), quest, 100));
    let mut world = large;
    (0..150).for_each(|_| complete_one(&mut world, quest));
    assert!(world.quest(quest).is_some_and(|it| it.is_over()), "all of them were done");
}

#[test]
fn a_step_changes_as_much_however_many_quests_there_are() {
    let among = |others: u128| {
        let mut world = founded();
        for other in 0..others {
            create(&mut world, QuestId::from_bytes(((other + 2) << 64).to_be_bytes()), graph(3));
        }
        let quest = QuestId::from_bytes([1; 16]);
        create(&mut world, quest, graph(300));
        changes(world, quest, 100)
    };
    assert_eq!(among(10), among(500));
}
