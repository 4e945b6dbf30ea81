//! How records are written: whatever can be said comes back unchanged, and whatever is read does no harm.

mod outputs;
mod quests;
mod runs;
mod seats;

use hatchery_core::agent::{Birth, Origin};
use hatchery_core::event::write_wire;
use hatchery_core::event::{
    AgentEvent, FieldEdit, MailEvent, MessageEvent, RequestEvent, SessionEvent, StatusEvent, StatusSource,
};
use hatchery_core::history::SourceId;
use hatchery_core::session::EndReason;
use hatchery_core::status::Path;
use hatchery_core::{
    Address, AgentId, Event, EventId, Fingerprint, MessageKind, Record, RequestId, SessionId, Timestamp,
};
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
    use MessageKind::*;
    prop::sample::select(vec![
        Clear,
        System,
        User,
        Assistant,
        ToolCall,
        ToolResult,
        Mark,
        Rewind,
        AgentKilled,
        Command,
        Fork,
        Usage,
        Interrupted,
    ])
}

fn event_id() -> impl Strategy<Value = EventId> {
    any::<u64>().prop_map(EventId)
}

fn address() -> impl Strategy<Value = Address> {
    prop_oneof![Just(Address::Human), agent().prop_map(Address::Agent)]
}

fn origin() -> impl Strategy<Value = Origin> {
    (agent(), option::of(event_id())).prop_map(|(agent, upto)| Origin { agent, upto })
}

fn source_id() -> impl Strategy<Value = SourceId> {
    prop_oneof![any::<i64>().prop_map(SourceId::Number), text().prop_map(SourceId::Text)]
}

fn birth() -> impl Strategy<Value = Birth> {
    let words = [(); 4].map(|()| option::of(text()));
    (
        agent(),
        words,
        option::of(session()),
        option::of(any::<u64>()),
        option::of(runs::spec()),
        option::of(runs::money()),
        any::<bool>(),
    )
        .prop_map(|(agent, [name, provider, model, prompt], session, hatch_ms, run, budget, for_step)| Birth {
            agent,
            name,
            provider,
            model,
            prompt,
            session,
            hatch_ms,
            run: run.map(Box::new),
            budget,
            for_step,
        })
}

/// Any text at all, with what JSON must escape more often than chance would have it.
fn text() -> impl Strategy<Value = String> {
    let characters =
        prop_oneof![any::<char>(), prop::sample::select(vec!['"', '\\', '\n', '\0', '{', '}', '\u{2028}'])];
    prop::collection::vec(characters, 0..40).prop_map(String::from_iter)
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => happened(),
        3 => runs::happened(),
        3 => quests::happened(),
        3 => seats::happened(),
        1 => status_happened(),
        1 => request_happened()
    ]
}

fn request_happened() -> impl Strategy<Value = Event> {
    (any::<[u8; 16]>(), any::<[u8; 16]>(), any::<u64>()).prop_map(|(request, fingerprint, led_to)| {
        let (request, fingerprint) = (RequestId::from_bytes(request), Fingerprint::from_bytes(fingerprint));
        Event::Request(RequestEvent::Taken { request, fingerprint, led_to })
    })
}

fn source() -> impl Strategy<Value = StatusSource> {
    prop_oneof![Just(StatusSource::Request), Just(StatusSource::File)]
}

fn field_edit() -> impl Strategy<Value = FieldEdit> {
    let name = text().prop_map(|name| format!("{name}."));
    let path = prop::collection::vec(name, 1..4)
        .prop_map(|names| names.iter().fold(Path::root(), |path, name| path.below(name)));
    (path, option::of(text()), any::<bool>()).prop_map(|(path, value, append)| FieldEdit { path, value, append })
}

