//! A shell around the core, with everything real taken out: two writers on one log, each with a runner, and a client that
//! asks again when it got no answer. Any writer may crash after any step; what it held in memory is gone then.

use crate::chance::Chance;
use crate::follower::Follower;
use crate::log::{Conflict, Log};
use crate::witness::Witness;
use hatchery_core::agent::Lifecycle;
use hatchery_core::event::{AgentEvent, MailEvent, RunEvent, SessionEvent};
use hatchery_core::run::{AttemptId, StopWhy};
use hatchery_core::session::EndReason;
use hatchery_core::{AgentId, Command, Event, EventId, Record, Timestamp, World, plan, rests_on, settle, step};
use std::collections::{BTreeSet, VecDeque};

/// The places between which a step is torn apart by a crash.
#[derive(Clone, Copy, Debug)]
enum Boundary {
    Decided,
    Appended,
    Published,
    Planned,
    Acted,
}

struct Crash;

#[derive(Clone, Default)]
struct Writer {
    world: World,
    witness: Witness,
}

pub struct Shell {
    /// Which of [`crate::MARKS`] this history met.
    pub met: BTreeSet<&'static str>,
    chance: Chance,
    now: Timestamp,
    log: Log,
    writers: [Writer; 2],
    /// Kept by the store, so they outlive crashes.
    snapshots: Vec<Vec<u8>>,
    /// On its way to the follower, and lost in a crash.
    published: VecDeque<Vec<Record>>,
    follower: Follower,
    answered: Vec<Record>,
    /// Commands whose fate the client does not know.
    unanswered: Vec<Command>,
    calm: bool,
}

impl Shell {
    /// Agent 0 is asked for by both writers before anything else.
    pub fn new(seed: u64) -> Self {
        let mut shell = Self {
            met: BTreeSet::new(),
            chance: Chance::new(seed),
            now: Timestamp(1_000_000),
            log: Log::default(),
            writers: Default::default(),
            snapshots: Vec::new(),
            published: VecDeque::new(),
            follower: Follower::default(),
            answered: Vec::new(),
            unanswered: Vec::new(),
            calm: false,
        };
        for who in 0..shell.writers.len() {
            let command = shell.chance.found();
            shell.ask(who, command);
        }
        shell
    }

    pub fn turn(&mut self) {
        self.move_clock();
        let who = self.chance.index(self.writers.len());
        match self.chance.below(12) {
            0 => self.catch_up(who),
            1 => self.take_snapshot(who),
            2 => self.follow(),
            3..=4 => {
                if let Err(Crash) = self.reconcile(who) {
                    self.restart(who);
                }
            }
            5 if self.chance.one_in(4) => {
                let command = self.chance.found();
                self.ask(who, command);
            }
            5 if !self.unanswered.is_empty() => {
                let late = self.chance.index(self.unanswered.len());
                let command = self.unanswered.swap_remove(late);
                self.ask(who, command);
            }
            // By chance alone nobody would ever think of one of them.
            6 if self.sleeper(who).is_some() => {
                let agent = self.sleeper(who).expect("somebody sleeps");
                let command = self.chance.wake(agent);
                self.ask(who, command);
            }
            _ => {
                let command = self.chance.command();
                self.ask(who, command);
            }
        }
    }

    fn sleeper(&self, who: usize) -> Option<AgentId> {
        let world = &self.writers[who].world;
        world.agents().find(|(_, it)| it.lifecycle == Lifecycle::Sleeping).map(|(id, _)| id)
    }

    /// No more crashes and no more wishes: what was asked for comes about, and then nothing is left to do.
    pub fn run_to_quiet(&mut self) {
        self.calm = true;
        // Each round ends at least one session, egg or run for good, if any is left to end.
        let (sessions, agents) = (World::session_count, World::agent_count);
        let rounds = 2 * self.writers.iter().map(|it| sessions(&it.world) + 2 * agents(&it.world)).sum::<usize>() + 2;
        for _ in 0..rounds {
            for who in 0..self.writers.len() {
                self.catch_up(who);
                let wake_at = plan(&self.writers[who].world).wake_at;
                self.now = wake_at.map_or(self.now, |at| self.now.max(at));
                self.ask(who, Command::Tick);
                assert!(self.reconcile(who).is_ok(), "nothing crashes in the calm");
            }
        }
        for who in 0..self.writers.len() {
            self.restart(who);
            let wanted = plan(&self.writers[who].world);
            assert_eq!((wanted.close, wanted.runs.len(), wanted.wake_at), (vec![], 0, None), "quiet");
            assert_eq!(self.writers[who].witness.unfinished(), []);
        }
        self.follow();
        self.follower.read(&self.log);
        let log: Vec<Record> = self.log.read_after(EventId::START).collect();
        assert_eq!(self.follower.seen(), log, "a follower sees each event once, in order");
        for record in &self.answered {
            let place = usize::try_from(record.id.0 - 1).expect("a short log");
            assert_eq!(log.get(place), Some(record), "what was answered is on the log");
        }
    }

