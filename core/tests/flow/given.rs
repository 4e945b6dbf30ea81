//! The words in which the other files speak: `given(history).when(command).then(events)`.

use hatchery_core::agent::{Birth, Origin};
use hatchery_core::event::{AgentEvent, MailEvent, MessageEvent, SeatEvent, SessionEvent};
use hatchery_core::history::{HistoryMessage, RewindTo, mark_interrupted, put_in_order, ranges};
use hatchery_core::session::EndReason;
use hatchery_core::{
    Address, AgentId, Command, Event, EventId, MessageKind, Record, Refusal, SessionId, Stream, Timestamp, World, step,
};

pub const S: SessionId = SessionId::from_bytes([1; 16]);
pub const T: SessionId = SessionId::from_bytes([2; 16]);
/// Agent 0.
pub const R: AgentId = AgentId::from_bytes([3; 16]);
pub const A: AgentId = AgentId::from_bytes([4; 16]);
pub const B: AgentId = AgentId::from_bytes([5; 16]);
pub const C: AgentId = AgentId::from_bytes([6; 16]);
pub const D: AgentId = AgentId::from_bytes([7; 16]);
pub const NOBODY: AgentId = AgentId::from_bytes([9; 16]);

/// A world, the log that led to it, and the time in it.
#[derive(Clone)]
pub struct Given {
    pub world: World,
    log: Vec<Record>,
    now: Timestamp,
}

/// What came of a command, and what was before it.
pub struct When {
    before: Given,
    after: World,
    answer: Result<Vec<Record>, Refusal>,
}

/// Before the first event.
pub fn nothing() -> Given {
    Given { world: World::default(), log: Vec::new(), now: Timestamp(0) }
}

/// Agent 0 is there (event 1), and then a history that happened at time 0.
pub fn given<const N: usize>(history: [Event; N]) -> Given {
    history.into_iter().fold(nothing().and(founded(R)), Given::and)
}

impl Given {
    pub fn and(mut self, event: Event) -> Self {
        let record = enveloped(&self.world, event, self.now);
        self.world.apply(&record).expect("a test's history is possible");
        self.log.push(record);
        self
    }

    pub fn at(self, ms: i64) -> Self {
        Self { now: Timestamp(ms), ..self }
    }

    pub fn when(self, command: Command) -> When {
        let mut after = self.world.clone();
        let answer = step(&mut after, &command, self.now);
        When { before: self, after, answer }
    }

    /// Nothing is left but the log as it was written.
    pub fn restarted(self) -> Self {
        let mut world = World::default();
        for record in &self.log {
            let read = Record::read(record.id, &record.body()).expect("what was written can be read");
            world.apply(&read).expect("what was lived through is possible");
        }
        assert_eq!(world, self.world);
        Self { world, ..self }
    }

    /// An agent's history, read from the log by its ranges.
    pub fn replay(&self, agent: AgentId) -> Vec<HistoryMessage> {
        let parts = ranges(&self.world, agent);
        let mut said: Vec<HistoryMessage> =
            parts.iter().flat_map(|part| self.read(part.agent, part.after, part.upto)).collect();
        put_in_order(&self.world, &mut said, |said| said.id);
        mark_interrupted(&mut said);
        said
    }

    /// The ids of an agent's history.
    pub fn ids(&self, agent: AgentId) -> Vec<u64> {
        self.replay(agent).iter().map(|said| said.id.0).collect()
    }

    /// What reaches the model.
    pub fn heard(&self, agent: AgentId) -> Vec<String> {
        let said = self.replay(agent).into_iter().filter(HistoryMessage::reaches_model);
        said.map(|said| said.content).collect()
    }

    fn read(&self, of: AgentId, after: EventId, upto: EventId) -> impl Iterator<Item = HistoryMessage> {
        self.log.iter().filter(move |record| after < record.id && record.id <= upto).filter_map(move |record| {
            let Event::Message(MessageEvent::Added { agent, kind, content, source_id, .. }) = record.event.clone()
            else {
                return None;
            };
            let said = HistoryMessage { id: record.id, agent, kind, content, source_id, interrupted: false };
            (agent == of).then_some(said)
        })
    }
}

impl When {
    /// Exactly these events, in this order, in a right envelope; and the world is where they lead.
    #[track_caller]
    pub fn then<const N: usize>(self, events: [Event; N]) -> Given {
        let head = self.before.log.len();
        let expected = events.into_iter().fold(self.before, Given::and);
        assert_eq!(self.answer.as_deref(), Ok(&expected.log[head..]));
        assert_eq!(self.after, expected.world);
        expected
    }

    /// What it led to, whatever that was.
    #[track_caller]
    pub fn answer(self) -> Given {
        let records = self.answer.expect("it is not refused");
        records.into_iter().fold(self.before, |it, record| it.and(record.event))
    }

