//! What the settings say about running agents. A change of `hatchery.toml` replaces all of this at once.

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
    /// How many attempts have processes at once. The others wait for their turn.
    pub max_runs: usize,
    /// Between interrupting, terminating and killing.
    pub stop_grace: Duration,
    /// How long the folder of an attempt that is over stays; for ever without.
    pub keep_runs: Option<Duration>,
    /// What children get of the daemon's environment besides the usual.
    pub pass_env: Vec<String>,
    /// What new worktrees need.
    pub preparation: Preparation,
    pub worktrees: Worktrees,
}

impl RunSettings {
    /// `program` is what launchers, tools and scripted agents are started from.
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
