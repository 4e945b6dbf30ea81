//! The real program: a project in a temporary folder, and the daemon that serves it. Children get an environment of their
//! own, never ours, and are gone when their owner is dropped.

use super::http::Door;
use hatchery::project::Project;
use hatchery::store::StoreUrl;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_hatchery");
/// How long anything may take that must happen. Only a failing test waits for it.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at something that gives no sign.
pub const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// A project of one test. When it goes, every daemon that serves it goes first.
pub struct Grounds {
    folder: TempDir,
}

/// A daemon in the foreground.
pub struct Daemon {
    child: Child,
    pub door: Door,
}

/// Something done to the child's view of the file system before it starts. Ends with the child, because it is done in a
/// mount namespace of its own.
#[derive(Clone, Copy)]
pub enum Scene<'a> {
    Plain,
    /// A file system of this many bytes, mounted on the folder.
    Small(&'a Path, u64),
    /// The file or folder cannot be written.
    ReadOnly(&'a Path),
}

impl Grounds {
    pub fn new() -> Self {
        Self::with("")
    }

    /// With these lines in `hatchery.toml`.
    pub fn with(settings: &str) -> Self {
        let folder = TempDir::with_prefix("hatchery").unwrap();
        fs::write(folder.path().join("hatchery.toml"), settings).unwrap();
        fs::create_dir(folder.path().join("home")).unwrap();
        // Found before any parent that happens to be a project.
        fs::create_dir(folder.path().join(".hatchery")).unwrap();
        fs::set_permissions(folder.path().join(".hatchery"), fs::Permissions::from_mode(0o700)).unwrap();
        // Made here: what a test puts into it belongs to it.
        Project::find(folder.path()).unwrap().prepare().unwrap();
        Self { folder }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn data(&self) -> PathBuf {
        self.path().join(".hatchery")
    }

    pub fn database(&self) -> PathBuf {
        self.data().join("hatchery.db")
    }

    /// As a daemon makes it: what a test writes into this file is a log of the project's own.
    pub fn begin_database(&self) {
        self.project().begin_database(&StoreUrl::Sqlite(self.database())).unwrap();
    }

    pub fn project(&self) -> Project {
        Project::find(self.path()).unwrap()
    }

    /// What the daemons in the foreground have written to standard error.
    pub fn said(&self) -> String {
        fs::read_to_string(self.path().join("said")).unwrap_or_default()
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        self.command_in(Scene::Plain, arguments)
    }

    /// The program, ended by the kernel when the thread that starts it ends.
    pub fn command_in(&self, scene: Scene<'_>, arguments: &[&str]) -> Command {
        let mut command = match scene {
            Scene::Plain => Command::new("setpriv"),
            Scene::Small(folder, bytes) => {
                let mount = format!("mount -t tmpfs -o size={bytes},mode=700 tmpfs \"$0\" && exec setpriv \"$@\"");
                in_own_mounts(&mount, folder)
            }
            Scene::ReadOnly(path) => in_own_mounts(
                "mount --bind \"$0\" \"$0\" && mount -o remount,ro,bind \"$0\" && exec setpriv \"$@\"",
                path,
            ),
        };
        command.args(["--pdeathsig", "KILL", "--", PROGRAM]);
        command.args(arguments).arg("--project").arg(self.path());
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        // What a test writes into the settings needs no question. Tests of the question take this away.
        command.env("HATCHERY_TRUST_ALL", "1");
        command.env("HOME", self.path().join("home")).current_dir(self.path()).stdin(Stdio::null());
        command
    }

    /// Runs a command to its end.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        Ran::from(self.command(arguments).output().unwrap())
    }

    /// Starts the daemon and waits until it is ready.
    pub fn up(&self) -> Daemon {
        self.up_in(Scene::Plain)
    }

    pub fn up_in(&self, scene: Scene<'_>) -> Daemon {
        let child = self.start_in(scene);
        Daemon::ready(child).unwrap_or_else(|ended| panic!("the daemon ended ({ended}): {}", self.said()))
    }

    /// Starts the daemon and waits for nothing.
    pub fn start(&self) -> Child {
        self.start_in(Scene::Plain)
    }

    fn start_in(&self, scene: Scene<'_>) -> Child {
        let said = fs::File::options().create(true).append(true).open(self.path().join("said")).unwrap();
        let mut command = self.command_in(scene, &["up", "--json", "--no-open"]);
        command.stdout(Stdio::piped()).stderr(said).spawn().unwrap()
    }

    /// Expects the daemon not to start, and gives what it said.
    pub fn refused(&self, scene: Scene<'_>) -> Ran {
        match self.try_up_in(scene) {
            Ok(_) => panic!("the daemon started"),
            Err(ran) => ran,
        }
    }

    /// A daemon, or what it said instead of starting.
    pub fn try_up_in(&self, scene: Scene<'_>) -> Result<Daemon, Ran> {
        let said = self.path().join("refusal");
        let mut command = self.command_in(scene, &["up", "--json", "--no-open"]);
        let child = command.stdout(Stdio::piped()).stderr(fs::File::create(&said).unwrap()).spawn().unwrap();
        Daemon::ready(child)
            .map_err(|status| Ran::from(Output { status, stdout: Vec::new(), stderr: fs::read(&said).unwrap() }))
    }
}

impl Drop for Grounds {
    fn drop(&mut self) {
        // An agent's tools that outlive their agent for a moment would start another daemon.
        let ours = self.path().as_os_str().as_bytes();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let words: Vec<&[u8]> = command.split(|byte| *byte == 0).collect();
            let id = entry.file_name().to_str().and_then(|id| id.parse().ok()).and_then(pid);
            if let Some(id) = id.filter(|_| words.contains(&&b"mcp"[..]) && words.contains(&ours)) {
                kill_process(id, Signal::KILL).unwrap_or_default();
            }
        }
        // Daemons that a command started in the background belong to nobody else.
        let project = self.project();
        let deadline = Instant::now() + PATIENCE;
        while project.is_served() && Instant::now() < deadline {
            if let Some(pid) = project.daemon().and_then(|daemon| pid(daemon.pid)) {
                kill_process(pid, Signal::KILL).unwrap_or_default();
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        if !std::thread::panicking() {
            let log = fs::read_to_string(project.daemon_log()).unwrap_or_default();
            for said in [self.said(), log] {
                assert!(!said.contains("panicked at"), "the daemon panicked:\n{said}");
            }
        }
    }
}

impl Daemon {
    /// Waits for the line that says it is ready. Fails with the exit status when it ends instead.
    pub fn ready(mut child: Child) -> Result<Self, std::process::ExitStatus> {
        #[derive(serde::Deserialize)]
        struct Ready {
            url: String,
            token: String,
            pid: u32,
        }
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if line.is_empty() {
            return Err(child.wait().unwrap());
        }
        let ready: Ready = serde_json::from_str(&line).unwrap();
        assert_eq!(ready.pid, child.id());
        Ok(Self { child, door: Door::new(&ready.url, ready.token) })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// `kill -9`, and its remains are gone when this returns.
    pub fn kill(mut self) {
        self.end();
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for it to end by itself.
    pub fn wait(mut self) -> std::process::ExitStatus {
        self.child.wait().unwrap()
    }

    /// A path as the daemon sees it, with the mounts that only it has.
    pub fn view(&self, path: &Path) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{}", self.pid(), path.display()))
    }

    fn end(&mut self) {
        // Fails only when it has ended already.
        self.child.kill().unwrap_or_default();
        self.child.wait().unwrap();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.end();
    }
}

/// How a command ended.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    /// Its output, if it went well.
    pub fn good(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.stdout
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let ran = Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        };
        assert!(!ran.stderr.contains("panicked at"), "{ran:?}");
        ran
    }
}

/// Whether mounts of our own are possible. Says so when they are not, because a test is left out then.
pub fn own_mounts_or_say_skipped(test: &str) -> bool {
    let possible = unshare().is_some();
    if !possible {
        eprintln!("SKIPPED {test}: neither root nor user namespaces here, so there is no way to mount anything");
    }
    possible
}

/// Waits until something is so that gives no sign.
#[track_caller]
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what} did not come");
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// Waits until a process that is not our child has ended.
pub fn wait_for_end(id: u32) {
    assert!(ended_within(id, PATIENCE), "process {id} is still there");
}

