//! Other builds of the program.

use super::daemon::{Grounds, PROGRAM, Ran};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A copy of the program that says that it is another version. The mark is part of the file, so the daemon, the launchers and the tools
/// that the copy starts are of that version, too.
pub fn build_of_version(grounds: &Grounds, version: &str) -> PathBuf {
    let own = format!("hatchery-version={}", env!("CARGO_PKG_VERSION"));
    let other = format!("hatchery-version={version}");
    assert_eq!(own.len(), other.len());
    let copy = grounds.path().join(format!("hatchery-{version}"));
    // By other processes, as `write_program` says.
    let patch = "cp --reflink=auto \"$0\" \"$1\" && grep -abo \"$2\" \"$0\" | while IFS=: read -r at _; do \
                 printf %s \"$3\" | dd of=\"$1\" bs=1 seek=\"$at\" conv=notrunc status=none || exit 1; done";
    let patched = Command::new("sh").args(["-c", patch, PROGRAM]).arg(&copy).args([own, other]).status().unwrap();
    assert!(patched.success());
    copy
}

/// A command of another build.
pub fn run_by(program: &Path, grounds: &Grounds, arguments: &[&str]) -> Ran {
    let mut command = Command::new(program);
    command.args(arguments).arg("--project").arg(grounds.path()).current_dir(grounds.path()).stdin(Stdio::null());
    let path = std::env::var_os("PATH").unwrap_or_default();
    command.env_clear().env("PATH", path).env("HOME", grounds.path().join("home")).env("HATCHERY_TRUST_ALL", "1");
    Ran::from(command.output().unwrap())
}
