//! `hatchery stop`

use super::{Context, accepted, asking, print_json, reference, say, show_events};
use crate::client::paths::agent_path;
use crate::client::{Client, Failure};
use crate::http::{RunList, RunPhase};
use crate::report::Report;
use serde_json::{Value, json};
use std::process::ExitCode;

/// End the run of an agent and every process that it started
///
/// Sends SIGINT, then SIGTERM, then SIGKILL, with `stop_grace_ms` in between. The agent and its history stay: `hatchery say`
/// starts it again.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The agent: an id, the beginning of one, or a name
    #[arg(allow_hyphen_values = true, value_parser = reference, required_unless_present = "all")]
    agent: Option<String>,

    /// End all runs of this project, including parked ones
    #[arg(long, conflicts_with = "agent")]
    all: bool,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Report> {
    match &args.agent {
        Some(agent) => accepted(context, &agent_path(agent, "/stop"), &json!({})),
        None => stop_all(context),
    }
}

fn stop_all(context: &Context) -> Result<ExitCode, Report> {
    let stopped = asking(async {
        let client = Client::visit(&context.project).await?;
        let RunList { runs, .. } = client.get("/api/runs").await?;
        let mut stopped: Vec<Value> = Vec::new();
        for run in runs.iter().filter(|run| !matches!(run.phase, RunPhase::Ended | RunPhase::Stopping)) {
            match client.ask(&agent_path(&run.agent.to_string(), "/stop"), &json!({})).await {
                Ok(accepted) => stopped.push(accepted),
                // It has ended by itself meanwhile, or somebody else has stopped it.
                Err(Failure::Refused { detail, .. }) if ["no_run", "run_stopping"].contains(&detail.code.as_str()) => {}
                Err(failure) => return Err(failure.into()),
            }
        }
        Ok(stopped)
    })?;
    if context.json {
        print_json(&stopped)?;
        return Ok(ExitCode::SUCCESS);
    }
    if stopped.is_empty() {
        say("nothing runs");
    }
    stopped.iter().try_for_each(show_events)?;
    Ok(ExitCode::SUCCESS)
}
