//! Runs git: with a clean environment, without hooks, prompts and background work, with a time limit and bounded output. Knows no
//! quests and steps.

use super::WorktreeError;
use crate::harness::clean;
use rustix::process::{Pid, Signal};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// The time limit of one git command: enough for a large checkout on a slow disk.
const LIMIT: Duration = Duration::from_secs(300);
/// The longest output: the names of a million files.
const ANSWER_BYTES: usize = 64 << 20;
/// How much of its standard error is kept.
const COMPLAINT_BYTES: usize = 8 << 10;
/// The pause between two checks whether git has exited, after its output has ended.
const END_PAUSE: Duration = Duration::from_millis(2);

/// The variables that git gets beside the usual ones: its settings and the user's identity. Never `GIT_DIR` and similar ones, which would
/// lead git to another repository.
const GIT_NAMES: [&str; 8] = [
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_EXEC_PATH",
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
];

/// Overrides for settings of the user that would make git prompt, sign, run other programs, or continue in the background.
const OURS: [&str; 8] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "commit.gpgSign=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "rerere.enabled=false",
    "submodule.recurse=false",
    "advice.addEmbeddedRepo=false",
];

/// The part of an environment that git gets.
pub fn environment(from: impl Iterator<Item = (String, String)>) -> BTreeMap<String, String> {
    clean(from, &[], &GIT_NAMES.map(str::to_owned))
}

/// A git command that is being built.
#[derive(Debug)]
pub struct Git {
    command: Command,
    /// The arguments, for error messages.
    asked: Vec<String>,
    /// A lock that is held until the command has ended.
    turn: Option<File>,
}

/// The result of a command.
#[derive(Debug)]
pub struct GitOutput {
    pub status: ExitStatus,
    pub out: Vec<u8>,
    pub complaint: String,
}

impl Git {
    pub fn new(folder: &Path, environment: &BTreeMap<String, String>) -> Self {
        Self::plain(folder, environment).set(&OURS.map(str::to_owned))
    }

    /// With the settings of the user, all of them.
    pub fn plain(folder: &Path, environment: &BTreeMap<String, String>) -> Self {
        let mut command = Command::new("git");
        command.current_dir(folder).env_clear().envs(environment);
        // The program reads the output, so it must be in one language and must not use a terminal.
        command.env_remove("LANGUAGE").env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").env("GIT_EDITOR", "true");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        Self { command, asked: Vec::new(), turn: None }
    }

    /// Limits the search for a repository to folders below this one. Otherwise git would find the user's repository if a worktree has lost
    /// its `.git`.
    pub fn below(mut self, ceiling: &Path) -> Self {
        self.command.env("GIT_CEILING_DIRECTORIES", ceiling);
        self
    }

    /// Passes the lock to git as its standard input. If this process is killed, the lock stays held until git has ended.
    pub fn holding(mut self, lock: &File) -> Result<Self, WorktreeError> {
        let lock = lock.try_clone().map_err(|error| WorktreeError::io("the lock cannot be passed on", error))?;
        self.command.stdin(lock);
        Ok(self)
    }

    /// Holds this lock until git has ended.
    pub fn in_turn(mut self, turn: File) -> Self {
        self.turn = Some(turn);
        self
    }

    pub fn set(mut self, settings: &[String]) -> Self {
        for setting in settings {
            self.command.arg("-c").arg(setting);
        }
        self
    }

    pub fn env(mut self, name: &str, value: &Path) -> Self {
        self.command.env(name, value);
        self
    }

    pub fn arg(mut self, word: impl AsRef<OsStr>) -> Self {
        self.asked.push(word.as_ref().to_string_lossy().into_owned());
        self.command.arg(word);
        self
    }

    pub fn args<T: AsRef<OsStr>>(self, words: impl IntoIterator<Item = T>) -> Self {
        words.into_iter().fold(self, Self::arg)
    }

    /// The result, successful or not.
    pub fn run(self) -> Result<GitOutput, WorktreeError> {
        self.run_within(LIMIT)
    }

    /// The output of a command that must succeed, without the last line break.
    pub fn text(self) -> Result<String, WorktreeError> {
        let said = self.succeed()?;
        Ok(String::from_utf8_lossy(&said.out).trim_end().to_owned())
    }

    /// The paths in an output with a NUL after each path.
    pub fn paths(self) -> Result<Vec<PathBuf>, WorktreeError> {
        let said = self.succeed()?;
        let names = said.out.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(names.map(|name| PathBuf::from(OsString::from_vec(name.to_vec()))).collect())
    }

    /// The answer to a yes-or-no question: exit code 1 means no.
    pub fn holds(self) -> Result<bool, WorktreeError> {
        let asked = self.asked();
        let said = self.run()?;
        match said.status.code() {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(said.failed(asked)),
        }
    }

    /// The first line of the output, or none if git failed. A killed git is an error.
    pub fn maybe(self) -> Result<Option<String>, WorktreeError> {
        let asked = self.asked();
        let said = self.run()?;
        if said.status.code().is_none() {
            return Err(said.failed(asked));
        }
        let answer = || String::from_utf8_lossy(&said.out).lines().next().unwrap_or_default().to_owned();
        Ok(said.status.success().then(answer))
    }

