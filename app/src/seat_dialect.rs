//! The events that clients of the original program know, as a view of our own log. Nothing here is stored: each event is computed
//! from one record and the world of that moment, and has the id of that record. So a record always means the same to such a client,
//! live or later. Events of other nouns, which such clients do not know, are left out.

mod event;

pub use event::DialectEvent;

use crate::clock;
use crate::seats::{name, unrouted};
use event::{
    DialectContent, DialectEnd, DialectError, DialectResult, DialectUsage, DialectWhat, RegisteredSeat, ReportedSeat,
    WokenSeat,
};
use hatchery_core::event::{AgentEvent, MessageEvent, RunEvent, SeatEvent, SessionEvent};
use hatchery_core::mail::HUMAN;
use hatchery_core::outcome::Cause;
use hatchery_core::output::{FailureKind, Output, TurnEnd};
use hatchery_core::seat::{ListedStatus, Position, SeatListed, SeatState, session_uuid, shown};
use hatchery_core::session::EndReason;
use hatchery_core::usage::Usage;
use hatchery_core::{AgentId, Event, EventId, MessageKind, Record, SessionId, World};
use serde_json::Value;
use std::sync::Arc;

/// The name that the original program gives to a speaker who gave no name. Its clients look for it.
const ORIGINAL_HUMAN: &str = "Marcus";

/// Reads the log in order and says what each record means to such a client.
#[derive(Debug)]
pub struct Translator {
    /// The world as it was at the last record.
    world: Arc<World>,
    /// The record before the next one: who said a message is told by the event before it.
    previous: Option<Record>,
    /// Where the client has come from. It has seen what has an id up to this one.
    after: EventId,
    /// What a person is called who gave no name.
    human: String,
}

/// What a record may take away from the world, and what its meaning needs.
struct WorldBefore {
    /// The tool whose result the record is.
    tool: Option<String>,
    /// The open session of the seats.
    session: Option<SessionId>,
}

impl Translator {
    /// Begins after the last record of a world.
    /// `human` is what the settings call the person.
    pub fn after(world: Arc<World>, previous: Option<Record>, human: &str) -> Self {
        let human = if human == HUMAN { ORIGINAL_HUMAN } else { human }.to_owned();
        Self { after: world.head(), world, previous, human }
    }

    /// The last event up to which everything was said: what a client may be told as its position. The start of a session is said
    /// with the event after it.
    pub fn position(&self) -> EventId {
        match &self.previous {
            Some(previous) if is_start(previous) && previous.id > self.after => previous.id.before(),
            _ => self.world.head(),
        }
    }

    /// What a record means. At most one event of each id. An error if the record does not follow the last one.
    pub fn take(&mut self, record: &Record) -> Result<Vec<DialectEvent>, String> {
        // A call is forgotten with its result, and a session with its end.
        let before =
            WorldBefore { tool: self.tool_of(record), session: self.world.seats().session().map(|open| open.id) };
        Arc::make_mut(&mut self.world).apply(record).map_err(|error| error.to_string())?;
        let said = self.say(record, before).map(|what| enveloped(record, what));
        // The start of a session is told when it is known what for: by the event after it.
        let started = match (&self.previous, &record.event) {
            (Some(previous), Event::Seat(SeatEvent::Opened { demo, with_transcript, with_catalog, .. }))
                if is_start(previous) && previous.id > self.after =>
            {
                let what = DialectWhat::UserSessionStart {
                    demo_mode: *demo,
                    has_previous_transcript: *with_transcript,
                    has_artifact_catalog: *with_catalog,
                };
                Some(enveloped(previous, what))
            }
            _ => None,
        };
        self.previous = Some(record.clone());
        Ok(started.into_iter().chain(said).collect())
    }

    /// Takes over an equal world, so that many clients share one.
    pub fn share(&mut self, world: &Arc<World>) {
        if world.head() == self.world.head() {
            self.world = Arc::clone(world);
        }
    }

    fn say(&self, record: &Record, before: WorldBefore) -> Option<DialectWhat> {
        let world = &self.world;
        let seats = world.seats();
        match &record.event {
            Event::Seat(what) => self.of_seats(record, what),
            Event::Session { session, what: SessionEvent::Ending { reason } } if before.session == Some(*session) => {
                let reason = match reason {
                    EndReason::User | EndReason::Completed => DialectEnd::UserEnded,
                    EndReason::Inactive => DialectEnd::InactivityTimeout,
                    EndReason::Failed => DialectEnd::ProcessCrash,
                };
                Some(DialectWhat::SessionEnd { exit_code: seats.lead_exit(), reason })
            }
            Event::Agent { agent, what: AgentEvent::Killed { .. } } => {
                seats.position_of(*agent).filter(|position| *position != Position::LEAD)?;
                Some(status(world, &alive(world)))
            }
            Event::Message(MessageEvent::Added { agent, kind, content, .. }) => {
                self.of_message(record.id, *agent, *kind, content, before.tool)
            }
            Event::Run { of, what } if seats.has_led(of.agent) => of_lead(record.id, what),
            _ => None,
        }
    }

