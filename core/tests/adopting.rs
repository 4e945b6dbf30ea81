//! Given events, when a conversation from elsewhere is adopted, then events or a refusal.

#![allow(clippy::unwrap_used, reason = "a test and its support stop where something is not as it must be")]

use hatchery_core::agent::Birth;
use hatchery_core::event::AgentEvent;
use hatchery_core::harness::{Capabilities, Reader as _};
use hatchery_core::history::ImportedItem;
use hatchery_core::run::{AttemptId, DeliveryKind, ForeignSession, Process, RunSpec};
use hatchery_core::stream_json::StreamJsonReader;
use hatchery_core::usage::{Money, Usage};
use hatchery_core::{AgentId, Command, Event, Meter, Record, Refusal, Timestamp, World, step};

const ROOT: AgentId = AgentId::from_bytes([0; 16]);
const ONE: AgentId = AgentId::from_bytes([1; 16]);
const TWO: AgentId = AgentId::from_bytes([2; 16]);

fn spec() -> RunSpec {
    RunSpec {
        harness: "claude".into(),
        host: "here".into(),
        folder: None,
        model: None,
        script: None,
        stays: false,
        stall_ms: 600_000,
        kill_stuck: false,
        retries: 2,
        parks: true,
        signals: false,
        permissions: None,
    }
}

fn harness_session() -> ForeignSession {
    ForeignSession { harness: "claude".into(), session: "s".into(), host: "here".into(), folder: Some("sub".into()) }
}

fn adopt(agent: AgentId) -> Command {
    Command::AdoptHarnessSession { agent, harness_session: harness_session(), name: Some("old".into()) }
}

/// Agent 0, and two below it that have nothing.
fn given() -> World {
    let mut world = World::default();
    let born = |agent| ImportedItem::Agent { agent, parent: ROOT, upto: None };
    when(&mut world, &Command::FoundRegistry { agent: ROOT, name: None });
    when(&mut world, &Command::ImportHistory { items: vec![born(ONE), born(TWO)] });
    world
}

#[track_caller]
fn when(world: &mut World, command: &Command) -> Vec<Record> {
    step(world, command, Timestamp(1)).unwrap()
}

#[track_caller]
fn refused(world: &World, command: &Command) -> Refusal {
    step(&mut world.clone(), command, Timestamp(1)).unwrap_err()
}

#[test]
fn it_is_named_and_gets_the_conversation() {
    let mut world = given();
    let events: Vec<Event> = when(&mut world, &adopt(ONE)).into_iter().map(|record| record.event).collect();
    let named = Event::Agent { agent: ONE, what: AgentEvent::Renamed { name: Some("old".into()) } };
    assert_eq!(
        events,
        [named, Event::Agent { agent: ONE, what: AgentEvent::HarnessSessionAdopted(harness_session()) }]
    );
    let conversation = world.conversation(ONE).unwrap();
    let kept = conversation.harness_session.as_ref().unwrap();
    assert_eq!((kept.session.as_str(), kept.folder.as_deref(), kept.meter), ("s", Some("sub"), Meter::Inherited));
    assert_eq!((conversation.spent, world.harness_session_owner("s")), (Usage::default(), Some(ONE)));
}

#[test]
fn a_word_to_it_goes_on_with_the_conversation_and_old_costs_are_not_ours() {
    let mut world = given();
    when(&mut world, &adopt(ONE));
    when(&mut world, &Command::Say { agent: ONE, text: "go on".into(), spec: Some(spec()) });
    let conversation = world.conversation(ONE).unwrap();
    // The word itself, and no briefing: the conversation knows the rest.
    assert_eq!(conversation.waiting.iter().map(|it| it.what).collect::<Vec<_>>(), [DeliveryKind::Message]);
    let of = AttemptId { agent: ONE, run: 1, attempt: 1 };
    let process = Process { pid: 7, began: 7 };
    when(
        &mut world,
        &Command::ReportSpawn {
            of,
            process,
            session: Some("s".into()),
            copy_of: None,
            capabilities: Capabilities::ALL,
        },
    );
    let dollars = |dollars: f64| Money::from_dollars(dollars);
    let line = |total: f64, since: f64| {
        format!(
            r#"{{"type":"result","subtype":"success","total_cost_usd":{total},"model_usage_since_last_result":{{"m":{{"costUSD":{since}}}}}}}"#
        )
    };
    let init = r#"{"type":"system","subtype":"init","session_id":"s","mcp_servers":[{"name":"hatchery","status":"connected"}]}"#;
    let mut reader = StreamJsonReader::default();
    let mut outputs = reader.read(init).unwrap();
    outputs.extend(reader.read(&line(10.25, 0.25)).unwrap());
    when(&mut world, &Command::TakeOutput { of, from: 0, upto: 1, outputs });
    assert_eq!(world.conversation(ONE).unwrap().spent.cost, dollars(0.25));
}

