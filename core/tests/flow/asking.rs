//! What the human is asked: about silence and about money.

use crate::given::*;
use crate::run::words::*;
use hatchery_core::ask::About;
use hatchery_core::event::{AgentEvent, BudgetEvent, QuestionEvent, RunEvent};
use hatchery_core::outcome::{Cause, Exit};
use hatchery_core::output::TurnEnd;
use hatchery_core::run::{DesiredState, StopWhy};
use hatchery_core::usage::{Money, Usage};
use hatchery_core::{AgentId, Command, Event, EventId, Refusal, Timestamp};

const DAY_MS: i64 = 24 * 3_600 * 1_000;

fn answer(question: u64, answer: &str) -> Command {
    Command::AnswerQuestion { question: EventId(question), answer: answer.into() }
}

fn answered(question: u64, answer: &str) -> Event {
    Event::Question { agent: A, what: QuestionEvent::Answered { question: EventId(question), answer: answer.into() } }
}

fn withdrawn(question: u64) -> Event {
    Event::Question { agent: A, what: QuestionEvent::Withdrawn { question: EventId(question) } }
}

fn asked(about: About, text: &str) -> Event {
    Event::Question { agent: A, what: QuestionEvent::Asked { about, text: text.into() } }
}

fn dollars(amount: u64) -> Money {
    Money { nanodollars: amount * 1_000_000_000 }
}

fn budget(agent: Option<AgentId>, limit: Option<u64>) -> Command {
    Command::SetBudget { agent, limit: limit.map(dollars) }
}

fn set(agent: Option<AgentId>, limit: Option<u64>) -> Event {
    Event::Budget(BudgetEvent::Set { agent, limit: limit.map(dollars) })
}

/// A is in a turn and has been silent for too long (9); the human is asked (10).
fn silent_one() -> Given {
    let due = i64::try_from(STALL_MS).expect("a short time");
    let question = asked(About::Silence(first()), SILENCE);
    working(spec()).at(due).when(Command::Tick).then([silent(first(), 0), question])
}

/// A turn that cost as many dollars.
fn costly(amount: u64) -> TurnEnd {
    let spent = Usage { cost: dollars(amount), ..Usage::default() };
    TurnEnd { total: spent, since_last: Some(spent), ..well() }
}

fn spent(amount: u64) -> Usage {
    Usage { cost: dollars(amount), ..Usage::default() }
}

#[test]
fn silence_is_asked_about_once() {
    let it = silent_one();
    assert_eq!(it.world.questions().map(|(id, _)| id.0).collect::<Vec<_>>(), [10]);
    it.at(i64::MAX / 2).when(Command::Tick).then([]);
}

#[test]
fn whoever_may_wait_is_asked_about_again_after_the_same_time() {
    let it = silent_one().at(50_000).when(answer(10, "wait")).then([answered(10, "wait")]);
    let it = it.at(59_999).when(Command::Tick).then([]);
    it.at(60_000).when(Command::Tick).then([silent(first(), 50_000), asked(About::Silence(first()), SILENCE)]);
}

#[test]
fn whoever_shall_stop_is_stopped_as_stuck() {
    let it = silent_one().when(answer(10, "stop")).then([answered(10, "stop"), stopping(first(), StopWhy::Stuck)]);
    let ended = over(first(), Cause::Stuck, Exit::Signal(9), "silent for too long");
    it.when(exit(first(), Exit::Signal(9))).then([ended]);
}

#[test]
fn any_other_answer_is_said_to_the_agent() {
    let it = silent_one()
        .when(answer(10, "are you there?"))
        .then([answered(10, "are you there?"), said(A, "are you there?")]);
    assert_eq!(undelivered(&it), [12]);
}

#[test]
fn a_word_of_the_agent_makes_the_question_moot() {
    let it = hears(silent_one(), [text("here")]).then([spoke(A, "here"), taken(first(), 11), withdrawn(10)]);
    it.when(answer(10, "wait")).refused(Refusal::NoQuestion(EventId(10)));
}

