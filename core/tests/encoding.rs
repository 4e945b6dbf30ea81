//! How records are written: whatever can be said comes back unchanged, and whatever is read does no harm.

use hatchery_core::agent::MessageKind;
use hatchery_core::event::write_wire;
use hatchery_core::session::EndReason;
use hatchery_core::{AgentId, Event, EventId, Record, SessionId, Timestamp};
use proptest::option;
use proptest::prelude::*;

fn session() -> impl Strategy<Value = SessionId> {
    any::<[u8; 16]>().prop_map(SessionId::from_bytes)
}

fn agent() -> impl Strategy<Value = AgentId> {
    any::<[u8; 16]>().prop_map(AgentId::from_bytes)
}

fn reason() -> impl Strategy<Value = EndReason> {
    prop_oneof![Just(EndReason::Completed), Just(EndReason::User), Just(EndReason::Inactive), Just(EndReason::Failed)]
}

fn kind() -> impl Strategy<Value = MessageKind> {
    prop_oneof![
        Just(MessageKind::System),
        Just(MessageKind::User),
        Just(MessageKind::Assistant),
        Just(MessageKind::ToolCall),
        Just(MessageKind::ToolResult)
    ]
}

/// Any text at all, with what JSON must escape more often than chance would have it.
fn text() -> impl Strategy<Value = String> {
    let characters =
        prop_oneof![any::<char>(), prop::sample::select(vec!['"', '\\', '\n', '\0', '{', '}', '\u{2028}'])];
    prop::collection::vec(characters, 0..40).prop_map(String::from_iter)
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        (session(), option::of(text()), option::of(any::<u64>()))
            .prop_map(|(session, label, idle_ms)| Event::SessionStarted { session, label, idle_ms }),
        (session(), reason()).prop_map(|(session, reason)| Event::SessionEnding { session, reason }),
        (session(), reason()).prop_map(|(session, reason)| Event::SessionEnded { session, reason }),
        (agent(), option::of(agent()), option::of(text()), option::of(session()))
            .prop_map(|(agent, parent, name, session)| Event::AgentCreated { agent, parent, name, session }),
        (agent(), option::of(text())).prop_map(|(agent, name)| Event::AgentRenamed { agent, name }),
        agent().prop_map(|agent| Event::AgentSlept { agent }),
        (agent(), option::of(session())).prop_map(|(agent, session)| Event::AgentWoken { agent, session }),
        (agent(), option::of(text())).prop_map(|(agent, remark)| Event::AgentEnded { agent, remark }),
        (agent(), kind(), text()).prop_map(|(agent, kind, content)| Event::MessageAdded { agent, kind, content }),
    ]
}

fn record() -> impl Strategy<Value = Record> {
    (any::<u64>(), any::<i64>(), option::of(session()), event()).prop_map(|(id, ts, session, event)| Record {
        id: EventId(id),
        ts: Timestamp(ts),
        session,
        event,
    })
}

/// A body with one piece cut out and something else put in.
fn damaged() -> impl Strategy<Value = String> {
    (record(), any::<prop::sample::Index>(), any::<prop::sample::Index>(), text()).prop_map(
        |(record, from, to, put_in)| {
            let body: Vec<char> = record.body().chars().collect();
            let (from, to) = (from.index(body.len()), to.index(body.len()));
            let (head, tail) = (&body[..from.min(to)], &body[from.max(to)..]);
            head.iter().copied().chain(put_in.chars()).chain(tail.iter().copied()).collect()
        },
    )
}

proptest! {
    #[test]
    fn a_record_comes_back_unchanged(record in record()) {
        prop_assert_eq!(Record::read(record.id, &record.body()).unwrap(), record);
    }

    #[test]
    fn the_wire_is_one_line_of_json_with_the_id_first(record in record()) {
        let mut wire = b"before".to_vec();
        write_wire(&mut wire, record.id, &record.body());
        let wire = String::from_utf8(wire).unwrap();
        let object = wire.strip_prefix("before").unwrap();
        let first_field = format!("{{\"id\":{},", record.id);
        prop_assert!(object.starts_with(&first_field));
        prop_assert!(!object.contains('\n'), "an event stream ends its messages with line breaks");

        let said: serde_json::Value = serde_json::from_str(object).unwrap();
        let mut body: serde_json::Value = serde_json::from_str(&record.body()).unwrap();
        body["id"] = record.id.0.into();
        prop_assert_eq!(said, body);
    }

    #[test]
    fn garbage_is_unreadable_and_harmless(body in ".*") {
        let unreadable = Record::read(EventId(7), &body).unwrap_err();
        prop_assert_eq!(unreadable.id, EventId(7));
        write_wire(&mut Vec::new(), EventId(7), &body);
    }

    #[test]
    fn a_damaged_body_is_refused_or_says_one_thing(body in damaged()) {
        if let Ok(record) = Record::read(EventId(7), &body) {
            prop_assert_eq!(Record::read(EventId(7), &record.body()).unwrap(), record);
        }
    }
}

#[test]
fn unknown_fields_of_a_later_version_are_passed_over_and_unknown_events_are_not() {
    let agent = AgentId::from_bytes([0; 16]);
    let later = format!(r#"{{"ts":1,"sessionId":null,"type":"agent_slept","agent":"{agent}","mood":"calm"}}"#);
    assert_eq!(Record::read(EventId(1), &later).unwrap().event, Event::AgentSlept { agent });
    let unknown = format!(r#"{{"ts":1,"sessionId":null,"type":"agent_dreamt","agent":"{agent}"}}"#);
    assert!(Record::read(EventId(1), &unknown).unwrap_err().to_string().contains("agent_dreamt"));
}

#[test]
fn a_body_nested_without_end_is_refused() {
    assert!(Record::read(EventId(1), &"[".repeat(100_000)).is_err());
    assert!(Record::read(EventId(1), &r#"{"a":"#.repeat(100_000)).is_err());
}
