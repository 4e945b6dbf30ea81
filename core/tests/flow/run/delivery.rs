//! What is said to a process: in order, each until it was heard, and none twice.

use super::words::*;
use crate::given::*;
use hatchery_core::event::AgentEvent;
use hatchery_core::history::{MAX_LATE_MESSAGES, TURN_INTERRUPTED};
use hatchery_core::output::{FailureKind, Output, TurnEnd};
use hatchery_core::run::{DeliveryKind, DesiredState, delivery_of, wire_name};
use hatchery_core::{Cause, EventId, Exit, MessageKind, Refusal, plan};

fn kinds(it: &Given) -> Vec<DeliveryKind> {
    conversation(it).waiting.iter().map(|delivery| delivery.what).collect()
}

#[test]
fn the_first_process_is_briefed() {
    let it = wanted(spec());
    assert_eq!((kinds(&it), undelivered(&it)), (vec![DeliveryKind::Briefing], vec![BRIEFING]));
}

#[test]
fn a_delivery_leaves_the_queue_when_it_was_heard() {
    let it = present(spec()).and(said(A, "one")).and(said(A, "two"));
    assert_eq!(undelivered(&it), [BRIEFING, 6, 7]);
    let it = hears(it, [ready(), echo(BRIEFING), echo(6)]);
    let it = it.then([begun(first()), heard(first(), BRIEFING), heard(first(), 6), taken(first(), 3)]);
    assert_eq!(undelivered(&it), [7]);
    assert_eq!(
        plan(&it.restarted().world).runs[&A].state,
        DesiredState::Running { upto: Some(EventId(7)), last: false }
    );
}

#[test]
fn an_echo_counts_once_and_a_strange_one_not_at_all() {
    let it = hears(working(spec()), [echo(BRIEFING), echo(99), Output::Heard { id: "somebody's".into() }]);
    let it = it.then([taken(first(), 13)]).and(said(A, "one"));
    hears(it, [echo(10), echo(10)]).then([heard(first(), 10), taken(first(), 15)]);
}

#[test]
fn they_may_be_heard_in_another_order() {
    let it = present(spec()).and(begun(first())).and(said(A, "one")).and(said(A, "two"));
    let it = hears(it, [echo(8), echo(BRIEFING)]);
    let it = it.then([heard(first(), 8), heard(first(), BRIEFING), taken(first(), 2)]);
    assert_eq!(undelivered(&it), [7]);
}

#[test]
fn only_a_users_words_are_said_to_a_process() {
    use MessageKind::*;
    let it = working(spec());
    for kind in [System, Assistant, ToolCall, ToolResult, Mark, AgentKilled, Command, Fork, Usage, Interrupted] {
        assert_eq!(undelivered(&it.clone().and(added(A, kind, ""))), [0; 0], "{kind:?}");
    }
    assert_eq!(undelivered(&it.and(said(A, "hello"))), [9]);
}

#[test]
fn what_was_not_heard_is_told_to_the_next_process() {
    let it = working(spec()).and(said(A, "one")).when(exit(first(), Exit::Signal(9)));
    let it = it.then([crashed(first(), Exit::Signal(9), MID_TURN), resumed(attempt(2))]);
    assert_eq!((kinds(&it), undelivered(&it)), (vec![DeliveryKind::Message], vec![9]));
}

#[test]
fn a_process_that_has_nothing_new_to_hear_is_told_to_go_on() {
    let it = working(spec()).when(exit(first(), Exit::Signal(9)));
    let it = it.then([crashed(first(), Exit::Signal(9), MID_TURN), resumed(attempt(2))]);
    assert_eq!((kinds(&it), undelivered(&it)), (vec![DeliveryKind::Nudge], vec![10]));
    // A second crash does not add a second one.
    let it = it.and(spawned(attempt(2))).and(crashed(attempt(2), Exit::Signal(9), "")).and(resumed(attempt(3)));
    assert_eq!((kinds(&it), undelivered(&it)), (vec![DeliveryKind::Nudge], vec![10]));
}

/// The agent program keeps such a message, so it is not said again.
#[test]
fn a_message_that_came_too_late_for_its_turn_is_answered_in_another() {
    let end = TurnEnd { unanswered: true, ..well() };
    let it = hears(working(spec()).and(said(A, "one")), [echo(9), result(end.clone())]);
    let it = it.then([heard(first(), 9), turn_ended(first(), end, nothing_spent()), taken(first(), 12)]);
    assert_eq!((kinds(&it), undelivered(&it)), (vec![DeliveryKind::Reminder], vec![11]));
    let it = hears(it, [echo(11), result(well())]);
    let it = it.then([heard(first(), 11), turn_ended(first(), well(), nothing_spent()), taken(first(), 14)]);
    assert_eq!(undelivered(&it), [0; 0], "once is enough");
}

