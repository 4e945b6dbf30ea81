//! Budgets: a limit for one agent, for one quest, and for all agents together on each day. If an agent reaches a budget, its turn is
//! interrupted, and its run waits until the user raises the budget or the day is over. The conversation is kept, so the run continues
//! where it was interrupted.

use crate::ask::{About, Question};
use crate::event::{BudgetEvent, QuestionEvent, RunEvent, StepEvent};
use crate::outcome::Cause;
use crate::quest::{NextAction, Quest, QuestState};
use crate::run::{self, Run, RunState, StopWhy};
use crate::usage::Money;
use crate::{AgentId, Event, QuestId, Refusal, Stream, Timestamp, World, quest};

/// The length of a day in milliseconds. Days are counted in UTC.
pub const DAY_MS: i64 = 24 * 3_600 * 1_000;

/// The number of the day of a timestamp, counted from 1970.
pub fn day(at: Timestamp) -> i64 {
    at.0.div_euclid(DAY_MS)
}

/// A budget that is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Over {
    pub of: BudgetScope,
    pub spent: Money,
    pub limit: Money,
    /// When the budget is available again without a change. Only the daily budget has such a time.
    pub until: Option<Timestamp>,
}

/// What a budget covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetScope {
    Agent(AgentId),
    Quest(QuestId),
    Day,
}

/// The used-up budget that keeps an agent from starting anything. None if it may start.
pub fn over(world: &World, agent: AgentId, now: Timestamp) -> Option<Over> {
    over_by(world, agent, 0, now)
}

/// Like [`over`], if the agent has used `more` billionths of a dollar that are not in the world yet.
pub(crate) fn over_by(world: &World, agent: AgentId, more: i128, now: Timestamp) -> Option<Over> {
    let used_up = |of: BudgetScope, limit: Option<Money>, spent: Money, until| {
        let limit = limit?;
        let nanodollars = i128::from(spent.nanodollars).saturating_add(more).max(0);
        let spent = Money { nanodollars: u64::try_from(nanodollars).unwrap_or(u64::MAX) };
        (spent >= limit).then_some(Over { of, spent, limit, until })
    };
    let own = world.conversation(agent).map_or(Money::default(), |conversation| conversation.spent.cost);
    let today = world.spent_on(day(now)).cost;
    let tomorrow = Timestamp((day(now) + 1) * DAY_MS);
    let of_quest = || {
        let id = world.assignment(agent)?.quest;
        let quest = world.quest(id).filter(|quest| !quest.is_over())?;
        used_up(BudgetScope::Quest(id), quest.budget, quest.spent.cost, None)
    };
    used_up(BudgetScope::Agent(agent), world.budget(Some(agent)), own, None)
        .or_else(of_quest)
        .or_else(|| used_up(BudgetScope::Day, world.budget(None), today, Some(tomorrow)))
}

/// Sets a limit, or removes it. Runs that waited for the budget continue.
pub(crate) fn set(
    world: &World,
    of: Option<AgentId>,
    limit: Option<Money>,
    now: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    if let Some(agent) = of {
        crate::agent::living(world, agent)?;
    }
    let set = Event::Budget(BudgetEvent::Set { agent: of, limit });
    let mut then = world.clone();
    then.record(set.clone(), now);
    let waits = |(_, run): &(AgentId, &Run)| matches!(run.state, RunState::Parked { cause: Cause::OverBudget, .. });
    let affordable = |(agent, _): &(AgentId, &Run)| over(&then, *agent, now).is_none();
    let resumed = world.runs().filter(waits).filter(affordable);
    Ok([set].into_iter().chain(resumed.filter_map(|(agent, run)| goes_on(world, agent, run))).collect())
}

/// Raises a budget because the user answered the question with a new limit. An inner `Err` has the amount that is spent already, if the new
/// limit does not exceed it.
pub(crate) fn raise(
    world: &World,
    agent: AgentId,
    whose: BudgetScope,
    limit: Money,
    now: Timestamp,
) -> Result<Result<Vec<Event>, Money>, Refusal> {
    let asks = world.run(agent).filter(|run| run.is_broke());
    let (spent, mut events) = match whose {
        // A quest that has ended has no budget to exceed.
        BudgetScope::Quest(id) if world.quest(id).is_none_or(Quest::is_over) => (Money::default(), Vec::new()),
        BudgetScope::Agent(of) => {
            let spent = world.conversation(of).map_or(Money::default(), |conversation| conversation.spent.cost);
            (spent, set(world, Some(of), Some(limit), now)?)
        }
        BudgetScope::Day => (world.spent_on(day(now)).cost, set(world, None, Some(limit), now)?),
        BudgetScope::Quest(id) => {
            let spent = world.quest(id).map_or(Money::default(), |quest| quest.spent.cost);
            (spent, quest::set_budget(world, id, Some(limit))?)
        }
    };
    if spent >= limit && !events.is_empty() {
        return Ok(Err(spent));
    }
    // The agent may have used up another budget, too. It continues nevertheless, so that it asks about the other budget.
    let moved = |event: &Event| event.stream() == Stream::Agent(agent) || queues(event, agent);
    if !events.iter().skip(1).any(moved) {
        events.extend(asks.and_then(|run| goes_on(world, agent, run)));
    }
    Ok(Ok(events))
}

