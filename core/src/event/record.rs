//! How events are written and read. An event is written as one flat JSON object: the envelope (`ts`, `sessionId`), the `type`, the ids of
//! the noun, and the fields of the event. The store keeps the object without `id`, because the id is the row's key.

use super::{
    AgentEvent, BudgetEvent, Event, MailEvent, MessageEvent, PermissionEvent, QuestEvent, QuestionEvent, RequestEvent,
    RunEvent, SeatEvent, SessionEvent,
};
use super::{EventId, StatusEvent, StepEvent};
use crate::history::{MessageKind, SourceId};
use crate::quest::StepId;
use crate::run::AttemptId;
use crate::{AgentId, QuestId, SessionId, Timestamp};
use serde::de::value::StrDeserializer;
use serde::de::{DeserializeOwned, Error as _, IntoDeserializer as _};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::io::Write as _;

/// An event and its envelope: one entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub id: EventId,
    pub ts: Timestamp,
    /// The session in which it happened, if any.
    pub session: Option<SessionId>,
    pub event: Event,
}

/// An entry of the log that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("event {id} cannot be read: {source}")]
pub struct Unreadable {
    pub id: EventId,
    #[source]
    pub source: serde_json::Error,
}

impl Record {
    /// The object as the store keeps it: everything but the id.
    pub fn body(&self) -> String {
        const PLAIN: &str = "an event is plain data";
        let mut body = Vec::with_capacity(USUAL_BODY);
        serde_json::to_writer(&mut body, &Envelope { ts: self.ts, session: self.session }).expect(PLAIN);
        // The event continues the object of the envelope: a comma replaces the end of one and the beginning of the other.
        body.pop();
        let start = body.len();
        serde_json::to_writer(&mut body, &self.event).expect(PLAIN);
        body[start] = b',';
        put_type_first(&mut body[start + 1..]);
        String::from_utf8(body).expect("JSON is text")
    }

    pub fn read(id: EventId, body: &str) -> Result<Self, Unreadable> {
        let read = match kind_of(body) {
            Ok(kind) => read_as(&kind, body),
            Err(error) => Err(error),
        };
        match read {
            Ok((Envelope { ts, session }, event)) => Ok(Self { id, ts, session, event }),
            Err(source) => Err(Unreadable { id, source }),
        }
    }
}

/// Moves the type in front of the noun's ids: the derived form `"agent":"A","type":"T"` becomes `"type":"T","agent":"A"`. The log has
/// always had this order.
fn put_type_first(event: &mut [u8]) {
    let is_type = |part: &[u8]| part == TYPE_MARK.as_bytes();
    let ids = event.windows(TYPE_MARK.len()).position(is_type).expect("every event has a type");
    let name = ids + TYPE_MARK.len();
    let end = name + event[name..].iter().position(|byte| *byte == b'"').expect("a string ends") + 1;
    // The comma between the ids and the type stays between them.
    event[..ids].rotate_right(ids.min(1));
    event[..end].rotate_left(ids);
}

/// Writes the whole object as clients see it, from an id and a stored body.
pub fn write_wire(out: &mut Vec<u8>, id: EventId, body: &str) {
    write!(out, "{{\"id\":{id},").expect("a vector takes what it is given");
    out.extend_from_slice(body.strip_prefix('{').unwrap_or(body).as_bytes());
}

/// The id of an event that was written by [`write_wire`].
pub fn wire_id(wire: &str) -> serde_json::Result<EventId> {
    #[derive(Deserialize)]
    struct Numbered {
        id: EventId,
    }
    serde_json::from_str(wire).map(|Numbered { id }| id)
}

/// The agent and the kind of a stored message. None for any other event. The body is not decoded, for readers that pass the body on
/// unchanged.
pub fn stored_message(id: EventId, body: &str) -> Result<Option<(AgentId, MessageKind)>, Unreadable> {
    let Some((_, message)) = body.split_once(MESSAGE_MARK) else { return Ok(None) };
    let found = text_after(message, AGENT_MARK).and_then(|agent| Ok(Some((agent, text_after(message, KIND_MARK)?))));
    found.map_err(|source| Unreadable { id, source })
}

