//! Where a path really leads. The core compares paths as text, so symbolic links are resolved before it decides about a permission:
//! otherwise a link inside an agent's folder would be a way out of it.

use hatchery_core::permission::{Access, PermissionRequest};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// How many links one path may lead through, as in the kernel.
const MAX_LINKS: usize = 40;

/// Replaces the paths of a request that lead elsewhere than they seem to. A path that leads through no link stays as it is.
pub fn resolve_request(request: &mut PermissionRequest) {
    let Some(folder) = request.folder.clone().map(PathBuf::from) else { return };
    match &mut request.access {
        Access::Read { path } | Access::Edit { path } => {
            if let Some(real) = elsewhere(&folder, path) {
                *path = real;
            }
        }
        Access::Execute { command } if command.chars().all(is_plain) => {
            // The words of a plain command may be paths.
            let words = command.split(' ').map(|word| match word.starts_with('-') || word.is_empty() {
                true => word.to_owned(),
                false => elsewhere(&folder, word).unwrap_or_else(|| word.to_owned()),
            });
            *command = words.collect::<Vec<_>>().join(" ");
        }
        Access::Execute { .. } | Access::OwnTool | Access::NotOffered | Access::Other => {}
    }
}

/// The place that a path leads to, if that is not where its text says.
fn elsewhere(folder: &Path, path: &str) -> Option<String> {
    let (real, real_folder) = (resolved(&folder.join(path)), resolved(folder));
    let seems = without_dots(&folder.join(path));
    let rest = match (&real, &real_folder) {
        (Some(real), Some(real_folder)) => real.strip_prefix(real_folder).ok().map(Path::to_owned),
        _ => None,
    };
    match (rest, real) {
        (Some(rest), _) if seems.strip_prefix(folder).is_ok_and(|seeming| seeming == rest) => None,
        // It stays in the folder, at another place.
        (Some(rest), _) => Some(folder.join(rest).display().to_string()),
        (None, Some(real)) if real == seems => None,
        (None, Some(real)) => Some(real.display().to_string()),
        // Too many links: the target is unknown, so it counts as outside.
        (None, None) => Some("/too many symbolic links".to_owned()),
    }
}

/// A path without links, `.` and `..`. Its last parts need not exist. None if it leads through too many links.
fn resolved(path: &Path) -> Option<PathBuf> {
    let mut left: VecDeque<OsString> = parts(path);
    let mut real = PathBuf::from("/");
    let mut links = 0;
    while let Some(part) = left.pop_front() {
        if part == ".." {
            real.pop();
            continue;
        }
        let next = real.join(&part);
        match std::fs::read_link(&next) {
            Ok(target) => {
                links += 1;
                if links > MAX_LINKS {
                    return None;
                }
                if target.is_absolute() {
                    real = PathBuf::from("/");
                }
                for part in parts(&target).into_iter().rev() {
                    left.push_front(part);
                }
            }
            // It is no link, or does not exist.
            Err(_) => real = next,
        }
    }
    Some(real)
}

/// The named parts of a path, and `..`.
fn parts(path: &Path) -> VecDeque<OsString> {
    let named = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    });
    named.collect()
}

/// The path as its text says.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::from("/");
    for part in parts(path) {
        match part.to_str() {
            Some("..") => drop(plain.pop()),
            _ => plain.push(part),
        }
    }
    plain
}

/// Whether a shell would take a character as it is. The core knows the same characters.
fn is_plain(char: char) -> bool {
    char.is_ascii_alphanumeric() || " -_./=:,@+^%~".contains(char)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatchery_core::permission::{self, PermissionPolicy};
    use std::os::unix::fs::symlink;

    /// What the policy `edits` says about a request of an agent in this folder.
    fn allowed(folder: &Path, access: Access) -> bool {
        let mut request = PermissionRequest {
            request: "1".into(),
            tool: "Write".into(),
            tool_use: None,
            input: "{}".into(),
            access,
            folder: Some(folder.display().to_string()),
        };
        resolve_request(&mut request);
        permission::decide(PermissionPolicy::Edits, [], None, &request).is_some()
    }

    fn edit(path: impl AsRef<Path>) -> Access {
        Access::Edit { path: path.as_ref().display().to_string() }
    }

    #[test]
    fn a_link_that_leads_out_is_no_way_out() {
        let place = tempfile::tempdir().unwrap();
        let (folder, outside) = (place.path().join("worktree"), place.path().join("outside"));
        for made in [&folder, &outside, &folder.join("src"), &folder.join(".git")] {
            std::fs::create_dir(made).unwrap();
        }
        std::fs::write(outside.join("secret"), "s").unwrap();
        symlink(&outside, folder.join("out")).unwrap();
        symlink("../outside/secret", folder.join("file")).unwrap();
        symlink(outside.join("not-there-yet"), folder.join("dangling")).unwrap();
        symlink("src", folder.join("inside")).unwrap();
        symlink(".git", folder.join("harmless")).unwrap();
        symlink("loop", folder.join("loop")).unwrap();
        let command = |command: &str| Access::Execute { command: command.to_owned() };

        for inside in ["src/new.rs", "inside/new.rs", "a/b/../c", "./x"] {
            assert!(allowed(&folder, edit(inside)), "{inside}");
            assert!(allowed(&folder, edit(folder.join(inside))), "{inside}");
        }
        assert!(allowed(&folder, command("cat src/new.rs")) && allowed(&folder, command("git diff HEAD")));
        for out in
            ["out/secret", "out/new", "file", "dangling", "harmless/config", "loop", "src/../out/x", "../outside/x"]
        {
            assert!(!allowed(&folder, edit(out)), "{out}");
            assert!(!allowed(&folder, edit(folder.join(out))), "{out}");
        }
        for looking in ["cat file", "cat out/secret", "head -n 3 out/secret", "grep s file"] {
            assert!(!allowed(&folder, command(looking)), "{looking}");
        }
        // The folder itself may be reached through a link.
        symlink(&folder, place.path().join("way")).unwrap();
        let way = place.path().join("way");
        assert!(allowed(&way, edit(way.join("src/new.rs"))) && allowed(&way, edit(folder.join("src/new.rs"))));
        assert!(!allowed(&way, edit(way.join("out/secret"))));
    }
}
