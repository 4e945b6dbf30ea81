//! `hatchery say`

use super::run_options::RunOptions;
use super::{Context, accepted, reference, words_or_stdin};
use crate::client::paths::agent_path;
use crate::report::Report;
use std::process::ExitCode;

/// Say something to an agent
///
/// It is in the agent's history at once, and is said to its process as soon as that listens: in the middle of a turn, at
/// the next tool. When no process plays the agent, one is started that goes on with its conversation. `hatchery attach`
/// shows the answer.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// To whom: an id, the beginning of one, or a name
    #[arg(allow_hyphen_values = true, value_parser = reference)]
    agent: String,

    /// What to say; `-` reads it from standard input
    text: String,

    #[command(flatten)]
    with: RunOptions,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Report> {
    let body = serde_json::json!({ "text": words_or_stdin(&args.text)?, "with": args.with.as_json(context)? });
    accepted(context, &agent_path(&args.agent, "/say"), &body)
}
