//! The cost of tokens: list prices by model, for harnesses that report only tokens, and for the requests of a turn that has not ended.
//!
//! These are estimates. If a harness reports the cost of a turn, that cost replaces the estimate ([`Meter`](crate::usage::Meter)). The
//! price of a request is recorded with the request, so a change of the table does not change the past.

use crate::usage::{Money, Usage};
use std::collections::BTreeMap;

/// The key of the price for models that no other key names.
pub const ANY_MODEL: &str = "default";

const MILLION: u128 = 1_000_000;

/// The price of a million tokens of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    pub input: Money,
    pub output: Money,
    pub cache_read: Money,
    pub cache_write: Money,
    /// The surcharge for a request with a long prompt.
    pub long_prompt: Option<LongPrompt>,
}

/// The surcharge for long prompts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongPrompt {
    /// The longest prompt, in tokens, without the surcharge. Tokens that are read from the cache count.
    pub above: u64,
    /// The factor for all prices.
    pub times: u64,
}

/// Prices by model.
///
/// A key is part of a model's name, between characters that are neither letters nor digits: `claude-opus-5` is also the price of
/// `us.anthropic.claude-opus-5-20260724-v1:0`. The longest key that fits is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriceTable {
    prices: BTreeMap<String, Price>,
}

impl Default for PriceTable {
    /// The list prices of November 2026.
    fn default() -> Self {
        Self { prices: LIST.iter().map(|row| (row.0.to_owned(), row.price())).collect() }
    }
}

impl PriceTable {
    /// Adds the prices of a project. They replace fitting list prices, even those with longer keys.
    #[must_use]
    pub fn with(mut self, own: impl IntoIterator<Item = (String, Price)>) -> Self {
        for (key, price) in own {
            // Otherwise `claude-opus-5` of the list would win over `claude-opus` in the settings.
            self.prices.retain(|listed, _| !contains_name(listed, &key));
            self.prices.insert(key, price);
        }
        self
    }

    /// The price of a model, if it is known.
    pub fn of(&self, model: &str) -> Option<&Price> {
        let fitting = self.prices.iter().filter(|(key, _)| contains_name(model, key));
        let best = fitting.max_by_key(|(key, _)| key.len()).map(|(_, price)| price);
        best.or_else(|| self.prices.get(ANY_MODEL))
    }

    /// The cost of a request to a model. None if the price of the model is not known.
    pub fn cost(&self, model: &str, used: &Usage) -> Option<Money> {
        self.of(model).map(|price| price.cost(used))
    }

    /// A usage with its cost. If the price of the model is not known, the cost is not changed.
    #[must_use]
    pub fn priced(&self, model: &str, used: Usage) -> Usage {
        Usage { cost: self.cost(model, &used).unwrap_or(used.cost), ..used }
    }
}

/// Whether a process uses a model without a price. Such usage costs nothing and no budget limits it, so the user gets one message about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Unpriced {
    #[default]
    Unseen,
    /// Contains the message for the user.
    Seen(String),
    Told,
}

impl Unpriced {
    pub fn note(&mut self, prices: &PriceTable, model: Option<&str>, used: &Usage) {
        let has_price = model.is_some_and(|model| prices.of(model).is_some());
        if *self != Self::Unseen || has_price || used.tokens() == 0 {
            return;
        }
        let whose = match model {
            Some(model) => format!("The price of the model `{model}` is not known"),
            None => "The agent does not name its model, so its price is not known".to_owned(),
        };
        *self = Self::Seen(format!(
            "{whose}: its usage counts as free, and no budget limits it. Set a price for it, or for `{ANY_MODEL}`, in `[prices]` \
             of hatchery.toml."
        ));
    }

    /// The message, if it was not sent yet.
    pub fn take(&mut self) -> Option<String> {
        match std::mem::replace(self, Self::Told) {
            Self::Seen(words) => Some(words),
            Self::Told => None,
            Self::Unseen => {
                *self = Self::Unseen;
                None
            }
        }
    }
}

impl Price {
    /// Prices in dollars for a million tokens.
    pub fn from_dollars(input: f64, output: f64, cache_read: f64, cache_write: f64) -> Self {
        let [input, output, cache_read, cache_write] =
            [input, output, cache_read, cache_write].map(Money::from_dollars);
        Self { input, output, cache_read, cache_write, long_prompt: None }
    }

    /// The cost of one request.
    pub fn cost(&self, used: &Usage) -> Money {
        let parts = [
            (used.input_tokens, self.input),
            (used.output_tokens, self.output),
            (used.cache_read_tokens, self.cache_read),
            (used.cache_write_tokens, self.cache_write),
        ];
        let sum = parts.into_iter().fold(0_u128, |sum, (tokens, price)| {
            sum.saturating_add(u128::from(tokens).saturating_mul(u128::from(price.nanodollars)))
        });
        let prompt = Usage { output_tokens: 0, ..*used }.tokens();
        let times = self.long_prompt.filter(|long| prompt > long.above).map_or(1, |long| long.times);
        // Rounded up, so that used tokens are never free.
        let nanodollars = sum.saturating_mul(times.into()).div_ceil(MILLION);
        Money { nanodollars: u64::try_from(nanodollars).unwrap_or(u64::MAX) }
    }
}

