//! The daemon's door: axum routes over the engine's handle. Handlers translate; they decide nothing.
//!
//! The router and the OpenAPI document come from the same declarations, so a route without a description cannot exist.

mod agents;
mod error;
mod events;
mod guard;
mod history;
mod mail;
mod server;
mod sessions;
mod status;

pub use agents::{AgentList, AgentView};
pub use error::{ApiError, ErrorBody, ErrorDetail};
pub use guard::Guard;
pub use history::{HistoryView, ImportView, MessageView};
pub use mail::{MailList, Waited};
pub use server::{Limits, serve};
pub use sessions::{SessionList, SessionView};
pub use status::Status;

use crate::engine::Handle;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse, Response};
use hatchery_core::Record;
use hatchery_core::event::write_wire;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use utoipa::OpenApi;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// What the handlers share.
#[derive(Clone, Debug)]
pub struct Api {
    pub handle: Handle,
    pub guard: Arc<Guard>,
    pub project: String,
    pub store: String,
    pub started: Instant,
    pub heartbeat: Duration,
    pub request_timeout: Duration,
    pub max_body_bytes: usize,
    /// Becomes true when the daemon shuts down, so that streams end.
    pub closing: watch::Receiver<bool>,
}

#[derive(OpenApi)]
#[openapi(
    info(title = "Hatchery", description = "Runs coding agents the way an operating system runs processes: one durable log, and everything else is a view of it."),
    security(("token" = [])),
)]
struct Document;

/// The events that a command led to. They are durable.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub struct AcceptedBody {
    /// Whom the command was about.
    id: String,
    events: Vec<events::EventObject>,
}

#[derive(Debug)]
pub struct Accepted(Vec<u8>);

impl Accepted {
    pub fn new(id: String, records: &[Record]) -> Self {
        let mut body = format!("{{\"id\":\"{id}\",\"events\":[").into_bytes();
        for (at, record) in records.iter().enumerate() {
            body.extend_from_slice(if at == 0 { b"" } else { b"," });
            write_wire(&mut body, record.id, &record.body());
        }
        body.extend_from_slice(b"]}");
        Self(body)
    }
}

impl IntoResponse for Accepted {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, "application/json")], self.0).into_response()
    }
}

/// All routes, and the document that describes them.
pub fn router(api: &Api) -> Router {
    let (router, document) = documented().split_for_parts();
    let document = document.to_json().expect("the document is plain data");
    let document = bytes::Bytes::from(document);
    router
        .route(
            "/api/openapi.json",
            axum::routing::get(move || async move { ([(header::CONTENT_TYPE, "application/json")], document) }),
        )
        .route("/", axum::routing::get(|| async { Html(include_str!("http/page.html")) }))
        .fallback(not_found)
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(api.max_body_bytes))
        .layer(middleware::from_fn_with_state(api.clone(), in_time))
        .layer(middleware::from_fn_with_state(api.clone(), guard::admit))
        .with_state(api.clone())
}

/// The OpenAPI document, for those who want it without a daemon.
pub fn openapi() -> utoipa::openapi::OpenApi {
    documented().split_for_parts().1
}

fn documented() -> OpenApiRouter<Api> {
    let mut document = Document::openapi();
    let components = document.components.get_or_insert_default();
    components.add_security_scheme("token", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)));
    OpenApiRouter::with_openapi(document)
        .routes(routes!(status::health))
        .routes(routes!(status::status))
        .routes(routes!(status::fsck))
        .routes(routes!(events::stream))
        .routes(routes!(events::page))
        .routes(routes!(events::export))
        .routes(routes!(sessions::list, sessions::start))
        .routes(routes!(sessions::end))
        .routes(routes!(agents::list, agents::fork))
        .routes(routes!(agents::show))
        .routes(routes!(agents::rename))
        .routes(routes!(agents::wake))
        .routes(routes!(agents::kill))
        .routes(routes!(history::read))
        .routes(routes!(history::add))
        .routes(routes!(history::clear))
        .routes(routes!(history::mark))
        .routes(routes!(history::rewind))
        .routes(routes!(history::import))
        .routes(routes!(mail::send))
        .routes(routes!(mail::check))
        .routes(routes!(mail::read))
        .routes(routes!(mail::wait))
}

/// Every answer begins in time, or says that it could not. A stream has begun when its head is sent.
async fn in_time(State(api): State<Api>, request: Request, next: Next) -> Response {
    if ["/api/fsck", "/api/history/import"].contains(&request.uri().path()) {
        return next.run(request).await;
    }
    match tokio::time::timeout(api.request_timeout, next.run(request)).await {
        Ok(response) => response,
        Err(_) => ApiError::new(
            StatusCode::REQUEST_TIMEOUT,
            "too_slow",
            "the request took too long",
            "read the events to see whether it was recorded before you repeat it",
        )
        .into_response(),
    }
}

async fn not_found(request: Request) -> ApiError {
    let message = format!("there is no {}", request.uri().path());
    ApiError::new(StatusCode::NOT_FOUND, "no_such_path", message, "/api/openapi.json lists the paths")
}

async fn wrong_method(request: Request) -> ApiError {
    let message = format!("{} is not possible on {}", request.method(), request.uri().path());
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "wrong_method", message, "/api/openapi.json lists the methods")
}
