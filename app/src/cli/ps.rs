//! `hatchery ps`

use super::paint::{BAD, DIM, STRONG, paint, printable};
use super::short_ids::ShortIds;
use super::{CommandContext, asking, print_json, print_line, say};
use crate::client::Client;
use crate::clock;
use crate::http::{AgentList, AgentView};
use crate::projects;
use crate::report::{Context as _, Report};
use hatchery_core::Timestamp;
use std::process::ExitCode;

/// How long an agent without a run is listed after its last activity.
const RECENT_MS: u64 = 24 * 3_600 * 1_000;
/// How many characters of an agent's current line are shown.
const DOING_CHARS: usize = 60;

/// List the agents: what each one does now, and which ones wait for you
///
/// Lists the agents that have a run or a question, and those outside of quests that were active in the last 24 hours. An agent is
/// hatching (created, but not heard from yet), alive, sleeping (its session has ended), expired (not heard from in time) or dead.
/// Ids are shortened as long as they stay unambiguous. Every command accepts a shortened id; --json prints whole ids.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// List all agents, including dead, expired and long idle ones
    #[arg(long, short)]
    all: bool,

    /// List the agents of all your projects whose daemons run
    #[arg(long)]
    everywhere: bool,
}

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    match args.everywhere {
        true => show_everywhere(context, args.all),
        false => show_here(context, args.all),
    }
}

fn show_here(context: &CommandContext, all: bool) -> Result<ExitCode, Report> {
    let mut list: AgentList = asking(async { Client::visit(&context.project).await?.get("/api/agents").await })?;
    let ids = ShortIds::of(list.agents.iter().map(|agent| agent.id));
    let hidden = keep_shown(&mut list.agents, all);
    if context.json {
        print_json(&list)?;
        return Ok(ExitCode::SUCCESS);
    }
    show(&list.agents, &ids, hidden)?;
    Ok(ExitCode::SUCCESS)
}

fn show_everywhere(context: &CommandContext, all: bool) -> Result<ExitCode, Report> {
    let mut lists = Vec::new();
    let answers = asking(projects::everywhere("/api/agents"))?;
    let silent = projects::silent(&answers);
    for (project, answer) in answers {
        let Some((_, answer)) = answer else { continue };
        let mut list: AgentList = serde_json::from_value(answer).context("the answer cannot be read")?;
        let ids = ShortIds::of(list.agents.iter().map(|agent| agent.id));
        let hidden = keep_shown(&mut list.agents, all);
        lists.push((project.root().display().to_string(), list, ids, hidden));
    }
    if context.json {
        // Each project has a log of its own, so the list has no single position in a log.
        let of = |(root, list, ..): &(String, AgentList, _, _)| serde_json::json!({ "project": root, "head": list.head, "agents": list.agents });
        let json: Vec<_> = lists.iter().map(of).collect();
        print_json(&serde_json::json!({ "head": null, "projects": json }))?;
        return silent.map_or(Ok(ExitCode::SUCCESS), Err);
    }
    for (root, list, ids, hidden) in lists {
        print_line(&paint(STRONG, root))?;
        show(&list.agents, &ids, hidden)?;
    }
    silent.map_or(Ok(ExitCode::SUCCESS), Err)
}

/// Removes the agents that are not shown, and returns their number.
fn keep_shown(agents: &mut Vec<AgentView>, all: bool) -> usize {
    let (now, before) = (clock::now(), agents.len());
    agents.retain(|agent| all || is_shown(agent, now));
    // First the agents that wait for the user, then the agents at work.
    agents.sort_by_key(|agent| (agent.question.is_none(), !agent.activity.has_run()));
    before - agents.len()
}

/// Whether an agent is shown: it lives, and has a run, asks something, or was active in the last 24 hours. An agent of a quest without a
/// run and a question is not shown, because `hatchery quest show` shows its step.
pub(super) fn is_shown(agent: &AgentView, now: Timestamp) -> bool {
    let recent = agent.assignment.is_none() && now.ms_since(agent.last_active) < RECENT_MS;
    agent.state.is_living() && (agent.activity.has_run() || agent.question.is_some() || recent)
}

fn show(agents: &[AgentView], ids: &ShortIds, hidden: usize) -> Result<(), Report> {
    if agents.is_empty() {
        say("there are no agents");
    } else {
        let head = format!(
            "{:<width$}  {:<9}  {:>12}  {:>8}  {:<20}  NOW",
            "ID",
            "STATE",
            "ACTIVE",
            "COST",
            "NAME",
            width = ids.width()
        );
        print_line(&paint(DIM, head))?;
    }
    for agent in agents {
        print_line(&line(agent, ids, clock::now()))?;
    }
    if hidden > 0 {
        let are = if hidden == 1 { "is" } else { "are" };
        say(paint(DIM, format_args!("{hidden} more that {are} idle, dead or expired: --all")));
    }
    Ok(())
}

/// What an agent is doing, in one word. An agent with an open question is `asking`, whatever its process does.
pub(super) fn state_word(agent: &AgentView) -> String {
    match agent.activity.has_run() {
        _ if agent.question.is_some() => "asking".to_owned(),
        true => agent.activity.word().to_owned(),
        false => agent.state.to_string(),
    }
}

/// What an agent does now, or the command that answers its open question.
pub(super) fn now_doing(agent: &AgentView) -> String {
    let doing = agent.doing.as_ref().filter(|_| agent.activity.has_run());
    let doing = doing.map(|doing| format!("{} {}", doing.tool.as_deref().unwrap_or_default(), doing.line));
    let doing: String = printable(doing.unwrap_or_default().trim()).chars().take(DOING_CHARS).collect();
    match agent.question {
        Some(question) => paint(BAD, format_args!("waits for you: hatchery ask answer {question} …")),
        None if doing.is_empty() => doing,
        None => paint(DIM, doing),
    }
}

fn line(agent: &AgentView, ids: &ShortIds, now: Timestamp) -> String {
    let (state, now_doing) = (state_word(agent), now_doing(agent));
    let name: String = printable(agent.name.as_deref().unwrap_or("-")).chars().take(20).collect();
    let active = clock::age(agent.last_active, now);
    let cost = agent.spent.cost.to_string();
    let (id, width) = (ids.short(agent.id), ids.width());
    format!("{id:<width$}  {state:<9}  {active:>12}  {cost:>8}  {name:<20}  {now_doing}")
}
