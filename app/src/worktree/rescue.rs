//! Rescued work: commits under `refs/hatchery/rescue/SLUG/STEP/NUMBER`, made from worktrees before they are removed. Hatchery never
//! deletes them by itself. They do not include ignored files and by-products.

use super::git::all_but;
use super::hold::Hold;
use super::{Repository, RescueName, Worktree, WorktreeError, WorktreeName};
use hatchery_core::Timestamp;
use std::path::{Path, PathBuf};

const REFS: &str = "refs/hatchery/rescue";
/// The trailer in the commit message with the number of changed files.
const FILES: &str = "Hatchery-Files";

/// Rescued work.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
pub struct Rescued {
    /// The name for `hatchery rescue restore`.
    pub name: String,
    /// The slug of the quest or agent.
    pub quest: String,
    /// None for the trunk.
    pub step: Option<String>,
    pub commit: String,
    pub at: Timestamp,
    /// How many files differ from the commit at which the step began.
    pub files: u64,
    pub subject: String,
}

/// Restored work.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
pub struct Restored {
    #[schema(value_type = String)]
    pub folder: PathBuf,
    pub branch: String,
    pub commit: String,
}

impl Hold<'_> {
    pub fn remove(&self, worktree: &Worktree) -> Result<Option<RescueName>, WorktreeError> {
        let is_there = worktree.top.join(".git").exists();
        let kept = match self.is_husk(worktree)? {
            true => None,
            false if is_there => self.keep_all(worktree)?,
            false if worktree.top.symlink_metadata().is_ok() => {
                return Err(WorktreeError::InTheWay(worktree.top.clone()));
            }
            false => match self.branch_head(&worktree.place)? {
                Some(head) => self.keep_commits(worktree, &head)?,
                None => None,
            },
        };
        self.mark_going(worktree)?;
        self.discard(worktree)?;
        self.forget_before_ward(&worktree.place)?;
        if worktree.place.step_id().is_some() {
            self.drop_branch(&worktree.place)?;
        }
        Ok(kept)
    }

    /// Rescues everything in a worktree that is not in the trunk.
    fn keep_all(&self, worktree: &Worktree) -> Result<Option<RescueName>, WorktreeError> {
        self.clear_locks(worktree)?;
        if let Some(folder) = self.repositories_inside(worktree)?.into_iter().next() {
            return Err(WorktreeError::Nested(worktree.top.join(folder)));
        }
        let head = self.inside(worktree)?.args(["rev-parse", "--verify", "HEAD^{commit}"]).text()?;
        let tree = snapshot(self, worktree)?;
        let is_clean = tree == self.tree_of(&head)?;
        let branch = self.branch_head(&worktree.place)?;
        match is_clean && self.is_safe(worktree, &head)? && self.all_safe(worktree, branch.as_deref())? {
            true => Ok(None),
            false => keep(self, worktree, &tree).map(Some),
        }
    }

    /// The same for a branch without a worktree.
    fn keep_commits(&self, worktree: &Worktree, head: &str) -> Result<Option<RescueName>, WorktreeError> {
        match self.is_safe(worktree, head)? {
            true => Ok(None),
            false => {
                let tree = self.tree_of(head)?;
                self.keep_as(worktree, &tree, &[head.to_owned()]).map(Some)
            }
        }
    }

    fn all_safe(&self, worktree: &Worktree, head: Option<&str>) -> Result<bool, WorktreeError> {
        head.map_or(Ok(true), |head| self.is_safe(worktree, head))
    }

    /// Whether a commit stays reachable without the worktree's branch: in the trunk, or in the user's HEAD.
    fn is_safe(&self, worktree: &Worktree, commit: &str) -> Result<bool, WorktreeError> {
        let trunk = self.branch_head(&WorktreeName::trunk(worktree.place.slug())?)?;
        match trunk {
            Some(trunk) => self.contains(&trunk, commit),
            None => self.contains("HEAD", commit),
        }
    }

    /// Repositories inside a worktree, including submodules. Their commits exist nowhere else.
    fn repositories_inside(&self, worktree: &Worktree) -> Result<Vec<PathBuf>, WorktreeError> {
        let mut found = self.nested(worktree)?;
        // `MODE OBJECT STAGE\tPATH`; 160000 is the mode of a submodule.
        for entry in self.inside(worktree)?.args(["ls-files", "--stage", "-z"]).paths()? {
            let text = entry.to_string_lossy();
            let path = text.strip_prefix("160000 ").and_then(|entry| entry.split_once('\t')).map(|(_, path)| path);
            if let Some(path) = path
                && worktree.top.join(path).join(".git").exists()
            {
                found.push(PathBuf::from(path));
            }
        }
        Ok(found)
    }

    /// Rescues a tree with these parents. Gives the last rescue of the place if that is the same.
    pub(super) fn keep_as(
        &self,
        worktree: &Worktree,
        tree: &str,
        parents: &[String],
    ) -> Result<RescueName, WorktreeError> {
        let place = &worktree.place;
        let kept = refs_of(self.repository, &format!("{REFS}/{}/", place.slug()))?;
        let of_place: Vec<&Rescue> = kept.iter().filter(|rescue| rescue.name.place == *place).collect();
        // The removal may be a repetition of one that was killed after the rescue.
        if let Some(last) = of_place.iter().max_by_key(|rescue| rescue.name.number)
            && last.tree == tree
            && last.parents == parents.join(" ")
        {
            return Ok(last.name.clone());
        }
        let number = of_place.iter().map(|rescue| rescue.name.number).max().unwrap_or_default() + 1;
        let name = RescueName { place: place.clone(), number };
        let trunk = self.branch_head(&WorktreeName::trunk(place.slug())?)?.unwrap_or_else(|| "HEAD".to_owned());
        let first = parents.first().map(String::as_str).unwrap_or_default();
        let base = self.outside()?.args(["merge-base", &trunk, first]).maybe()?.unwrap_or_else(|| first.to_owned());
        let changed = self.outside()?.args(["diff", "--name-only", "--no-renames", "-z", &base, tree]).paths()?.len();
        let subject = self.outside()?.args(["log", "-1", "--format=%s", first]).text()?;
        let message =
            format!("Rescue {} of {}\n\nIt was built on: {subject}\n\n{FILES}: {changed}", place.words(), place.slug());
        let parents = parents.iter().flat_map(|parent| ["-p", parent]);
        let commit = self.outside()?.args(["commit-tree", tree]).args(parents).args(["-m", &message]).text()?;
        // The empty old value makes git refuse if the name is taken.
        self.outside()?.args(["update-ref", &reference(&name), &commit, ""]).text()?;
        Ok(name)
    }

    /// Deletes a branch if the trunk or a rescue contains all of it.
    fn drop_branch(&self, place: &WorktreeName) -> Result<(), WorktreeError> {
        let Some(head) = self.branch_head(place)? else { return Ok(()) };
        let kept = refs_of(self.repository, &format!("{REFS}/{}/", place.slug()))?;
        let mut safe = self.is_safe(&self.repository.at(place.clone()), &head)?;
        for rescue in kept.iter().filter(|rescue| rescue.name.place == *place) {
            safe = safe || self.contains(&rescue.commit, &head)?;
        }
        if safe { self.delete_branch(place) } else { Ok(()) }
    }

    /// Deletes a trunk if the user's HEAD contains all of it.
    pub fn drop_empty_trunk(&self, place: &WorktreeName) -> Result<(), WorktreeError> {
        let Some(head) = self.branch_head(place)? else { return Ok(()) };
        match self.contains("HEAD", &head)? {
            true => self.delete_branch(place),
            false => Ok(()),
        }
    }

    /// Rescues the commits of a branch that is about to go.
    pub fn keep_head(&self, worktree: &Worktree, head: &str) -> Result<RescueName, WorktreeError> {
        let tree = self.tree_of(head)?;
        self.keep_as(worktree, &tree, &[head.to_owned()])
    }

    /// Deletes a branch. One that is checked out somewhere stays.
    pub fn delete_branch(&self, place: &WorktreeName) -> Result<(), WorktreeError> {
        match self.delete_unused_branch(place) {
            Err(error @ WorktreeError::Git { .. }) => {
                tracing::warn!(branch = place.branch(), %error, "the branch stays");
                Ok(())
            }
            deleted => deleted,
        }
    }

    /// Deletes a branch. Fails if it is checked out somewhere.
    pub fn delete_unused_branch(&self, place: &WorktreeName) -> Result<(), WorktreeError> {
        let commit = self.head_of(place)?;
        self.among_all()?.args(["branch", "--quiet", "-D", &place.branch()]).text()?;
        // The way back for a user who misses it.
        tracing::info!(branch = place.branch(), commit, "a branch was deleted");
        Ok(())
    }

    fn tree_of(&self, commit: &str) -> Result<String, WorktreeError> {
        self.outside()?.args(["rev-parse", "--verify", &format!("{commit}^{{tree}}")]).text()
    }
}

