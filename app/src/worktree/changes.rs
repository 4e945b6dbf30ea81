//! What was changed in a quest, a step or a folder, as git sees it. Reads only: no lock is taken, no object is written, so it can be asked while
//! agents work. A file that changes meanwhile may be seen as it was or as it is.

use super::git::Git;
use super::{Repository, WorktreeError, WorktreeName};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// How many changed files are listed.
pub const MAX_FILES: usize = 2_000;
/// How much of the difference of one file is shown.
pub const MAX_DIFF_BYTES: usize = 512 << 10;
/// How much of a new file is read to count its lines.
const COUNTED_BYTES: u64 = 4 << 20;

/// What is different from where it began.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
pub struct Changes {
    /// The commit that everything is compared with.
    pub base: String,
    /// By path, at most 2,000.
    pub files: Vec<ChangedFile>,
    /// There are more files than are listed.
    pub truncated: bool,
    /// Lines in all files, those that are not listed as well.
    pub added: u64,
    pub removed: u64,
    /// The folder is not the agent's or the quest's own: these are all its uncommitted changes, those of other agents and yours as well.
    #[serde(default)]
    pub shared: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
pub struct ChangedFile {
    /// From the root of the repository.
    pub path: String,
    pub how: ChangeKind,
    pub added: u64,
    pub removed: u64,
    /// It has no lines that could be counted.
    pub binary: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    Added,
    Modified,
    Deleted,
}

/// The difference of one file.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
pub struct FileDiff {
    pub path: String,
    /// A unified diff. Bytes that are not UTF-8 are replaced.
    pub diff: String,
    /// It goes on: this is the first half mebibyte.
    pub truncated: bool,
}

/// Two states that are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// Where git is run.
    folder: PathBuf,
    base: String,
    /// A commit; what is in the folder without.
    head: Option<String>,
}

impl Repository {
    /// What a quest has done: its branch against where it left the user's.
    pub fn compare_quest(&self, slug: &str) -> Result<Option<Comparison>, WorktreeError> {
        let root = self.project.root();
        let Some(head) = self.commit_of(&WorktreeName::trunk(slug)?)? else { return Ok(None) };
        let base = self.git(root).args(["merge-base", "HEAD", &head]).maybe()?.unwrap_or_else(|| head.clone());
        Ok(Some(Comparison { folder: root.to_owned(), base, head: Some(head) }))
    }

    /// What a step has done: what is in its worktree against where it left the quest's branch; the commit by which it was merged, when it was.
    pub fn compare_step(&self, slug: &str, step: &str) -> Result<Option<Comparison>, WorktreeError> {
        let (root, place) = (self.project.root(), WorktreeName::step(slug, step)?);
        let Some(trunk) = self.commit_of(&WorktreeName::trunk(slug)?)? else { return Ok(None) };
        let worktree = self.at(place.clone());
        if worktree.top().join(".git").exists() {
            let inside = || self.git(worktree.top()).below(&self.worktrees());
            let base = inside().args(["merge-base", &trunk, "HEAD"]).maybe()?;
            let merged = inside().args(["rev-parse", "--verify", "HEAD"]).maybe()?;
            // A step whose commits are all in the trunk has been merged, unless it has new work.
            let is_new = base != merged || !inside().args(["diff", "--quiet", "HEAD"]).holds()?;
            if let Some(base) = base.filter(|_| is_new) {
                return Ok(Some(Comparison { folder: worktree.top().to_owned(), base, head: None }));
            }
        }
        let subject = format!("^Merge {}$", place.words());
        let log = ["log", "-1", "--first-parent", "--format=%H", "--grep", &subject, &trunk];
        match self.git(root).args(log).maybe()?.filter(|commit| !commit.is_empty()) {
            Some(merge) => {
                Ok(Some(Comparison { folder: root.to_owned(), base: format!("{merge}^1"), head: Some(merge) }))
            }
            None => Ok(None),
        }
    }

