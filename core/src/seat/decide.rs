//! The commands about seats: open and close their session, summon, wake, register, import.

use super::payload::escape_text;
use super::words::tell_lead;
use super::{
    Identity, MAX_SOUL_BYTES, MAX_TRAIT_BYTES, Mode, Position, Seat, SeatDocument, SeatRefusal, SeatState, WAKE_MS,
};
use crate::agent::{self, Birth, Lifecycle, Origin, living};
use crate::event::{AgentEvent, Egg, SeatEvent, WakeOrder, Waking};
use crate::history::{check_content, said};
use crate::run::{self, RunSpec};
use crate::{AgentId, Event, EventId, MessageKind, Refusal, SessionId, Timestamp, World, session};
use std::collections::BTreeSet;

/// The name of the lead's agent.
pub const LEAD_NAME: &str = "lead";
/// The label of a session of the seats.
const LABEL: &str = "seats";

/// How the lead is created, or started again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeadOrder {
    /// The id of the agent, if there is no lead yet.
    pub agent: AgentId,
    /// The first message to the lead.
    pub prompt: String,
    pub spec: RunSpec,
}

/// A seat that is to be summoned, and the agent for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EggOrder {
    pub position: Position,
    pub agent: AgentId,
    pub color: Option<String>,
    pub gender: Option<String>,
    /// The first message to the agent. Not used if a lead manages the seats.
    pub prompt: String,
}

/// A seat that is to be woken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rising {
    pub position: Position,
    /// The id of the agent, if the seat needs a new one.
    pub agent: AgentId,
    /// The first message to the agent. Not used if a lead manages the seats.
    pub prompt: String,
    pub has_soul: bool,
    pub has_transcript: bool,
    /// Messages up to this one are not completely in the transcript.
    pub untold_upto: EventId,
}

/// Opens a session of the seats. With an order, the lead is started in the session.
pub(crate) fn open(
    world: &World,
    opened: &SeatEvent,
    id: SessionId,
    lead: Option<&LeadOrder>,
) -> Result<Vec<Event>, Refusal> {
    if let Some(active) = world.seats().session() {
        return Err(SeatRefusal::Active(active.id).into());
    }
    let started = session::start(world, id, Some(LABEL), None)?;
    let lead = match lead {
        Some(order) => start_lead(world, id, order, None)?,
        None => Vec::new(),
    };
    Ok(started.into_iter().chain([Event::Seat(opened.clone())]).chain(lead).collect())
}

/// The event for a session of the seats that the user ends. None for any other session.
pub(crate) fn closing(world: &World, session: SessionId) -> Option<Event> {
    let open = world.seats().session().filter(|open| open.id == session);
    open.map(|_| Event::Seat(SeatEvent::Closing { session }))
}

/// Starts the lead, with the user's message if there is one.
pub(super) fn start_lead(
    world: &World,
    session: SessionId,
    order: &LeadOrder,
    said_to_it: Option<(&str, &str)>,
) -> Result<Vec<Event>, Refusal> {
    run::check_spec(&order.spec)?;
    check_content(MessageKind::User, &order.prompt)?;
    let known = world.seats().lead().filter(|lead| living(world, *lead).is_ok());
    let lead = known.unwrap_or(order.agent);
    // If the previous process of the lead has not ended yet, the next process waits for its end. The messages wait, too.
    let rests = known.is_none_or(|lead| run::at_rest(world, lead).is_ok());
    let entered = match known {
        Some(lead) if rests => enter(world, lead, session),
        Some(_) => Vec::new(),
        None => {
            let birth = Birth { name: Some(LEAD_NAME.into()), session: Some(session), ..Birth::of(lead) };
            let named = Event::Seat(SeatEvent::LeadNamed { agent: lead });
            born(world, &birth, Timestamp::default())?.into_iter().chain([named]).collect()
        }
    };
    let words = said_to_it.map(|(speaker, text)| {
        let speaker = speaker.to_owned();
        [
            Event::Seat(SeatEvent::Addressed { agent: lead, position: None, speaker }),
            said(lead, MessageKind::User, text.to_owned()),
        ]
    });
    let begins = match rests {
        true => requested(world, lead, &order.spec),
        false => Event::Seat(SeatEvent::LeadAwaited { session, spec: order.spec.clone() }),
    };
    Ok(entered
        .into_iter()
        .chain([said(lead, MessageKind::User, order.prompt.clone())])
        .chain(words.into_iter().flatten())
        .chain([begins])
        .collect())
}

