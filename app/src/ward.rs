//! The ward: the command that says whether a step is good. It is run as an agent is, by a launcher that outlives the daemon and sees to its
//! time limit, in a folder of its own; so whoever asks again finds the same ward at work, or what it said.
//!
//! A ward that could not be run to its end is broken, and never green: only an exit of 0 is, and only when nobody had to end it.

mod findings;
mod guess;

pub use findings::findings;
pub use guess::{Guess, guess};

use crate::harness::clean;
use crate::launcher;
use crate::processes::{self, Pulse};
use crate::project::Project;
use crate::run_folder::{self, Cut, Ended, Launch, LaunchKind, MARK, RunFolder};
use crate::runner::watch::{Watch, Watched};
use crate::worktree::{NameError, Place};
use hatchery_core::QuestId;
use hatchery_core::outcome::Exit;
use hatchery_core::quest::StepId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often a ward is looked at without having been told to: a notice may get lost.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// The same where nothing can be watched.
const LOOK_SOON: Duration = Duration::from_secs(1);
/// How long a launcher may take to say that it is there before another one is sent.
const LAUNCH_PATIENCE: Duration = Duration::from_secs(10);
/// How long a ward that is ended may take to clean up, before it is terminated, and again before it is killed.
const GRACE: Duration = Duration::from_secs(2);
/// Between two looks at one that is being ended.
const END_PAUSE: Duration = Duration::from_millis(100);
/// The exit codes by which a shell says that there was nothing to run.
const SHELL_COULD_NOT: [i32; 2] = [126, 127];
/// How a shell says that what it ran was killed: this, and the number of the signal.
const SHELL_SIGNAL: i32 = 128;
/// The highest number of a signal.
const MAX_SIGNAL: i32 = 64;

/// What wards need beside the usual, so that they find their tools and what those have stored.
const TOOLS: [&str; 14] = [
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
    /// This program, which launches it.
    program: PathBuf,
    folder: RunFolder,
}

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// For a shell.
    pub command: String,
    /// Where the step is.
    pub folder: PathBuf,
    /// All of it: nothing is inherited.
    pub env: BTreeMap<String, String>,
    /// How long it may take, from its start, however often the daemon is started meanwhile.
    pub limit: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing was started yet, or nothing of it is known.
    NotBegun,
    Running,
    Ended(Verdict),
}

/// What a ward has said of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "verdict")]
pub enum Verdict {
    Green,
    /// It found something.
    Red {
        code: i32,
    },
    /// It could not be run to its end, so nothing is known.
    Broken {
        why: String,
    },
}

/// What a ward may know of our environment: what any program needs, where the usual tools are, and what the project lists.
pub fn environment(from: impl Iterator<Item = (String, String)>, pass: &[String]) -> BTreeMap<String, String> {
    let named: Vec<String> = TOOLS.iter().map(|name| (*name).to_owned()).chain(pass.iter().cloned()).collect();
    clean(from, &[], &named)
}

impl Ward {
    /// The ward of a step that is the `number`th.
    pub fn of(program: PathBuf, project: &Project, quest: &str, step: &str, number: u32) -> Result<Self, NameError> {
        // Names are checked before they become a path.
        let place = Place::step(quest, step)?;
        let wards = project.data().join("quests").join(place.quest()).join("wards");
        Ok(Self { program, folder: RunFolder::at(wards.join(format!("{step}-{number}"))) })
    }

