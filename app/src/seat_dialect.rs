//! The events that clients of the original program know, as a view of our own log. Nothing here is stored: each event is computed
//! from one record, and has the id of that record. Events of other nouns, which such clients do not know, are left out.

use crate::clock;
use crate::seats::{name, unrouted};
use hatchery_core::event::{AgentEvent, MessageEvent, RunEvent, SeatEvent, SessionEvent};
use hatchery_core::outcome::Cause;
use hatchery_core::output::{Output, TurnEnd};
use hatchery_core::seat::{Listed, ListedStatus, Position, SeatState, scan, session_uuid};
use hatchery_core::session::EndReason;
use hatchery_core::usage::Usage;
use hatchery_core::{AgentId, Event, EventId, MessageKind, Record, SessionId, World};
use serde_json::{Map, Value, json};
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
    /// The seat that the lead was last asked to pass a message on to, once this reader has seen a message to the lead.
    route: Option<Option<Position>>,
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
    pub fn take(&mut self, world: &World, record: &Record) -> Vec<Value> {
        if let Event::Seat(SeatEvent::Addressed { agent, position, .. }) = &record.event
            && world.seats().lead() == Some(*agent)
        {
            self.route = Some(*position);
        }
        let said = self.say(world, record);
        // The start of a session is told when it is known what for: by the event after it.
        let started = match (&self.previous, &record.event) {
            (Some(previous), Event::Seat(SeatEvent::Opened { demo, with_transcript, with_catalog, .. }))
                if matches!(previous.event, Event::Session { what: SessionEvent::Started { .. }, .. }) =>
            {
                let fields = json!({
                    "demoMode": demo, "hasPreviousTranscript": with_transcript, "hasArtifactCatalog": with_catalog,
                });
                Some(enveloped(previous, "user_session_start", fields))
            }
            _ => None,
        };
        let said = said.map(|(kind, fields)| enveloped(record, kind, fields));
        self.previous = Some(record.clone());
        started.into_iter().chain(said).collect()
    }

    fn say(&mut self, world: &World, record: &Record) -> Option<(&'static str, Value)> {
        let seats = world.seats();
        match &record.event {
            Event::Seat(what) => self.of_seats(world, record, what),
            Event::Session { session, what: SessionEvent::Ending { reason } } if is_of_seats(world, *session) => {
                let reason = match reason {
                    EndReason::User | EndReason::Completed => "user_ended",
                    EndReason::Inactive => "inactivity_timeout",
                    EndReason::Failed => "process_crash",
                };
                // The end is told when it is decided, before a next session can begin. The processes are still running then.
                Some(("session_end", json!({ "exitCode": null, "reason": reason })))
            }
            Event::Agent { agent, what: AgentEvent::Killed { .. } } => {
                seats.position_of(*agent)?;
                Some(("agent_status", status(world, &alive(world))))
            }
            Event::Message(MessageEvent::Added { agent, kind, content, .. }) => {
                self.of_message(world, record.id, *agent, *kind, content)
            }
            Event::Run { of, what } if seats.lead() == Some(of.agent) => of_lead(what),
            _ => None,
        }
    }

    fn of_seats(&self, world: &World, record: &Record, what: &SeatEvent) -> Option<(&'static str, Value)> {
        let seats = world.seats();
        Some(match what {
            SeatEvent::Opened { demo, model, .. } => {
                ("session_start", json!({ "pid": std::process::id(), "model": model, "demoMode": demo }))
            }
            SeatEvent::Closing { .. } => ("user_session_end", json!({})),
            SeatEvent::Summoned { .. } => ("user_summon", json!({})),
            SeatEvent::Waking { seats: waking } => {
                let payload = |waking: &hatchery_core::event::Waking| {
                    let identity = seats.seat(waking.position).map(|seat| seat.identity.clone()).unwrap_or_default();
                    json!({
                        "name": identity.name, "color": identity.color, "colorName": identity.color_name,
                        "gridPosition": waking.position, "hasSoul": waking.has_soul,
                        "hasTranscript": waking.has_transcript,
                    })
                };
                ("user_wake", json!({ "agentPayloads": waking.iter().map(payload).collect::<Vec<_>>() }))
            }
            SeatEvent::Registered { position, identity } => {
                let mut agent = serde_json::to_value(identity).unwrap_or_default();
                let created = seats.seat(*position).map_or(record.ts, |seat| seat.created);
                agent["gridPosition"] = json!(position);
                agent["createdAt"] = json!(clock::written(created));
                ("agent_registered", json!({ "agent": agent }))
            }
            SeatEvent::Reported { agents, .. } => ("agent_status", status(world, agents)),
            SeatEvent::MarkerRejected { marker, reason, .. } => {
                let message = format!("a marker was rejected: {reason} ({marker})");
                ("server_error", json!({ "message": message, "code": "unknown" }))
            }
            SeatEvent::WakeExpired { position } => {
                let message = format!("seat {position} was woken and nobody answered in time");
                ("server_error", json!({ "message": message, "code": "turn_timeout" }))
            }
            SeatEvent::ReplyTaken { from, text: Some(text), position, .. } => {
                ("agent_message", agent_message(from, position.as_ref().map(|it| it.number()), text))
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
    ) -> Option<(&'static str, Value)> {
        let seats = world.seats();
        let leads = seats.lead() == Some(agent);
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
                Some(("agent_message", agent_message(&name(world, agent), position.map(|it| it.number()), &shown()?)))
            }
            (MessageKind::Assistant, true) => match self.route.unwrap_or_else(|| seats.route()) {
                // The lead answers for somebody else.
                Some(position) => {
                    let name = seats.seat(position).and_then(|seat| seat.called()).unwrap_or("nameless");
                    Some(("agent_message", agent_message(name, Some(position.number()), &shown()?)))
                }
                None => {
                    let content = json!([{ "type": "text", "text": shown()? }]);
                    Some(("claude_text", json!({ "messageId": message_id(id), "content": content })))
                }
            },
            (MessageKind::ToolCall, true) => {
                let call: Value = serde_json::from_str(content).ok()?;
                let tool = Tool { name: text(&call["name"]), input: call["input"].clone() };
                let used = json!([{ "type": "tool_use", "id": call["id"], "name": tool.name, "input": tool.input }]);
                if self.tools.len() < MAX_TOOLS {
                    self.tools.insert(text(&call["id"]), tool);
                }
                Some(("claude_text", json!({ "messageId": message_id(id), "content": used })))
            }
            (MessageKind::ToolResult, true) => {
                let result: Value = serde_json::from_str(content).ok()?;
                let tool = self.tools.remove(&text(&result["id"]));
                let failed = result["is_error"] == true;
                Some(match tool.as_ref().filter(|_| !failed).and_then(artifact) {
                    Some(artifact) => ("artifact_written", artifact),
                    None => (
                        "claude_tool_result",
                        json!({
                            "toolUseId": result["id"], "toolName": tool.map(|tool| tool.name).unwrap_or_default(),
                            "content": result["content"], "isError": failed,
                        }),
                    ),
                })
            }
            _ => None,
        }
    }

    /// A message of a person. A prompt has no speaker, and is none.
    fn user_message(&self, world: &World, agent: AgentId, content: &str) -> Option<(&'static str, Value)> {
        let Event::Seat(SeatEvent::Addressed { agent: to, position, speaker }) = &self.previous.as_ref()?.event else {
            return None;
        };
        if *to != agent {
            return None;
        }
        let seat = position.and_then(|position| world.seats().seat(position));
        let target = seat.map(|seat| seat.called().unwrap_or("nameless"));
        let fields = json!({
            "text": unrouted(content), "speakerName": speaker, "targetAgent": target, "targetGridPosition": position,
        });
        Some(("user_message", fields))
    }
}

