//! What an agent asks of us by a tool: taken in once, answered for good, the "no" included.

use super::words::*;
use crate::given::*;
use hatchery_core::event::AgentEvent;
use hatchery_core::event::Refused;
use hatchery_core::run::StopWhy;
use hatchery_core::{Address, Command, EventId, Exit, Refusal};

fn no_mail() -> Refused {
    Refused::from(&Refusal::NoMail(Address::Agent(A)))
}

#[test]
fn a_call_is_on_the_log_before_what_it_led_to() {
    let to = Address::Human;
    let it = working(spec()).when(call(first(), 1, send(Address::Agent(A), to, "help")));
    let it = it.then([call_taken(first(), 1, 1), sent(Address::Agent(A), to, "help")]);
    let it = it.when(call(first(), 2, fork(A, B))).then([call_taken(first(), 2, 1), forked(A, B, Some(3))]);
    let answers: Vec<_> = last_run(&it).attempt.answers.iter().copied().collect();
    assert_eq!(answers, [(1, EventId(9)), (2, EventId(11))]);
}

#[test]
fn a_refusal_is_an_answer() {
    let ask = take(Address::Agent(A));
    let it = working(spec()).when(call(first(), 1, ask)).then([call_refused(first(), 1, no_mail())]);
    let nonsense = Refused { code: "bad_call".into(), message: "no JSON".into(), hint: "try again".into() };
    let it = it.when(Command::TakeCall { of: first(), number: 2, ask: Err(nonsense.clone()) });
    let it = it.then([call_refused(first(), 2, nonsense)]);
    assert_eq!(last_run(&it.restarted()).attempt.calls, 2);
}

#[test]
fn a_call_is_taken_in_once_and_in_order() {
    let ask = || take(Address::Agent(A));
    let it = working(spec()).when(call(first(), 1, ask())).then([call_refused(first(), 1, no_mail())]);
    for number in [0, 1, 3] {
        it.clone().when(call(first(), number, ask())).refused(Refusal::CallTaken { agent: A, number: 1 });
    }
}

#[test]
fn the_answers_to_the_latest_calls_are_kept() {
    let it = (1..=70).fold(working(spec()), |it, number| it.and(call_taken(first(), number, 0)));
    let kept: Vec<u64> = last_run(&it).attempt.answers.iter().map(|(number, _)| *number).collect();
    assert_eq!(kept, (7..=70).collect::<Vec<_>>());
}

#[test]
fn each_process_counts_its_own_calls() {
    let it = working(spec()).and(call_taken(first(), 1, 0)).and(crashed(first(), Exit::Signal(9), ""));
    let it = it.and(resumed(attempt(2))).when(call(attempt(2), 1, Command::Tick));
    let it = it.refused(Refusal::StaleAttempt(attempt(2))).and(spawned(attempt(2)));
    let it = it.when(call(attempt(2), 1, Command::Tick)).then([call_taken(attempt(2), 1, 0)]);
    assert_eq!(last_run(&it).attempt.answers.len(), 1);
}

#[test]
fn an_agent_may_kill_itself_and_is_stopped_for_it() {
    let it = working(spec()).when(call(first(), 1, kill_by(A, A, false)));
    let killed = hatchery_core::Event::Agent { agent: A, what: AgentEvent::Killed { by: Some(A), remark: None } };
    it.then([call_taken(first(), 1, 1), killed, stopping(first(), StopWhy::Killed)]);
}

#[test]
fn the_calls_of_the_dead_are_refused_and_answered() {
    let it = working(spec()).and(dead(A)).and(stopping(first(), StopWhy::Killed));
    let it = it.when(call(first(), 1, send(Address::Agent(A), Address::Human, "help")));
    it.then([call_refused(first(), 1, Refused::from(&Refusal::AgentDead(A)))]);
}
