//! What `hatchery doctor` says about codex and about agents that speak ACP: the program, its version, its login, and what it can do.

use super::{Context, Finding, Verdict, printable};
use crate::config::Config;
use crate::harness::{Acp, Codex, Harness, abilities, find_program, place_of};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a program may take to say its version. Some are large and start slowly.
const VERSION_TIMEOUT: Duration = Duration::from_secs(10);
/// How often it is looked whether the program has said its version.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// A version is a line.
const MAX_VERSION_BYTES: u64 = 200;

pub(super) fn codex(context: &Context, config: &Config) -> Finding {
    let runs = &config.runs;
    let codex = Codex::new(
        runs.codex_path.clone(),
        runs.codex_args.clone(),
        &runs.pass_env,
        std::env::vars(),
        Arc::clone(&config.prices),
    );
    let Some(file) = find(context, codex.program()) else {
        let (wanted, place) = (codex.program().display(), place_of(codex.program()));
        let what = format!("{wanted} is not {place}; install it, or name it by `codex_path`, to run agents with it");
        return Finding { about: "codex", verdict: Verdict::Note, what };
    };
    let login = login_of_codex(&codex);
    let verdict = if login.is_some() { Verdict::Good } else { Verdict::Note };
    let login = login.unwrap_or("no login found: `codex login`, or set OPENAI_API_KEY");
    let what = format!("{}{}; {login}; {}", file.display(), version(&file), abilities(codex.capabilities()));
    Finding { about: "codex", verdict, what }
}

/// How codex would show who it is. A provider in its settings may need no login.
fn login_of_codex(codex: &Codex) -> Option<&'static str> {
    let set = |name: &str| codex.environment.get(name).filter(|value| !value.is_empty());
    let home = set("CODEX_HOME").map(PathBuf::from).or_else(|| set("HOME").map(|home| Path::new(home).join(".codex")));
    let has_provider = |home: &PathBuf| {
        std::fs::read_to_string(home.join("config.toml")).is_ok_and(|text| text.contains("model_provider"))
    };
    if home.as_ref().is_some_and(|home| home.join("auth.json").is_file()) {
        return Some("logged in");
    }
    if set("OPENAI_API_KEY").or_else(|| set("CODEX_API_KEY")).is_some() {
        return Some("a key is in the environment");
    }
    home.as_ref().is_some_and(has_provider).then_some("a provider is in its settings")
}

/// One finding for each agent that is here or that the project names, and one for the known ones that are not here.
pub(super) fn acp(context: &Context, config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut missing = Vec::new();
    for (name, agent) in &config.runs.acp_agents {
        let acp = Acp::new(name, agent, &config.runs.pass_env, std::env::vars(), Arc::clone(&config.prices));
        match find(context, acp.program()) {
            Some(file) => {
                let what = format!("{name}: {}{}; {}", file.display(), version(&file), abilities(acp.capabilities()));
                findings.push(Finding { about: "acp", verdict: Verdict::Good, what });
            }
            None => missing.push(format!("{name} ({})", acp.program().display())),
        }
    }
    if !missing.is_empty() {
        let what = format!("not found: {}; install one to run agents with it", missing.join(", "));
        findings.push(Finding { about: "acp", verdict: Verdict::Note, what });
    }
    findings
}

fn find(context: &Context, program: &Path) -> Option<PathBuf> {
    find_program(program, context.project.root(), &std::env::var_os("PATH").unwrap_or_default())
}

/// The version that a program says it has, after a comma. Nothing when it does not say so in time.
fn version(program: &Path) -> String {
    let said = || -> Option<String> {
        let mut command = Command::new(program);
        command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().ok()?;
        let deadline = Instant::now() + VERSION_TIMEOUT;
        while child.try_wait().ok()?.is_none() {
            if Instant::now() > deadline {
                child.kill().ok()?;
                child.wait().ok()?;
                return None;
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        let mut text = String::new();
        child.stdout.take()?.take(MAX_VERSION_BYTES).read_to_string(&mut text).ok()?;
        text.lines().next().map(|line| printable(line.trim())).filter(|line| !line.is_empty())
    };
    said().map(|said| format!(", {said}")).unwrap_or_default()
}
