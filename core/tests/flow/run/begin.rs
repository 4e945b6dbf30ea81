//! How a run begins: asked for, by name or by saying something; spawned; started once our tools answer.

use super::words::*;
use crate::given::*;
use hatchery_core::agent::{Birth, Lifecycle};
use hatchery_core::event::AgentEvent;
use hatchery_core::output::{FailureKind, Output};
use hatchery_core::run::{
    DesiredState, MAX_RETRIES, MAX_SPEC_BYTES, MAX_STALL_MS, MIN_STALL_MS, RunSpec, RunState, StopWhy,
};
use hatchery_core::session::EndReason::User;
use hatchery_core::{Command, Event, EventId, MessageKind, Refusal, plan};

#[test]
fn a_run_is_asked_for_and_then_wanted() {
    let it = given([created(A, None)]).when(run(A, spec())).then([requested(A, spec())]);
    let wanted = plan(&it.world).runs[&A].clone();
    assert_eq!((wanted.run, wanted.attempt, &*wanted.host), (1, 1, "mill"));
    assert_eq!(wanted.state, DesiredState::Running { upto: Some(EventId(3)), last: false });
    assert_eq!(plan(&it.restarted().world).runs.len(), 1);
}

#[test]
fn an_agent_has_one_run_at_a_time() {
    let open = || Refusal::RunOpen { agent: A, run: 1 };
    for it in [wanted(spec()), present(spec()), working(spec()), done(spec())] {
        it.when(run(A, spec())).refused(open());
    }
    working(spec()).and(stopping(first(), StopWhy::User)).when(run(A, spec())).refused(open());
    let it = failed(spec(), refused(FailureKind::Overloaded)).when(exit(first(), hatchery_core::Exit::Code(1)));
    it.then([parked_for_a_while()]).when(run(A, spec())).refused(open());
}

fn parked_for_a_while() -> Event {
    let detail = "It failed: no. The service has too much to do; resume it in a while.";
    parked(first(), hatchery_core::Cause::Overloaded, 15_000, detail)
}

#[test]
fn runs_are_numbered() {
    use hatchery_core::{Cause, Exit};
    let it = done(spec()).and(over(first(), Cause::Completed, Exit::Code(0), ""));
    let it = it
        .when(run(A, spec()))
        .then([Event::Agent { agent: A, what: AgentEvent::RunRequested { run: 2, spec: spec() } }]);
    it.when(spawn(first())).refused(Refusal::StaleAttempt(first()));
}

#[test]
fn what_is_said_to_an_agent_at_work_waits_for_its_process() {
    for it in [wanted(spec()), present(spec()), working(spec()), done(staying())] {
        let it = it.when(tell(A, "and more", Some(spec()))).then([said(A, "and more")]);
        assert_eq!(undelivered(&it).last().copied(), Some(it.world.head().0));
        assert_eq!(plan(&it.world).runs[&A].state, DesiredState::Running { upto: Some(it.world.head()), last: false });
    }
}

#[test]
fn what_is_said_to_an_agent_at_rest_starts_a_run_if_it_says_how() {
    let it = given([created(A, None)]);
    it.clone().when(tell(A, "hello", Some(spec()))).then([said(A, "hello"), requested(A, spec())]);
    it.when(tell(A, "hello", None)).then([said(A, "hello")]);
}

#[test]
fn nothing_is_said_when_the_run_cannot_be() {
    let bad = RunSpec { retries: MAX_RETRIES + 1, ..spec() };
    let too_many = Refusal::TooManyRetries { retries: MAX_RETRIES + 1 };
    given([created(A, None)]).when(tell(A, "hello", Some(bad))).refused(too_many);
    given([created(A, None), dead(A)]).when(tell(A, "hello", Some(spec()))).refused(Refusal::AgentDead(A));
    given([]).when(run(NOBODY, spec())).refused(Refusal::UnknownAgent(NOBODY));
}

#[test]
fn a_spec_has_limits() {
    let it = given([created(A, None)]);
    for stall_ms in [MIN_STALL_MS - 1, MAX_STALL_MS + 1] {
        it.clone().when(run(A, RunSpec { stall_ms, ..spec() })).refused(Refusal::StallOutOfRange { ms: stall_ms });
    }
    for stall_ms in [MIN_STALL_MS, MAX_STALL_MS] {
        let spec = RunSpec { stall_ms, retries: MAX_RETRIES, ..spec() };
        it.clone().when(run(A, spec.clone())).then([requested(A, spec)]);
    }
    let long = "x".repeat(MAX_SPEC_BYTES + 1);
    let bad = |text: &str| Refusal::BadSpec { text: text.chars().take(64).collect() };
    for text in ["", &long] {
        let some = || Some(text.to_owned());
        for spec in [
            RunSpec { harness: text.into(), ..spec() },
            RunSpec { host: text.into(), ..spec() },
            RunSpec { folder: some(), ..spec() },
            RunSpec { model: some(), ..spec() },
            RunSpec { script: some(), ..spec() },
        ] {
            it.clone().when(run(A, spec.clone())).refused(bad(text));
            let birth = Birth { run: Some(Box::new(spec)), ..Birth::of(B) };
            it.clone().when(bear(A, birth)).refused(bad(text));
        }
    }
}

