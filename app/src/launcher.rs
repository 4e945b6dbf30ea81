//! The launcher: the small process that is the parent of an agent's process or a ward's, so that the daemon may stop and
//! start meanwhile. It starts the process, passes on the lines of the inbox, enforces the time limit, reaps everything that
//! descends from the process, and writes down how it ended.
//!
//! It is the parent of the process and the reaper of its orphans. So a process id that it signals cannot have been reused,
//! and nothing that the process starts gets out of reach, in whatever session or group it is. If the launcher itself is
//! killed, the standard input of the process is closed, and the daemon finds what is left by its control group, by its session, and
//! by the tag in its environment.
//!
//! ```text
//! daemon ──inbox.jsonl, wakeup──► launcher ──stdin──► process ──► stdout.jsonl ──► daemon
//!                                    └── process.json, exit.json ───────────────────┘
//! ```
//!
//! | Thread | Does |
//! |---|---|
//! | main | reaps children until none is left |
//! | `requests` | reads the inbox for requests to stop, enforces the time limit, sends signals |
//! | `wakeups` | reads the FIFO |
//! | `stdin` | reads the inbox for lines and writes them to the process; may block there ([`StdinWriter`]) |
//! | `output` | wards only: copies the output into a bounded file ([`OutputCapture`]) |

mod output_capture;
mod stdin_writer;

use crate::cgroup::Cgroup;
use crate::held_process::LAUNCH_TIMEOUT;
use crate::no_links;
use crate::processes;
use crate::run_folder::{Ended, Launch, LaunchKind, LauncherRequest, RunFolder, Started, StoppedBy, lock_session};
use crate::spool::Tail;
use hatchery_core::outcome::Exit;
use output_capture::OutputCapture;
use rustix::fs::OFlags;
use rustix::process::{Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};
use stdin_writer::{FirstLines, StdinWriter};

/// How long the descendants of a process that has exited may take to end after SIGTERM.
const LEFTOVERS_GRACE: Duration = Duration::from_secs(1);
/// How long a process may take to leave after the end of its input. Some programs never do, because a child of theirs keeps them.
const LEAVE_GRACE: Duration = Duration::from_secs(10);
/// How long a launcher waits for the lock of its folder. After that the daemon starts another one.
const LOCK_TIMEOUT: Duration = LAUNCH_TIMEOUT;
/// How long the launcher of the attempt before may take to release the session lock after it has written `exit.json`.
const SESSION_LOCK_TIMEOUT: Duration = Duration::from_secs(5);
const SESSION_LOCK_PAUSE: Duration = Duration::from_millis(20);
/// How often SIGKILL is sent again, to processes that were forked while their parents were killed.
const KILL_PAUSE: Duration = Duration::from_millis(20);
/// How many wake-ups wait for the `requests` thread. One for each kind is enough, because it looks at everything each time.
const MAX_WAKEUPS: usize = 4;

/// Runs one attempt from its start to its end. An attempt that was started before is left alone.
pub fn run(folder: &RunFolder) -> io::Result<()> {
    let Some(_lock) = folder.lock_patiently(LOCK_TIMEOUT)? else { return Ok(()) };
    if folder.read_started()?.is_some() || folder.read_ended()?.is_some() {
        return Ok(());
    }
    let launch = folder.read_launch()?.ok_or_else(|| io::Error::other("there is no launch.json"))?;
    let ended = match claim_session(folder, &launch.kind) {
        Ok(session_lock) => match start(folder, &launch) {
            Ok(launched) => return hold(folder, launched, session_lock),
            Err(error) => {
                let problem = format!("{} could not be started: {error}", launch.program.display());
                match passes(&error) {
                    true => Ended::for_now(problem),
                    false => Ended::without_process(Exit::Unknown, problem),
                }
            }
        },
        // The process that has the session may be about to end.
        Err(problem) => Ended::for_now(problem),
    };
    erase_environment(folder, &launch)?;
    folder.write_ended(&ended)
}

