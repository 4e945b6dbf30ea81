//! How a run went: computed from all outputs of the process, and decided when the process has ended.
//!
//! The result of the last turn decides. The exit code alone never does: some harnesses exit with 0 after an interrupt and with 1 after a
//! failed request. If the last turn has no result, the run has crashed, even with exit code 0.

use crate::Timestamp;
use crate::output::{FailureKind, Output, TurnResult};
use serde::{Deserialize, Serialize};
use std::fmt;

/// How many characters of an error are kept in the world.
const MAX_ERROR_CHARS: usize = 1_000;

/// Why a run ended or was parked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    Completed,
    Crashed,
    /// The process was silent for too long and was stopped.
    Stuck,
    /// The agent was killed, so the process was stopped.
    Killed,
    /// The user ended the run, or interrupted its last turn.
    UserEnded,
    RateLimited,
    Overloaded,
    OutOfCredit,
    Unauthorised,
    PromptTooLong,
    /// The machine stopped while the process ran.
    LostWithMachine,
    /// A budget is used up.
    OverBudget,
    /// The user was asked for a permission and has not answered, so the process was stopped.
    AwaitsPermission,
    /// The service or the network failed.
    Unavailable,
    /// The model refused to answer.
    Refused,
    /// The answer was longer than the model may write.
    OutputTooLong,
    /// There is no such model, or the account may not use it.
    WrongModel,
    /// The program does not understand its arguments or settings.
    BadArguments,
}

/// How the process ended, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    Code(i32),
    Signal(i32),
    /// The process could not be started.
    NotStarted,
    /// The machine stopped while the process ran.
    LostWithMachine,
    Unknown,
}

/// What the output of a run shows. `Stuck`, `Killed` and `LostWithMachine` cannot be seen in the output: the caller knows whether the run
/// was stopped or its machine stopped, and this overrules the outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    stage: TurnStage,
    resets_at: Option<Timestamp>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum TurnStage {
    /// The process has not begun a turn yet.
    #[default]
    Silent,
    /// A turn is running. `api_error` is the last error of the model's service in this turn, as text.
    Working { api_error: Option<String> },
    /// The last turn has ended, and no other has begun.
    Ended { result: TurnResult },
}

impl Outcome {
    pub fn take(&mut self, output: &Output) {
        match output {
            Output::TurnEnded(turn) => self.stage = TurnStage::Ended { result: turn.result.clone() },
            Output::ApiError(error) => self.stage = TurnStage::Working { api_error: Some(shortened(&error.text)) },
            Output::TurnStarted
            | Output::Text { .. }
            | Output::Thinking { .. }
            | Output::ToolUse { .. }
            | Output::ToolResult { .. }
            | Output::Heard { .. }
            | Output::Retrying { .. } => self.work(),
            Output::Limit { rejected, resets_at, .. } => self.resets_at = resets_at.filter(|_| *rejected),
            // A subagent may outlive its parent's turn, and the other outputs can come between two turns.
            Output::Subagent { .. }
            | Output::Ready { .. }
            | Output::Declares(_)
            | Output::ModelChosen { .. }
            | Output::NotReady { .. }
            | Output::Note { .. }
            | Output::Denied { .. }
            | Output::Asked(_)
            | Output::AskCancelled { .. }
            | Output::Answered { .. }
            | Output::Compacted { .. }
            | Output::Used { .. }
            | Output::Unread { .. } => {}
        }
    }

    /// The result of the last turn, if that turn has one.
    pub fn last_turn(&self) -> Option<&TurnResult> {
        match &self.stage {
            TurnStage::Ended { result } => Some(result),
            TurnStage::Silent | TurnStage::Working { .. } => None,
        }
    }

    /// The last error of the service or the harness, in its own words.
    pub fn complaint(&self) -> Option<&str> {
        match &self.stage {
            TurnStage::Working { api_error } => api_error.as_deref(),
            TurnStage::Ended { result: TurnResult::Failed { detail, .. } } => Some(detail),
            TurnStage::Silent
            | TurnStage::Ended { result: TurnResult::Ok | TurnResult::Interrupted | TurnResult::SessionUnknown } => {
                None
            }
        }
    }

    /// When the rate limit ends, if the process has reported it.
    pub fn resets_at(&self) -> Option<Timestamp> {
        self.resets_at
    }

