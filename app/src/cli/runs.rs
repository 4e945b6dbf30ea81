//! `hatchery runs`

use super::paint::{DIM, paint};
use super::{CommandContext, asking, print_json, print_line, say};
use crate::client::Client;
use crate::clock;
use crate::http::{RunList, RunPhase, RunView};
use crate::report::Report;
use crate::short_ids::ShortIds;
use std::process::ExitCode;

/// List the runs: agent, number, state, age, cost, name
///
/// A run is one piece of work of an agent. It has one or more attempts, each of which is a process: `run 2.3` is attempt 3 of
/// run 2.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Also list runs that have ended
    #[arg(long, short)]
    all: bool,
}

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    let mut list: RunList = asking(async { Client::visit(&context.project).await?.get("/api/runs").await })?;
    let ids = ShortIds::of(list.runs.iter().map(|run| run.agent));
    list.runs.retain(|run| args.all || run.phase != RunPhase::Ended);
    if context.json {
        print_json(&list)?;
        return Ok(ExitCode::SUCCESS);
    }
    if list.runs.is_empty() {
        say(if args.all { "there are no runs yet" } else { "no run is open; --all lists ended runs, too" });
    }
    for run in &list.runs {
        print_line(&line(run, &ids))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn line(run: &RunView, ids: &ShortIds) -> String {
    let phase = match run.phase {
        RunPhase::Waiting => "waiting",
        RunPhase::Starting => "starting",
        RunPhase::Running => "running",
        RunPhase::Stopping => "stopping",
        RunPhase::Parked => "parked",
        RunPhase::Ended => "ended",
    };
    let now = clock::now();
    let cause = run.cause.map(|cause| format!(" ({cause})")).unwrap_or_default();
    let waits = match (run.phase, &run.detail) {
        (RunPhase::Running, Some(detail)) => format!(" ({detail})"),
        _ => String::new(),
    };
    let until = run.until.map(|until| format!(", goes on {}", clock::age(until, now))).unwrap_or_default();
    let name = run.name.as_deref().unwrap_or("-");
    let pid = run.pid.map(|pid| format!("  pid {pid}")).unwrap_or_default();
    format!(
        "{}  run {}.{}  {phase}{cause}{waits}{until}  {}  {}  {}{pid}  {name}",
        ids.short(run.agent),
        run.run,
        run.attempts,
        run.harness,
        run.spent.cost,
        paint(DIM, clock::age(run.last_output, now)),
    )
}
