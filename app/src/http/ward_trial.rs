//! Trying the ward of a quest before the quest begins, over HTTP: once, on the commit at which the quest begins, in a worktree as the steps
//! will have it. So a ward that cannot work is known before an agent is paid.

use super::Api;
use super::changes::in_repository;
use super::error::{ApiError, Body, Path};
use super::quests::{self, find};
use crate::blocking::blocking;
use crate::ward::{self, Ward, WardJob, WardResult};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use hatchery_core::QuestId;
use hatchery_core::quest::{QuestSpec, QuestState, WardSpec};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TryWard {
    /// Begin the paused quest if its ward is green, or if it has none.
    #[serde(default)]
    begin: bool,
}

/// What became of a ward that was tried.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TriedWard {
    /// Null if the quest has no ward.
    pub command: Option<String>,
    pub verdict: TrialVerdict,
    /// Why it is broken, or its exit code.
    pub why: Option<String>,
    /// The problems in its output.
    pub findings: Vec<String>,
    /// The file with its output.
    pub output: Option<String>,
    /// Whether the quest begins now.
    #[serde(default)]
    pub begun: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrialVerdict {
    /// There is no ward.
    None,
    Green,
    Red,
    Broken,
}

/// Try the ward of a quest that has not begun. Takes as long as the ward does.
#[utoipa::path(post, path = "/api/quests/{quest}/try-ward", operation_id = "try_ward", tag = "quests", params(("quest" = String, Path, description = "An id, a slug, or the beginning of one")), request_body = TryWard,
    responses((status = 200, description = "What became of it", body = TriedWard)))]
pub async fn try_ward(
    State(api): State<Api>,
    reference: Path<String>,
    body: Body<TryWard>,
) -> Result<Json<TriedWard>, ApiError> {
    let quest = find(&api, &reference.0)?;
    let world = api.handle.view();
    let (Some(quest_spec), Some(state)) = (world.quest_spec(quest), world.quest(quest)) else {
        return Err(hatchery_core::Refusal::UnknownQuest(quest).into());
    };
    if state.agents > 0 {
        let hint = "its steps run the ward by themselves; `hatchery quest show` shows the results";
        let message = format!("quest {quest} has begun, so its ward is not tried");
        return Err(ApiError::new(StatusCode::CONFLICT, "quest_begun", message, hint));
    }
    let mut tried = match &state.ward {
        None => TriedWard {
            command: None,
            verdict: TrialVerdict::None,
            why: None,
            findings: vec![],
            output: None,
            begun: false,
        },
        Some(spec) => {
            let tried = match folder(&api, quest_spec).await {
                Ok(folder) => run(&api, quest, spec, folder).await.map_err(|error| failed(&error))?,
                Err(why) => broken(spec, why),
            };
            if let Some(slug) = quest_spec.slug().map(str::to_owned) {
                in_repository(&api, move |repository| repository.trial_ended(&slug)).await?;
            }
            tried
        }
    };
    // The user may have resumed the quest meanwhile.
    let is_paused = api.handle.view().quest(quest).is_some_and(|quest| quest.state == QuestState::Paused);
    if body.0.begin && is_paused && matches!(tried.verdict, TrialVerdict::None | TrialVerdict::Green) {
        quests::go_on(&api, quest).await?;
        tried.begun = true;
    }
    Ok(Json(tried))
}

/// The folder to run it in: the quest's own worktree, or the project's. Gives the reason if the worktree cannot be made ready.
async fn folder(api: &Api, quest_spec: &QuestSpec) -> Result<PathBuf, String> {
    let root = api.defaults.project.root();
    let Some(slug) = quest_spec.slug().map(str::to_owned) else {
        return Ok(quest_spec.spec.folder.as_ref().map_or_else(|| root.to_owned(), |folder| root.join(folder)));
    };
    let preparation = api.defaults.preparation.clone();
    let made = in_repository(api, move |repository| {
        let trunk = repository.trunk(&slug)?;
        Ok(repository
            .prepare(&trunk, &preparation)
            .map(|()| trunk.folder().to_owned())
            .map_err(|error| error.to_string()))
    });
    made.await.map_err(|error| error.message)?
}

async fn run(api: &Api, quest: QuestId, spec: &WardSpec, folder: PathBuf) -> std::io::Result<TriedWard> {
    let defaults = &api.defaults;
    let ward = Ward::of_trial(defaults.program.clone(), &defaults.project, quest).map_err(std::io::Error::other)?;
    // An earlier trial may still run: its caller has gone away.
    ward.stop_and_wait().await?;
    let again = ward.clone();
    blocking(move || again.forget()).await?;
    let env = ward::environment(std::env::vars(), &defaults.settings.pass_env);
    let job = WardJob { command: spec.command.clone(), folder, env, limit: Duration::from_millis(spec.limit_ms) };
    let result = ward.wait(&job, None).await?;
    let said = ward.clone();
    let output = blocking(move || said.output()).await.unwrap_or_default();
    let (verdict, why) = match result {
        WardResult::Green => (TrialVerdict::Green, None),
        WardResult::Red { code } => match ward::unable(&output) {
            Some(why) => (TrialVerdict::Broken, Some(why)),
            None => (TrialVerdict::Red, Some(format!("it ended with exit code {code}"))),
        },
        WardResult::Broken { why } => (TrialVerdict::Broken, Some(why)),
    };
    let findings = if verdict == TrialVerdict::Green { Vec::new() } else { ward::findings(&output) };
    let file = ward.output_file().display().to_string();
    Ok(TriedWard { command: Some(spec.command.clone()), verdict, why, findings, output: Some(file), begun: false })
}

fn broken(spec: &WardSpec, why: String) -> TriedWard {
    let (command, verdict) = (Some(spec.command.clone()), TrialVerdict::Broken);
    TriedWard { command, verdict, why: Some(why), findings: Vec::new(), output: None, begun: false }
}

fn failed(error: &std::io::Error) -> ApiError {
    let hint = ".hatchery/daemon.log may say more";
    ApiError::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "ward_not_run",
        format!("the ward could not be tried: {error}"),
        hint,
    )
}
