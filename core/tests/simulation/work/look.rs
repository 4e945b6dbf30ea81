//! The supervisor: it compares what is wanted with the run folder, and reports what it finds, in the order of a real one.

use super::{Crash, Work, key};
use crate::child::{Child, Opening, Order};
use hatchery_core::harness::{self, Capabilities};
use hatchery_core::run::{AttemptId, Delivery, DeliveryKind, DesiredRun, DesiredState, RunState, opening};
use hatchery_core::{Address, AgentId, Command, Exit, Output, plan};
use std::collections::BTreeSet;

impl Work {
    /// One look of a supervisor, in the order in which a real one looks.
    pub(super) fn look_at_one(&mut self) -> Result<(), Crash> {
        let plan = plan(&self.world);
        if let Some(session) = plan.close.first() {
            self.submit(&Command::CloseSession { session: *session })?.expect("it was in the plan");
        }
        if plan.runs.is_empty() {
            return Ok(());
        }
        let at = self.chance.index(plan.runs.len());
        let (agent, wanted) = plan.runs.iter().nth(at).expect("below its length");
        self.look(*agent, wanted)
    }

    pub(super) fn look(&mut self, agent: AgentId, wanted: &DesiredRun) -> Result<(), Crash> {
        let of = AttemptId { agent, run: wanted.run, attempt: wanted.attempt };
        // It may be over since the plan was made.
        if self.world.run(agent).is_none_or(|run| run.attempt_id(agent) != of || !run.is_open()) {
            return Ok(());
        }
        match self.folders.get(&key(of)) {
            None => self.see_to_start(of, wanted),
            Some(child) if !child.started => match child.exit {
                Some(exit) => self.report(Command::ReportExit { of, exit, evidence: None }),
                None => Ok(()),
            },
            Some(_) => self.see_to(of, wanted),
        }
    }

    fn see_to_start(&mut self, of: AttemptId, wanted: &DesiredRun) -> Result<(), Crash> {
        if wanted.state == DesiredState::Stopped {
            return self.report(Command::ReportExit { of, exit: Exit::NotStarted, evidence: None });
        }
        let others = self.folders.values().filter(|child| child.of.agent == of.agent && child.exit.is_none());
        assert_eq!(others.count(), 0, "{of:?} would be the second process of its agent");
        let opening = match opening(&self.world, of.agent, Capabilities::ALL) {
            harness::Opening::Resume { session, .. } => Opening::Resumed(session),
            harness::Opening::Fork { from, .. } => Opening::Forked(from),
            harness::Opening::New => Opening::New,
        };
        let child = self.harness.launch(of, opening, &mut self.chance, self.calm);
        let used = self.folders.values().any(|it| it.exit.is_none() && it.session == child.session);
        assert!(!used, "{} would have two processes", child.session);
        self.folders.insert(key(of), child);
        Ok(())
    }

    fn see_to(&mut self, of: AttemptId, wanted: &DesiredRun) -> Result<(), Crash> {
        // Before the output is read: whoever has ended has said everything.
        let ended = self.folder(of).exit;
        let run = self.world.run(of.agent).expect("it is wanted");
        if matches!(run.state, RunState::Starting | RunState::Stopping { process: None, .. }) {
            if run.state != RunState::Starting {
                self.met.insert("spawned after the stop");
            }
            let child = self.folder(of);
            let (process, session, copy_of) = (child.process.clone(), child.session.clone(), child.copy_of.clone());
            self.report(Command::ReportSpawn {
                of,
                process,
                session: Some(session),
                copy_of,
                capabilities: Capabilities::ALL,
            })?;
        }
        self.tell(of, &wanted.state);
        self.take_calls(of)?;
        loop {
            let taken = self
                .world
                .run(of.agent)
                .filter(|run| run.attempt_id(of.agent) == of)
                .map_or(0, |run| run.attempt.spooled);
            let from = usize::try_from(taken).expect("a short spool");
            let left = self.folder(of).spool.len() - from;
            if left == 0 {
                break;
            }
            let count = 1 + self.chance.index(left);
            let outputs: Vec<Output> = self.folder(of).spool[from..from + count].to_vec();
            self.report(Command::TakeOutput { of, from: taken, upto: taken + count as u64, outputs })?;
            if ended.is_none() && self.chance.one_in(2) {
                return Ok(());
            }
        }
        match ended {
            Some(exit) => self.report(Command::ReportExit { of, exit, evidence: Some("stderr".into()) }),
            None => Ok(()),
        }
    }

    /// Writes into the inbox what is not in it yet.
    fn tell(&mut self, of: AttemptId, desired: &DesiredState) {
        let told = &self.folder(of).inbox;
        let orders = match desired {
            DesiredState::Stopped => Vec::from_iter((!told.contains(&Order::Stop)).then_some(Order::Stop)),
            DesiredState::Running { last: true, .. } => {
                Vec::from_iter((!told.contains(&Order::End)).then_some(Order::End))
            }
            DesiredState::Running { .. } => {
                let known = |id| told.iter().any(|order| matches!(order, Order::Say { id: it, .. } if *it == id));
                let conversation = self.world.conversation(of.agent).expect("it is run");
                let new = conversation.waiting.iter().filter(|delivery| !known(delivery.id));
                new.map(|delivery| self.order(of, *delivery)).collect()
            }
        };
        self.folders.get_mut(&key(of)).expect("it is there").inbox.extend(orders);
    }

    fn order(&self, of: AttemptId, delivery: Delivery) -> Order {
        let words = match delivery.what {
            DeliveryKind::Message => [delivery.id].into(),
            DeliveryKind::Nudge | DeliveryKind::Reminder | DeliveryKind::Interrupt => BTreeSet::new(),
            DeliveryKind::Briefing => {
                let copy = self.folder(of).copy_of.is_some();
                let said = self.messages(of.agent).into_iter();
                let told = said.filter(|said| said.id < delivery.id && !(copy && said.agent != of.agent));
                told.map(|said| said.id).collect()
            }
        };
        Order::Say { id: delivery.id, what: delivery.what, words }
    }

    /// The calls that are written down. Every second one is refused.
    fn take_calls(&mut self, of: AttemptId) -> Result<(), Crash> {
        loop {
            let run = self.world.run(of.agent).filter(|run| run.attempt_id(of.agent) == of && run.process().is_some());
            let Some(number) = run.map(|run| run.attempt.calls + 1) else { return Ok(()) };
            if number > self.folder(of).calls {
                return Ok(());
            }
            let from = Address::Agent(of.agent);
            let ask = match number % 2 {
                0 => Command::TakeMail { to: from, from: None },
                _ => Command::SendMail { from, to: Address::Human, body: String::new() },
            };
            self.report(Command::TakeCall { of, number, ask: Ok(Box::new(ask)) })?;
        }
    }

    pub(super) fn folder(&self, of: AttemptId) -> &Child {
        &self.folders[&key(of)]
    }
}
