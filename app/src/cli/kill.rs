//! `hatchery kill`

use super::{CommandContext, asking, counted, print_json, reference, say};
use crate::client::Client;
use crate::client::paths::{agent_path, branch_path};
use crate::http::{BranchKind, BranchView};
use crate::report::Report;
use std::process::ExitCode;

/// End an agent permanently
///
/// Its history stays. Its children become children of its nearest living ancestor, unless --cascade kills them, too. To end
/// only its current run, use `hatchery stop`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The agent: an id, the beginning of one, or a name
    #[arg(allow_hyphen_values = true, value_parser = reference)]
    agent: String,

    /// Also kill all its descendants
    #[arg(long)]
    cascade: bool,

    /// The reason, for the log
    #[arg(long)]
    remark: Option<String>,
}

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    let body = serde_json::json!({ "cascade": args.cascade, "remark": args.remark });
    let path = agent_path(&args.agent, "/kill");
    let (accepted, work): (serde_json::Value, bool) = asking(async {
        let client = Client::visit(&context.project).await?;
        let branch = client.get::<BranchView>(&branch_path(&args.agent, "")).await;
        let work = branch.is_ok_and(|branch| branch.line.kind == BranchKind::Agent && branch.files > 0);
        Ok((client.post(&path, &body).await?, work))
    })?;
    if context.json {
        print_json(&accepted)?;
        return Ok(ExitCode::SUCCESS);
    }
    let events = accepted["events"].as_array().map(Vec::as_slice).unwrap_or_default();
    let count = |kind: &str| events.iter().filter(|event| event["type"] == kind).count() as u64;
    let (killed, moved) = (count("agent_killed"), count("agent_reparented"));
    let id = accepted["id"].as_str().unwrap_or_default();
    say(format_args!("{} killed; `hatchery history {id}` still shows what was said", counted(killed, "agent")));
    if moved > 0 {
        say(format_args!("{} now below its parent", counted(moved, "child agent")));
    }
    if work {
        say("`hatchery rescue list` will show the agent's work that was not merged");
    }
    Ok(ExitCode::SUCCESS)
}
