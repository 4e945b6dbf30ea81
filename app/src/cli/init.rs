//! `hatchery init`

use super::paint::{BAD, GOOD, paint, printable};
use super::{CommandContext, print_json, print_line, say};
use crate::init_record::{FileRecord, InitRecord};
use crate::report::{Code, Context as _, Report};
use crate::shared_file::{self, Durability};
use crate::state_file::{StatusFolder, read_bounded};
use hatchery_core::status::{Json, Object};
use serde_json::json;
use std::io::{BufRead as _, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// A larger file is not a settings file.
const MAX_SETTINGS_BYTES: usize = 4 * 1024 * 1024;
const STATUS_LINE: &str = "hatchery statusline";
const HOOK: &str = "hatchery state untracked";
const SERVER: &str = "hatchery";

/// Set the project up for Claude Code: status line, tools, and a hook that records file writes
///
/// Adds entries to .claude/settings.json and .mcp.json, and keeps everything else in these files. Shows the change first and
/// asks; --yes does not ask. Does not replace a status line of another program. Creates the folder .fctry, in which Hatchery
/// shows quests to other programs. With --json nothing is asked: without --yes the files stay as they are.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Remove what `hatchery init` added
    ///
    /// A file that has not changed since `hatchery init` is restored as it was before. From any other file, only the entries that
    /// `hatchery init` added are removed.
    #[arg(long)]
    undo: bool,

    /// Change the files without asking
    #[arg(long)]
    yes: bool,
}

/// A file before and after the change. `None` means that there is no file.
struct Change {
    file: &'static str,
    path: PathBuf,
    before: Option<String>,
    after: Option<String>,
}

const FILES: [(&str, Rewrite); 2] = [(".claude/settings.json", settings as Rewrite), (".mcp.json", servers)];
/// Folders that `hatchery init` may have to create.
const FOLDERS: [&str; 2] = [".claude", ".fctry"];

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    let root = context.project.root();
    let record = InitRecord::of(&context.project);
    let mut notes = Vec::new();
    let mut changes = Vec::new();
    for (file, rewrite) in FILES {
        let path = root.join(file);
        let before = read(&path)?;
        let after = match args.undo {
            true => undone(before.as_deref(), record.files.get(file), rewrite, &mut notes),
            false => set_up(before.as_deref(), rewrite, &mut notes),
        };
        if before != after {
            changes.push(Change { file, path, before, after });
        }
    }
    if !context.json {
        notes.iter().for_each(say);
    }
    let tell = |words: &str, is_done: bool| match context.json {
        true => {
            let changes: Vec<_> = changes.iter().map(Change::as_json).collect();
            print_json(&json!({ "changes": changes, "notes": notes, "done": is_done }))
        }
        false => {
            say(words);
            Ok(())
        }
    };
    let has_folder = StatusFolder::of(root).path().is_dir();
    if changes.is_empty() && (args.undo || has_folder) {
        tell(if args.undo { "there is nothing to undo" } else { "everything is set up already" }, true)?;
        return Ok(ExitCode::SUCCESS);
    }
    if !context.json {
        changes.iter().try_for_each(Change::show)?;
    }
    if !changes.is_empty() && !args.yes && (context.json || !agreed()) {
        let again = if args.undo { "hatchery init --undo --yes" } else { "hatchery init --yes" };
        tell(&format!("nothing is changed; `{again}` does it without asking"), false)?;
        return Ok(ExitCode::from(Code::Waits as u8));
    }
    for change in &changes {
        change.check()?;
    }
    match args.undo {
        true => undo(context, &changes, &record)?,
        false => init(context, &changes, record)?,
    }
    let words = match (args.undo, changes.is_empty()) {
        (true, _) => "the changes of `hatchery init` are removed",
        (false, true) => "the folder .fctry is made; everything else was set up already",
        (false, false) => "the project is set up; `hatchery init --undo` removes the changes",
    };
    tell(words, true)?;
    Ok(ExitCode::SUCCESS)
}

fn init(context: &CommandContext, changes: &[Change], mut record: InitRecord) -> Result<(), Report> {
    let root = context.project.root();
    let made = FOLDERS
        .into_iter()
        .filter(|folder| !root.join(folder).exists() && !record.folders.iter().any(|it| it == folder));
    record.folders.extend(made.map(str::to_owned).collect::<Vec<_>>());
    for Change { file, before, after, .. } in changes {
        if let Some(after) = after {
            record.files.insert((*file).to_owned(), FileRecord { before: before.clone(), after: after.clone() });
        }
    }
    // The record is written before the files, because without a record the changes cannot be undone exactly.
    record.keep(&context.project).context("what `hatchery init` changes cannot be recorded")?;
    for change in changes {
        change.write()?;
    }
    let status = StatusFolder::of(root).path().to_owned();
    std::fs::create_dir_all(&status).context(format_args!("{} cannot be made", status.display()))?;
    Ok(())
}

