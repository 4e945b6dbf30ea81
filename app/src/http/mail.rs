//! Mail over HTTP. An address is `human`, or an agent by its id, the beginning of it, or its name.

use super::Api;
use super::agents::find;
use super::error::{ApiError, Body, Path};
use super::events::EventObject;
use crate::engine::SubmitError;
use crate::mail_reader::{self, Awaited, Mail};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use hatchery_core::{Address, EventId};
use serde::{Deserialize, Serialize};
use std::time::Duration;

#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Send {
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
    /// 0 looks once. At most 25,000: ask again to wait longer. With a short `request_timeout_ms` the answer comes earlier.
    #[serde(default)]
    #[schema(maximum = 25000)]
    timeout_ms: u64,
}

/// The event by which a mail was sent. It is durable.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct SentBody {
    /// The recipient.
    id: Address,
    events: Vec<EventObject>,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct MailList {
    /// The last event that this answer takes into account: follow the log after it and nothing is missed.
    pub head: EventId,
    pub mail: Vec<mail_reader::Header>,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Waited {
    /// The next mail, when nobody was named.
    pub mail: Option<Mail>,
    /// One entry for each agent that was named, in the same order.
    pub agents: Vec<Awaited>,
}

/// Below the usual time limit of a request, so that the answer is ours.
const MAX_WAIT_MS: u64 = 25_000;
/// And this much of the limit that is set.
const ANSWER_SHARE: f32 = 0.8;
const MAX_AWAITED: usize = 100;

fn address(api: &Api, reference: &str) -> Result<Address, ApiError> {
    match reference {
        "human" => Ok(Address::Human),
        agent => find(api, agent).map(Address::Agent),
    }
}

/// Send a mail.
#[utoipa::path(post, path = "/api/mail", operation_id = "send_mail", tag = "mail", request_body = Send,
    responses((status = 201, description = "Sent", body = SentBody)))]
pub async fn send(State(api): State<Api>, body: Body<Send>) -> Result<(StatusCode, super::Accepted), ApiError> {
    let from = address(&api, body.0.from.as_deref().unwrap_or("human"))?;
    let to = address(&api, &body.0.to)?;
    let records = api.handle.submit(hatchery_core::Command::SendMail { from, to, body: body.0.body }).await?;
    Ok((StatusCode::CREATED, super::Accepted::new(to.to_string(), &records)))
}

/// List unread mail, oldest first, without marking it as read.
#[utoipa::path(get, path = "/api/mail/{address}", operation_id = "check_mail", tag = "mail", params(("address" = String, Path, description = "`human` or an agent")),
    responses((status = 200, description = "What is unread", body = MailList)))]
pub async fn check(State(api): State<Api>, of: Path<String>) -> Result<Json<MailList>, ApiError> {
    let of = address(&api, &of.0)?;
    let world = api.handle.view();
    Ok(Json(MailList { head: world.head(), mail: mail_reader::check(&world, of) }))
}

/// Read the oldest unread mail, or the one with the given id.
#[utoipa::path(post, path = "/api/mail/{address}/read", operation_id = "read_mail", tag = "mail", params(("address" = String, Path, description = "`human` or an agent")), request_body = Read,
    responses((status = 200, description = "This one", body = Mail)))]
pub async fn read(State(api): State<Api>, of: Path<String>, body: Body<Read>) -> Result<Json<Mail>, ApiError> {
    let of = address(&api, &of.0)?;
    Ok(Json(mail_reader::read(&api.handle, of, body.0.mail).await?))
}

/// Wait for the next mail, or for mail of several agents. Each mail goes to exactly one reader.
#[utoipa::path(post, path = "/api/mail/{address}/wait", operation_id = "wait_for_mail", tag = "mail", params(("address" = String, Path, description = "`human` or an agent")), request_body = Wait,
    responses((status = 200, description = "What came, or how it stands", body = Waited)))]
pub async fn wait(State(api): State<Api>, of: Path<String>, body: Body<Wait>) -> Result<Json<Waited>, ApiError> {
    let of = address(&api, &of.0)?;
    let Wait { from, timeout_ms } = body.0;
    if timeout_ms > MAX_WAIT_MS || from.len() > MAX_AWAITED {
        return Err(ApiError::bad(
            "wait_too_much",
            format!("waiting {timeout_ms} ms for {} agents is too much at once", from.len()),
            format!("at most {MAX_WAIT_MS} ms and {MAX_AWAITED} agents; ask again to wait longer"),
        ));
    }
    // Where requests may last less than that, nothing comes sooner, and is our answer instead of a timeout's.
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
        // A daemon that stops does not wait for those who wait.
        _ = closing.wait_for(|closing| *closing) => Err(SubmitError::Stopped.into()),
    }
}
