//! Cost and tokens, and the meter that adds them up without counting anything twice.

use crate::output::TurnEnd;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, AddAssign};

/// An amount of US dollars, in billionths. A short answer of a small model costs a few millionths of a dollar, and a sum of many rounded
/// millionths would be wrong. 64 bits are enough for 18 billion dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Money {
    pub nanodollars: u64,
}

/// The usage of a turn, a run, an agent or a day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Usage {
    pub cost: Money,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_tokens: u64,
    pub cache_write_tokens: u64,
}

/// How much of the model's context window a conversation fills, as the harness last reported it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ContextUse {
    /// The tokens of the last request and its answer.
    pub tokens: u64,
    /// The size of the context window in tokens. Some harnesses report it only at the end of a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
}

impl ContextUse {
    /// How full the context is, in percent. None if the size of the window is not known.
    pub fn percent(self) -> Option<u64> {
        self.window.filter(|window| *window > 0).map(|window| self.tokens.saturating_mul(100) / window)
    }

    /// This report, completed with the window of the report before it if this one has none.
    pub(crate) fn after(self, before: Option<Self>) -> Self {
        Self { window: self.window.or_else(|| before?.window), ..self }
    }
}

/// Computes the usage of each turn of a harness session, from the totals that the harness reports.
///
/// Some harnesses report totals of the process. Others report totals of the session, and also the usage since the last turn; these totals
/// continue when the session is resumed, and begin at the parent's total in a fork. So the meter must know whether the session was used
/// before, and must be told about each new process.
///
/// A turn whose process was killed reports nothing. The next total of the session may include its usage; a total of the process does not.
/// [`Metered`] contains the usage in both cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Meter {
    /// Nothing was reported yet, and the session is new: everything that will be reported is this session's own.
    New,
    /// Nothing was reported yet, and the session started as a copy of another: its totals may contain the other's.
    Inherited,
    /// Nothing was reported yet, and the session started as a copy of another, whose totals are known. If the session reports a cost, the
    /// cost may contain the other's or begin at 0.
    Copied(Usage),
    /// The last totals of this process. The totals of the next process begin at 0.
    PerProcess(Usage),
    /// The last totals of the session. They continue when the session is resumed.
    PerSession(Usage),
}

impl Meter {
    /// The meter of a new session that is a copy of a session with the meter `parent`. `parent` is `None` if that meter is not known.
    pub fn of_copy(parent: Option<Self>) -> Self {
        match parent {
            Some(Self::PerSession(totals)) => Self::Copied(totals),
            Some(Self::New | Self::Inherited | Self::Copied(_) | Self::PerProcess(_)) | None => Self::Inherited,
        }
    }

    /// The session continues in a new process.
    pub fn new_process(&mut self) {
        match self {
            Self::PerProcess(seen) => *seen = Usage::default(),
            Self::New | Self::Inherited | Self::Copied(_) | Self::PerSession(_) => {}
        }
    }

    /// The usage since the previous result.
    pub fn take(&mut self, end: &TurnEnd) -> Usage {
        let total = end.total;
        if !end.has_total() {
            return Usage::default();
        }
        let (used, next) = match (*self, end.since_last) {
            (Self::New, Some(since)) => (since.max(total), Self::PerSession(total)),
            (Self::Inherited | Self::PerProcess(_), Some(since)) => (since, Self::PerSession(total)),
            (Self::Copied(parent), Some(since)) => {
                // A total that is smaller than the parent's does not contain the parent's.
                let cost = match total.cost >= parent.cost {
                    true => total.saturating_sub(parent).cost,
                    false => total.cost,
                };
                // The parent's usage in a turn whose process was killed may be missing in the parent's totals. So a cost of the turn itself
                // is better.
                let cost = if since.cost == Money::default() { cost } else { since.cost };
                (Usage { cost, ..since }, Self::PerSession(total))
            }
            (Self::PerSession(seen), Some(since)) => {
                (since.max(total.saturating_sub(seen)), Self::PerSession(seen.max(total)))
            }
            (Self::PerSession(seen), None) => (total.saturating_sub(seen), Self::PerSession(seen.max(total))),
            (Self::PerProcess(seen), None) => (total.saturating_sub(seen), Self::PerProcess(seen.max(total))),
            (Self::New | Self::Inherited | Self::Copied(_), None) => (total, Self::PerProcess(total)),
        };
        *self = next;
        used
    }
}

