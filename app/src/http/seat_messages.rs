//! Messages to the agents of seats, and their threads.

use super::Api;
use super::agents::find;
use super::error::{ApiError, Loose, PathParts};
use super::once::{CallerId, CarriedOut, Once};
use super::seats::{fill_again, last, lead_order, mail_of, positions, unread};
use crate::clock;
use crate::config::Dialect;
use crate::engine::SubmitError;
use crate::seats::{self, ThreadLine};
use crate::team_inbox;
use crate::team_outbox::{PostStage, Posted};
use crate::wake_payload;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use hatchery_core::event::SeatEvent;
use hatchery_core::run::RunOptions;
use hatchery_core::seat::{
    self, LEAD_NAME, MAX_SAID_CHARS, Position, Reach, Seat, SeatDocument, SeatRefusal, SeatState,
};
use hatchery_core::{AgentId, Command, Event, EventId, Record, Refusal, World};
use serde::{Deserialize, Serialize};

/// The name of the lead in the original program of the seats.
const JULIAN: &str = "Julian";

#[derive(Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SeatMessage {
    /// An id that the caller has chosen. A repeated request with the same id and content gets the same answer, and is carried out only
    /// once. The latest 10,000 ids of a project are remembered.
    id: Option<CallerId>,
    /// At most 100,000 characters.
    #[serde(default)]
    message: String,
    /// The name of an agent in a seat, or of the lead. If no target is given, the message is for the lead.
    target_agent: Option<String>,
    /// The seat; overrides the name.
    target_grid_position: Option<u64>,
    /// The name of the speaker.
    speaker_name: Option<String>,
    /// How the lead is run, if the message starts it.
    #[serde(default)]
    with: RunOptions,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SeatMessageAnswer {
    /// The event of the message, or of the wake.
    pub event_id: EventId,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ThreadView {
    /// The last event that this answer includes. A client that follows the log after this event misses nothing.
    pub head: EventId,
    pub agent: AgentId,
    pub name: Option<String>,
    /// The newest messages, in order.
    pub messages: Vec<ThreadLine>,
}

/// Say something to an agent in a seat, or to the lead.
#[utoipa::path(post, path = "/api/send", operation_id = "address_seat", tag = "seats", request_body = SeatMessage,
    responses((status = 202, description = "It is on its way", body = SeatMessageAnswer)))]
pub async fn say(
    State(api): State<Api>,
    body: Loose<SeatMessage>,
) -> Result<(StatusCode, Json<SeatMessageAnswer>), ApiError> {
    let once = Once::of(body.0.id.as_ref(), "send", "", &body.0)?;
    if let Some(records) = once.answered_by(&api).await? {
        return Ok((StatusCode::ACCEPTED, Json(answer(&records))));
    }
    let SeatMessage { id: _, message, target_agent, target_grid_position, speaker_name, with } = body.0;
    let world = api.handle.view();
    world.seats().session().ok_or(Refusal::Seat(SeatRefusal::NoSession))?;
    let asks_to_wake = message.starts_with("[WAKE AGENTS]");
    if !asks_to_wake {
        check_said(&message)?;
    }
    let to = target(&world, api.defaults.seats.dialect, target_grid_position, target_agent.as_deref())?;
    if to.is_none() && asks_to_wake {
        // Clients of the original program build the payloads themselves. The daemon has the souls and the transcripts, and limits the
        // length of the messages to the lead and the agents, so the length of this message does not matter. Only souls that the daemon does
        // not have are taken from it.
        take_over(&api, &message).await?;
        let named = Some(wake_payload::positions(&message)).filter(|named| !named.is_empty());
        let records = fill_again(&api, &once, named, with).await?;
        return Ok((StatusCode::ACCEPTED, Json(answer(&records))));
    }
    let records = deliver(&api, &once, to, message, speaker_name, with).await?;
    Ok((StatusCode::ACCEPTED, Json(answer(&records))))
}

/// The same as `/api/send`, for older clients of the original program.
#[utoipa::path(post, path = "/api/chat", operation_id = "chat", tag = "seats", request_body = SeatMessage,
    responses((status = 202, description = "It is on its way", body = SeatMessageAnswer)))]
pub async fn chat(
    state: State<Api>,
    body: Loose<SeatMessage>,
) -> Result<(StatusCode, Json<SeatMessageAnswer>), ApiError> {
    say(state, body).await
}

