//! Quests over HTTP. A quest is named by its id, by its slug, or by the beginning of one of them.

use super::error::{ApiError, JsonBody, PathParts, Query};
use super::run_defaults::RunDefaults;
use super::{Accepted, Api};
use crate::clock;
use crate::config::Isolated;
use crate::quest_document::{QuestDocument, QuestWord};
use crate::quests;
use crate::report::{Code, Report};
use crate::step_plan;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use hatchery_core::permission::PermissionPolicy;
use hatchery_core::quest::{self, QuestSpec, StepId, StepPlan, StepStatus};
use hatchery_core::roles::{self, Preset};
use hatchery_core::run::RunOptions;
use hatchery_core::usage::Money;
use hatchery_core::{Command, EventId, QuestId, Refusal, Timestamp, World, budget};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RetryQuery {
    /// Let a new agent try, without the conversation of the previous agent.
    #[serde(default)]
    fresh: bool,
}

#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewQuest {
    /// Its id, if the caller chooses it: 128 random bits. Then the request can be repeated if its answer is lost; it is refused
    /// with `quest_exists` if the first request was carried out.
    id: Option<QuestId>,
    /// The request. At most 256 KiB of UTF-8.
    request: String,
    /// How many steps run at the same time.
    #[schema(minimum = 1, maximum = 64)]
    slots: Option<u32>,
    /// The command that checks the work. Guessed from the project's files if not given; empty for none.
    ward: Option<String>,
    /// The time limit of the ward.
    #[schema(minimum = 1_000, maximum = 86_400_000)]
    #[serde(rename = "wardLimitMs", alias = "ward_limit_ms")]
    ward_limit_ms: Option<u64>,
    /// Where steps work: `worktree` or `none`.
    isolation: Option<Isolated>,
    /// Which phases and roles the quest uses: `full`, `checked` (no requirements, plan and review) or `quick` (one agent and the ward).
    /// Without a planner the request is the only step, unless `steps` has others.
    #[serde(default)]
    preset: Preset,
    /// Ask the user to approve the agents' plan. Not together with `steps`.
    #[serde(rename = "approvePlan", alias = "approve_plan")]
    approve_plan: Option<bool>,
    /// How much all agents of the quest may spend, in dollars, such as `5` or `0.25`.
    budget: Option<String>,
    /// Create the quest paused: nothing starts until it is resumed.
    #[serde(default)]
    hold: bool,
    /// The steps, if you have planned them yourself.
    #[serde(default, deserialize_with = "step_plan::deserialize")]
    steps: Vec<StepPlan>,
    /// How the agents of the quest are run.
    #[serde(default)]
    with: RunOptions,
}

#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetQuestBudget {
    /// In dollars, such as `5` or `0.25`. Null removes the budget.
    limit: Option<String>,
}

#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetWard {
    /// A shell command. Null removes the ward.
    command: Option<String>,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct QuestList {
    /// The last event that this answer includes. A client that follows the log after this event misses nothing.
    pub head: EventId,
    /// The newest last.
    pub quests: Vec<QuestLine>,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct QuestLine {
    pub id: QuestId,
    pub request: String,
    pub state: QuestWord,
    /// Steps of the plan that are complete.
    pub complete: usize,
    /// Steps of the plan.
    pub steps: usize,
    pub running: usize,
    /// How many open questions about the quest there are.
    pub questions: usize,
    pub failed: usize,
    #[serde(with = "crate::amounts::money")]
    #[schema(value_type = crate::amounts::Amount)]
    pub spent: Money,
    pub created: Timestamp,
    pub changed: Timestamp,
}

/// List all quests.
#[utoipa::path(get, path = "/api/quests", operation_id = "list_quests", tag = "quests", responses((status = 200, description = "The newest last", body = QuestList)))]
pub async fn list(State(api): State<Api>) -> Json<QuestList> {
    let world = api.handle.view();
    let mut quests: Vec<QuestLine> =
        world.quests().filter_map(|(id, _)| QuestDocument::of(&world, id)).map(|quest| line(&quest)).collect();
    quests.sort_by_key(|quest| (quest.created, quest.id));
    Json(QuestList { head: world.head(), quests })
}

/// What a new quest has if its request says nothing about it.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuestDefaults {
    slots: u32,
    approve_plan: bool,
    /// The command that checks the work. Null for none.
    ward: Option<String>,
    /// The file from which the ward is guessed. Null if the settings name it.
    guessed_from: Option<String>,
    /// What the user should know before a quest begins, such as changes that its agents would not see.
    warning: Option<String>,
}

