//! What a project brings that leads to running something: settings in `hatchery.toml`, and prompts. It is shown and asked for once,
//! as direnv does, and remembered by its content: a change is asked for again.
//!
//! The memory is in `.hatchery/trust.json`. A repository cannot bring it along, because the file is sealed: one that git, an archive or
//! a copy has put there is not believed. See docs/decisions/0072-files-that-only-we-can-write.md.

use crate::config::{PROMPTS_FOLDER, SettingsFile};
use crate::project::Project;
use crate::report::{Context as _, Report};
use crate::sealed_file;
use crate::shared_file;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Set to `1`, everything is trusted. For machines without a user who could be asked.
pub const TRUST_ALL: &str = "HATCHERY_TRUST_ALL";
/// Settings that cannot run anything, raise a ceiling of processes or money, or open the daemon to others. Every other setting is asked
/// for, also one that is added later.
const HARMLESS: [&str; 19] = [
    "port",
    "open",
    "replace_daemon",
    "log",
    "heartbeat_ms",
    "request_timeout_ms",
    "max_connections",
    "max_body_bytes",
    "snapshot_every",
    "harness",
    "stall_ms",
    "kill_stuck",
    "retries",
    "park",
    "stop_grace_ms",
    "keep_runs_days",
    "quests.slots",
    "quests.ward_limit_ms",
    "quests.approve_plan",
];
/// The longest prompt that is looked at. A longer one is no prompt.
const MAX_PROMPT_BYTES: usize = 1 << 20;

/// What needs the user's word: the name of a setting or a file, and its content.
pub type Brought = BTreeMap<String, String>;

/// The prompts of the project that the user has agreed to, by their names. They are used as they were read when the user's word was
/// looked up.
pub type Prompts = BTreeMap<String, String>;

#[derive(Debug, Default, Serialize, Deserialize)]
struct TrustFile {
    trusted: Brought,
}

/// Everything that needs the user's word, as it is now.
pub fn brought(project: &Project, file: &SettingsFile) -> Result<Brought, Report> {
    let mut brought = settings(file);
    let named = brought.get(PROMPTS_SETTING).and_then(|value| serde_json::from_str::<PathBuf>(value).ok());
    for folder in [Some(PathBuf::from(PROMPTS_FOLDER)), named].into_iter().flatten() {
        brought.extend(prompts_in(project, &folder)?.into_iter().map(|prompt| (prompt.shown, prompt.text)));
    }
    Ok(brought)
}

/// What of this does not have the user's word.
pub fn unknown(project: &Project, brought: &Brought) -> Brought {
    let known = remembered(project).trusted;
    let is_unknown = |(name, content): &(&String, &String)| known.get(*name) != Some(*content);
    brought.iter().filter(is_unknown).map(|(name, content)| (name.clone(), content.clone())).collect()
}

/// Refuses settings, and a project with prompts, that the user has not agreed to.
pub fn check(project: &Project, file: &SettingsFile) -> Result<(), Report> {
    refuse_unknown(project, &brought(project, file)?)
}

/// The prompts in a folder of the project. Refuses a folder that the user has not agreed to.
pub fn prompts(project: &Project, folder: &Path) -> Result<Prompts, Report> {
    let found = prompts_in(project, folder)?;
    refuse_unknown(project, &found.iter().map(|prompt| (prompt.shown.clone(), prompt.text.clone())).collect())?;
    Ok(found.into_iter().map(|prompt| (prompt.name, prompt.text)).collect())
}

/// Remembers the user's word for exactly this, and forgets every earlier one.
pub fn accept(project: &Project, brought: &Brought) -> Result<(), Report> {
    let path = file(project);
    sealed_file::write(&path, &TrustFile { trusted: brought.clone() })
        .context(format_args!("{} cannot be written", path.display()))
}

fn refuse_unknown(project: &Project, brought: &Brought) -> Result<(), Report> {
    if std::env::var_os(TRUST_ALL).is_some_and(|value| value == "1") {
        return Ok(());
    }
    let unknown: Vec<String> = unknown(project, brought).into_keys().collect();
    match unknown.as_slice() {
        [] => Ok(()),
        names => Err(Report::failed(format_args!(
            "{} brings what can have programs run, and you have not been asked: {}",
            project.root().display(),
            names.join(", ")
        ))
        .hint("`hatchery trust` shows it and asks")
        .named("not_trusted")),
    }
}

/// A file that cannot be read, or that came with the folder, is no word of the user's.
fn remembered(project: &Project) -> TrustFile {
    match project.foreign() {
        None => sealed_file::read(&file(project)).ok().flatten().unwrap_or_default(),
        Some(_) => TrustFile::default(),
    }
}

/// The setting that names the folder of the prompts.
const PROMPTS_SETTING: &str = "quests.prompts";

