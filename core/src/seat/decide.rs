//! What can be asked of seats, what agents say about them, and what follows by itself.

use super::marker::{Marker, scan};
use super::{
    Document, HATCH_MS, Identity, Listed, ListedStatus, MAX_SAID_CHARS, MAX_SOUL_BYTES, MAX_SPEAKER_BYTES,
    MAX_TRAIT_BYTES, Mode, Position, Seat, SeatRefusal, SeatState, Seats, WAKE_MS,
};
use crate::agent::{self, Birth, Lifecycle, Origin, living};
use crate::event::{AgentEvent, Egg, SeatEvent, WakeOrder, Waking};
use crate::history::{check_content, said};
use crate::outcome::Cause;
use crate::run::{self, Run, RunSpec, RunState};
use crate::{AgentId, Event, MessageKind, Refusal, SessionId, Timestamp, World, session};
use std::collections::BTreeSet;

/// The name of an agent that leads.
const LEAD_NAME: &str = "lead";
/// The label of a session of the seats.
const LABEL: &str = "seats";
/// Who speaks if nothing else is said.
const HUMAN: &str = "human";

/// How the lead is created or started again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeadOrder {
    /// The id of the agent, if there is no lead yet.
    pub agent: AgentId,
    /// What it is told first.
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
    /// What the agent is told. Not used if a lead manages the seats.
    pub prompt: String,
}

/// A seat that is to be woken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rising {
    pub position: Position,
    /// The id of the agent, if the seat needs a new one.
    pub agent: AgentId,
    /// What the agent is told. Not used if a lead manages the seats.
    pub prompt: String,
    pub has_soul: bool,
    pub has_transcript: bool,
}

/// Opens a session of the seats. With an order, the lead is started in it.
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

/// A person ends a session of the seats.
pub(crate) fn closing(world: &World, session: SessionId) -> Option<Event> {
    let open = world.seats().session().filter(|open| open.id == session);
    open.map(|_| Event::Seat(SeatEvent::Closing { session }))
}

/// Starts the lead, with what a person says to it, if anything.
fn start_lead(
    world: &World,
    session: SessionId,
    order: &LeadOrder,
    said_to_it: Option<(&str, &str)>,
) -> Result<Vec<Event>, Refusal> {
    run::check_spec(&order.spec)?;
    check_content(MessageKind::User, &order.prompt)?;
    let rests = |lead: &AgentId| living(world, *lead).is_ok() && run::at_rest(world, *lead).is_ok();
    let known = world.seats().lead().filter(rests);
    let lead = known.unwrap_or(order.agent);
    let entered = match known {
        Some(lead) => enter(world, lead, session),
        // The last lead is gone, or its process is not gone yet.
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
    Ok(entered
        .into_iter()
        .chain([said(lead, MessageKind::User, order.prompt.clone())])
        .chain(words.into_iter().flatten())
        .chain([requested(world, lead, &order.spec)])
        .collect())
}

/// Creates agents without a name in the seats that are empty or expired. If a lead manages the seats, it is told so.
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
    if !(1..=agent::MAX_HATCH_MS).contains(&hatch_ms) {
        return Err(Refusal::HatchOutOfRange { ms: hatch_ms });
    }
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
        events.extend(tell_lead(world, open.id, message, spec)?);
    }
    Ok(events)
}

/// Fills sleeping seats again. A seat without a soul is a birth.
pub(crate) fn rise(
    world: &World,
    wanted: &[Rising],
    spec: &RunSpec,
    message: &str,
    now: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    let seats = world.seats();
    let open = seats.session().ok_or(SeatRefusal::NoSession)?;
    run::check_spec(spec)?;
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
        // Who was never born starts as somebody else.
        let known = seat.agent.filter(|agent| rising.has_soul && living(world, *agent).is_ok());
        let mut wake = Waking {
            position: rising.position,
            agent: known.unwrap_or(rising.agent),
            until: now.plus_ms(if rising.has_soul { WAKE_MS } else { HATCH_MS }),
            has_soul: rising.has_soul,
            has_transcript: rising.has_transcript,
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
                    hatch_ms: (!rising.has_soul).then_some(HATCH_MS),
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
        events.extend(tell_lead(world, open.id, message, spec)?);
    }
    Ok([Event::Seat(SeatEvent::Waking { seats: waking })].into_iter().chain(events).collect())
}

