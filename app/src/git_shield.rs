//! Keeps `git clean -fdx` away from `.hatchery`. Git spares a folder that is a repository of its own, so `.hatchery` gets the least
//! that git takes for one: `.git/HEAD`, `.git/objects` and `.git/refs`. A nested repository would show up in `git status` and
//! make `git add --all` fail, so the folder is also named in the repository's `info/exclude`, which is not part of the checkout.
//! See docs/decisions/0031-the-data-folder-is-ours.md.

use crate::project::{Project, write_whole};
use crate::report::Report;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Makes the folder safe, where there is git and the project is in a repository. What cannot be done is only a warning.
pub fn raise(project: &Project) {
    if is_raised(project) {
        return;
    }
    let marker = project.data().join(".git");
    let Some((exclude, pattern)) = where_to_exclude(project.root()) else { return };
    // In this order: without the first, the second would disturb the user's git.
    let raised = add_line(&exclude, &pattern).and_then(|()| make_repository(&marker));
    if let Err(error) = raised {
        tracing::warn!(%error, "`git clean -fdx` would delete {}", project.data().display());
    }
}

/// The repository that the project is in, if there is one. Asks the file system only, so it can be asked often. A repository that
/// git is still making does not count: its objects come last.
pub fn repository(project: &Project) -> Option<PathBuf> {
    let is_whole = |git: &PathBuf| git.is_file() || git.join("objects").is_dir();
    project.root().ancestors().map(|folder| folder.join(".git")).find(is_whole)
}

/// Whether the folder is safe already.
pub fn is_raised(project: &Project) -> bool {
    project.data().join(".git").exists()
}

/// Refuses a data folder of which the repository tracks a part: the next checkout would put another user's log in the place of
/// ours. Prompts are texts of the project and may be tracked.
pub fn refuse_tracked(project: &Project) -> Result<(), Report> {
    let Some(repository) = repository(project) else { return Ok(()) };
    let tracked = match ask_git(project.root(), &["ls-files", "-z", "--", ".hatchery"]) {
        Ok(tracked) => tracked,
        // Git does not work in a repository of another user, and not in what it does not take for one, for example beyond a mount
        // point. So it brings nothing from there.
        Err(_) if is_of_another_user(&repository) => return Ok(()),
        Err(why) if why.contains("not a git repository") => return Ok(()),
        Err(why) => {
            let message = format!("git cannot say whether {} is tracked: {why}", project.data().display());
            return Err(Report::failed(message).hint("install git, or repair the repository"));
        }
    };
    match tracked.split_terminator('\0').find(|path| !path.starts_with(".hatchery/prompts/")) {
        None => Ok(()),
        Some(path) => {
            // Whatever a checkout has put there stays when it is untracked.
            project.withdraw_stamp();
            Err(Report::failed(format_args!("{path} is tracked by git, so the repository could bring a log of its own"))
                .hint(
                    "untrack it: git rm -r --cached .hatchery, then commit (.hatchery/prompts may stay tracked); then delete the folder, \
                     or accept what is in it with `hatchery trust`",
                ))
        }
    }
}

fn is_of_another_user(repository: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(repository).is_ok_and(|found| found.uid() != rustix::process::geteuid().as_raw())
}

/// The exclude file of the repository, and the line that names the project's data folder.
fn where_to_exclude(root: &Path) -> Option<(PathBuf, String)> {
    let said = ask_git(root, &["rev-parse", "--show-prefix", "--git-path", "info/exclude"]).ok()?;
    let (prefix, exclude) = said.split_once('\n')?;
    // What git's patterns give a meaning to is not worth escaping: the folder then stays as it is.
    let plain = !prefix.contains(['*', '?', '[', '\\', '"']);
    plain.then(|| (root.join(exclude.trim_end_matches('\n')), format!("/{prefix}.hatchery/")))
}

/// What git says in a folder, or why it says nothing.
fn ask_git(root: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut git = Command::new("git");
    git.args(["-c", "core.fsmonitor=false"]).args(arguments);
    // By these our caller would send us into another repository.
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR"] {
        git.env_remove(name);
    }
    // Its errors are compared.
    git.env("LC_ALL", "C");
    let asked = git.current_dir(root).stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    match asked.status.success() {
        true => String::from_utf8(asked.stdout).map_err(|error| error.to_string()),
        false => Err(String::from_utf8_lossy(&asked.stderr).trim().to_owned()),
    }
}

fn add_line(path: &Path, line: &str) -> std::io::Result<()> {
    let known = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error),
    };
    if known.lines().any(|known| known == line) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let gap = if known.is_empty() || known.ends_with('\n') { "" } else { "\n" };
    let mut file = std::fs::File::options().create(true).append(true).open(path)?;
    file.write_all(format!("{gap}{line}\n").as_bytes())
}

fn make_repository(marker: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(marker.join("objects"))?;
    std::fs::create_dir_all(marker.join("refs"))?;
    // Git takes the folder for a repository from here on.
    write_whole(&marker.join("HEAD"), b"ref: refs/heads/none\n", 0o600)
}
