//! The events that clients of the original program know, as a view of our own log. Nothing here is stored: each event is computed
//! from one record, and has the id of that record. Events of other nouns, which such clients do not know, are left out.

mod event;

pub use event::DialectEvent;

use crate::clock;
use crate::seats::{name, unrouted};
use event::{
    DialectContent, DialectEnd, DialectError, DialectResult, DialectUsage, DialectWhat, RegisteredSeat, ReportedSeat,
    WokenSeat,
};
use hatchery_core::event::{AgentEvent, MessageEvent, RunEvent, SeatEvent, SessionEvent};
use hatchery_core::outcome::Cause;
use hatchery_core::output::{Output, TurnEnd};
use hatchery_core::seat::{Listed, ListedStatus, Position, SeatState, scan, session_uuid};
use hatchery_core::session::EndReason;
use hatchery_core::usage::Usage;
use hatchery_core::{AgentId, Event, EventId, MessageKind, Record, SessionId, World};
use serde_json::Value;
use std::collections::BTreeMap;

/// How many tool calls of the lead are remembered until their results come.
const MAX_TOOLS: usize = 1_000;
/// The label of sessions of the seats.
const LABEL: &str = "seats";
/// Where artifacts are, from the folder of the lead.
const ARTIFACTS: &str = "memory/";

/// Reads the log in order and says what each record means to such a client.
#[derive(Debug, Default)]
pub struct Translator {
    /// The record before the next one: who said a message is told by the event before it.
    previous: Option<Record>,
    tools: BTreeMap<String, Tool>,
    /// The seat that the lead was last asked to pass a message on to, as far as this reader has seen.
    route: Option<Position>,
}

#[derive(Clone, Debug)]
struct Tool {
    name: String,
    input: Value,
}

impl Translator {
    /// Starts after a record, if there is one.
    pub fn after(previous: Option<Record>) -> Self {
        Self { previous, ..Self::default() }
    }