    fn move_clock(&mut self) {
        let ms = self.chance.tick_ms();
        if ms < 0 {
            self.met.insert("clock ran backwards");
        }
        self.now = Timestamp(self.now.0 + ms);
    }

    fn ask(&mut self, who: usize, command: Command) {
        if let Err(Crash) = self.submit(who, &command) {
            self.unanswered.push(command);
            self.restart(who);
        }
    }

    fn submit(&mut self, who: usize, command: &Command) -> Result<(), Crash> {
        let before = self.writers[who].clone();
        assert_settling_ends(before.world.clone(), before.witness.clone(), self.now);
        let mut tentative = before.world.clone();
        let records = match step(&mut tentative, command, self.now) {
            Ok(records) => records,
            Err(refusal) => {
                assert_eq!(tentative, before.world, "a refusal leaves no trace");
                self.met.insert(refusal.code());
                return Ok(());
            }
        };
        self.assert_as_it_should(before.witness, &records, &tentative);
        self.reach(Boundary::Decided)?;

        let seen = before.world.head();
        let alone = seen == self.log.head();
        let records = match self.log.append(seen, &rests_on(command, &records), records) {
            Ok(records) => records,
            Err(conflict) => {
                self.met.insert(match conflict {
                    Conflict::Touched => "conflict",
                    Conflict::Renumbered => "conflict over ids alone",
                });
                assert!(!alone, "nobody conflicts with itself");
                self.catch_up(who);
                return self.submit(who, command);
            }
        };
        self.reach(Boundary::Appended)?;

        self.catch_up(who);
        if alone {
            assert_eq!(self.writers[who].world, tentative, "what was decided is what was written");
        } else if !records.is_empty() {
            self.met.insert("renumbered");
        }
        self.published.push_back(records.clone());
        self.reach(Boundary::Published)?;

        if let Command::EndSession { session, reason } = command {
            assert_eq!(self.writers[who].witness.asked(*session), Some(reason), "the answer was yes");
        }
        self.answered.extend(records);
        Ok(())
    }

    /// One look at what should be happening. Nothing is remembered from one look to the next.
    fn reconcile(&mut self, who: usize) -> Result<(), Crash> {
        let wanted = plan(&self.writers[who].world);
        self.reach(Boundary::Planned)?;
        for session in wanted.close {
            // Stopping takes its time: some are still at it when the next look comes.
            if !self.calm && self.chance.one_in(2) {
                continue;
            }
            self.reach(Boundary::Acted)?;
            self.submit(who, &Command::CloseSession { session })?;
        }
        for (agent, wanted) in &wanted.runs {
            if !self.calm && self.chance.one_in(2) {
                continue;
            }
            self.reach(Boundary::Acted)?;
            let of = AttemptId { agent: *agent, run: wanted.run, attempt: wanted.attempt };
            let run = self.writers[who].world.run(*agent).cloned();
            let at_attempt = run.filter(|run| run.attempt_id(*agent) == of && run.is_open());
            let reports = at_attempt.map(|run| self.chance.reports(of, &run, self.calm)).unwrap_or_default();
            for report in reports {
                self.submit(who, &report)?;
            }
        }
        Ok(())
    }

    fn reach(&mut self, boundary: Boundary) -> Result<(), Crash> {
        if self.calm || !self.chance.one_in(25) {
            return Ok(());
        }
        self.met.insert(match boundary {
            Boundary::Decided => "crash after Decided",
            Boundary::Appended => "crash after Appended",
            Boundary::Published => "crash after Published",
            Boundary::Planned => "crash after Planned",
            Boundary::Acted => "crash after Acted",
        });
        Err(Crash)
    }

    /// Forgets everything in memory and begins again from the log, with a snapshot if there is one.
    fn restart(&mut self, who: usize) {
        let lost = std::mem::take(&mut self.writers[who]).world;
        self.published.clear();
        let mut replayed = Writer::default();
        for record in self.log.read_after(EventId::START) {
            replayed.take_in(&record);
            if replayed.world.head() == lost.head() {
                assert_eq!(replayed.world, lost, "replay gives the world that was lived in");
            }
        }
        replayed.witness.agrees_with(&replayed.world);
        if !self.snapshots.is_empty() {
            let snapshot = self.chance.index(self.snapshots.len());
            let mut recovered: World = rmp_serde::from_slice(&self.snapshots[snapshot]).expect("what was saved loads");
            for record in self.log.read_after(recovered.head()) {
                recovered.apply(&record).expect("the tail fits the snapshot");
            }
            assert_eq!(recovered, replayed.world, "snapshot and tail give what replay gives");
            self.met.insert("recovered from a snapshot");
            replayed.world = recovered;
        }
        self.writers[who] = replayed;
    }

    fn catch_up(&mut self, who: usize) {
        let writer = &mut self.writers[who];
        for record in self.log.read_after(writer.world.head()) {
            writer.take_in(&record);
        }
        writer.witness.agrees_with(&writer.world);
    }

