//! What a turn costs is counted while it is spent, and a budget acts within the turn.

use super::words::*;
use crate::given::*;
use hatchery_core::ask::About;
use hatchery_core::event::{BudgetEvent, QuestionEvent, RunEvent};
use hatchery_core::harness::Capabilities;
use hatchery_core::output::{Output, TurnEnd};
use hatchery_core::run::StopWhy;
use hatchery_core::usage::{ContextUse, Money, Usage};
use hatchery_core::{Cause, Command, Event, Exit};

/// The end of a turn with totals of the session.
fn since(end: TurnEnd, total: u64, last: u64) -> TurnEnd {
    TurnEnd { total: usage(total), since_last: Some(usage(last)), ..end }
}

fn spent(it: &Given) -> [Usage; 3] {
    let days = it.world.days().fold(Usage::default(), |sum, (_, day)| sum + *day);
    [last_run(it).spent, conversation(it).spent, days]
}

/// As many thousandths of a dollar.
fn limit(amount: u64) -> Event {
    Event::Budget(BudgetEvent::Set { agent: Some(A), limit: Some(usage(amount).cost) })
}

fn reached() -> Event {
    Event::Run { of: first(), what: RunEvent::BudgetReached }
}

/// A worked, and was interrupted when its five thousandths were used up. The interrupt is event 13.
fn cut_off() -> Given {
    let it = working(spec()).and(limit(5));
    let it = hears(it, [used(3)]).then([metered(first(), 3), taken(first(), 11)]);
    hears(it, [used(3), text("and")]).then([
        metered(first(), 3),
        spoke(A, "and"),
        reached(),
        interrupted(first()),
        taken(first(), 13),
    ])
}

/// It has obeyed, and its process is gone.
fn parked_for_money() -> Given {
    let it = cut_off();
    let end = since(broken_off(), 7, 7);
    let it = hears(it, [obeyed(15), result(end.clone())]).then([
        heard(first(), 15),
        added(A, hatchery_core::MessageKind::System, hatchery_core::history::TURN_INTERRUPTED),
        turn_settled(first(), end, usage(7), usage(6)),
        taken(first(), 15),
    ]);
    let detail = "Its budget of $0.005 is used up: $0.007 so far.";
    let parked = RunEvent::Parked { cause: Cause::OverBudget, until: None, detail: detail.into() };
    let text = format!("{detail} Answer with a new budget in dollars, or `stop`.");
    let question = QuestionEvent::Asked { about: About::Budget { of: Some(A) }, text };
    it.when(exit(first(), Exit::Code(0))).then([
        resumed(attempt(2)),
        Event::Run { of: attempt(2), what: parked },
        Event::Question { agent: A, what: question },
    ])
}

#[test]
fn what_a_turn_costs_is_counted_before_it_ends_and_settled_by_its_total() {
    let it = hears(working(spec()), [used(3), used(1)]);
    let it = it.then([metered(first(), 3), metered(first(), 1), taken(first(), 12)]);
    assert_eq!(spent(&it), [usage(4); 3]);
    let dearer = since(well(), 6, 6);
    let it = hears(it, [result(dearer.clone())]);
    let it = it.then([turn_settled(first(), dearer, usage(6), usage(4)), taken(first(), 13)]);
    assert_eq!(spent(&it), [usage(6); 3]);
    // The next one was cheaper than it seemed.
    let it = hears(it.and(turn_started(first())), [used(5)]).then([metered(first(), 5), taken(first(), 14)]);
    assert_eq!(spent(&it), [usage(11); 3]);
    let cheap = Usage { cost: usage(2).cost, ..usage(5) };
    let end = TurnEnd { total: usage(6) + cheap, since_last: Some(cheap), ..well() };
    let it = hears(it, [result(end.clone())]);
    let it = it.then([turn_settled(first(), end, cheap, usage(5)), taken(first(), 15)]).restarted();
    assert_eq!(spent(&it), [usage(6) + cheap; 3]);
}

#[test]
fn a_turn_without_a_total_keeps_what_was_counted() {
    let it = hears(working(spec()), [used(3), result(well())]);
    let it = it.then([metered(first(), 3), turn_ended(first(), well(), nothing_spent()), taken(first(), 12)]);
    assert_eq!(spent(&it), [usage(3); 3]);
}

/// Some versions tell what a killed turn used with the next total, and some never do.
#[test]
fn a_killed_turn_is_counted_once_whatever_the_next_total_says() {
    for (total, last, expected) in [(5, 2, 5), (2, 2, 5)] {
        let it = hears(working(spec()), [used(3)]).then([metered(first(), 3), taken(first(), 11)]);
        let it = it.and(crashed(first(), Exit::Signal(9), "")).and(resumed(attempt(2))).and(spawned(attempt(2)));
        assert_eq!(spent(&it), [usage(3); 3]);
        let end = since(well(), total, last);
        let it = hears(it, [ready(), used(2), result(end.clone())]).done();
        assert_eq!(spent(&it), [usage(expected); 3], "the total is {total}");
    }
}

