//! How agents are run: the settings and the facts about this daemon from which the core chooses the spec of a run.

use super::error::ApiError;
use crate::codex_threads::CodexThreads;
use crate::config;
use crate::harness::Harnesses;
use crate::project::Project;
use crate::runner::RunnerContext;
use crate::transcripts::Transcripts;
use crate::worktree::{Preparation, WORKTREES};
use axum::http::StatusCode;
use hatchery_core::Refusal;
use hatchery_core::permission::PermissionPolicy;
use hatchery_core::quest::QuestSpec;
use hatchery_core::run::{
    EarlierWork, HarnessSession, RunFacts, RunOptions, RunPurpose, RunSpec, UsualRun, choose_spec,
};
use std::path::PathBuf;
use std::sync::Arc;

/// How agents are run here, unless a request says otherwise.
#[derive(Debug)]
pub struct RunDefaults {
    /// The project, with its run folders.
    pub project: Project,
    pub settings: config::Runs,
    pub quests: config::Quests,
    pub seats: config::SeatDefaults,
    /// This program, with which launchers are started.
    pub program: PathBuf,
    /// The name of this machine in runs.
    pub host: Arc<str>,
    /// The store is in the project's own folder, so that no other folder uses it.
    pub store_is_private: bool,
    pub harnesses: Harnesses,
    /// The daemon runs as root.
    pub is_root: bool,
    /// The daemon's environment says that the machine is a sandbox (`IS_SANDBOX=1`).
    pub in_sandbox: bool,
    pub transcripts: Transcripts,
    pub codex_threads: CodexThreads,
    pub worktrees: config::Worktrees,
    /// How new worktrees are prepared.
    pub preparation: Preparation,
}

impl RunDefaults {
    pub fn of(
        context: &RunnerContext,
        settings: config::Runs,
        quests: config::Quests,
        seats: config::SeatDefaults,
    ) -> Self {
        let now = context.settings();
        Self {
            project: context.project.clone(),
            settings,
            quests,
            seats,
            program: context.program.clone(),
            host: context.host.clone(),
            store_is_private: context.store_is_private,
            harnesses: now.harnesses.clone(),
            is_root: rustix::process::geteuid().is_root(),
            in_sandbox: std::env::var_os("IS_SANDBOX").is_some_and(|value| value == "1"),
            transcripts: context.transcripts.clone(),
            codex_threads: context.codex_threads.clone(),
            worktrees: now.worktrees.clone(),
            preparation: now.preparation.clone(),
        }
    }

    /// The spec of a run for a quest.
    pub(super) fn spec(
        &self,
        last: Option<&RunSpec>,
        harness_session: Option<&HarnessSession>,
        options: RunOptions,
    ) -> Result<RunSpec, ApiError> {
        self.choose(EarlierWork { last, harness_session }, options, RunPurpose::Quest)
    }

    /// Refuses a quest if a role may do everything without asking and that is not possible here. A role may have its own permissions, so
    /// those of the quest's runs are not enough to decide this.
    pub(super) fn refuse_to_root(&self, quest_spec: &QuestSpec) -> Result<(), ApiError> {
        let mut policies = quest_spec.table.roles.iter().map(|role| quest_spec.permissions(&role.name));
        match self.is_root && !self.in_sandbox && policies.any(|policy| policy == PermissionPolicy::All) {
            true => Err(bad_request(Refusal::RootWithoutSandbox)),
            false => Ok(()),
        }
    }

    /// The spec of a run of an agent without a quest, in a seat or not.
    pub(super) fn spec_of_run(
        &self,
        last: Option<&RunSpec>,
        harness_session: Option<&HarnessSession>,
        options: RunOptions,
    ) -> Result<RunSpec, ApiError> {
        self.choose(EarlierWork { last, harness_session }, options, RunPurpose::Agent)
    }

    fn choose(&self, earlier: EarlierWork<'_>, options: RunOptions, purpose: RunPurpose) -> Result<RunSpec, ApiError> {
        let settings = &self.settings;
        let usual = UsualRun {
            harness: &settings.harness,
            script: settings.script.as_deref(),
            stall_ms: settings.stall_ms,
            kill_stuck: settings.kill_stuck,
            retries: settings.retries,
            parks: settings.park,
            permissions: settings.permissions,
        };
        let facts = RunFacts {
            host: &self.host,
            harnesses: &self.harnesses.names(),
            worktrees: WORKTREES,
            is_root: self.is_root,
            in_sandbox: self.in_sandbox,
        };
        choose_spec(options, earlier, usual, facts, purpose).map_err(bad_request)
    }
}

/// The request itself is wrong, whatever is in the log.
fn bad_request(refusal: Refusal) -> ApiError {
    ApiError { status: StatusCode::BAD_REQUEST, ..refusal.into() }
}
