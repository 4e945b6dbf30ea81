//! Whose project it is. A folder, a setting or a log of another user can run programs as us, so it is refused, as git does it with
//! `safe.directory`. What is inside `.hatchery` is closed to others.

use super::{MAKE_ROOM, Project};
use crate::report::{Context as _, Report};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Folders that may belong to other users, separated by colons; `*` means all.
pub const SAFE_FOLDERS: &str = "HATCHERY_SAFE_FOLDERS";
/// What others may not do with our files.
const OTHERS: u32 = 0o077;

impl Project {
    /// Refuses a project of which a part belongs to another user.
    pub fn check_owner(&self) -> Result<(), Report> {
        let safe = std::env::var_os(SAFE_FOLDERS).unwrap_or_default();
        if std::env::split_paths(&safe).any(|folder| folder == Path::new("*") || folder == self.root) {
            return Ok(());
        }
        let us = rustix::process::geteuid().as_raw();
        let sudoer = std::env::var("SUDO_UID").ok().and_then(|id| id.parse().ok()).filter(|_| us == 0);
        let parts = [self.root.clone(), self.root.join(".git"), self.config_file(), self.data()];
        // While `.hatchery` was open to others, they could put files there, and seal them.
        let inside = std::fs::read_dir(self.data()).into_iter().flatten().flatten().map(|entry| entry.path());
        match parts.into_iter().chain(inside).find_map(|part| foreign_owner(&part, &[Some(us), sudoer])) {
            None => Ok(()),
            Some((part, owner)) => {
                let message = format!(
                    "{} belongs to another user (id {owner}), who could have programs run as you",
                    part.display()
                );
                Err(Report::failed(message)
                    .hint(format_args!(
                        "work in a folder of your own; if you trust that user, set {SAFE_FOLDERS}={}",
                        self.root.display()
                    ))
                    .named("foreign_owner"))
            }
        }
    }

    /// The entries of `.hatchery` that others could read or write, and `.hatchery` itself.
    pub fn open_to_others(&self) -> Vec<PathBuf> {
        let data = self.data();
        let entries = std::fs::read_dir(&data).into_iter().flatten().flatten().map(|entry| entry.path());
        // It says nothing, and git reads it under any user.
        let entries = entries.filter(|path| !path.ends_with(".gitignore"));
        let is_open = |path: &PathBuf| {
            std::fs::symlink_metadata(path)
                .is_ok_and(|found| !found.is_symlink() && found.permissions().mode() & OTHERS != 0)
        };
        // Folders inside are out of reach when `.hatchery` is closed, so only files count there.
        let counts = |path: &PathBuf| *path == data || path.is_file();
        std::iter::once(data.clone()).chain(entries).filter(counts).filter(is_open).collect()
    }

    /// Closes `.hatchery` and its files. A token that others could read stays as it is: it may be known to them, and
    /// [`Project::token`] refuses it.
    pub(super) fn close_to_others(&self) -> Result<(), Report> {
        for path in self.open_to_others().into_iter().filter(|path| *path != self.token_file()) {
            let mode = std::fs::symlink_metadata(&path).map_or(0o600, |found| found.permissions().mode());
            let closed = std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode & !OTHERS & 0o7777));
            let closed = closed.context(format_args!("{} is open to other users and cannot be closed", path.display()));
            match closed {
                // A file is out of reach when the folder is closed.
                Err(report) if path != self.data() => tracing::warn!(%report, "a file stays open to others"),
                closed => closed.map_err(|report| report.hint(MAKE_ROOM))?,
            }
        }
        Ok(())
    }

    /// Refuses symbolic links as `.hatchery`, directly inside, or in one of its folders: they would lead our files elsewhere, or show files
    /// that are none of the project's. Also refuses FIFOs, sockets and devices there: opening one may never return. Files
    /// in subfolders are checked when they are opened: see [`no_links`](crate::no_links).
    pub(super) fn refuse_links(&self) -> Result<(), Report> {
        let data = self.data();
        let folders = ["", "prompts", "runs", "quests", "sim", "worktrees"].map(|name| data.join(name));
        let entries = folders.into_iter().flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten());
        let odd = entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_file() && !kind.is_dir()));
        match std::iter::once(data.clone()).filter(|data| data.is_symlink()).chain(odd.map(|odd| odd.path())).next() {
            None => Ok(()),
            Some(special) if !special.is_symlink() => {
                Err(Report::failed(format_args!("{} is not an ordinary file", special.display())).hint("delete it"))
            }
            Some(link) => {
                Err(Report::failed(format_args!("{} is a symbolic link, which is not followed", link.display()))
                    .hint("remove the link; a database elsewhere is named by the setting `store`"))
            }
        }
    }
}

/// The part itself, or what it links to, if it belongs to none of these users. A missing part has no owner.
fn foreign_owner(part: &Path, ours: &[Option<u32>]) -> Option<(PathBuf, u32)> {
    let owners = [std::fs::symlink_metadata(part), std::fs::metadata(part)];
    let owner = owners.into_iter().flatten().map(|found| found.uid()).find(|owner| !ours.contains(&Some(*owner)))?;
    Some((part.to_owned(), owner))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_folder_is_closed_and_links_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::find(folder.path()).unwrap();
        project.prepare().unwrap();
        let log = project.data().join("daemon.log");
        std::fs::write(&log, "").unwrap();
        std::fs::set_permissions(&log, std::fs::Permissions::from_mode(0o666)).unwrap();
        std::fs::set_permissions(project.data(), std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(project.open_to_others(), [project.data(), log.clone()]);
        project.prepare().unwrap();
        assert_eq!(project.open_to_others(), Vec::<PathBuf>::new());
        std::os::unix::fs::symlink("/etc/passwd", project.data().join("hatchery.db")).unwrap();
        assert!(project.prepare().unwrap_err().to_string().contains("hatchery.db is a symbolic link"));
        std::fs::remove_file(project.data().join("hatchery.db")).unwrap();
        std::fs::create_dir(project.data().join("quests")).unwrap();
        std::os::unix::fs::symlink("/tmp", project.data().join("quests/a")).unwrap();
        assert!(project.prepare().unwrap_err().to_string().contains("quests/a is a symbolic link"));
    }
}
