//! A daemon that follows the plan, and that is killed again and again: all it knows then is the log, written as text. It asserts after
//! every step what must hold of quests.

use crate::chance::Chance;
use crate::process::Process;
use crate::witness::Witness;
use hatchery_core::harness::Capabilities;
use hatchery_core::quest::{
    ChoreKind, Merge, Quest, QuestStart, QuestState, SlotWork, Step, StepForkState, StepState, StepStatus, Verdict,
};
use hatchery_core::run::{DesiredState, RunState};
use hatchery_core::{AgentId, Command, Event, EventId, Exit, QuestId, Record, Refusal, Timestamp, World};
use hatchery_core::{decide, plan, settle, step};
use std::collections::{BTreeMap, BTreeSet};

pub const ROOT: AgentId = AgentId::from_bytes([1; 16]);
/// Far more than can follow from one command in these quests.
const SETTLES: usize = 300;

pub struct Shell {
    pub met: BTreeSet<&'static str>,
    pub chance: Chance,
    pub now: Timestamp,
    pub world: World,
    pub witness: Witness,
    /// What is on the machine: it outlives the daemon.
    pub processes: BTreeMap<(AgentId, u32, u32), Process>,
    pub calm: bool,
    /// What mostly goes wrong, if anything does.
    harsh: Option<ChoreKind>,
    /// How many steps were planned so far: their names are never used twice.
    pub named: u64,
    /// How many agents were forked for steps.
    pub forked: u64,
    log: Vec<String>,
    saved: Vec<u8>,
    /// What was reported: it may come again.
    reports: Vec<Command>,
}

impl Shell {
    pub fn new(seed: u64) -> Self {
        let mut shell = Self {
            met: BTreeSet::new(),
            chance: Chance::new(seed),
            now: Timestamp(1_000_000),
            world: World::default(),
            witness: Witness::default(),
            processes: BTreeMap::new(),
            calm: true,
            harsh: [Some(ChoreKind::Ward), Some(ChoreKind::Merge), None, None][(seed % 4) as usize],
            named: 0,
            forked: 0,
            log: Vec::new(),
            saved: Vec::new(),
            reports: Vec::new(),
        };
        shell.must(Command::FoundRegistry { agent: ROOT, name: None });
        for number in 0..1 + shell.chance.below(2) {
            shell.create(u8::try_from(number).expect("few quests"));
        }
        shell.calm = false;
        shell
    }

    fn create(&mut self, number: u8) {
        let quest_spec = Box::new(self.chance.quest_spec());
        let budget = self.chance.one_in(4).then(|| crate::process::cents(30));
        let given = quest_spec.table.paths.plan.is_empty() || self.chance.one_in(4);
        let most = if self.chance.one_in(4) { 12 } else { 5 };
        let steps = if given { self.steps(most) } else { Vec::new() };
        let quest = QuestId::from_bytes([number + 2; 16]);
        self.must(Command::CreateQuest {
            quest,
            quest_spec,
            budget,
            start: QuestStart { steps, ..QuestStart::default() },
        });
    }

    pub fn steps(&mut self, most: u64) -> Vec<hatchery_core::quest::StepPlan> {
        let steps = self.chance.steps(self.named, most);
        self.named += steps.len() as u64;
        steps
    }

    pub fn turn(&mut self) {
        match self.chance.below(12) {
            0 => self.now = Timestamp(self.now.0 - 3_000),
            1 => self.now = plan(&self.world).wake_at.map_or(self.now, |at| self.now.max(at)),
            _ => self.now = self.now.plus_ms(self.chance.below(3_000)),
        }
        match self.chance.below(24) {
            0..=2 => self.person_acts(),
            3..=9 => self.process_acts(),
            10..=17 => self.look_at_one(),
            18..=20 => self.do_chores(),
            21 => self.report_again(),
            _ => {
                self.must(Command::Tick);
            }
        }
        if self.chance.one_in(50) {
            self.restart();
        }
    }

