//! The words in which the tests of quests speak. A quest is long, so they play it: each command is what a shell, an agent or a person
//! would say, and after each one the log alone leads to the same world.

use hatchery_core::event::{MessageEvent, RunEvent};
use hatchery_core::harness::Capabilities;
use hatchery_core::output::{FailureKind, Output, TurnEnd, TurnResult};
use hatchery_core::quest::{
    Isolation, Merge, Observable, QuestContext, QuestSpec, QuestStart, Requirements, Signal, SlotWork, Step, StepId,
    StepPlan, StepState, StepStatus, Verdict, WardSpec,
};
use hatchery_core::roles::{Paths, Role, SignalKind, Table};
use hatchery_core::run::{AttemptId, Process, Run, RunSpec, wire_name};
use hatchery_core::usage::{Money, Usage};
use hatchery_core::{AgentId, Command, Event, EventId, Exit, QuestId, Record, Refusal, Timestamp, World, settle, step};

pub const Q: QuestId = QuestId::from_bytes([7; 16]);
pub const ROOT: AgentId = AgentId::from_bytes([3; 16]);

/// A world in which a quest is played, and the log that led to it.
#[derive(Clone)]
pub struct Play {
    pub world: World,
    pub log: Vec<Record>,
    pub now: Timestamp,
    pub quest: QuestId,
}

/// Default roles, three slots, no ward, in place.
pub fn quest_spec() -> QuestSpec {
    QuestSpec {
        request: "a bridge".into(),
        slots: 3,
        spec: spec(),
        ward: None,
        isolation: Isolation::None,
        approve_plan: false,
        table: Table::default(),
    }
}

pub fn slots(slots: u32) -> QuestSpec {
    QuestSpec { slots, ..quest_spec() }
}

pub fn spec() -> RunSpec {
    RunSpec {
        harness: "scripted".into(),
        host: "mill".into(),
        folder: None,
        model: None,
        script: None,
        stays: false,
        stall_ms: 600_000,
        kill_stuck: false,
        retries: 3,
        parks: true,
        signals: false,
        permissions: None,
    }
}

pub fn warded() -> QuestSpec {
    let ward = WardSpec { command: "make check".into(), limit_ms: 60_000, guessed_from: None };
    QuestSpec { ward: Some(ward), ..quest_spec() }
}

pub fn isolated() -> QuestSpec {
    QuestSpec { isolation: Isolation::Worktree { base: "trees".into(), within: None }, ..warded() }
}

/// One role does everything, and nothing is asked before or after.
pub fn alone(quest_spec: QuestSpec) -> QuestSpec {
    use SignalKind::{Complete, NeedsRoleFollowup, NeedsUserInput, PartiallyComplete};
    let may = vec![Complete, PartiallyComplete, NeedsUserInput, NeedsRoleFollowup];
    let role = |name: &str, calls: &[&str]| Role {
        name: name.into(),
        may: may.clone(),
        calls: calls.iter().map(|called| (*called).into()).collect(),
        prompt: String::new(),
        permissions: None,
        harness: None,
        model: None,
    };
    let work = if quest_spec.ward.is_some() { vec!["smith".into(), "ward".into()] } else { vec!["smith".into()] };
    let table = Table {
        roles: vec![role("smith", &["tinker", "planner"]), role("tinker", &["smith", "planner"]), role("planner", &[])],
        paths: Paths { requirements: vec![], plan: vec![], work, review: vec![] },
        mender: "tinker".into(),
        planner: "planner".into(),
        requirer: "planner".into(),
    };
    QuestSpec { table, ..quest_spec }
}

pub fn id(step: &str) -> StepId {
    step.parse().expect("a name")
}

pub fn planned(step: &str, after: &[&str]) -> StepPlan {
    StepPlan {
        id: id(step),
        name: format!("Make {step}"),
        description: String::new(),
        depends_on: after.iter().map(|step| id(step)).collect(),
        files_to_create: vec![],
        files_to_modify: vec![],
        observables: vec![],
    }
}

