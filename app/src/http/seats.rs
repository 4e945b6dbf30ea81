//! Seats over HTTP, in the form of the clients that know them: sessions, summon, wake, documents. Only one session of the seats is open at
//! a time; other sessions are in `sessions.rs`. Messages are in `seat_messages.rs`.

use super::error::{ApiError, JsonBody, Loose, Query};
use super::lead_told::{Catalog, PreviousTranscript, newest};
use super::once::{CallerId, Once};
use super::{Accepted, Api};
use crate::clock;
use crate::engine::HistoryError;
use crate::identity_document::{self, IdentityDocument};
use crate::log_filter::LogFilter;
use crate::mail_reader::{self, Mail};
use crate::seats::{self, Prompt};
use crate::trust;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderName, StatusCode};
use hatchery_core::event::SeatEvent;
use hatchery_core::run::{Run, RunOptions, RunSpec};
use hatchery_core::seat::{
    self, Button, EggOrder, FaceVariant, LeadOrder, Mode, Payload, Position, Rising, Seat, SeatDocument, SeatRefusal,
    SeatState, Seats, session_uuid,
};
use hatchery_core::session::EndReason;
use hatchery_core::{AgentId, Command, Event, EventId, Record, Refusal, SessionId, Timestamp, World};
use serde::{Deserialize, Serialize};

/// How many of the newest events are searched for mail of agents in seats. More would make a thread slow to read.
const MAIL_SCAN: u64 = 100_000;

/// Everything that the daemon knows about the seats.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SeatList {
    /// The last event that this answer includes. A client that follows the log after this event misses nothing.
    pub head: EventId,
    /// The open session of the seats, as a UUID.
    pub session_id: Option<String>,
    pub mode: Option<Mode>,
    /// The button that the page shows.
    pub button: Button,
    /// The lead, which sits in seat 4.
    pub lead: Option<AgentId>,
    /// Whether the lead has a process.
    #[serde(default)]
    pub lead_alive: bool,
    /// The seats that were summoned or imported.
    pub seats: Vec<SeatView>,
}

/// One seat.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SeatView {
    #[schema(maximum = 8)]
    pub grid_position: u8,
    /// `hatching`, `alive`, `sleeping` or `expired`.
    pub status: String,
    /// The seat is about to be filled again.
    pub waking: bool,
    pub agent: Option<AgentId>,
    pub name: Option<String>,
    pub color: Option<String>,
    pub color_name: Option<String>,
    pub gender: Option<String>,
    pub face_variant: Option<FaceVariant>,
    pub has_soul: bool,
    /// When the seat was summoned. Null if an imported document does not contain the time.
    pub created_at: Option<Timestamp>,
    pub last_alive_at: Option<Timestamp>,
    pub last_session_id: Option<String>,
    /// When the seat expires if its agent has chosen no name, or when a wake counts as failed.
    pub until: Option<Timestamp>,
}

