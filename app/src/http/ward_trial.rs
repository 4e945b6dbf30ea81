//! Trials of wards over HTTP: the ward of a quest is executed once before the quest begins, on the commit at which the quest begins, in a
//! worktree like those of the steps. So a ward that cannot work is noticed before agents cost money.

use super::Api;
use super::changes::in_repository;
use super::error::{ApiError, JsonBody, PathParts, Query};
use super::quests::{self, find};
use crate::blocking::blocking;
use crate::own_environment;
use crate::ward::{self, Ward, WardJob, WardResult};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use hatchery_core::quest::{QuestSpec, QuestState, WardSpec};
use hatchery_core::{QuestId, Refusal};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// How many trials are remembered. Those of quests that have begun are no longer needed.
const REMEMBERED: usize = 100;

/// The trials of this daemon, running or ended. If two clients try the ward of a quest at the same time, both get the result of one trial.
#[derive(Debug, Default)]
pub struct Trials(Mutex<BTreeMap<QuestId, Trial>>);

type TrialResult = Result<TriedWard, ApiError>;

/// A trial. It runs in a task of its own, so it continues even if no request waits for it any more.
#[derive(Clone, Debug)]
struct Trial(watch::Receiver<Option<TrialResult>>);

impl Trials {
    /// The running trial, or a new one.
    fn begin(&self, quest: QuestId, trial: impl Future<Output = TrialResult> + Send + 'static) -> Trial {
        let mut trials = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(trial) = trials.get(&quest).filter(|trial| trial.is_running()) {
            return trial.clone();
        }
        if trials.len() >= REMEMBERED {
            trials.retain(|_, trial| trial.is_running());
        }
        let (publish, result) = watch::channel(None);
        tokio::spawn(async move { publish.send_replace(Some(trial.await)) });
        trials.insert(quest, Trial(result.clone()));
        Trial(result)
    }

    fn of(&self, quest: QuestId) -> Option<Trial> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&quest).cloned()
    }
}

impl Trial {
    /// A trial whose task ended without a result does not run, so the next one may begin.
    fn is_running(&self) -> bool {
        self.0.borrow().is_none() && self.0.has_changed().is_ok()
    }

    fn result(&self) -> Option<TrialResult> {
        self.0.borrow().clone()
    }

    async fn ended(mut self) -> TrialResult {
        match self.0.wait_for(Option::is_some).await {
            Ok(result) => result.clone().expect("waited until there is a result"),
            Err(_) => Err(failed(&std::io::Error::other("the trial broke off"))),
        }
    }
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct TrialQuery {
    /// Answer when the running trial has ended.
    #[serde(default)]
    wait: bool,
}

/// The last trial of a ward.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct TrialView {
    /// A trial is running.
    running: bool,
    /// The result of the last trial. Null if the ward was not tried since the daemon was started.
    tried: Option<TriedWard>,
}

#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TryWard {
    /// Begin the paused quest if its ward is green, or if it has none.
    #[serde(default)]
    begin: bool,
}

/// The result of a trial.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TriedWard {
    /// Null if the quest has no ward.
    pub command: Option<String>,
    pub verdict: TrialVerdict,
    /// If broken: why. If red: the exit code. If green: whether no tests were found, so that the ward checks nothing yet.
    pub why: Option<String>,
    /// The problems in the output of the ward.
    pub findings: Vec<String>,
    /// The file with the output of the ward.
    pub output: Option<String>,
    /// Tracked files that the ward had changed or deleted in the worktree, and that were restored.
    #[serde(default)]
    pub restored: Vec<String>,
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

/// Try the ward of a quest that has not begun. Takes as long as the ward, and continues if the client disconnects.
#[utoipa::path(post, path = "/api/quests/{quest}/try-ward", operation_id = "try_ward", tag = "quests", params(("quest" = String, Path, description = "An id, a slug, or the beginning of one")), request_body = TryWard,
    responses((status = 200, description = "What became of it", body = TriedWard)))]
pub async fn try_ward(
    State(api): State<Api>,
    reference: PathParts<String>,
    body: JsonBody<TryWard>,
) -> Result<Json<TriedWard>, ApiError> {
    let quest = find(&api, &reference.0)?;
    // In a task, because a user who leaves the page still wants the quest to begin.
    let begin = body.0.begin;
    let tried = tokio::spawn(async move {
        let tried = tried(api, quest, begin).await;
        // The user may have left, so an error is also written to the log.
        if let Err(error) = &tried {
            tracing::warn!(%quest, error = error.message, "the ward was not tried, or the quest did not begin after it");
        }
        tried
    })
    .await;
    tried.unwrap_or_else(|error| Err(failed(&std::io::Error::other(error)))).map(Json)
}

