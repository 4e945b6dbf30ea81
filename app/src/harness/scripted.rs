//! The built-in agent, `hatchery agent-sim`: a real process that plays a script and writes the output format of the Claude CLI. The demo
//! and most tests use it, because it needs no account.

use super::claude::{self, CAPABILITIES, conversation};
use super::registry::{BuiltIn, HarnessSource};
use super::{AttemptStart, Harness, Invocation, ReaderStart, clean};
use crate::own_environment;
use hatchery_core::harness::{Capabilities, Reader};
use hatchery_core::permission::{PermissionDecision, PermissionRequest};
use hatchery_core::price::PriceTable;
use hatchery_core::stream_json::StreamJsonReader;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct Scripted {
    /// This program.
    pub program: PathBuf,
    /// The folder in which it records its position in the script, so that it can be resumed.
    pub state: PathBuf,
    pub environment: BTreeMap<String, String>,
    pub prices: Arc<PriceTable>,
}

pub(super) const BUILT_IN: BuiltIn = BuiltIn {
    name: "scripted",
    program: None,
    make: |source| {
        let HarnessSource { project, config, own_program } = source;
        let (pass, prices) = (&config.runs.pass_env, Arc::clone(&config.prices));
        let state = project.data().join("sim");
        Arc::new(Scripted::new(own_program.to_path_buf(), state, pass, own_environment::entries(), prices))
    },
};

impl Scripted {
    pub fn new(
        program: PathBuf,
        state: PathBuf,
        pass: &[String],
        env: impl Iterator<Item = (String, String)>,
        prices: Arc<PriceTable>,
    ) -> Self {
        Self { program, state, environment: clean(env, &[], pass), prices }
    }
}

impl Harness for Scripted {
    fn name(&self) -> &str {
        BUILT_IN.name
    }

    fn program(&self) -> &Path {
        &self.program
    }

    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    fn usage_report(&self) -> &'static str {
        "reports the tokens and the cost of each turn"
    }

    fn command(&self, start: &AttemptStart<'_>) -> Invocation {
        let mut args = vec!["agent-sim".to_owned()];
        args.extend(conversation(start));
        args.extend(start.part.iter().flat_map(|part| ["--part".to_owned(), part.clone()]));
        // A folder is a queue of scripts, of which each agent takes one. For agents with a part, the folder contains a script for each
        // part.
        if let Some(script) = &start.spec.script {
            let queue = start.part.is_none() && PathBuf::from(script).is_dir();
            args.extend([if queue { "--queue" } else { "--script" }.to_owned(), script.clone()]);
        }
        let mut env = self.environment.clone();
        env.insert("HATCHERY_SIM_STATE".into(), self.state.display().to_string());
        Invocation {
            program: self.program.clone(),
            args,
            env,
            files: claude::files(start),
            first_lines: Vec::new(),
            answers_awaited: Vec::new(),
        }
    }

    fn reader(&self, _of: ReaderStart<'_>) -> Box<dyn Reader> {
        Box::new(StreamJsonReader::new(Arc::clone(&self.prices)))
    }

    fn message(&self, _session: Option<&str>, id: &str, text: &str) -> String {
        claude::message(id, text)
    }

    fn permission(&self, request: &PermissionRequest, decision: &PermissionDecision) -> String {
        claude::permission(request, decision)
    }

    fn interrupt(&self, _session: Option<&str>, id: &str) -> String {
        claude::interrupt(id)
    }
}
