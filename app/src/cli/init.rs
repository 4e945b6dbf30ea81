//! `hatchery init`

use super::paint::{BAD, GOOD, paint};
use super::{Context, print_line, say};
use crate::project;
use crate::report::{Code, Context as _, Report};
use crate::state_file::{StatusFolder, read_bounded};
use hatchery_core::status::{Json, Object};
use serde_json::json;
use std::io::{BufRead as _, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// A settings file that is larger is none.
const MAX_SETTINGS_BYTES: usize = 4 * 1024 * 1024;
const STATUS_LINE: &str = "hatchery statusline";
const HOOK: &str = "hatchery state untracked";
const SERVER: &str = "hatchery";

/// Set the project up for Claude Code: status line, tools, and a hook that records file writes
///
/// Merges into .claude/settings.json and .mcp.json, and keeps everything else in them. Shows the change first and asks; --yes
/// does not ask. A status line of another program is left alone. Makes the folder .fctry, in which quests show themselves.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Take out what `hatchery init` put in
    #[arg(long)]
    undo: bool,

    /// Change the files without asking
    #[arg(long)]
    yes: bool,
}

/// One file, before and after.
struct Change {
    path: PathBuf,
    before: Option<Object>,
    after: Object,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Report> {
    let root = context.project.root();
    let mut notes = Vec::new();
    let mut changes = Vec::new();
    for (file, rewrite) in [(".claude/settings.json", settings as Rewrite), (".mcp.json", servers)] {
        let path = root.join(file);
        let before = read(&path)?;
        let mut after = before.clone().unwrap_or_default();
        rewrite(&mut after, args.undo, &mut notes);
        let known = before.as_ref().map(|before| before.to_json().to_string());
        if known.unwrap_or_else(|| "{}".into()) != after.to_json().text() {
            changes.push(Change { path, before, after });
        }
    }
    notes.iter().for_each(say);
    if changes.is_empty() {
        say(if args.undo { "there is nothing to undo" } else { "everything is set up already" });
        return Ok(ExitCode::SUCCESS);
    }
    for change in &changes {
        change.show(root)?;
    }
    if !args.yes && !agreed() {
        let again = if args.undo { "hatchery init --undo --yes" } else { "hatchery init --yes" };
        say(format_args!("nothing is changed; `{again}` does it without asking"));
        return Ok(ExitCode::from(Code::Waits as u8));
    }
    for change in &changes {
        change.write()?;
    }
    let status = StatusFolder::of(root).path().to_owned();
    match args.undo {
        // Only an empty one goes: what is in it is not ours.
        true => std::fs::remove_dir(&status).unwrap_or_default(),
        false => std::fs::create_dir_all(&status).context(format_args!("{} cannot be made", status.display()))?,
    }
    say(if args.undo { "undone" } else { "done; `hatchery init --undo` takes it back" });
    Ok(ExitCode::SUCCESS)
}

/// Puts our part into the fields of a file, or takes it out. What cannot be done becomes a note.
type Rewrite = fn(&mut Object, bool, &mut Vec<String>);

fn settings(fields: &mut Object, undo: bool, notes: &mut Vec<String>) {
    let ours = Json::from(json!({ "type": "command", "command": STATUS_LINE }));
    let known = fields.get("statusLine").cloned();
    match (known, undo) {
        (None, false) => fields.set("statusLine", ours),
        (Some(known), true) if known == ours => fields.remove("statusLine"),
        (Some(known), false) if known != ours => {
            notes.push("the settings have another status line, which is left alone".into());
        }
        _ => {}
    }
    let entry = Json::from(json!({
        "matcher": "Write|Edit|MultiEdit|NotebookEdit", "hooks": [{ "type": "command", "command": HOOK }],
    }));
    let Some(mut hooks) = fields.get("hooks").map_or_else(|| Some(Object::default()), Json::object) else {
        notes.push("`hooks` of the settings is not an object, so no hook is put there".into());
        return;
    };
    let Some(mut after_tools) = hooks.get("PostToolUse").map_or_else(|| Some(Vec::new()), Json::list) else {
        notes.push("`hooks.PostToolUse` of the settings is not a list, so no hook is put there".into());
        return;
    };
    let there = after_tools.contains(&entry);
    match undo {
        true if !there => return,
        true => after_tools.retain(|known| *known != entry),
        false if there => return,
        false => after_tools.push(entry),
    }
    match after_tools.is_empty() {
        true => hooks.remove("PostToolUse"),
        false => hooks.set("PostToolUse", Json::of_list(&after_tools)),
    }
    match hooks.is_empty() {
        true => fields.remove("hooks"),
        false => fields.set("hooks", hooks.to_json()),
    }
}

fn servers(fields: &mut Object, undo: bool, notes: &mut Vec<String>) {
    let ours = Json::from(json!({ "command": "hatchery", "args": ["mcp", "--agent", "root"] }));
    let Some(mut servers) = fields.get("mcpServers").map_or_else(|| Some(Object::default()), Json::object) else {
        notes.push("`mcpServers` of .mcp.json is not an object, so no server is put there".into());
        return;
    };
    match (servers.get(SERVER).cloned(), undo) {
        (None, false) => servers.set(SERVER, ours),
        (Some(known), true) if known == ours => servers.remove(SERVER),
        (Some(known), false) if known != ours => {
            notes.push(".mcp.json has another server `hatchery`, which is left alone".into());
            return;
        }
        _ => return,
    }
    match servers.is_empty() {
        true => fields.remove("mcpServers"),
        false => fields.set("mcpServers", servers.to_json()),
    }
}

impl Change {
    /// The lines that go and come.
    fn show(&self, root: &Path) -> Result<(), Report> {
        print_line(&self.path.strip_prefix(root).unwrap_or(&self.path).display().to_string())?;
        let text = |fields: &Object| fields.to_json().laid_out();
        let (before, after) = (self.before.as_ref().map(text).unwrap_or_default(), text(&self.after));
        let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
        let same = |(one, other): &(&&str, &&str)| one == other;
        let head = old.iter().zip(&new).take_while(same).count();
        let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(same).count();
        for line in &old[head..old.len() - tail] {
            print_line(&paint(BAD, format_args!("- {line}")))?;
        }
        for line in &new[head..new.len() - tail] {
            print_line(&paint(GOOD, format_args!("+ {line}")))?;
        }
        Ok(())
    }

    fn write(&self) -> Result<(), Report> {
        let doing = format!("{} cannot be written", self.path.display());
        if self.after.is_empty() {
            return std::fs::remove_file(&self.path).context(doing);
        }
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder).context(&doing)?;
        }
        let mut text = self.after.to_json().laid_out();
        text.push('\n');
        // A link stays one: the file may be kept elsewhere, with those of other projects.
        let path = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        project::write_whole(&path, text.as_bytes(), 0o644).context(doing)
    }
}

fn read(path: &Path) -> Result<Option<Object>, Report> {
    let doing = format!("{} cannot be read", path.display());
    let Some(bytes) = read_bounded(path, MAX_SETTINGS_BYTES).context(&doing)? else { return Ok(None) };
    let parsed = std::str::from_utf8(&bytes).ok().and_then(|text| Json::parse(text).ok()?.object());
    let parsed = parsed.ok_or_else(|| {
        Report::failed(format_args!("{doing}: it is not a JSON object")).hint("repair the file; nothing was changed")
    })?;
    Ok(Some(parsed))
}

fn agreed() -> bool {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return false;
    }
    say("change these files? [y/N]");
    let answer = stdin.lock().lines().next().and_then(Result::ok).unwrap_or_default();
    matches!(answer.trim(), "y" | "Y" | "yes")
}
