//! The HTTP API of the daemon: axum routes over the engine's handle. Handlers translate; they decide nothing.
//!
//! The router and the OpenAPI document come from the same declarations, so every route has a description.

mod adopt;
mod agent_view;
mod agents;
mod branches;
mod changes;
mod dialect;
mod error;
mod event_stream;
mod events;
mod gc;
mod guard;
mod history;
mod inbox;
mod lead_told;
mod live;
mod log;
mod mail;
mod once;
mod overview;
mod page;
mod permissions;
mod projects;
mod questions;
mod quests;
mod rescue;
mod run_defaults;
mod runs;
mod seat_messages;
mod seats;
mod server;
mod sessions;
mod settings;
mod state;
mod state_live;
mod status;
mod ward_trial;
mod wards;
mod wire;

pub use adopt::{Adoptable, AdoptableList, AdoptedView};
pub use agent_view::{AgentState, AgentView, AssignmentView, Doing, called_with};
pub use agents::{AgentList, KillPreview};
pub use branches::{BranchKind, BranchLine, BranchList, BranchView, ClearedBranch};
pub use changes::FileList;
pub use error::{ApiError, ErrorBody, ErrorDetail};
pub use events::Trouble;
pub use gc::{FoundLeftover, Leftovers};
pub use guard::Guard;
pub use history::{HistoryView, ImportView, MessageView};
pub use inbox::{ChangedIdea, IdeaList};
pub use mail::{MailList, MailThreads, SeenMail, SeenState, UnreadMail, Waited};
pub use once::CallerId;
pub use overview::{AgentOverview, Overview};
pub use permissions::{PermissionRuleList, PermissionRuleView};
pub use questions::{BudgetList, BudgetView, PermissionView, QuestionList, QuestionView, TakesView};
pub use quests::{QuestLine, QuestList};
pub use rescue::RescueList;
pub use run_defaults::RunDefaults;
pub use runs::{ANSWER_FORGOTTEN, RunList, RunPhase, RunView, UsageView, WhyView};
pub use seat_messages::{SeatMessageAnswer, ThreadView};
pub use seats::{DocList, FillAnswer, SeatList, SeatView, SessionAnswer, SessionEndAnswer};
pub use server::{Limits, serve};
pub use sessions::{SessionList, SessionPhase, SessionView};
pub use state::{Changed, ResumeView, StatusValue};
pub use status::DaemonStatus;
pub use ward_trial::{TrialVerdict, Trials, TriedWard};
pub use wards::WardOutput;

use crate::calls::Calls;
use crate::engine::Handle;
use crate::live_settings::LiveSettings;
use crate::live_text::LiveTexts;
use crate::log_head::LogHead;
use crate::seat_dialect::DialectEvent;
use crate::status_files::FilesShown;
use crate::team_outbox::TeamOutbox;
use axum::Router;
use axum::extract::{DefaultBodyLimit, FromRef, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use hatchery_core::Record;
use hatchery_core::event::write_wire;
use std::ops::Deref;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, watch};
use utoipa::OpenApi;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// What all handlers need. Cheap to clone, because each extractor of a request clones it.
#[derive(Clone, Debug)]
pub struct Api {
    /// How agents are run, from the settings at the time of the request.
    pub defaults: Arc<RunDefaults>,
    context: Arc<ApiContext>,
}

/// The part of [`Api`] that is the same for all requests.
#[derive(Debug)]
pub struct ApiContext {
    pub handle: Handle,
    pub guard: Guard,
    pub settings: Arc<LiveSettings>,
    /// Takes the tool calls of agents.
    pub calls: Arc<Calls>,
    /// What agents are writing at the moment.
    pub live: Arc<LiveTexts>,
    /// The trials of wards.
    pub trials: Trials,
    /// Reports when the status files show a change.
    pub status_files: FilesShown,
    /// Messages to agents of a lead's team.
    pub outbox: TeamOutbox,
    pub project: String,
    pub store: String,
    /// The head of the log outside of the store, for `fsck`.
    pub log_head: Option<LogHead>,
    pub started: Instant,
    pub heartbeat: Duration,
    pub request_timeout: Duration,
    pub max_body_bytes: usize,
    /// The turns of imports of histories, which are large.
    pub imports: Arc<Semaphore>,
    /// Becomes true when the daemon shuts down, so that streams end.
    pub closing: watch::Receiver<bool>,
}

