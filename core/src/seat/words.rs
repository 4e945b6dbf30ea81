//! Messages to the agents of seats and to their lead, and how they reach the agents.

use super::decide::{LeadOrder, enter, requested, start_lead};
use super::{MAX_SAID_CHARS, MAX_SPEAKER_BYTES, Mode, Position, Seat, SeatRefusal, SeatState, Seats};
use crate::agent::living;
use crate::event::{AgentEvent, MessageEvent, RunEvent, SeatEvent};
use crate::history::{MAX_MESSAGE_BYTES, check_content, said};
use crate::mail::HUMAN;
use crate::run::{self, RunSpec, RunState};
use crate::{AgentId, Event, EventId, MessageKind, Refusal, SessionId, World};

/// The name of an agent without a name in messages to the lead.
const NAMELESS: &str = "nameless";
/// How many bytes of a message are reserved for the remark that the rest was left out.
const REMARK_BYTES: usize = 200;

/// How messages reach the agent of a seat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The daemon runs the agent's process, or can start one.
    Process(AgentId),
    /// The lead's team has the agent's process. The agent reads an inbox file with this name.
    Inbox { agent: AgentId, name: String },
    /// The lead's team has the agent's process, and only the lead can reach the agent.
    Lead,
}

/// How to reach the agent of a seat in the open session.
pub fn reach(world: &World, position: Position) -> Result<Reach, SeatRefusal> {
    let seats = world.seats();
    let open = seats.session().ok_or(SeatRefusal::NoSession)?;
    let seat = seats.seat(position).ok_or(SeatRefusal::Empty(position))?;
    let agent = seat.agent.filter(|agent| living(world, *agent).is_ok());
    if open.mode == Mode::Direct {
        let nobody = match seat.state {
            SeatState::Sleeping { .. } => SeatRefusal::Asleep(position),
            SeatState::Hatching { .. } | SeatState::Alive | SeatState::Expired => SeatRefusal::Empty(position),
        };
        return agent.map(Reach::Process).ok_or(nobody);
    }
    match seat.state {
        SeatState::Expired => return Err(SeatRefusal::Empty(position)),
        SeatState::Sleeping { waking: None } => return Err(SeatRefusal::Asleep(position)),
        SeatState::Sleeping { waking: Some(_) } | SeatState::Hatching { .. } | SeatState::Alive => {}
    }
    // The agent has left a message unread, so it would not read the next one either.
    if seats.leaves_unread(position) {
        return Ok(Reach::Lead);
    }
    // Two agents with the same name have one inbox file, and some file systems do not distinguish lowercase from uppercase letters. The
    // lead can tell the agents apart.
    let file = |name: &str| inbox_name(name).to_lowercase();
    let is_same = |name: &str, other: &Seat| other.called().is_some_and(|it| file(it) == file(name));
    let own_name = seat.called().filter(|name| seats.iter().filter(|(_, other)| is_same(name, other)).count() == 1);
    Ok(match (agent, own_name) {
        (Some(agent), Some(name)) => Reach::Inbox { agent, name: name.to_owned() },
        (Some(_), None) | (None, _) => Reach::Lead,
    })
}

/// The name that the Claude CLI gives to an agent's inbox file. Uppercase letters stay.
pub fn inbox_name(name: &str) -> String {
    // The CLI replaces each UTF-16 unit.
    let unit = |unit: u16| {
        u8::try_from(unit).ok().map(char::from).filter(|it| it.is_ascii_alphanumeric() || "_-".contains(*it))
    };
    name.encode_utf16().map(|it| unit(it).unwrap_or('-')).collect()
}

/// The seat of an agent whose process the lead's team has.
pub fn team_managed(world: &World, agent: AgentId) -> Option<Position> {
    let (position, _) = world.seats().occupied_by(agent)?;
    let open = world.seats().session()?;
    (open.mode == Mode::Lead).then_some(position)
}

/// The session in which a process of an agent of the seats may be started. None for an agent that sits in no seat.
pub(crate) fn session_of(world: &World, agent: AgentId) -> Result<Option<SessionId>, Refusal> {
    let seats = world.seats();
    if seats.occupied_by(agent).is_none() && seats.lead() != Some(agent) {
        return Ok(None);
    }
    let open = seats.session().ok_or(SeatRefusal::NoSession)?;
    match team_managed(world, agent) {
        Some(position) => Err(SeatRefusal::TeamManaged(position).into()),
        None => Ok(Some(open.id)),
    }
}

