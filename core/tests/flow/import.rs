//! Histories that come from elsewhere: taken in whole or not at all.

use crate::given::*;
use hatchery_core::agent::Birth;
use hatchery_core::event::MessageEvent;
use hatchery_core::history::{ImportedItem, MAX_MARK_BYTES, MAX_MESSAGE_BYTES, SourceId};
use hatchery_core::{AgentId, Command, Event, EventId, MessageKind, Refusal};

fn agent(agent: AgentId, parent: AgentId, upto: Option<u64>) -> ImportedItem {
    ImportedItem::Agent { agent, parent, upto: upto.map(EventId) }
}

fn message(agent: AgentId, kind: MessageKind, content: &str, to: Option<u64>) -> ImportedItem {
    ImportedItem::Message {
        agent,
        kind,
        content: content.into(),
        to: to.map(EventId),
        source_id: SourceId::Text("m".into()),
    }
}

fn user(agent: AgentId, content: &str) -> ImportedItem {
    message(agent, MessageKind::User, content, None)
}

fn import<const N: usize>(items: [ImportedItem; N]) -> Command {
    Command::ImportHistory { items: items.into() }
}

fn imported(agent: AgentId, kind: MessageKind, content: &str, to: Option<u64>) -> Event {
    Event::Message(MessageEvent::Added {
        agent,
        kind,
        content: content.into(),
        to: to.map(EventId),
        source_id: Some(SourceId::Text("m".into())),
    })
}

#[test]
fn agents_and_messages_come_in_as_one_with_their_own_ids_beside_ours() {
    let items = [agent(A, R, None), user(A, "one"), agent(B, A, Some(3)), user(A, "later"), user(B, "two")];
    let it = given([]).when(import(items)).then([
        forked(R, A, None),
        imported(A, MessageKind::User, "one", None),
        forked(A, B, Some(3)),
        imported(A, MessageKind::User, "later", None),
        imported(B, MessageKind::User, "two", None),
    ]);
    assert_eq!(it.heard(B), ["one", "two"]);
    assert!(it.replay(B).iter().all(|said| said.source_id == Some(SourceId::Text("m".into()))));
}

#[test]
fn a_fork_point_may_be_inherited() {
    let items = [user(R, "one"), user(R, "two"), agent(A, R, Some(3)), user(A, "mine"), agent(B, A, Some(2))];
    let it = given([]).when(import(items)).then([
        imported(R, MessageKind::User, "one", None),
        imported(R, MessageKind::User, "two", None),
        forked(R, A, Some(3)),
        imported(A, MessageKind::User, "mine", None),
        born(A, R, Some(2), Birth::of(B)),
    ]);
    assert_eq!(it.heard(B), ["one"]);
    // Also past one that has said nothing.
    let silent = [agent(C, A, None), agent(D, C, Some(2))];
    let it = given([said(R, "one"), said(R, "two"), forked(R, A, Some(3))]).when(import(silent));
    let it = it.then([forked(A, C, None), born(C, R, Some(2), Birth::of(D))]);
    assert_eq!(it.heard(D), ["one"]);
}

/// A point that is not there yet would let in whatever comes there later.
#[test]
fn a_reference_to_what_is_not_in_the_history_is_refused() {
    let not_there = |agent, message| Refusal::NotInHistory { agent, message: EventId(message) };
    for nowhere in [0, 3, 4, u64::MAX] {
        given([]).when(import([user(R, "one"), agent(A, R, Some(nowhere))])).refused(not_there(R, nowhere));
        let back = message(R, MessageKind::Rewind, "", Some(nowhere));
        given([]).when(import([user(R, "one"), back])).refused(not_there(R, nowhere));
    }
    // Between what was inherited and the first word of one's own there is nothing.
    let items = [user(R, "one"), agent(A, R, Some(2)), user(R, "two"), agent(B, A, Some(3))];
    given([]).when(import(items)).refused(not_there(A, 3));
}

