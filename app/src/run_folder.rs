//! The folder of one attempt, through which the daemon, the launcher and the tools of a run exchange messages. Each of them may be
//! killed at any moment, and the others continue. So no message between them is only in memory or in a pipe.
//!
//! | File | Written by | Content |
//! |---|---|---|
//! | `launch.json` | daemon; then launcher, which removes the environment | what to start |
//! | `inbox.jsonl` | daemon | requests to the launcher, in order ([`LauncherRequest`]) |
//! | `wakeup` | daemon | a FIFO; a byte in it means that the inbox has grown |
//! | `process.json` | launcher | the process has started |
//! | `stdout.jsonl`, `stderr.log` | the process | its output |
//! | `output.log` | launcher | the output of a ward, both streams in one |
//! | `exit.json` | launcher; daemon, if no process can be started | the process is gone, and everything that it started |
//! | `token` | daemon | opens the API for this attempt's tools, and for nothing else |
//! | `calls.jsonl` | tools | what the agent asked of Hatchery |
//! | `lock` | launcher | held as long as the launcher lives; the daemon takes it for a moment when it starts or cancels a process |
//! | `launcher.log` | launcher | its stderr |
//! | other files | daemon | what the harness needs, for example `mcp.json` |
//!
//! A ward has the same kind of folder, without `stdout.jsonl`, `stderr.log`, `token` and `calls.jsonl`.

use crate::clock;
use crate::no_links;
use crate::project::{self, LOOKER_PAUSE, Project, flock};
use base64::Engine as _;
use hatchery_core::harness::Capabilities;
use hatchery_core::outcome::Exit;
use hatchery_core::run::{AttemptId, Process};
use rustix::fs::{FlockOperation, OFlags};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The format of these files. Raise it when a program that does not know the change would misunderstand them: a daemon must not take
/// over a process that it cannot talk to. A field that may be missing needs no new format.
pub const FORMAT: u32 = 1;
/// How often a launcher tries a lock that is held.
const HOLDER_PAUSE: Duration = Duration::from_millis(10);

/// The environment variable that every process of an attempt carries, so that it can be found when its parent is gone.
pub const ATTEMPT_TAG: &str = "HATCHERY_ATTEMPT";

/// How the token of an attempt begins.
const RUN_TOKEN: &str = "run";

/// The attempt that a token names. Only the token in that attempt's folder proves that it is genuine.
pub fn attempt_of_token(token: &str) -> Option<AttemptId> {
    let mut parts = token.strip_prefix(RUN_TOKEN)?.strip_prefix('.')?.split('.');
    let mut next = || parts.next();
    Some(AttemptId { agent: next()?.parse().ok()?, run: next()?.parse().ok()?, attempt: next()?.parse().ok()? })
}

/// The environment variable that the launcher of an attempt carries. Another one than [`ATTEMPT_TAG`], because killing the
/// processes of an attempt must not kill its launcher.
pub const LAUNCHER_TAG: &str = "HATCHERY_LAUNCHER";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFolder {
    path: PathBuf,
}

/// What to start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    #[serde(flatten)]
    pub kind: LaunchKind,
    pub program: PathBuf,
    pub args: Vec<String>,
    /// The whole environment: nothing is inherited.
    pub env: BTreeMap<String, String>,
    pub folder: PathBuf,
    /// What the launcher writes to the standard input before anything else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_lines: Vec<String>,
    /// The `id`s of the first of these lines. The process must have answered each before the next line is written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers_awaited: Vec<String>,
}

/// The kind of process to start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum LaunchKind {
    /// An agent, which reads and writes lines.
    Agent {
        of: AttemptId,
        /// The session inside the harness, if it is known before the start. No two processes may have the same one.
        session: Option<String>,
        /// The session that this one begins as a copy of.
        copy_of: Option<String>,
        capabilities: Capabilities,
    },
    /// A ward, which has no input and a time limit.
    Ward { limit_ms: u64, grace_ms: u64 },
}

