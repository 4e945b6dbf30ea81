//! `hatchery mark`

use super::{CommandContext, accepted, reference};
use crate::client::paths::agent_path;
use crate::report::Report;
use std::process::ExitCode;

/// Mark the current place in an agent's history, for `hatchery rewind`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The agent: an id, the beginning of one, or a name
    #[arg(allow_hyphen_values = true, value_parser = reference)]
    agent: String,
    /// The name of the mark
    #[arg(default_value = "")]
    label: String,
}

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    let Args { agent, label } = args;
    accepted(context, &agent_path(agent, "/mark"), &serde_json::json!({ "label": label }), |_| match label.as_str() {
        "" => format!("the place is marked; `hatchery rewind {agent}` goes back to it"),
        label => format!("the place is marked as `{label}`; `hatchery rewind {agent} \"{label}\"` goes back to it"),
    })
}