impl Deref for Api {
    type Target = ApiContext;

    fn deref(&self) -> &ApiContext {
        &self.context
    }
}

/// The state of the routes. Each request gets an [`Api`] with the current settings.
#[derive(Clone, Debug)]
struct Routed(Arc<ApiContext>);

impl FromRef<Routed> for Api {
    fn from_ref(Routed(context): &Routed) -> Self {
        Self { defaults: context.settings.defaults(), context: Arc::clone(context) }
    }
}

#[derive(OpenApi)]
#[openapi(
    components(schemas(ErrorBody, DialectEvent, events::Trouble)),
    info(title = "Hatchery", description = "Runs coding agents the way an operating system runs processes: one durable log, and everything else is a view of it."),
    security(("token" = [])),
)]
struct ApiDocument;

/// The events that a command led to. They are durable.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub struct AcceptedBody {
    /// The subject of the command: an agent's id or a session's.
    #[schema(min_length = 22, max_length = 22, pattern = "^[A-Za-z0-9_-]{21}[AQgw]$")]
    id: String,
    events: Vec<events::EventObject>,
    /// A warning for people, in a sentence or two.
    #[schema(required = false, nullable = false)]
    warning: Option<String>,
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

    /// Adds a warning for people to the answer.
    pub fn warning(mut self, warning: Option<&str>) -> Self {
        if let Some(warning) = warning {
            self.0.pop();
            let words = serde_json::to_string(warning).expect("a sentence is plain data");
            self.0.extend_from_slice(format!(",\"warning\":{words}}}").as_bytes());
        }
        self
    }
}

impl IntoResponse for Accepted {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, "application/json")], self.0).into_response()
    }
}

/// All routes, and the page.
pub fn router(context: &Arc<ApiContext>) -> Router {
    documented()
        .split_for_parts()
        .0
        .route("/", axum::routing::get(page::document))
        .fallback(page::elsewhere)
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(context.max_body_bytes))
        .layer(middleware::from_fn_with_state(Arc::clone(context), in_time))
        .layer(middleware::from_fn_with_state(Arc::clone(context), guard::admit))
        .layer(middleware::from_fn_with_state(Arc::clone(context), dialect::say_errors))
        .with_state(Routed(Arc::clone(context)))
}

/// The OpenAPI document, without a daemon.
pub fn openapi() -> utoipa::openapi::OpenApi {
    let mut document = documented().split_for_parts().1;
    for (path, item) in &mut document.paths.paths {
        for operation in [&mut item.get, &mut item.post, &mut item.delete].into_iter().flatten() {
            add_refusals(operation, guard::is_open(path));
        }
    }
    document
}

/// All operations refuse in the same form, so the form is described here once.
fn add_refusals(operation: &mut Operation, is_open: bool) {
    let refusal = |description: &str| {
        let schema = Ref::from_schema_name("ErrorBody");
        let content = ContentBuilder::new().schema(Some(schema)).build();
        RefOr::T(ResponseBuilder::new().description(description).content("application/json", content).build())
    };
    let responses = &mut operation.responses.responses;
    if !is_open {
        responses.insert("401".into(), refusal("The token is missing or wrong"));
    }
    responses.insert("4XX".into(), refusal("Refused: `code` says why, `hint` says what to do"));
    responses.insert("5XX".into(), refusal("The store is in trouble, or the daemon is stopping; `code` says which"));
}

