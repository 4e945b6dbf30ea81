//! Linked worktrees of git (`git worktree add`): which checkout they belong to.

use std::path::{Path, PathBuf};

/// A file of git that names a path is a line.
const MAX_BYTES: usize = 16 * 1024;

/// The main checkout of a linked worktree. None if the folder is not the root of one, or if the repository does not know it: a `.git` file
/// alone could name any repository.
pub fn main_checkout(worktree: &Path) -> Option<PathBuf> {
    let link = worktree.join(".git");
    let gitdir = worktree.join(line(&link)?.strip_prefix("gitdir:")?.trim()).canonicalize().ok()?;
    let back = gitdir.join(line(&gitdir.join("gitdir"))?);
    if back.canonicalize().ok()? != link.canonicalize().ok()? {
        return None;
    }
    let common = gitdir.join(line(&gitdir.join("commondir"))?).canonicalize().ok()?;
    // A bare repository has no checkout.
    common.parent().filter(|_| common.ends_with(".git")).map(Path::to_owned)
}

fn line(path: &Path) -> Option<String> {
    let bytes = crate::state_file::read_bounded(path, MAX_BYTES).ok().flatten()?;
    Some(String::from_utf8(bytes).ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::Project;
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    fn git(folder: &Path, arguments: &[&str]) {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@example.org"]).args(arguments).current_dir(folder);
        let ran = git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").output().unwrap();
        assert!(ran.status.success(), "{arguments:?}: {ran:?}");
    }

    #[test]
    fn a_worktree_shares_the_status_of_its_main_checkout() {
        let folder = tempfile::tempdir().unwrap();
        let main = folder.path().canonicalize().unwrap().join("shop");
        fs::create_dir(&main).unwrap();
        git(&main, &["init", "-q"]);
        git(&main, &["commit", "-q", "--allow-empty", "-m", "first"]);
        git(&main, &["worktree", "add", "-q", "../feature"]);
        let worktree = main.with_file_name("feature");
        let of = |folder: &Path| Project::find_for_status(folder).unwrap().root().to_owned();
        assert_eq!(of(&worktree), main);
        assert_eq!(Project::find(&worktree).unwrap().root(), worktree, "in all else it is a project of its own");
        // A folder that only claims to be a worktree shares nothing.
        let claim = main.with_file_name("claim");
        fs::create_dir(&claim).unwrap();
        fs::copy(worktree.join(".git"), claim.join(".git")).unwrap();
        assert_eq!(of(&claim), claim);
        fs::create_dir(worktree.join(".fctry")).unwrap();
        assert_eq!(of(&worktree), main, "a folder that git has checked out is no status");
        fs::write(worktree.join(".fctry/state.json"), "{}").unwrap();
        assert_eq!(of(&worktree), worktree);
    }
}