/// The text of a field, as what it is.
fn text_after<'a, T: Deserialize<'a>>(message: &'a str, mark: &str) -> Result<T, serde_json::Error> {
    let text = message.split_once(mark).and_then(|(_, rest)| rest.split_once('"')).map_or("", |(text, _)| text);
    let text: StrDeserializer<'a, serde_json::Error> = text.into_deserializer();
    T::deserialize(text)
}

/// Whether there are events of this `type`.
pub fn is_event_type(name: &str) -> bool {
    Noun::of(name).is_some()
}

#[derive(Serialize)]
struct Envelope {
    ts: Timestamp,
    #[serde(rename = "sessionId")]
    session: Option<SessionId>,
}

/// The length of most bodies, in bytes.
const USUAL_BODY: usize = 256;

const TYPE_MARK: &str = r#""type":""#;

/// Quotes inside of a string are escaped, so this is the type of a message and nothing else.
const MESSAGE_MARK: &str = r#""type":"message_added""#;

/// A message's agent and kind are written before its text, so the first match is the field; quotes inside of a string are escaped.
const AGENT_MARK: &str = r#""agent":""#;
const KIND_MARK: &str = r#""kind":""#;

/// The noun that an event type belongs to. `tests/golden.rs` fails for a type that is missing here.
enum Noun {
    Session,
    Agent,
    Message,
    Mail,
    Question,
    Budget,
    Permission,
    Run,
    Seat,
    Quest,
    Step,
    Status,
    Request,
}

impl Noun {
    fn of(kind: &str) -> Option<Self> {
        Some(match kind {
            "message_added" => Self::Message,
            "run_spawned" | "run_waiting" | "run_started" | "message_heard" | "output_noted" | "output_taken"
            | "call_taken" | "permission_decided" | "turn_started" | "turn_ended" | "run_silent"
            | "run_interrupted" | "run_stopping" | "run_parked" | "run_crashed" | "budget_reached"
            | "usage_metered" | "run_resumed" | "run_ended" => Self::Run,
            "session_started" | "session_ending" | "session_ended" => Self::Session,
            "agent_created"
            | "fork_requested"
            | "fork_cancelled"
            | "agent_hatched"
            | "agent_expired"
            | "agent_renamed"
            | "agent_slept"
            | "agent_woken"
            | "agent_killed"
            | "agent_reparented"
            | "harness_session_adopted"
            | "run_requested" => Self::Agent,
            "mail_sent" | "mail_delivered" | "mail_read" => Self::Mail,
            "question_asked" | "question_answered" | "question_withdrawn" => Self::Question,
            "budget_set" => Self::Budget,
            "seats_opened"
            | "seats_closing"
            | "seat_lead_named"
            | "seats_summoned"
            | "seat_registered"
            | "seats_reported"
            | "seats_waking"
            | "seat_expired"
            | "seat_wake_expired"
            | "seat_imported"
            | "seat_addressed"
            | "seat_lead_awaited"
            | "seat_filled"
            | "seat_spoken_for"
            | "seat_message_relayed"
            | "marker_rejected"
            | "artifact_written"
            | "inbox_reply_taken" => Self::Seat,
            "permission_rule_added" | "permission_rule_removed" => Self::Permission,
            "quest_created" | "quest_paused" | "quest_resumed" | "quest_abandoned" | "quest_completed"
            | "quest_budget_set" | "ward_changed" | "ward_removed" | "requirements_set" | "steps_planned" => {
                Self::Quest
            }
            "step_queued" | "step_begun" | "step_forked" | "step_fork_queued" | "signal_given" | "ward_begun"
            | "ward_ended" | "merge_begun" | "merge_ended" | "step_waits" | "step_parked" | "step_failed"
            | "step_completed" | "step_dropped" => Self::Step,
            "status_edited" | "build_event_recorded" | "idea_kept" | "idea_dismissed" => Self::Status,
            "request_taken" => Self::Request,
            _ => return None,
        })
    }
}