/// Usage that was counted request by request, and is not in a total of the harness yet.
///
/// A turn whose process was killed has no total. Some harnesses report its usage with the next total of the session, others never do. So it
/// is kept separately until the tokens of a total show whether the total includes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metered {
    /// The usage of the running process since its last turn ended.
    pub turn: Usage,
    /// The usage of processes that ended in the middle of a turn.
    pub lost: Usage,
}

impl Metered {
    pub(crate) fn add(&mut self, used: Usage) {
        self.turn += used;
    }

    /// The process has ended, and its turn will have no total of its own. Only a total of the same session can include its usage.
    pub(crate) fn new_process(&mut self, resumes: bool) {
        let lost = self.lost + std::mem::take(&mut self.turn);
        self.lost = if resumes { lost } else { Usage::default() };
    }

    /// A turn has ended, and the harness reports `used` since the last end. Returns the usage of the turn, and the part of it that was
    /// counted before. Without a total, the counted usage stays as it is.
    ///
    /// A harness that reports no cost has totals of tokens only. The cost is then the one that was computed for the requests.
    pub(crate) fn settle(&mut self, end: &TurnEnd, used: Usage) -> (Usage, Usage) {
        let Self { turn, lost } = std::mem::take(self);
        let all = turn + lost;
        let with_cost = |cost: Money| match end.reports_cost() {
            true => used,
            false => Usage { cost: used.cost.max(turn.cost), ..used } + Usage { cost, ..Usage::default() },
        };
        match used {
            _ if !end.has_total() => (used, Usage::default()),
            used if used.has_prompts_of(&all) => (with_cost(lost.cost), all),
            _ => (with_cost(Money::default()), turn),
        }
    }
}

impl Money {
    /// From an amount as an agent program writes it. A value that is not an amount becomes 0.
    pub fn from_dollars(dollars: f64) -> Self {
        // The cast saturates: a negative value or NaN becomes 0.
        Self { nanodollars: (dollars * 1e9).round() as u64 }
    }
}

impl Usage {
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// All tokens, including those of the cache.
    pub fn tokens(&self) -> u64 {
        [self.input_tokens, self.output_tokens, self.cache_read_tokens, self.cache_write_tokens]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    /// This sum, with the part `before` replaced by `after`.
    #[must_use]
    pub fn replacing(self, before: Self, after: Self) -> Self {
        (self + after).saturating_sub(before)
    }

    /// Whether the prompts of `other` can be part of this usage. The tokens of answers are not compared, because they are estimates until
    /// the turn has ended.
    fn has_prompts_of(&self, other: &Self) -> bool {
        self.input_tokens >= other.input_tokens
            && self.cache_read_tokens >= other.cache_read_tokens
            && self.cache_write_tokens >= other.cache_write_tokens
    }

    pub(crate) fn max(self, other: Self) -> Self {
        self.with(other, u64::max)
    }

    /// Subtracts each number. No result is below 0.
    pub(crate) fn saturating_sub(self, other: Self) -> Self {
        self.with(other, u64::saturating_sub)
    }

    /// Applies an operation to each number.
    fn with(self, other: Self, each: fn(u64, u64) -> u64) -> Self {
        Self {
            cost: Money { nanodollars: each(self.cost.nanodollars, other.cost.nanodollars) },
            input_tokens: each(self.input_tokens, other.input_tokens),
            output_tokens: each(self.output_tokens, other.output_tokens),
            cache_read_tokens: each(self.cache_read_tokens, other.cache_read_tokens),
            cache_write_tokens: each(self.cache_write_tokens, other.cache_write_tokens),
        }
    }
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.with(other, u64::saturating_add)
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl fmt::Display for Money {
    /// Amounts from one dollar on have whole cents; smaller ones have as many places as they need: `$12.30`, `$0.0042`, `$0`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DOLLAR: u64 = 1_000_000_000;
        let cents = self.nanodollars.saturating_add(5_000_000) / 10_000_000;
        match self.nanodollars {
            0 => f.write_str("$0"),
            DOLLAR.. => write!(f, "${}.{:02}", cents / 100, cents % 100),
            less => write!(f, "$0.{}", format!("{less:09}").trim_end_matches('0')),
        }
    }
}
