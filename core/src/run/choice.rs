//! The choice of a run's spec. A request comes first, then the agent's last run, then the agent's harness session, then the settings.
//! Facts about the machine come in as arguments.

use super::{HarnessSession, RunSpec};
use crate::permission::PermissionPolicy;
use crate::{AgentId, Refusal, World};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Options of a run. Anything that is left out is as in the agent's last run, or as in the settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RunOptions {
    /// The harness: `claude`, `codex`, `scripted`, or the name of an agent that speaks ACP, such as `opencode`.
    pub harness: Option<String>,
    /// The model to use.
    pub model: Option<String>,
    /// The folder to work in, relative to the project's root.
    pub folder: Option<String>,
    /// For the harness `scripted`: a script, or a folder from which each agent takes one script.
    pub script: Option<String>,
    /// Wait for more messages after a turn, instead of ending.
    pub stays: Option<bool>,
    /// Silence that counts as stuck.
    #[cfg_attr(feature = "openapi", schema(minimum = 1_000, maximum = 604_800_000))]
    #[serde(rename = "stallMs", alias = "stall_ms")]
    pub stall_ms: Option<u64>,
    /// Whether a stuck process is stopped. Otherwise the user is asked.
    #[serde(rename = "killStuck", alias = "kill_stuck")]
    pub kill_stuck: Option<bool>,
    /// How many times in a row a crashed process is resumed.
    #[cfg_attr(feature = "openapi", schema(maximum = 100))]
    pub retries: Option<u32>,
    /// Whether the run waits for rate limits and overloads to end.
    pub park: Option<bool>,
    /// What the agent may do without asking: `ask`, `edits`, `all` or `none`.
    pub permissions: Option<PermissionPolicy>,
}

/// The settings for runs.
#[derive(Clone, Copy, Debug)]
pub struct UsualRun<'a> {
    pub harness: &'a str,
    pub script: Option<&'a str>,
    pub stall_ms: u64,
    pub kill_stuck: bool,
    pub retries: u32,
    pub parks: bool,
    pub permissions: Option<PermissionPolicy>,
}

/// Facts about the machine and the daemon.
#[derive(Clone, Copy, Debug)]
pub struct RunFacts<'a> {
    pub host: &'a Arc<str>,
    /// The names of all harnesses.
    pub harnesses: &'a [&'a str],
    /// The folder with Hatchery's worktrees, relative to the project's root, with a slash at its end.
    pub worktrees: &'a str,
    /// The daemon runs as root.
    pub is_root: bool,
    /// The daemon was told that the machine is a sandbox.
    pub in_sandbox: bool,
}

/// The earlier work of an agent.
#[derive(Clone, Copy, Debug, Default)]
pub struct EarlierWork<'a> {
    /// The spec of its last run.
    pub last: Option<&'a RunSpec>,
    pub harness_session: Option<&'a HarnessSession>,
}

/// The purpose of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunPurpose {
    /// If nothing names the policy of permissions, it stays open: the role and the isolation decide it later.
    Quest,
    /// If nothing names the policy of permissions, it depends on the folder.
    Agent,
}

/// The spec of the agent's last run. If the agent has none: the spec of the last run of the nearest agent from which it was forked.
pub fn last_spec(world: &World, agent: AgentId) -> Option<&RunSpec> {
    // The origins of agents form a tree, so the loop ends.
    let mut of = agent;
    loop {
        if let Some(run) = world.run(of) {
            return Some(&run.spec);
        }
        of = world.agent(of)?.origin?.agent;
    }
}

/// Whether a fork starts to work. If the request does not say so, a fork starts if options are given, or if it has a prompt and its parent
/// had a run.
pub fn fork_starts(
    asked: Option<bool>,
    options: &RunOptions,
    prompt: Option<&str>,
    last: Option<&RunSpec>,
) -> Result<bool, Refusal> {
    let has_options = *options != RunOptions::default();
    match asked.unwrap_or(has_options || (prompt.is_some() && last.is_some())) {
        true if prompt.is_none() => Err(Refusal::ForkWithoutPrompt),
        false if has_options => Err(Refusal::OptionsOfNoRun),
        starts => Ok(starts),
    }
}

/// The spec of the next run.
pub fn choose_spec(
    options: RunOptions,
    earlier: EarlierWork<'_>,
    usual: UsualRun<'_>,
    facts: RunFacts<'_>,
    purpose: RunPurpose,
) -> Result<RunSpec, Refusal> {
    let EarlierWork { last, harness_session } = earlier;
    let harness = options
        .harness
        .or_else(|| last.map(|last| last.harness.clone()))
        .or_else(|| harness_session.map(|session| session.harness.clone()))
        .unwrap_or_else(|| usual.harness.to_owned());
    if !facts.harnesses.contains(&harness.as_str()) {
        return Err(Refusal::NoSuchHarness { harness, known: facts.harnesses.join(", ") });
    }
    let folder = options.folder.or_else(|| match last {
        Some(last) => last.folder.clone(),
        None => harness_session.and_then(|session| session.folder.clone()),
    });
    let named = options.permissions.or_else(|| last.and_then(|last| last.permissions)).or(usual.permissions);
    let permissions = named.or_else(|| match purpose {
        RunPurpose::Quest => None,
        RunPurpose::Agent => {
            let in_worktree = folder.as_deref().is_some_and(|folder| folder.starts_with(facts.worktrees));
            Some(PermissionPolicy::by_place(in_worktree))
        }
    });
    // The Claude CLI refuses the same, for the same reason.
    if permissions == Some(PermissionPolicy::All) && facts.is_root && !facts.in_sandbox {
        return Err(Refusal::RootWithoutSandbox);
    }
    Ok(RunSpec {
        host: facts.host.clone(),
        folder,
        // The model of one harness may not exist in another.
        model: options.model.or_else(|| last.filter(|last| last.harness == harness)?.model.clone()),
        script: options
            .script
            .or_else(|| last.and_then(|last| last.script.clone()))
            .or_else(|| usual.script.map(str::to_owned)),
        stays: options.stays.or_else(|| last.map(|last| last.stays)).unwrap_or(false),
        stall_ms: options.stall_ms.or_else(|| last.map(|last| last.stall_ms)).unwrap_or(usual.stall_ms),
        kill_stuck: options.kill_stuck.or_else(|| last.map(|last| last.kill_stuck)).unwrap_or(usual.kill_stuck),
        retries: options.retries.or_else(|| last.map(|last| last.retries)).unwrap_or(usual.retries),
        parks: options.park.or_else(|| last.map(|last| last.parks)).unwrap_or(usual.parks),
        signals: false,
        permissions,
        harness,
    })
}