/// Takes over the agents of a message whose seats have no soul and no agent here.
async fn take_over(api: &Api, message: &str) -> Result<(), ApiError> {
    let world = api.handle.view();
    let is_unknown = |document: &SeatDocument| {
        let free = |seat: &Seat| !seat.has_soul() && matches!(seat.state, SeatState::ASLEEP | SeatState::Expired);
        world.seats().seat(document.position).is_none_or(free)
    };
    let documents: Vec<SeatDocument> = wake_payload::documents(message).into_iter().filter(is_unknown).collect();
    for document in documents {
        let position = document.position;
        match api.handle.submit(Command::ImportIdentities { documents: vec![document] }).await {
            // A soul that cannot be taken over does not prevent the wake.
            Err(SubmitError::Refused(refusal)) => {
                tracing::warn!(%position, %refusal, "a soul of a client is not taken over")
            }
            other => drop(other?),
        }
    }
    Ok(())
}

fn answer(records: &[Record]) -> SeatMessageAnswer {
    let found = records.iter().find_map(|record| match record.event {
        Event::Seat(SeatEvent::Addressed { .. }) => Some(record.id.next()),
        Event::Seat(SeatEvent::Waking { .. }) => Some(record.id),
        _ => None,
    });
    SeatMessageAnswer { event_id: found.unwrap_or_else(|| last(records)) }
}

/// Sends a message to the agent of a seat, or to the lead: to the process, into the inbox file, or through the lead.
pub(super) async fn deliver(
    api: &Api,
    once: &Once,
    to: Option<Position>,
    text: String,
    speaker: Option<String>,
    with: RunOptions,
) -> Result<Vec<Record>, ApiError> {
    let settings = &api.defaults.seats;
    let speaker = speaker.unwrap_or_else(|| settings.human.clone());
    let reach = to.map(|position| seat::reach(&api.handle.view(), position)).transpose().map_err(Refusal::Seat)?;
    let posted = match reach {
        Some(Reach::Inbox { agent, name }) => team_inbox::can_reach(settings, &name).await.then(|| Posted {
            agent,
            name,
            from: speaker.clone(),
            text: text.clone(),
            timestamp: clock::written(clock::now()),
            after: api.handle.head(),
            message: None,
            stage: PostStage::Said,
        }),
        Some(Reach::Process(_) | Reach::Lead) | None => None,
    };
    let lead = Box::new(lead_order(api, with)?);
    let command = move |no_inbox| Command::AddressSeat {
        to,
        text: text.clone(),
        speaker: speaker.clone(),
        lead: lead.clone(),
        no_inbox,
    };
    let Some(posted) = posted else { return once.submit(api, command(true)).await };
    // First the log, then the file. If the daemon is killed between the two, the next daemon writes the file.
    let pending = api.outbox.write_down(posted).await.map_err(|error| {
        let what = format_args!("the message cannot be written down: {error}");
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "not_written", what, "look at the free space of the disk")
    })?;
    let (api, once, settings) = (api.clone(), *once, settings.clone());
    // In a task of its own, because a client that disconnects must not stop it halfway.
    let saying = tokio::spawn(async move {
        let said = once.try_submit(&api, command(false)).await;
        match said {
            Ok(CarriedOut::Now(records)) => {
                api.outbox.bring(&settings, pending, answer(&records).event_id).await;
                Ok(records)
            }
            Ok(CarriedOut::Before(records)) => {
                pending.done().await;
                Ok(records)
            }
            Err(error) => {
                pending.done().await;
                Err(error)
            }
        }
    });
    saying.await.map_err(|error| {
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "not_said", error, "look into .hatchery/daemon.log")
    })?
}

/// Show what was said to an agent and what it said, over all its sessions.
#[utoipa::path(get, path = "/api/agents/{agent}/thread", operation_id = "thread", tag = "seats", params(("agent" = String, Path, description = "An id, the beginning of one, or a name")),
    responses((status = 200, description = "The newest messages", body = ThreadView)))]
pub async fn thread(State(api): State<Api>, reference: PathParts<String>) -> Result<Json<ThreadView>, ApiError> {
    let agent = find(&api, &reference.0)?;
    let world = api.handle.view();
    let mail = mail_of(&api, [agent].into_iter()).await?;
    let messages = seats::thread(&api.handle, agent, &api.defaults.seats.human, &mail).await.map_err(unread)?;
    let name = world.agent(agent).and_then(|it| it.name.clone());
    Ok(Json(ThreadView { head: world.head(), agent, name, messages }))
}

