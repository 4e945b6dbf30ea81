//! `hatchery run`

use super::attach::{self, Until};
use super::run_flags::RunFlags;
use super::{CommandContext, asking, counted, print_json, print_line, reference, say, words_or_stdin};
use crate::client::Client;
use crate::client::paths::{agent_path, branch_path};
use crate::http::BranchView;
use crate::report::{Context as _, Report};
use std::process::ExitCode;

/// Start an agent on a task and print what it says
///
/// Creates a new agent. With --agent, an existing agent continues its conversation instead. The agent's process keeps running
/// when this command or the daemon ends, also after Ctrl-C and with --detach. Exits with 0 if the run completed, otherwise with
/// 1.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The task; `-` reads it from standard input
    prompt: String,

    /// Use this agent: an id, the beginning of one, or a name [default: a new agent]
    #[arg(long, allow_hyphen_values = true, value_parser = reference)]
    agent: Option<String>,

    /// The new agent's name
    #[arg(long, conflicts_with = "agent")]
    name: Option<String>,

    /// How much the agent may spend in total, in dollars. When the budget is used up, the turn is interrupted and you are asked
    #[arg(long, value_name = "USD")]
    budget: Option<String>,

    /// Print the agent's id and return at once
    #[arg(long, short)]
    detach: bool,

    /// Work in a git worktree with a branch of its own; `hatchery diff` shows the changes, `hatchery merge` merges them into your
    /// branch [default: the setting `worktrees.runs`]
    #[arg(long, short, conflicts_with_all = ["agent", "folder"])]
    worktree: bool,

    /// Work in the project itself, whatever the settings say
    #[arg(long, conflicts_with = "worktree")]
    no_worktree: bool,

    #[command(flatten)]
    with: RunFlags,
}

/// The exit code that shells use for a command that Ctrl-C has ended.
const INTERRUPTED: u8 = 130;

const EXAMPLES: &str = "\
Examples:
  hatchery run \"make the tests pass\"
  hatchery run -w --name flag \"add a --verbose flag\"; hatchery diff flag; hatchery merge flag
  hatchery run --detach --name docs \"write the README\"; hatchery attach docs
  hatchery run --harness scripted \"needs no account: it repeats what you say\"";

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    let prompt = words_or_stdin(&args.prompt)?;
    let with = args.with.as_json(context)?;
    asking(async {
        let client = match &args.agent {
            Some(_) => Client::visit(&context.project).await?,
            None => {
                args.with.check_before_start(context)?;
                Client::reach(&context.project).await?
            }
        };
        let accepted: serde_json::Value = match &args.agent {
            Some(agent) => {
                if let Some(limit) = &args.budget {
                    let body = serde_json::json!({ "agent": agent, "limit": limit });
                    client.post::<serde_json::Value>("/api/budgets", &body).await?;
                }
                let body = serde_json::json!({ "text": prompt, "with": with });
                client.post(&agent_path(agent, "/say"), &body).await?
            }
            None => {
                let worktree = args.worktree.then_some(true).or(args.no_worktree.then_some(false));
                let body = serde_json::json!({
                    "prompt": prompt, "name": args.name, "worktree": worktree, "budget": args.budget, "with": with,
                });
                client.post("/api/runs", &body).await?
            }
        };
        let id = accepted["id"].as_str().unwrap_or_default();
        if let Some(warning) = accepted["warning"].as_str() {
            say(format_args!("warning: {warning}"));
        }
        if args.detach {
            match context.json {
                true => print_json(&accepted)?,
                false => print_line(id)?,
            }
            return Ok(ExitCode::SUCCESS);
        }
        let first = accepted["events"][0]["id"].as_u64().unwrap_or_default();
        attach::introduce(context, id);
        tokio::select! {
            ended = attach::talk(context, client, id, first.saturating_sub(1), Until::RunIsOver) => {
                if !context.json {
                    tell_branch(context, id).await;
                }
                ended
            }
            interrupted = tokio::signal::ctrl_c() => {
                interrupted.context("signals cannot be received")?;
                say(format_args!("it works on: `hatchery attach {id}` follows it, `hatchery stop {id}` ends it"));
                Ok(ExitCode::from(INTERRUPTED))
            }
        }
    })
}

/// If the agent has a branch of its own, prints what it has changed, and the commands for the branch.
async fn tell_branch(context: &CommandContext, id: &str) {
    let Ok(client) = Client::visit(&context.project).await else { return };
    let Ok(view) = client.get::<BranchView>(&branch_path(id, "")).await else { return };
    let (branch, files) = (&view.line.branch, counted(view.files, "file"));
    match view.files {
        0 => say(format_args!("nothing is changed on {branch}")),
        _ => say(format_args!(
            "{files} changed on {branch}, +{} -{}: `hatchery diff {2}` shows them, `hatchery merge {2}` merges them into your branch",
            view.added, view.removed, view.line.slug
        )),
    }
}
