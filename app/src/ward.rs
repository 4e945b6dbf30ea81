//! The ward: the command that says whether a step is good. It runs like an agent, under a launcher that outlives the daemon and
//! enforces its time limit, in a folder of its own. So a daemon that asks again finds the same ward running, or its result.
//!
//! A ward that could not be run to its end is broken, never green: only exit code 0 is green, and only if the launcher did not stop it.

mod findings;
mod guess;
mod unable;

pub use findings::findings;
pub use guess::{Guess, guess};
pub use unable::{unable, untested};

use crate::blocking::blocking;
use crate::folder_watch::FolderWatcher;
use crate::harness::clean;
use crate::held_process::{HeldProcess, LAUNCH_TIMEOUT, ProcessState, ProcessWatch, millis};
use crate::no_links;
use crate::processes;
use crate::project::Project;
use crate::run_folder::{self, ATTEMPT_TAG, Ended, Launch, LaunchKind, RunFolder, StoppedBy};
use crate::worktree::{NameError, WorktreeName};
use hatchery_core::QuestId;
use hatchery_core::outcome::Exit;
use hatchery_core::quest::StepId;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a ward that is interrupted may take to clean up before it is terminated, and again before it is killed.
const STOP_GRACE: Duration = Duration::from_secs(2);
/// Between two looks at a ward that is being stopped.
const STOP_PAUSE: Duration = Duration::from_millis(100);
/// How often a ward is started whose launcher is gone before it has recorded the process.
const MAX_LAUNCHES: u32 = 3;
/// The exit codes by which a shell says that it could not run the command.
const SHELL_COULD_NOT_RUN: [i32; 2] = [126, 127];
/// A shell adds the number of the signal to this when its command was killed.
const SHELL_SIGNAL_BASE: i32 = 128;
/// The highest signal number.
const MAX_SIGNAL: i32 = 64;

/// The variables by which common build tools find their caches and settings.
const TOOL_VARIABLES: [&str; 14] = [
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOCACHE",
    "GOMODCACHE",
    "GOFLAGS",
    "JAVA_HOME",
    "NODE_PATH",
    "NVM_DIR",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "CC",
];

/// One run of a ward.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ward {
    process: HeldProcess,
}

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WardJob {
    /// For `/bin/sh -c`.
    pub command: String,
    /// Where the step is.
    pub folder: PathBuf,
    /// The whole environment: nothing is inherited.
    pub env: BTreeMap<String, String>,
    /// How long it may take, from its start, however often the daemon is restarted meanwhile.
    pub limit: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WardStatus {
    NotStarted,
    Running,
    Ended(WardResult),
}

/// How a ward ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WardResult {
    Green,
    /// It found something wrong.
    Red {
        code: i32,
    },
    /// It was not run to its end, so nothing is known about the step.
    Broken {
        why: String,
    },
}

/// The folder of the wards, in the folder of their quest.
pub const WARDS: &str = "wards";

/// The environment of a ward: what any program needs, where the usual tools are, and what the project lists.
pub fn environment(from: impl Iterator<Item = (String, String)>, pass: &[String]) -> BTreeMap<String, String> {
    let named: Vec<String> = TOOL_VARIABLES.iter().map(|name| (*name).to_owned()).chain(pass.iter().cloned()).collect();
    clean(from, &[], &named)
}

impl Ward {
    /// The `number`th ward of a step.
    pub fn of(program: PathBuf, project: &Project, quest: &str, step: &str, number: u32) -> Result<Self, NameError> {
        // Names are checked before they become a path.
        let place = WorktreeName::step(quest, step)?;
        let wards = project.data().join("quests").join(place.slug()).join(WARDS);
        let folder = RunFolder::at(wards.join(format!("{step}-{number}")));
        Ok(Self { process: HeldProcess::new(program, folder) })
    }

    /// The ward of a quest that is tried before the quest begins. Its number is that of no ward of a step.
    pub fn of_trial(program: PathBuf, project: &Project, quest: QuestId) -> Result<Self, NameError> {
        Self::of(program, project, &quest.to_string(), "trial", 0)
    }

