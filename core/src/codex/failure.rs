//! Translates the failures that codex reports into the kinds that all harnesses share.

use crate::failure::{by_status, by_words};
use crate::json::Fields;
use crate::output::{FailureKind, Output, ServiceError, TurnResult};

/// Reads an `error` notification: a retry, or the reason why the turn is about to fail.
pub(super) fn error(params: &Fields) -> Option<Output> {
    let error = params.object("error")?;
    let (kind, status) = kind(&error);
    let message = error.text("message").unwrap_or_default();
    if !params.flag("willRetry") {
        return Some(Output::ApiError(ServiceError { kind, status, text: message }));
    }
    let (attempt, max_attempts) = count(&message);
    let reason = error.text("additionalDetails").or(Some(message));
    Some(Output::Retrying { attempt, max_attempts, status, delay_ms: None, reason })
}

/// The result of a turn that has failed.
pub(super) fn of_turn(turn: &Fields) -> TurnResult {
    let Some(error) = turn.object("error") else {
        return TurnResult::Failed { kind: FailureKind::Other, detail: "codex gives no reason".to_owned() };
    };
    let detail = error.text("message").unwrap_or_default();
    TurnResult::Failed { kind: kind(&error).0, detail }
}

/// The kind of a failure, and the HTTP status. If codex has no code for an error, the words of the service decide.
pub(crate) fn kind(error: &Fields) -> (FailureKind, Option<u16>) {
    let message = error.text("message").unwrap_or_default();
    let (word, status) = (word(error), status(error));
    let known = match word.as_deref() {
        // Codex uses the same code if there is no credit left.
        Some("usageLimitExceeded") if by_words(&message) == FailureKind::OutOfCredit => FailureKind::OutOfCredit,
        Some("usageLimitExceeded" | "rateLimitExceeded") => FailureKind::RateLimited,
        Some("serverOverloaded" | "flexUnavailable" | "policyCapacityUnavailable") => FailureKind::Overloaded,
        Some("contextWindowExceeded") => FailureKind::PromptTooLong,
        Some("unauthorized") => FailureKind::Unauthorised,
        Some("modelNotFound") => FailureKind::WrongModel,
        Some("cyberPolicy" | "misalignmentPolicyViolation") => FailureKind::Refused,
        Some("internalServerError") => FailureKind::Unavailable,
        Some(word) if CONNECTION_LOST.contains(&word) && status.is_none() => FailureKind::Unavailable,
        _ => by_status(status),
    };
    let kind = if known == FailureKind::Other { by_words(&message) } else { known };
    (kind, status)
}

/// Codex's codes for a connection that fails or breaks. If there was an HTTP answer, its status is beside the code.
const CONNECTION_LOST: [&str; 4] = [
    "httpConnectionFailed",
    "responseStreamConnectionFailed",
    "responseStreamDisconnected",
    "responseTooManyFailedAttempts",
];

/// The code of the failure: a string, or the name of the only field of an object.
fn word(error: &Fields) -> Option<String> {
    let named = || error.object("codexErrorInfo")?.names().next().map(str::to_owned);
    error.text("codexErrorInfo").or_else(named)
}

/// The HTTP status, which is inside the only field of the error information.
fn status(error: &Fields) -> Option<u16> {
    let info = error.object("codexErrorInfo")?;
    info.into_values().filter_map(Fields::of).find_map(|about| about.count("httpStatusCode"))
}

/// The numbers in `Reconnecting... 2/5`.
fn count(message: &str) -> (u32, Option<u32>) {
    let numbers = message.split_whitespace().find_map(|word| {
        let (attempt, of) = word.split_once('/')?;
        Some((attempt.parse().ok()?, of.parse().ok()?))
    });
    numbers.map_or((0, None), |(attempt, of)| (attempt, Some(of)))
}
