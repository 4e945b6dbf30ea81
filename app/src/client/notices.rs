//! What a user should know about the daemon that a command meets: it does not answer, it is of another version, or it has read other
//! settings. Each is told once. Only programs that speak to a person tell it.

use crate::project::{DaemonFile, Project};
use std::collections::BTreeSet;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

static TELL: OnceLock<fn(&str)> = OnceLock::new();

/// Says how notices reach the user. Without this they are not told.
pub fn tell_by(tell: fn(&str)) {
    TELL.get_or_init(|| tell);
}

/// What is different between this program and a daemon that answers.
pub(super) fn about(project: &Project, daemon: &DaemonFile) {
    let version = env!("CARGO_PKG_VERSION");
    if daemon.version != version {
        once(&format!(
            "the daemon is version {}, this command is {version}; `hatchery up --replace` starts a daemon of this version, and agents work on",
            daemon.version
        ));
    }
    if daemon.settings.as_ref().is_some_and(|read| *read != project.settings_mark()) {
        once(
            "hatchery.toml has changed since the daemon started, which does not count yet; after `hatchery down` the next command starts a \
             daemon with the new settings, and agents work on",
        );
    }
}

pub(super) fn hung(daemon: &DaemonFile, patience: Duration) {
    once(&format!(
        "the daemon (process {}) has not answered for {} seconds; still waiting. If it hangs: `kill -9 {0}`; nothing is lost, and the next command \
         starts another",
        daemon.pid,
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
