//! What can have happened, in the past tense, and how it is written down.
//!
//! A [`Record`] is an event with its envelope: `id`, `ts`, `sessionId`. Written, it is one JSON object; the store keeps the
//! object without the id, because the id is the row's key. Events are for good: a variant may gain optional fields, but none
//! is renamed or removed, and `tests/golden` holds every line that was ever released.

use crate::agent::{Birth, Origin};
use crate::ask::About;
use crate::history::{MessageKind, SourceId};
use crate::mail::Address;
use crate::outcome::{Cause, Exit};
use crate::output::{Output, TurnEnd};
use crate::quest::{Merge, NextAction, QuestSpec, Requirements, Signal, StepId, StepPlan, StepProgress, Verdict};
use crate::run::{AttemptId, ForeignSession, Process, RunSpec, StopWhy};
use crate::session::EndReason;
use crate::usage::{Money, Usage};
use crate::{AgentId, QuestId, Refusal, SessionId, Timestamp};
use serde::de::IntoDeserializer as _;
use serde::de::value::StrDeserializer;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::Write as _;

/// The place of an event in the log: 1, 2, 3, … without a gap. 0 is the place before the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(transparent)]
pub struct EventId(pub u64);

impl EventId {
    /// Before the first event.
    pub const START: Self = Self(0);

    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The place before this one.
    #[must_use]
    pub fn before(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Something that has happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    SessionStarted {
        session: SessionId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        label: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        idle_ms: Option<u64>,
    },
    /// The intent, recorded before the act.
    SessionEnding {
        session: SessionId,
        reason: EndReason,
    },
    SessionEnded {
        session: SessionId,
        reason: EndReason,
    },
    /// Agent 0, or one that was forked.
    AgentCreated {
        agent: AgentId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<AgentId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<Origin>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<SessionId>,
        /// Set for an egg: it expires then, unless it has spoken.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hatch_by: Option<Timestamp>,
    },
    /// A fork that waits for the tools that run in the parent.
    ForkRequested {
        agent: AgentId,
        birth: Birth,
    },
    /// The parent was killed before its tools were done.
    ForkCancelled {
        agent: AgentId,
        child: AgentId,
    },
    /// An egg has spoken for the first time.
    AgentHatched {
        agent: AgentId,
    },
    /// An egg has not spoken in time.
    AgentExpired {
        agent: AgentId,
    },
    AgentRenamed {
        agent: AgentId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// Its session ended; its history stays.
    AgentSlept {
        agent: AgentId,
    },
    AgentWoken {
        agent: AgentId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<SessionId>,
    },
    AgentKilled {
        agent: AgentId,
        /// Who killed it, when it was another agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<AgentId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remark: Option<String>,
    },
    /// Its parent was killed; it has another one now, and keeps what it inherited.
    AgentReparented {
        agent: AgentId,
        parent: AgentId,
    },
    MessageAdded {
        agent: AgentId,
        kind: MessageKind,
        content: String,
        /// For a rewind: the message to which it goes back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<EventId>,
        /// For an imported message: its id there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        source_id: Option<SourceId>,
    },
    MailSent {
        from: Address,
        to: Address,
        body: String,
    },
    /// Given to one who waited for it.
    MailDelivered {
        to: Address,
        mail: EventId,
    },
    MailRead {
        to: Address,
        mail: EventId,
    },
    /// It goes on with a conversation that was begun elsewhere.
    HarnessSessionAdopted {
        agent: AgentId,
        #[serde(flatten)]
        harness_session: ForeignSession,
    },
    /// A process is wanted that plays the agent.
    RunRequested {
        agent: AgentId,
        run: u32,
        spec: RunSpec,
    },
    /// There is one.
    RunSpawned {
        #[serde(flatten)]
        of: AttemptId,
        process: Process,
        /// The harness's own name for the conversation that it shall have.
        session: String,
        /// That of the agent it was forked from, when this one begins as its copy.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        copy_of: Option<String>,
    },
    /// It has shown that our tools answer it.
    RunStarted {
        #[serde(flatten)]
        of: AttemptId,
        session: String,
    },
    /// A process has heard what was to be said to it.
    MessageHeard {
        #[serde(flatten)]
        of: AttemptId,
        message: EventId,
    },
    /// Something that a process said and that is no part of its agent's history.
    OutputNoted {
        #[serde(flatten)]
        of: AttemptId,
        output: Output,
    },
    /// What a process wrote is taken in up to this byte.
    OutputTaken {
        #[serde(flatten)]
        of: AttemptId,
        upto: u64,
    },
    /// Something that an agent asked of us by a tool was taken in; what it led to follows right after this.
    CallTaken {
        #[serde(flatten)]
        of: AttemptId,
        /// The place of the call among those of the attempt: 1, 2, 3, …
        number: u64,
        /// How many events follow from it.
        led_to: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refused: Option<Refused>,
    },
    TurnStarted {
        #[serde(flatten)]
        of: AttemptId,
    },
    TurnEnded {
        #[serde(flatten)]
        of: AttemptId,
        end: TurnEnd,
        spent: Usage,
    },
    /// Nothing was heard of a process for longer than its run allows.
    RunSilent {
        #[serde(flatten)]
        of: AttemptId,
        since: Timestamp,
    },
    /// Its turn shall be broken off.
    RunInterrupted {
        #[serde(flatten)]
        of: AttemptId,
    },
    /// The intent, recorded before the act.
    RunStopping {
        #[serde(flatten)]
        of: AttemptId,
        why: StopWhy,
    },
    /// It waits for a better moment, which costs it nothing.
    RunParked {
        #[serde(flatten)]
        of: AttemptId,
        cause: Cause,
        /// When it goes on by itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
        detail: String,
    },
    /// A process ended without having done its work; there will be another one.
    RunCrashed {
        #[serde(flatten)]
        of: AttemptId,
        cause: Cause,
        detail: String,
        exit: Exit,
        /// The harness has lost the conversation: the next attempt begins a new one.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        forgotten: bool,
    },
    /// It has used up a budget. It finishes its turn; nothing more is begun.
    BudgetReached {
        #[serde(flatten)]
        of: AttemptId,
    },
    /// A ceiling for an agent, or for all agents on each day.
    BudgetSet {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentId>,
        /// None takes it away.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<Money>,
    },
    /// The human is asked something; the agent waits for the answer.
    QuestionAsked {
        agent: AgentId,
        about: About,
        text: String,
    },
    QuestionAnswered {
        agent: AgentId,
        question: EventId,
        answer: String,
    },
    /// Nobody needs the answer any more.
    QuestionWithdrawn {
        agent: AgentId,
        question: EventId,
    },
    /// The next attempt.
    RunResumed {
        #[serde(flatten)]
        of: AttemptId,
    },
    RunEnded {
        #[serde(flatten)]
        of: AttemptId,
        cause: Cause,
        detail: String,
        exit: Exit,
    },
    QuestCreated {
        quest: QuestId,
        quest_spec: Box<QuestSpec>,
        /// What its agents may use in all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget: Option<Money>,
    },
    /// Nothing more is begun; those at work are stopped, and go on later.
    QuestPaused {
        quest: QuestId,
    },
    QuestResumed {
        quest: QuestId,
    },
    /// Ended by a person, as it is.
    QuestAbandoned {
        quest: QuestId,
    },
    QuestCompleted {
        quest: QuestId,
    },
    QuestBudgetSet {
        quest: QuestId,
        /// None takes it away.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<Money>,
    },
    /// A person has named another command.
    WardChanged {
        quest: QuestId,
        command: String,
        /// How long it may take, if the quest had no ward before; otherwise as long as that one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit_ms: Option<u64>,
    },
    /// A person wants no ward any more.
    WardRemoved {
        quest: QuestId,
    },
    RequirementsSet {
        quest: QuestId,
        requirements: Requirements,
    },
    /// A plan, or another one: what is complete or under way stays as it is.
    StepsPlanned {
        quest: QuestId,
        steps: Vec<StepPlan>,
        /// Nobody when it came with the quest.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<AgentId>,
        /// What was said of the plan where it was made, when it came with the quest.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
    },
    /// Something is to be done for it as soon as there is a slot.
    StepQueued {
        quest: QuestId,
        step: StepId,
        next: NextAction,
        progress: StepProgress,
    },
    /// An agent works on it.
    StepBegun {
        quest: QuestId,
        step: StepId,
        agent: AgentId,
        role: String,
    },
    /// What its agent says about it. Heeded when the agent is gone.
    SignalGiven {
        quest: QuestId,
        step: StepId,
        #[serde(flatten)]
        of: AttemptId,
        signal: Signal,
    },
    WardBegun {
        quest: QuestId,
        step: StepId,
        number: u32,
    },
    WardEnded {
        quest: QuestId,
        step: StepId,
        number: u32,
        verdict: Verdict,
        /// The file that has its output.
        artifact: String,
    },
    MergeBegun {
        quest: QuestId,
        step: StepId,
        number: u32,
    },
    MergeEnded {
        quest: QuestId,
        step: StepId,
        number: u32,
        merge: Merge,
    },
    /// It waits for a person, and then does this.
    StepWaits {
        quest: QuestId,
        step: StepId,
        progress: StepProgress,
        then: NextAction,
    },
    /// Its agent waits for a better moment.
    StepParked {
        quest: QuestId,
        step: StepId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
    StepFailed {
        quest: QuestId,
        step: StepId,
        why: String,
        /// What another try would begin with.
        then: NextAction,
    },
    StepCompleted {
        quest: QuestId,
        step: StepId,
        summary: String,
    },
    /// A new plan does without it.
    StepDropped {
        quest: QuestId,
        step: StepId,
    },
}

/// A "no" that is on the log, because whoever was told it may ask again what the answer was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Refused {
    pub code: String,
    pub message: String,
    pub hint: String,
}

impl From<&Refusal> for Refused {
    fn from(refusal: &Refusal) -> Self {
        Self { code: refusal.code().into(), message: refusal.to_string(), hint: refusal.hint() }
    }
}

/// The stream that an event belongs to. Conflicts are detected per stream: has another writer added an event to it?
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stream {
    Session(SessionId),
    Agent(AgentId),
    Mail(Address),
    Quest(QuestId),
    /// What there is one of among all agents: the root, and the agent of a conversation from elsewhere.
    Registry,
}

impl fmt::Display for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session(id) => write!(f, "session:{id}"),
            Self::Agent(id) => write!(f, "agent:{id}"),
            Self::Mail(address) => write!(f, "mail:{address}"),
            Self::Quest(id) => write!(f, "quest:{id}"),
            Self::Registry => f.write_str("registry"),
        }
    }
}