fn documented() -> OpenApiRouter<Routed> {
    let mut document = ApiDocument::openapi();
    let components = document.components.get_or_insert_default();
    components.add_security_scheme("token", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)));
    OpenApiRouter::with_openapi(document)
        .routes(routes!(describe))
        .routes(routes!(status::health))
        .routes(routes!(status::status))
        .routes(routes!(overview::overview))
        .routes(routes!(status::fsck))
        .routes(routes!(gc::gc))
        .routes(routes!(settings::take_over))
        .routes(routes!(projects::list))
        .routes(routes!(events::stream))
        .routes(routes!(log::page))
        .routes(routes!(log::count))
        .routes(routes!(log::at))
        .routes(routes!(log::map))
        .routes(routes!(events::export))
        .routes(routes!(live::of_agent))
        .routes(routes!(sessions::list, sessions::start))
        .routes(routes!(sessions::end))
        .routes(routes!(agents::list, agents::fork))
        .routes(routes!(agents::show))
        .routes(routes!(agents::rename))
        .routes(routes!(agents::wake))
        .routes(routes!(agents::preview_kill, agents::kill))
        .routes(routes!(history::read))
        .routes(routes!(history::add))
        .routes(routes!(history::clear))
        .routes(routes!(history::mark))
        .routes(routes!(history::rewind))
        .routes(routes!(history::import))
        .routes(routes!(mail::send))
        .routes(routes!(mail::check))
        .routes(routes!(mail::threads))
        .routes(routes!(mail::read))
        .routes(routes!(mail::wait))
        .routes(routes!(runs::list, runs::start))
        .routes(routes!(runs::say))
        .routes(routes!(runs::interrupt))
        .routes(routes!(runs::stop))
        .routes(routes!(runs::call))
        .routes(routes!(runs::why))
        .routes(routes!(runs::usage))
        .routes(routes!(questions::list))
        .routes(routes!(questions::answer))
        .routes(routes!(questions::budgets, questions::set_budget))
        .routes(routes!(permissions::list))
        .routes(routes!(permissions::remove))
        .routes(routes!(adopt::list, adopt::take))
        .routes(routes!(quests::list, quests::new))
        .routes(routes!(quests::defaults))
        .routes(routes!(quests::import))
        .routes(routes!(quests::show))
        .routes(routes!(quests::pause))
        .routes(routes!(quests::resume))
        .routes(routes!(quests::abandon))
        .routes(routes!(quests::set_budget))
        .routes(routes!(quests::set_ward))
        .routes(routes!(ward_trial::try_ward, ward_trial::last_trial))
        .routes(routes!(quests::retry))
        .routes(routes!(wards::output))
        .routes(routes!(changes::of_agent))
        .routes(routes!(changes::files))
        .routes(routes!(changes::of_quest))
        .routes(routes!(changes::of_step))
        .routes(routes!(branches::list))
        .routes(routes!(branches::show))
        .routes(routes!(branches::commit))
        .routes(routes!(branches::merged))
        .routes(routes!(seats::list))
        .routes(routes!(seats::start))
        .routes(routes!(seats::end))
        .routes(routes!(seat_messages::say))
        .routes(routes!(seat_messages::chat))
        .routes(routes!(seats::restate))
        .routes(routes!(seats::summon))
        .routes(routes!(seats::wake))
        .routes(routes!(seats::docs))
        .routes(routes!(seats::import))
        .routes(routes!(seat_messages::thread))
        .routes(routes!(seat_messages::seat_thread))
        .routes(routes!(state::read, state::change))
        .routes(routes!(state::build_status))
        .routes(routes!(state::build_resume))
        .routes(routes!(state::record_build_event))
        .routes(routes!(state_live::live))
        .routes(routes!(inbox::list, inbox::add))
        .routes(routes!(inbox::change))
        .routes(routes!(inbox::dismiss))
        .routes(routes!(rescue::list))
        .routes(routes!(rescue::restore))
}

/// Every answer begins in time, or is an error that says so. A stream has begun when its head is sent.
async fn in_time(State(context): State<Arc<ApiContext>>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    if ["/api/fsck", "/api/history/import", "/api/adopt"].contains(&path) || path.ends_with("/try-ward") {
        return next.run(request).await;
    }
    match tokio::time::timeout(context.request_timeout, next.run(request)).await {
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

/// This document.
#[utoipa::path(get, path = "/api/openapi.json", operation_id = "openapi", tag = "daemon", responses((status = 200, description = "OpenAPI 3.1", content_type = "application/json", body = Object)))]
async fn describe() -> Response {
    static DOCUMENT: LazyLock<String> = LazyLock::new(|| openapi().to_json().expect("the document is plain data"));
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT.as_str()).into_response()
}

async fn not_found(request: Request) -> ApiError {
    let message = format!("there is no {}", guard::cut(request.uri().path()));
    ApiError::new(StatusCode::NOT_FOUND, "no_such_path", message, "/api/openapi.json lists the paths")
}

async fn wrong_method(request: Request) -> ApiError {
    let message =
        format!("{} is not possible on {}", guard::cut(request.method().as_str()), guard::cut(request.uri().path()));
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "wrong_method", message, "/api/openapi.json lists the methods")
}