/// Sends a message to the agent of a seat, or to the lead. `no_inbox` says that the agent's inbox file cannot be written, so the lead is
/// asked to pass the message on.
pub(crate) fn address(
    world: &World,
    to: Option<Position>,
    text: &str,
    speaker: &str,
    lead: &LeadOrder,
    no_inbox: bool,
) -> Result<Vec<Event>, Refusal> {
    let seats = world.seats();
    let open = seats.session().ok_or(SeatRefusal::NoSession)?;
    if text.trim().is_empty() {
        return Err(SeatRefusal::NothingSaid.into());
    }
    let chars = text.chars().count();
    if chars > MAX_SAID_CHARS {
        return Err(SeatRefusal::SaidTooMuch { chars }.into());
    }
    if speaker.len() > MAX_SPEAKER_BYTES {
        return Err(SeatRefusal::SpeakerTooLong { bytes: speaker.len() }.into());
    }
    let speaker = if speaker.is_empty() { HUMAN } else { speaker };
    let living_lead = seats.lead().filter(|lead| living(world, *lead).is_ok());
    let Some(position) = to else {
        let addressed = |agent| SeatEvent::Addressed { agent, position: None, speaker: speaker.to_owned() };
        return match living_lead {
            Some(agent) => speak(world, open.id, agent, addressed(agent), text, Some(&lead.spec)),
            None => start_lead(world, open.id, lead, Some((speaker, text))),
        };
    };
    let addressed = |agent| SeatEvent::Addressed { agent, position: to, speaker: speaker.to_owned() };
    match reach(world, position)? {
        Reach::Process(agent) => {
            // A new run has the spec of the last one.
            let spec = world.run(agent).map_or(&lead.spec, |last| &last.spec);
            speak(world, open.id, agent, addressed(agent), text, Some(spec))
        }
        Reach::Inbox { agent, .. } if !no_inbox => speak(world, open.id, agent, addressed(agent), text, None),
        Reach::Inbox { .. } | Reach::Lead => {
            let agent = living_lead.ok_or(SeatRefusal::NoLead)?;
            speak(world, open.id, agent, addressed(agent), &routed(seats, position, text), Some(&lead.spec))
        }
    }
}

/// Asks the lead to pass on a message that the agent of a seat has not read. The message is in the log already.
pub(crate) fn relay(world: &World, to: Position, message: EventId, text: &str) -> Result<Vec<Event>, Refusal> {
    let seats = world.seats();
    let open = seats.session().ok_or(SeatRefusal::NoSession)?;
    if seats.was_told(to, message) {
        return Err(SeatRefusal::Relayed(message).into());
    }
    if let Reach::Process(_) = reach(world, to)? {
        return Err(SeatRefusal::NoLead.into());
    }
    let lead = seats.lead().filter(|lead| living(world, *lead).is_ok()).ok_or(SeatRefusal::NoLead)?;
    // An agent of the lead's team is alive, so the lead has a process and is not started for this.
    let spec = world.run(lead).filter(|run| run.is_open()).map(|run| &*run.spec).ok_or(SeatRefusal::NoLead)?;
    let relayed = SeatEvent::Relayed { agent: lead, position: to, message };
    speak(world, open.id, lead, relayed, &routed(seats, to, text), Some(spec))
}

/// The text of a message that the lead is asked to pass on.
fn routed(seats: &Seats, position: Position, text: &str) -> String {
    let called = |seat: &Seat| seat.called().unwrap_or(NAMELESS).to_owned();
    let name = seats.seat(position).map(called).unwrap_or_default();
    // Two agents with the same name are distinguished by their seats.
    match seats.iter().filter(|(_, other)| called(other) == name).count() {
        1 => format!("[ROUTE TO AGENT: {name}]\n\n{text}"),
        _ => format!("[ROUTE TO AGENT: {name}, seat {position}]\n\n{text}"),
    }
}

/// Puts an event before each text of the lead that answers a message which it was to pass on. The event names the seat. A message counts
/// from the moment when the lead's process has received it, so two messages in a row are answered one after the other.
pub(crate) fn spoken_for(world: &World, agent: AgentId, events: Vec<Event>) -> Vec<Event> {
    if world.seats().lead() != Some(agent) {
        return events;
    }
    let mut seats = world.seats().clone();
    let mut told = Vec::with_capacity(events.len());
    for event in events {
        if let Event::Run { what: RunEvent::MessageHeard { message }, .. } = &event {
            seats.lead_heard(*message);
        }
        if let Event::Message(MessageEvent::Added { kind: MessageKind::Assistant, content, .. }) = &event {
            let says = !seats.shown(agent, content).trim().is_empty();
            let position = seats.route().filter(|_| says);
            told.extend(position.map(|position| Event::Seat(SeatEvent::SpokenFor { agent, position })));
        }
        told.push(event);
    }
    told
}

/// The event for a message to an agent of the seats that did not come through [`address`].
pub(crate) fn addressed(world: &World, agent: AgentId) -> Option<Event> {
    let seats = world.seats();
    let position = seats.occupied_by(agent).map(|(position, _)| position);
    (position.is_some() || seats.lead() == Some(agent))
        .then(|| Event::Seat(SeatEvent::Addressed { agent, position, speaker: HUMAN.into() }))
}

