//! `hatchery fsck`

use super::paint::{BAD, GOOD, paint};
use super::{CommandContext, asking, counted, own_store, print_json, print_line};
use crate::client::Client;
use crate::daemon;
use crate::fsck::{self, FsckReport};
use crate::log_head::LogHead;
use crate::report::{Code, Report};
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
    let own = own_store::open(context, &config)?;
    let head = LogHead::new(&context.project, &config.store);
    own_store::counting(|progress| fsck::check_against(own.store.as_ref(), Some(&head), repair, progress))
        .map_err(daemon::explain)
}
