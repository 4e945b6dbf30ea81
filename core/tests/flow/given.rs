//! The words in which the other files speak: `given(history).when(command).then(events)`.

use hatchery_core::agent::MessageKind;
use hatchery_core::session::EndReason;
use hatchery_core::{AgentId, Command, Event, EventId, Record, Refusal, SessionId, Stream, Timestamp, World, step};

pub const S: SessionId = SessionId::from_bytes([1; 16]);
pub const T: SessionId = SessionId::from_bytes([2; 16]);
pub const A: AgentId = AgentId::from_bytes([3; 16]);
pub const B: AgentId = AgentId::from_bytes([4; 16]);

/// A world and the time in it.
#[derive(Clone)]
pub struct Given {
    pub world: World,
    now: Timestamp,
}

/// What came of a command, and the world before it.
pub struct When {
    before: World,
    after: World,
    now: Timestamp,
    answer: Result<Vec<Record>, Refusal>,
}

/// A history that happened at time 0.
pub fn given<const N: usize>(history: [Event; N]) -> Given {
    let start = Given { world: World::default(), now: Timestamp(0) };
    history.into_iter().fold(start, Given::and)
}

impl Given {
    pub fn and(mut self, event: Event) -> Self {
        let record = enveloped(&self.world, event, self.now);
        self.world.apply(&record).expect("a test's history is possible");
        self
    }

    pub fn at(self, ms: i64) -> Self {
        Self { now: Timestamp(ms), ..self }
    }

    pub fn when(self, command: Command) -> When {
        let mut after = self.world.clone();
        let answer = step(&mut after, &command, self.now);
        When { before: self.world, after, now: self.now, answer }
    }
}

impl When {
    /// Exactly these events, in this order, in a right envelope; and the world is where they lead.
    #[track_caller]
    pub fn then<const N: usize>(self, events: [Event; N]) -> Given {
        let mut world = self.before;
        let expected = events.map(|event| {
            let record = enveloped(&world, event, self.now);
            world.apply(&record).expect("a test expects what is possible");
            record
        });
        assert_eq!(self.answer.as_deref(), Ok(expected.as_slice()));
        assert_eq!(self.after, world);
        Given { world, now: self.now }
    }

    /// The refusal, and not a trace of the command.
    #[track_caller]
    pub fn refused(self, refusal: Refusal) -> Given {
        assert_eq!(self.answer, Err(refusal));
        assert_eq!(self.after, self.before);
        Given { world: self.before, now: self.now }
    }
}

/// The next record of a world. The session is the one that the event names, else the one that its agent is in.
pub fn enveloped(world: &World, event: Event, ts: Timestamp) -> Record {
    let session = match (&event, event.stream()) {
        (Event::AgentCreated { session, .. } | Event::AgentWoken { session, .. }, _) => *session,
        (_, Stream::Session(session)) => Some(session),
        (_, Stream::Agent(agent)) => world.agent(agent).and_then(|agent| agent.session()),
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

pub fn create(agent: AgentId, session: Option<SessionId>) -> Command {
    Command::CreateAgent { agent, parent: None, name: None, session }
}

pub fn rename(agent: AgentId, name: &str) -> Command {
    Command::RenameAgent { agent, name: Some(name.into()) }
}

pub fn wake(agent: AgentId, session: Option<SessionId>) -> Command {
    Command::WakeAgent { agent, session }
}

pub fn end_agent(agent: AgentId) -> Command {
    Command::EndAgent { agent, remark: None }
}

pub fn say(agent: AgentId, content: &str) -> Command {
    Command::AddMessage { agent, kind: MessageKind::User, content: content.into() }
}

pub fn started(session: SessionId) -> Event {
    Event::SessionStarted { session, label: None, idle_ms: None }
}

pub fn started_idle(session: SessionId, ms: u64) -> Event {
    Event::SessionStarted { session, label: None, idle_ms: Some(ms) }
}

pub fn ending(session: SessionId, reason: EndReason) -> Event {
    Event::SessionEnding { session, reason }
}

pub fn ended(session: SessionId, reason: EndReason) -> Event {
    Event::SessionEnded { session, reason }
}

pub fn created(agent: AgentId, session: Option<SessionId>) -> Event {
    Event::AgentCreated { agent, parent: None, name: None, session }
}

pub fn renamed(agent: AgentId, name: &str) -> Event {
    Event::AgentRenamed { agent, name: Some(name.into()) }
}

pub fn slept(agent: AgentId) -> Event {
    Event::AgentSlept { agent }
}

pub fn woken(agent: AgentId, session: Option<SessionId>) -> Event {
    Event::AgentWoken { agent, session }
}

pub fn dead(agent: AgentId) -> Event {
    Event::AgentEnded { agent, remark: None }
}

pub fn said(agent: AgentId, content: &str) -> Event {
    Event::MessageAdded { agent, kind: MessageKind::User, content: content.into() }
}
