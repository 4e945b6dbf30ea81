//! `hatchery down`

use super::{Context, print_json, say};
use crate::report::{Code, Context as _, Report};
use crate::run_folder;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::time::{Duration, Instant};

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

const LOOK_AGAIN: Duration = Duration::from_millis(10);

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Report> {
    match end(context, args.wait)? {
        true => said(context, true, "the daemon has stopped"),
        false => said(context, false, "no daemon runs here"),
    }
}

/// Stops the daemon, and waits until it has ended. Says whether there was one.
pub(super) fn end(context: &Context, wait: u64) -> Result<bool, Report> {
    let project = &context.project;
    // A daemon whose folder was deleted holds only the lock of the root.
    let runs = || project.is_served() || project.daemon_pid().is_some();
    if !runs() {
        return Ok(false);
    }
    let deadline = Instant::now() + Duration::from_secs(wait);
    let mut told = None;
    let mut process = None;
    // The lock is freed a little before the process has ended.
    while runs() || process.as_ref().is_some_and(is_alive) {
        // The holder of the lock, and nobody else: a file may name any process.
        let daemon = project.daemon_pid().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        if let Some(pid) = daemon
            && told != Some(pid)
        {
            process = watched(pid);
            kill_process(pid, Signal::TERM).map_err(|error| {
                Report::failed(format_args!(
                    "the daemon (pid {}) cannot be told to stop: {error}",
                    pid.as_raw_nonzero()
                ))
            })?;
            told = Some(pid);
        }
        if Instant::now() > deadline {
            return Err(Report::new(Code::Unreachable, format_args!("the daemon is still ending after {wait} s"))
                .hint(format_args!("look into {}", project.daemon_log().display())));
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    Ok(true)
}

/// A handle that stays with this very process, whoever gets its number next.
#[cfg(target_os = "linux")]
fn watched(pid: Pid) -> Option<OwnedFd> {
    rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()
}

#[cfg(not(target_os = "linux"))]
fn watched(_pid: Pid) -> Option<OwnedFd> {
    None
}

/// A process that has ended makes its handle readable.
fn is_alive(process: &OwnedFd) -> bool {
    let mut look = [PollFd::new(process, PollFlags::IN)];
    matches!(poll(&mut look, Some(&Timespec::default())), Ok(0))
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
