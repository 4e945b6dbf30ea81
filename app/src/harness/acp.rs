//! Agents that speak ACP, the Agent Client Protocol, version 1: one JSON-RPC message per line, on standard input and output. The program
//! comes from the settings, so one adapter serves all of them.
//!
//! ```text
//! initialize                                                the first line of input; its answer is waited for
//! session/new | session/resume | session/load | session/fork   the second
//! _hatchery/history                                         after session/load, when it is answered: is the history repeated?
//! session/set_config_option | session/set_model             the model, if the run names one
//! session/prompt                                            a message; its answer is the end of the turn
//! session/cancel                                            an interrupt
//! { id, result: { outcome } }                               the answer to a request for permission
//! ```
//!
//! The adapter keeps nothing of the connection: the id of each request says what was requested ([`AcpRequestId`]).

use super::{AttemptStart, Harness, Invocation, Login, ReaderStart, ToolServer, clean};
use crate::config::{AcpAgent, Config};
use crate::own_environment;
use crate::run_folder::ATTEMPT_TAG;
use hatchery_core::acp::{AcpReader, AcpRequestId, PROTOCOL_VERSION, approval, declared};
use hatchery_core::harness::{Capabilities, Declared, ModelChoice, Opening, Reader, RepeatsHistory};
use hatchery_core::permission::{PermissionDecision, PermissionRequest};
use hatchery_core::price::PriceTable;
use rustix::process::{Pid, Signal};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

/// What agent programs read of their environment: the keys of the usual vendors, and the network settings.
const PREFIXES: [&str; 10] = [
    "ANTHROPIC_",
    "OPENAI_",
    "GEMINI_",
    "GOOGLE_",
    "DASHSCOPE_",
    "QWEN_",
    "OPENCODE_",
    "HTTP",
    "NO_PROXY",
    "NODE_EXTRA_CA_CERTS",
];
/// How long an agent may take to declare its capabilities. Some programs are large and start slowly.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// How many bytes of its output are read for that.
const ANSWER_BYTES: u64 = 1 << 20;

#[derive(Clone, Debug)]
pub struct Acp {
    name: String,
    program: PathBuf,
    args: Vec<String>,
    environment: BTreeMap<String, String>,
    prices: Arc<PriceTable>,
}

impl Acp {
    /// The agent as the settings describe it, with the environment of this process.
    pub fn of(name: &str, agent: &AcpAgent, config: &Config) -> Self {
        Self::new(name, agent, &config.runs.pass_env, own_environment::entries(), Arc::clone(&config.prices))
    }

    /// `env` is the environment. Only the variables that agents need and the names in `pass` are passed on.
    pub fn new(
        name: &str,
        agent: &AcpAgent,
        pass: &[String],
        env: impl Iterator<Item = (String, String)>,
        prices: Arc<PriceTable>,
    ) -> Self {
        let (program, args) =
            agent.acp.split_first().map(|(program, args)| (program.clone(), args.to_vec())).unwrap_or_default();
        Self { name: name.to_owned(), program: program.into(), args, environment: clean(env, &PREFIXES, pass), prices }
    }

    /// Starts the program in `folder` and asks for its capabilities. The answer is what it can do, or why it cannot be used. No session is
    /// opened, and the program is ended at once. None if it does not answer.
    pub fn asked(&self, program: &Path, folder: &Path) -> Option<Result<Declared, String>> {
        let mut command = Command::new(program);
        command.args(&self.args).current_dir(folder).env_clear().envs(&self.environment).process_group(0);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
        let (input, output) = (child.stdin.take()?, child.stdout.take()?);
        let (sender, answers) = mpsc::sync_channel(1);
        // The thread ends with the output of the program. Descendants of the program may keep the output open, so the thread is not joined.
        thread::spawn(move || {
            let lines = BufReader::new(output.take(ANSWER_BYTES)).split(b'\n');
            let answer = lines.map_while(Result::ok).find_map(|line| declared(&String::from_utf8_lossy(&line)));
            // An answer that comes too late is dropped.
            sender.send(answer).ok();
        });
        let written = writeln!(&input, "{}", initialize());
        let answer = written.ok().and_then(|()| answers.recv_timeout(ANSWER_TIMEOUT).ok()).flatten();
        if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            rustix::process::kill_process_group(group, Signal::KILL).ok();
        }
        child.wait().ok();
        answer
    }
}

impl Harness for Acp {
    fn name(&self) -> &str {
        &self.name
    }

    fn program(&self) -> &Path {
        &self.program
    }