/// Takes an entry of the human's team inbox into the log. An entry that is too long for a message is shortened.
pub(crate) fn take_reply(world: &World, key: &str, from: &str, text: &str) -> Result<Vec<Event>, Refusal> {
    let seats = world.seats();
    if seats.knows_reply(key) {
        return Err(SeatRefusal::ReplyTaken.into());
    }
    let text = within_bounds(text);
    let called =
        |(_, seat): &(Position, &Seat)| seat.called().is_some_and(|name| name.to_lowercase() == from.to_lowercase());
    let mut matching = seats.iter().filter(called);
    // Two agents with the same name cannot be told apart here.
    let seat = matching.next().filter(|_| matching.next().is_none());
    let position = seat.map(|(position, _)| position);
    let agent = seat.and_then(|(_, seat)| seat.agent).filter(|agent| living(world, *agent).is_ok());
    let taken =
        |text| Event::Seat(SeatEvent::ReplyTaken { key: key.to_owned(), from: from.to_owned(), position, text });
    Ok(match agent {
        Some(agent) => vec![taken(None), said(agent, MessageKind::Assistant, text)],
        None => vec![taken(Some(text))],
    })
}

/// A text that is too long for a message is cut, with a remark about it.
fn within_bounds(text: &str) -> String {
    if text.len() <= MAX_MESSAGE_BYTES {
        return text.to_owned();
    }
    let limit = MAX_MESSAGE_BYTES - REMARK_BYTES;
    let end = (0..=limit).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    let left_out = text.len() - end;
    format!("{}\n\n[{left_out} more bytes were left out; the inbox file has them]", &text[..end])
}

/// The events of a message to an agent. `before` says what the message is about. With `spec`, an agent without a process is started.
fn speak(
    world: &World,
    session: SessionId,
    agent: AgentId,
    before: SeatEvent,
    text: &str,
    spec: Option<&RunSpec>,
) -> Result<Vec<Event>, Refusal> {
    check_content(MessageKind::User, text)?;
    let words = [Event::Seat(before), said(agent, MessageKind::User, text.to_owned())];
    match (world.run(agent).filter(|run| run.is_open()), spec) {
        // The lead's team has the agent's process. A process of the daemon can only be left from an earlier session.
        (_, None) => Ok(words.into()),
        // The next process of the lead receives the message.
        (Some(_), _) if world.seats().awaits(agent) => Ok(words.into()),
        (Some(run), _) if matches!(run.state, RunState::Stopping { .. }) => {
            Err(Refusal::RunStopping { agent, run: run.number })
        }
        (Some(_), _) => Ok(words.into()),
        (None, Some(spec)) => {
            run::check_spec(spec)?;
            let entered = enter(world, agent, session);
            Ok(entered.into_iter().chain(words).chain([requested(world, agent, spec)]).collect())
        }
    }
}

/// The messages to the lead about killed agents of its team. The lead has their processes, so only the lead can end them. Empty if the lead
/// is killed, too, or has killed them itself.
pub(crate) fn kills_told(world: &World, killed: &[Event], by: Option<AgentId>, remark: Option<&str>) -> Vec<Event> {
    let victims: Vec<AgentId> = killed
        .iter()
        .filter_map(|event| {
            let Event::Agent { agent, what: AgentEvent::Killed { .. } } = event else { return None };
            Some(*agent)
        })
        .collect();
    let seats = world.seats();
    let hears = |lead: &AgentId| living(world, *lead).is_ok() && by != Some(*lead) && !victims.contains(lead);
    let Some(lead) = seats.lead().filter(hears) else { return Vec::new() };
    let told = victims.iter().filter_map(|agent| {
        let position = team_managed(world, *agent)?;
        let name = seats.seat(position).and_then(Seat::called).unwrap_or(NAMELESS);
        let why = remark.map(|remark| format!("\n\n{remark}")).unwrap_or_default();
        Some(said(lead, MessageKind::User, format!("[KILL AGENT: {name}, seat {position}]{why}")))
    });
    told.collect()
}

/// Sends messages to the lead that no person wrote. The lead is started if it does not run.
pub(super) fn tell_lead(
    world: &World,
    session: SessionId,
    messages: &[String],
    spec: &RunSpec,
) -> Result<Vec<Event>, Refusal> {
    let lead = world.seats().lead().filter(|lead| living(world, *lead).is_ok()).ok_or(SeatRefusal::NoLead)?;
    let Some((first, others)) = messages.split_first() else { return Ok(Vec::new()) };
    let addressed = SeatEvent::Addressed { agent: lead, position: None, speaker: HUMAN.into() };
    let told = speak(world, session, lead, addressed, first, Some(spec))?;
    others.iter().try_for_each(|message| check_content(MessageKind::User, message))?;
    let others = others.iter().map(|message| said(lead, MessageKind::User, message.clone()));
    Ok(told.into_iter().filter(|event| !matches!(event, Event::Seat(_))).chain(others).collect())
}
