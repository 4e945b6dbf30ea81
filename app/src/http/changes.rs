//! The changes of an agent, a step or a quest, over HTTP: which files, how many lines, and the difference of one file.

use super::Api;
use super::error::{ApiError, PathParts, Query};
use crate::own_environment;
use crate::runner::agent_worktrees;
use crate::worktree::{Changes, Comparison, FileDiff, Repository, WorktreeError};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use hatchery_core::quest::{QuestSpec, StepId};
use hatchery_core::{AgentId, EventId, QuestId, World};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The longest path in a request: longer than file systems allow.
const MAX_PATH_BYTES: usize = 4_096;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ChangesQuery {
    /// The path of a file, as in the list. Then the answer is a `FileDiff`.
    #[param(max_length = 4096)]
    file: Option<String>,
}

/// Where the changes are.
enum ChangesOf {
    /// The branch of a quest, by its slug.
    Quest(String),
    Step(String, StepId),
    /// The worktree of an agent that works for no quest.
    Agent(String),
    Folder(PathBuf),
}

/// Show what an agent has changed. For an agent of a quest this is the worktree of its step; for an agent with a worktree of its own this is everything since it left your branch; for any other agent its folder, compared with the last commit.
#[utoipa::path(get, path = "/api/agents/{agent}/changes", operation_id = "agent_changes", tag = "changes", params(("agent" = String, Path, description = "An id, the beginning of one, or a name"), ChangesQuery),
    responses((status = 200, description = "The files, or the difference of one", body = ChangesAnswer)))]
pub async fn of_agent(
    State(api): State<Api>,
    reference: PathParts<String>,
    query: Query<ChangesQuery>,
) -> Result<Json<ChangesAnswer>, ApiError> {
    let agent = super::agents::find(&api, &reference.0)?;
    let place = place_of(&api, &api.handle.view(), agent);
    answer(&api, place, query.0).await
}

/// Show what a quest has changed so far: the merged work of its steps.
#[utoipa::path(get, path = "/api/quests/{quest}/changes", operation_id = "quest_changes", tag = "changes", params(("quest" = String, Path, description = "An id, or the beginning of one"), ChangesQuery),
    responses((status = 200, description = "The files, or the difference of one", body = ChangesAnswer)))]
pub async fn of_quest(
    State(api): State<Api>,
    reference: PathParts<String>,
    query: Query<ChangesQuery>,
) -> Result<Json<ChangesAnswer>, ApiError> {
    let quest = super::quests::find(&api, &reference.0)?;
    let place = match slug(&api.handle.view(), quest) {
        Some(slug) => ChangesOf::Quest(slug),
        None => ChangesOf::Folder(api.defaults.project.root().to_owned()),
    };
    answer(&api, place, query.0).await
}

/// Show what a step has changed: the content of its worktree, or what was merged.
#[utoipa::path(get, path = "/api/quests/{quest}/steps/{step}/changes", operation_id = "step_changes", tag = "changes", params(("quest" = String, Path, description = "An id, or the beginning of one"), ("step" = String, Path, description = "The id of a step"), ChangesQuery),
    responses((status = 200, description = "The files, or the difference of one", body = ChangesAnswer)))]
pub async fn of_step(
    State(api): State<Api>,
    of: PathParts<(String, String)>,
    query: Query<ChangesQuery>,
) -> Result<Json<ChangesAnswer>, ApiError> {
    let (reference, step) = of.0;
    let quest = super::quests::find(&api, &reference)?;
    let step: StepId = step.parse()?;
    let world = api.handle.view();
    let known = world.quest(quest).is_some_and(|quest| quest.step(&step).is_some());
    if !known {
        return Err(hatchery_core::Refusal::UnknownStep { quest, step }.into());
    }
    let place = match slug(&world, quest) {
        Some(slug) => ChangesOf::Step(slug, step),
        None => ChangesOf::Folder(api.defaults.project.root().to_owned()),
    };
    answer(&api, place, query.0).await
}

/// All changes, or the difference of the requested file.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(untagged)]
pub enum ChangesAnswer {
    Changes(Changes),
    File(FileDiff),
}

/// Uses the repository of the project, on a thread that may block.
pub(super) async fn in_repository<T: Send + 'static>(
    api: &Api,
    work: impl FnOnce(&Repository) -> Result<T, WorktreeError> + Send + 'static,
) -> Result<T, ApiError> {
    let (project, by_products) = (api.defaults.project.clone(), api.defaults.worktrees.by_products.clone());
    let done = tokio::task::spawn_blocking(move || {
        let found = Repository::find(&project, own_environment::entries()).map_err(|error| explain(&error))?;
        let repository = found.map_err(|why| {
            let hint = "changes are seen and kept where the project is in a git repository with a commit";
            ApiError::new(StatusCode::CONFLICT, "no_repository", why, hint)
        })?;
        work(&repository.with_by_products(&by_products)).map_err(|error| explain(&error))
    });
    done.await.unwrap_or_else(|error| {
        Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "git_failed", error, "look into .hatchery/daemon.log"))
    })
}