/// Whether a program could not be started because of something that passes: too many processes or open files, too little memory, or an update
/// of the program at this moment.
fn passes(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let passing = [Errno::AGAIN, Errno::NOMEM, Errno::NFILE, Errno::MFILE, Errno::TXTBSY, Errno::INTR];
    Errno::from_io_error(error).is_some_and(|errno| passing.contains(&errno))
}

/// Locks the harness session of an agent. A ward has none, and a session that the harness has yet to create needs no lock.
fn claim_session(folder: &RunFolder, kind: &LaunchKind) -> Result<Option<File>, String> {
    match kind {
        LaunchKind::Ward { .. } | LaunchKind::Agent { session: None, .. } => Ok(None),
        LaunchKind::Agent { session: Some(session), .. } => match wait_for_session(folder, session) {
            Ok(Some(lock)) => Ok(Some(lock)),
            Ok(None) => Err(format!("another process has the session {session}")),
            Err(error) => Err(format!("the session {session} could not be locked: {error}")),
        },
    }
}

/// Waits, because the launcher before this one holds the lock for a moment after it has written `exit.json`.
fn wait_for_session(folder: &RunFolder, session: &str) -> io::Result<Option<File>> {
    let deadline = Instant::now() + SESSION_LOCK_TIMEOUT;
    loop {
        match lock_session(folder, session)? {
            None if Instant::now() < deadline => std::thread::sleep(SESSION_LOCK_PAUSE),
            lock => return Ok(lock),
        }
    }
}

/// Removes the environment from `launch.json`: it is not needed any more, and may contain keys.
fn erase_environment(folder: &RunFolder, launch: &Launch) -> io::Result<()> {
    folder.write_launch(&Launch { env: BTreeMap::new(), ..launch.clone() })
}

/// A process that was started.
struct Launched {
    pid: u32,
    stdin: Option<StdinWriter>,
    /// For a ward. An agent's process writes its output files itself.
    output: Option<OutputCapture>,
    time_limit: Option<TimeLimit>,
    cgroup: Option<Cgroup>,
}

#[derive(Clone, Copy)]
struct TimeLimit {
    deadline: Instant,
    grace: Duration,
}

fn start(folder: &RunFolder, launch: &Launch) -> io::Result<Launched> {
    // A session of its own, so that signals from a terminal do not reach it.
    rustix::process::setsid().map(|_| ()).or_else(|error| match error {
        rustix::io::Errno::PERM => Ok(()),
        other => Err(other),
    })?;
    processes::adopt_orphans()?;
    let cgroup = Cgroup::enter(folder.path());
    let mut command = Command::new(&launch.program);
    command.args(&launch.args).env_clear().envs(&launch.env).current_dir(&launch.folder).process_group(0);
    let output = match launch.kind {
        LaunchKind::Agent { .. } => {
            command
                .stdin(Stdio::piped())
                .stdout(no_links::append(&folder.stdout())?)
                .stderr(no_links::append(&folder.stderr())?);
            None
        }
        LaunchKind::Ward { .. } => {
            let (reader, writer) = io::pipe()?;
            command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
            Some(reader)
        }
    };
    let mut child = command.spawn().inspect_err(|_| cgroup.iter().for_each(Cgroup::leave))?;
    let began = Instant::now();
    // The command holds the writing end of the pipe. While it is open here, the output never ends.
    drop(command);
    announce(folder, launch, &mut child, output, (began, cgroup)).inspect_err(|_| {
        // A process that is not recorded must not run.
        signal_tree(Some(child.id()), Signal::KILL);
    })
}

