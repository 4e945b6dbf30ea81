//! The folder of one attempt: everything that the daemon, the launcher and the tools of a run have to tell each other. Each of
//! them may be killed at any moment and the others go on, so nothing between them is held in memory or in a pipe alone.
//!
//! | File | Written by | Says |
//! |---|---|---|
//! | `launch.json` | daemon | what to start |
//! | `inbox.jsonl` | daemon | what to do with the process and what to say to it, in order ([`Order`]) |
//! | `bell` | daemon | a FIFO: the inbox has grown |
//! | `process.json` | launcher | the process is there |
//! | `stdout.jsonl`, `stderr.log` | the process | what it says |
//! | `output.log` | launcher | what a ward says, both in one |
//! | `exit.json` | launcher | the process is gone, and everything that it started |
//! | `token` | daemon | opens the API for this attempt's tools, and for nothing else |
//! | `calls.jsonl` | tools | what the agent asked of us |
//! | `lock` | launcher | held for as long as it lives |
//!
//! A ward is held in the same way, in a folder of its own, and has no `stdout.jsonl`, `token` or `calls.jsonl`.

use crate::clock;
use crate::project::{self, LOOKER_PAUSE, Project, flock};
use base64::Engine as _;
use hatchery_core::outcome::Exit;
use hatchery_core::run::{AttemptId, Process};
use rustix::fs::FlockOperation;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Carried by every process of an attempt, so that they can be found whatever they do to their parents and groups.
pub const MARK: &str = "HATCHERY_ATTEMPT";

/// How the token of an attempt begins.
const RUN_TOKEN: &str = "run";

/// The attempt that a token says it is of. Whether that is true is in the attempt's folder.
pub fn token_of(token: &str) -> Option<AttemptId> {
    let mut parts = token.strip_prefix(RUN_TOKEN)?.strip_prefix('.')?.split('.');
    let mut next = || parts.next();
    Some(AttemptId { agent: next()?.parse().ok()?, run: next()?.parse().ok()?, attempt: next()?.parse().ok()? })
}

/// Carried by the launcher of an attempt, which must not be taken for what it holds.
pub const LAUNCHER_MARK: &str = "HATCHERY_LAUNCHER";

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
    /// All of it: nothing is inherited.
    pub env: BTreeMap<String, String>,
    pub folder: PathBuf,
}

/// What it is started for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum LaunchKind {
    /// An agent, which is spoken to and answers line by line.
    Agent {
        of: AttemptId,
        /// The conversation inside the harness. No two processes may have the same.
        session: String,
        /// The one that it begins as a copy of.
        copy_of: Option<String>,
    },
    /// A ward, which hears nothing and has only so much time.
    Ward { limit_ms: u64, grace_ms: u64 },
}

/// What the launcher is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Pass this line on to the process.
    Say { id: String, line: String },
    /// Nothing more will be said.
    End,
    /// Interrupt it; after the grace time terminate everything, and after another one kill it.
    Stop { grace_ms: u64 },
}

/// The process, and who holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    pub process: Process,
    pub launcher: Process,
    /// Which start of the machine it was.
    pub boot: String,
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    pub exit: Exit,
    /// Why it could not even be started.
    #[serde(default)]
    pub problem: Option<String>,
    /// Why it was not left to end by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
}

/// Why a process was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    Stopped,
    OutOfTime,
}

