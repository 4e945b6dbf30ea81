//! Budgets: a ceiling for what an agent may use in all, and one for what all may use on a day. Whoever reaches one finishes its turn;
//! nothing more is begun until a person raises the ceiling or the day is over. Work is never killed for money.

use crate::ask::About;
use crate::outcome::Cause;
use crate::run::{self, Run, RunState};
use crate::usage::{Money, Usage};
use crate::{AgentId, Event, Refusal, Timestamp, World};

/// A day, as the log's clock counts them, in UTC.
pub const DAY_MS: i64 = 24 * 3_600 * 1_000;

/// The day of an instant, counted from 1970.
pub fn day(at: Timestamp) -> i64 {
    at.0.div_euclid(DAY_MS)
}

/// A budget that is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Over {
    /// Nobody when it is the budget of a day.
    pub of: Option<AgentId>,
    pub spent: Money,
    pub limit: Money,
    /// When it is by itself no longer used up.
    pub until: Option<Timestamp>,
}

/// Whether an agent may not begin anything, now that it has used `more` than the world knows.
pub fn over(world: &World, agent: AgentId, more: Usage, now: Timestamp) -> Option<Over> {
    let more = more.cost.nanodollars;
    let used_up = |of: Option<AgentId>, spent: Money, until| {
        let limit = world.budget(of)?;
        let spent = Money { nanodollars: spent.nanodollars.saturating_add(more) };
        (spent >= limit).then_some(Over { of, spent, limit, until })
    };
    let own = world.seat(agent).map_or(Money::default(), |seat| seat.spent.cost);
    let today = world.spent_on(day(now)).cost;
    let tomorrow = Timestamp((day(now) + 1) * DAY_MS);
    used_up(Some(agent), own, None).or_else(|| used_up(None, today, Some(tomorrow)))
}

/// Sets a ceiling, or takes it away. Runs that waited for it go on.
pub(crate) fn set(
    world: &World,
    of: Option<AgentId>,
    limit: Option<Money>,
    now: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    if let Some(agent) = of {
        crate::agent::living(world, agent)?;
    }
    let set = Event::BudgetSet { agent: of, limit };
    let mut then = world.clone();
    then.record(set.clone(), now);
    let waits = |(_, run): &(AgentId, &Run)| matches!(run.state, RunState::Parked { cause: Cause::OverBudget, .. });
    let affordable = |(agent, _): &(AgentId, &Run)| over(&then, *agent, Usage::default(), now).is_none();
    let resumed = world.runs().filter(waits).filter(affordable);
    Ok([set].into_iter().chain(resumed.map(|(agent, run)| run::goes_on(world, agent, run))).collect())
}

/// A run that is about to begin something it cannot afford, with the question that it leads to.
pub(crate) fn park(agent: AgentId, run: &Run, over: Over) -> Vec<Event> {
    let Over { of, spent, limit, until } = over;
    let whose = if of.is_some() { "Its budget" } else { "Today's budget" };
    let detail = format!("{whose} of {limit} is used up: {spent} so far.");
    let text = format!("{detail} Answer with a new ceiling in dollars, or `stop`.");
    vec![
        Event::RunParked { of: run.fence(agent), cause: Cause::OverBudget, until, detail },
        Event::QuestionAsked { agent, about: About::Budget { of }, text },
    ]
}

/// An amount of dollars as a person writes it: `5`, `$5`, `0.25`.
pub fn amount(text: &str) -> Option<Money> {
    let dollars: f64 = text.trim().trim_start_matches('$').trim().parse().ok()?;
    (dollars.is_finite() && dollars >= 0.0).then(|| Money::from_dollars(dollars))
}
