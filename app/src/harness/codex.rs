//! The codex CLI as `codex app-server`: a conversation in JSON-RPC, one message per line, on standard input and output.
//!
//! ```text
//! initialize, initialized, thread/start | thread/resume + thread/turns/list | thread/fork     the first lines of input
//! turn/start { clientUserMessageId }        a message; its echo is the delivery
//! turn/interrupt { turnId: "" }             whichever turn runs
//! { id, result: { decision } }              the answer to a request for permission
//! ```
//!
//! The adapter keeps nothing of the connection: the id of each request says what was requested ([`CodexRequestId`]).

mod sandbox;

use super::registry::{BuiltIn, ProgramEntry};
use super::version::Version;
use super::{AttemptStart, Harness, Invocation, Login, ReaderStart, ToolServer, clean};
use crate::config::Config;
use crate::own_environment;
use crate::run_folder::ATTEMPT_TAG;
use hatchery_core::codex::{CodexReader, CodexRequestId, approval};
use hatchery_core::harness::{Capabilities, ModelChoice, Opening, Reader, RepeatsHistory};
use hatchery_core::permission::{PermissionDecision, PermissionRequest};
use hatchery_core::price::PriceTable;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What codex reads of its environment. Variables such as `CODEX_SANDBOX` are left out, because they say that codex runs inside another
/// codex.
const PREFIXES: [&str; 7] =
    ["CODEX_HOME", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN", "CODEX_CA_CERTIFICATE", "OPENAI_", "HTTP", "NO_PROXY"];

/// Features that are switched off. `plugins` looks up a host on the network. With `instant_interrupt` a new message interrupts the answer
/// that is being written, and the model does not see the interrupted part.
const DISABLED: [&str; 2] = ["plugins", "instant_interrupt"];

/// Notifications that repeat a whole after each change, or that are parts of something that is not shown while it is written.
const NOT_WANTED: [&str; 7] = [
    "item/reasoning/summaryPartAdded",
    "item/plan/delta",
    "item/commandExecution/outputDelta",
    "item/fileChange/outputDelta",
    "item/fileChange/patchUpdated",
    "item/mcpToolCall/progress",
    "turn/diff/updated",
];

/// How many turns of a resumed thread are listed. A message whose echo was lost with the process is in the last turn.
const LISTED_TURNS: u32 = 3;
/// How long codex waits for Hatchery's tools to start.
const TOOLS_START_SECONDS: u32 = 30;
/// How long a tool of Hatchery may take. Some wait for mail.
const TOOL_SECONDS: u32 = 24 * 3_600;

#[derive(Clone, Debug)]
pub struct Codex {
    pub program: PathBuf,
    /// Further arguments from the settings.
    pub args: Vec<String>,
    pub environment: BTreeMap<String, String>,
    /// The prices, because codex reports no cost.
    pub prices: Arc<PriceTable>,
}

pub(super) const BUILT_IN: BuiltIn = BuiltIn {
    name: "codex",
    program: Some(ProgramEntry {
        of: |runs| &runs.codex_path,
        // Permission profiles are newer than everything else that Hatchery uses.
        oldest: Some(Version::new(0, 166, 0)),
        install: "install it, or name it by `codex_path`, to run agents with it",
        upgrade: "`npm install -g @openai/codex` installs the newest",
    }),
    make: |source| Arc::new(Codex::of(source.config)),
};

impl Codex {
    /// codex as the settings describe it, with the environment of this process.
    pub fn of(config: &Config) -> Self {
        let (runs, prices) = (&config.runs, Arc::clone(&config.prices));
        Self::new(runs.codex_path.clone(), runs.codex_args.clone(), &runs.pass_env, own_environment::entries(), prices)
    }

    /// `env` is the environment. Only the variables that codex needs and the names in `pass` are passed on.
    pub fn new(
        program: PathBuf,
        args: Vec<String>,
        pass: &[String],
        env: impl Iterator<Item = (String, String)>,
        prices: Arc<PriceTable>,
    ) -> Self {
        Self { program, args, environment: clean(env, &PREFIXES, pass), prices }
    }
}

impl Harness for Codex {
    fn name(&self) -> &str {
        BUILT_IN.name
    }

    fn program(&self) -> &Path {
        &self.program
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            chooses_session_id: false,
            echoes_messages: true,
            forks: true,
            interrupts: true,
            stays_open: true,
            asks_permission: true,
            reports_cost: false,
            one_at_a_time: false,
            resumes: true,
            // The answers are words from a list.
            explains_denials: false,
            model_choice: ModelChoice::AtStart,
            // Not used, because codex echoes messages.
            repeats_history: RepeatsHistory::Always,
        }
    }

    fn usage_report(&self) -> &'static str {
        "reports the tokens of each request; costs are computed by the table of prices"
    }

    fn command(&self, start: &AttemptStart<'_>) -> Invocation {
        let mut args = vec!["app-server".to_owned()];
        args.extend(DISABLED.iter().flat_map(|feature| ["--disable".to_owned(), (*feature).to_owned()]));
        args.extend(sandbox::profile(start.spec.policy(), start.data));
        args.extend(self.args.iter().cloned());
        Invocation {
            program: self.program.clone(),
            args,
            env: self.environment.clone(),
            files: Vec::new(),
            first_lines: first_lines(start),
            answers_awaited: answers_awaited(start.opening),
        }
    }

    fn reader(&self, of: ReaderStart<'_>) -> Box<dyn Reader> {
        let place = Some(of.place.display().to_string());
        Box::new(CodexReader::new(Arc::clone(&self.prices), place, of.session).with_model(of.model))
    }

    fn message(&self, session: Option<&str>, id: &str, text: &str) -> String {
        let input = json!([{ "type": "text", "text": text }]);
        let params = json!({ "threadId": session, "input": input, "clientUserMessageId": id });
        request(&CodexRequestId::Say(id.to_owned()), "turn/start", params)
    }

    fn interrupt(&self, session: Option<&str>, id: &str) -> String {
        // An empty id means the running turn. The interrupt of a turn that has ended would be answered at the end of the next turn.
        let params = json!({ "threadId": session, "turnId": "" });
        request(&CodexRequestId::Interrupt(id.to_owned()), "turn/interrupt", params)
    }

    fn permission(&self, request: &PermissionRequest, decision: &PermissionDecision) -> String {
        approval(request, decision)
    }

    /// A provider in the settings of codex may need no login.
    fn login(&self) -> Login {
        let set = |name: &str| self.environment.get(name).filter(|value| !value.is_empty());
        let home =
            set("CODEX_HOME").map(PathBuf::from).or_else(|| set("HOME").map(|home| Path::new(home).join(".codex")));
        let has_provider = |home: &PathBuf| {
            std::fs::read_to_string(home.join("config.toml")).is_ok_and(|text| text.contains("model_provider"))
        };
        if home.as_ref().is_some_and(|home| home.join("auth.json").is_file()) {
            return Login::Found("logged in");
        }
        if set("OPENAI_API_KEY").or_else(|| set("CODEX_API_KEY")).is_some() {
            return Login::Found("a key is in the environment");
        }
        match home.as_ref().is_some_and(has_provider) {
            true => Login::Found("a provider is in its settings"),
            false => Login::Missing("no login found: `codex login`, or set OPENAI_API_KEY"),
        }
    }

    fn tidy(&self, place: &Path) {
        sandbox::tidy(place);
    }
}