/// Show the last trial of a quest's ward.
#[utoipa::path(get, path = "/api/quests/{quest}/try-ward", operation_id = "ward_trial", tag = "quests", params(("quest" = String, Path, description = "An id, a slug, or the beginning of one"), TrialQuery),
    responses((status = 200, description = "The last trial: running, over, or none", body = TrialView)))]
pub async fn last_trial(
    State(api): State<Api>,
    reference: PathParts<String>,
    query: Query<TrialQuery>,
) -> Result<Json<TrialView>, ApiError> {
    let quest = find(&api, &reference.0)?;
    let Some(trial) = api.trials.of(quest) else { return Ok(Json(TrialView { running: false, tried: None })) };
    let running = !query.0.wait && trial.is_running();
    let tried = match query.0.wait {
        true => Some(trial.ended().await),
        false => trial.result(),
    };
    Ok(Json(TrialView { running, tried: tried.transpose()? }))
}

async fn tried(api: Api, quest: QuestId, begin: bool) -> Result<TriedWard, ApiError> {
    let mut tried = api.trials.begin(quest, trial(api.clone(), quest)).ended().await?;
    // The user may have resumed the quest or changed its ward in the meantime.
    let may_begin = api.handle.view().quest(quest).is_some_and(|quest| {
        quest.state == QuestState::Paused && quest.ward.as_ref().map(|ward| &ward.command) == tried.command.as_ref()
    });
    if begin && may_begin && matches!(tried.verdict, TrialVerdict::None | TrialVerdict::Green) {
        quests::go_on(&api, quest).await?;
        tried.begun = true;
    }
    Ok(tried)
}

async fn trial(api: Api, quest: QuestId) -> Result<TriedWard, ApiError> {
    let world = api.handle.view();
    let (Some(quest_spec), Some(state)) = (world.quest_spec(quest), world.quest(quest)) else {
        return Err(Refusal::UnknownQuest(quest).into());
    };
    if state.agents > 0 {
        let hint = "its steps run the ward by themselves; `hatchery quest show` shows the results";
        let message = format!("quest {quest} has begun, so its ward is not tried");
        return Err(ApiError::new(StatusCode::CONFLICT, "quest_begun", message, hint));
    }
    if state.is_over() {
        return Err(Refusal::QuestOver { quest, state: state.state.word() }.into());
    }
    Ok(match &state.ward {
        None => TriedWard {
            command: None,
            verdict: TrialVerdict::None,
            why: None,
            findings: vec![],
            output: None,
            restored: vec![],
            begun: false,
        },
        Some(spec) => match folder(&api, quest_spec).await {
            Ok(folder) => {
                let TrialFolder { path, is_unchanged } = folder;
                let tried = run(&api, quest, spec, path).await.map_err(|error| failed(&error))?;
                TriedWard { restored: restored(&api, quest_spec, is_unchanged).await?, ..tried }
            }
            Err(why) => broken(spec, why),
        },
    })
}

/// How many restored files an answer names.
const MAX_RESTORED: usize = 100;

/// The tracked files that the ward had changed in the worktree of the quest, and that are restored now.
async fn restored(api: &Api, quest_spec: &QuestSpec, was_unchanged: bool) -> Result<Vec<String>, ApiError> {
    let Some(slug) = quest_spec.slug().map(str::to_owned) else { return Ok(Vec::new()) };
    let restored = in_repository(api, move |repository| repository.trial_ended(&slug, was_unchanged)).await?;
    Ok(restored.iter().take(MAX_RESTORED).map(|path| path.to_string_lossy().into_owned()).collect())
}

/// Where a ward is tried.
struct TrialFolder {
    path: PathBuf,
    /// Whether the tracked files are as in the last commit. A set-up command may have changed them, or the user.
    is_unchanged: bool,
}