pub fn wanted() -> Requirements {
    Requirements {
        contexts: vec![QuestContext { id: "river".into(), description: "there is a river".into() }],
        observables: vec![Observable {
            id: "dry-feet".into(),
            context: Some("river".into()),
            description: "one comes across with dry feet".into(),
        }],
    }
}

pub fn complete() -> Signal {
    Signal::Complete { summary: "done".into() }
}

pub fn asks(question: &str) -> Signal {
    Signal::NeedsUserInput { question: question.into(), context: "the plan".into(), choices: Vec::new() }
}

pub fn calls(target: &str, resume: bool) -> Signal {
    Signal::NeedsRoleFollowup { target_role: target.into(), reason: "why".into(), context: "where".into(), resume }
}

pub fn partial() -> Signal {
    Signal::PartiallyComplete { progress: "half".into(), continuation_point: "the middle".into() }
}

pub fn dollars(amount: u64) -> Money {
    Money { nanodollars: amount * 1_000_000_000 }
}

pub fn connected() -> Output {
    Output::Ready { session: "talk".into(), model: None, version: None, tools: Vec::new() }
}

/// A turn that ended well and cost as many dollars in all.
pub fn well(cost: u64) -> Output {
    let total = Usage { cost: dollars(cost), ..Usage::default() };
    Output::TurnEnded(TurnEnd { num_turns: 1, total, ..TurnEnd::default() })
}

/// A turn that failed like this.
pub fn refused(kind: FailureKind) -> Output {
    Output::TurnEnded(TurnEnd { result: TurnResult::Failed { kind, detail: "no".into() }, ..TurnEnd::default() })
}