/// Its process may take a while to end, and nobody has to answer meanwhile.
#[test]
fn the_question_of_a_dead_agent_is_not_shown_any_more() {
    let it = silent_one();
    assert_eq!(it.world.questions_to_answer().count(), 1);
    let it = it.and(dead(A));
    assert_eq!((it.world.questions().count(), it.world.questions_to_answer().count()), (1, 0));
}

#[test]
fn so_does_its_end() {
    let it = silent_one().and(stopping(first(), StopWhy::User));
    let ended = over(first(), Cause::UserEnded, Exit::Code(0), "stopped by the user");
    it.when(exit(first(), Exit::Code(0))).then([ended, withdrawn(10)]);
}

#[test]
fn a_question_is_answered_once_and_with_something() {
    silent_one().when(answer(10, " ")).refused(Refusal::BadAnswer { question: EventId(10), expected: SILENCE.into() });
    let it = silent_one().when(answer(10, "wait")).then([answered(10, "wait")]);
    it.when(answer(10, "stop")).refused(Refusal::NoQuestion(EventId(10)));
    given([]).when(answer(1, "wait")).refused(Refusal::NoQuestion(EventId(1)));
}

#[test]
fn what_is_reached_is_noted_and_the_turn_is_finished() {
    let it = working(staying()).and(set(Some(A), Some(5)));
    let it = hears(it, [result(costly(4))]).then([turn_ended(first(), costly(4), spent(4)), taken(first(), 11)]);
    let it = it.and(turn_started(first()));
    let more = TurnEnd { total: spent(5), since_last: Some(spent(1)), ..well() };
    let reached = Event::Run { of: first(), what: RunEvent::BudgetReached };
    let it = hears(it, [result(more.clone())]).then([turn_ended(first(), more, spent(1)), reached, taken(first(), 12)]);
    // It is let go without a blow.
    assert_eq!(it.world.desired_runs().get(&A).unwrap().state, DesiredState::Running { upto: None, last: true });
    let detail = "Its budget of $5.00 is used up: $5.00 so far.";
    let parked = Event::Run {
        of: first(),
        what: RunEvent::Parked { cause: Cause::OverBudget, until: None, detail: detail.into() },
    };
    let question =
        asked(About::Budget { of: Some(A) }, &format!("{detail} Answer with a new budget in dollars, or `stop`."));
    let it = it.when(exit(first(), Exit::Code(0))).then([parked, question]).restarted();
    // What is said meanwhile is heard when it can be afforded. Without, there is nothing to go on with.
    let told = it.clone().when(tell(A, "more", Some(staying()))).then([said(A, "more")]);
    told.when(answer(17, "7")).then([answered(17, "7"), set(Some(A), Some(7)), resumed(attempt(2))]);
    let idle = "Its last turn ended well, and nothing was said to it since.";
    let ended = over(first(), Cause::Completed, Exit::Unknown, idle);
    it.when(answer(17, "7")).then([answered(17, "7"), set(Some(A), Some(7)), ended]);
}

#[test]
fn one_that_was_not_to_stay_has_done_its_work_when_its_budget_is_used_up() {
    let it = working(spec()).and(set(Some(A), Some(5)));
    let reached = Event::Run { of: first(), what: RunEvent::BudgetReached };
    let it = hears(it, [result(costly(5))]);
    let it = it.then([turn_ended(first(), costly(5), spent(5)), reached, taken(first(), 11)]);
    let well = over(first(), Cause::Completed, Exit::Code(0), "Its last turn ended well.");
    it.when(exit(first(), Exit::Code(0))).then([well]);
}