#[derive(Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionStart {
    /// An id that the caller has chosen. A repeated request with the same id and content gets the same answer, and is carried out only
    /// once. The latest 10,000 ids of a project are remembered.
    id: Option<CallerId>,
    /// The conversation of an earlier session. The lead receives at most 200,000 characters, the newest.
    previous_transcript: Option<PreviousTranscript>,
    /// The catalogue of artifacts. The lead receives at most 200,000 characters.
    artifact_catalog: Option<Catalog>,
    /// Only recorded.
    #[serde(default)]
    demo_mode: bool,
    /// How the lead is run.
    #[serde(default)]
    with: RunOptions,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionAnswer {
    pub ok: bool,
    /// A UUID.
    pub session_id: String,
    /// The last event of the request.
    pub event_id: EventId,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionEndAnswer {
    pub ok: bool,
    /// The session that is ending, as a UUID. Null if none was open.
    pub session_id: Option<String>,
    /// The last event of the request, or of the log if there was nothing to end.
    pub event_id: EventId,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RestateAnswer {
    pub ok: bool,
    /// Why there is no event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub note: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FillSeats {
    /// An id that the caller has chosen. A repeated request with the same id and content gets the same answer, and is carried out only
    /// once. The latest 10,000 ids of a project are remembered.
    id: Option<CallerId>,
    /// The seats; if not given, all seats that can be filled.
    #[schema(max_items = 9)]
    seats: Option<Vec<u64>>,
    /// How the agents are run.
    #[serde(default)]
    with: RunOptions,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FillAnswer {
    pub ok: bool,
    /// The event of the request.
    pub event_id: EventId,
    pub session_id: String,
    /// The seats that are being filled.
    pub seats: Vec<u8>,
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct DocsQuery {
    /// Only `agent-identity` exists.
    #[serde(rename = "type")]
    #[param(rename = "type")]
    kind: Option<String>,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct DocList {
    /// The last event that this answer includes. A client that follows the log after this event misses nothing.
    pub head: EventId,
    pub docs: Vec<IdentityDocument>,
}

#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportIdentities {
    /// The documents, as text: a JSON list, an object with `docs`, or one document on each line.
    text: String,
}

/// Show the seats.
#[utoipa::path(get, path = "/api/seats", operation_id = "list_seats", tag = "seats", responses((status = 200, description = "The seats, their session and the button", body = SeatList)))]
pub async fn list(State(api): State<Api>) -> Json<SeatList> {
    let world = api.handle.view();
    let seats = world.seats();
    Json(SeatList {
        head: world.head(),
        session_id: seats.session().map(|open| session_uuid(open.id)),
        mode: seats.session().map(|open| open.mode),
        button: seat::button(seats.iter().map(|(_, seat)| seat.state)),
        lead: seats.lead(),
        lead_alive: seats.lead().and_then(|lead| world.run(lead)).is_some_and(Run::is_open),
        seats: seats.iter().map(|(position, seat)| SeatView::of(position, seat)).collect(),
    })
}

impl SeatView {
    fn of(position: Position, seat: &Seat) -> Self {
        let identity = &seat.identity;
        Self {
            grid_position: position.number(),
            status: seat.state.word().into(),
            waking: matches!(seat.state, SeatState::Sleeping { waking: Some(_) }),
            agent: seat.agent,
            name: identity.name.clone(),
            color: identity.color.clone(),
            color_name: identity.color_name.clone(),
            gender: identity.gender.clone(),
            face_variant: identity.face_variant.clone(),
            has_soul: seat.has_soul(),
            created_at: seat.created,
            last_alive_at: seat.last_alive,
            last_session_id: seat.last_session.clone(),
            until: seat.state.deadline(),
        }
    }
}

/// Start a session of the seats, with the lead. Refused if one is open.
#[utoipa::path(post, path = "/api/session/start", operation_id = "open_seats", tag = "seats", request_body = SessionStart,
    responses((status = 200, description = "Started", body = SessionAnswer)))]
pub async fn start(
    State(api): State<Api>,
    body: Loose<SessionStart>,
) -> Result<([(HeaderName, String); 1], Json<SessionAnswer>), ApiError> {
    let once = Once::of(body.0.id.as_ref(), "session_start", "", &body.0)?;
    if let Some(records) = once.answered_by(&api).await? {
        return Ok(started(&records));
    }
    let SessionStart { id: _, previous_transcript, artifact_catalog, demo_mode, with } = body.0;
    let mut lead = lead_order(&api, with)?;
    super::runs::check_program(&api, &lead.spec.harness).await?;
    let previous_transcript = previous_transcript.and_then(PreviousTranscript::text);
    let artifact_catalog = artifact_catalog.and_then(Catalog::text);
    for (tag, text) in [("previous-transcript", &previous_transcript), ("artifact-catalog", &artifact_catalog)] {
        if let Some(text) = text {
            lead.prompt.push_str(&format!("\n\n<{tag}>\n{}\n</{tag}>", newest(text)));
        }
    }
    let session = clock::new_session_id();
    let opened = SeatEvent::Opened {
        session,
        mode: api.defaults.seats.mode,
        pid: Some(std::process::id()),
        demo: demo_mode,
        model: lead.spec.model.clone(),
        with_transcript: previous_transcript.is_some(),
        with_catalog: artifact_catalog.is_some(),
    };
    let records = once.submit(&api, Command::OpenSeats { session, opened, lead: Some(Box::new(lead)) }).await?;
    Ok(started(&records))
}

/// The answer to a start, from the events that it led to.
fn started(records: &[Record]) -> ([(HeaderName, String); 1], Json<SessionAnswer>) {
    let opened = records.iter().find_map(|record| match record.event {
        Event::Seat(SeatEvent::Opened { session, .. }) => Some(session_uuid(session)),
        _ => None,
    });
    let session_id = opened.unwrap_or_default();
    // Clients of the original program read the session here.
    let named = [(HeaderName::from_static("x-session-id"), session_id.clone())];
    (named, Json(SessionAnswer { ok: true, session_id, event_id: last(records) }))
}

/// Repeat the report on who is alive as an event, for a client that has lost it. Does nothing without a session.
#[utoipa::path(post, path = "/api/ledger-reset", operation_id = "restate_seats", tag = "seats",
    responses((status = 200, description = "The event is in the log, or nobody is alive", body = RestateAnswer)))]