/// Show what a new quest has if its request says nothing about it: slots, the ward, which may be guessed from the project's files, and a warning.
#[utoipa::path(get, path = "/api/quest-defaults", operation_id = "quest_defaults", tag = "quests",
    responses((status = 200, description = "As of now", body = QuestDefaults)))]
pub async fn defaults(State(api): State<Api>) -> Result<Json<QuestDefaults>, ApiError> {
    let (project, usual) = (api.defaults.project.clone(), api.defaults.quests.clone());
    let look = move || {
        let ward = quests::ward_of(&project, &usual, None, None);
        let (slots, approve_plan) = (usual.slots, usual.approve_plan);
        let warning = match usual.isolation {
            Some(Isolated::None) => None,
            Some(Isolated::Worktree) | None => quests::unseen_changes(&project)?,
        };
        let (ward, guessed_from) = ward.map_or((None, None), |ward| (Some(ward.command), ward.guessed_from));
        Ok::<_, Report>(QuestDefaults { slots, approve_plan, ward, guessed_from, warning })
    };
    let looked = tokio::task::spawn_blocking(look).await.map_err(Report::failed).flatten();
    looked.map(Json).map_err(unusable)
}

/// Create a quest. The id in the answer is the quest's.
#[utoipa::path(post, path = "/api/quests", operation_id = "new_quest", tag = "quests", request_body = NewQuest,
    responses((status = 201, description = "Begun, or paused", body = super::AcceptedBody)))]
pub async fn new(State(api): State<Api>, body: JsonBody<NewQuest>) -> Result<(StatusCode, Accepted), ApiError> {
    let NewQuest {
        id,
        request,
        slots,
        ward,
        ward_limit_ms,
        isolation,
        preset,
        approve_plan,
        budget,
        hold,
        mut steps,
        with,
    } = body.0;
    // This comes first: what is wrong when a request is repeated may have been right the first time.
    if let Some(id) = id.filter(|id| api.handle.view().quest(*id).is_some()) {
        return Err(Refusal::QuestExists(id).into());
    }
    if steps.is_empty() && !preset.plans() {
        steps.push(StepPlan::whole(&request));
    }
    if approve_plan == Some(true) && !steps.is_empty() {
        let message = "no agent plans this quest, so there is no plan to approve";
        return Err(ApiError::bad(
            "plan_given",
            message,
            "leave out approvePlan (--approve-plan), or the steps (--plan) and the preset (--quick, --roles)",
        ));
    }
    let spec = api.defaults.spec(None, None, with)?;
    let id = id.unwrap_or_else(clock::new_quest_id);
    let wish = quests::QuestOptions { request, slots, ward, ward_limit_ms, isolation, approve_plan, preset };
    let (project, settings) = (api.defaults.project.clone(), api.defaults.quests.clone());
    let program =
        api.defaults.harnesses.named(&spec.harness).map(|harness| harness.program().to_owned()).unwrap_or_default();
    let budget = budget.map(|text| amount(&text)).transpose()?;
    let chartered =
        tokio::task::spawn_blocking(move || quests::quest_spec(&project, &settings, id, wish, spec, &program)).await;
    let quests::Chartered { quest_spec, warning } = chartered.map_err(Report::failed).flatten().map_err(unusable)?;
    players(&api, &quest_spec)?;
    let warnings: Vec<String> = permissions(&quest_spec, &api.defaults)?.into_iter().chain(warning).collect();
    let warning = Some(warnings.join(" ")).filter(|words| !words.is_empty());
    let start = hatchery_core::quest::QuestStart { hold, steps, ..Default::default() };
    let command = Command::CreateQuest { quest: id, quest_spec: Box::new(quest_spec), budget, start };
    let records = api.handle.submit(command).await?;
    Ok((StatusCode::CREATED, Accepted::new(id.to_string(), &records).warning(warning.as_deref())))
}

