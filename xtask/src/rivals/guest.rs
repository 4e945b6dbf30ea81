//! A server of another project, which runs while it is measured.

use crate::Failure;
use crate::command::succeeds;
use std::ffi::OsStr;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

const START_TIMEOUT: Duration = Duration::from_secs(60);
/// How long one may take to stop in order. What it stores is thrown away.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub struct Guest(Child);

/// Whom to become: some servers refuse to run as root.
#[derive(Debug, Clone, Copy)]
pub struct User {
    pub uid: u32,
    pub gid: u32,
}

impl Guest {
    /// Starts it and waits until it is ready. The kernel ends it when we die; `setpriv` comes after the change of user,
    /// which would clear that again.
    pub fn start<S: AsRef<OsStr>>(
        program: &Path,
        arguments: impl IntoIterator<Item = S>,
        folder: &Path,
        user: Option<User>,
        mut ready: impl FnMut() -> bool,
    ) -> Result<Self, Failure> {
        let failed = |why: String| Failure(format!("{} does not start: {why}", program.display()));
        let log = folder.join("log");
        let out = fs::File::create(&log).map_err(|error| failed(error.to_string()))?;
        let mut command = user.map_or_else(|| Command::new("setpriv"), |user| user.command("setpriv"));
        command.args(["--pdeathsig", "QUIT", "--"]).arg(program).args(arguments).current_dir(folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(out);
        let mut guest = Self(command.spawn().map_err(|error| failed(format!("setpriv: {error}")))?);
        let start = Instant::now();
        while !ready() {
            if guest.ended() || start.elapsed() > START_TIMEOUT {
                return Err(failed(fs::read_to_string(&log).unwrap_or_default()));
            }
            thread::sleep(LOOK_AGAIN);
        }
        Ok(guest)
    }

    fn ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        succeeds(Command::new("kill").args(["-INT", &self.0.id().to_string()]));
        let start = Instant::now();
        while !self.ended() {
            if start.elapsed() > STOP_TIMEOUT {
                drop(self.0.kill());
            }
            thread::sleep(LOOK_AGAIN);
        }
    }
}

impl User {
    /// None when we are not root anyway.
    pub fn lesser() -> Option<Self> {
        let us = fs::metadata("/proc/self").ok()?;
        if std::os::unix::fs::MetadataExt::uid(&us) != 0 {
            return None;
        }
        let users = fs::read_to_string("/etc/passwd").ok()?;
        let find = |name: &str| {
            let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
            let mut numbers = line.split(':').skip(2).map(str::parse);
            Some(Self { uid: numbers.next()?.ok()?, gid: numbers.next()?.ok()? })
        };
        find("postgres").or_else(|| find("nobody"))
    }

    pub fn command(self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.uid(self.uid).gid(self.gid);
        command
    }
}