    /// Whatever events these are: the rest of the test looks at the world.
    #[track_caller]
    pub fn done(self) -> Given {
        let records = self.answer.expect("it was not refused");
        let it = records.into_iter().map(|record| record.event).fold(self.before, Given::and);
        assert_eq!(self.after, it.world);
        it
    }

    /// Whether it was not refused.
    pub fn answer_is_ok(self) -> bool {
        self.answer.is_ok()
    }

    /// The refusal, and not a trace of the command.
    #[track_caller]
    pub fn refused(self, refusal: Refusal) -> Given {
        assert_eq!(self.answer, Err(refusal));
        assert_eq!(self.after, self.before.world);
        self.before
    }
}

/// The next record of a world. The session is the one that the event names, else the one that its agent is in.
pub fn enveloped(world: &World, event: Event, ts: Timestamp) -> Record {
    let of_agent = |agent| world.agent(agent).and_then(|it| it.session());
    let session = match (&event, event.stream()) {
        (
            Event::Agent { what: AgentEvent::Created { session, .. }, .. }
            | Event::Agent { what: AgentEvent::Woken { session }, .. },
            _,
        ) => *session,
        (Event::Mail(MailEvent::Sent { from: Address::Agent(sender), .. }), _) => of_agent(*sender),
        (_, Stream::Session(session)) => Some(session),
        (_, Stream::Agent(agent)) => of_agent(agent),
        (Event::Seat(SeatEvent::Opened { session, .. }), _) => Some(*session),
        (_, Stream::Seats) => world.seats().session().map(|open| open.id),
        (_, Stream::Mail(_) | Stream::Registry | Stream::Quest(_) | Stream::Status | Stream::Request(_)) => None,
    };
    Record { id: EventId(world.head().0 + 1), ts, session, event }
}

pub fn start(session: SessionId) -> Command {
    Command::StartSession { session, label: None, idle_ms: None }
}

pub fn end(session: SessionId, reason: EndReason) -> Command {
    Command::EndSession { session, reason }
}

pub fn close(session: SessionId) -> Command {
    Command::CloseSession { session }
}

pub fn found(agent: AgentId) -> Command {
    Command::FoundRegistry { agent, name: None }
}

/// Forks agent 0, which has said nothing.
pub fn create(agent: AgentId, session: Option<SessionId>) -> Command {
    bear(R, Birth { session, ..Birth::of(agent) })
}

pub fn fork(parent: AgentId, child: AgentId) -> Command {
    bear(parent, Birth::of(child))
}

pub fn fork_at(parent: AgentId, child: AgentId, at: u64) -> Command {
    Command::Fork { parent, at: Some(EventId(at)), birth: Birth::of(child) }
}

pub fn bear(parent: AgentId, birth: Birth) -> Command {
    Command::Fork { parent, at: None, birth }
}

pub fn rename(agent: AgentId, name: &str) -> Command {
    Command::RenameAgent { agent, name: Some(name.into()) }
}

pub fn wake(agent: AgentId, session: Option<SessionId>) -> Command {
    Command::WakeAgent { agent, session }
}

pub fn kill(agent: AgentId) -> Command {
    Command::Kill { agent, cascade: false, by: None, remark: None }
}

pub fn cascade(agent: AgentId) -> Command {
    Command::Kill { agent, cascade: true, by: None, remark: None }
}

pub fn kill_by(by: AgentId, agent: AgentId, cascade: bool) -> Command {
    Command::Kill { agent, cascade, by: Some(by), remark: None }
}

pub fn say(agent: AgentId, content: &str) -> Command {
    add(agent, MessageKind::User, content)
}

pub fn add(agent: AgentId, kind: MessageKind, content: &str) -> Command {
    Command::AddMessage { agent, kind, content: content.into() }
}

pub fn rewind(agent: AgentId, to: RewindTo) -> Command {
    Command::Rewind { agent, to }
}

pub fn send(from: Address, to: Address, body: &str) -> Command {
    Command::SendMail { from, to, body: body.into() }
}

pub fn take(to: Address) -> Command {
    Command::TakeMail { to, from: None }
}

pub fn take_from(to: Address, from: Address) -> Command {
    Command::TakeMail { to, from: Some(from) }
}

pub fn read(to: Address) -> Command {
    Command::ReadMail { to, mail: None }
}

pub fn read_this(to: Address, mail: u64) -> Command {
    Command::ReadMail { to, mail: Some(EventId(mail)) }
}

pub fn started(session: SessionId) -> Event {
    Event::Session { session, what: SessionEvent::Started { label: None, idle_ms: None } }
}

