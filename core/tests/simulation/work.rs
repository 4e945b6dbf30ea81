//! A daemon that follows the plan, processes that outlive it, and a person who interferes. The daemon is killed again and again
//! and knows nothing then but the log and the run folders.

mod books;
mod look;

use crate::chance::Chance;
use crate::child::{Child, Harness};
use crate::log::Log;
use books::Tally;
use hatchery_core::agent::Birth;
use hatchery_core::run::{AttemptId, RunSpec, RunState};
use hatchery_core::session::EndReason;
use hatchery_core::{
    AgentId, Cause, Command, EventId, MessageKind, Record, Refusal, SessionId, Timestamp, World, plan, rests_on,
    settle, step,
};
use std::collections::{BTreeMap, BTreeSet};

/// What all seeds together must have met.
pub const MARKS: [&str; 32] = [
    "adopted",
    "briefed anew",
    "call refused",
    "call taken",
    "call_taken",
    "completed",
    "conversation lost",
    "copied",
    "crashed",
    "deaf to the end",
    "died at work",
    "ended with its session",
    "gate",
    "heard in mid-turn",
    "interrupted",
    "lost with its machine",
    "no_run",
    "no_turn",
    "not started",
    "nudged",
    "output_taken",
    "parked",
    "parked run ended",
    "retries spent",
    "run_open",
    "run_stopping",
    "said while it left",
    "silent",
    "spawned after the stop",
    "stale_attempt",
    "stuck",
    "woken",
];

const SESSION: SessionId = SessionId::from_bytes([1; 16]);
/// More than these are not made.
const AGENTS: u64 = 6;

struct Crash;

pub struct Work {
    pub met: BTreeSet<&'static str>,
    chance: Chance,
    now: Timestamp,
    log: Log,
    /// The log, read once.
    history: Vec<Record>,
    /// What the daemon knows.
    world: World,
    /// What is on the machine: it outlives the daemon.
    harness: Harness,
    folders: BTreeMap<(AgentId, u32, u32), Child>,
    /// All reports that are on the log: they may come again.
    reports: Vec<Command>,
    tally: Tally,
    calm: bool,
}

impl Work {
    pub fn new(seed: u64) -> Self {
        let mut work = Self {
            met: BTreeSet::new(),
            chance: Chance::new(seed),
            now: Timestamp(1_000_000),
            log: Log::default(),
            history: Vec::new(),
            world: World::default(),
            harness: Harness::new(seed.is_multiple_of(3)),
            folders: BTreeMap::new(),
            reports: Vec::new(),
            tally: Tally::default(),
            calm: true,
        };
        work.must(Command::FoundRegistry { agent: agent(0), name: None });
        work.must(Command::StartSession { session: SESSION, label: None, idle_ms: None });
        let birth = Birth { session: Some(SESSION), ..Birth::of(agent(1)) };
        work.must(Command::Fork { parent: agent(0), at: None, birth });
        work.calm = false;
        work
    }

    pub fn turn(&mut self) {
        let ms = i64::try_from(self.chance.below(2_000)).expect("below 2,000");
        self.now = Timestamp(self.now.0 + ms);
        let done = match self.chance.below(16) {
            0..=2 => {
                let command = self.wish();
                self.submit(&command).map(|_| ())
            }
            3..=8 => {
                self.child_acts();
                Ok(())
            }
            9..=13 => self.look_at_one(),
            14 => self.report_again(),
            _ => self.submit(&Command::Tick).map(|_| ()),
        };
        if let Err(Crash) = done {
            self.restart();
        }
    }

    /// No more crashes: every run comes to its end. Then each agent that lives is run once more, by an honest process, and has
    /// heard everything that was ever said to it.
    pub fn run_to_quiet(&mut self) {
        self.calm = true;
        self.drive();
        for at in 0..self.tally.agents.len() {
            let agent = self.tally.agents[at];
            if self.tally.died.contains(&agent) {
                continue;
            }
            self.must(Command::StartRun { agent, spec: honest() });
            self.drive();
            let run = self.world.run(agent).expect("it was run");
            assert!(matches!(run.state, RunState::Ended { cause: Cause::Completed, .. }), "{agent}: {:?}", run.state);
            self.assert_heard_everything(agent);
        }
        assert!(self.log.read_after(EventId::START).eq(self.history.iter().cloned()), "what was written can be read");
        self.restart();
        self.assert_adds_up();
    }

