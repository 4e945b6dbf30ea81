//! `hatchery tree`

use super::paint::{DIM, STRONG, paint, printable};
use super::ps::{is_shown, now_doing, state_word};
use super::short_ids::ShortIds;
use super::{CommandContext, asking, counted, print_json, print_line, say};
use crate::client::Client;
use crate::clock;
use crate::http::{AgentList, AgentView};
use crate::report::Report;
use hatchery_core::AgentId;
use std::collections::{BTreeMap, BTreeSet};
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
    let mut list: AgentList = asking(async { Client::visit(&context.project).await?.get("/api/agents").await })?;
    let ids = ShortIds::of(list.agents.iter().map(|agent| agent.id));
    let hidden = keep_shown_with_ancestors(&mut list.agents, args.all);
    if context.json {
        print_json(&list)?;
        return Ok(ExitCode::SUCCESS);
    }
    if !list.agents.is_empty() {
        print_line(&paint(DIM, "NAME ID STATE · HISTORY · NOW"))?;
    }
    for line in drawn(&list.agents, &ids) {
        print_line(&line)?;
    }
    if hidden > 0 {
        let are = if hidden == 1 { "is" } else { "are" };
        say(paint(DIM, format_args!("{hidden} more that {are} idle, dead or expired: --all")));
    }
    Ok(ExitCode::SUCCESS)
}

/// Keeps the agents that `ps` shows, and their ancestors, so that the tree has no gaps. Returns the number of removed agents.
fn keep_shown_with_ancestors(agents: &mut Vec<AgentView>, all: bool) -> usize {
    let (before, now) = (agents.len(), clock::now());
    let shown: Vec<AgentId> = agents.iter().filter(|agent| all || is_shown(agent, now)).map(|agent| agent.id).collect();
    let parents: BTreeMap<AgentId, Option<AgentId>> = agents.iter().map(|agent| (agent.id, agent.parent)).collect();
    let mut kept: BTreeSet<AgentId> = BTreeSet::new();
    for agent in shown {
        let mut next = Some(agent);
        while let Some(id) = next.filter(|id| kept.insert(*id)) {
            next = parents.get(&id).copied().flatten();
        }
    }
    agents.retain(|agent| kept.contains(&agent.id));
    before - agents.len()
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