/// There is no conversation that it could go on with.
#[test]
fn a_process_after_one_that_never_showed_its_conversation_is_told_everything() {
    let it = present(spec()).and(heard(first(), BRIEFING)).and(said(A, "one")).when(exit(first(), Exit::Signal(9)));
    let it = it.then([crashed(first(), Exit::Signal(9), MID_TURN), again_in(first(), 1, 1_000)]);
    let it = it.at(1_000).when(hatchery_core::Command::Tick).then([resumed(attempt(2))]);
    assert_eq!((kinds(&it), undelivered(&it)), (vec![DeliveryKind::Briefing], vec![10]));
}

#[test]
fn what_was_not_heard_waits_for_the_next_run() {
    let it = done(spec()).and(said(A, "one")).and(over(first(), Cause::Unauthorised, Exit::Code(1), ""));
    let it = it.and(said(A, "two")).when(run(A, spec()));
    let it =
        it.then([hatchery_core::Event::Agent { agent: A, what: AgentEvent::RunRequested { run: 2, spec: spec() } }]);
    assert_eq!((kinds(&it), undelivered(&it)), (vec![DeliveryKind::Message; 2], vec![11, 13]));
}

#[test]
fn another_harness_or_another_machine_is_briefed_anew() {
    let it = done(spec()).and(over(first(), Cause::Completed, Exit::Code(0), "")).and(said(A, "more"));
    let mut elsewhere = [spec(), spec()];
    elsewhere[0].harness = "claude".into();
    elsewhere[1].host = "barn".into();
    for spec in elsewhere {
        let it = it.clone().when(run(A, spec.clone()));
        let it = it.then([hatchery_core::Event::Agent { agent: A, what: AgentEvent::RunRequested { run: 2, spec } }]);
        assert_eq!((kinds(&it), conversation(&it).harness_session.clone()), (vec![DeliveryKind::Briefing], None));
    }
}

#[test]
fn an_interrupt_is_told_until_it_was_obeyed() {
    let it = working(spec()).when(interrupt(A)).then([interrupted(first())]);
    assert_eq!((kinds(&it), undelivered(&it)), (vec![DeliveryKind::Interrupt], vec![9]));
    let mark = added(A, MessageKind::System, TURN_INTERRUPTED);
    let ended = turn_ended(first(), broken_off(), nothing_spent());
    let it = hears(it, [obeyed(9), result(broken_off())]);
    let it = it.then([heard(first(), 9), mark, ended, taken(first(), 12)]);
    assert_eq!(it.heard(A).last().map(String::as_str), Some(TURN_INTERRUPTED), "what the agent program keeps counts");
    assert_eq!(undelivered(&it), [0; 0]);
}

#[test]
fn a_refused_interrupt_is_not_told_again() {
    let it = working(spec()).and(interrupted(first()));
    let no = Output::Answered { request: wire_name(EventId(9)), problem: Some("no".into()) };
    let it = hears(it, [no]).then([heard(first(), 9), taken(first(), 11)]);
    assert!(last_run(&it).attempt.in_turn, "an interrupt begins and ends nothing by itself");
}

#[test]
fn only_a_turn_can_be_interrupted() {
    let it = working(spec()).when(interrupt(A)).then([interrupted(first())]);
    it.when(interrupt(A)).then([]).and(heard(first(), 9)).when(interrupt(A)).then([interrupted(first())]);
    for it in [wanted(spec()), present(spec()), done(staying())] {
        it.when(interrupt(A)).refused(Refusal::NoTurn(A));
    }
    given([created(A, None)]).when(interrupt(A)).refused(Refusal::NoRun(A));
    given([]).when(interrupt(NOBODY)).refused(Refusal::UnknownAgent(NOBODY));
}

#[test]
fn an_interrupt_dies_with_its_process() {
    let it = working(spec()).and(interrupted(first())).when(exit(first(), Exit::Signal(9)));
    let it = it.then([crashed(first(), Exit::Signal(9), MID_TURN), resumed(attempt(2))]);
    assert_eq!(kinds(&it), [DeliveryKind::Nudge]);
}