/// What the daemon asks of the launcher.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LauncherRequest {
    /// Write this line to the standard input of the process.
    Write { id: String, line: String },
    /// Close the standard input of the process, after everything that was to be written.
    CloseInput,
    /// Interrupt the process; after the grace time terminate all its processes, and after another one kill them.
    Stop { grace_ms: u64 },
}

/// The process and its launcher.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    pub process: Process,
    pub launcher: Process,
    /// The boot id of the machine.
    pub boot: String,
    /// The control group that the launcher and everything below it is in, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<PathBuf>,
}

/// How the process ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    pub exit: Exit,
    /// Why there was no process, or why its end is not known.
    #[serde(default)]
    pub problem: Option<String>,
    /// There was no process for a reason that passes, so another attempt may succeed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub passing: bool,
    /// Why the launcher stopped it. None when it ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_by: Option<StoppedBy>,
}

/// Why a launcher stopped its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoppedBy {
    /// [`LauncherRequest::Stop`].
    Request,
    TimeLimit,
}

impl Ended {
    /// The end of an attempt whose process never existed, or has left no trace of its end.
    pub fn without_process(exit: Exit, problem: String) -> Self {
        Self { exit, problem: Some(problem), passing: false, stopped_by: None }
    }

    /// The same, for a reason that passes.
    pub fn for_now(problem: String) -> Self {
        Self { passing: true, ..Self::without_process(Exit::Unknown, problem) }
    }
}

impl RunFolder {
    pub fn of(project: &Project, of: AttemptId) -> Self {
        let AttemptId { agent, run, attempt } = of;
        Self { path: runs(project).join(agent.to_string()).join(format!("{run}-{attempt}")) }
    }

