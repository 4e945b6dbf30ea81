//! `hatchery stop`

use super::{CommandContext, accepted, asking, counted, print_json, print_line, reference, say};
use crate::client::paths::{agent_path, quest_path};
use crate::client::{Client, Failure};
use crate::http::{RunList, RunPhase, RunView};
use crate::report::{Code, Report};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use hatchery_core::AgentId;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// End the run of an agent and every process that it started
///
/// Sends SIGINT, then SIGTERM, then SIGKILL, with `stop_grace_ms` in between. The agent and its history stay: `hatchery say`
/// starts the agent again. With --all, running quests are paused first, so that they do not start other agents. The command then
/// waits until no run is open, and prints the ids of the stopped agents. `hatchery quest resume` continues a quest.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The agent: an id, the beginning of one, or a name
    #[arg(allow_hyphen_values = true, value_parser = reference, required_unless_present = "all")]
    agent: Option<String>,

    /// Pause all quests and end all runs of this project, including waiting and parked ones
    #[arg(long, conflicts_with = "agent")]
    all: bool,

    /// With --all: stop waiting after this many seconds; the runs that are being stopped still end
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    wait: u64,
}

/// How many stops are requested at the same time. The engine can then record them in one batch.
const AT_ONCE: usize = 32;
/// The pause between two requests for the open runs.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    match &args.agent {
        Some(agent) => {
            accepted(context, &agent_path(agent, "/stop"), &json!({}), |accepted| match accepted.has("run_ended") {
                true => format!("the run of {agent} is ended"),
                false => format!("{agent} is being stopped; `hatchery wait {agent}` returns when it has ended"),
            })
        }
        None => stop_all(context, Duration::from_secs(args.wait)),
    }
}

fn stop_all(context: &CommandContext, patience: Duration) -> Result<ExitCode, Report> {
    let stopped = asking(async { all(&Client::visit(&context.project).await?, patience).await })?;
    if context.json {
        print_json(&stopped)?;
        return Ok(ExitCode::SUCCESS);
    }
    let events = || stopped.iter().filter_map(|accepted| accepted["events"].as_array()).flatten();
    let agents: BTreeSet<&str> = events()
        .filter(|event| ["run_stopping", "run_ended"].iter().any(|kind| event["type"] == *kind))
        .filter_map(|event| event["agent"].as_str())
        .collect();
    let quests = events().filter(|event| event["type"] == "quest_paused").count() as u64;
    if agents.is_empty() && quests == 0 {
        say("no run is open");
    }
    for agent in &agents {
        print_line(agent)?;
    }
    if !agents.is_empty() {
        say(format_args!("{} stopped; `hatchery say AGENT …` starts one again", counted(agents.len() as u64, "agent")));
    }
    if quests > 0 {
        say(format_args!("{} paused; `hatchery quest resume QUEST` resumes one", counted(quests, "quest")));
    }
    Ok(ExitCode::SUCCESS)
}

/// Pauses all quests and ends all runs. Returns the answers to the requests.
pub(super) async fn all(client: &Client, patience: Duration) -> Result<Vec<Value>, Report> {
    let deadline = Instant::now() + patience;
    let mut stopped = pause_quests(client).await?;
    loop {
        // An agent that is being stopped gets no new children, so each round finds fewer runs.
        let RunList { runs, .. } = client.get("/api/runs").await?;
        let mut open: Vec<&RunView> = runs.iter().filter(|run| run.phase != RunPhase::Ended).collect();
        // Waiting runs are stopped first. Otherwise a waiting run would start in the place of a stopped one.
        open.sort_by_key(|run| run.phase != RunPhase::Waiting);
        if open.is_empty() {
            return Ok(stopped);
        }
        if Instant::now() > deadline {
            let left = counted(open.len() as u64, "run");
            let message = format!("{left} still open after {} s", patience.as_secs());
            return Err(Report::new(Code::Failed, message)
                .hint("`hatchery runs` shows what is left; repeat the command")
                .named("timed_out"));
        }
        let asked = open.iter().filter(|run| run.phase != RunPhase::Stopping).map(|run| stop(client, run.agent));
        let round: Vec<Option<Value>> = stream::iter(asked).buffer_unordered(AT_ONCE).try_collect().await?;
        stopped.extend(round.into_iter().flatten());
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// Pauses all quests, because a running quest would start new agents in place of the stopped ones.
async fn pause_quests(client: &Client) -> Result<Vec<Value>, Report> {
    let list: Value = client.get("/api/quests").await?;
    let quests = list["quests"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut paused = Vec::new();
    for quest in quests.iter().filter_map(|quest| quest["id"].as_str()) {
        match client.ask(&quest_path(quest, "/pause"), &json!({})).await {
            Ok(accepted) => paused.push(accepted),
            // The quest is over or already paused.
            Err(Failure::Refused { code: Code::Failed, .. }) => {}
            Err(failure) => return Err(failure.into()),
        }
    }
    Ok(paused)
}

/// Stops the run of an agent. `None` if the run has already ended, or if another command is stopping it.
async fn stop(client: &Client, agent: AgentId) -> Result<Option<Value>, Report> {
    match client.ask(&agent_path(&agent.to_string(), "/stop"), &json!({})).await {
        Ok(accepted) => Ok(Some(accepted)),
        Err(Failure::Refused { detail, .. }) if ["no_run", "run_stopping"].contains(&detail.code.as_str()) => Ok(None),
        Err(failure) => Err(failure.into()),
    }
}
