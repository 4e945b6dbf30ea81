//! How commands end the daemon. They send a signal only to the process that holds the project's lock, never to a process that only a file
//! names.

use super::{HUNG_AFTER, notices};
use crate::project::Project;
use crate::report::{Code, Report};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// How long a killed process may take to end. The kernel first finishes what the process was waiting for, such as a slow disk.
const KILLED_LIMIT: Duration = Duration::from_secs(10);

/// How a daemon is to be ended.
#[derive(Clone, Copy, Debug)]
pub struct EndRequest {
    /// How long the daemon may take to end.
    pub wait: Duration,
    /// Whether a daemon that does not end by itself is killed. The log is whole at every moment, so nothing is lost.
    pub force: bool,
    /// The command that ends the daemon by force, for the user.
    pub by_force: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DaemonEnd {
    NoneRan,
    InOrder,
    ByForce,
}

/// Ends the daemon, and waits until its process has ended.
pub fn end_daemon(project: &Project, how: EndRequest) -> Result<DaemonEnd, Report> {
    // A daemon whose folder was deleted holds only the lock of the root.
    let runs = || project.is_served() || project.daemon_pid().is_some();
    if !runs() {
        return Ok(DaemonEnd::NoneRan);
    }
    let begun = Instant::now();
    let mut told: Option<DaemonProcess> = None;
    let mut killed: Option<Instant> = None;
    // The lock is released shortly before the process ends.
    while runs() || told.as_ref().is_some_and(DaemonProcess::is_alive) {
        let daemon = project.daemon_pid().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        if let Some(pid) = daemon.filter(|pid| told.as_ref().is_none_or(|told| told.pid != *pid)) {
            told = DaemonProcess::holding(project, pid);
            if let Some(process) = &told {
                process.signal(Signal::TERM)?;
            }
        }
        let hangs = begun.elapsed() > HUNG_AFTER && !is_ending(project);
        match (&told, killed) {
            (Some(process), None) if how.force && (hangs || begun.elapsed() > how.wait) => {
                process.signal(Signal::KILL)?;
                killed = Some(Instant::now());
            }
            (_, Some(killed)) if killed.elapsed() > KILLED_LIMIT => return Err(unending(project, told.as_ref(), how)),
            (_, Some(_)) => {}
            (_, None) if begun.elapsed() > how.wait => return Err(unending(project, told.as_ref(), how)),
            (Some(process), None) if hangs => notices::does_not_end(process.number(), HUNG_AFTER, how.by_force),
            (_, None) => {}
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    Ok(if killed.is_some() { DaemonEnd::ByForce } else { DaemonEnd::InOrder })
}

/// Whether the daemon has received the signal: it removes its address from the lock's file immediately.
fn is_ending(project: &Project) -> bool {
    project.lock_note().is_some_and(|note| note.daemon.is_none())
}

fn unending(project: &Project, process: Option<&DaemonProcess>, how: EndRequest) -> Report {
    let seconds = how.wait.as_secs();
    let log = project.daemon_log();
    match process {
        Some(process) => {
            let what = if is_ending(project) { "is still ending" } else { "does not react" };
            let message = format!("the daemon (process {}) {what} after {seconds} s", process.number());
            let by_force = how.by_force;
            let hint =
                format!("`{by_force}` ends it; nothing is lost, and agents work on. Its log is {}", log.display());
            Report::new(Code::Unreachable, message).hint(hint)
        }
        // In a container, the lock may be visible while the process that holds it is not.
        None => Report::new(
            Code::Unreachable,
            "something holds the project's lock, but no Hatchery daemon can be seen here, so nothing was ended",
        )
        .hint("end it where it was started: it may run in a container, or as another user"),
    }
}

/// The process of a daemon. The handle refers to this process, even if its id is used again.
struct DaemonProcess {
    pid: Pid,
    handle: Option<OwnedFd>,
}

impl DaemonProcess {
    /// The process, if it holds the project's lock. The lock is checked again after the handle was opened, because before that, another
    /// process could have got the process id.
    fn holding(project: &Project, pid: Pid) -> Option<Self> {
        let process = Self { pid, handle: handle_of(pid) };
        (project.daemon_pid() == Some(process.number())).then_some(process)
    }

    fn number(&self) -> u32 {
        self.pid.as_raw_nonzero().get().cast_unsigned()
    }

    fn signal(&self, signal: Signal) -> Result<(), Report> {
        match self.send(signal) {
            // The process has ended meanwhile.
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => {
                Err(Report::failed(format_args!("the daemon (process {}) cannot be ended: {error}", self.number())))
            }
        }
    }

    #[cfg(target_os = "linux")]
    fn send(&self, signal: Signal) -> rustix::io::Result<()> {
        match &self.handle {
            Some(handle) => rustix::process::pidfd_send_signal(handle, signal),
            None => kill_process(self.pid, signal),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn send(&self, signal: Signal) -> rustix::io::Result<()> {
        kill_process(self.pid, signal)
    }

    /// A process that has ended makes its handle readable.
    fn is_alive(&self) -> bool {
        self.handle.as_ref().is_some_and(|handle| {
            matches!(poll(&mut [PollFd::new(handle, PollFlags::IN)], Some(&Timespec::default())), Ok(0))
        })
    }
}

#[cfg(target_os = "linux")]
fn handle_of(pid: Pid) -> Option<OwnedFd> {
    rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()
}

#[cfg(not(target_os = "linux"))]
fn handle_of(_pid: Pid) -> Option<OwnedFd> {
    None
}
