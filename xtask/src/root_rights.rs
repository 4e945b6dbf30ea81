//! Installing something needs root: already, or by a sudo that asks nothing.

use crate::Failure;
use crate::command::succeeds;
use std::fs;
use std::process::{Command, Stdio};

/// How we become root.
#[derive(Debug, Clone, Copy)]
pub enum Root {
    Already,
    Sudo,
}

impl Root {
    pub fn find() -> Result<Self, Failure> {
        if fs::metadata("/proc/self").is_ok_and(|us| std::os::unix::fs::MetadataExt::uid(&us) == 0) {
            return Ok(Self::Already);
        }
        match succeeds(Command::new("sudo").args(["-n", "true"])) {
            true => Ok(Self::Sudo),
            false => Err(Failure("installing needs root, and sudo is missing or asks for a password".into())),
        }
    }

    pub fn command(self, program: &str) -> Command {
        match self {
            Self::Already => Command::new(program),
            Self::Sudo => {
                let mut command = Command::new("sudo");
                command.args(["-n", program]);
                command
            }
        }
    }

    /// `env` because sudo does not pass our variables on.
    pub fn install(self, package: &str) -> Command {
        let mut command = self.command("env");
        command
            .args(["DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "--quiet", "--yes"])
            .args(["--no-install-recommends", package])
            .stdin(Stdio::null());
        command
    }

    pub fn write(self, path: &str, content: &str) -> Result<(), Failure> {
        let failed = |error: std::io::Error| Failure(format!("{path} cannot be written: {error}"));
        let mut tee =
            self.command("tee").arg(path).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().map_err(failed)?;
        if let Some(mut input) = tee.stdin.take() {
            std::io::Write::write_all(&mut input, content.as_bytes()).map_err(failed)?;
        }
        match tee.wait().map_err(failed)?.success() {
            true => Ok(()),
            false => Err(Failure(format!("{path} cannot be written"))),
        }
    }
}
