//! Restores tracked files as they are in a commit: in a worktree after a ward, and in the user's checkout after a merge that was refused. In
//! the checkout, changes that would be lost are rescued first.

use super::git::{Git, just};
use super::hold::Hold;
use super::rescue::with_index_copy;
use super::{Repository, RescueName, Worktree, WorktreeError, WorktreeName};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long another git may work in the user's checkout before we give up.
const GIT_PATIENCE: Duration = Duration::from_secs(10);
/// The pause between two looks at its lock.
const GIT_PAUSE: Duration = Duration::from_millis(20);

/// How many files an error names.
const MAX_NAMED: usize = 20;

/// What was changed while a merge was under way, in files of the merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptChanges {
    pub files: Vec<PathBuf>,
    /// Where these versions are.
    pub name: RescueName,
}

impl Hold<'_> {
    /// Notes the commit of a worktree before a ward runs in it. A ref survives a daemon that is killed during the ward.
    pub(super) fn note_before_ward(&self, worktree: &Worktree) -> Result<(), WorktreeError> {
        let head = self.head_of(&worktree.place)?;
        self.outside()?.args(["update-ref", &before_ward(&worktree.place), &head]).text().map(drop)
    }

    /// Removes the note of [`Self::note_before_ward`].
    pub(super) fn forget_before_ward(&self, place: &WorktreeName) -> Result<(), WorktreeError> {
        self.outside()?.args(["update-ref", "-d", &before_ward(place)]).text().map(drop)
    }

    /// Restores the branch and the tracked files of a worktree as they were before the ward, or else the files as in the last commit. Returns the files that differed from this
    /// commit.
    pub(super) fn restore_tracked(&self, worktree: &Worktree) -> Result<Vec<PathBuf>, WorktreeError> {
        let was_there = worktree.top.symlink_metadata().is_ok();
        let noted = format!("{}^{{commit}}", before_ward(&worktree.place));
        let before = self.outside()?.args(["rev-parse", "--verify", "--quiet", &noted]).maybe()?;
        // The ward may have committed, or have moved or deleted the branch.
        if let Some(before) = &before {
            self.outside()?.args(["update-ref", &format!("refs/heads/{}", worktree.branch()), before]).text()?;
        }
        // The worktree may have been deleted, or its link to the repository.
        match worktree.place.step_id() {
            Some(_) => self.step(worktree.place.clone())?,
            None => self.trunk()?,
        };
        if !was_there {
            self.forget_before_ward(&worktree.place)?;
            return self.inside(worktree)?.args(["ls-files", "-z"]).paths();
        }
        self.clear_locks(worktree)?;
        self.inside(worktree)?.args(["symbolic-ref", "HEAD", &format!("refs/heads/{}", worktree.branch())]).text()?;
        let changed = self.changed_files(worktree)?;
        // Also without a changed file: the ward may have begun a merge.
        self.inside(worktree)?.args(["reset", "--quiet", "--hard", "HEAD"]).text()?;
        self.forget_before_ward(&worktree.place)?;
        Ok(changed)
    }

    /// The tracked files of a worktree that differ from its last commit.
    pub(super) fn changed_files(&self, worktree: &Worktree) -> Result<Vec<PathBuf>, WorktreeError> {
        let differ =
            ["diff", "--name-only", "--no-renames", "--no-ext-diff", "--ignore-submodules=dirty", "-z", "HEAD"];
        self.inside(worktree)?.args(differ).paths()
    }
}

impl Repository {
    /// A part of a merge must succeed. If it does not, for example because a hook refuses, the merge is undone.
    pub(super) fn or_undone(&self, part: Git, slug: &str, before: &str, merged: &str) -> Result<(), WorktreeError> {
        let Err(error) = part.succeed() else { return Ok(()) };
        let why = Box::new(in_words(error));
        Err(match self.undo(slug, before, merged) {
            Ok(kept) => WorktreeError::Undone { why, kept },
            // The lock kept git from merging, so there is nothing to undo.
            Err(locked @ WorktreeError::CheckoutInUse { .. })
                if matches!(*why, WorktreeError::CheckoutInUse { .. }) =>
            {
                locked
            }
            Err(error) => WorktreeError::HalfMerged { why, kept: Box::new(error) },
        })
    }

