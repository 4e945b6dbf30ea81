//! The git worktrees in which the steps of a quest work, each on a branch of its own, so that steps do not disturb each other.
//! Everything is called after the slug of the quest, such as `add-verbose-flag-3f2a`.
//!
//! ```text
//! user's checkout ── HEAD when the quest began
//!                      └── hatchery/SLUG             the trunk      .hatchery/worktrees/SLUG/trunk
//!                            ├── hatchery/SLUG--a    a step         .hatchery/worktrees/SLUG/steps/a
//!                            └── hatchery/SLUG--b    another one    .hatchery/worktrees/SLUG/steps/b
//! ```
//!
//! An agent that works for no quest can have a worktree, too: a trunk without steps.
//!
//! `isolate` creates the worktree of a step at the trunk's head, `settle` commits the work in it, `bring` merges the trunk into it,
//! `merge` merges it into the trunk, and `remove` removes it; work that is nowhere else is first kept under `refs/hatchery/rescue/`.
//! Every operation can be repeated after a kill at any moment: it creates what is missing and never resets what exists.
//!
//! The user's checkout, index and branches are never touched. This module does not know the log: the caller decides which step works
//! where and when. All functions block.

mod branch;
mod by_products;
mod changes;
mod git;
mod hold;
mod join;
mod names;
mod prepare;
mod rescue;
mod restore;

pub use branch::{BranchContent, Taken, Taking};
pub use changes::{ChangeKind, ChangedFile, Changes, Comparison, FileDiff};
pub use hold::{ALL_WORKTREES, CHECKOUT};
pub use join::Join;
pub use names::{NameError, RescueName, WORKTREES, WorktreeName};
pub use prepare::Preparation;
pub use rescue::{Rescued, Restored};
pub use restore::KeptChanges;

use crate::project::Project;
use crate::report::Report;
use git::Git;
use hold::Hold;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The oldest git that can merge without a worktree (`merge-tree --write-tree`), which keeps conflicts out of the trunk.
const OLDEST_GIT: (u32, u32) = (2, 38);

/// Files of the project that are for Hatchery only, and are not missed in a worktree.
const OUR_FILES: [&str; 2] = ["hatchery.toml", ".hatchery/"];

/// A failed operation, with advice.
#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    #[error(transparent)]
    Name(#[from] NameError),
    #[error("git cannot be run for `git {asked}`: {error}; is it installed, and on the PATH of the daemon?")]
    NoGit { asked: String, error: io::Error },
    #[error("`git {asked}` failed: {said}")]
    Git { asked: String, said: String },
    #[error(
        "another git works in your checkout: it holds {lock}; try again when it is done. If no git runs, remove that file"
    )]
    CheckoutInUse { lock: String },
    #[error("{why}\n{}", restore::left(.kept.as_ref()))]
    Undone { why: Box<Self>, kept: Option<KeptChanges> },
    #[error(
        "{why}\nthe merge could not be undone: {kept}\n\
         `git status` shows what is left of it. When no other git runs, complete the merge with `git commit`, or keep what is yours elsewhere and \
         drop the rest with `git reset --hard`"
    )]
    HalfMerged { why: Box<Self>, kept: Box<Self> },
    #[error("`git {asked}` took longer than {seconds} seconds and was ended; it may be tried again")]
    TooSlow { asked: String, seconds: u64 },
    #[error("`git {asked}` answered more than can be read; are files missing in .gitignore?")]
    TooMuch { asked: String },
    #[error("{doing}: {error}")]
    Io { doing: String, error: io::Error },
    #[error("{0}")]
    Project(Report),
    #[error("{} exists and is not a worktree of Hatchery; move it away and try again", .0.display())]
    InTheWay(PathBuf),
    #[error("another process is working on {what}; try again when it is done")]
    Busy { what: String },
    #[error("the conflict is not resolved in {}: remove the conflict markers; for files without markers use `git add` or `git rm`", .files.join(", "))]
    Unmended { files: Vec<String> },
    #[error("the worktree {} is at {at}, which does not build on its branch {branch}; check that branch out in it", .top.display())]
    Strayed { top: PathBuf, at: String, branch: String },
    #[error(
        "{} holds a repository of its own, which would be lost with the worktree; move it away and try again",
        .0.display()
    )]
    Nested(PathBuf),
    // The command may contain a secret, so it is not repeated.
    #[error("the set-up command of the worktree (the setting `worktrees.setup`) failed: {why}")]
    Setup { why: String },
    #[error("there is no branch {0}; it was deleted, or never created")]
    NoBranch(String),
    #[error("the branch {0} has work that your branch does not have; merge it, or delete it with `git branch -D`")]
    NotMerged(String),
    #[error("{} exists already, and nothing is overwritten; choose another folder", .0.display())]
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
pub enum NoWorktrees {
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
    /// Settings with the author of commits, if the user has configured none.
    identity: Vec<String>,
    /// The git folder that all worktrees share.
    common: PathBuf,
    /// The path of the project in the repository; empty if the project is the whole repository.
    prefix: PathBuf,
    /// Rules of the project for by-products, as in `.gitignore`.
    by_products: Vec<String>,
}

