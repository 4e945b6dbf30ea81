//! Processes that play agents, with everything real taken out: what they are told, what they write, what their harness keeps on
//! disk. They outlive the daemon. In a bad temper they crash, hang, fail and lose things; in the calm they are honest.

use crate::chance::Chance;
use hatchery_core::output::{FailureKind, Output, TurnEnd, TurnResult};
use hatchery_core::run::{AttemptId, DeliveryKind, Process, wire_name};
use hatchery_core::usage::{Money, Usage};
use hatchery_core::{EventId, Exit};
use std::collections::{BTreeMap, BTreeSet};

/// A harness and the conversations that it keeps.
#[derive(Default)]
pub struct Harness {
    pub harness_sessions: BTreeMap<String, Knowledge>,
    /// Old versions count from nothing in each process; new ones go on counting, and say what is new.
    old: bool,
    names: u64,
    pids: u32,
}

#[derive(Clone, Default)]
pub struct Knowledge {
    /// The messages that it contains.
    pub knows: BTreeSet<EventId>,
    /// It has been told something of its own, besides what it was copied with.
    told: bool,
    total: u64,
}

/// How a conversation is entered.
#[derive(Clone)]
pub enum Opening {
    New,
    Resumed(String),
    Forked(String),
}

/// What a process is told.
#[derive(Clone, PartialEq)]
pub enum Order {
    Say { id: EventId, what: DeliveryKind, words: BTreeSet<EventId> },
    End,
    Stop,
}

/// A run folder and the process that works in it.
pub struct Child {
    pub of: AttemptId,
    pub process: Process,
    pub session: String,
    pub copy_of: Option<String>,
    pub inbox: Vec<Order>,
    /// What it wrote; one output is one byte.
    pub spool: Vec<Output>,
    /// How many calls it has written down.
    pub calls: u64,
    /// There is a process, or was.
    pub started: bool,
    pub exit: Option<Exit>,
    /// All that it said.
    pub said: Vec<String>,
    /// What it used: each request is told when it is made, and again by the results.
    pub used: u64,
    pub hung: bool,
    opening: Opening,
    /// What it says of our tools.
    tools: &'static str,
    /// Its conversation, once it has one.
    harness_session: Option<Knowledge>,
    obeyed: usize,
    in_turn: bool,
    failed: bool,
    since_last: u64,
    total: u64,
}

/// What a process says of our tools when they answer it.
const CONNECTED: &str = "connected";

impl Harness {
    pub fn new(old: bool) -> Self {
        Self { old, ..Self::default() }
    }

    pub fn launch(&mut self, of: AttemptId, opening: Opening, chance: &mut Chance, calm: bool) -> Child {
        self.names += 1;
        self.pids += 1;
        let session = match &opening {
            Opening::Resumed(session) => session.clone(),
            Opening::New | Opening::Forked(_) => format!("c-{}", self.names),
        };
        let tools = match chance.below(12) {
            _ if calm => CONNECTED,
            0 => "pending",
            1 => "missing",
            _ => CONNECTED,
        };
        Child {
            of,
            process: Process { pid: self.pids, began: self.names },
            session,
            copy_of: if let Opening::Forked(from) = &opening { Some(from.clone()) } else { None },
            inbox: Vec::new(),
            spool: Vec::new(),
            calls: 0,
            started: false,
            exit: (!calm && chance.one_in(30)).then_some(Exit::NotStarted),
            said: Vec::new(),
            used: 0,
            hung: false,
            opening,
            tools,
            harness_session: None,
            obeyed: 0,
            in_turn: false,
            failed: false,
            since_last: 0,
            total: 0,
        }
    }
}

impl Child {
    pub fn lives(&self) -> bool {
        self.started && self.exit.is_none()
    }

    /// Does one thing, or nothing.
    pub fn act(&mut self, harness: &mut Harness, chance: &mut Chance, calm: bool) {
        if self.exit.is_some() {
            return;
        }
        if !self.started {
            self.started = true;
            return self.open(harness);
        }
        if self.inbox.contains(&Order::Stop) {
            if chance.one_in(2) && self.in_turn {
                self.say(chance);
            }
            return self.leave(harness, Exit::Signal(15));
        }
        if self.hung {
            return;
        }
        match chance.below(60) {
            0 if !calm => self.hung = true,
            1..=2 if !calm => {
                let ends = [Exit::Signal(9), Exit::Unknown, Exit::LostWithMachine, Exit::Code(0)];
                // What was said last may not be on disk.
                if chance.one_in(3) {
                    self.harness_session = None;
                    harness.harness_sessions.remove(&self.session);
                }
                self.leave(harness, ends[chance.index(ends.len())]);
            }
            _ if self.in_turn => self.work(chance, calm, harness.old),
            // Often enough that some end such a turn, and leave, before they hear what waits for them.
            3..=6 if !calm && self.harness_session.as_ref().is_some_and(|harness_session| harness_session.told) => {
                self.begin_turn()
            }
            _ => self.listen(harness),
        }
        if let Some(harness_session) = &self.harness_session {
            harness.harness_sessions.insert(self.session.clone(), harness_session.clone());
        }
    }

