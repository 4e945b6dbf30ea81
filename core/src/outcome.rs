//! How a run went: folded from everything the child said, and judged when it is gone.
//!
//! The last result decides: whether it is an error, why it ended, and what the service answered. The exit code alone never
//! does, because the CLI leaves with 0 after an interrupt and with 1 after a failed request. Without a result for the last
//! turn, the run has crashed, even with exit code 0.

use crate::Timestamp;
use crate::output::{ApiError, ApiErrorKind, Output, TurnEnd};
use serde::{Deserialize, Serialize};
use std::fmt;

/// How much of a service's words for an error is kept.
const MAX_ERROR_CHARS: usize = 1_000;

/// Why a run is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    Completed,
    Crashed,
    /// It was silent for too long, and was ended for that.
    Stuck,
    /// We ended it.
    Killed,
    /// A person ended it, or broke its last turn off.
    UserEnded,
    RateLimited,
    Overloaded,
    OutOfCredit,
    Unauthorised,
    PromptTooLong,
    /// The machine went down under it.
    LostWithMachine,
    /// A budget is used up.
    OverBudget,
}

/// How the process ended, as far as it can be known: a child that we have adopted is not ours to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    Code(i32),
    Signal(i32),
    /// It could not even be started.
    NotStarted,
    /// The machine went down under it.
    LostWithMachine,
    Unknown,
}

/// What is known of a run from its words alone. `Stuck`, `Killed` and `LostWithMachine` are not in them: whoever stopped the run,
/// or found its machine gone, knows better and overrules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    stage: Stage,
    resets_at: Option<Timestamp>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Stage {
    /// It has not begun a turn yet.
    #[default]
    Silent,
    /// In the middle of a turn. Were it over now, it would not have finished.
    Working { api_error: Option<ApiError> },
    /// The last turn has its result, and nothing began after it.
    Ended { turn: Box<TurnEnd>, api_error: Option<ApiError> },
}

impl Outcome {
    pub fn take(&mut self, output: &Output) {
        match output {
            Output::TurnEnded(turn) => {
                let api_error = self.api_error().cloned();
                self.stage = Stage::Ended { turn: Box::new(turn.clone()), api_error };
            }
            Output::ApiError(error) => self.stage = Stage::Working { api_error: Some(in_short(error)) },
            Output::SessionStarted { .. }
            | Output::Text { .. }
            | Output::Thinking { .. }
            | Output::ToolUse { .. }
            | Output::ToolResult { .. }
            | Output::Heard { .. }
            | Output::Retrying { .. } => self.work(),
            Output::Limit { rejected, resets_at, .. } => self.resets_at = resets_at.filter(|_| *rejected),
            // A sub-agent may outlive its parent's turn, and the others can come between two turns.
            Output::Subagent { .. }
            | Output::Begun { .. }
            | Output::Note { .. }
            | Output::Denied { .. }
            | Output::Asked { .. }
            | Output::Answered { .. }
            | Output::Compacted { .. }
            | Output::Unread { .. } => {}
        }
    }

    /// The result of the last turn, if that turn has one.
    pub fn last_turn(&self) -> Option<&TurnEnd> {
        match &self.stage {
            Stage::Ended { turn, .. } => Some(turn),
            Stage::Silent | Stage::Working { .. } => None,
        }
    }

    /// Whether the last turn was broken off. The cause is then [`Cause::UserEnded`], and it is for the caller to judge: a message
    /// that was to follow may never have come, and the session can go on.
    pub fn interrupted(&self) -> bool {
        self.last_turn().is_some_and(TurnEnd::interrupted)
    }

    /// When the limit that was hit will be lifted, if the child said so.
    pub fn resets_at(&self) -> Option<Timestamp> {
        self.resets_at
    }

    /// Why the run is over, and in words for people what happened and what to do.
    pub fn cause(&self, exit: Exit) -> (Cause, String) {
        match &self.stage {
            _ if exit == Exit::NotStarted => (Cause::Crashed, "It could not be started.".to_owned()),
            Stage::Silent | Stage::Working { .. } if exit == Exit::LostWithMachine => {
                (Cause::LostWithMachine, format!("The machine went down under it. {RESUME}"))
            }
            Stage::Silent => (Cause::Crashed, format!("It ended before it said anything ({exit}). {LOOK_AT_STDERR}")),
            Stage::Working { api_error: None } => {
                (Cause::Crashed, format!("It ended in the middle of a turn ({exit}). {LOOK_AT_STDERR} {RESUME}"))
            }
            Stage::Working { api_error: Some(error) } => (
                Cause::Crashed,
                format!("It ended in the middle of a turn ({exit}), after: {}. {RESUME}", bare(&error.text)),
            ),
            Stage::Ended { turn, .. } if turn.interrupted() => {
                (Cause::UserEnded, format!("Its last turn was interrupted ({exit}). {RESUME}"))
            }
            Stage::Ended { turn, api_error } if turn.is_error => {
                let cause = failure(turn, api_error.as_ref());
                (cause, format!("It failed: {}. {}", bare(&complaint(turn, api_error.as_ref())), advice(cause)))
            }
            Stage::Ended { .. } => match exit {
                Exit::Code(0) | Exit::Unknown => (Cause::Completed, "Its last turn ended well.".to_owned()),
                Exit::Code(_) | Exit::Signal(_) | Exit::NotStarted | Exit::LostWithMachine => {
                    (Cause::Completed, format!("Its last turn ended well; only then did the process end with {exit}."))
                }
            },
        }
    }

