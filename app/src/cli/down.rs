//! `hatchery down`

use super::{Context, print_json, say};
use crate::client::ending::end_daemon;
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
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Report> {
    match end_daemon(&context.project, Duration::from_secs(args.wait))? {
        true => said(context, true, "the daemon has stopped"),
        false => said(context, false, "no daemon runs here"),
    }
}

fn said(context: &Context, stopped: bool, words: &str) -> Result<ExitCode, Report> {
    let working = run_folder::count_held(&context.project).context("it cannot be told whether agents run")?;
    if context.json {
        print_json(&serde_json::json!({ "stopped": stopped, "agents": working }))?;
        return Ok(ExitCode::SUCCESS);
    }
    say(words);
    match working {
        0 => {}
        1 => say("1 agent goes on without it; `hatchery stop --all` ends it"),
        more => say(format_args!("{more} agents go on without it; `hatchery stop --all` ends them")),
    }
    Ok(ExitCode::SUCCESS)
}