pub async fn restate(State(api): State<Api>) -> Result<Json<RestateAnswer>, ApiError> {
    match api.handle.submit(Command::RestateSeats).await {
        Ok(_) => Ok(Json(RestateAnswer { ok: true, note: None })),
        Err(crate::engine::SubmitError::Refused(Refusal::Seat(SeatRefusal::NoSession))) => {
            Ok(Json(RestateAnswer { ok: true, note: Some("No active session".into()) }))
        }
        Err(error) => Err(error.into()),
    }
}

/// End the session of the seats. Its agents fall asleep. Does nothing if no session is open.
#[utoipa::path(post, path = "/api/session/end", operation_id = "close_seats", tag = "seats",
    responses((status = 200, description = "It is ending, or none was open", body = SessionEndAnswer)))]
pub async fn end(State(api): State<Api>) -> Result<Json<SessionEndAnswer>, ApiError> {
    let Some(session) = api.handle.view().seats().session().map(|open| open.id) else {
        return Ok(Json(SessionEndAnswer { ok: true, session_id: None, event_id: api.handle.head() }));
    };
    let records = api.handle.submit(Command::EndSession { session, reason: EndReason::User }).await?;
    Ok(Json(SessionEndAnswer { ok: true, session_id: Some(session_uuid(session)), event_id: last(&records) }))
}

/// Fill empty and expired seats with new agents. Starts a session if none is open.
#[utoipa::path(post, path = "/api/agents/summon", operation_id = "summon", tag = "seats", request_body = FillSeats,
    responses((status = 202, description = "The agents are on their way", body = FillAnswer)))]
pub async fn summon(
    State(api): State<Api>,
    body: Loose<FillSeats>,
) -> Result<(StatusCode, Json<FillAnswer>), ApiError> {
    let once = Once::of(body.0.id.as_ref(), "summon", "", &body.0)?;
    if let Some(records) = once.answered_by(&api).await? {
        return filled(&api, &records);
    }
    match fill_first(&api, &once, body.0).await {
        Ok(records) => filled(&api, &records),
        Err(error) => repeated(&api, &once, error).await,
    }
}

/// The answer to a failed request. If a repetition has carried out the request in the meantime, there is nothing left to fill, and that is
/// not an error.
async fn repeated(api: &Api, once: &Once, error: ApiError) -> Result<(StatusCode, Json<FillAnswer>), ApiError> {
    match once.answered_by(api).await? {
        Some(records) => filled(api, &records),
        None => Err(error),
    }
}

/// The answer to a request to fill seats, from the events that it led to.
fn filled(api: &Api, records: &[Record]) -> Result<(StatusCode, Json<FillAnswer>), ApiError> {
    let found = records.iter().find_map(|record| match &record.event {
        Event::Seat(SeatEvent::Summoned { seats }) => {
            Some((record, seats.iter().map(|egg| egg.position.number()).collect()))
        }
        Event::Seat(SeatEvent::Waking { seats }) => {
            Some((record, seats.iter().map(|waking| waking.position.number()).collect()))
        }
        _ => None,
    });
    let (event_id, session, seats) = match found {
        Some((record, seats)) => (record.id, record.session, seats),
        None => (api.handle.head(), None, Vec::new()),
    };
    let session_id = session.map(session_uuid).unwrap_or_default();
    Ok((StatusCode::ACCEPTED, Json(FillAnswer { ok: true, event_id, session_id, seats })))
}

