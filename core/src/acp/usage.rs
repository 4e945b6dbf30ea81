//! The tokens that agents report: for a turn, in the answer that ends the turn, or for each request to the model, beside a chunk of text.
//! The protocol has a field only for the turn. Some agents have fields of their own.

use crate::json::Fields;
use crate::usage::Usage;

/// From the answer that ends a turn. opencode and the adapters send `usage`, gemini sends a quota.
pub(super) fn of_turn(answer: &Fields) -> Option<Usage> {
    if let Some(usage) = answer.object("usage") {
        return Some(tokens(&usage));
    }
    let quota = answer.object("_meta")?.object("quota")?.object("token_count")?;
    let count = |name: &str| quota.count::<u64>(name).unwrap_or_default();
    Some(Usage { input_tokens: count("input_tokens"), output_tokens: count("output_tokens"), ..Usage::default() })
}

/// From an update with a chunk of text, after a request to the model. Only qwen sends this.
pub(super) fn of_request(update: &Fields) -> Option<Usage> {
    update.object("_meta")?.object("usage").as_ref().map(tokens)
}

fn tokens(usage: &Fields) -> Usage {
    let count = |name: &str| usage.count::<u64>(name).unwrap_or_default();
    Usage {
        input_tokens: count("inputTokens"),
        output_tokens: count("outputTokens"),
        cache_read_tokens: count("cachedReadTokens"),
        cache_write_tokens: count("cachedWriteTokens"),
        ..Usage::default()
    }
}