    fn open(&mut self, harness: &Harness) {
        self.harness_session = match &self.opening {
            Opening::New => Some(Knowledge::default()),
            Opening::Resumed(session) => harness.harness_sessions.get(session).cloned(),
            Opening::Forked(from) => harness
                .harness_sessions
                .get(from)
                .map(|harness_session| Knowledge { told: false, ..harness_session.clone() }),
        };
        if self.harness_session.is_none() {
            let end = TurnEnd { result: TurnResult::SessionUnknown, ..TurnEnd::default() };
            self.spool.push(Output::TurnEnded(end));
            self.exit = Some(Exit::Code(1));
        }
    }

    /// In a turn: it speaks, uses tools, asks us for something, hears more, obeys, and ends its turn in one way or another.
    fn work(&mut self, chance: &mut Chance, calm: bool, old: bool) {
        match (self.inbox.get(self.obeyed).cloned(), chance.below(12)) {
            (Some(Order::Say { id, what: DeliveryKind::Interrupt, .. }), _) => {
                self.obeyed += 1;
                self.spool.push(Output::Answered { request: wire_name(id), problem: None });
                self.end_turn(old, TurnEnd { result: TurnResult::Interrupted, ..TurnEnd::default() });
            }
            (Some(Order::Say { id, words, .. }), 0..=3) => self.hear(id, words),
            (_, 4) => {
                let (id, input) = ("t".to_owned(), "{}".to_owned());
                self.spool.push(Output::ToolUse { id: id.clone(), name: "ls".into(), input });
                if !chance.one_in(3) {
                    self.spool.push(Output::ToolResult { id, content: "ok".into(), is_error: false });
                }
            }
            (_, 5) => self.spool.push(Output::Thinking { text: "hm".into() }),
            (_, 6) if !calm => self.calls += 1,
            (_, 7) if !calm => {
                let kinds = [
                    FailureKind::Overloaded,
                    FailureKind::RateLimited,
                    FailureKind::Other,
                    FailureKind::Unauthorised,
                    FailureKind::OutOfCredit,
                    FailureKind::Unavailable,
                    FailureKind::Refused,
                ];
                let kind = kinds[chance.index(kinds.len())];
                let result = TurnResult::Failed { kind, detail: String::new() };
                self.end_turn(old, TurnEnd { result, ..TurnEnd::default() });
            }
            (_, 8..=9) => self.end_turn(old, TurnEnd::default()),
            _ => self.say(chance),
        }
    }

    /// Between two turns: it takes the next order.
    fn listen(&mut self, harness: &mut Harness) {
        let Some(order) = self.inbox.get(self.obeyed).cloned() else { return };
        self.obeyed += 1;
        match order {
            Order::Say { id, what: DeliveryKind::Interrupt, .. } => {
                self.spool.push(Output::Answered { request: wire_name(id), problem: None });
            }
            Order::Say { id, words, .. } => {
                self.begin_turn();
                self.hear(id, words);
            }
            Order::End => self.leave(harness, Exit::Code(i32::from(self.failed))),
            Order::Stop => unreachable!("it is obeyed at once"),
        }
    }

    fn begin_turn(&mut self) {
        self.spool.push(match self.tools {
            CONNECTED => Output::Ready { session: self.session.clone(), model: None, version: None, tools: Vec::new() },
            other => Output::NotReady { why: other.into() },
        });
        self.spool.push(Output::TurnStarted);
        self.in_turn = true;
    }

    /// Nothing is said to a conversation that it contains already.
    fn hear(&mut self, id: EventId, words: BTreeSet<EventId>) {
        self.obeyed = self
            .inbox
            .iter()
            .position(|order| matches!(order, Order::Say { id: it, .. } if *it == id))
            .map_or(self.obeyed, |at| at + 1);
        let harness_session = self.harness_session.as_mut().expect("one that hears has a conversation");
        let twice: Vec<_> = harness_session.knows.intersection(&words).collect();
        assert!(twice.is_empty(), "{:?} hears {twice:?} twice", self.of);
        harness_session.knows.extend(words);
        harness_session.told = true;
        self.spool.push(Output::Heard { id: wire_name(id) });
    }

    fn say(&mut self, chance: &mut Chance) {
        let text = format!("{}.{}.{}", self.of.run, self.of.attempt, self.said.len());
        self.said.push(text.clone());
        self.spool.push(Output::Text { text });
        let cost = chance.below(5);
        if cost > 0 {
            self.spool.push(Output::Used { usage: usage(cost), context: None });
        }
        self.used += cost;
        self.total += cost;
        self.since_last += cost;
        self.harness_session.iter_mut().for_each(|harness_session| harness_session.total += cost);
    }

    fn end_turn(&mut self, old: bool, end: TurnEnd) {
        self.in_turn = false;
        self.failed = !end.result.is_ok();
        let harness_session = self.harness_session.as_mut().expect("one that works has a conversation");
        let (total, since_last) = match old {
            true => (self.total, None),
            false => (harness_session.total, Some(usage(self.since_last))),
        };
        self.since_last = 0;
        self.spool.push(Output::TurnEnded(TurnEnd { total: usage(total), since_last, ..end }));
    }

    fn leave(&mut self, harness: &mut Harness, exit: Exit) {
        self.exit = Some(exit);
        if let Some(harness_session) = self.harness_session.take() {
            harness.harness_sessions.insert(self.session.clone(), harness_session);
        }
    }
}

pub fn usage(amount: u64) -> Usage {
    Usage { cost: Money { nanodollars: amount }, input_tokens: amount, ..Usage::default() }
}
