//! The Claude Code CLI in print mode: a conversation in JSON lines in both directions.

use super::registry::{BuiltIn, ProgramEntry};
use super::version::Version;
use super::{AttemptStart, Harness, Invocation, Login, ReaderStart, ToolServer, clean};
use crate::config::Config;
use crate::own_environment;
use crate::project::Project;
use crate::transcripts::Transcripts;
use hatchery_core::harness::{Capabilities, ModelChoice, Opening, Reader, RepeatsHistory};
use hatchery_core::permission::{PermissionDecision, PermissionRequest};
use hatchery_core::price::PriceTable;
use hatchery_core::stream_json::StreamJsonReader;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file in the run folder that tells the CLI how to start Hatchery's tools.
const MCP_CONFIG: &str = "mcp.json";

/// The capabilities of the CLI, and of the scripted agent, which has the same format.
pub(super) const CAPABILITIES: Capabilities = Capabilities {
    chooses_session_id: true,
    echoes_messages: true,
    forks: true,
    interrupts: true,
    stays_open: true,
    asks_permission: true,
    reports_cost: true,
    one_at_a_time: false,
    resumes: true,
    explains_denials: true,
    model_choice: ModelChoice::AtStart,
    // Not used, because the CLI echoes messages.
    repeats_history: RepeatsHistory::Always,
};

/// What the CLI reads of its environment. Variables such as `CLAUDECODE` are left out, because they say that the CLI runs inside another
/// CLI.
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

/// The options with which the CLI allows tools by itself.
const PERMISSION_OPTIONS: [&str; 5] =
    ["--permission-mode", "--dangerously-skip", "--allowedTools", "--allowed-tools", "--settings"];

#[derive(Clone, Debug)]
pub struct Claude {
    pub program: PathBuf,
    /// Further arguments from the settings.
    pub args: Vec<String>,
    /// Leave out the MCP servers of the user and of the project.
    pub strict: bool,
    pub environment: BTreeMap<String, String>,
    /// Where the CLI keeps its sessions.
    pub transcripts: Transcripts,
    pub prices: Arc<PriceTable>,
}

pub(super) const BUILT_IN: BuiltIn = BuiltIn {
    name: "claude",
    program: Some(ProgramEntry {
        of: |runs| &runs.claude_path,
        oldest: Some(Version::new(2, 1, 112)),
        install: "install it, or name it by `claude_path` in hatchery.toml, or by CLAUDE_CLI_PATH before the daemon starts; \
                  `hatchery run --harness scripted` works without",
        upgrade: "`npm install -g @anthropic-ai/claude-code` installs the newest",
    }),
    make: |source| Arc::new(Claude::of(source.project, source.config)),
};

impl Claude {
    /// The CLI as the settings describe it, with the environment of this process.
    pub fn of(project: &Project, config: &Config) -> Self {
        let (runs, prices) = (&config.runs, Arc::clone(&config.prices));
        let (path, args) = (runs.claude_path.clone(), runs.claude_args.clone());
        Self::new(path, args, runs.claude_strict, &runs.pass_env, own_environment::entries(), project.root(), prices)
    }

    /// `env` is the environment. Only the variables that the CLI needs and the names in `pass` are passed on. `root` is the project's root.
    pub fn new(
        program: PathBuf,
        args: Vec<String>,
        strict: bool,
        pass: &[String],
        env: impl Iterator<Item = (String, String)>,
        root: &Path,
        prices: Arc<PriceTable>,
    ) -> Self {
        let environment = Self::environment(pass, env);
        let transcripts = Transcripts::new(root, &environment);
        Self { program, args, strict, environment, transcripts, prices }
    }
}

impl Claude {
    /// The environment of the CLI, from the environment `env`.
    pub fn environment(pass: &[String], env: impl Iterator<Item = (String, String)>) -> BTreeMap<String, String> {
        clean(env, &PREFIXES, pass)
    }
}