    fn take_snapshot(&mut self, who: usize) {
        self.snapshots.push(rmp_serde::to_vec_named(&self.writers[who].world).expect("a world is plain data"));
    }

    /// The follower hears what was published since, or loses patience and reads the log before it is told.
    fn follow(&mut self) {
        if self.chance.one_in(3) {
            self.follower.read(&self.log);
        }
        for records in self.published.drain(..) {
            if self.follower.hear(&records, &self.log) {
                self.met.insert("follower read the log");
            }
        }
    }

    /// What was decided may happen in the order given, nothing ends before its time, and nothing is left overdue.
    fn assert_as_it_should(&mut self, mut witness: Witness, records: &[Record], after: &World) {
        for record in records {
            assert_eq!(record.ts, self.now);
            self.note(&record.event, &witness);
            if let Event::Session { session, what: SessionEvent::Ending { reason: EndReason::Inactive } } =
                &record.event
            {
                let due = witness.deadline(*session).expect("only a session with a limit is inactive");
                assert!(due <= self.now.0, "{session} has until {due}, and it is {:?}", self.now);
                self.met.insert("inactive");
                if records.len() > 1 {
                    self.met.insert("settled beside another event");
                }
            }
            witness.fold(record);
        }
        witness.agrees_with(after);
        witness.assert_nobody_works_in_vain();
        assert!(witness.next_deadline().is_none_or(|due| due > self.now.0), "nothing is overdue after a step");
        assert_eq!(settle(after, self.now), [], "it is quiet after a step");
    }
}

impl Shell {
    /// What a history must have met at least once, over all seeds, besides refusals.
    fn note(&mut self, event: &Event, before: &Witness) {
        let met = match event {
            Event::Agent { what: AgentEvent::Created { parent: Some(parent), .. }, .. } if before.waits(*parent) => {
                "fork had waited"
            }
            Event::Agent { what: AgentEvent::ForkRequested { .. }, .. } => "fork waits",
            Event::Agent { what: AgentEvent::ForkCancelled { .. }, .. } => "fork cancelled",
            Event::Agent { what: AgentEvent::Hatched, .. } => "hatched",
            Event::Agent { what: AgentEvent::Expired, .. } => "expired",
            Event::Agent { what: AgentEvent::Reparented { .. }, .. } => "moved up",
            Event::Mail(MailEvent::Read { .. }) => "mail read",
            Event::Agent { what: AgentEvent::Slept, .. } => "slept",
            Event::Agent { what: AgentEvent::Woken { .. }, .. } => "woken",
            Event::Agent { what: AgentEvent::RunRequested { .. }, .. } => "run asked for",
            Event::Run { what: RunEvent::Waiting, .. } => "waiting",
            Event::Run { what: RunEvent::Started { .. }, .. } => "run started",
            Event::Run { what: RunEvent::MessageHeard { .. }, .. } => "heard",
            Event::Run { what: RunEvent::CallTaken { .. }, .. } => "call taken",
            Event::Run { what: RunEvent::Silent { .. }, .. } => "silent",
            Event::Run { what: RunEvent::Stopping { why: StopWhy::Session }, .. } => "stopped with its session",
            Event::Run { what: RunEvent::Stopping { why: StopWhy::Killed }, .. } => "stopped with its agent",
            Event::Run { what: RunEvent::Stopping { why: StopWhy::User }, .. } => "stopped by the user",
            Event::Run { what: RunEvent::Parked { .. }, .. } => "parked",
            Event::Run { what: RunEvent::Resumed, .. } => "resumed",
            Event::Run { what: RunEvent::Ended { .. }, .. } => "run over",
            Event::Session { .. }
            | Event::Agent { .. }
            | Event::Message(_)
            | Event::Mail(_)
            | Event::Run { .. }
            | Event::Budget(_)
            | Event::Status(_)
            | Event::Request(_)
            | Event::Question { .. } => return,
            quest => panic!("nobody has a quest here: {quest:?}"),
        };
        self.met.insert(met);
    }
}

impl Writer {
    fn take_in(&mut self, record: &Record) {
        self.world.apply(record).expect("what was written is possible");
        self.witness.fold(record);
    }
}

/// A session ends by itself once at most, an egg expires once, no fork waits behind another, and a run goes on once, is silent
/// once and is stopped once: so there is a bound to what can settle. Looked at before the core does it, because a step that never returns cannot name its seed.
fn assert_settling_ends(mut world: World, mut witness: Witness, now: Timestamp) {
    let mut left = world.session_count() + 5 * world.agent_count();
    loop {
        let events = settle(&world, now);
        if events.is_empty() {
            return;
        }
        assert!(left > 0, "settling goes on and on: {events:?}");
        left -= 1;
        for event in events {
            let session = witness.session_of(&event);
            let record = Record { id: world.head().next(), ts: now, session, event };
            world.apply(&record).expect("what settles is possible");
            witness.fold(&record);
        }
    }
}