/// The agent of a seat has chosen a name.
pub(crate) fn register(
    world: &World,
    agent: AgentId,
    position: Option<Position>,
    identity: &Identity,
) -> Result<Vec<Event>, Refusal> {
    living(world, agent)?;
    let (own, seat) = world.seats().occupied_by(agent).ok_or(SeatRefusal::NoSeat(agent))?;
    if let Some(other) = position.filter(|position| *position != own) {
        return Err(SeatRefusal::OtherSeat { agent, own, other }.into());
    }
    if identity.soul.as_ref().is_none_or(|soul| soul.trim().is_empty()) {
        return Err(SeatRefusal::NoSoul.into());
    }
    registered(world, own, Some(seat), identity)
}

/// The events of a registration.
fn registered(
    world: &World,
    position: Position,
    seat: Option<&Seat>,
    identity: &Identity,
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
    let lifecycle = agent.and_then(|agent| world.agent(agent)).map(|it| it.lifecycle);
    let agent_events = agent.into_iter().flat_map(|agent| {
        let hatched = matches!(lifecycle, Some(Lifecycle::Hatching { .. })).then_some(AgentEvent::Hatched);
        [AgentEvent::Renamed { name: Some(name.clone()) }]
            .into_iter()
            .chain(hatched)
            .map(move |what| Event::Agent { agent, what })
            .collect::<Vec<_>>()
    });
    let agent_events: Vec<Event> = agent_events.collect();
    // The seat first: once it has a name, its agent may hatch.
    Ok([Event::Seat(SeatEvent::Registered { position, identity })].into_iter().chain(agent_events).collect())
}

/// Follows the markers in the words of an agent. Agents that sit in no seat have none.
pub(crate) fn heed<'a>(
    world: &World,
    agent: AgentId,
    texts: impl Iterator<Item = &'a str>,
    now: Timestamp,
) -> Vec<Event> {
    let seats = world.seats();
    let leads = seats.lead() == Some(agent);
    if !leads && seats.occupied_by(agent).is_none() {
        return Vec::new();
    }
    // Later markers of one text rest on what the earlier ones have changed.
    let mut after = seats.clone();
    let mut events = Vec::new();
    for found in texts.flat_map(|text| scan(text).found) {
        let (marker, problem) = match found {
            Ok(marker) => (Some(marker), None),
            Err(problem) => (None, Some(problem)),
        };
        let (shown, followed) = match (marker, problem) {
            (Some(marker), _) => (word(&marker), follow_marker(world, &after, agent, leads, marker)),
            (None, Some(problem)) => (problem.marker, Err(problem.reason)),
            (None, None) => continue,
        };
        let followed = followed
            .unwrap_or_else(|reason| vec![Event::Seat(SeatEvent::MarkerRejected { agent, marker: shown, reason })]);
        for event in &followed {
            if let Event::Seat(what) = event {
                after.apply(now, what);
            }
        }
        events.extend(followed);
    }
    events
}

fn word(marker: &Marker) -> String {
    match marker {
        Marker::Registered { identity, .. } => {
            format!("[AGENT_REGISTERED] {}", identity.name.as_deref().unwrap_or_default())
        }
        Marker::Status { .. } => "[AGENT_STATUS]".into(),
    }
}