/// The type of a body. Hatchery writes the type before any field that could contain another `type`. A body in another order, for example
/// from an edited export, is decoded as a whole.
fn kind_of(body: &str) -> serde_json::Result<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Typed<'a> {
        #[serde(borrow, rename = "type")]
        kind: Cow<'a, str>,
    }
    let first = body.split_once(TYPE_MARK).and_then(|(_, rest)| rest.split_once('"')).map(|(kind, _)| kind);
    match first.filter(|kind| Noun::of(kind).is_some()) {
        Some(kind) => Ok(Cow::Borrowed(kind)),
        None => serde_json::from_str::<Typed<'_>>(body).map(|typed| typed.kind),
    }
}

fn read_as(kind: &str, body: &str) -> serde_json::Result<(Envelope, Event)> {
    let noun = Noun::of(kind).ok_or_else(|| {
        let hint = "a newer version of Hatchery may have written it";
        serde_json::Error::custom(format!("there is no event type `{kind}`: {hint}"))
    })?;
    match noun {
        Noun::Message => read_message(body),
        Noun::Run => read_body(body, |of: AttemptId, what: RunEvent| Event::Run { of, what }),
        Noun::Session => read_body(body, |OfSession { session }, what: SessionEvent| Event::Session { session, what }),
        Noun::Agent => read_body(body, |OfAgent { agent }, what: AgentEvent| Event::Agent { agent, what }),
        Noun::Question => read_body(body, |OfAgent { agent }, what: QuestionEvent| Event::Question { agent, what }),
        Noun::Quest => read_body(body, |OfQuest { quest }, what: QuestEvent| Event::Quest { quest, what }),
        Noun::Step => read_body(body, |OfStep { quest, step }, what: StepEvent| Event::Step { quest, step, what }),
        Noun::Mail => read_body(body, |OfNothing {}, what: MailEvent| Event::Mail(what)),
        Noun::Seat => read_body(body, |OfNothing {}, what: SeatEvent| Event::Seat(what)),
        Noun::Status => read_body(body, |OfNothing {}, what: StatusEvent| Event::Status(what)),
        Noun::Request => read_body(body, |OfNothing {}, what: RequestEvent| Event::Request(what)),
        Noun::Budget => read_body(body, |OfNothing {}, what: BudgetEvent| Event::Budget(what)),
        Noun::Permission => read_body(body, |OfNothing {}, what: PermissionEvent| Event::Permission(what)),
    }
}

#[derive(Deserialize)]
struct OfSession {
    session: SessionId,
}

#[derive(Deserialize)]
struct OfAgent {
    agent: AgentId,
}

#[derive(Deserialize)]
struct OfQuest {
    quest: QuestId,
}

#[derive(Deserialize)]
struct OfStep {
    quest: QuestId,
    step: StepId,
}

/// For events whose ids are fields of the event itself.
#[derive(Deserialize)]
struct OfNothing {}

#[derive(Deserialize)]
struct Body<Ids, What> {
    ts: Timestamp,
    #[serde(rename = "sessionId")]
    session: Option<SessionId>,
    #[serde(flatten)]
    ids: Ids,
    #[serde(flatten)]
    what: What,
}

fn read_body<Ids: DeserializeOwned, What: DeserializeOwned>(
    body: &str,
    event: impl FnOnce(Ids, What) -> Event,
) -> serde_json::Result<(Envelope, Event)> {
    let Body { ts, session, ids, what } = serde_json::from_str::<Body<Ids, What>>(body)?;
    Ok((Envelope { ts, session }, event(ids, what)))
}

/// Most of a log is messages. Reading them field by field is far cheaper than reading flattened parts, for which serde has to
/// buffer all fields first.
#[derive(Deserialize)]
struct MessageBody {
    ts: Timestamp,
    #[serde(rename = "sessionId")]
    session: Option<SessionId>,
    agent: AgentId,
    kind: MessageKind,
    content: String,
    #[serde(default)]
    to: Option<EventId>,
    #[serde(default)]
    source_id: Option<SourceId>,
}

fn read_message(body: &str) -> serde_json::Result<(Envelope, Event)> {
    let MessageBody { ts, session, agent, kind, content, to, source_id } = serde_json::from_str(body)?;
    Ok((Envelope { ts, session }, Event::Message(MessageEvent::Added { agent, kind, content, to, source_id })))
}