/// Rescues a tree, and all commits that it is based on.
pub fn keep(hold: &Hold<'_>, worktree: &Worktree, tree: &str) -> Result<RescueName, WorktreeError> {
    let head = hold.inside(worktree)?.args(["rev-parse", "--verify", "HEAD^{commit}"]).text()?;
    let branch = hold.branch_head(&worktree.place)?;
    let mut parents = vec![head.clone()];
    // An agent may have switched to a branch of its own.
    if let Some(branch) = branch
        && !hold.contains(&head, &branch)?
    {
        parents.push(branch);
    }
    hold.keep_as(worktree, tree, &parents)
}

/// Writes everything in a worktree as a tree, without changing its index.
pub fn snapshot(hold: &Hold<'_>, worktree: &Worktree) -> Result<String, WorktreeError> {
    let nested = hold.nested(worktree)?;
    let rules = hold.without_by_products(worktree)?;
    with_index_copy(&hold.git_folder(worktree)?, |index| {
        let git = || Ok::<_, WorktreeError>(hold.inside(worktree)?.env("GIT_INDEX_FILE", index));
        git()?.set(&[rules]).args(["add", "--all", "--"]).args(nested.iter().map(|path| all_but(path))).text()?;
        git()?.arg("write-tree").text()
    })
}