    /// No more faults, and a person who sees to everything: each quest ends.
    pub fn run_to_quiet(&mut self) {
        self.calm = true;
        self.met.extend(self.world.quests().map(|(_, quest)| quest.state.word()));
        for _ in 0..1_500 {
            if self.world.quests().all(|(_, quest)| quest.is_over()) && plan(&self.world).runs.is_empty() {
                let left = self.world.runs().find(|(_, run)| run.spec.signals && run.is_open());
                assert!(left.is_none(), "nothing is left of a quest that is over: {left:?}");
                return self.restart_from_nothing();
            }
            self.person_sees_to_all();
            for key in self.processes.keys().copied().collect::<Vec<_>>() {
                self.act(key);
            }
            for agent in plan(&self.world).runs.keys() {
                self.look(*agent);
            }
            self.do_chores();
            let wake_at = plan(&self.world).wake_at.unwrap_or(self.now);
            self.now = self.now.plus_ms(1_000).max(wake_at.min(self.now.plus_ms(90_000)));
            self.must(Command::Tick);
        }
        let open = self.world.quests().filter(|(_, quest)| !quest.is_over());
        let states = open.map(|(id, quest)| (id, quest.steps.iter().map(|(id, it)| (id.clone(), it.state.clone()))));
        panic!("never ends: {:?}", states.map(|(id, steps)| (id, steps.collect::<Vec<_>>())).collect::<Vec<_>>());
    }

    fn process_acts(&mut self) {
        let living: Vec<_> = self.processes.iter().filter(|(_, it)| it.exit.is_none()).map(|(key, _)| *key).collect();
        if let Some(key) = self.chance.pick(&living) {
            self.act(key);
        }
    }

    fn look_at_one(&mut self) {
        let wanted: Vec<AgentId> = plan(&self.world).runs.keys().copied().collect();
        if let Some(agent) = self.chance.pick(&wanted) {
            for _ in 0..1 + self.chance.below(4) {
                self.look(agent);
            }
        }
    }

    /// Compares what is wanted of an agent with what is, and reports.
    fn look(&mut self, agent: AgentId) {
        let Some(wanted) = plan(&self.world).runs.get(&agent).cloned() else { return };
        let run = self.world.run(agent).expect("it is wanted");
        let (of, calls) = (run.attempt_id(agent), run.attempt.calls);
        let key = (agent, of.run, of.attempt);
        let starting = matches!(run.state, RunState::Starting | RunState::Stopping { process: None, .. });
        let stop = wanted.state == DesiredState::Stopped;
        if !self.processes.contains_key(&key) {
            if stop || (!self.calm && self.chance.one_in(40)) {
                self.met.insert("not started");
                return self.report(Command::ReportExit { of, exit: Exit::NotStarted, evidence: None });
            }
            self.processes.insert(key, Process::default());
        }
        if starting {
            let (pid, began) = (7, self.log.len() as u64);
            let process = hatchery_core::run::Process { pid, began };
            let session = format!("talk-{agent}");
            return self.report(Command::ReportSpawn {
                of,
                process,
                session: Some(session),
                copy_of: None,
                capabilities: Capabilities::ALL,
            });
        }
        let process = self.processes.get_mut(&key).expect("it is there");
        if stop && process.exit.is_none() {
            process.exit = Some(Exit::Signal(15));
        }
        if let Some(ask) = process.calls.get(usize::try_from(calls).expect("few")) {
            let ask = Ok(Box::new(ask.clone()));
            return self.report(Command::TakeCall { of, number: calls + 1, ask });
        }
        let from = self.world.run(agent).map_or(0, |run| run.attempt.spooled);
        let rest = &process.spool[usize::try_from(from).expect("little")..];
        if !rest.is_empty() {
            let outputs = rest[..1 + self.chance.index(rest.len())].to_vec();
            return self.report(Command::TakeOutput { of, from, upto: from + outputs.len() as u64, outputs });
        }
        if let Some(exit) = process.exit {
            self.report(Command::ReportExit { of, exit, evidence: None });
        }
    }