    /// What an agent with a worktree of its own has done: what is in its worktree against where it left the user's branch; its branch, when the
    /// worktree is gone.
    pub fn compare_agent(&self, slug: &str) -> Result<Option<Comparison>, WorktreeError> {
        let worktree = self.at(WorktreeName::trunk(slug)?);
        if !worktree.top().join(".git").exists() {
            return self.compare_quest(slug);
        }
        let user = self.git(self.project.root()).args(["rev-parse", "--verify", "HEAD^{commit}"]).text()?;
        let inside = || self.git(worktree.top()).below(&self.worktrees());
        let base = inside().args(["merge-base", &user, "HEAD"]).maybe()?.unwrap_or(user);
        Ok(Some(Comparison { folder: worktree.top().to_owned(), base, head: None }))
    }

    /// What is in a folder against the last commit there.
    pub fn compare_folder(&self, folder: &Path) -> Result<Option<Comparison>, WorktreeError> {
        let head = self.git(folder).args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).maybe()?;
        Ok(head.map(|base| Comparison { folder: folder.to_owned(), base, head: None }))
    }

    /// Which files are different, and by how many lines.
    pub fn changes(&self, of: &Comparison) -> Result<Changes, WorktreeError> {
        let counted = self.diff(of, &["--numstat", "-z"]).succeed()?.out;
        let named = self.diff(of, &["--name-status", "-z"]).succeed()?.out;
        let kinds = read_kinds(&named);
        let mut files: Vec<ChangedFile> = read_counts(&counted, &kinds);
        for path in self.untracked(of)? {
            files.push(new_file(&of.folder, &path));
        }
        files.sort_by(|one, other| one.path.cmp(&other.path));
        let sum = |count: fn(&ChangedFile) -> u64| files.iter().map(count).sum();
        let (added, removed) = (sum(|file| file.added), sum(|file| file.removed));
        let truncated = files.len() > MAX_FILES;
        files.truncate(MAX_FILES);
        Ok(Changes { base: of.base.clone(), files, truncated, added, removed, shared: false })
    }

    /// How one file is different. Nothing when it is not.
    pub fn file_diff(&self, of: &Comparison, file: &str) -> Result<Option<FileDiff>, WorktreeError> {
        // A name, and never a pattern.
        let literal = format!(":(top,literal){file}");
        let mut diff = self.diff(of, &["--patch", "--"]).arg(&literal).succeed()?.out;
        if diff.is_empty() && self.untracked(of)?.iter().any(|path| path == Path::new(file)) {
            // It says no, because there is a difference.
            let against_nothing = ["diff", "--no-index", "--no-ext-diff", "--no-color", "--", "/dev/null", file];
            let top = self.top(&of.folder)?;
            diff = self.git(&top).args(against_nothing).run()?.out;
        }
        if diff.is_empty() {
            return Ok(None);
        }
        let truncated = diff.len() > MAX_DIFF_BYTES;
        diff.truncate(MAX_DIFF_BYTES);
        let diff = String::from_utf8_lossy(&diff).into_owned();
        Ok(Some(FileDiff { path: file.to_owned(), diff, truncated }))
    }

    fn diff(&self, of: &Comparison, how: &[&str]) -> Git {
        let plain = ["diff", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--ignore-submodules"];
        let (options, rest) = match how.split_last() {
            Some((&"--", options)) => (options, true),
            _ => (how, false),
        };
        // Looking must not write: a refreshed index would get in the way of an agent's own git.
        let git = self.git(&of.folder).env("GIT_OPTIONAL_LOCKS", Path::new("0")).args(plain).args(options);
        let git = git.arg(&of.base).args(&of.head);
        if rest { git.arg("--") } else { git }
    }

    /// New files that git does not know and does not ignore, from the root of the repository.
    fn untracked(&self, of: &Comparison) -> Result<Vec<PathBuf>, WorktreeError> {
        match of.head {
            Some(_) => Ok(Vec::new()),
            None => {
                let git =
                    self.git(&of.folder).args(["ls-files", "--others", "--exclude-standard", "--full-name", "-z"]);
                // By-products are not the work of an agent. In the user's own folder, what is shown is up to the user.
                let git = match of.folder.starts_with(self.worktrees()) {
                    true => self.rules_to_read(&of.folder)?.iter().fold(git, |git, rule| git.args(["--exclude", rule])),
                    false => git,
                };
                git.arg(":(top)").paths()
            }
        }
    }

    /// The files that git knows or does not ignore, from the folder on, and whether there are more than so many.
    pub fn files(&self, of: &Comparison, most: usize) -> Result<(Vec<String>, bool), WorktreeError> {
        let git = self.git(&of.folder).args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"]);
        let mut paths = git.paths()?;
        // A file with a conflict is listed several times.
        paths.sort();
        paths.dedup();
        let more = paths.len() > most;
        // A name that is not text cannot be typed either.
        let names = paths.into_iter().filter_map(|path| path.into_os_string().into_string().ok());
        Ok((names.take(most).collect(), more))
    }

    fn top(&self, folder: &Path) -> Result<PathBuf, WorktreeError> {
        self.git(folder).args(["rev-parse", "--show-toplevel"]).text().map(PathBuf::from)
    }

    fn commit_of(&self, place: &WorktreeName) -> Result<Option<String>, WorktreeError> {
        let name = format!("refs/heads/{}^{{commit}}", place.branch());
        self.git(self.project.root()).args(["rev-parse", "--verify", "--quiet", &name]).maybe()
    }
}