/// Import an exported quest. It is paused until it is resumed, and complete steps stay complete. Its files are not part of the export: `warning`
/// says so if the quest's branch does not exist here.
#[utoipa::path(post, path = "/api/quests/import", operation_id = "import_quest", tag = "quests", request_body = QuestDocument,
    responses((status = 201, description = "Taken in, under a new id if its own is taken", body = super::AcceptedBody)))]
pub async fn import(State(api): State<Api>, body: JsonBody<QuestDocument>) -> Result<(StatusCode, Accepted), ApiError> {
    let document = body.0;
    let world = api.handle.view();
    let taken = world.quest(document.id).is_some();
    // Another quest here may have come from the same export.
    let is_used = |branch: &str| {
        let slugs = world.quests().filter_map(|(id, _)| world.quest_spec(id)?.slug());
        slugs.map(|slug| format!("hatchery/{slug}")).any(|used| used == branch)
    };
    let keeps_branch = document.branch.as_deref().is_some_and(|branch| !is_used(branch));
    let id = if taken { clock::new_quest_id() } else { document.id };
    let spec = api.defaults.spec(
        None,
        None,
        RunOptions { harness: Some(document.harness.clone()), ..RunOptions::default() },
    )?;
    let (project, settings) = (api.defaults.project.clone(), api.defaults.quests.clone());
    let budget = document.budget;
    let imported =
        tokio::task::spawn_blocking(move || quests::imported(&project, &settings, id, document, keeps_branch, spec))
            .await;
    let quests::ImportedQuest { quest_spec, start, warnings } =
        imported.map_err(Report::failed).flatten().map_err(unusable)?;
    players(&api, &quest_spec)?;
    let warnings: Vec<String> = permissions(&quest_spec, &api.defaults)?.into_iter().chain(warnings).collect();
    let warning = Some(warnings.join(" ")).filter(|words| !words.is_empty());
    let command = Command::CreateQuest { quest: id, quest_spec: Box::new(quest_spec), budget, start };
    let records = api.handle.submit(command).await?;
    Ok((StatusCode::CREATED, Accepted::new(id.to_string(), &records).warning(warning.as_deref())))
}

/// Show a quest with its steps: the same as its `quest.json`, and `head`.
#[utoipa::path(get, path = "/api/quests/{quest}", operation_id = "show_quest", tag = "quests", params(("quest" = String, Path, description = "An id, or the beginning of one")),
    responses((status = 200, description = "As it is now", body = QuestDocument)))]
pub async fn show(State(api): State<Api>, reference: PathParts<String>) -> Result<Json<QuestDocument>, ApiError> {
    let id = find(&api, &reference.0)?;
    let world = api.handle.view();
    let document = QuestDocument::of(&world, id).ok_or(Refusal::UnknownQuest(id))?;
    Ok(Json(QuestDocument { head: Some(world.head()), ..document }))
}

/// Pause a quest: stop its agents and start nothing new. The agents continue when the quest is resumed.
#[utoipa::path(post, path = "/api/quests/{quest}/pause", operation_id = "pause_quest", tag = "quests", params(("quest" = String, Path, description = "An id, or the beginning of one")),
    responses((status = 200, description = "Paused; nothing is marked as failed", body = super::AcceptedBody)))]
pub async fn pause(State(api): State<Api>, reference: PathParts<String>) -> Result<Accepted, ApiError> {
    let quest = find(&api, &reference.0)?;
    tell(&api, quest, Command::PauseQuest { quest }).await
}

/// Continue a paused quest.
#[utoipa::path(post, path = "/api/quests/{quest}/resume", operation_id = "resume_quest", tag = "quests", params(("quest" = String, Path, description = "An id, or the beginning of one")),
    responses((status = 200, description = "It goes on", body = super::AcceptedBody)))]
pub async fn resume(State(api): State<Api>, reference: PathParts<String>) -> Result<Accepted, ApiError> {
    let quest = find(&api, &reference.0)?;
    go_on(&api, quest).await
}

/// Resumes a paused quest.
pub(super) async fn go_on(api: &Api, quest: QuestId) -> Result<Accepted, ApiError> {
    check_programs(api, quest).await?;
    tell(api, quest, Command::ResumeQuest { quest }).await
}