/// The worktree of a trunk or of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worktree {
    place: WorktreeName,
    top: PathBuf,
    folder: PathBuf,
}

/// What `settle` did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// The new commit; none if there was nothing to commit.
    pub commit: Option<String>,
    /// What was left out: by-products, and repositories inside the worktree that are not part of it.
    pub left_out: Vec<PathBuf>,
}

impl Worktree {
    pub fn place(&self) -> &WorktreeName {
        &self.place
    }

    pub fn branch(&self) -> String {
        self.place.branch()
    }

    /// The worktree's own root.
    pub fn top(&self) -> &Path {
        &self.top
    }

    /// The folder in which an agent works. It corresponds to the project's root.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Repository {
    /// The repository of a project, or the reason why there is no usable one. Keeps only the environment variables that git needs.
    pub fn find(
        project: &Project,
        env: impl Iterator<Item = (String, String)>,
    ) -> Result<Result<Self, NoWorktrees>, WorktreeError> {
        let environment = git::environment(env);
        let git = || Git::new(project.root(), &environment);
        let version = match git().arg("version").text() {
            Err(WorktreeError::NoGit { error, .. }) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Err(NoWorktrees::NoGit));
            }
            other => other?,
        };
        if version_of(&version).is_some_and(|version| version < OLDEST_GIT) {
            return Ok(Err(NoWorktrees::OldGit { version: version.trim_start_matches("git version ").to_owned() }));
        }
        let asked = ["rev-parse", "--path-format=absolute", "--is-inside-work-tree", "--git-common-dir"];
        let said = git().args(asked).run()?;
        if !said.status.success() {
            return match said.complaint.contains("not a git repository") {
                true => Ok(Err(NoWorktrees::NoRepository)),
                false => Err(said.failed(asked.join(" "))),
            };
        }
        let answer = String::from_utf8_lossy(&said.out).into_owned();
        let (inside, common) = answer.trim_end().split_once('\n').unwrap_or_default();
        if inside != "true" {
            return Ok(Err(NoWorktrees::Bare));
        }
        if git().args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).maybe()?.is_none() {
            return Ok(Err(NoWorktrees::NoCommit));
        }
        if git().args(["rev-parse", "--verify", "--quiet", "HEAD:./"]).maybe()?.is_none() {
            return Ok(Err(NoWorktrees::NotCommitted));
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

    /// The path of the project in the repository; none if the project is the whole repository.
    pub fn within(&self) -> Option<&Path> {
        Some(self.prefix.as_path()).filter(|prefix| !prefix.as_os_str().is_empty())
    }

    /// The worktree of a place, which may not exist yet.
    pub fn at(&self, place: WorktreeName) -> Worktree {
        let top = self.worktrees().join(place.folder());
        let folder = if self.prefix.as_os_str().is_empty() { top.clone() } else { top.join(&self.prefix) };
        Worktree { place, top, folder }
    }

    /// The trunk of a quest. Creates it at the user's HEAD if it does not exist.
    pub fn trunk(&self, slug: &str) -> Result<Worktree, WorktreeError> {
        self.hold(&WorktreeName::trunk(slug)?)?.trunk()
    }

    /// A slug for a new quest or agent, after which nothing is called yet.
    pub fn free_slug(&self, request: &str, id: &[u8; 16]) -> Result<String, WorktreeError> {
        hatchery_core::slug::choose(request, id, |slug| {
            Ok(self.worktrees().join(slug).exists() || self.has_trunk(slug)?)
        })
    }

    /// The files of the user's checkout that are changed and not committed, at most so many, and how many there are. Agents in worktrees do
    /// not see these changes.
    pub fn uncommitted(&self, at_most: usize) -> Result<(Vec<String>, usize), WorktreeError> {
        let status = ["status", "--porcelain", "-z", "--no-renames", "--ignore-submodules"];
        let git = self.git(self.project.root()).env("GIT_OPTIONAL_LOCKS", Path::new("0"));
        let entries = git.args(status).paths()?;
        // `XY PATH`
        let paths = entries.iter().filter_map(|entry| Some(entry.to_str()?.get(3..)?.to_owned()));
        let paths: Vec<String> = paths.filter(|path| !OUR_FILES.iter().any(|ours| path.ends_with(ours))).collect();
        let count = paths.len();
        Ok((paths.into_iter().take(at_most).collect(), count))
    }

    /// Whether a quest has a trunk, the branch with its finished work.
    pub fn has_trunk(&self, slug: &str) -> Result<bool, WorktreeError> {
        let name = format!("refs/heads/{}^{{commit}}", WorktreeName::trunk(slug)?.branch());
        let found = self.git(self.project.root()).args(["rev-parse", "--verify", "--quiet", &name]).maybe()?;
        Ok(found.is_some())
    }

    /// The worktree of a step. Creates it at the trunk's head if it does not exist.
    pub fn isolate(&self, slug: &str, step: &str) -> Result<Worktree, WorktreeError> {
        let place = WorktreeName::step(slug, step)?;
        self.hold(&place)?.step(place)
    }

    /// Commits everything in a worktree: changed, deleted and new files, except ignored files and by-products. Completes a merge whose
    /// conflicts are resolved.
    pub fn settle(&self, worktree: &Worktree, message: &str) -> Result<Settled, WorktreeError> {
        self.hold(&worktree.place)?.settle(worktree, message)
    }

    /// Says that a ward is about to run in a worktree in which everything is committed.
    pub fn ward_begins(&self, worktree: &Worktree) -> Result<(), WorktreeError> {
        self.hold(&worktree.place)?.note_before_ward(worktree)
    }

    /// Says that a ward has run in a worktree. The branch and the tracked files are restored as they were before the ward, and what the ward
    /// left there is a by-product. Returns the restored files.
    pub fn ward_ended(&self, worktree: &Worktree) -> Result<Vec<PathBuf>, WorktreeError> {
        let hold = self.hold(&worktree.place)?;
        let restored = hold.restore_tracked(worktree)?;
        hold.note_left_by_command(worktree)?;
        Ok(restored)
    }

    /// Whether the tracked files of a worktree are as in its last commit.
    pub fn is_unchanged(&self, worktree: &Worktree) -> Result<bool, WorktreeError> {
        Ok(self.hold(&worktree.place)?.changed_files(worktree)?.is_empty())
    }

    /// Says that the ward has run in the trunk of a quest, as a trial. If the trunk `was_unchanged` before the trial, the tracked files that
    /// the ward has changed are restored and returned. Otherwise the changes may be those of the set-up command or of the user.
    pub fn trial_ended(&self, slug: &str, was_unchanged: bool) -> Result<Vec<PathBuf>, WorktreeError> {
        let trunk = self.at(WorktreeName::trunk(slug)?);
        if was_unchanged {
            return self.ward_ended(&trunk);
        }
        let hold = self.hold(&trunk.place)?;
        hold.forget_before_ward(&trunk.place)?;
        hold.note_left_by_command(&trunk)?;
        Ok(Vec::new())
    }

    /// The by-products in the worktree of a step: what was left out when its work was committed.
    pub fn left_out(&self, slug: &str, step: &str) -> Result<Vec<String>, WorktreeError> {
        let worktree = self.at(WorktreeName::step(slug, step)?);
        let paths = self.hold(&worktree.place)?.left_out(&worktree)?;
        Ok(paths.iter().map(|path| path.to_string_lossy().into_owned()).collect())
    }

    /// Merges the trunk into a step, after committing the step's work. A conflict stays in the worktree to be resolved; the next call
    /// then completes the merge.
    ///
    /// The conflict of a file is resolved when the file has no conflict markers. A file that cannot have markers (deleted on one side, or
    /// binary) is resolved by `git add` or `git rm`, or when it no longer exists.
    pub fn bring(&self, slug: &str, step: &str) -> Result<Join, WorktreeError> {
        let place = WorktreeName::step(slug, step)?;
        let hold = self.hold(&place)?;
        let step = hold.step(place)?;
        hold.bring(&step)
    }

    /// Merges a step's commits into the trunk; uncommitted work is not merged. In case of a conflict the trunk stays as it was, and is
    /// merged into the step instead.
    pub fn merge(&self, slug: &str, step: &str) -> Result<Join, WorktreeError> {
        let place = WorktreeName::step(slug, step)?;
        self.hold(&place)?.merge(place)
    }

    /// Whether a step has no commit of its own, and never had one. Uncommitted work does not count.
    pub fn is_empty_step(&self, slug: &str, step: &str) -> Result<bool, WorktreeError> {
        let place = WorktreeName::step(slug, step)?;
        self.hold(&place)?.is_empty(&place)
    }

    /// Removes a worktree, and the branch if it is a step's. Commits, changes and new files that are not in the trunk are rescued first.
    /// Ignored files and by-products are not: they are large, and a build makes them again.
    pub fn remove(&self, worktree: &Worktree) -> Result<Option<RescueName>, WorktreeError> {
        self.hold(&worktree.place)?.remove(worktree)
    }

    /// Deletes the branch of a quest if the user's HEAD contains all of it.
    pub fn drop_empty_trunk(&self, slug: &str) -> Result<(), WorktreeError> {
        let place = WorktreeName::trunk(slug)?;
        self.hold(&place)?.drop_empty_trunk(&place)
    }

    /// Removes the lock file of a quest that has no worktrees any more.
    pub fn dissolve(&self, slug: &str) -> Result<(), WorktreeError> {
        self.hold(&WorktreeName::trunk(slug)?)?.dissolve()
    }

    /// All rescued work, sorted by name.
    pub fn rescued(&self) -> Result<Vec<Rescued>, WorktreeError> {
        rescue::list(self)
    }

    /// Restores rescued work into a new worktree with a branch of its own. The folder must not exist.
    pub fn restore(&self, name: &RescueName, into: Option<&Path>) -> Result<Restored, WorktreeError> {
        let hold = self.hold(&name.place)?;
        rescue::restore(&hold, name, into)
    }

    fn hold(&self, place: &WorktreeName) -> Result<Hold<'_>, WorktreeError> {
        Hold::take(self, place.slug())
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
