//! `hatchery agent-sim`

use crate::clock;
use crate::report::{Context as _, Report};
use crate::sim::{self, PlayedInput, PlayedRole, PlayedSession, STATE_VARIABLE, SimOptions, Source};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// Play a script as if it were an agent, for tests and demos.
///
/// It is a real process that takes the arguments of the Claude CLI and writes the same stream to
/// standard output. It plays its script. After the end of the script, or without one, it
/// answers each message with "You said: …".
///
/// A script has one JSON value per line:
///
///   {"partial": "…"}   {"partial_thought": "…"}
///   {"text": "…"}   {"think": "…"}   {"sleep_ms": 100}   "turn"   "again"   "compact"
///   {"tool": {"name": "Bash", "input": {}, "result": "…", "is_error": false}}
///   {"ask": {"name": "Write", "input": {"file_path": "a.txt", "content": "…"}, "result": "…"}}
///   {"mcp": {"tool": "ps", "arguments": {}, "server": "hatchery"}}
///   {"subagent": {"prompt": "…", "text": "…"}}
///   {"flood": {"lines": 1000, "bytes": 100}}   {"long_line": 1000000}
///   {"write_file": {"path": "a.txt", "content": "…"}}   {"child": {"sleep_s": 60}}
///   {"cost": {"usd": 0.01, "input_tokens": 10, "output_tokens": 5}}
///   {"error": {"api": 529}}   (401, 429 with "resets_in_s", 500, 529, "credit", "too_long")
///   {"exit": 3}   {"last_words": "…"}   {"crash": "KILL"}   {"hang": {"ignore_sigterm": true}}
///
/// "turn" ends a turn: the rest waits for the next message. "again" ends a turn, and the next
/// message starts the script from the top. The position of a session is kept in the folder
/// that HATCHERY_SIM_STATE names, so that --resume continues after the step at which the
/// process died. docs/scripted-agents.md describes the steps.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// The script (unless --script or --queue names it) and the prompt
    #[arg(value_name = "SCRIPT [PROMPT]")]
    words: Vec<String>,
    /// The script
    #[arg(long, value_name = "FILE", conflicts_with = "queue")]
    script: Option<PathBuf>,
    /// Take the next script of this folder, by moving it to the subfolder taken/
    #[arg(long, value_name = "FOLDER")]
    queue: Option<PathBuf>,
    /// Play an agent of a quest: QUEST/STEP/ROLE/NUMBER. The script is the first of these files in the folder that --script
    /// names: STEP.ROLE.NUMBER.jsonl, STEP.ROLE.jsonl, ROLE.NUMBER.jsonl, ROLE.jsonl; otherwise a built-in one
    #[arg(long, value_name = "PART", value_parser = part, conflicts_with = "queue")]
    part: Option<PlayedRole>,
    /// The id of the new session
    #[arg(long, value_name = "UUID")]
    session_id: Option<String>,
    /// Continue this session
    #[arg(long, short, value_name = "UUID")]
    resume: Option<String>,
    /// Continue a copy of the session
    #[arg(long, requires = "resume")]
    fork_session: bool,
    /// Read messages as JSON lines (stream-json), or one prompt (text)
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    input_format: Format,
    /// Echo each message when its turn starts
    #[arg(long)]
    replay_user_messages: bool,
    /// The MCP servers to start: a file or JSON
    #[arg(long, value_name = "CONFIG", num_args = 1..)]
    mcp_config: Vec<String>,
    /// The model's name
    #[arg(long, default_value = "scripted")]
    model: String,
    #[command(flatten)]
    ignored: Ignored,
    /// Only sleep for this many seconds, in a process session of its own
    #[arg(long, value_name = "SECONDS", hide = true)]
    sleep_apart: Option<u64>,
}