impl Event {
    pub fn stream(&self) -> Stream {
        match *self {
            Self::SessionStarted { session, .. }
            | Self::SessionEnding { session, .. }
            | Self::SessionEnded { session, .. } => Stream::Session(session),
            // In the parent's: killing the parent and forking from it must not happen side by side.
            Self::AgentCreated { parent, .. } => parent.map_or(Stream::Registry, Stream::Agent),
            Self::ForkRequested { agent, .. }
            | Self::ForkCancelled { agent, .. }
            | Self::AgentHatched { agent }
            | Self::AgentExpired { agent }
            | Self::AgentRenamed { agent, .. }
            | Self::AgentSlept { agent }
            | Self::AgentWoken { agent, .. }
            | Self::AgentKilled { agent, .. }
            | Self::AgentReparented { agent, .. }
            | Self::MessageAdded { agent, .. }
            | Self::RunRequested { agent, .. }
            | Self::QuestionAsked { agent, .. }
            | Self::QuestionAnswered { agent, .. }
            | Self::QuestionWithdrawn { agent, .. } => Stream::Agent(agent),
            Self::BudgetSet { agent, .. } => agent.map_or(Stream::Registry, Stream::Agent),
            // Not in the agent's: one conversation must not be given to two agents side by side.
            Self::HarnessSessionAdopted { .. } => Stream::Registry,
            Self::RunSpawned { of, .. }
            | Self::RunStarted { of, .. }
            | Self::MessageHeard { of, .. }
            | Self::OutputNoted { of, .. }
            | Self::OutputTaken { of, .. }
            | Self::CallTaken { of, .. }
            | Self::TurnStarted { of }
            | Self::TurnEnded { of, .. }
            | Self::RunSilent { of, .. }
            | Self::RunInterrupted { of }
            | Self::RunStopping { of, .. }
            | Self::RunParked { of, .. }
            | Self::RunCrashed { of, .. }
            | Self::BudgetReached { of }
            | Self::RunResumed { of }
            | Self::RunEnded { of, .. } => Stream::Agent(of.agent),
            Self::QuestCreated { quest, .. }
            | Self::QuestPaused { quest }
            | Self::QuestResumed { quest }
            | Self::QuestAbandoned { quest }
            | Self::QuestCompleted { quest }
            | Self::QuestBudgetSet { quest, .. }
            | Self::WardChanged { quest, .. }
            | Self::WardRemoved { quest }
            | Self::RequirementsSet { quest, .. }
            | Self::StepsPlanned { quest, .. }
            | Self::StepQueued { quest, .. }
            | Self::StepBegun { quest, .. }
            | Self::SignalGiven { quest, .. }
            | Self::WardBegun { quest, .. }
            | Self::WardEnded { quest, .. }
            | Self::MergeBegun { quest, .. }
            | Self::MergeEnded { quest, .. }
            | Self::StepWaits { quest, .. }
            | Self::StepParked { quest, .. }
            | Self::StepFailed { quest, .. }
            | Self::StepCompleted { quest, .. }
            | Self::StepDropped { quest, .. } => Stream::Quest(quest),
            Self::MailSent { to, .. } | Self::MailDelivered { to, .. } | Self::MailRead { to, .. } => Stream::Mail(to),
        }
    }

