//! Counts the usage of each request to the model, from the lines of its answer.
//!
//! An answer has several lines, one for each block, with the same id and the same usage. That usage is from the start of the answer: it
//! contains the whole prompt, but hardly any tokens of the answer. So the answer is estimated by its length, and the total at the end of
//! the turn corrects the estimate.

use super::{Fields, blocks};
use crate::price::PriceTable;
use crate::usage::{ContextUse, Usage};
use serde_json::value::RawValue;
use std::collections::VecDeque;
use std::sync::Arc;

/// How many answers are known at once. The lines of an agent and its subagents are mixed.
const MAX_ANSWERS: usize = 64;
/// A token has about four characters of English, and fewer of code. So the estimate is rather too low than too high.
const BYTES_PER_TOKEN: u64 = 4;

#[derive(Clone, Debug, Default)]
pub(super) struct RequestMeter {
    prices: Arc<PriceTable>,
    answers: VecDeque<ModelAnswer>,
    /// The usage from further lines of answers. It is reported with the next answer, so that each request is reported once.
    untold: Usage,
    /// The last model that answered the agent itself, and the tokens of that request and its answer.
    last: Option<(String, u64)>,
}

/// An answer of the model, as far as its lines have arrived.
#[derive(Clone, Debug)]
struct ModelAnswer {
    id: String,
    bytes: u64,
    /// The usage that was counted for the answer.
    counted: Usage,
}

impl RequestMeter {
    pub(super) fn new(prices: Arc<PriceTable>) -> Self {
        Self { prices, ..Self::default() }
    }

    /// The usage in a line that was not counted before, and how full the context is. `own` says that the line is the agent's own and not a
    /// subagent's; a subagent has its own context.
    pub(super) fn take(&mut self, line: &Fields, own: bool) -> Option<(Usage, Option<ContextUse>)> {
        if line.text("type").as_deref() != Some("assistant") {
            return None;
        }
        let message = line.object("message")?;
        let (id, model, said) = (message.text("id")?, message.text("model")?, message.object("usage")?);
        let known = self.answers.iter().position(|answer| answer.id == id);
        let at = match known {
            Some(at) => at,
            None => {
                if self.answers.len() == MAX_ANSWERS {
                    self.answers.pop_front();
                }
                self.answers.push_back(ModelAnswer { id, bytes: 0, counted: Usage::default() });
                self.answers.len() - 1
            }
        };
        let answer = self.answers.get_mut(at)?;
        answer.bytes = answer.bytes.saturating_add(blocks(line).iter().map(length).sum());
        let count = |name| said.count(name).unwrap_or_default();
        let output_tokens: u64 = count("output_tokens");
        let used = Usage {
            input_tokens: count("input_tokens"),
            output_tokens: output_tokens.max(answer.bytes / BYTES_PER_TOKEN),
            cache_read_tokens: count("cache_read_input_tokens"),
            cache_write_tokens: count("cache_creation_input_tokens"),
            ..Usage::default()
        };
        // The CLI also writes messages of its own, which no model answered.
        let reported = Usage { output_tokens, ..used };
        if reported.is_nothing() {
            return None;
        }
        let used = self.prices.priced(&model, used);
        self.untold += used.saturating_sub(answer.counted);
        answer.counted = answer.counted.max(used);
        if own {
            self.last = Some((model, answer.counted.tokens()));
        }
        let context = if own { self.context(None) } else { None };
        known.is_none().then(|| (std::mem::take(&mut self.untold), context))
    }

    /// How full the context is. The result line of a turn has the context windows of the models.
    pub(super) fn context(&self, models: Option<Fields>) -> Option<ContextUse> {
        let (model, tokens) = self.last.as_ref()?;
        let window = models.and_then(|models| {
            // A model with a larger window has a suffix here: `claude-opus-4-7[1m]`.
            let name = models.names().find(|name| name.split('[').next() == Some(model.as_str()))?;
            models.object(name)?.count("contextWindow")
        });
        Some(ContextUse { tokens: *tokens, window })
    }
}

/// The length of a block in bytes.
fn length(block: &Fields) -> u64 {
    let text = ["text", "thinking"].into_iter().find_map(|name| block.text(name)).map(|text| text.len());
    let bytes = text.or_else(|| block.raw("input").map(RawValue::get).map(str::len));
    bytes.unwrap_or_default() as u64
}