/// Starts the threads for input and output, and records the process in `process.json`.
fn announce(
    folder: &RunFolder,
    launch: &Launch,
    child: &mut Child,
    output: Option<io::PipeReader>,
    (began, cgroup): (Instant, Option<Cgroup>),
) -> io::Result<Launched> {
    let stdin = child
        .stdin
        .take()
        .map(|stdin| StdinWriter::start(stdin, FirstLines::of(folder, launch)?, &folder.inbox()))
        .transpose()?;
    let output = output.map(|output| OutputCapture::start(output, no_links::append(&folder.output())?)).transpose()?;
    let process = processes::look_up(child.id());
    let (launcher, boot) = (processes::this_process(), processes::boot());
    let recorded = cgroup.as_ref().map(|cgroup| cgroup.path().to_owned());
    folder.write_started(&Started { process, launcher, boot, cgroup: recorded })?;
    // After `process.json`: a launcher that begins again without it needs the environment.
    erase_environment(folder, launch)?;
    let time_limit = match launch.kind {
        LaunchKind::Agent { .. } => None,
        LaunchKind::Ward { limit_ms, grace_ms } => began
            .checked_add(Duration::from_millis(limit_ms))
            .map(|deadline| TimeLimit { deadline, grace: Duration::from_millis(grace_ms) }),
    };
    Ok(Launched { pid: child.id(), stdin, output, time_limit, cgroup })
}

/// What wakes the `requests` thread.
enum LauncherWake {
    InboxGrew,
    /// The process is gone; its descendants may still run.
    ProcessExited,
    /// The process and all its descendants are gone.
    AllExited,
}

/// Obeys requests until the process and all its descendants are gone, and writes `exit.json`.
fn hold(folder: &RunFolder, launched: Launched, _session_lock: Option<File>) -> io::Result<()> {
    let Launched { pid, stdin, output, time_limit, cgroup } = launched;
    let (waker, wakes) = sync_channel(MAX_WAKEUPS);
    let fifo = no_links::open_with(&folder.wakeup(), OFlags::RDWR)?;
    // This thread ends with the launcher: it waits in a read of the FIFO.
    std::thread::Builder::new().name("wakeups".into()).spawn({
        let waker = waker.clone();
        move || forward_wakeups(fifo, &waker)
    })?;
    let inbox = Tail::open(&folder.inbox(), 0)?;
    let controller = Controller { pid: Some(pid), stdin, inbox, time_limit, stop: None, stopped_by: None };
    let requests = std::thread::Builder::new().name("requests".into()).spawn(move || controller.run(&wakes))?;
    let exit = reap(pid, &waker);
    // An error means that the thread has ended already.
    waker.send(LauncherWake::AllExited).ok();
    let stopped_by = requests.join().map_err(|_| io::Error::other("the thread that reads the requests panicked"))?;
    if let Some(output) = output {
        output.finish();
    }
    cgroup.iter().for_each(Cgroup::leave);
    folder.write_ended(&Ended { exit, problem: None, passing: false, stopped_by })
}

fn forward_wakeups(mut fifo: File, waker: &SyncSender<LauncherWake>) {
    let mut bytes = [0; 64];
    while let Ok(1..) = fifo.read(&mut bytes) {
        // When the queue is full, the thread will wake anyway, and then reads everything.
        waker.try_send(LauncherWake::InboxGrew).ok();
    }
}

/// Reaps the process and all orphans, until there are none.
fn reap(pid: u32, waker: &SyncSender<LauncherWake>) -> Exit {
    let mut exit = Exit::Unknown;
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((ended, status))) if ended.as_raw_nonzero().get().unsigned_abs() == pid => {
                exit = exit_of(status);
                // What it left behind belongs to the launcher by now. Usually that is nothing, and the process table need not be searched.
                if has_children() {
                    waker.send(LauncherWake::ProcessExited).ok();
                }
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return exit,
        }
    }
}

fn has_children() -> bool {
    rustix::process::waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT).is_ok()
}

fn exit_of(status: WaitStatus) -> Exit {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Unknown,
    }
}

/// Obeys requests to stop and the time limit.
struct Controller {
    /// None once the process is gone: its id may be reused.
    pid: Option<u32>,
    stdin: Option<StdinWriter>,
    inbox: Tail,
    time_limit: Option<TimeLimit>,
    stop: Option<Stop>,
    stopped_by: Option<StoppedBy>,
}

/// A stop that has begun: the signal that comes next if the processes are still there.
#[derive(Clone, Copy)]
enum Stop {
    /// Its input has ended, so it is about to leave by itself.
    Leave,
    Terminate {
        after: Duration,
    },
    Kill {
        after: Duration,
    },
    /// SIGKILL was sent, and is sent again until all are gone.
    KillAgain,
}