/// Passes a copy of the index in git's own folder of a worktree, which knows which files are unchanged, so that git need not read them all. The
/// copy has a fixed name: what a killed process has left of it is replaced, and goes with the worktree.
pub(super) fn with_index_copy<T>(
    own: &Path,
    work: impl FnOnce(&Path) -> Result<T, WorktreeError>,
) -> Result<T, WorktreeError> {
    let failed = |error| WorktreeError::io("there is no room for a temporary index", error);
    let index = own.join("hatchery-index");
    let remove = || {
        [&index, &own.join("hatchery-index.lock")].into_iter().try_for_each(|file| match std::fs::remove_file(file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failed(error)),
            _ => Ok(()),
        })
    };
    remove()?;
    match std::fs::copy(own.join("index"), &index) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let done = work(&index);
    remove()?;
    done
}

pub fn list(repository: &Repository) -> Result<Vec<Rescued>, WorktreeError> {
    let mut found = refs_of(repository, &format!("{REFS}/"))?;
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found
        .into_iter()
        .map(|rescue| Rescued {
            name: rescue.name.to_string(),
            quest: rescue.name.place.slug().to_owned(),
            step: rescue.name.place.step_id().map(str::to_owned),
            commit: rescue.commit,
            at: rescue.at,
            files: rescue.files,
            subject: rescue.subject,
        })
        .collect())
}

pub fn restore(hold: &Hold<'_>, name: &RescueName, into: Option<&Path>) -> Result<Restored, WorktreeError> {
    let found = hold.outside()?.args(["rev-parse", "--verify", "--quiet", &reference(name)]).maybe()?;
    let commit = found.ok_or_else(|| WorktreeError::NothingRescued(name.clone()))?;
    let plain = name.to_string().replace('/', "-");
    let folder = match into {
        Some(folder) => std::path::absolute(folder)
            .map_err(|error| WorktreeError::io(format_args!("{} cannot be used", folder.display()), error))?,
        None => hold.repository.project.data().join("rescued").join(&plain),
    };
    if folder.symlink_metadata().is_ok() {
        return Err(WorktreeError::Taken(folder));
    }
    let branch = free_branch(hold, &plain)?;
    hold.among_all()?.args(["worktree", "add", "--quiet", "-b", &branch]).arg(&folder).arg(&commit).text()?;
    Ok(Restored { folder, branch, commit })
}

/// Beside the branches of quests, so that it can never be one of them.
fn free_branch(hold: &Hold<'_>, plain: &str) -> Result<String, WorktreeError> {
    let mut branch = format!("hatchery-rescued/{plain}");
    let mut count = 1;
    loop {
        let name = format!("refs/heads/{branch}");
        if hold.outside()?.args(["rev-parse", "--verify", "--quiet", &name]).maybe()?.is_none() {
            return Ok(branch);
        }
        count += 1;
        branch = format!("hatchery-rescued/{plain}.{count}");
    }
}

/// A rescue as git has it.
struct Rescue {
    name: RescueName,
    commit: String,
    tree: String,
    parents: String,
    at: Timestamp,
    files: u64,
    subject: String,
}

fn refs_of(repository: &Repository, prefix: &str) -> Result<Vec<Rescue>, WorktreeError> {
    let fields = ["refname", "objectname", "tree", "parent", "committerdate:unix", "subject"];
    let trailer = format!("%(contents:trailers:key={FILES},valueonly,separator=)");
    let format = fields.map(|field| format!("%({field})")).join("%00") + "%00" + &trailer;
    let root = repository.project.root();
    let text = repository.git(root).args(["for-each-ref", &format!("--format={format}"), prefix]).text()?;
    // Refs that other programs have put there are not listed.
    Ok(text.lines().filter_map(read).collect())
}

fn read(line: &str) -> Option<Rescue> {
    let mut fields = line.split('\0');
    let mut next = || fields.next();
    let name = next()?.strip_prefix(REFS)?.strip_prefix('/')?.parse().ok()?;
    let (commit, tree, parents) = (next()?.to_owned(), next()?.to_owned(), next()?.to_owned());
    let at = Timestamp(next()?.parse::<i64>().ok()?.saturating_mul(1_000));
    let subject = next()?.to_owned();
    let files = next()?.trim().parse().unwrap_or_default();
    Some(Rescue { name, commit, tree, parents, at, files, subject })
}

fn reference(name: &RescueName) -> String {
    format!("{REFS}/{name}")
}