fn queues(event: &Event, agent: AgentId) -> bool {
    matches!(event, Event::Step { what: StepEvent::Queued { next: NextAction::Resume { agent: queued, .. }, .. }, .. } if *queued == agent)
}

/// The event with which a parked run continues. An agent of a quest waits for a slot, and is queued only once.
fn goes_on(world: &World, agent: AgentId, run: &Run) -> Option<Event> {
    if world.step_fork(agent).is_some() {
        return quest::queue_fork(world, agent);
    }
    let queued = quest::queue_parked(world, agent);
    queued.or_else(|| (!run.spec.signals).then(|| run::goes_on(world, agent, run)))
}

/// Parks a run that is about to start something without a budget for it, and asks the user unless the question is open already.
pub(crate) fn park(world: &World, agent: AgentId, run: &Run, over: Over) -> Vec<Event> {
    let parked = Event::Run {
        of: run.attempt_id(agent),
        what: RunEvent::Parked { cause: Cause::OverBudget, until: over.until, detail: over.words() },
    };
    let asked = (!is_asked(world, agent, over.about())).then(|| over.question(agent));
    [parked].into_iter().chain(asked).collect()
}

/// The agent that asked for more budget on behalf of its quest no longer needs it. The next waiting agent asks instead.
pub(crate) fn ask_instead(world: &World, asked: &Question, now: Timestamp) -> Option<Event> {
    let (About::QuestBudget { .. } | About::Budget { of: None }) = asked.about else { return None };
    let quest = world.quest(world.assignment(asked.agent)?.quest).filter(|quest| quest.state == QuestState::Open)?;
    let silent = |agent: &AgentId| world.run(*agent).is_some_and(|run| run.is_broke() && run.question.is_none());
    let agents = quest.steps.values().filter_map(|step| step.agent()).chain(quest.forks.keys().copied());
    let agent = agents.into_iter().find(silent)?;
    let over = over(world, agent, now)?;
    (!is_asked(world, agent, over.about())).then(|| over.question(agent))
}

/// Whether another agent of the same quest has asked the same question. The user is asked once, even if many agents wait.
fn is_asked(world: &World, agent: AgentId, about: About) -> bool {
    let works = |agent: AgentId| world.works_for_quest(agent);
    let Some(assignment) = world.assignment(agent).filter(|_| works(agent)) else { return false };
    world.questions().any(|(id, question)| {
        let of_quest = world.assignment(question.agent).is_some_and(|other| other.quest == assignment.quest);
        // A question that no longer matters is about to be withdrawn.
        let waits = world.run(question.agent).is_some_and(|run| run.question == Some(id));
        question.about == about && question.agent != agent && of_quest && waits && works(question.agent)
    })
}

impl Over {
    fn words(&self) -> String {
        let whose = match self.of {
            BudgetScope::Agent(_) => "Its budget",
            BudgetScope::Quest(_) => "The budget of its quest",
            BudgetScope::Day => "Today's budget",
        };
        format!("{whose} of {} is used up: {} so far.", self.limit, self.spent)
    }

    fn about(&self) -> About {
        match self.of {
            BudgetScope::Agent(agent) => About::Budget { of: Some(agent) },
            BudgetScope::Quest(quest) => About::QuestBudget { quest },
            BudgetScope::Day => About::Budget { of: None },
        }
    }

    fn question(&self, agent: AgentId) -> Event {
        let text = format!("{} Answer with a new budget in dollars, or `stop`.", self.words());
        Event::Question { agent, what: QuestionEvent::Asked { about: self.about(), text } }
    }
}

/// The user gives no more money. If the agent asked on behalf of its quest, the quest is paused. If the agent asked for itself, its step
/// fails and can be retried. An agent without a quest is stopped.
pub(crate) fn give_no_more(world: &World, agent: AgentId, about: About) -> Result<Vec<Event>, Refusal> {
    let works = world.works_for_quest(agent);
    let quest = world
        .assignment(agent)
        .map(|assignment| assignment.quest)
        .filter(|id| works && quest::going(world, *id).is_ok());
    match (quest, about) {
        (Some(id), About::Budget { of: None } | About::QuestBudget { .. }) => match quest::pause(world, id) {
            Err(Refusal::QuestPaused(_)) => Ok(Vec::new()),
            paused => paused,
        },
        _ => {
            let failed = quest::out_of_money(world, agent);
            Ok(failed.into_iter().chain(run::stop(world, agent, &StopWhy::User)?).collect())
        }
    }
}

/// Reads an amount of dollars: `5`, `$5`, `0.25`.
pub fn amount(text: &str) -> Option<Money> {
    let dollars: f64 = text.trim().trim_start_matches('$').trim().parse().ok()?;
    (dollars.is_finite() && dollars >= 0.0).then(|| Money::from_dollars(dollars))
}
