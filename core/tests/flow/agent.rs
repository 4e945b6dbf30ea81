//! Agents: created, renamed, asleep, woken, ended; and what they say.

use crate::given::*;
use hatchery_core::agent::{Life, MAX_MESSAGE_BYTES, MAX_NAME_BYTES, MAX_REMARK_BYTES, MessageKind};
use hatchery_core::session::EndReason::User;
use hatchery_core::{Command, Event, EventId, Refusal, Timestamp};

fn named(name: &str) -> Command {
    Command::CreateAgent { agent: A, parent: None, name: Some(name.into()), session: None }
}

#[test]
fn an_agent_is_alive_from_the_start_in_its_session_or_in_none() {
    let it = given([started(S)]).when(create(A, Some(S))).then([created(A, Some(S))]);
    assert_eq!(it.world.agent(A).unwrap().life, Life::Alive { session: Some(S) });
    assert!(it.world.session(S).unwrap().awake.contains(&A));

    let it = given([]).when(create(A, None)).then([created(A, None)]);
    assert_eq!(it.world.agent(A).unwrap().life, Life::Alive { session: None });
}

#[test]
fn an_agent_remembers_its_parent() {
    let child = Command::CreateAgent { agent: B, parent: Some(A), name: None, session: None };
    let event = Event::AgentCreated { agent: B, parent: Some(A), name: None, session: None };
    let it = given([created(A, None)]).when(child.clone()).then([event]);
    assert_eq!(it.world.agent(B).unwrap().parent, Some(A));
    given([]).when(child).refused(Refusal::UnknownAgent(A));
}

#[test]
fn names_are_not_keys() {
    let it = given([created(A, None), created(B, None)])
        .when(rename(A, "Cael"))
        .then([renamed(A, "Cael")])
        .when(rename(B, "Cael"))
        .then([renamed(B, "Cael")]);
    assert_eq!(it.world.agent(A).unwrap().name, it.world.agent(B).unwrap().name);

    let it =
        it.when(Command::RenameAgent { agent: A, name: None }).then([Event::AgentRenamed { agent: A, name: None }]);
    assert_eq!(it.world.agent(A).unwrap().name, None);
    assert_eq!(it.world.agent(B).unwrap().name.as_deref(), Some("Cael"), "the namesake keeps the name");
}

#[test]
fn a_name_is_short_visible_and_not_empty() {
    let longest = "x".repeat(MAX_NAME_BYTES);
    for good in ["C", "Cael of the Attic", "Zoë", "名", longest.as_str()] {
        let event = Event::AgentCreated { agent: A, parent: None, name: Some(good.into()), session: None };
        given([]).when(named(good)).then([event]);
        given([created(A, None)]).when(rename(A, good)).then([renamed(A, good)]);
    }
    // 22 characters of three bytes each: the limit counts bytes.
    let (one_more, in_bytes) = ("x".repeat(MAX_NAME_BYTES + 1), "名".repeat(22));
    for bad in ["", " ", " Cael", "Cael\n", "Ca\tel", "Ca\u{7f}el", "Ca\0el", one_more.as_str(), in_bytes.as_str()] {
        let refusal = Refusal::BadName { name: bad.chars().take(MAX_NAME_BYTES).collect() };
        given([]).when(named(bad)).refused(refusal.clone());
        given([created(A, None)]).when(rename(A, bad)).refused(refusal);
    }
}

#[test]
fn a_sleeper_wakes_in_another_session_or_in_none() {
    let asleep = given([started(S), started(T), created(A, Some(S)), slept(A)]);
    let it = asleep.clone().when(wake(A, Some(T))).then([woken(A, Some(T))]);
    assert_eq!(it.world.agent(A).unwrap().session(), Some(T));
    assert!(it.world.session(T).unwrap().awake.contains(&A));
    assert_eq!(it.world.session(S).unwrap().awake.len(), 0);

    let it = asleep.when(wake(A, None)).then([woken(A, None)]);
    assert_eq!(it.world.agent(A).unwrap().life, Life::Alive { session: None });
}

