//! When a changed setting counts. This table is the only place that says it; `docs/settings.md` shows it.

use super::{Config, PREFIX};
use crate::project::Project;
use crate::report::Report;
use std::fmt;

/// The settings in `hatchery.toml`, as they are written there.
pub type Written = serde_json::Map<String, serde_json::Value>;

/// When a change of a setting in `hatchery.toml` counts, while a daemon runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// The daemon takes it over, for whatever begins from then on. Agents that run keep what they were started with.
    AtOnce,
    /// Commands read it themselves.
    NextCommand,
    /// The daemon reads it when it starts.
    AtRestart,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AtOnce => "at once",
            Self::NextCommand => "next command",
            Self::AtRestart => "restart",
        })
    }
}

/// Every setting.
pub const COUNTS: [(&str, Counts); 35] = [
    ("listen", Counts::AtRestart),
    ("port", Counts::AtRestart),
    ("store", Counts::AtRestart),
    ("auth", Counts::AtRestart),
    ("allowed_hosts", Counts::AtRestart),
    ("open", Counts::NextCommand),
    ("replace_daemon", Counts::NextCommand),
    ("log", Counts::AtRestart),
    ("heartbeat_ms", Counts::AtRestart),
    ("request_timeout_ms", Counts::AtRestart),
    ("max_connections", Counts::AtRestart),
    ("max_body_bytes", Counts::AtRestart),
    ("snapshot_every", Counts::AtRestart),
    ("harness", Counts::AtOnce),
    ("claude_path", Counts::AtOnce),
    ("claude_args", Counts::AtOnce),
    ("claude_strict", Counts::AtOnce),
    ("codex_path", Counts::AtOnce),
    ("codex_args", Counts::AtOnce),
    ("permissions", Counts::AtOnce),
    ("pass_env", Counts::AtOnce),
    ("script", Counts::AtOnce),
    ("stall_ms", Counts::AtOnce),
    ("kill_stuck", Counts::AtOnce),
    ("retries", Counts::AtOnce),
    ("park", Counts::AtOnce),
    ("max_runs", Counts::AtOnce),
    ("stop_grace_ms", Counts::AtOnce),
    ("keep_runs_days", Counts::AtOnce),
    ("seats", Counts::AtRestart),
    ("quests", Counts::AtOnce),
    ("tui", Counts::NextCommand),
    ("notify", Counts::AtOnce),
    ("prices", Counts::AtOnce),
    ("worktrees", Counts::AtOnce),
];

impl Config {
    /// The settings in the project's file, as they are written there.
    pub fn written(project: &Project) -> Result<Written, Report> {
        super::read_file(&project.config_file())
    }
}

/// The settings that differ between two contents of the file and count at that moment. A variable of this process wins over the file,
/// so what it sets does not differ.
pub fn changed(before: &Written, after: &Written, counts: Counts) -> Vec<String> {
    let named = COUNTS.iter().filter(|(_, when)| *when == counts).map(|(name, _)| *name);
    let differs = |name: &&str| before.get(*name) != after.get(*name);
    let in_environment = |name: &str| std::env::var_os(format!("{PREFIX}{}", name.to_uppercase())).is_some();
    named.filter(differs).filter(|name| !in_environment(name)).map(str::to_owned).collect()
}