/// What the process of the lead does.
fn of_lead(what: &RunEvent) -> Option<(&'static str, Value)> {
    let error = |message: String, code: &str| Some(("server_error", json!({ "message": message, "code": code })));
    match what {
        RunEvent::Started { session } => {
            Some(("claude_system", json!({ "claudeSessionId": session, "availableTools": [] })))
        }
        RunEvent::TurnEnded { end, spent } => Some(("claude_result", result(end, *spent))),
        RunEvent::OutputNoted { output: Output::Compacted { .. } } => Some(("claude_compact", json!({}))),
        RunEvent::OutputNoted { output: Output::Thinking { text } } => {
            Some(("claude_text", json!({ "messageId": "", "content": [{ "type": "thinking", "thinking": text }] })))
        }
        RunEvent::OutputNoted { output: Output::ApiError(failed) } => {
            error(failed.text.clone(), if failed.status == Some(401) { "auth_failed" } else { "unknown" })
        }
        RunEvent::Silent { .. } => error("the lead has been silent for too long".into(), "turn_timeout"),
        RunEvent::Crashed { detail, .. } => error(detail.clone(), "process_exited"),
        RunEvent::Ended { cause, detail, .. }
            if !matches!(cause, Cause::Completed | Cause::UserEnded | Cause::Killed) =>
        {
            error(detail.clone(), "process_exited")
        }
        _ => None,
    }
}

