//! Files that are written outside of a command, recorded in `untrackedChanges` of the status document by a hook of Claude Code. Only files
//! that a section of the spec names are recorded: the list says which sections may be out of date, and other files say nothing about them.

use crate::project::Project;
use crate::report::Report;
use crate::spec_sections::{self, Heading};
use crate::status_door::StatusDoor;
use hatchery_core::status::{StatusChange, StatusDocument};
use std::io::Read as _;
use std::path::{Component, Path};
use std::process::ExitCode;

/// A hook gets the whole content of the file that was written.
const MAX_HOOK_BYTES: u64 = 64 * 1024 * 1024;
/// Folders whose files are not the user's work.
const OURS: [&str; 4] = [".fctry", ".hatchery", ".git", ".claude"];

/// Reads what a hook is told and records the file. A hook must not get in an agent's way, so a strange message is no error.
pub fn record(door: &StatusDoor, project: &Path) -> Result<ExitCode, Report> {
    let folder = door.folder();
    let mut text = Vec::new();
    std::io::stdin().lock().take(MAX_HOOK_BYTES).read_to_end(&mut text).unwrap_or_default();
    let Some(file) = written_file(&String::from_utf8_lossy(&text), project) else { return Ok(ExitCode::SUCCESS) };
    // A command of the workflow keeps the spec up to date itself. And a project without the protocol does not want its files.
    if !folder.path().is_dir() {
        return Ok(ExitCode::SUCCESS);
    }
    // A damaged file is set aside by the change below; a hook that fails at every write would be of no use.
    if folder.state().is_ok_and(|state| state.words("currentCommand").is_some()) {
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(found) = section_of(&spec_sections::text(folder).unwrap_or_default(), &file) {
        // A section without an alias is known by its title.
        let section = found.alias.or(Some(found.title)).filter(|section| !section.is_empty());
        door.change(&StatusChange::NoteUntracked { file, section, section_number: found.number })?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The file of a hook's message, below the project, if it is the user's work.
fn written_file(message: &str, project: &Path) -> Option<String> {
    let message = StatusDocument::parse(message).ok()?;
    let at = |path: &str| message.get(&path.parse().ok()?)?.words();
    let written = at("tool_input.file_path").or_else(|| at("tool_input.notebook_path"))?;
    let file = Path::new(&written);
    let file = match file.is_absolute() {
        true => file.strip_prefix(project).ok().or_else(|| below_worktree(file, project))?,
        false => file,
    };
    let plain = file.components().all(|part| matches!(part, Component::Normal(_)));
    let first = file.components().next()?.as_os_str().to_str()?.to_owned();
    (plain && !OURS.contains(&first.as_str())).then(|| file.to_str().map(str::to_owned))?
}

/// A file in a git worktree whose status is that of the project, below the worktree.
fn below_worktree<'a>(file: &'a Path, project: &Path) -> Option<&'a Path> {
    let worktree = file.ancestors().skip(1).find(|folder| folder.join(".git").exists())?;
    let shares = Project::find_for_status(worktree).is_ok_and(|found| found.root() == project);
    file.strip_prefix(worktree).ok().filter(|_| shares)
}

/// The heading above the first place that names the file.
fn section_of(spec: &str, file: &str) -> Option<Heading> {
    let mut last = None;
    for (line, heading) in spec_sections::lines(spec) {
        match heading.filter(|heading| heading.level > 1) {
            Some(heading) => last = Some(heading),
            None if names(line, file) => return last,
            None => {}
        }
    }
    None
}

/// Whether a line names a file, and not a longer path that this one is a part of.
fn names(line: &str, file: &str) -> bool {
    let goes_on = |char: char| char.is_alphanumeric() || "/_-".contains(char);
    line.match_indices(file).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + file.len()..]);
        // `./src/a.rs` is the same file, and a dot after the name may end a sentence.
        let before = before.strip_suffix("./").filter(|rest| !rest.ends_with('.')).unwrap_or(before);
        let mut rest = after.chars();
        let ends = match rest.next() {
            Some('.') => !rest.next().is_some_and(goes_on),
            next => !next.is_some_and(goes_on),
        };
        ends && !before.ends_with(|char| goes_on(char) || char == '.')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_belongs_to_the_section_that_names_it() {
        let spec =
            "# A\n## 2. Flows\n### 2.12 Status line {#status-line}\nIn `src/line.js`.\n### 3.1 Other\n`src/other.js`\n";
        let found = section_of(spec, "src/line.js").unwrap();
        assert_eq!((found.alias.as_deref(), found.number.as_deref()), (Some("status-line"), Some("2.12")));
        let other = section_of(spec, "src/other.js").unwrap();
        assert_eq!((other.alias, other.number.as_deref(), other.title.as_str()), (None, Some("3.1"), "Other"));
        assert_eq!(found.title, "Status line");
        assert_eq!(section_of(spec, "src/none.js"), None);
    }

    #[test]
    fn a_part_of_a_path_is_another_file() {
        let spec = "## 1 Library {#lib}\nSee lib/src/a.rs, src/a.rs.bak and src/a.rst.\n## 2 Own {#own}\nIt is in ./src/a.rs.\n";
        assert_eq!(section_of(spec, "src/a.rs").unwrap().alias.as_deref(), Some("own"));
        assert_eq!(section_of(spec, "lib/src/a.rs").unwrap().alias.as_deref(), Some("lib"));
    }

    #[test]
    fn only_files_of_the_project_count() {
        let of = |path: &str| {
            let message = serde_json::json!({ "tool_input": { "file_path": path } }).to_string();
            written_file(&message, Path::new("/project"))
        };
        assert_eq!(of("/project/src/a.rs").as_deref(), Some("src/a.rs"));
        assert_eq!(of("src/a.rs").as_deref(), Some("src/a.rs"));
        for other in ["/elsewhere/a.rs", "/project/.fctry/state.json", "../a.rs", "/project/../a.rs", ""] {
            assert_eq!(of(other), None, "{other}");
        }
        assert_eq!(written_file("[]", Path::new("/")), None);
    }
}
