//! Harnesses: the adapters for agent programs. A harness says how its program is started, how a message is written to it, and which
//! reader understands its output. It does nothing itself: starting, writing and reading are the same for all harnesses.

mod acp;
mod claude;
mod codex;
mod environment;
mod program;
pub mod registry;
mod scripted;
pub mod version;

use crate::run_folder::RunFolder;
use hatchery_core::harness::{Capabilities, ModelChoice, Opening, Reader, WaitingMessage};
use hatchery_core::permission::{PermissionDecision, PermissionRequest};
use hatchery_core::run::{RunSpec, TOOL_SERVER};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use acp::Acp;
pub use claude::Claude;
pub use codex::Codex;
pub use program::{find_program, place_of};
pub use scripted::Scripted;
pub use version::too_old;

/// The adapter for one agent program.
pub trait Harness: Send + Sync + fmt::Debug {
    /// The name in settings and on the command line.
    fn name(&self) -> &str;

    /// The program that is started.
    fn program(&self) -> &Path;

    fn capabilities(&self) -> Capabilities;

    /// What the program says about the tokens and the money that it uses, in words.
    fn usage_report(&self) -> &'static str;

    /// What to start for an attempt.
    fn command(&self, start: &AttemptStart<'_>) -> Invocation;

    /// A reader for the output of one process.
    fn reader(&self, of: ReaderStart<'_>) -> Box<dyn Reader>;

    /// A message, as a line of the program's input. `session` is the harness session, once it is known. The program confirms
    /// the message by its id, if it [echoes messages](Capabilities::echoes_messages).
    fn message(&self, session: Option<&str>, id: &str, text: &str) -> String;

    /// The request to use a model, as a line of the program's input. Only for a harness that is told the model
    /// [when its session is open](ModelChoice::needs_session).
    fn choose_model(&self, _how: ModelChoice, _session: &str, _model: &str) -> Option<String> {
        None
    }

    /// The request to interrupt the turn, as a line of the program's input.
    fn interrupt(&self, session: Option<&str>, id: &str) -> String;

    /// The answer to a request for permission, as a line of the program's input.
    fn permission(&self, request: &PermissionRequest, decision: &PermissionDecision) -> String;

    /// Whether the program would find a login. Only whether there is one is looked at, never what it says.
    fn login(&self) -> Login {
        Login::Found("it needs no login")
    }

    /// Whether the user's own arguments make the program decide by itself which tools it allows, so that the policy of a run does not
    /// count alone.
    fn program_decides_permissions(&self) -> bool {
        false
    }

    /// Removes what a process that is gone has left in the folder it worked in. No other process of the harness works there.
    fn tidy(&self, _place: &Path) {}

    /// The process that has a session open without a launcher, for example because a person started the program. Two processes
    /// must not write to one session.
    fn session_in_use(&self, _session: &str) -> Option<u32> {
        None
    }
}

/// Whether a program would find a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Login {
    /// What there is.
    Found(&'static str),
    /// What to do.
    Missing(&'static str),
}

/// What a harness needs to know to start an attempt.
#[derive(Debug)]
pub struct AttemptStart<'a> {
    pub spec: &'a RunSpec,
    pub run_folder: &'a RunFolder,
    /// The folder in which the process works.
    pub working_folder: &'a Path,
    /// Hatchery's own folder of the project.
    pub data: &'a Path,
    pub opening: &'a Opening,
    /// The id for a new session. Only for a harness that takes one.
    pub new_session: Option<&'a str>,
    pub tools: &'a ToolServer,
    /// Which script the agent plays: `QUEST/STEP/ROLE/NUMBER` in a quest, `QUEST/STEP/fork/NUMBER` for a step fork, `seats/…` in a seat.
    pub part: Option<String>,
    /// The agent leads the seats with a team of its own.
    pub leads_team: bool,
}

/// What a harness needs to know to read the output of a process.
#[derive(Debug)]
pub struct ReaderStart<'a> {
    /// The folder that the process works in.
    pub place: &'a Path,
    /// The harness session, if the process was ready before: of a very long output the line that named it may be gone.
    pub session: Option<&'a str>,
    /// The model that the run asks for.
    pub model: Option<&'a str>,
    /// The message that is to be said first to a process that resumes a session. Only for a harness that does not
    /// [echo messages](Capabilities::echoes_messages).
    pub waiting: Option<WaitingMessage>,
}

/// The MCP server with our tools, which speaks over standard input and output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolServer {
    pub name: &'static str,
    pub command: PathBuf,
    pub args: Vec<String>,
}