    /// The name of the tool whose result a record is.
    fn tool_of(&self, record: &Record) -> Option<String> {
        let Event::Message(MessageEvent::Added { agent, kind: MessageKind::ToolResult, content, .. }) = &record.event
        else {
            return None;
        };
        if !self.world.seats().has_led(*agent) {
            return None;
        }
        let result: Value = serde_json::from_str(content).ok()?;
        self.world.seats().call(result["id"].as_str()?).map(|call| call.tool.clone())
    }

    fn of_seats(&self, record: &Record, what: &SeatEvent) -> Option<DialectWhat> {
        let world = &self.world;
        let seats = world.seats();
        Some(match what {
            SeatEvent::Opened { demo, model, pid, .. } => {
                DialectWhat::SessionStart { pid: *pid, model: model.clone(), demo_mode: *demo }
            }
            SeatEvent::Closing { .. } => DialectWhat::UserSessionEnd {},
            SeatEvent::Summoned { .. } => DialectWhat::UserSummon {},
            SeatEvent::Waking { seats: waking } => {
                let payload = |waking: &hatchery_core::event::Waking| {
                    let identity = seats.seat(waking.position).map(|seat| seat.identity.clone()).unwrap_or_default();
                    WokenSeat {
                        name: identity.name,
                        color: identity.color,
                        color_name: identity.color_name,
                        grid_position: waking.position,
                        has_soul: waking.has_soul,
                        has_transcript: waking.has_transcript,
                    }
                };
                DialectWhat::UserWake { agent_payloads: waking.iter().map(payload).collect() }
            }
            SeatEvent::Registered { position, identity } => {
                let created = seats.seat(*position).and_then(|seat| seat.created).unwrap_or(record.ts);
                let agent = RegisteredSeat {
                    identity: identity.clone(),
                    grid_position: *position,
                    created_at: clock::written(created),
                };
                DialectWhat::AgentRegistered { agent }
            }
            SeatEvent::Reported { agents, .. } => status(world, agents),
            SeatEvent::MarkerRejected { marker, reason, .. } => {
                let message = format!("a marker was rejected: {reason} ({marker})");
                DialectWhat::ServerError { message, code: DialectError::Unknown }
            }
            SeatEvent::WakeExpired { position } => {
                let message = format!("seat {position} was woken, but no agent answered in time");
                DialectWhat::ServerError { message, code: DialectError::TurnTimeout }
            }
            SeatEvent::ReplyTaken { from, text: Some(text), position, .. } => {
                agent_message(from, position.as_ref().map(|it| it.number()), text)
            }
            SeatEvent::ArtifactWritten { path, filename, bytes, is_new, meta, .. } => DialectWhat::ArtifactWritten {
                filename: filename.clone(),
                path: path.clone(),
                is_new: *is_new,
                size_bytes: *bytes,
                meta: meta.clone(),
            },
            SeatEvent::LeadNamed { .. }
            | SeatEvent::LeadAwaited { .. }
            | SeatEvent::Filled { .. }
            | SeatEvent::Relayed { .. }
            | SeatEvent::SpokenFor { .. }
            | SeatEvent::Expired { .. }
            | SeatEvent::Imported { .. }
            | SeatEvent::Addressed { .. }
            | SeatEvent::ReplyTaken { .. } => return None,
        })
    }

    fn of_message(
        &self,
        id: EventId,
        agent: AgentId,
        kind: MessageKind,
        content: &str,
        tool: Option<String>,
    ) -> Option<DialectWhat> {
        let world = &self.world;
        let seats = world.seats();
        let position = seats.position_of(agent)?;
        let leads = position == Position::LEAD;
        if kind == MessageKind::User {
            return self.user_message(agent, content);
        }
        let shown = || Some(seats.shown(agent, content).into_owned()).filter(|text| !text.trim().is_empty());
        match (kind, leads) {
            (MessageKind::Assistant, false) => {
                Some(agent_message(&name(world, agent), Some(position.number()), &shown()?))
            }
            (MessageKind::Assistant, true) => match self.previous.as_ref().map(|record| &record.event) {
                // The lead answers for another agent.
                Some(Event::Seat(SeatEvent::SpokenFor { agent: lead, position })) if *lead == agent => {
                    let position = *position;
                    let name = seats.seat(position).and_then(|seat| seat.called()).unwrap_or("nameless");
                    Some(agent_message(name, Some(position.number()), &shown()?))
                }
                _ => Some(DialectWhat::ClaudeText {
                    message_id: message_id(id),
                    content: DialectContent::text(shown()?),
                }),
            },
            (MessageKind::ToolCall, true) => {
                let call: Value = serde_json::from_str(content).ok()?;
                let (id_of_call, name, input) = (text(&call["id"]), text(&call["name"]), call["input"].clone());
                let used = DialectContent::ToolUse { id: id_of_call, name, input };
                Some(DialectWhat::ClaudeText { message_id: message_id(id), content: vec![used] })
            }
            (MessageKind::ToolResult, true) => {
                let result: Value = serde_json::from_str(content).ok()?;
                Some(DialectWhat::ClaudeToolResult {
                    tool_use_id: text(&result["id"]),
                    tool_name: tool.unwrap_or_default(),
                    content: result["content"].clone(),
                    is_error: result["is_error"] == true,
                })
            }
            _ => None,
        }
    }

