//! `hatchery diff`

use super::paint::{BAD, DIM, GOOD, STRONG, paint, printable};
use super::{CommandContext, asking, branch, counted, print_json, print_line, reference, say};
use crate::client::Client;
use crate::client::paths::{agent_path, branch_path, escaped, quest_path};
use crate::http::{AgentView, BranchKind, BranchView};
use crate::report::Report;
use crate::worktree::{ChangeKind, Changes, FileDiff};
use std::process::ExitCode;

/// Show what an agent or a quest has changed
///
/// If the agent has a worktree, or for a quest, shows all changes since its branch was created from your branch, including
/// uncommitted changes. For other agents, shows the uncommitted changes of the folder in which the agent works.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// An agent, a quest or a branch: an id, the beginning of one, or a name [default: if there is only one branch, that branch]
    #[arg(value_name = "AGENT|QUEST", allow_hyphen_values = true, value_parser = reference)]
    who: Option<String>,

    /// Only list the files
    #[arg(long)]
    stat: bool,
}

const EXAMPLES: &str = "\
Examples:
  hatchery diff              the only branch
  hatchery diff docs --stat  the files that the agent `docs` has changed";

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    asking(async {
        let client = Client::visit(&context.project).await?;
        let path = changes_path(&client, args.who.as_deref()).await?;
        let changes: Changes = client.get(&path).await?;
        if context.json {
            print_json(&changes)?;
            return Ok(ExitCode::SUCCESS);
        }
        if changes.shared {
            say("note: the agent has no worktree of its own; these uncommitted changes can be yours, too");
        }
        if changes.files.is_empty() {
            say("nothing is changed");
            return Ok(ExitCode::SUCCESS);
        }
        if args.stat {
            list(&changes)?;
            return Ok(ExitCode::SUCCESS);
        }
        for file in &changes.files {
            let diff: FileDiff = client.get(&format!("{path}?file={}", escaped(&file.path))).await?;
            show(&diff)?;
        }
        if changes.truncated {
            say(format_args!("there are more files; only {} are shown", changes.files.len()));
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// The API path of the changes of a branch, or of an agent without a branch.
async fn changes_path(client: &Client, given: Option<&str>) -> Result<String, Report> {
    let meant = branch::meant(client, given).await?;
    match client.get::<BranchView>(&branch_path(&meant, "")).await {
        Ok(view) => Ok(match view.line.kind {
            BranchKind::Agent => agent_path(&view.line.id, "/changes"),
            BranchKind::Quest => quest_path(&view.line.id, "/changes"),
        }),
        // The name can belong to an agent without a branch. If no such agent exists either, the first error is returned.
        Err(of_branch) => match client.get::<AgentView>(&agent_path(&meant, "")).await {
            Ok(agent) => Ok(agent_path(&agent.id.to_string(), "/changes")),
            Err(_) => Err(of_branch),
        },
    }
}

fn list(changes: &Changes) -> Result<(), Report> {
    for file in &changes.files {
        let (mark, style) = match file.how {
            ChangeKind::Added => ("A", GOOD),
            ChangeKind::Modified => ("M", DIM),
            ChangeKind::Deleted => ("D", BAD),
        };
        let lines = if file.binary { "binary".to_owned() } else { format!("+{} -{}", file.added, file.removed) };
        print_line(&format!("{}  {}  {}", paint(style, mark), printable(&file.path), paint(DIM, lines)))?;
    }
    let files = counted(changes.files.len() as u64, "file");
    say(format_args!("{files}, {} added, {} removed", counted(changes.added, "line"), changes.removed));
    Ok(())
}

/// Prints a diff in the colours that git uses.
fn show(diff: &FileDiff) -> Result<(), Report> {
    let mut in_hunk = false;
    for line in diff.diff.lines() {
        in_hunk = (in_hunk || line.starts_with("@@")) && !line.starts_with("diff --git ");
        let text = printable(line);
        print_line(&match line.as_bytes().first() {
            Some(b'@') if line.starts_with("@@") => paint(DIM, text),
            Some(b'+') if in_hunk => paint(GOOD, text),
            Some(b'-') if in_hunk => paint(BAD, text),
            _ if !in_hunk => paint(STRONG, text),
            _ => text,
        })?;
    }
    if diff.truncated {
        say(format_args!("only the beginning of the changes in {} is shown", diff.path));
    }
    Ok(())
}
