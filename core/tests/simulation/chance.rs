//! Everything random, from one seed. It knows nothing of the world, so much of what it asks for is wrong or late.

pub use crate::dice::Chance;

use hatchery_core::agent::{Birth, MAX_NAME_BYTES, MAX_REMARK_BYTES};
use hatchery_core::harness::Capabilities;
use hatchery_core::history::{ImportedItem, RewindTo, SourceId};
use hatchery_core::output::{FailureKind, TurnEnd, TurnResult};
use hatchery_core::request::Request;
use hatchery_core::run::{AttemptId, MAX_RETRIES, MIN_STALL_MS, Process, Run, RunSpec, wire_name};
use hatchery_core::session::{EndReason, MAX_IDLE_MS, MAX_LABEL_BYTES, MIN_IDLE_MS};
use hatchery_core::{Address, AgentId, Command, EventId, Exit, Fingerprint, MessageKind, Output, RequestId, SessionId};

/// Few enough ids that commands meet, and enough that some are unknown for long.
const SESSIONS: u64 = 6;
/// Agents are numbered as a tree of this many branches, from agent 0 down, because an id is drawn for one fork of one parent.
const BRANCHES: u64 = 2;
const ROOT: u64 = 1;
/// About as many as a history has.
const EVENTS: u64 = 60;

impl Chance {
    /// How far the clock moves: mostly on, sometimes not at all, now and then back.
    pub fn tick_ms(&mut self) -> i64 {
        let ms = i64::try_from(self.below(400)).expect("below 400");
        match self.below(10) {
            0 => 0,
            1 => -5 * ms,
            _ => ms,
        }
    }

    pub fn command(&mut self) -> Command {
        let (session, agent) = (self.session(), self.agent());
        match self.below(54) {
            0..=2 => Command::StartSession { session, label: self.text(MAX_LABEL_BYTES), idle_ms: self.idle_ms() },
            3..=4 => Command::EndSession { session, reason: self.reason() },
            5 => Command::CloseSession { session },
            6..=13 => Command::Fork { parent: agent, at: self.maybe_event(), birth: self.birth(agent) },
            14 => Command::RenameAgent { agent, name: self.text(MAX_NAME_BYTES) },
            15..=17 => Command::WakeAgent { agent, session: self.maybe_session() },
            18..=19 => {
                let by = match self.below(4) {
                    0 => Some(self.agent()),
                    1 => Some(self.child(agent)),
                    _ => None,
                };
                Command::Kill { agent, cascade: self.one_in(2), by, remark: self.text(MAX_REMARK_BYTES) }
            }
            20..=29 => Command::AddMessage { agent, kind: self.kind(), content: self.content() },
            30 => Command::Rewind { agent, to: self.rewind_to() },
            31 => Command::ImportHistory { items: self.history() },
            32..=34 => {
                let (from, to, body) = (self.address(), self.address(), self.content());
                // Not by chance, so that the histories of all seeds stay what they are.
                let has_id = body.is_empty();
                let mail = Command::SendMail { from, to, body };
                if has_id { once(session, agent, mail) } else { mail }
            }
            35..=36 => {
                let from = self.one_in(3).then(|| self.address());
                Command::TakeMail { to: self.address(), from }
            }
            37..=38 => Command::ReadMail { to: self.address(), mail: self.maybe_event() },
            39..=42 => Command::StartRun { agent, spec: self.spec() },
            43..=45 => {
                let spec = self.one_in(2).then(|| self.spec());
                Command::Say { agent, text: self.content(), spec }
            }
            46 => Command::InterruptRun { agent },
            47 => Command::StopRun { agent },
            48..=50 => self.stray_report(agent),
            _ => Command::Tick,
        }
    }

    /// Agent 0, as every daemon asks for it when it starts.
    pub fn found(&mut self) -> Command {
        Command::FoundRegistry { agent: numbered(ROOT), name: None }
    }

    /// Wakes a sleeper, in one way or another.
    pub fn wake(&mut self, agent: AgentId) -> Command {
        match self.one_in(2) {
            true => Command::WakeAgent { agent, session: self.maybe_session() },
            false => Command::StartRun { agent, spec: self.spec() },
        }
    }

