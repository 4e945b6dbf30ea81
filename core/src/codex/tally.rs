//! What a thread of codex and its sub-agents use. Codex reports totals of each thread: they go on over resumes, and a fork begins
//! with the total of its parent, which is reported before the first turn. It reports no cost, so each request is priced.

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
    /// A turn has begun in this process. What is reported before that is the past of the thread.
    begun: bool,
    /// How often the model was asked since the last turn ended.
    requests: u32,
    /// What that cost.
    cost: Money,
    /// How full the context of the thread itself is.
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

    /// Takes a total, and gives what was used since the last one: by one request, as a rule. `own` is the thread itself, otherwise it is
    /// a sub-agent's.
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
            // The beginning of the output is gone, and with it what was counted; or a sub-agent began as a copy.
            (_, None) => self.counted += total.saturating_sub(last),
            (_, Some(_)) => {}
        }
        // A total is said again when a turn is interrupted.
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

    /// That a request had no price, in words; once.
    pub fn without_price(&mut self) -> Option<String> {
        self.unpriced.take()
    }

    /// How full the context is after the last request of the thread itself. A sub-agent has a context of its own.
    pub fn note_context(&mut self, own: bool, params: &Fields) -> Option<ContextUse> {
        let usage = params.object("tokenUsage").filter(|_| own)?;
        let tokens = usage.object("last")?.count("totalTokens")?;
        self.context = Some(ContextUse { tokens, window: usage.count("modelContextWindow") });
        self.context
    }

    pub fn context(&self) -> Option<ContextUse> {
        self.context
    }

    /// The sum of all totals, what of it is new, and how often the model was asked. Only what is new has a cost: the prices of the
    /// past are not known.
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
