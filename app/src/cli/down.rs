//! `hatchery down`

use super::{CommandContext, print_json, say};
use crate::client::ending::{DaemonEnd, EndRequest, end_daemon};
use crate::report::{Context as _, Report};
use crate::run_folder;
use std::process::ExitCode;
use std::time::Duration;

/// Stop the project's daemon
///
/// Agents keep running, and the command says how many. The next daemon reads what they wrote in the meantime. To end the
/// agents, use `hatchery stop --all`. It is not an error if no daemon is running.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Stop waiting after this many seconds; the daemon still stops by itself
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    wait: u64,

    /// Kill a daemon that does not react within two seconds, or has not ended after --wait. Nothing is lost: the next daemon reads the log
    #[arg(long)]
    force: bool,
}

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    let wait = Duration::from_secs(args.wait);
    let ended =
        end_daemon(&context.project, EndRequest { wait, force: args.force, by_force: "hatchery down --force" })?;
    let words = match ended {
        DaemonEnd::InOrder => "the daemon has stopped",
        DaemonEnd::ByForce => "the daemon did not react and was ended by force; nothing is lost",
        DaemonEnd::NoneRan => "no daemon runs here",
    };
    let stopped = ended != DaemonEnd::NoneRan;

    let working = run_folder::count_held(&context.project).context("the running agents cannot be counted")?;
    if context.json {
        print_json(
            &serde_json::json!({ "stopped": stopped, "forced": ended == DaemonEnd::ByForce, "agents": working }),
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    say(words);
    match working {
        0 => {}
        1 => say("1 agent keeps running; `hatchery stop --all` ends it"),
        more => say(format_args!("{more} agents keep running; `hatchery stop --all` ends them")),
    }
    Ok(ExitCode::SUCCESS)
}
