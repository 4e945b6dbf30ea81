//! Requests with an id of the caller: carried out once, whatever was repeated.

use crate::given::*;
use hatchery_core::event::RequestEvent;
use hatchery_core::request::{KEPT_REQUESTS, Request};
use hatchery_core::{Address, Command, Event, EventId, Fingerprint, Refusal, RequestId};

const H: Address = Address::Human;
const TO_A: Address = Address::Agent(A);
const ONE: RequestId = RequestId::from_bytes([1; 16]);
const CONTENT: Fingerprint = Fingerprint::from_bytes([2; 16]);
const OTHER: Fingerprint = Fingerprint::from_bytes([3; 16]);

fn once(id: RequestId, fingerprint: Fingerprint, command: Command) -> Command {
    Command::Once { request: Request { id, fingerprint }, command: Box::new(command) }
}

fn taken(request: RequestId, fingerprint: Fingerprint, led_to: u64) -> Event {
    Event::Request(RequestEvent::Taken { request, fingerprint, led_to })
}

fn numbered(number: usize) -> RequestId {
    RequestId::from_bytes((number as u128).to_be_bytes())
}

#[test]
fn a_request_is_carried_out_once_and_its_repeat_says_where_the_answer_is() {
    let it = given([created(A, None)]).when(once(ONE, CONTENT, send(H, TO_A, "one")));
    let it = it.then([taken(ONE, CONTENT, 1), sent(H, TO_A, "one")]);
    let before = || Refusal::RequestTaken { id: ONE, at: EventId(3), led_to: 1 };
    let it = it.when(once(ONE, CONTENT, send(H, TO_A, "one"))).refused(before());
    // What is remembered is in the log, so a restart changes nothing.
    let it = it.restarted().when(once(ONE, CONTENT, send(H, TO_A, "one"))).refused(before());
    // Nor does it matter what has become of those whom it was about.
    it.and(dead(A)).when(once(ONE, CONTENT, send(H, TO_A, "one"))).refused(before());
}

#[test]
fn an_id_is_for_one_content() {
    let it = given([created(A, None)]).and(taken(ONE, CONTENT, 1)).and(sent(H, TO_A, "one"));
    let used = Refusal::RequestIdUsed { id: ONE, at: EventId(3) };
    let it = it.when(once(ONE, OTHER, send(H, TO_A, "two"))).refused(used);
    it.when(once(numbered(7), OTHER, send(H, TO_A, "two"))).then([taken(numbered(7), OTHER, 1), sent(H, TO_A, "two")]);
}

#[test]
fn a_request_that_is_refused_leaves_no_trace_and_may_be_repeated() {
    let it = given([]).when(once(ONE, CONTENT, send(H, TO_A, "one"))).refused(Refusal::UnknownAgent(A));
    let it = it.and(created(A, None));
    it.when(once(ONE, CONTENT, send(H, TO_A, "one"))).then([taken(ONE, CONTENT, 1), sent(H, TO_A, "one")]);
}

#[test]
fn only_the_latest_ids_are_remembered() {
    let it = (0..KEPT_REQUESTS).fold(given([]), |it, number| it.and(taken(numbered(number), CONTENT, 0)));
    let first = Refusal::RequestTaken { id: numbered(0), at: EventId(2), led_to: 0 };
    let it = it.when(once(numbered(0), CONTENT, Command::Tick)).refused(first);
    let it = it.and(taken(ONE, CONTENT, 0));
    assert_eq!(it.world.requests().len(), KEPT_REQUESTS);
    let it = it.when(once(numbered(0), CONTENT, Command::Tick)).then([taken(numbered(0), CONTENT, 0)]);
    let last = Refusal::RequestTaken { id: ONE, at: EventId(KEPT_REQUESTS as u64 + 2), led_to: 0 };
    it.when(once(ONE, CONTENT, Command::Tick)).refused(last);
}
