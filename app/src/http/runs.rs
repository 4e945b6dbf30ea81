//! Runs over HTTP.

use super::agent_view::open_question;
use super::agents::{find, new_agent_id, tell};
use super::error::{ApiError, ErrorBody, ErrorDetail, JsonBody, PathParts, Query};
use super::once::{CallerId, Once};
use super::quests::amount;
use super::{Accepted, Api};
use crate::calls::{CallAnswer, CallError};
use crate::clock;
use crate::quests;
use crate::report::Report;
use crate::run_folder::RunFolder;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use hatchery_core::agent::Birth;
use hatchery_core::event::Refused;
use hatchery_core::outcome::Cause;
use hatchery_core::permission::PermissionPolicy;
use hatchery_core::quest::StepId;
use hatchery_core::run::{AttemptId, PastRun, Run, RunOptions, RunState, last_spec};
use hatchery_core::seat;
use hatchery_core::usage::Usage;
use hatchery_core::why::{self, Activity, Evidence};
use hatchery_core::{AgentId, Command, EventId, QuestId, Refusal, Timestamp, World};
use serde::{Deserialize, Serialize};

#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartRun {
    /// The new agent's id, if the caller chooses it: 128 random bits. Then the request can be repeated if its answer is lost; it is
    /// refused with `agent_exists` if the first request was carried out.
    id: Option<AgentId>,
    /// The task of the new agent. At most 1 MiB of UTF-8.
    prompt: String,
    /// The parent; agent 0 if not given.
    parent: Option<String>,
    /// The new agent's name. At most 64 bytes of UTF-8.
    name: Option<String>,
    /// Whether the agent works in a git worktree with its own branch. Not together with `folder`. If not given, the setting
    /// `worktrees.runs` counts.
    worktree: Option<bool>,
    /// What the new agent may spend, in dollars, such as `5` or `0.25`.
    budget: Option<String>,
    /// Options of the run.
    #[serde(default)]
    with: RunOptions,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Say {
    /// An id that the caller has chosen. A repeated request with the same id and content gets the same answer, and is carried out only
    /// once. The latest 10,000 ids of a project are remembered.
    id: Option<CallerId>,
    /// At most 1 MiB of UTF-8.
    text: String,
    /// If a run is started: options that differ from the last run.
    #[serde(default)]
    with: RunOptions,
}