    /// Removes the folder of a ward that has ended, so that the ward can be run again.
    pub fn forget(&self) -> io::Result<()> {
        match std::fs::remove_dir_all(self.path()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// All wards that have a folder, each with its step and number.
    pub fn all(program: &Path, project: &Project) -> io::Result<Vec<(QuestId, StepId, u32, Self)>> {
        let mut all = Vec::new();
        for quest in run_folder::subfolders(&project.data().join("quests"))? {
            let Some(id) = quest.file_name().and_then(|name| name.to_str()?.parse().ok()) else { continue };
            for path in run_folder::subfolders(&quest.join(WARDS))? {
                let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.rsplit_once('-'));
                let known = name.and_then(|(step, number)| Some((step.parse().ok()?, number.parse().ok()?)));
                if let Some((step, number)) = known {
                    let process = HeldProcess::new(program.to_owned(), RunFolder::at(path));
                    all.push((id, step, number, Self { process }));
                }
            }
        }
        Ok(all)
    }

    /// Whether a launcher holds it, as far as can be seen.
    pub fn may_be_held(&self) -> bool {
        self.folder().may_be_held()
    }

    /// Its output: the first and the last 4 MiB, with a line in between that says how much was left out.
    pub fn output_file(&self) -> PathBuf {
        self.folder().output()
    }

    pub fn path(&self) -> &Path {
        self.folder().path()
    }

    pub fn output(&self) -> io::Result<String> {
        let bytes = no_links::read(&self.output_file());
        match bytes {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            other => Ok(String::from_utf8_lossy(&other?).into_owned()),
        }
    }

    /// Starts it, unless that was done before. Needs a runtime, which reaps the launcher when it ends.
    pub fn start(&self, job: &WardJob) -> io::Result<()> {
        self.folder().create_for_ward()?;
        self.process.launch(|| Ok(Ok(self.describe(job))))
    }

    /// Its status. If its launcher was killed, everything that is left of the ward is killed too, and it is broken.
    pub fn status(&self) -> io::Result<WardStatus> {
        match self.process.state()? {
            ProcessState::NotStarted => Ok(WardStatus::NotStarted),
            ProcessState::Launching | ProcessState::Running(_) => Ok(WardStatus::Running),
            ProcessState::Exited { ended, .. } => Ok(WardStatus::Ended(result(&ended))),
            ProcessState::LauncherKilled(started) => {
                self.process.kill_leftovers();
                let why = match started.boot == processes::boot() {
                    true => "its launcher was killed",
                    false => "the machine went down while it ran",
                };
                let ended = Ended::without_process(Exit::Unknown, why.to_owned());
                self.folder().write_ended(&ended)?;
                Ok(WardStatus::Ended(result(&ended)))
            }
        }
    }

    /// Starts it if that was not done before, and waits until it has ended. Two tasks must not wait for the same ward with one
    /// watcher.
    pub async fn wait(&self, job: &WardJob, watcher: Option<FolderWatcher>) -> io::Result<WardResult> {
        let ward = self.clone();
        let mut watch = blocking(move || {
            ward.folder().create_for_ward()?;
            Ok(ProcessWatch::new(watcher, ward.path()))
        })
        .await?;
        let mut launched: Option<Instant> = None;
        let mut launches = 0;
        loop {
            let (ward, job) = (self.clone(), job.clone());
            let looks_for_launcher = watch.follows_nobody();
            let may_launch = launched.is_none_or(|at| at.elapsed() >= LAUNCH_TIMEOUT);
            let status = blocking(move || {
                let status = ward.status()?;
                if status == WardStatus::NotStarted && may_launch {
                    // A ward that killed its launcher or deleted its folder may still run.
                    if launches > 0 {
                        ward.process.kill_leftovers();
                    }
                    if launches == MAX_LAUNCHES {
                        let why = "its launcher was killed, or its folder deleted, each time it was started".to_owned();
                        return Ok((WardStatus::Ended(WardResult::Broken { why }), None));
                    }
                    ward.start(&job)?;
                }
                let started = ward.folder().read_started()?.filter(|_| looks_for_launcher);
                Ok((status, started.map(|started| ward.process.confirmed(started))))
            });
            let (status, started) = status.await?;
            let is_running = status == WardStatus::Running;
            match (status, started) {
                (WardStatus::Ended(result), _) => return Ok(result),
                (WardStatus::NotStarted, _) if may_launch => {
                    launched = Some(Instant::now());
                    launches += 1;
                }
                (WardStatus::NotStarted, _) => {}
                (WardStatus::Running, started) => {
                    started.iter().for_each(|started| watch.follow_launcher(started));
                }
            }
            // A folder that was deleted gives no notice.
            let patience = if is_running { Duration::MAX } else { LAUNCH_TIMEOUT };
            drop(tokio::time::timeout(patience, watch.wake()).await);
        }
    }

    /// Stops it, with everything that it has started, or makes sure that it never starts. Returns before it is gone.
    pub fn stop(&self) -> io::Result<()> {
        self.folder().create_for_ward()?;
        self.process.stop(STOP_GRACE)
    }

    /// Stops it, and waits until nothing of it is left.
    pub async fn stop_and_wait(&self) -> io::Result<()> {
        loop {
            let ward = self.clone();
            let running = blocking(move || {
                ward.stop()?;
                Ok(ward.status()? == WardStatus::Running)
            });
            if !running.await? {
                return Ok(());
            }
            tokio::time::sleep(STOP_PAUSE).await;
        }
    }

    fn folder(&self) -> &RunFolder {
        self.process.folder()
    }

    fn describe(&self, job: &WardJob) -> Launch {
        let mut env = job.env.clone();
        env.insert(ATTEMPT_TAG.into(), self.folder().tag());
        Launch {
            kind: LaunchKind::Ward { limit_ms: millis(job.limit), grace_ms: millis(STOP_GRACE) },
            program: PathBuf::from("/bin/sh"),
            args: vec!["-c".to_owned(), job.command.clone()],
            env,
            folder: job.folder.clone(),
            first_lines: Vec::new(),
            answers_awaited: Vec::new(),
        }
    }
}

fn result(ended: &Ended) -> WardResult {
    let broken = |why: String| WardResult::Broken { why };
    match (&ended.problem, ended.stopped_by, ended.exit) {
        (Some(problem), ..) => broken(problem.clone()),
        (None, Some(StoppedBy::TimeLimit), _) => broken("it did not end within its time limit".into()),
        (None, Some(StoppedBy::Request), _) => broken("it was stopped".into()),
        (None, None, Exit::Code(0)) => WardResult::Green,
        (None, None, Exit::Code(code)) if SHELL_COULD_NOT_RUN.contains(&code) => {
            broken(format!("the shell could not run the command (exit code {code})"))
        }
        (None, None, Exit::Code(code)) if (1..=MAX_SIGNAL).contains(&(code - SHELL_SIGNAL_BASE)) => {
            broken(format!("it was killed by signal {}", code - SHELL_SIGNAL_BASE))
        }
        (None, None, Exit::Code(code)) => WardResult::Red { code },
        (None, None, Exit::Signal(signal)) => broken(format!("it was killed by signal {signal}")),
        (None, None, Exit::NotStarted) => broken("it was not started".into()),
        (None, None, Exit::LostWithMachine) => broken("the machine went down while it ran".into()),
        (None, None, Exit::Unknown) => broken("how it ended is not known".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_ward_that_exited_with_0_by_itself_is_green() {
        let of = |exit, stopped_by, problem: Option<&str>| {
            result(&Ended { exit, stopped_by, passing: false, problem: problem.map(str::to_owned) })
        };
        assert_eq!(of(Exit::Code(0), None, None), WardResult::Green);
        assert_eq!(of(Exit::Code(1), None, None), WardResult::Red { code: 1 });
        assert_eq!(of(Exit::Code(255), None, None), WardResult::Red { code: 255 });
        let broken = [
            of(Exit::Code(0), Some(StoppedBy::TimeLimit), None),
            of(Exit::Code(0), Some(StoppedBy::Request), None),
            of(Exit::Code(0), None, Some("no such folder")),
            of(Exit::Code(126), None, None),
            of(Exit::Code(127), None, None),
            of(Exit::Code(137), None, None),
            of(Exit::Signal(9), None, None),
            of(Exit::NotStarted, None, None),
            of(Exit::LostWithMachine, None, None),
            of(Exit::Unknown, None, None),
        ];
        for result in broken {
            assert!(matches!(result, WardResult::Broken { .. }), "{result:?}");
        }
    }
}