#[test]
fn a_conversation_has_one_agent() {
    let mut world = given();
    when(&mut world, &adopt(ONE));
    let taken = refused(&world, &adopt(TWO));
    assert_eq!(taken, Refusal::HarnessSessionTaken { session: "s".into(), agent: ONE, name: Some("old".into()) });
    assert_eq!(taken.to_string(), format!("session s is the conversation of agent {ONE} (old) already"));
    assert_eq!(refused(&world, &adopt(ONE)), Refusal::HasHarnessSession(ONE));
    // Also when it was forgotten since, and when it was our own from the beginning.
    when(
        &mut world,
        &Command::AddMessage { agent: ONE, kind: hatchery_core::MessageKind::Clear, content: String::new() },
    );
    assert!(matches!(refused(&world, &adopt(TWO)), Refusal::HarnessSessionTaken { agent: ONE, .. }));
    let mut world = given();
    when(&mut world, &Command::StartRun { agent: ONE, spec: spec() });
    let of = AttemptId { agent: ONE, run: 1, attempt: 1 };
    let process = Process { pid: 7, began: 7 };
    when(
        &mut world,
        &Command::ReportSpawn {
            of,
            process,
            session: Some("s".into()),
            copy_of: None,
            capabilities: Capabilities::ALL,
        },
    );
    assert!(matches!(refused(&world, &adopt(TWO)), Refusal::HarnessSessionTaken { agent: ONE, .. }));
    // Killed, but its process has yet to end.
    when(&mut world, &Command::Kill { agent: ONE, cascade: false, by: None, remark: None });
    assert!(matches!(refused(&world, &adopt(TWO)), Refusal::HarnessSessionTaken { agent: ONE, .. }));
}

#[test]
fn that_of_a_dead_agent_can_be_taken_over() {
    let mut world = given();
    when(&mut world, &adopt(ONE));
    let child = AgentId::from_bytes([3; 16]);
    when(&mut world, &Command::Fork { parent: ONE, at: None, birth: Birth::of(child) });
    when(&mut world, &Command::Kill { agent: ONE, cascade: false, by: None, remark: None });
    when(&mut world, &adopt(TWO));
    assert_eq!(world.harness_session_owner("s"), Some(TWO));
    assert_eq!(
        world.conversation(ONE).unwrap().harness_session,
        None,
        "a child of it must not copy what is said to another"
    );
}

#[test]
fn nonsense_is_refused() {
    let mut world = given();
    let with =
        |harness_session: ForeignSession| Command::AdoptHarnessSession { agent: ONE, harness_session, name: None };
    assert!(matches!(
        refused(&world, &with(ForeignSession { session: String::new(), ..harness_session() })),
        Refusal::BadSpec { .. }
    ));
    let long = Some("x".repeat(5_000));
    assert!(matches!(
        refused(&world, &with(ForeignSession { folder: long, ..harness_session() })),
        Refusal::BadSpec { .. }
    ));
    let unnamed =
        Command::AdoptHarnessSession { agent: ONE, harness_session: harness_session(), name: Some(" ".into()) };
    assert!(matches!(refused(&world, &unnamed), Refusal::BadName { .. }));
    let nobody = AgentId::from_bytes([9; 16]);
    assert_eq!(refused(&world, &adopt(nobody)), Refusal::UnknownAgent(nobody));
    when(&mut world, &Command::Kill { agent: ONE, cascade: false, by: None, remark: None });
    assert_eq!(refused(&world, &adopt(ONE)), Refusal::AgentDead(ONE));
}

#[test]
fn it_is_written_so_for_good() {
    let agent = AgentId::from_bytes([0x11; 16]);
    let event = Event::Agent {
        agent,
        what: AgentEvent::HarnessSessionAdopted(ForeignSession { folder: None, ..harness_session() }),
    };
    let record = Record { id: hatchery_core::EventId(55), ts: Timestamp(1_767_225_600_055), session: None, event };
    let written = r#"{"ts":1767225600055,"sessionId":null,"type":"harness_session_adopted","agent":"EREREREREREREREREREREQ","harness":"claude","session":"s","host":"here"}"#;
    assert_eq!(record.body(), written);
    assert_eq!(Record::read(record.id, written).unwrap(), record);
}
