//! `hatchery say`

use super::run_options::RunOptions;
use super::{Context, accepted, reference, words_or_stdin};
use crate::client::paths::agent_path;
use crate::report::Report;
use std::process::ExitCode;

/// Send a message to an agent, and start a process for it if none is running
///
/// The message is in the agent's history at once. A running process receives it at its next tool call or at the end of its
/// turn. This command does not wait for the answer: `hatchery attach` shows it.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The agent: an id, the beginning of one, or a name
    #[arg(allow_hyphen_values = true, value_parser = reference)]
    agent: String,

    /// The message; `-` reads it from standard input
    text: String,

    #[command(flatten)]
    with: RunOptions,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Report> {
    let body = serde_json::json!({ "text": words_or_stdin(&args.text)?, "with": args.with.as_json(context)? });
    accepted(context, &agent_path(&args.agent, "/say"), &body)
}
