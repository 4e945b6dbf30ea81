//! `hatchery clear`

use super::{CommandContext, accepted, reference};
use crate::client::paths::agent_path;
use crate::report::Report;
use std::process::ExitCode;

/// Start an agent's history again from nothing
///
/// The earlier messages stay in the log, and in the histories of children that inherited them.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The agent: an id, the beginning of one, or a name
    #[arg(allow_hyphen_values = true, value_parser = reference)]
    agent: String,
}

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    accepted(context, &agent_path(&args.agent, "/clear"), &serde_json::json!({}), |_| {
        format!("the history of {} starts again from nothing; earlier messages stay in the log", args.agent)
    })
}