    /// Looks and acts until no run is open.
    fn drive(&mut self) {
        for _ in 0..1_000 {
            let open: Vec<_> = self.world.runs().filter(|(_, run)| run.is_open()).map(|(id, _)| id).collect();
            let plan = plan(&self.world);
            if open.is_empty() && plan.close.is_empty() {
                return;
            }
            for agent in open {
                self.person_sees_to(agent);
            }
            for child in self.folders.values_mut() {
                child.act(&mut self.harness, &mut self.chance, true);
            }
            for session in plan.close {
                self.must(Command::CloseSession { session });
            }
            for (agent, wanted) in &plan.runs {
                assert!(self.look(*agent, wanted).is_ok(), "nothing crashes in the calm");
            }
            // Long enough for a limit, short enough that whoever works is not silent for too long.
            self.now = Timestamp(self.now.0 + 5_000);
            self.must(Command::Tick);
        }
        let open: Vec<_> = self.world.runs().filter(|(_, run)| run.is_open()).collect();
        panic!("open for ever: {open:?}");
    }

    /// A person stops what is reported as silent, and what only waits.
    fn person_sees_to(&mut self, agent: AgentId) {
        let Some(run) = self.world.run(agent) else { return };
        let idle = run.spec.stays
            && !run.attempt.in_turn
            && self.world.conversation(agent).is_some_and(|conversation| conversation.waiting.is_empty());
        let running = matches!(run.state, RunState::Spawned { .. } | RunState::Running { .. });
        if running && (run.attempt.silent.is_some() || idle) {
            self.must(Command::StopRun { agent });
        }
    }

    /// What a person or another agent asks for.
    fn wish(&mut self) -> Command {
        let agent = self.some_agent();
        match self.chance.below(24) {
            0..=7 => {
                let spec = (!self.chance.one_in(5)).then(|| self.spec());
                Command::Say { agent, text: "do".into(), spec }
            }
            8..=11 => Command::StartRun { agent, spec: self.spec() },
            12..=14 => Command::InterruptRun { agent },
            15..=16 => Command::StopRun { agent },
            17 if self.chance.one_in(3) => Command::Kill { agent, cascade: false, by: None, remark: None },
            18..=20 if (self.tally.agents.len() as u64) < AGENTS => {
                let child = self::agent(self.tally.agents.len() as u64);
                let run = (!self.chance.one_in(3)).then(|| Box::new(self.spec()));
                let prompt = self.chance.one_in(2).then(|| "go".to_owned());
                Command::Fork { parent: agent, at: None, birth: Birth { prompt, run, ..Birth::of(child) } }
            }
            21 => Command::AddMessage { agent, kind: MessageKind::Clear, content: String::new() },
            22 if self.chance.one_in(8) => Command::EndSession { session: SESSION, reason: EndReason::User },
            _ => Command::Tick,
        }
    }

    fn some_agent(&mut self) -> AgentId {
        let at = self.chance.index(self.tally.agents.len());
        self.tally.agents[at]
    }

    fn spec(&mut self) -> RunSpec {
        RunSpec {
            stays: self.chance.one_in(3),
            kill_stuck: self.chance.one_in(3),
            retries: u32::try_from(self.chance.below(3)).expect("below 3"),
            parks: !self.chance.one_in(4),
            signals: false,
            permissions: None,
            ..honest()
        }
    }

    fn child_acts(&mut self) {
        let living: Vec<_> = self.folders.iter().filter(|(_, it)| it.exit.is_none()).map(|(key, _)| *key).collect();
        if living.is_empty() {
            return;
        }
        let key = living[self.chance.index(living.len())];
        let child = self.folders.get_mut(&key).expect("it is there");
        child.act(&mut self.harness, &mut self.chance, self.calm);
    }

