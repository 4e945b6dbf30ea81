//! Fork: the only way to make an agent. The child inherits by reference, up to now or up to an earlier message.

use crate::given::*;
use hatchery_core::agent::{Birth, Lifecycle, MAX_PENDING_FORKS};
use hatchery_core::event::AgentEvent;
use hatchery_core::history::{MAX_MESSAGE_BYTES, RewindTo};
use hatchery_core::session::EndReason::User;
use hatchery_core::{AgentId, Command, Event, EventId, MessageKind, Refusal};

#[test]
fn a_child_inherits_what_was_said_until_then_and_nothing_later() {
    let it = given([said(R, "one"), said(R, "two")]).when(fork(R, A)).then([forked(R, A, Some(3))]);
    assert_eq!(it.world.agent(A).unwrap().parent, Some(R));
    assert!(it.world.agent(R).unwrap().children.contains(&A));
    let it = it.and(said(R, "later")).and(said(A, "mine"));
    assert_eq!(it.heard(A), ["one", "two", "mine"]);
    assert_eq!(it.heard(R), ["one", "two", "later"], "nothing comes back from the child");
    assert_eq!(it.restarted().heard(A), ["one", "two", "mine"]);
}

#[test]
fn a_fork_from_an_agent_without_messages_does_not_leak_its_later_ones() {
    let it = given([]).when(fork(R, A)).then([forked(R, A, None)]);
    assert_eq!(it.clone().and(said(R, "LATER")).heard(A), [""; 0]);
    // In the middle of a chain: what is above it is inherited, what it says later is not.
    let it = it.and(said(R, "not inherited")).when(fork(A, B)).then([forked(A, B, None)]);
    let it = it.and(said(A, "LATER")).and(said(B, "mine"));
    assert_eq!(it.heard(B), ["mine"]);

    let it = given([said(R, "one"), forked(R, A, Some(2))]).when(fork(A, B)).then([forked(A, B, None)]);
    assert_eq!(it.and(said(A, "LATER")).heard(B), ["one"]);
}

#[test]
fn a_prompt_is_the_childs_first_message() {
    let birth = Birth { prompt: Some("go".into()), ..Birth::of(A) };
    let it = given([said(R, "one")]).when(bear(R, birth)).then([forked(R, A, Some(2)), said(A, "go")]);
    assert_eq!(it.heard(A), ["one", "go"]);

    for (bytes, fits) in [(MAX_MESSAGE_BYTES, true), (MAX_MESSAGE_BYTES + 1, false)] {
        let prompt = "x".repeat(bytes);
        let when = given([]).when(bear(R, Birth { prompt: Some(prompt.clone()), ..Birth::of(A) }));
        match fits {
            true => when.then([forked(R, A, None), said(A, &prompt)]),
            false => when.refused(Refusal::MessageTooLong { bytes }),
        };
    }
}

#[test]
fn a_child_is_born_with_its_name_provider_model_and_session() {
    let birth = Birth {
        name: Some("Cael".into()),
        provider: Some("scripted".into()),
        model: Some("small".into()),
        session: Some(S),
        ..Birth::of(A)
    };
    let it = given([started(S)]).when(bear(R, birth.clone())).then([born(R, R, None, birth)]);
    let child = it.world.agent(A).unwrap();
    assert_eq!(child.name.as_deref(), Some("Cael"));
    assert_eq!((child.provider.as_deref(), child.model.as_deref()), (Some("scripted"), Some("small")));
    assert_eq!(child.lifecycle, Lifecycle::Alive { session: Some(S) });

    let bad = || Some(" ".to_owned());
    for birth in [
        Birth { name: bad(), ..Birth::of(A) },
        Birth { provider: bad(), ..Birth::of(A) },
        Birth { model: bad(), ..Birth::of(A) },
    ] {
        given([]).when(bear(R, birth)).refused(Refusal::BadName { name: " ".into() });
    }
}

