//! `hatchery clear`

use super::{Context, accepted, reference};
use crate::client::paths::agent_path;
use crate::report::Report;
use std::process::ExitCode;

/// Begin an agent's history anew. What came before stays in the log, and with the children that inherited it.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// An id, the beginning of one, or a name.
    #[arg(allow_hyphen_values = true, value_parser = reference)]
    agent: String,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Report> {
    accepted(context, &agent_path(&args.agent, "/clear"), &serde_json::json!({}))
}
