//! `hatchery fsck`

use super::paint::{BAD, GOOD, paint};
use super::{CommandContext, asking, counted, print_json, print_line};
use crate::client::Client;
use crate::daemon;
use crate::fsck::{self, FsckReport};
use crate::log_head::LogHead;
use crate::report::{Code, Context as _, Report};
use crate::store;
use std::io::IsTerminal as _;
use std::process::ExitCode;

/// Read the whole log and check everything that is derived from it
///
/// Never changes the log. Works with and without a running daemon. Exits with 4 if it finds a problem.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Rebuild derived data that is wrong
    #[arg(long)]
    repair: bool,
}

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    if !context.project.exists() {
        return Err(Client::no_project(&context.project));
    }
    let running = asking(Client::running(&context.project))?;
    let findings = match running {
        Some(client) => asking(client.post("/api/fsck", &serde_json::json!({ "repair": args.repair })))?,
        None => check_here(context, args.repair)?,
    };
    if context.json {
        print_json(&findings)?;
    } else {
        for problem in &findings.problems {
            print_line(&format!("{} {:?}: {}", paint(BAD, "wrong"), problem.about, problem.what))?;
        }
        for repaired in &findings.repaired {
            print_line(&format!("{} {repaired}", paint(GOOD, "mended")))?;
        }
        let verdict = if findings.is_clean() { paint(GOOD, "clean") } else { paint(BAD, "not clean") };
        print_line(&format!(
            "{verdict}: {}, {}",
            counted(findings.events, "event"),
            counted(findings.snapshots, "snapshot")
        ))?;
    }
    Ok(if findings.is_clean() { ExitCode::SUCCESS } else { ExitCode::from(Code::Found as u8) })
}

fn check_here(context: &CommandContext, repair: bool) -> Result<FsckReport, Report> {
    let config = context.config()?;
    context.project.prepare()?;
    let _lock = context.project.lock()?;
    context.project.begin_database(&config.store)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().context("no runtime")?;
    let store = store::open(&config.store, runtime.handle()).map_err(|error| daemon::explain(error.into()))?;
    let live = std::io::stderr().is_terminal();
    let head = LogHead::new(&context.project, &config.store);
    let findings = fsck::check_against(store.as_ref(), Some(&head), repair, &mut |count| {
        if live {
            anstream::eprint!("\r{count} events");
        }
    });
    if live {
        anstream::eprint!("\r");
    }
    findings.map_err(daemon::explain)
}