    pub fn at(path: PathBuf) -> Self {
        Self { path }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn stdout(&self) -> PathBuf {
        self.path.join("stdout.jsonl")
    }

    pub fn stderr(&self) -> PathBuf {
        self.path.join("stderr.log")
    }

    pub fn output(&self) -> PathBuf {
        self.path.join("output.log")
    }

    pub fn inbox(&self) -> PathBuf {
        self.path.join("inbox.jsonl")
    }

    pub fn calls(&self) -> PathBuf {
        self.path.join("calls.jsonl")
    }

    /// The FIFO by which the launcher is woken.
    pub fn wakeup(&self) -> PathBuf {
        self.path.join("wakeup")
    }

    /// Creates the folder of an agent's attempt, with the empty files that readers expect. Harmless when it exists.
    pub fn create_for_agent(&self) -> io::Result<()> {
        self.create(&[self.stdout(), self.stderr(), self.inbox(), self.calls()])
    }

    /// Creates the folder of a ward. Harmless when it exists.
    pub fn create_for_ward(&self) -> io::Result<()> {
        self.create(&[self.output(), self.inbox()])
    }

    /// Creates the secret of this attempt, unless there is one.
    pub fn make_token(&self, of: AttemptId) -> io::Result<()> {
        match self.token()? {
            Some(_) => Ok(()),
            None => {
                let AttemptId { agent, run, attempt } = of;
                let secret = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(clock::random::<32>());
                let token = format!("{RUN_TOKEN}.{agent}.{run}.{attempt}.{secret}");
                project::write_for_now(&self.path.join("token"), token.as_bytes(), 0o600)
            }
        }
    }

    pub fn token(&self) -> io::Result<Option<String>> {
        match no_links::read(&self.path.join("token")) {
            Ok(token) => String::from_utf8(token).map(Some).map_err(io::Error::other),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What to start. Refuses a folder that a newer version has written.
    pub fn read_launch(&self) -> io::Result<Option<Launch>> {
        match self.format()? {
            Some(format) if format > FORMAT => Err(io::Error::other(format!(
                "{} was written by a newer Hatchery (format {format}; this one knows {FORMAT})",
                self.path.display()
            ))),
            Some(_) => self.read("launch.json"),
            None => Ok(None),
        }
    }

    /// The format in which the folder was written. None if there is nothing in it yet.
    pub fn format(&self) -> io::Result<Option<u32>> {
        #[derive(Deserialize)]
        struct FormatOnly {
            // The first version did not say it.
            #[serde(default = "first")]
            format: u32,
        }
        fn first() -> u32 {
            1
        }
        Ok(self.read::<FormatOnly>("launch.json")?.map(|written| written.format))
    }

    /// Without a sync: after a power failure there is no process, and a damaged file is written again.
    pub fn write_launch(&self, launch: &Launch) -> io::Result<()> {
        #[derive(Serialize)]
        struct LaunchWithFormat<'a> {
            format: u32,
            #[serde(flatten)]
            launch: &'a Launch,
        }
        let written = serde_json::to_vec(&LaunchWithFormat { format: FORMAT, launch })?;
        project::write_for_now(&self.path.join("launch.json"), &written, 0o600)
    }

    pub fn read_started(&self) -> io::Result<Option<Started>> {
        self.read("process.json")
    }

    pub fn write_started(&self, started: &Started) -> io::Result<()> {
        self.write("process.json", started)
    }

    pub fn read_ended(&self) -> io::Result<Option<Ended>> {
        self.read("exit.json")
    }

    pub fn write_ended(&self, ended: &Ended) -> io::Result<()> {
        self.write("exit.json", ended)
    }

    /// All requests so far. A last line without its end was cut off by a crash, and does not count.
    pub fn requests(&self) -> io::Result<Vec<LauncherRequest>> {
        let text = no_links::read(&self.inbox())?;
        let lines = text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
        Ok(lines.filter_map(|line| serde_json::from_slice(line).ok()).collect())
    }

    /// Appends requests, durably, and wakes the launcher.
    pub fn append_requests(&self, requests: &[LauncherRequest]) -> io::Result<()> {
        let mut text = Vec::new();
        // A line that a crash cut off becomes a line of its own that cannot be parsed.
        if !ends_with_newline(&self.inbox())? {
            text.push(b'\n');
        }
        for request in requests {
            serde_json::to_writer(&mut text, request)?;
            text.push(b'\n');
        }
        let mut inbox = no_links::append(&self.inbox())?;
        inbox.write_all(&text)?;
        inbox.sync_data()?;
        self.wake_launcher();
        Ok(())
    }

    /// Makes the launcher read its inbox. A launcher that does not run yet reads it when it starts.
    pub fn wake_launcher(&self) {
        let wakeup = no_links::open_with(&self.wakeup(), OFlags::WRONLY | OFlags::NONBLOCK);
        if let Err(error) = wakeup.and_then(|mut wakeup| wakeup.write_all(b"!")) {
            tracing::debug!(%error, folder = %self.path.display(), "no launcher reads the FIFO");
        }
    }

    /// Makes the caller the only launcher of this attempt, until the file is closed. None when there is another one.
    pub fn lock(&self) -> io::Result<Option<File>> {
        lock(&self.path.join("lock"))
    }

    /// The same for a launcher, which waits. The daemon has had the lock a moment ago, and a child that it forked at that moment
    /// has a copy of the lock until it has become another program. None when another launcher has started the process, or when the
    /// patience is over.
    pub fn lock_patiently(&self, patience: Duration) -> io::Result<Option<File>> {
        let deadline = Instant::now() + patience;
        lock_unless(&self.path.join("lock"), || {
            Ok(self.read_started()?.is_some() || self.read_ended()?.is_some() || Instant::now() >= deadline)
        })
    }

    /// True while a launcher lives. The daemon itself takes this lock for a moment when it starts or cancels a process.
    pub fn is_held(&self) -> io::Result<bool> {
        match no_links::open(&self.path.join("lock")) {
            Ok(file) => Ok(!flock(&file, FlockOperation::NonBlockingLockShared)?),
            // No launcher has locked what the process has put there.
            Err(error) if error.kind() == ErrorKind::NotFound || no_links::is_not_ordinary(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The same for a caller that would remove the folder or forget about it: a lock that cannot be read counts as held.
    pub fn may_be_held(&self) -> bool {
        self.is_held().unwrap_or_else(|error| {
            tracing::warn!(folder = %self.path.display(), %error, "the lock cannot be read, so the folder counts as used");
            true
        })
    }

    /// The process that holds the lock, as the kernel says: not as a file says, into which the agent can write.
    pub fn holder(&self) -> Option<u32> {
        project::holder(&self.path.join("lock"))
    }

    /// The value of [`ATTEMPT_TAG`] for the processes of this attempt: its path, which no other attempt has.
    pub fn tag(&self) -> String {
        self.path.display().to_string()
    }

    /// Whether a folder could not be created because a link or a file is in its place, or in the place of a folder above it.
    pub fn is_taken_by_other(error: &io::Error) -> bool {
        no_links::is_not_ordinary(error) || matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotADirectory)
    }

    fn create(&self, files: &[PathBuf]) -> io::Result<()> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.path)?;
        no_links::check_folder(&self.path)?;
        for path in files {
            no_links::append(path)?;
        }
        match make_fifo(&self.wakeup()) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> io::Result<Option<T>> {
        match no_links::read(&self.path.join(name)) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes)
                .inspect_err(|error| tracing::warn!(%error, name, folder = %self.path.display(), "a file of the run folder cannot be parsed"))
                .ok()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            // Put there by the process, because we write only files.
            Err(error) if no_links::is_not_ordinary(&error) => {
                tracing::warn!(%error, "a file of the run folder was replaced");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn write(&self, name: &str, value: &impl Serialize) -> io::Result<()> {
        project::write_whole(&self.path.join(name), &serde_json::to_vec(value)?, 0o600)
    }
}

/// Makes the caller the only process of a harness session, until the file is closed. None when another process has it.
pub fn lock_session(folder: &RunFolder, session: &str) -> io::Result<Option<File>> {
    // The id comes from the harness, so it is checked before it becomes part of a path.
    if session.is_empty() || !session.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_') {
        return Err(io::Error::new(ErrorKind::InvalidInput, format!("`{session}` is not a valid session id")));
    }
    let runs = folder.path.ancestors().nth(2).unwrap_or(&folder.path);
    let sessions = runs.join("sessions");
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&sessions)?;
    lock(&sessions.join(format!("{session}.lock")))
}

/// How many attempts of this project have a live launcher.
pub fn count_held(project: &Project) -> io::Result<usize> {
    let held: io::Result<Vec<bool>> = all(project)?.iter().map(|(_, folder)| folder.is_held()).collect();
    Ok(held?.into_iter().filter(|held| *held).count())
}

/// An attempt that is not over and whose folder a newer version has written, with its format.
pub fn newer(project: &Project) -> io::Result<Option<(AttemptId, u32)>> {
    for (of, folder) in all(project)? {
        // A file that cannot be read is the supervisor's matter.
        let format = folder.format().ok().flatten().filter(|format| *format > FORMAT);
        if let Some(format) = format
            && (folder.is_held()? || folder.read_ended().ok().flatten().is_none())
        {
            return Ok(Some((of, format)));
        }
    }
    Ok(None)
}

/// The folders of all attempts of this project.
pub fn all(project: &Project) -> io::Result<Vec<(AttemptId, RunFolder)>> {
    let mut all = Vec::new();
    for agent in subfolders(&runs(project))? {
        // A folder that an agent has made unreadable does not hide the others.
        let attempts = subfolders(&agent).unwrap_or_default().into_iter();
        all.extend(attempts.filter_map(|path| Some((attempt_of_path(&path)?, RunFolder::at(path)))));
    }
    Ok(all)
}

/// The attempt that a folder is named after.
fn attempt_of_path(path: &Path) -> Option<AttemptId> {
    let agent = path.parent()?.file_name()?.to_str()?.parse().ok()?;
    let (run, attempt) = path.file_name()?.to_str()?.split_once('-')?;
    Some(AttemptId { agent, run: run.parse().ok()?, attempt: attempt.parse().ok()? })
}

/// The folders in a folder, without symbolic links. Empty when there is no such folder, or something else in its place.
pub fn subfolders(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(Vec::new()),
        other => other?,
    };
    let paths: io::Result<Vec<PathBuf>> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    Ok(paths?.into_iter().filter(|path| path.is_dir() && !path.is_symlink()).collect())
}

fn runs(project: &Project) -> PathBuf {
    project.data().join("runs")
}

/// The lock, unless another process holds it. [`RunFolder::is_held`] also takes the lock for a moment, but as a shared lock. So a
/// shared lock is only a look, and this function waits until it is released.
fn lock(path: &Path) -> io::Result<Option<File>> {
    lock_unless(path, || Ok(true))
}

/// The lock, as soon as no other process holds it. None if another process holds it and `give_up` says so.
fn lock_unless(path: &Path, mut give_up: impl FnMut() -> io::Result<bool>) -> io::Result<Option<File>> {
    let file = no_links::open_file(path, OFlags::WRONLY | OFlags::CREATE)?;
    loop {
        if flock(&file, FlockOperation::NonBlockingLockExclusive)? {
            return Ok(Some(file));
        }
        match flock(&file, FlockOperation::NonBlockingLockShared)? {
            true => {
                flock(&file, FlockOperation::Unlock)?;
                std::thread::sleep(LOOKER_PAUSE);
            }
            false if give_up()? => return Ok(None),
            false => std::thread::sleep(HOLDER_PAUSE),
        }
    }
}

#[cfg(target_os = "linux")]
fn make_fifo(path: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, Mode, mkfifoat};
    Ok(mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR)?)
}

