//! A process that a launcher holds: an agent's or a ward's. This module is the daemon's half of the launcher protocol:
//! starting a launcher on a run folder, finding out what has become of the process, sending requests to the launcher, and
//! stopping the process.
//!
//! The whole state is in the folder, and every action can be repeated. So a daemon that takes over from a killed daemon does what
//! the first daemon did, and nothing else. The functions block; call them through [`blocking`](crate::blocking::blocking).

use crate::cgroup::Cgroup;
use crate::folder_watch::{FolderWatcher, WatchedFolder};
use crate::no_links;
use crate::processes::{self, ExitWatch};
use crate::run_folder::{ATTEMPT_TAG, Ended, LAUNCHER_TAG, Launch, LauncherRequest, RunFolder, Started};
use hatchery_core::outcome::Exit;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::time::Interval;

/// How often a folder is looked at without a notice, because notices may be lost. Rare, because hundreds of agents may wait.
const POLL_WATCHED: Duration = Duration::from_secs(30);
/// The same where the system notifies of nothing.
const POLL_UNWATCHED: Duration = Duration::from_secs(1);
/// How long a launcher may take to write `process.json` before another one is started. A second launcher is harmless.
pub const LAUNCH_TIMEOUT: Duration = Duration::from_secs(10);

/// The process of a run folder, whether it was started yet or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldProcess {
    /// This program, which is also the launcher.
    program: PathBuf,
    folder: RunFolder,
}

/// What the folder says about the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessState {
    /// There is no process. A launcher may be on its way.
    NotStarted,
    /// A launcher holds the folder and has not written `process.json` yet.
    Launching,
    Running(Started),
    /// The process is gone, with everything that it started. Without `started` there never was a process.
    Exited {
        started: Option<Started>,
        ended: Ended,
    },
    /// The launcher was killed. The process, or what it started, may still run: see [`HeldProcess::kill_leftovers`].
    LauncherKilled(Started),
}

impl HeldProcess {
    pub fn new(program: PathBuf, folder: RunFolder) -> Self {
        Self { program, folder }
    }

    pub fn folder(&self) -> &RunFolder {
        &self.folder
    }

    pub fn state(&self) -> io::Result<ProcessState> {
        // The order matters: a launcher takes the lock before it starts anything, and writes `exit.json` before it lets go.
        let started = self.folder.read_started()?;
        let is_held = self.folder.is_held()?;
        Ok(match (self.folder.read_ended()?, started) {
            // This `exit.json` is not the launcher's, which still runs. The process can write into the folder, too.
            (Some(_), started) if is_held => started.map_or(ProcessState::Launching, ProcessState::Running),
            // The whole life of the process may have passed since `process.json` was looked for.
            (Some(ended), None) => ProcessState::Exited { started: self.folder.read_started()?, ended },
            (Some(ended), started) => ProcessState::Exited { started, ended },
            (None, Some(started)) if is_held => ProcessState::Running(started),
            (None, Some(started)) => ProcessState::LauncherKilled(started),
            (None, None) if is_held => ProcessState::Launching,
            (None, None) => ProcessState::NotStarted,
        })
    }

    /// Starts a launcher, unless a process was started or cancelled in this folder before. `prepare` says what to launch, or why
    /// that is not possible: this becomes the recorded end. Needs a runtime, which reaps the launcher when it ends.
    pub fn launch(&self, prepare: impl FnOnce() -> io::Result<Result<Launch, Ended>>) -> io::Result<()> {
        // A launcher takes this lock before it reads `launch.json`, so it never sees another description than its own process's.
        let Some(lock) = self.folder.lock()? else { return Ok(()) };
        if self.is_decided()? {
            return Ok(());
        }
        self.kill_unrecorded()?;
        match prepare()? {
            Ok(launch) => self.folder.write_launch(&launch)?,
            Err(ended) => return self.folder.write_ended(&ended),
        }
        drop(lock);
        self.spawn_launcher()
    }

    /// Makes sure that no process is ever started in this folder. False when there is or was one.
    pub fn cancel(&self) -> io::Result<bool> {
        let Some(_lock) = self.folder.lock()? else { return Ok(false) };
        if self.is_decided()? {
            return Ok(false);
        }
        self.kill_unrecorded()?;
        let why = "it was stopped before it was started".to_owned();
        self.folder.write_ended(&Ended::without_process(Exit::NotStarted, why))?;
        Ok(true)
    }

    /// Sends requests to the launcher, durably. A launcher that does not run yet reads them when it starts.
    pub fn send(&self, requests: &[LauncherRequest]) -> io::Result<()> {
        self.folder.append_requests(requests)
    }

    /// Stops the process, or makes sure that it is never started. Returns before the process is gone.
    pub fn stop(&self, grace: Duration) -> io::Result<()> {
        if self.cancel()? || !self.folder.is_held()? {
            return Ok(());
        }
        if self.folder.requests()?.iter().any(|request| matches!(request, LauncherRequest::Stop { .. })) {
            // The daemon that wrote the request may have been killed before it woke the launcher.
            self.folder.wake_launcher();
            return Ok(());
        }
        self.send(&[LauncherRequest::Stop { grace_ms: millis(grace) }])
    }

