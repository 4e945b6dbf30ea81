//! The registry of the built-in harnesses. Settings, version checks, `hatchery doctor` and the runner all read this table. So a new harness
//! is a file in this folder and a line in [`BUILT_IN`]. Agents that speak ACP are defined in the settings instead.

use super::version::Version;
use super::{Acp, Harness, Harnesses, claude, codex, scripted};
use crate::config::{Config, Runs};
use crate::project::Project;
use std::path::Path;
use std::sync::Arc;

/// All built-in harnesses.
pub const BUILT_IN: [BuiltIn; 3] = [claude::BUILT_IN, codex::BUILT_IN, scripted::BUILT_IN];

/// A built-in harness.
#[derive(Clone, Copy, Debug)]
pub struct BuiltIn {
    /// The name in settings and on the command line.
    pub name: &'static str,
    /// The agent program, and how to install it. None if this program is the agent program.
    pub program: Option<ProgramEntry>,
    pub make: fn(&HarnessSource<'_>) -> Arc<dyn Harness>,
}

/// The program of a harness.
#[derive(Clone, Copy, Debug)]
pub struct ProgramEntry {
    /// The path in the settings.
    pub of: fn(&Runs) -> &Path,
    /// The oldest version that the tests cover, if there is one.
    pub oldest: Option<Version>,
    /// What to do if the program is missing.
    pub install: &'static str,
    /// What to do if the program is too old.
    pub upgrade: &'static str,
}

/// What a harness is created from.
#[derive(Clone, Copy, Debug)]
pub struct HarnessSource<'a> {
    pub project: &'a Project,
    pub config: &'a Config,
    /// This program, from which scripted agents are started.
    pub own_program: &'a Path,
}

/// The entry of a harness, if it is built in.
pub fn built_in(name: &str) -> Option<BuiltIn> {
    BUILT_IN.into_iter().find(|entry| entry.name == name)
}

impl HarnessSource<'_> {
    /// All harnesses: the built-in ones, and one for each agent that speaks ACP.
    pub fn harnesses(&self) -> Harnesses {
        let built_in = BUILT_IN.into_iter().map(|entry| (entry.make)(self));
        let acp = self.config.runs.acp_agents.iter();
        let acp = acp.map(|(name, agent)| -> Arc<dyn Harness> { Arc::new(Acp::of(name, agent, self.config)) });
        Harnesses::new(built_in.chain(acp).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name in the table is the name that the harness gives itself, and its program is the one of the settings.
    #[test]
    fn each_entry_agrees_with_its_harness() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::find(folder.path()).unwrap();
        let config = Config::defaults(&project).unwrap();
        let own_program = Path::new("/bin/hatchery");
        let source = HarnessSource { project: &project, config: &config, own_program };
        for entry in BUILT_IN {
            let harness = (entry.make)(&source);
            let program = entry.program.map_or(own_program, |program| (program.of)(&config.runs));
            assert_eq!((harness.name(), harness.program()), (entry.name, program));
        }
        let names = source.harnesses().names().join(" ");
        assert_eq!(names, "claude codex scripted gemini opencode qwen");
    }
}
