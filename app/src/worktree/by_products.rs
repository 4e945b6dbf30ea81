//! By-products: files that a build, a test run or a ward leaves in a worktree. They are not an agent's work, so they are neither
//! committed nor rescued.
//!
//! All rules are rules of git's own ignore mechanism, at its lowest precedence. So a file that is tracked is never a by-product, a line
//! such as `!dist/` in the project's `.gitignore` overrides our rules, and an agent that wants to keep a by-product adds it with `git add`.

use super::hold::Hold;
use super::{Repository, Worktree, WorktreeError};
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// What well-known tools leave behind under names that mean nothing else.
const KNOWN: [&str; 16] = [
    "__pycache__/",
    "*.py[co]",
    ".pytest_cache/",
    ".mypy_cache/",
    ".ruff_cache/",
    ".tox/",
    ".nox/",
    ".venv/",
    "*.egg-info/",
    "node_modules/",
    ".gradle/",
    ".next/",
    ".nyc_output/",
    ".DS_Store",
    "Thumbs.db",
    ".coverage",
];
/// A folder with one of these files is a cache or an environment that can be made again.
const MARKERS: [&str; 2] = ["CACHEDIR.TAG", "pyvenv.cfg"];
/// Maven has no marker: its output is `target` beside this file.
const MAVEN: &str = "pom.xml";
/// The rules that git is given, in git's own folder of the worktree.
const RULES: &str = "hatchery-exclude";
/// The files that wards and set-up commands have left in this worktree, as rules, in the same folder.
const LEFT_BY_COMMANDS: &str = "hatchery-left-by-commands";
/// How many rules are given to git as arguments.
const MAX_RULES_TO_READ: usize = 1_000;
/// How many such files are remembered by name. Beyond that, something is wrong with the command, and its files become visible.
const MAX_LEFT: usize = 10_000;

impl Repository {
    /// The rules for a worktree, for those who only look: without marked folders, because that needs more than a look.
    pub(super) fn rules_to_read(&self, top: &Path) -> Result<Vec<String>, WorktreeError> {
        let own = self.git(top).below(&self.worktrees()).args(["rev-parse", "--absolute-git-dir"]).text()?;
        let written = read(&Path::new(&own).join(RULES))?;
        let left = read(&Path::new(&own).join(LEFT_BY_COMMANDS))?;
        let known = KNOWN.into_iter().chain(self.by_products.iter().map(String::as_str));
        let rules = known.chain(written.lines()).chain(left.lines()).map(str::trim);
        let rules: BTreeSet<String> =
            rules.filter(|rule| !rule.is_empty() && !rule.starts_with('#')).map(str::to_owned).collect();
        Ok(rules.into_iter().take(MAX_RULES_TO_READ).collect())
    }
}