fn status_happened() -> impl Strategy<Value = Event> {
    prop_oneof![
        (source(), prop::collection::vec(field_edit(), 0..3))
            .prop_map(|(from, edits)| Event::Status(StatusEvent::Edited { from, edits })),
        (source(), text(), text()).prop_map(|(from, build_event, body)| {
            Event::Status(StatusEvent::BuildEventRecorded { from, build_event, body })
        }),
        (source(), text(), text()).prop_map(|(from, idea, body)| Event::Status(StatusEvent::IdeaKept {
            from,
            idea,
            body
        })),
        (source(), text()).prop_map(|(from, idea)| Event::Status(StatusEvent::IdeaDismissed { from, idea })),
    ]
}

/// Whatever can happen, but for runs, quests and the status.
fn happened() -> impl Strategy<Value = Event> {
    prop_oneof![
        (session(), option::of(text()), option::of(any::<u64>())).prop_map(|(session, label, idle_ms)| {
            Event::Session { session, what: SessionEvent::Started { label, idle_ms } }
        }),
        (session(), reason())
            .prop_map(|(session, reason)| Event::Session { session, what: SessionEvent::Ending { reason } }),
        (session(), reason())
            .prop_map(|(session, reason)| Event::Session { session, what: SessionEvent::Ended { reason } }),
        (option::of(agent()), option::of(origin()), birth(), option::of(any::<i64>())).prop_map(
            |(parent, origin, birth, hatch_by)| Event::Agent {
                agent: birth.agent,
                what: AgentEvent::Created {
                    parent,
                    origin,
                    name: birth.name,
                    provider: birth.provider,
                    model: birth.model,
                    session: birth.session,
                    hatch_by: hatch_by.map(Timestamp)
                }
            }
        ),
        (agent(), birth()).prop_map(|(agent, birth)| Event::Agent { agent, what: AgentEvent::ForkRequested { birth } }),
        (agent(), agent()).prop_map(|(agent, child)| Event::Agent { agent, what: AgentEvent::ForkCancelled { child } }),
        agent().prop_map(|agent| Event::Agent { agent, what: AgentEvent::Hatched }),
        agent().prop_map(|agent| Event::Agent { agent, what: AgentEvent::Expired }),
        (agent(), option::of(text()))
            .prop_map(|(agent, name)| Event::Agent { agent, what: AgentEvent::Renamed { name } }),
        agent().prop_map(|agent| Event::Agent { agent, what: AgentEvent::Slept }),
        (agent(), option::of(session()))
            .prop_map(|(agent, session)| Event::Agent { agent, what: AgentEvent::Woken { session } }),
        (agent(), option::of(agent()), option::of(text()))
            .prop_map(|(agent, by, remark)| Event::Agent { agent, what: AgentEvent::Killed { by, remark } }),
        (agent(), agent()).prop_map(|(agent, parent)| Event::Agent { agent, what: AgentEvent::Reparented { parent } }),
        (agent(), kind(), text(), option::of(event_id()), option::of(source_id())).prop_map(
            |(agent, kind, content, to, source_id)| Event::Message(MessageEvent::Added {
                agent,
                kind,
                content,
                to,
                source_id
            })
        ),
        (address(), address(), text()).prop_map(|(from, to, body)| Event::Mail(MailEvent::Sent { from, to, body })),
        (address(), event_id()).prop_map(|(to, mail)| Event::Mail(MailEvent::Delivered { to, mail })),
        (address(), event_id()).prop_map(|(to, mail)| Event::Mail(MailEvent::Read { to, mail })),
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
    assert_eq!(Record::read(EventId(1), &later).unwrap().event, Event::Agent { agent, what: AgentEvent::Slept });
    let unknown = format!(r#"{{"ts":1,"sessionId":null,"type":"agent_dreamt","agent":"{agent}"}}"#);
    assert!(Record::read(EventId(1), &unknown).unwrap_err().to_string().contains("agent_dreamt"));
}

#[test]
fn a_body_nested_without_end_is_refused() {
    assert!(Record::read(EventId(1), &"[".repeat(100_000)).is_err());
    assert!(Record::read(EventId(1), &r#"{"a":"#.repeat(100_000)).is_err());
}
