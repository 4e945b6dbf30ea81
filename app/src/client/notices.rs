//! What a user should know about the daemon that a command meets: it does not answer, it is of another version, or it has read other
//! settings. Each is told once. Only programs that speak to a person tell it.

use super::{Client, Failure};
use crate::config::SettingsFile;
use crate::live_settings::SettingsTaken;
use crate::project::{DaemonFile, Project};
use crate::version::version;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// What a daemon says of itself at once. A daemon of another version may say less.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct HealthAnswer {
    settings: Option<String>,
    settings_wait: bool,
}

static TELL: OnceLock<fn(&str)> = OnceLock::new();

/// Says how notices reach the user. Without this they are not told.
pub fn tell_by(tell: fn(&str)) {
    TELL.get_or_init(|| tell);
}

/// What is different between this program and a daemon that answers.
pub(super) async fn about(project: &Project, daemon: &DaemonFile, client: &Client, health: &HealthAnswer) {
    if daemon.version != version() {
        once(&format!(
            "the daemon is version {}, this command is {}; `hatchery up --replace` starts a daemon of this version, and agents work on",
            daemon.version,
            version()
        ));
    }
    let is_changed =
        health.settings.as_ref().is_some_and(|used| Some(used) != SettingsFile::mark_now(project).as_ref());
    if !is_changed && !health.settings_wait {
        return;
    }
    match client.ask::<SettingsTaken>("/api/settings", &serde_json::json!({})).await {
        Ok(SettingsTaken { taken, waiting }) => {
            if !taken.is_empty() {
                once(&format!("hatchery.toml has changed, and the daemon uses it from now on: {}", taken.join(", ")));
            }
            if !waiting.is_empty() {
                once(&format!(
                    "hatchery.toml has changed, and this waits until the daemon is started again: {}. `hatchery down` stops the daemon, the next \
                     command starts it, and agents work on",
                    waiting.join(", ")
                ));
            }
        }
        Err(Failure::Refused { detail, .. }) => once(&format!(
            "hatchery.toml has changed, and the daemon goes on with what it has read before, because {} ({})",
            detail.message, detail.hint
        )),
        // It has answered a moment ago. What the user has asked for will tell what is wrong.
        Err(Failure::Away(_) | Failure::Unasked(_) | Failure::Broken(_)) => {}
    }
}

pub(super) fn replaced(daemon: &DaemonFile) {
    let (old, new) = (&daemon.version, version());
    once(&format!("the daemon is version {old}; a daemon of version {new} takes its place, and agents work on"));
}

pub(super) fn hung(daemon: &DaemonFile, patience: Duration) {
    once(&format!(
        "the daemon (process {}) has not answered for {} seconds; still waiting. If it hangs: `hatchery down --force` ends it; nothing is lost, \
         agents work on, and the next command starts another daemon",
        daemon.pid,
        patience.as_secs_f64()
    ));
}

/// For a request that takes long: the daemon answers whether it is alive, and may hang all the same, for example at its disk.
pub(super) fn late(authority: &str, patience: Duration) {
    once(&format!(
        "the daemon at {authority} has not answered this request for {} seconds; still waiting. If it hangs: `hatchery down --force` ends it; \
         nothing is lost, agents work on, and the next command starts another daemon",
        patience.as_secs_f64()
    ));
}

/// For a daemon that was told to end.
pub(super) fn does_not_end(pid: u32, patience: Duration, by_force: &str) {
    once(&format!(
        "the daemon (process {pid}) has not answered for {} seconds; still waiting. If it hangs: `{by_force}` ends it; nothing is lost, and agents \
         work on",
        patience.as_secs_f64()
    ));
}

fn once(words: &str) {
    static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let Some(tell) = TELL.get() else { return };
    if TOLD.lock().unwrap_or_else(PoisonError::into_inner).insert(words.to_owned()) {
        tell(words);
    }
}