    pub fn succeed(self) -> Result<GitOutput, WorktreeError> {
        let asked = self.asked();
        let said = self.run()?;
        match said.status.success() {
            true => Ok(said),
            false => Err(said.failed(asked)),
        }
    }

    fn asked(&self) -> String {
        let words: Vec<String> = self.asked.iter().map(|word| word.chars().take(80).collect()).collect();
        words.join(" ")
    }

    fn run_within(mut self, limit: Duration) -> Result<GitOutput, WorktreeError> {
        let asked = self.asked();
        let deadline = Instant::now() + limit;
        let started = self.command.spawn();
        let mut child = started.map_err(|error| WorktreeError::NoGit { asked: asked.clone(), error })?;
        let ears = (listen(child.stdout.take(), ANSWER_BYTES), listen(child.stderr.take(), COMPLAINT_BYTES));
        let heard = (hear(&ears.0, deadline), hear(&ears.1, deadline));
        let (Some(out), Some(complaint), Some(status)) = (heard.0, heard.1, end(&mut child, deadline)) else {
            kill(&mut child);
            return Err(WorktreeError::TooSlow { asked, seconds: limit.as_secs() });
        };
        let out = out.map_err(|error| WorktreeError::io("the output of git cannot be read", error))?;
        if out.len() > ANSWER_BYTES {
            return Err(WorktreeError::TooMuch { asked });
        }
        let complaint = String::from_utf8_lossy(&complaint.unwrap_or_default()).trim().to_owned();
        drop(self.turn.take());
        Ok(GitOutput { status, out, complaint })
    }
}

impl GitOutput {
    pub fn failed(self, asked: String) -> WorktreeError {
        let said = match (self.complaint.is_empty(), self.out.trim_ascii().is_empty()) {
            (true, true) => format!("it gave no reason ({})", self.status),
            (true, false) => String::from_utf8_lossy(&self.out).chars().take(COMPLAINT_BYTES).collect(),
            (false, _) => self.complaint,
        };
        WorktreeError::Git { asked, said }
    }
}

/// A pathspec of exactly this path, from the top of the worktree.
pub fn just(path: &Path) -> OsString {
    pathspec(":(top,literal)", path)
}

/// A pathspec that excludes exactly this path, from the top of the worktree.
pub fn all_but(path: &Path) -> OsString {
    pathspec(":(top,exclude,literal)", path)
}

fn pathspec(magic: &str, path: &Path) -> OsString {
    let name = path.as_os_str().as_bytes();
    OsString::from_vec([magic.as_bytes(), name.strip_suffix(b"/").unwrap_or(name)].concat())
}

/// Reads to the end, so that the writer never blocks. Keeps this many bytes, and one more if there was more.
fn listen(from: Option<impl Read + Send + 'static>, most: usize) -> Receiver<io::Result<Vec<u8>>> {
    let (heard, ear) = channel();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        let result = match from {
            None => Ok(0),
            Some(mut from) => from
                .by_ref()
                .take(most as u64 + 1)
                .read_to_end(&mut kept)
                .and_then(|_| io::copy(&mut from, &mut io::sink())),
        };
        // An error means that the receiver gave up.
        heard.send(result.map(|_| kept)).ok();
    });
    ear
}

fn hear<T>(ear: &Receiver<T>, deadline: Instant) -> Option<T> {
    ear.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok()
}

fn end(child: &mut Child, deadline: Instant) -> Option<ExitStatus> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(END_PAUSE),
            Ok(None) | Err(_) => return None,
        }
    }
}

/// Kills the command and everything in its process group.
fn kill(child: &mut Child) {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(Err(error)) = group.map(|group| rustix::process::kill_process_group(group, Signal::KILL)) {
        tracing::debug!(%error, "git had already ended");
    }
    if let Err(error) = child.wait() {
        tracing::debug!(%error, "git cannot be waited for");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::own_environment;

    fn shell(script: &str) -> Git {
        let environment = environment(own_environment::entries());
        // An alias is the way to have git do something that takes long.
        Git::new(Path::new("/"), &environment).set(&[format!("alias.play=!{script}")]).arg("play")
    }

    #[test]
    fn a_git_that_hangs_is_ended_with_all_that_it_started() {
        let begun = Instant::now();
        let error = shell("sleep 600 & sleep 600").run_within(Duration::from_millis(300)).unwrap_err();
        assert!(matches!(error, WorktreeError::TooSlow { .. }), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn a_complaint_is_part_of_the_error() {
        let error = shell("echo it is broken >&2; exit 3;").text().unwrap_err();
        assert!(error.to_string().contains("it is broken"), "{error}");
    }

    #[test]
    fn nothing_of_ours_leads_git_astray() {
        let ours = ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_GLOBAL", "HOME"];
        let passed = environment(ours.iter().map(|name| ((*name).to_owned(), "x".to_owned())));
        assert_eq!(passed.keys().collect::<Vec<_>>(), ["GIT_CONFIG_GLOBAL", "HOME"]);
    }
}
