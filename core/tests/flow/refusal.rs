//! Every "no", at least once, and what programs and people are told about it.

use crate::given::*;
use hatchery_core::agent::{MAX_MESSAGE_BYTES, MAX_REMARK_BYTES};
use hatchery_core::refusal::Sort::{self, Invalid, Missing, Untimely};
use hatchery_core::session::EndReason::User;
use hatchery_core::session::MAX_LABEL_BYTES;
use hatchery_core::{Command, Refusal};
use std::collections::BTreeSet;

/// Names all variants and tells one from another, so that a new one does not compile until it is listed, and listed does
/// not pass until it is tested.
macro_rules! variants {
    ($($variant:ident)+) => {
        const VARIANTS: &[&str] = &[$(stringify!($variant)),+];

        fn variant(refusal: &Refusal) -> &'static str {
            match refusal {
                $(Refusal::$variant { .. } => stringify!($variant),)+
            }
        }
    };
}

variants! {
    UnknownSession SessionExists SessionOver SessionEnding SessionNotEnding
    UnknownAgent AgentExists AgentDead AgentAwake
    LabelTooLong IdleOutOfRange BadName MessageTooLong RemarkTooLong
}

/// S is open, T has ended; A is alive, B is dead.
fn cases() -> Vec<(Command, Refusal, Sort, &'static str)> {
    let is_over = || Refusal::SessionOver { session: T, reason: User };
    let label = Some("x".repeat(MAX_LABEL_BYTES + 1));
    let remark = Some("x".repeat(MAX_REMARK_BYTES + 1));
    let message = "x".repeat(MAX_MESSAGE_BYTES + 1);
    let (nowhere, nobody) =
        (hatchery_core::SessionId::from_bytes([9; 16]), hatchery_core::AgentId::from_bytes([9; 16]));
    let no_session = || Refusal::UnknownSession(nowhere);
    let no_agent = || Refusal::UnknownAgent(nobody);
    let too_short = Command::StartSession { session: nowhere, label: None, idle_ms: Some(1) };
    let labelled = Command::StartSession { session: nowhere, label, idle_ms: None };
    let child = Command::CreateAgent { agent: nobody, parent: Some(nobody), name: None, session: None };
    vec![
        (end(nowhere, User), no_session(), Missing, "unknown_session"),
        (close(nowhere), no_session(), Missing, "unknown_session"),
        (create(nobody, Some(nowhere)), no_session(), Missing, "unknown_session"),
        (wake(A, Some(nowhere)), no_session(), Missing, "unknown_session"),
        (start(S), Refusal::SessionExists(S), Untimely, "session_exists"),
        (start(T), Refusal::SessionExists(T), Untimely, "session_exists"),
        (end(T, User), is_over(), Untimely, "session_over"),
        (close(T), is_over(), Untimely, "session_over"),
        (close(S), Refusal::SessionNotEnding(S), Untimely, "session_not_ending"),
        (child, no_agent(), Missing, "unknown_agent"),
        (rename(nobody, "Cael"), no_agent(), Missing, "unknown_agent"),
        (wake(nobody, None), no_agent(), Missing, "unknown_agent"),
        (end_agent(nobody), no_agent(), Missing, "unknown_agent"),
        (say(nobody, "hello"), no_agent(), Missing, "unknown_agent"),
        (create(A, None), Refusal::AgentExists(A), Untimely, "agent_exists"),
        (create(B, None), Refusal::AgentExists(B), Untimely, "agent_exists"),
        (say(B, "hello"), Refusal::AgentDead(B), Untimely, "agent_dead"),
        (wake(A, Some(S)), Refusal::AgentAwake(A), Untimely, "agent_awake"),
        (labelled, Refusal::LabelTooLong { bytes: MAX_LABEL_BYTES + 1 }, Invalid, "label_too_long"),
        (too_short, Refusal::IdleOutOfRange { ms: 1 }, Invalid, "idle_out_of_range"),
        (rename(A, ""), Refusal::BadName { name: String::new() }, Invalid, "bad_name"),
        (say(A, &message), Refusal::MessageTooLong { bytes: message.len() }, Invalid, "message_too_long"),
        (
            Command::EndAgent { agent: A, remark },
            Refusal::RemarkTooLong { bytes: MAX_REMARK_BYTES + 1 },
            Invalid,
            "remark_too_long",
        ),
    ]
}

#[test]
fn every_refusal_is_given_where_it_should_be() {
    let mut seen = BTreeSet::new();
    let mut check = |it: Given, command, refusal: Refusal, sort, code| {
        assert_eq!((refusal.sort(), refusal.code()), (sort, code));
        assert!(!refusal.to_string().is_empty() && !refusal.hint().is_empty(), "{code} says what and what next");
        seen.insert(variant(&refusal));
        it.when(command).refused(refusal);
    };
    let it =
        given([started(S), started(T), ending(T, User), ended(T, User), created(A, None), created(B, None), dead(B)]);
    for (command, refusal, sort, code) in cases() {
        check(it.clone(), command, refusal, sort, code);
    }
    let refusal = Refusal::SessionEnding { session: S, reason: User };
    check(it.and(ending(S, User)), end(S, User), refusal, Untimely, "session_ending");
    assert_eq!(seen, VARIANTS.iter().copied().collect());
}

#[test]
fn a_refusal_names_the_id_it_speaks_of() {
    assert!(Refusal::UnknownSession(S).to_string().contains(&S.to_string()));
    assert!(Refusal::AgentDead(A).to_string().contains(&A.to_string()));
}
