//! When a changed setting counts. This table is the only place that says it; `docs/settings.md` shows it.

use super::PREFIX;
use std::fmt;

/// The settings in `hatchery.toml`, as they are written there.
pub type WrittenSettings = serde_json::Map<String, serde_json::Value>;

/// When a change of a setting in `hatchery.toml` counts, while a daemon runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakesEffect {
    /// The daemon takes it over, for whatever begins from then on. Agents that run keep what they were started with.
    AtOnce,
    /// Commands read it themselves.
    NextCommand,
    /// The daemon reads it when it starts.
    AtRestart,
}

impl fmt::Display for TakesEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AtOnce => "at once",
            Self::NextCommand => "next command",
            Self::AtRestart => "restart",
        })
    }
}

/// Every setting.
pub const TAKES_EFFECT: [(&str, TakesEffect); 35] = [
    ("listen", TakesEffect::AtRestart),
    ("port", TakesEffect::AtRestart),
    ("store", TakesEffect::AtRestart),
    ("auth", TakesEffect::AtRestart),
    ("allowed_hosts", TakesEffect::AtRestart),
    ("open", TakesEffect::NextCommand),
    ("replace_daemon", TakesEffect::NextCommand),
    ("log", TakesEffect::AtRestart),
    ("heartbeat_ms", TakesEffect::AtRestart),
    ("request_timeout_ms", TakesEffect::AtRestart),
    ("max_connections", TakesEffect::AtRestart),
    ("max_body_bytes", TakesEffect::AtRestart),
    ("snapshot_every", TakesEffect::AtRestart),
    ("harness", TakesEffect::AtOnce),
    ("claude_path", TakesEffect::AtOnce),
    ("claude_args", TakesEffect::AtOnce),
    ("claude_strict", TakesEffect::AtOnce),
    ("codex_path", TakesEffect::AtOnce),
    ("codex_args", TakesEffect::AtOnce),
    ("permissions", TakesEffect::AtOnce),
    ("pass_env", TakesEffect::AtOnce),
    ("script", TakesEffect::AtOnce),
    ("stall_ms", TakesEffect::AtOnce),
    ("kill_stuck", TakesEffect::AtOnce),
    ("retries", TakesEffect::AtOnce),
    ("park", TakesEffect::AtOnce),
    ("max_runs", TakesEffect::AtOnce),
    ("stop_grace_ms", TakesEffect::AtOnce),
    ("keep_runs_days", TakesEffect::AtOnce),
    ("seats", TakesEffect::AtRestart),
    ("quests", TakesEffect::AtOnce),
    ("tui", TakesEffect::NextCommand),
    ("notify", TakesEffect::AtOnce),
    ("prices", TakesEffect::AtOnce),
    ("worktrees", TakesEffect::AtOnce),
];

/// The settings that differ between two contents of the file and count at that moment. A variable of this process wins over the file,
/// so what it sets does not differ.
pub fn changed(before: &WrittenSettings, after: &WrittenSettings, counts: TakesEffect) -> Vec<String> {
    let named = TAKES_EFFECT.iter().filter(|(_, when)| *when == counts).map(|(name, _)| *name);
    let differs = |name: &&str| before.get(*name) != after.get(*name);
    let in_environment = |name: &str| std::env::var_os(format!("{PREFIX}{}", name.to_uppercase())).is_some();
    named.filter(differs).filter(|name| !in_environment(name)).map(str::to_owned).collect()
}