impl Hold<'_> {
    /// Writes the rules for a worktree, and gives the setting with which git obeys them.
    pub(super) fn without_by_products(&self, worktree: &Worktree) -> Result<String, WorktreeError> {
        let own = self.git_folder(worktree)?;
        let mut rules = self.excludes_of_user();
        rules.push('\n');
        let left = read(&own.join(LEFT_BY_COMMANDS))?;
        let found = self.marked_folders(worktree)?;
        let configured = self.repository.by_products.iter().map(String::as_str);
        for rule in KNOWN.into_iter().chain(found.iter().map(String::as_str)).chain(left.lines()).chain(configured) {
            rules.push_str(rule);
            rules.push('\n');
        }
        let file = own.join(RULES);
        write(&file, &rules)?;
        Ok(format!("core.excludesFile={}", file.display()))
    }

    /// Remembers what a ward or a set-up command has left in a worktree. Everything was committed before it began, so what is new is its.
    pub(super) fn note_left_by_command(&self, worktree: &Worktree) -> Result<(), WorktreeError> {
        let known = self.without_by_products(worktree)?;
        let new = self.inside(worktree)?.set(&[known]).args(UNTRACKED).arg("--directory").paths()?;
        let file = self.git_folder(worktree)?.join(LEFT_BY_COMMANDS);
        let mut rules: BTreeSet<String> = read(&file)?.lines().map(str::to_owned).collect();
        rules.extend(new.iter().filter_map(|path| rule_for(path)));
        if new.is_empty() || rules.len() > MAX_LEFT {
            return Ok(());
        }
        write(&file, &rules.into_iter().collect::<Vec<_>>().join("\n"))
    }

    /// What is neither committed nor ignored by the user's own rules: the by-products.
    pub(super) fn left_out(&self, worktree: &Worktree) -> Result<Vec<PathBuf>, WorktreeError> {
        self.inside(worktree)?.args(UNTRACKED).arg("--directory").paths()
    }

    /// Rules for the folders that a marker file shows to be by-products.
    fn marked_folders(&self, worktree: &Worktree) -> Result<Vec<String>, WorktreeError> {
        let anywhere = |name: &str| format!(":(glob)**/{name}");
        let marked = self.inside(worktree)?.args(UNTRACKED).arg("--").args(MARKERS.map(anywhere)).paths()?;
        let maven = self.inside(worktree)?.args(UNTRACKED).args(["--cached", "--", &anywhere(MAVEN)]).paths()?;
        let marked = marked.iter().filter_map(|path| path.parent()).map(Path::to_owned);
        let built = maven.iter().filter_map(|path| path.parent()).map(|folder| folder.join("target"));
        // The worktree itself is never a by-product, whatever is in it.
        Ok(marked.chain(built).filter_map(|folder| rule_for(&folder)).map(|rule| rule + "/").collect())
    }

    /// The user's own ignore rules for all repositories. Git reads one such file only, so ours begins with a copy of it.
    fn excludes_of_user(&self) -> String {
        let asked =
            self.outside().and_then(|git| git.args(["config", "--type=path", "--get", "core.excludesFile"]).maybe());
        let environment = &self.repository.environment;
        let usual = || {
            let base = environment.get("XDG_CONFIG_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
            let base = base.or_else(|| environment.get("HOME").map(|home| PathBuf::from(home).join(".config")));
            base.map(|base| base.join("git/ignore"))
        };
        let file = asked.ok().flatten().map(PathBuf::from).or_else(usual);
        file.and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default()
    }
}

/// The files that git neither tracks nor ignores.
pub(super) const UNTRACKED: [&str; 4] = ["ls-files", "--others", "--exclude-standard", "-z"];

/// The ignore rule for one path, without the slash that would say that it is a folder. Nothing for a path that a rule cannot express.
fn rule_for(path: &Path) -> Option<String> {
    let text = path.to_str()?.trim_end_matches('/');
    if text.is_empty() || text.contains(['\n', '\r']) {
        return None;
    }
    let mut rule = String::from("/");
    for char in text.chars() {
        if matches!(char, '\\' | '*' | '?' | '[' | ' ' | '!' | '#') {
            rule.push('\\');
        }
        rule.push(char);
    }
    Some(rule)
}

fn read(file: &Path) -> Result<String, WorktreeError> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(WorktreeError::io(format_args!("{} cannot be read", file.display()), error)),
    }
}

/// Replaces a file in one step, so that a killed daemon leaves the old one or the new one.
fn write(file: &Path, text: &str) -> Result<(), WorktreeError> {
    let failed = |error| WorktreeError::io(format_args!("{} cannot be written", file.display()), error);
    let new = file.with_extension("new");
    std::fs::write(&new, text).map_err(failed)?;
    std::fs::rename(&new, file).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_names_one_path_and_no_other() {
        for (path, rule) in [
            ("report.xml", Some("/report.xml")),
            ("out/", Some("/out")),
            ("a [1]*.txt", Some("/a\\ \\[1]\\*.txt")),
            ("!x", Some("/\\!x")),
            ("", None),
            ("two\nlines", None),
        ] {
            assert_eq!(rule_for(Path::new(path)).as_deref(), rule, "{path}");
        }
    }
}