#[test]
fn a_sleeper_that_is_run_wakes() {
    let it = given([started(S), created(A, Some(S)), ending(S, User), slept(A), ended(S, User)]);
    let it = it.when(run(A, spec())).then([woken(A, None), requested(A, spec())]);
    assert_eq!(it.world.agent(A).unwrap().lifecycle, Lifecycle::Alive { session: None });
}

#[test]
fn nothing_begins_in_a_session_that_ends() {
    let it = given([started(S), created(A, Some(S)), created(B, None), ending(S, User)]);
    let ending = || Refusal::SessionEnding { session: S, reason: User };
    let it = it.when(run(A, spec())).refused(ending());
    let it = it.when(tell(A, "hello", Some(spec()))).refused(ending());
    it.when(run(B, spec())).then([requested(B, spec())]);
}

/// Two daemons may decide at the same moment, and neither touches what the other rests on.
#[test]
fn a_run_that_began_while_its_session_was_asked_to_end_is_stopped() {
    let it = given([started(S), created(A, Some(S)), ending(S, User), requested(A, spec())]);
    it.when(Command::Tick).then([stopping(first(), StopWhy::Session)]);
}

#[test]
fn a_fork_may_be_run_from_the_start() {
    let birth = || Birth { prompt: Some("go".into()), run: Some(Box::new(spec())), ..Birth::of(A) };
    let it = given([]).when(bear(R, birth()));
    let it = it.then([forked(R, A, None), said(A, "go"), requested(A, spec())]);
    assert_eq!(undelivered(&it), [4], "a briefing, which has the prompt in it");
    // When it has to wait, so does its run.
    let it = given([called(R)])
        .when(bear(R, birth()))
        .then([Event::Agent { agent: R, what: AgentEvent::ForkRequested { birth: birth() } }]);
    let it = it.when(add(R, MessageKind::ToolResult, "ok"));
    it.then([answered(R), forked(R, A, Some(4)), said(A, "go"), requested(A, spec())]);
}

#[test]
fn a_child_that_is_born_asleep_is_not_run() {
    let birth = Birth { session: Some(S), run: Some(Box::new(spec())), ..Birth::of(B) };
    let it = given([
        started(S),
        created(A, None),
        called(A),
        Event::Agent { agent: A, what: AgentEvent::ForkRequested { birth } },
        ending(S, User),
    ]);
    let it = it.when(add(A, MessageKind::ToolResult, "ok"));
    it.then([answered(A), forked(A, B, Some(7)), slept(B)]).when(close(S)).then([ended(S, User)]);
}

#[test]
fn a_process_is_reported_once_and_for_the_attempt_that_wants_it() {
    let it = wanted(spec()).when(spawn(first())).then([spawned(first())]);
    let it = it.when(spawn(first())).refused(Refusal::StaleAttempt(first()));
    it.when(spawn(attempt(2))).refused(Refusal::StaleAttempt(attempt(2)));
    given([created(A, None)]).when(spawn(first())).refused(Refusal::NoRun(A));
}

#[test]
fn a_run_has_started_when_our_tools_answer() {
    let it = hears(present(spec()), [ready()]).then([begun(first()), taken(first(), 1)]);
    let run = last_run(&it);
    assert_eq!((&run.state, run.attempt.in_turn), (&RunState::Running { process: process() }, true));
    assert_eq!(conversation(&it).harness_session.as_ref().unwrap().session, TALK);
}

#[test]
fn a_run_whose_tools_do_not_answer_is_stopped_with_the_reason() {
    use hatchery_core::{Cause, Exit};
    for word in ["failed", "pending"] {
        let why = || StopWhy::NotReady { why: word.into() };
        let it = hears(present(spec()), [not_ready(word)]).then([stopping(first(), why()), taken(first(), 1)]);
        assert_eq!(plan(&it.world).runs[&A].state, DesiredState::Stopped);
        let detail = format!("it did not start: {word}; see its stderr");
        it.when(exit(first(), Exit::Code(0))).then([over(first(), Cause::Crashed, Exit::Code(0), &detail)]);
    }
}

/// It says how it stands with its servers at every turn. Its end was decided, and stays.
#[test]
fn tools_that_come_too_late_do_not_start_a_run() {
    let gate = || stopping(first(), StopWhy::NotReady { why: "pending".into() });
    let it = hears(present(spec()), [not_ready("pending"), ready(), text("hm")]);
    let it = it.then([gate(), begun(first()), spoke(A, "hm"), taken(first(), 3)]);
    assert_eq!(plan(&it.world).runs[&A].state, DesiredState::Stopped);
    let it = hears(present(spec()), [not_ready("pending"), Output::TurnStarted, not_ready("pending")]);
    it.then([gate(), turn_started(first()), taken(first(), 3)]);
}
