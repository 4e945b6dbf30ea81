//! Every refusal: what was refused, for which id, and what to do next. A refused command leaves nothing in the log, except a refused tool
//! call, which is recorded with its refusal.

use crate::agent::{MAX_HATCH_MS, MAX_NAME_BYTES, MAX_PENDING_FORKS, MAX_REMARK_BYTES};
use crate::history::{MAX_MARK_BYTES, MAX_MESSAGE_BYTES};
use crate::mail::MAX_MAIL_BYTES;
use crate::permission::MAX_RULES;
use crate::quest::{
    MAX_REQUEST_BYTES, MAX_SLOTS, MAX_STEP_FORKS, MAX_WARD_BYTES, MAX_WARD_MS, MIN_WARD_MS, QuestCandidates, StepId,
};
use crate::roles::SignalKind;
use crate::run::{AttemptId, MAX_RETRIES, MAX_SPEC_BYTES, MAX_STALL_MS, MIN_STALL_MS};
use crate::seat::SeatRefusal;
use crate::session::{EndReason, MAX_IDLE_MS, MAX_LABEL_BYTES, MIN_IDLE_MS};
use crate::status::StatusRefusal;
use crate::{Address, AgentId, EventId, QuestId, RequestId, SessionId};

/// The code of a signal that cannot be read.
pub(crate) const BAD_SIGNAL: &str = "bad_signal";

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error(transparent)]
    Seat(SeatRefusal),
    #[error("there is no session {0}")]
    UnknownSession(SessionId),
    #[error("session {0} exists already")]
    SessionExists(SessionId),
    #[error("session {session} has ended ({reason:?})")]
    SessionOver { session: SessionId, reason: EndReason },
    #[error("session {session} is ending already ({reason:?})")]
    SessionEnding { session: SessionId, reason: EndReason },
    #[error("session {0} was not asked to end")]
    SessionNotEnding(SessionId),
    #[error("there is no agent {0}")]
    UnknownAgent(AgentId),
    #[error("agent {0} exists already")]
    AgentExists(AgentId),
    #[error("agent {0} is dead")]
    AgentDead(AgentId),
    #[error("agent {0} has expired before it hatched")]
    AgentExpired(AgentId),
    #[error("agent {0} is awake already")]
    AgentAwake(AgentId),
    #[error("no agent is named `{0}`, and no id begins with it")]
    NobodyCalled(String),
    #[error("`{reference}` may mean any of {}", candidates.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Ambiguous { reference: String, candidates: Vec<AgentId> },
    #[error("the agent {by} is called `{name}` already")]
    NameTaken { name: String, by: AgentId, free: String },
    #[error("agent 0 exists already: {0}")]
    RootExists(AgentId),
    #[error("agent {0} is agent 0 and cannot be killed")]
    RootIsImmortal(AgentId),
    #[error("agent {by} descends from agent {ancestor} and may not kill it")]
    KillsAncestor { by: AgentId, ancestor: AgentId },
    #[error("{MAX_PENDING_FORKS} forks of agent {parent} already wait for its tools")]
    ForkPending { parent: AgentId },
    #[error("message {message} is not in the history of agent {agent}")]
    NotInHistory { agent: AgentId, message: EventId },
    #[error("agent {agent} has no mark{} to go back to", label.as_ref().map(|label| format!(" `{label}`")).unwrap_or_default())]
    NoSuchMark { agent: AgentId, label: Option<String> },
    #[error("there is no mail for {0}")]
    NoMail(Address),
    #[error("{to} has no unread mail {mail}")]
    NotUnread { to: Address, mail: EventId },
    #[error("agent {agent} is at work (run {run})")]
    RunOpen { agent: AgentId, run: u32 },
    #[error("agent {agent} is at work with {harness}{}", model.as_ref().map(|model| format!(" and the model {model}")).unwrap_or_default())]
    OtherHarness { agent: AgentId, harness: String, model: Option<String> },
    #[error("a fork that starts to work needs a prompt")]
    ForkWithoutPrompt,
    #[error("`with` is for a fork that starts to work")]
    OptionsOfNoRun,
    #[error("agent {0} has no open run")]
    NoRun(AgentId),
    #[error("agent {0} is not in the middle of a turn")]
    NoTurn(AgentId),
    #[error("the harness `{harness}` of agent {agent} cannot interrupt a turn")]
    CannotInterrupt { agent: AgentId, harness: String },
    #[error("agent {0} has been run and has a conversation of its own")]
    HasHarnessSession(AgentId),
    #[error("session {session} is the conversation of agent {agent}{} already", name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default())]
    HarnessSessionTaken { session: String, agent: AgentId, name: Option<String> },
    #[error("run {run} of agent {agent} is being stopped already")]
    RunStopping { agent: AgentId, run: u32 },
    #[error("run {} of agent {} is not at attempt {}", .0.run, .0.agent, .0.attempt)]
    StaleAttempt(AttemptId),
    #[error("the output of agent {agent} was already read up to byte {at}")]
    OutputTaken { agent: AgentId, at: u64 },
    #[error("the calls of agent {agent} were already recorded up to number {number}")]
    CallTaken { agent: AgentId, number: u64 },
    #[error("there is no open question {0}")]
    NoQuestion(EventId),
    #[error("there is no permission rule {0}")]
    NoRule(EventId),
    #[error("the project already has {MAX_RULES} permission rules")]
    TooManyRules,
    #[error("this does not answer question {question}: {expected}")]
    BadAnswer { question: EventId, expected: String },
    #[error("a silence of {ms} ms cannot count as stuck")]
    StallOutOfRange { ms: u64 },
    #[error("{retries} retries are too many")]
    TooManyRetries { retries: u32 },
    #[error("`{text}` is not a valid option of a run")]
    BadSpec { text: String },
    #[error("there is no harness `{harness}`")]
    NoSuchHarness { harness: String, known: String },
    #[error("root may not run agents with the permissions `all`: they could do anything to this machine")]
    RootWithoutSandbox,
    #[error("the label is {bytes} bytes long")]
    LabelTooLong { bytes: usize },
    #[error("an idle limit of {ms} ms is out of range")]
    IdleOutOfRange { ms: u64 },
    #[error("`{name}` cannot be a name")]
    BadName { name: String },
    #[error("the message is {bytes} bytes long")]
    MessageTooLong { bytes: usize },
    #[error("the remark is {bytes} bytes long")]
    RemarkTooLong { bytes: usize },
    #[error("the mark's label is {bytes} bytes long")]
    MarkTooLong { bytes: usize },
    #[error("the mail is {bytes} bytes long")]
    MailTooLong { bytes: usize },
    #[error("a hatching time of {ms} ms is out of range")]
    HatchOutOfRange { ms: u64 },
    #[error("there is no quest {0}")]
    UnknownQuest(QuestId),
    #[error("there is no quest `{0}`")]
    NoQuestCalled(String),
    #[error("`{reference}` may mean {candidates}")]
    AmbiguousQuest { reference: String, candidates: QuestCandidates },
    #[error("quest {0} exists already")]
    QuestExists(QuestId),
    #[error("quest {quest} is {state}")]
    QuestOver { quest: QuestId, state: &'static str },
    #[error("quest {0} is paused already")]
    QuestPaused(QuestId),
    #[error("quest {0} is not paused")]
    QuestOpen(QuestId),
    #[error("there is no agent 0 yet")]
    NoRoot,
    #[error("quest {0} has no plan, and its table has no role that makes one")]
    NoPlan(QuestId),
    #[error("a request of {bytes} bytes is not possible")]
    BadRequest { bytes: usize },
    #[error("{slots} slots are not possible")]
    SlotsOutOfRange { slots: u32 },
    #[error("a time limit of {ms} ms is out of range for a ward")]
    WardOutOfRange { ms: u64 },
    #[error("a command of {bytes} bytes cannot be a ward")]
    BadWard { bytes: usize },
    #[error("quest {0} has no ward")]
    NoWard(QuestId),
    #[error("this table of roles cannot run a quest: {why}")]
    BadTable { why: String },
    #[error("`{id}` cannot be the id of a step")]
    BadStepId { id: String },
    #[error("the plan is refused: {why}")]
    BadPlan { why: String },
    #[error("the requirements are refused: {why}")]
    BadRequirements { why: String },
    #[error("the signal is refused: {why}")]
    BadSignal { why: String },
    #[error("the signal is {bytes} bytes long")]
    SignalTooLong { bytes: usize },
    #[error("there is no step `{step}` in quest {quest}")]
    UnknownStep { quest: QuestId, step: StepId },
    #[error("agent {0} does not work on a quest")]
    NoAssignment(AgentId),
    #[error("you work on step `{own}`, not on `{step}`")]
    OtherStep { own: StepId, step: StepId },
    #[error("agent {agent} is not at work on step `{step}` any more")]
    NotAtWork { agent: AgentId, step: StepId },
    #[error("step `{step}` has been signalled already: {kind}")]
    Signalled { step: StepId, kind: SignalKind },
    #[error("a {role} may not signal `{kind}`")]
    MayNotSignal { role: String, kind: SignalKind, may: String },
    #[error("a {role} may not ask for `{target}`")]
    MayNotCall { role: String, target: String, may: String },
    #[error("a {role} may not do this: it is for the {wanted}")]
    WrongRole { role: String, wanted: String },
    #[error("the step is not complete: `{tool}` was not called")]
    NothingHandedIn { tool: &'static str },
    #[error("step `{step}` is {status}, not failed")]
    StepNotFailed { step: StepId, status: &'static str },
    #[error("step `{step}` is not at this ward or merge any more")]
    StaleChore { step: StepId },
    #[error("{0}")]
    Status(Box<StatusRefusal>),
    #[error("{MAX_STEP_FORKS} forks of quest {quest} already work or wait for a slot")]
    TooManyStepForks { quest: QuestId },
    /// For HTTP and tools, which then answer with the events of the first time.
    #[error("request {id} was carried out already (event {at})")]
    RequestTaken { id: RequestId, at: EventId, led_to: u64 },
    #[error("the id {id} belongs to another request, which was carried out (event {at})")]
    RequestIdUsed { id: RequestId, at: EventId },
}

/// The kind of a refusal. The HTTP API turns it into a status code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// The command names something that does not exist.
    Missing,
    /// The command is not possible in the current state.
    Untimely,
    /// The command is wrong in every state.
    Invalid,
}

impl Refusal {
    pub fn kind(&self) -> RefusalKind {
        match self {
            Self::Seat(refusal) => refusal.kind(),
            Self::Status(refusal) => refusal.kind(),
            Self::UnknownSession(_)
            | Self::UnknownAgent(_)
            | Self::NobodyCalled(_)
            | Self::NotInHistory { .. }
            | Self::NoSuchMark { .. }
            | Self::NoMail(_)
            | Self::NoRun(_)
            | Self::NoQuestion(_)
            | Self::NoRule(_)
            | Self::UnknownQuest(_)
            | Self::NoQuestCalled(_)
            | Self::UnknownStep { .. }
            | Self::NoAssignment(_)
            | Self::NotUnread { .. } => RefusalKind::Missing,
            Self::SessionExists(_)
            | Self::SessionOver { .. }
            | Self::SessionEnding { .. }
            | Self::SessionNotEnding(_)
            | Self::AgentExists(_)
            | Self::AgentDead(_)
            | Self::AgentExpired(_)
            | Self::AgentAwake(_)
            | Self::Ambiguous { .. }
            | Self::AmbiguousQuest { .. }
            | Self::NameTaken { .. }
            | Self::RootExists(_)
            | Self::RootIsImmortal(_)
            | Self::KillsAncestor { .. }
            | Self::ForkPending { .. }
            | Self::RunOpen { .. }
            | Self::OtherHarness { .. }
            | Self::HasHarnessSession(_)
            | Self::HarnessSessionTaken { .. }
            | Self::NoTurn(_)
            | Self::CannotInterrupt { .. }
            | Self::RunStopping { .. }
            | Self::StaleAttempt(_)
            | Self::TooManyRules
            | Self::OutputTaken { .. }
            | Self::QuestExists(_)
            | Self::QuestOver { .. }
            | Self::QuestPaused(_)
            | Self::QuestOpen(_)
            | Self::NoRoot
            | Self::NotAtWork { .. }
            | Self::Signalled { .. }
            | Self::NothingHandedIn { .. }
            | Self::StepNotFailed { .. }
            | Self::NoWard(_)
            | Self::StaleChore { .. }
            | Self::TooManyStepForks { .. }
            | Self::RequestTaken { .. }
            | Self::RequestIdUsed { .. }
            | Self::CallTaken { .. } => RefusalKind::Untimely,
            Self::LabelTooLong { .. }
            | Self::IdleOutOfRange { .. }
            | Self::BadName { .. }
            | Self::MessageTooLong { .. }
            | Self::MarkTooLong { .. }
            | Self::MailTooLong { .. }
            | Self::HatchOutOfRange { .. }
            | Self::StallOutOfRange { .. }
            | Self::BadAnswer { .. }
            | Self::TooManyRetries { .. }
            | Self::BadSpec { .. }
            | Self::NoSuchHarness { .. }
            | Self::RootWithoutSandbox
            | Self::ForkWithoutPrompt
            | Self::OptionsOfNoRun
            | Self::NoPlan(_)
            | Self::BadRequest { .. }
            | Self::SlotsOutOfRange { .. }
            | Self::WardOutOfRange { .. }
            | Self::BadWard { .. }
            | Self::BadTable { .. }
            | Self::BadStepId { .. }
            | Self::BadPlan { .. }
            | Self::BadRequirements { .. }
            | Self::BadSignal { .. }
            | Self::SignalTooLong { .. }
            | Self::OtherStep { .. }
            | Self::MayNotSignal { .. }
            | Self::MayNotCall { .. }
            | Self::WrongRole { .. }
            | Self::RemarkTooLong { .. } => RefusalKind::Invalid,
        }
    }

    /// A word that programs can rely on. It never changes.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Seat(refusal) => refusal.code(),
            Self::Status(refusal) => refusal.code(),
            Self::UnknownSession(_) => "unknown_session",
            Self::SessionExists(_) => "session_exists",
            Self::SessionOver { .. } => "session_over",
            Self::SessionEnding { .. } => "session_ending",
            Self::SessionNotEnding(_) => "session_not_ending",
            Self::UnknownAgent(_) => "unknown_agent",
            Self::AgentExists(_) => "agent_exists",
            Self::AgentDead(_) => "agent_dead",
            Self::AgentExpired(_) => "agent_expired",
            Self::AgentAwake(_) => "agent_awake",
            Self::NobodyCalled(_) => "nobody_called",
            Self::Ambiguous { .. } | Self::AmbiguousQuest { .. } => "ambiguous",
            Self::NameTaken { .. } => "name_taken",
            Self::RootExists(_) => "root_exists",
            Self::RootIsImmortal(_) => "root_is_immortal",
            Self::KillsAncestor { .. } => "kills_ancestor",
            Self::ForkPending { .. } => "fork_pending",
            Self::NotInHistory { .. } => "not_in_history",
            Self::NoSuchMark { .. } => "no_such_mark",
            Self::NoMail(_) => "no_mail",
            Self::NotUnread { .. } => "not_unread",
            Self::RunOpen { .. } | Self::OtherHarness { .. } => "run_open",
            Self::ForkWithoutPrompt | Self::OptionsOfNoRun => "nothing_to_do",
            Self::NoRun(_) => "no_run",
            Self::NoTurn(_) => "no_turn",
            Self::CannotInterrupt { .. } => "cannot_interrupt",
            Self::HasHarnessSession(_) => "has_harness_session",
            Self::HarnessSessionTaken { .. } => "harness_session_taken",
            Self::RunStopping { .. } => "run_stopping",
            Self::StaleAttempt(_) => "stale_attempt",
            Self::OutputTaken { .. } => "output_taken",
            Self::CallTaken { .. } => "call_taken",
            Self::NoQuestion(_) => "no_question",
            Self::NoRule(_) => "no_rule",
            Self::TooManyRules => "too_many_rules",
            Self::BadAnswer { .. } => "bad_answer",
            Self::StallOutOfRange { .. } => "stall_out_of_range",
            Self::TooManyRetries { .. } => "too_many_retries",
            Self::BadSpec { .. } => "bad_spec",
            Self::NoSuchHarness { .. } => "no_such_harness",
            Self::RootWithoutSandbox => "root_without_sandbox",
            Self::MarkTooLong { .. } => "mark_too_long",
            Self::MailTooLong { .. } => "mail_too_long",
            Self::HatchOutOfRange { .. } => "hatch_out_of_range",
            Self::LabelTooLong { .. } => "label_too_long",
            Self::IdleOutOfRange { .. } => "idle_out_of_range",
            Self::BadName { .. } => "bad_name",
            Self::MessageTooLong { .. } => "message_too_long",
            Self::RemarkTooLong { .. } => "remark_too_long",
            Self::UnknownQuest(_) | Self::NoQuestCalled(_) => "unknown_quest",
            Self::QuestExists(_) => "quest_exists",
            Self::QuestOver { .. } => "quest_over",
            Self::QuestPaused(_) => "quest_paused",
            Self::QuestOpen(_) => "quest_open",
            Self::NoRoot => "no_root",
            Self::NoPlan(_) => "no_plan",
            Self::BadRequest { .. } => "bad_request",
            Self::SlotsOutOfRange { .. } => "slots_out_of_range",
            Self::WardOutOfRange { .. } => "ward_out_of_range",
            Self::BadWard { .. } => "bad_ward",
            Self::NoWard(_) => "no_ward",
            Self::BadTable { .. } => "bad_table",
            Self::BadStepId { .. } => "bad_step_id",
            Self::BadPlan { .. } => "bad_plan",
            Self::BadRequirements { .. } => "bad_requirements",
            Self::BadSignal { .. } => BAD_SIGNAL,
            Self::SignalTooLong { .. } => "signal_too_long",
            Self::UnknownStep { .. } => "unknown_step",
            Self::NoAssignment(_) => "no_assignment",
            Self::OtherStep { .. } => "other_step",
            Self::NotAtWork { .. } => "not_at_work",
            Self::Signalled { .. } => "signalled",
            Self::MayNotSignal { .. } => "may_not_signal",
            Self::MayNotCall { .. } => "may_not_call",
            Self::WrongRole { .. } => "wrong_role",
            Self::NothingHandedIn { .. } => "nothing_handed_in",
            Self::StepNotFailed { .. } => "step_not_failed",
            Self::StaleChore { .. } => "stale_chore",
            Self::TooManyStepForks { .. } => "too_many_step_forks",
            Self::RequestTaken { .. } => "request_taken",
            Self::RequestIdUsed { .. } => "request_id_used",
        }
    }

    /// What to do next.
    pub fn hint(&self) -> String {
        match self {
            Self::Seat(refusal) => refusal.hint(),
            Self::Status(refusal) => refusal.hint().into(),
            Self::UnknownSession(_) => "`hatchery session list` shows the sessions".into(),
            Self::SessionExists(_) | Self::AgentExists(_) | Self::QuestExists(_) => {
                "if this repeats a request whose answer was lost, the first request was carried out; otherwise choose a new id".into()
            }
            Self::SessionOver { .. } => "start a new session".into(),
            Self::SessionEnding { .. } => "wait for its session_ended event".into(),
            Self::SessionNotEnding(_) => "request its end first".into(),
            Self::UnknownAgent(_) | Self::NobodyCalled(_) => "`hatchery ps --all` shows the agents".into(),
            Self::Ambiguous { .. } => "give more characters of the id".into(),
            Self::AmbiguousQuest { .. } => "give more characters of the id or of the slug".into(),
            Self::NameTaken { free, .. } => format!("`{free}` is free"),
            Self::RootExists(_) => "nothing to do".into(),
            Self::RootIsImmortal(_) => "kill its children, or stop the daemon".into(),
            Self::KillsAncestor { .. } => "ask the user to do it".into(),
            Self::ForkPending { .. } => "wait for their agent_created events, then fork again".into(),
            Self::NotInHistory { .. } => "`hatchery history AGENT` shows the messages with their ids".into(),
            Self::NoSuchMark { label: Some(label), .. } if label.parse::<u64>().is_ok() => {
                format!("`hatchery rewind AGENT --to {label}` goes back to the message {label}")
            }
            Self::NoSuchMark { .. } => "set one with `hatchery mark`, or give the id of a message with `--to`".into(),
            Self::NoMail(_) => "`hatchery mail wait`, or the tool `wait`, waits for the next mail".into(),
            Self::NotUnread { .. } => "`hatchery mail check`, or the tool `check-mail`, lists the unread mail".into(),
            Self::RunOpen { .. } => "`hatchery say` speaks to it, `hatchery stop` ends the run".into(),
            Self::OtherHarness { agent, .. } => {
                format!("say it without a harness and a model, or end the run first: `hatchery stop {agent}`")
            }
            Self::ForkWithoutPrompt => "give it a prompt".into(),
            Self::OptionsOfNoRun => "leave out `with`, or let the fork start to work".into(),
            Self::NoRun(_) => "`hatchery say AGENT TEXT` starts a run, `hatchery runs` shows all".into(),
            Self::CannotInterrupt { .. } => "wait for the end of the turn, or end the run with `hatchery stop`".into(),
            Self::NoTurn(_) => "`hatchery say` sends it a message, `hatchery stop` ends its run".into(),
            Self::HasHarnessSession(_) => "give the conversation to a new agent".into(),
            Self::HarnessSessionTaken { .. } => "`hatchery say AGENT TEXT` continues it".into(),
            Self::RunStopping { .. } => "wait for its run_ended event".into(),
            Self::StaleAttempt(_) => "a newer attempt runs this agent now, or none does".into(),
            Self::OutputTaken { .. } | Self::CallTaken { .. } => "continue from there".into(),
            Self::NoRule(_) => "`hatchery permissions list` shows the rules".into(),
            Self::TooManyRules => "answer `allow`, or remove rules with `hatchery permissions remove`".into(),
            Self::NoQuestion(_) => "`hatchery ask list` shows what is open; a question is answered once".into(),
            Self::BadAnswer { .. } => "give one of the answers that the question accepts".into(),
            Self::StallOutOfRange { .. } => format!("choose from {MIN_STALL_MS} to {MAX_STALL_MS}"),
            Self::TooManyRetries { .. } => format!("choose at most {MAX_RETRIES}"),
            Self::BadSpec { .. } => format!("each option has 1 to {MAX_SPEC_BYTES} bytes"),
            Self::NoSuchHarness { known, .. } => format!("choose one of: {known}"),
            Self::RootWithoutSandbox => "run as another user, use the permissions `edits` or `ask`, or set IS_SANDBOX=1 for the daemon if this is a \
                 sandbox"
                .into(),
            Self::MarkTooLong { .. } => format!("a label has at most {MAX_MARK_BYTES} bytes"),
            Self::MailTooLong { .. } => format!("a mail has at most {MAX_MAIL_BYTES} bytes; send it in parts"),
            Self::HatchOutOfRange { .. } => format!("choose from 1 to {MAX_HATCH_MS}"),
            Self::AgentDead(_) | Self::AgentExpired(_) => "this cannot be undone; fork another agent".into(),
            Self::AgentAwake(_) => "nothing to do".into(),
            Self::LabelTooLong { .. } => format!("a label has at most {MAX_LABEL_BYTES} bytes"),
            Self::IdleOutOfRange { .. } => format!("choose between {MIN_IDLE_MS} and {MAX_IDLE_MS}"),
            Self::BadName { .. } => {
                format!(
                    "a name has 1 to {MAX_NAME_BYTES} bytes, no control characters, no space at its beginning or end, and is not `human`"
                )
            }
            Self::MessageTooLong { .. } => format!("a message has at most {MAX_MESSAGE_BYTES} bytes; send it in parts"),
            Self::UnknownQuest(_) | Self::NoQuestCalled(_) => "`hatchery quest list` shows the quests".into(),
            Self::QuestOver { .. } => "create a new one with `hatchery quest new`".into(),
            Self::QuestPaused(_) => "`hatchery quest resume` continues it".into(),
            Self::QuestOpen(_) => "nothing to do".into(),
            Self::NoRoot => "start the daemon, which registers it".into(),
            Self::NoPlan(_) => "give the steps with `--plan FILE`, or a role in the path `plan`".into(),
            Self::BadRequest { .. } => format!("a request has 1 to {MAX_REQUEST_BYTES} bytes"),
            Self::SlotsOutOfRange { .. } => format!("choose from 1 to {MAX_SLOTS}"),
            Self::WardOutOfRange { .. } => format!("choose from {MIN_WARD_MS} to {MAX_WARD_MS}"),
            Self::BadWard { bytes: 0 } => "`hatchery quest ward QUEST --none` removes the ward".into(),
            Self::BadWard { .. } => format!("a ward has 1 to {MAX_WARD_BYTES} bytes"),
            Self::NoWard(_) => "nothing to do; `hatchery quest ward ID COMMAND` sets one".into(),
            Self::BadTable { .. } => "correct `[quests]` in hatchery.toml".into(),
            Self::BadStepId { .. } => {
                "use 1 to 64 lowercase letters, digits and dashes; do not begin with a dash".into()
            }
            Self::BadPlan { .. } => "correct the plan and submit all of it again".into(),
            Self::BadRequirements { .. } => "correct the requirements and submit all of them again".into(),
            Self::BadSignal { .. } => "signal again, with what the signal needs".into(),
            Self::SignalTooLong { .. } => "make it shorter, and put the rest into a file".into(),
            Self::UnknownStep { .. } => "`hatchery quest show`, or the tool `get-quest`, shows the steps".into(),
            Self::NoAssignment(_) => "only agents of a quest can do this".into(),
            Self::OtherStep { own, .. } => format!("signal with stepId `{own}`"),
            Self::NotAtWork { .. } => "another agent works on it now, or it is done; stop".into(),
            Self::Signalled { .. } => "a step is signalled once; stop now".into(),
            Self::MayNotSignal { may, .. } => format!("it may signal {may}"),
            Self::MayNotCall { may, .. } if may.is_empty() => "it may not ask for any role".into(),
            Self::MayNotCall { may, .. } => format!("it may ask for {may}"),
            Self::WrongRole { .. } => "signal `needs-role-followup` if it must be done".into(),
            Self::NothingHandedIn { tool } => format!("call `{tool}` first, then signal"),
            Self::StepNotFailed { .. } => "only a failed step can be tried again".into(),
            Self::StaleChore { .. } => "nothing to do".into(),
            Self::TooManyStepForks { .. } => "wait until some of them have ended".into(),
            Self::RequestTaken { .. } => "read the events after it".into(),
            Self::RequestIdUsed { .. } => {
                "choose a new id for each request; use the same id only to repeat the same request".into()
            }
            Self::RemarkTooLong { .. } => format!("a remark has at most {MAX_REMARK_BYTES} bytes"),
        }
    }
}
