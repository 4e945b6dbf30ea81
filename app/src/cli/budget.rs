//! `hatchery budget`

use super::{Context, accepted, asking, print_json, print_line, reference, say};
use crate::client::Client;
use crate::http::BudgetList;
use crate::report::Report;
use std::process::ExitCode;

/// Show or set what agents may spend
///
/// An agent that reaches its ceiling, or that of the day, finishes its turn. Nothing more is begun: the run is parked, and the human is
/// asked (`hatchery ask list`). Raising the ceiling lets it go on. Days are those of UTC.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The ceiling in dollars, or `none`; without it, all ceilings are shown
    #[arg(allow_negative_numbers = true)]
    limit: Option<String>,

    /// For this agent [default: for all agents, on each day]
    #[arg(long, allow_hyphen_values = true, value_parser = reference, requires = "limit")]
    agent: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  hatchery budget                  what is set, and how much of it is used
  hatchery budget 20               all agents together, on each day
  hatchery budget 2.50 --agent docs
  hatchery budget none             no ceiling for the day";

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Report> {
    match args.limit.as_deref() {
        None => list(context),
        Some(limit) => {
            let limit = Some(limit).filter(|limit| *limit != "none");
            accepted(context, "/api/budgets", &serde_json::json!({ "agent": args.agent, "limit": limit }))
        }
    }
}

fn list(context: &Context) -> Result<ExitCode, Report> {
    let list: BudgetList = asking(async { Client::reach(&context.project).await?.get("/api/budgets").await })?;
    if context.json {
        print_json(&list)?;
        return Ok(ExitCode::SUCCESS);
    }
    if list.budgets.is_empty() {
        say("no ceiling is set");
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