    fn birth(&mut self, parent: AgentId) -> Birth {
        let prompt = self.one_in(3).then(|| self.content());
        let session = self.one_in(2).then(|| self.session());
        let hatch_ms = self.one_in(3).then(|| 10 * self.below(100));
        let run = self.one_in(4).then(|| Box::new(self.spec()));
        Birth { name: self.text(MAX_NAME_BYTES), prompt, session, hatch_ms, run, ..Birth::of(self.child(parent)) }
    }

    fn spec(&mut self) -> RunSpec {
        RunSpec {
            harness: "scripted".into(),
            host: "mill".into(),
            folder: None,
            model: None,
            script: None,
            stays: self.one_in(3),
            stall_ms: if self.one_in(20) { 1 } else { MIN_STALL_MS + self.below(2_000) },
            kill_stuck: self.one_in(3),
            retries: if self.one_in(20) { MAX_RETRIES + 1 } else { u32::from(self.one_in(2)) },
            parks: self.one_in(2),
            signals: false,
            permissions: None,
        }
    }

    /// What a shell may find of an attempt that is wanted. In the calm it finds that nothing can be done.
    pub fn reports(&mut self, of: AttemptId, run: &Run, calm: bool) -> Vec<Command> {
        if calm {
            return vec![Command::ReportExit { of, exit: Exit::NotStarted, evidence: None }];
        }
        if run.process().is_none() {
            // Not by chance, so that the histories of all seeds stay what they are.
            return match run.requested.0 % 4 == 0 {
                true => vec![Command::ReportWaiting { of }, self.spawn(of)],
                false => vec![self.spawn(of)],
            };
        }
        match self.below(5) {
            0 => vec![Command::ReportExit { of, exit: self.exit(), evidence: None }],
            1 => {
                let to = Address::Agent(of.agent);
                let ask = Ok(Box::new(Command::TakeMail { to, from: None }));
                vec![Command::TakeCall { of, number: run.attempt.calls + 1, ask }]
            }
            _ => {
                let outputs: Vec<Output> = (0..=self.below(4)).flat_map(|_| self.outputs()).collect();
                vec![Command::TakeOutput {
                    of,
                    from: run.attempt.spooled,
                    upto: run.attempt.spooled + outputs.len() as u64,
                    outputs,
                }]
            }
        }
    }

    /// From a process that may be long gone, or may never have been.
    fn stray_report(&mut self, agent: AgentId) -> Command {
        let of = AttemptId { agent, run: 1, attempt: 1 + u32::from(self.one_in(3)) };
        match self.below(4) {
            0 => self.spawn(of),
            1 => Command::ReportExit { of, exit: self.exit(), evidence: None },
            2 => Command::TakeCall { of, number: 1, ask: Ok(Box::new(Command::Tick)) },
            _ => {
                let outputs = self.outputs();
                Command::TakeOutput { of, from: 0, upto: outputs.len() as u64, outputs }
            }
        }
    }

    fn spawn(&mut self, of: AttemptId) -> Command {
        let process = Process { pid: 1, began: self.below(100) };
        Command::ReportSpawn { of, process, session: Some("c".into()), copy_of: None, capabilities: Capabilities::ALL }
    }

    fn exit(&mut self) -> Exit {
        let exits = [Exit::Code(0), Exit::Code(1), Exit::Signal(9), Exit::LostWithMachine, Exit::Unknown];
        exits[self.index(exits.len())]
    }

    /// What one line of a process says. The line with which a turn begins also says whether the process can work.
    fn outputs(&mut self) -> Vec<Output> {
        let ready = match self.one_in(6) {
            true => Output::NotReady { why: "its tools are failed".into() },
            false => Output::Ready { session: "c".into(), model: None, version: None, tools: Vec::new() },
        };
        let output = match self.below(9) {
            0..=1 => return vec![ready, Output::TurnStarted],
            2 => Output::Text { text: self.content() },
            3 => Output::ToolUse { id: "t".into(), name: "ls".into(), input: "{}".into() },
            4 => Output::ToolResult { id: "t".into(), content: String::new(), is_error: false },
            5..=6 => Output::Heard { id: wire_name(self.event()) },
            7 => Output::Thinking { text: String::new() },
            _ => {
                let failed = |kind| TurnResult::Failed { kind, detail: String::new() };
                let results = [TurnResult::Ok, failed(FailureKind::Overloaded), failed(FailureKind::Unauthorised)];
                let result = results[self.index(results.len())].clone();
                Output::TurnEnded(TurnEnd { result, ..TurnEnd::default() })
            }
        };
        vec![output]
    }