    /// What a record means. At most one event of each id.
    pub fn take(&mut self, world: &World, record: &Record) -> Vec<DialectEvent> {
        if let Event::Seat(SeatEvent::Addressed { agent, position, .. }) = &record.event
            && world.seats().has_led(*agent)
        {
            self.route = *position;
        }
        let said = self.say(world, record);
        // The start of a session is told when it is known what for: by the event after it.
        let started = match (&self.previous, &record.event) {
            (Some(previous), Event::Seat(SeatEvent::Opened { demo, with_transcript, with_catalog, .. }))
                if matches!(previous.event, Event::Session { what: SessionEvent::Started { .. }, .. }) =>
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
        let said = said.map(|what| enveloped(record, what));
        self.previous = Some(record.clone());
        started.into_iter().chain(said).collect()
    }

    fn say(&mut self, world: &World, record: &Record) -> Option<DialectWhat> {
        let seats = world.seats();
        match &record.event {
            Event::Seat(what) => self.of_seats(world, record, what),
            Event::Session { session, what: SessionEvent::Ending { reason } } if is_of_seats(world, *session) => {
                let reason = match reason {
                    EndReason::User | EndReason::Completed => DialectEnd::UserEnded,
                    EndReason::Inactive => DialectEnd::InactivityTimeout,
                    EndReason::Failed => DialectEnd::ProcessCrash,
                };
                Some(DialectWhat::SessionEnd { exit_code: None, reason })
            }
            Event::Agent { agent, what: AgentEvent::Killed { .. } } => {
                seats.position_of(*agent).filter(|position| *position != Position::LEAD)?;
                Some(status(world, &alive(world)))
            }
            Event::Message(MessageEvent::Added { agent, kind, content, .. }) => {
                self.of_message(world, record.id, *agent, *kind, content)
            }
            Event::Run { of, what } if seats.has_led(of.agent) => of_lead(what),
            _ => None,
        }
    }

    fn of_seats(&self, world: &World, record: &Record, what: &SeatEvent) -> Option<DialectWhat> {
        let seats = world.seats();
        Some(match what {
            SeatEvent::Opened { demo, model, .. } => {
                DialectWhat::SessionStart { pid: std::process::id(), model: model.clone(), demo_mode: *demo }
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
                let created = seats.seat(*position).map_or(record.ts, |seat| seat.created);
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
                let message = format!("seat {position} was woken and nobody answered in time");
                DialectWhat::ServerError { message, code: DialectError::TurnTimeout }
            }
            SeatEvent::ReplyTaken { from, text: Some(text), position, .. } => {
                agent_message(from, position.as_ref().map(|it| it.number()), text)
            }
            SeatEvent::LeadNamed { .. }
            | SeatEvent::Expired { .. }
            | SeatEvent::Imported { .. }
            | SeatEvent::Addressed { .. }
            | SeatEvent::ReplyTaken { .. } => return None,
        })
    }

    fn of_message(
        &mut self,
        world: &World,
        id: EventId,
        agent: AgentId,
        kind: MessageKind,
        content: &str,
    ) -> Option<DialectWhat> {
        let seats = world.seats();
        let leads = seats.has_led(agent);
        let position = seats.position_of(agent);
        if !leads && position.is_none() {
            return None;
        }
        if kind == MessageKind::User {
            return self.user_message(world, agent, content);
        }
        let shown = || Some(scan(content).shown).filter(|text| !text.trim().is_empty());
        match (kind, leads) {
            (MessageKind::Assistant, false) => {
                Some(agent_message(&name(world, agent), position.map(|it| it.number()), &shown()?))
            }
            (MessageKind::Assistant, true) => match self.route {
                // The lead answers for somebody else.
                Some(position) => {
                    let name = seats.seat(position).and_then(|seat| seat.called()).unwrap_or("nameless");
                    Some(agent_message(name, Some(position.number()), &shown()?))
                }
                None => Some(DialectWhat::ClaudeText {
                    message_id: message_id(id),
                    content: DialectContent::text(shown()?),
                }),
            },
            (MessageKind::ToolCall, true) => {
                let call: Value = serde_json::from_str(content).ok()?;
                let tool = Tool { name: text(&call["name"]), input: call["input"].clone() };
                let used = DialectContent::ToolUse {
                    id: text(&call["id"]),
                    name: tool.name.clone(),
                    input: tool.input.clone(),
                };
                if self.tools.len() < MAX_TOOLS {
                    self.tools.insert(text(&call["id"]), tool);
                }
                Some(DialectWhat::ClaudeText { message_id: message_id(id), content: vec![used] })
            }
            (MessageKind::ToolResult, true) => {
                let result: Value = serde_json::from_str(content).ok()?;
                let tool = self.tools.remove(&text(&result["id"]));
                let failed = result["is_error"] == true;
                let artifact = tool.as_ref().filter(|_| !failed).and_then(artifact);
                Some(artifact.unwrap_or_else(|| DialectWhat::ClaudeToolResult {
                    tool_use_id: text(&result["id"]),
                    tool_name: tool.map(|tool| tool.name).unwrap_or_default(),
                    content: result["content"].clone(),
                    is_error: failed,
                }))
            }
            _ => None,
        }
    }

    /// A message of a person. A prompt has no speaker, and is none.
    fn user_message(&self, world: &World, agent: AgentId, content: &str) -> Option<DialectWhat> {
        let Event::Seat(SeatEvent::Addressed { agent: to, position, speaker }) = &self.previous.as_ref()?.event else {
            return None;
        };
        if *to != agent {
            return None;
        }
        let seat = position.and_then(|position| world.seats().seat(position));
        let target = seat.map(|seat| seat.called().unwrap_or("nameless"));
        Some(DialectWhat::UserMessage {
            text: unrouted(content).to_owned(),
            speaker_name: speaker.clone(),
            target_agent: target.map(str::to_owned),
            target_grid_position: *position,
        })
    }
}

/// What the process of the lead does.
fn of_lead(what: &RunEvent) -> Option<DialectWhat> {
    let error = |message: String, code| Some(DialectWhat::ServerError { message, code });
    match what {
        RunEvent::Started { session } => {
            Some(DialectWhat::ClaudeSystem { claude_session_id: session.to_string(), available_tools: Vec::new() })
        }
        RunEvent::TurnEnded { end, spent, .. } => Some(result(end, *spent)),
        RunEvent::OutputNoted { output: Output::Compacted { .. } } => Some(DialectWhat::ClaudeCompact {}),
        RunEvent::OutputNoted { output: Output::Thinking { text } } => Some(DialectWhat::ClaudeText {
            message_id: String::new(),
            content: vec![DialectContent::Thinking { thinking: text.clone() }],
        }),
        RunEvent::OutputNoted { output: Output::ApiError(failed) } => {
            let code = if failed.status == Some(401) { DialectError::AuthFailed } else { DialectError::Unknown };
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
        result_text: end.text.clone().unwrap_or_default(),
    }
}

/// A file that the lead has written into its folder of artifacts.
fn artifact(tool: &Tool) -> Option<DialectWhat> {
    let path = tool.input["file_path"].as_str().filter(|_| tool.name == "Write")?;
    let inside = path.strip_prefix(ARTIFACTS).or_else(|| path.split_once("/memory/").map(|(_, inside)| inside))?;
    Some(DialectWhat::ArtifactWritten {
        filename: inside.to_owned(),
        path: path.to_owned(),
        is_new: true,
        size_bytes: tool.input["content"].as_str().map_or(0, str::len),
        meta: None,
    })
}

fn agent_message(name: &str, position: Option<u8>, text: &str) -> DialectWhat {
    DialectWhat::AgentMessage {
        agent_name: name.to_owned(),
        grid_position: position,
        content: DialectContent::text(text),
    }
}

fn alive(world: &World) -> Vec<Listed> {
    let listed = world.seats().iter().filter(|(_, seat)| seat.state == SeatState::Alive);
    listed
        .map(|(position, seat)| Listed { position, name: seat.identity.name.clone(), status: ListedStatus::Alive })
        .collect()
}

fn status(world: &World, agents: &[Listed]) -> DialectWhat {
    let listed = agents.iter().map(|listed| {
        let own = || world.seats().seat(listed.position).and_then(|seat| seat.identity.name.clone());
        ReportedSeat { name: listed.name.clone().or_else(own), status: listed.status, grid_position: listed.position }
    });
    DialectWhat::AgentStatus { agents: listed.collect() }
}

fn is_of_seats(world: &World, session: SessionId) -> bool {
    world.session(session).is_some_and(|session| session.label.as_deref() == Some(LABEL))
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