/// By the POSIX program `mkfifo`, because macOS lacks the system call that `rustix` makes.
#[cfg(not(target_os = "linux"))]
fn make_fifo(path: &Path) -> io::Result<()> {
    if path.try_exists()? {
        return Ok(());
    }
    let made = std::process::Command::new("mkfifo").args(["-m", "600"]).arg(path).output()?;
    match made.status.success() || path.try_exists()? {
        true => Ok(()),
        false => Err(io::Error::other(String::from_utf8_lossy(&made.stderr).into_owned())),
    }
}

/// Whether the last line of a file is complete. An empty file counts as complete.
fn ends_with_newline(path: &Path) -> io::Result<bool> {
    let file = no_links::open(path)?;
    let mut last = [b'\n'];
    if let Some(at) = file.metadata()?.len().checked_sub(1) {
        file.read_exact_at(&mut last, at)?;
    }
    Ok(last == *b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_lock_that_cannot_be_read_counts_as_held() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        assert!(!RunFolder::at(folder.clone()).may_be_held(), "no launcher has ever locked it");
        // No file system has such a name.
        let unreadable = RunFolder::at(folder.join("x".repeat(300)));
        assert!(unreadable.is_held().is_err() && unreadable.may_be_held());
    }

    #[test]
    fn a_folder_behind_a_link_is_refused() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("elsewhere/1-1")).unwrap();
        std::fs::create_dir(top.join("runs")).unwrap();
        symlink(top.join("elsewhere"), top.join("runs/agent")).unwrap();
        let error = RunFolder::at(top.join("runs/agent/1-1")).create_for_agent().unwrap_err();
        assert!(error.to_string().contains("symbolic link"), "{error}");
        assert_eq!(std::fs::read_dir(top.join("elsewhere/1-1")).unwrap().count(), 0);
        // And a file that leads elsewhere is not written.
        let folder = RunFolder::at(top.join("runs/real/1-1"));
        folder.create_for_agent().unwrap();
        std::fs::write(top.join("precious"), "").unwrap();
        std::fs::remove_file(folder.inbox()).unwrap();
        symlink(top.join("precious"), folder.inbox()).unwrap();
        assert!(folder.append_requests(&[LauncherRequest::CloseInput]).is_err());
        assert_eq!(std::fs::read(top.join("precious")).unwrap(), b"");
    }
}
