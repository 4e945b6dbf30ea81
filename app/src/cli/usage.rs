//! `hatchery usage`

use super::paint::{DIM, STRONG, paint};
use super::{Context, asking, print_json, print_line};
use crate::client::Client;
use crate::clock;
use crate::http::UsageView;
use crate::report::Report;
use hatchery_core::usage::Usage;
use std::process::ExitCode;

/// Show cost and tokens by agent, by day and in total
///
/// The figures are what the agents' programs report. A turn that was killed is missing; newer versions of the Claude CLI add
/// it when the conversation is resumed.
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(context: &Context, _args: &Args) -> Result<ExitCode, Report> {
    let view: UsageView = asking(async { Client::visit(&context.project).await?.get("/api/usage").await })?;
    if context.json {
        print_json(&view)?;
        return Ok(ExitCode::SUCCESS);
    }
    for agent in view.agents.iter().filter(|agent| agent.spent != Usage::default()) {
        let name = agent.name.as_deref().unwrap_or("-");
        print_line(&format!("{}  {}  {name}", agent.agent, line(&agent.spent)))?;
    }
    for day in &view.days {
        let written = clock::written(day.day);
        let date = written.split('T').next().unwrap_or_default();
        print_line(&format!("{date:<22}  {}", line(&day.spent)))?;
    }
    print_line(&format!("{}  {}", paint(STRONG, format_args!("{:<22}", "in all")), line(&view.total)))?;
    Ok(ExitCode::SUCCESS)
}

fn line(spent: &Usage) -> String {
    let tokens = format!(
        "{} in, {} out, {} cached, {} to cache",
        spent.input_tokens, spent.output_tokens, spent.cache_read_tokens, spent.cache_write_tokens
    );
    format!("{:>10}  {}", spent.cost.to_string(), paint(DIM, tokens))
}
