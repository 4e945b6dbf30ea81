//! Harnesses: the programs that play an agent. An adapter knows how one is started, how something is said to it, and how
//! what it says becomes the normalised stream. It does nothing itself: starting, feeding and reading are the same for all.

mod claude;
mod environment;
mod program;
mod scripted;

use crate::run_folder::RunFolder;
use hatchery_core::output::Output;
use hatchery_core::run::{OUR_SERVER, RunSpec};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use claude::Claude;
pub use program::{find_program, place_of};
pub use scripted::Scripted;

/// One kind of program that plays agents.
pub trait Harness: Send + Sync + fmt::Debug {
    /// The name in settings and on the command line.
    fn name(&self) -> &'static str;

    /// What has to be there so that it can play.
    fn program(&self) -> &Path;

    /// What to start for an attempt.
    fn command(&self, start: &Start<'_>) -> Invocation;

    /// What a line of its output means, or why it cannot be understood.
    fn read(&self, line: &str) -> Result<Vec<Output>, String>;

    /// A message, as a line of its input. It repeats the id when it has heard it.
    fn say(&self, id: &str, text: &str) -> String;

    /// The request to break off its turn, as a line of its input.
    fn interrupt(&self, id: &str) -> String;
}

/// What an adapter is told about an attempt.
#[derive(Debug)]
pub struct Start<'a> {
    pub spec: &'a RunSpec,
    pub folder: &'a RunFolder,
    pub opening: &'a Opening,
    /// What it is in a quest: QUEST/STEP/ROLE/NUMBER.
    pub part: Option<String>,
}

/// How a conversation is entered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opening {
    /// A new one, under a name of ours.
    New { session: String },
    /// The one that was there before.
    Resumed { session: String },
    /// A copy of somebody else's, under a name of ours.
    Forked { from: String, session: String },
}

impl Opening {
    pub fn session(&self) -> &str {
        match self {
            Self::New { session } | Self::Resumed { session } | Self::Forked { session, .. } => session,
        }
    }
}

/// A program with its arguments, and what it needs in its environment besides what every child gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    pub program: PathBuf,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
}

/// All that there are.
#[derive(Debug)]
pub struct Harnesses {
    all: Vec<Arc<dyn Harness>>,
}

impl Harnesses {
    pub fn new(claude: Claude, scripted: Scripted) -> Self {
        Self { all: vec![Arc::new(claude), Arc::new(scripted)] }
    }

    pub fn named(&self, name: &str) -> Option<Arc<dyn Harness>> {
        self.all.iter().find(|harness| harness.name() == name).cloned()
    }

    /// Which program plays for whom.
    pub fn programs(&self) -> BTreeMap<&'static str, PathBuf> {
        self.all.iter().map(|harness| (harness.name(), harness.program().to_owned())).collect()
    }

    pub fn names(&self) -> Vec<&'static str> {
        self.all.iter().map(|harness| harness.name()).collect()
    }
}

/// The file that tells a harness where our tools are.
pub fn mcp_config(program: &Path, project: &Path, folder: &RunFolder, agent: &str, in_a_quest: bool) -> String {
    let (project, mark) = (project.display().to_string(), folder.mark());
    let mut args = vec!["mcp", "--project", &project, "--agent", agent, "--run", &mark];
    args.extend(in_a_quest.then_some("--quest"));
    let server = serde_json::json!({ "type": "stdio", "command": program, "args": args, "alwaysLoad": true });
    serde_json::json!({ "mcpServers": { OUR_SERVER: server } }).to_string()
}

pub use environment::clean;