/// Lines may come in later than they were said: what counts is what the parent had when the child forked.
#[test]
fn a_fork_point_may_have_been_cleared_or_taken_back_since() {
    use MessageKind::{Clear, Rewind, User};
    let (back, clear) = (message(R, Rewind, "", Some(2)), message(R, Clear, "", None));
    let items = [user(R, "one"), user(R, "two"), back, clear, agent(A, R, Some(3)), agent(B, R, Some(5))];
    let it = given([]).when(import(items)).then([
        imported(R, User, "one", None),
        imported(R, User, "two", None),
        imported(R, Rewind, "", Some(2)),
        imported(R, Clear, "", None),
        forked(R, A, Some(3)),
        forked(R, B, Some(5)),
    ]);
    assert_eq!((it.heard(A), it.heard(B)), (vec!["one".to_owned(), "two".into()], vec![]));
}

#[test]
fn an_imported_rewind_goes_where_it_says_or_to_its_mark() {
    use MessageKind::{Mark, Rewind, User};
    let it = || [user(R, "one"), message(R, Mark, "here", None), user(R, "two")];
    let events = |back: Event| {
        [imported(R, User, "one", None), imported(R, Mark, "here", None), imported(R, User, "two", None), back]
    };
    let with = |content: &str, to| {
        let [a, b, c] = it();
        import([a, b, c, message(R, Rewind, content, to)])
    };
    for (content, to, found) in [("", Some(2), 2), ("", None, 3), ("here", None, 3)] {
        given([]).when(with(content, to)).then(events(imported(R, Rewind, content, Some(found))));
    }
    let refusal = Refusal::NoSuchMark { agent: R, label: Some("nowhere".into()) };
    given([]).when(with("nowhere", None)).refused(refusal);
}

#[test]
fn tools_that_ran_elsewhere_hold_nothing_up_and_release_nothing() {
    let call = message(R, MessageKind::ToolCall, "ls", None);
    let it = given([]).when(import([call])).then([imported(R, MessageKind::ToolCall, "ls", None)]);
    it.when(fork(R, A)).then([forked(R, A, Some(2))]);

    let answer = message(R, MessageKind::ToolResult, "ok", None);
    let it = given([called(R), fork_requested(R, A)]);
    let it = it.when(import([answer])).then([imported(R, MessageKind::ToolResult, "ok", None)]);
    it.when(add(R, MessageKind::ToolResult, "ok")).then([answered(R), forked(R, A, Some(5))]);
}

#[test]
fn one_wrong_line_and_nothing_is_taken_in() {
    let it = given([created(A, None), dead(A)]);
    let refusals = [
        (user(NOBODY, "one"), Refusal::UnknownAgent(NOBODY)),
        (user(A, "one"), Refusal::AgentDead(A)),
        (agent(C, NOBODY, None), Refusal::UnknownAgent(NOBODY)),
        (agent(C, A, None), Refusal::AgentDead(A)),
        (agent(A, R, None), Refusal::AgentExists(A)),
        (agent(B, R, None), Refusal::AgentExists(B)),
        (user(R, &"x".repeat(MAX_MESSAGE_BYTES + 1)), Refusal::MessageTooLong { bytes: MAX_MESSAGE_BYTES + 1 }),
        (
            message(R, MessageKind::Mark, &"x".repeat(MAX_MARK_BYTES + 1), None),
            Refusal::MarkTooLong { bytes: MAX_MARK_BYTES + 1 },
        ),
    ];
    for (item, refusal) in refusals {
        it.clone().when(import([agent(B, R, None), user(B, "fine"), item])).refused(refusal);
    }
    let it = given([called(R), fork_requested(R, B)]);
    it.when(import([agent(B, R, None)])).refused(Refusal::AgentExists(B));
}

#[test]
fn nothing_imported_is_nothing() {
    given([]).when(import([])).then([]);
}
