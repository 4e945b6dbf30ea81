//! What `hatchery doctor` says about each program that plays agents: where it is, its version, its login, and what it can do.

use super::{Context, Finding, Grade, printable};
use crate::config::{Config, SettingsFile};
use crate::harness::version::{self, TooOld};
use crate::harness::{Acp, Claude, Codex, Harness, abilities, find_program, place_of};
use crate::own_environment;
use hatchery_core::harness::Capabilities;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) fn claude(context: &Context, config: &Config) -> Finding {
    let runs = &config.runs;
    let claude = Claude::new(
        runs.claude_path.clone(),
        runs.claude_args.clone(),
        runs.claude_strict,
        &runs.pass_env,
        own_environment::entries(),
        context.project.root(),
        Arc::clone(&config.prices),
    );
    let Some(file) = find(context, claude.program()) else {
        let (wanted, place) = (claude.program().display(), place_of(claude.program()));
        let what = format!(
            "{wanted} is not {place}; install it, or name it by `claude_path` in hatchery.toml, or by CLAUDE_CLI_PATH before the daemon starts; \
             `hatchery run --harness scripted` works without"
        );
        return Finding { about: "claude", verdict: Grade::Note, what };
    };
    let too_old = if is_trusted(context) { TooOld::of("claude", &file) } else { None };
    if let Some(TooOld { found, needed }) = too_old {
        let what = format!(
            "{} has version {found}, which is too old: {needed} or newer is needed; \
             `npm install -g @anthropic-ai/claude-code` installs the newest",
            file.display()
        );
        return Finding { about: "claude", verdict: Grade::Bad, what };
    }
    let login = login_of_claude(&claude.environment);
    let verdict = if login.is_some() { Grade::Good } else { Grade::Note };
    let login = login.unwrap_or("no login found: log in with `claude`, or set ANTHROPIC_API_KEY");
    let what = described(context, &file, login, claude.capabilities());
    Finding { about: "claude", verdict, what }
}

/// How the Claude CLI would show who it is. Only whether there is something is looked at, never what.
fn login_of_claude(environment: &BTreeMap<String, String>) -> Option<&'static str> {
    let set = |name: &str| environment.get(name).filter(|value| !value.is_empty());
    let folder = set("CLAUDE_CONFIG_DIR").map(PathBuf::from);
    let folder = folder.or_else(|| set("HOME").map(|home| Path::new(home).join(".claude")));
    if folder.is_some_and(|folder| folder.join(".credentials.json").is_file()) {
        return Some("logged in");
    }
    let keys = ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"];
    if keys.into_iter().any(|name| set(name).is_some()) {
        return Some("a key is in the environment");
    }
    if environment.keys().any(|name| name.starts_with("CLAUDE_CODE_USE_")) {
        return Some("a cloud provider is in the environment");
    }
    // There the login is in the keychain, which would ask the user.
    cfg!(target_os = "macos").then_some("its login is not looked for on this system")
}

pub(super) fn codex(context: &Context, config: &Config) -> Finding {
    let runs = &config.runs;
    let codex = Codex::new(
        runs.codex_path.clone(),
        runs.codex_args.clone(),
        &runs.pass_env,
        own_environment::entries(),
        Arc::clone(&config.prices),
    );
    let Some(file) = find(context, codex.program()) else {
        let (wanted, place) = (codex.program().display(), place_of(codex.program()));
        let what = format!("{wanted} is not {place}; install it, or name it by `codex_path`, to run agents with it");
        return Finding { about: "codex", verdict: Grade::Note, what };
    };
    let login = login_of_codex(&codex);
    let verdict = if login.is_some() { Grade::Good } else { Grade::Note };
    let login = login.unwrap_or("no login found: `codex login`, or set OPENAI_API_KEY");
    let what = described(context, &file, login, codex.capabilities());
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

/// The protocol has no question about it.
const ACP_LOGIN: &str = "whether it is logged in shows at its first message";

/// One finding for each agent that is here or that the project names, and one for the known ones that are not here.
pub(super) fn acp(context: &Context, config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut missing = Vec::new();
    for (name, agent) in &config.runs.acp_agents {
        let acp = Acp::new(name, agent, &config.runs.pass_env, own_environment::entries(), Arc::clone(&config.prices));
        match find(context, acp.program()) {
            Some(file) => findings.push(of_acp(context, name, &file, &acp)),
            None => missing.push(format!("{name} ({})", acp.program().display())),
        }
    }
    if !missing.is_empty() {
        let what = format!("not found: {}; install one to run agents with it", missing.join(", "));
        findings.push(Finding { about: "acp", verdict: Grade::Note, what });
    }
    findings
}

/// An agent is asked what it can do, if it may be started.
fn of_acp(context: &Context, name: &str, file: &Path, acp: &Acp) -> Finding {
    let about = "acp";
    let capabilities = acp.capabilities();
    if !is_trusted(context) {
        let what = format!("{name}: {}", described(context, file, ACP_LOGIN, capabilities));
        return Finding { about, verdict: Grade::Good, what };
    }
    match acp.asked(file, context.project.root()) {
        Some(Err(why)) => {
            let what = format!("{name}: {} cannot play agents: {}", file.display(), printable(&why));
            Finding { about, verdict: Grade::Note, what }
        }
        Some(Ok(declared)) => {
            let what = format!("{name}: {}", described(context, file, ACP_LOGIN, capabilities.with(declared)));
            Finding { about, verdict: Grade::Good, what }
        }
        None => {
            let what = format!(
                "{name}: {} does not answer `initialize`, so it cannot play agents; try `{} --version`, and look at `harness.{name}` in \
                 hatchery.toml",
                file.display(),
                file.display()
            );
            Finding { about, verdict: Grade::Note, what }
        }
    }
}

fn find(context: &Context, program: &Path) -> Option<PathBuf> {
    find_program(program, context.project.root(), &std::env::var_os("PATH").unwrap_or_default())
}

/// A program in one line.
fn described(context: &Context, file: &Path, login: &str, capabilities: Capabilities) -> String {
    // What a project names is not run before the user trusts it.
    let version = match is_trusted(context) {
        true => version::said(file).map_or_else(|| "it does not say its version".to_owned(), |said| printable(&said)),
        false => "not asked for its version before you trust the project".to_owned(),
    };
    format!("{}, {version}; {login}; {}", file.display(), abilities(capabilities))
}

fn is_trusted(context: &Context) -> bool {
    let file = SettingsFile::read(&context.project);
    file.and_then(|file| crate::trust::check(&context.project, &file)).is_ok()
}
