//! The prices of a project: `[prices]` in `hatchery.toml`, in dollars for a million tokens, by model.

use crate::report::{Code, Report};
use hatchery_core::price::{Price, PriceTable};
use serde::Deserialize;
use std::collections::BTreeMap;

/// How many models can have a price of their own.
const MAX_PRICES: usize = 1_000;
/// The highest price: a thousand times that of the dearest model. What is above is a mistake, and the sums would overflow.
const MAX_DOLLARS: f64 = 100_000.0;

/// The settings as people write them: a table for each model.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct PriceSettings(BTreeMap<String, OwnPrice>);

/// Without prices of their own, tokens of the cache cost what input costs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnPrice {
    input: f64,
    output: f64,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
}

impl PriceSettings {
    pub(super) fn over_defaults(self) -> Result<PriceTable, Report> {
        if self.0.len() > MAX_PRICES {
            let message = format!("`prices` has {} models; there can be {MAX_PRICES}", self.0.len());
            return Err(Report::new(Code::Usage, message).hint("one key can stand for a family of models"));
        }
        let mut own = Vec::with_capacity(self.0.len());
        for (model, price) in self.0 {
            let price = price.read(&model)?;
            own.push((model, price));
        }
        Ok(PriceTable::default().with(own))
    }
}

impl OwnPrice {
    fn read(&self, model: &str) -> Result<Price, Report> {
        let wrong = |what: &str, dollars: f64| {
            let message = format!("`prices.{model}.{what}` must be 0 to {MAX_DOLLARS} dollars, not {dollars}");
            Report::new(Code::Usage, message).hint("a price is in dollars for a million tokens")
        };
        if model.is_empty() {
            return Err(Report::new(Code::Usage, "`prices` has a model without a name"));
        }
        let cache_read = self.cache_read.unwrap_or(self.input);
        let cache_write = self.cache_write.unwrap_or(self.input);
        let all =
            [("input", self.input), ("output", self.output), ("cache_read", cache_read), ("cache_write", cache_write)];
        match all.into_iter().find(|(_, dollars)| !(0.0..=MAX_DOLLARS).contains(dollars)) {
            Some((what, dollars)) => Err(wrong(what, dollars)),
            None => Ok(Price::from_dollars(self.input, self.output, cache_read, cache_write)),
        }
    }
}