    /// Why the run ended, and a text for people about what happened and what to do. `evidence` is the end of what the process wrote to
    /// stderr.
    pub fn cause(&self, exit: Exit, evidence: Option<&str>) -> (Cause, String) {
        match &self.stage {
            TurnStage::Silent if matches!(exit, Exit::Code(1..)) && evidence.is_some_and(complains_of_arguments) => {
                let evidence = evidence.unwrap_or_default();
                let then = match evidence.contains(SCRIPT_COMPLAINT) {
                    true => "Correct the script, then say something to it.",
                    false => advice(Cause::BadArguments),
                };
                (Cause::BadArguments, format!("It does not understand how it was started: {}. {then}", bare(evidence)))
            }
            _ if exit == Exit::NotStarted => (Cause::Crashed, "It could not be started.".to_owned()),
            TurnStage::Silent | TurnStage::Working { .. } if exit == Exit::LostWithMachine => {
                (Cause::LostWithMachine, format!("The machine stopped while it ran. {RESUME}"))
            }
            TurnStage::Silent => {
                (Cause::Crashed, format!("It ended before it said anything ({exit}). {LOOK_AT_STDERR}"))
            }
            TurnStage::Working { api_error: None } => {
                (Cause::Crashed, format!("It ended in the middle of a turn ({exit}). {LOOK_AT_STDERR} {RESUME}"))
            }
            TurnStage::Working { api_error: Some(error) } => {
                (Cause::Crashed, format!("It ended in the middle of a turn ({exit}), after: {}. {RESUME}", bare(error)))
            }
            TurnStage::Ended { result: TurnResult::Interrupted } => {
                (Cause::UserEnded, format!("Its last turn was interrupted ({exit}). {RESUME}"))
            }
            TurnStage::Ended { result: TurnResult::SessionUnknown } => {
                (Cause::Crashed, "It failed: the harness does not have its session any more. Resume it.".to_owned())
            }
            TurnStage::Ended { result: TurnResult::Failed { kind, detail } } => {
                let cause = failure(*kind);
                (cause, format!("It failed: {}. {}", bare(detail), advice(cause)))
            }
            TurnStage::Ended { result: TurnResult::Ok } => match exit {
                Exit::Code(0) | Exit::Unknown => (Cause::Completed, "Its last turn ended well.".to_owned()),
                Exit::Code(_) | Exit::Signal(_) | Exit::NotStarted | Exit::LostWithMachine => {
                    (Cause::Completed, format!("Its last turn ended well; only then did the process end with {exit}."))
                }
            },
        }
    }

    /// A turn has begun or continues. An error in an earlier turn no longer matters.
    fn work(&mut self) {
        match &self.stage {
            TurnStage::Working { .. } => {}
            TurnStage::Silent | TurnStage::Ended { .. } => self.stage = TurnStage::Working { api_error: None },
        }
    }
}

/// What a scripted agent writes about a script that it cannot play.
const SCRIPT_COMPLAINT: &str = "invalid script";

/// What agent programs write about arguments that they do not know.
const ARGUMENT_COMPLAINTS: [&str; 7] = [
    SCRIPT_COMPLAINT,
    "unknown option",
    "unknown argument",
    "unexpected argument",
    "unrecognized option",
    "invalid mcp configuration",
    "cannot be used with root",
];

fn complains_of_arguments(evidence: &str) -> bool {
    let evidence = evidence.to_lowercase();
    ARGUMENT_COMPLAINTS.iter().any(|complaint| evidence.contains(complaint))
}

fn shortened(words: &str) -> String {
    words.chars().take(MAX_ERROR_CHARS).collect()
}

const LOOK_AT_STDERR: &str = "Look at what it wrote to stderr.";
const RESUME: &str = "It can be resumed.";

fn failure(kind: FailureKind) -> Cause {
    match kind {
        FailureKind::RateLimited => Cause::RateLimited,
        FailureKind::Overloaded => Cause::Overloaded,
        FailureKind::OutOfCredit => Cause::OutOfCredit,
        FailureKind::Unauthorised => Cause::Unauthorised,
        FailureKind::PromptTooLong => Cause::PromptTooLong,
        FailureKind::Unavailable => Cause::Unavailable,
        FailureKind::Refused => Cause::Refused,
        FailureKind::OutputTooLong => Cause::OutputTooLong,
        FailureKind::WrongModel => Cause::WrongModel,
        FailureKind::Other => Cause::Crashed,
    }
}

/// The text without its full stop, so that it can become part of a sentence.
fn bare(words: &str) -> &str {
    words.trim().trim_end_matches('.')
}

fn advice(cause: Cause) -> &'static str {
    match cause {
        Cause::RateLimited => "Resume it when the limit is lifted.",
        Cause::Overloaded => "The service has too much to do; resume it in a while.",
        Cause::OutOfCredit => "Add credit to the account, then resume it.",
        Cause::Unauthorised => "Log in again or correct the key, then resume it.",
        Cause::PromptTooLong => "Its history is too long for the model: compact it, or start a new agent with less.",
        Cause::Unavailable => "The service or the network is down; resume it in a while.",
        Cause::Refused => "Say it in other words, or start a new agent.",
        Cause::OutputTooLong => "Ask for less at once, or raise the limit of the agent program for one answer.",
        Cause::WrongModel => "Choose another model with --model.",
        Cause::BadArguments => "Correct the arguments of its agent program in the settings.",
        Cause::Completed
        | Cause::Crashed
        | Cause::Stuck
        | Cause::Killed
        | Cause::UserEnded
        | Cause::OverBudget
        | Cause::AwaitsPermission
        | Cause::LostWithMachine => "Resume it, or start a new agent.",
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
            Self::AwaitsPermission => "waits for a permission",
            Self::Unavailable => "service unavailable",
            Self::Refused => "refused by the model",
            Self::OutputTooLong => "output too long",
            Self::WrongModel => "wrong model",
            Self::BadArguments => "bad arguments",
        })
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Signal(signal) => write!(f, "{}", SignalName(signal)),
            // By convention, a process that ends because of a signal exits with 128 plus the number of the signal.
            Self::Code(code @ 129..=192) => write!(f, "exit code {code}, as after {}", SignalName(code - 128)),
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::NotStarted => f.write_str("never started"),
            Self::LostWithMachine => f.write_str("lost with its machine"),
            Self::Unknown => f.write_str("exit code unknown"),
        }
    }
}

struct SignalName(i32);

impl fmt::Display for SignalName {
    /// Only signals with the same number on all systems have a name here.
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
