//! Where a program is, found as the system would find it when it is started.

use rustix::fs::{Access, access};
use rustix::process::{Pid, Signal};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// A bare name is looked for on `path`; anything else is taken from the project's root.
pub fn find_program(wanted: &Path, root: &Path, path: &OsStr) -> Option<PathBuf> {
    let can_be_started = |file: &PathBuf| file.is_file() && access(file, Access::EXEC_OK).is_ok();
    match is_bare(wanted) {
        true => std::env::split_paths(path).map(|folder| folder.join(wanted)).find(can_be_started),
        false => Some(root.join(wanted)).filter(can_be_started),
    }
}

/// Where it was looked for, in words that follow "is not".
pub fn place_of(wanted: &Path) -> &'static str {
    if is_bare(wanted) { "on PATH" } else { "there, or cannot be started" }
}

fn is_bare(wanted: &Path) -> bool {
    wanted.components().count() == 1
}

/// The first versions that can do what Hatchery needs, by harness.
const OLDEST: [(&str, Version); 1] = [("claude", [2, 0, 0])];
/// How long a program may take to tell its version. After that, the version is unknown.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two looks whether it has told.
const PAUSE: Duration = Duration::from_millis(10);
/// How much of an answer is read.
const ANSWER_BYTES: u64 = 4_096;
/// How many programs are remembered. A machine has a few.
const MAX_KNOWN: usize = 64;

type Version = [u32; 3];
/// A program as it was when it was asked: a new version has another size or time.
type Known = BTreeMap<(PathBuf, u64, Option<SystemTime>), Option<Version>>;

/// What is wrong with the version of a program, if it is too old for its harness. A program that does not tell its version is taken as it is.
pub fn too_old(harness: &str, program: &Path) -> Option<String> {
    let (_, oldest) = OLDEST.iter().find(|(name, _)| *name == harness)?;
    let version = version_of(program)?;
    let written = |version: &Version| version.map(|number| number.to_string()).join(".");
    (version < *oldest).then(|| {
        format!("{} is version {}, and {} or later is needed", program.display(), written(&version), written(oldest))
    })
}

/// The version that a program tells with `--version`. It is asked once.
fn version_of(program: &Path) -> Option<Version> {
    static KNOWN: Mutex<Known> = Mutex::new(Known::new());
    let about = program.metadata().ok()?;
    let key = (program.to_owned(), about.len(), about.modified().ok());
    if let Some(known) = KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
        return *known;
    }
    let version = asked(program).as_deref().and_then(read_version);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if known.len() >= MAX_KNOWN {
        known.clear();
    }
    known.insert(key, version);
    version
}

fn asked(program: &Path) -> Option<String> {
    let mut command = Command::new(program);
    command.arg("--version").env_clear().envs(super::clean(std::env::vars(), &[], &[])).process_group(0);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    let deadline = Instant::now() + PATIENCE;
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
    let mut answer = String::new();
    child.stdout.take()?.take(ANSWER_BYTES).read_to_string(&mut answer).ok()?;
    Some(answer)
}

/// The first three numbers of `2.1.325 (Claude Code)`.
fn read_version(text: &str) -> Option<Version> {
    let word = text.split_whitespace().find(|word| word.starts_with(|first: char| first.is_ascii_digit()))?;
    let mut numbers = word.split(['.', '-', '+']).map(|number| number.parse().ok());
    Some([numbers.next()??, numbers.next()??, numbers.next().flatten().unwrap_or(0)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn what_cannot_be_started_is_not_found() {
        let folder = tempfile::tempdir().unwrap();
        let (root, path) = (folder.path(), folder.path().as_os_str());
        let file = root.join("player");
        assert_eq!(find_program(Path::new("player"), root, path), None);
        std::fs::write(&file, "").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(find_program(Path::new("player"), root, path), None, "nobody may run it");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find_program(Path::new("player"), root, path), Some(file.clone()));
        assert_eq!(find_program(Path::new("player"), root, OsStr::new("/nowhere")), None);
        assert_eq!(find_program(Path::new("./sub/../player"), root, path), None, "there is no sub");
        assert_eq!(find_program(&file, Path::new("/"), OsStr::new("")), Some(file));
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
        assert!(old.ends_with("old is version 1.0.128, and 2.0.0 or later is needed"), "{old}");
        for says in ["2.0.0 (Claude Code)", "2.1.325", "no version", ""] {
            assert_eq!(too_old("claude", &program("new", says)), None, "{says}");
        }
        assert_eq!(too_old("scripted", &program("any", "0.1.0")), None);
        assert_eq!(read_version("codex-cli 0.46.0-alpha.1"), Some([0, 46, 0]));
    }
}
