//! A child that plays a script and speaks the stream of the Claude CLI. It is a real process with real MCP servers, needs no
//! account, and does exactly what its script says: tests and demos are made of it. `docs/scripted-agents.md` has the format.
//!
//! ```text
//! stdin ──► inbox ─┐
//! signals ──► inbox ├─► player ──► voice ──► stdout
//! script ► memory ─┘      └────► servers (MCP, only when configured)
//! ```
//!
//! Nothing here knows the daemon: to the supervisor it is a child like any other.

mod failure;
mod inbox;
mod memory;
mod playbook;
mod player;
mod queue;
mod script;
mod servers;
mod signals;
mod voice;

use inbox::PlayerInbox;
use memory::{Memory, MemoryError};
pub use playbook::PlayedRole;
use player::Player;
use servers::Servers;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use voice::Voice;

/// Where it keeps how far each session has come.
pub const STATE_VARIABLE: &str = "HATCHERY_SIM_STATE";

/// There is no script left in the queue.
const QUEUE_EMPTY: u8 = 64;

#[derive(Debug)]
pub struct SimOptions {
    pub source: Source,
    pub session: PlayedSession,
    pub input: PlayedInput,
    /// Paths or JSON, as `--mcp-config` takes them.
    pub mcp_configs: Vec<String>,
    pub model: String,
    /// Echo the messages that were taken in.
    pub replay: bool,
    /// Write pieces of texts.
    pub partials: bool,
    pub state: PathBuf,
}

/// Where a new session's script comes from. A resumed one goes on with its own.
#[derive(Debug)]
pub enum Source {
    /// It answers each message with what was said.
    Echo,
    File(PathBuf),
    /// The next script of this folder that no other agent has taken.
    Queue(PathBuf),
    /// That of its part in a quest: from this folder, or built in.
    Part(Option<PathBuf>, PlayedRole),
}

#[derive(Debug)]
pub enum PlayedSession {
    New(String),
    Resumed(String),
    Forked { from: String, to: String },
}

#[derive(Debug)]
pub enum PlayedInput {
    /// One turn for this prompt; without one, for what standard input says.
    Prompt(Option<String>),
    /// A turn for each message on standard input, until it ends.
    Messages,
}

/// Why it cannot even begin.
#[derive(Debug, thiserror::Error)]
enum CannotBegin {
    #[error(transparent)]
    Memory(#[from] MemoryError),
    // The words by which the core knows that another attempt would fail in the same way.
    #[error("invalid script: there is no script left in {}", .0.display())]
    QueueEmpty(PathBuf),
    #[error("invalid script: {0}")]
    NoScript(String),
    #[error("{0}")]
    Unusable(String),
}

/// Plays until the script or the input ends, or until the process is stopped, and returns the exit code.
pub fn run(options: SimOptions) -> u8 {
    match begin(options) {
        Ok(player) => player.run(),
        Err(refused) => refused.tell(),
    }
}

fn begin(options: SimOptions) -> Result<Player, CannotBegin> {
    let (session, memory) = match options.session {
        PlayedSession::New(id) => {
            memory::free(&options.state, &id)?;
            let script = options.source.script()?;
            (id.clone(), Memory::begin(&options.state, &id, script)?)
        }
        PlayedSession::Resumed(id) => (id.clone(), Memory::resume(&options.state, &id)?),
        PlayedSession::Forked { from, to } => (to.clone(), Memory::fork(&options.state, &from, &to)?),
    };
    let unusable = |error: std::io::Error| CannotBegin::Unusable(format!("it cannot begin: {error}"));
    let servers = Servers::connect(&options.mcp_configs).map_err(CannotBegin::Unusable)?;
    let inbox = match options.input {
        PlayedInput::Prompt(prompt) => Arc::new(PlayerInbox::of(prompt.unwrap_or_else(inbox::prompt_on_stdin))),
        PlayedInput::Messages => inbox::listen().map_err(unusable)?,
    };
    let signals = signals::attend(&inbox).map_err(unusable)?;
    let voice = Voice::new(session, options.model, options.partials);
    Ok(Player { voice, memory, inbox, servers, signals, replay: options.replay })
}

impl Source {
    fn script(&self) -> Result<Option<String>, CannotBegin> {
        let path = match self {
            Self::Echo => return Ok(None),
            Self::File(path) => path.clone(),
            Self::Part(folder, part) => {
                let script = playbook::script(folder.as_deref(), part);
                return script.map(Some).map_err(|error| CannotBegin::NoScript(error.to_string()));
            }
            Self::Queue(folder) => {
                let claimed = queue::claim(folder).map_err(|error| unreadable(folder, error))?;
                claimed.ok_or_else(|| CannotBegin::QueueEmpty(folder.clone()))?
            }
        };
        std::fs::read_to_string(&path).map(Some).map_err(|error| unreadable(&path, error))
    }
}

impl CannotBegin {
    /// Says why, in the manner of the real CLI, and gives the exit code.
    fn tell(self) -> u8 {
        match &self {
            Self::Memory(MemoryError::Unknown(id)) => {
                eprintln!("{self}");
                Voice::new(id.clone(), String::new(), false).never_began(&self.to_string());
                1
            }
            Self::Memory(_) | Self::NoScript(_) | Self::Unusable(_) => {
                eprintln!("Error: {self}");
                1
            }
            Self::QueueEmpty(_) => {
                eprintln!("Error: {self}");
                QUEUE_EMPTY
            }
        }
    }
}

fn unreadable(path: &Path, error: std::io::Error) -> CannotBegin {
    CannotBegin::NoScript(format!("{} cannot be used: {error}", path.display()))
}