/// Whether a name contains another as a whole word.
fn contains_name(name: &str, part: &str) -> bool {
    let is_edge = |next: Option<char>| next.is_none_or(|next| !next.is_ascii_alphanumeric());
    name.match_indices(part)
        .any(|(at, found)| is_edge(name[..at].chars().next_back()) && is_edge(name[at + found.len()..].chars().next()))
}

/// A row of the list: the key; dollars for a million tokens of input, output, cache read and cache write; then the longest prompt without
/// surcharge, and the factor for longer ones.
struct PriceRow(&'static str, f64, f64, f64, f64, Option<(u64, u64)>);

impl PriceRow {
    fn price(&self) -> Price {
        let long_prompt = self.5.map(|(above, times)| LongPrompt { above, times });
        Price { long_prompt, ..Price::from_dollars(self.1, self.2, self.3, self.4) }
    }
}

/// Prices of the providers, as far as they are known; a project can set its own. The price of a cache write is for the shortest lifetime.
/// If only a part of a long request costs more, the row has the larger factor, because a budget should rather act too early.
const LIST: [PriceRow; 38] = [
    PriceRow("claude-fable-5", 10.0, 50.0, 1.0, 12.5, None),
    PriceRow("claude-fable-5-1", 10.0, 50.0, 0.25, 12.5, None),
    PriceRow("claude-mythos-5", 10.0, 50.0, 1.0, 12.5, None),
    PriceRow("claude-mythos-5-1", 10.0, 50.0, 0.25, 12.5, None),
    PriceRow("claude-opus-5-5", 4.0, 20.0, 0.2, 5.0, None),
    PriceRow("claude-opus-5", 5.0, 25.0, 0.5, 6.25, None),
    PriceRow("claude-opus-4-8", 5.0, 25.0, 0.5, 6.25, None),
    PriceRow("claude-opus-4-7", 5.0, 25.0, 0.5, 6.25, None),
    PriceRow("claude-opus-4-6", 5.0, 25.0, 0.5, 6.25, None),
    PriceRow("claude-opus-4-5", 5.0, 25.0, 0.5, 6.25, None),
    PriceRow("claude-opus-4", 15.0, 75.0, 1.5, 18.75, None),
    PriceRow("claude-3-opus", 15.0, 75.0, 1.5, 18.75, None),
    PriceRow("claude-sonnet-5-5", 2.0, 10.0, 0.1, 2.5, None),
    PriceRow("claude-sonnet-5", 2.0, 10.0, 0.2, 2.5, None),
    PriceRow("claude-sonnet-4", 3.0, 15.0, 0.3, 3.75, None),
    PriceRow("claude-3-7-sonnet", 3.0, 15.0, 0.3, 3.75, None),
    PriceRow("claude-haiku-5-5", 0.1, 0.5, 0.01, 0.125, Some((100_000, 5))),
    PriceRow("claude-haiku-4-5", 1.0, 5.0, 0.1, 1.25, None),
    PriceRow("claude-3-5-haiku", 0.8, 4.0, 0.08, 1.0, None),
    PriceRow("claude-3-haiku", 0.25, 1.25, 0.03, 0.3, None),
    PriceRow("gpt-6-astra", 10.0, 50.0, 1.0, 12.5, Some((272_000, 2))),
    PriceRow("gpt-6-sol", 2.0, 10.0, 0.2, 2.5, Some((272_000, 2))),
    PriceRow("gpt-6-luna", 0.1, 0.5, 0.01, 0.125, Some((272_000, 2))),
    PriceRow("gpt-5.6", 5.0, 30.0, 0.5, 5.0, Some((272_000, 2))),
    PriceRow("gpt-5.6-terra", 2.0, 12.0, 0.2, 2.0, Some((272_000, 2))),
    PriceRow("gpt-5.6-luna", 0.2, 1.2, 0.02, 0.2, Some((272_000, 2))),
    PriceRow("gpt-5.5", 5.0, 30.0, 0.5, 5.0, Some((272_000, 2))),
    PriceRow("gpt-5.4", 2.5, 15.0, 0.25, 2.5, Some((272_000, 2))),
    PriceRow("gpt-5.4-mini", 0.75, 4.5, 0.075, 0.75, None),
    PriceRow("gpt-5.2", 1.75, 14.0, 0.175, 1.75, None),
    PriceRow("gpt-5.1", 1.25, 10.0, 0.125, 1.25, None),
    PriceRow("gpt-5", 1.25, 10.0, 0.125, 1.25, None),
    PriceRow("gpt-5-mini", 0.25, 2.0, 0.025, 0.25, None),
    PriceRow("gpt-5-nano", 0.05, 0.4, 0.005, 0.05, None),
    PriceRow("codex-mini", 1.5, 6.0, 0.375, 1.5, None),
    PriceRow("gpt-4.1", 2.0, 8.0, 0.5, 2.0, None),
    PriceRow("o3", 2.0, 8.0, 0.5, 2.0, None),
    PriceRow("o4-mini", 1.1, 4.4, 0.275, 1.1, None),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn used(input: u64, output: u64, cache_read: u64, cache_write: u64) -> Usage {
        Usage {
            cost: Money::default(),
            input_tokens: input,
            output_tokens: output,
            cache_read_tokens: cache_read,
            cache_write_tokens: cache_write,
        }
    }

    fn input_price(model: &str) -> Option<u64> {
        PriceTable::default().of(model).map(|price| price.input.nanodollars)
    }

    /// The figures of recorded runs, as the Claude CLI computed them.
    #[test]
    fn the_list_agrees_with_what_the_cli_reports() {
        let cost = |model, used| PriceTable::default().cost(model, &used).unwrap().nanodollars;
        assert_eq!(cost("claude-opus-5-5", used(10, 5, 0, 0)), 140_000);
        assert_eq!(cost("claude-opus-5-5", used(100_000, 20_000, 0, 0)), 800_000_000);
        assert_eq!(cost("claude-haiku-5-5", used(10, 5, 0, 0)), 3_500);
        assert_eq!(cost("claude-sonnet-4-6", used(20, 10, 0, 0)), 210_000);
    }

    #[test]
    fn the_longest_key_counts_and_only_whole_words() {
        assert_eq!(input_price("us.anthropic.claude-opus-5-5-20261001-v1:0"), Some(4_000_000_000));
        assert_eq!(input_price("claude-opus-5-20260724"), Some(5_000_000_000));
        assert_eq!(input_price("gpt-5-codex"), input_price("gpt-5"));
        assert_eq!(input_price("openai/gpt-5-mini-2026-01-01"), Some(250_000_000));
        assert_eq!(input_price("gpt-50"), None, "another model, whose price nobody knows");
        assert_eq!(input_price("solo3"), None);
    }

    #[test]
    fn each_kind_of_token_has_its_price() {
        let price = Price::from_dollars(3.0, 15.0, 0.3, 3.75);
        assert_eq!(price.cost(&used(1_000_000, 0, 0, 0)), Money::from_dollars(3.0));
        assert_eq!(price.cost(&used(0, 1_000_000, 0, 0)), Money::from_dollars(15.0));
        assert_eq!(price.cost(&used(0, 0, 1_000_000, 0)), Money::from_dollars(0.3));
        assert_eq!(price.cost(&used(0, 0, 0, 1_000_000)), Money::from_dollars(3.75));
        assert_eq!(price.cost(&used(1, 0, 0, 0)).nanodollars, 3_000);
        assert_eq!(price.cost(&used(u64::MAX, u64::MAX, 0, 0)).nanodollars, u64::MAX, "it stops at the largest sum");
    }

    #[test]
    fn a_long_prompt_costs_more_with_what_is_read_from_the_cache() {
        let table = PriceTable::default();
        let cost = |used| table.cost("claude-haiku-5-5", &used).unwrap().nanodollars;
        assert_eq!(cost(used(0, 0, 100_000, 0)), 1_000_000);
        assert_eq!(cost(used(1, 0, 100_000, 0)), 5 * 1_000_100);
    }

    #[test]
    fn the_prices_of_a_project_come_first() {
        let own = |dollars: f64| Price::from_dollars(dollars, dollars, dollars, dollars);
        let table =
            PriceTable::default().with([("claude-opus".to_owned(), own(1.0)), ("house-model".to_owned(), own(2.0))]);
        assert_eq!(
            table.of("claude-opus-5-5"),
            Some(&own(1.0)),
            "a shorter key of a project stands for the whole family"
        );
        assert_eq!(table.of("house-model-7b"), Some(&own(2.0)));
        assert_eq!(table.of("unheard-of"), None);
        let table = table.with([(ANY_MODEL.to_owned(), own(3.0))]);
        assert_eq!(table.of("unheard-of"), Some(&own(3.0)));
        assert_eq!(table.of("house-model-7b"), Some(&own(2.0)), "the default is for models that no key names");
    }

    #[test]
    fn tokens_without_a_price_keep_the_cost_that_they_have() {
        let table = PriceTable::default();
        let known = Usage { cost: Money { nanodollars: 7 }, ..used(10, 5, 0, 0) };
        assert_eq!(table.priced("unheard-of", known), known);
        assert_eq!(table.priced("claude-opus-5-5", known).cost.nanodollars, 140_000);
    }
}
