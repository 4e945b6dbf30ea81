//! Makes a new worktree ready for work: files that git does not track are copied from the user's checkout, then a set-up command runs.
//! It happens once for each worktree. A preparation that was killed happens again.

use super::hold::{Hold, locked};
use super::{Repository, Worktree, WorktreeError};
use rustix::process::{Pid, Signal};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom};
use std::os::unix::process::CommandExt as _;
use std::path::{Component, Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// Says that a worktree is prepared, in git's own folder of it.
const DONE: &str = "hatchery-prepared";
/// The output of the set-up command, in the same folder.
const OUTPUT: &str = "hatchery-setup.log";
/// How much of the end of that output an error shows.
const SHOWN_BYTES: u64 = 2_000;
/// Between two looks whether the command has ended.
const PAUSE: Duration = Duration::from_millis(20);

/// What a worktree needs before an agent can work in it.
#[derive(Clone, Debug, Default)]
pub struct Preparation {
    /// For `/bin/sh -c`, in the worktree's folder.
    pub setup: Option<String>,
    /// How long the command may take.
    pub limit: Duration,
    /// Files and folders to copy from the user's checkout, as paths from the project's root.
    pub copy: Vec<PathBuf>,
    /// The whole environment of the command.
    pub environment: BTreeMap<String, String>,
}

impl Repository {
    /// Prepares a worktree, unless that was done before.
    pub fn prepare(&self, worktree: &Worktree, with: &Preparation) -> Result<(), WorktreeError> {
        if with.setup.is_none() && with.copy.is_empty() {
            return Ok(());
        }
        let own = self.hold(&worktree.place)?.git_folder(worktree)?;
        let lock = locked(&own.join("hatchery-prepare.lock"), || worktree.top.display().to_string())?;
        if own.join(DONE).exists() {
            return Ok(());
        }
        for path in &with.copy {
            self.copy(worktree, path)?;
        }
        if let Some(command) = &with.setup {
            run(command, &worktree.folder, with, &own.join(OUTPUT), lock)?;
        }
        let hold: Hold<'_> = self.hold(&worktree.place)?;
        hold.note_left_by_command(worktree)?;
        std::fs::write(own.join(DONE), "")
            .map_err(|error| WorktreeError::io("the preparation cannot be recorded", error))
    }

    /// Copies one file or folder. What the worktree has already is left alone, and what the checkout does not have is skipped.
    fn copy(&self, worktree: &Worktree, path: &Path) -> Result<(), WorktreeError> {
        let failed =
            |error| WorktreeError::io(format_args!("{} cannot be copied into the worktree", path.display()), error);
        if path.components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir)) {
            return Err(failed(std::io::Error::new(ErrorKind::InvalidInput, "it must be a path inside the project")));
        }
        copy_tree(&self.project.root().join(path), &worktree.folder.join(path)).map_err(failed)
    }
}

fn copy_tree(from: &Path, to: &Path) -> std::io::Result<()> {
    let Ok(about) = from.symlink_metadata() else { return Ok(()) };
    if about.is_dir() {
        std::fs::create_dir_all(to)?;
        for entry in std::fs::read_dir(from)? {
            let entry = entry?;
            copy_tree(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    if to.symlink_metadata().is_ok() {
        return Ok(());
    }
    to.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    match about.is_symlink() {
        true => std::os::unix::fs::symlink(std::fs::read_link(from)?, to),
        false => std::fs::copy(from, to).map(drop),
    }
}

/// Runs the set-up command to its end. It holds the lock as its input: if the daemon is killed, the next one waits for the command.
fn run(command: &str, folder: &Path, with: &Preparation, output: &Path, lock: File) -> Result<(), WorktreeError> {
    let failed = |why: String| WorktreeError::Setup { why };
    let unable = |error: std::io::Error| failed(error.to_string());
    let to = File::create(output).map_err(unable)?;
    let errors = to.try_clone().map_err(unable)?;
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command]).current_dir(folder).env_clear().envs(&with.environment);
    let mut child = shell.stdin(lock).stdout(to).stderr(errors).process_group(0).spawn().map_err(unable)?;
    let deadline = Instant::now() + with.limit;
    let ended = loop {
        match child.try_wait().map_err(unable)? {
            Some(status) => break status,
            None if Instant::now() > deadline => {
                end(&mut child);
                return Err(failed(format!("it took longer than {} seconds and was ended", with.limit.as_secs())));
            }
            None => std::thread::sleep(PAUSE),
        }
    };
    match ended.success() {
        true => Ok(()),
        false => Err(failed(format!("it ended with {}: {}", said_by(ended), last_of(output)))),
    }
}

/// Ends the command and everything that it started in its process group.
fn end(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        rustix::process::kill_process_group(group, Signal::KILL).ok();
    }
    child.wait().ok();
}

fn said_by(status: ExitStatus) -> String {
    status.code().map_or_else(|| status.to_string(), |code| format!("exit code {code}"))
}

/// The end of a file, as text.
fn last_of(file: &Path) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(file)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(SHOWN_BYTES)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    String::from_utf8_lossy(&read().unwrap_or_default()).trim().to_owned()
}