fn follow_marker(
    world: &World,
    seats: &Seats,
    agent: AgentId,
    leads: bool,
    marker: Marker,
) -> Result<Vec<Event>, String> {
    let managed = seats.session().is_some_and(|open| open.mode == Mode::Lead);
    match (marker, leads) {
        (_, true) if !managed => Err("the daemon starts the processes of the seats itself and reports on them".into()),
        (Marker::Registered { position, identity }, false) => {
            // The copy of the seats knows what this text has registered already.
            if seats.occupied_by(agent).is_some_and(|(_, seat)| seat.has_soul()) {
                return Err("its seat has a soul, and a soul is written once".into());
            }
            register(world, agent, position, &identity).map_err(|refusal| refusal.to_string())
        }
        (Marker::Registered { position, identity }, true) => {
            let position = position.ok_or("it does not say which seat: `gridPosition` is missing")?;
            if position == Position::LEAD {
                return Err("seat 4 is the lead's own".into());
            }
            registered(world, position, seats.seat(position), &identity).map_err(|refusal| refusal.to_string())
        }
        (Marker::Status { .. }, false) => Err("only the lead reports on the seats".into()),
        (Marker::Status { agents }, true) => Ok(reported(world, seats, agent, agents)),
    }
}

/// The lead's report, and what it means for the agents of the registry that have no process here.
fn reported(world: &World, seats: &Seats, lead: AgentId, agents: Vec<Listed>) -> Vec<Event> {
    let lives = |position: Position| {
        agents.iter().any(|listed| listed.position == position && listed.status != ListedStatus::Shutdown)
    };
    let session = seats.session().map(|open| open.id);
    let follows = seats.iter().filter_map(|(position, seat)| {
        let agent = seat.agent?;
        // A process that the daemon holds says for itself whether it lives.
        if world.run(agent).is_some() {
            return None;
        }
        let what = match (world.agent(agent)?.lifecycle, lives(position)) {
            (Lifecycle::Alive { .. }, false) => AgentEvent::Slept,
            (Lifecycle::Sleeping, true) => AgentEvent::Woken { session },
            (Lifecycle::Alive { .. }, true)
            | (Lifecycle::Sleeping, false)
            | (Lifecycle::Hatching { .. } | Lifecycle::Expired { .. } | Lifecycle::Dead { .. }, _) => return None,
        };
        Some(Event::Agent { agent, what })
    });
    let follows: Vec<Event> = follows.collect();
    [Event::Seat(SeatEvent::Reported { by: Some(lead), agents })].into_iter().chain(follows).collect()
}

/// Says something to the agent of a seat, or to the lead. With `via_lead` the lead is asked to pass it on.
pub(crate) fn address(
    world: &World,
    to: Option<Position>,
    text: &str,
    speaker: &str,
    lead: &LeadOrder,
    via_lead: bool,
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
    match to {
        None => match living_lead {
            Some(agent) => speak(world, Some(open.id), agent, None, text, speaker, Some(&lead.spec)),
            None => start_lead(world, open.id, lead, Some((speaker, text))),
        },
        Some(position) => {
            let seat = seats.seat(position).ok_or(SeatRefusal::Empty(position))?;
            if via_lead {
                let agent = living_lead.ok_or(SeatRefusal::NoLead)?;
                let name = seat.called().unwrap_or("nameless");
                let same = |(_, other): &(Position, &Seat)| other.called().unwrap_or("nameless") == name;
                // Two agents of one name are told apart by their seats.
                let routed = match seats.iter().filter(same).count() {
                    1 => format!("[ROUTE TO AGENT: {name}]\n\n{text}"),
                    _ => format!("[ROUTE TO AGENT: {name}, seat {position}]\n\n{text}"),
                };
                return speak(world, Some(open.id), agent, Some(position), &routed, speaker, Some(&lead.spec));
            }
            let agent = seat.agent.filter(|agent| living(world, *agent).is_ok()).ok_or(SeatRefusal::Empty(position))?;
            // An agent of a team has no process here: its words go into its inbox file.
            let spec = (open.mode == Mode::Direct || world.run(agent).is_some()).then_some(&lead.spec);
            speak(world, Some(open.id), agent, Some(position), text, speaker, spec)
        }
    }
}

/// For a message that is said in the general way: who of the seats it is for.
pub(crate) fn addressed(world: &World, agent: AgentId) -> Option<Event> {
    let seats = world.seats();
    let position = seats.occupied_by(agent).map(|(position, _)| position);
    (position.is_some() || seats.lead() == Some(agent))
        .then(|| Event::Seat(SeatEvent::Addressed { agent, position, speaker: HUMAN.into() }))
}

