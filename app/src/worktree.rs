//! Where the steps of a quest work without standing in each other's way: git worktrees, a branch each, and what becomes of them.
//!
//! ```text
//! user's checkout ── HEAD when the quest began
//!                      └── hatchery/QUEST            the trunk      .hatchery/worktrees/QUEST/trunk
//!                            ├── hatchery/QUEST-a    a step         .hatchery/worktrees/QUEST/steps/a
//!                            └── hatchery/QUEST-b    another one    .hatchery/worktrees/QUEST/steps/b
//! ```
//!
//! `isolate` begins a step at the trunk's head, `settle` commits what was done in it, `bring` takes the trunk's news into it, `merge`
//! takes it into the trunk, and `remove` ends it, with everything that is nowhere else kept under `refs/hatchery/rescue/`. All of it
//! may be done again, after a kill at any moment: what is missing is made, and what is there is never reset.
//!
//! The user's own checkout, index and branches are never touched. Knows nothing of the log: which step works where, and when, is
//! said by whoever calls. Everything here blocks.

mod by_products;
mod changes;
mod git;
mod hold;
mod join;
mod names;
mod prepare;
mod rescue;

pub use changes::{ChangeKind, ChangedFile, Changes, Comparison, FileDiff};
pub use join::Join;
pub use names::{NameError, Place, RescueName};
pub use prepare::Preparation;
pub use rescue::{Rescued, Restored};

use crate::project::Project;
use crate::report::Report;
use git::Git;
use hold::Hold;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The first git that merges without a worktree (`merge-tree --write-tree`), so that a conflict never touches the trunk.
const OLDEST_GIT: (u32, u32) = (2, 38);

/// What went wrong, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    #[error(transparent)]
    Name(#[from] NameError),
    #[error("git cannot be run for `git {asked}`: {error}; is it installed, and on the PATH of the daemon?")]
    NoGit { asked: String, error: io::Error },
    #[error("`git {asked}` failed: {said}")]
    Git { asked: String, said: String },
    #[error("`git {asked}` took longer than {seconds} seconds and was ended; it may be tried again")]
    TooSlow { asked: String, seconds: u64 },
    #[error("`git {asked}` answered more than can be read; are files missing in .gitignore?")]
    TooMuch { asked: String },
    #[error("{doing}: {error}")]
    Io { doing: String, error: io::Error },
    #[error("{0}")]
    Project(Report),
    #[error("{} is in the way: it is not a worktree of ours; move it away and try again", .0.display())]
    InTheWay(PathBuf),
    #[error("somebody else works on {what} at the moment; try again when that is done")]
    Busy { what: String },
    #[error("the conflict is not mended in {}: take their markers out, or `git add` or `git rm` those without", .files.join(", "))]
    Unmended { files: Vec<String> },
    #[error("the worktree {} is at {at}, which does not build on its branch {branch}; check that branch out in it", .top.display())]
    Strayed { top: PathBuf, at: String, branch: String },
    #[error(
        "{} holds a repository of its own, which would be lost with the worktree; move it away and try again",
        .0.display()
    )]
    Nested(PathBuf),
    #[error("the set-up command `{command}` of the worktree failed: {why}")]
    Setup { command: String, why: String },
    #[error("there is no branch {0}; it was deleted, or never begun")]
    NoBranch(String),
    #[error("{} is there already, and nothing is ever overwritten; choose another folder", .0.display())]
    Taken(PathBuf),
    #[error("nothing was rescued as `{0}`; `hatchery rescue list` shows what was")]
    NothingRescued(RescueName),
}

impl WorktreeError {
    fn io(doing: impl fmt::Display, error: io::Error) -> Self {
        Self::Io { doing: doing.to_string(), error }
    }
}

/// Why there are no worktrees for a project.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    #[error("git is not installed, or not on the PATH")]
    NoGit,
    #[error("this git is {version}, and {}.{} or later is needed", OLDEST_GIT.0, OLDEST_GIT.1)]
    OldGit { version: String },
    #[error("the project is not in a git repository")]
    NoRepository,
    #[error("the repository is a bare one")]
    Bare,
    #[error("the repository has no commit yet")]
    NoCommit,
    #[error("the last commit of the repository has nothing of the project's folder")]
    NotCommitted,
}