impl Harness for Claude {
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
        "reports the tokens of each request and the cost of each turn"
    }

    fn command(&self, start: &AttemptStart<'_>) -> Invocation {
        let mut args = conversation(start);
        args.extend(self.strict.then(|| "--strict-mcp-config".to_owned()));
        args.extend(self.args.iter().cloned());
        let mut env = self.environment.clone();
        // With this variable, a message that the CLI confirms is on its disk. Without it, a process that is killed in its first turn cannot
        // be resumed. The measurements are in docs/claude-cli.md.
        env.insert("CLAUDE_CODE_EAGER_FLUSH".into(), "1".into());
        if start.leads_team {
            // Without this variable the CLI has no tools for a team.
            env.insert("CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS".into(), "1".into());
        }
        Invocation {
            program: self.program.clone(),
            args,
            env,
            files: files(start),
            first_lines: Vec::new(),
            answers_awaited: Vec::new(),
        }
    }

    fn reader(&self, _of: ReaderStart<'_>) -> Box<dyn Reader> {
        Box::new(StreamJsonReader::new(Arc::clone(&self.prices)))
    }

    fn message(&self, _session: Option<&str>, id: &str, text: &str) -> String {
        message(id, text)
    }

    fn interrupt(&self, _session: Option<&str>, id: &str) -> String {
        interrupt(id)
    }

    fn permission(&self, request: &PermissionRequest, decision: &PermissionDecision) -> String {
        permission(request, decision)
    }

    fn login(&self) -> Login {
        let set = |name: &str| self.environment.get(name).filter(|value| !value.is_empty());
        let folder = set("CLAUDE_CONFIG_DIR").map(PathBuf::from);
        let folder = folder.or_else(|| set("HOME").map(|home| Path::new(home).join(".claude")));
        if folder.is_some_and(|folder| folder.join(".credentials.json").is_file()) {
            return Login::Found("logged in");
        }
        let keys = ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"];
        if keys.into_iter().any(|name| set(name).is_some()) {
            return Login::Found("a key is in the environment");
        }
        if self.environment.keys().any(|name| name.starts_with("CLAUDE_CODE_USE_")) {
            return Login::Found("a cloud provider is in the environment");
        }
        // On macOS the login is in the keychain, which would ask the user.
        match cfg!(target_os = "macos") {
            true => Login::Found("its login is not looked for on this system"),
            false => Login::Missing("no login found: log in with `claude`, or set ANTHROPIC_API_KEY"),
        }
    }

    fn program_decides_permissions(&self) -> bool {
        self.args.iter().any(|arg| PERMISSION_OPTIONS.iter().any(|option| arg.starts_with(option)))
    }

    fn session_in_use(&self, session: &str) -> Option<u32> {
        self.transcripts.running().get(session).copied()
    }
}

pub(super) fn files(start: &AttemptStart<'_>) -> Vec<(&'static str, Vec<u8>)> {
    let ToolServer { name, command, args } = start.tools;
    // Without `alwaysLoad` the model has to search for Hatchery's tools first.
    let server = json!({ "type": "stdio", "command": command, "args": args, "alwaysLoad": true });
    vec![(MCP_CONFIG, json!({ "mcpServers": { *name: server } }).to_string().into_bytes())]
}

/// The arguments of a process that receives messages. Variadic options get exactly one value, so that they do not take the next arguments.
pub(super) fn conversation(start: &AttemptStart<'_>) -> Vec<String> {
    let mut args: Vec<String> = ["-p", "--output-format", "stream-json", "--verbose", "--input-format", "stream-json"]
        .into_iter()
        .chain(["--include-partial-messages", "--replay-user-messages", "--permission-prompt-tool", "stdio"])
        .map(Into::into)
        .collect();
    args.extend(["--mcp-config".into(), start.run_folder.path().join(MCP_CONFIG).display().to_string()]);
    args.push(format!("--allowedTools=mcp__{}", start.tools.name));
    args.extend(start.spec.model.iter().flat_map(|model| ["--model".to_owned(), model.clone()]));
    match start.opening {
        Opening::New => {}
        Opening::Resume { session, .. } => args.extend(["--resume".into(), session.clone()]),
        Opening::Fork { from, .. } => args.extend(["--resume".into(), from.clone(), "--fork-session".into()]),
    }
    args.extend(start.new_session.iter().flat_map(|session| ["--session-id".to_owned(), (*session).to_owned()]));
    args
}

pub(super) fn message(id: &str, text: &str) -> String {
    json!({ "type": "user", "uuid": id, "message": { "role": "user", "content": text } }).to_string()
}

/// The answer to a request for permission. Older versions of the CLI need the input in an answer that allows.
pub(super) fn permission(request: &PermissionRequest, decision: &PermissionDecision) -> String {
    let answer = match decision {
        PermissionDecision::Allow => {
            let input: serde_json::Value = serde_json::from_str(&request.input).unwrap_or_else(|_| json!({}));
            json!({ "behavior": "allow", "updatedInput": input })
        }
        PermissionDecision::Deny { reason } => json!({ "behavior": "deny", "message": reason }),
    };
    let response = json!({ "subtype": "success", "request_id": request.request, "response": answer });
    json!({ "type": "control_response", "response": response }).to_string()
}

pub(super) fn interrupt(id: &str) -> String {
    json!({ "type": "control_request", "request_id": id, "request": { "subtype": "interrupt" } }).to_string()
}