/// The call of our tool as it stands in an agent's stream.
pub fn spoken(step: &str) -> Output {
    let input = format!(r#"{{"signal":"complete","stepId":"{step}","summary":"done"}}"#);
    Output::ToolUse { id: "t1".into(), name: "signal-back".into(), input }
}

/// A quest that was just begun, and that has a plan if there are steps.
pub fn begun(quest_spec: QuestSpec, steps: &[StepPlan]) -> Play {
    let mut play = before();
    play.create(quest_spec, None, steps);
    play
}

/// Before there is a quest.
pub fn before() -> Play {
    let mut play = Play { world: World::default(), log: Vec::new(), now: Timestamp(1_000), quest: Q };
    play.must(Command::FoundRegistry { agent: ROOT, name: None });
    play
}

/// Steps of one role, each with what it depends on.
pub fn smithy(quest_spec: QuestSpec, steps: &[(&str, &[&str])]) -> Play {
    let steps: Vec<StepPlan> = steps.iter().map(|(step, after)| planned(step, after)).collect();
    begun(alone(quest_spec), &steps)
}

impl Play {
    /// Decides, and checks what holds after every step.
    pub fn when(&mut self, command: Command) -> Result<Vec<Event>, Refusal> {
        let before = self.world.clone();
        let answer = step(&mut self.world, &command, self.now);
        if answer.is_err() {
            assert_eq!(self.world, before, "a refusal leaves no trace");
        }
        let records = answer?;
        assert_eq!(settle(&self.world, self.now), [], "it is quiet after a step");
        let events = records.iter().map(|record| record.event.clone()).collect();
        self.log.extend(records);
        Ok(events)
    }

    #[track_caller]
    pub fn must(&mut self, command: Command) -> Vec<Event> {
        self.when(command.clone()).unwrap_or_else(|refusal| panic!("{command:?}: {refusal}"))
    }

    pub fn create(&mut self, quest_spec: QuestSpec, budget: Option<Money>, steps: &[StepPlan]) {
        let quest_spec = Box::new(quest_spec);
        self.must(Command::CreateQuest {
            quest: self.quest,
            quest_spec,
            budget,
            start: QuestStart { steps: steps.to_vec(), ..QuestStart::default() },
        });
    }

    /// Nothing is left but the log as it was written.
    pub fn restarted(&mut self) {
        let mut world = World::default();
        for record in &self.log {
            let read = Record::read(record.id, &record.body()).expect("what was written can be read");
            world.apply(&read).expect("what was lived through is possible");
        }
        assert_eq!(world, self.world);
        let saved = rmp_serde::to_vec_named(&world).expect("plain data");
        self.world = rmp_serde::from_slice(&saved).expect("what was saved loads");
        assert_eq!(self.world, world);
    }

    pub fn step(&self, step: &str) -> &Step {
        let quest = self.world.quest(self.quest).expect("it is there");
        quest.step(&id(step)).unwrap_or_else(|| panic!("there is no step {step}"))
    }

    pub fn has(&self, step: &str) -> bool {
        self.world.quest(self.quest).expect("it is there").step(&id(step)).is_some()
    }

    pub fn status(&self, step: &str) -> StepStatus {
        self.step(step).status()
    }

    pub fn state(&self) -> &'static str {
        self.world.quest(self.quest).expect("it is there").state.word()
    }

    pub fn running(&self) -> Vec<String> {
        let quest = self.world.quest(self.quest).expect("it is there");
        quest.working.iter().map(ToString::to_string).collect()
    }

    /// The agent that is at work on a step, or parked.
    #[track_caller]
    pub fn agent(&self, step: &str) -> AgentId {
        self.step(step).agent().unwrap_or_else(|| panic!("nobody is at {step}: {:?}", self.step(step).state))
    }

    /// Who worked on a step last.
    #[track_caller]
    pub fn agent_of(&self, step: &str) -> AgentId {
        self.step(step).agents.last().expect("somebody has worked on it").agent
    }

    /// The role that is at work on a step.
    #[track_caller]
    pub fn role(&self, step: &str) -> String {
        match &self.step(step).state {
            StepState::Running(SlotWork::Agent { role, .. }) => role.clone(),
            other => panic!("nobody is at {step}: {other:?}"),
        }
    }

    pub fn run(&self, agent: AgentId) -> &Run {
        self.world.run(agent).expect("it was run")
    }

    pub fn attempt_id(&self, agent: AgentId) -> AttemptId {
        self.run(agent).attempt_id(agent)
    }

    /// There is a process, and it works.
    #[track_caller]
    pub fn start(&mut self, step: &str) -> AgentId {
        let agent = self.agent(step);
        let process = Process { pid: 42, began: 7 };
        let session = format!("talk-{agent}");
        self.must(Command::ReportSpawn {
            of: self.attempt_id(agent),
            process,
            session: Some(session),
            copy_of: None,
            capabilities: Capabilities::ALL,
        });
        let waiting = self.world.conversation(agent).into_iter().flat_map(|conversation| conversation.waiting.iter());
        let heard = waiting.map(|delivery| Output::Heard { id: wire_name(delivery.id) }).collect::<Vec<_>>();
        self.says(agent, [connected()].into_iter().chain(heard).collect());
        agent
    }

    #[track_caller]
    pub fn says(&mut self, agent: AgentId, outputs: Vec<Output>) -> Vec<Event> {
        let from = self.run(agent).attempt.spooled;
        self.must(Command::TakeOutput { of: self.attempt_id(agent), from, upto: from + 10, outputs })
    }

    /// An agent asks for something by a tool, and whether it was a "no".
    #[track_caller]
    pub fn calls(&mut self, agent: AgentId, ask: Command) -> Result<Vec<Event>, String> {
        let number = self.run(agent).attempt.calls + 1;
        let mut events = self.must(Command::TakeCall { of: self.attempt_id(agent), number, ask: Ok(Box::new(ask)) });
        match events.remove(0) {
            Event::Run { what: RunEvent::CallTaken { refused: Some(refused), .. }, .. } => Err(refused.code),
            _ => Ok(events),
        }
    }

    #[track_caller]
    pub fn signals(&mut self, agent: AgentId, step: &str, signal: Signal) -> Result<Vec<Event>, String> {
        self.calls(agent, Command::GiveSignal { agent, step: id(step), signal })
    }

    #[track_caller]
    pub fn exits(&mut self, agent: AgentId, exit: Exit) -> Vec<Event> {
        self.must(Command::ReportExit { of: self.attempt_id(agent), exit, evidence: None })
    }

    /// The agent that is at work on a step says so much, and leaves in good order.
    #[track_caller]
    pub fn plays(&mut self, step: &str, signal: Signal) -> Vec<Event> {
        let agent = self.start(step);
        self.signals(agent, step, signal).expect("it may signal so");
        self.says(agent, vec![well(0)]);
        self.exits(agent, Exit::Code(0))
    }

    /// The agent of a step ends its turn and leaves, without a signal.
    #[track_caller]
    pub fn forgets(&mut self, step: &str) -> Vec<Event> {
        // It waits for a moment if it has forgotten before.
        if self.status(step) == StepStatus::Parked {
            self.later(60_000);
        }
        let agent = self.start(step);
        self.says(agent, vec![well(0)]);
        self.exits(agent, Exit::Code(0))
    }

    /// The agent of a step leaves after a turn that ended like this.
    #[track_caller]
    pub fn leaves(&mut self, step: &str, end: Output) -> Vec<Event> {
        let agent = self.start(step);
        self.says(agent, vec![end]);
        self.exits(agent, Exit::Code(1))
    }

    #[track_caller]
    pub fn ward(&mut self, step: &str, verdict: Verdict) -> Vec<Event> {
        let StepState::Running(SlotWork::Ward(number)) = self.step(step).state else {
            panic!("{step} is at no ward: {:?}", self.step(step).state)
        };
        let (artifact, restored) = ("ward.log".into(), Vec::new());
        self.must(Command::ReportWard { quest: self.quest, step: id(step), number, verdict, artifact, restored })
    }

    #[track_caller]
    pub fn merge(&mut self, step: &str, merge: Merge) -> Vec<Event> {
        let StepState::Running(SlotWork::Merge(number)) = self.step(step).state else {
            panic!("{step} is at no merge: {:?}", self.step(step).state)
        };
        self.must(Command::ReportMerge { quest: self.quest, step: id(step), number, merge, left_out: Vec::new() })
    }

    /// What the human was asked and has not answered.
    pub fn questions(&self) -> Vec<EventId> {
        self.world.questions().map(|(id, _)| id).collect()
    }

    #[track_caller]
    pub fn question(&self) -> EventId {
        match self.questions()[..] {
            [one] => one,
            ref other => panic!("one question is open: {other:?}"),
        }
    }

    #[track_caller]
    pub fn answers(&mut self, answer: &str) -> Vec<Event> {
        let question = self.question();
        self.must(Command::AnswerQuestion { question, answer: answer.into() })
    }

    /// Time goes on.
    pub fn later(&mut self, ms: u64) -> Vec<Event> {
        self.now = self.now.plus_ms(ms);
        self.must(Command::Tick)
    }

    /// The last thing that was said to an agent.
    pub fn told(&self, to: AgentId) -> String {
        let said = self.log.iter().rev().find_map(|record| match &record.event {
            Event::Message(MessageEvent::Added { agent, content, .. }) if *agent == to => Some(content.clone()),
            _ => None,
        });
        said.expect("something was said to it")
    }

    /// How often something happened.
    pub fn count(&self, is_meant: impl Fn(&Event) -> bool) -> usize {
        self.log.iter().filter(|record| is_meant(&record.event)).count()
    }
}

pub fn red(findings: &[&str]) -> Verdict {
    Verdict::Red { findings: findings.iter().map(|line| (*line).into()).collect() }
}