    /// All that are known here, with the step that each is of and its number.
    pub fn all(program: &Path, project: &Project) -> io::Result<Vec<(QuestId, StepId, u32, Self)>> {
        let mut all = Vec::new();
        for quest in run_folder::entries(&project.data().join("quests"))? {
            let Some(id) = quest.file_name().and_then(|name| name.to_str()?.parse().ok()) else { continue };
            for path in run_folder::entries(&quest.join("wards"))? {
                let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.rsplit_once('-'));
                let known = name.and_then(|(step, number)| Some((step.parse().ok()?, number.parse().ok()?)));
                if let Some((step, number)) = known {
                    let ward = Self { program: program.to_owned(), folder: RunFolder::at(path) };
                    all.push((id, step, number, ward));
                }
            }
        }
        Ok(all)
    }

    pub fn is_held(&self) -> io::Result<bool> {
        self.folder.is_held()
    }

    /// What it said: the first and the last 4 MiB, with a line in between that says how much was left out.
    pub fn output_file(&self) -> PathBuf {
        self.folder.output()
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn output(&self) -> io::Result<String> {
        let bytes = std::fs::read(self.folder.output());
        match bytes {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            other => Ok(String::from_utf8_lossy(&other?).into_owned()),
        }
    }

    /// Starts it, unless that was done before. Needs a runtime, which collects the launcher when it ends.
    pub fn begin(&self, order: &Order) -> io::Result<()> {
        self.folder.prepare_ward()?;
        // Nobody becomes its launcher while we hold this.
        let Some(lock) = self.folder.lock()? else { return Ok(()) };
        if self.folder.started()?.is_some() || self.folder.ended()?.is_some() {
            return Ok(());
        }
        if self.folder.launch()?.is_some() {
            // A launcher that was killed between starting it and saying so left it behind.
            processes::sweep(MARK, &self.folder.mark());
        }
        self.folder.write_launch(&self.launch(order))?;
        drop(lock);
        launcher::send(&self.program, &self.folder)
    }

    /// How it stands. One whose launcher was killed is broken from now on, and nothing of it is left.
    pub fn look(&self) -> io::Result<State> {
        // In this order: a launcher takes hold before it starts anything, and says how it ended before it lets go.
        let started = self.folder.started()?;
        let held = self.folder.is_held()?;
        match (self.folder.ended()?, started) {
            (Some(ended), _) => Ok(State::Ended(verdict(&ended))),
            (None, _) if held => Ok(State::Running),
            (None, None) => Ok(State::NotBegun),
            (None, Some(started)) => {
                processes::sweep(MARK, &self.folder.mark());
                let why = match started.boot == processes::boot() {
                    true => "its launcher was killed",
                    false => "the machine went down under it",
                };
                let ended = Ended::before_it_began(Exit::Unknown, why.to_owned());
                self.folder.write_ended(&ended)?;
                Ok(State::Ended(verdict(&ended)))
            }
        }
    }

    /// Begins it if that was not done, and waits until it has ended. Only one may wait for the same ward with the same watch.
    pub async fn wait(&self, order: &Order, watch: Option<Watch>) -> io::Result<Verdict> {
        self.folder.prepare_ward()?;
        let watched = Watched::new(watch, self.folder.path());
        let mut looks = tokio::time::interval(if watched.is_watched() { LOOK_AGAIN } else { LOOK_SOON });
        let mut launched: Option<Instant> = None;
        loop {
            let ward = self.clone();
            match aside(move || ward.look()).await? {
                State::Ended(verdict) => return Ok(verdict),
                State::NotBegun if launched.is_none_or(|at| at.elapsed() >= LAUNCH_PATIENCE) => {
                    let (ward, order) = (self.clone(), order.clone());
                    aside(move || ward.begin(&order)).await?;
                    launched = Some(Instant::now());
                }
                State::NotBegun | State::Running => {}
            }
            let started = self.folder.started()?;
            let pulse = started.as_ref().and_then(|started| Pulse::of(&started.launcher));
            if started.is_some() && pulse.is_none() && !self.folder.is_held()? {
                continue;
            }
            tokio::select! {
                () = watched.changed() => {}
                _ = looks.tick() => {}
                () = stopped(pulse.as_ref()) => {}
            }
        }
    }

    /// Ends it, with everything that it has started. What is left of it is seen by looking.
    pub fn stop(&self) -> io::Result<()> {
        self.folder.prepare_ward()?;
        if let Some(_lock) = self.folder.lock()? {
            // Nobody launches it while we hold the lock, and nobody will once its end is written.
            return match self.folder.started()?.is_none() && self.folder.ended()?.is_none() {
                true => {
                    let why = "it was stopped before it began".to_owned();
                    self.folder.write_ended(&Ended::before_it_began(Exit::NotStarted, why))
                }
                false => Ok(()),
            };
        }
        let told = self.folder.orders()?;
        if told.iter().any(|order| matches!(order, run_folder::Order::Stop { .. })) {
            // Whoever wrote it may have been killed before the bell was rung.
            self.folder.ring();
            return Ok(());
        }
        self.folder.tell(&[run_folder::Order::Stop { grace_ms: millis(GRACE) }])
    }

    /// Ends it, and waits until nothing of it is left.
    pub async fn end(&self) -> io::Result<()> {
        loop {
            let ward = self.clone();
            let running = aside(move || {
                ward.stop()?;
                Ok(ward.look()? == State::Running)
            });
            if !running.await? {
                return Ok(());
            }
            tokio::time::sleep(END_PAUSE).await;
        }
    }

    fn launch(&self, order: &Order) -> Launch {
        let mut env = order.env.clone();
        env.insert(MARK.into(), self.folder.mark());
        Launch {
            kind: LaunchKind::Ward { limit_ms: millis(order.limit), grace_ms: millis(GRACE) },
            program: PathBuf::from("/bin/sh"),
            args: vec!["-c".to_owned(), order.command.clone()],
            env,
            folder: order.folder.clone(),
        }
    }
}

