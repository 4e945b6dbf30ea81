//! Which version of the Claude CLI a program is, and whether it is new enough.

use std::fmt;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The oldest version that the tests know.
pub const NEEDED: Version = Version([2, 1, 112]);

/// How long the program may take to say its version. Usually it needs a second.
const TIMEOUT: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);
/// How much of what it says is read.
const MAX_BYTES: u64 = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version([u32; 3]);

impl Version {
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

    /// Asks a program. None if it does not say, or not in time.
    pub fn of(program: &Path) -> Option<Self> {
        let mut command = Command::new(program);
        command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().ok()?;
        let deadline = Instant::now() + TIMEOUT;
        while child.try_wait().ok()?.is_none() {
            if Instant::now() > deadline {
                child.kill().ok()?;
                child.wait().ok()?;
                return None;
            }
            std::thread::sleep(PAUSE);
        }
        let mut said = String::new();
        child.stdout.take()?.take(MAX_BYTES).read_to_string(&mut said).ok()?;
        Self::read(&said)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.0;
        write!(f, "{major}.{minor}.{patch}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_in_what_the_program_says() {
        assert_eq!(Version::read("2.1.325 (Claude Code)\n"), Some(Version([2, 1, 325])));
        assert_eq!(Version::read("claude 2.0.1-beta.3"), Some(Version([2, 0, 1])));
        assert_eq!(Version::read("nothing 1.2 of use"), None);
        assert!(Version([2, 1, 99]) < NEEDED && Version([2, 1, 325]) > NEEDED && Version([3, 0, 0]) > NEEDED);
        assert_eq!(NEEDED.to_string(), "2.1.112");
    }
}
