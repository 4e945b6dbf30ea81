//! Every command. The sender of a command chooses the ids of new things, because the core has no randomness.

use crate::agent::Birth;
use crate::event::{FieldEdit, Refused, SeatEvent};
use crate::harness::Capabilities;
use crate::history::{ImportedItem, MessageKind, RewindTo};
use crate::mail::Address;
use crate::outcome::Exit;
use crate::output::Output;
use crate::quest::{Merge, QuestSpec, QuestStart, Requirements, Signal, StepId, StepPlan, Verdict};
use crate::request::Request;
use crate::run::{AttemptId, ForeignSession, Process, RunSpec};
use crate::seat::{EggOrder, Identity, LeadOrder, Position, Rising, SeatDocument};
use crate::session::EndReason;
use crate::status::foreign::InboxEdits;
use crate::status::{IdeaChange, Json, StatusChange};
use crate::usage::Money;
use crate::{AgentId, EventId, QuestId, SessionId, Stream};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    StartSession {
        session: SessionId,
        label: Option<String>,
        idle_ms: Option<u64>,
    },
    /// Requests the end of a session. The request is recorded first; then the runner carries it out.
    EndSession {
        session: SessionId,
        reason: EndReason,
    },
    /// The runner reports that no agent of an ending session is at work any more.
    CloseSession {
        session: SessionId,
    },
    /// Registers agent 0.
    FoundRegistry {
        agent: AgentId,
        name: Option<String>,
    },
    /// Creates an agent that inherits the history of another, up to now or up to an earlier message.
    Fork {
        parent: AgentId,
        at: Option<EventId>,
        birth: Birth,
    },
    RenameAgent {
        agent: AgentId,
        name: Option<String>,
    },
    WakeAgent {
        agent: AgentId,
        session: Option<SessionId>,
    },
    Kill {
        agent: AgentId,
        cascade: bool,
        /// The agent that kills. None if the user does.
        by: Option<AgentId>,
        remark: Option<String>,
    },
    AddMessage {
        agent: AgentId,
        kind: MessageKind,
        content: String,
    },
    Rewind {
        agent: AgentId,
        to: RewindTo,
    },
    ImportHistory {
        items: Vec<ImportedItem>,
    },
    SendMail {
        from: Address,
        to: Address,
        body: String,
    },
    /// Delivers the oldest queued mail to a reader that waits, perhaps only mail of one sender.
    TakeMail {
        to: Address,
        from: Option<Address>,
    },
    /// Reads the oldest unread mail, or the given one.
    ReadMail {
        to: Address,
        mail: Option<EventId>,
    },
    /// Gives an agent a conversation that was started outside of Hatchery. The agent's runs continue this conversation.
    AdoptHarnessSession {
        agent: AgentId,
        harness_session: ForeignSession,
        /// The name that the agent gets.
        name: Option<String>,
    },
    /// Requests a process for the agent.
    StartRun {
        agent: AgentId,
        spec: RunSpec,
    },
    /// Sends a message to an agent. If the agent has no open run, `spec` says how to run it.
    Say {
        agent: AgentId,
        text: String,
        spec: Option<RunSpec>,
    },
    /// The runner has no place yet for the process of an attempt.
    ReportWaiting {
        of: AttemptId,
    },
    /// The runner has started a process for an attempt, or has found the running one.
    ReportSpawn {
        of: AttemptId,
        process: Process,
        /// The harness session, if it is known before the start.
        session: Option<String>,
        /// The harness session of which this one is a copy.
        copy_of: Option<String>,
        capabilities: Capabilities,
    },
    /// The output of a process from one byte position to another.
    TakeOutput {
        of: AttemptId,
        from: u64,
        upto: u64,
        outputs: Vec<Output>,
    },
    /// A tool call of an agent, or the reason why the call cannot be understood.
    TakeCall {
        of: AttemptId,
        /// The number of the call in the attempt: 1, 2, 3, …
        number: u64,
        ask: Result<Box<Command>, Refused>,
    },
    /// A process has ended, or could not be started.
    ReportExit {
        of: AttemptId,
        exit: Exit,
        /// More evidence about the exit, for people.
        evidence: Option<String>,
    },
    /// An attempt belongs to another project folder, from which the log was imported or copied. Its process cannot be reached from here.
    ReportUnreachable {
        of: AttemptId,
    },
    /// The user's answer to a question.
    AnswerQuestion {
        question: EventId,
        answer: String,
    },
    /// Removes a rule that allows tools without a question.
    RemovePermissionRule {
        rule: EventId,
    },
    /// Sets the budget of an agent, or the daily budget of all agents. None removes the budget.
    SetBudget {
        agent: Option<AgentId>,
        limit: Option<Money>,
    },
    /// Interrupts the turn of an agent.
    InterruptRun {
        agent: AgentId,
    },
    /// Requests the end of a run. The request is recorded first; then the runner carries it out.
    StopRun {
        agent: AgentId,
    },
    /// Begins a quest.
    CreateQuest {
        quest: QuestId,
        quest_spec: Box<QuestSpec>,
        budget: Option<Money>,
        start: QuestStart,
    },
    PauseQuest {
        quest: QuestId,
    },
    ResumeQuest {
        quest: QuestId,
    },
    AbandonQuest {
        quest: QuestId,
    },
    /// Sets the budget of a quest. None removes the budget.
    SetQuestBudget {
        quest: QuestId,
        limit: Option<Money>,
    },
    /// Sets another ward for a quest that has not ended. None removes the ward.
    SetWard {
        quest: QuestId,
        command: Option<String>,
        /// The time limit, if the quest has no ward yet.
        limit_ms: u64,
    },
    /// Retries a failed step.
    RetryStep {
        quest: QuestId,
        step: StepId,
        /// Use a new agent, which does not know the conversation of the previous one.
        fresh: bool,
    },
    /// An agent sets the requirements of its quest.
    SetRequirements {
        agent: AgentId,
        requirements: Requirements,
    },
    /// An agent submits the steps of its quest.
    PlanSteps {
        agent: AgentId,
        steps: Vec<StepPlan>,
    },
    /// An agent reports on its step.
    GiveSignal {
        agent: AgentId,
        step: StepId,
        signal: Signal,
    },
    /// A ward has ended, or could not start.
    ReportWard {
        quest: QuestId,
        step: StepId,
        number: u32,
        verdict: Verdict,
        artifact: String,
        /// Tracked files that the ward had changed or deleted, and that were restored.
        restored: Vec<String>,
    },
    ReportMerge {
        quest: QuestId,
        step: StepId,
        number: u32,
        merge: Merge,
        /// By-products of builds, tests and wards that were not committed.
        left_out: Vec<String>,
    },
    /// Starts a session of the seats, perhaps with the lead.
    OpenSeats {
        session: SessionId,
        /// The event to record: `SeatEvent::Opened`.
        opened: SeatEvent,
        lead: Option<Box<LeadOrder>>,
    },
    /// Creates agents in seats that are empty or expired.
    SummonSeats {
        eggs: Vec<EggOrder>,
        spec: Box<RunSpec>,
        /// The message to the lead, if the lead manages the seats.
        message: String,
        hatch_ms: u64,
    },
    /// Fills sleeping seats again.
    WakeSeats {
        seats: Vec<Rising>,
        spec: Box<RunSpec>,
        /// The messages to the lead, if the lead manages the seats.
        messages: Vec<String>,
        /// How long an agent of a seat without a soul has to choose a name.
        hatch_ms: u64,
    },
    /// The agent of a seat has chosen a name.
    RegisterSeat {
        agent: AgentId,
        position: Option<Position>,
        identity: Identity,
    },
    /// The user says something to the agent of a seat, or to the lead.
    AddressSeat {
        to: Option<Position>,
        text: String,
        speaker: String,
        lead: Box<LeadOrder>,
        /// The inbox file of an agent of the lead's team cannot be written, so the lead is asked to pass the message on.
        no_inbox: bool,
    },
    /// The agent of a seat has not read a message in its inbox file, so the lead is asked to pass the message on.
    RelayMessage {
        to: Position,
        message: EventId,
        text: String,
    },
    /// Takes an entry of the human's team inbox into the log.
    TakeReply {
        key: String,
        from: String,
        text: String,
    },
    ImportIdentities {
        documents: Vec<SeatDocument>,
    },
    /// Repeats in an event who is alive in the seats, for clients that have lost this.
    RestateSeats,
    /// Changes the status document.
    ChangeStatus {
        change: Box<StatusChange>,
    },
    /// Changes the idea inbox.
    ChangeIdeas {
        change: IdeaChange,
    },
    /// Records what another program has written into the status document.
    TakeStatusEdits {
        edits: Vec<FieldEdit>,
        /// New build events, each with the id that it gets if it has none.
        build_events: Vec<(String, Json)>,
    },
    /// Records what another program has written into the idea inbox.
    TakeInboxEdits {
        edits: InboxEdits,
    },
    /// Carries out a command whose caller has chosen a request id, unless the request was carried out before.
    Once {
        request: Request,
        command: Box<Command>,
    },
    /// Time has passed. Nothing is requested, but events may be due.
    Tick,
}

