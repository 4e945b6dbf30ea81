//! `hatchery stop`

use super::{Context, accepted, reference};
use crate::client::paths::agent_path;
use crate::report::Report;
use std::process::ExitCode;

/// End the run of an agent, and everything that its process has started
///
/// The process is interrupted, then terminated, then killed, each after the grace time of the setting `stop_grace_ms`. The
/// agent stays, with its history: `hatchery say` runs it again.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Whose: an id, the beginning of one, or a name
    #[arg(allow_hyphen_values = true, value_parser = reference)]
    agent: String,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Report> {
    accepted(context, &agent_path(&args.agent, "/stop"), &serde_json::json!({}))
}
