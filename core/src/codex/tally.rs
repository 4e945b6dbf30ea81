//! What a thread of codex and its sub-agents use. Codex reports totals of each thread: they go on over resumes, and a fork begins
//! with the total of its parent, which is reported before the first turn.

use crate::stream_json::fields::Fields;
use crate::usage::Usage;
use std::collections::BTreeMap;

/// How many threads are told apart.
const MAX_THREADS: usize = 256;

#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    totals: BTreeMap<String, Usage>,
    /// The sum of the totals when the last turn ended, or before the first turn began.
    counted: Usage,
    /// A turn has begun in this process. What is reported before that is the past of the thread.
    begun: bool,
    /// How often the model was asked since the last turn ended.
    requests: u32,
}

impl Tally {
    /// Takes a total. `own` is the thread itself, otherwise it is a sub-agent's.
    pub fn take(&mut self, thread: &str, own: bool, params: &Fields) {
        let Some(usage) = params.object("tokenUsage") else { return };
        let Some(total) = usage.object("total").as_ref().map(tokens) else { return };
        let before = self.totals.get(thread).copied();
        if before.is_none() && self.totals.len() >= MAX_THREADS {
            return;
        }
        self.totals.insert(thread.to_owned(), total);
        let last = usage.object("last").as_ref().map(tokens).unwrap_or_default();
        if own && !self.begun {
            self.counted = total;
        } else if own && before.is_none() {
            self.counted = self.counted + total.saturating_sub(last);
        }
        if own && self.begun && before != Some(total) {
            self.requests += 1;
        }
    }

    pub fn begin_turn(&mut self) {
        self.begun = true;
    }

    /// The sum of all totals, what of it is new, and how often the model was asked.
    pub fn end_turn(&mut self) -> (Usage, Option<Usage>, u32) {
        let sum = self.totals.values().fold(Usage::default(), |sum, total| sum + *total);
        let since = sum.saturating_sub(self.counted);
        self.counted = sum;
        (sum, Some(since), std::mem::take(&mut self.requests))
    }
}

/// Codex counts cached tokens as input.
fn tokens(total: &Fields) -> Usage {
    let count = |name: &str| total.count::<u64>(name).unwrap_or_default();
    let (read, written) = (count("cachedInputTokens"), count("cacheWriteInputTokens"));
    Usage {
        input_tokens: count("inputTokens").saturating_sub(read).saturating_sub(written),
        output_tokens: count("outputTokens"),
        cache_read_tokens: read,
        cache_write_tokens: written,
        ..Usage::default()
    }
}
