//! What agents report about seats with markers, and what the daemon knows about its processes.

use super::decide::{begin, enter, named, newcomer, register, registered, requested};
use super::marker::{Marker, MarkerProblem, scan};
use super::{ListedStatus, Mode, Position, Seat, SeatListed, SeatRefusal, SeatState, Seats, next};
use crate::agent::{self, Lifecycle, living};
use crate::event::{AgentEvent, SeatEvent, SessionEvent};
use crate::outcome::Cause;
use crate::run::{self, Run, RunState};
use crate::session::EndReason;
use crate::{AgentId, Event, Refusal, SessionId, Timestamp, World};

/// The events of the markers in an agent's texts. Agents that sit in no seat have no markers. `before` are the events that were decided for
/// the same texts.
pub(crate) fn take_reports<'a>(
    world: &World,
    agent: AgentId,
    before: &[Event],
    texts: impl Iterator<Item = &'a str>,
    now: Timestamp,
) -> Vec<Event> {
    let seats = world.seats();
    let leads = seats.lead() == Some(agent);
    if !leads && seats.occupied_by(agent).is_none() {
        return Vec::new();
    }
    // The last texts of a process that led an earlier session. They are not about this session.
    if seats.awaits(agent) {
        return Vec::new();
    }
    let found: Vec<Result<Marker, MarkerProblem>> = texts.flat_map(|text| scan(text).found).collect();
    if found.is_empty() {
        return Vec::new();
    }
    // Each marker is decided in the world after the markers before it, because an agent hatches only once.
    let mut after = world.clone();
    for event in before {
        after.record(event.clone(), now);
    }
    let mut events = Vec::new();
    for found in found {
        let (shown, followed) = match found {
            Ok(marker) => (word(&marker), follow_marker(&after, agent, leads, marker, now)),
            Err(problem) => (problem.marker, Err(problem.reason)),
        };
        let followed = followed
            .unwrap_or_else(|reason| vec![Event::Seat(SeatEvent::MarkerRejected { agent, marker: shown, reason })]);
        for event in &followed {
            after.record(event.clone(), now);
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
        Marker::SeatStatus { .. } => "[AGENT_STATUS]".into(),
    }
}

fn follow_marker(
    world: &World,
    agent: AgentId,
    leads: bool,
    marker: Marker,
    now: Timestamp,
) -> Result<Vec<Event>, String> {
    let seats = world.seats();
    let managed = seats.session().is_some_and(|open| open.mode == Mode::Lead);
    match (marker, leads) {
        (_, true) if seats.session().is_none() => Err("the seats have no session".into()),
        (_, true) if !managed => Err("the daemon starts the processes of the seats itself and reports on them".into()),
        (Marker::Registered { position, identity }, false) => {
            register(world, agent, position, &identity, now).map_err(|refusal| refusal.to_string())
        }
        (Marker::Registered { position, identity }, true) => {
            let position = position.ok_or("it does not say which seat: `gridPosition` is missing")?;
            if position == Position::LEAD {
                return Err("seat 4 is the lead's own".into());
            }
            registered(world, position, seats.seat(position), &identity, now).map_err(|refusal| refusal.to_string())
        }
        (Marker::SeatStatus { .. }, false) => Err("only the lead reports on the seats".into()),
        (Marker::SeatStatus { agents, whole }, true) => {
            Ok(reported(world, agent, if whole { agents } else { completed(seats, agents) }, now))
        }
    }
}

/// Completes a report of which a part could not be read: it says nothing about the seats that it does not list, so those that are alive
/// stay alive.
fn completed(seats: &Seats, agents: Vec<SeatListed>) -> Vec<SeatListed> {
    let is_listed = |position: Position| agents.iter().any(|listed| listed.position == position);
    let unlisted = seats.iter().filter(|(position, seat)| seat.state == SeatState::Alive && !is_listed(*position));
    let stays = |(position, seat): (Position, &Seat)| SeatListed {
        position,
        name: seat.identity.name.clone(),
        status: ListedStatus::Alive,
    };
    let unlisted: Vec<SeatListed> = unlisted.map(stays).collect();
    agents.into_iter().chain(unlisted).collect()
}

/// The lead's report, and what follows for the agents of the registry: a hatching agent gets the name that the report has for it, and a
/// listed seat without an agent gets one.
fn reported(world: &World, lead: AgentId, agents: Vec<SeatListed>, now: Timestamp) -> Vec<Event> {
    let seats = world.seats();
    let mut follows = Vec::new();
    for position in Position::free() {
        let seat = seats.seat(position);
        let Some(listed) = agents.iter().find(|listed| listed.position == position) else { continue };
        if next(seat.map(|seat| seat.state), listed.input()) != Some(SeatState::Alive) {
            continue;
        }
        let name = seat.and_then(Seat::called).or_else(|| listed.chosen_name());
        match seat.and_then(|seat| seat.agent) {
            None => follows.extend(newcomer(world, position, name, now)),
            Some(agent) if seats.is_nameless(agent) => {
                follows.extend(name.map(|name| named(world, agent, name)).into_iter().flatten())
            }
            Some(_) => {}
        }
    }
    let reported = Event::Seat(SeatEvent::Reported { by: Some(lead), agents });
    [reported].into_iter().chain(follows).collect()
}

/// What follows without a command: a lead or a wake that waited begins, a team without its lead ends, an egg without a process expires, and
/// the daemon reports on its processes.
pub(crate) fn follow(world: &World) -> Vec<Event> {
    let seats = world.seats();
    if let Some((lead, (session, spec))) = seats.lead().zip(seats.lead_order())
        && living(world, lead).is_ok()
        && run::at_rest(world, lead).is_ok()
    {
        return enter(world, lead, *session).into_iter().chain([requested(world, lead, spec)]).collect();
    }
    if let Some(ends) = team_ends(world) {
        return vec![ends];
    }
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
    if let Some(egg) = seats.iter().find_map(|(_, seat)| lost_egg(world, seat)) {
        return agent::expire(world, egg);
    }
    if let Some(open) = seats.session().filter(|open| open.mode == Mode::Lead) {
        return team_follows(world, open.id);
    }
    let waits = |position: Position| seats.orders().any(|(waiting, _)| waiting == position);
    let lives = |position: Position, seat: &Seat| match (seat.state, seat.agent.and_then(|agent| world.run(agent))) {
        (state, None) => state == SeatState::Alive,
        (SeatState::Alive, Some(run)) => holds(run),
        (SeatState::Sleeping { .. }, Some(run)) => matches!(run.state, RunState::Running { .. }) && !waits(position),
        (SeatState::Hatching { .. } | SeatState::Expired, Some(_)) => false,
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
        lives(position, seat).then_some(SeatListed { position, name, status: ListedStatus::Alive })
    };
    let agents = seats.iter().filter_map(listed).collect();
    vec![Event::Seat(SeatEvent::Reported { by: None, agents })]
}

/// What follows if a lead manages the seats. Its reports say who is alive. Without the lead's process there is no team, and its next
/// process has to report again. The agents of the registry wake and sleep with their seats.
fn team_follows(world: &World, session: SessionId) -> Vec<Event> {
    let seats = world.seats();
    let has_process = seats.lead().and_then(|lead| world.run(lead)).is_some_and(|run| match run.state {
        RunState::Spawned { .. } | RunState::Running { .. } | RunState::Stopping { .. } => true,
        RunState::Starting | RunState::Parked { .. } | RunState::Ended { .. } => false,
    });
    if !has_process && seats.iter().any(|(_, seat)| seat.state == SeatState::Alive) {
        return vec![Event::Seat(SeatEvent::Reported { by: None, agents: Vec::new() })];
    }
    let follows = seats.iter().find_map(|(_, seat)| {
        // The last process of an earlier session may not have ended yet.
        let agent = seat.agent.filter(|agent| !world.run(*agent).is_some_and(Run::is_open))?;
        let what = match (seat.state, world.agent(agent)?.lifecycle) {
            (SeatState::Alive, Lifecycle::Sleeping) => AgentEvent::Woken { session: Some(session) },
            (SeatState::Alive, Lifecycle::Alive { session: own }) if own != Some(session) => AgentEvent::Slept,
            (SeatState::Sleeping { .. }, Lifecycle::Alive { .. }) => AgentEvent::Slept,
            (SeatState::Alive | SeatState::Sleeping { .. }, _)
            | (SeatState::Hatching { .. } | SeatState::Expired, _) => return None,
        };
        Some(Event::Agent { agent, what })
    });
    follows.into_iter().collect()
}

/// Repeats the report on who is alive. This changes no state.
pub(crate) fn restate(world: &World) -> Result<Vec<Event>, Refusal> {
    let seats = world.seats();
    seats.session().ok_or(SeatRefusal::NoSession)?;
    let alive = seats.iter().filter(|(_, seat)| seat.state == SeatState::Alive);
    let listed = |(position, seat): (Position, &Seat)| SeatListed {
        position,
        name: seat.identity.name.clone(),
        status: ListedStatus::Alive,
    };
    Ok(vec![Event::Seat(SeatEvent::Reported { by: None, agents: alive.map(listed).collect() })])
}

/// The agent of a seat without a name, if no process is left that could choose one.
fn lost_egg(world: &World, seat: &Seat) -> Option<AgentId> {
    let agent = seat.agent.filter(|_| matches!(seat.state, SeatState::Hatching { .. }))?;
    let hatches = matches!(world.agent(agent)?.lifecycle, Lifecycle::Hatching { .. });
    let is_left = match world.run(agent) {
        Some(run) => !run.is_open(),
        None => world.seats().session().is_none(),
    };
    (hatches && is_left).then_some(agent)
}

/// The end of a session whose lead manages the seats, if the lead was killed or its process has failed. The team has ended with the lead.
fn team_ends(world: &World) -> Option<Event> {
    let seats = world.seats();
    let open = seats.session().filter(|open| open.mode == Mode::Lead)?;
    let lead = seats.lead()?;
    let ends = |reason| Some(Event::Session { session: open.id, what: SessionEvent::Ending { reason } });
    if living(world, lead).is_err() {
        return ends(EndReason::User);
    }
    if seats.lead_order().is_some() {
        return None;
    }
    let failed = world.run(lead).is_some_and(|run| match run.state {
        RunState::Ended { cause, .. } => !matches!(cause, Cause::Completed | Cause::UserEnded),
        RunState::Starting
        | RunState::Spawned { .. }
        | RunState::Running { .. }
        | RunState::Stopping { .. }
        | RunState::Parked { .. } => false,
    });
    if failed { ends(EndReason::Failed) } else { None }
}

/// The deadline of a seat has passed.
pub(crate) fn due(world: &World, position: Position) -> Vec<Event> {
    match world.seats().seat(position).map(|seat| seat.state) {
        Some(SeatState::Hatching { .. }) => vec![Event::Seat(SeatEvent::Expired { position })],
        Some(SeatState::Sleeping { .. }) => vec![Event::Seat(SeatEvent::WakeExpired { position })],
        Some(SeatState::Alive | SeatState::Expired) | None => Vec::new(),
    }
}

/// Whether the run keeps its seat alive: it works, or will be started again after a crash or a pause.
fn holds(run: &Run) -> bool {
    run.is_open() && !matches!(run.state, RunState::Stopping { .. })
}
