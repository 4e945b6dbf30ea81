//! `hatchery rename`

use super::{CommandContext, accepted, reference};
use crate::client::paths::agent_path;
use crate::report::Report;
use std::process::ExitCode;

/// Change or remove an agent's name
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The agent: an id, the beginning of one, or a name
    #[arg(allow_hyphen_values = true, value_parser = reference)]
    agent: String,
    /// The new name; without it, the name is removed
    name: Option<String>,
}

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    let Args { agent, name } = args;
    accepted(context, &agent_path(agent, "/rename"), &serde_json::json!({ "name": name }), |_| match name {
        Some(name) => format!("{agent} is called {name} now"),
        None => format!("{agent} has no name any more; commands know it by its id"),
    })
}
