//! Looks after the project's data while the daemon runs: remembers the head of the log, and notices that `.hatchery` or the
//! database was deleted or replaced. Then nothing that the daemon records would be found again, so it records nothing more.

use crate::blocking::blocking;
use crate::engine::Handle;
use crate::file_identity::FileIdentity;
use crate::git_shield;
use crate::log_head::{Head, LogHead};
use crate::project::{Lock, Project};
use hatchery_core::EventId;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Between two looks. An append into a deleted database is refused at once; this is for a daemon that records nothing, and
/// bounds how many of the last events can be lost without being noticed.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How long an ending daemon waits for the store.
const LAST_LOOK: Duration = Duration::from_secs(2);

#[derive(Clone, Debug)]
pub struct DataGuard {
    project: Project,
    handle: Handle,
    lock: FileIdentity,
    head: LogHead,
}

/// What the last look has found.
#[derive(Clone, Debug, Default)]
struct GuardedState {
    head: EventId,
    /// The repository that the folder was shielded for.
    repository: Option<PathBuf>,
}

impl DataGuard {
    pub fn new(project: &Project, handle: Handle, lock: &Lock, head: LogHead) -> Self {
        Self { project: project.clone(), handle, lock: lock.identity(), head }
    }

    /// Returns when the data are gone, after the engine was told to record nothing more.
    pub async fn watch(self) {
        let mut seen = GuardedState::default();
        loop {
            let (guard, before) = (self.clone(), seen.clone());
            let looked = blocking(move || Ok(guard.look(before))).await;
            match looked {
                Ok(Ok(now)) => seen = now,
                Ok(Err(why)) => {
                    let guard = self.clone();
                    let saved = blocking(move || Ok(guard.save_what_is_left())).await;
                    let saved =
                        saved.ok().flatten().map(|path| format!("; a copy of the log is in {}", path.display()));
                    let message = format!("{why}{}", saved.unwrap_or_default());
                    tracing::error!(message, "nothing is recorded and supervised any more");
                    self.handle.halt(message);
                    return;
                }
                Err(error) => tracing::warn!(%error, "the data folder cannot be looked at"),
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Remembers the head if there are new events, and shields the folder if the project has become a repository. The error says what
    /// has happened to the data.
    fn look(&self, before: GuardedState) -> Result<GuardedState, String> {
        let store = self.handle.store();
        if let Some(why) = self.lock.lost().or_else(|| store.lost()) {
            return Err(why);
        }
        let head = self.handle.head();
        if head != before.head {
            self.remember(head);
        }
        let repository = match git_shield::is_raised(&self.project) {
            true => before.repository.clone(),
            false => git_shield::repository(&self.project),
        };
        // Once for each repository: git is not asked every second where it refuses.
        if repository != before.repository {
            git_shield::raise(&self.project);
        }
        Ok(GuardedState { head, repository })
    }

    /// Remembers the head of an ending daemon. A store that does not answer is not waited for.
    pub async fn remember_at_end(&self) {
        let guard = self.clone();
        let remember = blocking(move || {
            guard.remember(guard.handle.head());
            Ok(())
        });
        if tokio::time::timeout(LAST_LOOK, remember).await.is_err() {
            tracing::warn!("the store does not answer; the head of the log is not remembered");
        }
    }

    fn remember(&self, head: EventId) {
        let known = LogHead::of(self.handle.store().as_ref(), head);
        let kept =
            known.map_err(std::io::Error::other).and_then(|head| head.map_or(Ok(()), |head| self.head.remember(head)));
        if let Err(error) = kept {
            tracing::warn!(%error, "the head of the log cannot be remembered");
        }
    }

    /// Makes the folder again if it is missing and leaves two things there: how long the log was, so that no daemon begins an
    /// empty one silently, and a copy of the log where the store still has it open.
    fn save_what_is_left(&self) -> Option<PathBuf> {
        // In our own folder a copy is saved also beside a file of a database that has taken the place of ours.
        if let Err(report) = self.project.prepare()
            && self.project.foreign().is_none_or(|what| what == self.project.data())
        {
            tracing::warn!(%report, "the data folder cannot be made again");
            return None;
        }
        // What is saved must not be swept away by what has taken the log.
        git_shield::raise(&self.project);
        if let Err(error) = self.head.remember(Head { id: self.handle.head(), sum: None }) {
            tracing::warn!(%error, "the head of the log cannot be remembered");
        }
        let copy = free_name(&self.project.data());
        match self.handle.store().copy_to(&copy) {
            Ok(true) => Some(copy),
            Ok(false) => None,
            Err(error) => {
                tracing::warn!(%error, "the log cannot be copied");
                None
            }
        }
    }
}

/// No older copy is written over.
fn free_name(folder: &Path) -> PathBuf {
    let name = |number: u32| folder.join(format!("saved-log-{number}.db"));
    (1..u32::MAX).map(name).find(|path| path.symlink_metadata().is_err()).unwrap_or_else(|| name(0))
}