    fn api_error(&self) -> Option<&ApiError> {
        match &self.stage {
            Stage::Working { api_error } => api_error.as_ref(),
            Stage::Silent | Stage::Ended { .. } => None,
        }
    }

    /// A turn has begun, or goes on. What failed in a turn before this one is no longer of interest.
    fn work(&mut self) {
        match &self.stage {
            Stage::Working { .. } => {}
            Stage::Silent | Stage::Ended { .. } => self.stage = Stage::Working { api_error: None },
        }
    }
}

/// Whatever the service wrote, the world keeps only so much of it.
fn in_short(error: &ApiError) -> ApiError {
    let cut = |words: &str| words.chars().take(MAX_ERROR_CHARS).collect::<String>();
    let kind = match &error.kind {
        ApiErrorKind::Other(word) => ApiErrorKind::Other(cut(word)),
        known @ (ApiErrorKind::Authentication
        | ApiErrorKind::Billing
        | ApiErrorKind::RateLimit
        | ApiErrorKind::InvalidRequest
        | ApiErrorKind::Server) => known.clone(),
    };
    ApiError { kind, status: error.status, text: cut(&error.text) }
}

const LOOK_AT_STDERR: &str = "Look at what it wrote to stderr.";
const RESUME: &str = "It can be resumed.";

/// The sort of a failed turn. The status goes before the kind: some versions call an overload a rate limit.
fn failure(turn: &TurnEnd, api_error: Option<&ApiError>) -> Cause {
    if turn.terminal_reason.as_deref() == Some("prompt_too_long") {
        return Cause::PromptTooLong;
    }
    let kind = api_error.map(|error| &error.kind);
    // Credit is refused with the status of a bad request, or with that of a forbidden one.
    if kind == Some(&ApiErrorKind::Billing) {
        return Cause::OutOfCredit;
    }
    match turn.api_status.or_else(|| api_error.and_then(|error| error.status)) {
        Some(401 | 403) => Cause::Unauthorised,
        Some(402) => Cause::OutOfCredit,
        Some(413) => Cause::PromptTooLong,
        Some(429) => Cause::RateLimited,
        Some(503 | 529) => Cause::Overloaded,
        Some(_) => Cause::Crashed,
        None => match kind {
            Some(ApiErrorKind::Authentication) => Cause::Unauthorised,
            Some(ApiErrorKind::RateLimit) => Cause::RateLimited,
            Some(ApiErrorKind::Billing) => Cause::OutOfCredit,
            Some(ApiErrorKind::InvalidRequest | ApiErrorKind::Server | ApiErrorKind::Other(_)) | None => Cause::Crashed,
        },
    }
}

/// The child's own words for its failure, the most telling first.
fn complaint(turn: &TurnEnd, api_error: Option<&ApiError>) -> String {
    let words = [turn.errors.join("; "), turn.text.clone().unwrap_or_default()];
    let words = words.into_iter().chain(api_error.map(|error| error.text.clone()));
    words.into_iter().find(|words| !words.trim().is_empty()).unwrap_or_else(|| turn.subtype.clone())
}

/// Without the full stop, so that a sentence of ours can go round it.
fn bare(words: &str) -> &str {
    words.trim().trim_end_matches('.')
}

fn advice(cause: Cause) -> &'static str {
    match cause {
        Cause::RateLimited => "Resume it when the limit is lifted.",
        Cause::Overloaded => "The service has too much to do; resume it in a while.",
        Cause::OutOfCredit => "Add credit to the account, then resume it.",
        Cause::Unauthorised => "Log in again or mend the key, then resume it.",
        Cause::PromptTooLong => "Its history is too long for the model: compact it, or begin anew with less.",
        Cause::Completed
        | Cause::Crashed
        | Cause::Stuck
        | Cause::Killed
        | Cause::UserEnded
        | Cause::OverBudget
        | Cause::LostWithMachine => "Resume it, or begin anew.",
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Completed => "completed",
            Self::Crashed => "crashed",
            Self::Stuck => "stuck",
            Self::Killed => "killed",
            Self::UserEnded => "ended by the user",
            Self::RateLimited => "rate-limited",
            Self::Overloaded => "overloaded",
            Self::OutOfCredit => "out of credit",
            Self::Unauthorised => "unauthorised",
            Self::PromptTooLong => "prompt too long",
            Self::LostWithMachine => "lost with its machine",
            Self::OverBudget => "over budget",
        })
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Signal(signal) => write!(f, "{}", Signal(signal)),
            // A process that takes a signal as a request says so by this custom.
            Self::Code(code @ 129..=192) => write!(f, "exit code {code}, as after {}", Signal(code - 128)),
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::NotStarted => f.write_str("never started"),
            Self::LostWithMachine => f.write_str("lost with its machine"),
            Self::Unknown => f.write_str("exit code unknown"),
        }
    }
}

struct Signal(i32);

impl fmt::Display for Signal {
    /// Only those whose numbers are the same everywhere have a name here.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => f.write_str("SIGHUP"),
            2 => f.write_str("SIGINT"),
            3 => f.write_str("SIGQUIT"),
            4 => f.write_str("SIGILL"),
            6 => f.write_str("SIGABRT"),
            8 => f.write_str("SIGFPE"),
            9 => f.write_str("SIGKILL"),
            11 => f.write_str("SIGSEGV"),
            13 => f.write_str("SIGPIPE"),
            15 => f.write_str("SIGTERM"),
            other => write!(f, "signal {other}"),
        }
    }
}
