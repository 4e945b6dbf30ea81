//! What counts of a history: clears, marks, rewinds, interruptions, and what children keep of them.

use crate::given::*;
use hatchery_core::history::{HistoryRange, MAX_MARK_BYTES, MAX_MESSAGE_BYTES, RewindTo, ranges};
use hatchery_core::{EventId, MessageKind, Refusal};

fn to_message(id: u64) -> RewindTo {
    RewindTo::Message(EventId(id))
}

#[test]
fn the_walk_ends_at_the_root_or_at_the_nearest_clear() {
    let it = given([said(R, "one"), forked(R, A, Some(2)), said(A, "two"), forked(A, B, Some(4)), said(B, "three")]);
    let parts = |it: &Given, agent| -> Vec<_> {
        ranges(&it.world, agent).iter().map(|HistoryRange { agent, upto, .. }| (*agent, upto.0)).collect()
    };
    assert_eq!(parts(&it, B), [(R, 2), (A, 4), (B, 6)]);
    assert_eq!(it.ids(B), [2, 4, 6]);
    let it = it.and(cleared(B));
    assert_eq!(parts(&it, B), []);
    let it = it.and(said(B, "four"));
    assert_eq!((parts(&it, B), it.ids(B)), (vec![(B, 8)], vec![8]));
    assert_eq!(it.ids(A), [2, 4], "a clear is one's own");
    assert_eq!(ranges(&it.world, NOBODY), []);
}

#[test]
fn what_the_parent_clears_after_the_fork_stays_with_the_child() {
    let it = given([said(R, "one"), forked(R, A, Some(2)), cleared(R), said(R, "two"), said(A, "mine")]);
    assert_eq!((it.heard(A), it.heard(R)), (vec!["one".into(), "mine".into()], vec!["two".to_owned()]));
}

#[test]
fn a_rewind_takes_back_what_came_after_and_it_does_not_return() {
    let it = given([said(R, "one"), said(R, "two"), said(R, "three")]);
    let it = it.when(rewind(R, to_message(2))).then([rewound(R, 2)]);
    assert_eq!((it.ids(R), it.heard(R)), (vec![2, 5], vec!["one".to_owned()]));
    let it = it.restarted();
    assert_eq!(it.ids(R), [2, 5], "also after a restart");
    // Neither after further marks and words, nor after going back to them.
    let it = it.and(marked(R, "later")).and(said(R, "four"));
    assert_eq!(it.ids(R), [2, 5, 6, 7]);
    let it = it.when(rewind(R, RewindTo::LastMark)).then([rewound(R, 6)]);
    assert_eq!(it.ids(R), [2, 5, 6, 8]);
    let it = it.when(rewind(R, to_message(2))).then([rewound(R, 2)]);
    assert_eq!(it.restarted().heard(R), ["one"]);
}

#[test]
fn a_child_that_forked_before_a_rewind_keeps_what_it_inherited_and_one_after_it_does_not() {
    let it = given([said(R, "one"), said(R, "two"), forked(R, A, Some(3)), rewound(R, 2)]);
    let it = it.when(fork(R, B)).then([forked(R, B, Some(5))]).and(said(R, "three"));
    let it = it.restarted();
    assert_eq!((it.heard(A), it.heard(B)), (vec!["one".to_owned(), "two".into()], vec!["one".to_owned()]));
    assert_eq!(it.ids(B), [2, 5]);
}

#[test]
fn a_rewind_may_go_back_into_what_was_inherited() {
    let it = given([said(R, "one"), said(R, "two"), forked(R, A, Some(3)), said(A, "three")]);
    let it = it.when(rewind(A, to_message(2))).then([rewound(A, 2)]).and(said(A, "four"));
    assert_eq!((it.ids(A), it.heard(A)), (vec![2, 6, 7], vec!["one".to_owned(), "four".into()]));
    let it = it.when(fork(A, B)).then([forked(A, B, Some(7))]);
    assert_eq!(it.ids(B), [2, 6, 7], "so do those who fork from it");
    assert_eq!(it.heard(R), ["one", "two"], "and nobody else is touched");
}

