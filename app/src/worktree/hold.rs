//! Exclusive access to the worktrees of a quest: creates them and commits the work in them. All of this happens under the quest's lock.
//! Each git command inherits the lock, so the next daemon waits for a git that outlived a killed daemon.

use super::by_products::UNTRACKED;
use super::git::{Git, all_but};
use super::{Repository, Settled, Worktree, WorktreeError, WorktreeName};
use crate::processes;
use crate::project::flock;
use rustix::fs::FlockOperation;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The name of the lock of the list of all worktrees.
pub const ALL_WORKTREES: &str = "all";
/// The name of the lock of the user's checkout, while work is merged into it.
pub const CHECKOUT: &str = "checkout";
/// How long to wait for the lock: longer than the time limit of one git command.
const HOLD_PATIENCE: Duration = Duration::from_secs(600);
/// The pause between two attempts to take a lock.
const HOLD_PAUSE: Duration = Duration::from_millis(10);
/// How long an agent's own git may take to finish before we give up for now.
const AGENT_PATIENCE: Duration = Duration::from_secs(10);
/// Where running processes cannot be listed, a lock file of this age counts as left behind by a killed git.
const STALE: Duration = Duration::from_secs(600);
/// The longest commit message. It is passed as an argument.
const MESSAGE_CHARS: usize = 16_000;

/// The reason that git gives for its lock on a worktree that it is still creating.
const HALF_MADE: &str = "initializing";
/// Our reason for the lock on a worktree that is being removed; its work has been rescued.
const HALF_REMOVED: &str = "hatchery removes it";

/// Exclusive access to the worktrees of a quest, while it lives.
#[derive(Debug)]
pub struct Hold<'a> {
    pub repository: &'a Repository,
    slug: String,
    lock: File,
}

/// Git's entry for a worktree.
struct GitEntry {
    /// The reason of its lock, if it is locked.
    locked: Option<String>,
}

impl<'a> Hold<'a> {
    pub fn take(repository: &'a Repository, slug: &str) -> Result<Self, WorktreeError> {
        repository.prepare_folder()?;
        let lock = locked(&repository.worktrees().join(format!("{slug}.lock")), || format!("the worktrees of {slug}"))?;
        Ok(Self { repository, slug: slug.to_owned(), lock })
    }

    /// Removes the lock file, if the quest has no worktrees left. A process that waits for the lock creates a new file.
    pub fn dissolve(self) -> Result<(), WorktreeError> {
        let folder = self.repository.worktrees();
        let lock = folder.join(format!("{}.lock", self.slug));
        match folder.join(&self.slug).exists() {
            true => Ok(()),
            false => std::fs::remove_file(&lock)
                .map_err(|error| WorktreeError::io(format_args!("{} cannot be removed", lock.display()), error)),
        }
    }

    pub fn trunk(&self) -> Result<Worktree, WorktreeError> {
        let place = WorktreeName::trunk(&self.slug)?;
        let head = || self.outside()?.args(["rev-parse", "--verify", "HEAD^{commit}"]).text();
        self.ensure(place, head)
    }

    pub fn step(&self, place: WorktreeName) -> Result<Worktree, WorktreeError> {
        let trunk = self.trunk()?;
        self.ensure(place, || self.head_of(&trunk.place))
    }

    pub fn settle(&self, worktree: &Worktree, message: &str) -> Result<Settled, WorktreeError> {
        self.clear_locks(worktree)?;
        self.put_on_branch(worktree)?;
        let merging = self.is_merging(worktree)?;
        if merging {
            let files = self.unmended(worktree)?;
            if !files.is_empty() {
                return Err(WorktreeError::Unmended { files });
            }
        }
        let nested = self.nested(worktree)?;
        let rules = self.without_by_products(worktree)?;
        let add = self.inside(worktree)?.set(&[rules]).args(["add", "--all", "--"]);
        add.args(nested.iter().map(|path| all_but(path))).text()?;
        let left_out = self.left_out(worktree)?;
        let same = self.inside(worktree)?.args(["diff", "--cached", "--quiet", "--no-ext-diff"]).holds()?;
        if same && !merging {
            return Ok(Settled { commit: None, left_out });
        }
        let kind = ["commit", "--quiet", "--no-verify", "--cleanup=whitespace", "--allow-empty-message"];
        self.inside(worktree)?.args(kind).arg(format!("--message={}", message_of(message))).text()?;
        Ok(Settled { commit: Some(self.head_of(&worktree.place)?), left_out })
    }