fn explain(error: &WorktreeError) -> ApiError {
    let (status, code, hint) = match error {
        WorktreeError::Name(_) | WorktreeError::NothingRescued(_) => {
            (StatusCode::NOT_FOUND, "nothing_rescued", "GET /api/rescue lists what was kept")
        }
        WorktreeError::Taken(_) => (StatusCode::CONFLICT, "already_restored", "look into that folder"),
        WorktreeError::Busy { .. } => (StatusCode::CONFLICT, "busy", "ask again in a moment"),
        _ => (StatusCode::SERVICE_UNAVAILABLE, "git_failed", "ask again; .hatchery/daemon.log may say more"),
    };
    ApiError::new(status, code, error, hint)
}

fn slug(world: &World, quest: QuestId) -> Option<String> {
    world.quest_spec(quest).and_then(QuestSpec::slug).map(str::to_owned)
}

fn place_of(api: &Api, world: &World, agent: AgentId) -> ChangesOf {
    let root = api.defaults.project.root();
    let assignment = world.assignment(agent);
    let of_quest = assignment.and_then(|assignment| Some((slug(world, assignment.quest)?, assignment.step.clone())));
    match (of_quest, agent_worktrees::slug_of(world, agent)) {
        (Some((slug, step)), _) => ChangesOf::Step(slug, step),
        (None, Some(slug)) => ChangesOf::Agent(slug.to_owned()),
        (None, None) => {
            let folder = world.run(agent).and_then(|run| run.spec.folder.as_deref());
            ChangesOf::Folder(folder.map_or_else(|| root.to_owned(), |folder| root.join(folder)))
        }
    }
}

/// The most files that are listed at once.
const MAX_FILES: usize = 20_000;

/// The files of an agent's folder.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FileList {
    /// The last event that this answer includes. A client that follows the log after this event misses nothing.
    pub head: EventId,
    /// Paths relative to the folder, sorted.
    pub files: Vec<String>,
    /// There are more files than the list has.
    pub more: bool,
}

/// List the files of an agent's folder that git knows or does not ignore.
#[utoipa::path(get, path = "/api/agents/{agent}/files", operation_id = "agent_files", tag = "changes", params(("agent" = String, Path, description = "An id, the beginning of one, or a name")),
    responses((status = 200, description = "At most 20,000 files", body = FileList)))]
pub async fn files(State(api): State<Api>, reference: PathParts<String>) -> Result<Json<FileList>, ApiError> {
    let agent = super::agents::find(&api, &reference.0)?;
    let world = api.handle.view();
    let place = place_of(&api, &world, agent);
    let list = move |repository: &Repository| match compare(repository, &place)? {
        Some(of) => repository.files(&of, MAX_FILES),
        None => Ok((Vec::new(), false)),
    };
    let (files, more) = in_repository(&api, list).await?;
    Ok(Json(FileList { head: world.head(), files, more }))
}

fn compare(repository: &Repository, place: &ChangesOf) -> Result<Option<Comparison>, WorktreeError> {
    match place {
        ChangesOf::Quest(slug) => repository.compare_quest(slug),
        ChangesOf::Step(slug, step) => repository.compare_step(slug, step.as_str()),
        ChangesOf::Agent(slug) => repository.compare_agent(slug),
        ChangesOf::Folder(folder) => repository.compare_folder(folder),
    }
}

async fn answer(api: &Api, place: ChangesOf, query: ChangesQuery) -> Result<Json<ChangesAnswer>, ApiError> {
    let shared = matches!(place, ChangesOf::Folder(_));
    let compare = move |repository: &Repository| compare(repository, &place);
    match query.file {
        None => {
            let changes = move |repository: &Repository| match compare(repository)? {
                Some(of) => repository.changes(&of).map(|changes| Changes { shared, ..changes }),
                None => Ok(Changes { shared, ..Changes::default() }),
            };
            Ok(Json(ChangesAnswer::Changes(in_repository(api, changes).await?)))
        }
        Some(file) if file.len() > MAX_PATH_BYTES || file.contains('\0') => {
            Err(ApiError::bad("bad_path", "the path cannot be one of a file", "take it from the list of changes"))
        }
        Some(file) => {
            let name = file.clone();
            let diff = move |repository: &Repository| {
                let of: Option<Comparison> = compare(repository)?;
                of.map_or(Ok(None), |of| repository.file_diff(&of, &name))
            };
            let diff = in_repository(api, diff).await?.ok_or_else(|| {
                let message = format!("`{file}` is not changed");
                ApiError::new(
                    StatusCode::NOT_FOUND,
                    "not_changed",
                    message,
                    "ask without `file` for the list of changes",
                )
            })?;
            Ok(Json(ChangesAnswer::File(diff)))
        }
    }
}
