//! `hatchery say`

use super::attach::{self, Until};
use super::run_options::RunOptions;
use super::{Context, accepted, asking, reference, words_or_stdin};
use crate::client::Client;
use crate::client::paths::agent_path;
use crate::report::Report;
use hatchery_core::EventId;
use std::process::ExitCode;

/// Send a message to an agent, and start a process for it if none is running
///
/// The message is in the agent's history at once. A running process receives it at its next tool call or at the end of its
/// turn. Without --follow this command does not wait for the answer: `hatchery attach` shows it.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The agent: an id, the beginning of one, or a name
    #[arg(allow_hyphen_values = true, value_parser = reference)]
    agent: String,

    /// The message; `-` reads it from standard input
    text: String,

    /// Print the answer, until the run ends or Ctrl-C
    #[arg(long, short)]
    follow: bool,

    #[command(flatten)]
    with: RunOptions,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Report> {
    let body = serde_json::json!({ "text": words_or_stdin(&args.text)?, "with": args.with.as_json(context)? });
    let path = agent_path(&args.agent, "/say");
    if !args.follow {
        let agent = &args.agent;
        return accepted(context, &path, &body, |accepted| match accepted.has("run_requested") {
            true => format!("{agent} has your message and starts to work; `hatchery attach {agent}` follows it"),
            false => format!(
                "{agent} has your message and will read it while it works; `hatchery attach {agent}` follows it"
            ),
        });
    }
    asking(async {
        let client = Client::visit(&context.project).await?;
        let accepted: serde_json::Value = client.post(&path, &body).await?;
        let events = accepted["events"].as_array().map(Vec::as_slice).unwrap_or_default();
        let message = events.iter().find(|event| event["type"] == "message_added");
        let message = message.and_then(|event| event["id"].as_u64()).unwrap_or_default();
        let id = accepted["id"].as_str().unwrap_or_default();
        attach::follow(context, client, id, message.saturating_sub(1), Until::Answered(EventId(message))).await
    })
}