/// A tool call that the agent's tools have written into its run folder.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TakeCall {
    /// The number of the run.
    run: u32,
    /// The number of its process.
    attempt: u32,
    /// The number of the call in the attempt: 1, 2, 3, …
    #[schema(minimum = 1)]
    number: u64,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RunList {
    /// The last event that this answer includes. A client that follows the log after this event misses nothing.
    pub head: EventId,
    /// Open and ended runs, by agent and number.
    pub runs: Vec<RunView>,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RunView {
    pub agent: AgentId,
    pub name: Option<String>,
    pub run: u32,
    pub attempts: u32,
    pub harness: String,
    pub phase: RunPhase,
    pub pid: Option<u32>,
    /// Why it is parked, or why it ended.
    pub cause: Option<Cause>,
    pub detail: Option<String>,
    /// When a parked run continues by itself.
    pub until: Option<Timestamp>,
    pub requested: Timestamp,
    /// The last sign of life of the process, or the end of the run.
    #[serde(rename = "lastOutput")]
    pub last_output: Timestamp,
    pub turns: u32,
    #[serde(with = "crate::amounts::usage")]
    #[schema(value_type = crate::amounts::UsageAmount)]
    pub spent: Usage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunPhase {
    /// It has no process yet, because as many agents run as `max_runs` allows.
    Waiting,
    Starting,
    Running,
    Stopping,
    Parked,
    Ended,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WhyView {
    /// The last event that this answer includes. A client that follows the log after this event misses nothing.
    pub head: EventId,
    pub agent: AgentId,
    pub name: Option<String>,
    pub state: Activity,
    pub evidence: Vec<Evidence>,
    /// The time of the request. The age of the evidence is counted from here.
    pub now: Timestamp,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct UsageView {
    /// The last event that this answer includes. A client that follows the log after this event misses nothing.
    pub head: EventId,
    #[serde(with = "crate::amounts::usage")]
    #[schema(value_type = crate::amounts::UsageAmount)]
    pub total: Usage,
    pub agents: Vec<AgentUsage>,
    pub days: Vec<DayUsage>,
    /// By day and agent, with the quest and the model of the agent. Only the requested last days.
    #[serde(default)]
    pub parts: Vec<UsagePart>,
}

/// What an agent used on a day.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct UsagePart {
    /// When the day began, in UTC.
    pub day: Timestamp,
    pub agent: AgentId,
    pub name: Option<String>,
    pub quest: Option<QuestId>,
    pub step: Option<StepId>,
    /// The model that its last run asked for. Null if the agent program chose the model.
    pub model: Option<String>,
    /// The harness of its last run.
    pub harness: Option<String>,
    #[serde(with = "crate::amounts::usage")]
    #[schema(value_type = crate::amounts::UsageAmount)]
    pub spent: Usage,
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct UsageQuery {
    /// How many days up to today `parts` covers, from 0 to 366; 0 if not given.
    #[param(maximum = 366)]
    days: Option<u16>,
}

/// The most days that `parts` can cover.
const MAX_DAYS: u16 = 366;

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AgentUsage {
    pub agent: AgentId,
    pub name: Option<String>,
    #[serde(with = "crate::amounts::usage")]
    #[schema(value_type = crate::amounts::UsageAmount)]
    pub spent: Usage,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct DayUsage {
    /// When the day began, in UTC.
    pub day: Timestamp,
    #[serde(with = "crate::amounts::usage")]
    #[schema(value_type = crate::amounts::UsageAmount)]
    pub spent: Usage,
}

/// List all runs, open and ended.
#[utoipa::path(get, path = "/api/runs", operation_id = "list_runs", tag = "runs", responses((status = 200, description = "By agent and number", body = RunList)))]
pub async fn list(State(api): State<Api>) -> Json<RunList> {
    let world = api.handle.view();
    let mut runs: Vec<RunView> = world.runs().flat_map(|(agent, _)| views(&world, agent)).collect();
    runs.sort_by_key(|run| (run.requested, run.agent, run.run));
    Json(RunList { head: world.head(), runs })
}

/// Create an agent and start a run. The id in the answer is the agent's.
#[utoipa::path(post, path = "/api/runs", operation_id = "start_run", tag = "runs", request_body = StartRun,
    responses((status = 201, description = "A process is on its way", body = super::AcceptedBody)))]
pub async fn start(State(api): State<Api>, body: JsonBody<StartRun>) -> Result<(StatusCode, Accepted), ApiError> {
    let StartRun { id, prompt, parent, name, worktree, budget, mut with } = body.0;
    let budget = budget.map(|text| amount(&text)).transpose()?;
    let world = api.handle.view();
    let agent = new_agent_id(&world, id)?;
    hatchery_core::agent::check_given_name(&world, name.as_deref(), None)?;
    let root = world.root().ok_or_else(|| Refusal::NobodyCalled("agent 0".into()));
    let parent = match parent {
        Some(reference) => find(&api, &reference)?,
        None => root?,
    };
    if worktree == Some(true) && with.folder.is_some() {
        let hint = "leave out one of them";
        return Err(ApiError::bad("folder_and_worktree", "an agent with a worktree cannot have another folder", hint));
    }
    let mut warnings = Vec::new();
    if worktree.unwrap_or(api.defaults.worktrees.runs && with.folder.is_none()) {
        let words = name.clone().unwrap_or_else(|| prompt.clone());
        let (folder, unseen) = own_worktree(&api, agent, words).await?;
        with.folder = Some(folder);
        warnings.extend(unseen);
    }
    let spec = api.defaults.spec_of_run(None, None, with)?;
    if spec.permissions == Some(PermissionPolicy::All) {
        warnings.push(ALL_UNASKED.to_owned());
    }
    let warning = Some(warnings.join(" ")).filter(|words| !words.is_empty());
    check_program(&api, &spec.harness).await?;
    let (provider, model) = (Some(spec.harness.clone()), spec.model.clone());
    let birth =
        Birth { name, provider, model, prompt: Some(prompt), run: Some(Box::new(spec)), budget, ..Birth::of(agent) };
    let records = api.handle.submit(Command::Fork { parent, at: None, birth }).await?;
    Ok((StatusCode::CREATED, Accepted::new(agent.to_string(), &records).warning(warning.as_deref())))
}

/// The warning about an agent that may do everything without asking.
const ALL_UNASKED: &str = "with the permissions `all`, the agent may run any command on this machine, unasked";

/// Refuses a harness whose program is missing or too old, before anything is recorded.
pub(super) async fn check_program(api: &Api, harness: &str) -> Result<(), ApiError> {
    let Some(harness) = api.defaults.harnesses.named(harness) else { return Ok(()) };
    let project = api.defaults.project.clone();
    let looked =
        tokio::task::spawn_blocking(move || quests::check_program(&project, harness.name(), harness.program()));
    looked.await.map_err(Report::failed).flatten().map_err(super::quests::unusable)
}

/// The folder of an agent with its own worktree, and a warning about changes that the agent does not see there.
async fn own_worktree(api: &Api, agent: AgentId, words: String) -> Result<(String, Option<String>), ApiError> {
    let project = api.defaults.project.clone();
    let found = tokio::task::spawn_blocking(move || {
        Ok((quests::agent_folder(&project, agent, &words)?, quests::unseen_changes(&project)?))
    });
    found.await.map_err(Report::failed).flatten().map_err(super::quests::unusable)
}

/// Send a message to an agent, and start a run if none is open.
#[utoipa::path(post, path = "/api/agents/{agent}/say", operation_id = "say", tag = "runs", params(("agent" = String, Path, description = "An id, the beginning of one, or a name")), request_body = Say,
    responses((status = 200, description = "It is in the agent's history, and will be said to its process", body = super::AcceptedBody)))]
pub async fn say(
    State(api): State<Api>,
    reference: PathParts<String>,
    body: JsonBody<Say>,
) -> Result<Accepted, ApiError> {
    let once = Once::of(body.0.id.as_ref(), "say", &reference.0, &body.0)?;
    if let Some(answer) = once.answered(&api).await? {
        return Ok(answer);
    }
    let agent = find(&api, &reference.0)?;
    let world = api.handle.view();
    // The process of this agent is in the team of the lead, and is reached through the team's inbox or through the lead.
    if let Some(position) = seat::team_managed(&world, agent) {
        let (text, with) = (body.0.text, RunOptions::default());
        let records = super::seat_messages::deliver(&api, &once, Some(position), text, None, with).await?;
        return Ok(Accepted::new(agent.to_string(), &records));
    }
    let harness_session = world.conversation(agent).and_then(|conversation| conversation.harness_session.as_ref());
    let spec = api.defaults.spec_of_run(last_spec(&world, agent), harness_session, body.0.with)?;
    let warning = match world.run(agent).filter(|run| run.is_open()) {
        // The agent has a process, so the message starts none.
        Some(run) => waits_first(&world, agent, run),
        None => {
            check_program(&api, &spec.harness).await?;
            (spec.permissions == Some(PermissionPolicy::All)).then(|| ALL_UNASKED.to_owned())
        }
    };
    let records = once.submit(&api, Command::Say { agent, text: body.0.text, spec: Some(spec) }).await?;
    // A run whose budget is used up is parked before it has a process.
    let world = api.handle.view();
    let parked = world.run(agent).filter(|run| matches!(run.state, RunState::Parked { .. }));
    let parked = parked.and_then(|run| waits_first(&world, agent, run));
    let warnings: Vec<String> = parked.into_iter().chain(warning).collect();
    let warning = (!warnings.is_empty()).then(|| warnings.join("; "));
    Ok(Accepted::new(agent.to_string(), &records).warning(warning.as_deref()))
}

/// The warning that an agent has to wait before it can read a message.
fn waits_first(world: &World, agent: AgentId, run: &Run) -> Option<String> {
    match (open_question(world, agent), &run.state) {
        (Some(question), _) => Some(format!(
            "the agent waits for you, and reads the message after your answer: `hatchery ask answer {question} …`"
        )),
        (None, RunState::Parked { .. }) => Some(format!(
            "the agent is parked, and reads the message when its run goes on: `hatchery why {agent}` says when"
        )),
        (None, _) => None,
    }
}

/// Interrupt the current turn of an agent. Its process keeps running.
#[utoipa::path(post, path = "/api/agents/{agent}/interrupt", operation_id = "interrupt", tag = "runs", params(("agent" = String, Path, description = "An id, the beginning of one, or a name")),
    responses((status = 200, description = "It will be told", body = super::AcceptedBody)))]