    /// A message of a person. A prompt has no speaker, and is none.
    fn user_message(&self, agent: AgentId, content: &str) -> Option<DialectWhat> {
        let Event::Seat(SeatEvent::Addressed { agent: to, position, speaker }) = &self.previous.as_ref()?.event else {
            return None;
        };
        if *to != agent {
            return None;
        }
        let seat = position.and_then(|position| self.world.seats().seat(position));
        let target = seat.map(|seat| seat.called().unwrap_or("nameless"));
        Some(DialectWhat::UserMessage {
            text: unrouted(content).to_owned(),
            speaker_name: if speaker == HUMAN { self.human.clone() } else { speaker.clone() },
            target_agent: target.map(str::to_owned),
            target_grid_position: *position,
        })
    }
}

/// The start of a session, which the next event may make one of the seats.
fn is_start(record: &Record) -> bool {
    matches!(record.event, Event::Session { what: SessionEvent::Started { .. }, .. })
}

/// What the process of the lead does.
fn of_lead(id: EventId, what: &RunEvent) -> Option<DialectWhat> {
    let error = |message: String, code| Some(DialectWhat::ServerError { message, code });
    match what {
        RunEvent::Started { session, tools, .. } => {
            Some(DialectWhat::ClaudeSystem { claude_session_id: session.to_string(), available_tools: tools.clone() })
        }
        RunEvent::TurnEnded { end, spent, .. } => Some(result(end, *spent)),
        RunEvent::OutputNoted { output: Output::Compacted { .. } } => Some(DialectWhat::ClaudeCompact {}),
        RunEvent::OutputNoted { output: Output::Thinking { text } } => Some(DialectWhat::ClaudeText {
            message_id: message_id(id),
            content: vec![DialectContent::Thinking { thinking: text.clone() }],
        }),
        RunEvent::OutputNoted { output: Output::ApiError(failed) } => {
            let code = match failed.kind {
                FailureKind::Unauthorised => DialectError::AuthFailed,
                _ => DialectError::Unknown,
            };
            error(failed.text.clone(), code)
        }
        RunEvent::Silent { .. } => error("the lead has been silent for too long".into(), DialectError::TurnTimeout),
        RunEvent::Crashed { detail, .. } => error(detail.clone(), DialectError::ProcessExited),
        RunEvent::Ended { cause, detail, .. }
            if !matches!(cause, Cause::Completed | Cause::UserEnded | Cause::Killed) =>
        {
            error(detail.clone(), DialectError::ProcessExited)
        }
        _ => None,
    }
}

fn result(end: &TurnEnd, spent: Usage) -> DialectWhat {
    DialectWhat::ClaudeResult {
        subtype: if end.result.is_ok() { DialectResult::Success } else { DialectResult::Error },
        num_turns: end.num_turns.into(),
        cost_usd: spent.cost.nanodollars as f64 / 1e9,
        usage: DialectUsage {
            input_tokens: spent.input_tokens,
            output_tokens: spent.output_tokens,
            cache_read_tokens: spent.cache_read_tokens,
            cache_creation_tokens: spent.cache_write_tokens,
        },
        result_text: end.text.as_deref().map(|text| shown(text).into_owned()).unwrap_or_default(),
    }
}

fn agent_message(name: &str, position: Option<u8>, text: &str) -> DialectWhat {
    DialectWhat::AgentMessage {
        agent_name: name.to_owned(),
        grid_position: position,
        content: DialectContent::text(text),
    }
}

fn alive(world: &World) -> Vec<SeatListed> {
    let listed = world.seats().iter().filter(|(_, seat)| seat.state == SeatState::Alive);
    listed
        .map(|(position, seat)| SeatListed { position, name: seat.identity.name.clone(), status: ListedStatus::Alive })
        .collect()
}

fn status(world: &World, agents: &[SeatListed]) -> DialectWhat {
    // Ended agents are not listed: the clients take every entry for a living agent.
    let alive = agents.iter().filter(|listed| listed.status != ListedStatus::Shutdown);
    let listed = alive.map(|listed| {
        let own = || world.seats().seat(listed.position).and_then(|seat| seat.identity.name.clone());
        // Between two turns is alive: some of the clients take the word over into their documents, which know no `idle`.
        let status = ListedStatus::Alive;
        ReportedSeat { name: listed.name.clone().or_else(own), status, grid_position: listed.position }
    });
    DialectWhat::AgentStatus { agents: listed.collect() }
}

fn message_id(id: EventId) -> String {
    format!("msg_{id}")
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn enveloped(record: &Record, what: DialectWhat) -> DialectEvent {
    DialectEvent { id: record.id, ts: record.ts, session_id: record.session.map(session_uuid), what }
}

#[cfg(test)]
mod tests;
