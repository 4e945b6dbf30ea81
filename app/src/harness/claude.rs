//! The Claude Code CLI, in print mode, as a conversation in JSON lines on both sides.

use super::{Harness, Invocation, Opening, Start, clean};
use hatchery_core::output::Output;
use hatchery_core::run::OUR_SERVER;
use hatchery_core::stream_json;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What the CLI reads of its environment. Not `CLAUDECODE` and the like, which would tell it that it runs inside another one.
const PREFIXES: [&str; 10] = [
    "ANTHROPIC_",
    "CLAUDE_CONFIG_DIR",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_",
    "CLAUDE_CODE_MAX_",
    "CLAUDE_CODE_DISABLE_",
    "DISABLE_",
    "HTTP",
    "NO_PROXY",
    "NODE_EXTRA_CA_CERTS",
];

#[derive(Clone, Debug)]
pub struct Claude {
    pub program: PathBuf,
    /// Further arguments from the settings.
    pub args: Vec<String>,
    pub environment: BTreeMap<String, String>,
}

impl Claude {
    /// With what passes of an environment.
    pub fn new(
        program: PathBuf,
        args: Vec<String>,
        pass: &[String],
        env: impl Iterator<Item = (String, String)>,
    ) -> Self {
        Self { program, args, environment: clean(env, &PREFIXES, pass) }
    }
}

impl Harness for Claude {
    fn name(&self) -> &'static str {
        "claude"
    }

    fn program(&self) -> &Path {
        &self.program
    }

    fn command(&self, start: &Start<'_>) -> Invocation {
        let mut args = conversation(start);
        args.extend(self.args.iter().cloned());
        let mut env = self.environment.clone();
        // What it says that it has heard is then on disk: without it, a process that is killed in its first turn cannot be
        // resumed. docs/claude-cli.md has the measurements.
        env.insert("CLAUDE_CODE_EAGER_FLUSH".into(), "1".into());
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

/// The arguments of a conversation. Everything that can be variadic comes with one value, so that what follows is safe.
pub(super) fn conversation(start: &Start<'_>) -> Vec<String> {
    let mut args: Vec<String> = ["-p", "--output-format", "stream-json", "--verbose", "--input-format", "stream-json"]
        .into_iter()
        .chain(["--replay-user-messages", "--strict-mcp-config"])
        .map(Into::into)
        .collect();
    args.extend(["--mcp-config".into(), start.folder.mcp_config().display().to_string()]);
    args.extend([format!("--allowedTools=mcp__{OUR_SERVER}")]);
    args.extend(start.spec.model.iter().flat_map(|model| ["--model".to_owned(), model.clone()]));
    match start.opening {
        Opening::New { session } => args.extend(["--session-id".into(), session.clone()]),
        Opening::Resumed { session } => args.extend(["--resume".into(), session.clone()]),
        Opening::Forked { from, session } => args.extend([
            "--resume".into(),
            from.clone(),
            "--fork-session".into(),
            "--session-id".into(),
            session.clone(),
        ]),
    }
    args
}

pub(super) fn say(id: &str, text: &str) -> String {
    json!({ "type": "user", "uuid": id, "message": { "role": "user", "content": text } }).to_string()
}

pub(super) fn interrupt(id: &str) -> String {
    json!({ "type": "control_request", "request_id": id, "request": { "subtype": "interrupt" } }).to_string()
}
