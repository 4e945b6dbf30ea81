//! The branches of quests and agents as the user meets them: what is on one, and taking it into the user's own branch. The merge is the only
//! operation of this module that changes the user's checkout. The user asks for it, and it begins only in a clean checkout.

use super::git::{Git, just};
use super::hold::{CHECKOUT, locked_after};
use super::{Repository, RescueName, WorktreeError, WorktreeName};
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

/// How many commits are told by their subject.
const SUBJECTS: usize = 50;
/// How many commits of the user's branch are compared with a branch: the newest that changed one of its files.
const COMPARED: usize = 50;
/// How many of the files of a branch choose these commits. A squash changes all of them.
const COMPARED_FILES: usize = 20;

/// What is on a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchContent {
    pub head: String,
    /// Where it left the user's branch.
    pub base: String,
    /// Commits that the user's branch does not have.
    pub commits: u64,
    /// The user's branch has everything, or had it: these commits, or the same content, as after a squash.
    pub merged: bool,
    /// Their subjects without merges, oldest first; at most 50.
    pub subjects: Vec<String>,
}

/// How the work of a branch is taken into the user's branch.
#[derive(Clone, Debug)]
pub enum Taking {
    /// Its commits. With a merge commit of this message where the user's branch has moved on, or always.
    Merge { message: String, always_commit: bool },
    /// One commit with this message.
    Squash { message: String },
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The user's branch has the work.
    Merged { into: String, commit: String },
    /// It had all of it before.
    Already { into: String },
    /// The checkout has changes that are not committed. Nothing was done.
    Dirty { files: Vec<String>, count: usize },
    /// The work has these files, and untracked files of the same names are in the checkout. Nothing was done.
    InTheWay { files: Vec<String> },
    /// The work changes files of Hatchery's own folder, which no repository may bring. Nothing was done.
    OwnData { files: Vec<String> },
    /// Both sides have changed these files in different ways. Nothing was done.
    Conflict { into: String, files: Vec<String> },
    /// No branch is checked out, or git is in the middle of something. Nothing was done.
    Unready { why: String },
}

/// What a merge would lead to.
enum Tried {
    /// This tree.
    Tree(String),
    /// Nothing, because both sides have changed these files.
    Conflict(Vec<String>),
}

impl Repository {
    /// What is on the branch of a quest or an agent, if it exists.
    pub fn branch_content(&self, slug: &str) -> Result<Option<BranchContent>, WorktreeError> {
        let git = || self.git(self.project.root());
        let name = format!("refs/heads/{}^{{commit}}", WorktreeName::trunk(slug)?.branch());
        let Some(head) = git().args(["rev-parse", "--verify", "--quiet", &name]).maybe()? else { return Ok(None) };
        let base = git().args(["merge-base", "HEAD", &head]).maybe()?.unwrap_or_else(|| head.clone());
        let count = git().args(["rev-list", "--count", &head, "^HEAD"]).text()?;
        let newest = format!("--max-count={SUBJECTS}");
        let log = git().args(["log", "--no-merges", "--reverse", "--format=%s", &newest, &head, "^HEAD"]).text()?;
        let subjects = log.lines().map(str::to_owned).collect();
        let merged = self.is_in_checkout(&head)?;
        Ok(Some(BranchContent { head, base, commits: count.parse().unwrap_or_default(), merged, subjects }))
    }