/// End a quest permanently. Its agents are stopped, and the work in its worktrees is kept as rescue refs.
#[utoipa::path(post, path = "/api/quests/{quest}/abandon", operation_id = "abandon_quest", tag = "quests", params(("quest" = String, Path, description = "An id, or the beginning of one")),
    responses((status = 200, description = "Abandoned", body = super::AcceptedBody)))]
pub async fn abandon(State(api): State<Api>, reference: PathParts<String>) -> Result<Accepted, ApiError> {
    let quest = find(&api, &reference.0)?;
    tell(&api, quest, Command::AbandonQuest { quest }).await
}

/// Set how much all agents of a quest may spend.
#[utoipa::path(post, path = "/api/quests/{quest}/budget", operation_id = "set_quest_budget", tag = "quests", params(("quest" = String, Path, description = "An id, or the beginning of one")), request_body = SetQuestBudget,
    responses((status = 200, description = "Set; what waited for it goes on", body = super::AcceptedBody)))]
pub async fn set_budget(
    State(api): State<Api>,
    reference: PathParts<String>,
    body: JsonBody<SetQuestBudget>,
) -> Result<Accepted, ApiError> {
    let quest = find(&api, &reference.0)?;
    let limit = body.0.limit.map(|text| amount(&text)).transpose()?;
    tell(&api, quest, Command::SetQuestBudget { quest, limit }).await
}

/// Change or remove the ward. Steps at the ward, or waiting because of it, start again with the new ward; results of the old ward no longer count.
/// A step that has failed because of it needs a retry.
#[utoipa::path(post, path = "/api/quests/{quest}/ward", operation_id = "set_quest_ward", tag = "quests", params(("quest" = String, Path, description = "An id, or the beginning of one")), request_body = SetWard,
    responses((status = 200, description = "Set; what is complete stays so", body = super::AcceptedBody)))]
pub async fn set_ward(
    State(api): State<Api>,
    reference: PathParts<String>,
    body: JsonBody<SetWard>,
) -> Result<Accepted, ApiError> {
    let quest = find(&api, &reference.0)?;
    let limit_ms = api.defaults.quests.ward_limit_ms;
    tell(&api, quest, Command::SetWard { quest, command: body.0.command, limit_ms }).await
}

/// Try a failed step again. Steps that depend on it become unblocked.
#[utoipa::path(post, path = "/api/quests/{quest}/steps/{step}/retry", operation_id = "retry_step", tag = "quests", params(("quest" = String, Path, description = "An id, or the beginning of one"), ("step" = String, Path, description = "The id of a step"), RetryQuery),
    responses((status = 200, description = "It waits for a slot", body = super::AcceptedBody)))]
pub async fn retry(
    State(api): State<Api>,
    of: PathParts<(String, String)>,
    query: Query<RetryQuery>,
) -> Result<Accepted, ApiError> {
    let (reference, step) = of.0;
    let quest = find(&api, &reference)?;
    let step: StepId = step.parse()?;
    check_programs(&api, quest).await?;
    tell(&api, quest, Command::RetryStep { quest, step, fresh: query.0.fresh }).await
}

/// Refuses a quest whose agents cannot work with their permissions. Otherwise returns what the user should know about the permissions.
fn permissions(quest_spec: &QuestSpec, defaults: &RunDefaults) -> Result<Option<String>, ApiError> {
    defaults.refuse_to_root(quest_spec)?;
    let harnesses = &defaults.harnesses;
    let paths = &quest_spec.table.paths;
    let roles = paths.work.iter().chain(&paths.review).filter(|station| *station != roles::WARD);
    let of: BTreeMap<&str, PermissionPolicy> =
        roles.map(|role| (role.as_str(), quest_spec.permissions(role))).collect();
    let with = |policy| of.iter().find(|(_, its)| **its == policy).map(|(role, _)| *role);
    let program_decides = |role: &str| {
        harnesses.named(quest_spec.harness(role)).is_some_and(|harness| harness.program_decides_permissions())
    };
    let workers = paths.work.iter().filter(|station| *station != roles::WARD);
    let cannot_work = |role: &&String| quest_spec.permissions(role) == PermissionPolicy::None && !program_decides(role);
    if let Some(role) = workers.into_iter().find(cannot_work) {
        return Err(ApiError::new(
            StatusCode::CONFLICT,
            "cannot_work",
            format!("with the permissions `none`, the role `{role}` cannot change any file, so no step could be done"),
            "use --permissions edits, or set `permissions` for the role in [[quests.roles]] of hatchery.toml",
        ));
    }
    Ok(if let Some(role) = with(PermissionPolicy::All) {
        Some(format!("with the permissions `all`, agents such as {role} may run any command on this machine, unasked"))
    } else {
        with(PermissionPolicy::Ask).map(|role| {
            format!("with the permissions `ask`, agents such as {role} ask you before each change: `hatchery ask list`")
        })
    })
}