#[test]
fn a_rewind_goes_back_to_the_last_mark_or_to_one_by_its_label() {
    let marks = || given([marked(R, "a"), said(R, "one"), marked(R, "b"), said(R, "two")]);
    let label = |label: &str| RewindTo::Mark(label.into());
    marks().when(rewind(R, RewindTo::LastMark)).then([rewound(R, 4)]);
    marks().when(rewind(R, label("b"))).then([rewound(R, 4)]);
    let it = marks().when(rewind(R, label("a"))).then([rewound(R, 2)]);
    assert_eq!(it.heard(R), [""; 0]);
    // A mark that was taken back is gone, and a mark stays when it was gone back to.
    let gone = Refusal::NoSuchMark { agent: R, label: Some("b".into()) };
    let it = it.when(rewind(R, label("b"))).refused(gone);
    it.when(rewind(R, RewindTo::LastMark)).then([rewound(R, 2)]);
    // Of two with one label the later is meant.
    marks().and(marked(R, "a")).when(rewind(R, label("a"))).then([rewound(R, 6)]);
}

#[test]
fn a_child_goes_back_to_marks_that_it_inherited_and_no_others() {
    let it = given([marked(R, "a"), forked(R, A, Some(2)), marked(R, "b"), said(A, "one")]);
    let it = it.when(rewind(A, RewindTo::LastMark)).then([rewound(A, 2)]);
    let later = RewindTo::Mark("b".into());
    it.when(rewind(A, later)).refused(Refusal::NoSuchMark { agent: A, label: Some("b".into()) });
}

#[test]
fn a_clear_takes_the_marks_with_it() {
    let it = given([marked(R, "a"), cleared(R)]);
    let it = it.when(rewind(R, RewindTo::LastMark)).refused(Refusal::NoSuchMark { agent: R, label: None });
    it.when(rewind(R, to_message(2))).refused(Refusal::NotInHistory { agent: R, message: EventId(2) });
}

#[test]
fn a_rewind_after_a_clear_stays_after_it() {
    let it = given([said(R, "one"), cleared(R), said(R, "two"), said(R, "three")]);
    let it = it.when(rewind(R, to_message(4))).then([rewound(R, 4)]);
    assert_eq!(it.ids(R), [4, 6]);
}

#[test]
fn a_rewind_that_comes_as_a_message_says_where_to() {
    let it = || given([said(R, "one"), marked(R, "here"), said(R, "two"), marked(R, "there")]);
    let plain = |content| add(R, MessageKind::Rewind, content);
    it().when(plain("")).then([rewound(R, 5)]);
    it().when(plain("here")).then([rewound(R, 3)]);
    it().when(plain("4")).then([rewound(R, 4)]);
    it().when(plain("9")).refused(Refusal::NotInHistory { agent: R, message: EventId(9) });
    it().when(plain("nowhere")).refused(Refusal::NoSuchMark { agent: R, label: Some("nowhere".into()) });
    // A refusal repeats no more of a label than a label may have.
    let endless = "x".repeat(MAX_MESSAGE_BYTES);
    let label = Some("x".repeat(MAX_MARK_BYTES));
    it().when(plain(&endless)).refused(Refusal::NoSuchMark { agent: R, label });
}

#[test]
fn an_interrupted_turn_does_not_reach_the_model() {
    let interrupted = || added(R, MessageKind::Interrupted, "");
    let assistant = |content| added(R, MessageKind::Assistant, content);
    let it = given([said(R, "u1"), assistant("a1"), said(R, "u2"), assistant("a2"), interrupted(), said(R, "u3")]);
    assert_eq!(it.heard(R), ["u1", "a1", "u3"]);
    assert_eq!(it.ids(R), [2, 3, 4, 5, 6, 7], "it is still history");
    // A second marker reaches back to the same user's message; without one, to the start.
    let it = given([assistant("a0"), interrupted(), said(R, "u1"), assistant("a1"), interrupted(), assistant("a2")]);
    assert_eq!(it.heard(R), ["a2"]);
    assert_eq!(it.and(interrupted()).and(assistant("a3")).heard(R), ["a3"]);
}

#[test]
fn the_label_of_a_mark_may_be_as_long_as_the_limit_and_no_longer() {
    let label = "x".repeat(MAX_MARK_BYTES);
    given([]).when(add(R, MessageKind::Mark, &label)).then([marked(R, &label)]);
    let bytes = MAX_MARK_BYTES + 1;
    let refusal = Refusal::MarkTooLong { bytes };
    given([]).when(add(R, MessageKind::Mark, &"x".repeat(bytes))).refused(refusal);
}

#[test]
fn order_is_by_id_whatever_the_clock_says() {
    let it = given([]).at(500).and(said(R, "first")).at(-500).and(said(R, "second"));
    assert_eq!(it.when(fork(R, A)).then([forked(R, A, Some(3))]).restarted().heard(A), ["first", "second"]);
}
