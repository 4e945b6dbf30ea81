//! Translates the failures of agents that speak ACP into the kinds that all harnesses share. Version 1 has a code only for a missing login.
//! Everything else is in words that each agent program chooses.

use crate::codex;
use crate::failure::by_words;
use crate::json::Fields;
use crate::output::{FailureKind, TurnResult};

/// The code of the error "log in first".
const AUTHENTICATION_REQUIRED: &str = "-32000";

/// The result of a turn whose request was refused.
pub(super) fn of_request(error: &Fields) -> TurnResult {
    TurnResult::Failed { kind: kind(error), detail: words(error) }
}

/// The result of a turn, from its stop reason. `failed` is the last text of the turn if the agent reported a failure elsewhere.
pub(super) fn of_stop(reason: Option<&str>, failed: Option<&str>) -> TurnResult {
    let stopped = |kind, reason: &str| TurnResult::Failed { kind, detail: format!("the agent stopped: {reason}") };
    match (reason, failed) {
        (Some("cancelled"), _) => TurnResult::Interrupted,
        (Some("end_turn") | None, Some(words)) => {
            TurnResult::Failed { kind: by_words(words), detail: words.trim().to_owned() }
        }
        (Some("end_turn") | None, None) => TurnResult::Ok,
        (Some(reason @ "refusal"), _) => stopped(FailureKind::Refused, reason),
        (Some(reason @ "max_tokens"), _) => stopped(FailureKind::OutputTooLong, reason),
        (Some(reason), _) => stopped(FailureKind::Other, reason),
    }
}

/// What went wrong. Some agents write the useful words into the data only.
pub(super) fn words(error: &Fields) -> String {
    let data = error.object("data").and_then(|data| data.text("message").or_else(|| data.text("details")));
    data.or_else(|| error.text("message")).unwrap_or_else(|| "the agent gives no reason".to_owned())
}

/// Whether a request was refused because the agent must be logged in first.
pub(super) fn needs_login(error: &Fields) -> bool {
    kind(error) == FailureKind::Unauthorised
}

/// Whether an update says that the turn has failed. The ACP adapter of codex reports this in its metadata, and then ends the turn as if it
/// had succeeded.
pub(super) fn is_system_error(update: &Fields) -> bool {
    let status = || update.object("_meta")?.object("codex")?.object("threadStatus")?.text("type");
    status().as_deref() == Some("systemError")
}

fn kind(error: &Fields) -> FailureKind {
    if error.raw("code").is_some_and(|code| code.get() == AUTHENTICATION_REQUIRED) {
        return FailureKind::Unauthorised;
    }
    let data = error.object("data");
    let word = data.as_ref().and_then(|data| data.text("errorKind"));
    let known = match word.as_deref() {
        Some("rate_limit") => FailureKind::RateLimited,
        Some("overloaded") => FailureKind::Overloaded,
        Some("billing_error") => FailureKind::OutOfCredit,
        Some("authentication_failed") => FailureKind::Unauthorised,
        Some("prompt_too_long") => FailureKind::PromptTooLong,
        Some("max_output_tokens") => FailureKind::OutputTooLong,
        Some("server_error") => FailureKind::Unavailable,
        // The ACP adapter of codex passes on the error of codex.
        _ => data.map_or(FailureKind::Other, |data| codex::failure::kind(&data).0),
    };
    if known == FailureKind::Other { by_words(&words(error)) } else { known }
}
