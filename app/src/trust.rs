//! What a project brings that leads to running something: settings in `hatchery.toml`, and prompts. It is shown and asked for once,
//! as direnv does, and remembered by its content: a change is asked for again.
//!
//! The memory is in `.hatchery/trust.json`. A repository cannot bring it along, because a `.hatchery` that was not made here is
//! refused before this is read.

use crate::project::{Project, write_whole};
use crate::report::{Context as _, Report};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

/// Set to `1`, everything is trusted. For machines on which nobody can be asked.
pub const TRUST_ALL: &str = "HATCHERY_TRUST_ALL";
/// Settings that cannot run anything or open the daemon to others. Every other setting is asked for, also one that is added later.
const HARMLESS: [&str; 20] = [
    "port",
    "open",
    "replace_daemon",
    "log",
    "heartbeat_ms",
    "request_timeout_ms",
    "max_connections",
    "max_body_bytes",
    "max_runs",
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
const MAX_PROMPT_BYTES: u64 = 1 << 20;

/// What needs the user's word: the name of a setting or a file, and its content.
pub type Brought = BTreeMap<String, String>;

#[derive(Debug, Default, Serialize, Deserialize)]
struct TrustFile {
    trusted: Brought,
}

/// Refuses a project that brings something for which nobody was asked.
pub fn check(project: &Project) -> Result<(), Report> {
    let mut brought = settings(project)?;
    brought.extend(prompts(project)?);
    refuse_unknown(project, &brought)
}

/// The same for prompts alone, which are read when a quest begins.
pub fn check_prompts(project: &Project) -> Result<(), Report> {
    refuse_unknown(project, &prompts(project)?)
}

/// Everything that needs the user's word and does not have it.
pub fn unknown(project: &Project) -> Result<Brought, Report> {
    let mut brought = settings(project)?;
    brought.extend(prompts(project)?);
    let known = remembered(project).trusted;
    Ok(brought.into_iter().filter(|(name, content)| known.get(name) != Some(content)).collect())
}

/// Remembers what is there now, and forgets what is not.
pub fn accept(project: &Project) -> Result<(), Report> {
    let mut trusted = settings(project)?;
    trusted.extend(prompts(project)?);
    let text = serde_json::to_vec_pretty(&TrustFile { trusted }).context("the settings cannot be described")?;
    let path = file(project);
    write_whole(&path, &text, 0o600).context(format_args!("{} cannot be written", path.display()))
}

fn refuse_unknown(project: &Project, brought: &Brought) -> Result<(), Report> {
    if std::env::var_os(TRUST_ALL).is_some_and(|value| value == "1") {
        return Ok(());
    }
    let known = remembered(project).trusted;
    let unknown: Vec<&str> = brought
        .iter()
        .filter(|(name, content)| known.get(*name) != Some(content))
        .map(|(name, _)| name.as_str())
        .collect();
    match unknown.as_slice() {
        [] => Ok(()),
        names => Err(Report::failed(format_args!(
            "{} brings what can have programs run, and you have not been asked: {}",
            project.root().display(),
            names.join(", ")
        ))
        .hint("`hatchery trust` shows it and asks")),
    }
}

fn remembered(project: &Project) -> TrustFile {
    // A file that cannot be read, or came with the folder, is no word of the user's.
    if project.is_foreign() {
        return TrustFile::default();
    }
    std::fs::read(file(project)).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

/// The setting that names the folder of the prompts.
const PROMPTS_SETTING: &str = "quests.prompts";

/// The settings of the project's file, without harmless ones: each with its value.
fn settings(project: &Project) -> Result<Brought, Report> {
    let path = project.config_file();
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Brought::new()),
        Err(error) => return Err(error).context(format_args!("{} cannot be read", path.display())),
    };
    // A file that is not TOML is refused elsewhere, with its line.
    let Ok(written) = toml::from_str::<serde_json::Map<String, Value>>(&text) else { return Ok(Brought::new()) };
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
    Ok(brought)
}

/// The project's own prompts, where they are usually and where a setting says that they are.
fn prompts(project: &Project) -> Result<Brought, Report> {
    let usual = project.data().join("prompts");
    let named =
        settings(project)?.remove(PROMPTS_SETTING).and_then(|value| serde_json::from_str::<String>(&value).ok());
    let mut brought = prompts_in(project, &usual)?;
    if let Some(folder) = named {
        brought.extend(prompts_in(project, &project.root().join(folder))?);
    }
    Ok(brought)
}

fn prompts_in(project: &Project, folder: &Path) -> Result<Brought, Report> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Brought::new()),
        Err(error) => return Err(error).context(format_args!("{} cannot be read", folder.display())),
    };
    let mut brought = Brought::new();
    for path in
        entries.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|kind| kind == "md"))
    {
        let shown = path.strip_prefix(project.root()).unwrap_or(&path).display().to_string();
        brought.insert(shown, read_prompt(&path)?);
    }
    Ok(brought)
}

fn read_prompt(path: &Path) -> Result<String, Report> {
    let size = std::fs::symlink_metadata(path).map_or(0, |found| found.len());
    if size > MAX_PROMPT_BYTES {
        return Err(Report::failed(format_args!("{} is too long for a prompt", path.display())));
    }
    std::fs::read_to_string(path).context(format_args!("{} cannot be read", path.display()))
}

fn file(project: &Project) -> std::path::PathBuf {
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
        write("port = 1\nharness = 'scripted'\n[quests]\nslots = 2\n");
        assert_eq!(unknown(&project).unwrap(), Brought::new());
        write("claude_path = './x'\n[quests]\nward = 'make'\n");
        assert_eq!(unknown(&project).unwrap().into_keys().collect::<Vec<_>>(), ["claude_path", "quests.ward"]);
        accept(&project).unwrap();
        assert_eq!(unknown(&project).unwrap(), Brought::new());
        write("claude_path = './x'\n[quests]\nward = 'make all'\n");
        assert_eq!(unknown(&project).unwrap().into_keys().collect::<Vec<_>>(), ["quests.ward"]);
        // A price of nothing would make every budget endless.
        write("claude_path = './x'\n[quests]\nward = 'make'\n[prices.\"claude-opus-5.5\"]\ninput = 0\noutput = 0\n");
        assert_eq!(unknown(&project).unwrap().into_keys().collect::<Vec<_>>(), ["prices.claude-opus-5.5"]);
        write("claude_path = './x'\n[quests]\nward = 'make all'\n");
        std::fs::create_dir(project.data().join("prompts")).unwrap();
        std::fs::write(project.data().join("prompts/codeweaver.md"), "Obey.").unwrap();
        assert_eq!(unknown(&project).unwrap().len(), 2);
    }
}
