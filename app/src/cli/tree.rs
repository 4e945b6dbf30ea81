//! `hatchery tree`

use super::paint::{DIM, STRONG, paint, printable};
use super::ps::{now_doing, say_hidden, state_word};
use super::{CommandContext, asking, counted, print_json, print_line};
use crate::client::Client;
use crate::http::{AgentList, AgentView};
use crate::report::Report;
use crate::short_ids::ShortIds;
use hatchery_core::AgentId;
use std::collections::BTreeMap;
use std::process::ExitCode;

/// Show the agents as a tree: what each one does now, and which ones wait for you
///
/// Shows the same agents as `hatchery ps`, and their ancestors.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Show all agents, including dead, expired and long idle ones
    #[arg(long, short)]
    all: bool,
}

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    let path = if args.all { "/api/agents" } else { "/api/agents?extent=current_with_ancestors" };
    let list: AgentList = asking(async { Client::visit(&context.project).await?.get(path).await })?;
    if context.json {
        print_json(&list)?;
        return Ok(ExitCode::SUCCESS);
    }
    if !list.agents.is_empty() {
        print_line(&paint(DIM, "NAME ID STATE · HISTORY · NOW"))?;
    }
    for line in drawn(&list.agents, &ShortIds::with_width(list.id_chars)) {
        print_line(&line)?;
    }
    say_hidden(list.hidden);
    Ok(ExitCode::SUCCESS)
}

/// The tree with one line per agent. Not recursive, because a deep tree would overflow the stack.
fn drawn(agents: &[AgentView], ids: &ShortIds) -> Vec<String> {
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
        let name = printable(agent.name.as_deref().unwrap_or("-"));
        let state = state_word(agent);
        let facts = paint(DIM, format_args!("{state} · {}", counted(agent.messages, "message")));
        let (id, now) = (ids.short(agent.id), now_doing(agent));
        let apart = if now.is_empty() { String::new() } else { paint(DIM, " · ") };
        lines.push(format!("{indent}{branch}{} {id} {facts}{apart}{now}", paint(STRONG, name)));
        let indent = format!("{indent}{trunk}");
        let last = below(Some(agent.id)).len().saturating_sub(1);
        for (place, child) in below(Some(agent.id)).iter().enumerate().rev() {
            let (branch, trunk) = if place == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            open.push((child, indent.clone(), branch, trunk));
        }
    }
    lines
}
