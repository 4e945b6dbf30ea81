//! How an agent is to be run, and what such a wish must keep to.

use crate::Refusal;
use crate::permission::PermissionPolicy;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The longest folder, harness or host name, in bytes.
pub const MAX_SPEC_BYTES: usize = 4_096;
/// The shortest silence that may count as stuck.
pub const MIN_STALL_MS: u64 = 1_000;
/// The longest: a week.
pub const MAX_STALL_MS: u64 = 7 * 24 * 3_600 * 1_000;
/// More than this many crashes in a row are not bad luck.
pub const MAX_RETRIES: u32 = 100;

/// How an agent is to be run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunSpec {
    /// The adapter that knows how to start the process.
    pub harness: String,
    /// Where it runs: processes do not move between machines.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub host: Arc<str>,
    /// The folder it works in; the project's root without.
    #[serde(default)]
    pub folder: Option<String>,
    #[serde(default)]
    pub model: Option<String>,
    /// The script that a scripted agent plays.
    #[serde(default)]
    pub script: Option<String>,
    /// Waits for further messages after a turn, instead of ending.
    #[serde(default)]
    pub stays: bool,
    /// Silence that counts as stuck.
    pub stall_ms: u64,
    /// Whether a stuck process is stopped. Otherwise a person is asked.
    #[serde(default)]
    pub kill_stuck: bool,
    /// How often a crashed process is resumed.
    pub retries: u32,
    /// Whether the run waits out rate limits and overloads.
    pub parks: bool,
    /// Its work is done when it has signalled: an end without a signal is a crash, whatever the exit code.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub signals: bool,
    /// What its agent may do without asking. Runs from before there were permissions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<PermissionPolicy>,
}

impl RunSpec {
    pub fn policy(&self) -> PermissionPolicy {
        self.permissions.unwrap_or(PermissionPolicy::None)
    }
}

pub(crate) fn check_spec(spec: &RunSpec) -> Result<(), Refusal> {
    if !(MIN_STALL_MS..=MAX_STALL_MS).contains(&spec.stall_ms) {
        return Err(Refusal::StallOutOfRange { ms: spec.stall_ms });
    }
    if spec.retries > MAX_RETRIES {
        return Err(Refusal::TooManyRetries { retries: spec.retries });
    }
    check_texts([
        Some(&spec.harness),
        Some(&spec.host),
        spec.folder.as_deref(),
        spec.model.as_deref(),
        spec.script.as_deref(),
    ])
}

/// They are kept in memory, and end up on a command line.
pub(super) fn check_texts<const N: usize>(texts: [Option<&str>; N]) -> Result<(), Refusal> {
    match texts.into_iter().flatten().find(|text| text.is_empty() || text.len() > MAX_SPEC_BYTES) {
        Some(text) => Err(Refusal::BadSpec { text: text.chars().take(64).collect() }),
        None => Ok(()),
    }
}