/// Nothing is taken back: neither the turn, which the agent program keeps, nor the message.
#[test]
fn a_message_that_waits_is_heard_after_the_turn_that_was_broken_off() {
    let it = working(staying()).and(said(A, "rather this")).and(interrupted(first()));
    let it = hears(it, [obeyed(10), result(broken_off())]);
    let ended = turn_ended(first(), broken_off(), nothing_spent());
    let mark = added(A, MessageKind::System, TURN_INTERRUPTED);
    let it = it.then([heard(first(), 10), mark, ended, taken(first(), 12)]);
    assert_eq!(it.heard(A), ["hello", TURN_INTERRUPTED, "rather this"], "as the agent hears it");
    assert_eq!(undelivered(&it), [9]);
    // What is said later follows, and a message that was heard in its turn stays where it is.
    let it = hears(it, [Output::Heard { id: wire_name(EventId(9)) }, result(well())]);
    let it = it.then([heard(first(), 9), turn_ended(first(), well(), nothing_spent()), taken(first(), 14)]);
    let it = it.and(said(A, "and that")).and(heard(first(), 18));
    let it = hears(it, [result(broken_off())]);
    let mark = added(A, MessageKind::System, TURN_INTERRUPTED);
    let it = it.then([mark, turn_ended(first(), broken_off(), nothing_spent()), taken(first(), 15)]);
    assert_eq!(it.heard(A), ["hello", TURN_INTERRUPTED, "rather this", "and that", TURN_INTERRUPTED]);
}

/// A fork from before the end of the interrupted turn has no mark, so the message stands where it was said.
#[test]
fn a_fork_from_before_an_interrupt_has_the_message_in_its_place() {
    let it = working(staying()).and(said(A, "rather this")).and(forked(A, B, Some(9))).and(interrupted(first()));
    let it = it.and(said(B, "of the fork"));
    let it = hears(it, [obeyed(11), result(broken_off())]);
    let mark = added(A, MessageKind::System, TURN_INTERRUPTED);
    let ended = turn_ended(first(), broken_off(), nothing_spent());
    let it = it.then([heard(first(), 11), mark, ended, taken(first(), 12)]);
    assert_eq!(it.heard(A), ["hello", TURN_INTERRUPTED, "rather this"]);
    assert_eq!(it.heard(B), ["hello", "rather this", "of the fork"]);
}

#[test]
fn a_process_may_leave_when_it_has_heard_everything_and_ended_its_turn() {
    let last = |it: &Given| match plan(&it.world).runs[&A].state {
        DesiredState::Running { last, .. } => last,
        DesiredState::Stopped => panic!("nobody stops it"),
    };
    assert!(!last(&wanted(spec())) && !last(&present(spec())) && !last(&working(spec())));
    assert!(last(&done(spec())));
    assert!(!last(&done(spec()).and(said(A, "more"))), "it has something to hear");
    assert!(!last(&done(spec()).and(turn_started(first()))), "it goes on by itself");
    assert!(!last(&done(staying())), "it is to stay");
    assert!(last(&failed(staying(), refused(FailureKind::Overloaded))), "it cannot go on now");
    assert!(!last(&failed(staying(), broken_off())), "it was only interrupted");
    assert!(!last(&failed(staying(), refused(FailureKind::Overloaded)).and(said(A, "more"))), "it may try again");
}

#[test]
fn a_failed_turn_that_is_followed_by_another_does_not_end_a_run_that_stays() {
    let it = failed(staying(), refused(FailureKind::Overloaded)).and(said(A, "again"));
    let end = TurnEnd { total: usage(1), ..well() };
    let it = hears(it, [echo(11), result(end.clone())]);
    let it = it.then([heard(first(), 11), turn_ended(first(), end, usage(1)), taken(first(), 22)]);
    assert_eq!(plan(&it.world).runs[&A].state, DesiredState::Running { upto: None, last: false });
}

#[test]
fn deliveries_have_names_that_come_back() {
    for id in [0, 1, 0xffff_ffff_ffff, 1 << 48, (1 << 60) - 1].map(EventId) {
        let name = wire_name(id);
        assert_eq!((name.len(), delivery_of(&name)), (36, Some(id)));
    }
    let strange =
        ["", "68617463-6865-8000-8", "68617463-6865-8000-8000-00000000000", "68617463-6865-8000-8000-00000000000g"];
    let others = ["68617463-6865-8000-80000-00000000001", "a8098c1a-f86e-4da1-bd1a-00112444be1e"];
    for name in strange.into_iter().chain(others) {
        assert_eq!(delivery_of(name), None, "{name}");
    }
}

/// What is remembered of interrupts does not grow without end.
#[test]
fn the_newest_messages_that_were_heard_late_are_remembered() {
    let mut it = working(spec());
    let before = it.world.head().0;
    for _ in 0..=MAX_LATE_MESSAGES {
        it = it.and(said(A, "wait"));
    }
    let it = it.and(added(A, MessageKind::System, TURN_INTERRUPTED));
    let mark = it.world.head();
    let heard_after = |message: u64| it.world.heard_after(EventId(message));
    assert_eq!([heard_after(before + 1), heard_after(before + 2)], [None, Some(mark)]);
    assert_eq!(heard_after(mark.0 - 1), Some(mark));
}