impl ToolServer {
    /// The tools of one attempt.
    pub fn of(program: &Path, project: &Path, folder: &RunFolder, agent: &str, work: AgentPurpose) -> Self {
        let (project, tag) = (project.display().to_string(), folder.tag());
        let args = ["mcp", "--project", &project, "--agent", agent, "--run", &tag].map(str::to_owned);
        let more = match work {
            AgentPurpose::Free => None,
            AgentPurpose::Quest => Some("--quest".to_owned()),
            AgentPurpose::Seat => Some("--seat".to_owned()),
        };
        Self { name: TOOL_SERVER, command: program.to_owned(), args: args.into_iter().chain(more).collect() }
    }
}

/// What an agent is for. It decides which tools the agent gets besides those of every agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentPurpose {
    Free,
    Quest,
    Seat,
}

/// A program with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    pub program: PathBuf,
    pub args: Vec<String>,
    /// The whole environment.
    pub env: BTreeMap<String, String>,
    /// Files that the program reads, by their names in the run folder.
    pub files: Vec<(&'static str, Vec<u8>)>,
    /// The first lines of its input, before any message: for example a handshake.
    pub first_lines: Vec<String>,
    /// The `id`s of the first of these lines, if the program must have answered each before the next line is written. An answer is
    /// a line of its output that is a JSON object with the same `id`.
    pub answers_awaited: Vec<String>,
}

/// All harnesses of this program.
#[derive(Clone, Debug)]
pub struct Harnesses {
    all: Vec<Arc<dyn Harness>>,
}

impl Harnesses {
    pub fn new(all: Vec<Arc<dyn Harness>>) -> Self {
        Self { all }
    }

    pub fn named(&self, name: &str) -> Option<Arc<dyn Harness>> {
        self.all.iter().find(|harness| harness.name() == name).cloned()
    }

    pub fn names(&self) -> Vec<&str> {
        self.all.iter().map(|harness| harness.name()).collect()
    }
}

/// What a harness can and cannot do, in words.
pub fn abilities(capabilities: Capabilities) -> String {
    let Capabilities {
        chooses_session_id: _,
        echoes_messages,
        forks,
        interrupts,
        stays_open,
        asks_permission,
        // Said by `usage_report`: what a program that speaks ACP reports is known when it does.
        reports_cost: _,
        one_at_a_time,
        resumes,
        // A message says it instead.
        explains_denials: _,
        // Known when a session is open.
        model_choice: _,
        // It shows what was heard, and nothing else depends on it.
        repeats_history: _,
    } = capabilities;
    let all = [
        ("confirm each message", echoes_messages),
        ("take messages in mid-turn", !one_at_a_time),
        ("be interrupted", interrupts),
        ("stay for the next message", stays_open),
        ("go on with a session", resumes),
        ("copy a session", forks),
        ("ask for permission", asks_permission),
    ];
    let words = |wanted: bool| {
        let words: Vec<&str> = all.iter().filter(|(_, can)| *can == wanted).map(|(word, _)| *word).collect();
        words.join(", ")
    };
    match words(false) {
        cannot if cannot.is_empty() => format!("can {}", words(true)),
        cannot => format!("can {}; cannot {cannot}", words(true)),
    }
}

pub use environment::clean;
