//! `hatchery fork`

use super::{Context, asking, print_json, print_line, reference};
use crate::client::Client;
use crate::report::Report;
use hatchery_core::SessionId;
use std::process::ExitCode;

/// Fork an agent: a new one that inherits its history up to now, or up to an earlier message.
///
/// Prints the new agent's id. While tools run in the parent the fork waits for them.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Whom to fork: an id, the beginning of one, or a name [default: agent 0].
    #[arg(allow_hyphen_values = true, value_parser = reference)]
    agent: Option<String>,

    /// The new agent's first message.
    prompt: Option<String>,

    /// What to call the new agent.
    #[arg(long)]
    name: Option<String>,

    /// Fork from this earlier message; `hatchery history AGENT` shows their ids.
    #[arg(long, value_name = "MESSAGE")]
    at: Option<u64>,

    /// The provider of its model, for the record.
    #[arg(long)]
    provider: Option<String>,

    /// Its model, for the record.
    #[arg(long)]
    model: Option<String>,

    /// The session that it takes part in.
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    session: Option<SessionId>,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Report> {
    let body = serde_json::json!({
        "parent": args.agent, "prompt": args.prompt, "name": args.name, "at": args.at,
        "provider": args.provider, "model": args.model, "session": args.session,
    });
    let accepted: serde_json::Value =
        asking(async { Client::reach(&context.project).await?.post("/api/agents", &body).await })?;
    let waits =
        accepted["events"].as_array().is_some_and(|events| events.iter().any(|it| it["type"] == "fork_requested"));
    match context.json {
        true => print_json(&accepted)?,
        false => print_line(accepted["id"].as_str().unwrap_or_default())?,
    }
    if waits {
        anstream::eprintln!(
            "the fork waits for tools that run in the parent; its agent_created event says when it is done"
        );
    }
    Ok(ExitCode::SUCCESS)
}
