//! Harnesses: the adapters for agent programs. An adapter says how its program is started, how a message is written to it, and which reader
//! understands its output. It does nothing itself: starting, writing and reading are the same for all harnesses.

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

/// The adapter for one kind of agent program.
pub trait Harness: Send + Sync + fmt::Debug {
    /// The name in settings and on the command line.
    fn name(&self) -> &str;

    /// The agent program.
    fn program(&self) -> &Path;

    fn capabilities(&self) -> Capabilities;

    /// Which tokens and costs the program reports, as text for people.
    fn usage_report(&self) -> &'static str;

    /// What to start for an attempt.
    fn command(&self, start: &AttemptStart<'_>) -> Invocation;

    /// A reader for the output of one process.
    fn reader(&self, of: ReaderStart<'_>) -> Box<dyn Reader>;

    /// A message, as a line of the program's input. `session` is the harness session, if it is known. The program confirms the message by
    /// its id, if it [echoes messages](Capabilities::echoes_messages).
    fn message(&self, session: Option<&str>, id: &str, text: &str) -> String;

    /// The request to use a model, as a line of the program's input. Only for a harness whose model is chosen [in the open
    /// session](ModelChoice::needs_session).
    fn choose_model(&self, _how: ModelChoice, _session: &str, _model: &str) -> Option<String> {
        None
    }

    /// The request to interrupt the turn, as a line of the program's input.
    fn interrupt(&self, session: Option<&str>, id: &str) -> String;

    /// The answer to a request for permission, as a line of the program's input.
    fn permission(&self, request: &PermissionRequest, decision: &PermissionDecision) -> String;

    /// Whether the program would find a login. Checks only that there is one, and never reads it.
    fn login(&self) -> Login {
        Login::Found("it needs no login")
    }

    /// Whether the user's own arguments let the program decide by itself which tools it allows, so that the policy of a run is not the only
    /// one.
    fn program_decides_permissions(&self) -> bool {
        false
    }

    /// Removes what a process that has ended has left in its working folder. Called only when no other process of the harness works there.
    fn tidy(&self, _place: &Path) {}

    /// The process that has a session open without a launcher, for example because the user started the program. Two processes must not
    /// write to one session.
    fn session_in_use(&self, _session: &str) -> Option<u32> {
        None
    }
}

/// Whether a program would find a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Login {
    /// Which login there is.
    Found(&'static str),
    /// What to do.
    Missing(&'static str),
}

/// What an adapter needs to start an attempt.
#[derive(Debug)]
pub struct AttemptStart<'a> {
    pub spec: &'a RunSpec,
    pub run_folder: &'a RunFolder,
    /// The folder in which the process works.
    pub working_folder: &'a Path,
    /// Hatchery's own folder of the project.
    pub data: &'a Path,
    pub opening: &'a Opening,
    /// The id for a new session. Only for a harness that lets Hatchery choose it.
    pub new_session: Option<&'a str>,
    pub tools: &'a ToolServer,
    /// The part that a scripted agent plays: `QUEST/STEP/ROLE/NUMBER` in a quest, `QUEST/STEP/fork/NUMBER` for a step fork, `seats/…` in a
    /// seat.
    pub part: Option<String>,
    /// The agent leads the seats with a team of its own.
    pub leads_team: bool,
}

/// What an adapter needs to read the output of a process.
#[derive(Debug)]
pub struct ReaderStart<'a> {
    /// The folder in which the process works.
    pub place: &'a Path,
    /// The harness session, if the process was ready before. In a very long spool, the line that names the session may be gone.
    pub session: Option<&'a str>,
    /// The model of the run, if one was requested.
    pub model: Option<&'a str>,
    /// The message that a process receives first after it resumes a session. Only for a harness that does not [echo
    /// messages](Capabilities::echoes_messages).
    pub waiting: Option<WaitingMessage>,
}

/// The MCP server with Hatchery's tools, over standard input and output.
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

/// The purpose of an agent. It decides which tools the agent gets besides the common ones.
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
    /// The `id`s of the first of these lines whose answers must arrive before the next line is written. An answer is a line of the
    /// program's output that is a JSON object with the same `id`.
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

/// What a harness can and cannot do, as text for people.
pub fn abilities(capabilities: Capabilities) -> String {
    let Capabilities {
        chooses_session_id: _,
        echoes_messages,
        forks,
        interrupts,
        stays_open,
        asks_permission,
        // Part of `usage_report`: an agent that speaks ACP shows only at run time what it reports.
        reports_cost: _,
        one_at_a_time,
        resumes,
        // A message contains the reason instead.
        explains_denials: _,
        // Known when a session is open.
        model_choice: _,
        // It only shows which messages were received; nothing else depends on it.
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