    /// Deletes a worktree and git's entry for it.
    pub fn discard(&self, worktree: &Worktree) -> Result<(), WorktreeError> {
        match std::fs::remove_dir_all(&worktree.top) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                let doing = format!("{} cannot be removed; remove it by hand", worktree.top.display());
                return Err(WorktreeError::io(doing, error));
            }
            _ => {}
        }
        if self.entry(&worktree.top)?.is_some() {
            // The second --force is for a locked worktree.
            let remove = ["worktree", "remove", "--force", "--force"];
            self.among_all()?.args(remove).arg(&worktree.top).text()?;
        }
        Ok(())
    }

    /// Marks a worktree as being removed. Its work is safe, so an interrupted removal need not look at it again.
    pub fn mark_going(&self, worktree: &Worktree) -> Result<(), WorktreeError> {
        if self.entry(&worktree.top)?.is_some_and(|entry| entry.locked.is_none()) {
            let reason = format!("--reason={HALF_REMOVED}");
            self.among_all()?.args(["worktree", "lock", &reason]).arg(&worktree.top).text()?;
        }
        Ok(())
    }

    /// Whether a worktree was only partly created or partly removed, so that nothing in it counts.
    pub fn is_husk(&self, worktree: &Worktree) -> Result<bool, WorktreeError> {
        Ok(self.entry(&worktree.top)?.is_some_and(|entry| entry.is_husk()))
    }

    /// Git in one of our worktrees.
    pub fn inside(&self, worktree: &Worktree) -> Result<Git, WorktreeError> {
        self.repository.git(&worktree.top).below(&self.repository.worktrees()).holding(&self.lock)
    }

    /// Git in the user's checkout, for commands that change neither its files nor its index.
    pub fn outside(&self) -> Result<Git, WorktreeError> {
        self.repository.git(self.repository.project.root()).holding(&self.lock)
    }

    /// The same, for commands that read all worktrees of the repository. Git fails if it meets a worktree that another quest is creating or
    /// removing, so only one such command runs at a time.
    pub fn among_all(&self) -> Result<Git, WorktreeError> {
        let turn = locked(&self.repository.worktrees().join(format!("{ALL_WORKTREES}.lock")), || {
            "the list of worktrees".to_owned()
        })?;
        Ok(self.outside()?.in_turn(turn))
    }

    /// The commit of one of our branches.
    pub fn head_of(&self, place: &WorktreeName) -> Result<String, WorktreeError> {
        self.branch_head(place)?.ok_or_else(|| WorktreeError::NoBranch(place.branch()))
    }

    pub fn branch_head(&self, place: &WorktreeName) -> Result<Option<String>, WorktreeError> {
        let name = format!("refs/heads/{}^{{commit}}", place.branch());
        self.outside()?.args(["rev-parse", "--verify", "--quiet", &name]).maybe()
    }

    /// Whether `part` is `whole` or one of its ancestors.
    pub fn contains(&self, whole: &str, part: &str) -> Result<bool, WorktreeError> {
        self.outside()?.args(["merge-base", "--is-ancestor", part, whole]).holds()
    }

    /// Waits for git commands of agents in a worktree, and removes the lock files of killed ones.
    pub fn clear_locks(&self, worktree: &Worktree) -> Result<(), WorktreeError> {
        let own = self.git_folder(worktree)?;
        let branch = self.repository.common.join("refs/heads").join(format!("{}.lock", worktree.branch()));
        let deadline = Instant::now() + AGENT_PATIENCE;
        for lock in [own.join("index.lock"), own.join("HEAD.lock"), branch] {
            while lock.exists() && is_at_work(&worktree.top, &lock) {
                if Instant::now() > deadline {
                    return Err(WorktreeError::Busy { what: worktree.top.display().to_string() });
                }
                std::thread::sleep(HOLD_PAUSE);
            }
            match std::fs::remove_file(&lock) {
                Ok(()) => tracing::warn!(lock = %lock.display(), "was left by a killed git"),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(WorktreeError::io(format_args!("{} cannot be removed", lock.display()), error));
                }
            }
        }
        Ok(())
    }

    /// Git's own folder for a worktree.
    pub fn git_folder(&self, worktree: &Worktree) -> Result<PathBuf, WorktreeError> {
        Ok(PathBuf::from(self.inside(worktree)?.args(["rev-parse", "--absolute-git-dir"]).text()?))
    }

    pub fn is_merging(&self, worktree: &Worktree) -> Result<bool, WorktreeError> {
        Ok(self.git_folder(worktree)?.join("MERGE_HEAD").exists())
    }

    /// Repositories inside a worktree. They are not committed: the commit would only have their hash, which no other clone can resolve.
    pub fn nested(&self, worktree: &Worktree) -> Result<Vec<PathBuf>, WorktreeError> {
        let rules = self.without_by_products(worktree)?;
        let others = self.inside(worktree)?.set(&[rules]).args(UNTRACKED).paths()?;
        Ok(others.into_iter().filter(|path| path.as_os_str().as_encoded_bytes().ends_with(b"/")).collect())
    }

    fn ensure(
        &self,
        place: WorktreeName,
        start: impl FnOnce() -> Result<String, WorktreeError>,
    ) -> Result<Worktree, WorktreeError> {
        let worktree = self.repository.at(place);
        if !self.is_whole(&worktree)? {
            if self.branch_head(&worktree.place)?.is_none() {
                let name = format!("refs/heads/{}", worktree.branch());
                // The empty old value makes git refuse if the branch exists.
                self.outside()?.args(["update-ref", &name, &start()?, ""]).text()?;
            }
            self.among_all()?.args(["worktree", "add", "--quiet"]).arg(&worktree.top).arg(worktree.branch()).text()?;
        }
        // An agent may have removed the project's folder. The next agent needs it.
        std::fs::create_dir_all(&worktree.folder)
            .map_err(|error| WorktreeError::io(format_args!("{} cannot be made", worktree.folder.display()), error))?;
        Ok(worktree)
    }

    /// Whether a worktree exists. Removes what a killed git left of one.
    fn is_whole(&self, worktree: &Worktree) -> Result<bool, WorktreeError> {
        let top = &worktree.top;
        let is_there = top.symlink_metadata().is_ok();
        match self.entry(top)? {
            Some(entry) if entry.is_husk() || !is_there => {
                self.discard(worktree)?;
                Ok(false)
            }
            Some(_) if top.join(".git").exists() => Ok(true),
            None if !is_there => Ok(false),
            None if is_empty(top) => Ok(false),
            // Its link to the repository is missing, or points to where the repository was before it was moved.
            Some(_) | None => {
                self.among_all()?.args(["worktree", "repair"]).arg(top).run()?;
                match self.entry(top)?.is_some() && top.join(".git").exists() {
                    true => Ok(true),
                    false => Err(WorktreeError::InTheWay(top.clone())),
                }
            }
        }
    }

    fn entry(&self, top: &Path) -> Result<Option<GitEntry>, WorktreeError> {
        let list = self.among_all()?.args(["worktree", "list", "--porcelain", "-z"]).succeed()?.out;
        let text = String::from_utf8_lossy(&list);
        let ours = text.split("\0\0").find(|entry| {
            entry.split('\0').find_map(|line| line.strip_prefix("worktree ")).is_some_and(|path| Path::new(path) == top)
        });
        Ok(ours.map(|entry| {
            let locked = entry.split('\0').find_map(|line| line.strip_prefix("locked"));
            GitEntry { locked: locked.map(|reason| reason.trim().to_owned()) }
        }))
    }

    /// An agent may have checked out a branch of its own, or a commit. If it descends from our branch, our branch is moved to it.
    fn put_on_branch(&self, worktree: &Worktree) -> Result<(), WorktreeError> {
        let name = format!("refs/heads/{}", worktree.branch());
        let at = self.inside(worktree)?.args(["symbolic-ref", "--quiet", "HEAD"]).maybe()?;
        if at.as_ref() == Some(&name) {
            return Ok(());
        }
        let head = self.inside(worktree)?.args(["rev-parse", "--verify", "HEAD^{commit}"]).text()?;
        let own = self.git_folder(worktree)?;
        let rebasing = own.join("rebase-merge").exists() || own.join("rebase-apply").exists();
        let before = self.head_of(&worktree.place)?;
        if rebasing || !self.contains(&head, &before)? {
            let at = match rebasing {
                true => "a rebase that is not finished".to_owned(),
                false => at.unwrap_or(head),
            };
            return Err(WorktreeError::Strayed { top: worktree.top.clone(), at, branch: worktree.branch() });
        }
        self.outside()?.args(["update-ref", &name, &head, &before]).text()?;
        self.inside(worktree)?.args(["symbolic-ref", "HEAD", &name]).text().map(drop)
    }
}