    /// Kills every process that is left of this folder, and returns how many there were. They are found by their control group, by their
    /// process session and by the tag. Only for folders without a launcher, because a launcher reaps its processes itself.
    pub fn kill_leftovers(&self) -> usize {
        let started = self.folder.read_started().ok().flatten();
        // A process does not leave its control group by accident. Some machines have no control groups. There, a process that has cleared
        // its environment has no tag any more, but it is still in the process session that the launcher began.
        let recorded = started.as_ref().and_then(|started| started.cgroup.as_deref());
        let grouped = Cgroup::find(self.folder.path(), recorded).map_or(0, |cgroup| {
            let killed = cgroup.kill();
            cgroup.remove();
            killed
        });
        let session = started.map_or(0, |started| processes::kill_session(&started.launcher));
        grouped + session + processes::kill_tagged(ATTEMPT_TAG, &self.folder.tag())
    }

    /// Kills the launcher and everything below it, by what the kernel knows of them, and says whether the folder is free. For a
    /// launcher that does not obey: the agent can write into the folder through which it is asked.
    pub fn kill_with_launcher(&self) -> io::Result<bool> {
        processes::kill_tagged(LAUNCHER_TAG, &self.folder.tag());
        self.kill_leftovers();
        self.folder.is_held().map(|is_held| !is_held)
    }

    /// The process and its launcher as the kernel knows them. The agent can write into this folder, so what `process.json` says is compared
    /// with the holder of the lock. To be called while a launcher holds the folder.
    pub fn confirmed(&self, said: Started) -> Started {
        let Some(holder) = self.folder.holder() else { return said };
        let is_child = |pid: u32| processes::parent(pid) == Some(holder);
        // A process that has ended cannot be looked up; its descendants may still run.
        let gone = processes::began(said.process.pid).is_none();
        if said.launcher.pid == holder && (gone || is_child(said.process.pid)) {
            return said;
        }
        let child = processes::descendants(holder).into_iter().find(|pid| is_child(*pid));
        let process = child.map_or_else(|| said.process.clone(), processes::look_up);
        Started { process, launcher: processes::look_up(holder), boot: processes::boot(), cgroup: said.cgroup }
    }

    /// A launcher that was killed after it started the process and before it wrote `process.json` left the process behind.
    fn kill_unrecorded(&self) -> io::Result<()> {
        if self.folder.read_launch()?.is_some() {
            self.kill_leftovers();
        }
        Ok(())
    }

    /// Whether a process was started here, or never will be.
    fn is_decided(&self) -> io::Result<bool> {
        Ok(self.folder.read_started()?.is_some() || self.folder.read_ended()?.is_some())
    }

    fn spawn_launcher(&self) -> io::Result<()> {
        let path = self.folder.path();
        let mut launcher = tokio::process::Command::new(&self.program);
        launcher.arg("launch").arg(path).current_dir(path);
        launcher.env_clear().env(LAUNCHER_TAG, self.folder.tag()).stdin(Stdio::null()).stdout(Stdio::null());
        launcher.stderr(no_links::append(&path.join("launcher.log"))?);
        // The launcher outlives the daemon. If it ends first, the runtime reaps it.
        launcher.kill_on_drop(false).spawn().map(drop)
    }
}

/// Wakes a task that waits for news of one process.
#[derive(Debug)]
pub struct ProcessWatch {
    folder: WatchedFolder,
    poll: Interval,
    launcher: LauncherWatch,
}

/// Why a [`ProcessWatch`] woke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeReason {
    /// A file of the folder has changed.
    FolderChanged,
    /// It is time for a look without a notice.
    Poll,
    /// The launcher is gone.
    LauncherExited,
}

#[derive(Debug)]
enum LauncherWatch {
    Unknown,
    Watched(ExitWatch),
    Gone,
}

impl ProcessWatch {
    /// Watches a folder that exists.
    pub fn new(watcher: Option<FolderWatcher>, folder: &Path) -> Self {
        let folder = WatchedFolder::new(watcher, folder);
        let poll = tokio::time::interval(if folder.is_watched() { POLL_WATCHED } else { POLL_UNWATCHED });
        Self { folder, poll, launcher: LauncherWatch::Unknown }
    }

    /// Whether no launcher is followed yet.
    pub fn follows_nobody(&self) -> bool {
        matches!(self.launcher, LauncherWatch::Unknown)
    }

    /// From now on also wakes when this launcher ends. To be called while it holds the folder.
    pub fn follow_launcher(&mut self, started: &Started) {
        if matches!(self.launcher, LauncherWatch::Unknown) {
            self.launcher = match ExitWatch::of(&started.launcher) {
                Some(watch) => LauncherWatch::Watched(watch),
                // It may have ended since the folder was looked at; elsewhere than on Linux polling has to do.
                None if processes::is_alive(&started.launcher) => LauncherWatch::Unknown,
                None => LauncherWatch::Gone,
            };
        }
    }

    /// Returns at the next reason to look at the folder.
    pub async fn wake(&mut self) -> WakeReason {
        let Self { folder, poll, launcher } = self;
        let exited = async {
            match &*launcher {
                LauncherWatch::Unknown => std::future::pending().await,
                LauncherWatch::Watched(watch) => watch.exited().await,
                LauncherWatch::Gone => {}
            }
        };
        tokio::select! {
            () = folder.changed() => WakeReason::FolderChanged,
            _ = poll.tick() => WakeReason::Poll,
            () = exited => {
                *launcher = LauncherWatch::Unknown;
                WakeReason::LauncherExited
            }
        }
    }
}

/// A duration in milliseconds, as `launch.json` and the inbox have it.
pub fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
