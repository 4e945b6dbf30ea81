//! The output of an agent's process, in one form for all harnesses. Each harness has a [`Reader`](crate::harness::Reader) that translates
//! its own format into this one. The rest of the core decides by these outputs and by the harness's
//! [`Capabilities`](crate::harness::Capabilities), and never by its name.
//!
//! The outputs of a subagent are wrapped ([`Output::Subagent`]), so that they are never mistaken for outputs of its parent.

use crate::Timestamp;
use crate::harness::Declared;
use crate::json::{Fields, object};
use crate::permission::PermissionRequest;
use crate::usage::{ContextUse, Money, Usage};
use serde::{Deserialize, Serialize};

/// One thing that the process has reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Output {
    /// The process can work: its session exists, and Hatchery's tools answer. Reported once by each process.
    Ready {
        /// The harness's own id of the session.
        session: String,
        model: Option<String>,
        /// The version of the harness.
        version: Option<String>,
        /// The tools of the process, if the harness reports them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tools: Vec<String>,
    },
    /// The capabilities that the process reports itself. If reported at all, this comes before `Ready`.
    Declares(Declared),
    /// The session uses the model that Hatchery asked for.
    ModelChosen {
        model: String,
    },
    /// The process cannot work, for example because Hatchery's tools do not answer. The process is stopped.
    NotReady {
        why: String,
    },
    TurnStarted,
    Text {
        text: String,
    },
    Thinking {
        text: String,
    },
    /// The input is JSON text, exactly as it was written. Hatchery's tools have their own names here, without the prefix that a harness
    /// adds.
    ToolUse {
        id: String,
        name: String,
        input: String,
    },
    ToolResult {
        id: String,
        content: String,
        is_error: bool,
    },
    /// A message is stored in the harness session, so it must not be sent again. The id is the one that Hatchery sent with the message.
    Heard {
        id: String,
    },
    /// A message that the harness itself has shown to the model: the mark of an interrupt, the objection of a hook, the task of a subagent.
    Note {
        text: String,
    },
    /// An output of a subagent, and the tool use that started the subagent. It never ends the turn of the parent.
    Subagent {
        tool_use: String,
        #[cfg_attr(feature = "openapi", schema(no_recursion))]
        output: Box<Output>,
    },
    /// A request to the model's service has failed, and will be repeated after the delay.
    Retrying {
        attempt: u32,
        max_attempts: Option<u32>,
        status: Option<u16>,
        delay_ms: Option<u64>,
        reason: Option<String>,
    },
    /// The state of the account's rate limit.
    Limit {
        rejected: bool,
        resets_at: Option<Timestamp>,
        window: Option<String>,
    },
    /// The agent was denied the use of a tool, and continues without it.
    Denied {
        tool: String,
        tool_use: Option<String>,
        reason: String,
    },
    /// The process asks for permission to use a tool, and waits for the answer to this request.
    Asked(PermissionRequest),
    /// The process no longer waits for the answer to this request, for example because its turn was interrupted.
    AskCancelled {
        request: String,
    },
    /// The process has answered a request of Hatchery, such as an interrupt; `problem` says why it refused. Or the process confirms
    /// Hatchery's answer to its own request.
    Answered {
        request: String,
        problem: Option<String>,
    },
    /// The usage of a request to the model, as far as it is known before the end of the turn. Reported once for each request, or in parts
    /// that add up.
    Used {
        usage: Usage,
        /// How full the context is, if the agent itself made the request and not a subagent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context: Option<ContextUse>,
    },
    /// The agent has compacted its own history.
    Compacted {
        trigger: Option<String>,
        tokens_before: Option<u64>,
    },
    /// The model's service has refused a request. The text is from the harness, not from the model.
    ApiError(ServiceError),
    TurnEnded(TurnEnd),
    /// One or several lines in a row that could not be read, and the reason. They are still in `stdout.jsonl`.
    Unread {
        bytes: u64,
        reason: String,
    },
}

/// Why a request to the model's service, or a whole turn, failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    RateLimited,
    Overloaded,
    OutOfCredit,
    Unauthorised,
    PromptTooLong,
    /// The service or the network fails: a server error, or no connection.
    Unavailable,
    /// The model refused to answer.
    Refused,
    /// The answer was longer than the model may write.
    OutputTooLong,
    /// There is no such model, or the account may not use it.
    WrongModel,
    /// Any other failure. The text has the details.
    #[default]
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ServiceError {
    pub kind: FailureKind,
    /// The HTTP status, if there was an answer.
    pub status: Option<u16>,
    pub text: String,
}

/// How a turn ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum TurnResult {
    #[default]
    Ok,
    /// The turn was interrupted. The session is intact and can continue.
    Interrupted,
    Failed {
        kind: FailureKind,
        /// What went wrong, in the words of the harness.
        detail: String,
    },
    /// The process was to continue a session that the harness does not have.
    SessionUnknown,
}

/// The end of a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TurnEnd {
    pub result: TurnResult,
    /// The answer.
    pub text: Option<String>,
    /// The number of requests to the model.
    pub num_turns: u32,
    pub denials: Vec<Denial>,
    /// The total usage that the harness reports: of the session if `since_last` is given, otherwise of this process. See
    /// [`Meter`](crate::usage::Meter).
    pub total: Usage,
    /// The usage since the previous turn, if the harness reports it.
    pub since_last: Option<Usage>,
    /// The harness's own id of the turn, if the harness can copy a session up to this turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// How full the context is, if the harness reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextUse>,
    /// The turn ended with a message that the model has not seen: the harness keeps the message, but made no request about it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unanswered: bool,
}

/// A tool use that was not allowed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Denial {
    pub tool: String,
    pub tool_use: Option<String>,
}

impl TurnEnd {
    /// Whether the harness reports usage. A process that failed before its first request to the model reports none.
    pub(crate) fn has_total(&self) -> bool {
        self.total != Usage::default() || self.since_last.is_some()
    }

    /// Whether the harness reports cost. A harness that counts tokens for the session and reports no cost does not.
    pub(crate) fn reports_cost(&self) -> bool {
        self.total.cost != Money::default() || self.since_last.is_none()
    }
}

impl TurnResult {
    pub fn is_ok(&self) -> bool {
        matches!(self, Self::Ok)
    }
}

/// The outputs of a line, from its fields. A line that is not an object has none.
pub(crate) fn outputs_of(line: &str, outputs: impl FnOnce(&Fields) -> Vec<Output>) -> Result<Vec<Output>, String> {
    let line = object(line).map_err(|error| error.to_string())?;
    Ok(line.as_ref().map(outputs).unwrap_or_default())
}