async fn tell(api: &Api, quest: QuestId, command: Command) -> Result<Accepted, ApiError> {
    let records = api.handle.submit(command).await?;
    Ok(Accepted::new(quest.to_string(), &records))
}

/// The quest that a reference in a path, a query or a body means.
pub(super) fn find(api: &Api, reference: &str) -> Result<QuestId, ApiError> {
    Ok(quest::resolve(&api.handle.view(), reference)?)
}

pub(super) fn amount(text: &str) -> Result<Money, ApiError> {
    let bad = || ApiError::bad("bad_amount", format!("`{text}` is no amount of dollars"), "for example 5 or 0.25");
    budget::amount(text).ok_or_else(bad)
}

/// The error for a request that is wrong, or that cannot be carried out in this project.
pub(super) fn unusable(report: Report) -> ApiError {
    let status = if report.code == Code::Usage { StatusCode::BAD_REQUEST } else { StatusCode::CONFLICT };
    let hint = report.hint.unwrap_or_else(|| "mend it and ask again".into());
    ApiError::new(status, "unusable", report.message, hint)
}

/// Checks that the harnesses of the roles exist, and that their programs are installed.
fn players(api: &Api, quest_spec: &QuestSpec) -> Result<(), ApiError> {
    for role in &quest_spec.table.roles {
        let Some(harness) = &role.harness else { continue };
        let Some(harness) = api.defaults.harnesses.named(harness) else {
            let known = api.defaults.harnesses.names().join(", ");
            let message = format!("the role {} has the harness `{harness}`, which does not exist", role.name);
            return Err(ApiError::bad("no_such_harness", message, format!("choose one of: {known}")));
        };
        quests::check_program(&api.defaults.project, harness.name(), harness.program()).map_err(unusable)?;
    }
    Ok(())
}

/// Checks that the agents of a quest can be started, if they would be started here.
async fn check_programs(api: &Api, quest: QuestId) -> Result<(), ApiError> {
    let world = api.handle.view();
    match world.quest_spec(quest) {
        Some(quest_spec) if quest_spec.spec.host == api.defaults.host => {
            super::runs::check_program(api, &quest_spec.spec.harness).await?;
            api.defaults.refuse_to_root(quest_spec)?;
            players(api, quest_spec)
        }
        Some(_) if api.defaults.store_is_private => Err(ApiError::new(
            StatusCode::CONFLICT,
            "quest_of_another_folder",
            format!("quest {quest} was begun in another project folder, from which this log was imported or copied"),
            format!(
                "`hatchery quest export {quest} > quest.json` and `hatchery quest import quest.json` continue it here"
            ),
        )),
        Some(_) | None => Ok(()),
    }
}

pub(super) fn line_of(world: &World, id: QuestId) -> Option<QuestLine> {
    QuestDocument::of(world, id).map(|quest| line(&quest))
}

fn line(quest: &QuestDocument) -> QuestLine {
    let count = |status| quest.steps.iter().filter(|step| step.status == status).count();
    let (complete, steps) = quest.progress();
    QuestLine {
        id: quest.id,
        request: quest.request.lines().next().unwrap_or_default().chars().take(200).collect(),
        state: quest.state,
        complete,
        steps,
        running: count(StepStatus::Running) + count(StepStatus::WaitingForRole),
        questions: quest.steps.iter().filter(|step| step.question.is_some()).count(),
        failed: count(StepStatus::Failed),
        spent: quest.spent.cost,
        created: quest.created,
        changed: quest.changed,
    }
}