impl Repository {
    /// Makes the folder of all worktrees.
    pub(super) fn prepare_folder(&self) -> Result<(), WorktreeError> {
        self.project.prepare().map_err(WorktreeError::Project)?;
        let folder = self.worktrees();
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        made.map_err(|error| WorktreeError::io(format_args!("{} cannot be made", folder.display()), error))
    }
}

/// Takes a lock, and waits while another process holds it.
pub(super) fn locked(path: &Path, what: impl Fn() -> String) -> Result<File, WorktreeError> {
    locked_after(path, what, || {})
}

/// The same. Calls `waits` once if another process holds the lock.
pub(super) fn locked_after(
    path: &Path,
    what: impl Fn() -> String,
    waits: impl FnOnce(),
) -> Result<File, WorktreeError> {
    let failed = |error| WorktreeError::io(format_args!("{} cannot be locked", path.display()), error);
    let open = || OpenOptions::new().create(true).truncate(false).read(true).write(true).mode(0o600).open(path);
    let mut lock = open().map_err(failed)?;
    let deadline = Instant::now() + HOLD_PATIENCE;
    let mut waits = Some(waits);
    loop {
        let is_ours = flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(failed)?;
        match is_ours && is_at(&lock, path).map_err(failed)? {
            true => return Ok(lock),
            // The file was removed by its last holder, and may exist again.
            false if is_ours => lock = open().map_err(failed)?,
            false if Instant::now() > deadline => return Err(WorktreeError::Busy { what: what() }),
            false => {
                if let Some(waits) = waits.take() {
                    waits();
                }
                std::thread::sleep(HOLD_PAUSE);
            }
        }
    }
}

/// Whether an open file is still the one at its path.
fn is_at(file: &File, path: &Path) -> std::io::Result<bool> {
    let own = file.metadata()?;
    match path.metadata() {
        Ok(found) => Ok((found.dev(), found.ino()) == (own.dev(), own.ino())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

impl GitEntry {
    fn is_husk(&self) -> bool {
        matches!(self.locked.as_deref(), Some(HALF_MADE | HALF_REMOVED))
    }
}

/// A commit message that fits into an argument.
fn message_of(text: &str) -> String {
    text.chars().filter(|char| *char != '\0').take(MESSAGE_CHARS).collect()
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}

/// Whether a git process works in the folder. Git changes to the top of its worktree first, so its current folder shows this.
fn is_at_work(folder: &Path, lock: &Path) -> bool {
    match processes::staying_in(folder) {
        Some(programs) => programs.iter().any(|name| name == "git" || name.starts_with("git-")),
        None => {
            let written = lock.metadata().and_then(|meta| meta.modified()).ok();
            written.and_then(|at| at.elapsed().ok()).is_none_or(|age| age < STALE)
        }
    }
}