fn undo(context: &CommandContext, changes: &[Change], record: &InitRecord) -> Result<(), Report> {
    for change in changes {
        change.write()?;
    }
    let root = context.project.root();
    // Without a record, Hatchery does not know whether `hatchery init` created this folder.
    let unknown = [".fctry".to_owned()];
    let folders = if record.files.is_empty() { unknown.as_slice() } else { &record.folders };
    for folder in folders {
        // Only an empty folder is removed: files in it are not from `hatchery init`.
        std::fs::remove_dir(root.join(folder)).unwrap_or_default();
    }
    InitRecord::forget(&context.project);
    Ok(())
}

/// The text of a file with Hatchery's entries.
fn set_up(before: Option<&str>, rewrite: Rewrite, notes: &mut Vec<String>) -> Option<String> {
    let known = before.map(parsed).unwrap_or_default();
    let mut fields = known.clone();
    rewrite(&mut fields, false, notes);
    match fields.to_json().text() == known.to_json().text() {
        true => before.map(str::to_owned),
        false => Some(written(&fields)),
    }
}

/// The text of a file without Hatchery's entries. A file that has not changed since `init` gets the text from before `init`. From any
/// other file, only Hatchery's entries are removed.
fn undone(now: Option<&str>, record: Option<&FileRecord>, rewrite: Rewrite, notes: &mut Vec<String>) -> Option<String> {
    let now = now?;
    let before = match record.filter(|record| record.after == now) {
        Some(record) => record.before.as_deref()?,
        None => now,
    };
    let known = parsed(before);
    let mut fields = known.clone();
    rewrite(&mut fields, true, notes);
    if fields.to_json().text() == known.to_json().text() {
        return Some(before.to_owned());
    }
    // An object that was in the file before `init` stays, even if it is empty now. An object that `init` added is removed.
    let original = record.and_then(|record| record.before.as_deref()).map(parsed);
    for name in ["hooks", "mcpServers"] {
        if original.as_ref().is_some_and(|original| original.get(name).is_some()) && fields.get(name).is_none() {
            fields.set(name, Object::default().to_json());
        }
    }
    let is_ours = original.is_none() && fields.is_empty();
    (!is_ours).then(|| written(&fields))
}

fn written(fields: &Object) -> String {
    let mut text = fields.to_json().laid_out();
    text.push('\n');
    text
}

/// The fields of a text that `read` has already checked.
fn parsed(text: &str) -> Object {
    Json::parse(text).ok().and_then(|json| json.object()).unwrap_or_default()
}

/// Adds Hatchery's entries to the fields of a file, or removes them (`true`). Adds a note about each entry that cannot be changed.
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
    /// Prints the lines that are removed and added.
    fn show(&self) -> Result<(), Report> {
        print_line(self.file)?;
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let (before, after) = (text(&self.before), text(&self.after));
        let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
        let same = |(one, other): &(&&str, &&str)| one == other;
        let head = old.iter().zip(&new).take_while(same).count();
        let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(same).count();
        for line in &old[head..old.len() - tail] {
            print_line(&paint(BAD, format_args!("- {}", printable(line))))?;
        }
        for line in &new[head..new.len() - tail] {
            print_line(&paint(GOOD, format_args!("+ {}", printable(line))))?;
        }
        Ok(())
    }

    fn as_json(&self) -> serde_json::Value {
        json!({ "file": self.file, "before": self.before, "after": self.after })
    }

    /// Refuses to overwrite a file that another program has changed since the change was shown.
    fn check(&self) -> Result<(), Report> {
        match read(&self.path)? == self.before {
            true => Ok(()),
            false => Err(Report::failed(format_args!("{} was changed meanwhile; nothing is written", self.file))
                .hint("repeat the command: it shows the change to the file as it is now")),
        }
    }

    fn write(&self) -> Result<(), Report> {
        let doing = format!("{} cannot be written", self.path.display());
        let Some(after) = &self.after else { return std::fs::remove_file(&self.path).context(doing) };
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder).context(&doing)?;
        }
        // A symbolic link is followed and stays a link, because a user may keep the file elsewhere.
        let path = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        shared_file::replace(&path, after.as_bytes(), Durability::Synced).context(doing)
    }
}

/// Reads a file that must be a JSON object.
fn read(path: &Path) -> Result<Option<String>, Report> {
    let doing = format!("{} cannot be read", path.display());
    let Some(bytes) = read_bounded(path, MAX_SETTINGS_BYTES).context(&doing)? else { return Ok(None) };
    let hint = "repair the file; nothing was changed";
    let text =
        String::from_utf8(bytes).map_err(|_| Report::failed(format_args!("{doing}: it is not UTF-8")).hint(hint))?;
    // The most frequent reason is a comment in the file. The message names the line and the column.
    if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(&text) {
        return Err(Report::failed(format_args!("{doing}: it is not JSON: {error}")).hint(hint));
    }
    match Json::parse(&text).is_ok_and(|json| json.object().is_some()) {
        true => Ok(Some(text)),
        false => Err(Report::failed(format_args!("{doing}: it is not a JSON object")).hint(hint)),
    }
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
