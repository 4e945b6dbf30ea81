//! The agent that is built in: `hatchery agent-sim`, a real process that plays a script and speaks as the Claude CLI does. It
//! makes the demo and most tests possible without any account.

use super::claude::{conversation, interrupt, say};
use super::{Harness, Invocation, Start, clean};
use hatchery_core::output::Output;
use hatchery_core::stream_json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug)]
pub struct Scripted {
    /// This program.
    pub program: PathBuf,
    /// Where it remembers how far it got, for when it is resumed.
    pub state: PathBuf,
    pub environment: BTreeMap<String, String>,
}

impl Scripted {
    pub fn new(program: PathBuf, state: PathBuf, pass: &[String], env: impl Iterator<Item = (String, String)>) -> Self {
        Self { program, state, environment: clean(env, &[], pass) }
    }
}

impl Harness for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn program(&self) -> &Path {
        &self.program
    }

    fn command(&self, start: &Start<'_>) -> Invocation {
        let mut args = vec!["agent-sim".to_owned()];
        args.extend(conversation(start));
        args.extend(start.part.iter().flat_map(|part| ["--part".to_owned(), part.clone()]));
        // A folder is a queue of scripts, of which each agent takes one; agents of a quest have their parts in it.
        if let Some(script) = &start.spec.script {
            let queue = start.part.is_none() && PathBuf::from(script).is_dir();
            args.extend([if queue { "--queue" } else { "--script" }.to_owned(), script.clone()]);
        }
        let mut env = self.environment.clone();
        env.insert("HATCHERY_SIM_STATE".into(), self.state.display().to_string());
        Invocation { program: self.program.clone(), args, env }
    }

    fn read(&self, line: &str) -> Result<Vec<Output>, String> {
        stream_json::parse(line).map_err(|error| error.to_string())
    }

    fn say(&self, id: &str, text: &str) -> String {
        say(id, text)
    }

    fn interrupt(&self, id: &str) -> String {
        interrupt(id)
    }
}
