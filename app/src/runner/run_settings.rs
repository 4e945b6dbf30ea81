//! The settings for running agents. A change of `hatchery.toml` replaces all of them at once.

use crate::config::{Config, Worktrees};
use crate::harness::Harnesses;
use crate::harness::registry::HarnessSource;
use crate::own_environment;
use crate::project::Project;
use crate::ward;
use crate::worktree::Preparation;
use std::path::Path;
use std::time::Duration;

#[derive(Debug)]
pub struct RunSettings {
    pub harnesses: Harnesses,
    /// How many attempts may have processes at the same time. The others wait for a place.
    pub max_runs: usize,
    /// The time between interrupting, terminating and killing a process.
    pub stop_grace: Duration,
    /// How long the folder of an ended attempt is kept. None: forever.
    pub keep_runs: Option<Duration>,
    /// The names of further environment variables that processes get from the daemon.
    pub pass_env: Vec<String>,
    /// How new worktrees are prepared.
    pub preparation: Preparation,
    pub worktrees: Worktrees,
}

impl RunSettings {
    /// `program` is this program, with which launchers, tools and scripted agents are started.
    pub fn of(project: &Project, config: &Config, program: &Path) -> Self {
        let (runs, worktrees, pass) = (&config.runs, &config.worktrees, &config.runs.pass_env);
        Self {
            harnesses: HarnessSource { project, config, own_program: program }.harnesses(),
            max_runs: runs.max_runs,
            stop_grace: runs.stop_grace,
            keep_runs: runs.keep_runs,
            pass_env: pass.clone(),
            preparation: Preparation {
                setup: worktrees.setup.clone(),
                limit: worktrees.setup_limit,
                copy: worktrees.copy.clone(),
                environment: ward::environment(own_environment::entries(), pass),
            },
            worktrees: worktrees.clone(),
        }
    }
}