/// Show what was said to the agents of a seat and what they said, over all sessions. Seat 4 is the lead's.
#[utoipa::path(get, path = "/api/seats/{seat}/thread", operation_id = "seat_thread", tag = "seats", params(("seat" = u64, Path, description = "0 to 8")),
    responses((status = 200, description = "The newest messages", body = ThreadView)))]
pub async fn seat_thread(State(api): State<Api>, number: PathParts<u64>) -> Result<Json<ThreadView>, ApiError> {
    let world = api.handle.view();
    let found = positions(Some(vec![number.0]))?.unwrap_or_default();
    let position = found.first().copied().unwrap_or(Position::LEAD);
    let of_lead = world.seats().lead().filter(|_| position == Position::LEAD);
    let agent = of_lead.or_else(|| seats::last_occupant(&world, position));
    let agent = agent.ok_or(Refusal::Seat(SeatRefusal::Empty(position)))?;
    let mail = mail_of(&api, world.seats().occupants(position)).await?;
    let mut messages = Vec::new();
    for occupant in world.seats().occupants(position) {
        messages.extend(seats::thread(&api.handle, occupant, &api.defaults.seats.human, &mail).await.map_err(unread)?);
    }
    messages.sort_by_key(|line| line.id);
    // Mail from one of these agents to another is in the threads of both.
    messages.dedup_by_key(|line| line.id);
    messages.drain(..messages.len().saturating_sub(seats::MAX_THREAD));
    let name = world.agent(agent).and_then(|it| it.name.clone());
    Ok(Json(ThreadView { head: world.head(), agent, name, messages }))
}

/// The seat that a message is for. None: the lead.
fn target(
    world: &World,
    dialect: Dialect,
    number: Option<u64>,
    name: Option<&str>,
) -> Result<Option<Position>, ApiError> {
    if let Some(number) = number {
        let found = positions(Some(vec![number]))?.unwrap_or_default();
        return Ok(found.first().copied().filter(|position| *position != Position::LEAD));
    }
    let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(None) };
    let called = |(_, seat): &(Position, &Seat)| {
        seat.state != SeatState::Expired && seat.called().is_some_and(|own| own.to_lowercase() == name.to_lowercase())
    };
    let leads = [Position::LEAD].into_iter().filter(|_| is_lead(world, dialect, name));
    let found: Vec<Position> = world.seats().iter().filter(called).map(|(position, _)| position).chain(leads).collect();
    match found[..] {
        [Position::LEAD] => Ok(None),
        [position] => Ok(Some(position)),
        [] => Err(ApiError::new(
            StatusCode::NOT_FOUND,
            "no_such_seat",
            format!("no agent in a seat has the name `{}`", super::guard::cut(name)),
            "GET /api/seats lists the seats",
        )),
        _ => {
            let seats = found.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            let message = format!("`{}` may mean any of the seats {seats}", super::guard::cut(name));
            Err(ApiError::new(StatusCode::CONFLICT, "ambiguous", message, "send targetGridPosition"))
        }
    }
}

/// Whether a name is the lead's: its own name, or the usual name of the lead in this dialect.
fn is_lead(world: &World, dialect: Dialect, name: &str) -> bool {
    let known = world.seats().lead().and_then(|lead| world.agent(lead)).and_then(|it| it.name.as_deref());
    let usual = match dialect {
        Dialect::Hatchery => None,
        Dialect::Julian => Some(JULIAN),
    };
    [Some(LEAD_NAME), known, usual].into_iter().flatten().any(|own| own.to_lowercase() == name.to_lowercase())
}

fn check_said(message: &str) -> Result<(), ApiError> {
    let chars = message.chars().count();
    let refusal = match chars {
        _ if message.trim().is_empty() => SeatRefusal::NothingSaid,
        chars if chars > MAX_SAID_CHARS => SeatRefusal::SaidTooMuch { chars },
        _ => return Ok(()),
    };
    let refusal = Refusal::Seat(refusal);
    Err(ApiError::bad(refusal.code(), &refusal, refusal.hint()))
}