/// `M\0PATH\0A\0PATH\0…`
fn read_kinds(said: &[u8]) -> BTreeMap<String, ChangeKind> {
    let mut fields = said.split(|byte| *byte == 0).map(|field| String::from_utf8_lossy(field).into_owned());
    let mut kinds = BTreeMap::new();
    while let (Some(status), Some(path)) = (fields.next(), fields.next()) {
        let kind = match status.as_str() {
            "A" => ChangeKind::Added,
            "D" => ChangeKind::Deleted,
            _ => ChangeKind::Modified,
        };
        kinds.insert(path, kind);
    }
    kinds
}

/// `ADDED\tREMOVED\tPATH\0…`, with dashes for what is binary.
fn read_counts(said: &[u8], kinds: &BTreeMap<String, ChangeKind>) -> Vec<ChangedFile> {
    let read = |entry: &[u8]| {
        let entry = String::from_utf8_lossy(entry).into_owned();
        let mut fields = entry.splitn(3, '\t');
        let (added, removed, path) = (fields.next()?, fields.next()?, fields.next()?.to_owned());
        let count = |text: &str| text.parse().unwrap_or_default();
        let how = kinds.get(&path).copied().unwrap_or(ChangeKind::Modified);
        Some(ChangedFile { how, added: count(added), removed: count(removed), binary: added == "-", path })
    };
    said.split(|byte| *byte == 0).filter_map(read).collect()
}

/// A file that git does not know yet.
fn new_file(folder: &Path, path: &Path) -> ChangedFile {
    // Names are from the root of the repository, which is this folder or above it.
    let file = folder.ancestors().map(|above| above.join(path)).find(|file| file.symlink_metadata().is_ok());
    let mut bytes = Vec::new();
    let read = file.and_then(|file| File::open(file).ok()).map(|file| file.take(COUNTED_BYTES).read_to_end(&mut bytes));
    let binary = bytes.iter().take(8_000).any(|byte| *byte == 0);
    let lines =
        bytes.iter().filter(|byte| **byte == b'\n').count() + usize::from(bytes.last().is_some_and(|it| *it != b'\n'));
    let added = if binary || !matches!(read, Some(Ok(_))) { 0 } else { lines as u64 };
    ChangedFile { path: path.to_string_lossy().into_owned(), how: ChangeKind::Added, added, removed: 0, binary }
}
