//! `hatchery ps`

use super::paint::{DIM, paint};
use super::{Context, asking, print_json, print_line, say};
use crate::client::Client;
use crate::clock;
use crate::http::AgentList;
use crate::report::Report;
use std::process::ExitCode;

/// List the agents: id, state, last activity, messages, name
///
/// An agent is hatching (created, but not heard from yet), alive, sleeping (its session has ended), expired (it never hatched)
/// or dead. Expired and dead agents are not listed unless you ask for them.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Also list dead and expired agents
    #[arg(long, short)]
    all: bool,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Report> {
    let mut list: AgentList = asking(async { Client::reach(&context.project).await?.get("/api/agents").await })?;
    list.agents.retain(|agent| args.all || agent.state.is_living());
    if context.json {
        print_json(&list)?;
        return Ok(ExitCode::SUCCESS);
    }
    if list.agents.is_empty() {
        say("there are no agents");
    }
    for agent in &list.agents {
        let name = agent.name.as_deref().unwrap_or("-");
        let active = paint(DIM, clock::written(agent.last_active));
        print_line(&format!("{}  {:<8}  {active}  {:>6} messages  {name}", agent.id, agent.state, agent.messages))?;
    }
    Ok(ExitCode::SUCCESS)
}
