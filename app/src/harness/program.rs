//! Finds a program in the same way as the system does when it starts the program.

use rustix::fs::{Access, access};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// A bare name is searched on `path`. Any other path is relative to the project's root.
pub fn find_program(wanted: &Path, root: &Path, path: &OsStr) -> Option<PathBuf> {
    let can_be_started = |file: &PathBuf| file.is_file() && access(file, Access::EXEC_OK).is_ok();
    match is_bare(wanted) {
        true => std::env::split_paths(path).map(|folder| folder.join(wanted)).find(can_be_started),
        false => Some(root.join(wanted)).filter(can_be_started),
    }
}

/// Where the program was searched, as text after "is not".
pub fn place_of(wanted: &Path) -> &'static str {
    if is_bare(wanted) { "on PATH" } else { "there, or cannot be started" }
}

fn is_bare(wanted: &Path) -> bool {
    wanted.components().count() == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn what_cannot_be_started_is_not_found() {
        let folder = tempfile::tempdir().unwrap();
        let (root, path) = (folder.path(), folder.path().as_os_str());
        let file = root.join("player");
        assert_eq!(find_program(Path::new("player"), root, path), None);
        std::fs::write(&file, "").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(find_program(Path::new("player"), root, path), None, "nobody may run it");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find_program(Path::new("player"), root, path), Some(file.clone()));
        assert_eq!(find_program(Path::new("player"), root, OsStr::new("/nowhere")), None);
        assert_eq!(find_program(Path::new("./sub/../player"), root, path), None, "there is no sub");
        assert_eq!(find_program(&file, Path::new("/"), OsStr::new("")), Some(file));
    }
}