/// The folder for the trial: the quest's own worktree, or the project's root. The error says why the worktree could not be prepared.
async fn folder(api: &Api, quest_spec: &QuestSpec) -> Result<TrialFolder, String> {
    let root = api.defaults.project.root();
    let Some(slug) = quest_spec.slug().map(str::to_owned) else {
        let path = quest_spec.spec.folder.as_ref().map_or_else(|| root.to_owned(), |folder| root.join(folder));
        return Ok(TrialFolder { path, is_unchanged: false });
    };
    let preparation = api.defaults.preparation.clone();
    let made = in_repository(api, move |repository| {
        let trunk = repository.trunk(&slug)?;
        if let Err(error) = repository.prepare(&trunk, &preparation) {
            return Ok(Err(error.to_string()));
        }
        let is_unchanged = repository.is_unchanged(&trunk)?;
        repository.ward_begins(&trunk)?;
        Ok(Ok(TrialFolder { path: trunk.folder().to_owned(), is_unchanged }))
    });
    made.await.map_err(|error| error.message)?
}

async fn run(api: &Api, quest: QuestId, spec: &WardSpec, folder: PathBuf) -> std::io::Result<TriedWard> {
    let defaults = &api.defaults;
    let ward = Ward::of_trial(defaults.program.clone(), &defaults.project, quest).map_err(std::io::Error::other)?;
    // An earlier trial whose client has disconnected may still run.
    ward.stop_and_wait().await?;
    let again = ward.clone();
    blocking(move || again.forget()).await?;
    let env = ward::environment(own_environment::entries(), &defaults.settings.pass_env);
    let job = WardJob { command: spec.command.clone(), folder, env, limit: Duration::from_millis(spec.limit_ms) };
    let result = ward.wait(&job, None).await?;
    let said = ward.clone();
    let output = blocking(move || said.output()).await.unwrap_or_default();
    let (verdict, why) = match result {
        WardResult::Green => {
            (TrialVerdict::Green, ward::untested(&output).map(|line| format!("it has found no tests ({line})")))
        }
        WardResult::Red { code } => match ward::unable(&output) {
            Some(why) => (TrialVerdict::Broken, Some(why)),
            None => (TrialVerdict::Red, Some(format!("it ended with exit code {code}"))),
        },
        WardResult::Broken { why } => (TrialVerdict::Broken, Some(why)),
    };
    let findings = if verdict == TrialVerdict::Green { Vec::new() } else { ward::findings(&output) };
    let file = ward.output_file().display().to_string();
    let (command, output) = (Some(spec.command.clone()), Some(file));
    Ok(TriedWard { command, verdict, why, findings, output, restored: Vec::new(), begun: false })
}

fn broken(spec: &WardSpec, why: String) -> TriedWard {
    let (command, verdict) = (Some(spec.command.clone()), TrialVerdict::Broken);
    let (findings, restored) = (Vec::new(), Vec::new());
    TriedWard { command, verdict, why: Some(why), findings, output: None, restored, begun: false }
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

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    fn green() -> TriedWard {
        let (command, restored) = (Some("true".to_owned()), Vec::new());
        let verdict = TrialVerdict::Green;
        TriedWard { command, verdict, why: None, findings: vec![], output: None, restored, begun: false }
    }

    #[tokio::test]
    async fn a_trial_goes_on_when_those_who_wait_for_it_leave() {
        let (trials, quest) = (Trials::default(), QuestId::from_bytes([1; 16]));
        let (end, ended) = oneshot::channel::<()>();
        let first = trials.begin(quest, async move { ended.await.map(|()| green()).map_err(|_| unreachable!()) });
        let leaver = tokio::spawn(first.clone().ended());
        leaver.abort();
        assert!(leaver.await.is_err());
        // The second is the first, so it need not be polled at all.
        let second = trials.begin(quest, std::future::pending());
        assert!(second.is_running() && second.result().is_none());
        end.send(()).unwrap();
        assert_eq!(second.ended().await.unwrap().verdict, TrialVerdict::Green);
        assert!(!trials.of(quest).unwrap().is_running());
    }

    #[tokio::test]
    async fn a_trial_that_broke_off_is_told_and_may_be_begun_again() {
        let (trials, quest) = (Trials::default(), QuestId::from_bytes([1; 16]));
        let broken = trials.begin(quest, async { panic!("as a defect would") });
        assert_eq!(broken.ended().await.unwrap_err().code, "ward_not_run");
        assert_eq!(trials.begin(quest, async { Ok(green()) }).ended().await.unwrap().verdict, TrialVerdict::Green);
    }
}