/// Creates agents without a name in the seats that are empty or expired. If a lead manages the seats, the lead gets a message about it.
pub(crate) fn summon(
    world: &World,
    eggs: &[EggOrder],
    spec: &RunSpec,
    message: &str,
    hatch_ms: u64,
    now: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    let seats = world.seats();
    let open = seats.session().ok_or(SeatRefusal::NoSession)?;
    run::check_spec(spec)?;
    check_hatch_ms(hatch_ms)?;
    if let Some(egg) = eggs.iter().find(|egg| egg.position == Position::LEAD) {
        return Err(SeatRefusal::LeadSeat(egg.position).into());
    }
    let free = |egg: &&EggOrder| seats.seat(egg.position).is_none_or(|seat| seat.state == SeatState::Expired);
    let mut named = BTreeSet::new();
    let eggs: Vec<&EggOrder> = eggs.iter().filter(free).filter(|egg| named.insert(egg.position)).collect();
    if eggs.is_empty() {
        return Err(SeatRefusal::NothingToSummon.into());
    }
    let laid = eggs.iter().map(|egg| Egg {
        position: egg.position,
        agent: egg.agent,
        color: egg.color.clone(),
        gender: egg.gender.clone(),
        until: now.plus_ms(hatch_ms),
    });
    let mut events = vec![Event::Seat(SeatEvent::Summoned { seats: laid.collect() })];
    for egg in eggs {
        let birth = Birth { session: Some(open.id), hatch_ms: Some(hatch_ms), ..Birth::of(egg.agent) };
        let direct = Birth { prompt: Some(egg.prompt.clone()), run: Some(Box::new(spec.clone())), ..birth.clone() };
        let birth = if open.mode == Mode::Direct { direct } else { birth };
        events.extend(born(world, &birth, now)?);
    }
    if open.mode == Mode::Lead {
        events.extend(tell_lead(world, open.id, &[message.to_owned()], spec)?);
    }
    Ok(events)
}

/// Fills sleeping seats again. In a seat without a soul, a new agent is invited to choose a name.
pub(crate) fn rise(
    world: &World,
    wanted: &[Rising],
    spec: &RunSpec,
    messages: &[String],
    hatch_ms: u64,
    now: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    let seats = world.seats();
    let open = seats.session().ok_or(SeatRefusal::NoSession)?;
    run::check_spec(spec)?;
    check_hatch_ms(hatch_ms)?;
    let asleep = wanted.iter().filter_map(|rising| {
        let seat = seats.seat(rising.position)?;
        (seat.state == SeatState::ASLEEP).then_some((rising, seat))
    });
    let (mut waking, mut events) = (Vec::new(), Vec::new());
    let mut named = BTreeSet::new();
    for (rising, seat) in asleep.filter(|(rising, _)| named.insert(rising.position)) {
        if seat.has_soul() != rising.has_soul {
            return Err(SeatRefusal::Changed(rising.position).into());
        }
        check_content(MessageKind::User, &rising.prompt)?;
        // A seat without a soul gets a new agent.
        let known = seat.agent.filter(|agent| rising.has_soul && living(world, *agent).is_ok());
        let mut wake = Waking {
            position: rising.position,
            agent: known.unwrap_or(rising.agent),
            until: now.plus_ms(if rising.has_soul { WAKE_MS } else { hatch_ms }),
            has_soul: rising.has_soul,
            has_transcript: rising.has_transcript,
            untold_upto: Some(rising.untold_upto),
            order: None,
        };
        match (known, open.mode) {
            (Some(agent), Mode::Direct) => {
                let order = WakeOrder { session: open.id, prompt: rising.prompt.clone(), spec: spec.clone() };
                match run::at_rest(world, agent) {
                    Ok(()) => events.extend(begin(world, agent, &order)),
                    Err(_) => wake.order = Some(Box::new(order)),
                }
            }
            (Some(_), Mode::Lead) => {}
            (None, mode) => {
                let birth = Birth {
                    name: seat.identity.name.clone().filter(|_| rising.has_soul),
                    session: Some(open.id),
                    hatch_ms: (!rising.has_soul).then_some(hatch_ms),
                    ..Birth::of(rising.agent)
                };
                let direct =
                    Birth { prompt: Some(rising.prompt.clone()), run: Some(Box::new(spec.clone())), ..birth.clone() };
                events.extend(born(world, if mode == Mode::Direct { &direct } else { &birth }, now)?);
                if mode == Mode::Lead && rising.has_soul {
                    events.push(Event::Agent { agent: rising.agent, what: AgentEvent::Slept });
                }
            }
        }
        waking.push(wake);
    }
    if waking.is_empty() {
        return Err(SeatRefusal::NothingToWake.into());
    }
    if open.mode == Mode::Lead {
        events.extend(tell_lead(world, open.id, messages, spec)?);
    }
    Ok([Event::Seat(SeatEvent::Waking { seats: waking })].into_iter().chain(events).collect())
}