/// Flags of the Claude CLI that the scripted agent accepts and, with one exception, ignores.
#[derive(Debug, clap::Args)]
struct Ignored {
    /// Ignored.
    #[arg(long, short, hide = true)]
    print: bool,
    /// Ignored.
    #[arg(long, hide = true)]
    verbose: bool,
    /// Write the pieces of texts that are in the script.
    #[arg(long, hide = true)]
    include_partial_messages: bool,
    /// Ignored: the format is always stream-json.
    #[arg(long, hide = true)]
    output_format: Option<String>,
    /// Ignored.
    #[arg(long, hide = true)]
    strict_mcp_config: bool,
    /// Ignored.
    #[arg(long = "allowedTools", alias = "allowed-tools", num_args = 1.., hide = true)]
    allowed_tools: Vec<String>,
    /// Ignored.
    #[arg(long = "disallowedTools", alias = "disallowed-tools", num_args = 1.., hide = true)]
    disallowed_tools: Vec<String>,
    /// Ignored.
    #[arg(long, allow_hyphen_values = true, hide = true)]
    append_system_prompt: Option<String>,
    /// Ignored.
    #[arg(long, allow_hyphen_values = true, hide = true)]
    system_prompt: Option<String>,
    /// Ignored.
    #[arg(long, hide = true)]
    permission_mode: Option<String>,
    /// Ignored.
    #[arg(long, hide = true)]
    permission_prompt_tool: Option<String>,
    /// Ignored.
    #[arg(long, hide = true)]
    settings: Option<String>,
    /// Ignored.
    #[arg(long, num_args = 1.., hide = true)]
    add_dir: Vec<String>,
    /// Ignored.
    #[arg(long, hide = true)]
    max_turns: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    StreamJson,
}

pub fn run(args: Args) -> Result<ExitCode, Report> {
    if let Some(seconds) = args.sleep_apart {
        return sleep_apart(seconds);
    }
    if [&args.session_id, &args.resume].into_iter().flatten().any(|id| !is_uuid(id)) {
        eprintln!("Error: Invalid session ID. Must be a valid UUID.");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::from(sim::run(args.into())))
}

impl From<Args> for SimOptions {
    fn from(args: Args) -> Self {
        let mut words = args.words.into_iter();
        let source = match (args.script, args.queue) {
            (folder, _) if args.part.is_some() && folder.as_ref().is_none_or(|folder| folder.is_dir()) => {
                args.part.map_or(Source::Echo, |part| Source::Part(folder, part))
            }
            (Some(file), _) => Source::File(file),
            (None, Some(folder)) => Source::Queue(folder),
            // A resumed session already has its script.
            (None, None) if args.resume.is_some() => Source::Echo,
            (None, None) => words.next().map_or(Source::Echo, |file| Source::File(file.into())),
        };
        let given = args.session_id.unwrap_or_else(new_uuid);
        let session = match args.resume {
            None => PlayedSession::New(given),
            Some(from) if args.fork_session => PlayedSession::Forked { from, to: given },
            Some(id) => PlayedSession::Resumed(id),
        };
        Self {
            source,
            session,
            input: match args.input_format {
                Format::StreamJson => PlayedInput::Messages,
                Format::Text => PlayedInput::Prompt(words.last()),
            },
            mcp_configs: args.mcp_config,
            model: args.model,
            replay: args.replay_user_messages,
            partials: args.ignored.include_partial_messages,
            state: state_folder(),
        }
    }
}

fn part(text: &str) -> Result<PlayedRole, String> {
    PlayedRole::read(text).ok_or_else(|| "it has the form QUEST/STEP/ROLE/NUMBER".to_owned())
}

fn state_folder() -> PathBuf {
    let given = std::env::var_os(STATE_VARIABLE).filter(|folder| !folder.is_empty());
    given.map_or_else(|| std::env::temp_dir().join("hatchery-sim"), PathBuf::from)
}

/// Moves into a process session of its own and sleeps there. A signal to the parent's process group does not reach this process.
fn sleep_apart(seconds: u64) -> Result<ExitCode, Report> {
    rustix::process::setsid().context("no session of its own")?;
    Err(Report::failed(Command::new("sleep").arg(seconds.to_string()).exec()))
}

fn is_uuid(text: &str) -> bool {
    let groups: Vec<_> = text.split('-').collect();
    groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12])
        && groups.iter().all(|group| group.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn new_uuid() -> String {
    let bits = u128::from_be_bytes(clock::random());
    let hex = format!("{bits:032x}");
    format!("{}-{}-4{}-8{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
}
