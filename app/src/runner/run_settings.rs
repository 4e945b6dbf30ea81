//! What the settings say about running agents. A change of `hatchery.toml` replaces all of this at once.

use crate::config::{Config, Worktrees};
use crate::harness::{Acp, Claude, Codex, Harness, Harnesses, Scripted};
use crate::own_environment;
use crate::project::Project;
use crate::ward;
use crate::worktree::Preparation;
use std::path::Path;
use std::sync::Arc;
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
        let prices = || Arc::clone(&config.prices);
        let mut harnesses: Vec<Arc<dyn Harness>> = vec![Arc::new(claude(project, config)), Arc::new(codex(config))];
        for (name, agent) in &runs.acp_agents {
            harnesses.push(Arc::new(Acp::new(name, agent, pass, own_environment::entries(), prices())));
        }
        let state = project.data().join("sim");
        harnesses.push(Arc::new(Scripted::new(program.to_owned(), state, pass, own_environment::entries(), prices())));
        Self {
            harnesses: Harnesses::new(harnesses),
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

pub(super) fn claude(project: &Project, config: &Config) -> Claude {
    let (runs, prices) = (&config.runs, Arc::clone(&config.prices));
    let (path, args) = (runs.claude_path.clone(), runs.claude_args.clone());
    Claude::new(path, args, runs.claude_strict, &runs.pass_env, own_environment::entries(), project.root(), prices)
}

pub(super) fn codex(config: &Config) -> Codex {
    let (runs, prices) = (&config.runs, Arc::clone(&config.prices));
    Codex::new(runs.codex_path.clone(), runs.codex_args.clone(), &runs.pass_env, own_environment::entries(), prices)
}