impl Command {
    /// The streams that the command names and whose state decides the answer. [`crate::rests_on`] adds the streams that the command's
    /// events change.
    pub fn reads(&self) -> Vec<Stream> {
        let mailbox = |address: &Address| match address {
            Address::Human => vec![Stream::Mail(Address::Human)],
            Address::Agent(agent) => vec![Stream::Mail(*address), Stream::Agent(*agent)],
        };
        match self {
            Self::StartSession { session, .. } | Self::EndSession { session, .. } | Self::CloseSession { session } => {
                vec![Stream::Session(*session)]
            }
            Self::FoundRegistry { .. } => vec![Stream::Registry],
            Self::Fork { parent, birth, .. } => {
                let session = birth.session.map(Stream::Session);
                [Stream::Agent(*parent), Stream::Agent(birth.agent)].into_iter().chain(session).collect()
            }
            Self::WakeAgent { agent, session } => {
                [Stream::Agent(*agent)].into_iter().chain(session.map(Stream::Session)).collect()
            }
            Self::Kill { agent, by, .. } => [Stream::Agent(*agent)].into_iter().chain(by.map(Stream::Agent)).collect(),
            Self::RenameAgent { agent, .. } | Self::AddMessage { agent, .. } | Self::Rewind { agent, .. } => {
                vec![Stream::Agent(*agent)]
            }
            Self::ImportHistory { items } => items
                .iter()
                .flat_map(|item| match item {
                    ImportedItem::Agent { agent, parent, .. } => vec![Stream::Agent(*agent), Stream::Agent(*parent)],
                    ImportedItem::Message { agent, .. } => vec![Stream::Agent(*agent)],
                })
                .collect(),
            Self::SendMail { from, to, .. } => [mailbox(from), mailbox(to)].concat(),
            Self::TakeMail { to, from } => {
                let sender = from.as_ref().map(mailbox).unwrap_or_default();
                [mailbox(to), sender].concat()
            }
            Self::ReadMail { to, .. } => mailbox(to),
            Self::AdoptHarnessSession { agent, .. } => vec![Stream::Registry, Stream::Agent(*agent)],
            Self::StartRun { agent, .. }
            | Self::Say { agent, .. }
            | Self::InterruptRun { agent }
            | Self::StopRun { agent } => vec![Stream::Agent(*agent)],
            Self::ReportWaiting { of }
            | Self::ReportSpawn { of, .. }
            | Self::TakeOutput { of, .. }
            | Self::ReportExit { of, .. }
            | Self::ReportUnreachable { of } => {
                vec![Stream::Agent(of.agent)]
            }
            // The question names the agent and the quest; the resulting events are in their streams.
            Self::AnswerQuestion { .. } => Vec::new(),
            Self::CreateQuest { quest, .. }
            | Self::PauseQuest { quest }
            | Self::ResumeQuest { quest }
            | Self::AbandonQuest { quest }
            | Self::SetQuestBudget { quest, .. }
            | Self::SetWard { quest, .. }
            | Self::RetryStep { quest, .. }
            | Self::ReportWard { quest, .. }
            | Self::ReportMerge { quest, .. } => vec![Stream::Quest(*quest)],
            // The quest is that of the agent; their events name it.
            Self::SetRequirements { agent, .. } | Self::PlanSteps { agent, .. } | Self::GiveSignal { agent, .. } => {
                vec![Stream::Agent(*agent)]
            }
            Self::RemovePermissionRule { .. } => vec![Stream::Registry],
            Self::SetBudget { agent, .. } => vec![agent.map_or(Stream::Registry, Stream::Agent)],
            Self::TakeCall { of, ask, .. } => {
                let asked = ask.as_ref().map(|command| command.reads()).unwrap_or_default();
                [Stream::Agent(of.agent)].into_iter().chain(asked).collect()
            }
            Self::OpenSeats { session, .. } => vec![Stream::Seats, Stream::Session(*session)],
            Self::SummonSeats { .. }
            | Self::WakeSeats { .. }
            | Self::AddressSeat { .. }
            | Self::RelayMessage { .. }
            | Self::TakeReply { .. }
            | Self::ImportIdentities { .. }
            | Self::RestateSeats => vec![Stream::Seats],
            Self::RegisterSeat { agent, .. } => vec![Stream::Seats, Stream::Agent(*agent)],
            Self::ChangeStatus { .. }
            | Self::ChangeIdeas { .. }
            | Self::TakeStatusEdits { .. }
            | Self::TakeInboxEdits { .. } => vec![Stream::Status],
            Self::Once { request, command } => {
                [Stream::Request(request.id)].into_iter().chain(command.reads()).collect()
            }
            Self::Tick => Vec::new(),
        }
    }
}