    fn do_chores(&mut self) {
        let chores = plan(&self.world).chores;
        for ((quest, step), chore) in chores {
            if !self.calm && self.chance.one_in(2) {
                continue;
            }
            // In some histories nothing fits together.
            let harsh = self.harsh == Some(chore.what) && !self.chance.one_in(6);
            let roll = match (self.calm, harsh) {
                (true, _) => 9,
                (false, true) => 2,
                (false, false) => self.chance.below(12),
            };
            let lines = vec!["line".to_owned()];
            let number = chore.number;
            self.report(match chore.what {
                ChoreKind::Ward => {
                    let verdict = match roll {
                        0 => Verdict::Broken { why: "no shell.".into() },
                        1 => Verdict::Red { findings: vec![] },
                        2..=3 => Verdict::Red { findings: lines },
                        _ => Verdict::Green,
                    };
                    let restored = if roll % 2 == 0 { Vec::new() } else { vec!["line".to_owned()] };
                    Command::ReportWard { quest, step, number, verdict, artifact: "ward.log".into(), restored }
                }
                ChoreKind::Merge => {
                    let merge = match roll {
                        0 => Merge::Broken { why: "no git.".into() },
                        1..=3 => Merge::Conflict { files: lines },
                        4 => Merge::Empty,
                        _ => Merge::Merged,
                    };
                    Command::ReportMerge { quest, step, number, merge, left_out: Vec::new() }
                }
            });
        }
    }

    /// A report that was made before is made again. It changes nothing.
    fn report_again(&mut self) {
        if let Some(command) = self.chance.pick(&self.reports) {
            let codes =
                ["stale_attempt", "output_taken", "call_taken", "no_run", "stale_chore", "quest_over", "unknown_step"];
            let answer = self.submit(&command);
            let taken = answer.as_ref().is_err_and(|refusal| codes.contains(&refusal.code()));
            assert!(taken, "{command:?} was taken twice: {answer:?}");
        }
    }

    fn report(&mut self, command: Command) {
        let lost = !self.calm && self.chance.one_in(50);
        if lost {
            // The daemon dies before it is written down; it is reported again.
            return self.restart();
        }
        self.must(command.clone());
        self.reports.push(command);
    }

    #[track_caller]
    pub fn must(&mut self, command: Command) -> Vec<Event> {
        self.submit(&command).unwrap_or_else(|refusal| panic!("{command:?}: {refusal}"))
    }

    /// Decides, writes down, and asserts everything that must hold afterwards.
    pub fn submit(&mut self, command: &Command) -> Result<Vec<Event>, Refusal> {
        let before = self.world.clone();
        let mut after = before.clone();
        let mut events = match decide(&before, command, self.now) {
            Ok(events) => events,
            Err(refusal) => {
                if self.chance.one_in(16) {
                    assert_eq!(step(&mut after, command, self.now), Err(refusal.clone()));
                    assert_eq!(after, before, "a refusal leaves no trace");
                }
                self.met.insert(refusal.code());
                return Err(refusal);
            }
        };
        // By hand, because a step that never returns cannot name its seed.
        let (mut happened, mut settles) = (Vec::new(), 0);
        while !events.is_empty() || settles == 0 {
            for event in events {
                let record = Record { id: after.head().next(), ts: self.now, session: None, event };
                after.apply(&record).unwrap_or_else(|why| panic!("{why}: {:?}", record.event));
                happened.push(record);
            }
            settles += 1;
            assert!(settles < SETTLES, "settling goes on and on: {:?}", &happened[happened.len() - 4..]);
            events = settle(&after, self.now);
        }
        self.world = after;
        if self.chance.one_in(16) {
            let mut stepped = before;
            assert_eq!(step(&mut stepped, command, self.now).as_ref(), Ok(&happened));
            assert_eq!(stepped, self.world);
        }
        for record in &happened {
            self.witness.fold(record);
            self.note(&record.event);
            self.log.push(record.body());
        }
        if self.chance.one_in(3) {
            self.assert_all_is_well();
        }
        Ok(happened.into_iter().map(|record| record.event).collect())
    }