fn result(end: &TurnEnd, spent: Usage) -> Value {
    json!({
        "subtype": if end.result.is_ok() { "success" } else { "error" },
        "numTurns": end.num_turns,
        "costUsd": spent.cost.nanodollars as f64 / 1e9,
        "usage": {
            "inputTokens": spent.input_tokens, "outputTokens": spent.output_tokens,
            "cacheReadTokens": spent.cache_read_tokens, "cacheCreationTokens": spent.cache_write_tokens,
        },
        "resultText": end.text.clone().unwrap_or_default(),
    })
}

/// A file that the lead has written into its folder of artifacts.
fn artifact(tool: &Tool) -> Option<Value> {
    let path = tool.input["file_path"].as_str().filter(|_| tool.name == "Write")?;
    let inside = path.strip_prefix(ARTIFACTS).or_else(|| path.split_once("/memory/").map(|(_, inside)| inside))?;
    let bytes = tool.input["content"].as_str().map_or(0, str::len);
    Some(json!({ "filename": inside, "path": path, "isNew": true, "sizeBytes": bytes, "meta": null }))
}

fn agent_message(name: &str, position: Option<u8>, text: &str) -> Value {
    json!({ "agentName": name, "gridPosition": position, "content": [{ "type": "text", "text": text }] })
}

fn alive(world: &World) -> Vec<Listed> {
    let listed = world.seats().iter().filter(|(_, seat)| seat.state == SeatState::Alive);
    listed
        .map(|(position, seat)| Listed { position, name: seat.identity.name.clone(), status: ListedStatus::Alive })
        .collect()
}

fn status(world: &World, agents: &[Listed]) -> Value {
    let listed = agents.iter().map(|listed| {
        let own = || world.seats().seat(listed.position).and_then(|seat| seat.identity.name.clone());
        let name = listed.name.clone().or_else(own);
        json!({ "name": name, "status": listed.status, "gridPosition": listed.position })
    });
    json!({ "agents": listed.collect::<Vec<_>>() })
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

fn enveloped(record: &Record, kind: &str, fields: Value) -> Value {
    let mut event = Map::new();
    event.insert("id".into(), json!(record.id));
    event.insert("ts".into(), json!(record.ts));
    event.insert("sessionId".into(), json!(record.session.map(session_uuid)));
    event.insert("type".into(), json!(kind));
    if let Value::Object(fields) = fields {
        event.extend(fields);
    }
    Value::Object(event)
}