/// Summons the named seats, or all that are empty or expired.
async fn fill_first(api: &Api, once: &Once, asked: FillSeats) -> Result<Vec<Record>, ApiError> {
    let FillSeats { id: _, seats: wanted, with } = asked;
    let wanted = positions(wanted)?.unwrap_or_else(|| Position::free().collect());
    let prompt = read_prompt(api, Prompt::Birth)?;
    let spec = fill_spec(api, with, None)?;
    // A request that will be refused must not open a session.
    if let Some(lead) = wanted.iter().find(|position| **position == Position::LEAD) {
        return Err(Refusal::Seat(SeatRefusal::LeadSeat(*lead)).into());
    }
    let is_free =
        |seats: &Seats, position: &Position| seats.seat(*position).is_none_or(|it| it.state == SeatState::Expired);
    if !wanted.iter().any(|position| is_free(api.handle.view().seats(), position)) {
        return Err(Refusal::Seat(SeatRefusal::NothingToSummon).into());
    }
    super::runs::check_program(api, &spec.harness).await?;
    ensure_session(api, &spec).await?;
    let egg = |position: &Position| EggOrder {
        position: *position,
        agent: clock::new_agent_id(),
        color: Some(seats::color(*position).into()),
        gender: Some(seats::gender(*position).into()),
        prompt: seats::birth_prompt(&prompt, *position),
    };
    let world = api.handle.view();
    let free: Vec<Position> = wanted.iter().copied().filter(|position| is_free(world.seats(), position)).collect();
    let command = Command::SummonSeats {
        eggs: wanted.iter().map(egg).collect(),
        spec: Box::new(spec),
        message: seats::summon_message(&free),
        hatch_ms: api.defaults.seats.hatch_ms,
    };
    once.submit(api, command).await
}

/// Fill sleeping seats again, each with its soul and the transcript of its last session. Starts a session if none is open.
#[utoipa::path(post, path = "/api/agents/wake", operation_id = "wake_seats", tag = "seats", request_body = FillSeats,
    responses((status = 202, description = "The agents are on their way", body = FillAnswer)))]
pub async fn wake(State(api): State<Api>, body: Loose<FillSeats>) -> Result<(StatusCode, Json<FillAnswer>), ApiError> {
    let once = Once::of(body.0.id.as_ref(), "wake", "", &body.0)?;
    if let Some(records) = once.answered_by(&api).await? {
        return filled(&api, &records);
    }
    let FillSeats { id: _, seats: wanted, with } = body.0;
    match fill_again(&api, &once, positions(wanted)?, with).await {
        Ok(records) => filled(&api, &records),
        Err(error) => repeated(&api, &once, error).await,
    }
}

/// Wakes the named seats, or all that sleep.
pub(super) async fn fill_again(
    api: &Api,
    once: &Once,
    wanted: Option<Vec<Position>>,
    with: RunOptions,
) -> Result<Vec<Record>, ApiError> {
    let world = api.handle.view();
    let is_meant = |(position, seat): &(Position, &Seat)| {
        wanted.as_ref().is_none_or(|wanted| wanted.contains(position)) && seat.state == SeatState::ASLEEP
    };
    let asleep: Vec<(Position, Seat)> =
        world.seats().iter().filter(is_meant).map(|(position, seat)| (position, seat.clone())).collect();
    if asleep.is_empty() {
        return Err(Refusal::Seat(SeatRefusal::NothingToWake).into());
    }
    let (birth, wake) = (read_prompt(api, Prompt::Birth)?, read_prompt(api, Prompt::Wake)?);
    let spec = fill_spec(api, with, last_harness(&world, &asleep))?;
    super::runs::check_program(api, &spec.harness).await?;
    let settings = &api.defaults.seats;
    let mail = mail_of(api, asleep.iter().filter_map(|(position, _)| seats::last_occupant(&world, *position))).await?;
    let mut rising = Vec::new();
    let mut payloads = Vec::new();
    for (position, seat) in &asleep {
        let said = match seats::last_occupant(&world, *position) {
            Some(agent) => seats::last_session(&api.handle, agent, &settings.human, &mail).await.map_err(unread)?,
            None => Vec::new(),
        };
        let payload = Payload::new(*position, seat, &said, settings.transcript_chars);
        let prompt = match payload.has_soul() {
            true => seats::wake_prompt(&wake, &payload),
            false => seats::birth_prompt(&birth, *position),
        };
        rising.push(Rising {
            position: *position,
            agent: clock::new_agent_id(),
            prompt,
            has_soul: payload.has_soul(),
            has_transcript: payload.has_transcript(),
            untold_upto: payload.untold_upto,
        });
        payloads.push(payload);
    }
    ensure_session(api, &spec).await?;
    if settings.mode == Mode::Lead {
        let told = asleep.iter().zip(&payloads).filter(|(_, payload)| payload.has_soul() && payload.has_transcript());
        let told = told.filter_map(|((_, seat), payload)| Some((seat.agent?, payload.untold_upto)));
        api.outbox.recall(told.collect()).await;
    }
    let messages = seats::wake_messages(&payloads);
    let hatch_ms = settings.hatch_ms;
    once.submit(api, Command::WakeSeats { seats: rising, spec: Box::new(spec), messages, hatch_ms }).await
}

