//! `hatchery kill`

use super::{Context, asking, print_json, reference, say};
use crate::client::Client;
use crate::client::paths::agent_path;
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

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Report> {
    let body = serde_json::json!({ "cascade": args.cascade, "remark": args.remark });
    let path = agent_path(&args.agent, "/kill");
    let accepted: serde_json::Value =
        asking(async { Client::visit(&context.project).await?.post(&path, &body).await })?;
    if context.json {
        print_json(&accepted)?;
        return Ok(ExitCode::SUCCESS);
    }
    let events = accepted["events"].as_array().map(Vec::as_slice).unwrap_or_default();
    let count = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    say(format_args!("killed {}, moved up {}", count("agent_killed"), count("agent_reparented")));
    Ok(ExitCode::SUCCESS)
}
