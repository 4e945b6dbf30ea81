//! What a run costs: money and tokens, and the meter that adds them up without counting anything twice.

use crate::output::TurnEnd;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, AddAssign};

/// An amount of US dollars, in billionths: a short answer of a small model costs a few millionths, and the sum of many rounded
/// millionths would be wrong. 64 bits of them are 18 billion dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Money {
    pub nanodollars: u64,
}

/// What was used: by a turn, a run, an agent or a day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Usage {
    pub cost: Money,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_tokens: u64,
    pub cache_write_tokens: u64,
}

/// How much of the model's context window a conversation fills, as the harness said last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ContextUse {
    /// The tokens of the last request and its answer.
    pub tokens: u64,
    /// How many tokens the model can take. Some harnesses say it at the end of a turn only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
}

impl ContextUse {
    /// How full it is, if it is known how much the model can take.
    pub fn percent(self) -> Option<u64> {
        self.window.filter(|window| *window > 0).map(|window| self.tokens.saturating_mul(100) / window)
    }

    /// What is known after this was said: a window stays known when only the tokens are said.
    pub(crate) fn after(self, before: Option<Self>) -> Self {
        Self { window: self.window.or_else(|| before?.window), ..self }
    }
}

/// Computes what each turn of a harness session used, from the totals that the harness reports.
///
/// Some harnesses report totals of the process. Others report totals of the session, which go on when the session is resumed and
/// begin at the parent's total in a fork, and say beside it what was used since the last turn. So the meter must know whether the
/// session has a past, and must be told of each new process.
///
/// A turn that was killed reports nothing. The next total of the session may include what it used; with totals of the process it does
/// not. [`Metered`] has it in both cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Meter {
    /// Nothing was reported yet, and the session is new: all that will be reported is ours.
    New,
    /// Nothing was reported yet, and the session began as a copy of another: its totals may contain the other's.
    Inherited,
    /// The same, and the other's totals are known. If the session reports its own cost, that may contain the other's or begin at nothing.
    Copied(Usage),
    /// The last totals of this process. They begin at nothing with the next.
    PerProcess(Usage),
    /// The last totals of the session. They go on over resumes.
    PerSession(Usage),
}

impl Meter {
    /// The meter of a new session that is a copy of one with this meter, if that is known.
    pub fn of_copy(parent: Option<Self>) -> Self {
        match parent {
            Some(Self::PerSession(totals)) => Self::Copied(totals),
            Some(Self::New | Self::Inherited | Self::Copied(_) | Self::PerProcess(_)) | None => Self::Inherited,
        }
    }

    /// The session goes on in a new process.
    pub fn new_process(&mut self) {
        match self {
            Self::PerProcess(seen) => *seen = Usage::default(),
            Self::New | Self::Inherited | Self::Copied(_) | Self::PerSession(_) => {}
        }
    }

    /// What was used since the result before this one.
    pub fn take(&mut self, end: &TurnEnd) -> Usage {
        let total = end.total;
        if !end.has_total() {
            return Usage::default();
        }
        let (used, next) = match (*self, end.since_last) {
            (Self::New, Some(since)) => (since.max(total), Self::PerSession(total)),
            (Self::Inherited | Self::PerProcess(_), Some(since)) => (since, Self::PerSession(total)),
            (Self::Copied(parent), Some(since)) => {
                // A total that is smaller than the parent's does not contain it.
                let cost = match total.cost >= parent.cost {
                    true => total.saturating_sub(parent).cost,
                    false => total.cost,
                };
                // What the parent spent in a turn that was killed may be in no total of it. So a cost of the turn itself is better.
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

/// What was counted request by request, and is in no total of the harness yet.
///
/// A turn that was killed has no total. Some harnesses report what it used with the next total of the session, others never do. So it
/// stays apart until a total shows by its tokens whether it is included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metered {
    /// By the process that is at work, since its last turn ended.
    pub turn: Usage,
    /// By processes that ended in the middle of a turn.
    pub lost: Usage,
}

impl Metered {
    pub(crate) fn add(&mut self, used: Usage) {
        self.turn += used;
    }

    /// The process is gone, and its turn will have no total of its own. Only the totals of the same session can include it.
    pub(crate) fn new_process(&mut self, resumes: bool) {
        let lost = self.lost + std::mem::take(&mut self.turn);
        self.lost = if resumes { lost } else { Usage::default() };
    }

    /// A turn has ended, and the harness says that this was `used` since the last end. Gives what was used, and the part of it that was
    /// counted before. Without a total, what was counted stays as it is.
    ///
    /// A harness that reports no cost has totals of tokens only. The cost is the one that was computed when its requests were counted.
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
    /// From a figure as the child writes it. What is not an amount is nothing.
    pub fn from_dollars(dollars: f64) -> Self {
        // The cast saturates, and makes nothing of what is negative or not a number.
        Self { nanodollars: (dollars * 1e9).round() as u64 }
    }
}

impl Usage {
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// All tokens, those of the cache included.
    pub fn tokens(&self) -> u64 {
        [self.input_tokens, self.output_tokens, self.cache_read_tokens, self.cache_write_tokens]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    /// This sum, with one part of it replaced by another.
    #[must_use]
    pub fn replacing(self, before: Self, after: Self) -> Self {
        (self + after).saturating_sub(before)
    }

    /// Whether the prompts of `other` can be part of these. What the model answered is not compared, because it is an estimate until
    /// the turn is over.
    fn has_prompts_of(&self, other: &Self) -> bool {
        self.input_tokens >= other.input_tokens
            && self.cache_read_tokens >= other.cache_read_tokens
            && self.cache_write_tokens >= other.cache_write_tokens
    }

    pub(crate) fn max(self, other: Self) -> Self {
        self.with(other, u64::max)
    }

    /// Each figure less the other's, and never below nothing.
    pub(crate) fn saturating_sub(self, other: Self) -> Self {
        self.with(other, u64::saturating_sub)
    }

    /// The same operation on each figure.
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
    /// Whole cents from a dollar on, else as many places as are needed to see something: `$12.30`, `$0.0042`, `$0`.
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