pub async fn interrupt(State(api): State<Api>, reference: PathParts<String>) -> Result<Accepted, ApiError> {
    let agent = find(&api, &reference.0)?;
    tell(&api, agent, Command::InterruptRun { agent }).await
}

/// End an agent's run and every process that it started. The agent stays and can be started again.
#[utoipa::path(post, path = "/api/agents/{agent}/stop", operation_id = "stop_run", tag = "runs", params(("agent" = String, Path, description = "An id, the beginning of one, or a name")),
    responses((status = 200, description = "It is being stopped; its run_ended event says when it is", body = super::AcceptedBody)))]
pub async fn stop(State(api): State<Api>, reference: PathParts<String>) -> Result<Accepted, ApiError> {
    let agent = find(&api, &reference.0)?;
    tell(&api, agent, Command::StopRun { agent }).await
}

/// The code of an answer to a call that is no longer kept.
pub const ANSWER_FORGOTTEN: &str = "answer_forgotten";

/// Carry out a tool call that an agent's tools have written into the run folder. A repeated request gets the same answer.
#[utoipa::path(post, path = "/api/agents/{agent}/calls", operation_id = "take_call", tag = "runs", params(("agent" = String, Path, description = "An id, the beginning of one, or a name")), request_body = TakeCall,
    responses((status = 200, description = "What it led to", body = super::AcceptedBody)))]
