//! `hatchery interrupt`

use super::{Context, accepted, reference};
use crate::client::paths::agent_path;
use crate::report::Report;
use std::process::ExitCode;

/// Break off the turn of an agent
///
/// It stays, and waits for the next message or ends, as its run was started. What was said in the turn stays in the log, but
/// does not reach a model again.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// BudgetScope: an id, the beginning of one, or a name
    #[arg(allow_hyphen_values = true, value_parser = reference)]
    agent: String,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Report> {
    accepted(context, &agent_path(&args.agent, "/interrupt"), &serde_json::json!({}))
}