#[test]
fn a_fork_may_go_back_to_an_earlier_message() {
    let it = given([said(R, "one"), said(R, "two"), said(R, "three")]);
    let it = it.when(fork_at(R, A, 3)).then([forked(R, A, Some(3))]);
    assert_eq!(it.heard(A), ["one", "two"]);
    let it = it.when(fork_at(R, B, 2)).then([forked(R, B, Some(2))]);
    assert_eq!(it.heard(B), ["one"]);
}

/// The child hangs below the agent that was forked, and its history comes from the agent that has the message.
#[test]
fn a_fork_may_go_back_to_an_inherited_message() {
    let it = given([said(R, "one"), said(R, "two"), forked(R, A, Some(3)), said(A, "mine"), said(A, "more")]);
    let it = it.when(fork_at(A, B, 2)).then([born(A, R, Some(2), Birth::of(B))]);
    assert_eq!(it.heard(B), ["one"]);
    let it = it.and(said(B, "other"));
    let it = it.when(fork_at(B, C, 2)).then([born(B, R, Some(2), Birth::of(C))]);
    assert_eq!((it.heard(B), it.heard(C)), (vec!["one".into(), "other".into()], vec!["one".to_owned()]));
    // An agent without a word of its own can be forked at what it inherited.
    let it = it.when(fork_at(C, D, 2)).then([born(C, R, Some(2), Birth::of(D))]);
    assert_eq!(it.and(said(C, "LATER")).restarted().heard(D), ["one"]);
}

#[test]
fn a_fork_goes_back_only_to_what_counts() {
    let not_there = |message| Refusal::NotInHistory { agent: R, message: EventId(message) };
    let it = given([said(R, "one"), said(R, "two"), said(R, "three"), rewound(R, 2), said(R, "four")]);
    for gone in [3, 4] {
        it.clone().when(fork_at(R, A, gone)).refused(not_there(gone));
    }
    for nowhere in [0, 7, u64::MAX] {
        it.clone().when(fork_at(R, A, nowhere)).refused(not_there(nowhere));
    }
    let it = it.and(cleared(R)).and(said(R, "five"));
    it.clone().when(fork_at(R, A, 2)).refused(not_there(2));
    let it = it.when(fork_at(R, A, 8)).then([forked(R, A, Some(8))]);
    assert_eq!(it.heard(A), ["five"]);
}

/// What the parent took back before the fork was never the child's, though it lies before the child's first word.
#[test]
fn what_was_taken_back_above_cannot_be_reached_from_below() {
    let it = given([said(R, "one"), said(R, "two"), rewound(R, 2), forked(R, A, Some(4)), said(A, "mine")]);
    let not_there = Refusal::NotInHistory { agent: A, message: EventId(3) };
    let it = it.when(fork_at(A, B, 3)).refused(not_there.clone());
    it.when(rewind(A, RewindTo::Message(EventId(3)))).refused(not_there);
}

#[test]
fn an_id_is_given_once() {
    let it = given([created(A, None), created(B, None), dead(B)]);
    for taken in [R, A, B] {
        it.clone().when(fork(R, taken)).refused(Refusal::AgentExists(taken));
        it.clone().when(fork(A, taken)).refused(Refusal::AgentExists(taken));
    }
}

/// A parent that has called as many tools, and a fork of it that waits for them.
fn waiting(tools: usize) -> Given {
    let it = (0..tools).fold(given([created(A, None)]), |it, _| it.and(called(A)));
    it.when(fork(A, B)).then([fork_requested(A, B)])
}

fn last_message(it: &Given, agent: AgentId) -> Option<u64> {
    it.world.agent(agent).and_then(|it| it.last_message).map(|id| id.0)
}

#[test]
fn a_fork_waits_for_all_tools_and_inherits_their_answers() {
    let it = waiting(2).when(add(A, MessageKind::ToolResult, "ok")).then([answered(A)]);
    assert!(it.world.agent(B).is_none());
    // What else is said meanwhile does not release it.
    let it = it.when(say(A, "hurry")).then([said(A, "hurry")]).when(Command::Tick).then([]);
    let it = it.when(add(A, MessageKind::ToolResult, "ok")).then([answered(A), forked(A, B, Some(8))]);
    assert_eq!(it.heard(B), it.heard(A));
    assert!(it.world.agent(A).unwrap().pending_forks.is_empty());
    it.when(fork(A, C)).then([forked(A, C, Some(8))]);
}