pub async fn call(
    State(api): State<Api>,
    reference: PathParts<String>,
    body: JsonBody<TakeCall>,
) -> Result<Response, ApiError> {
    let agent = find(&api, &reference.0)?;
    let of = AttemptId { agent, run: body.0.run, attempt: body.0.attempt };
    let folder = RunFolder::of(&api.defaults.project, of);
    match api.calls.answer(&folder, of, body.0.number).await {
        Ok(CallAnswer::Done(records)) => Ok(Accepted::new(agent.to_string(), &records).into_response()),
        Ok(CallAnswer::Refused(Refused { code, message, hint })) => {
            let error = ErrorDetail { code, message, hint };
            Ok((StatusCode::CONFLICT, Json(ErrorBody { error })).into_response())
        }
        Err(CallError::Engine(error)) => Err(error.into()),
        Err(CallError::Store(error)) => Err((&error).into()),
        Err(CallError::Folder(error)) if error.kind() != std::io::ErrorKind::NotFound => {
            let hint = "ask again: a call that is written down is carried out once";
            Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "calls_unreadable", error, hint))
        }
        Err(error @ CallError::Forgotten(_)) => {
            let hint = "the call was carried out; the agent's history shows what it led to";
            Err(ApiError::new(StatusCode::GONE, ANSWER_FORGOTTEN, error, hint))
        }
        Err(error @ (CallError::Folder(_) | CallError::NoSuchCall(_))) => {
            Err(ApiError::new(StatusCode::NOT_FOUND, "no_such_call", error, "write the call down first"))
        }
    }
}

/// Show what an agent is doing now, with the evidence.
#[utoipa::path(get, path = "/api/agents/{agent}/why", operation_id = "why", tag = "runs", params(("agent" = String, Path, description = "An id, the beginning of one, or a name")),
    responses((status = 200, description = "Its state, and the evidence for it", body = WhyView)))]
pub async fn why(State(api): State<Api>, reference: PathParts<String>) -> Result<Json<WhyView>, ApiError> {
    let agent = find(&api, &reference.0)?;
    let world = api.handle.view();
    let why = why::why(&world, agent).ok_or(Refusal::UnknownAgent(agent))?;
    let name = world.agent(agent).and_then(|it| it.name.clone());
    Ok(Json(WhyView { head: world.head(), agent, name, state: why.state, evidence: why.evidence, now: clock::now() }))
}