/// The agent of a seat has chosen a name.
pub(crate) fn register(
    world: &World,
    agent: AgentId,
    position: Option<Position>,
    identity: &Identity,
    now: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    living(world, agent)?;
    let (own, seat) = world.seats().occupied_by(agent).ok_or(SeatRefusal::NoSeat(agent))?;
    if let Some(other) = position.filter(|position| *position != own) {
        return Err(SeatRefusal::OtherSeat { agent, own, other }.into());
    }
    if identity.soul.as_ref().is_none_or(|soul| soul.trim().is_empty()) {
        return Err(SeatRefusal::NoSoul.into());
    }
    registered(world, own, Some(seat), identity, now)
}

/// The events with which a seat gets its name and soul.
pub(super) fn registered(
    world: &World,
    position: Position,
    seat: Option<&Seat>,
    identity: &Identity,
    now: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    if seat.is_some_and(Seat::has_soul) {
        return Err(SeatRefusal::HasSoul(position).into());
    }
    check_identity(identity)?;
    let name = identity.name.clone().ok_or(SeatRefusal::NoName)?;
    let given = seat.map(|seat| seat.identity.clone()).unwrap_or_default();
    let identity = Identity {
        color: identity.color.clone().or(given.color),
        gender: identity.gender.clone().or(given.gender),
        ..identity.clone()
    };
    let agent = seat.and_then(|seat| seat.agent).filter(|agent| living(world, *agent).is_ok());
    // A seat that was not summoned here has no agent yet. An agent of the lead's team sits there, so an agent is created for it.
    let newcomer = match seat.and_then(|seat| seat.agent) {
        None => newcomer(world, position, Some(&name), now),
        Some(_) => Vec::new(),
    };
    let agent_events = agent.map(|agent| named(world, agent, &name)).unwrap_or_default();
    // The event of the seat comes first: once the seat has a name, its agent may hatch.
    let registered = Event::Seat(SeatEvent::Registered { position, identity });
    Ok([registered].into_iter().chain(agent_events).chain(newcomer).collect())
}

/// The agent of a seat gets its name. If the agent was hatching, it is alive now.
pub(super) fn named(world: &World, agent: AgentId, name: &str) -> Vec<Event> {
    let hatches = world.agent(agent).is_some_and(|it| matches!(it.lifecycle, Lifecycle::Hatching { .. }));
    let hatched = hatches.then_some(AgentEvent::Hatched);
    let renamed = AgentEvent::Renamed { name: Some(name.to_owned()) };
    [renamed].into_iter().chain(hatched).map(|what| Event::Agent { agent, what }).collect()
}

/// Creates an agent for a seat of the lead's team that has no agent here. The lead has the agent's process.
pub(super) fn newcomer(world: &World, position: Position, name: Option<&str>, now: Timestamp) -> Vec<Event> {
    let Some(session) = world.seats().session().map(|open| open.id) else { return Vec::new() };
    let agent = newcomer_id(world, session, position);
    let name = name.filter(|name| agent::check_name(Some(name)).is_ok()).map(str::to_owned);
    let birth = Birth { name, session: Some(session), ..Birth::of(agent) };
    let born = born(world, &birth, now).unwrap_or_default();
    let filled = (!born.is_empty()).then_some(Event::Seat(SeatEvent::Filled { position, agent }));
    born.into_iter().chain(filled).collect()
}

/// An id for such an agent. It is made from the session's id, because the core has no randomness, and differs for each seat and event.
fn newcomer_id(world: &World, session: SessionId, position: Position) -> AgentId {
    let id = |round: u64| {
        let mut bytes = *session.as_bytes();
        let moment = (world.head().0 << 8) ^ u64::from(position.number() + 1) ^ round.rotate_right(16);
        for (byte, mixed) in bytes[8..].iter_mut().zip(moment.to_be_bytes()) {
            *byte ^= mixed;
        }
        AgentId::from_bytes(bytes)
    };
    (0..).map(id).find(|agent| !world.is_taken(*agent)).expect("there are more ids than agents")
}