/// A has spent all of its five dollars and is told something more: the run is parked, and the human is asked (event 16).
fn broke() -> Given {
    let it = done(spec()).and(set(Some(A), Some(5))).and(turn_started(first())).and(turn_ended(
        first(),
        costly(5),
        spent(5),
    ));
    let it = it.when(exit(first(), Exit::Code(0))).then([over(
        first(),
        Cause::Completed,
        Exit::Code(0),
        "Its last turn ended well.",
    )]);
    let again = Event::Agent { agent: A, what: AgentEvent::RunRequested { run: 2, spec: spec() } };
    let of = hatchery_core::run::AttemptId { run: 2, ..first() };
    let detail = "Its budget of $5.00 is used up: $5.00 so far.";
    let parked =
        Event::Run { of, what: RunEvent::Parked { cause: Cause::OverBudget, until: None, detail: detail.into() } };
    let text = format!("{detail} Answer with a new budget in dollars, or `stop`.");
    it.when(tell(A, "more", Some(spec()))).then([
        said(A, "more"),
        again,
        parked,
        asked(About::Budget { of: Some(A) }, &text),
    ])
}

#[test]
fn whoever_cannot_afford_it_is_parked_and_a_higher_ceiling_lets_it_go_on() {
    let of = hatchery_core::run::AttemptId { run: 2, attempt: 2, agent: A };
    let it = broke().restarted();
    assert_eq!(it.world.desired_runs().get(&A), None);
    let question = it.world.questions().next().unwrap().0.0;
    let it = it
        .when(answer(question, "much"))
        .refused(Refusal::BadAnswer { question: EventId(question), expected: it_text(&broke()) });
    let expected = "$5.00 is spent already, and the new budget must be more than that, or the answer `stop`";
    let it = it
        .when(answer(question, "5"))
        .refused(Refusal::BadAnswer { question: EventId(question), expected: expected.into() });
    it.clone().when(answer(question, "$7")).then([answered(question, "$7"), set(Some(A), Some(7)), resumed(of)]);
    let it = it.when(budget(Some(A), Some(5))).then([set(Some(A), Some(5))]);
    it.when(budget(Some(A), None)).then([set(Some(A), None), resumed(of), withdrawn(question)]);
}

fn it_text(it: &Given) -> String {
    it.world.questions().next().expect("something is asked").1.text.clone()
}

#[test]
fn a_parked_run_can_be_given_up() {
    let it = broke();
    let question = it.world.questions().next().unwrap().0.0;
    let of = hatchery_core::run::AttemptId { run: 2, ..first() };
    let ended = over(of, Cause::UserEnded, Exit::Unknown, "stopped by the user");
    it.when(answer(question, "stop")).then([answered(question, "stop"), ended]);
}

#[test]
fn the_budget_of_a_day_is_over_with_the_day() {
    let it =
        done(spec()).and(set(None, Some(5))).and(turn_started(first())).and(turn_ended(first(), costly(6), spent(6)));
    let it = it.when(exit(first(), Exit::Code(0))).then([over(
        first(),
        Cause::Completed,
        Exit::Code(0),
        "Its last turn ended well.",
    )]);
    let again = Event::Agent { agent: A, what: AgentEvent::RunRequested { run: 2, spec: spec() } };
    let of = hatchery_core::run::AttemptId { run: 2, ..first() };
    let detail = "Today's budget of $5.00 is used up: $6.00 so far.";
    let parked = Event::Run {
        of,
        what: RunEvent::Parked { cause: Cause::OverBudget, until: Some(Timestamp(DAY_MS)), detail: detail.into() },
    };
    let text = format!("{detail} Answer with a new budget in dollars, or `stop`.");
    let it = it.when(tell(A, "more", Some(spec()))).then([
        said(A, "more"),
        again,
        parked,
        asked(About::Budget { of: None }, &text),
    ]);
    let question = it.world.questions().next().unwrap().0.0;
    let it = it.at(DAY_MS - 1).when(Command::Tick).then([]);
    it.at(DAY_MS).when(Command::Tick).then([resumed(of.next()), withdrawn(question)]);
}