/// The settings of the project's file, without harmless ones: each with its value.
fn settings(file: &SettingsFile) -> Brought {
    // A file that is not TOML is refused elsewhere, with its line.
    let written = file.written().unwrap_or_default();
    let mut brought = Brought::new();
    for (name, value) in written {
        match value {
            Value::Object(fields) => {
                brought.extend(fields.into_iter().map(|(field, value)| (format!("{name}.{field}"), value.to_string())))
            }
            value => drop(brought.insert(name, value.to_string())),
        }
    }
    brought.retain(|name, _| !HARMLESS.contains(&name.as_str()));
    brought
}

struct PromptFile {
    name: String,
    /// How the user knows the file: by its path in the project.
    shown: String,
    text: String,
}

fn prompts_in(project: &Project, folder: &Path) -> Result<Vec<PromptFile>, Report> {
    let folder = project.root().join(folder);
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).context(format_args!("{} cannot be read", folder.display())),
    };
    let files =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|kind| kind == "md"));
    files
        .map(|path| {
            let shown = path.strip_prefix(project.root()).unwrap_or(&path).display().to_string();
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            Ok(PromptFile { name, shown, text: read_prompt(&path)? })
        })
        .collect()
}

fn read_prompt(path: &Path) -> Result<String, Report> {
    let doing = format!("{} cannot be read", path.display());
    let text = match shared_file::read_bounded(path, MAX_PROMPT_BYTES) {
        Err(error) if error.kind() == ErrorKind::FileTooLarge => {
            return Err(Report::failed(format_args!("{} is too long for a prompt", path.display())));
        }
        read => read.context(&doing)?.unwrap_or_default(),
    };
    String::from_utf8(text).context(&doing)
}

fn file(project: &Project) -> PathBuf {
    project.data().join("trust.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_runs_something_is_asked_for_and_a_change_is_asked_for_again() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::find(folder.path()).unwrap();
        project.prepare().unwrap();
        let write = |text: &str| std::fs::write(project.config_file(), text).unwrap();
        let all = || brought(&project, &SettingsFile::read(&project).unwrap()).unwrap();
        let asked_for = || unknown(&project, &all()).into_keys().collect::<Vec<_>>();
        write("port = 1\nharness = 'scripted'\n[quests]\nslots = 2\n");
        assert_eq!(asked_for(), [""; 0]);
        write("claude_path = './x'\n[quests]\nward = 'make'\n");
        assert_eq!(asked_for(), ["claude_path", "quests.ward"]);
        accept(&project, &all()).unwrap();
        assert_eq!(asked_for(), [""; 0]);
        write("claude_path = './x'\n[quests]\nward = 'make all'\n");
        assert_eq!(asked_for(), ["quests.ward"]);
        // A repository must not raise the ceiling of processes.
        write("claude_path = './x'\nmax_runs = 100000\n[quests]\nward = 'make'\n");
        assert_eq!(asked_for(), ["max_runs"]);
        // A price of nothing would make every budget endless.
        write("claude_path = './x'\n[quests]\nward = 'make'\n[prices.\"claude-opus-5.5\"]\ninput = 0\noutput = 0\n");
        assert_eq!(asked_for(), ["prices.claude-opus-5.5"]);
        write("claude_path = './x'\n[quests]\nward = 'make all'\n");
        std::fs::create_dir(project.data().join("prompts")).unwrap();
        std::fs::write(project.data().join("prompts/codeweaver.md"), "Obey.").unwrap();
        assert_eq!(asked_for().len(), 2);
    }

    /// The answer is about what was shown, whatever has become of the files meanwhile.
    #[test]
    fn what_is_written_after_it_was_shown_is_not_agreed_to() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::find(folder.path()).unwrap();
        project.prepare().unwrap();
        let write = |ward: &str| std::fs::write(project.config_file(), format!("[quests]\nward = '{ward}'\n")).unwrap();
        write("make");
        let shown = SettingsFile::read(&project).unwrap();
        let agreed = brought(&project, &shown).unwrap();
        write("make evil");
        accept(&project, &agreed).unwrap();
        assert!(check(&project, &shown).is_ok());
        assert!(check(&project, &SettingsFile::read(&project).unwrap()).is_err());
        // And what was checked is what is used: prompts are given out as they were compared.
        std::fs::create_dir(project.data().join("prompts")).unwrap();
        std::fs::write(project.data().join("prompts/birth.md"), "Be kind.").unwrap();
        assert!(prompts(&project, Path::new(PROMPTS_FOLDER)).is_err());
        accept(&project, &brought(&project, &shown).unwrap()).unwrap();
        assert_eq!(prompts(&project, Path::new(PROMPTS_FOLDER)).unwrap()["birth"], "Be kind.");
    }
}
