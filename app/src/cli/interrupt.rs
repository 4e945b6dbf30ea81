//! `hatchery interrupt`

use super::{CommandContext, accepted, reference};
use crate::client::paths::agent_path;
use crate::report::Report;
use std::process::ExitCode;

/// Interrupt the current turn of an agent
///
/// The agent program and the history keep what was said in the turn. A line in both says that the turn was interrupted.
/// Afterwards a run that was started with --stay waits for the next message; any other run ends.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The agent: an id, the beginning of one, or a name
    #[arg(allow_hyphen_values = true, value_parser = reference)]
    agent: String,
}

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    let agent = &args.agent;
    accepted(context, &agent_path(agent, "/interrupt"), &serde_json::json!({}), |accepted| {
        match accepted.has("run_interrupted") {
            true => format!("{agent} is told to end its turn"),
            false => format!("{agent} was told to end its turn before"),
        }
    })
}