    /// Whether the checked-out commit or one before it has everything that another commit has.
    fn is_in_checkout(&self, head: &str) -> Result<bool, WorktreeError> {
        let git = || self.git(self.project.root());
        if git().args(["merge-base", "--is-ancestor", head, "HEAD"]).holds()? {
            return Ok(true);
        }
        let Some(base) = git().args(["merge-base", "HEAD", head]).maybe()? else { return Ok(false) };
        let changed = git().args(["diff", "--name-only", "--no-renames", "-z", &base, head]).paths()?;
        // Without changes, nothing says that the commits were taken.
        if changed.is_empty() {
            return Ok(false);
        }
        // The work was squashed into the checkout, or the same change was made there.
        if self.adds_nothing("HEAD", head)? {
            return Ok(true);
        }
        // It was, and the user has changed it since.
        let newest = format!("--max-count={COMPARED}");
        let since = ["rev-list", &newest, "HEAD", &format!("^{base}"), "--"];
        let files = changed.iter().take(COMPARED_FILES).map(|path| just(path));
        let commits = git().args(since).args(files).text()?;
        for commit in commits.lines() {
            if self.adds_nothing(commit, head)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a merge of a commit into another one would change nothing. Merge drivers are left out, because one that keeps one side, or
    /// the lines of both, would hide work that was never taken. A git before 2.41 cannot leave them out: there the answer is no.
    fn adds_nothing(&self, into: &str, head: &str) -> Result<bool, WorktreeError> {
        let git = || self.git(self.project.root());
        let no_attributes = git().args(["hash-object", "-t", "tree", "--stdin"]).text()?;
        let merge = ["-c", "core.attributesFile=/dev/null", &format!("--attr-source={no_attributes}"), "merge-tree"];
        let said = git().args(merge).args(["--write-tree", "--name-only", "--no-messages", "-z", into, head]).run()?;
        let tree = said.out.split(|byte| *byte == 0).next().unwrap_or_default();
        Ok(said.status.success() && String::from_utf8_lossy(tree).trim() == self.tree_of(into)?)
    }

    fn tree_of(&self, commit: &str) -> Result<String, WorktreeError> {
        self.git(self.project.root()).args(["rev-parse", "--verify", &format!("{commit}^{{tree}}")]).text()
    }

    /// Which of these branches the user no longer needs: no worktree uses them, and the branch that is checked out has all of their work.
    /// None if no branch is checked out, for example during a rebase.
    pub fn disposable_slugs(&self, slugs: &[String]) -> Result<BTreeSet<String>, WorktreeError> {
        let git = || self.git(self.project.root());
        if git().args(["symbolic-ref", "--quiet", "HEAD"]).maybe()?.is_none() {
            return Ok(BTreeSet::new());
        }
        let list = ["for-each-ref", "--format=%(refname:lstrip=3)%00%(worktreepath)", "refs/heads/hatchery/"];
        let branches = git().args(list).text()?;
        let unused: BTreeSet<&str> = branches.lines().filter_map(|line| line.strip_suffix('\0')).collect();
        let unused: Vec<String> = slugs.iter().filter(|slug| unused.contains(slug.as_str())).cloned().collect();
        self.merged_slugs(&unused)
    }

    /// Deletes the branch of a quest or an agent that the user no longer needs.
    pub fn dispose(&self, slug: &str) -> Result<(), WorktreeError> {
        let place = WorktreeName::trunk(slug)?;
        let hold = self.hold(&place)?;
        let deleted = self.disposable_slugs(&[slug.to_owned()]).and_then(|slugs| match slugs.is_empty() {
            true => Err(WorktreeError::NotMerged(place.branch())),
            false => hold.delete_unused_branch(&place),
        });
        hold.dissolve()?;
        deleted
    }

    /// Which of these branches are in the checkout with everything they have.
    pub fn merged_slugs(&self, slugs: &[String]) -> Result<BTreeSet<String>, WorktreeError> {
        let mut merged = BTreeSet::new();
        for slug in slugs {
            let name = format!("refs/heads/{}", WorktreeName::trunk(slug)?.branch());
            let head = self.git(self.project.root()).args(["rev-parse", "--verify", "--quiet", &name]).maybe()?;
            if head.map_or(Ok(false), |head| self.is_in_checkout(&head))? {
                merged.insert(slug.clone());
            }
        }
        Ok(merged)
    }

    /// The slugs of all branches of quests and agents. Branches of steps are not among them.
    pub fn slugs(&self) -> Result<BTreeSet<String>, WorktreeError> {
        let list = ["for-each-ref", "--format=%(refname:lstrip=3)", "refs/heads/hatchery/"];
        let names = self.git(self.project.root()).args(list).text()?;
        Ok(names.lines().filter(|name| !name.contains("--")).map(str::to_owned).collect())
    }

    /// The slugs of all quests and agents that have a folder with worktrees.
    pub fn worktree_slugs(&self) -> BTreeSet<String> {
        let folders = std::fs::read_dir(self.worktrees()).into_iter().flatten().flatten();
        folders.filter_map(|folder| folder.file_name().into_string().ok()).collect()
    }

    /// Commits what an agent has done in its worktree. Gives what was left out. Without a worktree there is nothing to commit.
    pub fn settle_agent(&self, slug: &str, message: &str) -> Result<Vec<String>, WorktreeError> {
        let worktree = self.at(WorktreeName::trunk(slug)?);
        if !worktree.top().join(".git").exists() {
            return Ok(Vec::new());
        }
        let settled = self.settle(&worktree, message)?;
        Ok(settled.left_out.iter().map(|path| path.to_string_lossy().into_owned()).collect())
    }

    /// The right to merge into the user's checkout, until the file is closed. If two merges run at once, git
    /// refuses the second one and does not say what to do. `waits` is called if another process merges.
    pub fn checkout_turn(&self, waits: impl FnOnce()) -> Result<File, WorktreeError> {
        self.prepare_folder()?;
        locked_after(&self.worktrees().join(format!("{CHECKOUT}.lock")), || "your checkout".to_owned(), waits)
    }

    /// Takes a commit of the branch `slug` into the branch that is checked out in the user's checkout. Runs the user's own hooks, because
    /// the commit is the user's. The caller has [`Repository::checkout_turn`].
    pub fn take_into_checkout(&self, slug: &str, head: &str, how: &Taking) -> Result<Taken, WorktreeError> {
        let git = || self.git(self.project.root());
        self.wait_for_git()?;
        let current = git().args(["symbolic-ref", "--quiet", "--short", "HEAD"]).maybe()?;
        let Some(into) = current else {
            return Ok(Taken::Unready { why: "no branch is checked out".to_owned() });
        };
        let own = git().args(["rev-parse", "--absolute-git-dir"]).text()?;
        let under_way = [("MERGE_HEAD", "merge"), ("CHERRY_PICK_HEAD", "cherry-pick"), ("rebase-merge", "rebase")];
        if let Some((_, what)) = under_way.iter().find(|(file, _)| Path::new(&own).join(file).exists()) {
            return Ok(Taken::Unready { why: format!("a {what} is not finished") });
        }
        let changed = git().args(["status", "--porcelain", "-z", "--no-renames", "--untracked-files=no"]).paths()?;
        if !changed.is_empty() {
            let files = changed.iter().filter_map(|entry| Some(entry.to_str()?.get(3..)?.to_owned()));
            return Ok(Taken::Dirty { count: changed.len(), files: files.take(SUBJECTS).collect() });
        }
        if git().args(["merge-base", "--is-ancestor", head, "HEAD"]).holds()? {
            return Ok(Taken::Already { into });
        }
        let tree = match self.tried("HEAD", head)? {
            Tried::Tree(tree) => tree,
            Tried::Conflict(files) => return Ok(Taken::Conflict { into, files }),
        };
        // The work was squashed into the checkout before, or the same change was made there.
        if tree == self.tree_of("HEAD")? {
            return Ok(Taken::Already { into });
        }
        let files = self.own_data(&tree)?;
        if !files.is_empty() {
            return Ok(Taken::OwnData { files });
        }
        let files = self.untracked_in_the_way(&tree)?;
        if !files.is_empty() {
            return Ok(Taken::InTheWay { files });
        }
        let before = git().args(["rev-parse", "--verify", "HEAD"]).text()?;
        match how {
            Taking::Merge { message, always_commit } => {
                let merge = ["merge", "--quiet", "--no-edit", "--no-squash", "--no-autostash", "-m", message];
                let how = if *always_commit { "--no-ff" } else { "--ff" };
                self.or_undone(self.with_hooks(git()).args(merge).args([how, head]), slug, &before, &tree)?;
            }
            Taking::Squash { message } => {
                let merge = ["merge", "--quiet", "--squash", "--no-autostash", head];
                self.or_undone(self.with_hooks(git()).args(merge), slug, &before, &tree)?;
                let commit = self.with_hooks(git()).args(["commit", "--quiet"]).arg(format!("--message={message}"));
                self.or_undone(commit, slug, &before, &tree)?;
            }
        }
        let commit = git().args(["rev-parse", "--verify", "HEAD"]).text()?;
        Ok(Taken::Merged { into, commit })
    }

    /// What a merge into a commit would lead to. Changes nothing.
    fn tried(&self, into: &str, head: &str) -> Result<Tried, WorktreeError> {
        let tree = ["merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", into, head];
        let said = self.git(self.project.root()).args(tree).run()?;
        // The tree, then the names of the files in conflict.
        let mut words = said.out.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
        let tree = words.next().unwrap_or_default().trim().to_owned();
        match said.status.code() {
            Some(0) => Ok(Tried::Tree(tree)),
            Some(1) => Ok(Tried::Conflict(words.filter(|name| !name.is_empty()).collect())),
            _ => Err(said.failed("merge-tree".to_owned())),
        }
    }

    /// The files in the checkout that are not tracked and that are where a tree adds files. Git would refuse to overwrite them; ignored
    /// ones it would overwrite.
    fn untracked_in_the_way(&self, tree: &str) -> Result<Vec<String>, WorktreeError> {
        let git = || self.git(self.project.root());
        let top = PathBuf::from(git().args(["rev-parse", "--show-toplevel"]).text()?);
        let added = ["diff", "--name-only", "-z", "--no-renames", "--diff-filter=A", "HEAD", tree];
        let added = git().args(added).paths()?;
        let mut found: Vec<&Path> = added.iter().filter_map(|path| what_is_at(&top, path)).collect();
        found.dedup();
        let mut untracked = Vec::new();
        // In parts, because a command line has a limit.
        for part in found.chunks(SUBJECTS) {
            let list = ["ls-files", "--full-name", "--others", "-z", "--"];
            untracked.extend(git().args(list).args(part.iter().map(|path| just(path))).paths()?);
        }
        Ok(untracked.iter().take(SUBJECTS).map(|path| path.to_string_lossy().into_owned()).collect())
    }

    /// The files of `.hatchery` that a tree changes, but for prompts, which are texts of the project.
    fn own_data(&self, tree: &str) -> Result<Vec<String>, WorktreeError> {
        let changed = ["diff", "--name-only", "-z", "--no-renames", "HEAD", tree];
        let own = ["--", ".hatchery", ":(exclude).hatchery/prompts"];
        let files = self.git(self.project.root()).args(changed).args(own).paths()?;
        Ok(files.into_iter().take(SUBJECTS).map(|path| path.to_string_lossy().into_owned()).collect())
    }

    /// The user's own hooks run. The last setting wins, and ours before it says that there are none.
    fn with_hooks(&self, git: Git) -> Git {
        let own = self.plain_git().args(["config", "--type=path", "--get", "core.hooksPath"]).maybe();
        let folder = own.ok().flatten().unwrap_or_else(|| self.common.join("hooks").display().to_string());
        git.set(&[format!("core.hooksPath={folder}")])
    }

    /// Git with the user's settings only.
    fn plain_git(&self) -> Git {
        Git::plain(self.project.root(), &self.environment)
    }

    /// The user has the work of an agent now: its worktree goes, and its branch if it is still at this commit. Commits that no branch of the
    /// user contains, as after a squash, and changes since are rescued first.
    pub fn clear_taken(&self, slug: &str, head: &str) -> Result<Option<RescueName>, WorktreeError> {
        let place = WorktreeName::trunk(slug)?;
        let worktree = self.at(place.clone());
        let hold = self.hold(&place)?;
        let mut kept = hold.remove(&worktree)?;
        if hold.branch_head(&place)?.as_deref() == Some(head) {
            if !hold.contains("HEAD", head)? {
                kept = Some(hold.keep_head(&worktree, head)?);
            }
            hold.delete_branch(&place)?;
        }
        // What is not empty is the user's.
        std::fs::remove_dir(self.worktrees().join(slug)).ok();
        hold.dissolve()?;
        Ok(kept)
    }
}

/// What is in the place of a file: the path itself, or a file or link where it needs a folder.
fn what_is_at<'a>(top: &Path, path: &'a Path) -> Option<&'a Path> {
    let kind = |path: &&Path| top.join(path).symlink_metadata().ok();
    let is_no_folder = |path: &&Path| kind(path).is_some_and(|found| !found.is_dir());
    path.ancestors().find(is_no_folder).or_else(|| kind(&path).map(|_| path))
}
