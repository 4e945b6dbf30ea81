//! The processes that play agents: what each says, asks for and leaves behind, well or badly.

use crate::chance::planned;
use crate::shell::Shell;
use hatchery_core::agent::Birth;
use hatchery_core::output::{FailureKind, Output, TurnEnd, TurnResult};
use hatchery_core::quest::{Assignment, Observable, Quest, QuestContext, Requirements, Signal, StepId, StepPlan};
use hatchery_core::roles::{Role, SignalKind};
use hatchery_core::run::{RunSpec, wire_name};
use hatchery_core::usage::{Money, Usage};
use hatchery_core::{AgentId, Command, Exit};

#[derive(Default)]
pub struct Process {
    /// What it wrote, a byte each.
    pub spool: Vec<Output>,
    /// What it asked for by a tool.
    pub calls: Vec<Command>,
    pub exit: Option<Exit>,
    stage: Stage,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Stage {
    #[default]
    Born,
    Works,
    /// It has said what it has to say.
    Done,
    Hangs,
}

pub fn cents(amount: u64) -> Money {
    Money { nanodollars: amount * 10_000_000 }
}

impl Shell {
    /// A process does one thing.
    pub fn act(&mut self, key: (AgentId, u32, u32)) {
        let agent = key.0;
        let Some(mut process) = self.processes.remove(&key) else { return };
        if process.exit.is_none() {
            match process.stage {
                Stage::Born => self.begins(agent, &mut process),
                Stage::Works => self.works(agent, &mut process),
                Stage::Done => self.leaves(&mut process),
                Stage::Hangs if self.calm => process.exit = Some(Exit::Signal(9)),
                Stage::Hangs => {}
            }
        }
        self.processes.insert(key, process);
    }

    fn begins(&mut self, agent: AgentId, process: &mut Process) {
        process.spool.push(match !self.calm && self.chance.one_in(40) {
            true => Output::NotReady { why: "its tools are failed".into() },
            false => Output::Ready { session: format!("talk-{agent}"), model: None, version: None, tools: Vec::new() },
        });
        process.spool.push(Output::TurnStarted);
        self.hears(agent, process);
        process.stage = Stage::Works;
    }

    fn hears(&self, agent: AgentId, process: &mut Process) {
        let waiting = self.world.conversation(agent).into_iter().flat_map(|conversation| conversation.waiting.iter());
        process.spool.extend(waiting.map(|delivery| Output::Heard { id: wire_name(delivery.id) }));
    }

    fn works(&mut self, agent: AgentId, process: &mut Process) {
        self.hears(agent, process);
        match self.chance.below(30) {
            _ if self.calm => self.speaks(agent, process),
            0 => process.exit = Some(Exit::Signal(9)),
            1 => process.exit = Some(Exit::LostWithMachine),
            2 => process.exit = Some(Exit::Code(0)),
            3 => process.stage = Stage::Hangs,
            4 => self.fails(process, FailureKind::Overloaded),
            5 => {
                let resets_at = Some(self.now.plus_ms(self.chance.below(100_000)));
                process.spool.push(Output::Limit { rejected: true, resets_at, window: None });
                self.fails(process, FailureKind::RateLimited);
            }
            6 => self.fails(process, FailureKind::Other),
            7 if self.chance.one_in(2) => self.fails(process, FailureKind::Unauthorised),
            8 => self.fails(process, FailureKind::PromptTooLong),
            9 => {
                let line = Output::TurnEnded(TurnEnd::default());
                process.spool.push(Output::Subagent { tool_use: "t".into(), output: Box::new(line) });
            }
            10..=12 => process.spool.push(Output::Text { text: "hm".into() }),
            13 => self.forks(agent, process),
            14 => process.spool.push(match self.chance.one_in(2) {
                true => Output::ToolUse { id: "w".into(), name: "wait".into(), input: "{}".into() },
                false => Output::ToolResult { id: "w".into(), content: String::new(), is_error: false },
            }),
            _ => self.speaks(agent, process),
        }
    }

