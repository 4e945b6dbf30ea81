//! Counts what each request to the model used, from the lines in which its answer is said.
//!
//! An answer is said in several lines, one for each block, with the same id and the same usage. The usage is that of the first moment:
//! the prompt is complete, but of the answer hardly a token is counted. So the answer is estimated by its length, and the total at
//! the end of the turn corrects it.

use super::{Fields, blocks};
use crate::price::PriceTable;
use crate::usage::{ContextUse, Usage};
use serde_json::value::RawValue;
use std::collections::VecDeque;
use std::sync::Arc;

/// How many answers are known at once: those of an agent and its sub-agents, whose lines come mixed.
const MAX_ANSWERS: usize = 64;
/// A token is about four characters of English, and less of code: rather too few tokens than too many.
const BYTES_PER_TOKEN: u64 = 4;

#[derive(Clone, Debug, Default)]
pub(super) struct RequestMeter {
    prices: Arc<PriceTable>,
    answers: VecDeque<ModelAnswer>,
    /// What the further lines of answers showed. It is told with the next answer, so that each request is told once.
    untold: Usage,
    /// The model that answered the agent itself last, and the tokens of that request and its answer.
    last: Option<(String, u64)>,
}

/// An answer of the model, as far as it was said.
#[derive(Clone, Debug)]
struct ModelAnswer {
    id: String,
    bytes: u64,
    /// What was counted for it.
    counted: Usage,
}

impl RequestMeter {
    pub(super) fn new(prices: Arc<PriceTable>) -> Self {
        Self { prices, ..Self::default() }
    }

    /// What a line shows to be used that was not counted before, and how full the context is. `own` is the agent itself, otherwise it is
    /// a sub-agent, which has a context of its own.
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
        // A message of the CLI itself, not of a model.
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

    /// How full the context is. The windows of the models are in the result of a turn.
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

/// How long a block is that the model wrote.
fn length(block: &Fields) -> u64 {
    let text = ["text", "thinking"].into_iter().find_map(|name| block.text(name)).map(|text| text.len());
    let bytes = text.or_else(|| block.raw("input").map(RawValue::get).map(str::len));
    bytes.unwrap_or_default() as u64
}
