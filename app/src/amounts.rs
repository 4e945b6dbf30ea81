//! Money and usage as answers show them: dollars as a decimal text for people and scripts, and billionths for exact sums. Events of the
//! log have billionths only, and keep their own form permanently.

use hatchery_core::usage::{Money, Usage};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How many billionths a dollar has.
const DOLLAR: u64 = 1_000_000_000;
/// Cents are always shown.
const SHOWN_DECIMALS: usize = 2;

/// An amount of US dollars.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Amount {
    /// The exact amount in dollars, such as `0.05`. At least two decimals, at most nine.
    #[serde(default)]
    pub dollars: String,
    /// The same in billionths.
    pub nanodollars: u64,
}

/// The usage of a turn, a run, an agent or a day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageAmount {
    pub cost: Amount,
    // The names of older versions, which are in exported quests.
    #[serde(alias = "input_tokens")]
    pub input_tokens: u64,
    #[serde(alias = "output_tokens")]
    pub output_tokens: u64,
    #[serde(alias = "cache_read_tokens")]
    pub cache_read_tokens: u64,
    #[serde(alias = "cache_write_tokens")]
    pub cache_write_tokens: u64,
}

impl From<Money> for Amount {
    fn from(Money { nanodollars }: Money) -> Self {
        let decimals = format!("{:09}", nanodollars % DOLLAR);
        let needed = decimals.trim_end_matches('0').len().max(SHOWN_DECIMALS);
        Self { dollars: format!("{}.{}", nanodollars / DOLLAR, &decimals[..needed]), nanodollars }
    }
}

impl From<Amount> for Money {
    fn from(amount: Amount) -> Self {
        Self { nanodollars: amount.nanodollars }
    }
}

impl From<Usage> for UsageAmount {
    fn from(usage: Usage) -> Self {
        let Usage { cost, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens } = usage;
        Self { cost: cost.into(), input_tokens, output_tokens, cache_read_tokens, cache_write_tokens }
    }
}

impl From<UsageAmount> for Usage {
    fn from(view: UsageAmount) -> Self {
        let UsageAmount { cost, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens } = view;
        Self { cost: cost.into(), input_tokens, output_tokens, cache_read_tokens, cache_write_tokens }
    }
}

/// For fields with `#[serde(with = "amounts::money")]`.
pub mod money {
    use super::{Amount, Deserialize as _, Deserializer, Money, Serialize as _, Serializer};

    pub fn serialize<S: Serializer>(money: &Money, serializer: S) -> Result<S::Ok, S::Error> {
        Amount::from(*money).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Money, D::Error> {
        Amount::deserialize(deserializer).map(Money::from)
    }
}

/// The same for an amount that may be missing.
pub mod money_or_null {
    use super::{Amount, Deserialize as _, Deserializer, Money, Serialize as _, Serializer};

    pub fn serialize<S: Serializer>(money: &Option<Money>, serializer: S) -> Result<S::Ok, S::Error> {
        money.map(Amount::from).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Money>, D::Error> {
        Option::<Amount>::deserialize(deserializer).map(|amount| amount.map(Money::from))
    }
}

/// The same for what was used.
pub mod usage {
    use super::{Deserialize as _, Deserializer, Serialize as _, Serializer, Usage, UsageAmount};

    pub fn serialize<S: Serializer>(usage: &Usage, serializer: S) -> Result<S::Ok, S::Error> {
        UsageAmount::from(*usage).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Usage, D::Error> {
        UsageAmount::deserialize(deserializer).map(Usage::from)
    }
}

/// `1 event`, `2 events`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_are_exact_and_have_cents() {
        for (nanodollars, dollars) in [
            (0, "0.00"),
            (50_000_000, "0.05"),
            (1, "0.000000001"),
            (1_500_000_000, "1.50"),
            (12_345_678_900, "12.3456789"),
            (u64::MAX, "18446744073.709551615"),
        ] {
            assert_eq!(Amount::from(Money { nanodollars }).dollars, dollars);
        }
    }

    /// Exports of older versions have the names of the log, and no dollars.
    #[test]
    fn older_forms_are_read() {
        let old = r#"{"cost":{"nanodollars":7},"input_tokens":1,"output_tokens":2,"cache_read_tokens":3,"cache_write_tokens":4}"#;
        let usage = Usage::from(serde_json::from_str::<UsageAmount>(old).unwrap());
        let new = serde_json::to_string(&UsageAmount::from(usage)).unwrap();
        assert!(new.contains(r#""dollars":"0.000000007""#) && new.contains(r#""cacheWriteTokens":4"#), "{new}");
        assert_eq!(Usage::from(serde_json::from_str::<UsageAmount>(&new).unwrap()), usage);
    }
}
