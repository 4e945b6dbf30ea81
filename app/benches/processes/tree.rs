//! Agents to measure with, made through the engine.

use crate::runtime;
use hatchery::clock::{SystemClock, new_agent_id};
use hatchery::engine::{Engine, EngineOptions, Handle};
use hatchery::store::{self, StoreUrl};
use hatchery_core::agent::Birth;
use hatchery_core::event::MessageEvent;
use hatchery_core::history::{ImportedItem, SourceId};
use hatchery_core::{AgentId, Command, Event, EventId, MessageKind};
use std::sync::Arc;

/// The size of a message, as in the figures of the original.
pub const MESSAGE_BYTES: usize = 200;
/// Messages taken in by one command.
const CHUNK: usize = 500;

pub fn start(url: &StoreUrl) -> Engine {
    let store = store::open(url, runtime().handle()).unwrap();
    Engine::start(store, Arc::new(SystemClock), EngineOptions::default(), runtime().handle().clone()).unwrap()
}

pub fn stop(engine: Engine) {
    engine.handle.stop();
    engine.join().unwrap();
}

pub fn submit(handle: &Handle, command: Command) -> Vec<hatchery_core::Record> {
    runtime().block_on(handle.submit(command)).unwrap()
}

/// Agent 0.
pub fn found(handle: &Handle) -> AgentId {
    let agent = new_agent_id();
    submit(handle, Command::FoundRegistry { agent, name: None });
    agent
}

pub fn fork(handle: &Handle, parent: AgentId) -> AgentId {
    let agent = new_agent_id();
    submit(handle, Command::Fork { parent, at: None, birth: Birth::of(agent) });
    agent
}

/// Adds messages to an agent's history. Gives the id of the last.
pub fn say(handle: &Handle, agent: AgentId, count: u64) -> EventId {
    say_in_turn(handle, &[agent], count)
}

/// Adds so many messages to the history of each, and the agents take turns. Gives the id of the last.
pub fn say_in_turn(handle: &Handle, agents: &[AgentId], each: u64) -> EventId {
    let message = |(at, agent): (u64, &AgentId)| ImportedItem::Message {
        agent: *agent,
        kind: MessageKind::Assistant,
        content: "x".repeat(MESSAGE_BYTES),
        to: None,
        source_id: SourceId::Number(at.cast_signed()),
    };
    let count = each * agents.len() as u64;
    let mut speakers = (0..count).zip(agents.iter().cycle()).peekable();
    let mut last = EventId::START;
    while speakers.peek().is_some() {
        let items = speakers.by_ref().take(CHUNK).map(message).collect();
        let records = submit(handle, Command::ImportHistory { items });
        last = records.last().map(|record| record.id).unwrap();
        assert!(matches!(records[0].event, Event::Message(MessageEvent::Added { .. })));
    }
    last
}

/// A chain of agents below agent 0, each with so many messages. Gives the last.
pub fn chain(handle: &Handle, depth: u64, messages: u64) -> AgentId {
    let mut agent = handle.view().root().unwrap_or_else(|| found(handle));
    for _ in 0..depth {
        agent = fork(handle, agent);
        say(handle, agent, messages);
    }
    agent
}
