//! `hatchery rewind`

use super::{CommandContext, accepted, reference};
use crate::client::paths::agent_path;
use crate::report::Report;
use std::process::ExitCode;

/// Take an agent's history back to a mark or a message
///
/// Children that were forked in the meantime keep what they inherited.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The agent: an id, the beginning of one, or a name
    #[arg(allow_hyphen_values = true, value_parser = reference)]
    agent: String,
    /// The name of the mark [default: the last mark]
    mark: Option<String>,
    /// Go back to this message instead; `hatchery history AGENT` shows the ids
    #[arg(long, value_name = "MESSAGE", conflicts_with = "mark")]
    to: Option<u64>,
}

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    let body = serde_json::json!({ "mark": args.mark, "message": args.to });
    let place = match (&args.mark, args.to) {
        (_, Some(message)) => format!("message {message}"),
        (Some(mark), None) => format!("the mark `{mark}`"),
        (None, None) => "its last mark".to_owned(),
    };
    accepted(context, &agent_path(&args.agent, "/rewind"), &body, |_| {
        format!("the history of {} is back at {place}; later messages stay in the log", args.agent)
    })
}
