//! What is said of an agent when somebody asks why it is as it is.

use super::words::*;
use crate::given::*;
use hatchery_core::run::StopWhy;
use hatchery_core::why::{Activity, why};
use hatchery_core::{Cause, Exit};

fn condition(it: &Given) -> Activity {
    why(&it.world, A).expect("A is there").state
}

fn words(it: &Given) -> String {
    let evidence = why(&it.world, A).expect("A is there").evidence;
    evidence.into_iter().map(|it| it.what).collect::<Vec<_>>().join("; ")
}

#[test]
fn each_state_has_its_word() {
    assert!(why(&given([]).world, NOBODY).is_none());
    let cases = [
        (given([created(A, None)]), Activity::Resting),
        (wanted(spec()), Activity::Starting),
        (present(spec()), Activity::Starting),
        (working(spec()), Activity::Working),
        (working(spec()).and(silent(first(), 0)), Activity::Silent),
        (done(staying()), Activity::Listening),
        (working(spec()).and(stopping(first(), StopWhy::User)), Activity::Stopping),
        (working(spec()).and(parked(first(), Cause::Overloaded, 9, "")), Activity::Parked),
        (done(spec()).and(over(first(), Cause::Completed, Exit::Code(0), "")), Activity::Resting),
        (given([created(A, None), dead(A)]), Activity::Dead),
        (given([laid(A, 9), expired(A)]), Activity::Expired),
    ];
    for (it, state) in cases {
        assert_eq!((condition(&it), condition(&it).word()), (state, state.word()));
        assert!(!words(&it).is_empty());
    }
}

#[test]
fn the_evidence_is_in_words_for_people() {
    let it = working(spec()).and(said(A, "more")).and(called(A)).and(stopping(first(), StopWhy::Stuck));
    assert_eq!(
        words(&it),
        "run 1, attempt 1 is being stopped: silent for too long; 1 of its messages not confirmed yet; \
         1 of its tools has not answered; 3 messages in its own history"
    );
}
