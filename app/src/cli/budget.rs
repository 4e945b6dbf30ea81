//! `hatchery budget`

use super::{CommandContext, accepted, asking, print_json, print_line, reference, say};
use crate::client::Client;
use crate::http::BudgetList;
use crate::report::Report;
use std::process::ExitCode;

/// Show or set how much agents may spend
///
/// When an agent reaches its own budget, its quest's or the daily one, its turn is interrupted, its run is parked, and you are asked
/// (`hatchery ask list`). A higher budget lets the run continue in the same conversation. A day is a UTC day.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The budget in dollars, or `none`; without it, lists all budgets
    #[arg(allow_negative_numbers = true)]
    limit: Option<String>,

    /// Set the budget of this agent [default: the daily budget of all agents]
    #[arg(long, allow_hyphen_values = true, value_parser = reference, requires = "limit")]
    agent: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  hatchery budget                  lists the budgets and what is spent
  hatchery budget 20               all agents together, per day
  hatchery budget 2.50 --agent docs
  hatchery budget none             removes the daily budget";

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    match args.limit.as_deref() {
        None => list(context),
        Some(limit) => {
            let limit = Some(limit).filter(|limit| *limit != "none");
            let body = serde_json::json!({ "agent": args.agent, "limit": limit });
            accepted(context, "/api/budgets", &body, |_| match (&args.agent, limit) {
                (Some(agent), Some(limit)) => format!("{agent} may spend ${limit} in all"),
                (Some(agent), None) => format!("{agent} has no budget of its own any more"),
                (None, Some(limit)) => format!("all agents together may spend ${limit} per day"),
                (None, None) => "there is no daily budget any more".to_owned(),
            })
        }
    }
}

fn list(context: &CommandContext) -> Result<ExitCode, Report> {
    let list: BudgetList = asking(async { Client::visit(&context.project).await?.get("/api/budgets").await })?;
    if context.json {
        print_json(&list)?;
        return Ok(ExitCode::SUCCESS);
    }
    if list.budgets.is_empty() {
        say("no budget is set");
    }
    for budget in &list.budgets {
        let whose = match (&budget.agent, &budget.name) {
            (None, _) => "each day".to_owned(),
            (Some(agent), None) => agent.to_string(),
            (Some(agent), Some(name)) => format!("{agent} ({name})"),
        };
        print_line(&format!("{whose}: {} of {}", budget.spent, budget.limit))?;
    }
    Ok(ExitCode::SUCCESS)
}
