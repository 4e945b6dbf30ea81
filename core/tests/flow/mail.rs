//! Mail: first in first out, taken by exactly one, and nobody waits for what cannot come.

use crate::given::*;
use hatchery_core::mail::{LetterState, MAX_MAIL_BYTES};
use hatchery_core::{Address, EventId, Refusal};

const H: Address = Address::Human;
const TO_A: Address = Address::Agent(A);
const TO_B: Address = Address::Agent(B);

fn unread(it: &Given, of: Address) -> Vec<(u64, LetterState)> {
    let mailbox = it.world.mailbox(of).into_iter();
    mailbox.flat_map(|it| it.unread.iter().map(|(id, letter)| (id.0, letter.state))).collect()
}

/// Two agents and agent 0; the next event is 4.
fn three() -> Given {
    given([created(A, None), created(B, None)])
}

#[test]
fn mail_is_taken_in_the_order_in_which_it_was_sent() {
    let it = three().when(send(H, TO_A, "one")).then([sent(H, TO_A, "one")]);
    let it = it.at(-9).when(send(TO_B, TO_A, "two")).then([sent(TO_B, TO_A, "two")]);
    assert_eq!(unread(&it, TO_A), [(4, LetterState::Queued), (5, LetterState::Queued)]);
    let it = it.restarted().when(take(TO_A)).then([delivered(TO_A, 4)]);
    assert_eq!(unread(&it, TO_A), [(4, LetterState::Delivered), (5, LetterState::Queued)]);
    let it = it.when(take(TO_A)).then([delivered(TO_A, 5)]);
    it.when(take(TO_A)).refused(Refusal::NoMail(TO_A));
}

#[test]
fn mail_is_read_in_the_order_in_which_it_was_sent_and_once() {
    let it = three().and(sent(H, TO_A, "one")).and(sent(H, TO_A, "two"));
    let it = it.when(read(TO_A)).then([opened(TO_A, 4)]).when(read(TO_A)).then([opened(TO_A, 5)]);
    assert_eq!(unread(&it, TO_A), []);
    it.when(read(TO_A)).refused(Refusal::NoMail(TO_A));
}

#[test]
fn what_was_taken_is_unread_until_it_is_confirmed() {
    let it = three().and(sent(H, TO_A, "one")).and(sent(H, TO_A, "two")).and(delivered(TO_A, 4));
    let it = it.restarted().when(read_this(TO_A, 4)).then([opened(TO_A, 4)]);
    let gone = || Refusal::NotUnread { to: TO_A, mail: EventId(4) };
    let it = it.when(read_this(TO_A, 4)).refused(gone());
    it.when(read_this(TO_A, 5)).then([opened(TO_A, 5)]);
}

#[test]
fn a_mail_is_read_by_the_one_it_was_sent_to() {
    let it = three().and(sent(H, TO_A, "one"));
    for (to, mail) in [(TO_B, 4), (H, 4), (TO_A, 3), (TO_A, 5)] {
        it.clone().when(read_this(to, mail)).refused(Refusal::NotUnread { to, mail: EventId(mail) });
    }
    it.clone().when(take(TO_B)).refused(Refusal::NoMail(TO_B));
    it.when(read(H)).refused(Refusal::NoMail(H));
}

#[test]
fn mail_of_one_sender_may_be_picked_out() {
    let it = three().and(sent(H, TO_A, "one")).and(sent(TO_B, TO_A, "two")).and(sent(TO_B, TO_A, "three"));
    let it = it.when(take_from(TO_A, TO_B)).then([delivered(TO_A, 5)]);
    let it = it.when(take_from(TO_A, TO_B)).then([delivered(TO_A, 6)]);
    let it = it.when(take_from(TO_A, TO_B)).refused(Refusal::NoMail(TO_A));
    it.when(take(TO_A)).then([delivered(TO_A, 4)]);
}

#[test]
fn the_human_has_a_mailbox_too() {
    let it = three().when(send(TO_A, H, "help")).then([sent(TO_A, H, "help")]);
    it.when(take(H)).then([delivered(H, 4)]).when(read_this(H, 4)).then([opened(H, 4)]);
    three().when(send(TO_A, TO_A, "note to self")).then([sent(TO_A, TO_A, "note to self")]);
}

#[test]
fn both_ends_of_a_mail_must_be_there() {
    let it = three().and(dead(B)).and(laid(C, 9)).and(expired(C));
    for (agent, refusal) in
        [(NOBODY, Refusal::UnknownAgent(NOBODY)), (B, Refusal::AgentDead(B)), (C, Refusal::AgentExpired(C))]
    {
        it.clone().when(send(H, Address::Agent(agent), "hello")).refused(refusal.clone());
        it.clone().when(send(Address::Agent(agent), H, "hello")).refused(refusal);
    }
}

/// A wait that is told "no mail" goes on waiting; so it must be told when there is nobody to wait for.
#[test]
fn nobody_waits_for_the_dead_the_expired_or_the_unknown() {
    let it = three().and(sent(TO_B, TO_A, "last words")).and(dead(B)).and(laid(C, 9)).and(expired(C));
    for (agent, refusal) in
        [(NOBODY, Refusal::UnknownAgent(NOBODY)), (B, Refusal::AgentDead(B)), (C, Refusal::AgentExpired(C))]
    {
        it.clone().when(take(Address::Agent(agent))).refused(refusal.clone());
        it.clone().when(read(Address::Agent(agent))).refused(refusal.clone());
        it.clone().when(take_from(H, Address::Agent(agent))).refused(refusal);
    }
    // What the dead had sent still arrives.
    let it = it.when(take_from(TO_A, TO_B)).then([delivered(TO_A, 4)]);
    it.when(take_from(TO_A, TO_B)).refused(Refusal::AgentDead(B));
}

#[test]
fn what_was_sent_to_the_dead_can_still_be_read() {
    let it = three().and(sent(H, TO_A, "one")).and(sent(H, TO_A, "two")).and(dead(A));
    let it = it.when(take(TO_A)).then([delivered(TO_A, 4)]).when(read(TO_A)).then([opened(TO_A, 4)]);
    it.when(read(TO_A)).then([opened(TO_A, 5)]).when(read(TO_A)).refused(Refusal::AgentDead(A));
}

#[test]
fn a_body_may_be_empty_or_as_long_as_the_limit_and_no_longer() {
    for body in [String::new(), "x".repeat(MAX_MAIL_BYTES), "\"\\\n\0 é 🥚".into()] {
        three().when(send(H, TO_A, &body)).then([sent(H, TO_A, &body)]).restarted();
    }
    let bytes = MAX_MAIL_BYTES + 1;
    three().when(send(H, TO_A, &"x".repeat(bytes))).refused(Refusal::MailTooLong { bytes });
}

#[test]
fn an_address_is_an_id_or_the_human() {
    for address in [H, TO_A] {
        assert_eq!(address.to_string().parse(), Ok(address));
        assert_eq!(serde_json::from_str::<Address>(&serde_json::to_string(&address).unwrap()).unwrap(), address);
        assert_eq!(rmp_serde::from_slice::<Address>(&rmp_serde::to_vec_named(&address).unwrap()).unwrap(), address);
    }
    assert!("Human".parse::<Address>().is_err());
}

#[test]
fn mail_counts_as_activity_of_its_sender() {
    let it = given([started_idle(S, 1_000), created(A, Some(S))]).at(700);
    let it = it.when(send(TO_A, H, "still here")).then([sent(TO_A, H, "still here")]);
    assert_eq!(hatchery_core::plan(&it.world).wake_at.map(|at| at.0), Some(1_700));
}
