//! Agents: agent 0, renamed, asleep, woken; and what they say.

use crate::given::*;
use hatchery_core::agent::{Lifecycle, MAX_NAME_BYTES};
use hatchery_core::event::AgentEvent;
use hatchery_core::history::MAX_MESSAGE_BYTES;
use hatchery_core::mail::Address;
use hatchery_core::session::EndReason::User;
use hatchery_core::{Command, Event, EventId, MessageKind, Refusal, Timestamp};

#[test]
fn agent_0_is_founded_once() {
    let it = nothing().at(3).when(found(R)).then([founded(R)]);
    assert_eq!((it.world.root(), it.world.agent_count()), (Some(R), 1));
    let root = it.world.agent(R).unwrap();
    assert_eq!((root.lifecycle, root.parent, root.created), (Lifecycle::Alive { session: None }, None, Timestamp(3)));
    let it = it.when(found(R)).refused(Refusal::RootExists(R));
    it.when(found(A)).refused(Refusal::RootExists(R));

    let unnameable = Command::FoundRegistry { agent: R, name: Some(String::new()) };
    nothing().when(unnameable).refused(Refusal::BadName { name: String::new() });
}

#[test]
fn an_agent_is_alive_from_the_start_in_its_session_or_in_none() {
    let it = given([started(S)]).when(create(A, Some(S))).then([created(A, Some(S))]);
    assert_eq!(it.world.agent(A).unwrap().lifecycle, Lifecycle::Alive { session: Some(S) });
    assert!(it.world.session(S).unwrap().awake.contains(&A));

    let it = given([]).when(create(A, None)).then([created(A, None)]);
    assert_eq!(it.world.agent(A).unwrap().lifecycle, Lifecycle::Alive { session: None });
}

#[test]
fn names_are_not_keys() {
    let it = given([created(A, None), created(B, None)])
        .when(rename(A, "Cael"))
        .then([renamed(A, "Cael")])
        .when(rename(B, "Cael"))
        .then([renamed(B, "Cael")]);
    assert_eq!(it.world.agent(A).unwrap().name, it.world.agent(B).unwrap().name);

    let it = it
        .when(Command::RenameAgent { agent: A, name: None })
        .then([Event::Agent { agent: A, what: AgentEvent::Renamed { name: None } }]);
    assert_eq!(it.world.agent(A).unwrap().name, None);
    assert_eq!(it.world.agent(B).unwrap().name.as_deref(), Some("Cael"), "the namesake keeps the name");
}

#[test]
fn a_name_is_short_visible_and_not_empty() {
    let longest = "x".repeat(MAX_NAME_BYTES);
    for good in ["C", "Cael of the Attic", "Zoë", "名", longest.as_str()] {
        given([created(A, None)]).when(rename(A, good)).then([renamed(A, good)]);
    }
    // 22 characters of three bytes each: the limit counts bytes.
    let (one_more, in_bytes) = ("x".repeat(MAX_NAME_BYTES + 1), "名".repeat(22));
    for bad in ["", " ", " Cael", "Cael\n", "Ca\tel", "Ca\u{7f}el", "Ca\0el", one_more.as_str(), in_bytes.as_str()] {
        let refusal = Refusal::BadName { name: bad.chars().take(MAX_NAME_BYTES).collect() };
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
    assert_eq!(it.world.agent(A).unwrap().lifecycle, Lifecycle::Alive { session: None });
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
fn a_sleeper_may_be_killed_renamed_spoken_to_forked_and_written_to() {
    let asleep = given([started(S), created(A, Some(S)), slept(A)]);
    asleep.clone().when(kill(A)).then([dead(A)]);
    asleep.clone().when(rename(A, "Cael")).then([renamed(A, "Cael")]);
    asleep.clone().when(say(A, "sleep well")).then([said(A, "sleep well")]);
    asleep.clone().when(fork(A, B)).then([forked(A, B, None)]);
    let (human, sleeper) = (Address::Human, Address::Agent(A));
    asleep.when(send(human, sleeper, "later")).then([sent(human, sleeper, "later")]);
}

#[test]
fn each_state_has_its_word() {
    let it = given([started(S), created(A, Some(S)), laid(B, 9), laid(C, 9), created(D, None), slept(A)]);
    let it = it.and(expired(C)).and(dead(D));
    let word = |agent| it.world.agent(agent).unwrap().lifecycle.word();
    assert_eq!([R, A, B, C, D].map(word), ["alive", "sleeping", "hatching", "expired", "dead"]);
    let living = |agent| it.world.agent(agent).unwrap().is_living();
    assert_eq!([R, A, B, C, D].map(living), [true, true, true, false, false]);
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
    assert_eq!((agent.messages, agent.last_message), (2, Some(EventId(4))));
    assert_eq!((agent.created, agent.last_active), (Timestamp(0), Timestamp(20)));
    assert_eq!(it.world.agent(R).unwrap().messages, 0, "what is said to one is not said to another");
}

#[test]
fn a_message_keeps_its_kind_and_its_text_as_given() {
    use MessageKind::*;
    let plain = [System, User, Assistant, ToolCall, ToolResult, AgentKilled, Command, Fork, Usage, Interrupted, Clear];
    for kind in plain.into_iter().chain([Mark]) {
        let content = "\"quoted\"\n\\ \0 é 🥚";
        let it = given([created(A, None)]).when(add(A, kind, content)).then([added(A, kind, content)]);
        let reaches = matches!(kind, System | User | Assistant | ToolCall | ToolResult);
        assert_eq!(it.heard(A), if reaches { vec![content] } else { vec![] }, "{kind:?}");
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
