//! What `hatchery doctor` says about each program that plays agents: where it is, its version, its login, and what it can do.

use super::{CommandContext, Finding, Grade, printable};
use crate::config::{Config, SettingsFile};
use crate::harness::registry::{BUILT_IN, BuiltIn, HarnessSource, ProgramEntry};
use crate::harness::version::{self, TooOld};
use crate::harness::{Acp, Harness, Login, abilities, find_program, place_of};
use hatchery_core::harness::Capabilities;
use std::path::{Path, PathBuf};

/// One finding for each harness that is built in and has a program of its own.
pub(super) fn built_in(context: &CommandContext, config: &Config) -> impl Iterator<Item = Finding> {
    BUILT_IN.into_iter().filter_map(move |entry| Some(of_built_in(context, config, entry, entry.program?)))
}

fn of_built_in(context: &CommandContext, config: &Config, entry: BuiltIn, program: ProgramEntry) -> Finding {
    // Only scripted agents are started from this program.
    let source = HarnessSource { project: &context.project, config, own_program: Path::new("") };
    let (about, harness) = (entry.name, (entry.make)(&source));
    let Some(file) = find(context, harness.program()) else {
        let (wanted, place) = (harness.program().display(), place_of(harness.program()));
        return Finding { about, verdict: Grade::Note, what: format!("{wanted} is not {place}; {}", program.install) };
    };
    let too_old = if is_trusted(context) { TooOld::of(entry.name, &file) } else { None };
    if let Some(TooOld { found, needed }) = too_old {
        let what = format!(
            "{} has version {found}, which is too old: {needed} or newer is needed; {}",
            file.display(),
            program.upgrade
        );
        return Finding { about, verdict: Grade::Bad, what };
    }
    let (verdict, login) = match harness.login() {
        Login::Found(login) => (Grade::Good, login),
        Login::Missing(advice) => (Grade::Note, advice),
    };
    Finding { about, verdict, what: described(context, &file, login, harness.as_ref(), harness.capabilities()) }
}

/// One finding for each agent that is here or that the project names, and one for the known ones that are not here.
pub(super) fn acp(context: &CommandContext, config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut missing = Vec::new();
    for (name, agent) in &config.runs.acp_agents {
        let acp = Acp::of(name, agent, config);
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

/// The finding about one agent that speaks ACP. If the user trusts the project, the agent is started and asked for its capabilities.
fn of_acp(context: &CommandContext, name: &str, file: &Path, acp: &Acp) -> Finding {
    let about = "acp";
    let (Login::Found(login) | Login::Missing(login)) = acp.login();
    let capabilities = acp.capabilities();
    if !is_trusted(context) {
        let what = format!("{name}: {}", described(context, file, login, acp, capabilities));
        return Finding { about, verdict: Grade::Good, what };
    }
    match acp.asked(file, context.project.root()) {
        Some(Err(why)) => {
            let what = format!("{name}: {} cannot play agents: {}", file.display(), printable(&why));
            Finding { about, verdict: Grade::Note, what }
        }
        Some(Ok(declared)) => {
            let what = format!("{name}: {}", described(context, file, login, acp, capabilities.with(declared)));
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

fn find(context: &CommandContext, program: &Path) -> Option<PathBuf> {
    find_program(program, context.project.root(), &std::env::var_os("PATH").unwrap_or_default())
}

/// Describes a program in one line: path, version, login, capabilities, and how it reports usage.
fn described(context: &CommandContext, file: &Path, login: &str, harness: &dyn Harness, can: Capabilities) -> String {
    // A program that the project names is not started before the user trusts the project.
    let version = match is_trusted(context) {
        true => version::said(file).map_or_else(|| "it does not say its version".to_owned(), |said| printable(&said)),
        false => "not asked for its version before you trust the project".to_owned(),
    };
    format!("{}, {version}; {login}; {}; {}", file.display(), abilities(can), harness.usage_report())
}

fn is_trusted(context: &CommandContext) -> bool {
    let file = SettingsFile::read(&context.project);
    file.and_then(|file| crate::trust::check(&context.project, &file)).is_ok()
}