    /// A family of two and a word from each; the second may inherit from the first, in the same breath.
    fn history(&mut self) -> Vec<ImportedItem> {
        let parent = self.agent();
        let child = self.child(parent);
        let upto = self.maybe_event();
        let line = |agent, kind| {
            let source_id = SourceId::Number(7);
            ImportedItem::Message { agent, kind, content: String::new(), to: None, source_id }
        };
        let kinds = [self.kind(), self.kind()];
        vec![line(parent, kinds[0]), ImportedItem::Agent { agent: child, parent, upto }, line(child, kinds[1])]
    }

    fn rewind_to(&mut self) -> RewindTo {
        match self.below(3) {
            0 => RewindTo::LastMark,
            1 => RewindTo::Mark(self.content()),
            _ => RewindTo::Message(self.event()),
        }
    }

    fn event(&mut self) -> EventId {
        EventId(self.below(EVENTS))
    }

    fn maybe_event(&mut self) -> Option<EventId> {
        self.one_in(4).then(|| self.event())
    }

    fn address(&mut self) -> Address {
        match self.below(3) {
            0 => Address::Human,
            _ => Address::Agent(self.agent()),
        }
    }

    fn content(&mut self) -> String {
        if self.one_in(4) { String::new() } else { "\"why\"\n\0 é".to_owned() }
    }

    fn session(&mut self) -> SessionId {
        SessionId::from_bytes(u128::from(self.below(SESSIONS)).to_be_bytes())
    }

    fn maybe_session(&mut self) -> Option<SessionId> {
        (!self.one_in(5)).then(|| self.session())
    }

    /// Rather one near the root: the others may not be there yet.
    fn agent(&mut self) -> AgentId {
        let mut agent = numbered(ROOT);
        while self.below(5) < 3 {
            agent = self.child(agent);
        }
        agent
    }

    fn child(&mut self, parent: AgentId) -> AgentId {
        let number = u128::from_be_bytes(*parent.as_bytes());
        let branch = u128::from(self.below(BRANCHES));
        AgentId::from_bytes(number.wrapping_mul(BRANCHES.into()).wrapping_add(branch).to_be_bytes())
    }

    /// Inactivity is left out: only settling finds it, so every `Inactive` on the log is its work.
    fn reason(&mut self) -> EndReason {
        match self.below(3) {
            0 => EndReason::Completed,
            1 => EndReason::User,
            _ => EndReason::Failed,
        }
    }

    /// Tools more often than the rest, because forks wait for them.
    fn kind(&mut self) -> MessageKind {
        use MessageKind::*;
        let rest = [Clear, System, User, Assistant, Mark, Rewind, AgentKilled, Command, Fork, Usage, Interrupted];
        match self.below(4) {
            0 => ToolCall,
            1 => ToolResult,
            _ => rest[self.index(rest.len())],
        }
    }

    fn idle_ms(&mut self) -> Option<u64> {
        match self.below(8) {
            0..=2 => None,
            3 => Some(MIN_IDLE_MS - 1),
            4 => Some(MAX_IDLE_MS),
            _ => Some(MIN_IDLE_MS + self.below(2_000)),
        }
    }

    /// Mostly none or a name that others bear too; sometimes as long as may be, sometimes longer.
    fn text(&mut self, max_bytes: usize) -> Option<String> {
        match self.below(12) {
            0 => Some("x".repeat(max_bytes)),
            1 => Some("x".repeat(max_bytes + 1)),
            2..=5 => Some("Cael".to_owned()),
            _ => None,
        }
    }
}

fn numbered(agent: u64) -> AgentId {
    AgentId::from_bytes(u128::from(agent).to_be_bytes())
}

/// A request with an id of the caller. There are few ids, so that they meet, also with another content.
fn once(session: SessionId, agent: AgentId, command: Command) -> Command {
    let id = RequestId::from_bytes(*session.as_bytes());
    let fingerprint = Fingerprint::from_bytes([agent.as_bytes()[15] % 2; 16]);
    Command::Once { request: Request { id, fingerprint }, command: Box::new(command) }
}