    /// The event that this one speaks of by its id. A batch that speaks of itself cannot be renumbered.
    pub fn refers_to(&self) -> Option<EventId> {
        match *self {
            Self::AgentCreated { origin, .. } => origin.and_then(|origin| origin.upto),
            Self::MessageAdded { to, .. } => to,
            Self::MailDelivered { mail, .. } | Self::MailRead { mail, .. } => Some(mail),
            Self::MessageHeard { message, .. } => Some(message),
            Self::QuestionAnswered { question, .. } | Self::QuestionWithdrawn { question, .. } => Some(question),
            Self::SessionStarted { .. }
            | Self::SessionEnding { .. }
            | Self::SessionEnded { .. }
            | Self::ForkRequested { .. }
            | Self::ForkCancelled { .. }
            | Self::AgentHatched { .. }
            | Self::AgentExpired { .. }
            | Self::AgentRenamed { .. }
            | Self::AgentSlept { .. }
            | Self::AgentWoken { .. }
            | Self::AgentKilled { .. }
            | Self::AgentReparented { .. }
            | Self::MailSent { .. }
            | Self::HarnessSessionAdopted { .. }
            | Self::RunRequested { .. }
            | Self::RunSpawned { .. }
            | Self::RunStarted { .. }
            | Self::OutputNoted { .. }
            | Self::OutputTaken { .. }
            | Self::CallTaken { .. }
            | Self::TurnStarted { .. }
            | Self::TurnEnded { .. }
            | Self::RunSilent { .. }
            | Self::RunInterrupted { .. }
            | Self::RunStopping { .. }
            | Self::RunParked { .. }
            | Self::RunCrashed { .. }
            | Self::BudgetReached { .. }
            | Self::BudgetSet { .. }
            | Self::QuestionAsked { .. }
            | Self::RunResumed { .. }
            | Self::RunEnded { .. }
            | Self::QuestCreated { .. }
            | Self::QuestPaused { .. }
            | Self::QuestResumed { .. }
            | Self::QuestAbandoned { .. }
            | Self::QuestCompleted { .. }
            | Self::QuestBudgetSet { .. }
            | Self::WardChanged { .. }
            | Self::WardRemoved { .. }
            | Self::RequirementsSet { .. }
            | Self::StepsPlanned { .. }
            | Self::StepQueued { .. }
            | Self::StepBegun { .. }
            | Self::SignalGiven { .. }
            | Self::WardBegun { .. }
            | Self::WardEnded { .. }
            | Self::MergeBegun { .. }
            | Self::MergeEnded { .. }
            | Self::StepWaits { .. }
            | Self::StepParked { .. }
            | Self::StepFailed { .. }
            | Self::StepCompleted { .. }
            | Self::StepDropped { .. } => None,
        }
    }
}

