//! Merges the commits of a step and of the trunk. The trunk only ever moves forward to a finished merge, so a conflict never reaches
//! it.

use super::hold::Hold;
use super::{Worktree, WorktreeError, WorktreeName, rescue};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The result of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Join {
    /// The target contains the source now.
    Clean { changed: bool },
    /// These files of the step conflict. The binary ones among them cannot be edited: one version must be chosen.
    Conflict { files: Vec<String>, binary: Vec<String> },
}

impl Hold<'_> {
    pub fn bring(&self, step: &Worktree) -> Result<Join, WorktreeError> {
        let before = self.head_of(&step.place)?;
        let words = match self.is_merging(step)? {
            true => "Bring the trunk into",
            false => "Work so far on",
        };
        match self.settle(step, &format!("{words} {}", step.place.words())) {
            Err(WorktreeError::Unmended { files }) => return Ok(conflict(step, files)),
            other => other?,
        };
        let trunk = WorktreeName::trunk(step.place.slug())?;
        let news = self.head_of(&trunk)?;
        if self.contains(&self.head_of(&step.place)?, &news)? {
            // It is changed if a merge was completed just now.
            return Ok(Join::Clean { changed: words.starts_with("Bring") && self.head_of(&step.place)? != before });
        }
        let kind = ["merge", "--quiet", "--ff", "--no-squash", "--commit", "--no-edit", "--no-verify", "--no-stat"];
        let message = format!("Bring the trunk into {}", step.place.words());
        let said = self
            .inside(step)?
            .args(kind)
            .args(["--no-autostash", "--no-verify-signatures", "-m", &message, &news])
            .run()?;
        if said.status.success() {
            return Ok(Join::Clean { changed: true });
        }
        let files = match self.is_merging(step)? {
            true => self.unmended(step)?,
            false => return Err(said.failed("merge".to_owned())),
        };
        match files.is_empty() {
            // A merge driver of the user has resolved everything without saying so.
            true => self.settle(step, &message).map(|_| Join::Clean { changed: true }),
            false => Ok(conflict(step, files)),
        }
    }

    /// Whether a step has no commit of its own, and never had one. What was merged is the second parent of a commit of the trunk, so a
    /// step whose head is among the first parents has nothing.
    pub fn is_empty(&self, place: &WorktreeName) -> Result<bool, WorktreeError> {
        let trunk = self.head_of(&WorktreeName::trunk(place.slug())?)?;
        let head = self.head_of(place)?;
        if !self.contains(&trunk, &head)? {
            return Ok(false);
        }
        let between = format!("{head}..{trunk}");
        let newer = self.outside()?.args(["rev-list", "--first-parent", "--count", &between]).text()?;
        let at = format!("{trunk}~{}", newer.trim());
        Ok(self.outside()?.args(["rev-parse", "--verify", "--quiet", &at]).text()?.trim() == head)
    }

    pub fn merge(&self, place: WorktreeName) -> Result<Join, WorktreeError> {
        let trunk = self.trunk()?;
        self.land_again(&trunk)?;
        self.settle(&trunk, "Changes that were found in the trunk")?;
        let base = self.head_of(&trunk.place)?;
        let news = self.head_of(&place)?;
        if self.contains(&base, &news)? {
            return Ok(Join::Clean { changed: false });
        }
        if let Some(tree) = self.merged_tree(&base, &news)? {
            self.land_merge(&trunk, &place, &tree, [&base, &news])?;
            return Ok(Join::Clean { changed: true });
        }
        let step = self.step(place)?;
        match self.bring(&step)? {
            conflict @ Join::Conflict { .. } => Ok(conflict),
            // Uncommitted work of the step has resolved the conflict. The step contains the trunk now.
            Join::Clean { .. } => {
                let news = self.head_of(&step.place)?;
                let tree = self.outside()?.args(["rev-parse", "--verify", &format!("{news}^{{tree}}")]).text()?;
                self.land_merge(&trunk, &step.place, &tree, [&base, &news])?;
                Ok(Join::Clean { changed: true })
            }
        }
    }

    /// The files of a merge whose conflicts are not resolved.
    pub fn unmended(&self, worktree: &Worktree) -> Result<Vec<String>, WorktreeError> {
        let mut files: BTreeSet<PathBuf> = self.without_markers(worktree)?;
        // A line that was in one of the two versions before is not a marker of this merge, whatever it looks like.
        let ours = self.marked_lines(worktree, "HEAD")?;
        let theirs = self.marked_lines(worktree, "MERGE_HEAD")?;
        for (file, lines) in ours {
            let both = theirs.get(&file).map(|theirs| lines.intersection(theirs).copied().collect::<BTreeSet<_>>());
            if both.is_some_and(|lines| has_marker(&worktree.top.join(&file), &lines)) {
                files.insert(file);
            }
        }
        Ok(files.into_iter().map(|file| file.to_string_lossy().into_owned()).collect())
    }

    /// The conflicting files that cannot have markers, and still exist.
    fn without_markers(&self, worktree: &Worktree) -> Result<BTreeSet<PathBuf>, WorktreeError> {
        let entries = self.inside(worktree)?.args(["ls-files", "--unmerged", "-z"]).paths()?;
        // `MODE OBJECT STAGE\tPATH`, with a stage for each side that has the file.
        let mut sides: BTreeMap<PathBuf, Vec<String>> = BTreeMap::new();
        for entry in &entries {
            let text = entry.to_string_lossy();
            let (about, file) = text.split_once('\t').unwrap_or_default();
            let stage = about.rsplit(' ').next().unwrap_or_default();
            if stage != "1" {
                sides.entry(PathBuf::from(file)).or_default().push(about.to_owned());
            }
        }
        let waits = |file: &Path, sides: &[String]| {
            let path = worktree.top.join(file);
            let is_file = path.symlink_metadata().is_ok_and(|meta| meta.is_file());
            path.symlink_metadata().is_ok() && (sides.len() < 2 || !is_file || !is_text(&path))
        };
        Ok(sides.into_iter().filter(|(file, sides)| waits(file, sides)).map(|(file, _)| file).collect())
    }

    /// For each file, the lines that look like markers and are not in the other commit.
    fn marked_lines(
        &self,
        worktree: &Worktree,
        other: &str,
    ) -> Result<BTreeMap<PathBuf, BTreeSet<usize>>, WorktreeError> {
        let check = ["diff", "--check", "--no-ext-diff", "--no-color", "--ignore-submodules", other];
        // It fails if it finds markers. There is no other reason to fail.
        let said = self.inside(worktree)?.set(&["core.quotePath=false".to_owned()]).args(check).run()?;
        let mut found: BTreeMap<PathBuf, BTreeSet<usize>> = BTreeMap::new();
        for line in String::from_utf8_lossy(&said.out).lines() {
            let place = line.strip_suffix(": leftover conflict marker").and_then(|place| place.rsplit_once(':'));
            if let Some((file, number)) = place
                && let Ok(number) = number.parse()
            {
                found.entry(PathBuf::from(file)).or_default().insert(number);
            }
        }
        Ok(found)
    }

    /// The tree of a merge, or none if there is a conflict.
    fn merged_tree(&self, base: &str, news: &str) -> Result<Option<String>, WorktreeError> {
        let said = self.outside()?.args(["merge-tree", "--write-tree", "--no-messages", base, news]).run()?;
        match said.status.code() {
            Some(0) => Ok(Some(String::from_utf8_lossy(&said.out).trim().to_owned())),
            Some(1) => Ok(None),
            _ => Err(said.failed("merge-tree".to_owned())),
        }
    }

    /// Always a merge commit, so that the trunk shows the order of the steps.
    fn land_merge(
        &self,
        trunk: &Worktree,
        step: &WorktreeName,
        tree: &str,
        [base, news]: [&String; 2],
    ) -> Result<(), WorktreeError> {
        let message = format!("Merge {}", step.words());
        let commit = self.outside()?.args(["commit-tree", tree, "-p", base, "-p", news, "-m", &message]).text()?;
        self.outside()?.args(["update-ref", &landing(step), &commit]).text()?;
        self.land(trunk, &commit)
    }

    fn land(&self, trunk: &Worktree, commit: &str) -> Result<(), WorktreeError> {
        let kind = ["merge", "--quiet", "--ff-only", "--no-stat", "--no-autostash", "--no-verify-signatures", commit];
        self.inside(trunk)?.args(kind).text()?;
        self.outside()?.args(["update-ref", "-d", &landing(&trunk.place)]).text().map(drop)
    }

    /// Finishes a merge whose git was killed while it wrote the trunk's files. They were all committed when it began, and where they are neither
    /// the old ones nor the new ones, they are kept.
    fn land_again(&self, trunk: &Worktree) -> Result<(), WorktreeError> {
        let name = landing(&trunk.place);
        let Some(commit) = self.outside()?.args(["rev-parse", "--verify", "--quiet", &name]).maybe()? else {
            return Ok(());
        };
        self.clear_locks(trunk)?;
        let head = self.head_of(&trunk.place)?;
        if head != commit && self.contains(&commit, &head)? {
            let now = rescue::snapshot(self, trunk)?;
            let tree = |of: &str| self.outside()?.args(["rev-parse", "--verify", &format!("{of}^{{tree}}")]).text();
            if now != tree(&head)? && now != tree(&commit)? {
                rescue::keep(self, trunk, &now)?;
            }
            self.inside(trunk)?.args(["reset", "--quiet", "--hard", &commit]).text()?;
        }
        self.outside()?.args(["update-ref", "-d", &name]).text().map(drop)
    }
}

fn conflict(step: &Worktree, files: Vec<String>) -> Join {
    let is_binary = |file: &&String| {
        let path = step.top.join(file);
        path.symlink_metadata().is_ok_and(|meta| meta.is_file()) && !is_text(&path)
    };
    let binary = files.iter().filter(is_binary).cloned().collect();
    Join::Conflict { files, binary }
}

/// Git's own rule: a file with a NUL byte near its beginning is not text.
fn is_text(path: &Path) -> bool {
    std::fs::read(path).is_ok_and(|bytes| !bytes.iter().take(8_000).any(|byte| *byte == 0))
}

/// The ref of the merge commit that the trunk is about to move to.
fn landing(place: &WorktreeName) -> String {
    format!("refs/hatchery/landing/{}", place.slug())
}

/// Whether one of these lines begins or ends a conflict. A row of equal signs alone does not count: many texts use it for headings.
fn has_marker(file: &Path, lines: &BTreeSet<usize>) -> bool {
    let bytes = std::fs::read(file).unwrap_or_default();
    let text = bytes.split(|byte| *byte == b'\n').enumerate();
    text.filter(|(at, _)| lines.contains(&(at + 1))).any(|(_, line)| line.starts_with(b"<") || line.starts_with(b">"))
}