    /// Waits until no other git changes the user's checkout.
    pub(super) fn wait_for_git(&self) -> Result<(), WorktreeError> {
        let lock =
            self.git(self.project.root()).args(["rev-parse", "--path-format=absolute", "--git-path", "index.lock"]);
        let lock = PathBuf::from(lock.text()?);
        let deadline = Instant::now() + GIT_PATIENCE;
        while lock.exists() {
            if Instant::now() > deadline {
                return Err(WorktreeError::CheckoutInUse { lock: lock.display().to_string() });
            }
            std::thread::sleep(GIT_PAUSE);
        }
        Ok(())
    }

    /// Leads the checkout from a merged tree back to the commit before it, as a switch of branches would: what the user or a hook has changed
    /// meanwhile stays. Only in files of the merge it cannot stay; there it is rescued.
    fn undo(&self, slug: &str, before: &str, merged: &str) -> Result<Option<KeptChanges>, WorktreeError> {
        let git = || self.git(self.project.root());
        self.wait_for_git()?;
        // A commit that was made meanwhile has completed the merge.
        if git().args(["rev-parse", "--verify", "HEAD"]).text()? != before {
            return Ok(None);
        }
        // Otherwise a file that was only touched would count as changed. Files that are changed are no error here.
        git().args(["update-index", "-q", "--refresh"]).run()?;
        let back = ["read-tree", "-m", "-u", merged, before];
        let kept = match git().args(back).run()?.status.success() {
            true => None,
            false => {
                let kept = self.keep_changes(slug, before, merged)?;
                git().args(back).succeed()?;
                kept
            }
        };
        // Both leave the index and the files as they are: the one forgets the merge, the other the message of a squash.
        git().args(["merge", "--quit"]).succeed()?;
        git().args(["reset", "--quiet", "--soft", "HEAD"]).succeed()?;
        Ok(kept)
    }

    /// Rescues the checkout's versions of the files of a merge, where they are not the merged ones, and puts the merged ones in their place.
    fn keep_changes(&self, slug: &str, before: &str, merged: &str) -> Result<Option<KeptChanges>, WorktreeError> {
        let git = || self.git(self.project.root());
        let between = |one: &str, other: &str| {
            git().args(["diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", one, other]).paths()
        };
        let now = self.tracked_as_tree()?;
        let of_merge: BTreeSet<PathBuf> = between(before, merged)?.into_iter().collect();
        let files: Vec<PathBuf> = between(merged, &now)?.into_iter().filter(|file| of_merge.contains(file)).collect();
        if files.is_empty() {
            return Ok(None);
        }
        let place = WorktreeName::trunk(slug)?;
        let worktree = self.at(place.clone());
        let name = self.hold(&place)?.keep_as(&worktree, &now, &[before.to_owned()])?;
        let restore = ["restore", "--quiet", "--staged", "--worktree", &format!("--source={merged}"), "--"];
        git().args(restore).args(files.iter().map(|file| just(file))).succeed()?;
        Ok(Some(KeptChanges { files, name }))
    }

    /// The tracked files of the checkout as they are on the disk, as a tree. Does not change the index.
    fn tracked_as_tree(&self) -> Result<String, WorktreeError> {
        let git = || self.git(self.project.root());
        let own = git().args(["rev-parse", "--absolute-git-dir"]).text()?;
        with_index_copy(Path::new(&own), |index| {
            git().env("GIT_INDEX_FILE", index).args(["add", "--update", "--", ":/"]).text()?;
            git().env("GIT_INDEX_FILE", index).arg("write-tree").text()
        })
    }
}

/// The ref with the commit of a worktree before its ward began.
fn before_ward(place: &WorktreeName) -> String {
    format!("refs/hatchery/before-ward/{}/{}", place.slug(), place.step_id().unwrap_or("_trunk"))
}

/// The words of git about a lock of another git do not say what a user can do.
fn in_words(error: WorktreeError) -> WorktreeError {
    match error {
        WorktreeError::Git { said, .. } if said.contains("index.lock") => {
            let lock = said.split('\'').find(|word| word.ends_with("index.lock")).unwrap_or("index.lock");
            WorktreeError::CheckoutInUse { lock: lock.to_owned() }
        }
        other => other,
    }
}

/// What a merge that was undone has left, in words.
pub(super) fn left(kept: Option<&KeptChanges>) -> String {
    match kept {
        None => "the merge was undone; what was changed meanwhile is kept".to_owned(),
        Some(KeptChanges { files, name }) => {
            let named: Vec<String> = files.iter().take(MAX_NAMED).map(|file| file.display().to_string()).collect();
            let more = match files.len() - named.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!(
                "the merge was undone, and your checkout is as before it; what was changed meanwhile in {}{more} is kept: `hatchery rescue restore {name}`",
                named.join(", ")
            )
        }
    }
}
