//! Mail over HTTP. An address is `human`, or an agent by its id, by the beginning of its id, or by its name.

use super::Api;
use super::agents::not_found;
use super::error::{ApiError, JsonBody, PathParts, Query};
use super::events::EventObject;
use super::once::{CallerId, Once};
use crate::engine::{HistoryError, SubmitError};
use crate::log_filter::LogFilter;
use crate::mail_reader::{self, Awaited, Mail};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use hatchery_core::mail::{self, LetterState};
use hatchery_core::{Address, EventId, Timestamp, World};
use serde::{Deserialize, Serialize};
use std::time::Duration;

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Send {
    /// An id that the caller has chosen. A repeated request with the same id and content gets the same answer, and is carried out only once.
    id: Option<CallerId>,
    /// The sender; `human` if not given.
    from: Option<String>,
    /// The recipient.
    to: String,
    /// At most 1 MiB of UTF-8, stored unchanged.
    body: String,
}

#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Read {
    /// The id of a mail; the oldest unread one if not given.
    mail: Option<EventId>,
}

#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Wait {
    /// Wait for each of these agents. If empty: for the next mail.
    #[serde(default)]
    #[schema(max_items = 100)]
    from: Vec<String>,
    /// 0 checks once. At most 25,000: ask again to wait longer. With a short `request_timeout_ms` the answer comes earlier.
    #[serde(default)]
    #[schema(maximum = 25000)]
    #[serde(rename = "timeoutMs", alias = "timeout_ms")]
    timeout_ms: u64,
}

/// The event that sent a mail. It is durable.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct SentBody {
    /// The recipient.
    id: Address,
    events: Vec<EventObject>,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct MailList {
    /// The last event that this answer includes. A client that follows the log after this event misses nothing.
    pub head: EventId,
    pub mail: Vec<UnreadMail>,
}

/// An unread mail, with data to choose by.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct UnreadMail {
    #[serde(flatten)]
    pub header: mail_reader::Header,
    /// The name of the sender; null for `human`, and for an agent without a name.
    pub name: Option<String>,
    pub sent: Timestamp,
    /// The first line of the mail, at most 100 characters.
    pub subject: String,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Waited {
    /// The next mail, if the request names no agent.
    pub mail: Option<Mail>,
    /// One entry for each named agent, in the same order.
    pub agents: Vec<Awaited>,
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ThreadQuery {
    /// Only mail between the address and this one: `human` or an agent.
    with: Option<String>,
    /// Only mail before this id.
    #[param(minimum = 1)]
    before: Option<u64>,
    /// At most this many, from 1 to 200; 50 if not given.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
}

/// Mail that an address sent or got, with its bodies.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct MailThreads {
    /// The oldest first.
    pub mail: Vec<SeenMail>,
    /// To read older mail, ask with this as `before`. Null if there is none.
    pub before: Option<EventId>,
    /// The last event that this answer includes.
    pub head: EventId,
}

/// A mail that was shown without being marked as read.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SeenMail {
    #[serde(flatten)]
    pub mail: Mail,
    pub state: SeenState,
}

/// The state of a mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SeenState {
    Queued,
    /// Given to a reader that waited, and not confirmed as read.
    Delivered,
    Read,
}

/// How many characters of a mail's first line are shown.
const SUBJECT_CHARS: usize = 100;
const USUAL_THREAD: usize = 50;
const MAX_THREAD: usize = 200;
/// Shorter than the usual time limit of a request, so that the answer is not a timeout.
const MAX_WAIT_MS: u64 = 25_000;
/// And at most this share of the time limit that is set.
const ANSWER_SHARE: f32 = 0.8;
const MAX_AWAITED: usize = 100;

fn address(api: &Api, reference: &str) -> Result<Address, ApiError> {
    let world = api.handle.view();
    mail::resolve(&world, reference).map_err(|refusal| not_found(&world, reference, refusal))
}

/// Send a mail.
#[utoipa::path(post, path = "/api/mail", operation_id = "send_mail", tag = "mail", request_body = Send,
    responses((status = 201, description = "Sent", body = SentBody)))]
pub async fn send(State(api): State<Api>, body: JsonBody<Send>) -> Result<(StatusCode, super::Accepted), ApiError> {
    let once = Once::of(body.0.id.as_ref(), "send", "", &body.0)?;
    if let Some(answer) = once.answered(&api).await? {
        return Ok((StatusCode::CREATED, answer));
    }
    let from = body.0.from.as_deref().map_or(Ok(Address::Human), |from| address(&api, from))?;
    let to = address(&api, &body.0.to)?;
    let records = once.submit(&api, hatchery_core::Command::SendMail { from, to, body: body.0.body }).await?;
    Ok((StatusCode::CREATED, super::Accepted::new(to.to_string(), &records)))
}

/// List unread mail, oldest first, without marking it as read.
#[utoipa::path(get, path = "/api/mail/{address}", operation_id = "check_mail", tag = "mail", params(("address" = String, Path, description = "`human` or an agent")),
    responses((status = 200, description = "What is unread", body = MailList)))]