/// Merges documents from elsewhere into the seats.
pub(crate) fn import(world: &World, documents: &[SeatDocument]) -> Result<Vec<Event>, Refusal> {
    for document in documents {
        if document.position == Position::LEAD {
            return Err(SeatRefusal::LeadSeat(document.position).into());
        }
        document.births.iter().try_for_each(|born| check_identity(&born.identity()))?;
    }
    let imported = |document| Event::Seat(SeatEvent::Imported { document });
    Ok(world.seats().merged_with(documents).into_iter().map(imported).collect())
}

/// Starts the process of a woken agent. The agent does not continue its old conversation: the prompt contains what it should know.
pub(super) fn begin(world: &World, agent: AgentId, order: &WakeOrder) -> Vec<Event> {
    let words = [
        said(agent, MessageKind::Clear, String::new()),
        said(agent, MessageKind::User, order.prompt.clone()),
        requested(world, agent, &order.spec),
    ];
    enter(world, agent, order.session).into_iter().chain(words).collect()
}

/// An agent joins a session.
pub(crate) fn enter(world: &World, agent: AgentId, session: SessionId) -> Vec<Event> {
    let event = |what| Event::Agent { agent, what };
    let woken = AgentEvent::Woken { session: Some(session) };
    match world.agent(agent).map(|it| it.lifecycle) {
        Some(Lifecycle::Sleeping) => vec![event(woken)],
        Some(Lifecycle::Alive { session: own }) if own != Some(session) => {
            vec![event(AgentEvent::Slept), event(woken)]
        }
        Some(
            Lifecycle::Alive { .. } | Lifecycle::Hatching { .. } | Lifecycle::Expired { .. } | Lifecycle::Dead { .. },
        )
        | None => Vec::new(),
    }
}

/// Creates an agent below agent 0 that inherits nothing.
fn born(world: &World, birth: &Birth, now: Timestamp) -> Result<Vec<Event>, Refusal> {
    let root = world.root().ok_or(SeatRefusal::NoSession)?;
    agent::check_name(birth.name.as_deref())?;
    if world.is_taken(birth.agent) {
        return Err(Refusal::AgentExists(birth.agent));
    }
    if let Some(prompt) = &birth.prompt {
        check_content(MessageKind::User, prompt)?;
    }
    Ok(agent::born(root, Origin { agent: root, upto: None }, birth, now))
}

pub(super) fn requested(world: &World, agent: AgentId, spec: &RunSpec) -> Event {
    let run = world.run(agent).map_or(0, |last| last.number) + 1;
    Event::Agent { agent, what: AgentEvent::RunRequested { run, spec: spec.clone() } }
}

fn check_hatch_ms(ms: u64) -> Result<(), Refusal> {
    match (1..=agent::MAX_HATCH_MS).contains(&ms) {
        true => Ok(()),
        false => Err(Refusal::HatchOutOfRange { ms }),
    }
}

fn check_identity(identity: &Identity) -> Result<(), Refusal> {
    agent::check_name(identity.name.as_deref())?;
    // The length in the payload of a wake counts, because the payload always contains the whole soul.
    let bytes = identity.soul.as_ref().map(|soul| escape_text(soul).len());
    if let Some(bytes) = bytes.filter(|bytes| *bytes > MAX_SOUL_BYTES) {
        return Err(SeatRefusal::SoulTooLong { bytes }.into());
    }
    let face = identity.face_variant.as_ref();
    let traits = [
        ("color", identity.color.as_ref()),
        ("colorName", identity.color_name.as_ref()),
        ("gender", identity.gender.as_ref()),
        ("faceVariant.eyes", face.map(|face| &face.eyes)),
        ("faceVariant.mouth", face.map(|face| &face.mouth)),
    ];
    for (field, text) in traits {
        if let Some(bytes) = text.map(String::len).filter(|bytes| *bytes > MAX_TRAIT_BYTES) {
            return Err(SeatRefusal::TraitTooLong { field, bytes }.into());
        }
    }
    Ok(())
}

impl From<SeatRefusal> for Refusal {
    fn from(refusal: SeatRefusal) -> Self {
        Self::Seat(refusal)
    }
}
