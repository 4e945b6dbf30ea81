//! How long `step` takes for one signal of a step's agent, without a store: 32 quests with 64 agents at work each.
//!
//! The engine decides on a copy of the world that readers share, so the first change of each part of a map copies it. Both cases are
//! shown: a world that shares nothing, and a copy for each batch of 28 signals, which is what a commit has with 32 clients.
//!
//! Time on a busy machine says little, so count instructions:
//!
//! ```sh
//! cargo bench -p hatchery-core --bench step --no-run      # prints the name of the program
//! valgrind --tool=callgrind --toggle-collect='*measured_step*' --callgrind-out-file=/dev/null PROGRAM shared
//! ```

// The core gets time as an argument; a benchmark measures it.
#![allow(clippy::disallowed_methods)]

use hatchery_core::harness::Capabilities;
use hatchery_core::output::Output;
use hatchery_core::quest::{Isolation, QuestSpec, QuestStart, Signal, SlotWork, StepId, StepPlan, StepState};
use hatchery_core::roles::Table;
use hatchery_core::run::{AttemptId, Process, RunSpec};
use hatchery_core::{AgentId, Command, QuestId, Record, Timestamp, World, step};
use std::hint::black_box;
use std::time::Instant;

const QUESTS: u8 = 32;
const SLOTS: u32 = 64;
const BATCH: usize = 28;
const NOW: Timestamp = Timestamp(1_700_000_000_000);

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let wants = |case: &str| wanted.is_empty() || wanted.iter().any(|word| word == case);
    let (world, signals) = busy_world();
    println!("{} signals", signals.len());
    if wants("unique") {
        let (mut world, _) = busy_world();
        let started = Instant::now();
        for signal in &signals {
            black_box(measured_step(&mut world, signal));
        }
        report("on a world that shares nothing", started, signals.len());
    }
    if wants("shared") {
        let mut world = world;
        let started = Instant::now();
        for batch in signals.chunks(BATCH) {
            let mut tentative = world.clone();
            for signal in batch {
                black_box(measured_step(&mut tentative, signal));
            }
            world = tentative;
        }
        report("on a copy for each batch", started, signals.len());
    }
}

#[inline(never)]
fn measured_step(world: &mut World, command: &Command) -> Vec<Record> {
    step(world, command, NOW).expect("every agent may signal once")
}

fn report(case: &str, started: Instant, count: usize) {
    println!("step of a signal {case}: {:.2} µs", started.elapsed().as_secs_f64() * 1e6 / count as f64);
}

/// Quests whose agents are all at work, and a signal of each agent. The quests take turns.
fn busy_world() -> (World, Vec<Command>) {
    let mut world = World::default();
    let found = Command::FoundRegistry { agent: AgentId::from_bytes([7; 16]), name: None };
    step(&mut world, &found, NOW).expect("the world is empty");
    let quests: Vec<QuestId> = (1..=QUESTS).map(|number| QuestId::from_bytes([number.wrapping_mul(37); 16])).collect();
    for quest in &quests {
        let start = QuestStart { steps: plan(), ..QuestStart::default() };
        let create = Command::CreateQuest { quest: *quest, quest_spec: Box::new(quest_spec()), budget: None, start };
        step(&mut world, &create, NOW).expect("the quest is in order");
    }
    let mut of_each: Vec<Vec<Command>> = Vec::new();
    for quest in &quests {
        let mut signals = Vec::new();
        for (step_id, agent) in at_work(&world, *quest) {
            for report in arrival(agent) {
                step(&mut world, &report, NOW).expect("the process arrives");
            }
            let signal = Signal::Complete { summary: "It is done.".into() };
            let give = Command::GiveSignal { agent, step: step_id, signal };
            signals.push(Command::TakeCall { of: attempt_id(agent), number: 1, ask: Ok(Box::new(give)) });
        }
        of_each.push(signals);
    }
    let turns = (0..SLOTS as usize).flat_map(|turn| of_each.iter().map(move |signals| signals[turn].clone()));
    let turns = turns.collect();
    (world, turns)
}

fn quest_spec() -> QuestSpec {
    let spec = RunSpec {
        harness: "scripted".into(),
        host: "nowhere".into(),
        folder: None,
        model: None,
        script: None,
        stays: false,
        stall_ms: 600_000,
        kill_stuck: false,
        retries: 0,
        parks: false,
        signals: false,
        permissions: None,
    };
    let mut table = Table::default();
    table.paths.requirements.clear();
    table.paths.plan.clear();
    table.paths.work = vec!["codeweaver".into()];
    table.paths.review.clear();
    let request = "be measured".into();
    QuestSpec { request, slots: SLOTS, spec, ward: None, isolation: Isolation::None, approve_plan: false, table }
}

fn plan() -> Vec<StepPlan> {
    let step = |number: u32| StepPlan {
        id: format!("s{number}").parse().expect("the name of a step"),
        name: format!("step {number}"),
        description: "Something is to be done here.".into(),
        depends_on: Vec::new(),
        files_to_create: vec![format!("file-{number}")],
        files_to_modify: Vec::new(),
        observables: Vec::new(),
    };
    (0..SLOTS + 100).map(step).collect()
}

fn at_work(world: &World, quest: QuestId) -> Vec<(StepId, AgentId)> {
    let quest = world.quest(quest).expect("the quest exists");
    let agent = |step: &StepId| match &quest.step(step)?.state {
        StepState::Running(SlotWork::Agent { agent, signal: None, .. }) => Some((step.clone(), *agent)),
        _ => None,
    };
    quest.working.iter().filter_map(agent).collect()
}

fn attempt_id(agent: AgentId) -> AttemptId {
    AttemptId { agent, run: 1, attempt: 1 }
}

fn arrival(agent: AgentId) -> [Command; 2] {
    let (of, session) = (attempt_id(agent), agent.to_string());
    let process = Process { pid: 1, began: 1 };
    let capabilities = Capabilities::ALL;
    let spawned = Command::ReportSpawn { of, process, session: Some(session.clone()), copy_of: None, capabilities };
    let outputs = vec![Output::Ready { session, model: None, version: None, tools: Vec::new() }];
    [spawned, Command::TakeOutput { of, from: 0, upto: 1, outputs }]
}
