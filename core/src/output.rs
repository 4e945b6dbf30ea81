//! What the process of an agent says, in one form for all harnesses. Each harness has a [`Reader`](crate::harness::Reader) that
//! translates its own format into this one. The rest of the core decides by these outputs and by the harness's
//! [`Capabilities`](crate::harness::Capabilities), and never by its name.
//!
//! What a sub-agent says is wrapped ([`Output::Subagent`]), so that it is never taken for what its parent says.

use crate::Timestamp;
use crate::harness::Declared;
use crate::permission::PermissionRequest;
use crate::usage::{ContextUse, Money, Usage};
use serde::{Deserialize, Serialize};

/// One thing that the process said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Output {
    /// The process can work: its session exists, and our tools answer it. Once for each process.
    Ready {
        /// The id that the harness has for the session.
        session: String,
        model: Option<String>,
        /// The version of the harness.
        version: Option<String>,
        /// The tools that it has, if the harness says so.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tools: Vec<String>,
    },
    /// What the process can do, in its own words. Said before it is ready, if at all.
    Declares(Declared),
    /// The session uses the model that it was told to use.
    ModelChosen {
        model: String,
    },
    /// The process cannot work, because our tools do not answer it. It is stopped for that.
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
    /// The input is JSON text, exactly as it was said. Our own tools have the names that we gave them, without the prefix that
    /// a harness adds.
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
    /// A message of ours is in the records of the harness, so it must not be sent again. The id is the one that we sent with it.
    Heard {
        id: String,
    },
    /// What the harness itself showed the model: the mark of an interrupt, the objection of a hook, the task of a sub-agent.
    Note {
        text: String,
    },
    /// What a sub-agent said, and the tool use by which it was started. It never ends the turn of its parent.
    Subagent {
        tool_use: String,
        #[cfg_attr(feature = "openapi", schema(no_recursion))]
        output: Box<Output>,
    },
    /// A request to the model's service has failed, and is repeated after the delay.
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
    /// It was refused the use of a tool, and goes on without it.
    Denied {
        tool: String,
        tool_use: Option<String>,
        reason: String,
    },
    /// It asks for permission to use a tool, and waits for the answer to this request.
    Asked(PermissionRequest),
    /// It no longer waits for the answer to this request, for example because its turn was interrupted.
    AskCancelled {
        request: String,
    },
    /// It has answered a request of ours, such as an interrupt; with a problem, it has refused it. Or it confirms our answer to
    /// a request of its own.
    Answered {
        request: String,
        problem: Option<String>,
    },
    /// The model was asked, and this was used, as far as it is known before the end of the turn. Said once for each request, or in
    /// parts that add up.
    Used {
        usage: Usage,
        /// How full the context is, if it was the agent that asked and not a sub-agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context: Option<ContextUse>,
    },
    /// It has compacted its own history.
    Compacted {
        trigger: Option<String>,
        tokens_before: Option<u64>,
    },
    /// The model's service has refused a request. The text is the harness's, not the model's.
    ApiError(ServiceError),
    TurnEnded(TurnEnd),
    /// A line that could not be read, and why, or several in a row. They are still in `stdout.jsonl`.
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
    /// Anything else: the words say what.
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
    /// It was interrupted. The session is intact and can go on.
    Interrupted,
    Failed {
        kind: FailureKind,
        /// What went wrong, in the words of the harness.
        detail: String,
    },
    /// The process was to go on with a session that the harness does not have.
    SessionUnknown,
}

/// The end of a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TurnEnd {
    pub result: TurnResult,
    /// The answer.
    pub text: Option<String>,
    /// How often the model was asked.
    pub num_turns: u32,
    pub denials: Vec<Denial>,
    /// What the harness says was used in all: by the session if `since_last` is there, otherwise by this process. See
    /// [`Meter`](crate::usage::Meter).
    pub total: Usage,
    /// What was used since the turn before this one, if the harness says so.
    pub since_last: Option<Usage>,
    /// The harness's own name for the turn, if it can copy a session up to this turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// How full the context is, if the harness says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextUse>,
    /// It ended with a message that the model has not seen: the harness keeps the message, and asks the model nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unanswered: bool,
}

/// A tool that was not allowed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Denial {
    pub tool: String,
    pub tool_use: Option<String>,
}

impl TurnEnd {
    /// Whether the harness says what was used. A process that failed before it could ask the model says nothing.
    pub(crate) fn has_total(&self) -> bool {
        self.total != Usage::default() || self.since_last.is_some()
    }

    /// Whether the harness says what was used in money. If it counts tokens for the session and gives no cost, it does not.
    pub(crate) fn reports_cost(&self) -> bool {
        self.total.cost != Money::default() || self.since_last.is_none()
    }
}

impl TurnResult {
    pub fn is_ok(&self) -> bool {
        matches!(self, Self::Ok)
    }
}
