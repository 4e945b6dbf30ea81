//! `hatchery tree`

use super::paint::{DIM, STRONG, paint};
use super::{Context, asking, counted, print_json, print_line};
use crate::client::Client;
use crate::http::{AgentList, AgentView};
use crate::report::Report;
use hatchery_core::AgentId;
use std::collections::BTreeMap;
use std::process::ExitCode;

/// Show the agents as a tree
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Also show dead and expired agents
    #[arg(long, short)]
    all: bool,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Report> {
    let mut list: AgentList = asking(async { Client::visit(&context.project).await?.get("/api/agents").await })?;
    list.agents.retain(|agent| args.all || agent.state.is_living());
    if context.json {
        print_json(&list)?;
        return Ok(ExitCode::SUCCESS);
    }
    for line in drawn(&list.agents) {
        print_line(&line)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// One line an agent. Not by recursion: a tree may be deeper than the stack.
fn drawn(agents: &[AgentView]) -> Vec<String> {
    let known: BTreeMap<AgentId, &AgentView> = agents.iter().map(|agent| (agent.id, agent)).collect();
    let mut children: BTreeMap<Option<AgentId>, Vec<&AgentView>> = BTreeMap::new();
    for agent in agents {
        children.entry(agent.parent.filter(|parent| known.contains_key(parent))).or_default().push(agent);
    }
    let below = |id: Option<AgentId>| children.get(&id).map(Vec::as_slice).unwrap_or_default();
    let mut lines = Vec::with_capacity(agents.len());
    let mut open: Vec<(&AgentView, String, &str, &str)> =
        below(None).iter().rev().map(|root| (*root, String::new(), "", "")).collect();
    while let Some((agent, indent, branch, trunk)) = open.pop() {
        let name = agent.name.as_deref().unwrap_or("-");
        let facts = format!("{} · {}", agent.state, counted(agent.messages, "message"));
        lines.push(format!("{indent}{branch}{} {} {}", paint(STRONG, name), agent.id, paint(DIM, facts)));
        let indent = format!("{indent}{trunk}");
        let last = below(Some(agent.id)).len().saturating_sub(1);
        for (place, child) in below(Some(agent.id)).iter().enumerate().rev() {
            let (branch, trunk) = if place == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            open.push((child, indent.clone(), branch, trunk));
        }
    }
    lines
}