/// The repository that holds a project.
#[derive(Clone, Debug)]
pub struct Repository {
    project: Project,
    environment: BTreeMap<String, String>,
    /// Settings that say who commits, where the user has not said it.
    identity: Vec<String>,
    /// What all worktrees share.
    common: PathBuf,
    /// Where the project is in the repository; empty when it is all of it.
    prefix: PathBuf,
    /// Rules of the project for by-products, as in `.gitignore`.
    by_products: Vec<String>,
}

/// The worktree of a trunk or of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worktree {
    place: Place,
    top: PathBuf,
    folder: PathBuf,
}

/// What `settle` did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// The commit it made; nothing when there was nothing to commit.
    pub commit: Option<String>,
    /// What was left out: by-products, and repositories inside the worktree that are not part of it.
    pub left_out: Vec<PathBuf>,
}

impl Worktree {
    pub fn place(&self) -> &Place {
        &self.place
    }

    pub fn branch(&self) -> String {
        self.place.branch()
    }

    /// The worktree's own root.
    pub fn top(&self) -> &Path {
        &self.top
    }

    /// Where an agent works: what the project's root is in the user's checkout.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Repository {
    /// The repository of a project, or why there is none that can be used. Of the environment only what git needs is kept.
    pub fn find(
        project: &Project,
        env: impl Iterator<Item = (String, String)>,
    ) -> Result<Result<Self, Why>, WorktreeError> {
        let environment = git::environment(env);
        let git = || Git::new(project.root(), &environment);
        let version = match git().arg("version").text() {
            Err(WorktreeError::NoGit { error, .. }) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Err(Why::NoGit));
            }
            other => other?,
        };
        if version_of(&version).is_some_and(|version| version < OLDEST_GIT) {
            return Ok(Err(Why::OldGit { version: version.trim_start_matches("git version ").to_owned() }));
        }
        let asked = ["rev-parse", "--path-format=absolute", "--is-inside-work-tree", "--git-common-dir"];
        let said = git().args(asked).run()?;
        if !said.status.success() {
            return match said.complaint.contains("not a git repository") {
                true => Ok(Err(Why::NoRepository)),
                false => Err(said.failed(asked.join(" "))),
            };
        }
        let answer = String::from_utf8_lossy(&said.out).into_owned();
        let (inside, common) = answer.trim_end().split_once('\n').unwrap_or_default();
        if inside != "true" {
            return Ok(Err(Why::Bare));
        }
        if git().args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).maybe()?.is_none() {
            return Ok(Err(Why::NoCommit));
        }
        if git().args(["rev-parse", "--verify", "--quiet", "HEAD:./"]).maybe()?.is_none() {
            return Ok(Err(Why::NotCommitted));
        }
        let prefix = git().args(["rev-parse", "--show-prefix"]).text()?;
        let known = git()
            .set(&["user.useConfigOnly=true".to_owned()])
            .args(["var", "GIT_COMMITTER_IDENT"])
            .run()?
            .status
            .success();
        let identity = match known {
            true => Vec::new(),
            false => vec!["user.name=Hatchery".to_owned(), "user.email=hatchery@localhost".to_owned()],
        };
        Ok(Ok(Self {
            project: project.clone(),
            identity,
            common: PathBuf::from(common),
            prefix: PathBuf::from(prefix.trim_end_matches('/')),
            environment,
            by_products: Vec::new(),
        }))
    }

    /// The same repository, with more rules for by-products.
    pub fn with_by_products(self, by_products: &[String]) -> Self {
        Self { by_products: by_products.to_vec(), ..self }
    }

    /// Where the project is in the repository, when it is not all of it.
    pub fn within(&self) -> Option<&Path> {
        Some(self.prefix.as_path()).filter(|prefix| !prefix.as_os_str().is_empty())
    }

    /// The worktree of a place, whether it is there or not.
    pub fn at(&self, place: Place) -> Worktree {
        let top = self.worktrees().join(place.folder());
        let folder = if self.prefix.as_os_str().is_empty() { top.clone() } else { top.join(&self.prefix) };
        Worktree { place, top, folder }
    }

    /// The trunk of a quest, begun at the user's HEAD if it is not there yet.
    pub fn trunk(&self, quest: &str) -> Result<Worktree, WorktreeError> {
        self.hold(&Place::trunk(quest)?)?.trunk()
    }

    /// Whether a quest has a trunk: a branch with what of it is done.
    pub fn has_trunk(&self, quest: &str) -> Result<bool, WorktreeError> {
        let name = format!("refs/heads/{}^{{commit}}", Place::trunk(quest)?.branch());
        let found = self.git(self.project.root()).args(["rev-parse", "--verify", "--quiet", &name]).maybe()?;
        Ok(found.is_some())
    }

    /// A step's own worktree, begun at the trunk's head if it is not there yet.
    pub fn isolate(&self, quest: &str, step: &str) -> Result<Worktree, WorktreeError> {
        let place = Place::step(quest, step)?;
        self.hold(&place)?.step(place)
    }

    /// Commits everything in a worktree: changed, deleted, and new unless it is ignored. Concludes a merge whose conflicts are mended.
    pub fn settle(&self, worktree: &Worktree, message: &str) -> Result<Settled, WorktreeError> {
        self.hold(&worktree.place)?.settle(worktree, message)
    }

    /// Says that a ward has run in a worktree: what it left there is a by-product.
    pub fn ward_ended(&self, worktree: &Worktree) -> Result<(), WorktreeError> {
        self.hold(&worktree.place)?.note_left_by_command(worktree)
    }

    /// The by-products in the worktree of a step: what was left out when its work was committed.
    pub fn left_out(&self, quest: &str, step: &str) -> Result<Vec<String>, WorktreeError> {
        let worktree = self.at(Place::step(quest, step)?);
        let paths = self.hold(&worktree.place)?.left_out(&worktree)?;
        Ok(paths.iter().map(|path| path.to_string_lossy().into_owned()).collect())
    }

    /// Takes the trunk into a step. What was not settled is settled first. A conflict stays in the worktree for somebody to mend;
    /// asked again, this concludes the merge once it is mended.
    ///
    /// A file is mended when no marker is left in it. One that cannot have markers (deleted on one side, or binary) is mended when
    /// `git add` or `git rm` has said so, or when it is gone.
    pub fn bring(&self, quest: &str, step: &str) -> Result<Join, WorktreeError> {
        let place = Place::step(quest, step)?;
        let hold = self.hold(&place)?;
        let step = hold.step(place)?;
        hold.bring(&step)
    }

    /// Takes a step's commits into the trunk; what the step has not settled is not merged. A conflict leaves the trunk as it was, and the trunk
    /// is brought into the step instead.
    pub fn merge(&self, quest: &str, step: &str) -> Result<Join, WorktreeError> {
        let place = Place::step(quest, step)?;
        self.hold(&place)?.merge(place)
    }

    /// Removes a worktree, and its branch if that is a step's. What is not in the trunk is kept first: commits, changes and new files. Files
    /// that are ignored are not: what a build leaves behind is large, and can be made again.
    pub fn remove(&self, worktree: &Worktree) -> Result<Option<RescueName>, WorktreeError> {
        self.hold(&worktree.place)?.remove(worktree)
    }

    /// The branch of a quest goes that has nothing on it that the user has not.
    pub fn drop_empty_trunk(&self, quest: &str) -> Result<(), WorktreeError> {
        let place = Place::trunk(quest)?;
        self.hold(&place)?.drop_empty_trunk(&place)
    }

    /// What kept the callers of a quest apart goes, if there is no worktree of it any more.
    pub fn dissolve(&self, quest: &str) -> Result<(), WorktreeError> {
        self.hold(&Place::trunk(quest)?)?.dissolve()
    }

    /// Everything that was rescued, in the order of its names.
    pub fn rescued(&self) -> Result<Vec<Rescued>, WorktreeError> {
        rescue::list(self)
    }

    /// Brings something that was rescued back, into a worktree with a branch of its own. The folder must not be there yet.
    pub fn restore(&self, name: &RescueName, into: Option<&Path>) -> Result<Restored, WorktreeError> {
        let hold = self.hold(&name.place)?;
        rescue::restore(&hold, name, into)
    }

    fn hold(&self, place: &Place) -> Result<Hold<'_>, WorktreeError> {
        Hold::take(self, place.quest())
    }

    /// The folder of all worktrees.
    fn worktrees(&self) -> PathBuf {
        self.project.data().join("worktrees")
    }

    fn git(&self, folder: &Path) -> Git {
        Git::new(folder, &self.environment).set(&self.identity)
    }
}

/// The first two numbers of `git version 2.47.3`.
fn version_of(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.strip_prefix("git version ")?.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert_eq!(version_of("git version 2.47.3"), Some((2, 47)));
        assert_eq!(version_of("git version 2.39.5 (Apple Git-154)"), Some((2, 39)));
        assert!(version_of("git version 2.5.0").unwrap() < OLDEST_GIT);
        assert_eq!(version_of("something else"), None);
    }
}