/// Some harnesses count tokens for the session and report no cost: what the killed turn cost was computed when it was counted.
#[test]
fn a_killed_turn_keeps_its_cost_when_the_next_total_has_only_its_tokens() {
    let it = hears(working(spec()), [used(3)]).then([metered(first(), 3), taken(first(), 11)]);
    let it = it.and(crashed(first(), Exit::Signal(9), "")).and(resumed(attempt(2))).and(spawned(attempt(2)));
    let total = Usage { cost: Money::default(), ..usage(5) };
    let end = TurnEnd { total, since_last: Some(usage(2)), ..well() };
    let it = hears(it, [ready(), used(2), result(end)]).done().restarted();
    assert_eq!(spent(&it), [usage(5); 3]);
}

/// After a restart of the daemon the reader may have seen only the last requests of a long turn.
#[test]
fn the_cost_of_a_turn_is_never_less_than_that_of_its_requests_if_only_tokens_are_reported() {
    let it = hears(working(spec()), [used(3), used(2)]).done();
    let tokens = Usage { cost: Money::default(), ..usage(5) };
    let end = TurnEnd { total: tokens, since_last: Some(usage(2)), ..well() };
    let it = hears(it, [result(end)]).done();
    assert_eq!(spent(&it), [usage(5); 3]);
}

#[test]
fn a_budget_interrupts_the_turn_in_which_it_is_used_up() {
    let it = parked_for_money().restarted();
    assert!(last_run(&it).is_broke());
    assert_eq!(spent(&it), [usage(7); 3]);
    // With more money it goes on with what it was at.
    let question = it.world.questions().next().unwrap().0;
    let it = it.when(Command::AnswerQuestion { question, answer: "1".into() }).done();
    assert_eq!(last_run(&it).attempt.number, 3);
    assert!(last_run(&it).is_open());
    assert_eq!(conversation(&it).waiting.len(), 1, "it is told to go on");
}

#[test]
fn a_turn_that_ends_well_before_it_hears_of_the_interrupt_is_done() {
    let end = since(well(), 6, 6);
    let it = hears(cut_off(), [result(end.clone()), obeyed(15)]).done();
    let ended = over(first(), Cause::Completed, Exit::Code(0), "Its last turn ended well.");
    it.when(exit(first(), Exit::Code(0))).then([ended]);
}

#[test]
fn a_turn_that_cannot_be_interrupted_is_stopped_and_goes_on_later() {
    let deaf = Capabilities { interrupts: false, ..Capabilities::ALL };
    let it = wanted(spec()).and(spawned_with(first(), deaf)).and(begun(first())).and(limit(5));
    let it = hears(it, [used(6)]).then([
        metered(first(), 6),
        reached(),
        stopping(first(), StopWhy::OverBudget),
        taken(first(), 1),
    ]);
    let it = it.when(exit(first(), Exit::Signal(15))).done();
    assert!(last_run(&it).is_broke(), "{:?}", last_run(&it).state);
}

#[test]
fn one_that_goes_on_asking_the_model_after_its_interrupt_is_stopped() {
    let mut it = cut_off();
    for _ in 0..5 {
        it = hears(it, [used(1)]).done();
        assert!(!last_run(&it).is_stopping());
    }
    let it = hears(it, [used(1)]).done();
    assert!(last_run(&it).is_stopping());
}

/// The budget of a day is the budget of everybody.
#[test]
fn the_budget_of_the_day_counts_what_is_spent_within_turns() {
    let day = Event::Budget(BudgetEvent::Set { agent: None, limit: Some(Money { nanodollars: 5_000_000 }) });
    let it = hears(working(spec()).and(day), [used(6)]).done();
    assert!(conversation(&it).is_interrupted());
    assert_eq!(it.world.questions().count(), 0, "nobody is asked before the turn has ended");
}

fn full(tokens: u64, window: Option<u64>) -> Option<ContextUse> {
    Some(ContextUse { tokens, window })
}

/// A harness may say how much its model can take at the end of a turn only.
#[test]
fn the_context_is_as_full_as_was_said_last_and_its_window_stays_known() {
    let asks = |tokens, window| Output::Used { usage: usage(1), context: full(tokens, window) };
    let noted = |tokens, window| Event::Run {
        of: first(),
        what: RunEvent::Metered { used: usage(1), context: full(tokens, window) },
    };
    let it = hears(working(spec()), [asks(10, None)]).then([noted(10, None), taken(first(), 11)]);
    assert_eq!(conversation(&it).context, full(10, None));
    let end = TurnEnd { context: full(12, Some(100)), ..since(well(), 1, 1) };
    let ended = turn_settled(first(), end.clone(), usage(1), usage(1));
    let it = hears(it, [result(end)]).then([ended, taken(first(), 12)]);
    assert_eq!(conversation(&it).context, full(12, Some(100)));
    // A sub-agent has a context of its own.
    let it = hears(it, [asks(40, None), used(1)]).then([noted(40, None), metered(first(), 1), taken(first(), 14)]);
    assert_eq!(conversation(&it).context, full(40, Some(100)));
}