impl Stop {
    fn pause(self) -> Duration {
        match self {
            Self::Leave => LEAVE_GRACE,
            Self::Terminate { after } | Self::Kill { after } => after,
            Self::KillAgain => KILL_PAUSE,
        }
    }
}

impl Controller {
    /// Runs until nothing is left of the process. Says why the process was stopped, if it was.
    fn run(mut self, wakes: &Receiver<LauncherWake>) -> Option<StoppedBy> {
        loop {
            self.read_inbox();
            let wake = match self.next_timeout() {
                Some(timeout) => wakes.recv_timeout(timeout),
                None => wakes.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match wake {
                Ok(LauncherWake::InboxGrew) => {}
                Ok(LauncherWake::ProcessExited) => {
                    (self.pid, self.stdin) = (None, None);
                    signal_tree(None, Signal::TERM);
                    self.stop = Some(Stop::Kill { after: LEFTOVERS_GRACE });
                }
                Ok(LauncherWake::AllExited) | Err(RecvTimeoutError::Disconnected) => return self.stopped_by,
                Err(RecvTimeoutError::Timeout) => match (self.stop, self.time_limit) {
                    (None, Some(limit)) => self.begin_stop(StoppedBy::TimeLimit, limit.grace),
                    (Some(stop), _) => self.escalate(stop),
                    (None, None) => {}
                },
            }
        }
    }

    fn next_timeout(&self) -> Option<Duration> {
        match (self.stop, self.time_limit) {
            (Some(stop), _) => Some(stop.pause()),
            (None, Some(limit)) => Some(limit.deadline.saturating_duration_since(Instant::now())),
            (None, None) => None,
        }
    }

    /// Looks for requests to stop. The lines to write are read by the [`StdinWriter`], at the pace of the process.
    fn read_inbox(&mut self) {
        loop {
            let lines = match self.inbox.read() {
                Ok(lines) if lines.is_empty() => break,
                Ok(lines) => lines,
                Err(error) => {
                    note(format_args!("the inbox cannot be read: {error}"));
                    break;
                }
            };
            for line in lines {
                match serde_json::from_slice(&line.bytes) {
                    Ok(LauncherRequest::Stop { grace_ms }) => {
                        self.begin_stop(StoppedBy::Request, Duration::from_millis(grace_ms));
                    }
                    Ok(LauncherRequest::CloseInput) => {
                        self.stop.get_or_insert(Stop::Leave);
                    }
                    Ok(LauncherRequest::Write { .. }) => {}
                    Err(error) => note(format_args!("a request in the inbox cannot be parsed: {error}")),
                }
            }
        }
        if let Some(stdin) = &self.stdin {
            stdin.wake();
        }
    }

    fn begin_stop(&mut self, by: StoppedBy, grace: Duration) {
        if matches!(self.stop, None | Some(Stop::Leave)) {
            self.stopped_by = Some(by);
            self.stdin = None;
            self.pid.into_iter().for_each(|pid| processes::signal(pid, Signal::INT));
            self.stop = Some(Stop::Terminate { after: grace });
        }
    }

    fn escalate(&mut self, stop: Stop) {
        let (signal, next) = match stop {
            Stop::Leave => (Signal::TERM, Stop::Kill { after: LEFTOVERS_GRACE }),
            Stop::Terminate { after } => (Signal::TERM, Stop::Kill { after }),
            Stop::Kill { .. } | Stop::KillAgain => (Signal::KILL, Stop::KillAgain),
        };
        signal_tree(self.pid, signal);
        self.stop = Some(next);
    }
}

/// Writes a line to the launcher's log. A log that cannot be written must not end the launcher: `eprintln!` would panic.
fn note(words: fmt::Arguments<'_>) {
    writeln!(io::stderr(), "{words}").unwrap_or_default();
}

/// Signals all descendants of the launcher, or the process alone where descendants cannot be found.
fn signal_tree(process: Option<u32>, signal: Signal) {
    let tree = processes::descendants(std::process::id());
    let alone = process.filter(|_| tree.is_empty());
    tree.into_iter().chain(alone).for_each(|pid| processes::signal(pid, signal));
}
