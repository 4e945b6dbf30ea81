//! `hatchery history`

use super::paint::{DIM, STRONG, WARN, paint};
use super::{CommandContext, asking, print_json, print_line, read_given, reference, say};
use crate::client::Client;
use crate::client::paths::agent_path;
use crate::http::{HistoryView, ImportView, MessageView};
use crate::report::Report;
use hatchery_core::MessageKind;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Show an agent's history as a model would receive it
///
/// Inherited messages come first, then the agent's own.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<HistoryCommand>,

    /// The agent: an id, the beginning of one, or a name
    #[arg(allow_hyphen_values = true, value_parser = reference)]
    agent: Option<String>,

    /// Also show what a model does not receive (marks, commands, interrupted turns), and do not shorten messages
    #[arg(long)]
    full: bool,
}

#[derive(Debug, clap::Subcommand)]
enum HistoryCommand {
    /// Import histories from a file of JSON lines
    ///
    /// Each line is {"agent":{"id":…,"parent":…,"fork_message_id":…}} or
    /// {"message":{"id":…,"agent":…,"kind":…,"content":…}}; the ids are local to the file. Prints the new id of each agent.
    Import {
        /// The file to read
        file: PathBuf,
    },
}

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    match (&args.command, &args.agent) {
        (Some(HistoryCommand::Import { file }), _) => import(context, file),
        (None, Some(agent)) => show(context, agent, args.full),
        (None, None) => Err(Report::new(crate::report::Code::Usage, "whose history?").hint("hatchery history AGENT")),
    }
}

fn show(context: &CommandContext, agent: &str, full: bool) -> Result<ExitCode, Report> {
    let path = agent_path(agent, if full { "/history?full=true" } else { "/history" });
    let history: HistoryView = asking(async { Client::visit(&context.project).await?.get(&path).await })?;
    if context.json {
        print_json(&history)?;
        return Ok(ExitCode::SUCCESS);
    }
    // A message that contained only reports about seats is empty here.
    let is_empty = |message: &MessageView| message.kind == MessageKind::Assistant && message.content.trim().is_empty();
    for message in history.messages.iter().filter(|message| full || !is_empty(message)) {
        let kind = serde_json::to_value(message.kind)
            .ok()
            .and_then(|kind| kind.as_str().map(str::to_owned))
            .unwrap_or_default();
        let inherited = if message.agent == history.agent { "" } else { " (inherited)" };
        let lost = if message.interrupted { paint(WARN, " interrupted") } else { String::new() };
        print_line(&format!(
            "{} {}{}{lost}",
            paint(DIM, format_args!("{:>6}", message.id)),
            paint(STRONG, kind.replace('_', " ")),
            paint(DIM, inherited)
        ))?;
        for line in shown(&readable(message.kind, &message.content), full) {
            print_line(&format!("       {line}"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A message for people: of a tool call, the tool's name and the arguments; of a tool result, its text. `--json` prints both as stored.
fn readable(kind: MessageKind, content: &str) -> String {
    let object = || serde_json::from_str::<Value>(content).ok().filter(Value::is_object);
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match (kind, object()) {
        (MessageKind::ToolCall, Some(call)) if call["name"].is_string() => {
            let arguments = call["input"].as_object().into_iter().flatten();
            let lines = arguments.map(|(name, value)| format!("\n{name}: {}", text(value).replace('\n', "\n  ")));
            text(&call["name"]) + &lines.collect::<String>()
        }
        (MessageKind::ToolResult, Some(result)) if !result["content"].is_null() => {
            let failed = if result["is_error"] == true { "failed: " } else { "" };
            format!("{failed}{}", text(&result["content"]))
        }
        _ => content.to_owned(),
    }
}

/// The lines of a message. A long message is cut unless `full` is set. Control characters are replaced.
fn shown(content: &str, full: bool) -> Vec<String> {
    const LINES: usize = 12;
    const CHARS: usize = 200;
    let limit = if full { usize::MAX } else { LINES };
    let chars = if full { usize::MAX } else { CHARS };
    let clean =
        |line: &str| line.chars().take(chars).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect::<String>();
    let mut lines: Vec<String> = content.lines().take(limit).map(clean).collect();
    if content.lines().count() > limit {
        lines.push("…".into());
    }
    lines
}

fn import(context: &CommandContext, file: &Path) -> Result<ExitCode, Report> {
    let text = read_given(file)?;
    let imported: ImportView =
        asking(async { Client::reach(&context.project).await?.post_text("/api/history/import", text).await })?;
    if context.json {
        print_json(&imported)?;
        return Ok(ExitCode::SUCCESS);
    }
    for (theirs, ours) in &imported.agents {
        print_line(&format!("{theirs} {ours}"))?;
    }
    say(format_args!("{} agents and {} messages imported", imported.agents.len(), imported.messages));
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_shown_in_words() {
        let call = r#"{"id":"t1","input":{"command":"rm -rf build","timeout":5},"name":"Bash"}"#;
        assert_eq!(readable(MessageKind::ToolCall, call), "Bash\ncommand: rm -rf build\ntimeout: 5");
        let result = r#"{"content":"No such folder","id":"t1","is_error":true}"#;
        assert_eq!(readable(MessageKind::ToolResult, result), "failed: No such folder");
        // A result that is not in the form of a harness, for example an imported one.
        assert_eq!(readable(MessageKind::ToolResult, "[1, 2]"), "[1, 2]");
        assert_eq!(readable(MessageKind::Assistant, result), result);
    }
}