#[test]
fn a_waiting_fork_survives_a_restart() {
    let it = waiting(1).restarted().when(fork(A, B)).refused(Refusal::AgentExists(B));
    it.when(add(A, MessageKind::ToolResult, "ok")).then([answered(A), forked(A, B, Some(5))]);
}

#[test]
fn a_waiting_fork_keeps_all_that_was_asked_for() {
    let birth = Birth { prompt: Some("go".into()), hatch_ms: Some(500), name: Some("Cael".into()), ..Birth::of(B) };
    let it = given([called(R)])
        .when(bear(R, birth.clone()))
        .then([Event::Agent { agent: R, what: AgentEvent::ForkRequested { birth } }]);
    let created = born(R, R, Some(4), Birth { hatch_ms: Some(1_200), name: Some("Cael".into()), ..Birth::of(B) });
    // Its time to hatch begins when it is laid, not when it was asked for.
    it.at(700).when(add(R, MessageKind::ToolResult, "ok")).then([answered(R), created, said(B, "go")]);
}

#[test]
fn several_forks_of_one_message_wait_in_order_and_all_are_born() {
    let it = waiting(2).when(fork(A, C)).then([fork_requested(A, C)]).restarted();
    let it = it.when(add(A, MessageKind::ToolResult, "ok")).then([answered(A)]);
    let it = it.when(add(A, MessageKind::ToolResult, "ok"));
    let it = it.then([answered(A), forked(A, B, Some(8)), forked(A, C, Some(8))]);
    assert_eq!((it.heard(B), it.heard(C)), (it.heard(A), it.heard(A)));
    // Another agent is not held up by those that wait, and neither is a fork at an earlier message.
    let it = waiting(1).when(fork(R, C)).then([forked(R, C, None)]);
    it.when(fork_at(A, D, 3)).then([forked(A, D, Some(3))]);
}

#[test]
fn no_more_forks_wait_than_may() {
    let child = |number: usize| AgentId::from_bytes([100 + u8::try_from(number).unwrap(); 16]);
    let it = (0..MAX_PENDING_FORKS).fold(given([called(R)]), |it, number| {
        it.when(fork(R, child(number))).then([fork_requested(R, child(number))])
    });
    it.when(fork(R, A)).refused(Refusal::ForkPending { parent: R });
}

/// The result of the fork and the next call are read together, or the model has called both in one message.
#[test]
fn a_fork_happens_at_its_own_result_whatever_runs_then() {
    let result = format!("agent {B} is not created yet");
    let of = |outputs: Vec<Event>| outputs.into_iter().fold(waiting(1), Given::and);
    // The next call is in the same batch as the result.
    let it = of(vec![answered(A), called(A)]).when(Command::Tick).then([forked(A, B, Some(5))]);
    assert_eq!(it.heard(B), ["ls", "ok"], "what came after its result is not inherited");
    // Another tool runs since before the result, for example one that waits for the child.
    let it = waiting(2).when(add(A, MessageKind::ToolResult, &result));
    let it = it.then([added(A, MessageKind::ToolResult, &result), forked(A, B, Some(6))]);
    // The result of another tool says nothing about this child.
    let it = it.and(called(A)).when(fork(A, C)).then([fork_requested(A, C)]);
    it.when(add(A, MessageKind::ToolResult, &result)).then([added(A, MessageKind::ToolResult, &result)]);
}