    fn assert_all_is_well(&mut self) {
        let overdue = self.world.next_deadline().filter(|(at, _)| *at <= self.now);
        assert_eq!(overdue, None, "nothing is overdue after a step");
        self.witness.agrees_with(&self.world);
        for (agent, run) in self.world.runs() {
            let at_work = run.spec.signals && run.is_open() && !run.is_parked();
            assert!(!at_work || self.holds_a_slot(agent), "{agent} works without a slot: {run:?}");
        }
        let plan = plan(&self.world);
        for (id, quest) in self.world.quests() {
            // The forks of an agent that has left are stopped first.
            let forks = |agent: &AgentId| quest.forks.values().any(|fork| fork.step_agent == *agent);
            let seen_to = |step: &StepState| match step {
                StepState::Running(SlotWork::Agent { agent, .. }) => plan.runs.contains_key(agent) || forks(agent),
                StepState::Running(_) => plan.chores.keys().any(|(of, _)| *of == id),
                _ => true,
            };
            assert!(quest.is_over() || quest.steps.values().all(|it| seen_to(&it.state)), "nobody sees to {quest:?}");
            assert!(quest.state != QuestState::Open || self.goes_on(quest), "{id} is stuck: {:?}", quest.steps);
            if quest.steps.values().any(|it| it.waits_for > 0 && matches!(it.state, StepState::Queued(_))) {
                self.met.insert("begun, and behind others by a new plan");
            }
        }
    }

    /// Whether an agent that works for a quest has a slot of it. In one that is over, it has only to stop.
    fn holds_a_slot(&self, agent: AgentId) -> bool {
        let assignment = self.world.assignment(agent).expect("it works for a quest");
        let quest = self.world.quest(assignment.quest).expect("it is there");
        let works = |step: &Step| matches!(step.state, StepState::Running(_)) && step.agent() == Some(agent);
        quest.is_over() || quest.step(&assignment.step).is_some_and(works)
    }

    /// Whether something happens in a quest, or somebody is asked, or has to try again.
    fn goes_on(&self, quest: &Quest) -> bool {
        let wakes = |agent: AgentId, until: Option<Timestamp>| {
            let asked = self.world.run(agent).and_then(|run| run.question);
            until.is_some_and(|until| plan(&self.world).wake_at.is_some_and(|at| at <= until))
                || asked.is_some_and(|id| self.world.question(id).is_some())
        };
        let in_steps = quest.steps.values().any(|it| match &it.state {
            StepState::Running(_) | StepState::Failed { .. } => true,
            StepState::Asking(_) => it.question.is_some_and(|id| self.world.question(id).is_some()),
            StepState::Parked { agent, until, .. } => wakes(*agent, *until),
            StepState::Pending | StepState::Queued(_) | StepState::Blocked | StepState::Complete { .. } => false,
        });
        // A step may be queued behind the forks of its own agent.
        in_steps || quest.forks.values().any(|fork| fork.state == StepForkState::Running)
    }

    /// All that a new daemon has is the log as it was written, and a snapshot of what the older part of it leads to.
    pub fn restart(&mut self) {
        let mut world: World = match self.saved.is_empty() {
            true => World::default(),
            false => rmp_serde::from_slice(&self.saved).expect("what was saved loads"),
        };
        let read = usize::try_from(world.head().0).expect("a short log");
        for (id, line) in (world.head().0 + 1..).map(EventId).zip(&self.log[read..]) {
            let record = Record::read(id, line).expect("what was written can be read");
            world.apply(&record).expect("what was written is possible");
        }
        assert_eq!(world, self.world, "the log tells what was lived through");
        self.saved = rmp_serde::to_vec_named(&world).expect("a world is plain data");
        self.world = world;
        self.met.insert("restarted");
        if self.world.quests().any(|(_, quest)| quest.steps.values().any(|it| it.status() == StepStatus::Blocked)) {
            self.met.insert("blocked");
        }
    }

    /// A new daemon that has lost its snapshot.
    fn restart_from_nothing(&mut self) {
        self.saved.clear();
        self.restart();
    }
}