/// Waits for the end of a process, ours or not. False when it takes longer.
pub fn ended_within(id: u32, patience: Duration) -> bool {
    let Some(pid) = pid(id) else { return true };
    // Readable when the process has ended, also while nobody has asked for its status yet.
    let Ok(process) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) else { return true };
    let mut ended = [rustix::event::PollFd::new(&process, rustix::event::PollFlags::IN)];
    rustix::event::poll(&mut ended, Some(&rustix::event::Timespec::try_from(patience).unwrap())).unwrap() == 1
}

fn pid(id: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(id).ok()?)
}

/// `script` runs in a new mount namespace, with `path` as `$0` and the arguments to come as `$@`.
fn in_own_mounts(script: &str, path: &Path) -> Command {
    let mut command = Command::new("unshare");
    command.args(unshare().unwrap()).args(["--", "sh", "-c", script]).arg(path);
    command
}

/// How to get a mount namespace here, if at all.
fn unshare() -> Option<&'static [&'static str]> {
    const WAYS: [&[&str]; 2] = [&["--mount"], &["--user", "--map-root-user", "--mount"]];
    WAYS.into_iter().find(|way| {
        let tried = Command::new("unshare").args(*way).args(["--", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]).output();
        tried.is_ok_and(|tried| tried.status.success())
    })
}
