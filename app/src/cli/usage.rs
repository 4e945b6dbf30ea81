//! `hatchery usage`

use super::paint::{DIM, STRONG, paint};
use super::{CommandContext, asking, print_json, print_line};
use crate::client::Client;
use crate::clock;
use crate::http::UsageView;
use crate::report::Report;
use crate::short_ids::ShortIds;
use hatchery_core::usage::Usage;
use std::process::ExitCode;

/// Show cost and tokens by agent, by day and in total
///
/// Each request to the model counts when it is made, with the price of its model. The total that the agent program reports at the
/// end of a turn corrects the sum. The requests of a killed turn stay counted. Agents that speak ACP report only at the end of a
/// turn.
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(context: &CommandContext, _args: &Args) -> Result<ExitCode, Report> {
    let view: UsageView = asking(async { Client::visit(&context.project).await?.get("/api/usage").await })?;
    if context.json {
        print_json(&view)?;
        return Ok(ExitCode::SUCCESS);
    }
    let ids = ShortIds::of(view.agents.iter().map(|agent| agent.agent));
    // The column is at least as wide as a date.
    let width = ids.width().max("2026-01-01".len());
    for agent in view.agents.iter().filter(|agent| agent.spent != Usage::default()) {
        let name = agent.name.as_deref().unwrap_or("-");
        print_line(&format!("{:<width$}  {}  {name}", ids.short(agent.agent), line(&agent.spent)))?;
    }
    for day in &view.days {
        let written = clock::written(day.day);
        let date = written.split('T').next().unwrap_or_default();
        print_line(&format!("{date:<width$}  {}", line(&day.spent)))?;
    }
    print_line(&format!("{}  {}", paint(STRONG, format_args!("{:<width$}", "in all")), line(&view.total)))?;
    Ok(ExitCode::SUCCESS)
}

fn line(spent: &Usage) -> String {
    let tokens = format!(
        "{} in, {} out, {} cached, {} to cache",
        spent.input_tokens, spent.output_tokens, spent.cache_read_tokens, spent.cache_write_tokens
    );
    format!("{:>10}  {}", spent.cost.to_string(), paint(DIM, tokens))
}