/// Takes in an entry of the human's team inbox.
pub(crate) fn take_reply(world: &World, key: &str, from: &str, text: &str) -> Result<Vec<Event>, Refusal> {
    let seats = world.seats();
    if seats.knows_reply(key) {
        return Err(SeatRefusal::ReplyTaken.into());
    }
    check_content(MessageKind::Assistant, text)?;
    let called =
        |(_, seat): &(Position, &Seat)| seat.called().is_some_and(|name| name.to_lowercase() == from.to_lowercase());
    let mut matching = seats.iter().filter(called);
    // Two agents of one name cannot be told apart here.
    let seat = matching.next().filter(|_| matching.next().is_none());
    let position = seat.map(|(position, _)| position);
    let agent = seat.and_then(|(_, seat)| seat.agent).filter(|agent| living(world, *agent).is_ok());
    let taken =
        |text| Event::Seat(SeatEvent::ReplyTaken { key: key.to_owned(), from: from.to_owned(), position, text });
    Ok(match agent {
        Some(agent) => vec![taken(None), said(agent, MessageKind::Assistant, text.to_owned())],
        None => vec![taken(Some(text.to_owned()))],
    })
}

/// Merges documents from elsewhere into the seats.
pub(crate) fn import(world: &World, documents: &[Document]) -> Result<Vec<Event>, Refusal> {
    for document in documents {
        if document.position == Position::LEAD {
            return Err(SeatRefusal::LeadSeat(document.position).into());
        }
        document.births.iter().try_for_each(|born| check_identity(&born.identity()))?;
    }
    let imported = |document| Event::Seat(SeatEvent::Imported { document });
    Ok(world.seats().merged_with(documents).into_iter().map(imported).collect())
}

/// What follows by itself: a wake that waited begins, and the daemon reports on the processes that it holds.
pub(crate) fn follow(world: &World) -> Vec<Event> {
    let seats = world.seats();
    if seats.is_empty() {
        return Vec::new();
    }
    let ready = seats.orders().find_map(|(position, order)| {
        let agent = seats.seat(position)?.agent?;
        run::at_rest(world, agent).is_ok().then_some((agent, order))
    });
    if let Some((agent, order)) = ready {
        return begin(world, agent, order);
    }
    let leaderless = is_leaderless(world);
    let waits = |position: Position| seats.orders().any(|(waiting, _)| waiting == position);
    let lives = |position: Position, seat: &Seat| {
        match (seat.state, seat.agent.and_then(|agent| world.run(agent))) {
            // Managed by the lead: the lead says so, as long as it lives.
            (state, None) => state == SeatState::Alive && !leaderless,
            (SeatState::Alive, Some(run)) => holds(run),
            (SeatState::Sleeping { .. }, Some(run)) => {
                matches!(run.state, RunState::Running { .. }) && !waits(position)
            }
            (SeatState::Hatching { .. } | SeatState::Expired, Some(_)) => false,
        }
    };
    let differs = |(position, seat): (Position, &Seat)| match seat.state {
        SeatState::Alive => !lives(position, seat),
        SeatState::Sleeping { .. } => lives(position, seat),
        SeatState::Hatching { .. } | SeatState::Expired => false,
    };
    if !seats.iter().any(differs) {
        return Vec::new();
    }
    let listed = |(position, seat): (Position, &Seat)| {
        let name = seat.identity.name.clone();
        lives(position, seat).then_some(Listed { position, name, status: ListedStatus::Alive })
    };
    let agents = seats.iter().filter_map(listed).collect();
    vec![Event::Seat(SeatEvent::Reported { by: None, agents })]
}