/// The newest mail that these agents have sent or received, the oldest first.
pub(super) async fn mail_of(api: &Api, agents: impl Iterator<Item = AgentId>) -> Result<Vec<Mail>, ApiError> {
    let filter = LogFilter { types: vec!["mail_sent".into()], agents: agents.collect(), ..LogFilter::default() };
    let world = api.handle.view();
    // An agent has no mail from before its creation.
    let born = filter.agents.iter().filter_map(|agent| world.agent(*agent)).map(|agent| agent.born).min();
    let Some(born) = born.map(|born| born.max(EventId(world.head().0.saturating_sub(MAIL_SCAN)))) else {
        return Ok(Vec::new());
    };
    let mut events: Vec<(EventId, String)> = Vec::new();
    let mut before = world.head().next();
    while before > born.next() && events.len() < seats::MAX_THREAD {
        let left = seats::MAX_THREAD - events.len();
        let found = super::log::latest(api, filter.clone(), Some(before.0), left).await?;
        events.splice(0..0, found.events);
        before = found.from.next();
    }
    let read = |(id, body): &(EventId, String)| Record::read(*id, body).map_err(HistoryError::from);
    let records: Vec<Record> = events.iter().map(read).collect::<Result<_, _>>()?;
    Ok(records.into_iter().filter_map(mail_reader::sent).collect())
}

/// List the identity documents of the seats.
#[utoipa::path(get, path = "/api/docs", operation_id = "list_docs", tag = "seats", params(DocsQuery), responses((status = 200, description = "One for each seat that was summoned or imported", body = DocList)))]
pub async fn docs(State(api): State<Api>, query: Query<DocsQuery>) -> Result<Json<DocList>, ApiError> {
    let kind = query.0.kind.unwrap_or_else(|| identity_document::TYPE.into());
    if kind != identity_document::TYPE {
        let message = format!("there are no documents of type `{}`", super::guard::cut(&kind));
        return Err(ApiError::bad("no_such_type", message, "ask for type=agent-identity"));
    }
    let world = api.handle.view();
    let docs = world.seats().iter().map(|(position, seat)| IdentityDocument::of(&SeatDocument::of(position, seat)));
    Ok(Json(DocList { head: world.head(), docs: docs.collect() }))
}

/// Merge identity documents from elsewhere into the seats. A repetition changes nothing.
#[utoipa::path(post, path = "/api/docs/import", operation_id = "import_identities", tag = "seats", request_body = ImportIdentities,
    responses((status = 200, description = "Merged", body = super::AcceptedBody)))]
pub async fn import(State(api): State<Api>, body: JsonBody<ImportIdentities>) -> Result<Accepted, ApiError> {
    let documents = identity_document::read_all(&body.0.text)
        .map_err(|why| ApiError::bad("bad_identities", why, "nothing was imported; see docs/seats.md for the form"))?;
    // The lead's own document is not used, because the lead is neither summoned nor woken.
    let (lead, documents): (Vec<SeatDocument>, Vec<SeatDocument>) =
        documents.into_iter().partition(|document| document.position == Position::LEAD);
    let records = api.handle.submit(Command::ImportIdentities { documents }).await?;
    let warning = (!lead.is_empty()).then_some("the document of seat 4 was left out: that seat is the lead's");
    let root = api.handle.view().root().map(|root| root.to_string()).unwrap_or_default();
    Ok(Accepted::new(root, &records).warning(warning))
}