/// An event and its envelope: one entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub id: EventId,
    pub ts: Timestamp,
    /// The session in which it happened, if any.
    pub session: Option<SessionId>,
    pub event: Event,
}

/// A line of the log that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("event {id} cannot be read: {source}")]
pub struct Unreadable {
    pub id: EventId,
    #[source]
    pub source: serde_json::Error,
}

impl Record {
    /// The object as the store keeps it: everything but the id.
    pub fn body(&self) -> String {
        let body = Body { ts: self.ts, session: self.session, event: std::borrow::Cow::Borrowed(&self.event) };
        serde_json::to_string(&body).expect("an event is plain data")
    }

    pub fn read(id: EventId, body: &str) -> Result<Self, Unreadable> {
        let read = match body.contains(MESSAGE_MARK) {
            true => serde_json::from_str::<MessageBody>(body).map(|read| (read.ts, read.session, read.event())),
            false => {
                serde_json::from_str::<Body<'_>>(body).map(|read| (read.ts, read.session, read.event.into_owned()))
            }
        };
        match read {
            Ok((ts, session, event)) => Ok(Self { id, ts, session, event }),
            Err(source) => Err(Unreadable { id, source }),
        }
    }
}

/// Writes the whole object, as clients see it, from an id and a stored body.
pub fn write_wire(out: &mut Vec<u8>, id: EventId, body: &str) {
    write!(out, "{{\"id\":{id},").expect("a vector takes what it is given");
    out.extend_from_slice(body.strip_prefix('{').unwrap_or(body).as_bytes());
}