pub async fn check(State(api): State<Api>, of: PathParts<String>) -> Result<Json<MailList>, ApiError> {
    let of = address(&api, &of.0)?;
    let world = api.handle.view();
    let mut mail = Vec::new();
    for header in mail_reader::check(&world, of) {
        let name = match header.from {
            Address::Agent(agent) => world.agent(agent).and_then(|it| it.name.clone()),
            Address::Human => None,
        };
        let sent = api.handle.record(header.id).await?.and_then(mail_reader::sent);
        let first = sent.as_ref().and_then(|mail| mail.body.lines().find(|line| !line.trim().is_empty()));
        let subject = first.unwrap_or_default().trim().chars().take(SUBJECT_CHARS).collect();
        let sent = sent.map(|mail| mail.sent).unwrap_or_default();
        mail.push(UnreadMail { header, name, sent, subject });
    }
    Ok(Json(MailList { head: world.head(), mail }))
}

/// Show mail that an address has sent or received, read or unread. Changes nothing. At most 20,000 events are searched for one answer.
#[utoipa::path(get, path = "/api/mail/{address}/threads", operation_id = "mail_threads", tag = "mail", params(("address" = String, Path, description = "`human` or an agent"), ThreadQuery),
    responses((status = 200, description = "The latest mail", body = MailThreads)))]
pub async fn threads(
    State(api): State<Api>,
    of: PathParts<String>,
    query: Query<ThreadQuery>,
) -> Result<Json<MailThreads>, ApiError> {
    let ThreadQuery { with, before, limit } = query.0;
    let limit = limit.unwrap_or(USUAL_THREAD);
    if !(1..=MAX_THREAD).contains(&limit) {
        let hint = format!("choose from 1 to {MAX_THREAD}");
        return Err(ApiError::bad("bad_limit", format!("a limit of {limit} mails is out of range"), hint));
    }
    let of = address(&api, &of.0)?;
    let with = with.map(|with| address(&api, &with)).transpose()?;
    let mut filter = LogFilter { types: vec!["mail_sent".into()], ..LogFilter::default() };
    match of {
        Address::Agent(agent) => filter.agents.push(agent),
        // An address as it is written in an event. In a body the quotes would have backslashes.
        Address::Human => filter.words = Some("\"human\"".into()),
    }
    // Mail with other addresses may be among what is found. Then the answer is shorter, and the client continues with `before`.
    let found = super::log::latest(&api, filter, before, limit).await?;
    let world = api.handle.view();
    let mut mail = Vec::new();
    for (id, body) in &found.events {
        let record = hatchery_core::Record::read(*id, body).map_err(HistoryError::from)?;
        let seen =
            mail_reader::sent(record).filter(|mail| with.is_none_or(|with| [mail.from, mail.to].contains(&with)));
        mail.extend(seen.map(|mail| SeenMail { state: state(&world, &mail), mail }));
    }
    let before = Some(found.from.next()).filter(|_| found.from > EventId::START);
    Ok(Json(MailThreads { mail, before, head: world.head() }))
}

fn state(world: &World, mail: &Mail) -> SeenState {
    let letter = world.mailbox(mail.to).and_then(|mailbox| mailbox.unread.get(&mail.id));
    match letter.map(|letter| letter.state) {
        Some(LetterState::Queued) => SeenState::Queued,
        Some(LetterState::Delivered) => SeenState::Delivered,
        None => SeenState::Read,
    }
}

/// Read the oldest unread mail, or the one with the given id.
#[utoipa::path(post, path = "/api/mail/{address}/read", operation_id = "read_mail", tag = "mail", params(("address" = String, Path, description = "`human` or an agent")), request_body = Read,
    responses((status = 200, description = "This one", body = Mail)))]
pub async fn read(State(api): State<Api>, of: PathParts<String>, body: JsonBody<Read>) -> Result<Json<Mail>, ApiError> {
    let of = address(&api, &of.0)?;
    Ok(Json(mail_reader::read(&api.handle, of, body.0.mail).await?))
}

/// Wait for the next mail, or for mail of several agents. Each mail goes to exactly one reader.
#[utoipa::path(post, path = "/api/mail/{address}/wait", operation_id = "wait_for_mail", tag = "mail", params(("address" = String, Path, description = "`human` or an agent")), request_body = Wait,
    responses((status = 200, description = "The mail that has arrived, and the states of the agents", body = Waited)))]
pub async fn wait(
    State(api): State<Api>,
    of: PathParts<String>,
    body: JsonBody<Wait>,
) -> Result<Json<Waited>, ApiError> {
    let of = address(&api, &of.0)?;
    let Wait { from, timeout_ms } = body.0;
    if timeout_ms > MAX_WAIT_MS || from.len() > MAX_AWAITED {
        return Err(ApiError::bad(
            "wait_too_much",
            format!("waiting {timeout_ms} ms for {} agents is too much at once", from.len()),
            format!("at most {MAX_WAIT_MS} ms and {MAX_AWAITED} agents; ask again to wait longer"),
        ));
    }
    // If the time limit of requests is shorter, the answer is "nothing yet" instead of a timeout.
    let patience = Duration::from_millis(timeout_ms).min(api.request_timeout.mul_f32(ANSWER_SHARE));
    let waited = async {
        Ok(match from.is_empty() {
            true => Waited { mail: mail_reader::next(&api.handle, of, patience).await?, agents: Vec::new() },
            false => Waited { mail: None, agents: mail_reader::wait_for(&api.handle, of, from, patience).await? },
        })
    };
    let mut closing = api.closing.clone();
    tokio::select! {
        biased;
        waited = waited => waited.map(Json),
        // A daemon that stops does not wait for clients that wait.
        _ = closing.wait_for(|closing| *closing) => Err(SubmitError::Stopped.into()),
    }
}