impl Ended {
    /// There never was a process.
    pub fn before_it_began(exit: Exit, problem: String) -> Self {
        Self { exit, problem: Some(problem), cut: None }
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

    pub fn mcp_config(&self) -> PathBuf {
        self.path.join("mcp.json")
    }

    pub fn bell(&self) -> PathBuf {
        self.path.join("bell")
    }

    /// Makes the folder with what must be there before anybody looks. Harmless when it is there already.
    pub fn prepare(&self) -> io::Result<()> {
        self.make(&[self.stdout(), self.stderr(), self.inbox(), self.calls()])
    }

    /// The same for a ward.
    pub fn prepare_ward(&self) -> io::Result<()> {
        self.make(&[self.output(), self.inbox()])
    }

    /// The secret of this attempt, made when it is first asked for.
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
        match std::fs::read_to_string(self.path.join("token")) {
            Ok(token) => Ok(Some(token)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub fn launch(&self) -> io::Result<Option<Launch>> {
        self.read("launch.json")
    }

    /// Not for good: after a loss of power there is nothing left to launch, and what is half written is written anew.
    pub fn write_launch(&self, launch: &Launch) -> io::Result<()> {
        project::write_for_now(&self.path.join("launch.json"), &serde_json::to_vec(launch)?, 0o600)
    }

    pub fn started(&self) -> io::Result<Option<Started>> {
        self.read("process.json")
    }

    pub fn write_started(&self, started: &Started) -> io::Result<()> {
        self.write("process.json", started)
    }

    pub fn ended(&self) -> io::Result<Option<Ended>> {
        self.read("exit.json")
    }

    pub fn write_ended(&self, ended: &Ended) -> io::Result<()> {
        self.write("exit.json", ended)
    }

    /// Everything that the launcher was told so far. A last line that was cut off by a crash was never told.
    pub fn orders(&self) -> io::Result<Vec<Order>> {
        let text = std::fs::read(self.inbox())?;
        let lines = text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
        Ok(lines.filter_map(|line| serde_json::from_slice(line).ok()).collect())
    }

    /// Tells the launcher something, durably, and rings.
    pub fn tell(&self, orders: &[Order]) -> io::Result<()> {
        let mut text = Vec::new();
        // Whatever a crash left half written ends here, as a line that means nothing.
        if !ends_a_line(&self.inbox())? {
            text.push(b'\n');
        }
        for order in orders {
            serde_json::to_writer(&mut text, order)?;
            text.push(b'\n');
        }
        let mut inbox = appending(&self.inbox())?;
        inbox.write_all(&text)?;
        inbox.sync_data()?;
        self.ring();
        Ok(())
    }

    /// Wakes the launcher. When it is not there to hear, it will look by itself when it comes.
    pub fn ring(&self) {
        let bell =
            OpenOptions::new().write(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32).open(self.bell());
        if let Err(error) = bell.and_then(|mut bell| bell.write_all(b"!")) {
            tracing::debug!(%error, folder = %self.path.display(), "nobody hears the bell");
        }
    }

    /// Makes the caller the only launcher of this attempt, for as long as the file is open; nothing when there is one.
    pub fn lock(&self) -> io::Result<Option<File>> {
        lock(&self.path.join("lock"))
    }

    /// True while a launcher lives.
    pub fn is_held(&self) -> io::Result<bool> {
        match File::open(self.path.join("lock")) {
            Ok(file) => Ok(!flock(&file, FlockOperation::NonBlockingLockShared)?),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The value of [`MARK`] for the processes of this attempt: as unlike any other as the folder is.
    pub fn mark(&self) -> String {
        self.path.display().to_string()
    }

    fn make(&self, files: &[PathBuf]) -> io::Result<()> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.path)?;
        for path in files {
            appending(path)?;
        }
        match make_fifo(&self.bell()) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> io::Result<Option<T>> {
        match std::fs::read(self.path.join(name)) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes)
                .inspect_err(|error| tracing::warn!(%error, name, folder = %self.path.display(), "cannot be read"))
                .ok()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn write(&self, name: &str, value: &impl Serialize) -> io::Result<()> {
        project::write_whole(&self.path.join(name), &serde_json::to_vec(value)?, 0o600)
    }
}

/// Makes the caller the only one who has a conversation, for as long as the file is open; nothing when somebody has it.
pub fn lock_talk(folder: &RunFolder, session: &str) -> io::Result<Option<File>> {
    // The harness's own name for it is nothing that a path may be made of unchecked.
    if session.is_empty() || !session.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_') {
        return Err(io::Error::new(ErrorKind::InvalidInput, format!("`{session}` cannot name a conversation")));
    }
    let runs = folder.path.ancestors().nth(2).unwrap_or(&folder.path);
    let talks = runs.join("talks");
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&talks)?;
    lock(&talks.join(format!("{session}.lock")))
}

/// How many attempts of this project have a launcher that lives.
pub fn held(project: &Project) -> io::Result<usize> {
    let held: io::Result<Vec<bool>> = all(project)?.iter().map(|(_, folder)| folder.is_held()).collect();
    Ok(held?.into_iter().filter(|held| *held).count())
}

/// The folders of all attempts of this project.
pub fn all(project: &Project) -> io::Result<Vec<(AttemptId, RunFolder)>> {
    let mut all = Vec::new();
    for agent in entries(&runs(project))? {
        all.extend(entries(&agent)?.into_iter().filter_map(|path| Some((fence_of(&path)?, RunFolder::at(path)))));
    }
    Ok(all)
}

/// The attempt that a folder is called after.
fn fence_of(path: &Path) -> Option<AttemptId> {
    let agent = path.parent()?.file_name()?.to_str()?.parse().ok()?;
    let (run, attempt) = path.file_name()?.to_str()?.split_once('-')?;
    Some(AttemptId { agent, run: run.parse().ok()?, attempt: attempt.parse().ok()? })
}

/// The folders in a folder; none when there is no such folder.
pub fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let paths: io::Result<Vec<PathBuf>> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    Ok(paths?.into_iter().filter(|path| path.is_dir()).collect())
}

fn runs(project: &Project) -> PathBuf {
    project.data().join("runs")
}

/// The lock, unless somebody else holds it. Those who only look hold it for a moment as well, but share it: that tells them
/// from a holder, and they are waited out.
fn lock(path: &Path) -> io::Result<Option<File>> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)?;
    loop {
        if flock(&file, FlockOperation::NonBlockingLockExclusive)? {
            return Ok(Some(file));
        }
        if !flock(&file, FlockOperation::NonBlockingLockShared)? {
            return Ok(None);
        }
        flock(&file, FlockOperation::Unlock)?;
        std::thread::sleep(LOOKER_PAUSE);
    }
}

#[cfg(target_os = "linux")]
fn make_fifo(path: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, Mode, mkfifoat};
    Ok(mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR)?)
}

/// By the program that POSIX has for it: not every system has the call that `rustix` makes, macOS for one.
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

/// Whether the last line of a file is whole. That of an empty one is.
fn ends_a_line(path: &Path) -> io::Result<bool> {
    let file = File::open(path)?;
    let mut last = [b'\n'];
    if let Some(at) = file.metadata()?.len().checked_sub(1) {
        file.read_exact_at(&mut last, at)?;
    }
    Ok(last == *b"\n")
}

fn appending(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}
