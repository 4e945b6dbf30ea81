//! The versions of agent programs, and whether they are new enough. A program is started with `--version`, once for each state of its file.

use super::clean;
use super::registry::built_in;
use crate::own_environment;
use rustix::process::{Pid, Signal};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// How long a program may take to print its version. Some are large and start slowly. After that, the version counts as unknown.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The pause between two checks whether the program has ended.
const PAUSE: Duration = Duration::from_millis(10);
/// How many bytes of the output are read. A version is one line.
const ANSWER_BYTES: u64 = 1_000;
/// How many programs are remembered. A machine has a few.
const MAX_KNOWN: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version([u32; 3]);

/// The known versions, by path, size and time of the file. A new version has another size or time.
type Known = BTreeMap<(PathBuf, u64, Option<SystemTime>), Option<String>>;

impl Version {
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self([major, minor, patch])
    }

    /// The first version number in a text such as `2.1.325 (Claude Code)`.
    pub fn read(text: &str) -> Option<Self> {
        text.split_ascii_whitespace().find_map(|word| {
            let mut parts = word.splitn(3, '.').map(|part| {
                let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
                digits.parse().ok()
            });
            Some(Self([parts.next()??, parts.next()??, parts.next()??]))
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.0;
        write!(f, "{major}.{minor}.{patch}")
    }
}

/// A version that is too old for its harness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooOld {
    pub found: Version,
    pub needed: Version,
}

impl TooOld {
    /// Compares the version that a program prints. None if the program is new enough, or if its version is unknown.
    pub fn of(harness: &str, program: &Path) -> Option<Self> {
        let needed = built_in(harness)?.program?.oldest?;
        let found = said(program).as_deref().and_then(Version::read)?;
        (found < needed).then_some(Self { found, needed })
    }
}

/// What is wrong with the version of a program, if it is too old for its harness.
pub fn too_old(harness: &str, program: &Path) -> Option<String> {
    let TooOld { found, needed } = TooOld::of(harness, program)?;
    Some(format!("{} is version {found}, and {needed} or later is needed", program.display()))
}

/// The line with which a program prints its version.
pub fn said(program: &Path) -> Option<String> {
    static KNOWN: Mutex<Known> = Mutex::new(Known::new());
    let about = program.metadata().ok()?;
    let key = (program.to_owned(), about.len(), about.modified().ok());
    if let Some(known) = KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
        return known.clone();
    }
    let answer = asked(program).unwrap_or_default();
    let line = answer.lines().next().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if known.len() >= MAX_KNOWN {
        known.clear();
    }
    known.insert(key, line.clone());
    line
}

fn asked(program: &Path) -> Option<String> {
    let mut command = Command::new(program);
    command.arg("--version").env_clear().envs(clean(own_environment::entries(), &[], &[])).process_group(0);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    let deadline = Instant::now() + TIMEOUT;
    loop {
        match child.try_wait() {
            Ok(Some(_)) => break,
            Ok(None) if Instant::now() < deadline => std::thread::sleep(PAUSE),
            Ok(None) | Err(_) => {
                if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                    rustix::process::kill_process_group(group, Signal::KILL).ok();
                }
                child.wait().ok();
                return None;
            }
        }
    }
    let output = child.stdout.take()?;
    // Descendants of the program may keep the pipe open. The program's own output is in the pipe when it has ended.
    rustix::io::ioctl_fionbio(&output, true).ok()?;
    let mut answer = Vec::new();
    match output.take(ANSWER_BYTES).read_to_end(&mut answer) {
        Err(error) if error.kind() != io::ErrorKind::WouldBlock => None,
        Ok(_) | Err(_) => Some(String::from_utf8_lossy(&answer).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_version_is_found_in_what_the_program_says() {
        assert_eq!(Version::read("2.1.325 (Claude Code)\n"), Some(Version([2, 1, 325])));
        assert_eq!(Version::read("codex-cli 0.46.0-alpha.1"), Some(Version([0, 46, 0])));
        assert_eq!(Version::read("nothing 1.2 of use"), None);
        assert!(Version([2, 1, 99]) < Version([2, 1, 112]) && Version([3, 0, 0]) > Version([2, 1, 112]));
        assert_eq!(Version([2, 1, 112]).to_string(), "2.1.112");
    }

    #[test]
    fn an_old_program_is_told_and_an_unknown_version_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let program = |name: &str, says: &str| {
            let file = folder.path().join(name);
            std::fs::write(&file, format!("#!/bin/sh\necho '{says}'\n")).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
            file
        };
        let old = too_old("claude", &program("old", "1.0.128 (Claude Code)")).unwrap();
        assert!(old.ends_with("old is version 1.0.128, and 2.1.112 or later is needed"), "{old}");
        for says in ["2.1.112 (Claude Code)", "2.1.325", "no version", ""] {
            assert_eq!(too_old("claude", &program("new", says)), None, "{says}");
        }
        assert!(too_old("codex", &program("codex-old", "codex-cli 0.150.0")).is_some());
        assert_eq!(too_old("codex", &program("codex-new", "codex-cli 0.166.0")), None);
        assert_eq!(too_old("scripted", &program("any", "0.1.0")), None);
    }

    #[test]
    fn what_a_program_leaves_behind_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("leaves");
        std::fs::write(&file, "#!/bin/sh\nsetsid sleep 30 &\necho 1.2.3\n").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        let began = Instant::now();
        assert_eq!(said(&file).as_deref(), Some("1.2.3"));
        assert!(began.elapsed() < TIMEOUT);
    }
}