#[test]
fn a_child_that_is_promised_can_be_found() {
    let birth = Birth { name: Some("Cael".into()), ..Birth::of(B) };
    let requested = Event::Agent { agent: A, what: AgentEvent::ForkRequested { birth } };
    let it = given([created(A, None), called(A), requested]);
    for reference in ["Cael", &B.to_string(), &B.to_string()[..6]] {
        assert_eq!(it.world.find_promised(reference), Some(B), "{reference}");
    }
    for reference in ["", "Kael", &C.to_string()] {
        assert_eq!(it.world.find_promised(reference), None, "{reference}");
    }
    let it = it.and(answered(A)).when(Command::Tick).answer();
    assert_eq!(it.world.find_promised("Cael"), None);
}

#[test]
fn a_fork_from_an_earlier_message_does_not_wait() {
    given([said(R, "one"), called(R)]).when(fork_at(R, A, 2)).then([forked(R, A, Some(2))]);
}

#[test]
fn a_fork_is_released_by_whatever_ends_the_tools() {
    use MessageKind::{Clear, Interrupted};
    for kind in [Clear, Interrupted] {
        let it = waiting(3).when(add(A, kind, "")).then([added(A, kind, ""), forked(A, B, Some(7))]);
        assert_eq!(it.heard(B), [""; 0]);
    }
    let it = waiting(2).when(rewind(A, RewindTo::Message(EventId(3)))).then([rewound(A, 3), forked(A, B, Some(6))]);
    assert_eq!(it.heard(B), ["ls"]);

    let it = given([started(S), created(A, Some(S)), called(A), fork_requested(A, B), ending(S, User)]);
    let it = it.when(close(S)).then([slept(A), ended(S, User), forked(A, B, Some(4))]);
    assert_eq!(it.heard(B), ["ls"]);
}

/// It was promised while the session was open; those who are in a session when it ends sleep.
#[test]
fn a_child_whose_session_ends_before_it_is_born_is_born_asleep() {
    let birth = Birth { session: Some(S), prompt: Some("go".into()), ..Birth::of(B) };
    let requested = || Event::Agent { agent: A, what: AgentEvent::ForkRequested { birth: birth.clone() } };
    let it = given([started(S), created(A, Some(S)), called(A), requested(), ending(S, User)]);
    let born_asleep = |upto| [forked(A, B, Some(upto)), said(B, "go"), slept(B)];

    let [child, prompt, sleeps] = born_asleep(7);
    let answer = add(A, MessageKind::ToolResult, "ok");
    let early = it.clone().when(answer).then([answered(A), child, prompt, sleeps]);
    assert_eq!(early.world.agent(B).unwrap().lifecycle, Lifecycle::Sleeping);
    early.when(close(S)).then([slept(A), ended(S, User)]);

    let [child, prompt, sleeps] = born_asleep(4);
    it.when(close(S)).then([slept(A), ended(S, User), child, prompt, sleeps]);
}

#[test]
fn a_fork_that_waits_has_its_id_already() {
    let it = waiting(1).when(fork(R, B)).refused(Refusal::AgentExists(B));
    let it = it.and(called(R)).when(fork(R, B)).refused(Refusal::AgentExists(B));
    let it = it.when(kill(A)).then([fork_cancelled(A, B), dead(A)]);
    it.when(fork(R, B)).then([fork_requested(R, B)]);
}

#[test]
fn killing_the_parent_cancels_the_fork_that_waits() {
    let it = waiting(1).when(kill(A)).then([fork_cancelled(A, B), dead(A)]);
    assert!(it.world.agent(B).is_none());
    it.restarted().when(Command::Tick).then([]);
    waiting(1).when(cascade(A)).then([fork_cancelled(A, B), dead(A)]);
}

#[test]
fn an_answer_to_no_call_is_not_owed_to_the_next() {
    let it = given([created(A, None), answered(A), answered(A), called(A)]);
    it.when(fork(A, B)).then([fork_requested(A, B)]);
}

#[test]
fn the_tools_of_one_agent_do_not_hold_up_another() {
    let it = given([called(R), forked(R, A, Some(2))]);
    let it = it.when(fork(A, B)).then([forked(A, B, None)]);
    assert_eq!(last_message(&it, A), None);
}
