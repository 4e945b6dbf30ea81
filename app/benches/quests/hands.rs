//! Quests for measuring: how they are made, and hands that do their steps without any process.

use hatchery::clock::new_quest_id;
use hatchery::engine::Handle;
use hatchery_core::harness::Capabilities;
use hatchery_core::outcome::Exit;
use hatchery_core::output::Output;
use hatchery_core::quest::{Isolation, QuestSpec, QuestStart, Signal, SlotWork, StepId, StepPlan, StepState};
use hatchery_core::roles::Table;
use hatchery_core::run::{AttemptId, Process, RunSpec};
use hatchery_core::{AgentId, Command, QuestId};

/// A quest whose steps are done by one role each, without a ward and without a review, on a machine that is nowhere.
pub fn quest_spec(slots: u32) -> QuestSpec {
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
    QuestSpec {
        request: "be measured".into(),
        slots,
        spec,
        ward: None,
        isolation: Isolation::None,
        approve_plan: false,
        table,
    }
}

/// A plan, of which each step may depend on some before it.
pub fn plan(count: usize, mut needs: impl FnMut(usize) -> Vec<usize>) -> Vec<StepPlan> {
    let id = |number: usize| format!("s{number}").parse::<StepId>().unwrap();
    let step = |number: usize| StepPlan {
        id: id(number),
        name: format!("step {number}"),
        description: "Something is to be done here, and this is what one has to know for it.".into(),
        depends_on: needs(number).into_iter().map(id).collect(),
        files_to_create: vec![format!("file-{number}")],
        files_to_modify: Vec::new(),
        observables: Vec::new(),
    };
    (0..count).map(step).collect()
}

/// A random graph: each step depends on up to three of the twenty before it.
pub fn random(count: usize) -> Vec<StepPlan> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = move |most: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % most as u64).unwrap()
    };
    plan(count, |number| {
        let nearest = number.saturating_sub(20);
        let span = number - nearest;
        let mut needs: Vec<usize> =
            if span == 0 { Vec::new() } else { (0..below(4)).map(|_| nearest + below(span)).collect() };
        needs.sort_unstable();
        needs.dedup();
        needs
    })
}

pub async fn begin(handle: &Handle, quest_spec: QuestSpec, steps: Vec<StepPlan>) -> QuestId {
    let quest = new_quest_id();
    let start = QuestStart { steps, ..QuestStart::default() };
    handle.submit(Command::CreateQuest { quest, quest_spec: Box::new(quest_spec), budget: None, start }).await.unwrap();
    quest
}

/// Who works on which step at the moment.
pub fn at_work(handle: &Handle, quest: QuestId) -> Vec<(StepId, AgentId)> {
    let world = handle.view();
    let quest = world.quest(quest).unwrap();
    let agent = |step: &StepId| match &quest.step(step)?.state {
        StepState::Running(SlotWork::Agent { agent, signal: None, .. }) => Some((step.clone(), *agent)),
        _ => None,
    };
    quest.working.iter().filter_map(agent).collect()
}

pub fn attempt_id(agent: AgentId) -> AttemptId {
    AttemptId { agent, run: 1, attempt: 1 }
}

/// Its process is there, and its tools answer.
pub fn arrival(agent: AgentId) -> [Command; 2] {
    let of = attempt_id(agent);
    let process = Process { pid: 1, began: 1 };
    let session = agent.to_string();
    let spawned = Command::ReportSpawn {
        of,
        process,
        session: Some(session.clone()),
        copy_of: None,
        capabilities: Capabilities::ALL,
    };
    let outputs = vec![Output::Ready { session, model: None, version: None, tools: Vec::new() }];
    [spawned, Command::TakeOutput { of, from: 0, upto: 1, outputs }]
}

/// It says something about its step.
pub fn call(agent: AgentId, step: StepId, signal: Signal) -> Command {
    let ask = Ok(Box::new(Command::GiveSignal { agent, step, signal }));
    Command::TakeCall { of: attempt_id(agent), number: 1, ask }
}

/// Its process is gone.
pub fn exit(agent: AgentId) -> Command {
    Command::ReportExit { of: attempt_id(agent), exit: Exit::Code(0), evidence: None }
}

pub async fn spawn(handle: &Handle, agent: AgentId) {
    for report in arrival(agent) {
        handle.submit(report).await.unwrap();
    }
}

/// It says that its step is complete.
pub async fn signal(handle: &Handle, agent: AgentId, step: StepId) {
    let signal = Signal::Complete { summary: "It is done.".into() };
    handle.submit(call(agent, step, signal)).await.unwrap();
}

/// Its process is gone: the step is complete, and the next one begins.
pub async fn leave(handle: &Handle, agent: AgentId) {
    handle.submit(exit(agent)).await.unwrap();
}