    /// It has somebody help with its step.
    fn forks(&mut self, agent: AgentId, process: &mut Process) {
        self.forked += 1;
        let child = AgentId::from_bytes(((1_u128 << 100) + u128::from(self.forked)).to_be_bytes());
        let Some(spec) = self.world.run(agent).map(|run| (*run.spec).clone()) else { return };
        let run = Some(Box::new(RunSpec { signals: false, ..spec }));
        let birth = Birth { prompt: Some("go".into()), run, for_step: true, ..Birth::of(child) };
        process.calls.push(Command::Fork { parent: agent, at: None, birth });
    }

    fn fails(&mut self, process: &mut Process, kind: FailureKind) {
        let end = TurnEnd { result: TurnResult::Failed { kind, detail: String::new() }, ..TurnEnd::default() };
        process.spool.push(Output::TurnEnded(end));
        process.exit = Some(Exit::Code(1));
    }

    /// Ends its turn, having spent something, and leaves in good order.
    fn leaves(&mut self, process: &mut Process) {
        let spent = Usage { cost: cents(self.chance.below(6)), ..Usage::default() };
        let (total, since_last) = (spent, Some(spent));
        let end = TurnEnd { num_turns: 1, total, since_last, ..TurnEnd::default() };
        process.spool.push(Output::TurnEnded(end));
        match !self.calm && self.chance.one_in(20) {
            // It has signalled, and does not go.
            true => process.stage = Stage::Hangs,
            false => process.exit = Some(Exit::Code(i32::from(!self.calm && self.chance.one_in(5)))),
        }
    }

    /// Hands in what it has to, signals, and is done. Or does it wrong.
    fn speaks(&mut self, agent: AgentId, process: &mut Process) {
        process.stage = Stage::Done;
        let Some(assignment) = self.world.assignment(agent).cloned() else { return };
        let (quest, quest_spec) =
            self.world.quest(assignment.quest).zip(self.world.quest_spec(assignment.quest)).expect("it is there");
        let role = quest_spec.table.role(&assignment.role).expect("it is in the table").clone();
        let plans = assignment.role == quest_spec.table.planner && (quest.plans.is_empty() || !self.calm);
        let requires = assignment.role == quest_spec.table.requirer && (quest.requirements.is_none() || !self.calm);
        let quest = quest.clone();
        if requires {
            process.calls.push(Command::SetRequirements { agent, requirements: self.requirements() });
        }
        if plans && (assignment.step == StepId::plan() || (!self.calm && self.chance.one_in(2))) {
            let steps = self.plan(&quest, &assignment);
            process.calls.push(Command::PlanSteps { agent, steps });
        }
        if !self.calm && self.chance.one_in(15) {
            return;
        }
        let (step, signal) = match self.calm {
            true => (assignment.step.clone(), Signal::Complete { summary: "done".into() }),
            false => self.signal(&quest, &assignment, &role),
        };
        let (passes, speaks) = match self.chance.below(6) {
            // The tool was killed before it could pass the signal on.
            0 => (false, true),
            1 => (true, false),
            _ => (true, true),
        };
        if speaks {
            process.spool.push(spoken(&step, &signal));
        }
        if passes {
            let give = Command::GiveSignal { agent, step, signal };
            let again = !self.calm && self.chance.one_in(8);
            process.calls.extend(again.then(|| give.clone()));
            process.calls.push(give);
        }
        if !self.calm && self.chance.one_in(12) {
            let (step, signal) = self.signal(&quest, &assignment, &role);
            process.calls.push(Command::GiveSignal { agent, step, signal });
        }
    }

    fn requirements(&mut self) -> Requirements {
        let description = "dry feet".to_owned();
        let context = QuestContext { id: "river".into(), description: description.clone() };
        let lost = !self.calm && self.chance.one_in(10);
        let of = Some(if lost { "desert".into() } else { "river".into() });
        let observable = Observable { id: "dry".into(), context: of, description };
        Requirements { contexts: vec![context], observables: vec![observable] }
    }