#[test]
fn nobody_enters_a_session_that_is_not_open() {
    let is_ending = || Refusal::SessionEnding { session: S, reason: User };
    let asleep = given([started(S), created(A, Some(S)), slept(A), ending(S, User)]);
    let asleep = asleep.when(wake(A, Some(S))).refused(is_ending());
    let over = asleep.when(create(B, Some(S))).refused(is_ending()).when(close(S)).then([ended(S, User)]);
    let is_over = || Refusal::SessionOver { session: S, reason: User };
    over.when(wake(A, Some(S))).refused(is_over()).when(create(B, Some(S))).refused(is_over());
}

#[test]
fn the_dead_stay_dead() {
    let it = given([started(S), created(A, Some(S))]).at(5).when(end_agent(A)).then([dead(A)]);
    assert_eq!(it.world.agent(A).unwrap().life, Life::Dead { at: Timestamp(5) });
    assert_eq!(it.world.session(S).unwrap().awake.len(), 0);
    for command in [end_agent(A), wake(A, None), rename(A, "Cael"), say(A, "boo")] {
        it.clone().when(command).refused(Refusal::AgentDead(A));
    }
}

#[test]
fn a_sleeper_may_be_ended_renamed_and_spoken_to() {
    let asleep = given([started(S), created(A, Some(S)), slept(A)]);
    asleep.clone().when(end_agent(A)).then([dead(A)]);
    asleep.clone().when(rename(A, "Cael")).then([renamed(A, "Cael")]);
    asleep.when(say(A, "sleep well")).then([said(A, "sleep well")]);
}

#[test]
fn what_is_still_said_while_a_session_ends_counts() {
    given([started(S), created(A, Some(S)), ending(S, User)]).when(say(A, "last words")).then([said(A, "last words")]);
}

#[test]
fn messages_are_counted_and_the_last_one_is_known_by_its_place() {
    let it = given([created(A, None)]).at(10).when(say(A, "one")).then([said(A, "one")]);
    let it = it.at(20).when(say(A, "one")).then([said(A, "one")]);
    let agent = it.world.agent(A).unwrap();
    assert_eq!((agent.messages, agent.last_message), (2, Some(EventId(3))));
    assert_eq!((agent.created, agent.last_active), (Timestamp(0), Timestamp(20)));
}

#[test]
fn a_message_keeps_its_kind_and_its_text_as_given() {
    for kind in
        [MessageKind::System, MessageKind::User, MessageKind::Assistant, MessageKind::ToolCall, MessageKind::ToolResult]
    {
        let content = "\"quoted\"\n\\ \0 é 🥚";
        given([created(A, None)])
            .when(Command::AddMessage { agent: A, kind, content: content.into() })
            .then([Event::MessageAdded { agent: A, kind, content: content.into() }]);
    }
}

#[test]
fn a_message_may_be_empty_or_as_long_as_the_limit_and_no_longer() {
    for bytes in [0, MAX_MESSAGE_BYTES] {
        given([created(A, None)]).when(say(A, &"x".repeat(bytes))).then([said(A, &"x".repeat(bytes))]);
    }
    let bytes = MAX_MESSAGE_BYTES + 1;
    given([created(A, None)]).when(say(A, &"x".repeat(bytes))).refused(Refusal::MessageTooLong { bytes });
}

#[test]
fn a_remark_may_be_as_long_as_the_limit_and_no_longer() {
    let remark = |bytes| Some("x".repeat(bytes));
    given([created(A, None)])
        .when(Command::EndAgent { agent: A, remark: remark(MAX_REMARK_BYTES) })
        .then([Event::AgentEnded { agent: A, remark: remark(MAX_REMARK_BYTES) }]);
    let bytes = MAX_REMARK_BYTES + 1;
    given([created(A, None)])
        .when(Command::EndAgent { agent: A, remark: remark(bytes) })
        .refused(Refusal::RemarkTooLong { bytes });
}