/// Cost and tokens: in total, by agent, by day, and by both.
#[utoipa::path(get, path = "/api/usage", operation_id = "usage", tag = "runs", params(UsageQuery), responses((status = 200, description = "Money and tokens", body = UsageView)))]
pub async fn usage(State(api): State<Api>, query: Query<UsageQuery>) -> Result<Json<UsageView>, ApiError> {
    /// The days of the log begin at midnight in UTC.
    const DAY_MS: i64 = 24 * 3_600 * 1_000;
    let last_days = query.0.days.unwrap_or(0);
    if last_days > MAX_DAYS {
        let hint = format!("choose from 0 to {MAX_DAYS}");
        return Err(ApiError::bad("bad_limit", format!("{last_days} days are too many"), hint));
    }
    let world = api.handle.view();
    let used = |(agent, _): (AgentId, &Run)| {
        let spent = world.conversation(agent)?.spent;
        Some(AgentUsage { agent, name: world.agent(agent).and_then(|it| it.name.clone()), spent })
    };
    let days: Vec<DayUsage> =
        world.days().map(|(day, spent)| DayUsage { day: Timestamp(day * DAY_MS), spent: *spent }).collect();
    let total = days.iter().fold(Usage::default(), |sum, day| sum + day.spent);
    let today = clock::now().0.div_euclid(DAY_MS);
    let part = |(day, agent, spent): (i64, AgentId, &Usage)| {
        let (it, run, assignment) = (world.agent(agent), world.run(agent), world.assignment(agent));
        UsagePart {
            day: Timestamp(day * DAY_MS),
            agent,
            name: it.and_then(|it| it.name.clone()),
            quest: assignment.map(|it| it.quest),
            step: assignment.map(|it| it.step.clone()),
            model: run.and_then(|run| run.spec.model.clone()).or_else(|| it.and_then(|it| it.model.clone())),
            harness: run.map(|run| run.spec.harness.clone()),
            spent: *spent,
        }
    };
    let parts = match last_days {
        0 => Vec::new(),
        last_days => world.agent_days(today - i64::from(last_days) + 1).map(part).collect(),
    };
    Ok(Json(UsageView { head: world.head(), total, agents: world.runs().filter_map(used).collect(), days, parts }))
}

/// The runs of one agent, ended ones first.
pub(super) fn views(world: &World, agent: AgentId) -> Vec<RunView> {
    let name = world.agent(agent).and_then(|it| it.name.clone());
    let past = world.past_runs(agent).map(|(number, run)| past_view(agent, name.clone(), number, run));
    let open = world.run(agent).filter(|run| run.is_open()).map(|run| view(agent, name.clone(), run));
    past.chain(open).collect()
}

fn past_view(agent: AgentId, name: Option<String>, run: u32, past: &PastRun) -> RunView {
    RunView {
        agent,
        name,
        run,
        attempts: past.attempts,
        harness: past.harness.clone(),
        phase: RunPhase::Ended,
        pid: None,
        cause: Some(past.cause),
        detail: Some(past.detail.clone()),
        until: None,
        requested: past.requested,
        last_output: past.ended,
        turns: past.turns,
        spent: past.spent,
    }
}

fn view(agent: AgentId, name: Option<String>, run: &Run) -> RunView {
    let (phase, cause, until) = match run.state {
        RunState::Starting if run.attempt.waits => (RunPhase::Waiting, None, None),
        RunState::Starting | RunState::Spawned { .. } => (RunPhase::Starting, None, None),
        RunState::Running { .. } => (RunPhase::Running, None, None),
        RunState::Stopping { .. } => (RunPhase::Stopping, None, None),
        RunState::Parked { cause, until } => (RunPhase::Parked, Some(cause), until),
        RunState::Ended { cause, .. } => (RunPhase::Ended, Some(cause), None),
    };
    RunView {
        agent,
        name,
        run: run.number,
        attempts: run.attempt.number,
        harness: run.spec.harness.clone(),
        phase,
        pid: run.process().map(|process| process.pid),
        cause,
        detail: run.awaits_others().then(|| "in its tool `wait`; an agent below it may use its place".to_owned()),
        until,
        requested: run.requested,
        last_output: run.attempt.last_output,
        turns: run.turns,
        spent: run.spent,
    }
}
