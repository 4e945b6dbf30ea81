//! Adds up the usage of a codex thread and its subagents. Codex reports a total for each thread. The total continues over resumes. The
//! total of a fork begins with its parent's total, which codex reports before the first turn. Codex reports no cost, so each request is
//! priced.

use crate::json::Fields;
use crate::price::{PriceTable, Unpriced};
use crate::usage::{ContextUse, Money, Usage};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many threads are told apart.
const MAX_THREADS: usize = 256;

#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    prices: Arc<PriceTable>,
    threads: BTreeMap<String, Thread>,
    /// The sum of the totals when the last turn ended, or before the first turn began.
    counted: Usage,
    /// Whether a turn has begun in this process. Usage that is reported before is from the thread's past.
    begun: bool,
    /// The number of requests to the model since the last turn ended.
    requests: u32,
    /// The cost of these requests.
    cost: Money,
    /// How full the context of the agent's own thread is.
    context: Option<ContextUse>,
    unpriced: Unpriced,
}

#[derive(Clone, Debug, Default)]
struct Thread {
    model: Option<String>,
    total: Option<Usage>,
}

impl Tally {
    pub fn new(prices: Arc<PriceTable>) -> Self {
        Self { prices, ..Self::default() }
    }

    pub fn name_model(&mut self, thread: &str, model: Option<String>) {
        if let Some(known) = self.thread(thread) {
            known.model = model.or_else(|| known.model.take());
        }
    }

    pub fn begin_turn(&mut self) {
        self.begun = true;
    }

    /// Takes a new total, and returns the usage since the previous total, usually that of one request. `own` says that the thread is the
    /// agent's own and not a subagent's.
    pub fn take(&mut self, thread: &str, own: bool, params: &Fields) -> Option<Usage> {
        let usage = params.object("tokenUsage")?;
        let total = usage.object("total").as_ref().map(tokens)?;
        let last = usage.object("last").as_ref().map(tokens).unwrap_or_default();
        let begun = self.begun;
        let known = self.thread(thread)?;
        let before = known.total.replace(total);
        let model = known.model.clone();
        match (own, before) {
            (true, _) if !begun => self.counted = total,
            // The beginning of the output is gone, or the subagent began as a copy. In both cases the part before the last request counts
            // as known.
            (_, None) => self.counted += total.saturating_sub(last),
            (_, Some(_)) => {}
        }
        // Codex repeats a total when a turn is interrupted.
        if !begun || before == Some(total) {
            return None;
        }
        self.requests += u32::from(own);
        let used = before.map_or(last, |before| total.saturating_sub(before));
        self.unpriced.note(&self.prices, model.as_deref(), &used);
        let used = model.map_or(used, |model| self.prices.priced(&model, used));
        self.cost = Money { nanodollars: self.cost.nanodollars.saturating_add(used.cost.nanodollars) };
        Some(used)
    }

    /// The message that a request had no price, once.
    pub fn without_price(&mut self) -> Option<String> {
        self.unpriced.take()
    }

    /// How full the context is after the last request of the agent's own thread. A subagent has its own context.
    pub fn note_context(&mut self, own: bool, params: &Fields) -> Option<ContextUse> {
        let usage = params.object("tokenUsage").filter(|_| own)?;
        let tokens = usage.object("last")?.count("totalTokens")?;
        self.context = Some(ContextUse { tokens, window: usage.count("modelContextWindow") });
        self.context
    }

    pub fn context(&self) -> Option<ContextUse> {
        self.context
    }

    /// The sum of all totals, the part of it that is new, and the number of requests. Only the new part has a cost, because the prices of
    /// the past are not known.
    pub fn end_turn(&mut self) -> (Usage, Option<Usage>, u32) {
        let totals = self.threads.values().filter_map(|thread| thread.total);
        let sum = totals.fold(Usage::default(), |sum, total| sum + total);
        let since = Usage { cost: std::mem::take(&mut self.cost), ..sum.saturating_sub(self.counted) };
        self.counted = sum;
        (sum, Some(since), std::mem::take(&mut self.requests))
    }

    fn thread(&mut self, id: &str) -> Option<&mut Thread> {
        if !self.threads.contains_key(id) && self.threads.len() >= MAX_THREADS {
            return None;
        }
        Some(self.threads.entry(id.to_owned()).or_default())
    }
}

/// Codex counts cached tokens as input, so they are subtracted.
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