    /// What all agents have in common. Each agent declares itself whether it can load and copy sessions.
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            chooses_session_id: false,
            echoes_messages: false,
            forks: false,
            interrupts: true,
            stays_open: true,
            asks_permission: true,
            reports_cost: false,
            one_at_a_time: true,
            resumes: true,
            // The answer is one of the options that the agent offers.
            explains_denials: false,
            model_choice: ModelChoice::Never,
            repeats_history: RepeatsHistory::Always,
        }
    }

    fn usage_report(&self) -> &'static str {
        "tokens and costs count as far as it reports them; tokens without a cost are priced by the table of prices"
    }

    fn command(&self, start: &AttemptStart<'_>) -> Invocation {
        let (first_lines, answers_awaited) = first_lines(start);
        Invocation {
            program: self.program.clone(),
            args: self.args.clone(),
            env: self.environment.clone(),
            files: Vec::new(),
            first_lines,
            answers_awaited,
        }
    }

    fn reader(&self, of: ReaderStart<'_>) -> Box<dyn Reader> {
        let place = Some(of.place.display().to_string());
        Box::new(AcpReader::new(Arc::clone(&self.prices), place, of.session.is_some(), of.waiting))
    }

    fn message(&self, session: Option<&str>, id: &str, text: &str) -> String {
        let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] });
        request(&AcpRequestId::Say(id.to_owned()), "session/prompt", params)
    }

    fn choose_model(&self, how: ModelChoice, session: &str, model: &str) -> Option<String> {
        let (method, params) = match how {
            ModelChoice::SessionOption => {
                ("session/set_config_option", json!({ "sessionId": session, "configId": "model", "value": model }))
            }
            ModelChoice::SessionModel => ("session/set_model", json!({ "sessionId": session, "modelId": model })),
            ModelChoice::AtStart | ModelChoice::Never => return None,
        };
        Some(request(&AcpRequestId::ChooseModel(model.to_owned()), method, params))
    }

    fn interrupt(&self, session: Option<&str>, _id: &str) -> String {
        json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": session } }).to_string()
    }

    fn permission(&self, request: &PermissionRequest, decision: &PermissionDecision) -> String {
        approval(request, decision)
    }

    /// The protocol has no request for this.
    fn login(&self) -> Login {
        Login::Found("whether it is logged in shows at its first message")
    }
}

/// The first request.
fn initialize() -> String {
    let nothing = json!({ "fs": { "readTextFile": false, "writeTextFile": false }, "terminal": false });
    let client = json!({ "name": "hatchery", "title": "Hatchery", "version": crate::version::version() });
    let params = json!({ "protocolVersion": PROTOCOL_VERSION, "clientCapabilities": nothing, "clientInfo": client });
    request(&AcpRequestId::Initialize, "initialize", params)
}

/// The first request and the request that opens the session, with the ids of the answers to wait for. Some agents refuse the second line
/// until they have answered the first.
///
/// Some agents answer `session/load` while they still repeat the history, so the rest of the history would be taken for a new answer. They
/// read no further request before they have repeated everything. So one more request shows the end of the history. ACP leaves methods that
/// begin with `_` to extensions, and an agent that does not know one answers with an error.
fn first_lines(start: &AttemptStart<'_>) -> (Vec<String>, Vec<String>) {
    let mut params = json!({ "cwd": start.working_folder, "mcpServers": [tools(start)] });
    let mut awaited = vec![AcpRequestId::Initialize.to_string()];
    let mut after = None;
    let (id, method) = match start.opening {
        Opening::New => (AcpRequestId::NewSession, "session/new"),
        Opening::Resume { session, repeats_history: false } => {
            params["sessionId"] = json!(session);
            (AcpRequestId::ResumeSession(session.clone()), "session/resume")
        }
        Opening::Resume { session, repeats_history: true } => {
            params["sessionId"] = json!(session);
            let load = AcpRequestId::LoadSession(session.clone());
            awaited.push(load.to_string());
            let repeated = AcpRequestId::HistoryRepeated(session.clone());
            after = Some(request(&repeated, "_hatchery/history", json!({ "sessionId": session })));
            (load, "session/load")
        }
        Opening::Fork { from, .. } => {
            params["sessionId"] = json!(from);
            (AcpRequestId::ForkSession(from.clone()), "session/fork")
        }
    };
    let lines = [initialize(), request(&id, method, params)].into_iter().chain(after);
    (lines.collect(), awaited)
}

fn tools(start: &AttemptStart<'_>) -> Value {
    let ToolServer { name, command, args } = start.tools;
    // Some agents give a server its own environment. With the tag, the server is found after its parents have ended.
    let env = json!([{ "name": ATTEMPT_TAG, "value": start.run_folder.tag() }]);
    json!({ "name": name, "command": command, "args": args, "env": env })
}

fn request(id: &AcpRequestId, method: &str, params: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id.to_string(), "method": method, "params": params }).to_string()
}