    /// A signal that it may give, or not, about its step, or another.
    fn signal(&mut self, quest: &Quest, assignment: &Assignment, role: &Role) -> (StepId, Signal) {
        let step = match self.chance.below(30) {
            0 => "nowhere".parse().expect("a name"),
            1 => self.chance.pick(&quest.steps.keys().cloned().collect::<Vec<_>>()).expect("it has steps"),
            _ => assignment.step.clone(),
        };
        let kind = match self.chance.below(20) {
            0..=10 => SignalKind::Complete,
            11 => SignalKind::PartiallyComplete,
            12 => SignalKind::NeedsUserInput,
            13 => SignalKind::NeedsRoleFollowup,
            _ => self.chance.pick(&role.may).expect("it may signal complete"),
        };
        // Those who were called sometimes call back, and so on: such circles have to be cut.
        let callers = quest.steps.get(&assignment.step).map(|step| &step.progress.callers);
        let caller = callers.and_then(|callers| callers.last()).map(|caller| caller.role.clone());
        let caller = caller.filter(|caller| !self.calm && role.calls.contains(caller) && self.chance.one_in(2));
        let kind = if caller.is_some() { SignalKind::NeedsRoleFollowup } else { kind };
        let signal = match kind {
            SignalKind::Complete => Signal::Complete { summary: format!("done by {}", assignment.role) },
            SignalKind::PartiallyComplete => {
                Signal::PartiallyComplete { progress: "half".into(), continuation_point: "there".into() }
            }
            SignalKind::NeedsUserInput => {
                let choices = vec!["this".into(), "that".into()];
                Signal::NeedsUserInput { question: "which?".into(), context: String::new(), choices }
            }
            SignalKind::NeedsRoleFollowup => Signal::NeedsRoleFollowup {
                resume: caller.is_some() || self.chance.one_in(2),
                target_role: caller.or_else(|| self.chance.pick(&role.calls)).unwrap_or_else(|| "king".into()),
                reason: "so".into(),
                context: "here".into(),
            },
        };
        (step, signal)
    }

    /// A plan, or another one: what is there may stay, go or change, and sometimes it makes no sense.
    fn plan(&mut self, quest: &Quest, assignment: &Assignment) -> Vec<StepPlan> {
        if quest.plans.len() > 24 {
            return quest.plans.values().cloned().collect();
        }
        let first = quest.plans.is_empty();
        let most = if self.chance.one_in(4) { 12 } else { 5 };
        let mut steps = self.steps(if first { most } else { 3 });
        let own = quest.plans.get(&assignment.step).filter(|_| assignment.step != StepId::plan());
        let others = quest.plans.values().filter(|plan| plan.id != assignment.step);
        let keeps_all = self.chance.one_in(2);
        let kept: Vec<StepPlan> = others.filter(|_| keeps_all || self.chance.one_in(3)).cloned().collect();
        if let Some(own) = own.filter(|_| self.chance.one_in(2)) {
            let mut own = own.clone();
            if self.chance.one_in(2) {
                own.depends_on.extend(steps.first().map(|plan| plan.id.clone()));
            }
            steps.push(own);
        }
        if !self.calm && self.chance.one_in(10) {
            steps.push(planned("lost", vec!["nowhere".parse().expect("a name")]));
        }
        steps.into_iter().chain(kept).collect()
    }
}

/// The call of our tool as it stands in a stream.
fn spoken(step: &StepId, signal: &Signal) -> Output {
    let input = match signal {
        Signal::Complete { summary } => serde_json::json!({ "signal": "complete", "summary": summary }),
        Signal::PartiallyComplete { progress, continuation_point } => serde_json::json!({
            "signal": "partially-complete", "progress": progress, "continuationPoint": continuation_point
        }),
        Signal::NeedsUserInput { question, context, choices } => serde_json::json!({
            "signal": "needs-user-input", "question": question, "context": context, "choices": choices
        }),
        Signal::NeedsRoleFollowup { target_role, reason, context, resume } => serde_json::json!({
            "type": "needs-role-followup", "targetRole": target_role, "reason": reason, "context": context, "resume": resume
        }),
    };
    let mut input = input;
    input["stepId"] = step.as_str().into();
    Output::ToolUse { id: "t".into(), name: "signal-back".into(), input: input.to_string() }
}