fn verdict(ended: &Ended) -> Verdict {
    let broken = |why: String| Verdict::Broken { why };
    match (&ended.problem, ended.cut, ended.exit) {
        (Some(problem), ..) => broken(problem.clone()),
        (None, Some(Cut::OutOfTime), _) => broken("it was not done in the time that it has".into()),
        (None, Some(Cut::Stopped), _) => broken("it was stopped".into()),
        (None, None, Exit::Code(0)) => Verdict::Green,
        (None, None, Exit::Code(code)) if SHELL_COULD_NOT.contains(&code) => {
            broken(format!("the shell found nothing that it could run (exit code {code})"))
        }
        (None, None, Exit::Code(code)) if (1..=MAX_SIGNAL).contains(&(code - SHELL_SIGNAL)) => {
            broken(format!("it was killed by signal {}", code - SHELL_SIGNAL))
        }
        (None, None, Exit::Code(code)) => Verdict::Red { code },
        (None, None, Exit::Signal(signal)) => broken(format!("it was killed by signal {signal}")),
        (None, None, Exit::NotStarted) => broken("it was not started".into()),
        (None, None, Exit::LostWithMachine) => broken("the machine went down under it".into()),
        (None, None, Exit::Unknown) => broken("nobody saw how it ended".into()),
    }
}

/// Away from the runtime's own threads: those that a killed launcher left take a moment to end.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

async fn stopped(pulse: Option<&Pulse>) {
    match pulse {
        Some(pulse) => pulse.stopped().await,
        None => std::future::pending().await,
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_ward_that_ended_well_by_itself_is_green() {
        let of = |exit, cut, problem: Option<&str>| verdict(&Ended { exit, cut, problem: problem.map(str::to_owned) });
        assert_eq!(of(Exit::Code(0), None, None), Verdict::Green);
        assert_eq!(of(Exit::Code(1), None, None), Verdict::Red { code: 1 });
        assert_eq!(of(Exit::Code(255), None, None), Verdict::Red { code: 255 });
        let broken = [
            of(Exit::Code(0), Some(Cut::OutOfTime), None),
            of(Exit::Code(0), Some(Cut::Stopped), None),
            of(Exit::Code(0), None, Some("no such folder")),
            of(Exit::Code(126), None, None),
            of(Exit::Code(127), None, None),
            of(Exit::Code(137), None, None),
            of(Exit::Signal(9), None, None),
            of(Exit::NotStarted, None, None),
            of(Exit::LostWithMachine, None, None),
            of(Exit::Unknown, None, None),
        ];
        for verdict in broken {
            assert!(matches!(verdict, Verdict::Broken { .. }), "{verdict:?}");
        }
    }
}
