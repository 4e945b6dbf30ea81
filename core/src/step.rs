//! Deciding. One command against one world gives events or a refusal; then whatever follows by itself, until quiet.

use crate::agent::{Life, MAX_MESSAGE_BYTES, MAX_NAME_BYTES, MAX_REMARK_BYTES};
use crate::session::{EndReason, MAX_IDLE_MS, MAX_LABEL_BYTES, MIN_IDLE_MS, Session, SessionState};
use crate::{Command, Event, Record, Refusal, SessionId, Stream, Timestamp, World};
use std::collections::BTreeSet;

/// Decides, applies and settles: the one way in which a world moves forward. A refusal leaves it untouched.
pub fn step(world: &mut World, command: &Command, now: Timestamp) -> Result<Vec<Record>, Refusal> {
    let decided = decide(world, command)?;
    let mut records: Vec<Record> = decided.into_iter().map(|event| world.record(event, now)).collect();
    while let Some(event) = settle(world, now) {
        records.push(world.record(event, now));
    }
    Ok(records)
}

/// What a command means in this world: events, or a reason why not.
pub fn decide(world: &World, command: &Command) -> Result<Vec<Event>, Refusal> {
    match command {
        Command::StartSession { session, label, idle_ms } => {
            check_label(label.as_deref())?;
            check_idle(*idle_ms)?;
            match world.session(*session) {
                None => one(Event::SessionStarted { session: *session, label: label.clone(), idle_ms: *idle_ms }),
                Some(_) => Err(Refusal::SessionExists(*session)),
            }
        }
        Command::EndSession { session, reason } => {
            open_session(world, *session)?;
            one(Event::SessionEnding { session: *session, reason: reason.clone() })
        }
        Command::CloseSession { session } => close(known_session(world, *session)?, *session),
        Command::CreateAgent { agent, parent, name, session } => {
            check_name(name.as_deref())?;
            if world.agent(*agent).is_some() {
                return Err(Refusal::AgentExists(*agent));
            }
            if let Some(parent) = parent {
                world.agent(*parent).ok_or(Refusal::UnknownAgent(*parent))?;
            }
            if let Some(session) = session {
                open_session(world, *session)?;
            }
            one(Event::AgentCreated { agent: *agent, parent: *parent, name: name.clone(), session: *session })
        }
        Command::RenameAgent { agent, name } => {
            check_name(name.as_deref())?;
            living(world, *agent)?;
            one(Event::AgentRenamed { agent: *agent, name: name.clone() })
        }
        Command::WakeAgent { agent, session } => {
            if let Some(session) = session {
                open_session(world, *session)?;
            }
            match living(world, *agent)? {
                Life::Sleeping => one(Event::AgentWoken { agent: *agent, session: *session }),
                Life::Alive { .. } | Life::Dead { .. } => Err(Refusal::AgentAwake(*agent)),
            }
        }
        Command::EndAgent { agent, remark } => {
            living(world, *agent)?;
            match remark {
                Some(text) if text.len() > MAX_REMARK_BYTES => Err(Refusal::RemarkTooLong { bytes: text.len() }),
                _ => one(Event::AgentEnded { agent: *agent, remark: remark.clone() }),
            }
        }
        Command::AddMessage { agent, kind, content } => {
            living(world, *agent)?;
            if content.len() > MAX_MESSAGE_BYTES {
                return Err(Refusal::MessageTooLong { bytes: content.len() });
            }
            one(Event::MessageAdded { agent: *agent, kind: *kind, content: content.clone() })
        }
        Command::Tick => Ok(Vec::new()),
    }
}

/// The next thing that follows by itself, or nothing. Costs the same however large the world is.
pub fn settle(world: &World, now: Timestamp) -> Option<Event> {
    let (deadline, session) = world.next_deadline()?;
    (deadline <= now).then_some(Event::SessionEnding { session, reason: EndReason::Inactive })
}

/// The streams that must not have changed meanwhile for these records to stand: what the command read, and whatever they
/// change. The second matters because much follows from a command that does not name it: a closing session puts agents to
/// sleep, and any command may find that a session is overdue.
pub fn rests_on(command: &Command, records: &[Record]) -> BTreeSet<Stream> {
    command.reads().chain(records.iter().map(|record| record.event.stream())).collect()
}

fn one(event: Event) -> Result<Vec<Event>, Refusal> {
    Ok(vec![event])
}

/// An ended session's agents fall asleep in the same breath.
fn close(session: &Session, id: SessionId) -> Result<Vec<Event>, Refusal> {
    match &session.state {
        SessionState::Ending { reason, .. } => {
            let asleep = session.awake.iter().map(|agent| Event::AgentSlept { agent: *agent });
            Ok(asleep.chain([Event::SessionEnded { session: id, reason: reason.clone() }]).collect())
        }
        SessionState::Ended { reason, .. } => Err(Refusal::SessionOver { session: id, reason: reason.clone() }),
        SessionState::Open => Err(Refusal::SessionNotEnding(id)),
    }
}

fn known_session(world: &World, id: SessionId) -> Result<&Session, Refusal> {
    world.session(id).ok_or(Refusal::UnknownSession(id))
}

fn open_session(world: &World, id: SessionId) -> Result<&Session, Refusal> {
    let session = known_session(world, id)?;
    match &session.state {
        SessionState::Open => Ok(session),
        SessionState::Ending { reason, .. } => Err(Refusal::SessionEnding { session: id, reason: reason.clone() }),
        SessionState::Ended { reason, .. } => Err(Refusal::SessionOver { session: id, reason: reason.clone() }),
    }
}

/// The life of an agent that is not dead.
fn living(world: &World, id: crate::AgentId) -> Result<&Life, Refusal> {
    match &world.agent(id).ok_or(Refusal::UnknownAgent(id))?.life {
        Life::Dead { .. } => Err(Refusal::AgentDead(id)),
        life @ (Life::Alive { .. } | Life::Sleeping) => Ok(life),
    }
}

fn check_name(name: Option<&str>) -> Result<(), Refusal> {
    match name {
        Some(name)
            if name.is_empty()
                || name.len() > MAX_NAME_BYTES
                || name.trim() != name
                || name.contains(char::is_control) =>
        {
            Err(Refusal::BadName { name: name.chars().take(MAX_NAME_BYTES).collect() })
        }
        _ => Ok(()),
    }
}

fn check_label(label: Option<&str>) -> Result<(), Refusal> {
    match label {
        Some(label) if label.len() > MAX_LABEL_BYTES => Err(Refusal::LabelTooLong { bytes: label.len() }),
        _ => Ok(()),
    }
}

fn check_idle(idle_ms: Option<u64>) -> Result<(), Refusal> {
    match idle_ms {
        Some(ms) if !(MIN_IDLE_MS..=MAX_IDLE_MS).contains(&ms) => Err(Refusal::IdleOutOfRange { ms }),
        _ => Ok(()),
    }
}
