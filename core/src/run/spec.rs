//! How a run is carried out (`RunSpec`), and the limits of that.

use crate::Refusal;
use crate::permission::PermissionPolicy;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The longest folder, harness or host name, in bytes.
pub const MAX_SPEC_BYTES: usize = 4_096;
/// The shortest silence that may count as stuck.
pub const MIN_STALL_MS: u64 = 1_000;
/// The longest silence that may count as stuck: a week.
pub const MAX_STALL_MS: u64 = 7 * 24 * 3_600 * 1_000;
/// The most retries. So many crashes in a row have a cause that a retry does not remove.
pub const MAX_RETRIES: u32 = 100;

/// How a run is carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunSpec {
    /// The name of the harness.
    pub harness: String,
    /// The machine on which the agent runs. Processes do not move between machines.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub host: Arc<str>,
    /// The folder in which the agent works. None: the project's root.
    #[serde(default)]
    pub folder: Option<String>,
    #[serde(default)]
    pub model: Option<String>,
    /// The script that a scripted agent plays.
    #[serde(default)]
    pub script: Option<String>,
    /// Wait for further messages after a turn, instead of ending.
    #[serde(default)]
    pub stays: bool,
    /// Silence that counts as stuck.
    pub stall_ms: u64,
    /// Whether a stuck process is stopped. Otherwise the user is asked.
    #[serde(default)]
    pub kill_stuck: bool,
    /// How often a crashed process is resumed.
    pub retries: u32,
    /// Whether the run waits for rate limits and overloads to end.
    pub parks: bool,
    /// The agent must send a signal. An end without a signal is a crash, whatever the exit code is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub signals: bool,
    /// What the agent may do without asking. None in runs of older versions, which had no permissions.
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

/// Checks the length of texts that are kept in memory and become part of a command line.
pub(super) fn check_texts<const N: usize>(texts: [Option<&str>; N]) -> Result<(), Refusal> {
    match texts.into_iter().flatten().find(|text| text.is_empty() || text.len() > MAX_SPEC_BYTES) {
        Some(text) => Err(Refusal::BadSpec { text: text.chars().take(64).collect() }),
        None => Ok(()),
    }
}
