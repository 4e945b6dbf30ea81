//! `hatchery down`

use super::{Context, print_json};
use crate::report::{Code, Report};
use rustix::process::{Pid, Signal, kill_process};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Stop the project's daemon, and wait until it has stopped.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Give up after this many seconds. The daemon then goes on ending by itself.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    wait: u64,
}

const LOOK_AGAIN: Duration = Duration::from_millis(10);

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Report> {
    let project = &context.project;
    if !project.is_served() {
        return said(context, false, "no daemon runs here");
    }
    let deadline = Instant::now() + Duration::from_secs(args.wait);
    let mut told = None;
    while project.is_served() {
        // The lock is held, so the file speaks of a living process; while one is starting there is no file yet.
        let daemon = project.daemon().and_then(|daemon| Pid::from_raw(i32::try_from(daemon.pid).ok()?));
        if let Some(pid) = daemon
            && told != Some(pid)
        {
            kill_process(pid, Signal::TERM).map_err(|error| {
                Report::failed(format_args!(
                    "the daemon (pid {}) cannot be told to stop: {error}",
                    pid.as_raw_nonzero()
                ))
            })?;
            told = Some(pid);
        }
        if Instant::now() > deadline {
            return Err(Report::new(
                Code::Unreachable,
                format_args!("the daemon is still ending after {} s", args.wait),
            )
            .hint(format_args!("look into {}", project.daemon_log().display())));
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    said(context, true, "the daemon has stopped")
}

fn said(context: &Context, stopped: bool, words: &str) -> Result<ExitCode, Report> {
    match context.json {
        true => print_json(&serde_json::json!({ "stopped": stopped }))?,
        false => anstream::eprintln!("{words}"),
    }
    Ok(ExitCode::SUCCESS)
}
