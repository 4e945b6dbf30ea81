//! `hatchery fork`

use super::{CommandContext, asking, print_json, print_line, reference, say, words_or_stdin};
use crate::client::Client;
use crate::report::Report;
use hatchery_core::SessionId;
use hatchery_core::agent::ROOT_NAME;
use std::process::ExitCode;

/// Create an agent that inherits another agent's history
///
/// Prints the new agent's id. The child inherits the parent's history up to now, or up to an earlier message (--at). The child
/// also inherits the parent's harness, model, permissions and folder. With a prompt the child starts to work at once. If the
/// parent is running tools, the fork waits until they have returned.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The parent: an id, the beginning of one, or a name [default: agent 0]
    #[arg(allow_hyphen_values = true, value_parser = reference)]
    agent: Option<String>,

    /// The new agent's task
    prompt: Option<String>,

    /// Only add the prompt to the history; start nothing
    #[arg(long, requires = "prompt")]
    no_run: bool,

    /// The new agent's name
    #[arg(long)]
    name: Option<String>,

    /// Inherit only up to this message; `hatchery history AGENT` shows the ids
    #[arg(long, value_name = "MESSAGE")]
    at: Option<u64>,

    /// The child's harness, for example codex; needs a prompt. If the parent has another harness, the child receives the history
    /// as text [default: the parent's]
    #[arg(long, value_name = "NAME", requires = "prompt", conflicts_with = "no_run")]
    harness: Option<String>,

    /// The provider of the child's model; only recorded [default: the child's harness]
    #[arg(long)]
    provider: Option<String>,

    /// The child's model [default: the parent's, if the harness is the same]
    #[arg(long)]
    model: Option<String>,

    /// The session that the child belongs to
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    session: Option<SessionId>,
}

const EXAMPLES: &str = "\
Examples:
  hatchery fork docs \"now write the tests\"        the child of `docs` starts to work
  hatchery fork root \"fix the parser\" --no-run    the task waits until you say something to the child
  hatchery fork docs \"review it\" --harness codex  another agent program";

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    let prompt = args.prompt.as_deref().map(words_or_stdin).transpose()?;
    let mut body = serde_json::json!({
        "parent": args.agent, "prompt": prompt, "run": prompt.is_some() && !args.no_run, "name": args.name, "at": args.at,
        "provider": args.provider, "model": args.model, "session": args.session,
    });
    // The field is omitted if it is not needed, because a daemon of an older version does not know `with`.
    if let Some(harness) = &args.harness {
        body["with"] = serde_json::json!({ "harness": harness });
    }
    let accepted: serde_json::Value = asking(async { client(context, args).await?.post("/api/agents", &body).await })?;
    let waits =
        accepted["events"].as_array().is_some_and(|events| events.iter().any(|it| it["type"] == "fork_requested"));
    match context.json {
        true => print_json(&accepted)?,
        false => print_line(accepted["id"].as_str().unwrap_or_default())?,
    }
    if prompt.is_some() && !args.no_run && !context.json {
        let id = accepted["id"].as_str().unwrap_or_default();
        say(format_args!("the new agent starts to work; `hatchery attach {id}` follows it"));
    }
    if waits {
        say("the fork is created when the tools that run in the parent have ended");
    }
    Ok(ExitCode::SUCCESS)
}

/// Without a project, only agent 0 can be the parent: the project is created together with agent 0. For any other parent the project must
/// exist.
async fn client(context: &CommandContext, args: &Args) -> Result<Client, Report> {
    match args.agent.as_deref() {
        None | Some(ROOT_NAME) => Client::reach(&context.project).await,
        Some(_) => Client::visit(&context.project).await,
    }
}