#[derive(Serialize, Deserialize)]
struct Body<'a> {
    ts: Timestamp,
    #[serde(rename = "sessionId")]
    session: Option<SessionId>,
    #[serde(flatten)]
    event: std::borrow::Cow<'a, Event>,
}

/// Inside a text the quotes would be escaped, so this is the type and nothing else.
const MESSAGE_MARK: &str = r#""type":"message_added""#;

/// A message's kind stands in front of its text, so this is found early and at the right place, for the same reason.
const KIND_MARK: &str = r#""kind":""#;

/// The kind of a stored message, or nothing for what is no message. For those who hand a body on as it is and need not know more.
pub fn message_kind(id: EventId, body: &str) -> Result<Option<MessageKind>, Unreadable> {
    if !body.contains(MESSAGE_MARK) {
        return Ok(None);
    }
    let kind = body.split_once(KIND_MARK).and_then(|(_, rest)| rest.split_once('"')).map_or("", |(kind, _)| kind);
    let kind: StrDeserializer<'_, serde_json::Error> = kind.into_deserializer();
    MessageKind::deserialize(kind).map(Some).map_err(|source| Unreadable { id, source })
}

/// Most of a log is messages. Read by their fields they cost far less than as a flattened, tagged enum, which
/// has to put everything aside until it has seen the tag.
#[derive(Deserialize)]
struct MessageBody {
    ts: Timestamp,
    #[serde(rename = "sessionId")]
    session: Option<SessionId>,
    agent: AgentId,
    kind: MessageKind,
    content: String,
    #[serde(default)]
    to: Option<EventId>,
    #[serde(default)]
    source_id: Option<SourceId>,
}

impl MessageBody {
    fn event(self) -> Event {
        let Self { agent, kind, content, to, source_id, .. } = self;
        Event::MessageAdded { agent, kind, content, to, source_id }
    }
}