/// The open session of the seats. If there is none, it is started, and a lead that manages the seats with it.
async fn ensure_session(api: &Api, spec: &RunSpec) -> Result<SessionId, ApiError> {
    if let Some(open) = api.handle.view().seats().session() {
        return Ok(open.id);
    }
    let session = clock::new_session_id();
    let mode = api.defaults.seats.mode;
    let lead = match mode {
        Mode::Direct => None,
        Mode::Lead => Some(Box::new(LeadOrder { spec: spec.clone(), ..lead_order(api, RunOptions::default())? })),
    };
    let opened = SeatEvent::Opened {
        session,
        mode,
        pid: Some(std::process::id()),
        demo: false,
        model: spec.model.clone(),
        with_transcript: false,
        with_catalog: false,
    };
    match api.handle.submit(Command::OpenSeats { session, opened, lead }).await {
        Ok(_) => Ok(session),
        // Another request has started a session in the meantime.
        Err(crate::engine::SubmitError::Refused(Refusal::Seat(SeatRefusal::Active(other)))) => Ok(other),
        Err(error) => Err(error.into()),
    }
}

/// How the lead is started: as in its last run, otherwise from the settings.
pub(super) fn lead_order(api: &Api, with: RunOptions) -> Result<LeadOrder, ApiError> {
    let world = api.handle.view();
    let last = world.seats().lead().and_then(|lead| world.run(lead)).map(|run| &*run.spec);
    let spec = RunSpec { stays: true, ..api.defaults.spec_of_run(last, None, with)? };
    let prompt = match api.defaults.seats.mode {
        Mode::Direct => Prompt::Lead,
        Mode::Lead => Prompt::LeadTeam,
    };
    let settings = &api.defaults.seats;
    let prompt = read_prompt(api, prompt)?.replace("{human}", &settings.human).replace("{team}", &settings.team);
    Ok(LeadOrder { agent: clock::new_agent_id(), prompt, spec })
}

/// How seats are filled: how each agent is run or, if the lead has the processes of its team, how the lead is run. If the caller has not
/// chosen: agents are run with `harness`, and the lead as in its last run.
fn fill_spec(api: &Api, with: RunOptions, harness: Option<String>) -> Result<RunSpec, ApiError> {
    match api.defaults.seats.mode {
        // An agent of a seat waits for messages.
        Mode::Direct => Ok(RunSpec {
            stays: true,
            ..api.defaults.spec_of_run(None, None, RunOptions { harness: with.harness.or(harness), ..with })?
        }),
        Mode::Lead => Ok(lead_order(api, with)?.spec),
    }
}

/// The harness of the last agents of these seats, if they had the same one. They wake with the agent program with which they fell asleep.
fn last_harness(world: &World, seats: &[(Position, Seat)]) -> Option<String> {
    let of_seat = |(position, _): &(Position, Seat)| {
        let agent = seats::last_occupant(world, *position)?;
        world.run(agent).map(|run| run.spec.harness.clone())
    };
    let mut known = seats.iter().filter_map(of_seat);
    let first = known.next()?;
    known.all(|other| other == first).then_some(first)
}

fn read_prompt(api: &Api, prompt: Prompt) -> Result<String, ApiError> {
    let own = trust::prompts(&api.defaults.project, &api.defaults.quests.prompts);
    Ok(prompt.of(&own.map_err(super::quests::unusable)?))
}

pub(super) fn positions(numbers: Option<Vec<u64>>) -> Result<Option<Vec<Position>>, ApiError> {
    let position = |number: u64| {
        let wrong = || ApiError::bad("no_such_seat", format!("there is no seat {number}"), "seats are 0 to 8");
        Position::new(number).ok_or_else(wrong)
    };
    numbers.map(|numbers| numbers.into_iter().map(position).collect()).transpose()
}

pub(super) fn unread(error: HistoryError) -> ApiError {
    ApiError::from(error)
}

pub(super) fn last(records: &[Record]) -> EventId {
    records.last().map_or(EventId::START, |record| record.id)
}
