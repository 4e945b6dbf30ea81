//! How agents are run: the settings and the facts about this daemon from which the core chooses the spec of a run.

use super::error::ApiError;
use crate::codex_threads::CodexThreads;
use crate::config;
use crate::project::Project;
use crate::runner::RunnerContext;
use crate::transcripts::Transcripts;
use crate::worktree::{Preparation, WORKTREES};
use hatchery_core::permission::PermissionPolicy;
use hatchery_core::run::{HarnessSession, RunSpec};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// How agents are run here, unless a request says otherwise.
#[derive(Debug)]
pub struct RunDefaults {
    /// Where the run folders are.
    pub project: Project,
    pub settings: config::Runs,
    pub quests: config::Quests,
    pub seats: config::Seats,
    /// This program, from which launchers are started.
    pub program: PathBuf,
    /// This machine, as runs know it.
    pub host: Arc<str>,
    /// The store is in the project's own folder, so that no other folder can be alive.
    pub store_is_private: bool,
    /// Which program plays for which harness.
    pub harnesses: BTreeMap<String, PathBuf>,
    /// The daemon runs as root, and nobody says that this is a sandbox.
    pub root_without_sandbox: bool,
    pub transcripts: Transcripts,
    pub codex_threads: CodexThreads,
    pub worktrees: config::Worktrees,
    /// What new worktrees need.
    pub preparation: Preparation,
}

/// Options of a run. Anything that is left out is as in the agent's last run, or as in the settings.
#[derive(Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunOptions {
    /// The harness: `claude`, `codex` or `scripted`.
    pub(super) harness: Option<String>,
    /// The model to use.
    pub(super) model: Option<String>,
    /// The folder to work in, relative to the project's root.
    pub(super) folder: Option<String>,
    /// For the harness `scripted`: a script, or a folder from which each agent takes one script.
    pub(super) script: Option<String>,
    /// Wait for more messages after a turn, instead of ending.
    pub(super) stays: Option<bool>,
    /// Silence that counts as stuck.
    #[schema(minimum = 1_000, maximum = 604_800_000)]
    #[serde(rename = "stallMs", alias = "stall_ms")]
    pub(super) stall_ms: Option<u64>,
    /// Whether a stuck process is stopped. Otherwise the user is asked.
    #[serde(rename = "killStuck", alias = "kill_stuck")]
    pub(super) kill_stuck: Option<bool>,
    /// How many times in a row a crashed process is resumed.
    #[schema(maximum = 100)]
    pub(super) retries: Option<u32>,
    /// Whether the run waits for rate limits and overloads to end.
    pub(super) park: Option<bool>,
    /// What the agent may do without asking: `ask`, `edits`, `all` or `none`.
    pub(super) permissions: Option<PermissionPolicy>,
}

impl RunOptions {
    pub(super) fn with_model(model: Option<String>) -> Self {
        Self { model, ..Self::default() }
    }

    /// The same with a harness, if none is named.
    pub(super) fn or_by(self, harness: Option<String>) -> Self {
        Self { harness: self.harness.or(harness), ..self }
    }

    pub(super) fn by(harness: String) -> Self {
        Self { harness: Some(harness), ..Self::default() }
    }
}

impl RunDefaults {
    pub fn of(context: &RunnerContext, settings: config::Runs, quests: config::Quests, seats: config::Seats) -> Self {
        let now = context.settings();
        Self {
            project: context.project.clone(),
            settings,
            quests,
            seats,
            program: context.program.clone(),
            host: context.host.clone(),
            store_is_private: context.store_is_private,
            harnesses: now.harnesses.programs(),
            root_without_sandbox: rustix::process::geteuid().is_root()
                && std::env::var_os("IS_SANDBOX").is_none_or(|value| value != "1"),
            transcripts: context.transcripts.clone(),
            codex_threads: context.codex_threads.clone(),
            worktrees: now.worktrees.clone(),
            preparation: now.preparation.clone(),
        }
    }

    /// The spec of a run for a quest or a seat.
    pub(super) fn spec(
        &self,
        last: Option<&RunSpec>,
        harness_session: Option<&HarnessSession>,
        options: RunOptions,
    ) -> Result<RunSpec, ApiError> {
        let usual = &self.settings;
        let harness = options.harness.or_else(|| last.map(|last| last.harness.clone()));
        let harness = harness.or_else(|| harness_session.map(|harness_session| harness_session.harness.clone()));
        let harness = harness.unwrap_or_else(|| usual.harness.clone());
        if !self.harnesses.contains_key(harness.as_str()) {
            let known = self.harnesses.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            return Err(ApiError::bad(
                "no_such_harness",
                format!("there is no harness `{harness}`"),
                format!("choose one of: {known}"),
            ));
        }
        let permissions = options.permissions.or_else(|| last.and_then(|last| last.permissions)).or(usual.permissions);
        if permissions == Some(PermissionPolicy::All) && self.root_without_sandbox {
            return Err(root_may_not());
        }
        Ok(RunSpec {
            harness: harness.clone(),
            host: self.host.clone(),
            folder: options.folder.or_else(|| match last {
                Some(last) => last.folder.clone(),
                None => harness_session.and_then(|harness_session| harness_session.folder.clone()),
            }),
            // A model of one vendor means nothing to another.
            model: options.model.or_else(|| last.filter(|last| last.harness == harness)?.model.clone()),
            script: options
                .script
                .or_else(|| last.and_then(|last| last.script.clone()))
                .or_else(|| usual.script.clone()),
            stays: options.stays.or_else(|| last.map(|last| last.stays)).unwrap_or(false),
            stall_ms: options.stall_ms.or_else(|| last.map(|last| last.stall_ms)).unwrap_or(usual.stall_ms),
            kill_stuck: options.kill_stuck.or_else(|| last.map(|last| last.kill_stuck)).unwrap_or(usual.kill_stuck),
            retries: options.retries.or_else(|| last.map(|last| last.retries)).unwrap_or(usual.retries),
            parks: options.park.or_else(|| last.map(|last| last.parks)).unwrap_or(usual.park),
            signals: false,
            permissions,
        })
    }

    /// The spec of a run of an agent without a quest.
    pub(super) fn spec_of_run(
        &self,
        last: Option<&RunSpec>,
        harness_session: Option<&HarnessSession>,
        options: RunOptions,
    ) -> Result<RunSpec, ApiError> {
        let spec = self.spec(last, harness_session, options)?;
        let by_place = match spec.folder.as_deref().is_some_and(|folder| folder.starts_with(WORKTREES)) {
            true => PermissionPolicy::Edits,
            false => PermissionPolicy::Ask,
        };
        Ok(RunSpec { permissions: spec.permissions.or(Some(by_place)), ..spec })
    }
}

/// The Claude CLI refuses the same, for the same reason.
fn root_may_not() -> ApiError {
    ApiError::bad(
        "root_without_sandbox",
        "root may not run agents with the permissions `all`: they could do anything to this machine",
        "run as another user, use the permissions `edits` or `ask`, or set IS_SANDBOX=1 for the daemon if this is a sandbox",
    )
}