    /// A report that was made before is made again. It changes nothing.
    fn report_again(&mut self) -> Result<(), Crash> {
        if self.reports.is_empty() {
            return Ok(());
        }
        let at = self.chance.index(self.reports.len());
        let command = self.reports[at].clone();
        let taken =
            |refusal: &Refusal| matches!(refusal.code(), "stale_attempt" | "output_taken" | "call_taken" | "no_run");
        let answer = self.submit(&command)?;
        assert!(answer.as_ref().is_err_and(taken), "{command:?} was taken twice: {answer:?}");
        Ok(())
    }

    /// Reports what has to be true now.
    fn report(&mut self, command: Command) -> Result<(), Crash> {
        let answer = self.submit(&command)?;
        assert!(answer.is_ok(), "{command:?}: {answer:?}");
        Ok(())
    }

    fn must(&mut self, command: Command) {
        match self.submit(&command) {
            Ok(answer) => assert!(answer.is_ok(), "{command:?}: {answer:?}"),
            Err(Crash) => unreachable!("nothing crashes in the calm"),
        }
    }

    /// Decides and appends. The daemon may be killed before and after.
    fn submit(&mut self, command: &Command) -> Result<Result<(), Refusal>, Crash> {
        let mut after = self.world.clone();
        let records = match step(&mut after, command, self.now) {
            Ok(records) => records,
            Err(refusal) => {
                assert_eq!(after, self.world, "a refusal leaves no trace");
                if MARKS.contains(&refusal.code()) {
                    self.met.insert(refusal.code());
                }
                return Ok(Err(refusal));
            }
        };
        assert_eq!(settle(&after, self.now), [], "it is quiet after a step");
        if self.dies() {
            return Err(Crash);
        }
        let seen = self.world.head();
        let Ok(records) = self.log.append(seen, &rests_on(command, &records), records) else {
            unreachable!("there is one writer")
        };
        let is_report = matches!(
            command,
            Command::ReportWaiting { .. }
                | Command::ReportSpawn { .. }
                | Command::TakeOutput { .. }
                | Command::TakeCall { .. }
                | Command::ReportExit { .. }
        );
        self.reports.extend(is_report.then(|| command.clone()));
        for record in records {
            self.assert_for_a_reason(&record, &after);
            self.note(&record, &after);
            self.tally.count(&record);
            self.history.push(record);
        }
        if self.dies() {
            return Err(Crash);
        }
        self.world = after;
        self.assert_nothing_is_stranded();
        Ok(Ok(()))
    }

    fn dies(&mut self) -> bool {
        !self.calm && self.chance.one_in(60)
    }

    /// All that a new daemon has is the log, and a snapshot of what it leads to.
    fn restart(&mut self) {
        let mut world = World::default();
        for record in &self.history {
            world.apply(record).expect("what was written is possible");
            if world.head() == self.world.head() {
                assert_eq!(world, self.world, "the log tells what was lived through");
            }
        }
        let saved = rmp_serde::to_vec_named(&world).expect("a world is plain data");
        self.world = rmp_serde::from_slice(&saved).expect("what was saved loads");
        assert_eq!(self.world, world);
        self.assert_nothing_is_stranded();
        if self.folders.values().any(Child::lives) {
            self.met.insert("adopted");
        }
    }
}

fn honest() -> RunSpec {
    RunSpec {
        harness: "scripted".into(),
        host: "mill".into(),
        folder: None,
        model: None,
        script: None,
        stays: false,
        stall_ms: 60_000,
        kill_stuck: false,
        retries: 3,
        parks: true,
        signals: false,
        permissions: None,
    }
}

fn key(of: AttemptId) -> (AgentId, u32, u32) {
    (of.agent, of.run, of.attempt)
}

fn agent(number: u64) -> AgentId {
    AgentId::from_bytes(u128::from(number).to_be_bytes())
}
