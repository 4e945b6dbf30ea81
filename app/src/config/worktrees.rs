//! The settings of worktrees: `[worktrees]` in `hatchery.toml`.

use crate::strict::Within;
use serde::Deserialize;
use std::path::PathBuf;
use std::time::Duration;

/// How long a set-up command may take by default: ten minutes.
const SETUP_LIMIT_MS: u64 = 10 * 60 * 1_000;

/// How the worktrees of steps and agents are prepared, and what in them is not work.
#[derive(Clone, Debug, Default)]
pub struct Worktrees {
    /// Runs once in each new worktree.
    pub setup: Option<String>,
    pub setup_limit: Duration,
    /// Copied from the user's checkout into each new worktree.
    pub copy: Vec<PathBuf>,
    /// More rules for by-products, as in `.gitignore`.
    pub by_products: Vec<String>,
    /// Whether each new agent of `hatchery run` gets a worktree, unless the command says otherwise.
    pub runs: bool,
}

/// The settings as people write them.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WorktreeSettings {
    setup: Option<String>,
    setup_limit_ms: Option<Within<1_000, 86_400_000>>,
    #[serde(default)]
    copy: Vec<PathBuf>,
    #[serde(default)]
    by_products: Vec<String>,
    #[serde(default)]
    runs: bool,
}

impl WorktreeSettings {
    pub(super) fn over_defaults(self) -> Worktrees {
        Worktrees {
            setup: self.setup.filter(|command| !command.trim().is_empty()),
            setup_limit: Duration::from_millis(self.setup_limit_ms.map_or(SETUP_LIMIT_MS, |it| it.0)),
            copy: self.copy,
            by_products: self.by_products,
            runs: self.runs,
        }
    }
}