pub fn started_idle(session: SessionId, ms: u64) -> Event {
    Event::Session { session, what: SessionEvent::Started { label: None, idle_ms: Some(ms) } }
}

pub fn ending(session: SessionId, reason: EndReason) -> Event {
    Event::Session { session, what: SessionEvent::Ending { reason } }
}

pub fn ended(session: SessionId, reason: EndReason) -> Event {
    Event::Session { session, what: SessionEvent::Ended { reason } }
}

pub fn founded(agent: AgentId) -> Event {
    Event::Agent {
        agent,
        what: AgentEvent::Created {
            parent: None,
            origin: None,
            name: None,
            provider: None,
            model: None,
            session: None,
            hatch_by: None,
        },
    }
}

/// Forked from agent 0 before it had said anything.
pub fn created(agent: AgentId, session: Option<SessionId>) -> Event {
    born(R, R, None, Birth { session, ..Birth::of(agent) })
}

/// Forked from `parent`, whose last message was `upto`.
pub fn forked(parent: AgentId, child: AgentId, upto: Option<u64>) -> Event {
    born(parent, parent, upto, Birth::of(child))
}

/// An egg of agent 0, laid at time 0.
pub fn laid(agent: AgentId, hatch_ms: u64) -> Event {
    born(R, R, None, Birth { hatch_ms: Some(hatch_ms), ..Birth::of(agent) })
}

/// A birth at time 0.
pub fn born(parent: AgentId, origin: AgentId, upto: Option<u64>, birth: Birth) -> Event {
    Event::Agent {
        agent: birth.agent,
        what: AgentEvent::Created {
            parent: Some(parent),
            origin: Some(Origin { agent: origin, upto: upto.map(EventId) }),
            name: birth.name,
            provider: birth.provider,
            model: birth.model,
            session: birth.session,
            hatch_by: birth.hatch_ms.map(|ms| Timestamp(0).plus_ms(ms)),
        },
    }
}

pub fn fork_requested(agent: AgentId, child: AgentId) -> Event {
    Event::Agent { agent, what: AgentEvent::ForkRequested { birth: Birth::of(child) } }
}

pub fn fork_cancelled(agent: AgentId, child: AgentId) -> Event {
    Event::Agent { agent, what: AgentEvent::ForkCancelled { child } }
}

pub fn hatched(agent: AgentId) -> Event {
    Event::Agent { agent, what: AgentEvent::Hatched }
}

pub fn expired(agent: AgentId) -> Event {
    Event::Agent { agent, what: AgentEvent::Expired }
}

pub fn renamed(agent: AgentId, name: &str) -> Event {
    Event::Agent { agent, what: AgentEvent::Renamed { name: Some(name.into()) } }
}

pub fn slept(agent: AgentId) -> Event {
    Event::Agent { agent, what: AgentEvent::Slept }
}

pub fn woken(agent: AgentId, session: Option<SessionId>) -> Event {
    Event::Agent { agent, what: AgentEvent::Woken { session } }
}

pub fn dead(agent: AgentId) -> Event {
    Event::Agent { agent, what: AgentEvent::Killed { by: None, remark: None } }
}

pub fn moved(agent: AgentId, parent: AgentId) -> Event {
    Event::Agent { agent, what: AgentEvent::Reparented { parent } }
}

pub fn said(agent: AgentId, content: &str) -> Event {
    added(agent, MessageKind::User, content)
}

pub fn added(agent: AgentId, kind: MessageKind, content: &str) -> Event {
    Event::Message(MessageEvent::Added { agent, kind, content: content.into(), to: None, source_id: None })
}

pub fn cleared(agent: AgentId) -> Event {
    added(agent, MessageKind::Clear, "")
}

pub fn marked(agent: AgentId, label: &str) -> Event {
    added(agent, MessageKind::Mark, label)
}

pub fn called(agent: AgentId) -> Event {
    added(agent, MessageKind::ToolCall, "ls")
}

pub fn answered(agent: AgentId) -> Event {
    added(agent, MessageKind::ToolResult, "ok")
}

pub fn rewound(agent: AgentId, to: u64) -> Event {
    Event::Message(MessageEvent::Added {
        agent,
        kind: MessageKind::Rewind,
        content: String::new(),
        to: Some(EventId(to)),
        source_id: None,
    })
}

pub fn sent(from: Address, to: Address, body: &str) -> Event {
    Event::Mail(MailEvent::Sent { from, to, body: body.into() })
}

pub fn delivered(to: Address, mail: u64) -> Event {
    Event::Mail(MailEvent::Delivered { to, mail: EventId(mail) })
}

pub fn opened(to: Address, mail: u64) -> Event {
    Event::Mail(MailEvent::Read { to, mail: EventId(mail) })
}