/// The ids of the answers to wait for. Before a thread is open, codex lists its turns from an index that may not have the last message. The
/// turns of a new or copied thread are not listed, so all lines are written at once.
fn answers_awaited(opening: &Opening) -> Vec<String> {
    // The line after `initialize` has no answer of its own.
    let resumed = [CodexRequestId::Initialize, CodexRequestId::Initialize, CodexRequestId::ResumeThread];
    match opening {
        Opening::Resume { .. } => resumed.iter().map(ToString::to_string).collect(),
        Opening::New | Opening::Fork { .. } => Vec::new(),
    }
}

/// The first request, and the request that opens the thread.
fn first_lines(start: &AttemptStart<'_>) -> Vec<String> {
    let version = crate::version::version();
    let client = json!({ "name": "hatchery", "title": "Hatchery", "version": version });
    let capabilities = json!({ "experimentalApi": false, "optOutNotificationMethods": NOT_WANTED });
    let initialize = json!({ "clientInfo": client, "capabilities": capabilities });
    let mut lines = vec![
        request(&CodexRequestId::Initialize, "initialize", initialize),
        json!({ "method": "initialized" }).to_string(),
    ];
    let mut params = json!({
        "cwd": start.working_folder,
        "approvalPolicy": "on-request",
        "sandbox": sandbox::mode(start.spec.policy()),
        "config": { "mcp_servers": { start.tools.name: tools(start) } },
    });
    // Without this field, a resumed thread keeps its previous sandbox.
    if let Some(profile) = sandbox::chosen_profile(start.spec.policy()) {
        params["config"]["default_permissions"] = json!(profile);
    }
    if let Some(model) = &start.spec.model {
        params["model"] = json!(model);
    }
    match start.opening {
        Opening::New => lines.push(request(&CodexRequestId::StartThread, "thread/start", params)),
        Opening::Resume { session, .. } => {
            params["threadId"] = json!(session);
            params["excludeTurns"] = json!(true);
            lines.push(request(&CodexRequestId::ResumeThread, "thread/resume", params));
            let list = json!({
                "threadId": session,
                "limit": LISTED_TURNS,
                "sortDirection": "desc",
                "itemsView": "full",
            });
            lines.push(request(&CodexRequestId::ListTurns, "thread/turns/list", list));
        }
        Opening::Fork { from, upto } => {
            params["lastTurnId"] = json!(upto);
            params["threadId"] = json!(from);
            params["excludeTurns"] = json!(true);
            lines.push(request(&CodexRequestId::ForkThread, "thread/fork", params));
        }
    }
    lines
}

/// The server with Hatchery's tools. Without `required` codex starts without the server. Without `approve` the tools need a permission.
/// Without `omit_tools_from` the model has to search for the tools first.
fn tools(start: &AttemptStart<'_>) -> Value {
    let ToolServer { command, args, .. } = start.tools;
    json!({
        "command": command,
        "args": args,
        // codex gives a server its own environment. With the tag, the server is found after its parents have ended.
        "env": { ATTEMPT_TAG: start.run_folder.tag() },
        "required": true,
        "default_tools_approval_mode": "approve",
        "omit_tools_from": ["deferred", "code_mode"],
        "startup_timeout_sec": TOOLS_START_SECONDS,
        "tool_timeout_sec": TOOL_SECONDS,
    })
}

fn request(id: &CodexRequestId, method: &str, params: Value) -> String {
    json!({ "id": id.to_string(), "method": method, "params": params }).to_string()
}
