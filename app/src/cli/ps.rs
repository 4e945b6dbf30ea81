//! `hatchery ps`

use super::paint::{BAD, DIM, STRONG, paint, printable};
use super::{CommandContext, asking, print_json, print_line, say};
use crate::client::Client;
use crate::clock;
use crate::http::{AgentList, AgentView};
use crate::projects;
use crate::report::{Context as _, Report};
use crate::short_ids::ShortIds;
use hatchery_core::Timestamp;
use std::process::ExitCode;

/// How many characters of an agent's current line are shown.
const DOING_CHARS: usize = 60;

/// List the agents: what each one does now, and which ones wait for you
///
/// Lists the agents that have a run or a question. Of the other agents outside of quests, lists the 50 that were active last, if that was in the last 24 hours. An agent is
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
    let path = path(all);
    let mut list: AgentList = asking(async { Client::visit(&context.project).await?.get(path).await })?;
    sort(&mut list.agents);
    if context.json {
        print_json(&list)?;
        return Ok(ExitCode::SUCCESS);
    }
    show(&list)?;
    Ok(ExitCode::SUCCESS)
}

fn show_everywhere(context: &CommandContext, all: bool) -> Result<ExitCode, Report> {
    let mut lists = Vec::new();
    let answers = asking(projects::everywhere(path(all)))?;
    let silent = projects::silent(&answers);
    for (project, answer) in answers {
        let Some((_, answer)) = answer else { continue };
        let mut list: AgentList = serde_json::from_value(answer).context("the answer cannot be read")?;
        sort(&mut list.agents);
        lists.push((project.root().display().to_string(), list));
    }
    if context.json {
        // Each project has a log of its own, so the list has no single position in a log.
        let of = |(root, list): &(String, AgentList)| serde_json::json!({ "project": root, "head": list.head, "agents": list.agents });
        let json: Vec<_> = lists.iter().map(of).collect();
        print_json(&serde_json::json!({ "head": null, "projects": json }))?;
        return silent.map_or(Ok(ExitCode::SUCCESS), Err);
    }
    for (root, list) in lists {
        print_line(&paint(STRONG, root))?;
        show(&list)?;
    }
    silent.map_or(Ok(ExitCode::SUCCESS), Err)
}

/// The agents to ask the daemon for.
fn path(all: bool) -> &'static str {
    if all { "/api/agents" } else { "/api/agents?extent=current" }
}

/// First the agents that wait for the user, then the agents at work.
fn sort(agents: &mut [AgentView]) {
    agents.sort_by_key(|agent| (agent.question.is_none(), !agent.activity.has_run()));
}

fn show(AgentList { agents, hidden, id_chars, .. }: &AgentList) -> Result<(), Report> {
    let ids = ShortIds::with_width(*id_chars);
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
        print_line(&line(agent, &ids, clock::now()))?;
    }
    say_hidden(*hidden);
    Ok(())
}

pub(super) fn say_hidden(count: usize) {
    if count > 0 {
        let are = if count == 1 { "is" } else { "are" };
        say(paint(DIM, format_args!("{count} more that {are} idle, dead or expired: --all")));
    }
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
