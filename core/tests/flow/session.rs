//! Sessions: started, asked to end for a reason, ended for that reason.

use crate::given::*;
use hatchery_core::event::SessionEvent;
use hatchery_core::session::EndReason::{Completed, Failed, User};
use hatchery_core::session::{EndReason, MAX_IDLE_MS, MAX_LABEL_BYTES, MIN_IDLE_MS, SessionState};
use hatchery_core::{Command, Event, Refusal, Timestamp, plan};

#[test]
fn a_session_starts_open_with_its_label() {
    let label = Some("the attic".to_owned());
    let it = given([])
        .at(7)
        .when(Command::StartSession { session: S, label: label.clone(), idle_ms: None })
        .then([Event::Session { session: S, what: SessionEvent::Started { label: label.clone(), idle_ms: None } }]);
    let session = it.world.session(S).unwrap();
    assert_eq!((&session.label, &session.state), (&label, &SessionState::Open));
    assert_eq!((session.started, session.last_active), (Timestamp(7), Timestamp(7)));
    assert_eq!(plan(&it.world).close, []);
}

#[test]
fn the_intent_to_end_is_recorded_before_the_end() {
    for reason in [Completed, User, EndReason::Inactive, Failed] {
        let asked = given([started(S)]).when(end(S, reason.clone())).then([ending(S, reason.clone())]);
        assert_eq!(plan(&asked.world).close, [S], "the shell is told to bring it about");
        let over = asked.at(9).when(close(S)).then([ended(S, reason.clone())]);
        assert_eq!(over.world.session(S).unwrap().state, SessionState::Ended { reason, at: Timestamp(9) });
        assert_eq!(plan(&over.world).close, [], "nothing is left to do");
    }
}

#[test]
fn the_first_reason_stands() {
    given([started(S)])
        .when(end(S, User))
        .then([ending(S, User)])
        .when(end(S, Failed))
        .refused(Refusal::SessionEnding { session: S, reason: User })
        .when(close(S))
        .then([ended(S, User)])
        .when(end(S, Failed))
        .refused(Refusal::SessionOver { session: S, reason: User })
        .when(close(S))
        .refused(Refusal::SessionOver { session: S, reason: User });
}

#[test]
fn an_ended_session_puts_its_own_agents_to_sleep_and_no_others() {
    let before = given([started(S), started(T), created(A, Some(S)), created(B, Some(T)), ending(S, Completed)]);
    let after = before.when(close(S)).then([slept(A), ended(S, Completed)]);
    assert_eq!(after.world.session(S).unwrap().awake.len(), 0);
    assert!(after.world.session(T).unwrap().awake.contains(&B));
}

#[test]
fn an_agent_that_ended_before_does_not_fall_asleep() {
    given([started(S), created(A, Some(S)), created(B, Some(S)), dead(A), ending(S, User)])
        .when(close(S))
        .then([slept(B), ended(S, User)]);
}

#[test]
fn a_label_may_be_as_long_as_the_limit_and_no_longer() {
    let labelled = |bytes| Command::StartSession { session: S, label: Some("x".repeat(bytes)), idle_ms: None };
    let fits = Event::Session {
        session: S,
        what: SessionEvent::Started { label: Some("x".repeat(MAX_LABEL_BYTES)), idle_ms: None },
    };
    given([]).when(labelled(MAX_LABEL_BYTES)).then([fits]);
    given([]).when(labelled(MAX_LABEL_BYTES + 1)).refused(Refusal::LabelTooLong { bytes: MAX_LABEL_BYTES + 1 });
}

#[test]
fn an_idle_limit_lies_within_its_range() {
    let idle = |ms| Command::StartSession { session: S, label: None, idle_ms: Some(ms) };
    for ms in [MIN_IDLE_MS, MAX_IDLE_MS] {
        given([]).when(idle(ms)).then([started_idle(S, ms)]);
    }
    for ms in [0, MIN_IDLE_MS - 1, MAX_IDLE_MS + 1, u64::MAX] {
        given([]).when(idle(ms)).refused(Refusal::IdleOutOfRange { ms });
    }
}

#[test]
fn the_plan_closes_every_ending_session_and_no_other() {
    let world = given([started(S), started(T), ending(T, User), ending(S, Failed)]).world;
    assert_eq!(plan(&world).close, [S, T]);
    let world = given([started(S), started(T), ending(T, User)]).world;
    assert_eq!(plan(&world).close, [T]);
}
