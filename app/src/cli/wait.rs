//! `hatchery wait`

use super::follow::Following;
use super::paint::printable;
use super::waiting_run::WaitingRun;
use super::{CommandContext, asking, counted, print_json, print_line, quoted, reference, say};
use crate::client::Client;
use crate::client::paths::agent_path;
use crate::http::{AgentView, RunList};
use crate::report::{Code, Report};
use hatchery_core::event::{QuestionEvent, RunEvent};
use hatchery_core::outcome::Cause;
use hatchery_core::why::Activity;
use hatchery_core::{AgentId, Event};
use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Duration;

/// Wait until the runs of these agents have ended
///
/// For an agent without an open run, the end of its last run counts. Exits with 0 if all runs completed. Exits with 1 if a run ended in
/// another way, or if the time is up. To wait for mail, use `hatchery mail wait`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The agents: ids, beginnings of ids, or names
    #[arg(required = true, value_parser = reference)]
    agents: Vec<String>,

    /// Give up after this many seconds [default: wait forever]
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
}

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    let (head, ends) = asking(async {
        let waiting = wait(context, args);
        match args.timeout {
            None => waiting.await,
            Some(seconds) => tokio::time::timeout(Duration::from_secs(seconds), waiting).await.unwrap_or_else(|_| {
                let time = counted(seconds, "second");
                Err(Report::new(Code::Failed, format_args!("not all of them ended within {time}"))
                    .hint("`hatchery why AGENT` says what an agent is doing")
                    .named("timed_out"))
            }),
        }
    })?;
    let word = |end: &Option<Cause>| end.map_or_else(|| "resting".to_owned(), |cause| cause.to_string());
    match context.json {
        true => {
            let json = |waited: &AwaitedAgent| serde_json::json!({ "agent": waited.id, "name": waited.name, "end": word(&waited.end) });
            print_json(&serde_json::json!({ "head": head, "agents": ends.iter().map(json).collect::<Vec<_>>() }))?;
        }
        false => ends.iter().try_for_each(|waited| {
            let name = waited.name.as_deref().map(|name| format!("  {}", printable(name))).unwrap_or_default();
            print_line(&format!("{}{name}  {}", waited.id, word(&waited.end)))
        })?,
    }
    let good = ends.iter().all(|waited| matches!(waited.end, None | Some(Cause::Completed)));
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// An agent that was waited for.
struct AwaitedAgent {
    id: AgentId,
    name: Option<String>,
    /// Why the agent's run ended. `None` if the agent never had a run.
    end: Option<Cause>,
}

/// Waits for the runs of the agents. Returns the last event that was read, and the agents in the order of the command line.
async fn wait(context: &CommandContext, args: &Args) -> Result<(u64, Vec<AwaitedAgent>), Report> {
    let client = Client::visit(&context.project).await?;
    // The position in the log is read before the agents: a run that ends after this position is seen in the stream, and a run that ended
    // before it is seen in the agent.
    let mut head = client.get::<serde_json::Value>("/api/status").await?["head"].as_u64().unwrap_or_default();
    let mut all: Vec<AwaitedAgent> = Vec::new();
    let mut open = BTreeSet::new();
    for agent in &args.agents {
        let view: AgentView = client.get(&agent_path(agent, "")).await?;
        // A run that has already ended gives the same answer as one that ends while the command waits.
        let mut end = None;
        match view.activity.has_run() {
            true => drop(open.insert(view.id)),
            false => end = last_end(&client, view.id).await?,
        }
        if !context.json
            && let Some(waiting) = WaitingRun::of(&client, &view).await?
        {
            tell_waiting(view.name.as_deref(), view.id, &waiting);
        }
        if view.activity == Activity::Listening && !context.json {
            say(format_args!("{agent} listens and has nothing to do; `hatchery stop {}` ends its run", quoted(agent)));
        }
        if let Some(question) = view.question {
            tell_question(context, view.name.as_deref(), view.id, question.0);
        }
        if all.iter().all(|waited| waited.id != view.id) {
            all.push(AwaitedAgent { id: view.id, name: view.name, end });
        }
    }
    let mut following = Following::new(&context.project, client, head);
    while !open.is_empty() {
        let (_, record) = following.next().await?;
        head = record.id.0;
        if let Event::Question { agent, what: QuestionEvent::Asked { .. } } = &record.event
            && let Some(waited) = all.iter().find(|waited| waited.id == *agent)
        {
            tell_question(context, waited.name.as_deref(), *agent, record.id.0);
        }
        if let Event::Run { of, .. } = &record.event
            && let Some(waiting) = WaitingRun::begun_by(&record.event)
            && let Some(waited) = all.iter().find(|waited| waited.id == of.agent && open.contains(&of.agent))
            && !context.json
        {
            tell_waiting(waited.name.as_deref(), of.agent, &waiting);
        }
        if let Event::Run { of, what: RunEvent::Ended { cause, .. } } = &record.event
            && open.remove(&of.agent)
        {
            all.iter_mut().filter(|waited| waited.id == of.agent).for_each(|waited| waited.end = Some(*cause));
        }
    }
    Ok((head, all))
}

/// Why the last run of an agent ended. `None` if the agent never had a run.
async fn last_end(client: &Client, agent: AgentId) -> Result<Option<Cause>, Report> {
    let list: RunList = client.get("/api/runs").await?;
    Ok(list.runs.into_iter().filter(|run| run.agent == agent).max_by_key(|run| run.run).and_then(|run| run.cause))
}

/// Tells the waiting user that a run waits, too.
fn tell_waiting(name: Option<&str>, agent: AgentId, waiting: &WaitingRun) {
    let who = name.map_or_else(|| agent.to_string(), printable);
    say(format_args!("{who} is {waiting}"));
}

/// Tells the waiting user that an agent has an open question, because its run does not end before the answer.
fn tell_question(context: &CommandContext, name: Option<&str>, agent: AgentId, question: u64) {
    if !context.json {
        let who = name.map_or_else(|| agent.to_string(), printable);
        say(format_args!(
            "{who} waits for you: `hatchery ask list` shows the question, `hatchery ask answer {question} …` answers it"
        ));
    }
}
