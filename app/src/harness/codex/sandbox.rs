//! What commands of codex may do without asking, by the policy of the run. If the sandbox refuses something, codex asks for permission, and
//! the core decides.
//!
//! Under `edits` the sandbox is a permission profile of Hatchery: codex's `:workspace`, in which the files that `edits` does not cover are
//! read-only. If such a file does not exist, the sandbox creates an empty one while a command runs. If codex is killed, the empty file
//! stays.

use hatchery_core::permission::{PROTECTED, PermissionPolicy};
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// The name of the profile. Users can add to it in codex's own settings.
const PROFILE: &str = "hatchery";

/// The mode in which the thread is opened. None: the profile is used instead, because codex refuses both together.
pub(super) fn mode(policy: PermissionPolicy) -> Option<&'static str> {
    match policy {
        PermissionPolicy::Ask | PermissionPolicy::None => Some("read-only"),
        PermissionPolicy::Edits => None,
        PermissionPolicy::All => Some("danger-full-access"),
    }
}

/// The profile with which the thread is opened.
pub(super) fn chosen_profile(policy: PermissionPolicy) -> Option<&'static str> {
    mode(policy).is_none().then_some(PROFILE)
}

/// The arguments that define and choose the profile. `data` is Hatchery's folder in the project. It is listed because a project may be
/// below the folder for temporary files, which is writable.
pub(super) fn profile(policy: PermissionPolicy, data: &Path) -> Vec<String> {
    if chosen_profile(policy).is_none() {
        return Vec::new();
    }
    // A JSON string is also a TOML string.
    let read = |path: &str| format!("{}=\"read\"", json!(path));
    let names: Vec<String> = PROTECTED.iter().map(|name| read(name)).collect();
    let data = data.to_str().map(|data| read(data) + ",").unwrap_or_default();
    let files = format!("{data}\":workspace_roots\"={{{}}}", names.join(","));
    let defined = format!("permissions.{PROFILE}={{extends=\":workspace\",filesystem={{{files}}}}}");
    ["-c".to_owned(), defined, "-c".to_owned(), format!("default_permissions=\"{PROFILE}\"")].into()
}

/// Removes the empty files that the sandbox of a killed process has left in its working folder. They are empty and read-only, so they are
/// not the user's.
pub(super) fn tidy(place: &Path) {
    for file in PROTECTED.iter().map(|name| place.join(name)) {
        let Ok(about) = fs::symlink_metadata(&file) else { continue };
        let is_read_only = about.permissions().mode() & 0o222 == 0;
        if about.is_file()
            && about.len() == 0
            && is_read_only
            && let Err(error) = fs::remove_file(&file)
        {
            tracing::warn!(file = %file.display(), %error, "an empty file that codex has left could not be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_edits_has_a_profile_and_it_names_every_protected_file() {
        for policy in PermissionPolicy::ALL {
            assert_eq!(profile(policy, Path::new("/p/.hatchery")).is_empty(), mode(policy).is_some(), "{policy}");
        }
        let args = profile(PermissionPolicy::Edits, Path::new("/a \"b\"/.hatchery"));
        let [_, defined, _, chosen] = &args[..] else { panic!("{args:?}") };
        assert_eq!(chosen, "default_permissions=\"hatchery\"");
        let value: toml::Table = toml::from_str(defined).unwrap();
        let files = &value["permissions"]["hatchery"]["filesystem"];
        assert_eq!(files["/a \"b\"/.hatchery"].as_str(), Some("read"));
        for name in PROTECTED {
            assert_eq!(files[":workspace_roots"][name].as_str(), Some("read"), "{name}");
        }
    }

    #[test]
    fn only_empty_read_only_files_are_left_by_a_sandbox() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (name, content, mode) in
            [(".claude", "", 0o444), (".mcp.json", "{}", 0o444), ("opencode.json", "", 0o644), ("other", "", 0o444)]
        {
            fs::write(at(name), content).unwrap();
            fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        fs::create_dir(at(".gemini")).unwrap();
        tidy(folder.path());
        assert!(!at(".claude").exists());
        assert!([".mcp.json", "opencode.json", "other", ".gemini"].iter().all(|name| at(name).exists()));
    }
}
