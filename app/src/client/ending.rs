//! How commands end the daemon.

use crate::project::Project;
use crate::report::{Code, Report};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Stops the daemon, and waits until it has ended. Says whether there was one.
pub fn end_daemon(project: &Project, wait: Duration) -> Result<bool, Report> {
    // A daemon whose folder was deleted holds only the lock of the root.
    let runs = || project.is_served() || project.daemon_pid().is_some();
    if !runs() {
        return Ok(false);
    }
    let deadline = Instant::now() + wait;
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
            return Err(Report::new(
                Code::Unreachable,
                format_args!("the daemon is still ending after {} s", wait.as_secs()),
            )
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
