//! The kind of failure that an HTTP status or a sentence means. Each reader first looks at its own program's codes for failures. What those
//! leave open is decided here, in the same way for all programs.

use crate::output::FailureKind;

/// The kind of a failure, by the HTTP status of the service's answer.
pub(crate) fn by_status(status: Option<u16>) -> FailureKind {
    match status {
        Some(401 | 403) => FailureKind::Unauthorised,
        Some(402) => FailureKind::OutOfCredit,
        Some(404) => FailureKind::WrongModel,
        Some(413) => FailureKind::PromptTooLong,
        Some(429) => FailureKind::RateLimited,
        Some(503 | 529) => FailureKind::Overloaded,
        Some(500..=599) => FailureKind::Unavailable,
        Some(_) | None => FailureKind::Other,
    }
}

/// The kind of a failure without a code, by sentences of the services and the agent programs.
pub(crate) fn by_words(words: &str) -> FailureKind {
    const KNOWN: [(&str, FailureKind); 20] = [
        ("issue with the selected model", FailureKind::WrongModel),
        ("model does not exist", FailureKind::WrongModel),
        ("model_not_found", FailureKind::WrongModel),
        ("usage policy", FailureKind::Refused),
        ("reason: content_filter", FailureKind::Refused),
        ("output token maximum", FailureKind::OutputTooLong),
        ("reason: max_output_tokens", FailureKind::OutputTooLong),
        ("prompt is too long", FailureKind::PromptTooLong),
        ("context_length_exceeded", FailureKind::PromptTooLong),
        ("exceeds the context window", FailureKind::PromptTooLong),
        // For a lack of credit, codex uses the code of a used-up limit; for a missing key, it uses no code.
        ("quota exceeded", FailureKind::OutOfCredit),
        ("insufficient_quota", FailureKind::OutOfCredit),
        ("missing environment variable", FailureKind::Unauthorised),
        ("experiencing high demand", FailureKind::Unavailable),
        ("stream disconnected before completion", FailureKind::Unavailable),
        ("connection refused", FailureKind::Unavailable),
        ("connection error", FailureKind::Unavailable),
        ("unable to connect", FailureKind::Unavailable),
        ("request timed out", FailureKind::Unavailable),
        ("fetch failed", FailureKind::Unavailable),
    ];
    // The codes of failed connections: ECONNREFUSED, ECONNRESET, ENOTFOUND, ETIMEDOUT, EAI_AGAIN …
    const NETWORK: [&str; 6] = ["ECONN", "ENOTFOUND", "ETIMEDOUT", "EAI_AGAIN", "EPIPE", "ENETUNREACH"];
    if NETWORK.iter().any(|code| words.contains(code)) {
        return FailureKind::Unavailable;
    }
    let words = words.to_lowercase();
    KNOWN.iter().find(|(known, _)| words.contains(known)).map_or(FailureKind::Other, |(_, kind)| *kind)
}
