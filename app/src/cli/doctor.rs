//! `hatchery doctor`

mod players;

use super::paint::{BAD, DIM, GOOD, WARN, paint, printable};
use super::{CommandContext, asking, counted, print_json, print_line};
use crate::client::{Client, Sight};
use crate::config::Config;
use crate::harness::{find_program, place_of};
use crate::report::{Code, Context as _, Report};
use crate::store::migration::MIGRATIONS;
use crate::store::{self, StoreStatus};
use crate::version::version;
use hatchery_core::permission::PermissionPolicy;
use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Check everything that Hatchery needs, and say how to fix what is missing
///
/// Changes nothing, not even a store with an older schema. Exits with 4 if the daemon could not work.
#[derive(Debug, clap::Args)]
pub struct Args {}

#[derive(Debug, serde::Serialize)]
struct Finding {
    about: &'static str,
    verdict: Grade,
    what: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
enum Grade {
    Good,
    /// Works, but something useful is missing.
    Note,
    Bad,
}

/// With less free space, the disk may soon be full, and the log cannot grow.
const LOW_DISK_BYTES: u64 = 1 << 30;

pub fn run(context: &CommandContext, _args: &Args) -> Result<ExitCode, Report> {
    let mut findings = Checkup { json: context.json, all: Vec::new() };
    let root = context.project.root().display().to_string();
    findings.add([Finding { about: "project", verdict: Grade::Good, what: root }])?;
    match context.config() {
        Ok(config) => {
            findings.add([Finding { about: "settings", verdict: Grade::Good, what: settings(context) }])?;
            findings.add([daemon(context)?])?;
            findings.add([folder(context), store(context, &config)?, port(context, &config), disk(context)])?;
        }
        Err(report) => {
            findings.add([Finding { about: "settings", verdict: Grade::Bad, what: report.to_string() }])?;
            findings.add([daemon(context)?])?;
        }
    }
    findings.add([program(context, "git", Path::new("git"))])?;
    if let Ok(config) = context.config() {
        findings.add(players::built_in(context, &config))?;
        findings.add(players::acp(context, &config))?;
        findings.add(agents(context, &config))?;
    }
    if context.json {
        print_json(&serde_json::json!({ "head": null, "findings": findings.all }))?;
    }
    let bad = findings.all.iter().any(|finding| finding.verdict == Grade::Bad);
    Ok(if bad { ExitCode::from(Code::Found as u8) } else { ExitCode::SUCCESS })
}

/// All findings. Each finding is printed immediately, because some checks are slow.
struct Checkup {
    json: bool,
    all: Vec<Finding>,
}

impl Checkup {
    fn add(&mut self, found: impl IntoIterator<Item = Finding>) -> Result<(), Report> {
        for finding in found {
            if !self.json {
                let Finding { about, verdict, what } = &finding;
                let mark = match verdict {
                    Grade::Good => paint(GOOD, "ok  "),
                    Grade::Note => paint(WARN, "note"),
                    Grade::Bad => paint(BAD, "bad "),
                };
                print_line(&format!("{mark} {} {what}", paint(DIM, format_args!("{about:<9}"))))?;
            }
            self.all.push(finding);
        }
        Ok(())
    }
}

fn settings(context: &CommandContext) -> String {
    let file = context.project.config_file();
    match file.exists() {
        true => file.display().to_string(),
        false => format!("defaults ({} is not there, and need not be)", file.display()),
    }
}

fn daemon(context: &CommandContext) -> Result<Finding, Report> {
    let (verdict, what) = match asking(async { Ok(Client::look(&context.project).await) })? {
        Sight::Answers(daemon) if daemon.version != version() => {
            let theirs = &daemon.version;
            let words =
                format!("runs: pid {}, {}, version {theirs}; this command is {}", daemon.pid, daemon.url, version());
            (
                Grade::Note,
                format!("{words}; `hatchery up --replace` starts a daemon of this version, and agents work on"),
            )
        }
        Sight::Answers(daemon) => (Grade::Good, format!("runs: pid {}, {}", daemon.pid, daemon.url)),
        Sight::Silent(daemon) => {
            let pid = context.project.daemon_pid().unwrap_or(daemon.pid);
            let words = format!("process {pid} holds the project's lock and has not answered at {}", daemon.url);
            (Grade::Bad, format!("{words}; `hatchery down --force` ends it, nothing is lost, and agents work on"))
        }
        Sight::Starting => (Grade::Note, "is starting or ending".into()),
        Sight::Away => (Grade::Good, "none runs; commands start it".into()),
    };
    Ok(Finding { about: "daemon", verdict, what })
}

fn folder(context: &CommandContext) -> Finding {
    let data = context.project.data();
    let place: &Path = if data.is_dir() { &data } else { context.project.root() };
    if let Err(report) = context.project.check_owner() {
        return Finding { about: "folder", verdict: Grade::Bad, what: report.to_string() };
    }
    if let Some(foreign) = context.project.foreign() {
        let what = format!("{} was not made here; `hatchery trust` accepts it", foreign.display());
        return Finding { about: "folder", verdict: Grade::Bad, what };
    }
    let (verdict, what) = match (tempfile::tempfile_in(place), context.project.existing_token()) {
        (Err(error), _) => (Grade::Bad, format!("{} cannot be written: {error}", place.display())),
        (Ok(_), Err(report)) => (Grade::Bad, report.to_string()),
        (Ok(_), Ok(_)) => (Grade::Good, format!("{} is writable, the token is private", place.display())),
    };
    if verdict != Grade::Good {
        return Finding { about: "folder", verdict, what };
    }
    let open = context.project.open_to_others();
    if let Some(first) = open.first() {
        let more = if open.len() > 1 { format!(" and {} more", open.len() - 1) } else { String::new() };
        let what = format!("{}{more} can be read by other users; `hatchery up` closes it", first.display());
        return Finding { about: "folder", verdict: Grade::Note, what };
    }
    Finding { about: "folder", verdict, what }
}

/// Checks the store without changing it: does not create a missing store, and does not migrate an older schema.
fn store(context: &CommandContext, config: &Config) -> Result<Finding, Report> {
    let url = &config.store;
    if let store::StoreUrl::Sqlite(path) = url
        && !path.exists()
    {
        return Ok(Finding {
            about: "store",
            verdict: Grade::Good,
            what: format!("{url} will be made at the first start"),
        });
    }
    if context.project.is_served() {
        return Ok(Finding {
            about: "store",
            verdict: Grade::Good,
            what: format!("{url} is in use by the daemon; `hatchery fsck` reads all of it"),
        });
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().context("no runtime")?;
    let (verdict, what) = match store::inspect(url, runtime.handle()) {
        Ok(StoreStatus { head, pending: 0 }) => (Grade::Good, format!("{url} has {}", counted(head.0, "event"))),
        Ok(StoreStatus { pending, .. }) if pending == MIGRATIONS.len() => {
            (Grade::Good, format!("{url} is empty; the first start makes its tables"))
        }
        Ok(StoreStatus { head, .. }) => {
            let events = counted(head.0, "event");
            (Grade::Note, format!("{url} has {events} in an older schema; `hatchery up` will bring it up to date"))
        }
        Err(error) => (Grade::Bad, format!("{url}: {error}")),
    };
    Ok(Finding { about: "store", verdict, what })
}

fn port(context: &CommandContext, config: &Config) -> Finding {
    let address = config.listen;
    if context.project.is_served() && address.port() != 0 {
        return Finding { about: "port", verdict: Grade::Good, what: format!("{address} is the daemon's") };
    }
    match TcpListener::bind(address) {
        Ok(_) if address.port() == 0 => {
            Finding { about: "port", verdict: Grade::Good, what: format!("any free one on {}", address.ip()) }
        }
        Ok(_) => Finding { about: "port", verdict: Grade::Good, what: format!("{address} is free") },
        Err(error) => Finding {
            about: "port",
            verdict: Grade::Bad,
            what: format!("{address} cannot be used: {error}; choose another with --port"),
        },
    }
}

fn disk(context: &CommandContext) -> Finding {
    match rustix::fs::statvfs(context.project.root()) {
        Ok(space) => {
            let free = space.f_bavail.saturating_mul(space.f_frsize);
            let verdict = if free < LOW_DISK_BYTES { Grade::Bad } else { Grade::Good };
            Finding { about: "disk", verdict, what: format!("{} MiB free", free >> 20) }
        }
        Err(error) => Finding { about: "disk", verdict: Grade::Note, what: format!("cannot be asked: {error}") },
    }
}

/// What agents will be able to do: their permissions, and their MCP servers.
fn agents(context: &CommandContext, config: &Config) -> Vec<Finding> {
    let explained = |policy: PermissionPolicy| format!("`{policy}`: {}", policy.meaning());
    let what = match config.runs.permissions {
        Some(policy) => format!("all agents: {}", explained(policy)),
        None => format!(
            "in a worktree {}. Elsewhere {}. `--permissions` and the setting `permissions` change this",
            explained(PermissionPolicy::Edits),
            explained(PermissionPolicy::Ask)
        ),
    };
    let roles = config.quests.table.roles.iter().filter_map(|role| Some((&role.name, role.permissions?)));
    let roles: Vec<String> = roles.map(|(name, policy)| format!("{name} `{policy}`")).collect();
    let roles = if roles.is_empty() { String::new() } else { format!(". By role: {}", roles.join(", ")) };
    let risky = config.runs.permissions == Some(PermissionPolicy::All);
    let verdict = if risky { Grade::Note } else { Grade::Good };
    let permissions = Finding { about: "may", verdict, what: format!("{what}{roles}") };
    let servers = match config.runs.claude_strict {
        true => "hatchery only, because `claude_strict` is set".to_owned(),
        false => {
            let own = mcp_servers(context);
            let own = if own.is_empty() { "none found".to_owned() } else { own.join(", ") };
            format!("hatchery, and your own for claude ({own}); `claude_strict = true` leaves yours out")
        }
    };
    vec![permissions, Finding { about: "tools", verdict: Grade::Good, what: servers }]
}

/// The names of the MCP servers that the Claude CLI finds by itself: the user's and the project's.
fn mcp_servers(context: &CommandContext) -> Vec<String> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let user = home.map(|home| home.join(".claude.json"));
    let project = context.project.root().join(".mcp.json");
    let key = context.project.root().display().to_string();
    let mut names = BTreeSet::new();
    for file in user.into_iter().chain([project]) {
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        let Ok(settings) = serde_json::from_str::<serde_json::Value>(&text) else { continue };
        for servers in [&settings["mcpServers"], &settings["projects"][&key]["mcpServers"]] {
            names.extend(servers.as_object().into_iter().flatten().map(|(name, _)| printable(name)));
        }
    }
    names.into_iter().collect()
}

/// Looks for a program in this command's PATH. A daemon that a command starts inherits that PATH.
fn program(context: &CommandContext, about: &'static str, wanted: &Path) -> Finding {
    let path = std::env::var_os("PATH").unwrap_or_default();
    match find_program(wanted, context.project.root(), &path) {
        Some(file) => Finding { about, verdict: Grade::Good, what: file.display().to_string() },
        None => {
            Finding { about, verdict: Grade::Note, what: format!("{} is not {}", wanted.display(), place_of(wanted)) }
        }
    }
}
