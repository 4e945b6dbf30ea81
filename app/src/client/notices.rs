//! Notices to the user about the daemon: it does not answer, it has another version, or it has read other settings. Each notice is shown
//! once, and only by commands whose standard error a person reads.

use super::{Client, Failure};
use crate::config::SettingsFile;
use crate::live_settings::SettingsTaken;
use crate::project::{DaemonFile, Project};
use crate::version::version;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// A daemon's answer about itself. A daemon of another version may leave fields out.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct HealthAnswer {
    settings: Option<String>,
    settings_wait: bool,
}

static TELL: OnceLock<fn(&str)> = OnceLock::new();

/// Sets the function that shows notices to the user. Without it, notices are not shown.
pub fn tell_by(tell: fn(&str)) {
    TELL.get_or_init(|| tell);
}

/// Shows notices about differences between this program and a daemon that answers.
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
        // The daemon has answered a moment ago. If something is wrong, the user's own request will show it.
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

/// Shows a notice about a request that takes long. A daemon can answer that it is alive and still hang, for example because of its disk.
pub(super) fn late(authority: &str, patience: Duration) {
    once(&format!(
        "the daemon at {authority} has not answered this request for {} seconds; still waiting. If it hangs: `hatchery down --force` ends it; \
         nothing is lost, agents work on, and the next command starts another daemon",
        patience.as_secs_f64()
    ));
}

/// Shows a notice about a daemon that was asked to end and has not ended.
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
