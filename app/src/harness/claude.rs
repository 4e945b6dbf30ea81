//! The Claude Code CLI, in print mode, as a conversation in JSON lines on both sides.

use super::{Harness, Invocation, ReaderStart, Start, ToolServer, clean};
use crate::transcripts::Transcripts;
use hatchery_core::harness::{Capabilities, ModelChoice, Opening, Reader, RepeatsHistory};
use hatchery_core::permission::{PermissionDecision, PermissionRequest};
use hatchery_core::price::PriceTable;
use hatchery_core::stream_json::StreamJsonReader;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file in the run folder that tells the CLI where our tools are.
const MCP_CONFIG: &str = "mcp.json";

/// What the CLI can do, and the scripted agent that speaks like it.
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
    // It echoes messages, so this is of no interest.
    repeats_history: RepeatsHistory::Always,
};

/// What the CLI reads of its environment. Without `CLAUDECODE` and the like, which say that it runs inside another CLI.
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
    /// Leave out the MCP servers of the user and of the project.
    pub strict: bool,
    pub environment: BTreeMap<String, String>,
    /// Where the CLI keeps its sessions.
    pub transcripts: Transcripts,
    pub prices: Arc<PriceTable>,
}

impl Claude {
    /// Of the environment `env`, only what the CLI needs and the names in `pass` are handed on. `root` is the project's root.
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
    /// What the CLI gets to know of the environment `env`.
    pub fn environment(pass: &[String], env: impl Iterator<Item = (String, String)>) -> BTreeMap<String, String> {
        clean(env, &PREFIXES, pass)
    }
}

impl Harness for Claude {
    fn name(&self) -> &str {
        "claude"
    }

    fn program(&self) -> &Path {
        &self.program
    }

    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    fn command(&self, start: &Start<'_>) -> Invocation {
        let mut args = conversation(start);
        args.extend(self.strict.then(|| "--strict-mcp-config".to_owned()));
        args.extend(self.args.iter().cloned());
        let mut env = self.environment.clone();
        // With this, a message that the CLI confirms is on its disk. Without it, a process that is killed in its first turn
        // cannot be resumed. The measurements are in docs/claude-cli.md.
        env.insert("CLAUDE_CODE_EAGER_FLUSH".into(), "1".into());
        if start.leads_team {
            // Without it the CLI has no tools for a team.
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

    fn session_in_use(&self, session: &str) -> Option<u32> {
        self.transcripts.running().get(session).copied()
    }
}

pub(super) fn files(start: &Start<'_>) -> Vec<(&'static str, Vec<u8>)> {
    let ToolServer { name, command, args } = start.tools;
    // Without `alwaysLoad` the model has to search for our tools first.
    let server = json!({ "type": "stdio", "command": command, "args": args, "alwaysLoad": true });
    vec![(MCP_CONFIG, json!({ "mcpServers": { *name: server } }).to_string().into_bytes())]
}

/// The arguments of a conversation. Variadic options get exactly one value, so that they do not swallow what follows.
pub(super) fn conversation(start: &Start<'_>) -> Vec<String> {
    let mut args: Vec<String> = ["-p", "--output-format", "stream-json", "--verbose", "--input-format", "stream-json"]
        .into_iter()
        .chain(["--include-partial-messages", "--replay-user-messages", "--permission-prompt-tool", "stdio"])
        .map(Into::into)
        .collect();
    args.extend(["--mcp-config".into(), start.folder.path().join(MCP_CONFIG).display().to_string()]);
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

/// Older versions of the CLI want the input back in an answer that allows.
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