/// Whether the lead of an open session was killed or its process has failed for good. Its team has ended with it.
fn is_leaderless(world: &World) -> bool {
    let seats = world.seats();
    let Some(lead) = seats.lead().filter(|_| seats.session().is_some_and(|open| open.mode == Mode::Lead)) else {
        return false;
    };
    let failed = world.run(lead).is_some_and(|run| match run.state {
        RunState::Ended { cause, .. } => !matches!(cause, Cause::Completed | Cause::UserEnded),
        RunState::Starting
        | RunState::Spawned { .. }
        | RunState::Running { .. }
        | RunState::Stopping { .. }
        | RunState::Parked { .. } => false,
    });
    failed || living(world, lead).is_err()
}

/// The time of a seat is up.
pub(crate) fn due(world: &World, position: Position) -> Vec<Event> {
    match world.seats().seat(position).map(|seat| seat.state) {
        Some(SeatState::Hatching { .. }) => vec![Event::Seat(SeatEvent::Expired { position })],
        Some(SeatState::Sleeping { .. }) => vec![Event::Seat(SeatEvent::WakeExpired { position })],
        Some(SeatState::Alive | SeatState::Expired) | None => Vec::new(),
    }
}

/// A process that works, or is started again after a crash or a pause, keeps its seat alive.
fn holds(run: &Run) -> bool {
    run.is_open() && !matches!(run.state, RunState::Stopping { .. })
}

/// The process of a woken agent begins. It starts without its old conversation: what it knows is in the prompt.
fn begin(world: &World, agent: AgentId, order: &WakeOrder) -> Vec<Event> {
    let words = [
        said(agent, MessageKind::Clear, String::new()),
        said(agent, MessageKind::User, order.prompt.clone()),
        requested(world, agent, &order.spec),
    ];
    enter(world, agent, order.session).into_iter().chain(words).collect()
}

/// Says something to an agent. With `spec`, an agent without a process is started.
fn speak(
    world: &World,
    session: Option<SessionId>,
    agent: AgentId,
    position: Option<Position>,
    text: &str,
    speaker: &str,
    spec: Option<&RunSpec>,
) -> Result<Vec<Event>, Refusal> {
    check_content(MessageKind::User, text)?;
    let words = [
        Event::Seat(SeatEvent::Addressed { agent, position, speaker: speaker.to_owned() }),
        said(agent, MessageKind::User, text.to_owned()),
    ];
    match (world.run(agent).filter(|run| run.is_open()), spec) {
        (Some(run), _) if matches!(run.state, RunState::Stopping { .. }) => {
            Err(Refusal::RunStopping { agent, run: run.number })
        }
        (Some(_), _) | (None, None) => Ok(words.into()),
        (None, Some(spec)) => {
            run::check_spec(spec)?;
            let entered = session.map(|session| enter(world, agent, session)).unwrap_or_default();
            Ok(entered.into_iter().chain(words).chain([requested(world, agent, spec)]).collect())
        }
    }
}

/// Tells the lead something that no person said. It is started if it does not run.
fn tell_lead(world: &World, session: SessionId, message: &str, spec: &RunSpec) -> Result<Vec<Event>, Refusal> {
    let lead = world.seats().lead().filter(|lead| living(world, *lead).is_ok()).ok_or(SeatRefusal::NoLead)?;
    let told = speak(world, Some(session), lead, None, message, HUMAN, Some(spec))?;
    Ok(told.into_iter().filter(|event| !matches!(event, Event::Seat(_))).collect())
}

/// An agent takes part in a session.
fn enter(world: &World, agent: AgentId, session: SessionId) -> Vec<Event> {
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

/// A new agent below agent 0 that inherits nothing.
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

fn requested(world: &World, agent: AgentId, spec: &RunSpec) -> Event {
    let run = world.run(agent).map_or(0, |last| last.number) + 1;
    Event::Agent { agent, what: AgentEvent::RunRequested { run, spec: spec.clone() } }
}

fn check_identity(identity: &Identity) -> Result<(), Refusal> {
    agent::check_name(identity.name.as_deref())?;
    if let Some(bytes) = identity.soul.as_ref().map(|soul| soul.len()).filter(|bytes| *bytes > MAX_SOUL_BYTES) {
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
