//! Failures as codex reports them, in the kinds that all harnesses share.

use crate::output::{ApiError, FailureKind, Output, TurnResult};
use crate::stream_json::fields::Fields;

/// An `error` notification: a retry, or the reason for which the turn is about to fail.
pub(super) fn error(params: &Fields) -> Option<Output> {
    let error = params.object("error")?;
    let (kind, status) = kind(&error);
    let message = error.text("message").unwrap_or_default();
    if !params.flag("willRetry") {
        return Some(Output::ApiError(ApiError { kind, status, text: message }));
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

fn kind(error: &Fields) -> (FailureKind, Option<u16>) {
    let message = error.text("message").unwrap_or_default();
    // A lack of credit has the same code as a used-up limit, and a missing key has none.
    if message.starts_with("Quota exceeded") {
        return (FailureKind::OutOfCredit, None);
    }
    if message.starts_with("Missing environment variable") {
        return (FailureKind::Unauthorised, None);
    }
    let status = status(error);
    let by_word = match error.text("codexErrorInfo").as_deref() {
        Some("usageLimitExceeded" | "rateLimitExceeded") => Some(FailureKind::RateLimited),
        Some("serverOverloaded" | "flexUnavailable" | "policyCapacityUnavailable") => Some(FailureKind::Overloaded),
        Some("contextWindowExceeded") => Some(FailureKind::PromptTooLong),
        Some("unauthorized") => Some(FailureKind::Unauthorised),
        _ => None,
    };
    let by_status = match status {
        Some(401 | 403) => FailureKind::Unauthorised,
        Some(402) => FailureKind::OutOfCredit,
        Some(413) => FailureKind::PromptTooLong,
        Some(429) => FailureKind::RateLimited,
        Some(503 | 529) => FailureKind::Overloaded,
        _ => FailureKind::Other,
    };
    (by_word.unwrap_or(by_status), status)
}

/// The HTTP status, which is a field of the one entry that the error information has.
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
